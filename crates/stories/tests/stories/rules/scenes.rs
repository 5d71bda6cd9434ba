//! Hand-made worlds: small machines under one kind of pressure each, in which answers to decisions
//! show ([`super`]).
//!
//! They talk to the kernel itself, as some of what they do (atomic requests) no program does. Each
//! runs for milliseconds; what it leaves is a [`Trace`]. A decision that shows nowhere needs a scene
//! of its own here.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use kernel::{Filesystem, HugeAdvice, Kernel, KernelConfig, Machine, MapHow, Process, WaitReason};
use mm::base::gfp::Gfp;
use mm::base::layout::{HugeSupport, MemoryLayout, NodeLayout, ZoneKind, ZoneLayout};
use mm::base::sysctl::{Sysctl, Sysctls};
use mm::pages::mapped::AccessAdvice;
use mm::swap::areas::{AreaKind, AreaSpec};
use mm::version::rules::{Cgroups, HugePages};
use mm::{MemcgId, Version};
use sim::{DeviceModel, Hardware, RunError, SimKernel, SimTrace, Simulation};
use units::{Bytes, CpuId, Nanos, NodeId, Order, Pages, Pfn, Seed};

type Play = Pin<Box<dyn Future<Output = ()>>>;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const PAGE: u64 = 4 * KIB;

/// A machine, and what happens on it.
pub struct Scene {
    pub name: &'static str,
    filesystem: Filesystem,
    device: DeviceModel,
    /// Zones with their size in MiB.
    zones: &'static [(ZoneKind, u64)],
    sysctls: &'static [(Sysctl, u64)],
    play: fn(SimKernel) -> Play,
}

/// All that can be seen of a scene that was played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Of the machine, then of each cgroup.
    counters: Vec<(String, u64)>,
    ended: Nanos,
    /// Over every event of the machine.
    hash: u64,
}

impl Trace {
    /// The first thing that differs, in words.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let mut pairs = self.counters.iter().zip(&other.counters);
        let counter = pairs
            .find(|(one, other)| one != other)
            .map(|((name, one), (_, other))| format!("{name} {one} or {other}"));
        let time = || {
            let same = (self.ended, self.hash) == (other.ended, other.hash);
            (!same).then(|| format!("time alone, {} or {}", self.ended, other.ended))
        };
        counter.or_else(time)
    }
}

const TWO_ZONES: &[(ZoneKind, u64)] = &[(ZoneKind::Dma32, 8), (ZoneKind::Normal, 8)];
/// Less than four pageblocks each.
const SMALL_ZONES: &[(ZoneKind, u64)] = &[(ZoneKind::Dma32, 6), (ZoneKind::Normal, 6)];
const DIRTY: &[(Sysctl, u64)] = &[(Sysctl::DirtyRatio, 90), (Sysctl::DirtyBackgroundRatio, 80)];
const HUGE: &[(Sysctl, u64)] = &[(Sysctl::ThpEnabled, 2), (Sysctl::ThpDefrag, 1)];
const STALL: &[(Sysctl, u64)] = &[(Sysctl::FragmentStallOrder, 9), (Sysctl::WatermarkScaleFactor, 200)];

/// Plain: page cache on ext4, a quick disk, two zones.
const PLAIN: Scene = Scene {
    name: "page cache on ext4",
    filesystem: Filesystem::Ext4,
    device: DeviceModel::VIRTIO_RAM,
    zones: TWO_ZONES,
    sysctls: &[],
    play: |linux| Box::pin(page_cache(linux)),
};

pub const SCENES: &[Scene] = &[
    PLAIN,
    Scene { name: "page cache on XFS", filesystem: Filesystem::Xfs, ..PLAIN },
    Scene { name: "limits and protection", play: |linux| Box::pin(limits(linux)), ..PLAIN },
    Scene { name: "small files on ext4", play: |linux| Box::pin(small_files(linux, 1500, 2500)), ..PLAIN },
    Scene {
        name: "small files on XFS",
        filesystem: Filesystem::Xfs,
        play: |linux| Box::pin(small_files(linux, 1100, 2500)),
        ..PLAIN
    },
    Scene {
        name: "writes on ext4",
        device: DeviceModel::SATA_EVO,
        sysctls: DIRTY,
        play: |linux| Box::pin(writes(linux)),
        ..PLAIN
    },
    Scene {
        name: "writes on XFS",
        filesystem: Filesystem::Xfs,
        device: DeviceModel::SATA_EVO,
        sysctls: DIRTY,
        play: |linux| Box::pin(writes(linux)),
        ..PLAIN
    },
    Scene { name: "anonymous memory", play: |linux| Box::pin(anonymous(linux)), ..PLAIN },
    Scene { name: "mapped files", play: |linux| Box::pin(mapped(linux)), ..PLAIN },
    Scene { name: "swapping below limits", play: |linux| Box::pin(swapping(linux)), ..PLAIN },
    Scene { name: "atomic requests", play: |linux| Box::pin(atomic(linux)), ..PLAIN },
    Scene {
        name: "atomic requests in small zones",
        zones: SMALL_ZONES,
        play: |linux| Box::pin(atomic(linux)),
        ..PLAIN
    },
    Scene { name: "mixed types", sysctls: STALL, play: |linux| Box::pin(mixed(linux)), ..PLAIN },
    Scene {
        name: "mixed types in small zones",
        zones: SMALL_ZONES,
        sysctls: STALL,
        play: |linux| Box::pin(mixed(linux)),
        ..PLAIN
    },
    Scene { name: "huge pages on ext4", sysctls: HUGE, play: |linux| Box::pin(huge(linux)), ..PLAIN },
    Scene {
        name: "huge pages on XFS",
        filesystem: Filesystem::Xfs,
        sysctls: HUGE,
        play: |linux| Box::pin(huge(linux)),
        ..PLAIN
    },
    // Where it matters which frames a request has: in zones of 16 MiB and less a refill is of one page.
    Scene {
        name: "page cache on a disk that pays for segments",
        zones: &[(ZoneKind::Normal, 64)],
        device: DeviceModel { segment: Nanos::from_micros(20), ..DeviceModel::VIRTIO_RAM },
        ..PLAIN
    },
];

impl Scene {
    /// Plays the scene on a version of Linux.
    pub fn run(&self, version: &Version) -> Trace {
        let zone = |&(kind, mib): &(ZoneKind, u64)| ZoneLayout::new(kind, Pages(mib * MIB / PAGE));
        let nodes = vec![NodeLayout { zones: self.zones.iter().map(zone).collect() }];
        let mut sysctls = Sysctls::default();
        self.sysctls.iter().for_each(|&(sysctl, value)| sysctls.set(sysctl, value));
        let config = KernelConfig {
            version: version.clone(),
            sysctls,
            layout: MemoryLayout { nodes, cpus: 2, huge_pages: HugeSupport::Off },
            filesystem: self.filesystem,
            xfs_log_size: Bytes(64 * MIB),
            gathers: 16,
            readahead_pages: 32,
            policy: None,
            seed: Seed(1),
        };
        let hardware = Hardware {
            scheduler: Some(version.rules.scheduler),
            preemption: version.rules.preemption,
            ..Hardware::with_cpus(2).with_device(self.device.clone())
        };
        let mut simulation = Simulation::new(hardware).expect("a machine");
        let linux = Kernel::boot(simulation.machine(), config, SimTrace::default()).expect("it boots");
        let task = simulation.machine().spawn("scene", None, (self.play)(linux.clone()));
        let limit = Nanos::from_secs(3600);
        // Rules that no kernel had together may need more memory than a scene has; a kernel may not.
        let is_real = Version::parse(&version.name).is_ok_and(|real| real.rules == version.rules);
        let ended = match simulation.run_until_task_done(task, limit) {
            Err(RunError::Halted { now }) if !is_real => now,
            ended => ended.unwrap_or_else(|error| panic!("{} on {}: {error}", self.name, version.name)),
        };
        let mut counters = linux.vmstat();
        linux.mem(|mem| {
            for id in mem.core.cgroups.ids().collect::<Vec<_>>() {
                let path = mem.core.cgroups[id].path.clone();
                let stats = mem.memcg_stat(id).into_iter();
                counters.extend(stats.map(|(name, value)| (format!("{name} of /{path}"), value)));
            }
        });
        Trace { counters, ended, hash: simulation.machine().statistics().event_hash }
    }
}

fn has_groups(linux: &SimKernel) -> bool {
    linux.mem(|mem| mem.core.rules().cgroups == Cgroups::V2)
}

/// A new cgroup. Where there are none, all that would be in it is in the root.
async fn group(linux: &SimKernel, name: &str) {
    let maker = process(linux, "maker", "").await;
    assert_eq!(linux.cgroup_create(&maker, name).await.is_ok(), has_groups(linux), "{name}");
    linux.process_exit(&maker);
}

async fn limit(linux: &SimKernel, group: &str, file: &str, value: &str) {
    assert_eq!(linux.cgroup_write(group, file, value).await.is_ok(), has_groups(linux), "{group}");
}

/// A process in a cgroup; the root for the empty path, or where there are none.
async fn process(linux: &SimKernel, name: &str, group: &str) -> Process {
    let memcg = linux.find_memcg(group).unwrap_or(MemcgId::ROOT);
    linux.process_start(name, memcg).await.expect("memory for a process")
}

/// Runs all at once, each a task of its own, until the last has ended.
async fn together(linux: &SimKernel, tasks: Vec<Play>) {
    let machine = linux.machine().clone();
    let (left, done) = (Rc::new(Cell::new(tasks.len())), machine.new_queue());
    for (number, task) in tasks.into_iter().enumerate() {
        let (left, waker) = (Rc::clone(&left), machine.clone());
        machine.spawn(&format!("task{number}"), None, async move {
            task.await;
            left.set(left.get() - 1);
            waker.wake_all(done);
        });
    }
    while left.get() > 0 {
        let _ = machine.wait(done, WaitReason::Join, None).await;
    }
}

/// The name of a group's file in the top directory.
fn file_name(what: &str, group: &str) -> String {
    format!("{what} of {}", group.replace('/', "-"))
}

/// Reads a hot file again and again while it streams through another, in calls of 64 KiB.
async fn reader(linux: SimKernel, group: &'static str, hot: u64, stream: u64, rounds: u64) {
    let name = |what: &str| file_name(what, group);
    let process = process(&linux, group, group).await;
    linux.lay_out_file(&name("hot"), Bytes(hot)).expect("a new file");
    linux.lay_out_file(&name("stream"), Bytes(stream)).expect("a new file");
    let Ok(hot_file) = linux.open(&process, &name("hot"), false).await else { return };
    let Ok(stream_file) = linux.open(&process, &name("stream"), false).await else { return };
    for round in 0..rounds {
        for at in (0..hot).step_by(64 * KIB as usize) {
            let _ = linux.read(&process, &hot_file, at, 64 * KIB).await;
        }
        let part = stream / rounds;
        for at in (round * part..(round + 1) * part).step_by(64 * KIB as usize) {
            let _ = linux.read(&process, &stream_file, at, 64 * KIB).await;
        }
    }
    linux.process_exit(&process);
}

/// A file is mapped twice, once with accesses that are said to be random, beside a stream.
async fn mapped(linux: SimKernel) {
    let process = process(&linux, "", "mapped").await;
    let sizes = [("hot", 2 * MIB), ("stream", 40 * MIB), ("sparse", 30 * MIB)];
    for (name, size) in sizes {
        linux.lay_out_file(name, Bytes(size)).expect("a new file");
    }
    let Ok(hot) = linux.open(&process, "hot", false).await else { return };
    let Ok(stream) = linux.open(&process, "stream", false).await else { return };
    let half = Bytes(MIB);
    let map = |offset| linux.map_file(&process, &hot, offset, half, MapHow::default()).expect("a file");
    let (plain, random) = (map(0), map(MIB));
    let _ = linux.advise_access(&process, random, AccessAdvice::Random);
    for round in 0..10 {
        for mapping in [plain, random] {
            let _ = linux.touch_reading(&process, mapping, 0, MIB / PAGE).await;
        }
        for at in (0..4 * MIB).step_by(64 * KIB as usize) {
            let _ = linux.read(&process, &stream, round * 4 * MIB + at, 64 * KIB).await;
        }
    }
    // Faults that miss, each far from the one before.
    let Ok(sparse) = linux.open(&process, "sparse", false).await else { return };
    let sparse = linux.map_file(&process, &sparse, 0, Bytes(30 * MIB), MapHow::default()).expect("a file");
    for at in 0..30 * MIB / PAGE / 64 {
        let _ = linux.touch_reading(&process, sparse, 64 * at + 32, 1).await;
    }
    linux.lay_out_file("code", half).expect("a new file");
    let Ok(code) = linux.open(&process, "code", false).await else { return };
    let how = MapHow { executable: true, ..MapHow::default() };
    let code = linux.map_file(&process, &code, 0, half, how).expect("a file");
    let _ = linux.touch_reading(&process, code, 100, 1).await;
    let _ = linux.read_ahead(&process, &stream, 0, 16 * MIB).await;
    // Pages that are there are written to, some of them mapped to be read already.
    let how = MapHow { shared: true, writable: true, ..MapHow::default() };
    let written = linux.map_file(&process, &hot, 0, half, how).expect("a file");
    let _ = linux.touch_reading(&process, written, 0, 32).await;
    let _ = linux.touch(&process, written, 0, MIB / PAGE).await;
    linux.process_exit(&process);
}

/// Two groups without limits compete for memory.
async fn page_cache(linux: SimKernel) {
    for name in ["A", "B"] {
        group(&linux, name).await;
    }
    let first: Play = Box::pin(reader(linux.clone(), "A", 3 * MIB, 16 * MIB, 6));
    let second: Play = Box::pin(reader(linux.clone(), "B", 4 * MIB, 12 * MIB, 4));
    together(&linux, vec![first, second]).await;
}

/// Siblings below a limit that share out protection, beside a group that is not limited.
async fn limits(linux: SimKernel) {
    let groups = [
        ("P", "memory.max", "8M"),
        ("P", "memory.low", "5M"),
        ("P/A", "memory.low", "4M"),
        ("P/B", "memory.low", "3M"),
        ("P/B/x", "memory.min", "1M"),
        ("P/B/y", "memory.low", "2M"),
        ("Q", "memory.high", "3M"),
        ("R", "memory.low", "5M"),
        ("R/x", "memory.low", "5M"),
        ("R/x/A", "memory.low", "3M"),
        ("R/x/B", "memory.low", "3M"),
    ];
    for (name, file, value) in groups {
        if linux.find_memcg(name).is_none() {
            group(&linux, name).await;
        }
        limit(&linux, name, file, value).await;
    }
    let readers = [
        ("P/A", 3, 9),
        ("P/B/x", 1, 4),
        ("P/B/y", 2, 6),
        ("Q", 1, 4),
        ("R/x/A", 2, 3),
        ("R/x/B", 1, 3),
        ("", 2, 8),
    ];
    let reader =
        |(group, hot, stream)| -> Play { Box::pin(reader(linux.clone(), group, hot * MIB, stream * MIB, 4)) };
    let mut tasks: Vec<Play> = readers.into_iter().map(reader).collect();
    tasks.push(Box::pin(create(linux.clone(), "P/A", 400)));
    together(&linux, tasks).await;
    // More than a batch above `memory.high` in one call.
    let at_once = process(&linux, "at once", "Q").await;
    linux.lay_out_file("at once", Bytes(4 * MIB)).expect("a new file");
    if let Ok(file) = linux.open(&at_once, "at once", false).await {
        let _ = linux.read(&at_once, &file, 0, 4 * MIB).await;
    }
    linux.process_exit(&at_once);
    for name in ["P/A", "P/B/y"] {
        assert_eq!(linux.cgroup_remove(name).is_ok(), has_groups(&linux), "nobody is in it");
    }
}

/// Creates files of up to two pages, then looks at every third.
async fn create(linux: SimKernel, group: &'static str, count: u64) {
    let process = process(&linux, "creator", group).await;
    let name = |number: u64| file_name(&number.to_string(), group);
    for number in 0..count {
        let Ok(file) = linux.open(&process, &name(number), true).await else { continue };
        let _ = linux.write(&process, &file, 0, 1 + (number % (2 * PAGE))).await;
    }
    for number in (0..count).step_by(3) {
        let _ = linux.stat(&process, &name(number)).await;
    }
    linux.process_exit(&process);
}

/// Many small files beside page cache, in a group with a limit and outside.
async fn small_files(linux: SimKernel, limited: u64, free: u64) {
    group(&linux, "A").await;
    limit(&linux, "A", "memory.max", "3M").await;
    let tasks: Vec<Play> = vec![
        Box::pin(create(linux.clone(), "A", limited)),
        Box::pin(create(linux.clone(), "", free)),
        Box::pin(reader(linux.clone(), "", 6 * MIB, 24 * MIB, 4)),
    ];
    together(&linux, tasks).await;
}

/// Writes more than fits, over and over, while somebody reads.
async fn writer(linux: SimKernel, group: &'static str, size: u64, rounds: u64) {
    let process = process(&linux, "writer", group).await;
    let Ok(file) = linux.open(&process, &file_name("written", group), true).await else { return };
    for round in 0..rounds {
        for at in (0..size).step_by(128 * KIB as usize) {
            let _ = linux.write(&process, &file, at, 128 * KIB).await;
        }
        if round == 0 {
            let _ = linux.fsync(&process, &file).await;
        }
    }
    linux.process_exit(&process);
}

async fn writes(linux: SimKernel) {
    group(&linux, "A").await;
    limit(&linux, "A", "memory.max", "4M").await;
    let tasks: Vec<Play> = vec![
        Box::pin(writer(linux.clone(), "", 20 * MIB, 2)),
        Box::pin(writer(linux.clone(), "A", 6 * MIB, 2)),
        Box::pin(reader(linux.clone(), "", 3 * MIB, 12 * MIB, 3)),
    ];
    together(&linux, tasks).await;
}

/// Anonymous memory, some of it locked, takes most of the page cache's room.
async fn anonymous(linux: SimKernel) {
    let reading: Play = Box::pin(reader(linux.clone(), "", 2 * MIB, 12 * MIB, 3));
    let other = linux.clone();
    let touching: Play = Box::pin(async move {
        let process = process(&other, "toucher", "").await;
        let mapping = other.map_anonymous(&process, Bytes(8 * MIB)).expect("addresses");
        for first in (0..2048).step_by(64) {
            let _ = other.touch(&process, mapping, first, 64).await;
        }
        let _ = other.lock_memory(&process, mapping, 0, 512).await;
    });
    together(&linux, vec![reading, touching]).await; // The memory stays, to be seen at the end.
}

/// Anonymous memory and files below a limit and beside it, with compressed memory to swap to: hot pages, cold
/// ones that come back at the end, and files that are read round and round.
async fn swapping(linux: SimKernel) {
    linux.swap_on(AreaSpec { kind: AreaKind::Zram, pages: 4096, priority: None });
    for (name, file, value) in
        [("P", "memory.max", "5M"), ("P/A", "memory.swap.max", "1M"), ("Q", "memory.high", "12M")]
    {
        group(&linux, name).await;
        let _ = linux.cgroup_write(name, file, value).await;
    }
    let toucher = |group: &'static str, mib: u64| -> Play {
        let linux = linux.clone();
        Box::pin(async move {
            let process = process(&linux, "toucher", group).await;
            let mapping = linux.map_anonymous(&process, Bytes(mib * MIB)).expect("addresses");
            if group == "Q" {
                linux.set_compressed_bytes(&process, mapping, 0); // All zeroes.
            }
            for round in 0..6 {
                for first in (0..mib * MIB / PAGE).step_by(32) {
                    // A quarter is hot, the rest is touched in the first and the last round.
                    if round % 5 == 0 || first < mib * MIB / PAGE / 4 {
                        let _ = linux.touch(&process, mapping, first, 32).await;
                    }
                }
                linux.machine().sleep(Nanos::from_millis(2), WaitReason::UserSleep).await;
            }
            let _ = linux.cgroup_write(group, "memory.reclaim", "1M").await;
            let _ = linux.cgroup_write(group, "memory.reclaim", "512k swappiness=200").await;
            let _ = linux.cgroup_write(group, "memory.reclaim", "256k swappiness=max").await;
            let _ = linux.cgroup_write(group, "memory.swap.high", "960k").await;
            let _ = linux.node_write(NodeId(0), "reclaim", "256k").await;
            let _ = linux.advise_cold(&process, mapping, 0, 64);
            let _ = linux.advise_free(&process, mapping, 64, 64);
            let _ = linux.sysctl_write("vm.swappiness", "150");
            let _ = linux.sysctl_write("vm.watermark_scale_factor", "1500");
            for first in (0..mib * MIB / PAGE).step_by(32) {
                let _ = linux.touch(&process, mapping, first, 32).await;
            }
        })
    };
    let reader =
        |group, hot, stream| -> Play { Box::pin(reader(linux.clone(), group, hot * MIB, stream * MIB, 6)) };
    let tasks = vec![toucher("P/A", 3), toucher("Q", 6), reader("P", 3, 3), reader("Q", 2, 6)];
    together(&linux, tasks).await;
}

/// Blocks of pages for an interrupt, taken in bursts while readers fill memory.
async fn interrupts(linux: SimKernel, order: Order, bursts: u64) {
    for burst in 0..bursts {
        let mut held: Vec<Pfn> = Vec::new();
        for _ in 0..24 {
            held.extend(linux.alloc_pages(None, Gfp::ATOMIC, order).await);
        }
        linux.machine().sleep(Nanos::from_micros(50 + burst), WaitReason::UserSleep).await;
        free(&linux, &held, order);
        linux.machine().cond_resched().await;
    }
}

fn free(linux: &SimKernel, held: &[Pfn], order: Order) {
    let CpuId(cpu) = linux.machine().current_cpu();
    linux.mem(|mem| held.iter().for_each(|&pfn| mem.core.alloc.free(CpuId(cpu), pfn, order)));
}

async fn atomic(linux: SimKernel) {
    let tasks: Vec<Play> = vec![
        Box::pin(reader(linux.clone(), "", 4 * MIB, 16 * MIB, 4)),
        Box::pin(create(linux.clone(), "", 300)),
        Box::pin(interrupts(linux.clone(), Order(0), 60)),
        Box::pin(interrupts(linux.clone(), Order(3), 60)),
    ];
    together(&linux, tasks).await;
}

/// Unmovable pages come and go among movable ones, so that each takes blocks of the other.
async fn mixed(linux: SimKernel) {
    let other = linux.clone();
    let unmovable: Play = Box::pin(async move {
        let mut held: Vec<Pfn> = Vec::new();
        for number in 0..900_u64 {
            held.extend(other.alloc_pages(None, Gfp::KERNEL, Order(0)).await);
            if number % 3 == 2 {
                let pfn = held.swap_remove(usize::try_from(number / 3).expect("small") % held.len());
                free(&other, &[pfn], Order(0));
            }
            other.machine().cond_resched().await;
        }
        free(&other, &held, Order(0));
    });
    let tasks: Vec<Play> = vec![
        unmovable,
        Box::pin(interrupts(linux.clone(), Order(0), 40)),
        Box::pin(reader(linux.clone(), "", 4 * MIB, 20 * MIB, 4)),
        Box::pin(create(linux.clone(), "", 600)),
    ];
    together(&linux, tasks).await;
}

/// Memory that wants huge pages, after page cache and files have broken blocks up.
async fn huge(linux: SimKernel) {
    reader(linux.clone(), "", 3 * MIB, 18 * MIB, 3).await;
    create(linux.clone(), "", 300).await;
    let process = process(&linux, "huge", "").await;
    for advice in [HugeAdvice::Huge, HugeAdvice::None, HugeAdvice::Huge] {
        let mapping = linux.map_anonymous(&process, Bytes(6 * MIB)).expect("addresses");
        let advised = linux.advise_huge(&process, mapping, advice);
        assert!(advised.is_ok() || linux.mem(|mem| mem.core.rules().huge_pages == HugePages::Off));
        let _ = linux.touch(&process, mapping, 0, 1536).await;
        linux.machine().sleep(Nanos::from_millis(20), WaitReason::UserSleep).await;
        linux.unmap_anonymous(&process, mapping);
    }
    linux.process_exit(&process);
}
