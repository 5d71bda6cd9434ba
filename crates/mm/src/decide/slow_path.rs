//! A request in the slow path of its era (`__alloc_pages_slowpath`), and what is counted of it.
//!
//! ```text
//!   up to 4.6   rounds with a pause after each      super::retry_paused
//!   4.7         rounds as long as they can help     super::retry
//! ```
//! Which one is decided when a request enters. Both say what to do next in the same words.

use units::{CpuId, Order};

use crate::alloc::flags::AllocFlags;
use crate::base::event::Trace;
use crate::base::gfp::Gfp;
use crate::base::vmstat::VmEvent;
use crate::decide::effort::{Effort, Passes};
use crate::decide::retry::{Next, Outcome, Retry};
use crate::decide::retry_paused::PausedRetry;
use crate::memory::Memory;
use crate::version::rules::{Rules, SlowPath};

#[derive(Debug, Clone, Copy)]
enum Era {
    Paused(PausedRetry),
    WhileItHelps(Retry),
}

/// A request in the slow path.
#[derive(Debug, Clone, Copy)]
pub struct SlowRequest {
    era: Era,
    gfp: Gfp,
    order: Order,
    effort: Effort,
    /// Pages that its reclaim freed, until it is known whether it got one of them.
    freed: Option<u64>,
}

impl SlowRequest {
    /// A request that found no page at the low mark.
    pub fn new(rules: &Rules, gfp: Gfp, order: Order) -> Self {
        let era = match rules.slow_path {
            SlowPath::Paused => Era::Paused(PausedRetry::new(gfp, order)),
            SlowPath::WhileItHelps => Era::WhileItHelps(Retry::new(gfp, order)),
        };
        Self { era, gfp, order, effort: Effort::default(), freed: None }
    }

    /// Flags of the first try of a request for a single page, if that comes right after kswapd was woken.
    pub fn first_try<T: Trace>(mem: &mut Memory<T>, cpu: CpuId, gfp: Gfp) -> Option<AllocFlags> {
        let mut request = Self::new(mem.core.rules(), gfp, Order(0));
        let [wakes, tries] = [(); 2].map(|()| request.step(mem, cpu, false, Outcome::NoPage));
        match (wakes, tries) {
            (Next::WakeKswapds, Next::Try(flags) | Next::TryOrStall(flags)) => Some(flags),
            _ => None,
        }
    }

    /// What is asked for.
    pub const fn wanted(&self) -> (Gfp, Order) {
        (self.gfp, self.order)
    }

    /// What reclaim did for it since it began, or since somebody was killed for it.
    pub const fn effort(&self) -> &Effort {
        &self.effort
    }

    /// A run of reclaim for it has ended: what was done at each priority.
    pub fn note_run(&mut self, freed: u64, passes: Passes) {
        self.effort.note_run(freed, passes);
    }

    /// Whether it went round as often as a request may without progress; else no round could have helped.
    pub const fn is_out_of_rounds(&self) -> bool {
        match &self.era {
            Era::Paused(_) => false,
            Era::WhileItHelps(retry) => retry.is_out_of_rounds(),
        }
    }

    /// The next step, for a task on `cpu`. `victim`: the OOM killer took the task by now; from its
    /// next round on it may use reserves (MECHANISMS 1.8).
    pub fn step<T: Trace>(
        &mut self,
        mem: &mut Memory<T>,
        cpu: CpuId,
        victim: bool,
        outcome: Outcome,
    ) -> Next {
        let next = match &mut self.era {
            Era::Paused(retry) => retry.step(mem, cpu, victim, outcome),
            Era::WhileItHelps(retry) => retry.step(mem, cpu, victim, outcome),
        };
        self.count(mem, outcome, next);
        next
    }

    /// Direct reclaim is in vain when no try gave a page that belongs to it: whatever else comes next, there
    /// is none.
    fn count<T: Trace>(&mut self, mem: &mut Memory<T>, outcome: Outcome, next: Next) {
        if outcome == Outcome::Killed {
            self.effort = Effort::default();
        }
        let events = &mut mem.core.alloc.events;
        if let Outcome::Freed(pages) = outcome {
            self.freed = Some(pages);
        }
        match next {
            Next::Reclaim => events.add(VmEvent::PerfDirectReclaim, 1),
            Next::Try(_) | Next::Drain => {}
            _ => {
                if let Some(pages) = self.freed.take() {
                    events.add(VmEvent::PerfFailedDirectReclaim, 1);
                    events.add(VmEvent::PerfFailedButProgress, u64::from(pages > 0));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::scene::machine;

    const CPU: CpuId = CpuId(0);

    /// Two rounds of a request whose reclaim frees so many pages each time, and which finds a page at the
    /// try with this number after it, or none; returns entries, failures, and failures in spite of progress.
    fn counted(kernel: &str, freed: u64, finds: Option<usize>) -> [u64; 3] {
        let mut mem = machine(kernel);
        while mem.core.alloc.alloc(CPU, Gfp::KERNEL, Order(0), AllocFlags::NO_WATERMARKS).page.is_some() {}
        let mut request = SlowRequest::new(&mem.core.rules().clone(), Gfp::NOFS, Order(0));
        let (mut outcome, mut entries, mut tries) = (Outcome::NoPage, 0, 0);
        loop {
            let next = request.step(&mut mem, CPU, false, outcome);
            outcome = Outcome::NoPage;
            match next {
                Next::Reclaim if entries == 2 => break,
                Next::Reclaim => {
                    (entries, tries) = (entries + 1, 0);
                    outcome = Outcome::Freed(freed);
                }
                Next::Try(_) if entries > 0 => {
                    tries += 1;
                    if finds == Some(tries) {
                        break;
                    }
                }
                _ => {}
            }
        }
        let count = |event| mem.core.alloc.events.get(event);
        [VmEvent::PerfDirectReclaim, VmEvent::PerfFailedDirectReclaim, VmEvent::PerfFailedButProgress]
            .map(count)
    }

    #[test]
    fn a_page_is_tried_for_right_after_kswapd_was_woken_in_both_eras() {
        for kernel in ["linux-2.6.32", "linux-6.1"] {
            let first = SlowRequest::first_try(&mut machine(kernel), CPU, Gfp::HIGHUSER_MOVABLE);
            assert_eq!(first, Some(AllocFlags::WMARK_MIN | AllocFlags::KSWAPD), "{kernel}");
        }
    }

    #[test]
    fn reclaim_that_gave_no_page_is_counted_in_both_eras_apart_from_the_one_that_freed_none() {
        for (kernel, rule) in [
            ("linux-2.6.32", SlowPath::Paused),
            ("linux-2.6.32+drain-after-failed-reclaim", SlowPath::Paused),
            ("linux-2.6.32+reclaim-retry", SlowPath::WhileItHelps),
            ("linux-6.1", SlowPath::WhileItHelps),
        ] {
            assert_eq!(machine(kernel).core.rules().slow_path, rule);
            assert_eq!(counted(kernel, 32, Some(1)), [1, 0, 0], "{kernel}");
            assert_eq!(counted(kernel, 0, None), [3, 2, 0], "{kernel}");
            // The third entry is where the script ends.
            assert_eq!(counted(kernel, 32, None), [3, 2, 2], "{kernel}");
        }
        let drained = "linux-2.6.32+drain-after-failed-reclaim";
        assert_eq!(counted(drained, 32, Some(2)), [1, 0, 0], "after the drain");
    }
}
