//! Processes that run already: a service, with all that it started.
//!
//! Every call stops them, because a filter would outlive us. When we go, for whatever reason, the kernel lets them go
//! on as they were.

use std::collections::BTreeSet;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use crate::error::CaptureError;
use crate::follower::Follower;
use crate::run::{Captured, MoreDescriptors, Options, Run, left};
use crate::sys::{self, Attached};
use crate::writing::Piece;
use crate::{locked, maps};

/// Follows processes that run already and their children, until all have ended, [`Options::length`] has passed or a
/// signal's number is put into `signal`; then they go on without us. What they have in memory when we come is told
/// first: mappings, pages, and what is cached of their files.
///
/// # Errors
/// The first of them is not there, or is not ours to follow.
pub fn processes(
    pids: &[u32],
    options: &Options,
    signal: &AtomicUsize,
    sink: &mut (dyn FnMut(Piece) -> io::Result<()> + Send),
) -> Result<Captured, CaptureError> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err(CaptureError::Architecture);
    }
    let first = pids.first().copied().unwrap_or_default();
    let root = i32::try_from(first).ok().and_then(maps::process_of);
    let root = root.ok_or(CaptureError::NoProcess { pid: first })?;
    let prices = crate::prices::measure(true);
    let _limit = MoreDescriptors::allow();
    let follower = Mutex::new(Follower::new(true, prices));
    let mut tasks = attach_all(first, root)?;
    locked(&follower).found(root, &tasks, false);
    let others = pids.iter().filter_map(|pid| maps::process_of(i32::try_from(*pid).ok()?));
    let mut wanted: Vec<i32> = others.collect();
    wanted.push(root);
    let mut known = BTreeSet::from([root]);
    // A process that is followed tells of its children itself; those that it has already are looked for.
    while let Some(pid) = wanted.pop() {
        wanted.extend(maps::children_of(pid).into_iter().filter(|child| !known.contains(child)));
        if !known.insert(pid) {
            continue;
        }
        let mut follower = locked(&follower);
        match attach_all(pid.cast_unsigned(), pid) {
            Ok(threads) => {
                let is_child = maps::parent_of(pid).is_some_and(|parent| known.contains(&parent));
                follower.found(pid, &threads, is_child);
                tasks.extend(threads);
            }
            Err(CaptureError::NotOurs { pid, why }) => {
                follower.gaps.not_followed.insert(format!("process {pid}: {why}"));
            }
            Err(_) => {} // It has ended meanwhile.
        }
    }
    let (is_probe, notices) = (false, None);
    let run = Run { follower: &follower, options, signal, root, notices, is_probe };
    let stop_all = || tasks.iter().for_each(|tid| sys::interrupt(*tid));
    let shown = shown_line(root);
    let (ended, _, written) = run.follow(true, stop_all, sink);
    Ok(left(follower, shown, options, ended, written))
}

/// The command line of a process; of one that is gone, its number.
fn shown_line(pid: i32) -> String {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = String::from_utf8_lossy(&words).trim_end_matches('\0').replace('\0', " ");
    if words.is_empty() { format!("process {pid}") } else { words }
}

/// Follows all tasks of a process, those that begin meanwhile, too.
fn attach_all(pid: u32, root: i32) -> Result<Vec<i32>, CaptureError> {
    let mut attached = BTreeSet::new();
    loop {
        let new: Vec<i32> = maps::tasks_of(root).into_iter().filter(|tid| !attached.contains(tid)).collect();
        let before = attached.len();
        for tid in new {
            match sys::attach(tid, Attached::GoesOn) {
                Ok(()) => {
                    attached.insert(tid);
                }
                // A thread that has ended meanwhile, or one that came by an event of ours.
                Err(_) if !attached.is_empty() => {}
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
                    return Err(CaptureError::NoProcess { pid });
                }
                Err(_) => return Err(CaptureError::NotOurs { pid, why: why_not(root) }),
            }
        }
        if attached.len() == before {
            return match attached.is_empty() {
                true => Err(CaptureError::NoProcess { pid }),
                false => Ok(attached.into_iter().collect()),
            };
        }
    }
}

/// Why a process cannot be followed.
fn why_not(pid: i32) -> String {
    let tracer = maps::status(pid, "TracerPid").filter(|tracer| tracer != "0");
    if let Some(tracer) = tracer {
        return format!("process {tracer} follows it already, a debugger perhaps");
    }
    let user = |field: Option<String>| {
        field.and_then(|ids| ids.split_ascii_whitespace().next()?.parse::<u32>().ok())
    };
    let owner = user(maps::status(pid, "Uid"));
    let ours = rustix::process::getuid().as_raw();
    if owner.is_some_and(|owner| owner != ours) && ours != 0 {
        return format!("it belongs to another user, {}", owner.unwrap_or_default());
    }
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        "1" => {
            "kernel.yama.ptrace_scope is 1, which lets a process be followed by its parents only".to_owned()
        }
        "2" => "kernel.yama.ptrace_scope is 2, which lets root follow processes only".to_owned(),
        "3" => "kernel.yama.ptrace_scope is 3, which lets nobody follow a process".to_owned(),
        _ => "the kernel does not permit it".to_owned(),
    }
}
