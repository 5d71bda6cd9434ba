//! Reads what a guest's kernel prints: keeps the last lines, and knows a crash when it sees one.
//!
//! The phrases are those that `panic()`, `die()` and the page fault handler print. What only
//! complains about time (lockups, stalls) is no crash: an emulated CPU on a busy host does that.

use std::collections::VecDeque;

/// How many lines are kept for an error message.
const TAIL_LINES: usize = 40;

/// A console, line by line.
#[derive(Debug, Default)]
pub struct Console {
    partial: Vec<u8>,
    tail: VecDeque<String>,
    crash: Option<String>,
    kills: u32,
}

impl Console {
    /// Takes bytes as they come.
    pub fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte == b'\n' {
                let line = String::from_utf8_lossy(&std::mem::take(&mut self.partial)).into_owned();
                self.line(line.trim_end());
            } else {
                self.partial.push(*byte);
            }
        }
    }

    /// The first line that says that the kernel crashed.
    pub fn crash(&self) -> Option<&str> {
        self.crash.as_deref()
    }

    /// Processes that the OOM killer took.
    pub fn oom_kills(&self) -> u32 {
        self.kills
    }

    /// The last lines, oldest first; with what has no end yet.
    pub fn tail(&self) -> Vec<String> {
        let rest = String::from_utf8_lossy(&self.partial).trim_end().to_owned();
        self.tail.iter().cloned().chain(Some(rest).filter(|rest| !rest.is_empty())).collect()
    }

    fn line(&mut self, line: &str) {
        if line.is_empty() {
            return;
        }
        if self.crash.is_none() && is_crash(line) {
            self.crash = Some(without_time(line).to_owned());
        }
        if without_time(line).contains("ut of memory: Killed process") {
            self.kills += 1;
        }
        if self.tail.len() == TAIL_LINES {
            self.tail.pop_front();
        }
        self.tail.push_back(line.to_owned());
    }
}

fn is_crash(line: &str) -> bool {
    const LATE: [&str; 3] = ["BUG: soft lockup", "BUG: workqueue lockup", "BUG: sleeping"];
    const CRASHES: [&str; 5] =
        ["Kernel panic - not syncing", "Oops:", "kernel BUG at ", "BUG: ", "general protection fault"];
    let text = without_time(line);
    let begins = |phrase: &&str| text.starts_with(*phrase);
    // A program in user space that faults is reported by its name first: "init[1] general …".
    !LATE.iter().any(|phrase| text.contains(phrase)) && CRASHES.iter().any(begins)
}

/// The line without `[    1.234567] `.
fn without_time(line: &str) -> &str {
    let rest = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    match rest {
        Some((time, text)) if time.trim_start().starts_with(|c: char| c.is_ascii_digit()) => text,
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Console {
        let mut console = Console::default();
        for part in text.as_bytes().chunks(7) {
            console.take(part);
        }
        console
    }

    #[test]
    fn a_panic_is_told_by_its_own_words() {
        let console = read(
            "[    2.104217] Run /init as init process\r\n\
             [    2.301544] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000100\r\n\
             [    2.302112] CPU: 0 PID: 1 Comm: init Not tainted 6.1.0-50-cloud-amd64 #1\r\n\
             [    2.310001] Rebooting in 1 sec",
        );
        assert_eq!(
            console.crash(),
            Some("Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000100")
        );
        assert_eq!(console.tail().len(), 4);
        assert_eq!(console.tail()[3], "[    2.310001] Rebooting in 1 sec");
    }

    #[test]
    fn the_first_line_of_an_oops_counts() {
        let console = read(
            "[   14.5] BUG: kernel NULL pointer dereference, address: 0000000000000008\n\
             [   14.6] Oops: 0000 [#1] PREEMPT SMP NOPTI\n",
        );
        assert_eq!(console.crash(), Some("BUG: kernel NULL pointer dereference, address: 0000000000000008"));
    }

    #[test]
    fn slowness_and_faults_of_programs_are_no_crash() {
        let console = read(
            "[   60.1] watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [kswapd0:43]\n\
             [   61.1] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:\n\
             [   62.1] traps: init[1] general protection fault ip:7f0 sp:7ff error:0\n\
             the workload says Oops: nothing\n",
        );
        assert_eq!(console.crash(), None);
    }

    #[test]
    fn killed_processes_are_counted() {
        let console = read(
            "[  9.1] Memory cgroup out of memory: Killed process 77 (B) total-vm:4kB\n\
             [  9.2] Out of memory: Killed process 78 (A) total-vm:4kB\n",
        );
        assert_eq!(console.oom_kills(), 2);
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let text: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let tail = read(&text).tail();
        assert_eq!((tail.len(), tail[0].as_str(), tail[39].as_str()), (40, "line 60", "line 99"));
    }
}
