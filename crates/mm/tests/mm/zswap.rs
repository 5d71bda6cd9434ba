//! Compressed pages in front of a swap disk, on a machine with one cgroup P (SWAP 4.4).

use pagetide_mm as mm;

use mm::base::ids::AnonId;
use mm::base::sysctl::Sysctl;
use mm::base::vmstat::VmEvent;
use mm::lru::lists::LruList;
use mm::reclaim::plan::Shrinker;
use mm::version::geometry::Cache;
use mm::version::rules::{Rule, Zswap};

use crate::swap_worlds::{DISK, Swapping};
use crate::world::{CPU, NODE};

/// A world with zswap and so many written pages of P, each of which compresses to 1200 bytes.
fn written(kernel: &str, pages: u32) -> (Swapping, AnonId) {
    let mut scene = Swapping::new(kernel, &[DISK], &[]);
    scene.world.mem.set_sysctl(Sysctl::ZswapEnabled, 1);
    let anon = scene.map(pages);
    touch(&mut scene, anon, 0..pages, true);
    scene.world.settle();
    (scene, anon)
}

fn touch(scene: &mut Swapping, anon: AnonId, pages: std::ops::Range<u32>, write: bool) {
    for index in pages {
        while !scene.access(anon, 1 << 20, index, write) {
            scene.finish_reads(usize::MAX);
        }
    }
}

fn page_out(scene: &mut Swapping, anon: AnonId, pages: std::ops::Range<u32>) {
    let _ = scene.world.mem.anon_page_out(CPU, anon, pages.start, pages.end - pages.start);
    scene.writes.extend(scene.world.mem.take_swap_writes());
    scene.world.mem.check().expect("sound");
}

fn events<const N: usize>(scene: &Swapping, events: [VmEvent; N]) -> [u64; N] {
    events.map(|event| scene.world.event(event))
}

const OUT: [VmEvent; 2] = [VmEvent::ZswpOut, VmEvent::PswpOut];
const IN: [VmEvent; 2] = [VmEvent::ZswpIn, VmEvent::PswpIn];

fn stored(scene: &Swapping) -> u64 {
    scene.world.mem.core.swap.zswap.stored_pages()
}

#[test]
fn a_page_goes_into_the_pool_and_comes_back_without_io() {
    for (kernel, kept) in [("linux-6.1", 8), ("linux-6.12", 0), ("linux-7.2", 0)] {
        let (mut scene, anon) = written(kernel, 8);
        let before = scene.world.mem.core.cgroups[scene.memcg].memory.usage;
        page_out(&mut scene, anon, 0..8);
        assert_eq!((events(&scene, OUT), stored(&scene)), ([8, 0], 8), "{kernel}");
        let group = &scene.world.mem.core.cgroups[scene.memcg];
        assert_eq!((group.zswap.bytes, group.zswap.pages), (8 * 1200, 8), "{kernel}");
        assert_eq!(group.memory.usage, before - 8 + 3, "{kernel}: three pages for 9600 bytes");
        touch(&mut scene, anon, 0..8, false);
        assert_eq!((events(&scene, IN), stored(&scene)), ([8, 0], kept), "{kernel}");
        // What was only read goes again: without being stored where its copy was kept.
        page_out(&mut scene, anon, 0..8);
        assert_eq!((events(&scene, OUT), stored(&scene)), ([16 - kept, 0], 8), "{kernel}");
        scene.world.mem.anon_remove(CPU, anon);
        scene.world.settle();
        scene.world.mem.check().expect("sound");
    }
}

/// Guests of 6.1 that store 11,411 pages have 10,624 objects of 64 bytes more.
#[test]
fn each_page_in_the_pool_has_an_entry_in_slab() {
    for (kernel, a_page) in [("linux-6.1", 64), ("linux-6.12", 73), ("linux-7.2", 73)] {
        let (mut scene, anon) = written(kernel, 300);
        page_out(&mut scene, anon, 0..300);
        let slabs = |scene: &Swapping| scene.world.mem.core.slabs.objects(Cache::ZswapEntry);
        assert_eq!((stored(&scene), slabs(&scene)), (300, 300), "{kernel}");
        let pages = scene.world.mem.core.slabs.cache_pages(Cache::ZswapEntry);
        assert_eq!(pages, 300_u64.div_ceil(a_page), "{kernel}");
        scene.world.mem.anon_remove(CPU, anon);
        let left = stored(&scene);
        assert!(
            left < 64 && slabs(&scene) == left,
            "{kernel}: {left}, whose slots the CPU has not given back yet"
        );
        scene.world.mem.check().expect("sound");
    }
}

/// ```text
///   limit 1 % = 40 pages, taken by three: 42     threshold 36
/// ```
#[test]
fn a_full_pool_takes_nothing_until_it_has_fallen_to_its_threshold() {
    let (mut scene, anon) = written("linux-6.12", 400);
    scene.world.mem.set_sysctl(Sysctl::ZswapMaxPoolPercent, 1);
    let (limit, threshold) = (40, 36);
    page_out(&mut scene, anon, 0..200);
    let pool = |scene: &Swapping| scene.world.mem.core.swap.zswap.pool_pages();
    assert_eq!((stored(&scene), pool(&scene)), (131, 42), "ten lie in three pages");
    assert!(pool(&scene) >= limit);
    assert_eq!(events(&scene, OUT), [131, 69], "the others go to the disk");
    assert_eq!([(); 2].map(|()| scene.world.mem.take_zswap_hit()), [true, false]);
    // All have their second chance before the oldest goes.
    scene.write_back(1);
    assert_eq!((stored(&scene), events(&scene, [VmEvent::ZswpWb, VmEvent::PswpOut])), (130, [1, 70]));
    assert_eq!(scene.world.mem.anon_resident(anon, 0, 1), 1, "in the swap cache, being written");
    page_out(&mut scene, anon, 200..210);
    assert_eq!(events(&scene, OUT), [131, 80], "no room yet, below the limit as it is");
    scene.write_back(usize::MAX);
    assert!(pool(&scene) <= threshold, "{}", pool(&scene));
    assert_eq!(scene.world.mem.next_zswap_write(), None);
    page_out(&mut scene, anon, 210..215);
    assert_eq!(scene.world.event(VmEvent::ZswpOut), 136);
    scene.finish_writes(usize::MAX);
    scene.world.mem.check().expect("sound");
}

#[test]
fn a_cgroup_that_has_its_share_gives_an_entry_for_a_new_one() {
    let (mut scene, anon) = written("linux-6.12", 100);
    scene.world.mem.core.cgroups.set_zswap_max(scene.memcg, 12_000);
    page_out(&mut scene, anon, 0..10);
    assert_eq!((stored(&scene), events(&scene, OUT)), (10, [10, 0]));
    // Each of the ten has a second chance, for which a page is refused; then one goes for each that comes.
    page_out(&mut scene, anon, 10..20);
    assert_eq!((stored(&scene), events(&scene, OUT)), (10, [10, 10]));
    page_out(&mut scene, anon, 20..30);
    assert_eq!((stored(&scene), events(&scene, OUT)), (10, [20, 20]));
    assert_eq!(scene.world.event(VmEvent::ZswpWb), 10);
    scene.world.mem.core.cgroups.set_zswap_max(scene.memcg, 0);
    page_out(&mut scene, anon, 30..40);
    assert_eq!((stored(&scene), events(&scene, OUT)), (10, [20, 30]), "nothing at all");
}

#[test]
fn without_writeback_a_page_that_is_refused_stays() {
    let (mut scene, anon) = written("linux-6.12", 20);
    scene.world.mem.core.cgroups.set_zswap_max(scene.memcg, 0);
    scene.world.mem.core.cgroups.set_zswap_writeback(scene.memcg, false);
    page_out(&mut scene, anon, 0..20);
    assert_eq!((events(&scene, OUT), scene.writes.len()), ([0, 0], 0));
    assert_eq!(scene.world.mem.lru_list(scene.memcg, NODE, LruList::ActiveAnon).count(), 20);
}

#[test]
fn a_page_that_does_not_compress_is_refused_or_since_6_18_stored_as_it_is() {
    for (rule, out, poor) in
        [(Zswap::ListPerGroup, [0, 4], 4), (Zswap::StoresAll, [4, 0], 0), (Zswap::Absent, [0, 4], 0)]
    {
        let mut scene = Swapping::new("linux-6.12", &[DISK], &[Rule::Zswap(rule)]);
        scene.world.mem.set_sysctl(Sysctl::ZswapEnabled, 1);
        let anon = scene.map(4);
        scene.world.mem.anon.set_compressed(anon, 4096);
        touch(&mut scene, anon, 0..4, true);
        scene.world.settle();
        page_out(&mut scene, anon, 0..4);
        assert_eq!(events(&scene, OUT), out, "{rule:?}");
        assert_eq!(scene.world.mem.core.swap.zswap.counts.reject_compress_poor, poor, "{rule:?}");
    }
}

/// Entries that compress to 3 pages of ten: the shrinker counts 30 of 100.
#[test]
fn the_shrinker_writes_back_what_nobody_reads_if_it_is_switched_on() {
    for (rule, shrinks) in [(Zswap::OneList, false), (Zswap::ListPerGroup, true)] {
        let mut scene = Swapping::new("linux-6.12", &[DISK], &[Rule::Zswap(rule)]);
        scene.world.mem.set_sysctl(Sysctl::ZswapEnabled, 1);
        let anon = scene.map(100);
        touch(&mut scene, anon, 0..100, true);
        scene.world.settle();
        page_out(&mut scene, anon, 0..100);
        let visit = |scene: &mut Swapping, priority| {
            let mut sc = scene.world.limit(scene.memcg);
            sc.priority = priority;
            let mut plan = scene.world.mem.begin_slab(Shrinker::Zswap, scene.memcg, NODE, &sc)?;
            while scene.world.mem.shrink_slab_batch(CPU, &mut plan, &mut sc).is_some() {}
            scene.writes.extend(scene.world.mem.take_swap_writes());
            Some(scene.writes.len())
        };
        assert_eq!(visit(&mut scene, 0), None, "{rule:?}: off");
        scene.world.mem.set_sysctl(Sysctl::ZswapShrinkerEnabled, 1);
        let seen = [visit(&mut scene, 0), visit(&mut scene, 0), visit(&mut scene, 0)];
        // 60 looks at a time: a second chance for each of the hundred, then they go.
        assert_eq!(seen, if shrinks { [Some(0), Some(20), Some(68)] } else { [None; 3] }, "{rule:?}");
        scene.world.mem.check().expect("sound");
    }
}
