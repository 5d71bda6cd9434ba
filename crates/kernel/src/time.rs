//! Ticks: the grain of every timeout of a kernel (MECHANISMS 0).

use mm::version::rules::Timers;
use units::Nanos;

/// Ticks per second where a machine does not say otherwise: Debian's and SUSE's setting.
pub const HZ: u64 = 250;

/// One tick of `hz` in a second.
pub(crate) const fn jiffy(hz: u64) -> Nanos {
    Nanos(1_000_000_000 / hz)
}

/// How long a sleep of `ticks` ticks of length `jiffy` lasts from `now`. Timeouts expire at the edge of a tick: before
/// 4.8 after more than `ticks` - 1 ticks and at most `ticks`; since then after at least `ticks`.
pub(crate) fn ticks_from(now: Nanos, ticks: u64, jiffy: Nanos, timers: Timers) -> Nanos {
    let expires = (now.0 / jiffy.0) + ticks;
    let at = match timers {
        Timers::AtEdge => expires,
        Timers::Behind => {
            let grain = wheel_grain(ticks);
            (expires / grain + 1) * grain
        }
    };
    Nanos((at * jiffy.0) - now.0)
}

/// Ticks between two buckets of the wheel's level that has timeouts of `ticks`.
const fn wheel_grain(ticks: u64) -> u64 {
    const BUCKETS: u64 = 64;
    const COARSER: u64 = 8;
    let (mut grain, mut end) = (1, BUCKETS - 1);
    while ticks >= end {
        grain *= COARSER;
        end *= COARSER;
    }
    grain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_expire_at_the_edge_of_a_tick_and_since_4_8_not_before_they_are_over() {
        for jiffy in [100, HZ].map(jiffy) {
            for now in [0, 1, 3_999_999, 4_000_000, 4_000_001, 123_456_789] {
                for ticks in [1, 5, 25] {
                    let sleep = |timers| ticks_from(Nanos(now), ticks, jiffy, timers).0;
                    let (before, since) = (sleep(Timers::AtEdge), sleep(Timers::Behind));
                    assert_eq!((now + before) % jiffy.0, 0);
                    assert!(before > (ticks - 1) * jiffy.0 && before <= ticks * jiffy.0);
                    assert_eq!(since, before + jiffy.0);
                }
            }
        }
    }

    /// 201 ticks of 10 ms that were set between two ticks took 204.4 to 207.1 in guests, 300 took 302.9 to 308.8.
    #[test]
    fn long_timeouts_of_the_wheel_end_at_multiples_of_eight_ticks_and_more() {
        let ends = |from: u64, ticks| {
            ticks_from(Nanos(from * 10_000_000), ticks, jiffy(100), Timers::Behind).0 / 10_000_000
        };
        assert_eq!([62, 63, 201, 300].map(|ticks| ends(0, ticks)), [63, 64, 208, 304]);
        assert_eq!(ends(1, 201), 207);
        assert_eq!([503, 504, 4032].map(|ticks| ends(0, ticks)), [504, 512, 4096]);
    }
}
