//! When a writer looks whether it goes too fast, and how long it pauses (`balance_dirty_pages`;
//! MECHANISMS 10.3).
//!
//! ```text
//!   pages dirtied --as many as the last look said--> look --> go on, or pause once,
//!                                                      ^      or wait until there is room
//!                                                      +------------------+
//! ```
//! Neighbour: [`crate::pages::dirty`] for thresholds and the pace of all.

use units::Nanos;

use crate::base::event::Trace;
use crate::base::ids::MemcgId;
use crate::memory::Memory;
use crate::pages::pace::Balance;
use crate::pages::pace::FIRST_POLL;

/// How a process goes on making pages dirty (`nr_dirtied`, `nr_dirtied_pause`,
/// `dirty_paused_when`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterPace {
    /// Pages since the last look.
    dirtied: u32,
    /// Pages until the next look.
    poll: u32,
    /// When the last pause ended.
    paused_at: Nanos,
}

impl WriterPace {
    /// Of a process that has written nothing yet.
    pub const fn new() -> Self {
        Self { dirtied: 0, poll: FIRST_POLL, paused_at: Nanos::ZERO }
    }

    /// A page was made dirty: whether the writer has to look.
    pub fn dirty_page(&mut self) -> bool {
        self.dirtied += 1;
        self.dirtied >= self.poll
    }

    /// The same beside others on its CPU: it looks in their place, too, and for those that ended before they did.
    pub fn dirty_page_on(&mut self, cpu: &mut CpuPace) -> bool {
        self.dirtied += 1;
        cpu.dirtied += 1;
        let looks_for_all = self.dirtied < self.poll && cpu.dirtied >= cpu.poll;
        if looks_for_all || self.dirtied >= self.poll {
            cpu.dirtied = 0;
        }
        let left = cpu.left.min(self.poll.saturating_sub(self.dirtied));
        cpu.left -= left;
        self.dirtied += left;
        looks_for_all || self.dirtied >= self.poll
    }

    /// The look is over; the next one comes after `poll` pages.
    pub(super) fn look_after(&mut self, poll: u32, now: Nanos) {
        self.poll = poll;
        self.go_on(now);
    }

    /// The look is over. What was not slept for is not forgotten, but for a writer below freerun.
    fn go_on(&mut self, now: Nanos) {
        self.dirtied = 0;
        self.paused_at = now;
    }
}

/// How all writers of a CPU go on (`bdp_ratelimits`, `dirty_throttle_leaks`).
///
/// A guest of 6.12 in which each process made 20 pages dirty began to write them 90 to 980 pages above the background
/// threshold, and earlier with a lower one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuPace {
    /// Pages since anybody looked.
    dirtied: u32,
    /// Pages after which the next writer looks.
    poll: u32,
    /// Pages of processes that ended without a look.
    left: u32,
}

impl CpuPace {
    /// On a machine of so many CPUs whose pages may be dirty up to `threshold` (`writeback_set_ratelimit`).
    pub fn new(threshold: u64, cpus: u32) -> Self {
        let poll = threshold / (u64::from(cpus) * 32);
        Self { dirtied: 0, poll: u32::try_from(poll).unwrap_or(u32::MAX).max(16), left: 0 }
    }

    /// The threshold changed.
    pub fn set_threshold(&mut self, threshold: u64, cpus: u32) {
        self.poll = Self::new(threshold, cpus).poll;
    }

    /// A writer ended.
    pub fn leave(&mut self, pace: WriterPace) {
        self.left = self.left.saturating_add(pace.dirtied);
    }
}

impl Default for WriterPace {
    fn default() -> Self {
        Self::new()
    }
}

/// What a writer does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Next {
    /// Tell the flusher to write: more is dirty than the background threshold.
    StartFlusher,
    /// Sleep for so long.
    Sleep(Nanos),
    /// Go on writing.
    Go,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Look,
    Act(Balance),
    Slept { again: bool },
}

/// One look of a writer, with the pauses that follow.
#[derive(Debug, Clone, Copy)]
pub struct Pause(At);

impl Pause {
    /// A writer is about to look.
    pub const fn new() -> Self {
        Self(At::Look)
    }

    /// The next step of a writer with this `pace`, for a cgroup, at `now`; `dying`: it was killed, and no pause is
    /// repeated.
    pub fn step<T: Trace>(
        &mut self,
        mem: &mut Memory<T>,
        pace: &mut WriterPace,
        memcg: MemcgId,
        now: Nanos,
        dying: bool,
    ) -> Next {
        if let At::Slept { again } = self.0 {
            pace.paused_at = now;
            if !again || dying {
                pace.go_on(now);
                return Next::Go;
            }
            self.0 = At::Look;
        }
        let balance = match self.0 {
            At::Act(balance) => balance,
            _ => {
                let since = now.saturating_sub(pace.paused_at);
                let domains = mem.dirty_domains(memcg);
                let balance = mem.balance_dirty_pages(&domains, now, pace.dirtied, since);
                if domains.starts_flusher() {
                    self.0 = At::Act(balance);
                    return Next::StartFlusher;
                }
                balance
            }
        };
        self.act(balance, pace, now)
    }

    fn act(&mut self, balance: Balance, pace: &mut WriterPace, now: Nanos) -> Next {
        let (length, again) = match balance {
            Balance::Go { poll } => {
                pace.poll = poll;
                pace.go_on(now);
                return Next::Go;
            }
            Balance::Pause { length, poll } => {
                pace.poll = poll;
                (length, false)
            }
            Balance::Wait { length } => (length, true),
        };
        self.0 = At::Slept { again };
        Next::Sleep(length)
    }
}

impl Default for Pause {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std_alloc::vec::Vec;

    use super::*;
    use crate::decide::scene::machine;

    const START: Nanos = Nanos::from_secs(1);

    /// Five processes that write 20 pages each never come to their own 32; with 3,200 pages allowed, one CPU's look
    /// every 100.
    #[test]
    fn writers_of_a_cpu_look_for_each_other_and_for_those_that_ended() {
        let mut cpu = CpuPace::new(3_200, 1);
        let looks = |pace: &mut WriterPace, cpu: &mut CpuPace, pages: u32| {
            (0..pages).filter(|_| pace.dirty_page_on(cpu)).count()
        };
        let mut writers = [WriterPace::new(); 5];
        let told: Vec<usize> = writers.iter_mut().map(|pace| looks(pace, &mut cpu, 20)).collect();
        assert_eq!(told, [0, 0, 0, 0, 1]);
        cpu.leave(writers[0]);
        let mut next = WriterPace::new();
        assert_eq!(looks(&mut next, &mut cpu, 11), 0, "11 of its own and 20 that were left");
        assert_eq!(looks(&mut next, &mut cpu, 1), 1);
        assert_eq!(CpuPace::new(100, 8).poll, 16, "no more often than every 16 pages");
    }

    /// Walks looks that come to these balances, one after the other, with sleeps as long as asked for;
    /// returns the steps and the pace behind them.
    fn walk(balances: &[Balance], dying: bool) -> (Vec<Next>, WriterPace) {
        let mut pace = WriterPace { dirtied: 40, poll: 32, paused_at: Nanos::ZERO };
        let (mut pause, mut now, mut steps) = (Pause::new(), START, Vec::new());
        for &balance in balances {
            // The look itself needs dirty pages; what follows from it does not.
            let next = pause.act(balance, &mut pace, now);
            steps.push(next);
            let Next::Sleep(length) = next else { break };
            now = Nanos(now.0 + length.0);
            let mut mem = machine("linux-6.1");
            let again = pause.0 == At::Slept { again: true };
            if !again || dying {
                steps.push(pause.step(&mut mem, &mut pace, MemcgId::ROOT, now, dying));
                break;
            }
        }
        (steps, pace)
    }

    fn pause(millis: u64) -> Balance {
        Balance::Pause { length: Nanos::from_millis(millis), poll: 7 }
    }

    fn wait(millis: u64) -> Balance {
        Balance::Wait { length: Nanos::from_millis(millis) }
    }

    #[test]
    fn a_writer_looks_after_as_many_pages_as_its_last_look_said() {
        let mut pace = WriterPace::new();
        let looks = |pace: &mut WriterPace| (1..100).find(|_| pace.dirty_page());
        assert_eq!(looks(&mut pace), Some(32));
        pace.poll = 5;
        pace.go_on(START);
        assert_eq!(looks(&mut pace), Some(5));
    }

    #[test]
    fn with_nothing_dirty_a_writer_goes_on_and_looks_seldom() {
        let (mut mem, mut pace) =
            (machine("linux-6.1"), WriterPace { dirtied: 1, poll: 1, ..WriterPace::new() });
        assert_eq!(Pause::new().step(&mut mem, &mut pace, MemcgId::ROOT, START, false), Next::Go);
        assert_eq!(pace, WriterPace { dirtied: 0, poll: 32, paused_at: START });
    }

    #[test]
    fn a_pause_is_slept_once_and_a_wait_until_there_is_room() {
        let sleep = |millis| Next::Sleep(Nanos::from_millis(millis));
        let after = |millis: u64| Nanos::from_millis(1000 + millis);
        let (steps, pace) = walk(&[pause(30)], false);
        assert_eq!(steps, [sleep(30), Next::Go]);
        assert_eq!(pace, WriterPace { dirtied: 0, poll: 7, paused_at: after(30) });

        let (steps, pace) = walk(&[wait(200), wait(200), pause(10)], false);
        assert_eq!(steps, [sleep(200), sleep(200), sleep(10), Next::Go]);
        assert_eq!(pace, WriterPace { dirtied: 0, poll: 7, paused_at: after(410) });

        let (steps, pace) = walk(&[wait(200), wait(200)], true);
        assert_eq!(steps, [sleep(200), Next::Go], "a killed writer waits for nothing");
        assert_eq!(pace, WriterPace { dirtied: 0, poll: 32, paused_at: after(200) });
    }
}
