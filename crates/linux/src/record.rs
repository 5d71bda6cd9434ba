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
use std::sync::atomic::{AtomicBool, Ordering};
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

/// Runs `command` with `args` and samples every `period` until it has ended. When `stop` is set
/// the command is asked to end by SIGTERM, once, and waited for.
///
/// # Errors
/// The command cannot be started or waited for.
pub fn run(
    command: &OsStr,
    args: &[OsString],
    period: Duration,
    stop: &AtomicBool,
) -> Result<Recorded, LinuxError> {
    let path = Path::new(command);
    let mut monitor = Monitor::of_machine();
    let _tracing = Tracing::start(&mut monitor);
    let started = monotonic();
    monitor.sample(0);
    let child = Command::new(command).args(args).spawn();
    let mut child = child.map_err(|source| LinuxError::Command { command: path.to_owned(), source })?;
    let ended = watch(&mut child, &mut monitor, Pace::new(period, started), stop);
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
    Ok(Recorded { result: result(Outcome::default(), monitor, wall_ns), exit_code })
}

fn watch(
    child: &mut Child,
    monitor: &mut Monitor,
    mut pace: Pace,
    stop: &AtomicBool,
) -> std::io::Result<ExitStatus> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    // Before Linux 5.3 there is no such file; the wait below is then a sleep.
    let file: Option<OwnedFd> =
        pid.and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok());
    let mut asked = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if let Some(pid) = pid.filter(|_| !asked && stop.load(Ordering::Relaxed)) {
            let _ = rustix::process::kill_process(pid, Signal::TERM);
            asked = true;
        }
        wait(file.as_ref(), pace.wait());
        if let Some(at_ns) = pace.due() {
            monitor.sample(at_ns);
        }
    }
}

fn wait(file: Option<&OwnedFd>, length: Duration) {
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

    fn shell(script: &str, stop: bool) -> Recorded {
        let args = ["-c", script].map(OsString::from);
        run(OsStr::new("sh"), &args, Duration::from_millis(5), &AtomicBool::new(stop)).unwrap()
    }

    #[test]
    fn a_commands_status_is_passed_on_and_its_time_is_sampled() {
        let recorded = shell("sleep 0.3; exit 3", false);
        assert_eq!(recorded.exit_code, 3);
        let rows = &recorded.result.rows;
        // First, last, and at least one between, however busy the machine is.
        assert!(rows.len() >= 3, "{} rows", rows.len());
        assert!(rows.is_sorted_by_key(|(at_ns, _)| *at_ns));
        assert!(rows.iter().all(|(_, values)| values.len() == recorded.result.columns.len()));
        assert!(recorded.result.vmstat["pgfault"] > recorded.result.vmstat_before["pgfault"]);
        assert_eq!(recorded.result.wall_ns, rows.last().unwrap().0);
    }

    #[test]
    fn a_stopped_command_ends_by_sigterm() {
        assert_eq!(shell("sleep 60", true).exit_code, 128 + 15);
    }

    #[test]
    fn a_command_that_does_not_exist_is_an_error_with_its_name() {
        let stop = AtomicBool::new(false);
        let error = run(OsStr::new("no-such-command"), &[], Duration::from_secs(1), &stop).unwrap_err();
        assert_eq!(error.to_string(), "cannot run `no-such-command`: No such file or directory (os error 2)");
    }
}
