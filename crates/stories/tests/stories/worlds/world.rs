//! Draws a machine with its kernel and sysctls, and the outline of a program.

use std::fmt::{self, Write};

use kernel::Filesystem;
use mm::Version;
use mm::base::layout::{HugeSupport, MemoryLayout, NodeLayout, ZoneKind, ZoneLayout};
use mm::base::sysctl::{Sysctl, Sysctls};
use mm::version::rules::{Cgroups, Rule};
use sim::{DeviceModel, Hardware, Program, RunError, SimError, SimRun};
use units::{Bytes, Nanos, Pages, Seed, random::Stream};
use workload::Workload;
use workload::scenario::{Swap, SwapArea, SwapDevice, Zswap};

use super::liveness::Bounds;
use super::program::Plan;

/// One random world.
pub struct World {
    pub spec: SimRun,
    pub plan: Plan,
}

/// More than any world takes, and than any wait or call may.
const TIME_LIMIT: Nanos = Nanos::from_secs(24 * 60 * 60);

/// Values of a sysctl that worlds try.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// From the first up to below the second.
    Range(u64, u64),
    /// The first, doubled less often than the second says.
    Doubled(u64, u64),
}

impl Values {
    pub fn draw(self, stream: &mut Stream) -> u64 {
        match self {
            Self::Range(first, end) => first + stream.below(end - first),
            Self::Doubled(first, times) => first << stream.below(times),
        }
    }
}

/// The sysctls that worlds set, at boot and while they run.
pub const SETTINGS: [(Sysctl, Values); 12] = [
    (Sysctl::MinFreeKbytes, Values::Doubled(64, 7)),
    (Sysctl::WatermarkScaleFactor, Values::Range(1, 1500)),
    (Sysctl::WatermarkBoostFactor, Values::Range(0, 30_000)),
    (Sysctl::FragmentStallOrder, Values::Range(0, 12)),
    (Sysctl::VfsCachePressure, Values::Doubled(1, 10)),
    (Sysctl::DirtyRatio, Values::Range(0, 60)),
    (Sysctl::DirtyBackgroundRatio, Values::Range(0, 30)),
    (Sysctl::DirtyExpireCentisecs, Values::Range(0, 4000)),
    (Sysctl::DirtyWritebackCentisecs, Values::Range(0, 600)),
    (Sysctl::Swappiness, Values::Range(0, 201)),
    (Sysctl::ThpEnabled, Values::Range(1, 4)),
    (Sysctl::ThpDefrag, Values::Range(1, 6)),
];

impl World {
    /// The world of this seed.
    pub fn draw(seed: u64) -> Self {
        let mut stream = Seed(seed).stream("world");
        let mib = *pick(&mut stream, &[8, 8, 8, 8, 8, 8, 12, 12, 16, 20, 32, 64]);
        let cpus = 1 + u16::try_from(stream.below(4)).expect("small");
        let mut hardware = Hardware::with_cpus(cpus).with_device(draw_device(&mut stream));
        if stream.chance(1, 4) {
            hardware.costs = hardware.costs.scale_percent(4_300);
        }
        let spec = SimRun {
            program: Program::Workload(Workload::new("hot-and-stream", []).expect("the defaults")),
            kernel: draw_kernel(seed),
            sysctls: draw_sysctls(&mut stream),
            hardware,
            layout: draw_layout(mib << 8, cpus, &mut stream),
            policy: None,
            swap: draw_swap(seed),
            filesystem: if stream.chance(1, 2) { Filesystem::Ext4 } else { Filesystem::Xfs },
            readahead_pages: *pick(&mut stream, &[32, 32, 32, 0, 1, 7, 64, 256, 1024]),
            seed,
            time_limit: TIME_LIMIT,
            sample_period: Nanos::from_millis(100),
        };
        let memory = mib << 20;
        Self { plan: Plan::draw(seed, memory, &mut stream), spec }.without_what_it_lacks()
    }

    /// The same world under another kernel.
    pub fn under(mut self, kernel: Version) -> Self {
        self.spec.kernel = kernel;
        self.without_what_it_lacks()
    }

    /// Where there are no cgroups a program that makes some would end at once.
    fn without_what_it_lacks(mut self) -> Self {
        if self.spec.kernel.rules.cgroups == Cgroups::Off {
            self.plan = self.plan.without_groups();
        }
        self
    }

    /// How long its waits and calls may last.
    pub fn bounds(&self) -> Bounds {
        Bounds::of(&self.spec, self.plan.tasks)
    }
}

/// Any version with some of its decisions made otherwise. Seeds take turns with the first of them, so
/// that some hundred worlds have every answer to every decision.
pub fn draw_kernel(seed: u64) -> Version {
    let mut stream = Seed(seed).stream("kernel");
    let presets: Vec<&str> = Version::presets().map(|(name, _)| name).collect();
    let mut version =
        Version::parse(pick::<&str>(&mut stream, &presets)).expect("a version that is modelled");
    let mut rule = Rule::ALL[usize::try_from(seed % Rule::ALL.len() as u64).expect("an index")];
    loop {
        version.rules = version.rules.with(rule);
        let _ = write!(version.name, " {rule:?}");
        if stream.chance(1, 2) {
            return version;
        }
        rule = *pick(&mut stream, Rule::ALL);
    }
}

/// Areas of swap, in half of all worlds: of compressed memory, on disks, or both.
fn draw_swap(seed: u64) -> Swap {
    let mut stream = Seed(seed).stream("swap");
    let (zram, disk) = (SwapDevice::Zram, SwapDevice::Disk);
    let devices: &[SwapDevice] = match stream.below(10) {
        0..5 => &[],
        5 | 6 => &[zram],
        7 | 8 => &[disk],
        _ => &[disk, zram],
    };
    let mut priorities = Seed(seed).stream("priorities of swap");
    let area = |&device: &SwapDevice| SwapArea {
        device,
        size: Bytes(1 << (16 + stream.below(8))),
        priority: priorities.chance(1, 2).then(|| i16::try_from(priorities.below(2)).expect("small")),
    };
    let areas: Vec<SwapArea> = devices.iter().map(area).collect();
    let zswap = !areas.is_empty() && stream.chance(1, 3);
    let percent = u8::try_from(1 + stream.below(20)).expect("small");
    Swap { areas, zswap: zswap.then_some(Zswap { max_pool_percent: Some(percent) }) }
}

fn draw_device(stream: &mut Stream) -> DeviceModel {
    let quick = [DeviceModel::NVME, DeviceModel::VIRTIO_RAM, DeviceModel::INSTANT];
    let slow = [DeviceModel::SATA_EVO, DeviceModel::SLOW_RAID6, DeviceModel::SATA_HDD];
    if stream.chance(1, 6) { pick(stream, &slow).clone() } else { pick(stream, &quick).clone() }
}

/// One or two nodes of so many pages, with any zones.
fn draw_layout(pages: u64, cpus: u16, stream: &mut Stream) -> MemoryLayout {
    let mut layout = MemoryLayout::flat(Pages(pages), cpus);
    let kinds: &[ZoneKind] = match stream.below(6) {
        0 => &[ZoneKind::Normal],
        1 => &[ZoneKind::Dma32, ZoneKind::Normal],
        2 => &[ZoneKind::Dma, ZoneKind::Dma32, ZoneKind::Normal],
        _ => &[],
    };
    if !kinds.is_empty() {
        let zone = |&kind| ZoneLayout::new(kind, Pages(pages / kinds.len() as u64));
        layout.nodes = vec![NodeLayout { zones: kinds.iter().map(zone).collect() }];
    }
    if stream.chance(1, 6) {
        let zone = &mut layout.nodes[0].zones[0];
        zone.managed_at_boot = Pages(zone.managed.0 - stream.below(zone.managed.0 / 4));
        zone.kept_by_kernel = Pages(stream.below(zone.managed.0 / 8));
    }
    if stream.chance(1, 6) {
        let second = layout.nodes[0].clone();
        layout.nodes.push(second);
    }
    layout.huge_pages = HugeSupport::switched(stream.chance(1, 4));
    layout
}

fn draw_sysctls(stream: &mut Stream) -> Sysctls {
    let mut sysctls = Sysctls::default();
    for (sysctl, values) in SETTINGS {
        let odds = if matches!(sysctl, Sysctl::ThpEnabled | Sysctl::ThpDefrag) { 2 } else { 5 };
        if stream.chance(1, odds) {
            sysctls.set(sysctl, values.draw(stream));
        }
    }
    sysctls
}

/// One of `choices`.
pub fn pick<'a, C>(stream: &mut Stream, choices: &'a [C]) -> &'a C {
    let index = stream.below(choices.len() as u64);
    &choices[usize::try_from(index).expect("an index")]
}

/// Whether the world could not even start, which is an answer and no failure.
pub fn is_refusal(error: &SimError) -> bool {
    match error {
        SimError::Boot(_) | SimError::Workload(_) => true,
        // Nobody is left whom the OOM killer could take.
        SimError::Run(RunError::Halted { .. }) => true,
        SimError::Run(RunError::NoProgress { hope, .. }) => !hope,
        SimError::Run(
            RunError::EventLimit { .. }
            | RunError::Deadlock { .. }
            | RunError::TimeLimit { .. }
            | RunError::Stopped { .. },
        ) => false,
        SimError::Hardware(_) | SimError::Violation(_) | SimError::Policy(_) => false,
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SimRun { kernel, hardware, layout, filesystem, readahead_pages, sysctls, .. } = &self.spec;
        let zones = |node: &NodeLayout| {
            let zone = |zone: &ZoneLayout| format!("{} {}", zone.kind.name(), zone.managed.to_bytes());
            node.zones.iter().map(zone).collect::<Vec<_>>().join(" + ")
        };
        let nodes: Vec<String> = layout.nodes.iter().map(zones).collect();
        write!(
            f,
            "{} on {} CPUs, {} ({filesystem:?}, {}, readahead {readahead_pages}",
            kernel.name,
            hardware.cpus,
            nodes.join("; "),
            hardware.devices[0].name,
        )?;
        for &sysctl in Sysctl::ALL {
            if sysctls.get(sysctl) != Sysctls::default().get(sysctl) {
                write!(f, ", {sysctl} = {}", sysctl.value_text(sysctls.get(sysctl)))?;
            }
        }
        write!(f, ", swap {}", self.spec.swap)?;
        write!(f, ")\n{:?}", self.plan)
    }
}
