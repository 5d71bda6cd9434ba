//! Zones drawn before compaction: where runs start, what they leave for the next one, how they end.
//!
//! Each line is a pageblock and each cell 32 pages: `.` free, `A` anonymous memory, `#` kernel memory.
//! What moves where is drawn in `crates/mm/tests/mm/compaction.rs`.

use std_alloc::vec;
use std_alloc::vec::Vec;

use units::{CpuId, Order, Pages, Pfn};

use super::state::{
    CompactGoal, CompactPriority, CompactRequest, CompactResult, CompactStep, Compaction, Compactor,
    ZoneCompact,
};
use crate::alloc::flags::AllocFlags;
use crate::alloc::pageblock::HUGE_PAGES as PAGEBLOCK_PAGES;
use crate::alloc::suitable::{Suitability, fragmentation_index, is_ready, suitable};
use crate::alloc::watermark::Mark;
use crate::base::event::NoTrace;
use crate::base::frame::PageFlags;
use crate::base::gfp::{Gfp, MigrateType};
use crate::base::ids::{AnonId, MemcgId};
use crate::base::layout::{
    FollowTables, HugeSupport, MemoryLayout, NodeLayout, OldReads, PageTables, ZoneId, ZoneKind, ZoneLayout,
};
use crate::base::sysctl::Sysctls;
use crate::base::vmstat::VmEvent;
use crate::core::Core;
use crate::lru::lists::Lru;
use crate::pages::anon::AnonMaps;
use crate::pages::cache::PageCache;
use crate::swap::areas::{AreaKind, AreaSpec};
use crate::version::presets::Version;
use crate::version::rules::{CompactSearch, Rule};

pub(super) const CPU: CpuId = CpuId(0);
pub(super) const ZONE: ZoneId = ZoneId(0);
pub(super) const CELL: u32 = 32;
pub(super) const BLOCK: u32 = PAGEBLOCK_PAGES;
const HUGE: Order = Order(9);

/// What compaction works on.
pub(super) struct Scene {
    pub(super) core: Core<NoTrace>,
    lru: Lru,
    cache: PageCache,
    anon: AnonMaps,
    pub(super) compactor: Compactor,
}

impl Scene {
    pub(super) fn begin(&mut self, request: CompactRequest) -> Result<Compaction, CompactResult> {
        self.compactor.begin(&mut self.core, &mut self.lru, CPU, ZONE, request)
    }

    pub(super) fn step(&mut self, run: &mut Compaction) -> CompactStep {
        let Self { core, lru, cache, anon, compactor } = self;
        let step = compactor.step(core, lru, cache, anon, CPU, run);
        core.alloc.check().unwrap();
        step
    }

    /// Searches for as many targets as a pageblock has pages, without a scan.
    pub(super) fn search_targets(&mut self, run: &mut Compaction) {
        self.compactor.search_targets(&mut self.core, run, u64::from(BLOCK), &mut CompactStep::default());
        self.core.alloc.check().unwrap();
    }

    pub(super) fn end(&mut self, run: Compaction) {
        self.compactor.end(&mut self.core, CPU, run);
        let _ = self.core.alloc.drain_all();
        self.core.alloc.check().unwrap();
    }

    /// What the zone remembers.
    fn zone(&self) -> &ZoneCompact {
        self.compactor.zone(ZONE)
    }

    fn suits(&self, order: u8) -> Suitability {
        suitable(&self.core.alloc, ZONE, Order(order), AllocFlags::WMARK_MIN, ZoneKind::Movable)
    }

    fn is_ready(&self, order: u8) -> bool {
        is_ready(&self.core.alloc, ZONE, Order(order), ZoneKind::Movable)
    }
}

fn take(mem: &mut Scene, order: Order) -> Option<Pfn> {
    mem.core.alloc.alloc(CPU, Gfp::HIGHUSER_MOVABLE, order, AllocFlags::NO_WATERMARKS).page
}

/// One zone of so many pageblocks, all of it taken page by page.
fn taken(pageblocks: usize) -> (Scene, Vec<Pfn>) {
    taken_under("linux-6.1", pageblocks)
}

/// A kernel that scans and does not search; for those that do: `search_scenes.rs`.
fn taken_under(kernel: &str, pageblocks: usize) -> (Scene, Vec<Pfn>) {
    let mut version = Version::parse(kernel).unwrap();
    version.rules = version.rules.with(Rule::CompactSearch(CompactSearch::None));
    taken_by(version, pageblocks)
}

pub(super) fn taken_by(version: Version, pageblocks: usize) -> (Scene, Vec<Pfn>) {
    let zone = ZoneLayout::new(ZoneKind::Dma32, Pages(pageblocks as u64 * u64::from(BLOCK)));
    let layout =
        MemoryLayout { nodes: vec![NodeLayout { zones: vec![zone] }], cpus: 1, huge_pages: HugeSupport::Off };
    let core = Core::boot(&layout, version, Sysctls::default(), NoTrace).unwrap();
    let mut compactor = Compactor::new(core.alloc.zones());
    compactor.zones[0].reset_positions(); // The first run of a zone ends at once.
    let mut mem =
        Scene { core, lru: Lru::new(1, 1), cache: PageCache::new(1), anon: AnonMaps::default(), compactor };
    let pages = core::iter::from_fn(|| take(&mut mem, Order(0))).collect();
    (mem, pages)
}

fn scene(drawing: &[&str]) -> Scene {
    draw(taken(drawing.len()), drawing)
}

pub(super) fn draw((mut mem, pages): (Scene, Vec<Pfn>), drawing: &[&str]) -> Scene {
    let anon = mem.anon.create();
    for pfn in pages {
        let cell = (pfn.0 / CELL) as usize;
        match drawing[cell / 16].as_bytes()[cell % 16] {
            b'.' => mem.core.alloc.free(CPU, pfn, Order(0)),
            b'A' => mem.anon.map(&mut mem.core, &mut mem.lru, CPU, anon, pfn.0, pfn, MemcgId::ROOT),
            _ => {}
        }
    }
    mem.lru.drain_all(&mut mem.core);
    let _ = mem.core.alloc.drain_all();
    mem.core.alloc.check().unwrap();
    mem
}

const fn request(order: Order, priority: CompactPriority) -> CompactRequest {
    CompactRequest {
        order,
        want: MigrateType::Movable,
        highest_zoneidx: ZoneKind::Movable,
        flags: AllocFlags::WMARK_MIN,
        priority,
        direct: true,
        may_fs: true,
        goal: CompactGoal::Block,
    }
}

const ASYNC: CompactRequest = request(HUGE, CompactPriority::Async);
pub(super) const LIGHT: CompactRequest = request(HUGE, CompactPriority::SyncLight);
const FULL: CompactRequest = request(HUGE, CompactPriority::SyncFull);
pub(super) const KCOMPACTD: CompactRequest = CompactRequest { direct: false, ..LIGHT };

/// What a run came to, and the frames that its migrate scanner looked at.
pub(super) fn compact(mem: &mut Scene, request: CompactRequest) -> (CompactResult, u64) {
    let mut run = mem.begin(request).expect("a run makes sense");
    let mut scanned = 0;
    let result = loop {
        let step = mem.step(&mut run);
        scanned += step.migrate_scanned;
        if let Some(result) = step.done {
            break result;
        }
    };
    mem.end(run);
    let _ = mem.core.alloc.drain_all();
    (result, scanned)
}

/// Pageblocks that both scanners pass over.
pub(super) fn skipped(mem: &Scene) -> Vec<u32> {
    (0..).zip(&mem.zone().skip).filter(|&(_, &skip)| skip).map(|(block, _)| block).collect()
}

/// Where a run of this kind would start, in pageblocks, and whether that is the whole zone.
fn starts_at(mem: &mut Scene, request: CompactRequest) -> (u32, u32, bool) {
    let run = mem.begin(request).expect("a run makes sense");
    let start = (run.migrate_at / BLOCK, run.free_at / BLOCK, run.whole_zone);
    mem.end(run);
    start
}

/// Two pageblocks of the kernel's below ten half empty ones, of which one can be emptied.
const ONE_HOPE: [&str; 12] = [
    "################",
    "################",
    ".A.A.A.A.A.A.A.A",
    "A.A.A.A.A.A.A.A#",
    "A.A.A.A.A.A.A.A#",
    "A.A.A.A.A.A.A.A#",
    "A.A.A.A.A.A.A.A#",
    "A.A.A.A.A.A.A.A#",
    "A.A.A.A.A.A.A.A#",
    "A.A.A.A.A.A.A.A#",
    "A.A.A.A.A.A.A.A#",
    "A.A.A.A.A.A.A.A#",
];

/// [`ONE_HOPE`] without it.
const NO_HOPE: [&str; 12] = {
    let mut drawing = ONE_HOPE;
    drawing[2] = drawing[3];
    drawing
};

#[test]
fn a_run_starts_where_runs_of_its_kind_found_nothing_before() {
    let mut mem = scene(&ONE_HOPE);
    assert_eq!(starts_at(&mut mem, ASYNC), (0, 11, true));
    assert_eq!(compact(&mut mem, ASYNC).0, CompactResult::Success);
    assert_eq!(skipped(&mem), [0, 1, 11], "nothing could be moved from there, nor to there now");
    assert!(take(&mut mem, HUGE).is_some(), "the block that the run made");
    let (below, free, whole) = starts_at(&mut mem, ASYNC);
    assert_eq!((below, whole), (2, false), "async goes on above them");
    assert!(free < 11, "the free scanner goes on as well");
    assert_eq!(mem.zone().migrate_cached, [2 * BLOCK, 0], "sync looks at them itself");
    assert_eq!(starts_at(&mut mem, LIGHT), (0, free, true));
    assert_eq!(starts_at(&mut mem, FULL), (0, 11, true), "the hardest goes through the whole zone");
}

#[test]
fn a_sync_run_sets_both_positions() {
    let mut mem = scene(&ONE_HOPE);
    assert_eq!(compact(&mut mem, LIGHT).0, CompactResult::Success);
    assert_eq!(mem.zone().migrate_cached, [2 * BLOCK; 2]);
}

#[test]
fn a_run_in_vain_is_complete_only_if_it_started_at_the_bottom() {
    let mut mem = scene(&ONE_HOPE);
    let _ = compact(&mut mem, ASYNC);
    assert!(take(&mut mem, HUGE).is_some());
    let (result, _) = compact(&mut mem, ASYNC);
    assert_eq!(result, CompactResult::PartialSkipped);
    assert_eq!(starts_at(&mut mem, ASYNC), (0, 11, true), "the next one starts anew");
    assert_eq!(compact(&mut mem, ASYNC).0, CompactResult::Complete);
    assert_eq!(compact(&mut scene(&NO_HOPE), LIGHT).0, CompactResult::Complete);
}

#[test]
fn kswapd_clears_skip_bits_only_after_a_task_went_through_the_zone_in_vain() {
    for (request, cleared) in [(LIGHT, true), (ASYNC, true), (KCOMPACTD, false)] {
        let mut mem = scene(&NO_HOPE);
        assert_eq!(compact(&mut mem, request).0, CompactResult::Complete);
        let bits = skipped(&mem);
        assert!(bits.starts_with(&[0, 1]), "{bits:?}");
        mem.compactor.reset_skip_bits(ZONE);
        assert_eq!(skipped(&mem).is_empty(), cleared, "direct: {}", request.direct);
    }
    // Whoever got a block in between makes the bits worth keeping.
    let mut mem = scene(&NO_HOPE);
    let _ = compact(&mut mem, LIGHT);
    mem.compactor.succeeded(ZONE, HUGE, false);
    assert!(mem.zone().flush_skip);
    mem.compactor.succeeded(ZONE, HUGE, true);
    mem.compactor.reset_skip_bits(ZONE);
    assert!(!skipped(&mem).is_empty());
}

#[test]
fn blocks_that_gave_nothing_are_not_looked_at_again_but_by_the_hardest_run() {
    let mut mem = scene(&NO_HOPE);
    let (_, first) = compact(&mut mem, LIGHT);
    let kernel = u64::from(2 * BLOCK);
    assert!(first > kernel, "{first}");
    let bits = skipped(&mem);
    let (_, again) = compact(&mut mem, LIGHT);
    assert!(again <= first - kernel, "{again} of {first} with {bits:?}");
    let (_, full) = compact(&mut mem, FULL);
    assert!(full >= kernel, "{full} of {first}");
}

#[test]
fn the_first_run_after_the_longest_deferral_looks_at_everything_again() {
    let mut mem = scene(&NO_HOPE);
    let _ = compact(&mut mem, KCOMPACTD);
    for failures in 1..=6 {
        mem.compactor.defer(ZONE, HUGE);
        while mem.compactor.is_deferred(ZONE, HUGE) {}
        assert!(!skipped(&mem).is_empty());
        let _ = starts_at(&mut mem, LIGHT);
        assert_eq!(skipped(&mem).is_empty(), failures == 6, "after {failures} failures");
    }
}

#[test]
fn skip_bits_stay_while_runs_are_put_off_and_for_orders_that_did_not_fail() {
    let mut mem = scene(&NO_HOPE);
    mem.compactor.zones[0].set_skip(0);
    mem.compactor.succeeded(ZONE, Order(8), false);
    (0..6).for_each(|_| mem.compactor.defer(ZONE, HUGE));
    let _ = starts_at(&mut mem, LIGHT);
    assert_eq!(skipped(&mem), [0], "it is still put off");
    while mem.compactor.is_deferred(ZONE, HUGE) {}
    let _ = starts_at(&mut mem, request(Order(8), CompactPriority::SyncLight));
    assert_eq!(skipped(&mem), [0], "order 8 did not fail");
    let _ = starts_at(&mut mem, LIGHT);
    assert!(skipped(&mem).is_empty());
}

#[test]
fn a_run_that_ends_early_gives_its_targets_back_and_the_next_one_finds_them() {
    let mut mem = scene(&NO_HOPE);
    // Its target is left over.
    mem.core.alloc.frames.set_flags(Pfn(2 * BLOCK), PageFlags::LOCKED);
    let free = mem.core.alloc.zone(ZONE).free_pages();
    let mut run: Compaction = mem.begin(LIGHT).expect("a run makes sense");
    while run.targets_pages == 0 {
        assert_eq!(mem.step(&mut run).done, None);
    }
    let held = run.targets_pages;
    mem.compactor.zones[0].free_cached = 3 * BLOCK;
    mem.end(run);
    assert_eq!(mem.core.alloc.zone(ZONE).free_pages(), free, "{held} pages were held");
    assert_eq!(mem.zone().free_cached, 11 * BLOCK);
}

#[test]
fn counters_say_what_the_steps_said() {
    let mut mem = scene(&ONE_HOPE);
    let (_, scanned) = compact(&mut mem, ASYNC);
    let count = |event| mem.core.alloc.events.get(event);
    assert_eq!(count(VmEvent::CompactMigrateScanned), scanned);
    let (kernel, pages, free) = (2, 8 * u64::from(CELL), 8);
    assert_eq!(scanned, kernel + pages + free, "a block is left at its first page that stays");
    assert_eq!(count(VmEvent::PgMigrateSuccess), 8 * u64::from(CELL));
    assert_eq!(count(VmEvent::PgMigrateFail), 0);
    assert!(count(VmEvent::CompactFreeScanned) >= 8 * u64::from(CELL));
}

#[test]
fn a_run_stops_only_at_the_end_of_a_pageblock() {
    // A block of order 7 is free as soon as four cells were moved.
    let mut mem = scene(&[
        "################",
        "AAAAAAAAAAAAAAAA",
        "A#A#A#A#A#A#A#A#",
        "################",
        "#.#.#.#.#.#.#.#.",
        "#.#.#.#.#.#.#.#.",
        "#.#.#.#.#.#.#.#.",
        "#.#.#.#.#.#.#.#.",
    ]);
    let order = Order(7);
    assert_eq!(compact(&mut mem, request(order, CompactPriority::SyncLight)).0, CompactResult::Success);
    assert_eq!(mem.core.alloc.events.get(VmEvent::PgMigrateSuccess), u64::from(BLOCK));
}

#[test]
fn a_step_takes_32_pages_and_a_finished_piece_is_drained() {
    let mut mem = scene(&[
        "AAAAAAAAAAAAAAAA",
        "#.#.#.#.#.#.#.#.",
        "#.#.#.#.#.#.#.#.",
        "#.#.#.#.#.#.#.#.",
        "#.#.#.#.#.#.#.#.",
        "#.#.#.#.#.#.#.#.",
    ]);
    let order = Order(7);
    let mut run = mem.begin(request(order, CompactPriority::SyncLight)).expect("a run makes sense");
    let steps: Vec<CompactStep> = (0..16).map(|_| mem.step(&mut run)).collect();
    mem.end(run);
    assert!(steps.iter().all(|step| step.moved_anon == 32 && step.done.is_none()), "{steps:?}");
    // What came free merges as soon as the scanner leaves the piece that the request wants.
    let drained: Vec<u64> = steps.iter().map(|step| step.drained).collect();
    assert_eq!(drained, [0, 0, 0, 128].repeat(4));
}

#[test]
fn a_task_that_does_not_wait_gives_up_without_targets() {
    let mut mem = scene(&ONE_HOPE);
    let mut run = mem.begin(ASYNC).expect("a run makes sense");
    // Before the first step others take all but what must be left, at the top.
    let min = mem.core.alloc.zone(ZONE).watermarks.mark(Mark::Min);
    let pages: Vec<Pfn> = core::iter::from_fn(|| take(&mut mem, Order(0))).collect();
    let top = pages.into_iter().filter(|pfn| pfn.0 >= 11 * BLOCK);
    top.take(usize::try_from(min).unwrap()).for_each(|pfn| mem.core.alloc.free(CPU, pfn, Order(0)));
    let _ = mem.core.alloc.drain_all();
    assert_eq!(mem.core.alloc.zone(ZONE).free_pages(), Pages(min));
    let result = loop {
        if let Some(result) = mem.step(&mut run).done {
            break result;
        }
    };
    assert_eq!(result, CompactResult::Contended);
    mem.end(run);
}

#[test]
fn a_request_that_may_not_wait_takes_its_own_pageblocks_apart_only() {
    let unmovable = |direct| CompactRequest { want: MigrateType::Unmovable, direct, ..ASYNC };
    for (request, looks) in [(unmovable(true), false), (unmovable(false), true), (ASYNC, true)] {
        let (_, scanned) = compact(&mut scene(&NO_HOPE), request);
        assert_eq!(scanned > 0, looks, "{request:?}");
    }
}

#[test]
fn a_locked_page_fails_and_stays() {
    let mut mem = scene(&ONE_HOPE);
    mem.core.alloc.frames.set_flags(Pfn(2 * BLOCK + CELL), PageFlags::LOCKED);
    assert_eq!(compact(&mut mem, LIGHT).0, CompactResult::Complete);
    assert_eq!(mem.core.alloc.events.get(VmEvent::PgMigrateFail), 1);
}

/// A page that moved was in the swap cache under its old name only: reclaim took another page's slot away with it,
/// which ended the run ("its page is not in the swap cache").
#[test]
fn a_page_of_the_swap_cache_moves_with_its_slot() {
    let mut mem = scene(&ONE_HOPE);
    mem.core.swap.add_area(AreaSpec { kind: AreaKind::Zram, pages: 1024, priority: None });
    let old = Pfn(2 * BLOCK + CELL);
    let slots = [0, 1].map(|_| mem.cache.take_slot(&mut mem.core, CPU, MemcgId::ROOT, 1).unwrap().slot);
    assert!(mem.cache.insert_swap(&mut mem.core, CPU, slots[1], old).is_some());
    let _ = mem.core.alloc.drain_all();
    assert_eq!(compact(&mut mem, LIGHT).0, CompactResult::Success);
    let new = mem.cache.swap_page(slots[1]).expect("it is in the swap cache still");
    assert!(new != old && PageCache::slot_of(&mem.core, new) == slots[1]);
    mem.cache.remove_swap(&mut mem.core, CPU, new, None);
    assert_eq!(mem.cache.swap_page(slots[1]), None);
}

/// Guests of User-Mode Linux fault on what was moved. Hardware notes the next access by itself.
#[test]
fn page_tables_that_no_hardware_walks_forget_accesses_to_a_page_that_moved() {
    let follow = FollowTables::ByEntry;
    for (tables, is_young) in
        [(PageTables::Hardware, true), (PageTables::UserMode { follow, reads: OldReads::Unseen }, false)]
    {
        let mut mem = scene(&ONE_HOPE);
        mem.core.page_tables = tables;
        let (anon, index) = (AnonId(0), 2 * BLOCK + CELL);
        let old = mem.anon.find(anon, index).unwrap();
        mem.core.alloc.frames.set_flags(old, PageFlags::YOUNG);
        assert_eq!(compact(&mut mem, LIGHT).0, CompactResult::Success);
        let new = mem.anon.find(anon, index).unwrap();
        assert_ne!(new, old);
        assert_eq!(mem.core.alloc.frames.flags(new).has(PageFlags::YOUNG), is_young, "{tables:?}");
    }
}

// ---- does a run make sense? ----

/// So many pages of a zone of 64 MiB are free, no two of them neighbours.
fn singles(free: u64) -> Scene {
    singles_under("linux-6.1", free)
}

fn singles_under(kernel: &str, free: u64) -> Scene {
    let (mut mem, pages) = taken_under(kernel, 32);
    let singles = pages.into_iter().filter(|pfn| pfn.0.is_multiple_of(2));
    let count = usize::try_from(free).unwrap();
    let freed = singles.take(count).map(|pfn| mem.core.alloc.free(CPU, pfn, Order(0))).count();
    assert_eq!(freed, count);
    let _ = mem.core.alloc.drain_all();
    mem
}

#[test]
fn compaction_needs_twice_the_block_above_the_min_mark_or_above_the_low_one_for_costly_orders() {
    let marks = singles(0).core.alloc.zone(ZONE).watermarks;
    assert_ne!(marks.mark(Mark::Min), marks.mark(Mark::Low));
    for order in 1..=10 {
        let mark = marks.mark(if order > 3 { Mark::Low } else { Mark::Min });
        let needed = mark + (2 << order);
        assert_eq!(singles(needed).suits(order), Suitability::Skip, "order {order}");
        assert_eq!(singles(needed + 1).suits(order), Suitability::Suitable, "order {order}");
        // Reclaim goes on until as much is free above the high mark.
        let needed = marks.mark(Mark::High) + (2 << order);
        let ready = |free| singles(free).is_ready(order);
        assert_eq!([ready(needed), ready(needed + 1)], [false, true], "order {order}");
    }
}

/// MECHANISMS-510-72 9.2.
#[test]
fn since_7_2_a_chunk_above_the_mark_is_room_enough_for_any_block() {
    let singles = |free| singles_under("linux-6.12+small-compact-gap", free);
    let marks = singles(0).core.alloc.zone(ZONE).watermarks;
    for (order, gap) in [(1, 4), (3, 16), (4, 32), (5, 32), (9, 32)] {
        let costly = order > 3;
        let needed = marks.mark(if costly { Mark::Low } else { Mark::Min }) + gap;
        assert_eq!(singles(needed).suits(order), Suitability::Skip, "order {order}");
        assert_eq!(singles(needed + 1).suits(order), Suitability::Suitable, "order {order}");
        let beyond = if costly { marks.mark(Mark::Low) - marks.mark(Mark::Min) } else { 0 };
        let needed = marks.mark(Mark::High) + beyond + gap;
        let ready = |free| singles(free).is_ready(order);
        assert_eq!([ready(needed), ready(needed + 1)], [false, true], "order {order}");
    }
}

#[test]
fn boosted_marks_count_and_a_request_that_fits_needs_no_run() {
    let mut mem = singles(4000);
    assert_eq!(mem.suits(0), Suitability::Fits);
    assert!(mem.is_ready(0));
    assert_eq!(mem.suits(1), Suitability::Suitable);
    let mut request = request(Order(0), CompactPriority::Async);
    assert_eq!(mem.begin(request).err(), Some(CompactResult::Success));
    request = CompactRequest { order: Order(10), ..request };
    assert_eq!(singles(100).begin(request).err(), Some(CompactResult::Skipped));
    assert_eq!(mem.core.alloc.events.get(VmEvent::CompactMigrateScanned), 0);
}

/// So many free blocks of order 3 and of order 2 in a zone of 64 MiB, no two of them neighbours.
fn pieces(eights: usize, fours: usize) -> Scene {
    let (mut mem, pages) = taken(32);
    let whole = |piece: u32, from: u32, len: u32| {
        let range = (piece * 16) + from..(piece * 16) + from + len;
        range.clone().all(|pfn| pages.binary_search(&Pfn(pfn)).is_ok()).then_some(range)
    };
    assert!(pages.is_sorted());
    let free: Vec<u32> = (0..1024)
        .filter_map(|piece| whole(piece, 0, 8))
        .take(eights)
        .chain((0..1024).filter_map(|piece| whole(piece, 12, 4)).take(fours))
        .flatten()
        .collect();
    free.into_iter().for_each(|pfn| mem.core.alloc.free(CPU, Pfn(pfn), Order(0)));
    let _ = mem.core.alloc.drain_all();
    let area = &mem.core.alloc.zone(ZONE).free_area;
    assert_eq!([3, 2].map(|at| area.blocks_free(Order(at))), [eights as u64, fours as u64]);
    mem
}

#[test]
fn costly_orders_are_compacted_only_where_fragmentation_is_to_blame() {
    // Blocks of half the size asked for are 500 and a thousandth of a block less; smaller ones more.
    for (eights, fours, index, suitability) in [
        (1, 0, -500, Suitability::Skip),
        (500, 0, 498, Suitability::Skip),
        (1001, 0, 500, Suitability::Skip),
        (1001, 5, 501, Suitability::Suitable),
        (500, 500, 624, Suitability::Suitable),
    ] {
        let mem = pieces(eights, fours);
        let area = &mem.core.alloc.zone(ZONE).free_area;
        assert_eq!(fragmentation_index(area, Order(4)), index, "{eights}, {fours}");
        assert_eq!(mem.suits(4), suitability, "{eights}, {fours}");
        assert_eq!(fragmentation_index(area, Order(3)), -1000, "that fits");
        assert_eq!(mem.suits(3) == Suitability::Fits, eights > 100);
    }
    assert_eq!(fragmentation_index(&singles(0).core.alloc.zone(ZONE).free_area, Order(4)), 0, "all is used");
    // The index is not asked for orders that end with the OOM killer otherwise.
    let fours = pieces(0, 1000);
    let area = &fours.core.alloc.zone(ZONE).free_area;
    assert_eq!(fragmentation_index(area, Order(3)), 499);
    assert_eq!(fours.suits(3), Suitability::Suitable);
}
