//! What kernel objects cost a cgroup: pages of slabs of its own up to 5.8, bytes since (MECHANISMS 8.1,
//! MECHANISMS-6X 4.1).

use pagetide_mm::alloc::flags::AllocFlags;
use pagetide_mm::base::event::NoTrace;
use pagetide_mm::base::gfp::Gfp;
use pagetide_mm::base::layout::MemoryLayout;
use pagetide_mm::base::sysctl::Sysctls;
use pagetide_mm::base::vmstat::MemcgStat;
use pagetide_mm::cgroup::tree::Charge;
use pagetide_mm::slab::object::{Object, ObjectAlloc};
use pagetide_mm::version::geometry::Cache;
use pagetide_mm::{MemcgId, Memory, Version};
use units::{CpuId, NodeId, Pages};

const CPU: CpuId = CpuId(0);

struct Scene {
    mem: Memory<NoTrace>,
    a: MemcgId,
    b: MemcgId,
}

impl Scene {
    fn boot(kernel: &str) -> Self {
        let layout = MemoryLayout::flat(Pages(16_384), 2);
        let version = Version::parse(kernel).unwrap();
        let mut mem = Memory::boot(&layout, version, Sysctls::default(), NoTrace).unwrap();
        let [a, b] = ["A", "B"].map(|name| mem.memcg_create(MemcgId::ROOT, name));
        Self { mem, a, b }
    }

    /// Takes objects as a task of `memcg` does.
    fn take(&mut self, cache: Cache, memcg: MemcgId, objects: u32) -> Vec<Object> {
        (0..objects).map(|_| self.take_one(cache, memcg)).collect()
    }

    fn take_one(&mut self, cache: Cache, memcg: MemcgId) -> Object {
        loop {
            match self.mem.alloc_object(CPU, cache, memcg) {
                ObjectAlloc::Done(object) => return object,
                ObjectAlloc::NeedsCharge { pages } => {
                    self.charge(memcg, pages);
                    self.mem.core.cgroups.object_pages_charged(CPU, memcg, pages);
                }
                ObjectAlloc::NeedsSlab => {
                    let (order, mobility) = self.mem.slab_request(cache);
                    let gfp = Gfp::KERNEL | mobility;
                    let block = self.mem.core.alloc.alloc(CPU, gfp, order, AllocFlags::WMARK_MIN).page;
                    if let Some(payer) = self.mem.core.slabs.slab_payer(cache, memcg) {
                        self.charge(payer, order.pages());
                    }
                    self.mem.grow_slab(CPU, cache, memcg, block.expect("memory is free"));
                }
            }
        }
    }

    fn charge(&mut self, memcg: MemcgId, pages: u32) {
        assert_eq!(self.mem.core.cgroups.try_charge(CPU, memcg, pages, pages), Charge::Done);
    }

    fn free(&mut self, objects: Vec<Object>) {
        for object in objects {
            self.mem.free_object(CPU, object);
        }
        for _ in 0..2 {
            self.mem.grace_period_ended(CPU);
        }
    }

    /// Pages charged to the two groups, and slab pages of the machine.
    fn pages(&self) -> (u64, u64, u64) {
        let usage = |memcg| self.mem.core.cgroups[memcg].memory.usage;
        self.mem.core.alloc.check().unwrap();
        (usage(self.a), usage(self.b), self.mem.slab_pages(true) + self.mem.slab_pages(false))
    }

    fn slab_bytes(&self, memcg: MemcgId) -> u64 {
        self.mem.core.cgroups.local_stat(memcg, NodeId(0), MemcgStat::SlabReclaimableBytes)
    }
}

#[test]
fn up_to_5_8_a_cgroup_has_slabs_of_its_own_and_pays_for_them() {
    let mut scene = Scene::boot("linux-5.5");
    let (a, b) = (scene.a, scene.b);
    // 21 dentries on a page.
    let mut dentries = scene.take(Cache::Dentry, a, 22);
    dentries.append(&mut scene.take(Cache::Dentry, b, 1));
    assert_eq!(scene.pages(), (2, 1, 3));
    assert_eq!((scene.slab_bytes(a), scene.slab_bytes(b)), (8192, 4096), "pages, not objects");
    // Inodes come on four pages at a time.
    dentries.append(&mut scene.take(Cache::Ext4Inode, b, 1));
    assert_eq!(scene.pages(), (2, 5, 7));
    // Its empty slabs stay, and stay charged.
    scene.free(dentries);
    assert_eq!(scene.pages(), (2, 5, 7));
    let dentries = scene.take(Cache::Dentry, a, 21 * 100);
    assert_eq!(scene.pages(), (100, 5, 105));
    scene.free(dentries);
    let (kept, _, all) = scene.pages();
    assert!((5..40).contains(&kept) && all == kept + 5, "{kept} of {all}");
    assert_eq!(scene.slab_bytes(a), kept * 4096);
}

#[test]
fn since_5_9_objects_of_all_cgroups_share_slabs_and_are_paid_for_by_the_byte() {
    let mut scene = Scene::boot("linux-5.10");
    let (a, b) = (scene.a, scene.b);
    // 192 bytes and 8 for the pointer to the payer: 20 of them are 4000 bytes.
    let mut dentries = scene.take(Cache::Dentry, a, 20);
    dentries.append(&mut scene.take(Cache::Dentry, b, 1));
    assert_eq!(scene.pages(), (1, 1, 1));
    assert_eq!((scene.slab_bytes(a), scene.slab_bytes(b)), (4000, 200));
    scene.free(dentries);
    scene.mem.core.cgroups.drain_all_stocks(MemcgId::ROOT);
    assert_eq!(scene.pages(), (0, 0, 1), "the empty slab is nobody's");
}

#[test]
fn what_is_not_accounted_is_the_roots() {
    for kernel in ["linux-5.3", "linux-6.1"] {
        let mut scene = Scene::boot(kernel);
        let group = scene.a;
        let items = scene.take(Cache::XfsLogItem, group, 3);
        assert!(items.iter().all(|item| item.memcg == MemcgId::ROOT), "{kernel}");
        assert_eq!(scene.pages(), (0, 0, 1), "{kernel}");
    }
}
