//! Timed waits of a real kernel, as its tracepoints tell them: who waited where, how long he wanted to
//! and did, and whether anything could have ended the wait.
//!
//! The events come in the ring buffer of our own trace instance, which is emptied every 50 ms; then the
//! disks are looked at, too ([`crate::writes`]). A wait is summed up when a look behind its end has been
//! taken. Until then it is pending; no more are pending than found room in the kernel's own buffer.
//! Waits that ended early are not futile. Of those that ran to their timeout, waits for somebody's
//! progress are futile; waits for a write are, if none was in flight, and where that cannot be told it is
//! not known.
//!
//! Ground rules are those of [`crate::monitor`]: memory is made ready before. Left out: all waits without
//! a tracepoint.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::memory::LockedBuffer;
use crate::trace_line::{self, Line, Place, TracedWait};
use crate::writes::{Disks, Looks};

/// Between two looks: the waits in question are meant to last 100 ms.
pub(crate) const PERIOD: Duration = Duration::from_millis(50);
/// Size of the kernel's buffer for each CPU, in KiB: a thousand waits.
pub(crate) const KERNEL_BUFFER_KIB: &str = "64";

/// Lengths are told in ticks, of which the longest is that of HZ=100.
const TICK_US: u64 = 10_000;
/// What one read takes at most.
const BUFFER_LEN: usize = 64 << 10;
/// Sums and pending waits that there is room for without asking for memory.
const ROOM: usize = 256;
/// Bytes of a task's name (`TASK_COMM_LEN`).
const NAME_LEN: usize = 16;
const CLASSES: usize = 32;

/// Waits of one task in one phase that are alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// How many phases were over when they ended.
    pub phase: usize,
    /// The task's name.
    pub task: String,
    /// The kernel's function.
    pub wait: String,
    /// What ends such a wait, other than its timeout.
    pub kind: WaitKind,
    /// Whether they ran to their timeout.
    pub timed_out: bool,
    /// Whether nothing was under way that could have ended them; `None` where that is not known.
    pub futile: Option<bool>,
    /// How many there were.
    pub count: u64,
    /// Sum of the timeouts.
    pub requested_ns: u64,
    /// How long they lasted altogether, in whole ticks of the kernel.
    pub spent_ns: u64,
    /// The longest one.
    pub longest_ns: u64,
    /// How many were how long: class 0 is below a microsecond, class `n` from `2^(n-1)` to below `2^n`.
    pub lengths: BTreeMap<u8, u64>,
}

/// What ends a traced wait, other than its timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WaitKind {
    /// The end of some write.
    Writes,
    /// Progress of others in reclaim.
    Reclaim,
}

impl WaitKind {
    const fn of(place: Place) -> Self {
        match place {
            Place::CongestionWait
            | Place::WaitIffCongested
            | Place::ThrottleWriteback
            | Place::ThrottleCongested => Self::Writes,
            Place::ThrottleNoProgress | Place::ThrottleIsolated => Self::Reclaim,
        }
    }
}

/// A task's name without memory of its own.
type Name = [u8; NAME_LEN];

fn name_of(task: &str) -> Name {
    let mut name = [0; NAME_LEN];
    let len = task.len().min(NAME_LEN);
    name[..len].copy_from_slice(&task.as_bytes()[..len]);
    name
}

/// A wait as it is kept until it is judged.
#[derive(Debug, Clone, Copy)]
struct Pending {
    phase: usize,
    task: Name,
    place: Place,
    at_us: u64,
    timeout_us: u64,
    delayed_us: u64,
}

#[derive(Debug)]
struct Sum {
    key: (usize, Name, Place, bool, Option<bool>),
    count: u64,
    requested_us: u64,
    spent_us: u64,
    longest_us: u64,
    lengths: [u64; CLASSES],
}

/// What was heard so far; knows no file.
#[derive(Debug)]
struct Heard {
    looks: Looks,
    pending: Vec<Pending>,
    sums: Vec<Sum>,
    phase: usize,
    lost: u64,
}

impl Heard {
    fn new() -> Self {
        Self {
            looks: Looks::default(),
            pending: Vec::with_capacity(ROOM),
            sums: Vec::with_capacity(ROOM),
            phase: 0,
            lost: 0,
        }
    }

    fn hear(&mut self, line: &str) {
        match trace_line::line(line) {
            Line::Wait(TracedWait { task, at_us, place, timeout_us, delayed_us }) => {
                let (phase, task) = (self.phase, name_of(task));
                self.pending.push(Pending { phase, task, place, at_us, timeout_us, delayed_us });
            }
            Line::Lost(count) => self.lost += count,
            Line::Other => {}
        }
    }

    /// Sums up what ended before the last look, or everything.
    fn settle(&mut self, everything: bool) {
        let known = self.looks.last_us();
        let mut pending = std::mem::take(&mut self.pending);
        pending.retain(|wait| {
            let settled = everything || wait.at_us <= known;
            if settled {
                self.sum_up(wait);
            }
            !settled
        });
        self.pending = pending;
    }

    fn futile(&self, wait: &Pending) -> Option<bool> {
        if wait.delayed_us < wait.timeout_us {
            return Some(false);
        }
        match WaitKind::of(wait.place) {
            WaitKind::Reclaim => Some(true),
            WaitKind::Writes => {
                let begin = wait.at_us.saturating_sub(wait.delayed_us);
                self.looks.any_write(begin, wait.at_us, TICK_US).map(|any| !any)
            }
        }
    }

    fn sum_up(&mut self, wait: &Pending) {
        let timed_out = wait.delayed_us >= wait.timeout_us;
        let key = (wait.phase, wait.task, wait.place, timed_out, self.futile(wait));
        let index = self.sums.iter().position(|sum| sum.key == key).unwrap_or_else(|| {
            let nothing =
                Sum { key, count: 0, requested_us: 0, spent_us: 0, longest_us: 0, lengths: [0; CLASSES] };
            self.sums.push(nothing);
            self.sums.len() - 1
        });
        let sum = &mut self.sums[index];
        sum.count += 1;
        sum.requested_us = sum.requested_us.saturating_add(wait.timeout_us);
        sum.spent_us = sum.spent_us.saturating_add(wait.delayed_us);
        sum.longest_us = sum.longest_us.max(wait.delayed_us);
        let bits = u64::BITS - wait.delayed_us.leading_zeros();
        sum.lengths[(bits as usize).min(CLASSES - 1)] += 1;
    }

    /// All of it, the longest in each phase first.
    fn waits(mut self) -> Vec<Wait> {
        self.settle(true);
        self.sums.sort_by_key(|sum| (sum.key.0, std::cmp::Reverse(sum.spent_us), sum.key));
        let nanos = |micros: u64| micros.saturating_mul(1000);
        let wait = |sum: Sum| {
            let (phase, task, place, timed_out, futile) = sum.key;
            let end = task.iter().position(|&byte| byte == 0).unwrap_or(NAME_LEN);
            let lengths = (0_u8..).zip(sum.lengths).filter(|&(_, count)| count > 0);
            Wait {
                phase,
                task: String::from_utf8_lossy(&task[..end]).into_owned(),
                wait: place.name().to_owned(),
                kind: WaitKind::of(place),
                timed_out,
                futile,
                count: sum.count,
                requested_ns: nanos(sum.requested_us),
                spent_ns: nanos(sum.spent_us),
                longest_ns: nanos(sum.longest_us),
                lengths: lengths.collect(),
            }
        };
        self.sums.into_iter().map(wait).collect()
    }
}

/// The waits of a run, from its begin on.
#[derive(Debug)]
pub(crate) struct WaitLog {
    /// Not to be waited on.
    pipe: File,
    disks: Option<Disks>,
    buffer: LockedBuffer,
    /// Bytes of a line that was not read to its end.
    rest: usize,
    heard: Heard,
    last_us: u64,
}

impl WaitLog {
    /// Listens to the trace instance at `instance`, whose clock is the monotonic one.
    pub(crate) fn open(instance: &Path) -> std::io::Result<Self> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let pipe = rustix::fs::open(instance.join("trace_pipe"), flags, Mode::empty())?;
        Ok(Self {
            pipe: File::from(pipe),
            disks: Disks::open(),
            buffer: LockedBuffer::new(BUFFER_LEN),
            rest: 0,
            heard: Heard::new(),
            last_us: 0,
        })
    }

    /// Whether it can be known of waits for a write that they were futile.
    pub(crate) fn sees_writes(&self) -> bool {
        self.disks.is_some()
    }

    /// Reads what there is, if the last time is [`PERIOD`] ago.
    pub(crate) fn look(&mut self, now_us: u64) {
        if now_us.saturating_sub(self.last_us) >= PERIOD.as_micros() as u64 {
            self.look_now(now_us);
        }
    }

    /// Waits that end from now on belong to the next phase.
    pub(crate) fn end_phase(&mut self, now_us: u64) {
        self.look_now(now_us);
        self.heard.phase += 1;
    }

    fn look_now(&mut self, now_us: u64) {
        self.last_us = now_us;
        self.read();
        // The same buffer: what was read of a line has to stay.
        let scratch = &mut self.buffer.bytes()[self.rest..];
        if let Some(look) = self.disks.as_ref().and_then(|disks| disks.look(now_us, scratch)) {
            self.heard.looks.add(look);
        }
        self.heard.settle(false);
    }

    fn read(&mut self) {
        let bytes = self.buffer.bytes();
        // An error is as good as nothing to read: it is tried again.
        while let Ok(count @ 1..) = self.pipe.read(&mut bytes[self.rest..]) {
            let end = self.rest + count;
            let whole = bytes[..end].iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
            for line in bytes[..whole].split(|&byte| byte == b'\n') {
                if let Ok(line) = std::str::from_utf8(line) {
                    self.heard.hear(line);
                }
            }
            bytes.copy_within(whole..end, 0);
            // A line longer than half of the buffer is none of ours.
            self.rest = if end - whole > BUFFER_LEN / 2 { 0 } else { end - whole };
        }
    }

    /// All waits, and how many events were lost.
    pub(crate) fn finish(mut self, now_us: u64) -> (Vec<Wait>, u64) {
        self.look_now(now_us);
        let lost = self.heard.lost;
        (self.heard.waits(), lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writes::Look;

    fn heard(lines: &[&str], quiet_until_us: u64) -> Heard {
        let mut heard = Heard::new();
        for at_us in (0..=1_000_000).step_by(50_000) {
            let busy = at_us > quiet_until_us;
            heard.looks.add(Look { at_us, completed: 3, in_flight: Some(busy) });
        }
        for line in lines {
            heard.hear(line);
        }
        heard
    }

    fn told(heard: Heard) -> String {
        let line = |wait: Wait| {
            let ms = |ns| ns / 1_000_000;
            format!(
                "{} {} {} {}, timed out {}, futile {:?}: {} of {} ms, longest {} ms, {:?}",
                wait.phase,
                wait.task,
                wait.count,
                wait.wait,
                wait.timed_out,
                wait.futile,
                ms(wait.spent_ns),
                ms(wait.requested_ns),
                ms(wait.longest_ns),
                wait.lengths
            )
        };
        heard.waits().into_iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn waits_are_summed_up_by_task_place_end_and_futility() {
        let congested = "writeback_congestion_wait: usec_timeout=100000";
        let lines = [
            format!("kswapd0-52 [000] d..1 0.200000: {congested} usec_delayed=100000"),
            format!("kswapd0-52 [000] d..1 0.300000: {congested} usec_delayed=104000"),
            format!("kswapd0-52 [000] d..1 0.320000: {congested} usec_delayed=16000"),
            format!("kswapd0-52 [000] d..1 0.900000: {congested} usec_delayed=100000"),
            format!("kswapd0-52 [000] d..1 9.900000: {congested} usec_delayed=100000"),
            "reader-1-9 [001] ..... 0.900000: mm_vmscan_throttled: nid=0 usec_timeout=4000 \
             usec_delayed=4000 reason=VMSCAN_THROTTLE_NOPROGRESS"
                .to_owned(),
            "CPU:1 [LOST 12 EVENTS]".to_owned(),
            "noise".to_owned(),
        ];
        let mut heard = heard(&lines.each_ref().map(String::as_str), 500_000);
        heard.settle(false);
        assert_eq!(heard.pending.len(), 1, "what ended behind the last look");
        assert_eq!(heard.lost, 12);
        insta::assert_snapshot!(told(heard), @r"
        0 kswapd0 2 congestion_wait, timed out true, futile Some(true): 204 of 200 ms, longest 104 ms, {17: 2}
        0 kswapd0 1 congestion_wait, timed out true, futile None: 100 of 100 ms, longest 100 ms, {17: 1}
        0 kswapd0 1 congestion_wait, timed out true, futile Some(false): 100 of 100 ms, longest 100 ms, {17: 1}
        0 kswapd0 1 congestion_wait, timed out false, futile Some(false): 16 of 100 ms, longest 16 ms, {14: 1}
        0 reader-1 1 reclaim_throttle: no progress, timed out true, futile Some(true): 4 of 4 ms, longest 4 ms, {12: 1}
        ");
    }

    #[test]
    fn a_wait_belongs_to_the_phase_in_which_it_was_heard() {
        let line =
            "t-1 [000] d..1 0.200000: writeback_wait_iff_congested: usec_timeout=100000 usec_delayed=0";
        let mut heard = heard(&[line, line], 500_000);
        heard.phase += 1;
        heard.hear(line);
        insta::assert_snapshot!(told(heard), @r"
        0 t 2 wait_iff_congested, timed out false, futile Some(false): 0 of 200 ms, longest 0 ms, {0: 2}
        1 t 1 wait_iff_congested, timed out false, futile Some(false): 0 of 100 ms, longest 0 ms, {0: 1}
        ");
    }

    #[test]
    fn lines_that_come_in_pieces_are_heard_once() {
        let instance = tempfile::tempdir().unwrap();
        let line = "t-1 [000] d..1 0.200000: writeback_congestion_wait: usec_timeout=1000 usec_delayed=0\n";
        std::fs::write(instance.path().join("trace_pipe"), line.repeat(2000)).unwrap();
        let mut log = WaitLog::open(instance.path()).unwrap();
        log.look(10_000);
        assert_eq!(log.heard.phase, 0);
        log.look(60_000);
        log.end_phase(61_000);
        let (waits, lost) = log.finish(70_000);
        assert_eq!((waits.len(), waits[0].count, lost), (1, 2000, 0));
    }
}
