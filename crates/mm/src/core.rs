//! What every mechanism stands on: the page allocator, cgroups, slab caches, and swap areas.
//!
//! Parts above borrow it for the length of a step. Neighbours: [`crate::alloc`], [`crate::cgroup`],
//! [`crate::slab`], [`crate::swap`] for its fields; [`crate::memory`] owns it.

use std_alloc::vec::Vec;

use units::{CpuId, NodeId, Order, Pfn};

use crate::alloc::boot::BootError;
use crate::alloc::flags::AllocFlags;
use crate::alloc::page_alloc::PageAllocator;
use crate::base::event::{Detail, Home, PageId, Reason, Trace, TraceEvent};
use crate::base::frame::{ANON_OWNER, NO_OWNER, PageFlags, anon_owner};
use crate::base::gfp::Gfp;
use crate::base::ids::{AnonId, MappingId, MemcgId};
use crate::base::layout::{MemoryLayout, PageTables, ZoneKind};
use crate::base::sysctl::Sysctls;
use crate::base::vmstat::VmEvent;
use crate::cgroup::tree::Memcgs;
use crate::slab::caches::Slabs;
use crate::slab::object::{Object, ObjectAlloc};
use crate::slab::table::SlabPages;
use crate::swap::areas::SwapAreas;
use crate::swap::slot::SwapSlot;
use crate::version::geometry::Cache;
use crate::version::presets::Version;
use crate::version::rules::{Rules, ZramRequests};

/// Frames, those who pay for them, and the objects on them.
#[derive(Debug, Clone)]
pub struct Core<T: Trace> {
    /// Frames, zones, watermarks, free lists.
    pub alloc: PageAllocator<T>,
    /// The cgroup tree with charges and statistics.
    pub cgroups: Memcgs,
    /// Caches of kernel objects.
    pub slabs: Slabs,
    /// Swap areas and their slots.
    pub swap: SwapAreas,
    /// Who walks page tables: hardware, unless a machine says otherwise after boot.
    pub page_tables: PageTables,
    /// Anonymous memory whose page tables lost an access or a page.
    pub aged: Aged,
}

/// Anonymous mappings of which reclaim forgot an access to a page, or took one, since somebody asked: who uses them
/// does something only then.
#[derive(Debug, Clone, Default)]
pub struct Aged {
    /// A bit for each mapping.
    words: Vec<u64>,
    /// How many they are.
    count: u32,
}

impl Aged {
    fn place(anon: AnonId) -> (usize, u64) {
        (anon.0 as usize / 64, 1 << (anon.0 % 64))
    }

    pub(crate) fn note(&mut self, anon: AnonId) {
        let (word, bit) = Self::place(anon);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.count += u32::from(self.words[word] & bit == 0);
        self.words[word] |= bit;
    }

    /// Whether there are any.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether it is one of them; it is none then.
    #[inline]
    pub fn take(&mut self, anon: AnonId) -> bool {
        let (word, bit) = Self::place(anon);
        let Some(word) = self.words.get_mut(word) else { return false };
        let was = *word & bit != 0;
        *word &= !bit;
        self.count -= u32::from(was);
        was
    }
}

impl<T: Trace> Core<T> {
    /// Boots a machine: everything that boot does not keep is free.
    ///
    /// # Errors
    /// A layout that no kernel could run on.
    pub fn boot(
        layout: &MemoryLayout,
        version: Version,
        sysctls: Sysctls,
        trace: T,
    ) -> Result<Self, BootError> {
        let cgroups = Memcgs::new(&version, layout.nodes.len(), usize::from(layout.cpus));
        let alloc = PageAllocator::boot(layout, version, sysctls, trace)?;
        let cpu_nodes = (0..layout.cpus).map(|cpu| alloc.node_of(CpuId(cpu))).collect();
        let slabs = Slabs::new(alloc.tuning(), alloc.rules(), layout.nodes.len(), cpu_nodes);
        let swap = SwapAreas::new(alloc.rules(), usize::from(layout.cpus));
        Ok(Self { alloc, cgroups, slabs, swap, page_tables: PageTables::Hardware, aged: Aged::default() })
    }

    /// The entry of a page, if it is one of anonymous memory, goes or loses its accessed bit.
    #[inline]
    pub(crate) fn note_aged(&mut self, pfn: Pfn) {
        if let Some(anon) = anon_owner(self.alloc.frames.owner(pfn)) {
            self.aged.note(anon);
        }
    }

    /// What this kernel decides, and how.
    #[inline]
    pub fn rules(&self) -> &Rules {
        self.alloc.rules()
    }

    /// Pages go to zram, or come back, which is a request to a disk where the kernel counts it: KiB of `event`.
    pub(crate) fn count_zram(&mut self, event: VmEvent, pages: u64) {
        if self.rules().zram_requests == ZramRequests::Counted {
            self.alloc.events.add(event, pages * (units::PAGE_SIZE / 1024));
        }
    }

    /// Every node.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + use<T> {
        (0..self.alloc.nodes().len()).map(|index| NodeId(u8::try_from(index).expect("8 bits of nodes")))
    }

    /// The cgroup that `pfn` is charged to.
    #[inline]
    pub fn page_memcg(&self, pfn: Pfn) -> MemcgId {
        MemcgId(self.alloc.frames.memcg(pfn))
    }

    /// A page that is not valid yet, or that must stay as it is: `folio_lock`, without its wait.
    #[inline]
    pub fn lock_page(&mut self, pfn: Pfn) {
        self.alloc.frames.set_flags(pfn, PageFlags::LOCKED);
    }

    /// The page may be used again; whoever waits for it is woken by the caller: `folio_unlock`.
    #[inline]
    pub fn unlock_page(&mut self, pfn: Pfn) {
        self.alloc.frames.clear_flags(pfn, PageFlags::LOCKED);
    }

    /// Whoever reads this page starts the next readahead: `folio_set_readahead`.
    #[inline]
    pub fn mark_readahead(&mut self, pfn: Pfn) {
        self.alloc.frames.set_flags(pfn, PageFlags::READAHEAD);
    }

    /// Takes the mark away; returns whether there was one.
    #[inline]
    pub fn take_readahead_mark(&mut self, pfn: Pfn) -> bool {
        let marked = self.alloc.frames.flags(pfn).has(PageFlags::READAHEAD);
        if marked {
            self.alloc.frames.clear_flags(pfn, PageFlags::READAHEAD);
        }
        marked
    }

    /// A page that was charged to `memcg` becomes kernel memory of it.
    pub fn own_kernel_pages(&mut self, memcg: MemcgId, pfn: Pfn, order: Order) {
        self.cgroups.count_kernel_pages(memcg, u64::from(order.pages()));
        self.alloc.frames.set_memcg(pfn, memcg.0);
    }

    /// The zone kind and node of `pfn`.
    #[inline]
    pub(crate) fn page_place(&self, pfn: Pfn) -> (ZoneKind, NodeId) {
        let chunk = self.alloc.chunk(pfn);
        (chunk.kind, chunk.node)
    }

    /// Which page `pfn` is, for an event about it.
    pub fn page_id(&self, pfn: Pfn) -> PageId {
        let frames = &self.alloc.frames;
        let is_anon = frames.flags(pfn).has(PageFlags::SWAP_BACKED) || frames.is_anon(pfn);
        let (home, index) = if is_anon {
            self.anon_home(pfn)
        } else {
            (Home::File(MappingId(frames.owner(pfn))), frames.index(pfn))
        };
        PageId {
            home,
            index,
            memcg: self.page_memcg(pfn),
            node: self.page_place(pfn).1,
            order: frames.order(pfn),
        }
    }

    /// Which mapping an anonymous page belongs to, and where in there: by its page table, or by its slot.
    fn anon_home(&self, pfn: Pfn) -> (Home, u32) {
        let frames = &self.alloc.frames;
        if frames.is_anon(pfn) && frames.owner(pfn) != NO_OWNER {
            return (Home::Anon(AnonId(frames.owner(pfn) & !ANON_OWNER)), frames.index(pfn));
        }
        let in_slot = frames.flags(pfn).has(PageFlags::SWAP_CACHE);
        let told = in_slot.then(|| self.swap.told_owner(SwapSlot(frames.private(pfn)))).flatten();
        told.map_or((Home::Nobody, frames.index(pfn)), |(anon, index)| (Home::Anon(anon), index))
    }

    /// Tells that a program maps anonymous memory.
    pub(crate) fn tell_anon(&mut self, anon: AnonId) {
        if self.alloc.trace.listens(Detail::Page) {
            self.alloc.trace.event(TraceEvent::AnonMapped { anon });
        }
    }

    /// Tells that the page of a slot comes back into the frame `pfn`, if anybody listens.
    pub(crate) fn tell_swapped_in(&mut self, slot: SwapSlot, pfn: Pfn, reason: Reason) {
        if !self.alloc.trace.listens(Detail::Page) {
            return;
        }
        let (_, node) = self.page_place(pfn);
        let (home, index) = match self.swap.told_owner(slot) {
            Some((anon, index)) => (Home::Anon(anon), index),
            None => (Home::Nobody, 0),
        };
        let memcg = self.swap.memcg(slot).unwrap_or(MemcgId::ROOT);
        let page = PageId { home, index, memcg, node, order: Order(0) };
        self.alloc.trace.event(TraceEvent::PageSwappedIn { page, reason });
    }

    /// Tells of what reclaimers do, if anybody listens; if not, the event is not even made.
    #[inline(always)]
    pub fn tell(&mut self, event: impl FnOnce(&Self) -> TraceEvent) {
        if self.alloc.trace.listens(Detail::Reclaim) {
            let event = event(self);
            self.alloc.trace.event(event);
        }
    }

    /// Tells what becomes of a page, if anybody listens.
    #[inline(always)]
    pub fn tell_page(&mut self, pfn: Pfn, event: impl FnOnce(PageId) -> TraceEvent) {
        if self.alloc.trace.listens(Detail::Page) {
            let event = event(self.page_id(pfn));
            self.alloc.trace.event(event);
        }
    }

    /// Tries to allocate an object for a task of `memcg`.
    pub fn alloc_object(&mut self, cpu: CpuId, cache: Cache, memcg: MemcgId) -> ObjectAlloc {
        self.slabs.alloc_object(&mut self.cgroups, cpu, cache, memcg)
    }

    /// Takes an object of the root for whoever frees memory, from the reserves if it must be; none: there is no memory.
    pub(crate) fn take_object(&mut self, cpu: CpuId, cache: Cache) -> Option<Object> {
        loop {
            match self.alloc_object(cpu, cache, MemcgId::ROOT) {
                ObjectAlloc::Done(object) => return Some(object),
                ObjectAlloc::NeedsCharge { .. } => unreachable!("the root is not charged"),
                ObjectAlloc::NeedsSlab => {
                    let (order, mobility) = self.slabs.request(cache);
                    let least = self.slabs.layout(cache).least_order;
                    let gfp = Gfp::KSWAPD_RECLAIM | mobility;
                    let mut block = |order| self.alloc.alloc(cpu, gfp, order, AllocFlags::NO_WATERMARKS).page;
                    let found = block(order).or_else(|| if least < order { block(least) } else { None })?;
                    self.grow_slab(cpu, cache, MemcgId::ROOT, found);
                }
            }
        }
    }

    /// Frees an object, or lets it wait for RCU; returns the pages that came free with it.
    pub fn free_object(&mut self, cpu: CpuId, object: Object) -> u64 {
        self.slabs.free_object(&mut self.alloc, &mut self.cgroups, cpu, object)
    }

    /// Frees what waited for a grace period that is over; returns how many objects those were.
    pub fn grace_period_ended(&mut self, cpu: CpuId) -> u64 {
        self.slabs.grace_period_ended(&mut self.alloc, &mut self.cgroups, cpu)
    }

    /// Hands a block in use to the cache that a task of `memcg` on `cpu` takes objects from; its pages are
    /// charged where they are to be ([`Slabs::slab_payer`]).
    pub fn grow_slab(&mut self, cpu: CpuId, cache: Cache, memcg: MemcgId, pfn: Pfn) {
        let (_, node) = self.page_place(pfn);
        let pages = SlabPages { pfn, order: self.alloc.frames.order(pfn) };
        self.slabs.grow(&mut self.cgroups, cpu, cache, memcg, pages, node);
    }

    /// The node that an object lies on.
    #[inline]
    pub(crate) fn object_node(&self, object: Object) -> NodeId {
        self.slabs.node(object)
    }
}
