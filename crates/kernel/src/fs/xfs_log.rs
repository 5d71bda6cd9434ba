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

use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::fs::xfs::log::Change;
use mm::slab::object::Object;
use mm::version::geometry::Cache;
use mm::version::rules::LogVectors;

use crate::errno::Errno;
use crate::files::inode::Inode;
use crate::fs::Filesystem;
use crate::handle::Kernel;
use crate::machine::{Machine, WaitReason};
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
        self.mem(|mem| mem.log_unreserve());
        if self.mem(|mem| mem.fs.xfs_log.is_checkpoint_full(mem.core.alloc.tuning())) {
            self.wake_queue(self.shared.wait.checkpoint);
        }
        while self.mem(|mem| mem.fs.xfs_log.is_checkpoint_overfull(mem.core.alloc.tuning())) {
            let _ = self.machine().wait(self.shared.wait.log, WaitReason::LogWrite, None).await;
        }
    }

    /// Logs that only what stands in an inode changes, if it is in the open checkpoint and a vector is at hand: that
    /// takes no room and waits for nobody. Whether nothing is left to be logged, as on other filesystems.
    pub(crate) fn log_core_at_once(&self, inode: &Inode) -> bool {
        let is_xfs = self.shared.filesystem == Filesystem::Xfs;
        if !is_xfs || !inode.is_in_table() || !self.is_logged_inode(inode) {
            return true;
        }
        let wants = self.mem(|mem| {
            let log = &mem.fs.xfs_log;
            log.is_in_open_checkpoint(inode.mapping).then(|| log.wants_vector(inode.mapping, Change::Core))
        });
        let Some(wants) = wants else { return false };
        let Some(vector) = wants.map(|cache| self.object_at_hand(cache)) else { return true };
        let Some(vector) = vector else { return false };
        let cpu = self.machine().current_cpu();
        self.mem(|mem| {
            let done = mem.log_change(cpu, inode.mapping, Change::Core, Some(vector));
            if done.is_err() {
                mem.free_object(cpu, vector);
            }
            done.is_ok()
        })
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
            let wants = self.mem(|mem| mem.fs.xfs_log.wants_vector(inode.mapping, change));
            if let Some(cache) = wants
                && vector.is_none()
            {
                vector = Some(self.alloc_vector(process, cache).await?);
                continue; // It may have left memory, or changed, while this task waited.
            }
            let cpu = self.machine().current_cpu();
            let done = self.mem(|mem| {
                let known = mem.fs.xfs_log.items().is_known(inode.mapping);
                let fits = wants.is_none_or(|cache| vector.is_some_and(|vector| vector.cache == cache));
                if known && fits {
                    return Some(mem.log_change(cpu, inode.mapping, change, vector));
                }
                vector.take().map(|vector| mem.free_object(cpu, vector));
                (!known).then_some(Ok(()))
            });
            let Some(Err(cluster)) = done else {
                if done.is_some() {
                    return Ok(());
                }
                continue;
            };
            if let Err(errno) = self.get_cluster(process, cluster, true).await {
                let cpu = self.machine().current_cpu();
                self.mem(|mem| vector.map(|vector| mem.free_object(cpu, vector)));
                return Err(errno);
            }
        }
    }
}
