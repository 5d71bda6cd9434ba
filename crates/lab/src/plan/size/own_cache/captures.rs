//! Captures of one command, each with an own cache of another size.
//!
//! The command has no terminal: its output is kept to say why it failed, and is not shown. A command that does not end
//! with status 0 has not done its work, and its size is left out, with the reason. A signal goes to the command that
//! runs; one that has not ended [`PATIENCE`] later is killed.
//!
//! Left out: what a command leaves in files for the next one, which is its own business.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use units::Bytes;

use crate::error::LabError;
use crate::plan::size::control::{SizeControl, SizeProgress};
use crate::run::capture::{Done, quietly};

/// A command that was stopped has so long to end.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks whether it was.
const LOOK: Duration = Duration::from_millis(50);
const SIGKILL: usize = 9;

/// A command that was captured.
#[derive(Debug)]
pub(super) struct Captured {
    pub(super) own_cache: Bytes,
    pub(super) command: Vec<OsString>,
    pub(super) trace: PathBuf,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Captures {
    /// Those that did their work.
    pub(super) whole: Vec<Captured>,
    /// Those that did not, and why.
    pub(super) failed: Vec<(Bytes, String)>,
}

/// Captures each of these into a file of `folder`.
///
/// # Errors
/// The command cannot be run or followed, a trace cannot be written, none ended well, or it was stopped.
pub(super) fn capture_each(
    commands: Vec<(Bytes, Vec<OsString>)>,
    folder: &Path,
    control: &SizeControl,
    signal: &AtomicUsize,
) -> Result<Captures, LabError> {
    let mut captures = Captures::default();
    let of = commands.len();
    for (place, (own_cache, command)) in commands.into_iter().enumerate() {
        (control.observer)(SizeProgress::Captures { number: place + 1, of, own_cache });
        let trace = folder.join(format!("own-cache-{own_cache}.trace"));
        let (done, said) = unless_stopped(control, signal, || quietly(&command, &trace, signal))?;
        if control.stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted { finished: captures.whole.len(), total: of });
        }
        match failure(done, &said)? {
            None => captures.whole.push(Captured { own_cache, command, trace }),
            Some(why) => {
                let _ = fs::remove_file(&trace); // It is of a program that did something else.
                captures.failed.push((own_cache, why));
            }
        }
    }
    match (&captures.whole[..], &captures.failed[..]) {
        ([], [(own_cache, why), ..]) => Err(LabError::refused(
            format!("the command failed with each own cache; with {own_cache} {why}"),
            "try it by itself with one of the sizes in its place; `{bytes}`, `{KiB}` and `{MiB}` write a size as a number. \
             Its exit status must be 0, and it must end by itself",
        )),
        _ => Ok(captures),
    }
}

/// Why a command has not done its work, if so.
fn failure(done: Done, said: &str) -> Result<Option<String>, LabError> {
    if let Some(failure) = done.failure {
        return Err(failure);
    }
    let last = said.lines().last().map_or_else(String::new, |line| format!(": {line}"));
    Ok(match (done.told, done.status) {
        (Some(told), _) => Some(format!("{told}{last}")),
        (None, 0) => None,
        (None, status) => Some(format!("it ended with status {status}{last}")),
    })
}

/// Does it; once all is to stop, what is still followed after a while is killed.
fn unless_stopped<R>(control: &SizeControl, signal: &AtomicUsize, work: impl FnOnce() -> R) -> R {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stopped: Option<Instant> = None;
            while !done.load(Ordering::Relaxed) {
                if control.stop.load(Ordering::Relaxed) {
                    let since = stopped.get_or_insert_with(Instant::now);
                    if since.elapsed() > PATIENCE {
                        signal.store(SIGKILL, Ordering::Relaxed);
                    }
                }
                std::thread::sleep(LOOK);
            }
        });
        let result = work();
        done.store(true, Ordering::Relaxed);
        result
    })
}
