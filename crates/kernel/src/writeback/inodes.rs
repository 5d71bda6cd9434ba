//! The inodes that have something to write, in the order in which a worker of the flusher takes them
//! (MECHANISMS 10.4).
//!
//! ```text
//!   became dirty --> dirty list --old enough--> io list --its turn--> a chunk is written
//!                                                  ^                         |
//!                                                  +----- more-io list <-----+ pages left
//! ```
//! An inode is on one list at most. Left out: a list for inodes whose times alone are dirty. Next:
//! [`super::flusher`].

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use mm::MemcgId;
use units::Nanos;

use crate::files::inode::{DirtyList, Inode};
use crate::machine::QueueId;

/// The inodes with something to write, in the order in which the flusher takes them.
#[derive(Debug, Default)]
pub(crate) struct DirtyInodes {
    dirty: VecDeque<Rc<Inode>>,
    io: VecDeque<Rc<Inode>>,
    more_io: VecDeque<Rc<Inode>>,
    /// A chunk of these is being written: they are on no list.
    writing: Vec<Rc<Inode>>,
}

impl DirtyInodes {
    /// An inode has something to write since `now`; nothing changes if it had before.
    pub(crate) fn note_dirty(&mut self, inode: &Rc<Inode>, now: Nanos) {
        if inode.list.get() == DirtyList::None {
            inode.dirtied_when.set(now);
            self.put_last(inode, DirtyList::Dirty);
        }
    }

    /// Puts an inode that was being written on a list, last.
    pub(crate) fn put_last(&mut self, inode: &Rc<Inode>, list: DirtyList) {
        inode.list.set(list);
        self.writing.retain(|other| !Rc::ptr_eq(other, inode));
        match list {
            DirtyList::Dirty => self.dirty.push_back(Rc::clone(inode)),
            DirtyList::MoreIo => self.more_io.push_back(Rc::clone(inode)),
            DirtyList::Io | DirtyList::None | DirtyList::Writing => {}
        }
    }

    /// If nothing is left of the last round, makes ready what had a turn already, then what was dirtied up to `cutoff`
    /// (`queue_io`).
    pub(crate) fn queue_io(&mut self, cutoff: Nanos) {
        if !self.io.is_empty() {
            return;
        }
        while let Some(inode) = self.more_io.pop_front() {
            inode.list.set(DirtyList::Io);
            self.io.push_back(inode);
        }
        while self.dirty.front().is_some_and(|inode| inode.dirtied_when.get() <= cutoff) {
            let inode = self.dirty.pop_front().expect("just seen");
            inode.list.set(DirtyList::Io);
            self.io.push_back(inode);
        }
    }

    /// The next one to be written now; it is being written from here on.
    pub(crate) fn next(&mut self) -> Option<Rc<Inode>> {
        let inode = self.io.pop_front()?;
        inode.list.set(DirtyList::Writing);
        self.writing.push(Rc::clone(&inode));
        Some(inode)
    }

    /// Whether nothing is dirty, nor just being written.
    pub(crate) fn is_empty(&self) -> bool {
        let lists = [&self.dirty, &self.io, &self.more_io];
        lists.iter().all(|list| list.is_empty()) && self.writing.is_empty()
    }

    /// Every inode with something to write: what is being written, then as they will be.
    pub(crate) fn all(&self) -> Vec<Rc<Inode>> {
        self.writing.iter().chain(&self.io).chain(&self.more_io).chain(&self.dirty).cloned().collect()
    }
}

/// What is written for a cgroup on a disk, or for all where cgroups are not told apart (`struct bdi_writeback`).
#[derive(Debug, Default)]
pub(crate) struct Worker {
    pub(crate) inodes: DirtyInodes,
    /// A writer found a background threshold exceeded.
    pub(crate) is_asked: bool,
    /// When it looks by itself what there is to do: `dirty_writeback_centisecs` after the first inode became dirty, and
    /// after each look that left one.
    pub(crate) looks_at: Option<Nanos>,
    pub(crate) last_old_flush: Nanos,
}

/// What the flusher of a disk was asked for, and the writes that are on their way there.
#[derive(Debug)]
pub(crate) struct Flusher {
    /// What its thread waits on.
    pub(crate) queue: QueueId,
    pub(crate) workers: BTreeMap<MemcgId, Worker>,
    /// Reclaim wants so many pages written at most (`wakeup_flusher_threads`).
    pub(crate) kicked: Option<u64>,
    pub(crate) requests: u32,
    /// Runs of pages in the making and on their way.
    pub(crate) runs: u32,
}

impl Flusher {
    pub(crate) fn new(queue: QueueId) -> Self {
        Self { queue, workers: BTreeMap::new(), kicked: None, requests: 0, runs: 0 }
    }

    pub(crate) fn worker(&mut self, memcg: MemcgId) -> &mut Worker {
        self.workers.entry(memcg).or_default()
    }

    /// Whether nothing is dirty.
    pub(crate) fn is_idle(&self) -> bool {
        self.workers.values().all(|worker| worker.inodes.is_empty())
    }

    /// Every inode with something to write.
    pub(crate) fn all_inodes(&self) -> Vec<Rc<Inode>> {
        self.workers.values().flat_map(|worker| worker.inodes.all()).collect()
    }

    /// When the next worker looks by itself.
    pub(crate) fn next_look(&self) -> Option<Nanos> {
        self.workers.values().filter_map(|worker| worker.looks_at).min()
    }

    /// The cgroups whose workers are asked, or look by themselves now; where all are kicked, all.
    pub(crate) fn due(&self, now: Nanos, all: bool) -> Vec<MemcgId> {
        let is_due = |worker: &Worker| all || worker.is_asked || worker.looks_at.is_some_and(|at| at <= now);
        self.workers.iter().filter(|(_, worker)| is_due(worker)).map(|(&memcg, _)| memcg).collect()
    }
}

#[cfg(test)]
mod tests {
    use mm::base::ids::MappingId;

    use super::*;

    fn inode(number: u32) -> Rc<Inode> {
        Rc::new(Inode::new(number, MappingId(number), 0))
    }

    pub(crate) fn order(inodes: &mut DirtyInodes) -> Vec<u32> {
        std::iter::from_fn(|| inodes.next()).map(|inode| inode.number).collect()
    }

    #[test]
    fn inodes_are_written_in_the_order_in_which_they_became_dirty() {
        let mut inodes = DirtyInodes::default();
        let files: Vec<Rc<Inode>> = (1..=4).map(inode).collect();
        for (time, file) in (10..).zip(&files) {
            inodes.note_dirty(file, Nanos(time));
        }
        inodes.note_dirty(&files[0], Nanos(99)); // Dirty already: keeps its place and age.
        inodes.queue_io(Nanos(12));
        assert_eq!(order(&mut inodes), [1, 2, 3], "the last is too young");
        inodes.put_last(&files[1], DirtyList::MoreIo);
        inodes.put_last(&files[0], DirtyList::None);
        inodes.queue_io(Nanos(13));
        assert_eq!(order(&mut inodes), [2, 4], "what had a turn goes before what is new");
    }
}
