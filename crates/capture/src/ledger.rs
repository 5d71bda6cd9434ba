//! Operations in the order in which they began, though some end long after others that began later.
//!
//! An operation that is under way holds back those that began after it; beyond a bound it is written without its
//! end, so that a call that never returns takes no memory.

use std::collections::VecDeque;

use trace::Operation;

/// Operations that are held back at most, waiting for one to end.
const HELD_MAX: usize = 1 << 20;

/// One that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(u64);

#[derive(Debug)]
enum Entry {
    Ended(Operation),
    /// A call that did several things.
    Several(Vec<Operation>),
    UnderWay,
}

/// The operations.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    held: VecDeque<Entry>,
    /// The place of the first that is held.
    first: u64,
    /// In order, to be taken.
    ready: Vec<Operation>,
    /// Calls that were written without their end.
    pub(crate) given_up: u64,
}

impl Ledger {
    /// An operation that has ended.
    pub(crate) fn push(&mut self, operation: Operation) {
        match self.held.is_empty() {
            true => self.ready.push(operation),
            false => self.held.push_back(Entry::Ended(operation)),
        }
        if self.held.len() > HELD_MAX {
            self.given_up += self.held.iter().filter(|entry| matches!(entry, Entry::UnderWay)).count() as u64;
            while self.first_out() {}
        }
    }

    /// A call begins; what it comes to is said by [`Self::end`].
    pub(crate) fn begin(&mut self) -> Place {
        let place = Place(self.first + self.held.len() as u64);
        self.held.push_back(Entry::UnderWay);
        place
    }

    /// What a call came to: maybe nothing.
    pub(crate) fn end(&mut self, place: Place, operations: Vec<Operation>) {
        let index = place.0.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        if let Some(entry) = index.and_then(|index| self.held.get_mut(index)) {
            *entry = Entry::Several(operations);
        }
        while !matches!(self.held.front(), None | Some(Entry::UnderWay)) {
            self.first_out();
        }
    }

    fn first_out(&mut self) -> bool {
        let Some(entry) = self.held.pop_front() else { return false };
        self.first += 1;
        match entry {
            Entry::Ended(operation) => self.ready.push(operation),
            Entry::Several(operations) => self.ready.extend(operations),
            Entry::UnderWay => {}
        }
        true
    }

    /// How many are ready.
    pub(crate) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Those that are ready; with `all`, those behind a call that is still under way, too.
    pub(crate) fn take(&mut self, all: bool) -> Vec<Operation> {
        while all && self.first_out() {}
        std::mem::take(&mut self.ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::OperationKind;

    fn at(at_ns: u64) -> Operation {
        let kind = OperationKind::Sync;
        let object = trace::NONE;
        Operation { at_ns, think_ns: 0, took_ns: 0, task: 0, kind, object, offset: 0, len: 0, detail: 0 }
    }

    fn times(ledger: &mut Ledger, all: bool) -> Vec<u64> {
        ledger.take(all).iter().map(|operation| operation.at_ns).collect()
    }

    #[test]
    fn a_long_call_comes_before_those_that_began_while_it_went_on() {
        let mut ledger = Ledger::default();
        ledger.push(at(1));
        let long = ledger.begin();
        ledger.push(at(3));
        let failed = ledger.begin();
        ledger.push(at(5));
        assert_eq!(times(&mut ledger, false), [1]);
        ledger.end(failed, Vec::new());
        assert_eq!(times(&mut ledger, false), [0_u64; 0]);
        ledger.end(long, vec![at(2)]);
        assert_eq!(times(&mut ledger, false), [2, 3, 5]);
        ledger.begin();
        ledger.push(at(7));
        assert_eq!(times(&mut ledger, true), [7]);
    }

    #[test]
    fn a_call_that_never_ends_holds_back_so_many_and_no_more() {
        let mut ledger = Ledger::default();
        let forever = ledger.begin();
        for at_ns in 0..=HELD_MAX as u64 {
            ledger.push(at(at_ns));
        }
        assert!(ledger.ready() > HELD_MAX / 2);
        assert_eq!(ledger.given_up, 1);
        ledger.end(forever, vec![at(0)]);
        assert!(times(&mut ledger, false).is_sorted());
    }
}
