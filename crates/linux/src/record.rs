//! `record -- COMMAND`: monitors around any command on this host.
//!
//! The command runs as it would without us: same user, same cgroup, same terminal. What
//! `/proc` shows to everybody is sampled without any rights; the rest is named in the notes. Left
//! out: the command's own cgroup, its children that outlive it.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};
use workload::Outcome;

use crate::error::LinuxError;
use crate::monitor::Monitor;
use crate::run::{Pace, elapsed, result};
use crate::spec::LinuxResult;
use crate::system::monotonic;
use crate::tracefs::Tracing;

/// A command that has ended, and what the kernel counted meanwhile.
#[derive(Debug)]
pub struct Recorded {
    /// The counters; its outcome has no metric.
    pub result: LinuxResult,
    /// The command's exit status as a shell has it: 128 and the signal's number if it was killed.
    pub exit_code: i32,
}

/// Runs `command` with `args` and samples every `period` until it has ended. A signal whose number
/// is put into `signal` is passed on to the command, which decides itself what to do.
///
/// # Errors
/// The command cannot be started or waited for.
pub fn run(
    command: &OsStr,
    args: &[OsString],
    period: Duration,
    signal: &AtomicUsize,
) -> Result<Recorded, LinuxError> {
    let path = Path::new(command);
    let mut monitor = Monitor::of_machine();
    let mut tracing = Tracing::start(&mut monitor, false);
    let started = monotonic();
    monitor.sample(0);
    let child = Command::new(command).args(args).spawn();
    let mut child = child.map_err(|source| LinuxError::Command { command: path.to_owned(), source })?;
    let ended = watch(&mut child, &mut monitor, &mut tracing, Pace::new(period, started), signal);
    let status = match ended {
        Ok(status) => status,
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            return Err(LinuxError::io("wait for", path, error));
        }
    };
    let wall_ns = elapsed(started);
    monitor.sample(wall_ns);
    let exit_code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    let waits = tracing.finish(monotonic(), &mut monitor);
    let result = LinuxResult { waits, ..result(Outcome::default(), monitor, wall_ns) };
    Ok(Recorded { result, exit_code })
}

fn watch(
    child: &mut Child,
    monitor: &mut Monitor,
    tracing: &mut Tracing,
    mut pace: Pace,
    signal: &AtomicUsize,
) -> std::io::Result<ExitStatus> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // Before Linux 5.3 there is no such file; the wait below is then a sleep.
    let file: Option<OwnedFd> =
        pid.and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok());
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let signal = i32::try_from(signal.swap(0, Ordering::Relaxed)).ok().and_then(Signal::from_named_raw);
        if let (Some(pid), Some(signal)) = (pid, signal)
            && !(signal == Signal::INT && terminal_signals_us())
        {
            let _ = rustix::process::kill_process(pid, signal);
        }
        wait(file.as_ref(), pace.wait().min(tracing.patience()));
        tracing.look(monotonic());
        if let Some(at_ns) = pace.due() {
            monitor.sample(at_ns);
        }
    }
}

/// Whether a Ctrl-C at the terminal goes to this process, and with it to the command: some programs
/// take a second one for impatience. Its group is then the terminal's (`pgrp` and `tpgid`, the third
/// and sixth field behind the name in proc_pid_stat(5)).
fn terminal_signals_us() -> bool {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let mut fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_ascii_whitespace().skip(2);
    let (group, terminals) = (fields.next(), fields.nth(2));
    group.is_some() && group == terminals
}

/// Waits for the end of a process, but for no longer than `length`.
pub(crate) fn wait(file: Option<&OwnedFd>, length: Duration) {
    let Some(file) = file else { return std::thread::sleep(length) };
    let timeout = Timespec {
        tv_sec: i64::try_from(length.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: length.subsec_nanos().into(),
    };
    let _ = rustix::event::poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&timeout));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, signal: usize) -> Recorded {
        let args = ["-c", script].map(OsString::from);
        run(OsStr::new("sh"), &args, Duration::from_millis(5), &AtomicUsize::new(signal)).unwrap()
    }

    #[test]
    fn a_commands_status_is_passed_on_and_its_time_is_sampled() {
        let recorded = shell("sleep 0.3; exit 3", 0);
        assert_eq!(recorded.exit_code, 3);
        let rows = &recorded.result.rows;
        // First, last, and at least one between, however busy the machine is.
        assert!(rows.len() >= 3, "{} rows", rows.len());
        assert!(rows.is_sorted_by_key(|(at_ns, _)| *at_ns));
        assert!(rows.iter().all(|(_, values)| values.len() == recorded.result.columns.len()));
        assert!(recorded.result.vmstat["pgfault"] > recorded.result.vmstat_before["pgfault"]);
        assert_eq!(recorded.result.wall_ns, rows.last().unwrap().0);
    }

    /// It was asked with SIGHUP, too, which a command below nohup(1) ignores.
    #[test]
    fn a_command_ends_by_the_signal_that_came() {
        // SIGUSR1 and SIGTERM: neither nohup nor a shell in the background has them ignored.
        for signal in [10, 15] {
            assert_eq!(shell("exec sleep 60", signal).exit_code, 128 + signal as i32);
        }
    }

    #[test]
    fn a_command_that_does_not_exist_is_an_error_with_its_name() {
        let signal = AtomicUsize::new(0);
        let error = run(OsStr::new("no-such-command"), &[], Duration::from_secs(1), &signal).unwrap_err();
        assert_eq!(error.to_string(), "cannot run `no-such-command`: No such file or directory (os error 2)");
    }
}
