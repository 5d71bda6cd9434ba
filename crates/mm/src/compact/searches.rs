//! What a run of compaction remembers of its searches through the lists of free blocks, see
//! [`crate::compact::search`].

use units::Order;

/// Pages that are isolated at a time (`COMPACT_CLUSTER_MAX`).
pub(super) const COMPACT_CLUSTER_MAX: u32 = 32;

/// What a run remembers of its searches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Searches {
    /// The order at which the next search for targets begins.
    order: Order,
    /// Failures since the last success.
    failures: u32,
    /// The lowest frame that a search for sources found, until one fails: the scan starts there.
    lowest: Lowest,
}

#[derive(Debug, Clone, Copy)]
enum Lowest {
    Unknown,
    At(u32),
    Used,
}

impl Searches {
    pub(super) const fn new(order: Order) -> Self {
        Self { order, failures: 0, lowest: Lowest::Unknown }
    }

    /// Entries of lists that a search looks at (`freelist_scan_limit`).
    pub(super) fn limit(&self) -> u32 {
        (COMPACT_CLUSTER_MAX >> self.failures.min(15)) + 1
    }

    /// A source was found at this frame.
    pub(super) fn source_found(&mut self, at: u32) {
        self.failures = 0;
        self.lowest = match self.lowest {
            Lowest::Unknown => Lowest::At(at),
            Lowest::At(lowest) => Lowest::At(lowest.min(at)),
            Lowest::Used => Lowest::Used,
        };
    }

    /// No source was found: where the scan starts instead.
    pub(super) fn source_failed(&mut self) -> Option<u32> {
        self.failures += 1;
        match core::mem::replace(&mut self.lowest, Lowest::Used) {
            Lowest::At(lowest) => Some(lowest),
            other => {
                self.lowest = other;
                None
            }
        }
    }

    /// A target of this order was found where it is preferred.
    pub(super) fn target_found(&mut self, order: Order) {
        (self.failures, self.order) = (0, order);
    }

    /// No order had a target, for a block of `wanted`.
    pub(super) fn target_failed(&mut self, wanted: Order) {
        self.failures += 1;
        self.order = Order(if self.order == Order(0) { wanted.0 } else { self.order.0 } - 1);
    }

    /// The orders that a search for targets goes through: down from the last one that had some, then from the top
    /// (`next_search_order`).
    pub(super) fn orders(&mut self, wanted: Order) -> impl Iterator<Item = Order> + use<> {
        let top = wanted.0 - 1;
        self.order = self.order.min(Order(top));
        let from = self.order.0;
        (0..=from).rev().chain(((from + 1)..=top).rev()).map(Order)
    }
}
