//! What the OOM killer could have had instead of a victim.
//!
//! Memory as it is when the killer is called is copied, and the copy is cleaned and emptied by the
//! mechanisms themselves, with a disk that takes no time: dirty pages are written, the log is forced, the AIL
//! is pushed to its end, where buffers that were evicted are read into pages of the reserve or of what was
//! emptied so far, and all that is clean and not in use is dropped. What is left for the request counts by its
//! own rules: the zones of its zonelist, their min marks with boost, their reserves, its flags.
//!
//! Left out: that writing a new page changes its inode once more; that some pages are in use just now.

use sim::SimMemory;
use std::collections::BTreeSet;

use kernel::OomCall;
use mm::alloc::flags::{AllocFlags, gfp_zone};
use mm::alloc::watermark::Mark;
use mm::base::frame::PageFlags;
use mm::base::gfp::Gfp;
use mm::base::ids::MappingId;
use mm::fs::xfs::ail::{AilNext, AilPush};
use mm::fs::xfs::buf::{CLUSTER_PAGES, ClusterId};
use mm::fs::xfs::items::ItemState;
use units::{CpuId, Nanos, Order};

/// Whether the request could be served from some zone at the min mark, and the most pages beyond the mark
/// (negative: what is short).
pub fn surplus(mem: &SimMemory, call: OomCall) -> i64 {
    let OomCall { gfp, order, cpu } = call;
    let flags = AllocFlags::slow(mem.core.rules().reserve_users, gfp, order, false);
    let of = |&id: &_| {
        let zone = mem.core.alloc.zone(id);
        let (mark, free) = (zone.watermarks.mark(Mark::Min), zone.free_pages().0);
        let fits = zone.watermark_ok(order, mark, gfp_zone(gfp), flags, free);
        let reserve = zone.watermarks.reserve(gfp_zone(gfp));
        let pages = free.cast_signed() - (mark + reserve).cast_signed();
        if fits { pages.max(1) } else { pages.min(0) }
    };
    mem.core.alloc.zonelist(cpu, gfp).iter().map(of).max().unwrap_or(i64::MIN)
}

/// What would be there if only the grace periods ended that run, and per-CPU lists were emptied.
pub fn freed_already(mem: &SimMemory, call: OomCall) -> i64 {
    let mut mem = mem.clone();
    for _ in 0..3 {
        let _ = mem.grace_period_ended(call.cpu);
    }
    let _ = mem.core.alloc.drain_all();
    surplus(&mem, call)
}

/// What would be there for the request if all were written and dropped that nobody uses.
pub fn emptied(mem: &SimMemory, call: OomCall) -> i64 {
    let mut mem = mem.clone();
    let cpu = call.cpu;
    mem.lru_drain_all();
    write_pages(&mut mem);
    end_flushes(&mut mem, cpu);
    force_log(&mut mem, cpu);
    push(&mut mem, cpu);
    empty(&mut mem, cpu);
    let _ = mem.core.alloc.drain_all();
    let zones = mem.core.alloc.zonelist(cpu, call.gfp).to_vec();
    while mem.core.alloc.unreserve_highatomic(&zones, call.gfp.migrate_type(), true) {}
    surplus(&mem, call)
}

fn mappings(mem: &SimMemory) -> Vec<MappingId> {
    mem.cache.trees().ids().collect()
}

/// Every dirty page is written, and every write under way ends.
fn write_pages(mem: &mut SimMemory) {
    for mapping in mappings(mem) {
        while mem.start_writeback(mapping, 0, u32::MAX).is_some() {}
        for (index, pfn) in mem.cache.trees().heads(mapping) {
            if mem.core.alloc.frames.flags(pfn).has(PageFlags::WRITEBACK) {
                let count = mem.core.alloc.frames.pages(pfn);
                mem.end_writeback(mapping, index, count, &mut Vec::new());
            }
        }
        // Dirtied again while it was written.
        while let Some((first, count)) = mem.start_writeback(mapping, 0, u32::MAX) {
            mem.end_writeback(mapping, first, count, &mut Vec::new());
        }
        mem.set_inode_dirty(mapping, false);
    }
}

/// All that was changed is in the log on the disk.
fn force_log(mem: &mut SimMemory, cpu: CpuId) {
    let _ = mem.log_close();
    while mem.log_next_record(true).is_some() {}
    for record in mem.fs.xfs_log.records_on_their_way() {
        mem.log_record_written(record);
    }
    while mem.log_commit(cpu, usize::MAX).is_some() {}
}

/// Writes of inodes that are under way end.
fn end_flushes(mem: &mut SimMemory, cpu: CpuId) {
    let items = mem.fs.xfs_log.items();
    let flushing = mappings(mem).into_iter().filter(|&mapping| items.state(mapping) == ItemState::Flushing);
    let clusters: BTreeSet<ClusterId> = flushing.map(|mapping| items.cluster(mapping)).collect();
    for cluster in clusters {
        let _ = mem.cluster_written(cpu, cluster);
    }
}

/// What the thread does that pushes the AIL.
fn push(mem: &mut SimMemory, cpu: CpuId) {
    let mut push = AilPush::new(Nanos::ZERO);
    let mut rests = 0;
    while rests < 3 {
        let _ = mem.log_push_all();
        match mem.ail_step(&mut push) {
            AilNext::Walk(_) => {}
            AilNext::ForceLog => force_log(mem, cpu),
            AilNext::Read(cluster) if !read(mem, cpu, cluster) => return,
            AilNext::Read(_) => {}
            AilNext::Write(clusters) => {
                clusters.iter().for_each(|&cluster| {
                    let _ = mem.cluster_written(cpu, cluster);
                });
                rests = 0;
            }
            AilNext::Sleep(_) => rests += 1,
        }
    }
}

/// Reads a buffer into pages of the reserve; false when there are none, whatever is emptied.
fn read(mem: &mut SimMemory, cpu: CpuId, cluster: ClusterId) -> bool {
    for _ in 0..2 {
        let page = |_| mem.core.alloc.alloc(cpu, Gfp::NOFS, Order(0), AllocFlags::NO_WATERMARKS).page;
        let pages = [0; CLUSTER_PAGES].map(page);
        if pages.iter().all(Option::is_some) {
            mem.cluster_add(cluster, pages.map(|page| page.expect("all are there")), true);
            return true;
        }
        pages.into_iter().flatten().for_each(|pfn| mem.core.alloc.free(cpu, pfn, Order(0)));
        empty(mem, cpu);
    }
    false
}

/// Everything goes that is clean and not in use.
fn empty(mem: &mut SimMemory, cpu: CpuId) {
    let left =
        |mem: &SimMemory| (mem.core.alloc.free_pages(), mem.fs.vfs.count(), mem.cache.trees().total_pages());
    loop {
        let before = left(mem);
        for mapping in mappings(mem) {
            let _ = mem.mapping_invalidate(cpu, mapping, true);
        }
        let _ = mem.drop_slab(cpu);
        for _ in 0..3 {
            let _ = mem.grace_period_ended(cpu);
        }
        let _ = mem.core.alloc.drain_all();
        if left(mem) == before {
            return;
        }
    }
}
