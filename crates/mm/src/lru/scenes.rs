//! Lists, batches and ages on a machine of two nodes with two zones each: what is counted where
//! (MECHANISMS 6.1 to 6.3, 7).
//!
//! Neighbours: drawings of lists and a model of the textbook's two lists are in the tests beside `src`.

use std_alloc::vec;
use std_alloc::vec::Vec;

use units::{CpuId, NodeId, Order, Pages, Pfn};

use crate::alloc::flags::AllocFlags;
use crate::base::event::NoTrace;
use crate::base::frame::{FrameState, PageFlags};
use crate::base::gfp::Gfp;
use crate::base::ids::MemcgId;
use crate::base::layout::{HugeSupport, MemoryLayout, NodeLayout, ZoneKind, ZoneLayout};
use crate::base::sysctl::Sysctls;
use crate::base::vmstat::{MemcgStat, VmEvent};
use crate::core::Core;
use crate::lru::lists::LruList::{self, ActiveAnon, ActiveFile, InactiveAnon, InactiveFile, Unevictable};
use crate::lru::lists::{Lru, Lruvec};
use crate::lru::workingset::{AGE_MASK, Shadow};
use crate::version::presets::Version;

pub(super) const ROOT: MemcgId = MemcgId::ROOT;
/// A CPU of the first node, and one of the second.
pub(super) const CPU: CpuId = CpuId(0);
const FAR: CpuId = CpuId(1);
pub(super) const NEAR_NODE: NodeId = NodeId(0);
const FAR_NODE: NodeId = NodeId(1);
const SINGLE: Order = Order(0);

pub(super) struct Machine {
    pub(super) core: Core<NoTrace>,
    pub(super) lru: Lru,
    /// Cgroups P, its child P/A, and B.
    pub(super) groups: [MemcgId; 3],
}

impl Machine {
    pub(super) fn boot(kernel: &str) -> Self {
        let zones = [ZoneKind::Dma, ZoneKind::Normal].map(|kind| ZoneLayout::new(kind, Pages(4096))).to_vec();
        let nodes = vec![NodeLayout { zones: zones.clone() }, NodeLayout { zones }];
        let layout = MemoryLayout { nodes, cpus: 2, huge_pages: HugeSupport::Off };
        let version = Version::parse(kernel).unwrap();
        let mut core = Core::boot(&layout, version, Sysctls::default(), NoTrace).unwrap();
        let mut lru = Lru::new(2, 2);
        let parent = core.cgroups.create(ROOT, "P");
        let groups = [parent, core.cgroups.create(parent, "A"), core.cgroups.create(ROOT, "B")];
        groups.iter().for_each(|_| lru.add_cgroup());
        Self { core, lru, groups }
    }

    /// A page in use of `memcg` from the node of `cpu`, from the DMA zone if `dma`.
    pub(super) fn block(&mut self, cpu: CpuId, memcg: MemcgId, order: Order, dma: bool) -> Pfn {
        let gfp = if dma { Gfp(Gfp::HIGHUSER_MOVABLE.0 | Gfp::DMA.0) } else { Gfp::HIGHUSER_MOVABLE };
        let pfn = self.core.alloc.alloc(cpu, gfp, order, AllocFlags::NO_WATERMARKS).page.unwrap();
        self.core.alloc.frames.set_memcg(pfn, memcg.0);
        pfn
    }

    pub(super) fn page(&mut self, memcg: MemcgId) -> Pfn {
        self.block(CPU, memcg, SINGLE, false)
    }

    /// New pages on the head of the inactive file list, the first one added first.
    fn listed(&mut self, memcg: MemcgId, count: usize) -> Vec<Pfn> {
        let pages: Vec<Pfn> = (0..count).map(|_| self.page(memcg)).collect();
        pages.iter().for_each(|&pfn| self.lru.insert(&mut self.core, pfn));
        pages
    }

    /// Pages of a list from head to tail.
    fn drawn(&self, memcg: MemcgId, list: LruList) -> Vec<Pfn> {
        self.lru.lruvec(memcg, NEAR_NODE).list(list).iter(&self.core.alloc.frames).collect()
    }

    pub(super) fn near(&self, memcg: MemcgId) -> &Lruvec {
        self.lru.lruvec(memcg, NEAR_NODE)
    }

    pub(super) fn add(&mut self, cpu: CpuId, pfn: Pfn) {
        self.lru.add(&mut self.core, cpu, pfn);
    }

    fn access(&mut self, cpu: CpuId, pfn: Pfn) {
        self.lru.mark_accessed(&mut self.core, cpu, pfn);
    }

    fn flags(&self, pfn: Pfn) -> PageFlags {
        self.core.alloc.frames.flags(pfn)
    }

    pub(super) fn set(&mut self, pfn: Pfn, flags: PageFlags) {
        self.core.alloc.frames.set_flags(pfn, flags);
    }

    fn state(&self, pfn: Pfn) -> FrameState {
        self.core.alloc.frames.state(pfn)
    }

    pub(super) fn event(&self, event: VmEvent) -> u64 {
        self.core.alloc.events.get(event)
    }

    pub(super) fn stat(&self, memcg: MemcgId, stat: MemcgStat) -> u64 {
        self.core.cgroups.local_stat(memcg, NEAR_NODE, stat)
    }

    pub(super) fn evict(&mut self, pfn: Pfn, target: MemcgId) -> Shadow {
        self.lru.evict_shadow(&self.core, pfn, target)
    }

    pub(super) fn refault(&mut self, pfn: Pfn, shadow: Shadow) -> bool {
        self.lru.refault(&mut self.core, pfn, shadow);
        self.flags(pfn).has(PageFlags::ACTIVE)
    }

    /// Ages of the lists of the root, P, P/A and B on the first node.
    fn ages(&self) -> [u64; 4] {
        let [parent, child, other] = self.groups;
        [ROOT, parent, child, other].map(|memcg| self.near(memcg).age())
    }
}

// ---- lists ----

#[test]
fn flags_name_the_list() {
    let (anon, active) = (PageFlags::SWAP_BACKED, PageFlags::ACTIVE);
    for (flags, list, is_file, is_active, stat) in [
        (PageFlags::REFERENCED, InactiveFile, true, false, MemcgStat::InactiveFile),
        (active, ActiveFile, true, true, MemcgStat::ActiveFile),
        (anon, InactiveAnon, false, false, MemcgStat::InactiveAnon),
        (anon.set(active), ActiveAnon, false, true, MemcgStat::ActiveAnon),
        (PageFlags::UNEVICTABLE.set(active), Unevictable, false, false, MemcgStat::Unevictable),
    ] {
        assert_eq!(LruList::of(flags), list);
        assert_eq!((list.is_file(), list.is_active(), list.stat()), (is_file, is_active, stat), "{list:?}");
    }
}

#[test]
fn a_page_is_counted_for_its_list_zone_node_and_cgroup() {
    let mut machine = Machine::boot("linux-6.1");
    let [_, group, other] = machine.groups;
    for (cpu, order, dma) in [(CPU, 0, false), (CPU, 2, false), (CPU, 1, true), (FAR, 3, false)] {
        let pfn = machine.block(cpu, group, Order(order), dma);
        machine.lru.insert(&mut machine.core, pfn);
    }
    let (near, far) = (machine.near(group), machine.lru.lruvec(group, FAR_NODE));
    let sizes = |lruvec: &Lruvec| ZoneKind::ALL.map(|kind| lruvec.size(InactiveFile, kind));
    assert_eq!(sizes(near), [2, 2, 7, 7], "each zone with those below it");
    assert_eq!(near.by_zone(InactiveFile), &[2, 0, 5, 0]);
    assert_eq!(sizes(far), [0, 0, 8, 8]);
    let lru = &machine.lru;
    assert_eq!([NEAR_NODE, FAR_NODE].map(|node| lru.node_pages(InactiveFile, node)), [7, 8]);
    assert_eq!(lru.zone_pages(InactiveFile, NEAR_NODE, ZoneKind::Dma), 2);
    assert_eq!(lru.zone_pages(InactiveFile, FAR_NODE, ZoneKind::Normal), 8);
    assert_eq!((lru.pages(InactiveFile), lru.pages(ActiveFile)), (15, 0));
    assert_eq!(machine.stat(group, MemcgStat::InactiveFile), 7);
    assert_eq!(machine.near(other).size(InactiveFile, ZoneKind::Movable), 0);
    // Every cgroup has lists of its own on every node.
    let mut machine = Machine::boot("linux-6.1");
    let [parent, child, other] = machine.groups;
    let places = [ROOT, parent, child, other].map(|group| [(group, CPU), (group, FAR)]).concat();
    for (pages, &(group, cpu)) in (1..).zip(&places) {
        for _ in 0..pages {
            let pfn = machine.block(cpu, group, SINGLE, false);
            machine.lru.insert(&mut machine.core, pfn);
        }
    }
    let size = |&(group, cpu): &(MemcgId, CpuId)| {
        machine.lru.lruvec(group, machine.core.alloc.node_of(cpu)).size(InactiveFile, ZoneKind::Movable)
    };
    assert_eq!(places.iter().map(size).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn new_pages_go_to_the_head_and_rotated_ones_to_the_tail() {
    let mut machine = Machine::boot("linux-6.1");
    let first = machine.listed(ROOT, 2);
    let rotated = machine.page(ROOT);
    machine.lru.insert_tail(&mut machine.core, rotated);
    assert_eq!(machine.drawn(ROOT, InactiveFile), [first[1], first[0], rotated]);
    assert_eq!(machine.state(rotated), FrameState::Lru);
}

#[test]
fn a_page_taken_off_its_list_is_counted_no_more() {
    let mut machine = Machine::boot("linux-6.1");
    let [group, ..] = machine.groups;
    let pages = machine.listed(group, 3);
    machine.lru.remove(&mut machine.core, pages[1]);
    assert_eq!(machine.drawn(group, InactiveFile), [pages[2], pages[0]]);
    assert_eq!(machine.state(pages[1]), FrameState::Isolated);
    assert_eq!(machine.near(group).size(InactiveFile, ZoneKind::Movable), 2);
    assert_eq!(machine.lru.node_pages(InactiveFile, NEAR_NODE), 2);
    assert_eq!(machine.stat(group, MemcgStat::InactiveFile), 2);
}

#[test]
fn isolation_takes_the_oldest_and_passes_over_zones_that_are_not_wanted() {
    let mut machine = Machine::boot("linux-6.1");
    let [group, ..] = machine.groups;
    // From the oldest to the newest: Normal, DMA of 4 pages, Normal, DMA, DMA.
    let place = [(0, false), (2, true), (0, false), (0, true), (0, true)];
    let pages = place.map(|(order, dma)| machine.block(CPU, group, Order(order), dma));
    pages.iter().for_each(|&pfn| machine.lru.insert(&mut machine.core, pfn));
    let (mut taken, mut passed) = (Vec::new(), Vec::new());
    let Machine { core, lru, .. } = &mut machine;
    let from = (group, NEAR_NODE, InactiveFile);
    let found = lru.isolate_tail(core, from, ZoneKind::Dma, 5, &mut taken, &mut passed);
    assert_eq!((taken, passed), (vec![pages[1], pages[3]], vec![pages[0], pages[2]]));
    assert_eq!(found, [5, 0, 2, 0]);
    assert_eq!(machine.drawn(group, InactiveFile), [pages[4]], "five pages were enough");
    assert_eq!(machine.near(group).by_zone(InactiveFile), &[1, 0, 0, 0]);
    assert_eq!(machine.lru.node_pages(InactiveFile, NEAR_NODE), 1);
    assert_eq!(machine.stat(group, MemcgStat::InactiveFile), 1);
    assert_eq!(pages.map(|pfn| machine.state(pfn) == FrameState::Isolated), [true, true, true, true, false]);
}

#[test]
fn a_large_folio_is_taken_whole_and_an_empty_list_ends_it() {
    let mut machine = Machine::boot("linux-6.1");
    let pfn = machine.block(CPU, ROOT, Order(3), false);
    machine.lru.insert(&mut machine.core, pfn);
    let _ = machine.listed(ROOT, 1);
    let mut isolate = |wanted| {
        let (mut taken, mut passed) = (Vec::new(), Vec::new());
        let Machine { core, lru, .. } = &mut machine;
        let from = (ROOT, NEAR_NODE, InactiveFile);
        lru.isolate_tail(core, from, ZoneKind::Movable, wanted, &mut taken, &mut passed).iter().sum::<u64>()
    };
    assert_eq!([isolate(0), isolate(2), isolate(9), isolate(9)], [0, 8, 1, 0]);
}

#[test]
fn parts_of_a_split_folio_follow_it_on_its_list() {
    let mut machine = Machine::boot("linux-6.1");
    let pages = machine.listed(ROOT, 3);
    let part = machine.page(ROOT);
    machine.lru.split_off(&mut machine.core, pages[1], part);
    assert_eq!(machine.drawn(ROOT, InactiveFile), [pages[2], pages[1], part, pages[0]]);
    assert_eq!(machine.state(part), FrameState::Lru);
}

// ---- batches ----

#[test]
fn a_batch_is_flushed_when_it_is_full_and_at_once_for_a_large_folio() {
    for (kernel, limit) in [("linux-6.1", 15), ("linux-6.12", 31)] {
        let mut machine = Machine::boot(kernel);
        for _ in 1..limit {
            let pfn = machine.page(ROOT);
            machine.add(CPU, pfn);
            assert_eq!(machine.state(pfn), FrameState::Batch);
        }
        assert_eq!(machine.lru.pages(InactiveFile), 0, "{kernel}");
        let last = machine.page(ROOT);
        machine.add(CPU, last);
        assert_eq!(machine.lru.pages(InactiveFile), limit, "{kernel}");
        let (single, large) = (machine.page(ROOT), machine.block(CPU, ROOT, Order(1), false));
        machine.add(CPU, single);
        machine.add(CPU, large);
        assert_eq!(machine.lru.pages(InactiveFile), limit + 3, "{kernel}");
        assert_eq!(machine.lru.add_batch(CPU), []);
    }
}

#[test]
fn draining_one_cpu_leaves_the_batches_of_others() {
    let mut machine = Machine::boot("linux-6.1");
    let pages = [machine.page(ROOT), machine.page(ROOT)];
    machine.add(CPU, pages[0]);
    machine.add(FAR, pages[1]);
    assert_eq!(machine.lru.add_batches().collect::<Vec<_>>(), pages);
    machine.lru.drain(&mut machine.core, CPU);
    assert_eq!((machine.lru.add_batch(CPU), machine.lru.add_batch(FAR)), (&[][..], &pages[1..]));
    machine.lru.drain_all(&mut machine.core);
    assert_eq!(machine.drawn(ROOT, InactiveFile), [pages[1], pages[0]]);
}

#[test]
fn a_page_removed_from_a_batch_does_not_come_back() {
    let mut machine = Machine::boot("linux-6.1");
    let pages = [machine.page(ROOT), machine.page(ROOT)];
    pages.iter().for_each(|&pfn| machine.add(CPU, pfn));
    machine.lru.detach(&mut machine.core, pages[0]);
    assert_eq!(machine.state(pages[0]), FrameState::InUse);
    assert_eq!(machine.lru.add_batch(CPU), [pages[1]]);
    machine.lru.drain(&mut machine.core, CPU);
    assert_eq!(machine.drawn(ROOT, InactiveFile), [pages[1]]);
    machine.lru.detach(&mut machine.core, pages[1]);
    assert_eq!((machine.lru.pages(InactiveFile), machine.state(pages[1])), (0, FrameState::InUse));
}

#[test]
fn a_page_freed_on_its_way_to_the_active_list_leaves_the_batch() {
    let mut machine = Machine::boot("linux-6.1");
    let pages = machine.listed(ROOT, 2);
    for &pfn in &pages {
        (0..2).for_each(|_| machine.access(CPU, pfn));
    }
    machine.lru.detach(&mut machine.core, pages[0]);
    machine.lru.insert(&mut machine.core, pages[0]); // The frame's next life.
    machine.lru.drain(&mut machine.core, CPU);
    assert_eq!(machine.drawn(ROOT, ActiveFile), [pages[1]]);
    assert_eq!(machine.drawn(ROOT, InactiveFile), [pages[0]]);
}

// ---- accesses ----

#[test]
fn the_second_access_activates_through_a_batch_and_counts_pages() {
    let mut machine = Machine::boot("linux-6.1");
    let [group, ..] = machine.groups;
    let pages = machine.listed(group, 2);
    machine.access(CPU, pages[0]);
    assert!(machine.flags(pages[0]).has(PageFlags::REFERENCED));
    machine.access(CPU, pages[0]);
    assert!(machine.flags(pages[0]).has(PageFlags::ACTIVATING), "in the batch");
    assert!(!machine.flags(pages[0]).has(PageFlags::REFERENCED));
    machine.lru.drain(&mut machine.core, CPU);
    assert_eq!(machine.flags(pages[0]), PageFlags::ACTIVE);
    assert_eq!(machine.drawn(group, ActiveFile), [pages[0]]);
    assert_eq!(
        [ActiveFile, InactiveFile].map(|list| machine.near(group).size(list, ZoneKind::Movable)),
        [1, 1]
    );
    assert_eq!(machine.lru.node_pages(ActiveFile, NEAR_NODE), 1);
    assert_eq!(machine.lru.node_pages(InactiveFile, NEAR_NODE), 1);
    let stats = [MemcgStat::ActiveFile, MemcgStat::InactiveFile, MemcgStat::PgActivate];
    assert_eq!(stats.map(|stat| machine.stat(group, stat)), [1, 1, 1]);
    assert_eq!(machine.event(VmEvent::PgActivate), 1);

    let large = machine.block(CPU, group, Order(2), false);
    machine.lru.insert(&mut machine.core, large);
    (0..2).for_each(|_| machine.access(CPU, large));
    assert_eq!(machine.drawn(group, ActiveFile), [large, pages[0]], "a large folio waits in no batch");
    assert_eq!((machine.event(VmEvent::PgActivate), machine.stat(group, MemcgStat::PgActivate)), (5, 5));
}

#[test]
fn fifteen_activations_make_a_batch_and_a_page_is_in_it_once() {
    let mut machine = Machine::boot("linux-6.1");
    let pages = machine.listed(ROOT, 15);
    for &pfn in &pages[..14] {
        (0..4).for_each(|_| machine.access(CPU, pfn));
    }
    assert_eq!(machine.lru.pages(ActiveFile), 0);
    (0..2).for_each(|_| machine.access(CPU, pages[14]));
    assert_eq!(machine.lru.pages(ActiveFile), 15);
    assert_eq!(machine.event(VmEvent::PgActivate), 15);
}

#[test]
fn an_active_page_only_gets_its_bit_and_a_locked_one_never_moves() {
    let mut machine = Machine::boot("linux-6.1");
    let pages = machine.listed(ROOT, 1);
    (0..2).for_each(|_| machine.access(CPU, pages[0]));
    machine.lru.drain(&mut machine.core, CPU);
    (0..3).for_each(|_| machine.access(CPU, pages[0]));
    assert!(machine.flags(pages[0]).has(PageFlags::REFERENCED));
    assert_eq!(machine.ages()[0], 1, "one activation");

    let pinned = machine.page(ROOT);
    machine.set(pinned, PageFlags::UNEVICTABLE);
    machine.lru.insert(&mut machine.core, pinned);
    (0..3).for_each(|_| machine.access(CPU, pinned));
    machine.lru.drain(&mut machine.core, CPU);
    assert_eq!((machine.drawn(ROOT, Unevictable), machine.ages()[0]), (vec![pinned], 1));
}

#[test]
fn a_page_that_changed_while_it_waited_for_activation_stays_where_it_is() {
    for flags in [PageFlags::ACTIVE, PageFlags::UNEVICTABLE] {
        let mut machine = Machine::boot("linux-6.1");
        let pages = machine.listed(ROOT, 1);
        (0..2).for_each(|_| machine.access(CPU, pages[0]));
        machine.lru.remove(&mut machine.core, pages[0]);
        machine.set(pages[0], flags);
        machine.lru.insert(&mut machine.core, pages[0]);
        machine.lru.drain(&mut machine.core, CPU);
        assert_eq!(machine.event(VmEvent::PgActivate), 0);
        assert_eq!(machine.drawn(ROOT, LruList::of(flags)), pages);
    }
    let mut machine = Machine::boot("linux-6.1");
    let pages = machine.listed(ROOT, 1);
    (0..2).for_each(|_| machine.access(CPU, pages[0]));
    machine.lru.remove(&mut machine.core, pages[0]);
    machine.lru.drain(&mut machine.core, CPU);
    assert_eq!((machine.event(VmEvent::PgActivate), machine.lru.pages(ActiveFile)), (0, 0), "isolated");
}

#[test]
fn a_second_access_in_a_batch_counts_only_on_the_cpu_that_has_it() {
    for (cpu, list) in [(CPU, ActiveFile), (FAR, InactiveFile)] {
        let mut machine = Machine::boot("linux-6.1");
        let pfn = machine.page(ROOT);
        machine.add(CPU, pfn);
        (0..2).for_each(|_| machine.access(cpu, pfn));
        assert!(!machine.flags(pfn).has(PageFlags::REFERENCED));
        machine.lru.drain_all(&mut machine.core);
        assert_eq!(machine.drawn(ROOT, list), [pfn]);
    }
}

const UNEVICTABLE_EVENTS: [VmEvent; 4] = [
    VmEvent::UnevictablePgsMlocked,
    VmEvent::UnevictablePgsCulled,
    VmEvent::UnevictablePgsMunlocked,
    VmEvent::UnevictablePgsRescued,
];

#[test]
fn locking_takes_a_page_from_either_list_once() {
    for active in [false, true] {
        let mut machine = Machine::boot("linux-6.1");
        let pfn = machine.block(CPU, ROOT, Order(1), false);
        if active {
            machine.set(pfn, PageFlags::ACTIVE);
        }
        machine.lru.insert(&mut machine.core, pfn);
        (0..2).for_each(|_| machine.lru.mlock(&mut machine.core, CPU, pfn));
        assert_eq!(machine.drawn(ROOT, Unevictable), [pfn], "a large folio waits in no batch");
        assert_eq!(machine.flags(pfn), PageFlags::MLOCKED.set(PageFlags::UNEVICTABLE));
        assert_eq!([InactiveFile, ActiveFile].map(|list| machine.lru.pages(list)), [0, 0]);
        assert_eq!(UNEVICTABLE_EVENTS.map(|event| machine.event(event)), [2, 2, 0, 0], "pages, once");
        assert_eq!(machine.lru.all_locked_pages(), 2);
    }
}

#[test]
fn a_single_page_is_locked_at_once_and_culled_when_its_batch_is_full() {
    for (kernel, batch) in [("linux-5.4", 15), ("linux-6.12", 31)] {
        let mut machine = Machine::boot(kernel);
        let pages: Vec<Pfn> = (0..batch).map(|_| machine.page(ROOT)).collect();
        for (&pfn, locked) in pages.iter().zip(1..) {
            machine.lru.insert(&mut machine.core, pfn);
            machine.lru.mlock(&mut machine.core, CPU, pfn);
            let culled = if locked < batch { 0 } else { batch };
            let expected = [locked, culled, 0, 0];
            assert_eq!(UNEVICTABLE_EVENTS.map(|event| machine.event(event)), expected, "{kernel}");
            assert_eq!(machine.lru.pages(InactiveFile), 0, "nobody scans it even so");
        }
        assert_eq!(machine.lru.pages(Unevictable), batch);
    }
}

#[test]
fn a_page_that_waits_in_another_cpus_batch_goes_to_the_unevictable_list_from_there() {
    let mut machine = Machine::boot("linux-6.1");
    let pages = [machine.page(ROOT), machine.page(ROOT)];
    machine.add(FAR, pages[0]);
    machine.add(CPU, pages[1]);
    machine.lru.mlock(&mut machine.core, CPU, pages[0]);
    assert_eq!(machine.lru.add_batches().count(), 2, "no batch is emptied for it");
    machine.lru.drain_all(&mut machine.core);
    assert_eq!(machine.drawn(ROOT, Unevictable), [pages[0]]);
    assert_eq!(machine.drawn(ROOT, InactiveFile), [pages[1]]);
}

#[test]
fn an_unlocked_page_is_rescued_to_the_inactive_list_and_one_still_in_its_batch_needs_no_rescue() {
    let mut machine = Machine::boot("linux-6.1");
    let [listed, batched] = [machine.page(ROOT), machine.page(ROOT)];
    machine.lru.insert(&mut machine.core, listed);
    machine.lru.mlock(&mut machine.core, CPU, listed);
    machine.lru.drain(&mut machine.core, CPU);
    machine.add(CPU, batched);
    machine.lru.mlock(&mut machine.core, CPU, batched);
    for pfn in [listed, batched] {
        (0..2).for_each(|_| machine.lru.munlock(&mut machine.core, pfn));
    }
    machine.lru.drain(&mut machine.core, CPU);
    assert_eq!(machine.drawn(ROOT, InactiveFile), [batched, listed]);
    assert_eq!(machine.lru.pages(Unevictable), 0);
    assert_eq!(UNEVICTABLE_EVENTS.map(|event| machine.event(event)), [2, 1, 2, 1]);
    assert_eq!(machine.lru.all_locked_pages(), 0);
}

/// When a process that holds 360 MiB ends, Linux 5.10 and 6.12 count 92160 pages as unlocked and as rescued.
#[test]
fn a_locked_page_that_is_freed_counts_as_unlocked_and_rescued() {
    let mut machine = Machine::boot("linux-6.12");
    let pfn = machine.page(ROOT);
    machine.lru.insert(&mut machine.core, pfn);
    machine.lru.mlock(&mut machine.core, CPU, pfn);
    machine.lru.drain(&mut machine.core, CPU);
    machine.lru.detach(&mut machine.core, pfn);
    assert_eq!(UNEVICTABLE_EVENTS.map(|event| machine.event(event)), [1, 1, 1, 1]);
    assert_eq!((machine.lru.all_locked_pages(), machine.lru.pages(Unevictable)), (0, 0));
}

// ---- ages and refaults ----

#[test]
fn a_shadow_has_36_bits_of_age_8_of_node_16_of_cgroup_and_one_of_working_set() {
    let empty = Shadow { memcg: MemcgId(0), node: NodeId(0), age: 0, workingset: false };
    assert_eq!(Shadow { age: 5, ..empty }.pack(), 5);
    assert_eq!(Shadow { node: NodeId(3), ..empty }.pack(), 3 << 36);
    assert_eq!(Shadow { memcg: MemcgId(3), ..empty }.pack(), 3 << 44);
    assert_eq!(Shadow { workingset: true, ..empty }.pack(), 1 << 60);
    for shadow in [
        Shadow { memcg: MemcgId(1), node: NodeId(2), age: 3, workingset: true },
        Shadow { memcg: MemcgId(0x5555), node: NodeId(0xaa), age: 0xa_aaaa_aaaa, workingset: false },
    ] {
        assert_eq!(Shadow::unpack(shadow.pack()), shadow);
    }
}

#[test]
fn an_eviction_ages_the_owner_and_since_5_5_all_above_it() {
    for (kernel, ages, target) in [("linux-5.4", [0, 0, 5, 0], 2), ("linux-5.5", [5, 5, 5, 0], 1)] {
        let mut machine = Machine::boot(kernel);
        let [parent, child, _] = machine.groups;
        let pages = [machine.block(CPU, child, Order(2), false), machine.page(child)];
        let shadows = pages.map(|pfn| machine.evict(pfn, parent));
        assert_eq!(machine.ages(), ages, "{kernel}");
        assert_eq!(shadows.map(|shadow| shadow.age), [0, 4], "{kernel}: the age before");
        // The shadow belongs to the owner, or to whom reclaim worked for.
        let belongs = [ROOT, parent, child][target];
        assert_eq!(shadows.map(|shadow| (shadow.memcg, shadow.node)), [(belongs, NEAR_NODE); 2], "{kernel}");
    }
}

#[test]
fn an_age_is_kept_modulo_36_bits() {
    let mut machine = Machine::boot("linux-5.4");
    let [group, ..] = machine.groups;
    let index = machine.lru.index(group, NEAR_NODE);
    machine.lru.lruvecs[index].age = AGE_MASK;
    let pages = [machine.page(group), machine.page(group)];
    let old = machine.evict(pages[0], group);
    assert_eq!((old.age, machine.evict(pages[1], group).age), (AGE_MASK, 0));
    // Two evictions ago, over the edge; two pages are active.
    for _ in 0..2 {
        let pfn = machine.page(group);
        machine.set(pfn, PageFlags::ACTIVE);
        machine.lru.insert(&mut machine.core, pfn);
    }
    assert!(machine.refault(pages[0], old));
}

#[test]
fn a_refault_is_counted_and_one_in_time_activated_and_restored() {
    for (kernel, was_hot) in
        [("linux-5.4", false), ("linux-5.4", true), ("linux-5.5", false), ("linux-5.5", true)]
    {
        let mut machine = Machine::boot(kernel);
        let [parent, child, _] = machine.groups;
        let hot = machine.block(CPU, child, Order(1), false);
        machine.set(hot, PageFlags::ACTIVE);
        machine.lru.insert(&mut machine.core, hot);
        machine.core.cgroups.flush_periodic();
        let large = machine.block(CPU, child, Order(1), false);
        if was_hot {
            machine.set(large, PageFlags::WORKINGSET);
        }
        let shadow = machine.evict(large, parent);
        assert_eq!(shadow.workingset, was_hot);
        let back = machine.block(CPU, child, Order(1), false);
        assert!(machine.refault(back, shadow), "{kernel}: 2 pages ago, and 2 are active");
        assert_eq!(machine.flags(back).has(PageFlags::WORKINGSET), was_hot);
        let restored = if was_hot { 2 } else { 0 };
        let events =
            [VmEvent::WorkingsetRefaultFile, VmEvent::WorkingsetActivateFile, VmEvent::WorkingsetRestoreFile];
        assert_eq!(events.map(|event| machine.event(event)), [2, 2, restored], "{kernel}");
        let stats = [
            MemcgStat::WorkingsetRefaultFile,
            MemcgStat::WorkingsetActivateFile,
            MemcgStat::WorkingsetRestoreFile,
        ];
        assert_eq!(stats.map(|stat| machine.stat(child, stat)), [2, 2, restored], "{kernel}");
        let ages = if kernel == "linux-5.4" { [0, 0, 4, 0] } else { [4, 4, 4, 0] };
        assert_eq!(machine.ages(), ages, "{kernel}: an activation ages as an eviction does");
        // Two more evictions, and it would be too late.
        let late = Shadow { age: shadow.age + AGE_MASK - 1, ..shadow };
        let other = machine.page(child);
        assert!(!machine.refault(other, Shadow { age: late.age & AGE_MASK, ..late }), "{kernel}");
        assert_eq!(machine.event(VmEvent::WorkingsetActivateFile), 2);
    }
}

#[test]
fn before_5_5_a_refault_is_that_of_the_group_which_lost_the_page() {
    for (kernel, counted) in [("linux-5.4", 0), ("linux-6.1", 1)] {
        let mut machine = Machine::boot(kernel);
        let [_, child, other] = machine.groups;
        let pfn = machine.page(child);
        let shadow = machine.evict(pfn, child);
        let back = machine.page(other);
        let _ = machine.refault(back, shadow);
        let refaults = [child, other].map(|group| machine.stat(group, MemcgStat::WorkingsetRefaultFile));
        assert_eq!(refaults[counted], 1, "{kernel}");
        assert_eq!(refaults[1 - counted], 0, "{kernel}");
    }
}

#[test]
fn the_snapshot_is_of_every_group_below_the_target_and_since_5_5_of_the_target() {
    // Where activations are remembered after a run for P: root, P, P/A, B.
    for (kernel, remembered) in [("linux-5.4", [0, 1, 2, 0]), ("linux-6.1", [0, 3, 0, 0])] {
        let mut machine = Machine::boot(kernel);
        let [parent, child, other] = machine.groups;
        for (group, count) in [(parent, 1), (child, 2), (other, 4)] {
            let hot = machine.block(CPU, group, Order(3), false);
            machine.set(hot, PageFlags::ACTIVE);
            machine.lru.insert(&mut machine.core, hot);
            machine.core.cgroups.flush_periodic();
            for _ in 0..count {
                let pfn = machine.page(group);
                let shadow = machine.evict(pfn, group);
                let back = machine.page(group);
                assert!(machine.refault(back, shadow), "{kernel}: it is back at once");
            }
        }
        machine.core.cgroups.flush_periodic();
        machine.lru.snapshot_refaults(&machine.core, parent, NEAR_NODE);
        let seen = [ROOT, parent, child, other].map(|group| machine.near(group).file_refaults());
        assert_eq!(seen, remembered, "{kernel}");
        assert_eq!(machine.lru.lruvec(parent, FAR_NODE).file_refaults(), 0);
    }
}
