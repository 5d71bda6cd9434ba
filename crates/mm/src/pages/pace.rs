//! The thresholds of dirty pages and the pace of those who make pages dirty, as pure arithmetic
//! over counts (MECHANISMS 10, MECHANISMS-6X 8.1).
//!
//! ```text
//!   dirty: 0 ..... background ..... freerun ..... setpoint ..... limit
//!          nobody      flusher       writers are paused, so that they make      writers wait
//!          cares       writes        pages dirty as fast as the device writes
//! ```
//!
//! A writer that is above *freerun* (halfway from the background threshold to the threshold) gets
//! a rate: the *base rate*, which follows the device's measured bandwidth divided by the number of
//! writers, times the *position ratio*, which is 1 at the setpoint and falls to 0 at the limit.
//!
//! A cgroup has thresholds of its own ([`DirtyDomains`]); its writers keep to the tighter ones.
//!
//! Left out: shares of several devices, a rate of their own for the writers of each cgroup, `dirty_bytes`,
//! real-time writers. Where the counts come from: [`super`]; who sleeps: `writeback.rs` of the
//! kernel crate.

use units::{Nanos, PAGE_SIZE};

/// The thresholds and where the machine stands, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirtyLimits {
    /// Above it writers wait: `nr_dirty_threshold`.
    pub threshold: u64,
    /// Above it the flusher writes: `nr_dirty_background_threshold`.
    pub background: u64,
    /// Dirty pages that nobody writes yet.
    pub dirty: u64,
    /// Pages being written.
    pub writeback: u64,
}

impl DirtyLimits {
    /// The thresholds for so many dirtyable pages and these ratios in percent
    /// (`domain_dirty_limits`: ratios are rounded down to 1/4096 first).
    pub fn thresholds(dirtyable: u64, ratio: u64, background_ratio: u64) -> (u64, u64) {
        let share = |percent: u64| dirtyable * (percent * PAGE_SIZE / 100) / PAGE_SIZE;
        let threshold = share(ratio);
        let background = share(background_ratio);
        (threshold, if background >= threshold { threshold / 2 } else { background })
    }

    /// Pages up to which writers are left alone.
    pub const fn freerun(&self) -> u64 {
        (self.threshold + self.background) / 2
    }

    /// Dirty pages and pages being written.
    pub const fn pending(&self) -> u64 {
        self.dirty + self.writeback
    }
}

/// The thresholds that a writer keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirtyDomains {
    /// Those of the machine.
    pub machine: DirtyLimits,
    /// Those of its cgroup, if that has any.
    pub group: Option<DirtyLimits>,
}

impl DirtyDomains {
    /// Of writers that no cgroup holds.
    pub const fn of_machine(machine: DirtyLimits) -> Self {
        Self { machine, group: None }
    }

    fn all(&self) -> impl Iterator<Item = &DirtyLimits> {
        core::iter::once(&self.machine).chain(&self.group)
    }

    /// Whether so much is dirty that a writer has the flusher begin: more than the background threshold of the machine,
    /// or than the freerun of the cgroup (guests of 5.10 and 6.12 below 64 MiB began at 2,457 to 2,510 pages, which is
    /// 15 %, though they write down to 10 %).
    pub fn starts_flusher(&self) -> bool {
        self.machine.dirty > self.machine.background
            || self.group.is_some_and(|group| group.dirty > group.freerun())
    }
}

/// Where a writer stands when it looks; times are ticks of a kernel with `hz` in a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Looking {
    /// Ticks in a second.
    pub hz: u64,
    /// Pages that it has made dirty since its last pause, or since it was last left alone.
    pub pages: u32,
    /// Ticks since that pause was to end, less what it owes; none: it never paused, nor was left alone.
    pub thinks: Option<i64>,
}

/// What a writer does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Balance {
    /// Below freerun: it starts anew, and looks again after `poll` more pages.
    Free {
        /// Pages.
        poll: u32,
    },
    /// It has thought for more than a second longer than its pages take: it starts anew.
    Forgiven,
    /// Its pause would be too short: it goes on, and owes the ticks that its pages take.
    Owes {
        /// Ticks; 0: its pages count on, and it looks less often.
        period: u64,
    },
    /// Sleeps, then goes on and looks again after `poll` more pages.
    Pause {
        /// Ticks.
        ticks: u64,
        /// Ticks that it should have slept longer, and will not be reminded of.
        waived: u64,
        /// Pages.
        poll: u32,
    },
    /// Sleeps and looks again at once: the limit is reached.
    Wait {
        /// Ticks.
        ticks: u64,
    },
}

/// Between two measurements.
const MEASURE_PERIOD: Nanos = Nanos::from_millis(200);
/// A measurement over more than this says nothing: nobody wrote.
const QUIET: Nanos = Nanos::from_secs(1);
/// Over which the bandwidth is averaged.
const BANDWIDTH_PERIOD: Nanos = Nanos::from_secs(3);
/// 100 MB/s in pages: what a device is taken for before it is measured.
const FIRST_BANDWIDTH: u64 = (100 << 20) / PAGE_SIZE;
/// Pages of a first look of a new writer, and between looks at slow rates.
pub const FIRST_POLL: u32 = 32;
/// 1 of a position ratio.
const ONE: u64 = 1 << 10;
const SECOND: u64 = 1_000_000_000;

/// The pace of writers: what was measured, and the base rate that follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Pages per second that the device writes.
    bandwidth: u64,
    /// Pages per second for each writer at the setpoint.
    base_rate: u64,
    /// The threshold, slowly following downwards.
    limit: u64,
    measured_at: Nanos,
    dirtied: u64,
    written: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self::new()
    }
}

impl Pace {
    /// Before anything is measured.
    pub const fn new() -> Self {
        Self {
            bandwidth: FIRST_BANDWIDTH,
            base_rate: FIRST_BANDWIDTH,
            limit: 0,
            measured_at: Nanos::ZERO,
            dirtied: 0,
            written: 0,
        }
    }

    /// Pages per second that the device was measured to write.
    pub const fn bandwidth(&self) -> u64 {
        self.bandwidth
    }

    /// Somebody wrote before the run, and looked at these.
    pub(crate) fn begin(&mut self, limits: &DirtyLimits) {
        self.follow_threshold(limits);
    }

    fn limit(&self, limits: &DirtyLimits) -> u64 {
        self.limit.max(limits.threshold)
    }

    /// The lowest position ratio of all thresholds that a writer keeps to, with those and the limit there; that of a
    /// cgroup follows its threshold at once.
    fn tightest(&self, domains: &DirtyDomains) -> (u64, DirtyLimits, u64) {
        let of = |limits: DirtyLimits, limit| (position(&limits, limit), limits, limit);
        let machine = of(domains.machine, self.limit(&domains.machine));
        let group = domains.group.map(|limits| of(limits, limits.threshold));
        group.filter(|group| group.0 < machine.0).unwrap_or(machine)
    }

    /// Measures, if it is time: `dirtied` and `written` are the counts of pages so far.
    pub fn measure(&mut self, now: Nanos, domains: &DirtyDomains, dirtied: u64, written: u64) {
        let elapsed = now.saturating_sub(self.measured_at);
        if elapsed < MEASURE_PERIOD {
            return;
        }
        let more_dirtied = dirtied - core::mem::replace(&mut self.dirtied, dirtied);
        let more_written = written - core::mem::replace(&mut self.written, written);
        self.measured_at = now;
        self.follow_threshold(&domains.machine);
        if elapsed > QUIET {
            return;
        }
        let rest = BANDWIDTH_PERIOD.0 - elapsed.0;
        self.bandwidth = ((more_written * SECOND) + (self.bandwidth * rest)) / BANDWIDTH_PERIOD.0;
        self.follow_bandwidth(domains, more_dirtied * SECOND / elapsed.0);
    }

    fn follow_threshold(&mut self, limits: &DirtyLimits) {
        let target = limits.threshold.max(limits.pending());
        if self.limit < limits.threshold {
            self.limit = limits.threshold;
        } else if self.limit > target {
            self.limit -= (self.limit - target) >> 5;
        }
    }

    /// Moves the base rate an eighth of the way to the one at which pages would be made dirty as
    /// fast as they are written; not away from it when the position already corrects.
    fn follow_bandwidth(&mut self, domains: &DirtyDomains, dirty_rate: u64) {
        let (position, limits, limit) = self.tightest(domains);
        let task_rate = (self.base_rate * position / ONE).max(1);
        let balanced = (task_rate * self.bandwidth / dirty_rate.max(1)).min(self.bandwidth);
        let setpoint = limits.freerun().midpoint(limit);
        if limits.pending() < setpoint {
            let target = balanced.min(task_rate);
            self.base_rate += target.saturating_sub(self.base_rate).div_ceil(8);
        } else {
            let target = balanced.max(task_rate);
            self.base_rate -= self.base_rate.saturating_sub(target).div_ceil(8);
        }
        self.base_rate = self.base_rate.max(1);
    }

    /// An eighth of the time in which the device writes all that is dirty, and a fifth of a second at most: pauses are
    /// short where memory is small, or writers would sleep while the device has nothing to do ("writeback: limit max
    /// dirty pause time", 3.2).
    fn longest_pause(&self, limits: &DirtyLimits, hz: u64) -> u64 {
        let in_an_eighth = self.bandwidth / (1 + hz / 8).next_power_of_two();
        (limits.pending() / (1 + in_an_eighth) + 1).min((hz / 5).max(1))
    }

    /// The shortest pause that is slept, and after how many pages a writer at `rate` looks again (`wb_min_pause`):
    /// 10 ms, and 10 ms more for each doubling of writers, of which the base rate tells.
    fn shortest_pause(&self, longest: u64, rate: u64, hz: u64) -> (u64, u64) {
        let in_time = |rate: u64, ticks: u64| rate * ticks / hz.next_power_of_two();
        let (all, each) = (self.bandwidth.max(1).ilog2(), self.base_rate.max(1).ilog2());
        let more = u64::from(all.saturating_sub(each)) * 10 * hz / 1024;
        let mut ticks = ((hz / 100).max(1) + more).min(1 + longest / 2);
        let mut pages = in_time(self.base_rate, ticks);
        if pages < u64::from(FIRST_POLL) {
            ticks = longest;
            pages = in_time(self.base_rate, ticks);
            if pages > u64::from(FIRST_POLL) {
                pages = u64::from(FIRST_POLL);
                ticks = hz * pages / self.base_rate.max(1);
            }
        }
        if hz * pages / (rate + 1) > longest {
            ticks = longest;
            pages = in_time(rate, ticks);
        }
        let shortest = if pages >= u64::from(FIRST_POLL) { 1 + ticks / 2 } else { ticks };
        (shortest, pages)
    }

    /// What a writer does that looks (`balance_dirty_pages`).
    pub fn balance(&self, domains: &DirtyDomains, looking: Looking) -> Balance {
        if domains.all().all(|limits| limits.pending() <= limits.freerun()) {
            let room = |limits: &DirtyLimits| limits.threshold - limits.pending();
            let least = domains.all().map(room).min().expect("the machine's");
            return Balance::Free { poll: 1 << (least.max(1).ilog2() / 2) };
        }
        let Looking { hz, pages, thinks } = looking;
        let (position, limits, _) = self.tightest(domains);
        let longest = self.longest_pause(&limits, hz);
        let rate = self.base_rate * position / ONE;
        if rate == 0 {
            return Balance::Wait { ticks: longest };
        }
        let (shortest, poll) = self.shortest_pause(longest, rate, hz);
        let period = hz * u64::from(pages) / rate;
        let signed = |ticks: u64| i64::try_from(ticks).expect("ticks of a run");
        let pause = signed(period) - thinks.unwrap_or(0);
        if pause < signed(shortest) {
            return if pause < -signed(hz) { Balance::Forgiven } else { Balance::Owes { period } };
        }
        let pause = pause.unsigned_abs();
        let poll = u32::try_from(poll).unwrap_or(u32::MAX);
        Balance::Pause { ticks: pause.min(longest), waived: pause.saturating_sub(longest).min(longest), poll }
    }
}

/// The position ratio in 1/1024 (`pos_ratio_polynom`): 1 + ((setpoint - dirty) / (limit - setpoint))^3, from 0 to 2.
/// The `limit` may be above the threshold.
fn position(limits: &DirtyLimits, limit: u64) -> u64 {
    let dirty = limits.pending();
    if dirty >= limit {
        return 0;
    }
    let setpoint = limits.freerun().midpoint(limit);
    let signed = |n: u64| i64::try_from(n).expect("page counts are far below 2^63");
    let one = signed(ONE);
    let x = (signed(setpoint) - signed(dirty)) * one / signed((limit - setpoint).max(1));
    let x = x.clamp(-one, one);
    u64::try_from((x * x / one * x / one) + one).expect("the cube is -1 at least")
}

#[cfg(test)]
mod tests {
    use std_alloc::vec::Vec;

    use super::*;

    /// 10 percent of 33296 pages in the background, 20 percent at the most.
    fn limits(dirty: u64, writeback: u64) -> DirtyLimits {
        let (threshold, background) = DirtyLimits::thresholds(33_296, 20, 10);
        DirtyLimits { threshold, background, dirty, writeback }
    }

    fn alone(dirty: u64) -> DirtyDomains {
        DirtyDomains::of_machine(limits(dirty, 0))
    }

    #[test]
    fn thresholds_are_those_that_a_guest_reported() {
        // MECHANISMS-6X 8.1: b_ext4_base_k61 at 16 s.
        assert_eq!(DirtyLimits::thresholds(33_296, 20, 10), (6657, 3324));
        assert_eq!(DirtyLimits::thresholds(33_296, 20, 30), (6657, 3328), "background is half at most");
        assert_eq!(DirtyLimits::thresholds(33_296, 0, 10), (0, 0));
    }

    #[test]
    fn the_position_ratio_falls_from_two_to_nothing_along_a_cubic_curve() {
        // freerun 4990, setpoint 5823, limit 6657.
        let ratio = |dirty| position(&limits(dirty, 0), 6657);
        let curve: Vec<u64> = [0, 4990, 5407, 5823, 6240, 6600, 6656, 6657, 9000].map(ratio).into();
        assert_eq!(curve, [2048, 2042, 1150, 1024, 896, 197, 6, 0, 0]);
    }

    /// Of a kernel with 100 ticks in a second.
    fn looking(pages: u32, thinks: i64) -> Looking {
        Looking { hz: 100, pages, thinks: Some(thinks) }
    }

    #[test]
    fn below_freerun_writers_are_left_alone_and_look_more_often_as_they_near_it() {
        let poll = |dirty| Pace::new().balance(&alone(dirty), looking(32, 0));
        assert_eq!(poll(0), Balance::Free { poll: 64 });
        assert_eq!(poll(4990), Balance::Free { poll: 32 });
        assert_eq!(poll(4991), Balance::Owes { period: 0 }, "32 pages are too few for a pause");
    }

    #[test]
    fn a_pause_lasts_as_long_as_the_pages_take_at_the_allowed_rate() {
        let pace = Pace { base_rate: 1000, bandwidth: 1000, ..Pace::new() };
        let at = |dirty, pages, thinks| pace.balance(&alone(dirty), looking(pages, thinks));
        let pause = |ticks, waived| Balance::Pause { ticks, waived, poll: 32 };
        assert_eq!(at(5823, 32, 0), pause(3, 0));
        assert_eq!(at(5823, 32, 1), pause(2, 0), "time since the last pause counts");
        assert_eq!(at(5823, 32, 2), Balance::Owes { period: 3 }, "too short a one is owed");
        assert_eq!(at(5823, 32, 104), Balance::Forgiven, "101 ticks more than the pages take");
        assert_eq!(at(5823, 300, 0), pause(20, 10), "the longest, and a part of the rest is forgotten");
        assert_eq!(at(5823, 1000, 0), pause(20, 20));
        assert_eq!(at(6657, 1, 0), Balance::Wait { ticks: 20 });
    }

    /// `writeback:balance_dirty_pages` of a guest of 5.10: at 100 MB/s (25,600 pages) writers slept for one tick of
    /// 10 ms after 256 pages, and the next look was after 200 pages.
    #[test]
    fn at_the_first_bandwidth_a_writer_pauses_for_a_tick_and_looks_every_200_pages() {
        let (pace, group) =
            (Pace::new(), DirtyLimits { threshold: 1400, background: 700, dirty: 1340, writeback: 0 });
        let domains = DirtyDomains { machine: limits(1232, 0), group: Some(group) };
        let rate = FIRST_BANDWIDTH * pace.tightest(&domains).0 / ONE;
        assert!((12_000..25_600).contains(&rate), "{rate}");
        let told = [16, 128, 256].map(|pages| pace.balance(&domains, looking(pages, 0)));
        let owes = Balance::Owes { period: 0 };
        assert_eq!(told, [owes, owes, Balance::Pause { ticks: 1, waived: 0, poll: 200 }]);
        assert_eq!(pace.shortest_pause(20, FIRST_BANDWIDTH, 100), (1, 200), "also where it might be longer");
    }

    #[test]
    fn a_pause_is_an_eighth_of_what_writing_all_takes_at_most() {
        let longest =
            |bandwidth, dirty| Pace { bandwidth, ..Pace::new() }.longest_pause(&limits(dirty, 0), 100);
        assert_eq!(longest(1_000, 630), 11, "in sixteenths of 100 ticks: 62 pages each");
        assert_eq!(longest(1_000, 8_000), 20);
        assert_eq!(longest(1_000, 8), 1);
    }

    #[test]
    fn the_flusher_begins_at_the_machines_background_threshold_or_at_a_cgroups_freerun() {
        let begins = |dirty, group_dirty| {
            let group = DirtyLimits { threshold: 400, background: 200, dirty: group_dirty, writeback: 0 };
            DirtyDomains { machine: limits(dirty, 0), group: Some(group) }.starts_flusher()
        };
        let background = limits(0, 0).background;
        assert!(!begins(background, 300) && begins(background + 1, 0) && begins(301, 301));
    }

    /// The machine has room for 6,657 dirty pages, the cgroup for 400.
    #[test]
    fn a_writer_keeps_to_the_tighter_of_the_machines_thresholds_and_its_cgroups() {
        let pace = Pace { base_rate: 1000, bandwidth: 1000, ..Pace::new() };
        let at = |dirty, group_dirty| {
            let group = DirtyLimits { threshold: 400, background: 200, dirty: group_dirty, writeback: 0 };
            pace.balance(&DirtyDomains { machine: limits(dirty, 0), group: Some(group) }, looking(100, 0))
        };
        assert_eq!(
            at(1_000, 300),
            Balance::Free { poll: 8 },
            "halfway between its thresholds: as for 100 pages"
        );
        assert!(matches!(at(1_000, 350), Balance::Pause { .. }));
        assert!(matches!(at(1_000, 400), Balance::Wait { .. }));
        assert!(matches!(at(6_000, 0), Balance::Pause { .. }), "others fill the machine");
    }

    #[test]
    fn the_base_rate_settles_where_pages_are_dirtied_as_fast_as_written() {
        // A closed loop in steps of 200 ms: two writers at the rate they get, a device of 2000/s.
        let mut pace = Pace::new();
        let (mut dirty, mut dirtied, mut written) = (5800_u64, 0, 0);
        let mut rates = Vec::new();
        for step in 1..600 {
            let now = Nanos::from_millis(200 * step);
            let rate = pace.base_rate * pace.tightest(&alone(dirty)).0 / 1024;
            let (more, gone) = ((2 * rate / 5).min(6657_u64.saturating_sub(dirty)), dirty.min(400));
            (dirty, dirtied, written) = (dirty + more - gone, dirtied + more, written + gone);
            pace.measure(now, &alone(dirty), dirtied, written);
            rates.push(rate);
        }
        let late: u64 = rates[400..].iter().sum::<u64>() / 199;
        assert!((950..=1050).contains(&late), "each of two writers gets half of 2000, not {late}");
        assert!((1950..=2050).contains(&pace.bandwidth()), "{}", pace.bandwidth());
        assert!((4990..6657).contains(&dirty), "{dirty} pages are dirty");
    }
}
