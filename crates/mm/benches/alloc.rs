//! What the allocator costs: the order-0 pair through a per-CPU list, and blocks of mixed orders
//! through the buddy lists, beside the crate `buddy_system_allocator` in the same run.
//!
//! `cargo bench -p pagetide-mm --bench alloc`. Each round prints nothing but its time; the digest
//! of the pages handed out is returned, so that no work can be optimised away.

use buddy_system_allocator::FrameAllocator;
use divan::Bencher;
use divan::counter::ItemsCount;
use pagetide_mm::alloc::flags::AllocFlags;
use pagetide_mm::alloc::page_alloc::PageAllocator;
use pagetide_mm::base::event::NoTrace;
use pagetide_mm::base::gfp::Gfp;
use pagetide_mm::base::layout::MemoryLayout;
use pagetide_mm::base::sysctl::Sysctls;
use pagetide_mm::version::presets::Version;
use units::{CpuId, Order, Pages, Pfn};

const MEMORY: Pages = Pages(512 << 8);
const CPU: CpuId = CpuId(0);
const PAIRS: usize = 1000;
const BLOCKS: usize = 1000;
const KERNELS: [&str; 3] = ["linux-5.5", "linux-6.1", "linux-6.12"];

fn main() {
    divan::main();
}

fn boot(kernel: &str) -> PageAllocator<NoTrace> {
    let layout = MemoryLayout::flat(MEMORY, 2);
    PageAllocator::boot(&layout, Version::parse(kernel).expect("a preset"), Sysctls::default(), NoTrace)
        .expect("a plain machine")
}

/// Orders 0 to 3 and now and then 4 to 9, always the same sequence.
fn mixed_orders() -> Vec<u8> {
    let mut stream = units::Seed(1).stream("orders");
    (0..BLOCKS)
        .map(|_| {
            let order = if stream.chance(1, 20) { 4 + stream.below(6) } else { stream.below(4) };
            u8::try_from(order).expect("below ten")
        })
        .collect()
}

fn take(memory: &mut PageAllocator<NoTrace>, gfp: Gfp, order: Order) -> Pfn {
    let flags = memory.fast_flags(CPU, gfp);
    memory.alloc(CPU, gfp, order, flags).page.expect("enough memory")
}

#[divan::bench(args = KERNELS)]
fn order_0_pair_by_pcp(bencher: Bencher, kernel: &str) {
    let mut memory = boot(kernel);
    bencher.counter(ItemsCount::new(PAIRS)).bench_local(move || {
        let mut digest = 0;
        for _ in 0..PAIRS {
            let pfn = take(&mut memory, Gfp::HIGHUSER_MOVABLE, Order(0));
            digest ^= pfn.0;
            memory.free(CPU, pfn, Order(0));
        }
        digest
    });
}

#[divan::bench(args = KERNELS)]
fn order_0_thousand_then_free(bencher: Bencher, kernel: &str) {
    let mut memory = boot(kernel);
    let mut pages = Vec::with_capacity(BLOCKS);
    bencher.counter(ItemsCount::new(BLOCKS)).bench_local(move || {
        for _ in 0..BLOCKS {
            pages.push(take(&mut memory, Gfp::HIGHUSER_MOVABLE, Order(0)));
        }
        for pfn in pages.drain(..) {
            memory.free(CPU, pfn, Order(0));
        }
    });
}

#[divan::bench(args = KERNELS)]
fn mixed_orders_then_free(bencher: Bencher, kernel: &str) {
    let mut memory = boot(kernel);
    let orders = mixed_orders();
    let mut blocks = Vec::with_capacity(BLOCKS);
    bencher.counter(ItemsCount::new(BLOCKS)).bench_local(move || {
        for &order in &orders {
            let order = Order(order);
            let outcome = memory.alloc(CPU, Gfp::KERNEL, order, AllocFlags::WMARK_MIN);
            blocks.push((outcome.page.expect("enough memory"), order));
        }
        for (pfn, order) in blocks.drain(..) {
            memory.free(CPU, pfn, order);
        }
    });
}

#[divan::bench]
fn mixed_orders_then_free_buddy_system_allocator(bencher: Bencher) {
    let mut memory = FrameAllocator::<33>::new();
    memory.add_frame(0, usize::try_from(MEMORY.0).expect("fits"));
    let orders = mixed_orders();
    let mut blocks = Vec::with_capacity(BLOCKS);
    bencher.counter(ItemsCount::new(BLOCKS)).bench_local(move || {
        for &order in &orders {
            let count = 1_usize << order;
            blocks.push((memory.alloc(count).expect("enough memory"), count));
        }
        for (start, count) in blocks.drain(..) {
            memory.dealloc(start, count);
        }
    });
}

#[divan::bench]
fn order_0_pair_buddy_system_allocator(bencher: Bencher) {
    let mut memory = FrameAllocator::<33>::new();
    memory.add_frame(0, usize::try_from(MEMORY.0).expect("fits"));
    bencher.counter(ItemsCount::new(PAIRS)).bench_local(move || {
        let mut digest = 0;
        for _ in 0..PAIRS {
            let frame = memory.alloc(1).expect("enough memory");
            digest ^= frame;
            memory.dealloc(frame, 1);
        }
        digest
    });
}
