//! The per-CPU batches in front of the LRU lists, and what an access does to a page on the classic
//! two lists (MECHANISMS 6.1 to 6.3, MECHANISMS-6X 2.3 and 2.4).
//!
//! ```text
//!   new file page --> [batch of 15 or 31] --> inactive head
//!   second access --> [activate batch]    --> active head
//! ```
//!
//! Pages in a batch are on no list. Under generations an access counts and moves nothing
//! ([`crate::lru::mglru::access`]), as it does where file pages are on queues ([`crate::lru::queues`]). Pages that
//! are given up have a batch like that of activations. Left out: rotation batches. Neighbours:
//! [`crate::lru::lists`], [`crate::lru::mlock`].

use units::{CpuId, Pfn};

use crate::base::event::{Detail, Reason, Trace, TraceEvent};
use crate::base::frame::{FrameState, PageFlags};
use crate::base::vmstat::{MemcgStat, VmEvent};
use crate::core::Core;
use crate::lru::cost::is_noted;
use crate::lru::lists::{Lru, LruList, RUN_LEAST};
use crate::lru::mglru::access;
use crate::lru::queues;
use crate::version::rules::{LruKind, WriteAccess};

impl Lru {
    /// The folios in the batch of `cpu` on their way to a list, the oldest first.
    pub fn add_batch(&self, cpu: CpuId) -> &[Pfn] {
        &self.cpus[cpu.index()].add
    }

    /// The folios in the batches of all CPUs on their way to a list.
    pub(crate) fn add_batches(&self) -> impl Iterator<Item = Pfn> + '_ {
        self.cpus.iter().flat_map(|cpu| cpu.add.iter().copied())
    }

    /// `folio_add_lru`: queues a new page for the list that its flags name. The batch is flushed
    /// when it is full, and at once for a large folio.
    pub fn add<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, pfn: Pfn) {
        self.tell_added(core, &[pfn]);
        core.alloc.frames.set_state(pfn, FrameState::Batch);
        let limit = usize::from(core.alloc.tuning().lru_batch);
        let large = core.alloc.frames.pages(pfn) > 1;
        let batch = &mut self.cpus[cpu.index()].add;
        batch.push(pfn);
        if large || batch.len() >= limit {
            self.flush_add_batch(core, cpu);
        }
    }

    /// [`Self::add`] for single pages that are [`FrameState::Batch`] already, one after the other.
    pub(crate) fn add_singles<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, pages: &[Pfn]) {
        self.tell_added(core, pages);
        let limit = usize::from(core.alloc.tuning().lru_batch);
        let mut rest = pages;
        while !rest.is_empty() {
            let batch = &mut self.cpus[cpu.index()].add;
            let (next, behind) = rest.split_at(rest.len().min(limit.saturating_sub(batch.len()).max(1)));
            batch.extend_from_slice(next);
            if batch.len() >= limit {
                self.flush_add_batch(core, cpu);
            }
            rest = behind;
        }
    }

    fn flush_add_batch<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId) {
        let mut batch = core::mem::take(&mut self.cpus[cpu.index()].add);
        let wants_each = core.alloc.trace.listens(Detail::Page) || core.alloc.goes_one_by_one();
        let by_runs = !wants_each && !is_noted(core);
        let mut next = 0;
        while next < batch.len() {
            let is_worth_it = by_runs && batch.len() - next >= RUN_LEAST;
            let run = if is_worth_it { self.insert_run(core, &batch[next..], FrameState::Batch) } else { 0 };
            next += run;
            let Some(&pfn) = batch.get(next).filter(|_| run == 0) else { continue };
            next += 1;
            // A page that was removed while it waited here is marked by its state.
            if core.alloc.frames.state(pfn) == FrameState::Batch {
                self.cull(core, pfn);
                self.insert(core, pfn);
                self.note_batched(core, pfn);
                if core.alloc.trace.listens(Detail::Page) {
                    let active = self.is_active(core, pfn);
                    core.tell_page(pfn, |page| TraceEvent::LruInsertion { page, active });
                }
            }
        }
        batch.clear();
        self.cpus[cpu.index()].add = batch;
    }

    /// Whether statistics count a listed page as active.
    fn is_active<T: Trace>(&self, core: &Core<T>, pfn: Pfn) -> bool {
        let (flags, (_, node)) = (core.alloc.frames.flags(pfn), core.page_place(pfn));
        match self.lruvec(core.page_memcg(pfn), node).gens() {
            Some(gens) => !flags.has(PageFlags::UNEVICTABLE) && gens.is_active(access::generation(flags)),
            None => flags.has(PageFlags::ACTIVE),
        }
    }

    fn flush_activate_batch<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId) {
        let mut batch = core::mem::take(&mut self.cpus[cpu.index()].activate);
        for pfn in batch.drain(..) {
            core.alloc.frames.clear_flags(pfn, PageFlags::ACTIVATING);
            self.activate_now(core, pfn);
        }
        self.cpus[cpu.index()].activate = batch;
    }

    fn activate_now<T: Trace>(&mut self, core: &mut Core<T>, pfn: Pfn) {
        let flags = core.alloc.frames.flags(pfn);
        let settled = core.alloc.frames.state(pfn) == FrameState::Lru;
        if !settled || flags.has_any(PageFlags::ACTIVE.set(PageFlags::UNEVICTABLE)) {
            return;
        }
        self.relist(core, pfn, flags.set(PageFlags::ACTIVE));
        self.note_batched(core, pfn);
        let pages = u64::from(core.alloc.frames.pages(pfn));
        let (_, node) = core.page_place(pfn);
        core.alloc.events.add(VmEvent::PgActivate, pages);
        core.cgroups.add_stat(core.page_memcg(pfn), node, MemcgStat::PgActivate, pages);
        let reason = Reason::Activated;
        core.tell_page(pfn, |page| TraceEvent::LruActivate { page, reason, scan: None });
    }

    /// `lru_add_drain_cpu`: empties the batches of `cpu` onto the lists.
    pub fn drain<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId) {
        if !self.cpus[cpu.index()].add.is_empty() {
            self.flush_add_batch(core, cpu);
        }
        if !self.cpus[cpu.index()].activate.is_empty() {
            self.flush_activate_batch(core, cpu);
        }
        if !self.cpus[cpu.index()].given_up.is_empty() {
            self.flush_given_up(core, cpu);
        }
    }

    /// `lru_add_drain_all`.
    pub fn drain_all<T: Trace>(&mut self, core: &mut Core<T>) {
        for index in 0..self.cpus.len() {
            self.drain(core, CpuId(u16::try_from(index).expect("CPUs are numbered in 16 bits")));
        }
    }

    /// `folio_mark_accessed`, for an access through `read`: the first one sets Referenced, the second
    /// one activates an inactive page.
    pub fn mark_accessed<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, pfn: Pfn) {
        self.tell_accessed(core, pfn);
        let flags = core.alloc.frames.flags(pfn);
        if core.rules().lru == LruKind::Generations {
            core.alloc.frames.put_flags(pfn, access::touched(flags, core.rules().gen_access));
            let first = !flags.has(PageFlags::REFERENCED);
            tell_access(core, pfn, if first { Reason::Referenced } else { Reason::Counted });
            return;
        }
        if queues::has_queues(core.rules().lru) && LruList::of(flags).is_file() {
            core.alloc.frames.put_flags(pfn, queues::touched(flags));
            let first = !flags.has(PageFlags::REFERENCED);
            tell_access(core, pfn, if first { Reason::Referenced } else { Reason::Counted });
            return;
        }
        if !flags.has(PageFlags::REFERENCED) {
            core.alloc.frames.set_flags(pfn, PageFlags::REFERENCED);
            tell_access(core, pfn, Reason::Referenced);
            return;
        }
        if flags.has_any(PageFlags::ACTIVE.set(PageFlags::UNEVICTABLE)) {
            let is_unevictable = flags.has(PageFlags::UNEVICTABLE);
            tell_access(core, pfn, if is_unevictable { Reason::Unevictable } else { Reason::AlreadyActive });
            return;
        }
        match core.alloc.frames.state(pfn) {
            FrameState::Lru => {
                tell_access(core, pfn, Reason::Activated);
                self.activate(core, cpu, pfn);
            }
            // Still in an add batch: it goes straight to the active list, if the batch is ours.
            FrameState::Batch if self.cpus[cpu.index()].add.contains(&pfn) => {
                core.alloc.frames.set_flags(pfn, PageFlags::ACTIVE);
                tell_access(core, pfn, Reason::ActivatedInBatch);
            }
            _ => tell_access(core, pfn, Reason::InOtherBatch),
        }
        core.alloc.frames.clear_flags(pfn, PageFlags::REFERENCED);
        self.age_on_activation(core, pfn);
    }

    /// Whether the first access to a page does no more than to mark it, and nobody wants to hear of it.
    #[inline]
    pub(crate) fn marks_first_access<T: Trace>(&self, core: &Core<T>) -> bool {
        let is_heard = self.has_policies() || core.alloc.trace.listens(Detail::Page);
        core.rules().lru == LruKind::TwoLists && !is_heard
    }

    /// A buffered write to a page: see [`WriteAccess`].
    pub fn mark_written<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, pfn: Pfn) {
        match core.rules().write_access {
            WriteAccess::None => {}
            WriteAccess::Access => self.mark_accessed(core, cpu, pfn),
        }
    }

    /// `folio_activate`: through the CPU's batch.
    pub(crate) fn activate<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, pfn: Pfn) {
        let limit = usize::from(core.alloc.tuning().lru_batch);
        let large = core.alloc.frames.pages(pfn) > 1;
        if core.alloc.frames.flags(pfn).has(PageFlags::ACTIVATING) {
            return;
        }
        core.alloc.frames.set_flags(pfn, PageFlags::ACTIVATING);
        let batch = &mut self.cpus[cpu.index()].activate;
        batch.push(pfn);
        if large || batch.len() >= limit {
            self.flush_activate_batch(core, cpu);
        }
    }

    /// A page of anonymous memory is given up (`folio_mark_lazyfree`): through the CPU's batch to the inactive
    /// list of file pages. One that is on no list, or waits in a batch already, stays what it is.
    pub(crate) fn give_up<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, pfn: Pfn) {
        let flags = core.alloc.frames.flags(pfn);
        let settled = core.alloc.frames.state(pfn) == FrameState::Lru;
        let other = PageFlags::UNEVICTABLE.set(PageFlags::ACTIVATING);
        if !settled || !flags.has(PageFlags::SWAP_BACKED) || flags.has_any(other) {
            return;
        }
        core.alloc.frames.set_flags(pfn, PageFlags::ACTIVATING);
        let limit = usize::from(core.alloc.tuning().lru_batch);
        let large = core.alloc.frames.pages(pfn) > 1;
        let batch = &mut self.cpus[cpu.index()].given_up;
        batch.push(pfn);
        if large || batch.len() >= limit {
            self.flush_given_up(core, cpu);
        }
    }

    fn flush_given_up<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId) {
        let mut batch = core::mem::take(&mut self.cpus[cpu.index()].given_up);
        for pfn in batch.drain(..) {
            core.alloc.frames.clear_flags(pfn, PageFlags::ACTIVATING);
            let flags = core.alloc.frames.flags(pfn);
            let settled = core.alloc.frames.state(pfn) == FrameState::Lru;
            if !settled || flags.has_any(PageFlags::UNEVICTABLE.set(PageFlags::SWAP_CACHE)) {
                continue;
            }
            let plain =
                flags.clear(PageFlags::SWAP_BACKED).clear(PageFlags::ACTIVE).clear(PageFlags::REFERENCED);
            self.relist(core, pfn, plain);
            let pages = u64::from(core.alloc.frames.pages(pfn));
            let (_, node) = core.page_place(pfn);
            core.alloc.events.add(VmEvent::PgLazyFree, pages);
            core.cgroups.add_stat(core.page_memcg(pfn), node, MemcgStat::PgLazyFree, pages);
        }
        self.cpus[cpu.index()].given_up = batch;
    }

    /// Forgets a page that waits in some batch: it is being freed.
    fn forget_batched(&mut self, pfn: Pfn) {
        for cpu in &mut self.cpus {
            cpu.add.retain(|&other| other != pfn);
            cpu.activate.retain(|&other| other != pfn);
            cpu.given_up.retain(|&other| other != pfn);
        }
    }

    /// Takes a page that is being freed off its list or out of its batch.
    pub(crate) fn detach<T: Trace>(&mut self, core: &mut Core<T>, pfn: Pfn) {
        self.tell_removed(core, pfn);
        if core.alloc.frames.flags(pfn).has(PageFlags::MLOCKED) {
            self.forget_locked(core, pfn);
        }
        match core.alloc.frames.state(pfn) {
            FrameState::Lru => {
                self.remove(core, pfn);
                if core.alloc.frames.flags(pfn).has(PageFlags::ACTIVATING) {
                    self.forget_batched(pfn);
                }
            }
            FrameState::Batch => self.forget_batched(pfn),
            _ => {}
        }
        core.alloc.frames.set_state(pfn, FrameState::InUse);
    }
}

#[inline(always)]
fn tell_access<T: Trace>(core: &mut Core<T>, pfn: Pfn, reason: Reason) {
    core.tell_page(pfn, |page| TraceEvent::PageAccessed { page, reason });
}
