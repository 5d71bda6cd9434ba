//! What the kernel printed when it killed a task: `/dev/kmsg`, from the start of a run on.
//!
//! A record is `priority,sequence,microseconds,flags;text`, one for each `read`. Of the report of the
//! OOM killer (`dump_header`) who asked, the functions of its call trace, the memory, the tasks and the
//! verdict are kept; registers are not. Left out: kills before the run, and those after the first.
//! Next: [`crate::run`], which asks when a task was killed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;

/// A record is never longer.
const RECORD_MAX: usize = 8192;

/// The log of the kernel behind what it had said when this was opened.
pub(crate) struct KernelLog(File);

/// A line of the log, and when it was printed: nanoseconds since boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    at_ns: u64,
    text: String,
}

/// What the kernel said of one kill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Report {
    /// When, in nanoseconds since boot.
    pub(crate) at_ns: u64,
    /// Whether a cgroup was at its limit.
    pub(crate) by_limit: bool,
    /// The cgroup of the task, from the root of the hierarchy on.
    pub(crate) cgroup: Option<String>,
    /// What the task was called.
    pub(crate) task: Option<String>,
    /// Anonymous memory that it held.
    pub(crate) anon_kb: Option<u64>,
    /// Memory, tasks and the verdict.
    pub(crate) lines: Vec<String>,
}

impl KernelLog {
    /// The log from now on.
    ///
    /// # Errors
    /// It is not there, or not for this user.
    pub(crate) fn from_now() -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg")?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self(file))
    }

    /// The first kill since the last call.
    pub(crate) fn first_kill(&mut self) -> Option<Report> {
        report(&self.lines())
    }

    fn lines(&mut self) -> Vec<Line> {
        let (mut lines, mut record) = (Vec::new(), [0; RECORD_MAX]);
        loop {
            match self.0.read(&mut record) {
                Ok(0) => return lines,
                Ok(length) => lines.extend(line(&String::from_utf8_lossy(&record[..length]))),
                // What was overwritten before we read it is lost; the next record is not.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(_) => return lines,
            }
        }
    }
}

fn line(record: &str) -> Option<Line> {
    let (prefix, text) = record.split_once(';')?;
    let micros: u64 = prefix.split(',').nth(2)?.parse().ok()?;
    // Lines behind the first are a dictionary for programs.
    let text = text.lines().next()?.to_owned();
    Some(Line { at_ns: micros.saturating_mul(1000), text })
}

fn report(lines: &[Line]) -> Option<Report> {
    let last = lines.iter().position(|line| line.text.contains("ut of memory: Killed process"))?;
    let begins = |line: &Line| line.text.starts_with("Mem-Info:") || line.text.starts_with("memory: usage");
    let first = lines[..last].iter().rposition(begins).unwrap_or(last);
    let verdict = &lines[last].text;
    let after = |text: &str, key: &str| {
        let (_, rest) = text.split_once(key)?;
        Some(rest.split(',').next().unwrap_or(rest).to_owned())
    };
    let request = lines[..first].iter().rposition(|line| line.text.contains(" invoked oom-killer: "));
    let above = lines[request.unwrap_or(first)..first].iter().filter_map(asked);
    let constraint = lines[first..last].iter().find(|line| line.text.starts_with("oom-kill:"));
    Some(Report {
        at_ns: lines[last].at_ns,
        by_limit: verdict.starts_with("Memory cgroup"),
        cgroup: constraint.and_then(|line| after(&line.text, "task_memcg=")),
        task: between(verdict, '(', ')'),
        anon_kb: after(verdict, "anon-rss:").and_then(|text| text.trim_end_matches("kB").parse().ok()),
        lines: above.chain(lines[first..=last].iter().map(|line| line.text.clone())).collect(),
    })
}

/// What of the lines above memory tells who asked and what for: the request, and the functions of the call trace
/// without their offsets.
fn asked(line: &Line) -> Option<String> {
    let text = &line.text;
    if text.contains(" invoked oom-killer: ") || text.starts_with("Call Trace:") {
        return Some(text.clone());
    }
    let (function, _) = text.split_once("+0x")?;
    let is_certain = text.starts_with(' ') && !text.contains('?');
    is_certain.then(|| function.to_owned())
}

/// What stands between the first `open` and the next `close`.
fn between(text: &str, open: char, close: char) -> Option<String> {
    let (inside, _) = text.split_once(open)?.1.split_once(close)?;
    Some(inside.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.12 prints it, shortened.
    const LOG: &str = "\
        6,811,2100000,-;init: ready\n\
        4,812,3214000,-;init invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n\
        4,813,3214010,-;CPU: 0 UID: 0 PID: 77 Comm: init Not tainted 6.12.9 #1\n\
        4,814,3214020,-;Call Trace:\n\
        4,814,3214021,-; dump_header+0x4a/0x220\n\
        4,814,3214022,-; ? find_held_lock+0x2b/0x80\n\
        4,814,3214023,-; handle_mm_fault+0x96/0x2c0\n\
        4,814,3214024,-;RIP: 0033:0x401a2c\n\
        6,815,3214100,-;memory: usage 1024kB, limit 1024kB, failcnt 31\n\
        6,816,3214110,-;Memory cgroup stats for /pagetide/P:\n\
        6,817,3214120,-;anon 184320\n\
        6,818,3214130,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/pagetide/P,task_memcg=/pagetide/P/B,task=init,pid=77,uid=0\n\
        3,819,3214140,-;Memory cgroup out of memory: Killed process 77 (init) total-vm:4120kB, anon-rss:180kB, file-rss:0kB\n\
        3,820,3215000,-;oom_reaper: reaped process 77 (init), now anon-rss:0kB";

    #[test]
    fn the_report_of_a_kill_is_who_asked_memory_tasks_and_verdict_without_registers() {
        let lines: Vec<Line> = LOG.lines().filter_map(|record| line(record.trim_start())).collect();
        let report = report(&lines).unwrap();
        assert_eq!((report.at_ns, report.by_limit, report.anon_kb), (3_214_140_000, true, Some(180)));
        assert_eq!(report.cgroup.as_deref(), Some("/pagetide/P/B"));
        assert_eq!(report.lines.len(), 9);
        assert_eq!(
            report.lines[..5],
            [
                "init invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
                "Call Trace:",
                " dump_header",
                " handle_mm_fault",
                "memory: usage 1024kB, limit 1024kB, failcnt 31"
            ]
        );
    }

    #[test]
    fn a_log_without_a_kill_has_no_report() {
        assert_eq!(report(&[]), None);
        assert_eq!(line("no record"), None);
    }
}
