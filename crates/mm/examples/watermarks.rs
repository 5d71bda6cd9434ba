//! A machine of 256 MiB gives pages away until its allocator wakes kswapd, and until nothing is left above the marks.
//!
//! `cargo run -p pagetide-mm --example watermarks -- linux-6.12`. Left out: reclaim, which whoever drives
//! the allocator would begin with; the crate `pagetide-kernel` does.

use pagetide_mm::alloc::page_alloc::PageAllocator;
use pagetide_mm::base::event::NoTrace;
use pagetide_mm::base::gfp::Gfp;
use pagetide_mm::base::layout::MemoryLayout;
use pagetide_mm::base::sysctl::Sysctls;
use pagetide_mm::version::presets::Version;
use units::{CpuId, Order, Pages};

/// How many pages one CPU gets without anybody's help.
fn fast_pages(version: Version) -> u64 {
    let layout = MemoryLayout::flat(Pages(256 << 8), 1);
    let mut memory =
        PageAllocator::boot(&layout, version, Sysctls::default(), NoTrace).expect("a plain machine");
    let (cpu, gfp) = (CpuId(0), Gfp::HIGHUSER_MOVABLE);
    let mut pages = 0;
    loop {
        let flags = memory.fast_flags(cpu, gfp);
        match memory.alloc(cpu, gfp, Order(0), flags).page {
            Some(_) => pages += 1,
            None => return pages,
        }
    }
}

#[allow(clippy::print_stdout, reason = "a line is what it is for")]
fn main() {
    let name = std::env::args().nth(1).unwrap_or_else(|| "linux-6.12".to_owned());
    let version = Version::parse(&name).expect("a kernel, such as linux-6.12");
    println!("{name}: {} of {} pages above the low mark", fast_pages(version), 256 << 8);
}

#[test]
fn the_allocator_stops_at_its_mark() {
    let pages = fast_pages(Version::parse("linux-6.12").unwrap());
    assert!((60_000..65_536).contains(&pages), "{pages}");
}
