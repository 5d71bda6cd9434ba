//! What a kernel object costs: taken and freed at once, and many taken before they go.
//!
//! `cargo bench -p pagetide-mm --bench slab`. Each round returns the pages that are left, so that no work can be
//! optimised away.

use divan::Bencher;
use divan::counter::ItemsCount;
use pagetide_mm::alloc::flags::AllocFlags;
use pagetide_mm::base::event::NoTrace;
use pagetide_mm::base::gfp::Gfp;
use pagetide_mm::base::layout::MemoryLayout;
use pagetide_mm::base::sysctl::Sysctls;
use pagetide_mm::slab::object::{Object, ObjectAlloc};
use pagetide_mm::version::geometry::Cache;
use pagetide_mm::{MemcgId, Memory, Version};
use units::{CpuId, Pages};

const CPU: CpuId = CpuId(0);
const OBJECTS: usize = 20_000;
const KERNELS: [&str; 3] = ["linux-5.3", "linux-6.12", "linux-7.2"];

fn main() {
    divan::main();
}

fn boot(kernel: &str) -> Memory<NoTrace> {
    let layout = MemoryLayout::flat(Pages(512 << 8), 2);
    let version = Version::parse(kernel).expect("a preset");
    Memory::boot(&layout, version, Sysctls::default(), NoTrace).expect("a plain machine")
}

fn take(mem: &mut Memory<NoTrace>, cache: Cache) -> Object {
    loop {
        match mem.alloc_object(CPU, cache, MemcgId::ROOT) {
            ObjectAlloc::Done(object) => return object,
            ObjectAlloc::NeedsCharge { .. } => unreachable!("the root pays for nothing"),
            ObjectAlloc::NeedsSlab => {
                let (order, mobility) = mem.slab_request(cache);
                let gfp = Gfp::KERNEL | mobility;
                let block = mem.core.alloc.alloc(CPU, gfp, order, AllocFlags::WMARK_MIN).page;
                mem.grow_slab(CPU, cache, MemcgId::ROOT, block.expect("memory"));
            }
        }
    }
}

#[divan::bench(args = KERNELS)]
fn pairs(bencher: Bencher, kernel: &str) {
    let mut mem = boot(kernel);
    bencher.counter(ItemsCount::new(OBJECTS)).bench_local(|| {
        for _ in 0..OBJECTS {
            let object = take(&mut mem, Cache::BufferHead);
            mem.free_object(CPU, object);
        }
        mem.slab_pages(true)
    });
}

#[divan::bench(args = KERNELS)]
fn inodes_that_wait_for_rcu(bencher: Bencher, kernel: &str) {
    let mut mem = boot(kernel);
    let mut objects = Vec::with_capacity(OBJECTS);
    bencher.counter(ItemsCount::new(OBJECTS)).bench_local(|| {
        objects.extend((0..OBJECTS).map(|_| take(&mut mem, Cache::XfsInode)));
        for object in objects.drain(..) {
            mem.free_object(CPU, object);
        }
        for _ in 0..2 {
            mem.grace_period_ended(CPU);
        }
        mem.slab_pages(true)
    });
}
