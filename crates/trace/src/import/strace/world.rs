//! What a log's tasks have open and mapped, as far as the log tells: descriptors with their positions, ranges of
//! memory, the working directory.
//!
//! Threads share these, a new process has copies: its descriptors share positions with those that they were copied
//! of. Memory is not copied: what a process did to pages that it has from its parent is not told apart.

use std::collections::BTreeMap;

use crate::NONE;

/// An open file, shared by all descriptors that were copied of one another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opened {
    /// The file; [`NONE`] for what is none, such as a directory.
    pub(super) file: u32,
    pub(super) position: u64,
    /// Writes go to the end.
    pub(super) appends: bool,
}

/// A descriptor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Descriptor {
    /// Place in [`World::opened`].
    pub(super) opened: usize,
    /// Closed when another program begins.
    pub(super) until_exec: bool,
}

/// A range of memory, by its first address in a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) len: u64,
    pub(super) mapping: u32,
    /// Where in the mapping it begins.
    pub(super) offset: u64,
}

/// The memory of a process.
#[derive(Debug, Clone, Default)]
pub(super) struct Space {
    ranges: BTreeMap<u64, Range>,
    /// Where the heap ends, once it is known.
    pub(super) heap_end: Option<u64>,
}

impl Space {
    /// Ranges that overlap with what lies between two addresses, each with where it begins.
    fn overlapping(&self, from: u64, end: u64) -> Vec<(u64, Range)> {
        let before = self.ranges.range(..from).next_back();
        let others = self.ranges.range(from..end.max(from));
        let all = before.into_iter().chain(others).map(|(&begin, &range)| (begin, range));
        all.filter(|&(begin, range)| begin < end && begin + range.len > from).collect()
    }

    /// Takes what lies between two addresses out of the space.
    pub(super) fn cut(&mut self, from: u64, end: u64) -> Vec<Range> {
        let mut taken = Vec::new();
        for (begin, range) in self.overlapping(from, end) {
            let stop = begin + range.len;
            let (cut_from, cut_to) = (begin.max(from), stop.min(end));
            self.ranges.remove(&begin);
            let piece = |from: u64, to: u64| Range {
                len: to - from,
                mapping: range.mapping,
                offset: range.offset + (from - begin),
            };
            if begin < cut_from {
                self.ranges.insert(begin, piece(begin, cut_from));
            }
            if cut_to < stop {
                self.ranges.insert(cut_to, piece(cut_to, stop));
            }
            taken.push(piece(cut_from, cut_to));
        }
        taken
    }

    /// The parts of ranges that lie between two addresses.
    pub(super) fn within(&self, from: u64, end: u64) -> Vec<Range> {
        let part = |(begin, range): (u64, Range)| {
            let (first, stop) = (begin.max(from), end.min(begin + range.len));
            Range { len: stop - first, offset: range.offset + (first - begin), ..range }
        };
        self.overlapping(from, end).into_iter().map(part).collect()
    }

    /// Puts a range there; nothing else is.
    pub(super) fn put(&mut self, at: u64, range: Range) {
        if range.len > 0 {
            self.ranges.insert(at, range);
        }
    }
}

/// A task that has not ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Task {
    pub(super) number: u32,
    pub(super) process: u32,
    /// Places in the tables of [`World`].
    pub(super) descriptors: usize,
    pub(super) space: usize,
    pub(super) directory: usize,
}

/// Which parts a new task shares with its maker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Shares {
    /// `CLONE_THREAD`.
    pub(super) process: bool,
    /// `CLONE_FILES`.
    pub(super) descriptors: bool,
    /// `CLONE_VM`.
    pub(super) memory: bool,
    /// `CLONE_FS`.
    pub(super) directory: bool,
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) opened: Vec<Opened>,
    descriptors: Vec<BTreeMap<u64, Descriptor>>,
    spaces: Vec<Space>,
    directories: Vec<Option<String>>,
}

impl World {
    /// What the first task, or one that came from outside, has.
    pub(super) fn stranger(&mut self, number: u32) -> Task {
        self.descriptors.push(BTreeMap::new());
        self.spaces.push(Space::default());
        self.directories.push(None);
        let last = |len: usize| len - 1;
        Task {
            number,
            process: number,
            descriptors: last(self.descriptors.len()),
            space: last(self.spaces.len()),
            directory: last(self.directories.len()),
        }
    }

    /// What a task that `maker` made has.
    pub(super) fn child(&mut self, number: u32, maker: Task, shares: Shares) -> Task {
        let mut child = self.stranger(number);
        if shares.process {
            child.process = maker.process;
        }
        if shares.descriptors {
            child.descriptors = maker.descriptors;
        } else {
            self.descriptors[child.descriptors] = self.descriptors[maker.descriptors].clone();
        }
        if shares.memory {
            child.space = maker.space;
        }
        if shares.directory {
            child.directory = maker.directory;
        } else {
            self.directories[child.directory] = self.directories[maker.directory].clone();
        }
        child
    }

    /// Another program begins in `task`: it has memory and descriptors of its own from now on. Returns the files
    /// whose descriptors were closed by that.
    pub(super) fn exec(&mut self, task: &mut Task) -> Vec<u32> {
        let mut own = self.descriptors[task.descriptors].clone();
        let closed = own.values().filter(|descriptor| descriptor.until_exec);
        let closed: Vec<u32> = closed.map(|descriptor| self.opened[descriptor.opened].file).collect();
        own.retain(|_, descriptor| !descriptor.until_exec);
        let stays = |file: u32| own.values().any(|descriptor| self.opened[descriptor.opened].file == file);
        let closed = closed.into_iter().filter(|&file| file != NONE && !stays(file)).collect();
        self.descriptors.push(own);
        self.spaces.push(Space::default());
        (task.descriptors, task.space) = (self.descriptors.len() - 1, self.spaces.len() - 1);
        closed
    }

    pub(super) fn space(&mut self, task: Task) -> &mut Space {
        &mut self.spaces[task.space]
    }

    pub(super) fn directory(&mut self, task: Task) -> &mut Option<String> {
        &mut self.directories[task.directory]
    }

    pub(super) fn descriptor(&self, task: Task, number: u64) -> Option<Descriptor> {
        self.descriptors[task.descriptors].get(&number).copied()
    }

    pub(super) fn set_descriptor(&mut self, task: Task, number: u64, descriptor: Descriptor) {
        self.descriptors[task.descriptors].insert(number, descriptor);
    }

    /// Numbers of descriptors in a range, in order.
    pub(super) fn numbers(&self, task: Task, from: u64, to: u64) -> Vec<u64> {
        self.descriptors[task.descriptors].range(from..=to.max(from)).map(|(&number, _)| number).collect()
    }

    /// Takes a descriptor away; returns its file if no other descriptor of the process is of it.
    pub(super) fn close(&mut self, task: Task, number: u64) -> Option<u32> {
        let closed = self.descriptors[task.descriptors].remove(&number)?;
        let file = self.opened[closed.opened].file;
        let mut others = self.descriptors[task.descriptors].values();
        let is_last = file != NONE && !others.any(|other| self.opened[other.opened].file == file);
        is_last.then_some(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_where_it_is_taken_back() {
        let mut space = Space::default();
        space.put(100, Range { len: 100, mapping: 1, offset: 0 });
        space.put(300, Range { len: 50, mapping: 2, offset: 8 });
        assert_eq!(space.cut(0, 100), []);
        assert_eq!(
            space.cut(150, 310),
            [Range { len: 50, mapping: 1, offset: 50 }, Range { len: 10, mapping: 2, offset: 8 }]
        );
        assert_eq!(space.cut(120, 130), [Range { len: 10, mapping: 1, offset: 20 }]);
        let left = [(100, 20, 0), (130, 20, 30), (310, 40, 18)];
        let ranges = space.ranges.iter().map(|(&at, range)| (at, range.len, range.offset));
        assert_eq!(ranges.collect::<Vec<_>>(), left);
    }
}
