//! What this host is, in the words of a machine file: nodes, CPUs, memory, ticks, the disk below a folder, sysctls, and
//! what a few operations of its kernel cost.
//!
//! Each cost is the least of several rounds, so that what else runs is left out as far as it lets go of a CPU.
//! Reclaim is timed where a memory cgroup can be made: a file of holes is read, then `memory.max` is lowered. Left
//! out: what takes other tools to see (lock contention, caches), and all costs that are no call of a program's own.
//! Next: [`crate::disk_speed`], which times the disk.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::mm::Advice;
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::disk_speed::{DiskSpeed, measure};
use crate::limited::{LimitedRun, Room};
use crate::memory::Mapping;

/// What was found of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probed {
    /// As `uname -r` has it.
    pub kernel: String,
    /// Memory nodes.
    pub nodes: u16,
    /// CPUs that are online.
    pub cpus: u16,
    /// `MemTotal`.
    pub memory: Bytes,
    /// Ticks a second, where the kernel's options can be read.
    pub hz: Option<u64>,
    /// The disk below the folder, where it can be timed.
    pub disk: Option<DiskSpeed>,
    /// Sysctls of memory by their dotted names.
    pub sysctls: Vec<(String, String)>,
    /// Costs by the names of the model's table.
    pub costs: Vec<(&'static str, Nanos)>,
    /// What could not be found, a phrase each.
    pub lacking: Vec<String>,
}

/// Sysctls that decide about reclaim, in the order of a file.
const SYSCTLS: [&str; 10] = [
    "vm.min_free_kbytes",
    "vm.watermark_scale_factor",
    "vm.watermark_boost_factor",
    "vm.swappiness",
    "vm.vfs_cache_pressure",
    "vm.dirty_ratio",
    "vm.dirty_background_ratio",
    "vm.dirty_expire_centisecs",
    "vm.dirty_writeback_centisecs",
    "vm.page-cluster",
];
/// Rounds of a measurement, of which the fastest counts.
const ROUNDS: u32 = 7;
/// Bytes that are read, touched and cleared.
const GROUND: u64 = 64 << 20;
/// The file of holes that is read for reclaim, and the limit that it is read under.
const HOLES: u64 = 512 << 20;
const LIMIT: Bytes = Bytes(48 << 20);
const PATIENCE: Duration = Duration::from_secs(30);
/// What an allocation of a page and its free take of a fault.
const ALLOC_NS: u64 = 30;

/// Looks at this host and times it for some seconds; files of [`GROUND`] and of holes are made in `folder`, and
/// removed.
///
/// # Errors
/// No file can be made in `folder`; `stop` was set, which is `Interrupted`.
pub fn probe(folder: &Path, stop: &AtomicBool) -> io::Result<Probed> {
    let own = tempfile::Builder::new().prefix("pagetide-probe-").tempdir_in(folder)?;
    let ground = own.path().join("ground");
    let mut file = File::options().read(true).write(true).create_new(true).open(&ground)?;
    for _ in 0..GROUND >> 20 {
        go_on(stop)?;
        file.write_all(&vec![1; 1 << 20])?;
    }
    file.sync_all()?;
    let mut lacking = Vec::new();
    go_on(stop)?;
    let disk = measure([ground.clone()]);
    if disk.is_none() {
        lacking
            .push(format!("the disk: `{}` lies on none that can be read around the cache", folder.display()));
    }
    let mut costs = of_calls(&file, &ground, stop)?;
    match of_reclaim(own.path()) {
        Ok(reclaim) => costs.extend(reclaim),
        Err(why) => lacking.push(format!("reclaim: {why}")),
    }
    go_on(stop)?;
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let hz = ticks(&text("/proc/sys/kernel/osrelease"));
    if hz.is_none() {
        lacking.push("ticks: the kernel's options are not to be read".to_owned());
    }
    lacking
        .push("waking up, slab, compaction and swap: no call of a program shows them by itself".to_owned());
    Ok(Probed {
        kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
        nodes: nodes(),
        cpus: std::thread::available_parallelism()
            .map_or(1, |cpus| u16::try_from(cpus.get()).unwrap_or(u16::MAX)),
        memory: memory(&text("/proc/meminfo")).unwrap_or(Bytes(0)),
        hz,
        disk,
        sysctls: SYSCTLS.iter().filter_map(|name| Some(((*name).to_owned(), sysctl(name)?))).collect(),
        costs,
        lacking,
    })
}

/// Nothing, unless somebody wants to stop.
fn go_on(stop: &AtomicBool) -> io::Result<()> {
    if stop.load(Ordering::Relaxed) { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
}

/// A sysctl that is set: a share of 0 means that the same is said in bytes.
fn sysctl(name: &str) -> Option<String> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    let says_nothing = |text: &str| text.is_empty() || (name.ends_with("_ratio") && text == "0");
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned()).filter(|text| !says_nothing(text))
}

fn nodes() -> u16 {
    let is_node = |name: &str| name.strip_prefix("node").is_some_and(|rest| rest.parse::<u16>().is_ok());
    let entries = fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
    let count = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_node)).count();
    u16::try_from(count.max(1)).unwrap_or(1)
}

fn memory(meminfo: &str) -> Option<Bytes> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(Bytes(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10))
}

/// `CONFIG_HZ`, where a distribution leaves the options beside its kernel.
fn ticks(release: &str) -> Option<u64> {
    let options = fs::read_to_string(format!("/boot/config-{}", release.trim())).ok()?;
    options.lines().find_map(|line| line.strip_prefix("CONFIG_HZ=")?.trim().parse().ok())
}

/// The least of several rounds, for each of `count` things.
fn least(count: u64, mut round: impl FnMut() -> io::Result<Duration>) -> io::Result<u64> {
    let mut least = u64::MAX;
    for _ in 0..ROUNDS {
        let ns = u64::try_from(round()?.as_nanos()).unwrap_or(u64::MAX);
        least = least.min(ns / count.max(1));
    }
    Ok(least)
}

/// What calls of a program take.
fn of_calls(file: &File, path: &Path, stop: &AtomicBool) -> io::Result<Vec<(&'static str, Nanos)>> {
    const CALLS: u64 = 50_000;
    const OPENS: u64 = 2_000;
    /// As long as a read with readahead's window.
    const READ: usize = 128 << 10;
    let timed = |work: &mut dyn FnMut() -> io::Result<()>| {
        go_on(stop)?;
        let begin = Instant::now();
        work()?;
        Ok(begin.elapsed())
    };
    let syscall = least(CALLS, || {
        timed(&mut || {
            for _ in 0..CALLS {
                let _ = std::hint::black_box(rustix::process::getppid());
            }
            Ok(())
        })
    })?;
    let mut buffer = vec![0; READ];
    let read_all = &mut || {
        for at in (0..GROUND).step_by(READ) {
            file.read_exact_at(&mut buffer, at)?;
        }
        Ok(())
    };
    read_all()?;
    let calls = GROUND / READ as u64;
    let read = least(calls, || timed(read_all))?;
    let copy = read.saturating_sub(syscall) / (READ as u64 / PAGE_SIZE);
    let open = least(OPENS, || timed(&mut || (0..OPENS).try_for_each(|_| File::open(path).map(drop))))?;
    let pages = GROUND / PAGE_SIZE;
    let mut clear = u64::MAX;
    let fault = least(pages, || {
        let mapping = Mapping::anonymous(Bytes(GROUND))?;
        let _ = mapping.advise(Advice::LinuxNoHugepage);
        let took = timed(&mut || mapping.touch(0, pages))?;
        let begin = Instant::now();
        mapping.fill(0, pages)?;
        clear = clear.min(u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX) / pages);
        Ok(took)
    })?;
    Ok(vec![
        ("syscall", Nanos(syscall)),
        ("copy_page", Nanos(copy)),
        ("file_open", Nanos(open.saturating_sub(2 * syscall))),
        ("clear_page", Nanos(clear)),
        ("minor_fault", Nanos(fault.saturating_sub(clear + ALLOC_NS))),
    ])
}

/// What reclaim of a clean page takes: of a file of holes, which needs no disk, when `memory.max` is lowered below it.
fn of_reclaim(folder: &Path) -> Result<[(&'static str, Nanos); 2], String> {
    /// Of scan and free together, what the scan takes.
    const SCAN_PERCENT: u64 = 27;
    /// No single page is reclaimed in less.
    const LEAST_NS: u64 = 60;
    let told = |error: io::Error| error.to_string();
    let path = folder.join("holes");
    File::create(&path).and_then(|file| file.set_len(HOLES)).map_err(told)?;
    let room = Room::make().map_err(|error| error.to_string())?;
    let command: Vec<OsString> =
        ["dd", "of=/dev/null", "bs=128k"].map(OsString::from).into_iter().chain([of(&path)]).collect();
    let cold: [PathBuf; 1] = [path];
    let run = LimitedRun {
        command: &command,
        limit: Some(LIMIT),
        cold: &cold,
        without_inodes: false,
        patience: PATIENCE,
    };
    let mut each = u64::MAX;
    for _ in 0..3 {
        let (took, reclaimed) = room.time_reclaim(&run).map_err(|error| error.to_string())?;
        let pages = reclaimed.get() / PAGE_SIZE;
        if pages < (HOLES - LIMIT.get()) / PAGE_SIZE / 2 {
            return Err(format!("lowering a limit reclaimed {pages} pages only"));
        }
        each = each.min(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX) / pages);
    }
    if each < LEAST_NS {
        return Err(format!(
            "{each} ns a page, so these are large folios, which tell nothing of single pages"
        ));
    }
    let scan = each * SCAN_PERCENT / 100;
    Ok([("scan_page", Nanos(scan)), ("reclaim_page", Nanos(each - scan))])
}

fn of(path: &Path) -> OsString {
    let mut argument = OsString::from("if=");
    argument.push(path);
    argument
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_as_the_kernel_writes_it() {
        assert_eq!(memory("MemTotal:        1016336 kB\nMemFree: 5 kB\n"), Some(Bytes(1_016_336 << 10)));
        assert_eq!(memory("MemFree: 5 kB\n"), None);
    }

    #[test]
    fn this_host_has_cpus_memory_and_costs() {
        let folder = tempfile::tempdir().unwrap();
        let probed = probe(folder.path(), &AtomicBool::new(false)).unwrap();
        assert!(probed.cpus > 0 && probed.nodes > 0 && probed.memory > Bytes(1 << 20), "{probed:?}");
        let names: Vec<&str> = probed.costs.iter().map(|(name, _)| *name).collect();
        assert_eq!(names[..5], ["syscall", "copy_page", "file_open", "clear_page", "minor_fault"]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing stays behind");
    }

    /// Ctrl-C left `pagetide-probe-…` in the folder, perhaps with its 64 MiB, and a memory cgroup.
    #[test]
    fn a_probe_that_was_stopped_left_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let error = probe(folder.path(), &AtomicBool::new(true)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
