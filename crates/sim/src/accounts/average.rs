//! Totals and running averages of stalls, in the kernel's fixed point (`update_averages`, `calc_avgs`).
//!
//! Left out: whose times these are, see `pressure.rs`.

use kernel::machine::{Pressure, Stalled};
use units::Nanos;

/// Some and full.
pub(super) const KINDS: usize = 2;
/// Averages are kept in units of 1 / 2048 percent (`FSHIFT`).
const SHIFT: u32 = 11;
const ONE: u64 = 1 << SHIFT;
/// 1 / exp(2 s / 10 s), 1 / exp(2 s / 60 s), 1 / exp(2 s / 300 s) of [`ONE`].
const DECAY: [u64; 3] = [1677, 1981, 2034];

/// Of one group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Averages {
    /// Nanoseconds of stall.
    total: [u64; KINDS],
    /// What of it the averages know.
    averaged: [u64; KINDS],
    averages: [[u64; 3]; KINDS],
    last_update: u64,
    next_update: u64,
    period: u64,
}

impl Averages {
    /// Of a group that is made at `now`, by a kernel with so many nanoseconds between two ticks.
    pub(super) fn new(now: u64, tick: u64) -> Self {
        // A tick more than two seconds, so that it does not beat with the load average (`PSI_FREQ`).
        let period = 2_000_000_000 + tick;
        Self {
            total: [0; KINDS],
            averaged: [0; KINDS],
            averages: [[0; 3]; KINDS],
            last_update: now,
            next_update: now + period,
            period,
        }
    }

    pub(super) const fn period(&self) -> u64 {
        self.period
    }

    pub(super) const fn next_update(&self) -> u64 {
        self.next_update
    }

    /// Adds what CPUs have gathered.
    pub(super) fn add(&mut self, times: [u64; KINDS]) {
        self.total.iter_mut().zip(times).for_each(|(total, time)| *total += time);
    }

    /// Moves the averages if that is due at `now`. Periods that were missed had no activity.
    pub(super) fn update(&mut self, now: u64) {
        if now < self.next_update {
            return;
        }
        let missed = (now - self.next_update) / self.period;
        self.next_update += (1 + missed) * self.period;
        let period = now - (self.last_update + missed * self.period);
        self.last_update = now;
        for kind in 0..KINDS {
            // What is more than the period is left for the next one.
            let sample = (self.total[kind] - self.averaged[kind]).min(period);
            self.averaged[kind] += sample;
            let percent = (sample * 100 / period) * ONE;
            for (average, decay) in self.averages[kind].iter_mut().zip(DECAY) {
                if missed > 0 {
                    *average = load(*average, power(decay, missed), 0);
                }
                *average = load(*average, decay, percent);
            }
        }
    }

    /// As the file shows them.
    pub(super) fn read(&self) -> Pressure {
        let stalled = |kind: usize| {
            let hundredths =
                |average: u64| (average >> SHIFT) * 100 + (((average & (ONE - 1)) * 100) >> SHIFT);
            Stalled { average: self.averages[kind].map(hundredths), total: Nanos(self.total[kind]) }
        };
        Pressure { some: stalled(0), full: stalled(1) }
    }
}

/// `calc_load`: rounded up while it rises.
const fn load(average: u64, decay: u64, active: u64) -> u64 {
    let sum = average * decay + active * (ONE - decay);
    (sum + if active >= average { ONE - 1 } else { 0 }) / ONE
}

/// `fixed_power_int`: `x` to the power of `n`, rounded.
fn power(mut x: u64, mut n: u64) -> u64 {
    let mut result = ONE;
    let round = |product: u64| (product + (1 << (SHIFT - 1))) >> SHIFT;
    while n > 0 {
        if n & 1 == 1 {
            result = round(result * x);
        }
        n >>= 1;
        if n > 0 {
            x = round(x * x);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const TICK: u64 = 4 * MS;

    /// `some` milliseconds of stall in each period of 2.004 s; the averages after each.
    fn after(stalls: &[u64]) -> Vec<[u64; 3]> {
        let mut averages = Averages::new(0, TICK);
        let step = |&some: &u64| {
            averages.add([some * MS, 0]);
            averages.update(averages.next_update());
            averages.read().some.average
        };
        stalls.iter().map(step).collect()
    }

    /// As `calc_load` of 6.12 gives them, transcribed into another language.
    #[test]
    fn averages_rise_to_the_share_of_stall_and_fall_again() {
        assert_eq!(
            after(&[2004, 2004, 2004, 0, 0]),
            [
                [18_11, 3_27, 68],
                [32_94, 6_43, 1_36],
                [45_09, 9_49, 2_03],
                [36_92, 9_18, 2_02],
                [30_23, 8_88, 2_00],
            ]
        );
        let steady = after(&[1002; 400]);
        assert_eq!(steady[399], [50_00, 50_00, 46_81], "half of the time");
    }

    /// An average that decays by the missed periods at once is where it would be step by step, up to rounding.
    #[test]
    fn missed_periods_count_as_nothing() {
        let mut averages = Averages::new(0, TICK);
        averages.add([2004 * MS, 1002 * MS]);
        averages.update(averages.next_update());
        let mut late = averages;
        (0..10).for_each(|_| averages.update(averages.next_update()));
        late.update(late.next_update() + 9 * late.period());
        let (step, once) = (averages.read(), late.read());
        for (step, once) in step
            .some
            .average
            .into_iter()
            .chain(step.full.average)
            .zip(once.some.average.into_iter().chain(once.full.average))
        {
            assert!(step.abs_diff(once) <= 3, "{step} {once}");
        }
        assert_eq!(averages.next_update(), late.next_update());
    }

    /// Readings between updates move totals; a period never has more stall than it has time.
    #[test]
    fn what_is_more_than_a_period_is_left_for_the_next() {
        let mut averages = Averages::new(0, TICK);
        averages.add([3006 * MS, 0]);
        averages.update(averages.next_update());
        assert_eq!(averages.averaged[0], 2004 * MS);
        averages.update(averages.next_update());
        assert_eq!((averages.averaged[0], averages.read().some.average[0]), (3006 * MS, 23_89));
    }
}
