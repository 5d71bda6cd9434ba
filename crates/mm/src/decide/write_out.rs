//! A writer that writes back itself while too much is dirty (`balance_dirty_pages` up to 3.1; MECHANISMS
//! 10.3).
//!
//! ```text
//!   pages dirtied --a 32nd of memory per CPU--> look --> too much is dirty: write a chunk
//!                                                ^           |                   | written, or little is dirty
//!                                                +-- sleep <-+ part of it        +--> go on
//! ```
//! A sleep is of 1 tick, then 2, 4, up to 100 ms. Left out: shares of several devices (one threshold for all
//! of them), that all writers on a CPU share one count of pages, and look every 8 pages once they were found
//! above the threshold. Neighbours: [`super::pause`] for what came after it, and for [`WriterPace`].

use units::{Nanos, PAGE_SIZE, Pages};

use crate::base::event::Trace;
use crate::decide::pause::WriterPace;
use crate::memory::Memory;

/// What a writer does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Next {
    /// Write back so many pages, of any file.
    Write(u64),
    /// Sleep so many ticks.
    Sleep(u64),
    /// Tell the flusher to write: more is dirty than the background threshold.
    StartFlusher,
    /// Go on writing.
    Go,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Look,
    Write,
    Slept,
    End,
}

/// One look of a writer, with what it writes back then.
#[derive(Debug, Clone, Copy)]
pub struct WriteOut {
    /// Pages to write before it may go on, however much is dirty.
    chunk: u64,
    written: u64,
    /// Ticks of the next sleep, and of the longest.
    ticks: u64,
    longest: u64,
    at: At,
}

/// The longest sleep.
const LONGEST: Nanos = Nanos::from_millis(100);
/// Pages between two looks, at least and at most.
const LEAST_POLL: u64 = 16;
const MOST_POLL: u64 = (4 << 20) / PAGE_SIZE;

/// Pages that a task makes dirty before it looks (`ratelimit_pages`): a 32nd of memory, shared out to the
/// CPUs.
pub fn poll(memory: Pages, cpus: u16) -> u32 {
    let share = memory.0 / (u64::from(cpus.max(1)) * 32);
    u32::try_from(share.clamp(LEAST_POLL, MOST_POLL)).expect("at most 1024")
}

impl WriteOut {
    /// A writer is about to look that does so every `poll` pages, where a tick is so long.
    pub fn new(poll: u32, tick: Nanos) -> Self {
        let chunk = u64::from(poll) + u64::from(poll / 2);
        Self { chunk, written: 0, ticks: 1, longest: (LONGEST.0 / tick.0).max(1), at: At::Look }
    }

    /// The next step of a writer that wrote back so many pages in the last one; `dying`: it was killed, and
    /// goes on at once.
    pub fn step<T: Trace>(&mut self, mem: &Memory<T>, written: u64, dying: bool) -> Next {
        self.written += written;
        let limits = mem.dirty_limits();
        let has_room = limits.pending() <= limits.threshold;
        match self.at {
            At::End => Next::Go,
            At::Look | At::Slept if !has_room && !dying => {
                self.at = At::Write;
                Next::Write(self.chunk)
            }
            At::Write if !has_room && !dying && self.written < self.chunk => {
                let ticks = self.ticks;
                self.ticks = (2 * ticks).min(self.longest);
                self.at = At::Slept;
                Next::Sleep(ticks)
            }
            At::Look | At::Slept | At::Write => {
                self.at = At::End;
                if limits.dirty > limits.background { Next::StartFlusher } else { Next::Go }
            }
        }
    }

    /// The look is over: the writer looks again after `poll` pages more.
    pub fn done(&self, pace: &mut WriterPace, poll: u32) {
        pace.look_after(poll);
    }
}

#[cfg(test)]
mod tests {
    use std_alloc::vec::Vec;

    use super::*;
    use crate::decide::scene::{add_dirty_page, machine};
    use Next::{Go, Sleep, StartFlusher, Write};

    const TICK: Nanos = Nanos::from_millis(10);

    /// Steps of a writer that looks every 32 pages, with as many dirty pages as are said for each step, and
    /// as many written in the step before.
    fn walk(script: &[(u64, u64)]) -> Vec<Next> {
        let mut out = WriteOut::new(32, TICK);
        script.iter().map(|&(dirty, written)| out.step(&with_dirty(dirty), written, false)).collect()
    }

    /// A machine with so many hundredths of the threshold dirty.
    fn with_dirty(percent: u64) -> Memory<crate::base::event::NoTrace> {
        let mut mem = machine("linux-2.6.32");
        while mem.dirty_limits().dirty * 100 < mem.dirty_limits().threshold * percent {
            add_dirty_page(&mut mem);
        }
        mem
    }

    #[test]
    fn a_writer_writes_a_chunk_and_goes_on_however_much_is_dirty() {
        assert_eq!(walk(&[(120, 0), (120, 48), (120, 0)]), [Write(48), StartFlusher, Go]);
    }

    #[test]
    fn one_that_gets_rid_of_too_little_sleeps_longer_each_time() {
        let stuck = walk(&[(120, 0); 11]);
        let sleeps: Vec<Next> = stuck.iter().copied().filter(|next| matches!(next, Sleep(_))).collect();
        assert_eq!(sleeps, [Sleep(1), Sleep(2), Sleep(4), Sleep(8), Sleep(10)], "100 ms are 10 ticks");
        // What it wrote before counts.
        let parts = walk(&[(120, 0), (120, 40), (120, 0), (120, 8)]);
        assert_eq!(parts, [Write(48), Sleep(1), Write(48), StartFlusher]);
        assert_eq!(walk(&[(120, 0), (90, 1), (90, 0)]), [Write(48), StartFlusher, Go], "others wrote");
    }

    #[test]
    fn below_the_threshold_nobody_writes_and_below_the_background_one_nobody_is_woken() {
        assert_eq!(walk(&[(98, 0), (98, 0)]), [StartFlusher, Go]);
        assert_eq!(walk(&[(40, 0)]), [Go]);
    }

    #[test]
    fn a_killed_writer_writes_nothing_back() {
        assert_eq!(WriteOut::new(32, TICK).step(&with_dirty(120), 0, true), StartFlusher);
    }

    #[test]
    fn writers_look_more_seldom_in_large_memory_and_more_often_beside_many_cpus() {
        let mib = |mib: u64| Pages(mib << 8);
        assert_eq!([poll(mib(256), 1), poll(mib(256), 16), poll(mib(8), 8)], [1024, 128, 16]);
    }
}
