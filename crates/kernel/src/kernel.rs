//! A kernel: memory, files and processes on a machine, and its background threads.
//!
//! One `Kernel` is shared by all tasks of a run; clones are handles. State lives in `RefCell`s that
//! are borrowed for one step at a time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use mm::event::Trace;
use mm::feature::Feature;
use mm::sysctl::Sysctls;
use mm::zone::{MemoryLayout, ZoneKind};
use mm::{MemcgId, Memory};
use units::{Bytes, CpuId, Nanos, NodeId, Order, Seed};

use crate::allocate::UsedFrames;
use crate::compaction::KcompactdRequest;
use crate::file::{Closed, Files, Filesystem, InFlight};
use crate::machine::{CostOp, Machine, QueueId, WaitReason};
use crate::oom::OomKill;
use crate::page_wait::ReadQueues;
use crate::readahead::READAHEAD_PAGES_MAX;
use crate::task::Processes;
use crate::writeback::Flusher;
use crate::xfs_log::LOG_PERIOD;

/// What a kernel is booted with.
#[derive(Debug, Clone)]
pub struct KernelConfig {
    /// Version and features.
    pub version: mm::Kernel,
    /// Tunables; 0 in `min_free_kbytes` means as computed at boot.
    pub sysctls: Sysctls,
    /// Nodes and zones.
    pub layout: MemoryLayout,
    /// Of the data disk.
    pub filesystem: Filesystem,
    /// Size of the log that the data disk has as XFS.
    pub xfs_log_size: Bytes,
    /// Readahead window of the data disk in pages (`read_ahead_kb` / 4).
    pub readahead_pages: u32,
    /// Draws when, after boot, the periodic workers first run: on a real machine that is chance.
    pub seed: Seed,
}

/// Ticks per second: Debian's and SUSE's setting.
pub const HZ: u64 = 250;
/// One tick.
pub const JIFFY: Nanos = Nanos(1_000_000_000 / HZ);
/// How long a sleep of `ticks` ticks lasts from `now`: timeouts expire at the edge of a tick, so it
/// is more than `ticks` - 1 ticks and at most `ticks` (MECHANISMS 0).
pub(crate) fn ticks_from(now: Nanos, ticks: u64) -> Nanos {
    Nanos((((now.0 / JIFFY.0) + ticks) * JIFFY.0) - now.0)
}
/// Period of the statistics flusher (`FLUSH_TIME`).
const STAT_FLUSH_PERIOD: Nanos = Nanos::from_secs(2);
/// Period of the vmstat worker.
const VMSTAT_PERIOD: Nanos = Nanos::from_secs(1);

/// The wait queues of a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeQueues {
    pub(crate) kswapd: QueueId,
    pub(crate) pfmemalloc: QueueId,
    pub(crate) no_progress: QueueId,
    pub(crate) writeback: QueueId,
}

/// The wait queues around the data disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteQueues {
    pub(crate) flusher: QueueId,
    pub(crate) requests: QueueId,
    pub(crate) page_writeback: QueueId,
    pub(crate) log: QueueId,
    pub(crate) log_worker: QueueId,
}

/// Reclaimers of a node that wait for writeback.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Throttled {
    pub(crate) tasks: u64,
    /// Pages written since the first of them waits.
    pub(crate) written: u64,
}

/// What kswapd of a node was asked for since it last looked.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KswapdRequest {
    pub(crate) order: Order,
    pub(crate) class: Option<ZoneKind>,
}

/// What kcompactd of each node waits on and was asked for.
#[derive(Debug)]
pub(crate) struct CompactionThreads {
    pub(crate) queues: Vec<QueueId>,
    pub(crate) requests: RefCell<Vec<KcompactdRequest>>,
}

pub(crate) struct Shared<M: Machine, T: Trace> {
    pub(crate) machine: M,
    pub(crate) mem: RefCell<Memory<T>>,
    pub(crate) filesystem: Filesystem,
    pub(crate) xfs_log_size: Bytes,
    /// Where in the log the next record goes.
    pub(crate) log_head: Cell<u64>,
    pub(crate) readahead_pages: u32,
    pub(crate) queues: Vec<NodeQueues>,
    pub(crate) kswapd_requests: RefCell<Vec<KswapdRequest>>,
    pub(crate) compaction: CompactionThreads,
    pub(crate) khugepaged: QueueId,
    pub(crate) files: RefCell<Files>,
    pub(crate) in_flight: RefCell<InFlight>,
    pub(crate) reads: ReadQueues,
    pub(crate) wait: WriteQueues,
    pub(crate) flusher: RefCell<Flusher>,
    pub(crate) throttled: RefCell<Vec<Throttled>>,
    pub(crate) closed: Closed,
    pub(crate) processes: RefCell<Processes>,
    pub(crate) oom_lock: Cell<bool>,
    pub(crate) oom_kills: RefCell<Vec<OomKill>>,
    /// Length of every stall on fragmentation in microseconds, in whole ticks.
    pub(crate) fragment_stalls: RefCell<Vec<u64>>,
    pub(crate) used_frames: RefCell<UsedFrames>,
}

/// A handle on a running kernel.
pub struct Kernel<M: Machine, T: Trace> {
    pub(crate) shared: Rc<Shared<M, T>>,
}

impl<M: Machine, T: Trace> Clone for Kernel<M, T> {
    fn clone(&self) -> Self {
        Self { shared: Rc::clone(&self.shared) }
    }
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Boots: lays memory out and starts kswapd and kcompactd of each node, khugepaged and the statistics
    /// workers.
    ///
    /// # Errors
    /// A memory layout that no kernel can run on.
    pub fn boot(machine: M, config: KernelConfig, trace: T) -> Result<Self, mm::boot::BootError> {
        let mut mem = Memory::boot(&config.layout, config.version, config.sysctls, trace)?;
        mem.writeback.has_writepage_hook = lets_reclaim_write(&mem, config.filesystem);
        let node_count = config.layout.nodes.len();
        let queues = (0..node_count)
            .map(|_| NodeQueues {
                kswapd: machine.new_queue(),
                pfmemalloc: machine.new_queue(),
                no_progress: machine.new_queue(),
                writeback: machine.new_queue(),
            })
            .collect();
        let frames = mem.alloc.frames.len();
        let compaction = CompactionThreads {
            queues: (0..node_count).map(|_| machine.new_queue()).collect(),
            requests: RefCell::new(vec![KcompactdRequest::default(); node_count]),
        };
        let wait = WriteQueues {
            flusher: machine.new_queue(),
            requests: machine.new_queue(),
            page_writeback: machine.new_queue(),
            log: machine.new_queue(),
            log_worker: machine.new_queue(),
        };
        let kernel = Self {
            shared: Rc::new(Shared {
                mem: RefCell::new(mem),
                filesystem: config.filesystem,
                xfs_log_size: config.xfs_log_size,
                log_head: Cell::new(0),
                readahead_pages: config.readahead_pages.min(READAHEAD_PAGES_MAX),
                queues,
                kswapd_requests: RefCell::new(vec![KswapdRequest::default(); node_count]),
                compaction,
                khugepaged: machine.new_queue(),
                files: RefCell::new(Files::default()),
                in_flight: RefCell::new(InFlight::default()),
                reads: ReadQueues::new(&machine),
                wait,
                flusher: RefCell::new(Flusher::default()),
                throttled: RefCell::new(vec![Throttled::default(); node_count]),
                closed: Closed::default(),
                processes: RefCell::new(Processes::default()),
                oom_lock: Cell::new(false),
                oom_kills: RefCell::default(),
                fragment_stalls: RefCell::new(Vec::new()),
                used_frames: RefCell::new(UsedFrames::new(frames)),
                machine,
            }),
        };
        let device = kernel.mem(|mem| mem.mapping_create());
        kernel.shared.files.borrow_mut().set_device(device);
        kernel.start_threads(config.seed);
        Ok(kernel)
    }

    fn start_threads(&self, seed: Seed) {
        let machine = &self.shared.machine;
        let weak = Rc::downgrade(&self.shared);
        machine.on_io_done(Rc::new(move |tag| {
            if let Some(shared) = weak.upgrade() {
                Self { shared }.io_done(tag);
            }
        }));
        let nodes: Vec<NodeId> = self.mem(|mem| mem.nodes().collect());
        for node in nodes {
            let kernel = self.clone();
            machine.spawn(&format!("kswapd{node}"), None, async move { kernel.kswapd(node).await });
        }
        for node in self.mem(|mem| mem.nodes()) {
            let kernel = self.clone();
            machine.spawn(&format!("kcompactd{node}"), None, async move { kernel.kcompactd(node).await });
        }
        let kernel = self.clone();
        machine.spawn("khugepaged", None, async move { kernel.khugepaged().await });
        let phase = |name, period: Nanos| Nanos(seed.stream(name).below(period.0));
        let (kernel, first) = (self.clone(), phase("memcg-stat-flush", STAT_FLUSH_PERIOD));
        machine.spawn("memcg-stat-flush", None, async move { kernel.flush_stats_forever(first).await });
        let (kernel, first) = (self.clone(), phase("vmstat-worker", VMSTAT_PERIOD));
        machine.spawn("vmstat-worker", None, async move { kernel.vmstat_forever(first).await });
        let kernel = self.clone();
        machine.spawn("flusher", None, async move { kernel.flusher().await });
        if self.shared.filesystem == Filesystem::Xfs {
            let (kernel, first) = (self.clone(), phase("xfs-log", LOG_PERIOD));
            machine.spawn("xfs-log", None, async move { kernel.log_worker(first).await });
        }
    }

    async fn flush_stats_forever(&self, first: Nanos) {
        self.machine().sleep(first, WaitReason::Periodic).await;
        self.mem(|mem| mem.memcgs.flush_periodic());
        loop {
            self.machine().sleep(STAT_FLUSH_PERIOD, WaitReason::Periodic).await;
            self.mem(|mem| mem.memcgs.flush_periodic());
        }
    }

    async fn vmstat_forever(&self, first: Nanos) {
        self.machine().sleep(first, WaitReason::Periodic).await;
        loop {
            self.machine().sleep(VMSTAT_PERIOD, WaitReason::Periodic).await;
            for cpu in 0..self.machine().cpu_count() {
                let drained = self.mem(|mem| mem.alloc.tick(CpuId(cpu)));
                self.machine().charge(CostOp::PcpRefillPage, drained.0);
            }
        }
    }

    /// The machine that it runs on.
    pub fn machine(&self) -> &M {
        &self.shared.machine
    }

    /// One step on the memory state. Nothing can happen in between: `step` cannot wait.
    #[inline]
    pub fn mem<R>(&self, step: impl FnOnce(&mut Memory<T>) -> R) -> R {
        step(&mut self.shared.mem.borrow_mut())
    }

    /// The cgroup with this path below the root; the root for the empty path.
    pub fn find_memcg(&self, path: &str) -> Option<MemcgId> {
        if path.is_empty() { Some(MemcgId::ROOT) } else { self.mem(|mem| mem.memcgs.find(path)) }
    }
}

/// Whether the filesystem writes single pages for kswapd: ext4 until its hook went, XFS until it
/// had large folios.
fn lets_reclaim_write<T: Trace>(mem: &Memory<T>, filesystem: Filesystem) -> bool {
    let features = mem.alloc.features;
    let gone = filesystem == Filesystem::Xfs && features.has(Feature::LargeFolioReadahead);
    features.has(Feature::WritepageHook) && !gone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_expire_at_the_edge_of_a_tick() {
        for now in [0, 1, 3_999_999, 4_000_000, 4_000_001, 123_456_789] {
            for ticks in [1, 5, 25] {
                let sleep = ticks_from(Nanos(now), ticks);
                assert_eq!((now + sleep.0) % JIFFY.0, 0);
                assert!(sleep.0 > (ticks - 1) * JIFFY.0 && sleep.0 <= ticks * JIFFY.0);
            }
        }
    }
}
