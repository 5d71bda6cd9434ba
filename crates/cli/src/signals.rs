//! Requests to stop: Ctrl-C (SIGINT), SIGTERM as from a service manager, SIGHUP as from a terminal
//! that is closed.
//!
//! All three set one flag, which whatever runs looks at; it then puts everything back and ends, and
//! the exit code says by which signal. A second signal changes nothing: ending takes a moment, and
//! ending at once would leave processes, files and sysctls behind. Only SIGKILL does that, and the
//! next run cleans up after it. A SIGHUP that was ignored when the program began (`nohup`) stays so.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::exit;

/// What signals do belongs to the process, and so does which of them came.
static CAUGHT: OnceLock<Arc<AtomicUsize>> = OnceLock::new();

/// A flag that the signals set from now on.
pub(crate) fn stop_flag() -> Arc<AtomicBool> {
    last_signal();
    let stop = Arc::new(AtomicBool::new(false));
    for signal in signals() {
        // Without a handler the signal ends the program, which is second best and no reason to stop now.
        let _ = flag::register(signal, Arc::clone(&stop));
    }
    stop
}

/// Where the number of the last signal is put from now on.
pub(crate) fn last_signal() -> Arc<AtomicUsize> {
    let caught = CAUGHT.get_or_init(Arc::default);
    for signal in signals() {
        let _ = flag::register_usize(signal, Arc::clone(caught), signal.unsigned_abs() as usize);
    }
    Arc::clone(caught)
}

/// Where the number of the last signal is put from now on, for a command that is to have it: who takes it from there
/// does not change with which code this process ends.
pub(crate) fn passed_on() -> Arc<AtomicUsize> {
    let passed = Arc::new(AtomicUsize::new(0));
    for signal in signals() {
        let _ = flag::register_usize(signal, Arc::clone(&passed), signal.unsigned_abs() as usize);
    }
    passed
}

fn signals() -> impl Iterator<Item = i32> {
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| *signal != SIGHUP || !is_ignored(SIGHUP))
}

/// The exit code of work that was stopped: 128 and the signal, as a shell has it.
pub(crate) fn exit_code() -> u8 {
    let caught = CAUGHT.get().map_or(0, |caught| caught.load(Ordering::Relaxed));
    match u8::try_from(caught) {
        Ok(signal @ 1..) => exit::SIGNALLED + signal,
        _ => exit::INTERRUPTED,
    }
}

/// Whether this process ignores `signal`, by the mask that Linux shows (proc_pid_status(5)).
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    (mask >> (signal - 1)) & 1 == 1
}
