//! A small machine with XFS, of 1 to 4 nodes, and tasks on it that create files, read, write and pin memory.
//!
//! The limit of a checkpoint of the log is in proportion to memory, too: else a machine of 8 MiB had most
//! of its inodes in one. Next: [`super::drill`].

use std::fmt;

use kernel::Filesystem;
use mm::Version;
use mm::base::layout::{MemoryLayout, NodeLayout, ZoneKind, ZoneLayout};
use mm::base::sysctl::{Sysctl, Sysctls};
use sim::{DeviceModel, Hardware, Program, SimRun};
use units::{Bytes, Nanos, Pages, Seed, random::Stream};
use workload::system::{OpenMode, System, SystemError, TaskSpec};
use workload::{Outcome, Workload, WorkloadError};

use super::super::liveness::{Bounds, Calls};
use super::super::program::accept;
use super::super::world::pick;

const PAGE: u64 = 4096;

/// The outline of a program.
#[derive(Debug, Clone)]
pub struct Plan {
    pub seed: u64,
    /// Tasks that create files, and how many each makes.
    pub creators: u64,
    pub files: u64,
    /// Bytes that each file has at most.
    pub file_bytes: u64,
    /// Files in a directory.
    pub per_directory: u64,
    /// Tasks that read and write a large file of so many bytes, and how often.
    pub users: u64,
    pub large: u64,
    pub rounds: u64,
    /// Tasks that pin memory: pages in all, and at a time.
    pub pinners: u64,
    pub pinned: u64,
    pub pin_step: u64,
    /// Between two steps.
    pub pin_pause: Nanos,
    /// How the OOM killer shall see who pins.
    pub adj: i16,
}

/// Memory of source 3's machine, and what a checkpoint of its log may grow to.
const SOURCE_MIB: u64 = 16 << 10;
const CHECKPOINT_MIB: u64 = 32;

/// How fast CPUs and disk are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// As much slower as memory is smaller than that of source 3's machine: to go once through memory, or to
    /// write all of it, takes as long as there. So the kernel's own times (a grace period, a rest of the AIL's
    /// thread, a pause of a reclaimer) are in proportion.
    InProportion,
    /// As they are: a round of reclaim through so little memory is over before anybody else has run.
    Tiny,
}

/// One random world.
pub struct World {
    pub spec: SimRun,
    pub plan: Plan,
}

const TIME_LIMIT: Nanos = Nanos::from_secs(24 * 60 * 60);

impl World {
    /// The world of this seed, under a kernel.
    pub fn draw(seed: u64, kernel: &Version, pace: Pace) -> Self {
        let mut stream = Seed(seed).stream("storm");
        let nodes = *pick(&mut stream, &[1, 1, 2, 3, 4]);
        let cpus = u16::try_from(nodes * (1 + stream.below(2))).expect("small");
        let mib = *pick(&mut stream, &[8, 12, 16, 24, 32]) * nodes.max(2) / 2;
        let times = if pace == Pace::InProportion { SOURCE_MIB / mib } else { 1 };
        let mut device = draw_device(&mut stream);
        device.xfs_log = Bytes(*pick(&mut stream, &[0, 2, 4, 8]) << 20);
        let mut kernel = kernel.clone();
        kernel.tuning.xfs_checkpoint_max = Bytes(((mib << 20) * CHECKPOINT_MIB) / SOURCE_MIB);
        let spec = SimRun {
            program: Program::Workload(Workload::new("hot-and-stream", []).expect("the defaults")),
            kernel,
            sysctls: draw_sysctls(&mut stream),
            hardware: hardware(cpus, device, times),
            layout: draw_layout(mib << 8, nodes, cpus, &mut stream),
            policy: None,
            swap: workload::scenario::Swap::NONE,
            filesystem: Filesystem::Xfs,
            readahead_pages: *pick(&mut stream, &[32, 32, 0, 7]),
            seed,
            time_limit: TIME_LIMIT,
            sample_period: Nanos::from_millis(100),
        };
        let memory = mib << 20;
        Self { plan: Plan::draw(seed, memory, &mut stream), spec }
    }

    pub fn bounds(&self) -> Bounds {
        Bounds::of(&self.spec, self.plan.creators + self.plan.users + self.plan.pinners)
    }
}

impl Plan {
    fn draw(seed: u64, memory: u64, stream: &mut Stream) -> Self {
        let creators = 1 + stream.below(6);
        // Some 3 KiB each: up to twice what there is room for.
        let files = (memory / 3072) * (1 + stream.below(16)) / 8 / creators;
        let pinners = 1 + stream.below(2);
        let pinned = memory / PAGE * (8 + stream.below(9)) / 16 / pinners;
        Self {
            seed,
            creators,
            files,
            file_bytes: *pick(stream, &[0, 0, PAGE, 3 * PAGE]),
            per_directory: *pick(stream, &[64, 1024, 1 << 20]),
            users: stream.below(3),
            large: stream.below(memory),
            rounds: stream.below(6),
            pinners,
            pinned,
            pin_step: 1 + pinned / (1 << stream.below(7)),
            pin_pause: Nanos(1 << (20 + stream.below(12))),
            adj: *pick(stream, &[0, 0, 0, -1000]),
        }
    }
}

/// CPUs and a disk, each operation of which takes so many times as long as on a real machine.
fn hardware(cpus: u16, mut device: DeviceModel, times: u64) -> Hardware {
    for speed in [&mut device.read, &mut device.write] {
        speed.op.0 *= times;
        speed.random_op.0 *= times;
        speed.bandwidth = (speed.bandwidth / times).max(1 << 16);
    }
    let mut hardware = Hardware::with_cpus(cpus).with_device(device);
    let latency = hardware.costs.wakeup_latency();
    hardware.costs = hardware.costs.scale_percent(u32::try_from(100 * times).expect("small"));
    hardware.costs.set("wakeup_latency", latency).expect("there is such a cost");
    hardware
}

fn draw_device(stream: &mut Stream) -> DeviceModel {
    pick(stream, &[DeviceModel::NVME, DeviceModel::VIRTIO_RAM, DeviceModel::INSTANT]).clone()
}

fn draw_layout(pages: u64, nodes: u64, cpus: u16, stream: &mut Stream) -> MemoryLayout {
    let mut layout = MemoryLayout::flat(Pages(pages), cpus);
    let kinds: &[ZoneKind] = match stream.below(3) {
        0 => &[ZoneKind::Dma32, ZoneKind::Normal],
        _ => &[ZoneKind::Normal],
    };
    let node = |number: u64| {
        let kinds = if number == 0 { kinds } else { &[ZoneKind::Normal] };
        let zone = |&kind| ZoneLayout::new(kind, Pages(pages / nodes / kinds.len() as u64));
        NodeLayout { zones: kinds.iter().map(zone).collect() }
    };
    layout.nodes = (0..nodes).map(node).collect();
    layout
}

fn draw_sysctls(stream: &mut Stream) -> Sysctls {
    let mut sysctls = Sysctls::default();
    if stream.chance(1, 3) {
        sysctls.set(Sysctl::MinFreeKbytes, 64 << stream.below(5));
    }
    if stream.chance(1, 4) {
        sysctls.set(Sysctl::VfsCachePressure, *pick(stream, &[10, 50, 200, 1000]));
    }
    if stream.chance(1, 4) {
        sysctls.set(Sysctl::DirtyRatio, 5 + stream.below(40));
    }
    sysctls
}

/// Starts everybody and waits for them; whoever is killed is not missed.
pub async fn main<S: System>(sys: S, plan: Plan, calls: Calls) -> Result<Outcome, WorkloadError> {
    // It has to outlive the others.
    accept(sys.set_oom_score_adj(-1000).await)?;
    sys.lay_out_file("large", Bytes(plan.large)).await?;
    let mut tasks = Vec::new();
    for number in 0..plan.creators + plan.users + plan.pinners {
        let name = format!("task{number}");
        let task = Task { sys: sys.clone(), plan: plan.clone(), calls: calls.clone(), name: name.clone() };
        let ticket = calls.enter("workload", "fork", 64, sys.now());
        let started = sys
            .spawn(TaskSpec::named(name), move |sys| async move { Task { sys, ..task }.run(number).await })
            .await;
        calls.leave(ticket, sys.now());
        tasks.extend(accept(started)?);
    }
    let mut done = 0;
    for task in tasks {
        done += accept(sys.join(task).await)?.transpose()?.unwrap_or(0);
    }
    // Nobody writes any more when the program ends.
    let ticket = calls.enter("workload", "drop_caches", sys.memory_total().0, sys.now());
    accept(sys.drop_caches(3).await)?;
    calls.leave(ticket, sys.now());
    let mut outcome = Outcome::default();
    outcome.metric("done", done as f64);
    Ok(outcome)
}

struct Task<S: System> {
    sys: S,
    plan: Plan,
    calls: Calls,
    name: String,
}

impl<S: System> Task<S> {
    async fn run(self, number: u64) -> Result<u64, WorkloadError> {
        let pins = number >= self.plan.creators + self.plan.users;
        accept(self.sys.set_oom_score_adj(if pins { self.plan.adj } else { 0 }).await)?;
        if number < self.plan.creators {
            self.create().await
        } else if pins {
            self.pin().await
        } else {
            self.read_and_write().await
        }
    }

    async fn call<V>(
        &self,
        name: &'static str,
        pages: u64,
        call: impl Future<Output = Result<V, SystemError>>,
    ) -> Result<Option<V>, WorkloadError> {
        accept(self.calls.during((&self.sys, &self.name), name, pages, call).await)
    }

    async fn create(&self) -> Result<u64, WorkloadError> {
        let mut made = 0;
        for number in 0..self.plan.files {
            let directory = format!("{}-{}", self.name, number / self.plan.per_directory);
            if number.is_multiple_of(self.plan.per_directory) {
                self.call("mkdir", 4, self.sys.make_dir(&directory)).await?;
            }
            let name = format!("{directory}/{number}");
            let Some(file) = self.call("creat", 4, self.sys.open(&name, OpenMode::Create)).await? else {
                return Ok(made);
            };
            if self.plan.file_bytes > 0 {
                self.call("write", 4, self.sys.write(&file, 0, self.plan.file_bytes)).await?;
            }
            made += 1;
        }
        Ok(made)
    }

    async fn read_and_write(&self) -> Result<u64, WorkloadError> {
        let mut stream = Seed(self.plan.seed).stream(&self.name);
        let Some(file) = self.call("open", 4, self.sys.open("large", OpenMode::ReadWrite)).await? else {
            return Ok(0);
        };
        let mut done = 0;
        for _ in 0..self.plan.rounds {
            let writes = stream.chance(1, 3);
            let mut at = 0;
            while at < self.plan.large {
                let len = (64 * PAGE).min(self.plan.large - at);
                done += if writes {
                    self.call("write", 66, self.sys.write(&file, at, len)).await?.unwrap_or(0)
                } else {
                    self.call("read", 66, self.sys.read(&file, at, len)).await?.unwrap_or(0)
                };
                at += len;
            }
        }
        Ok(done)
    }

    /// Pins ever more, and keeps it for a while.
    async fn pin(&self) -> Result<u64, WorkloadError> {
        let bytes = Bytes(self.plan.pinned * PAGE);
        let Some(mapping) = accept(self.sys.map_anonymous(bytes).await)? else { return Ok(0) };
        let mut at = 0;
        while at < self.plan.pinned {
            let count = self.plan.pin_step.min(self.plan.pinned - at).min(256);
            if self.call("mlock", count, self.sys.lock_memory(&mapping, at, count)).await?.is_none() {
                return Ok(at);
            }
            at += count;
            if at.is_multiple_of(self.plan.pin_step) || at == self.plan.pinned {
                self.sys.sleep(self.plan.pin_pause).await;
            }
        }
        self.sys.sleep(Nanos::from_secs(2)).await;
        Ok(at)
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SimRun { kernel, hardware, layout, sysctls, readahead_pages, .. } = &self.spec;
        let zones = |node: &NodeLayout| {
            let zone = |zone: &ZoneLayout| format!("{} {}", zone.kind.name(), zone.managed.to_bytes());
            node.zones.iter().map(zone).collect::<Vec<_>>().join(" + ")
        };
        let nodes: Vec<String> = layout.nodes.iter().map(zones).collect();
        let disk = &hardware.devices[0];
        write!(
            f,
            "{} on {} CPUs, {} ({}, log {}, readahead {readahead_pages}",
            kernel.name,
            hardware.cpus,
            nodes.join("; "),
            disk.name,
            disk.xfs_log,
        )?;
        for &sysctl in Sysctl::ALL {
            if sysctls.get(sysctl) != Sysctls::default().get(sysctl) {
                write!(f, ", {sysctl} = {}", sysctl.value_text(sysctls.get(sysctl)))?;
            }
        }
        write!(f, ")\n{:?}", self.plan)
    }
}
