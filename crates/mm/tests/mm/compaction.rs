//! Compaction of a zone, drawn before and after, and worlds of random events in which no frame may
//! be lost by compaction, huge pages or splits.

use mm::alloc::flags::AllocFlags;
use mm::alloc::pageblock::{HUGE_ORDER as PAGEBLOCK_ORDER, HUGE_PAGES as PAGEBLOCK_PAGES};
use mm::base::event::NoTrace;
use mm::base::frame::{FrameState, PageFlags};
use mm::base::gfp::{Gfp, MigrateType};
use mm::base::ids::{AnonId, MappingId};
use mm::base::layout::{HugeSupport, MemoryLayout, NodeLayout, ZoneId, ZoneKind, ZoneLayout};
use mm::base::sysctl::Sysctls;
use mm::base::vmstat::VmEvent;
use mm::compact::state::{CompactGoal, CompactPriority, CompactRequest, CompactResult};
use mm::pages::cache::Prepared;
use mm::pages::tree::Slot;
use mm::reclaim::run::ScanControl;
use mm::version::presets::Version;
use mm::version::rules::{CompactFolios, CompactSearch, Rule};
use mm::{MemcgId, Memory};
use pagetide_mm as mm;
use proptest::prelude::*;
use units::{CpuId, NodeId, Order, Pages, Pfn};

const CPU: CpuId = CpuId(0);
const ZONE: ZoneId = ZoneId(0);
const CELL: u32 = 32;
const MOVABLE: Gfp = Gfp::HIGHUSER_MOVABLE;

fn boot(kernel: Version, pageblocks: u64) -> Memory<NoTrace> {
    let pages = Pages(pageblocks * u64::from(PAGEBLOCK_PAGES));
    let zone = ZoneLayout::new(ZoneKind::Dma32, pages);
    let layout =
        MemoryLayout { nodes: vec![NodeLayout { zones: vec![zone] }], cpus: 2, huge_pages: HugeSupport::Off };
    Memory::boot(&layout, kernel, Sysctls::default(), NoTrace).unwrap()
}

fn take(mem: &mut Memory<NoTrace>, gfp: Gfp, order: Order) -> Option<Pfn> {
    mem.core.alloc.alloc(CPU, gfp, order, AllocFlags::NO_WATERMARKS).page
}

/// Adds `pfn` to a file; gives it back where the tree finds no room.
fn cache(mem: &mut Memory<NoTrace>, file: MappingId, index: u32, pfn: Pfn) {
    let pages = mem.core.alloc.frames.pages(pfn);
    let room = loop {
        match mem.prepare_insert(CPU, file, index, pages, MemcgId::ROOT) {
            Prepared::Ready => break true,
            Prepared::NeedsCharge { .. } => unreachable!("the root is not charged"),
            Prepared::NeedsSlab => match take(mem, Gfp::KERNEL, Order(0)) {
                Some(slab) => mem.grow_slab(CPU, mm::version::geometry::Cache::TreeNode, MemcgId::ROOT, slab),
                None => break false,
            },
        }
    };
    if room {
        let _ = mem.insert_page(file, index, pfn, MemcgId::ROOT);
        mem.lru_add(CPU, pfn);
    } else {
        mem.core.alloc.free(CPU, pfn, mem.core.alloc.frames.order(pfn));
    }
}

fn request(order: u8, priority: CompactPriority) -> CompactRequest {
    CompactRequest {
        order: Order(order),
        want: MigrateType::Movable,
        highest_zoneidx: ZoneKind::Movable,
        flags: AllocFlags::WMARK_MIN,
        priority,
        direct: true,
        may_fs: true,
        goal: CompactGoal::Block,
    }
}

/// A run to its end, all invariants held after every step.
fn compact(mem: &mut Memory<NoTrace>, request: CompactRequest) -> CompactResult {
    let mut run = match mem.begin_compact(CPU, ZONE, request) {
        Ok(run) => run,
        Err(result) => return result,
    };
    let result = loop {
        let step = mem.compact_step(CPU, &mut run);
        mem.check().unwrap();
        if let Some(result) = step.done {
            break result;
        }
    };
    mem.end_compact(CPU, run);
    let _ = mem.core.alloc.drain_all();
    mem.check().unwrap();
    result
}

// ---- scenes ----

/// A zone of which each line is a pageblock and each cell 32 pages: `.` free, `L` page cache, `#`
/// kernel memory. Compaction scans it; what it does when it searches first is drawn beside [`mm::compact`].
fn scene(kernel: &str, drawing: &[&str]) -> Memory<NoTrace> {
    let mut version = Version::parse(kernel).unwrap();
    version.rules = version.rules.with(Rule::CompactSearch(CompactSearch::None));
    let mut mem = boot(version, drawing.len() as u64);
    let file = mem.mapping_create();
    // Page cache tree nodes come first, for all of the file, so that they disturb no drawing; then
    // everything is taken, in order.
    let total = u32::try_from(drawing.len()).unwrap() * PAGEBLOCK_PAGES;
    for index in (0..total).step_by(64) {
        while mem.prepare_insert(CPU, file, index, 1, MemcgId::ROOT) != Prepared::Ready {
            let slab = take(&mut mem, Gfp::KERNEL, Order(0)).unwrap();
            mem.grow_slab(CPU, mm::version::geometry::Cache::TreeNode, MemcgId::ROOT, slab);
        }
    }
    let mut taken = Vec::new();
    while let Some(pfn) = take(&mut mem, MOVABLE, Order(0)) {
        taken.push(pfn);
    }
    let cells: Vec<u8> = drawing.concat().into_bytes();
    for pfn in taken {
        match cells[(pfn.0 / CELL) as usize] {
            b'.' => mem.core.alloc.free(CPU, pfn, Order(0)),
            b'L' => cache(&mut mem, file, pfn.0, pfn),
            _ => {}
        }
    }
    mem.lru_drain_all();
    let _ = mem.core.alloc.drain_all();
    mem.check().unwrap();
    pass_first_run(&mut mem);
    mem
}

/// The first run of a zone that begins with the machine's first frame ends at once.
fn pass_first_run(mem: &mut Memory<NoTrace>) {
    let _ = compact(mem, request(9, CompactPriority::SyncLight));
    assert_eq!(mem.core.alloc.events.get(VmEvent::CompactMigrateScanned), 0);
}

/// The scene as it is now; `+` is a cell of several kinds.
fn draw(mem: &Memory<NoTrace>) -> Vec<String> {
    let mut cells = Vec::new();
    let mut at = 0;
    let end = u32::try_from(mem.core.alloc.frames.len()).unwrap();
    while at < end {
        let pfn = Pfn(at);
        let letter = match mem.core.alloc.frames.state(pfn) {
            FrameState::Free => '.',
            FrameState::Lru => 'L',
            _ => '#',
        };
        let pages = mem.core.alloc.frames.pages(pfn);
        cells.extend((0..pages).map(|_| letter));
        at += pages;
    }
    let cell = |cell: &[char]| if cell.iter().all(|&c| c == cell[0]) { cell[0] } else { '+' };
    let line = |line: &[char]| line.chunks(CELL as usize).map(cell).collect();
    cells.chunks(PAGEBLOCK_PAGES as usize).map(line).collect()
}

/// Half of six pageblocks is in use, every other cell.
const HALF: [&str; 8] = [
    "################",
    "L.L.L.L.L.L.L.L.",
    "L.L.L.L.L.L.L.L.",
    "L.L.L.L.L.#.L.L.",
    "L.L.L.L.L.L.L.L.",
    "L.L.L.L.L.L.L.L.",
    "L.L.L.L.L.L.L.L.",
    "L.L.L.L.L.L.L.L.",
];

#[test]
fn pages_move_from_the_bottom_to_the_top_until_a_huge_block_is_free() {
    let mut mem = scene("linux-6.1", &HALF);
    assert_eq!(draw(&mem), HALF);
    assert_eq!(compact(&mut mem, request(9, CompactPriority::Async)), CompactResult::Success);
    assert_eq!(
        draw(&mem),
        [
            "################",
            "................",
            "L.L.L.L.L.L.L.L.",
            "L.L.L.L.L.#.L.L.",
            "L.L.L.L.L.L.L.L.",
            "L.L.L.L.L.L.L.L.",
            "L.L.L.L.L.L.L.L.",
            "LLLLLLLLLLLLLLLL",
        ]
    );
    assert_eq!(mem.core.alloc.events.get(VmEvent::PgMigrateSuccess), 256);
    assert!(take(&mut mem, MOVABLE, PAGEBLOCK_ORDER).is_some());
}

#[test]
fn a_locked_page_makes_async_compaction_give_its_block_up() {
    for (kernel, failed) in [("linux-6.1", 1), ("linux-6.12", 1)] {
        let mut mem = scene(kernel, &HALF);
        mem.core.alloc.frames.set_flags(Pfn(512), PageFlags::LOCKED);
        assert_eq!(compact(&mut mem, request(9, CompactPriority::Async)), CompactResult::Success);
        let drawn = draw(&mem);
        assert!(drawn[1].contains('L') || drawn[1].contains('+'), "the locked page stays");
        assert_eq!(drawn[2], "................", "the next block is emptied instead");
        assert_eq!(mem.core.alloc.events.get(VmEvent::PgMigrateFail), failed);
        // 6.1 leaves the block alone once a page stayed; 6.12 goes on to its end.
        let moved = if kernel == "linux-6.1" { 31 + 256 } else { 255 + 256 };
        assert_eq!(mem.core.alloc.events.get(VmEvent::PgMigrateSuccess), moved, "{kernel}");
    }
}

#[test]
fn a_zone_with_too_little_free_memory_or_large_blocks_is_not_compacted() {
    let mut full =
        scene("linux-6.1", &["################", "L.LLLLLLLLLLLLLL", "LLLLLLLLLLLLLLLL", "LLLLLLLLLLLLLLLL"]);
    assert_eq!(compact(&mut full, request(9, CompactPriority::Async)), CompactResult::Skipped);
    let mut empty = boot(Version::parse("linux-6.1").unwrap(), 8);
    assert_eq!(compact(&mut empty, request(9, CompactPriority::Async)), CompactResult::Success);
    for mem in [full, empty] {
        assert_eq!(mem.core.alloc.events.get(VmEvent::CompactMigrateScanned), 0, "nobody looked");
    }
}

#[test]
fn large_folios_move_only_since_6_12() {
    for (kernel, moves) in [("linux-6.1", false), ("linux-6.12", true)] {
        let mut mem = boot(Version::parse(kernel).unwrap(), 8);
        let file = mem.mapping_create();
        let mut index = 0;
        let mut folios = Vec::new();
        while let Some(pfn) = take(&mut mem, MOVABLE, Order(2)) {
            folios.push(pfn);
        }
        for pfn in folios {
            if (pfn.0 / 4).is_multiple_of(2) || pfn.0 < 512 {
                mem.core.alloc.free(CPU, pfn, Order(2));
            } else {
                cache(&mut mem, file, index, pfn);
                index += 4;
            }
        }
        // The first block is kernel memory, as in a scene.
        let _ = mem.core.alloc.drain_all();
        while mem.core.alloc.frames.order(Pfn(0)) >= PAGEBLOCK_ORDER
            && take(&mut mem, MOVABLE, Order(9)).is_some()
        {}
        pass_first_run(&mut mem);
        let result = compact(&mut mem, request(9, CompactPriority::SyncLight));
        let moved = mem.core.alloc.events.get(VmEvent::PgMigrateSuccess);
        assert_eq!((result == CompactResult::Success, moved > 0), (moves, moves), "{kernel}");
    }
}

// ---- worlds ----

#[derive(Debug, Clone)]
enum Event {
    Version { order: u8, count: usize },
    FreeKernel { every: usize },
    Cache { order: u8, count: usize },
    DropFile { which: usize },
    Map { count: u32 },
    MapHuge,
    Unmap { which: usize, first: u32, count: u32 },
    Lock { which: usize, first: u32, count: u32 },
    Collapse { which: usize },
    Hold { which: usize },
    Split { which: usize },
    Reclaim { priority: u8, split: bool },
    Compact { order: u8, priority: usize, want: usize, direct: bool, may_fs: bool },
}

fn event() -> impl Strategy<Value = Event> {
    let range = || (0..1200_u32, 1..900_u32);
    prop_oneof![
        2 => (0..4_u8, 1..200_usize).prop_map(|(order, count)| Event::Version { order, count }),
        2 => (1..4_usize).prop_map(|every| Event::FreeKernel { every }),
        4 => (0..5_u8, 1..300_usize).prop_map(|(order, count)| Event::Cache { order, count }),
        2 => any::<usize>().prop_map(|which| Event::DropFile { which }),
        3 => (1..700_u32).prop_map(|count| Event::Map { count }),
        3 => Just(Event::MapHuge),
        3 => (any::<usize>(), range()).prop_map(|(which, (first, count))| Event::Unmap { which, first, count }),
        1 => (any::<usize>(), range()).prop_map(|(which, (first, count))| Event::Lock { which, first, count }),
        2 => any::<usize>().prop_map(|which| Event::Collapse { which }),
        1 => any::<usize>().prop_map(|which| Event::Hold { which }),
        2 => any::<usize>().prop_map(|which| Event::Split { which }),
        3 => (0..=8_u8, any::<bool>()).prop_map(|(priority, split)| Event::Reclaim { priority, split }),
        6 => (1..=10_u8, 0..3_usize, 0..3_usize, any::<bool>(), any::<bool>()).prop_map(
            |(order, priority, want, direct, may_fs)| Event::Compact { order, priority, want, direct, may_fs }
        ),
    ]
}

struct World {
    mem: Memory<NoTrace>,
    kernel: Vec<(Pfn, Order)>,
    files: Vec<MappingId>,
    anon: Vec<AnonId>,
}

impl World {
    fn anon_new(&mut self) -> AnonId {
        let anon = self.mem.anon_create();
        self.anon.push(anon);
        anon
    }

    fn map_huge(&mut self, anon: AnonId, first: u32) {
        if let Some(pfn) = take(&mut self.mem, MOVABLE, PAGEBLOCK_ORDER) {
            self.mem.anon_map(CPU, anon, first, pfn, MemcgId::ROOT);
        }
    }

    fn apply(&mut self, event: &Event) {
        let pick = |which: usize, from: usize| (from > 0).then(|| which % from.max(1));
        match *event {
            Event::Version { order, count } => {
                for _ in 0..count {
                    let Some(pfn) = take(&mut self.mem, Gfp::KERNEL, Order(order)) else { return };
                    self.kernel.push((pfn, Order(order)));
                }
            }
            Event::FreeKernel { every } => {
                let all = std::mem::take(&mut self.kernel);
                for (n, (pfn, order)) in all.into_iter().enumerate() {
                    if n % every == 0 {
                        self.mem.core.alloc.free(CPU, pfn, order);
                    } else {
                        self.kernel.push((pfn, order));
                    }
                }
            }
            Event::Cache { order, count } => {
                let file = self.mem.mapping_create();
                self.files.push(file);
                for n in 0..u32::try_from(count).unwrap() {
                    let Some(pfn) = take(&mut self.mem, MOVABLE, Order(order)) else { return };
                    cache(&mut self.mem, file, n << order, pfn);
                }
            }
            Event::DropFile { which } => {
                if let Some(which) = pick(which, self.files.len()) {
                    let file = self.files.swap_remove(which);
                    self.mem.mapping_remove(CPU, file);
                }
            }
            Event::Map { count } => {
                let anon = self.anon_new();
                for index in 0..count {
                    let Some(pfn) = take(&mut self.mem, MOVABLE, Order(0)) else { return };
                    self.mem.anon_map(CpuId(1), anon, index, pfn, MemcgId::ROOT);
                }
            }
            Event::MapHuge => {
                let anon = self.anon_new();
                self.map_huge(anon, 0);
                self.map_huge(anon, 512);
            }
            Event::Unmap { which, first, count } => {
                if let Some(which) = pick(which, self.anon.len()) {
                    self.mem.anon_unmap(CPU, self.anon[which], first, count);
                }
            }
            Event::Lock { which, first, count } => {
                if let Some(which) = pick(which, self.anon.len()) {
                    self.mem.anon_lock(CPU, self.anon[which], first, count);
                }
            }
            Event::Collapse { which } => {
                let Some(which) = pick(which, self.anon.len()) else { return };
                let anon = self.anon[which];
                self.mem.lru_drain_all();
                let range = self.mem.anon_range(anon, 0);
                if range.present == 0 || range.huge || range.busy {
                    return;
                }
                if let Some(pfn) = take(&mut self.mem, MOVABLE, PAGEBLOCK_ORDER) {
                    let copied = self.mem.anon_collapse(CPU, anon, 0, pfn, MemcgId::ROOT);
                    assert_eq!(copied, range.present);
                }
            }
            Event::Hold { which } => {
                if let Some(which) = pick(which, self.files.len())
                    && let Slot::Page(pfn) = self.mem.cache.find(self.files[which], 0)
                {
                    self.mem.core.alloc.frames.set_flags(pfn, PageFlags::LOCKED);
                }
            }
            Event::Split { which } => self.split_some_huge_page(which),
            Event::Reclaim { priority, split } => self.reclaim(priority, split),
            Event::Compact { order, priority, want, direct, may_fs } => {
                use CompactPriority::{Async, SyncFull, SyncLight};
                let request = CompactRequest {
                    want: MigrateType::ALL[want],
                    direct,
                    may_fs,
                    ..request(order, [Async, SyncLight, SyncFull][priority])
                };
                let before = self.contents();
                compact(&mut self.mem, request);
                assert_eq!(self.contents(), before, "what was in memory still is");
            }
        }
    }

    fn split_some_huge_page(&mut self, which: usize) {
        self.mem.lru_drain_all();
        let heads = self.anon.iter().flat_map(|&anon| self.mem.anon.heads(anon));
        let frames = &self.mem.core.alloc.frames;
        let huge: Vec<Pfn> =
            heads.map(|(_, pfn)| pfn).filter(|&pfn| frames.order(pfn) == PAGEBLOCK_ORDER).collect();
        if !huge.is_empty() {
            let Memory { core, lru, anon, .. } = &mut self.mem;
            anon.split_huge(core, lru, huge[which % huge.len()]);
        }
    }

    /// One pass of direct reclaim. Anonymous pages stay, as there is no swap, but between two chunks
    /// their huge pages may be split.
    fn reclaim(&mut self, priority: u8, split: bool) {
        let anon = |world: &Self| world.anon.iter().map(|&anon| world.mem.anon.pages(anon)).sum::<u64>();
        let (before, free) = (anon(self), self.mem.core.alloc.events.get(VmEvent::PgFree));
        let mut sc = ScanControl { priority, ..ScanControl::direct(ZoneKind::Movable) };
        let mut walk = self.mem.begin_pass(NodeId(0), &mut sc);
        let mut visited = None;
        while let Some(memcg) = self.mem.next_memcg(&mut walk, visited, &mut sc) {
            visited = Some(memcg);
            let Some(mut scan) = self.mem.begin_lruvec(memcg, NodeId(0), &mut sc) else { continue };
            while self.mem.shrink_chunk(CPU, &mut scan, &mut sc).is_some() {
                if split {
                    self.split_some_huge_page(priority.into());
                }
                self.mem.check().unwrap();
            }
        }
        let freed = self.mem.core.alloc.events.get(VmEvent::PgFree) - free;
        assert!(freed >= sc.nr_reclaimed, "{freed} pages freed, {} said to be", sc.nr_reclaimed);
        assert_eq!(anon(self), before);
    }

    /// Which page of which mapping is in memory, as a folio of which order, with which flags.
    fn contents(&self) -> Vec<(bool, u32, u32, u8, u32)> {
        let frames = &self.mem.core.alloc.frames;
        let page = |file, id, (index, pfn): (u32, Pfn)| {
            let flags = frames.flags(pfn).clear(PageFlags::ACTIVATING);
            (file, id, index, frames.order(pfn).0, flags.0)
        };
        let files = self.files.iter().flat_map(|&file| {
            self.mem.cache.trees().heads(file).into_iter().map(move |found| page(true, file.0, found))
        });
        let anon = self
            .anon
            .iter()
            .flat_map(|&anon| self.mem.anon.heads(anon).map(move |found| page(false, anon.0, found)));
        files.chain(anon).collect()
    }

    /// Frees everything; returns the pages that are free then, those of the slab cache included.
    fn free_all(mut self) -> u64 {
        for file in self.files {
            self.mem.mapping_remove(CPU, file);
        }
        for anon in self.anon {
            self.mem.anon_remove(CPU, anon);
        }
        for (pfn, order) in self.kernel {
            self.mem.core.alloc.free(CPU, pfn, order);
        }
        let _ = self.mem.core.alloc.drain_all();
        self.mem.check().unwrap();
        // The cache of tree nodes keeps an empty slab or two.
        let slab = self.mem.gauges().into_iter().find(|(name, _)| *name == "nr_slab_reclaimable");
        self.mem.core.alloc.free_pages().0 + slab.unwrap().1
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_frame_is_lost_by_compaction_huge_pages_splits_or_reclaim(
        base in proptest::sample::select(vec!["linux-5.4", "linux-6.1", "linux-6.12"]),
        large in any::<bool>(),
        pageblocks in 8..14_u64,
        events in proptest::collection::vec(event(), 1..40),
    ) {
        let mut kernel = Version::parse(base).unwrap();
        let folios = if large { CompactFolios::Large } else { CompactFolios::Single };
        kernel.rules = kernel.rules.with(Rule::CompactFolios(folios));
        let mem = boot(kernel, pageblocks);
        let mut world = World { mem, kernel: Vec::new(), files: Vec::new(), anon: Vec::new() };
        for event in &events {
            world.apply(event);
            world.mem.check().unwrap();
        }
        prop_assert_eq!(world.free_all(), pageblocks * u64::from(PAGEBLOCK_PAGES));
    }
}
