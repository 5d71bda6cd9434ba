//! What the workers do, one after the other: the steps of a run, and those of one worker among them.
//!
//! The whole order is known before anything runs, so that a worker needs no more than to be told when its next
//! step is due.

use units::Bytes;

use crate::system::Advice;

/// One of the workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// It has the hot memory.
    Hot,
    /// It has the cold memory.
    Cold,
    /// It reads the file.
    Stream,
}

impl Who {
    /// As reclaim walks their groups: in the order in which they are made.
    pub(super) const IN_ORDER_OF_GROUPS: [Self; 3] = [Self::Hot, Self::Cold, Self::Stream];

    /// Their groups in that order, see [`Who::letter`].
    pub(super) const LETTERS: [&'static str; 3] = ["A", "C", "B"];

    /// What its group is called.
    pub(super) const fn letter(self) -> &'static str {
        match self {
            Self::Hot => "A",
            Self::Cold => "C",
            Self::Stream => "B",
        }
    }

    /// What its task is called.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Hot => "hot",
            Self::Cold => "cold",
            Self::Stream => "stream",
        }
    }

    /// What its memory is called in results.
    pub(super) fn memory(self) -> Option<&'static str> {
        (self != Self::Stream).then(|| self.name())
    }
}

/// What a worker does in one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Maps its memory and writes to all of it.
    Map,
    /// Writes one byte to each page.
    Write,
    /// Reads one byte of each page.
    ReadBack,
    /// Counts the pages that are in memory.
    Count,
    /// Advises on all of it.
    Advise(Advice),
    /// Reads a part of the file, which goes on at the start where it ends.
    Read {
        /// Where it begins.
        offset: u64,
        /// Bytes.
        len: u64,
    },
}

/// One step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A worker does something, all others wait.
    Work(Who, Action),
    /// A phase ends.
    Mark(&'static str),
    /// P is asked for room.
    Reclaim(Bytes),
    /// Statistics of all groups are read, and with that made exact.
    Flush,
}

/// What decides the order of steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) steps: &'static str,
    pub(super) every: Bytes,
    pub(super) loops: u64,
    pub(super) flush: bool,
    pub(super) reclaim: Bytes,
    pub(super) file: Bytes,
}

impl Plan {
    /// Who has something to do, in the order of groups.
    pub(super) fn who_works(&self) -> Vec<Who> {
        let streams = match self.steps {
            "loop" => self.every > Bytes(0) && self.loops > 0,
            "reclaim" => true,
            _ => false,
        };
        Who::IN_ORDER_OF_GROUPS.into_iter().filter(|who| *who != Who::Stream || streams).collect()
    }

    /// All steps, in order.
    pub(super) fn script(&self) -> Vec<Step> {
        match self.steps {
            "loop" => self.looping(),
            "pageout" => self.paging_out(),
            _ => self.reclaiming(),
        }
    }

    fn looping(&self) -> Vec<Step> {
        use Action::{Count, Map, Read, Write};
        use Who::{Cold, Hot, Stream};
        let mut script = vec![
            Step::Work(Cold, Map),
            Step::Mark("cold_ready"),
            Step::Work(Hot, Map),
            Step::Work(Hot, Write),
            Step::Mark("hot_ready"),
        ];
        let len = self.every.get();
        for turn in 0..self.loops {
            if len > 0 {
                let offset = turn.wrapping_mul(len) % self.file.get();
                script.push(Step::Work(Stream, Read { offset, len }));
                script.extend(self.flush.then_some(Step::Flush));
            }
            script.push(Step::Work(Hot, Write));
        }
        script.extend([
            Step::Mark("stream_done"),
            Step::Work(Hot, Count),
            Step::Work(Cold, Count),
            Step::Work(Hot, Write),
            Step::Mark("hot_reread"),
            Step::Work(Cold, Write),
            Step::Mark("cold_reread"),
        ]);
        script
    }

    fn paging_out(&self) -> Vec<Step> {
        use Action::{Advise, Count, Map, ReadBack};
        use Who::{Cold, Hot};
        let mut script = vec![
            Step::Work(Cold, Map),
            Step::Mark("cold_ready"),
            Step::Work(Hot, Map),
            Step::Mark("hot_ready"),
            Step::Work(Hot, Advise(Advice::Cold)),
            Step::Mark("cold_advised"),
            Step::Work(Cold, Advise(Advice::PageOut)),
            Step::Work(Cold, Count),
            Step::Mark("paged_out"),
            Step::Work(Cold, ReadBack),
            Step::Mark("cold_read"),
            Step::Work(Cold, Advise(Advice::PageOut)),
            Step::Work(Cold, Count),
            Step::Mark("paged_out_again"),
            Step::Work(Hot, Advise(Advice::Free)),
            Step::Mark("hot_free"),
        ];
        script.extend(self.asking_twice());
        script
    }

    /// Whether it asks for room.
    pub(super) fn asks(&self) -> bool {
        self.steps != "loop"
    }

    fn reclaiming(&self) -> Vec<Step> {
        use Action::{Count, Map, Read, Write};
        use Who::{Cold, Hot, Stream};
        let whole = Read { offset: 0, len: self.file.get() };
        let mut script = vec![
            Step::Work(Cold, Map),
            Step::Work(Hot, Map),
            Step::Work(Stream, whole),
            Step::Work(Stream, whole),
            Step::Work(Hot, Write),
            Step::Mark("filled"),
        ];
        script.extend(self.asking_twice());
        script.extend([
            Step::Work(Hot, Count),
            Step::Work(Cold, Count),
            Step::Work(Hot, Write),
            Step::Mark("hot_reread"),
            Step::Work(Cold, Write),
            Step::Mark("cold_reread"),
        ]);
        script
    }

    fn asking_twice(&self) -> [Step; 4] {
        [
            Step::Reclaim(self.reclaim),
            Step::Mark("reclaimed"),
            Step::Reclaim(Bytes(self.reclaim.get().saturating_mul(2))),
            Step::Mark("reclaimed_again"),
        ]
    }
}

/// What `who` does, in order.
pub(super) fn actions_of(script: &[Step], who: Who) -> Vec<Action> {
    let own = |step: &Step| match *step {
        Step::Work(worker, action) if worker == who => Some(action),
        _ => None,
    };
    script.iter().filter_map(own).collect()
}
