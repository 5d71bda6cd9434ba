//! Who has a turn on a CPU: each task's share of it, under CFS and under EEVDF.
//!
//! # Theory of operation
//! A task that runs uses up virtual time. Tasks of one CPU are compared by it, as all weigh the same:
//!
//! ```text
//!   CFS          runs the task with the least. At a tick another one has its turn once this one ran for its
//!                part of the latency. A task that slept comes back at most half a latency behind the others,
//!                and preempts when it is more than the granularity of wake-ups behind the running one.
//!   EEVDF (6.6)  knows what each task is owed, its lag: the average of virtual times less its own. Of those
//!                that are owed something the one with the earliest deadline runs, and then for a whole request,
//!                unless it has had its share before and another one is owed. Who sleeps keeps what it is owed;
//!                what it owes passes with time (6.12).
//! ```
//! So under CFS a task that sleeps much, as kswapd does, runs as soon as it is woken; under EEVDF it often waits
//! for the end of a request. Figures are the kernel's defaults, scaled by 1 + log2 of up to 8 CPUs.
//!
//! Sources: the kernel's `Documentation/scheduler/sched-design-CFS.rst` and `sched-eevdf.rst`; its sysctls
//! `sched_latency_ns`, `sched_min_granularity_ns`, `sched_wakeup_granularity_ns`, `base_slice_ns`. Left out:
//! weights and groups, buddies, requests of other lengths, periodic balancing. Neighbours: `schedule.rs` asks.

use mm::version::rules::Scheduler;

const MICROSECOND: i64 = 1_000;

/// A task's account with its CPU, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// Virtual time that it has used.
    vruntime: i64,
    /// When its request is to be done, in virtual time.
    deadline: i64,
    /// What it was owed when it went to sleep.
    lag: i64,
    /// CPU time since it was picked.
    ran: i64,
    /// Its request is the one that it was picked with.
    first_request: bool,
}

impl Share {
    /// It ran.
    pub(crate) fn run(&mut self, nanos: u64) {
        let nanos = nanos.cast_signed();
        self.vruntime += nanos;
        self.ran += nanos;
    }

    /// It did not run, after all.
    pub(crate) fn take_back(&mut self, nanos: u64) {
        let nanos = nanos.cast_signed();
        self.vruntime -= nanos;
        self.ran -= nanos;
    }

    /// It has the CPU now.
    pub(crate) fn pick(&mut self) {
        (self.ran, self.first_request) = (0, true);
    }

    /// It goes from a CPU to another one.
    pub(crate) fn move_between(&mut self, from: i64, to: i64) {
        self.vruntime += to - from;
        self.deadline += to - from;
    }

    /// The least virtual time there, if it is more than before.
    pub(crate) fn least(before: i64, there: impl Iterator<Item = Self>) -> i64 {
        there.map(|share| share.vruntime).min().map_or(before, |least| least.max(before))
    }
}

/// The rules by which CPUs are shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sharing {
    /// None: tasks take turns.
    scheduler: Option<Scheduler>,
    latency: i64,
    least_turn: i64,
    wakeup_granularity: i64,
    request: i64,
    tick: i64,
    /// The scheduler's clock goes on at ticks alone: who is on the CPU then has used the whole one.
    by_ticks: bool,
}

impl Sharing {
    /// On a machine with so many CPUs and nanoseconds between two ticks.
    pub(crate) fn new(scheduler: Option<Scheduler>, cpus: u16, tick: u64, by_ticks: bool) -> Self {
        let scale = i64::from(cpus.clamp(1, 8).ilog2()) + 1;
        Self {
            scheduler,
            latency: 6_000 * MICROSECOND * scale,
            least_turn: 750 * MICROSECOND * scale,
            wakeup_granularity: 1_000 * MICROSECOND * scale,
            request: 750 * MICROSECOND * scale,
            tick: tick.cast_signed(),
            by_ticks,
        }
    }

    /// What the scheduler's clock says of so many nanoseconds up to `now`.
    #[inline]
    pub(crate) fn counted(&self, now: u64, nanos: u64) -> u64 {
        if !self.by_ticks {
            return nanos;
        }
        let tick = self.tick.cast_unsigned();
        (now / tick - (now - nanos) / tick) * tick
    }

    /// Tasks have turns of equal length and nobody preempts.
    pub(crate) fn takes_turns(&self) -> bool {
        self.scheduler.is_none()
    }

    /// A new task joins the tasks that are `there`, the least virtual time being `base`.
    pub(crate) fn start(&self, share: &mut Share, base: i64, there: &[Share]) {
        match self.scheduler {
            None => {}
            Some(Scheduler::Cfs) => share.vruntime = base + self.turn(there.len() + 1),
            Some(Scheduler::Eevdf) => {
                share.vruntime = average(there).unwrap_or(base);
                share.deadline = share.vruntime + (self.request / 2);
            }
        }
    }

    /// A task goes to sleep and leaves those that are `there`.
    pub(crate) fn sleep(&self, share: &mut Share, there: &[Share]) {
        let most = self.tick.max(2 * self.request);
        let average = average_with(there, *share);
        share.lag = (average - share.vruntime).clamp(-most, most);
    }

    /// A task wakes up beside those that are `there`.
    pub(crate) fn wake(&self, share: &mut Share, base: i64, there: &[Share]) {
        match self.scheduler {
            None => {}
            Some(Scheduler::Cfs) => share.vruntime = share.vruntime.max(base - (self.latency / 2)),
            Some(Scheduler::Eevdf) => {
                let average = average(there).unwrap_or(base);
                let others = there.len() as i64;
                let owed = match share.lag {
                    _ if others == 0 => 0,
                    // Who owes stays in the queue until the others have caught up. It moves the average itself.
                    lag @ ..0 => (average - share.vruntime).clamp(lag * (others + 1) / others, 0),
                    lag => lag * (others + 1) / others,
                };
                share.vruntime = average - owed;
                share.deadline = share.vruntime + self.request;
            }
        }
    }

    /// Whether a task that joined the waiting ones has the CPU before the running one.
    pub(crate) fn preempts(&self, joined: usize, waiting: &[Share], running: &mut Share) -> bool {
        match self.scheduler {
            None => false,
            Some(Scheduler::Cfs) => running.vruntime - waiting[joined].vruntime > self.wakeup_granularity,
            Some(Scheduler::Eevdf) => {
                let is_over = self.renew(running);
                let average = average_with(waiting, *running);
                if running.vruntime <= average && running.first_request {
                    return false;
                }
                is_over || self.earliest(waiting, average, Some(running)) == Some(joined)
            }
        }
    }

    /// Whether another task has its turn, at a tick.
    pub(crate) fn turn_is_over(&self, waiting: &[Share], running: &mut Share) -> bool {
        if waiting.is_empty() {
            return false;
        }
        match self.scheduler {
            None => true,
            Some(Scheduler::Cfs) => {
                let turn = self.turn(waiting.len() + 1);
                let least = waiting.iter().map(|share| share.vruntime).min().expect("somebody waits");
                running.ran > turn || (running.ran >= self.least_turn && running.vruntime - least > turn)
            }
            Some(Scheduler::Eevdf) => self.renew(running),
        }
    }

    /// Which of the waiting tasks is next.
    pub(crate) fn next(&self, waiting: &[Share]) -> Option<usize> {
        match self.scheduler {
            None => (!waiting.is_empty()).then_some(0),
            Some(Scheduler::Cfs) => (0..waiting.len()).min_by_key(|&position| waiting[position].vruntime),
            Some(Scheduler::Eevdf) => {
                let average = average(waiting)?;
                self.earliest(waiting, average, None)
            }
        }
    }

    /// The part of the latency that each of so many tasks has.
    fn turn(&self, tasks: usize) -> i64 {
        let tasks = i64::try_from(tasks).expect("few tasks");
        (self.latency / tasks).max(self.least_turn)
    }

    /// Begins another request where one is done; whether it was.
    fn renew(&self, running: &mut Share) -> bool {
        let is_done = running.vruntime >= running.deadline;
        if is_done {
            running.deadline = running.vruntime + self.request;
            running.first_request = false;
        }
        is_done
    }

    /// The first of those that are owed something with the earliest deadline; none when that is the running
    /// one.
    fn earliest(&self, waiting: &[Share], average: i64, running: Option<&Share>) -> Option<usize> {
        let owed = (0..waiting.len()).filter(|&position| waiting[position].vruntime <= average);
        let first = owed.min_by_key(|&position| waiting[position].deadline)?;
        let stays = running
            .is_some_and(|share| share.vruntime <= average && share.deadline <= waiting[first].deadline);
        (!stays).then_some(first)
    }
}

fn average(shares: &[Share]) -> Option<i64> {
    let count = i64::try_from(shares.len()).expect("few tasks");
    let first = shares.first()?.vruntime;
    let over: i64 = shares.iter().map(|share| share.vruntime - first).sum();
    Some(first + over.div_euclid(count))
}

fn average_with(shares: &[Share], other: Share) -> i64 {
    let count = i64::try_from(shares.len()).expect("few tasks") + 1;
    let over: i64 = shares.iter().map(|share| share.vruntime - other.vruntime).sum();
    other.vruntime + over.div_euclid(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: u64 = 4_000_000;
    const MS: i64 = 1_000_000;

    fn sharing(scheduler: Scheduler) -> Sharing {
        Sharing::new(Some(scheduler), 2, TICK, false)
    }

    fn used(vruntime: i64) -> Share {
        Share { vruntime, deadline: vruntime + (3 * MS / 2), first_request: true, ..Share::default() }
    }

    #[test]
    fn figures_are_those_of_a_kernel_with_two_cpus() {
        let sharing = sharing(Scheduler::Cfs);
        let parts = [1, 2, 3, 8, 20].map(|tasks| sharing.turn(tasks) / 1000);
        assert_eq!(parts, [12_000, 6_000, 4_000, 1_500, 1_500], "of a latency of 12 ms");
        assert_eq!((sharing.wakeup_granularity, sharing.request), (2 * MS, 3 * MS / 2));
        let large = Sharing::new(Some(Scheduler::Cfs), 48, TICK, false);
        assert_eq!(large.latency, 24 * MS, "more than 8 CPUs count as 8");
    }

    #[test]
    fn a_clock_of_ticks_counts_whole_ones_for_who_is_there_when_they_come() {
        let by_ticks = Sharing::new(Some(Scheduler::Cfs), 1, TICK, true);
        let counted = |from: u64, to: u64| by_ticks.counted(to, to - from);
        assert_eq!((counted(1, TICK - 1), counted(TICK - 1, TICK + 1)), (0, TICK));
        assert_eq!(counted(1, 9 * TICK), counted(1, TICK + 5) + counted(TICK + 5, 9 * TICK));
        assert_eq!(sharing(Scheduler::Cfs).counted(TICK - 1, 7), 7);
    }

    #[test]
    fn under_cfs_a_long_sleeper_comes_back_half_a_latency_behind_and_preempts() {
        let sharing = sharing(Scheduler::Cfs);
        for (slept_at, comes_back, preempts) in
            [(0, 94 * MS, true), (97 * MS, 97 * MS, true), (98 * MS, 98 * MS, false)]
        {
            let (mut sleeper, mut running) = (used(slept_at), used(100 * MS));
            sharing.wake(&mut sleeper, 100 * MS, &[running]);
            assert_eq!(sleeper.vruntime, comes_back);
            assert_eq!(sharing.preempts(0, &[sleeper], &mut running), preempts, "slept at {slept_at}");
        }
    }

    #[test]
    fn under_cfs_a_turn_is_over_at_the_tick_after_its_part_of_the_latency() {
        let sharing = sharing(Scheduler::Cfs);
        let mut running = used(0);
        running.run(TICK);
        assert!(!sharing.turn_is_over(&[], &mut running), "nobody waits");
        assert!(!sharing.turn_is_over(&[used(0)], &mut running), "4 of 6 ms");
        assert!(!sharing.turn_is_over(&[used(0), used(0)], &mut running), "no more than 4 ms");
        assert!(sharing.turn_is_over(&[used(0), used(0), used(0)], &mut running), "3 ms are over");
        assert!(sharing.turn_is_over(&[used(-3 * MS)], &mut running), "another is far behind");
    }

    #[test]
    fn under_eevdf_the_running_task_keeps_its_request_while_it_is_owed_something() {
        let sharing = sharing(Scheduler::Eevdf);
        let mut running = used(0);
        let mut sleeper = used(0);
        sharing.wake(&mut sleeper, 0, &[running, used(0)]);
        assert!(!sharing.preempts(0, &[sleeper, used(0)], &mut running), "as owed as the others");
        running.run(MS as u64);
        assert!(sharing.preempts(0, &[sleeper, used(0)], &mut running), "it had more than the others");
        let mut behind = used(-4 * MS);
        behind.run(MS as u64);
        assert!(!sharing.preempts(0, &[sleeper, used(0)], &mut behind), "it is owed more");
        behind.run(MS as u64);
        assert!(sharing.preempts(0, &[sleeper, used(0)], &mut behind), "its request is done");
    }

    #[test]
    fn under_eevdf_the_earliest_deadline_of_those_that_are_owed_is_next() {
        let sharing = sharing(Scheduler::Eevdf);
        let deadline = |vruntime, deadline| Share { deadline, ..used(vruntime) };
        let waiting = [deadline(0, 9 * MS), deadline(2 * MS, 5 * MS), deadline(7 * MS, 4 * MS)];
        assert_eq!(sharing.next(&waiting), Some(1), "the third had more than the average of 3 ms");
        assert_eq!(sharing.next(&[]), None);
    }

    #[test]
    fn under_eevdf_what_a_sleeper_owes_passes_and_what_it_is_owed_stays() {
        let sharing = sharing(Scheduler::Eevdf);
        let comes_back = |vruntime, others: i64| {
            let mut sleeper = used(vruntime);
            sharing.sleep(&mut sleeper, &[used(10 * MS)]);
            sharing.wake(&mut sleeper, 0, &[used(others)]);
            (sleeper.vruntime - others, sleeper.deadline - sleeper.vruntime)
        };
        let request = 3 * MS / 2;
        assert_eq!(comes_back(12 * MS, 10 * MS), (2 * MS, request), "woken at once, it is where it was");
        assert_eq!(comes_back(12 * MS, 20 * MS), (0, request), "the others have caught up");
        assert_eq!(comes_back(8 * MS, 20 * MS), (-2 * MS, request), "one more joins, so twice its lag");
        assert_eq!(comes_back(-90 * MS, 20 * MS), (-8 * MS, request), "no more than a tick, twice");
    }
}
