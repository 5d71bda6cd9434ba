//! Time as the program would have had it if nobody looked, and what of it each task spent by itself.
//!
//! Background. A program that is followed is late: its tasks stand still while we look at their calls, and each look
//! costs them CPU time of their own. On the clock on the wall all of that would look like work.
//!
//! Theory of operation. Between two looks at a task, its own clock says how long it ran. Of that goes what a look
//! costs it ([`Prices`], measured before the program begins). What is left of the time on the wall is time asleep, as
//! far as it is not spent in the queue for a CPU, nor on the way to us. Short of [`SHORT_NS`] and of four times the
//! usual way that is noise; longer, it is a wait for somebody else, or for the disk where the task has read from one
//! meanwhile. A task is late by what a look costs it, by its way to us, by what we need, and by its share of the queue.
//!
//! The program is late by what its tasks are, divided by how many are at work, or asleep by a timer, at a time.
//! [`Pace::now_ns`] is the time on the wall less that, so all times in a trace are the program's own. A wait is no
//! longer than this time says, so that who waits for one that is late waits as long as it would have. How many are at
//! work is told by [`Pace::tick`] from what all tasks ran and how late they were.
//!
//! Left out: that caches are colder after each look; which task waits for which.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::prices::{Prices, Toll};

/// A time asleep that is shorter is none.
const SHORT_NS: u64 = 15_000;
/// A disk's answer takes no longer than this, and 10 ns for each byte that it brings.
const DISK_NS: u64 = 5_000_000;
/// The program's own time stands still for so long at most.
const AHEAD_NS: u64 = 10_000_000;
/// What a task may owe for calls that were cheaper than their price.
const DEBT_MAX_NS: i64 = 200_000;

/// When and how a task was seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrival {
    /// When we had its notice or stop, on the clock on the wall, since the beginning.
    pub(crate) at_ns: u64,
    /// How long it may have waited until we had time for it.
    pub(crate) backlog_ns: u64,
    /// It stopped, or it asked.
    pub(crate) stopped: bool,
    /// It slept by a timer before: for nobody else.
    pub(crate) slept: bool,
}

/// Something that a thread got when it asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Got {
    pub(crate) at: Instant,
    /// How long it may have been there: the thread had something else to do.
    pub(crate) backlog_ns: u64,
}

/// An answer that comes as fast was there already.
const AT_ONCE: Duration = Duration::from_micros(5);

/// When a thread asked, and when it got something.
#[derive(Debug)]
pub(crate) struct Watch {
    asked: Instant,
    got: Instant,
}

impl Watch {
    pub(crate) fn new() -> Self {
        Self { asked: Instant::now(), got: Instant::now() }
    }

    /// It is about to ask.
    pub(crate) fn asks(&mut self) {
        self.asked = Instant::now();
    }

    /// It has got something.
    pub(crate) fn got(&mut self) -> Got {
        let at = Instant::now();
        let before = std::mem::replace(&mut self.got, at);
        let backlog = if at - self.asked < AT_ONCE { at - before } else { Duration::ZERO };
        Got { at, backlog_ns: u64::try_from(backlog.as_nanos()).unwrap_or(u64::MAX) }
    }
}

/// What is asked of the kernel only after a time asleep.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Asleep {
    /// Nanoseconds that the task has spent in the queue for a CPU since it began.
    pub(crate) queued_ns: u64,
    /// Bytes that it has read from disks.
    pub(crate) read_bytes: u64,
    /// Nanoseconds that we spent in that queue since we were last asked.
    pub(crate) our_queue_ns: u64,
}

/// One task's time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Timeline {
    /// When it was last seen, and when it could go on; on the wall.
    seen_ns: u64,
    free_ns: u64,
    /// What its own clock said then.
    ran_ns: Option<u64>,
    queued_ns: u64,
    read_bytes: u64,
    /// What of `ran_ns` was counted since then.
    counted_ns: u64,
    /// The program's own time then.
    own_ns: u64,
    /// What it has thought since its last operation; below 0 while it owes for that one.
    thought_ns: i64,
}

impl Timeline {
    /// Time that it thought, as far as nobody took it yet.
    pub(crate) fn take(&mut self) -> u64 {
        let thought = self.thought_ns.max(0);
        self.thought_ns -= thought;
        thought.cast_unsigned()
    }

    /// It thought so long in vain: what it was to do came to nothing.
    pub(crate) fn give_back(&mut self, ns: u64) {
        self.thought_ns = self.thought_ns.saturating_add_unsigned(ns);
    }

    /// Of what it thinks next, so much is the kernel's work on what is in the trace already.
    pub(crate) fn owe(&mut self, ns: u64) {
        self.thought_ns = self.thought_ns.saturating_sub_unsigned(ns).max(-DEBT_MAX_NS);
    }

    /// The time since it was seen before was that of an operation, which has a time of its own.
    pub(crate) fn forget(&mut self) {
        self.thought_ns = self.thought_ns.min(0);
    }

    /// It can go on.
    pub(crate) fn freed(&mut self, at_ns: u64) {
        self.free_ns = at_ns;
    }

    /// Its clock is another one from now on.
    pub(crate) fn other_clock(&mut self) {
        self.ran_ns = None;
    }
}

/// The program's own time.
#[derive(Debug)]
pub(crate) struct Pace {
    began: Instant,
    prices: Prices,
    /// How late the program is.
    late_ns: u64,
    /// The latest time that was told: no later one is before it.
    told_ns: Cell<u64>,
    /// Since the last tick, with half of what was before: time of tasks that were at work, and time.
    busy_ns: u64,
    span_ns: u64,
    tick_ns: u64,
    /// Tasks at work at a time, in 1/256.
    at_work: u64,
    /// Looks since one asked how long we stood in the queue for a CPU.
    looks: u64,
}

impl Pace {
    /// Time begins now.
    pub(crate) fn new(prices: Prices) -> Self {
        Self {
            began: Instant::now(),
            prices,
            late_ns: 0,
            told_ns: Cell::new(0),
            busy_ns: 0,
            span_ns: 0,
            tick_ns: 0,
            at_work: 256,
            looks: 0,
        }
    }

    /// What looks and calls cost here.
    pub(crate) const fn prices(&self) -> &Prices {
        &self.prices
    }

    /// Nanoseconds on the wall since it began.
    pub(crate) fn wall_ns(&self) -> u64 {
        self.wall_at(Instant::now())
    }

    /// The same of a time that was noted.
    pub(crate) fn wall_at(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.began).as_nanos()).unwrap_or(u64::MAX)
    }

    /// Nanoseconds of the program's own time.
    pub(crate) fn now_ns(&self) -> u64 {
        let now = self.own_at(self.wall_ns());
        self.told_ns.set(now);
        now
    }

    /// A task begins here.
    pub(crate) fn timeline(&self, ran_ns: Option<u64>, so_far: Asleep) -> Timeline {
        let now = self.wall_ns();
        let Asleep { queued_ns, read_bytes, .. } = so_far;
        let line = Timeline { queued_ns, read_bytes, ..Timeline::default() };
        Timeline { seen_ns: now, free_ns: now, ran_ns, own_ns: self.now_ns(), ..line }
    }

    /// A task is seen, of `tasks` that there are; its own clock says `ran_ns`.
    pub(crate) fn seen(
        &mut self,
        line: &mut Timeline,
        arrival: Arrival,
        ran_ns: Option<u64>,
        ask: impl FnOnce() -> Asleep,
    ) {
        let Arrival { at_ns, backlog_ns, stopped, slept } = arrival;
        let gap = at_ns.saturating_sub(line.free_ns);
        let ours = line.free_ns.saturating_sub(line.seen_ns);
        line.seen_ns = at_ns;
        line.free_ns = at_ns;
        let before = std::mem::replace(&mut line.ran_ns, ran_ns);
        let (Some(before), Some(now)) = (before, ran_ns) else {
            // A clock that is not known, or a new one: the time on the wall is as good as any.
            (line.counted_ns, line.own_ns) = (0, self.now_ns());
            line.give_back(gap);
            return;
        };
        let toll = self.prices.toll(stopped);
        let ran = now.saturating_sub(before);
        let own = ran.saturating_sub(toll.ran_ns);
        let still = gap.saturating_sub(ran);
        let way = still.min(toll.way_ns + backlog_ns);
        self.looks += 1;
        let Rest { waited_ns: waited, queued_ns, our_queue_ns } =
            rested(line, still - way, toll, &mut self.looks, ask);
        let passed = self.own_at(at_ns).saturating_sub(line.own_ns);
        line.give_back(own.saturating_add(waited.min(passed.saturating_sub(own))));
        // Of the queue for a CPU, as much is ours as of what it ran: who runs more often stands there more often.
        let queued = our_queue_ns + part(queued_ns, ran - own, ran);
        let late = ours + (ran - own) + way + queued;
        // Tasks tell one after the other how late they were: for a while they may tell of more than has passed.
        let most = self.wall_ns().saturating_sub(self.told_ns.get()) + AHEAD_NS;
        self.late_ns = most.min(self.late_ns + late.saturating_mul(256) / self.at_work);
        // Whom nobody keeps waiting is not late with others, as one at work is not.
        let by_itself = if slept { waited } else { 0 };
        self.busy_ns += late + own.saturating_sub(std::mem::take(&mut line.counted_ns)) + by_itself;
        line.own_ns = self.own_at(at_ns);
    }

    /// A task that may not have been seen for long has run up to here.
    pub(crate) fn ran(&mut self, line: &mut Timeline, ran_ns: Option<u64>) {
        let (Some(before), Some(now)) = (line.ran_ns, ran_ns) else { return };
        let ran = now.saturating_sub(before);
        self.busy_ns += ran.saturating_sub(std::mem::replace(&mut line.counted_ns, ran));
    }

    /// All of `tasks` tasks have told what they ran: how many were at work.
    pub(crate) fn tick(&mut self, tasks: usize) {
        let now = self.wall_ns();
        let span = self.span_ns / 2 + now.saturating_sub(self.tick_ns);
        let most = (tasks.max(1) as u64).saturating_mul(256);
        self.at_work = (self.busy_ns.saturating_mul(256) / span.max(1)).clamp(256, most);
        (self.busy_ns, self.span_ns, self.tick_ns) = (self.busy_ns / 2, span, now);
    }

    /// The program's own time at a time on the wall.
    fn own_at(&self, wall_ns: u64) -> u64 {
        wall_ns.saturating_sub(self.late_ns).max(self.told_ns.get())
    }
}

/// What became of a time that a task did not run.
#[derive(Debug, Clone, Copy, Default)]
struct Rest {
    waited_ns: u64,
    queued_ns: u64,
    our_queue_ns: u64,
}

fn rested(
    line: &mut Timeline,
    asleep: u64,
    toll: Toll,
    looks: &mut u64,
    ask: impl FnOnce() -> Asleep,
) -> Rest {
    let short = SHORT_NS.max(4 * toll.way_ns);
    if asleep <= short {
        return Rest::default();
    }
    let Asleep { queued_ns, read_bytes, our_queue_ns } = ask();
    let queued = queued_ns.saturating_sub(std::mem::replace(&mut line.queued_ns, queued_ns));
    let read = read_bytes.saturating_sub(std::mem::replace(&mut line.read_bytes, read_bytes));
    // Of both some may have been before; of ours as much as before each other look, where it was on the way to us.
    let queued_ns = queued.min(asleep);
    let our_queue_ns = (our_queue_ns / std::mem::take(looks).max(1)).min(asleep - queued_ns);
    let waited = asleep - queued_ns - our_queue_ns;
    let disk = if read > 0 { DISK_NS + 10 * read } else { 0 };
    let waited_ns = if waited <= short { 0 } else { waited.saturating_sub(disk) };
    Rest { waited_ns, queued_ns, our_queue_ns }
}

/// `of` as `share` is to `whole`.
fn part(of: u64, share: u64, whole: u64) -> u64 {
    let part = u128::from(of) * u128::from(share) / u128::from(whole.max(1));
    u64::try_from(part).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1000;

    fn pace() -> Pace {
        let notice = Toll { ran_ns: 2 * US, way_ns: 2 * US };
        Pace::new(Prices { notice, stop: Toll { ran_ns: 6 * US, way_ns: 4 * US }, ..Prices::default() })
    }

    fn notice(at_us: u64) -> Arrival {
        Arrival { at_ns: at_us * US, backlog_ns: 0, stopped: false, slept: false }
    }

    fn new() -> Timeline {
        Timeline { ran_ns: Some(0), ..Timeline::default() }
    }

    fn awake() -> Asleep {
        panic!("nobody slept")
    }

    /// It runs 12 us, of which 2 are the notice's; 3 us pass, 2 of them on the way to us, and 5 until it may go on.
    #[test]
    fn what_a_notice_costs_is_no_thought_and_makes_the_program_late() {
        let (mut pace, mut line) = (pace(), new());
        pace.seen(&mut line, notice(15), Some(12 * US), awake);
        assert_eq!(line.take(), 10 * US);
        assert_eq!(pace.late_ns, 4 * US);
        line.freed(20 * US);
        pace.seen(&mut line, notice(35), Some(24 * US), awake);
        assert_eq!((line.take(), pace.late_ns), (10 * US, 13 * US));
    }

    #[test]
    fn a_wait_for_others_counts_and_one_for_a_cpu_or_a_disk_does_not() {
        let (mut pace, mut line) = (pace(), new());
        let asleep = |queued_us: u64, read_bytes| {
            move || Asleep { queued_ns: queued_us * US, read_bytes, our_queue_ns: 0 }
        };
        pace.seen(&mut line, notice(1000), Some(100 * US), asleep(198, 0));
        // 98 us of its own, 1000 less 100, less 198, less the way.
        assert_eq!(line.take(), (98 + 700) * US);
        pace.seen(&mut line, notice(2000), Some(200 * US), asleep(198, 4096));
        assert_eq!(line.take(), 98 * US);
    }

    /// 200 us, of which it ran 12.
    #[test]
    fn who_sleeps_by_a_timer_is_at_work_and_who_waits_for_others_is_not() {
        let at_work = |slept: bool| {
            let (mut pace, mut line) = (pace(), new());
            pace.seen(&mut line, Arrival { slept, ..notice(200) }, Some(12 * US), Asleep::default);
            pace.busy_ns
        };
        assert_eq!(at_work(true) - at_work(false), 186 * US, "all but its way to us");
    }

    /// We stood in the queue for 24 us at four looks; at three of them that was on their way to us.
    #[test]
    fn our_queue_at_earlier_looks_is_no_part_of_a_wait() {
        let (mut pace, mut line) = (pace(), new());
        for look in 1..=3 {
            pace.seen(&mut line, notice(look * 20), Some(look * 18 * US), awake);
        }
        line.take();
        let ask = || Asleep { our_queue_ns: 24 * US, ..Asleep::default() };
        pace.seen(&mut line, notice(160), Some(72 * US), ask);
        // 100 us, of which it ran 18, 2 was its way, and a quarter of 24 ours.
        assert_eq!(line.take(), (16 + 74) * US);
    }

    /// While one waits, the other does 100 us of work in 200: the wait would have been as long as that.
    #[test]
    fn a_wait_for_one_that_is_late_is_shorter() {
        let (mut pace, mut works, mut waits) = (pace(), new(), new());
        for step in 1..=10 {
            pace.seen(&mut works, notice(step * 20 - 6), Some(step * 12 * US), awake);
            works.freed(step * 20 * US);
        }
        assert_eq!(works.take(), 100 * US);
        pace.seen(&mut waits, notice(202), Some(0), Asleep::default);
        let waited = waits.take() / US;
        assert!((95..=115).contains(&waited), "{waited}");
    }

    #[test]
    fn what_came_to_nothing_was_thought_all_the_same() {
        let mut line = new();
        line.give_back(50);
        let thought = line.take();
        line.give_back(thought);
        line.owe(20);
        assert_eq!(line.take(), 30);
        line.owe(20);
        line.give_back(50);
        assert_eq!(line.take(), 30);
    }

    #[test]
    fn a_task_without_a_clock_thinks_by_the_wall() {
        let (mut pace, mut line) = (pace(), Timeline::default());
        pace.seen(&mut line, notice(15), None, awake);
        assert_eq!(line.take(), 15 * US);
    }
}
