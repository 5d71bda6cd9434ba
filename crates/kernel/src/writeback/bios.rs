//! What a run of pages costs while it is written: a bio with a vector that has room for 256 pages
//! (`bio_alloc_bioset`), and on ext4 a part of a transaction (`jbd2_journal_start_reserved`).
//!
//! So many small files that are written at once take as much memory again as they have pages, until the disk is done
//! with them. Left out: bios of reads, which are few. Next: [`super::pages`], [`super::plug`].

use std::pin::pin;

use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::slab::object::Object;
use mm::version::geometry::Cache;

use crate::files::inode::Inode;
use crate::fs::Filesystem;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::writeback::request::Plug;

/// How a pool asks for memory at first.
const POOLED: Gfp = Gfp(Gfp::KSWAPD_RECLAIM.0 | Gfp::NORETRY.0 | Gfp::NOMEMALLOC.0);

/// A journal of 64 MiB, in blocks.
const JOURNAL: u64 = 16_384;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Whether ext4 has to wait before it writes another run of new pages.
    pub(crate) fn are_runs_in_flight(&self, device: u16) -> bool {
        if self.shared.filesystem != Filesystem::Ext4 {
            return false;
        }
        let at_once = self.mem(|mem| {
            let at_once = u64::from(mem.core.alloc.tuning().ext4_runs_in_flight);
            let journal = mem.fs.journals.get(usize::from(device));
            journal.map_or(u64::MAX, |journal| at_once * u64::from(journal.size()) / JOURNAL)
        });
        self.flusher_of(device, |flusher| u64::from(flusher.runs) >= at_once)
    }

    /// Gives a bio and its vector to the run of pages that was added to a plug last.
    pub(crate) async fn give_bio(&self, inode: &Inode, plug: &mut Plug) {
        let caches: &[Cache] = match self.mem(|mem| mem.core.alloc.tuning().large_bios) {
            true => &[Cache::Bio, Cache::BioVec],
            false => &[],
        };
        for &cache in caches {
            let made = match self.object_at_hand(cache) {
                Some(object) => Some(object),
                None => self.with_plug(plug, pin!(self.make_bio(cache))).await,
            };
            let Some(object) = made else { continue };
            self.mem(|mem| mem.fs.bio_made(object));
            match plug.requests.last_mut() {
                Some(request) => request.bios.push(object),
                // They were sent off while it was made.
                None => self.free_bio(object),
            }
        }
        if let Some(request) = plug.requests.last_mut() {
            request.runs += 1;
            self.flusher_of(inode.device, |flusher| flusher.runs += 1);
        }
    }

    /// A bio or a vector from its pool (`mempool_alloc`): of memory that is free, else one that was kept for that
    /// case, which is nobody's object, else of what direct reclaim frees. Left out: the wait for one that is kept
    /// when that has freed nothing.
    async fn make_bio(&self, cache: Cache) -> Option<Object> {
        if let Ok(object) = self.alloc_object(None, cache, POOLED).await {
            return Some(object);
        }
        let runs: u64 = self.shared.flushers.borrow().iter().map(|flusher| u64::from(flusher.runs)).sum();
        let own = self.mem(|mem| mem.fs.bios()[usize::from(cache == Cache::BioVec)]);
        if runs.saturating_sub(own) < self.kept_bios() {
            return None;
        }
        self.alloc_object(None, cache, POOLED | Gfp::DIRECT_RECLAIM | Gfp::IO).await.ok()
    }

    /// Of each kind: `iomap_ioend_bioset`, which XFS writes with, has four for each sector of a page; `fs_bio_set`,
    /// which all others share, two.
    fn kept_bios(&self) -> u64 {
        if self.shared.filesystem == Filesystem::Xfs { 32 } else { 2 }
    }

    /// A request is complete, and with it these runs.
    pub(crate) fn runs_done(&self, device: u16, runs: u32, bios: Vec<Object>) {
        self.flusher_of(device, |flusher| flusher.runs -= runs);
        self.machine().charge(CostOp::WritebackEnd, u64::from(runs));
        bios.into_iter().for_each(|object| self.free_bio(object));
    }

    fn free_bio(&self, object: Object) {
        let cpu = self.machine().current_cpu();
        self.mem(|mem| {
            mem.fs.bio_done(object);
            mem.free_object(cpu, object);
        });
    }
}
