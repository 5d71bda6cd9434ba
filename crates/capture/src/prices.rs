//! What looking at a program costs it on this machine, and what the kernel's own work costs that a replay does again:
//! measured on a child of ours, which is followed as the program will be.

use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use crate::follower::Follower;
use crate::run::{Options, Run, begin};
use crate::sys::{self, Cost, KINDS, MAPPED_PAGES, Notices, READ_MORE};
use trace::OperationKind;

/// What a look costs its task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Toll {
    /// CPU time of its own.
    pub(crate) ran_ns: u64,
    /// Time asleep until we have it, and the way back.
    pub(crate) way_ns: u64,
}

/// All prices, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Prices {
    pub(crate) notice: Toll,
    pub(crate) stop: Toll,
    /// A read or write, and each 1024 bytes of it.
    pub(crate) transfer_ns: u64,
    pub(crate) kilobyte_ns: u64,
    /// An open and its close.
    pub(crate) open_ns: u64,
    /// A page of memory that is written to for the first time; a page of a file that comes into a mapping.
    pub(crate) page_ns: u64,
    pub(crate) file_page_ns: u64,
}

impl Prices {
    /// Of a stop, or a notice.
    pub(crate) const fn toll(&self, stopped: bool) -> Toll {
        if stopped { self.stop } else { self.notice }
    }

    /// What the kernel does for an operation whose end nobody sees.
    pub(crate) const fn of(&self, kind: OperationKind, len: u64) -> u64 {
        match kind {
            OperationKind::Read | OperationKind::Write => {
                self.transfer_ns + (len >> 10).saturating_mul(self.kilobyte_ns)
            }
            OperationKind::Open => self.open_ns,
            _ => 0,
        }
    }

    fn of_costs(costs: &[Cost; KINDS], notices: bool) -> Self {
        let [nothing, stops, byte, large, open, memory, written, file, read] = costs;
        let ran = |cost: &Cost| u64::from(cost.ran_ns);
        let toll = |cost: &Cost, looks: u64| Toll {
            ran_ns: ran(cost) / looks,
            way_ns: u64::from(cost.took_ns.saturating_sub(cost.ran_ns)) / looks,
        };
        let more = |cost: &Cost, than: &Cost, times: u64| ran(cost).saturating_sub(times * ran(than));
        let page = |touched: &Cost, not: &Cost| more(touched, not, 1) / MAPPED_PAGES;
        Self {
            notice: toll(nothing, if notices { 1 } else { 2 }),
            stop: toll(stops, 2),
            transfer_ns: more(byte, nothing, 1),
            kilobyte_ns: more(large, byte, 1) * 1024 / READ_MORE,
            open_ns: more(open, nothing, 2),
            page_ns: page(written, memory),
            file_page_ns: page(read, file),
        }
    }
}

/// Measures them. `every_call`: without a filter, each call stops at both ends. None are known, and all are 0, where
/// no child can be followed: then that will be said of the program itself.
pub(crate) fn measure(every_call: bool) -> Prices {
    let listens = sys::listens() && !every_call;
    let filter = if every_call { Vec::new() } else { crate::filter::filter(listens) };
    let Ok(child) = sys::fork_probe(&filter, listens) else { return Prices::default() };
    let notices = if every_call {
        sys::attach(child.pid, sys::Attached::GoesOn).map(|()| None).map_err(drop)
    } else {
        begin(&child, listens).map_err(drop)
    };
    let Ok(notices) = notices else {
        sys::kill(child.pid);
        sys::reap(child.pid);
        return Prices::default();
    };
    let costs = follow(&child, notices.as_ref(), every_call);
    costs.map_or_else(Prices::default, |costs| Prices::of_costs(&costs, notices.is_some()))
}

fn follow(child: &sys::Child, notices: Option<&Notices>, every_call: bool) -> Option<[Cost; KINDS]> {
    let follower = Mutex::new(Follower::new(every_call, Prices::default()));
    crate::locked(&follower).first(child.pid);
    let signal = AtomicUsize::new(0);
    let options = Options { sample: None, ..Options::default() };
    let (root, is_probe) = (child.pid, true);
    let run = Run { follower: &follower, options: &options, signal: &signal, root, notices, is_probe };
    let start = || {
        if every_call {
            sys::interrupt(child.pid);
        }
        child.run();
    };
    let _ = run.follow(every_call, start, &mut |_| Ok(()));
    let mut costs = [Cost::default(); KINDS];
    for cost in &mut costs {
        *cost = child.cost()?;
    }
    Some(costs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_here_is_of_the_right_size() {
        for every_call in [false, true] {
            let prices = measure(every_call);
            assert!((200..200_000).contains(&prices.stop.ran_ns), "{prices:?}");
            assert!(prices.open_ns > 0, "{prices:?}");
            assert!((50..100_000).contains(&prices.page_ns), "{prices:?}");
        }
    }
}
