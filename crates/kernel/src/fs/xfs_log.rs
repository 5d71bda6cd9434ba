//! Changes of XFS inodes: what enters the log, and what the task that changes something waits for
//! (`xfs_trans_reserve`, `xfs_trans_commit`; MECHANISMS 11.2).
//!
//! An inode is logged when it is created, when its first bytes are written, when blocks are given to it, and when it
//! is removed. That takes space in the log, unmovable memory, without FS, and since 5.9 the buffer of its cluster,
//! which is read if it is not in memory.
//!
//! The first bytes: a file of one write and its close has two vectors before it has blocks, one that is only created
//! one (measured, guests of 5.10 to 7.2).
//!
//! Left out: since 5.14 a thread of its own frees a removed inode (`inodegc`), here the task that
//! removes it logs that. Next: [`super::xfs_checkpoint`], [`mm::fs::xfs::log`].

use mm::MemcgId;
use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::fs::xfs::buf::ClusterId;
use mm::fs::xfs::log::Change;
use mm::slab::object::{Object, ObjectAlloc};
use mm::version::geometry::Cache;
use mm::version::rules::LogVectors;

use crate::errno::Errno;
use crate::files::inode::Inode;
use crate::fs::Filesystem;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine, WaitReason};
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// An inode changes in a transaction. Without memory for that the change is taken as logged all
    /// the same: a real transaction would wait until there is some.
    pub(crate) async fn log_change(&self, process: Option<&Process>, inode: &Inode, change: Change) {
        if !inode.is_in_table() || !self.is_logged_inode(inode) {
            return;
        }
        self.reserve_log().await;
        for _ in 0..self.mem(|mem| mem.fs.xfs_log.wants_intents(inode.mapping, change)) {
            if let Ok(intent) = self.alloc_object(process, Cache::XfsExtentFree, Gfp::NOFS).await {
                self.mem(|mem| mem.log_intent(intent));
            }
        }
        let _ = self.commit_change(process, inode, change).await;
        let is_full = self.mem(|mem| {
            mem.log_unreserve();
            mem.fs.xfs_log.is_checkpoint_full(mem.core.alloc.tuning())
        });
        if !is_full {
            return; // Nor is it twice as large as it should be.
        }
        self.wake_queue(self.shared.wait.checkpoint);
        while self.mem(|mem| mem.fs.xfs_log.is_checkpoint_overfull(mem.core.alloc.tuning())) {
            let _ = self.machine().wait(self.shared.wait.log, WaitReason::LogWrite, None).await;
        }
    }

    /// Logs that only what stands in an inode changes, if it is in the open checkpoint and a vector is at hand: that
    /// takes no room and waits for nobody. Whether nothing is left to be logged, as on other filesystems.
    pub(crate) fn log_core_at_once(&self, inode: &Inode) -> bool {
        if self.shared.filesystem != Filesystem::Xfs || !inode.is_in_table() {
            return true;
        }
        let (cpu, mapping) = (self.machine().current_cpu(), inode.mapping);
        let (has_vector, is_done) = self.mem(|mem| {
            let log = &mem.fs.xfs_log;
            if !log.items().is_known(mapping) {
                return (false, true);
            }
            if !log.is_in_open_checkpoint(mapping) {
                return (false, false);
            }
            let Some(cache) = log.wants_vector(mapping, Change::Core) else { return (false, true) };
            let ObjectAlloc::Done(vector) = mem.alloc_object(cpu, cache, MemcgId::ROOT) else {
                return (false, false);
            };
            let done = mem.log_change(cpu, mapping, Change::Core, Some(vector));
            if done.is_err() {
                mem.free_object(cpu, vector);
            }
            (true, done.is_ok())
        });
        self.machine().charge(CostOp::SlabObject, u64::from(has_vector));
        is_done
    }

    fn is_logged_inode(&self, inode: &Inode) -> bool {
        self.mem(|mem| mem.fs.xfs_log.items().is_known(inode.mapping))
    }

    /// Waits until there is room for a change in the log.
    async fn reserve_log(&self) {
        loop {
            let (pushes, fits) = self.mem(|mem| (mem.log_push_tail(), mem.log_reserve()));
            if pushes {
                self.wake_queue(self.shared.wait.ail);
            }
            if fits {
                return;
            }
            self.flush_plug();
            let _ = self.machine().wait(self.shared.wait.log_space, WaitReason::LogSpace, None).await;
        }
    }

    /// The memory of a vector. Left out: that single pages are taken where no slab can be had without reclaim.
    async fn alloc_vector(&self, process: Option<&Process>, cache: Cache) -> Result<Object, Errno> {
        if self.mem(|mem| mem.core.rules().log_vectors) == LogVectors::TriesFirst {
            let tries = Gfp::KSWAPD_RECLAIM | Gfp::IO | Gfp::NORETRY;
            match self.alloc_object(process, cache, tries).await {
                Err(Errno::NoMem) => {}
                made => return made,
            }
        }
        self.alloc_object(process, cache, Gfp::NOFS).await
    }

    async fn commit_change(
        &self,
        process: Option<&Process>,
        inode: &Inode,
        change: Change,
    ) -> Result<(), Errno> {
        let mut vector: Option<Object> = None;
        loop {
            let (cpu, mapping) = (self.machine().current_cpu(), inode.mapping);
            let next = self.mem(|mem| {
                let wants = mem.fs.xfs_log.wants_vector(mapping, change);
                if let Some(cache) = wants.filter(|_| vector.is_none()) {
                    return Next::Alloc(cache);
                }
                // It may have left memory, or changed, while this task waited.
                let known = mem.fs.xfs_log.items().is_known(mapping);
                let fits = wants.is_none_or(|cache| vector.is_some_and(|vector| vector.cache == cache));
                if known && fits {
                    return mem
                        .log_change(cpu, mapping, change, vector)
                        .map_or_else(Next::Read, |()| Next::Done);
                }
                vector.take().map(|vector| mem.free_object(cpu, vector));
                if known { Next::Again } else { Next::Done }
            });
            match next {
                Next::Done => return Ok(()),
                Next::Again => {}
                Next::Alloc(cache) => vector = Some(self.alloc_vector(process, cache).await?),
                Next::Read(cluster) => {
                    if let Err(errno) = self.get_cluster(process, cluster, true).await {
                        let cpu = self.machine().current_cpu();
                        self.mem(|mem| vector.map(|vector| mem.free_object(cpu, vector)));
                        return Err(errno);
                    }
                }
            }
        }
    }
}

/// What a change of an inode comes to.
enum Next {
    Done,
    Again,
    /// It wants a vector from this cache.
    Alloc(Cache),
    /// The buffer of this cluster has to be in memory.
    Read(ClusterId),
}
