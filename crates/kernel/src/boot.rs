//! Booting: lays memory out and starts the threads of a kernel, and its periodic workers.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use mm::Memory;
use mm::alloc::boot::BootError;
use mm::base::event::Trace;
use mm::base::ids::MappingId;
use mm::base::layout::MemoryLayout;
use mm::base::sysctl::Sysctls;
use mm::decide::kswapd::Request;
use mm::decide::pause::CpuPace;
use mm::decide::throttle::WritebackWaiters;
use mm::lru::cache_ext::hooks::EvictionPolicy;
use mm::version::rules::{Compaction, HugePages};
use units::{Bytes, CpuId, Nanos, NodeId, Seed};

use crate::alloc::oom_watch::OomWatch;
use crate::alloc::used_frames::UsedFrames;
use crate::cache::in_flight::{InFlight, Transfer};
use crate::cache::window::READAHEAD_PAGES_MAX;
use crate::files::descriptor::Closed;
use crate::files::table::Files;
use crate::fs::Filesystem;
use crate::handle::{Kernel, Shared};
use crate::machine::{CostOp, KernelBuild, LaidOut, Machine, WaitReason};
use crate::queues::{CompactionThreads, Drains, NodeQueues, ReadQueues, Vmpressure, WriteQueues};
use crate::tasks::process::Processes;
use crate::writeback::inodes::Flusher;

/// What a kernel is booted with.
#[derive(Debug, Clone)]
pub struct KernelConfig {
    /// Version and features.
    pub version: mm::Version,
    /// Tunables; 0 in `min_free_kbytes` means as computed at boot.
    pub sysctls: Sysctls,
    /// Nodes and zones.
    pub layout: MemoryLayout,
    /// Of the data disk.
    pub filesystem: Filesystem,
    /// Size of the log that the data disk has as XFS.
    pub xfs_log_size: Bytes,
    /// Requests to write that a task gathers before it sends them off.
    pub gathers: u16,
    /// Readahead window of the data disk in pages (`read_ahead_kb` / 4).
    pub readahead_pages: u32,
    /// What file pages are evicted by instead of the kernel's own lists.
    pub policy: Option<Box<dyn EvictionPolicy>>,
    /// Draws when, after boot, the periodic workers first run: on a real machine that is chance.
    pub seed: Seed,
}

/// Period of the statistics flusher (`FLUSH_TIME`).
const STAT_FLUSH_PERIOD: Nanos = Nanos::from_secs(2);

/// Period of the vmstat worker.
const VMSTAT_PERIOD: Nanos = Nanos::from_secs(1);

/// Lays memory out, and does to it what boot and what starts a run do.
fn boot_memory<T: Trace>(
    build: KernelBuild,
    config: &mut KernelConfig,
    trace: T,
) -> Result<Memory<T>, BootError> {
    let version = config.version.clone().built_with(&build.slab);
    let mut mem = Memory::boot(&config.layout, version, config.sysctls.clone(), trace)?;
    mem.keep_slab(build.slab.kept);
    let hook = config.filesystem.lets_reclaim_write(mem.core.rules());
    mem.reclaim.set_writepage_hook(hook);
    mem.set_xfs_log_size(config.xfs_log_size);
    mem.draw_lots(config.seed);
    mem.set_page_tables(build.page_tables);
    if build.uniprocessor.is_some_and(|build| !build.page_lists) {
        mem.core.alloc.go_without_lists();
    }
    if build.laid_out == LaidOut::JustBefore {
        mem.core.alloc.pass_kernel_memory(CpuId(0));
    }
    if let Some(policy) = config.policy.take() {
        mem.attach_policy(policy);
    }
    Ok(mem)
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Boots: lays memory out and starts kswapd of each node, kcompactd and khugepaged where the version has
    /// them, and the statistics workers.
    ///
    /// # Errors
    /// A memory layout that no kernel can run on.
    pub fn boot(machine: M, mut config: KernelConfig, trace: T) -> Result<Self, BootError> {
        let mem = boot_memory(machine.build(), &mut config, trace)?;
        let node_count = config.layout.nodes.len();
        let queues = (0..node_count).map(|_| NodeQueues::new(&machine)).collect();
        let pressure = mem.core.alloc.zones().iter().map(|_| machine.new_queue()).collect();
        let vmpressure = Vmpressure::new(&machine, mem.core.rules().cgroups);
        let frames = if machine.is_free(CostOp::FirstUse) { 0 } else { mem.core.alloc.frames.len() };
        let compaction = CompactionThreads::new(&machine, node_count);
        let cpu_pace = CpuPace::new(mem.dirty_limits().threshold, u32::from(machine.cpu_count()));
        let cpu_paces = RefCell::new(vec![cpu_pace; usize::from(machine.cpu_count())]);
        let wait = WriteQueues::new(&machine);
        // A machine without one has a disk that no request may reach.
        let disks = 0..machine.device_count().max(1);
        let kernel = Self {
            shared: Rc::new(Shared {
                mem: RefCell::new(mem),
                filesystem: config.filesystem,
                readahead_pages: config.readahead_pages.min(READAHEAD_PAGES_MAX),
                gathers: usize::from(config.gathers.max(1)),
                queues,
                kswapd_requests: RefCell::new(vec![Request::default(); node_count]),
                compaction,
                khugepaged: machine.new_queue(),
                zswap: machine.new_queue(),
                zswap_works: Cell::new(false),
                files: RefCell::new(Files::new(config.filesystem)),
                rcu: machine.new_queue(),
                file_waiters: RefCell::default(),
                in_flight: RefCell::new(InFlight::default()),
                reads: ReadQueues::new(&machine),
                wait,
                inode_group_holders: Default::default(),
                congestion: RefCell::default(),
                cpu_paces,
                pressure,
                vmpressure,
                drains: Drains::new(&machine),
                shares: RefCell::default(),
                flushers: RefCell::new(disks.map(|_| Flusher::new(machine.new_queue())).collect()),
                plugs: RefCell::default(),
                journal_threads: RefCell::default(),
                writeback_waiters: RefCell::new(vec![WritebackWaiters::default(); node_count]),
                closed: Closed::default(),
                shared_files: RefCell::default(),
                processes: RefCell::new(Processes::default()),
                nodes_asked: RefCell::default(),
                oom_lock: Cell::new(false),
                oom_kills: RefCell::default(),
                oom_watch: OomWatch::default(),
                fragment_stalls: RefCell::new(Vec::new()),
                used_frames: RefCell::new(UsedFrames::new(frames)),
                inherited: Cell::new(None),
                machine,
            }),
        };
        for _ in kernel.disks() {
            let device = kernel.mem(|mem| mem.mapping_create());
            kernel.shared.files.borrow_mut().add_disk(device);
        }
        kernel.start_threads(config.seed);
        Ok(kernel)
    }

    /// The page cache of a block device: where ext4 keeps its metadata.
    pub fn device_mapping(&self, device: u16) -> MappingId {
        self.shared.files.borrow().device(device).mapping
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
        let rules = self.mem(|mem| *mem.core.rules());
        if rules.compaction == Compaction::On {
            for node in self.mem(|mem| mem.nodes()) {
                let kernel = self.clone();
                machine.spawn(&format!("kcompactd{node}"), None, async move { kernel.kcompactd(node).await });
            }
        }
        self.start_vmpressure();
        self.start_drainers();
        if rules.huge_pages == HugePages::On {
            let kernel = self.clone();
            machine.spawn("khugepaged", None, async move { kernel.khugepaged().await });
        }
        let phase = |name, period: Nanos| Nanos(seed.stream(name).below(period.0));
        let kernel = self.clone();
        machine.spawn("rcu", None, async move { kernel.rcu().await });
        let first = match machine.build().since_boot {
            Some(since) if since < STAT_FLUSH_PERIOD => {
                self.mem(|mem| mem.core.cgroups.set_just_booted());
                STAT_FLUSH_PERIOD.saturating_sub(since)
            }
            _ => phase("memcg-stat-flush", STAT_FLUSH_PERIOD),
        };
        let kernel = self.clone();
        machine.spawn("memcg-stat-flush", None, async move { kernel.flush_stats_forever(first).await });
        if !self.is_uniprocessor() {
            let (kernel, first) = (self.clone(), phase("vmstat-worker", VMSTAT_PERIOD));
            machine.spawn("vmstat-worker", None, async move { kernel.vmstat_forever(first).await });
        }
        for device in self.disks() {
            let kernel = self.clone();
            let name = if device == 0 { "flusher".to_string() } else { format!("flusher{device}") };
            machine.spawn(&name, None, async move { kernel.flusher(device).await });
        }
        let kernel = self.clone();
        machine.spawn("kthreadd", None, async move { kernel.kthreadd().await });
        self.start_filesystem(phase);
        self.start_zswap();
    }

    /// A request is complete.
    pub(crate) fn io_done(&self, tag: u64) {
        let put_off = self.shared.in_flight.borrow_mut().put_off(tag);
        if let Some(device) = put_off {
            self.write_left_queue(device);
            return self.wake_queue(self.shared.wait.ends);
        }
        let transfer = self.shared.in_flight.borrow_mut().remove(tag);
        match transfer {
            Transfer::Read(range) => self.unlock_pages(range),
            Transfer::Past(range, is_done) => {
                is_done.set(true);
                self.wake_readers(range);
                self.put_closed();
            }
            Transfer::Cluster(cluster) => self.cluster_arrived(cluster),
            Transfer::Write { device, ranges, runs, bios, .. } => {
                self.write_left_queue(device);
                self.runs_done(device, runs, bios);
                self.pages_written(&ranges);
            }
            Transfer::ClusterWrite { first, count } => self.clusters_written(first, count),
            Transfer::Log(record) => self.log_arrived(record),
            Transfer::Journal(device) => self.journal_arrived(device),
        }
    }

    async fn flush_stats_forever(&self, first: Nanos) {
        self.machine().sleep(first, WaitReason::Periodic).await;
        self.mem(|mem| mem.core.cgroups.flush_periodic());
        loop {
            self.machine().sleep(STAT_FLUSH_PERIOD, WaitReason::Periodic).await;
            self.mem(|mem| mem.core.cgroups.flush_periodic());
        }
    }

    async fn vmstat_forever(&self, first: Nanos) {
        self.machine().sleep(first, WaitReason::Periodic).await;
        loop {
            self.machine().sleep(VMSTAT_PERIOD, WaitReason::Periodic).await;
            for cpu in 0..self.machine().cpu_count() {
                let drained = self.mem(|mem| mem.core.alloc.tick(CpuId(cpu)));
                self.machine().charge(CostOp::PcpRefillPage, drained.0);
            }
        }
    }
}
