//! When compaction of a zone is put off after failures (MECHANISMS 12.1).
//!
//! Neighbour: [`crate::compact::state`] keeps one for each zone.

use units::Order;

/// Runs that are put off after a failure double up to 2^6 (`COMPACT_MAX_DEFER_SHIFT`).
const DEFER_SHIFT_MAX: u8 = 6;

/// How often compaction of a zone is put off (`compact_considered`, `compact_defer_shift`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deferral {
    considered: u32,
    shift: u8,
    order_failed: Order,
}

impl Deferral {
    /// Asks for a run for `order`: true when it is put off. Counts the question.
    pub fn is_deferred(&mut self, order: Order) -> bool {
        if order < self.order_failed {
            return false;
        }
        let limit = 1 << self.shift;
        self.considered = (self.considered + 1).min(limit);
        self.considered < limit
    }

    /// A run for `order` failed although it went through the zone.
    pub fn failed(&mut self, order: Order) {
        self.considered = 0;
        self.shift = (self.shift + 1).min(DEFER_SHIFT_MAX);
        self.order_failed = self.order_failed.min(order);
    }

    /// A block of `order` should be free now; `allocated`: it was even had.
    pub fn succeeded(&mut self, order: Order, allocated: bool) {
        if allocated {
            (self.considered, self.shift) = (0, 0);
        }
        if order >= self.order_failed {
            self.order_failed = Order(order.0 + 1);
        }
    }

    /// The next run for `order` is the first one after the longest deferral.
    pub(super) fn is_restarting(&self, order: Order) -> bool {
        order >= self.order_failed && self.shift == DEFER_SHIFT_MAX && self.considered >= (1 << self.shift)
    }
}

#[cfg(test)]
mod tests {
    use std_alloc::vec::Vec;

    use super::*;

    #[test]
    fn each_failure_doubles_the_requests_that_are_put_off_up_to_63() {
        let mut deferral = Deferral::default();
        let put_off: Vec<u32> = (0..8)
            .map(|_| {
                let mut count = 0;
                while deferral.is_deferred(Order(9)) {
                    count += 1;
                }
                deferral.failed(Order(9));
                count
            })
            .collect();
        assert_eq!(put_off, [0, 1, 3, 7, 15, 31, 63, 63]);
        assert!(deferral.is_deferred(Order(1)), "as at boot, no order is known to work");
        deferral.succeeded(Order(9), false);
        assert!(!deferral.is_deferred(Order(9)), "it works again");
        deferral.failed(Order(9));
        assert!(!deferral.is_deferred(Order(8)), "smaller orders did not fail");
        assert!(deferral.is_deferred(Order(9)), "the next failure counts in full");
        deferral.succeeded(Order(9), true);
        assert_eq!(deferral, Deferral { order_failed: Order(10), ..Deferral::default() });
    }
}
