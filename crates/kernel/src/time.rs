//! Ticks: the grain of every timeout of a kernel (MECHANISMS 0).

use units::Nanos;

/// Ticks per second where a machine does not say otherwise: Debian's and SUSE's setting.
pub const HZ: u64 = 250;

/// One tick of `hz` in a second.
pub(crate) const fn jiffy(hz: u64) -> Nanos {
    Nanos(1_000_000_000 / hz)
}

/// How long a sleep of `ticks` ticks of length `jiffy` lasts from `now`: timeouts expire at the edge of
/// a tick, so it is more than `ticks` - 1 ticks and at most `ticks` (MECHANISMS 0).
pub(crate) fn ticks_from(now: Nanos, ticks: u64, jiffy: Nanos) -> Nanos {
    Nanos((((now.0 / jiffy.0) + ticks) * jiffy.0) - now.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_expire_at_the_edge_of_a_tick() {
        for jiffy in [100, HZ].map(jiffy) {
            for now in [0, 1, 3_999_999, 4_000_000, 4_000_001, 123_456_789] {
                for ticks in [1, 5, 25] {
                    let sleep = ticks_from(Nanos(now), ticks, jiffy);
                    assert_eq!((now + sleep.0) % jiffy.0, 0);
                    assert!(sleep.0 > (ticks - 1) * jiffy.0 && sleep.0 <= ticks * jiffy.0);
                }
            }
        }
    }
}
