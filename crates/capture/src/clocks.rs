//! How long a task ran, waited for a CPU, and read from disks, as the kernel tells of it.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::pace::Asleep;
use crate::sys;

/// A task that ran for less than this has just begun.
const NEW_NS: u64 = 10_000_000;

/// A task's own clock.
#[derive(Debug)]
pub(crate) struct Clock {
    tid: i32,
    /// `schedstat`, where the process has several tasks or it has slept; its process's clock tells more cheaply.
    file: Option<File>,
    /// Its process has, or had, several tasks.
    several: bool,
}

impl Clock {
    /// Of this task; `alone`: it is the only one that its process ever had.
    pub(crate) const fn of(tid: i32, alone: bool) -> Self {
        Self { tid, file: None, several: !alone }
    }

    /// Its process has several tasks.
    pub(crate) const fn not_alone(&mut self) {
        self.several = true;
    }

    /// Nanoseconds that it ran.
    pub(crate) fn ran_ns(&mut self) -> Option<u64> {
        match self.several {
            true => Some(self.numbers()?[0]),
            false => sys::cpu_time(self.tid),
        }
    }

    /// What is to be known of it once it has slept; of ourselves by `ours`.
    pub(crate) fn asleep(&mut self, ours: &mut OwnQueue) -> Asleep {
        let queued_ns = self.numbers().map_or(0, |numbers| numbers[1]);
        Asleep { queued_ns, read_bytes: read_bytes(self.tid), our_queue_ns: ours.more() }
    }

    /// The same of one that may have run for long, without a look at the thread that asks.
    pub(crate) fn so_far(&mut self) -> Asleep {
        if self.ran_ns().is_none_or(|ran| ran < NEW_NS) {
            return Asleep::default(); // Of a new task nothing is lost.
        }
        let queued_ns = self.numbers().map_or(0, |numbers| numbers[1]);
        Asleep { queued_ns, read_bytes: read_bytes(self.tid), our_queue_ns: 0 }
    }

    fn numbers(&mut self) -> Option<[u64; 2]> {
        if self.file.is_none() {
            self.file = File::open(format!("/proc/{0}/task/{0}/schedstat", self.tid)).ok();
        }
        numbers(self.file.as_ref()?)
    }
}

/// How long this thread waited for a CPU.
#[derive(Debug)]
pub(crate) struct OwnQueue {
    file: Option<File>,
    told_ns: u64,
}

impl OwnQueue {
    /// Of the thread that calls.
    pub(crate) fn of_this_thread() -> Self {
        Self { file: File::open("/proc/thread-self/schedstat").ok(), told_ns: 0 }
    }

    /// How much longer than when this was asked last.
    fn more(&mut self) -> u64 {
        let now = self.file.as_ref().and_then(numbers).map_or(0, |numbers| numbers[1]);
        now.saturating_sub(std::mem::replace(&mut self.told_ns, now))
    }
}

/// The first two numbers of `schedstat`: time on a CPU, time in the queue for one.
fn numbers(file: &File) -> Option<[u64; 2]> {
    let mut bytes = [0; 64];
    let read = file.read_at(&mut bytes, 0).ok()?;
    let mut words = std::str::from_utf8(&bytes[..read]).ok()?.split_ascii_whitespace();
    Some([words.next()?.parse().ok()?, words.next()?.parse().ok()?])
}

fn read_bytes(tid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{tid}/task/{tid}/io")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    line.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_of_a_task_agree_within_a_tick() {
        let mut child = std::process::Command::new("sleep").arg("9").spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(100));
        let pid = child.id().cast_signed();
        let of = |alone| Clock::of(pid, alone).ran_ns().unwrap();
        assert!(of(true).abs_diff(of(false)) < 20_000_000);
        assert!(of(true) > 0);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(Clock::of(pid, true).ran_ns(), None);
    }
}
