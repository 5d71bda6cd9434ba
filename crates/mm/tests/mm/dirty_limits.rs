//! What counts towards the thresholds of dirty pages, and which nodes hold too many (MECHANISMS 10.1, 10.2;
//! MECHANISMS-6X 8.1).

use pagetide_mm as mm;

use mm::MemcgId;
use mm::alloc::flags::AllocFlags;
use mm::base::gfp::Gfp;
use mm::base::layout::ZoneKind;
use mm::cgroup::tree::Limit;
use mm::version::rules::{CgroupWriteback, Rule};
use units::Order;

use crate::world::{CPU, NODE, World};

const ROOT: MemcgId = MemcgId::ROOT;

fn thresholds(world: &World) -> (u64, u64) {
    let limits = world.mem.dirty_limits();
    (limits.threshold, limits.background)
}

/// Free pages above all reserves, and pages on the lists of files.
fn dirtyable(world: &World) -> u64 {
    let (mut free, mut reserve) = (0, 0);
    for zone in world.mem.core.alloc.zones() {
        let kept = ZoneKind::ALL.map(|kind| zone.watermarks.reserve(kind)).into_iter().max().unwrap_or(0);
        free += zone.free_pages().0;
        reserve += zone.watermarks.base(mm::alloc::watermark::Mark::High) + kept;
    }
    let lists = [mm::lru::lists::LruList::InactiveFile, mm::lru::lists::LruList::ActiveFile];
    let listed: usize = lists.map(|list| world.mem.lru_list(ROOT, NODE, list).count()).into_iter().sum();
    free - reserve + listed as u64
}

#[test]
fn slab_lowers_the_thresholds_and_page_cache_does_not() {
    let mut world = World::boot("linux-5.3", 64);
    let share = |pages: u64| (pages * 819 / 4096, pages * 409 / 4096);
    let empty = thresholds(&world);
    assert_eq!(empty, share(dirtyable(&world)));

    world.read(ROOT, 0..4_000);
    world.settle();
    let with_files = thresholds(&world);
    assert!(empty.0 - with_files.0 < 40, "what is lost are nodes of the tree and pages on per-CPU lists");

    const SLAB: u64 = 4_096;
    for _ in 0..SLAB / 8 {
        let flags = AllocFlags::NO_WATERMARKS;
        world.mem.core.alloc.alloc(CPU, Gfp::KERNEL, Order(3), flags).page.expect("free pages");
    }
    let with_slab = thresholds(&world);
    assert_eq!(with_slab, share(dirtyable(&world)));
    assert_eq!(with_files.0 - with_slab.0, SLAB * 819 / 4096, "a fifth of what slab took");
}

/// Its limit leaves 1,000 pages, of which it has read 400 and made 50 dirty; the machine has room for far more.
#[test]
fn a_cgroup_may_have_a_share_dirty_of_its_pages_and_of_what_its_limit_leaves() {
    let with = |answer| {
        let mut world = World::boot_with("linux-6.12", &[Rule::CgroupWriteback(answer)], 64);
        let group = world.group("g");
        world.mem.core.cgroups.set_limit(group, Limit::Max, 1_000);
        world.read(group, 0..400);
        world.settle();
        for index in 0..50 {
            let pfn = world.page(index).expect("it was read");
            world.mem.set_dirty(pfn);
        }
        (world, group)
    };
    let (mut world, group) = with(CgroupWriteback::Absent);
    assert_eq!(world.mem.dirty_domains(group).group, None);
    let (mut world, group) = with(CgroupWriteback::OwnShare);
    assert_eq!(world.mem.dirty_domains(ROOT).group, None);
    let before = world.mem.dirty_domains(group).group.expect("a share of its own");
    assert_eq!(before.dirty, 0, "as of the last flush");
    world.mem.core.cgroups.flush_periodic();
    let domains = world.mem.dirty_domains(group);
    assert_eq!(domains.machine, world.mem.dirty_limits());
    let own = domains.group.expect("a share of its own");
    let headroom = 1_000 - world.mem.core.cgroups[group].memory.usage;
    let share = |percent: u64| (400 + headroom) * (percent * 4096 / 100) / 4096;
    assert_eq!((own.threshold, own.background, own.dirty), (share(20), share(10), 50));
    assert!(own.threshold < 200 && domains.machine.threshold > 2_000);
}

#[test]
fn a_node_is_full_when_more_than_its_share_is_dirty_or_being_written() {
    let mut world = World::boot("linux-5.3", 16);
    world.read(ROOT, 0..2_000);
    world.settle();
    let limit = dirtyable(&world) * 20 / 100;
    let full_after = |world: &mut World, pages: u64| {
        let done = world.mem.cache.pending(NODE);
        for index in done..pages {
            let pfn = world.page(u32::try_from(index).expect("few pages")).expect("it was read");
            world.mem.set_dirty(pfn);
        }
        world.mem.start_writeback(world.file, 0, u32::try_from(pages / 2).expect("few pages"));
        world.mem.note_dirty_full_nodes();
        let gfp = Gfp::HIGHUSER_MOVABLE | Gfp::WRITE;
        let page = world.mem.core.alloc.alloc(CPU, gfp, Order(0), AllocFlags::fast(gfp, false)).page;
        if let Some(pfn) = page {
            world.mem.core.alloc.free(CPU, pfn, Order(0));
        }
        page.is_none()
    };
    assert!(!full_after(&mut world, limit), "as many as it may hold");
    assert!(full_after(&mut world, limit + 1), "no page to write to, though most are free");
}
