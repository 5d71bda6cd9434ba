//! What becomes of one page at the inactive tail: every state of the page under every reclaimer, and
//! what is counted (MECHANISMS 6.2, 6.8; MECHANISMS-6X 3.5). Anonymous pages, which need swap, have scenes of
//! their own.

use std::fmt::Write;

use crate::world::{CPU, NODE, World};
use insta::assert_snapshot;
use pagetide_mm::MemcgId;
use pagetide_mm::base::frame::PageFlags;
use pagetide_mm::base::layout::ZoneKind;
use pagetide_mm::base::vmstat::{MemcgStat, VmEvent};
use pagetide_mm::lru::lists::LruList;
use pagetide_mm::reclaim::run::{ChunkReport, Met, Reclaimer, ScanControl};
use units::{Order, Pfn};

const ROOT: MemcgId = MemcgId::ROOT;

/// States of a page, by what was done to it.
const PAGES: [&str; 13] = [
    "clean",
    "read",
    "mapped",
    "mapped young",
    "mapped young read",
    "locked",
    "activating",
    "dirty",
    "dirty read",
    "dirty marked",
    "dirty marked read",
    "writeback",
    "writeback marked",
];

/// What the node remembers of kswapd's passes before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Node {
    Quiet,
    /// Nothing but dirty pages that nobody wrote.
    Dirty,
    /// Nothing but pages under writeback.
    Writeback,
}

/// A folio of a file, alone on the inactive list.
struct Scene {
    world: World,
    pfn: Pfn,
    /// What the pass met.
    met: Met,
    pages: u64,
}

impl Scene {
    fn new(page: &str, node: Node) -> Self {
        Self::with_folio(page, node, Order(0))
    }

    fn with_folio(page: &str, node: Node, order: Order) -> Self {
        Self::of(World::boot("linux-6.1", 8), page, node, order)
    }

    fn of(mut world: World, page: &str, node: Node, order: Order) -> Self {
        assert!(world.add(CPU, ROOT, 0, order));
        world.settle();
        let (pfn, file) = (world.page(0).expect("it was just added"), world.file);
        for word in page.split(' ') {
            let flag = match word {
                "clean" => continue,
                "dirty" | "writeback" => {
                    assert!(world.mem.set_dirty(pfn));
                    if word == "writeback" {
                        assert_eq!(world.mem.start_writeback(file, 0, 1), Some((0, order.pages())));
                    }
                    continue;
                }
                "read" => PageFlags::REFERENCED,
                "mapped" => PageFlags::MAPPED,
                "young" => PageFlags::YOUNG,
                "locked" => PageFlags::LOCKED,
                "activating" => PageFlags::ACTIVATING,
                "marked" => PageFlags::RECLAIM,
                _ => panic!("no state of a page: {word}"),
            };
            world.mem.core.alloc.frames.set_flags(pfn, flag);
        }
        let seen = Met { taken: 2, file_taken: 2, ..Met::default() };
        world.mem.reclaim.note_pass(
            NODE,
            &match node {
                Node::Quiet => Met { unqueued_dirty: 1, writeback: 1, ..seen },
                Node::Dirty => Met { unqueued_dirty: 2, ..seen },
                Node::Writeback => Met { writeback: 2, ..seen },
            },
        );
        world.mem.reclaim.set_writepage_hook(true);
        Self { world, pfn, met: Met::default(), pages: u64::from(order.pages()) }
    }

    fn pass(self, reclaimer: Reclaimer) -> Self {
        self.pass_with(reclaimer, |_, _| {})
    }

    fn pass_with(mut self, reclaimer: Reclaimer, edit: impl FnOnce(&mut World, &mut ScanControl)) -> Self {
        let mut sc = match reclaimer {
            Reclaimer::Kswapd => ScanControl::kswapd(ZoneKind::Movable),
            Reclaimer::Direct => ScanControl::direct(ZoneKind::Movable),
            Reclaimer::Limit => ScanControl::limit(ROOT, 1),
        };
        sc.priority = 0;
        edit(&mut self.world, &mut sc);
        assert_eq!(self.world.pass(&mut sc).scanned, self.pages);
        self.met = sc.met;
        self
    }

    /// Where the page is and whether it is marked; what was counted for it; whether it is to be
    /// written.
    fn tell(&mut self) -> String {
        let flags = self.world.mem.core.alloc.frames.flags(self.pfn);
        let on = |list| self.world.mem.lru_list(ROOT, NODE, list).next() == Some(self.pfn);
        let mut text = match self.world.page(0) {
            None => "free",
            Some(_) if on(LruList::InactiveFile) => "keep",
            Some(_) if on(LruList::ActiveFile) || on(LruList::ActiveAnon) => "activate",
            Some(_) => "nowhere",
        }
        .to_string();
        for (flag, word) in [(PageFlags::REFERENCED, " read"), (PageFlags::RECLAIM, " marked")] {
            if text != "free" && flags.has(flag) {
                text += word;
            }
        }
        for (event, word) in [
            (VmEvent::NrVmscanImmediateReclaim, ", immediate"),
            (VmEvent::NrVmscanWrite, ", write"),
            (VmEvent::PgRotated, ", rotated"),
        ] {
            match self.world.event(event) {
                0 => {}
                n if n == self.pages => text += word,
                n => panic!("{n} counted of {} pages{word}", self.pages),
            }
        }
        let written = self.world.mem.take_pageout();
        assert_eq!(written.contains(&self.pfn), text.contains("write"));
        text
    }
}

/// A table with a row for each page and a column for each pair of reclaimer and node.
fn table(columns: &[(Reclaimer, Node)], tell: impl Fn(Scene) -> String) -> String {
    let mut text = format!("{:17}", "");
    for (reclaimer, node) in columns {
        let title =
            if *node == Node::Quiet { format!("{reclaimer:?}") } else { format!("{reclaimer:?}, {node:?}") };
        let _ = write!(text, " | {title:26}");
    }
    for page in PAGES {
        let _ = write!(text, "\n{page:17}");
        for &(reclaimer, node) in columns {
            let _ = write!(text, " | {:26}", tell(Scene::new(page, node).pass(reclaimer)));
        }
    }
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn verdicts(columns: &[(Reclaimer, Node)]) -> String {
    table(columns, |mut scene| scene.tell())
}

#[test]
fn what_becomes_of_a_page_under_each_reclaimer() {
    use Reclaimer::{Direct, Kswapd};
    assert_snapshot!(verdicts(&[
        (Direct, Node::Quiet),
        (Kswapd, Node::Quiet),
        (Kswapd, Node::Dirty),
        (Kswapd, Node::Writeback),
    ]), @r"
                      | Direct                     | Kswapd                     | Kswapd, Dirty              | Kswapd, Writeback
    clean             | free                       | free                       | free                       | free
    read              | free                       | free                       | free                       | free
    mapped            | free                       | free                       | free                       | free
    mapped young      | keep read                  | keep read                  | keep read                  | keep read
    mapped young read | activate read              | activate read              | activate read              | activate read
    locked            | keep                       | keep                       | keep                       | keep
    activating        | keep                       | keep                       | keep                       | keep
    dirty             | activate marked, immediate | activate marked, immediate | activate marked, immediate | activate marked, immediate
    dirty read        | activate marked, immediate | activate marked, immediate | activate marked, immediate | activate marked, immediate
    dirty marked      | activate marked, immediate | activate marked, immediate | keep marked, write         | activate marked, immediate
    dirty marked read | activate marked, immediate | activate marked, immediate | keep marked                | activate marked, immediate
    writeback         | activate marked            | activate marked            | activate marked            | activate marked
    writeback marked  | activate marked            | activate marked            | activate marked            | activate marked
    ");
}

/// MECHANISMS-510-72 3.5.
#[test]
fn since_6_17_nothing_that_kswapd_saw_makes_it_think_of_writing_a_page() {
    for node in [Node::Quiet, Node::Dirty] {
        for page in ["dirty", "dirty read", "dirty marked", "dirty marked read"] {
            let world = World::boot("linux-6.12+no-file-writeback-in-reclaim", 8);
            let mut scene = Scene::of(world, page, node, Order(0)).pass(Reclaimer::Kswapd);
            assert_eq!(scene.tell(), "activate marked, immediate", "{page}, {node:?}");
        }
    }
}

#[test]
fn what_kswapd_saw_on_a_node_is_nothing_to_others() {
    let rows = |reclaimer, node| {
        let table = verdicts(&[(reclaimer, node)]);
        table.split_once('\n').expect("a title").1.to_owned()
    };
    let direct = rows(Reclaimer::Direct, Node::Quiet);
    for node in [Node::Quiet, Node::Dirty, Node::Writeback] {
        assert_eq!(rows(Reclaimer::Direct, node), direct, "{node:?}");
        assert_eq!(rows(Reclaimer::Limit, node), direct, "{node:?}");
    }
}

#[test]
fn a_dirty_page_that_was_read_once_is_marked_and_activated_by_direct_reclaim() {
    // It was kept at the head of the inactive list, where direct reclaim met it again and again, and
    // when its write had ended it was not freed next.
    let mut scene = Scene::new("dirty read", Node::Quiet).pass(Reclaimer::Direct);
    assert_eq!(scene.tell(), "activate marked, immediate");
    let file = scene.world.file;
    assert_eq!(scene.world.mem.start_writeback(file, 0, 1), Some((0, 1)));
    scene.world.mem.end_writeback(file, 0, 1, &mut Vec::new());
    assert_eq!(scene.tell(), "keep, immediate, rotated");
}

#[test]
fn what_a_pass_meets_of_pages_to_be_written() {
    let met = |scene: Scene| {
        let Met { taken, file_taken, dirty, congested, unqueued_dirty, writeback, immediate } = scene.met;
        assert_eq!((taken, file_taken), (1, 1));
        let words = [
            (dirty, "dirty "),
            (unqueued_dirty, "unqueued "),
            (writeback, "writeback "),
            (congested, "congested "),
            (immediate, "immediate"),
        ];
        words.into_iter().filter(|&(count, _)| count == 1).map(|(_, word)| word).collect()
    };
    use Reclaimer::{Direct, Kswapd};
    let columns = [(Direct, Node::Writeback), (Kswapd, Node::Quiet), (Kswapd, Node::Writeback)];
    assert_snapshot!(table(&columns, met), @r"
                      | Direct, Writeback          | Kswapd                     | Kswapd, Writeback
    clean             |                            |                            |
    read              |                            |                            |
    mapped            |                            |                            |
    mapped young      |                            |                            |
    mapped young read |                            |                            |
    locked            |                            |                            |
    activating        |                            |                            |
    dirty             | dirty unqueued             | dirty unqueued             | dirty unqueued
    dirty read        | dirty unqueued             | dirty unqueued             | dirty unqueued
    dirty marked      | dirty unqueued             | dirty unqueued             | dirty unqueued
    dirty marked read | dirty unqueued             | dirty unqueued             | dirty unqueued
    writeback         | dirty writeback            | dirty writeback            | dirty writeback
    writeback marked  | dirty writeback congested  | dirty writeback congested  | dirty congested immediate
    ");
}

#[test]
fn a_large_folio_counts_all_its_pages() {
    for (page, node, told) in [
        ("clean", Node::Quiet, "free"),
        ("dirty", Node::Quiet, "activate marked, immediate"),
        ("dirty marked", Node::Dirty, "keep marked, write"),
        ("writeback", Node::Quiet, "activate marked"),
    ] {
        let mut scene = Scene::with_folio(page, node, Order(3)).pass(Reclaimer::Kswapd);
        assert_eq!(scene.tell(), told, "{page}");
        let met = scene.met;
        let counted = [met.taken, met.file_taken, met.dirty, met.unqueued_dirty + met.writeback];
        assert_eq!(counted, if page == "clean" { [8, 8, 0, 0] } else { [8; 4] }, "{page}");
    }
    let scene = Scene::with_folio("writeback marked", Node::Writeback, Order(3)).pass(Reclaimer::Kswapd);
    assert_eq!((scene.met.congested, scene.met.immediate, scene.met.writeback), (8, 8, 0));
}

#[test]
fn kswapd_leaves_a_dirty_page_alone_where_it_may_not_write() {
    let mut boosting = Scene::new("dirty marked", Node::Dirty)
        .pass_with(Reclaimer::Kswapd, |_, sc| sc.may_writepage = false);
    assert_eq!(boosting.tell(), "keep marked", "for a boost nothing is written");
    let mut no_hook = Scene::new("dirty marked", Node::Dirty)
        .pass_with(Reclaimer::Kswapd, |world, _| world.mem.reclaim.set_writepage_hook(false));
    assert_eq!(no_hook.tell(), "activate marked", "the filesystem writes no single pages");
}

#[test]
fn a_page_goes_to_the_tail_when_its_write_ends_only_if_it_was_marked_and_is_as_it_was() {
    let end = |change: fn(&mut World, Pfn)| {
        let mut scene = Scene::new("writeback", Node::Quiet).pass(Reclaimer::Direct);
        assert_eq!(scene.tell(), "activate marked");
        // Another page at the tail, which would be taken first.
        assert!(scene.world.add(CPU, ROOT, 1, Order(0)));
        scene.world.settle();
        change(&mut scene.world, scene.pfn);
        let file = scene.world.file;
        let mut written = Vec::new();
        scene.world.mem.end_writeback(file, 0, 1, &mut written);
        assert_eq!(written, [(NODE, MemcgId::ROOT, 1)]);
        (scene.world.event(VmEvent::PgRotated), scene.world.draw(ROOT))
    };
    assert_eq!(end(|_, _| {}), (1, "root: active [] inactive [1 0]".into()));
    let stays = (0, "root: active [0] inactive [1]".to_owned());
    assert_eq!(end(|world, pfn| world.mem.core.alloc.frames.clear_flags(pfn, PageFlags::RECLAIM)), stays);
    assert_eq!(end(|world, pfn| world.mem.core.alloc.frames.set_flags(pfn, PageFlags::LOCKED)), stays);
    assert_eq!(end(|world, pfn| assert!(world.mem.set_dirty(pfn))), stays, "dirty again");
}

/// Counters of reclaim that are not 0 after a pass of `reclaimer` over 4 pages, of which one is
/// locked.
fn counted(kernel: &str, reclaimer: Reclaimer) -> String {
    let mut world = World::boot(kernel, 8);
    let group = world.group("A");
    world.read(group, 0..4);
    world.settle();
    let pfn = world.page(0).expect("just read");
    world.mem.core.alloc.frames.set_flags(pfn, PageFlags::LOCKED);
    let mut sc = match reclaimer {
        Reclaimer::Kswapd => ScanControl::kswapd(ZoneKind::Movable),
        Reclaimer::Direct => world.direct(),
        Reclaimer::Limit => world.limit(group),
    };
    sc.priority = 0;
    let _ = world.pass(&mut sc);
    let mut words = Vec::new();
    for event in [
        VmEvent::PgScanKswapd,
        VmEvent::PgScanDirect,
        VmEvent::PgStealKswapd,
        VmEvent::PgStealDirect,
        VmEvent::PgScanFile,
        VmEvent::PgScanAnon,
        VmEvent::PgStealFile,
        VmEvent::PgStealAnon,
    ] {
        words.push((event.name().to_owned(), world.event(event)));
    }
    for (name, stat) in [
        ("A.pgscan_kswapd", MemcgStat::PgScanKswapd),
        ("A.pgscan_direct", MemcgStat::PgScanDirect),
        ("A.pgsteal_kswapd", MemcgStat::PgStealKswapd),
        ("A.pgsteal_direct", MemcgStat::PgStealDirect),
    ] {
        words.push((name.to_owned(), world.mem.core.cgroups.local_stat(group, NODE, stat)));
    }
    let words = words.into_iter().filter(|&(_, n)| n > 0).map(|(name, n)| format!("{name} {n}"));
    words.collect::<Vec<_>>().join(", ")
}

#[test]
fn scans_and_steals_are_counted_by_reclaimer_and_those_of_a_limit_for_the_group_only() {
    assert_snapshot!(counted("linux-6.1", Reclaimer::Kswapd), @"pgscan_kswapd 4, pgsteal_kswapd 3, pgscan_file 4, pgsteal_file 3, A.pgscan_kswapd 4, A.pgsteal_kswapd 3");
    assert_snapshot!(counted("linux-6.1", Reclaimer::Direct), @"pgscan_direct 4, pgsteal_direct 3, pgscan_file 4, pgsteal_file 3, A.pgscan_direct 4, A.pgsteal_direct 3");
    assert_snapshot!(counted("linux-6.1", Reclaimer::Limit), @"pgscan_file 4, pgsteal_file 3, A.pgscan_direct 4, A.pgsteal_direct 3");
}

/// MECHANISMS-510-72 3.6.
#[test]
fn since_7_1_those_of_a_limit_are_counted_as_any_others() {
    let kernel = "linux-6.12+limit-reclaim-in-vmstat";
    assert_eq!(counted(kernel, Reclaimer::Limit), counted(kernel, Reclaimer::Direct));
}

#[test]
fn pages_that_go_to_the_active_list_and_back_are_counted() {
    // Of an active list that a limit opens, `pgrefill` of /proc/vmstat counts nothing from 5.9 to 7.0.
    for (kernel, refill) in [("linux-5.7", 3), ("linux-6.1", 0), ("linux-6.12", 0), ("linux-7.2", 3)] {
        let mut world = World::boot(kernel, 8);
        let group = world.group("A");
        world.read(group, 0..3);
        world.settle();
        let pages: Vec<Pfn> = (0..3).map(|index| world.page(index).expect("just read")).collect();
        pages.iter().for_each(|&pfn| assert!(world.mem.set_dirty(pfn)));
        let pass = |world: &mut World| {
            let mut sc = world.limit(group);
            sc.priority = 0;
            let _ = world.pass(&mut sc);
            world.settle();
            let events =
                [VmEvent::PgActivate, VmEvent::PgRefill, VmEvent::PgDeactivate].map(|e| world.event(e));
            let stats = [MemcgStat::PgActivate, MemcgStat::PgRefill, MemcgStat::PgDeactivate]
                .map(|stat| world.mem.core.cgroups.local_stat(group, NODE, stat));
            (events, stats, world.sizes(group))
        };
        assert_eq!(pass(&mut world), ([3, 0, 0], [3, 0, 0], (3, 0)), "{kernel}: dirty pages are activated");
        // Nothing is inactive: the active list is opened. Only a program's code would stay.
        world.mem.core.alloc.frames.set_flags(pages[1], PageFlags::YOUNG);
        assert_eq!(pass(&mut world), ([3, refill, 3], [3, 3, 3], (0, 3)), "{kernel}");
        let young = world.mem.core.alloc.frames.flags(pages[1]);
        assert!(!young.has(PageFlags::YOUNG) && young.has(PageFlags::WORKINGSET), "{kernel}: {young:?}");
    }
}

#[test]
fn a_chunk_reports_what_it_cost() {
    let mut world = World::boot("linux-6.1", 8);
    let group = world.group("A");
    world.heat(group, 0..50);
    world.read(group, 100..140);
    world.settle();
    let mut sc = world.limit(group);
    (sc.priority, sc.nr_to_reclaim) = (0, 1000);
    let _ = world.mem.begin_pass(NODE, &mut sc);
    let mut scan = world.mem.begin_lruvec(group, NODE, &mut sc).expect("no protection");
    let mut chunk = |world: &mut World| {
        let report = world.mem.shrink_chunk(CPU, &mut scan, &mut sc)?;
        let ChunkReport { scanned, reclaimed, deactivated, taken, .. } = report;
        assert_eq!((taken.pages, taken.file), (scanned, scanned));
        Some((scanned, reclaimed, deactivated))
    };
    // A chunk of each list in turn: 40 inactive pages and 50 active ones.
    let chunks: Vec<_> = std::iter::from_fn(|| chunk(&mut world)).collect();
    assert_eq!(chunks, [(32, 32, 0), (32, 0, 32), (8, 8, 0), (18, 0, 18)]);
}

#[test]
fn a_list_without_quota_is_not_looked_at() {
    let mut world = World::boot("linux-6.1", 8);
    world.read(ROOT, 0..40);
    world.settle();
    world.read(ROOT, 100..101);
    let mut sc = world.direct();
    sc.priority = 12;
    assert_eq!(world.pass(&mut sc).scanned, 0);
    assert!(!sc.skipped_deactivate, "no active page was left alone");
    assert_eq!(world.mem.add_batch(CPU).len(), 1, "no batch was emptied for it");
}
