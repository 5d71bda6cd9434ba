//! The log of XFS, as far as it holds memory (MECHANISMS 11.2).
//!
//! ```text
//!   a change of an inode --> log vector in the open checkpoint: unmovable memory
//!                                 |  30 s, sync, or an eighth of the log is full
//!                                 v
//!                            checkpoint being written --> all its vectors are freed at once
//! ```
//! An inode that changes again while its checkpoint is open reuses its vector. So a stream of new
//! files holds an amount of unmovable memory that rises for up to half a minute and then goes at
//! one blow: the one unmovable load that shrinks without any reclaim.
//!
//! Left out: the log items of buffers (their share is in the size of a vector, see
//! [`crate::slab::caches`]), vectors that a second change would hold in reserve, the AIL and the
//! space in the log that it frees. Neighbours: the kernel crate writes checkpoints.

use std_alloc::collections::BTreeMap;
use std_alloc::vec::Vec;

use units::{Bytes, CpuId};

use crate::base::event::Trace;
use crate::core::Core;
use crate::slab::object::Object;
use crate::version::geometry::Cache;
use crate::version::presets::Tuning;

/// Bytes that the change of an inode takes in the log: its core of 176 bytes, the formats and
/// headers around it, and its share of the buffers that change with it (inferred; MECHANISMS 11.2
/// has 0.4 to 1 KiB for a create, which changes more than the inode).
const LOGGED_BYTES: u64 = 350;

/// A number that counts checkpoints, from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CheckpointId(pub u32);

/// Log vectors in memory.
#[derive(Debug, Clone)]
pub struct XfsLog {
    open: Vec<Object>,
    open_id: CheckpointId,
    writing: BTreeMap<CheckpointId, Vec<Object>>,
}

impl Default for XfsLog {
    fn default() -> Self {
        Self { open: Vec::new(), open_id: CheckpointId(1), writing: BTreeMap::new() }
    }
}

impl XfsLog {
    /// The checkpoint that changes go to now.
    pub fn open_checkpoint(&self) -> CheckpointId {
        self.open_id
    }

    /// Bytes that the open checkpoint will take in the log.
    pub fn open_bytes(&self) -> Bytes {
        Bytes(self.open.len() as u64 * LOGGED_BYTES)
    }

    /// Whether a checkpoint is being written.
    pub fn is_writing(&self) -> bool {
        !self.writing.is_empty()
    }

    /// What the open checkpoint may grow to in a log of `log` bytes: an eighth, from 5.7 on at most
    /// 32 MiB ("Lower CIL flush limit for large logs").
    pub fn checkpoint_limit(log: Bytes, tuning: &Tuning) -> Bytes {
        Bytes(log.get() / 8).min(tuning.xfs_checkpoint_max)
    }

    pub(crate) fn objects(&self) -> impl Iterator<Item = Object> + '_ {
        self.open.iter().chain(self.writing.values().flatten()).copied()
    }

    /// Adds a log vector to the open checkpoint.
    ///
    /// # Panics
    /// When it is an object of another cache.
    pub fn add(&mut self, vector: Object) {
        assert_eq!(vector.cache, Cache::XfsLogVector, "only log vectors are logged");
        self.open.push(vector);
    }

    /// Closes the open checkpoint in order to write it; none when nothing has changed.
    pub fn close(&mut self) -> Option<(CheckpointId, Bytes)> {
        if self.open.is_empty() {
            return None;
        }
        let (id, bytes) = (self.open_id, self.open_bytes());
        self.writing.insert(id, core::mem::take(&mut self.open));
        self.open_id = CheckpointId(id.0 + 1);
        Some((id, bytes))
    }

    /// A checkpoint is on the disk: its vectors are freed. Returns how many there were.
    ///
    /// # Panics
    /// When it is not being written.
    pub fn written<T: Trace>(&mut self, core: &mut Core<T>, cpu: CpuId, id: CheckpointId) -> u64 {
        let vectors = self.writing.remove(&id).expect("a checkpoint is written once");
        let count = vectors.len() as u64;
        for vector in vectors {
            core.free_object(cpu, vector);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alloc::flags::AllocFlags;
    use crate::base::event::NoTrace;
    use crate::base::gfp::{Gfp, MigrateType};
    use crate::base::ids::MemcgId;
    use crate::base::layout::MemoryLayout;
    use crate::base::sysctl::Sysctls;
    use crate::slab::object::ObjectAlloc;
    use crate::version::presets::Version;
    use units::Pages;

    const CPU: CpuId = CpuId(0);

    fn boot() -> Core<NoTrace> {
        let layout = MemoryLayout::flat(Pages(8192), 1);
        let kernel = Version::parse("linux-4.20-rc1").unwrap();
        Core::boot(&layout, kernel, Sysctls::default(), NoTrace).unwrap()
    }

    fn fill(log: &mut XfsLog, core: &mut Core<NoTrace>, vectors: u32) {
        for _ in 0..vectors {
            let vector = loop {
                match core.alloc_object(CPU, Cache::XfsLogVector, MemcgId::ROOT) {
                    ObjectAlloc::Done(object) => break object,
                    ObjectAlloc::NeedsSlab => {
                        let (order, mobility) = core.slabs.request(Cache::XfsLogVector);
                        let gfp = Gfp::NOFS | mobility;
                        let page = core.alloc.alloc(CPU, gfp, order, AllocFlags::WMARK_MIN).page;
                        let page = page.expect("memory is free");
                        core.grow_slab(CPU, Cache::XfsLogVector, MemcgId::ROOT, page);
                    }
                    ObjectAlloc::NeedsCharge { .. } => unreachable!("the root pays for nothing"),
                }
            };
            log.add(vector);
        }
    }

    #[test]
    fn a_checkpoint_gives_all_its_unmovable_memory_back_at_one_blow() {
        let (mut core, mut log) = (boot(), XfsLog::default());
        let free = |core: &Core<NoTrace>| {
            core.alloc.zones().iter().map(|zone| zone.free_area.free_of(MigrateType::Unmovable)).sum::<u64>()
        };
        fill(&mut log, &mut core, 2200);
        let slab = core.slabs.pages(false);
        assert_eq!(slab, 400, "22 vectors in four pages");
        let (first, bytes) = log.close().expect("there are changes");
        assert_eq!((first, bytes), (CheckpointId(1), Bytes(2200 * 350)));
        fill(&mut log, &mut core, 22);
        assert_eq!(core.slabs.objects(Cache::XfsLogVector), 2222);
        core.alloc.check().unwrap();
        let before = free(&core);
        assert_eq!(log.written(&mut core, CPU, first), 2200);
        assert!(!log.is_writing());
        let kept = (5 + 2) * 4; // empty slabs: five on the list, and with the CPU those since it gave some back
        assert_eq!(core.slabs.pages(false), 4 + kept);
        assert_eq!(free(&core) - before, 400 - kept, "all of it unmovable");
        assert_eq!(log.open_bytes(), Bytes(22 * 350), "what came later stays");
        core.alloc.check().unwrap();
    }

    #[test]
    fn there_is_no_checkpoint_without_changes() {
        let mut log = XfsLog::default();
        assert_eq!(log.close(), None);
        assert_eq!(log.open_checkpoint(), CheckpointId(1));
    }

    #[test]
    fn large_logs_fill_an_eighth_before_5_7_and_32_mib_since() {
        let limit =
            |kernel: &str, log| XfsLog::checkpoint_limit(Bytes(log), &Version::parse(kernel).unwrap().tuning);
        assert_eq!(limit("linux-4.20-rc1", 512 << 20), Bytes(64 << 20));
        assert_eq!(limit("linux-6.1", 512 << 20), Bytes(32 << 20));
        assert_eq!(limit("linux-6.1", 64 << 20), Bytes(8 << 20));
    }
}
