//! Draws a machine with its kernel and sysctls, and the outline of a program.

use std::fmt;

use kernel::Filesystem;
use mm::base::layout::MemoryLayout;
use mm::base::sysctl::{Sysctl, Sysctls};
use mm::version::feature::Feature;
use pagetide_sim::{DeviceModel, Hardware, Program, RunError, SimError, SimRun};
use units::{Nanos, Pages, Seed, random::Stream};
use workload::Workload;

use super::program::Plan;

/// One random world.
pub struct World {
    pub spec: SimRun,
    pub plan: Plan,
}

const VERSIONS: [&str; 5] = ["linux-5.3", "linux-5.4", "linux-5.5", "linux-6.1", "linux-6.12"];

impl World {
    /// The world of this seed.
    pub fn draw(seed: u64) -> Self {
        let mut stream = Seed(seed).stream("world");
        let kernel = draw_kernel(&mut stream);
        let mib = *pick(&mut stream, &[8, 8, 8, 8, 8, 8, 12, 12, 16, 20, 32, 64]);
        let cpus = 1 + u16::try_from(stream.below(4)).expect("small");
        let devices = [DeviceModel::NVME, DeviceModel::VIRTIO_RAM, DeviceModel::INSTANT];
        let mut hardware = Hardware::with_cpus(cpus).with_device(pick(&mut stream, &devices).clone());
        if stream.chance(1, 4) {
            hardware.costs = hardware.costs.scale_percent(4_300);
        }
        let mut layout = MemoryLayout::flat(Pages(mib << 8), cpus);
        if stream.chance(1, 6) {
            let second = layout.nodes[0].clone();
            layout.nodes.push(second);
        }
        let spec = SimRun {
            program: Program::Workload(Workload::new("hot-and-stream", []).expect("the defaults")),
            kernel,
            sysctls: draw_sysctls(&mut stream),
            hardware,
            layout,
            filesystem: if stream.chance(1, 2) { Filesystem::Ext4 } else { Filesystem::Xfs },
            readahead_pages: *pick(&mut stream, &[32, 32, 32, 0, 1, 7, 64, 256, 1024]),
            seed,
            time_limit: Nanos::from_secs(600),
            sample_period: Nanos::from_millis(100),
        };
        let memory = mib << 20;
        Self { plan: Plan::draw(seed, memory, &mut stream), spec }
    }
}

fn draw_kernel(stream: &mut Stream) -> mm::Version {
    let mut version = mm::Version::parse(*pick(stream, &VERSIONS)).expect("a version that exists");
    while stream.chance(1, 2) {
        let sign = if stream.chance(1, 2) { '+' } else { '-' };
        let name = format!("{}{sign}{}", version.name, pick(stream, Feature::ALL));
        // A change that changes nothing is refused: the kernel stays what it was.
        version = mm::Version::parse(&name).unwrap_or(version);
    }
    version
}

fn draw_sysctls(stream: &mut Stream) -> Sysctls {
    let mut sysctls = Sysctls::default();
    if stream.chance(1, 4) {
        sysctls.set(Sysctl::MinFreeKbytes, 64 << stream.below(6));
    }
    if stream.chance(1, 4) {
        sysctls.set(Sysctl::WatermarkScaleFactor, 1 + stream.below(1000));
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
        SimError::Run(RunError::Deadlock { .. } | RunError::TimeLimit { .. } | RunError::Stopped { .. }) => {
            false
        }
        SimError::Hardware(_) | SimError::Violation(_) => false,
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SimRun { kernel, hardware, layout, filesystem, readahead_pages, sysctls, .. } = &self.spec;
        write!(
            f,
            "{} on {} CPUs, {} nodes, {} ({filesystem:?}, {}, readahead {readahead_pages}, {sysctls:?})\n{:?}",
            kernel.name,
            hardware.cpus,
            layout.nodes.len(),
            layout.managed().to_bytes(),
            hardware.devices[0].name,
            self.plan,
        )
    }
}
