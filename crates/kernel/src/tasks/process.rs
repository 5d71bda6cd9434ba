//! Processes as memory management sees them: a cgroup, some memory of their own, and the OOM
//! killer's verdict. Left out: everything else that a task is. Next: [`super::start`].

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use mm::MemcgId;
use mm::decide::pause::WriterPace;
use units::{Order, Pfn};

use crate::anon::area::{AnonArea, LockedRanges};
use crate::anon::shared_file::SharedFile;
use crate::errno::Errno;
use crate::files::descriptor::OpenFile;

/// A process with this `oom_score_adj` is never killed.
pub const OOM_SCORE_ADJ_MIN: i16 = -1000;

/// Of the pages that a process costs by itself, the first so many are page tables, the next ones its stack.
const OWN_TABLES: usize = 7;
/// Pages of a kernel stack.
pub(crate) const STACK_PAGES: usize = 4;
/// That of a stack in one block.
pub(crate) const STACK_ORDER: Order = Order(STACK_PAGES.trailing_zeros() as u8);

/// Identity of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

/// A process. Clones are handles on one process.
#[derive(Debug, Clone)]
pub struct Process(pub(crate) Rc<ProcessState>);

impl Process {
    /// Its cgroup.
    pub fn memcg(&self) -> MemcgId {
        self.0.memcg.get()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether the OOM killer took it.
    pub fn is_killed(&self) -> bool {
        self.0.killed.get()
    }

    /// Whether it was charged for pages above some limit, and is to pay for them.
    pub(crate) fn owes(&self) -> bool {
        self.0.over_high_pages.get() > 0
    }

    /// How the OOM killer shall see it (`/proc/PID/oom_score_adj`).
    pub fn oom_score_adj(&self) -> i16 {
        self.0.oom_score_adj.get()
    }

    /// Sets how the OOM killer shall see it: thousandths of the memory that it may take from, added to
    /// what it holds; -1000 means never.
    ///
    /// # Errors
    /// `Inval` outside of -1000 to 1000.
    pub fn set_oom_score_adj(&self, adj: i16) -> Result<(), Errno> {
        if !(OOM_SCORE_ADJ_MIN..=-OOM_SCORE_ADJ_MIN).contains(&adj) {
            return Err(Errno::Inval);
        }
        self.0.oom_score_adj.set(adj);
        Ok(())
    }

    /// Mappings whose pages are its own.
    pub(crate) fn own_areas(&self) -> Vec<AnonArea> {
        self.0.anon.borrow().iter().flatten().filter(|area| !area.shared).copied().collect()
    }

    /// Pages of its mappings, present or not.
    pub(crate) fn mapped_pages(&self) -> u64 {
        self.0.mapped.get()
    }

    /// Takes a mapping up, and returns its number.
    pub(crate) fn add_area(&self, area: AnonArea) -> usize {
        self.0.mapped.set(self.mapped_pages() + area.pages);
        let mut areas = self.0.anon.borrow_mut();
        areas.push(Some(area));
        areas.len() - 1
    }

    /// Gives a mapping up; none: it went before.
    pub(crate) fn take_area(&self, number: usize) -> Option<AnonArea> {
        let area = self.0.anon.borrow_mut().get_mut(number).and_then(Option::take)?;
        self.0.mapped.set(self.mapped_pages() - area.pages);
        Some(area)
    }

    /// Page tables: those that it costs by itself, and those of its mappings.
    pub(crate) fn page_tables(&self) -> u64 {
        self.page_table_frames().count() as u64
    }

    /// Whether a child shares a mapping: a private one of which nothing is locked.
    fn is_inherited(&self, mapping: usize, area: &AnonArea) -> bool {
        !area.shared && self.0.locked.borrow().within(mapping, 0..u32::MAX).is_none()
    }

    /// Mappings that a child shares.
    pub(crate) fn inherited_areas(&self) -> Vec<AnonArea> {
        let areas = self.0.anon.borrow();
        let mappings = areas.iter().enumerate().filter_map(|(at, area)| Some((at, area.as_ref()?)));
        mappings.filter(|(at, area)| self.is_inherited(*at, area)).map(|(_, area)| *area).collect()
    }

    /// Page tables of those of them that are anonymous; those of files are made anew by a child's faults.
    pub(crate) fn inherited_tables(&self) -> u32 {
        let areas = self.0.anon.borrow();
        let is_copied =
            |at: usize| areas[at].is_some_and(|area| area.file.is_none() && self.is_inherited(at, &area));
        let tables = self.0.page_tables.borrow();
        let copied = tables.keys().filter(|&&(mapping, _)| is_copied(mapping)).count();
        u32::try_from(copied).expect("fewer than the machine has frames")
    }

    /// Where its page tables lie.
    pub(crate) fn page_table_frames(&self) -> impl Iterator<Item = Pfn> {
        let own = self.0.kernel_pages.borrow();
        let of_mappings = self.0.page_tables.borrow();
        let own = own.iter().take(OWN_TABLES).map(|(pfn, _)| pfn);
        let tables: Vec<Pfn> = own.chain(of_mappings.values()).copied().collect();
        tables.into_iter()
    }

    /// Where its kernel stack lies.
    pub(crate) fn stack_frames(&self) -> impl Iterator<Item = Pfn> {
        let own = self.0.kernel_pages.borrow();
        let stack: Vec<Pfn> = match self.0.stack.get() {
            Some((head, _)) => (head.0..).map(Pfn).take(STACK_PAGES).collect(),
            None => own.iter().skip(OWN_TABLES).take(STACK_PAGES).map(|&(pfn, _)| pfn).collect(),
        };
        stack.into_iter()
    }

    /// Fails if it was killed: checked at every system call.
    pub(crate) fn check_alive(&self) -> Result<(), Errno> {
        if self.is_killed() { Err(Errno::Killed) } else { Ok(()) }
    }
}

#[derive(Debug)]
pub(crate) struct ProcessState {
    pub(crate) id: ProcessId,
    pub(crate) name: String,
    pub(crate) memcg: Cell<MemcgId>,
    pub(crate) killed: Cell<bool>,
    pub(crate) oom_score_adj: Cell<i16>,
    /// Mappings; the first holds the process's own pages. None: unmapped.
    pub(crate) anon: RefCell<Vec<Option<AnonArea>>>,
    /// Their pages.
    pub(crate) mapped: Cell<u64>,
    /// Pages that the kernel has for it, with who pays for each.
    pub(crate) kernel_pages: RefCell<Vec<(Pfn, MemcgId)>>,
    /// The first page of its kernel stack, where that is one block, and who pays for it.
    pub(crate) stack: Cell<Option<(Pfn, MemcgId)>>,
    /// Page tables, by mapping and 2 MiB in it.
    pub(crate) page_tables: RefCell<BTreeMap<(usize, u32), Pfn>>,
    /// The files that it maps, by mapping: they stay open as long.
    pub(crate) mapped_files: RefCell<BTreeMap<usize, OpenFile>>,
    /// The files in memory that it maps, by mapping.
    pub(crate) shared_files: RefCell<BTreeMap<usize, SharedFile>>,
    /// It is in a fault on a file's mapping in which it accesses pages that it reads (`in_lru_fault`).
    pub(crate) in_file_fault: Cell<bool>,
    /// What of its mappings is locked by `mlock`.
    pub(crate) locked: RefCell<LockedRanges>,
    /// Pages charged above some `memory.high` or `memory.swap.high` since the last return to user mode.
    pub(crate) over_high_pages: Cell<u64>,
    pub(crate) pace: Cell<WriterPace>,
}

/// Every living process, by id.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    pub(crate) list: Vec<Process>,
    pub(crate) next: u32,
    /// Somebody was told of the end of one.
    pub(crate) has_reaped: bool,
    /// Stacks of those that ended and were waited for, each in one block, with who pays: a grace period of RCU later
    /// they are free.
    pub(crate) stacks: Vec<(Pfn, MemcgId)>,
}
