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
use crate::pages::pace::{Balance, FIRST_POLL, Looking};

/// How a process goes on making pages dirty (`nr_dirtied`, `nr_dirtied_pause`,
/// `dirty_paused_when`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterPace {
    /// Pages since the last look.
    dirtied: u32,
    /// Pages until the next look; 0: the next page.
    poll: u32,
    /// The tick at which its last pause was to end, and later by what it owes; or when it was last left alone.
    paused_at: Option<i64>,
}

impl WriterPace {
    /// Of a process that has written nothing yet.
    pub const fn new() -> Self {
        Self { dirtied: 0, poll: FIRST_POLL, paused_at: None }
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

    fn looking(&self, dirtied: u32, tick: i64, hz: u64) -> Looking {
        Looking { hz, pages: dirtied, thinks: self.paused_at.map(|paused| tick - paused) }
    }

    /// The look is over; the next one comes after `poll` pages.
    pub(super) fn look_after(&mut self, poll: u32) {
        self.poll = poll;
        self.dirtied = 0;
    }

    /// It starts anew at this tick.
    fn go_on(&mut self, tick: i64) {
        self.dirtied = 0;
        self.paused_at = Some(tick);
    }

    /// It does not sleep, and owes the `period` ticks of the pages that it had made dirty.
    fn owe(&mut self, period: u64, dirtied: u32) {
        if period > 0 {
            let period = i64::try_from(period).expect("ticks of a run");
            self.paused_at = self.paused_at.map(|tick| tick + period);
            self.dirtied = 0;
        } else if self.poll <= dirtied {
            self.poll += dirtied;
        }
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
    /// Sleep for so many ticks.
    Sleep(u64),
    /// Go on writing.
    Go,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Look,
    Act(Balance),
    Slept { again: bool, until: i64 },
}

/// One look of a writer, with the pauses that follow.
#[derive(Debug, Clone, Copy)]
pub struct Pause {
    at: At,
    /// Pages that the writer had made dirty when it came (`pages_dirtied`): what every look of this pause goes by.
    dirtied: u32,
}

impl Pause {
    /// A writer is about to look.
    pub const fn new(pace: &WriterPace) -> Self {
        Self { at: At::Look, dirtied: pace.dirtied }
    }

    /// The next step of a writer with this `pace`, for a cgroup, at `now` of a kernel with `hz` ticks in a second;
    /// `dying`: it was killed, and no pause is repeated.
    pub fn step<T: Trace>(
        &mut self,
        mem: &mut Memory<T>,
        pace: &mut WriterPace,
        memcg: MemcgId,
        now: Nanos,
        hz: u64,
        dying: bool,
    ) -> Next {
        let tick = i64::try_from(now.0 / (1_000_000_000 / hz)).expect("ticks of a run");
        if let At::Slept { again, until } = self.at {
            pace.go_on(until);
            if !again || dying {
                return Next::Go;
            }
            self.at = At::Look;
        }
        let balance = match self.at {
            At::Act(balance) => balance,
            _ => {
                let domains = mem.dirty_domains(memcg);
                let balance = mem.balance_dirty_pages(&domains, now, pace.looking(self.dirtied, tick, hz));
                if domains.starts_flusher() {
                    self.at = At::Act(balance);
                    return Next::StartFlusher;
                }
                balance
            }
        };
        self.act(balance, pace, tick)
    }

    fn act(&mut self, balance: Balance, pace: &mut WriterPace, tick: i64) -> Next {
        let (ticks, waived, again) = match balance {
            Balance::Free { poll } => {
                pace.poll = poll;
                pace.go_on(tick);
                return Next::Go;
            }
            Balance::Forgiven => {
                pace.go_on(tick);
                return Next::Go;
            }
            Balance::Owes { period } => {
                pace.owe(period, self.dirtied);
                return Next::Go;
            }
            Balance::Pause { ticks, waived, poll } => {
                pace.poll = poll;
                (ticks, waived, false)
            }
            Balance::Wait { ticks } => {
                pace.poll = 0;
                (ticks, 0, true)
            }
        };
        // What it sleeps longer, as timers are coarse, counts as thinking.
        let until = tick.saturating_add_unsigned(ticks + waived);
        self.at = At::Slept { again, until };
        Next::Sleep(ticks)
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

    /// A second of 100 ticks.
    const HZ: u64 = 100;

    /// Walks looks that come to these balances, one after the other, with sleeps a tick longer than asked for, as
    /// timers are; returns the steps and the pace behind them.
    fn walk(balances: &[Balance], dying: bool) -> (Vec<Next>, WriterPace) {
        let mut pace = WriterPace { dirtied: 40, poll: 32, paused_at: None };
        let (mut pause, mut tick, mut steps) = (Pause::new(&pace), 100, Vec::new());
        for &balance in balances {
            // The look itself needs dirty pages; what follows from it does not.
            let next = pause.act(balance, &mut pace, tick);
            steps.push(next);
            let Next::Sleep(ticks) = next else { break };
            tick += i64::try_from(ticks).unwrap() + 1;
            let (mut mem, now) = (machine("linux-6.1"), Nanos(u64::try_from(tick).unwrap() * 10_000_000));
            match pause.at {
                At::Slept { again: true, until } if !dying => pace.go_on(until),
                _ => {
                    steps.push(pause.step(&mut mem, &mut pace, MemcgId::ROOT, now, HZ, dying));
                    break;
                }
            }
        }
        (steps, pace)
    }

    fn pause(ticks: u64) -> Balance {
        Balance::Pause { ticks, waived: 0, poll: 7 }
    }

    fn wait(ticks: u64) -> Balance {
        Balance::Wait { ticks }
    }

    #[test]
    fn a_writer_looks_after_as_many_pages_as_its_last_look_said() {
        let mut pace = WriterPace::new();
        let looks = |pace: &mut WriterPace| (1..100).find(|_| pace.dirty_page());
        assert_eq!(looks(&mut pace), Some(32));
        pace.poll = 5;
        pace.go_on(100);
        assert_eq!(looks(&mut pace), Some(5));
    }

    #[test]
    fn with_nothing_dirty_a_writer_goes_on_and_looks_seldom() {
        let (mut mem, mut pace) =
            (machine("linux-6.1"), WriterPace { dirtied: 1, poll: 1, ..WriterPace::new() });
        let next = Pause::new(&pace).step(&mut mem, &mut pace, MemcgId::ROOT, START, HZ, false);
        assert_eq!((next, pace), (Next::Go, WriterPace { dirtied: 0, poll: 32, paused_at: Some(100) }));
    }

    #[test]
    fn a_pause_is_slept_once_and_a_wait_until_there_is_room() {
        let sleep = Next::Sleep;
        let (steps, pace) = walk(&[pause(3)], false);
        assert_eq!(steps, [sleep(3), Next::Go]);
        let after = |tick| WriterPace { dirtied: 0, poll: 7, paused_at: Some(tick) };
        assert_eq!(pace, after(103), "the tick that it slept longer counts as thinking");

        let (steps, pace) = walk(&[wait(20), wait(20), pause(1)], false);
        assert_eq!((&steps[..], pace), (&[sleep(20), sleep(20), sleep(1), Next::Go][..], after(143)));

        let (steps, pace) = walk(&[wait(20), Balance::Owes { period: 0 }], false);
        assert_eq!(steps, [sleep(20), Next::Go]);
        assert_eq!(
            pace,
            WriterPace { dirtied: 0, poll: 40, paused_at: Some(120) },
            "the 40 pages it came with"
        );

        let (steps, pace) = walk(&[wait(20), wait(20)], true);
        assert_eq!(steps, [sleep(20), Next::Go], "a killed writer waits for nothing");
        assert_eq!(pace, WriterPace { poll: 0, ..after(120) }, "who waited looks again with the next page");
    }

    #[test]
    fn what_is_too_short_to_sleep_is_owed_and_less_than_a_tick_makes_looks_rarer() {
        let owes = |period| {
            let mut pace = WriterPace { dirtied: 32, poll: 32, paused_at: Some(90) };
            assert_eq!(Pause::new(&pace).act(Balance::Owes { period }, &mut pace, 100), Next::Go);
            pace
        };
        assert_eq!(owes(2), WriterPace { dirtied: 0, poll: 32, paused_at: Some(92) });
        assert_eq!(owes(0), WriterPace { dirtied: 32, poll: 64, paused_at: Some(90) });
    }
}
