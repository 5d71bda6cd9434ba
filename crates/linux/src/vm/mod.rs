//! Runs a workload on a real kernel in a virtual machine, without privileges.
//!
//! Start with [`run()`]: it takes a [`kernels`] image, writes an initramfs ([`cpio`]) with this very
//! program as its init ([`elf`]), the few [`modules`] that it needs and the job, makes a data disk
//! ([`image`]), starts [`qemu`] and watches it (`watch`, [`console`]). Inside, [`guest`] prepares
//! the machine and calls [`crate::run()`]; its result comes back through a serial port
//! ([`protocol`]). [`fetch()`] brings Debian's kernels here.
//!
//! Deliberately absent: anything that depends on a workload; installing anything; network in the
//! guest.

pub mod console;
pub mod cpio;
mod deb;
pub mod elf;
mod error;
mod fetch;
pub mod guest;
pub mod image;
pub mod kernels;
pub mod modules;
mod needs;
pub mod protocol;
pub mod qemu;
mod swap;
mod watch;

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use units::{Bytes, Seed};
use workload::scenario::{LruGen, Swap, SwapDevice};
use workload::{MachineSize, Workload};

pub use error::VmError;
pub use fetch::fetch;
pub use image::VmFilesystem;
pub use kernels::{Kernel, Modules, VmKernel, cache_dir};
pub use qemu::{Accelerator, Hardware};

use crate::bounds::{BoundsError, DEFAULT_SHARE, Disk, DiskShare, Memory, Rounded};
use crate::machine;
use crate::owner::Processes;
use crate::spec::{LinuxResult, Told};
use cpio::Archive;
use modules::{GUEST_MODULES, ModuleTree};
use protocol::{JOB_PATH, Job, TRACE_PATH};
use watch::{Failure, Finished, Outputs, Patience};

const QEMU: &str = "qemu-system-x86_64";
const KVM_DEVICE: &str = "/dev/kvm";
/// The first kernel with a multi-gen LRU.
const LRU_GEN_SINCE: &str = "6.1";
/// With KVM a guest is ready after about a second; where KVM hangs, emulation should have its turn.
const KVM_BOOT: Duration = Duration::from_secs(10);
/// How long nothing may be heard from an emulated guest that boots: its kernel says nothing until its program
/// runs. Twelve tasks that are busy for each CPU of the host made that more than two minutes.
const TCG_BOOT: Duration = Duration::from_secs(300);

/// A virtual machine and how long it may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmSpec {
    /// What it boots.
    pub kernel: VmKernel,
    /// Memory, CPUs, nodes.
    pub hardware: Hardware,
    /// What is on the data disk.
    pub filesystem: VmFilesystem,
    /// Size of the data disk, or of all together; only what is written takes room on the host.
    pub disk: Bytes,
    /// What of the free disk of this host that may be.
    pub share: DiskShare,
    /// Readahead of the data disk in KiB.
    pub read_ahead_kib: u32,
    /// What the workload's random draws come from.
    pub seed: Seed,
    /// Sysctls to set before the run, by name and value.
    pub sysctls: Vec<(String, String)>,
    /// The multi-gen LRU. The reference measurements have it off.
    pub lru_gen: LruGen,
    /// What it swaps to. The reference measurements without `swap` in their names have nothing.
    pub swap: Swap,
    /// `memory.max` of the workload's root cgroup.
    pub limit: Option<Bytes>,
    /// Time between samples of the counters.
    pub sample_period: Duration,
    /// What runs the guest's CPUs; `None` tries KVM and falls back to emulation.
    pub accelerator: Option<Accelerator>,
    /// How long the whole may take.
    pub timeout: Duration,
    /// How long the guest may say nothing.
    pub quiet_timeout: Duration,
    /// The program to run as init: one whose `main` calls [`guest::become_init_in_a_guest`].
    /// `None` is the running program.
    pub program: Option<PathBuf>,
}

impl VmSpec {
    /// A guest as in the reference measurements: 512 MiB, 2 CPUs, ext4 on 32 GiB, readahead of
    /// 128 KiB, two-list LRU, a sample each second.
    pub fn new(kernel: VmKernel) -> Self {
        Self {
            kernel,
            hardware: Hardware { mem: Bytes(512 << 20), cpus: 2, numa_nodes: 1 },
            filesystem: VmFilesystem::Ext4,
            disk: Bytes(32 << 30),
            share: DEFAULT_SHARE,
            read_ahead_kib: 128,
            seed: Seed(1),
            sysctls: Vec::new(),
            lru_gen: LruGen::OFF,
            swap: Swap::NONE,
            limit: None,
            sample_period: Duration::from_secs(1),
            accelerator: None,
            timeout: Duration::from_secs(3600),
            quiet_timeout: Duration::from_secs(120),
            program: None,
        }
    }
}

/// What a run in a guest leaves.
#[derive(Debug, Clone, PartialEq)]
pub struct VmRun {
    /// As if the workload had run here; `notes` say what was special about the machine.
    pub result: LinuxResult,
    /// What ran the guest's CPUs.
    pub accelerator: Accelerator,
    /// From the start of QEMU until the guest's program ran.
    pub boot: Duration,
    /// From the start of QEMU until its end.
    pub total: Duration,
}

/// Runs `workload` in a machine like `spec`. Kernels by version come from [`cache_dir`].
///
/// Nothing is left behind: no process, no file. Counters of a single-threaded workload repeat to
/// the page, all else as well as the kernel lets it.
///
/// # Errors
/// See [`VmError`], each with a hint where there is something to do.
pub fn run(
    spec: &VmSpec,
    workload: &Workload,
    stop: &AtomicBool,
    tell: &dyn Fn(Told<'_>),
) -> Result<VmRun, VmError> {
    let Found { qemu, kernel, runs, .. } = look(spec, workload)?;
    kernels::create_private(&runs)?;
    let failed = |source| VmError::io("create a folder in", &runs, source);
    let (_, dir) = Processes::of_machine().create_directory(&runs).map_err(failed)?;
    let initramfs = dir.path().join("initramfs");
    let disks = memory_of(spec).footprint(workload).disks;
    let archive = initramfs_of(spec, &kernel, workload, disks)?;
    std::fs::write(&initramfs, archive).map_err(|source| VmError::io("write", &initramfs, source))?;
    let machine =
        Machine { spec, disks, qemu: &qemu, kernel: &kernel, initramfs: &initramfs, dir: dir.path() };
    machine.run(stop, tell)
}

/// Says what a run would take of this host: a sentence for each thing worth knowing. Folders of
/// killed runs are removed first, and nothing is written.
///
/// # Errors
/// There is no such machine or kernel; the run needs more than there is, in the guest or here.
pub fn check(spec: &VmSpec, workload: &Workload) -> Result<Vec<String>, VmError> {
    look(spec, workload).map(|found| found.notes)
}

/// What a run uses of this host.
struct Found {
    qemu: PathBuf,
    kernel: Kernel,
    /// Where folders of runs are made.
    runs: PathBuf,
    notes: Vec<String>,
}

fn look(spec: &VmSpec, workload: &Workload) -> Result<Found, VmError> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(VmError::WrongHost);
    }
    spec.hardware.check()?;
    let qemu = image::find_program(QEMU).ok_or_else(|| VmError::NoQemu { program: QEMU.to_owned() })?;
    let kernels = cache_dir()?;
    let kernel = spec.kernel.find(&kernels)?;
    check_lru_gen(spec.lru_gen, &kernel.release)?;
    check_zram(&spec.swap, &kernel)?;
    let runs = kernels.with_file_name("runs");
    let mut notes = Processes::of_machine().remove_dead_directories(&runs);
    notes.extend(kernel.doubt());
    let assumed = ModuleTree::of(&kernel.modules)?.assumed(&modules_of(spec));
    if !assumed.is_empty() {
        let image = kernel.image.display();
        notes.push(format!(
            "taken for built into `{image}`, as no modules say otherwise: {}",
            assumed.join(", ")
        ));
    }
    notes.push(check_bounds(spec, workload, &runs)?);
    Ok(Found { qemu, kernel, runs, notes })
}

/// Holds what the workload makes against the guest's memory and disk, and those against this host's.
fn check_bounds(spec: &VmSpec, workload: &Workload, runs: &Path) -> Result<String, VmError> {
    let mem = spec.hardware.mem;
    let (host, cgroup) =
        machine::memory_here().unwrap_or_else(|_| (machine::memory_total().to_bytes(), None));
    if mem > host {
        return Err(BoundsError::BeyondMemory { what: "--mem", asked: mem, memory: host, cgroup }.into());
    }
    let memory = memory_of(spec);
    memory.check(workload, host)?;
    let made = memory.footprint(workload);
    if made.disks + swap_disks(&spec.swap) > qemu::DISKS_MAX {
        let disks = made.disks + swap_disks(&spec.swap);
        let why = format!("a virtual machine has 1 to {} disks, not {disks}", qemu::DISKS_MAX);
        return Err(VmError::BadSpec { why });
    }
    let name = workload.name();
    image::fits(&made, spec.filesystem, spec.disk).map_err(|room| BoundsError::GuestDisk {
        workload: name,
        count: made.file_count,
        files: made.files,
        disk: spec.disk,
        room,
        instead: memory.smaller_files(workload, Bytes(spec.disk.get() / 8 * 7)),
    })?;
    let disk = Disk::at(runs).map_err(|source| VmError::io("look at", runs, source))?;
    let (files, image) = (Rounded::up(made.files), image::grows_to(&made));
    let grown = format!("the guest's disk takes up to {}", Rounded::up(image));
    let what = format!("`{name}` makes {} files of {files} together: {grown}", made.file_count);
    let swap = spec.swap.size_on(SwapDevice::Disk);
    let (what, image) = match swap {
        Bytes(0) => (what, image),
        swap => {
            (format!("{what}, and its swap disks {}", Rounded::up(swap)), Bytes(image.get() + swap.get()))
        }
    };
    disk.check(&what, image, spec.share, |allowed| {
        let files = Bytes(allowed.get().saturating_sub(image.get() - made.files.get()));
        memory.smaller_files(workload, files)
    })?;
    Ok(format!("{what} {}", disk.room(spec.share)))
}

/// The guest that the workload is told to run on: with one disk, unless it is told to use more, which it
/// then has.
fn memory_of(spec: &VmSpec) -> Memory {
    let Hardware { mem, cpus, numa_nodes } = spec.hardware;
    let size = MachineSize { memory: mem.to_pages_floor(), nodes: numa_nodes, cpus, disks: 1 };
    Memory { option: "--mem", size }
}

fn swap_disks(swap: &Swap) -> u16 {
    let on_disk = swap.areas.iter().filter(|area| area.device == SwapDevice::Disk);
    u16::try_from(on_disk.count()).expect("few areas")
}

/// Refuses compressed memory where the module for it is not there: kernels that were fetched when nobody kept it.
fn check_zram(swap: &Swap, kernel: &Kernel) -> Result<(), VmError> {
    let wanted = swap.size_on(SwapDevice::Zram) > Bytes(0);
    if wanted && !ModuleTree::of(&kernel.modules)?.has(swap::ZRAM_MODULE) {
        return Err(VmError::NoZram { release: kernel.release.clone() });
    }
    Ok(())
}

/// Refuses what cannot work before anything boots. A kernel that was built without the multi-gen
/// LRU is found out in the guest.
fn check_lru_gen(lru_gen: LruGen, release: &str) -> Result<(), VmError> {
    let is_older = kernels::compare_versions(release, LRU_GEN_SINCE) == Ordering::Less;
    if lru_gen.is_on() && is_older {
        return Err(VmError::NoLruGen { release: release.to_owned() });
    }
    Ok(())
}

struct Machine<'a> {
    spec: &'a VmSpec,
    disks: u16,
    qemu: &'a Path,
    kernel: &'a Kernel,
    initramfs: &'a Path,
    dir: &'a Path,
}

impl Machine<'_> {
    fn run(&self, stop: &AtomicBool, tell: &dyn Fn(Told<'_>)) -> Result<VmRun, VmError> {
        if let Some(accelerator) = self.spec.accelerator {
            let failure = |failure: Failure| failure.error;
            return self.boot(accelerator, self.spec.quiet_timeout, stop, tell).map_err(failure);
        }
        if kvm_opens() {
            match self.boot(Accelerator::Kvm, KVM_BOOT.min(self.spec.quiet_timeout), stop, tell) {
                Ok(run) => return Ok(run),
                Err(Failure { error, was_ready }) if was_ready || matches!(error, VmError::Stopped) => {
                    return Err(error);
                }
                Err(failure) => {
                    let why = failure.error.to_string();
                    let why = why.lines().next().unwrap_or_default();
                    let why = why.split(';').next().unwrap_or_default();
                    let note = format!("KVM does not work here ({why}); emulating, which is slower");
                    tell(Told::Note(&note));
                }
            }
        }
        let boot = TCG_BOOT.max(self.spec.quiet_timeout);
        self.boot(Accelerator::Tcg, boot, stop, tell).map_err(|failure| failure.error)
    }

    fn boot(
        &self,
        accelerator: Accelerator,
        boot_patience: Duration,
        stop: &AtomicBool,
        tell: &dyn Fn(Told<'_>),
    ) -> Result<VmRun, Failure> {
        let [console, channel, errors] = ["console", "channel", "errors"].map(|name| self.dir.join(name));
        let mut disks: Vec<PathBuf> =
            (0..self.disks).map(|disk| self.dir.join(format!("disk{disk}"))).collect();
        for disk in &disks {
            image::make(disk, self.spec.filesystem, image::part(self.spec.disk, self.disks))
                .map_err(|error| Failure { error, was_ready: false })?;
        }
        let on_disk = self.spec.swap.areas.iter().filter(|area| area.device == SwapDevice::Disk);
        for (index, area) in on_disk.enumerate() {
            let image = self.dir.join(format!("swap{index}"));
            swap::make_image(&image, area.size).map_err(|error| Failure { error, was_ready: false })?;
            disks.push(image);
        }
        let files = qemu::Files {
            kernel: &self.kernel.image,
            initramfs: self.initramfs,
            disks: &disks,
            console: &console,
            channel: &channel,
        };
        let arguments = qemu::arguments(&self.spec.hardware, accelerator, &files);
        let outputs = Outputs { console: &console, channel: &channel, errors: &errors, disks: &disks };
        let patience =
            Patience { total: self.spec.timeout, boot: boot_patience, quiet: self.spec.quiet_timeout };
        tell(Told::Phase(&format!("booting {} with {}", self.kernel.release, accelerator.name())));
        let begin = Instant::now();
        let finished = watch::watch(self.qemu, &arguments, &outputs, &patience, stop, tell)?;
        Ok(self.describe(finished, accelerator, begin.elapsed()))
    }

    fn describe(&self, finished: Finished, accelerator: Accelerator, total: Duration) -> VmRun {
        let Finished { mut result, boot, oom_kills } = finished;
        if accelerator == Accelerator::Tcg {
            result.notes.push("the CPU was emulated: trust counters, not times".to_owned());
        }
        if oom_kills > 0 {
            result.notes.push(format!("the guest's OOM killer took {oom_kills} processes"));
        }
        VmRun { result, accelerator, boot, total }
    }
}

/// The modules that a guest like `spec` loads, unless they are built in.
fn modules_of(spec: &VmSpec) -> Vec<&'static str> {
    let zram = (spec.swap.size_on(SwapDevice::Zram) > Bytes(0)).then_some(swap::ZRAM_MODULE);
    GUEST_MODULES.into_iter().chain([spec.filesystem.name()]).chain(zram).collect()
}

/// The guest's root: the program as `/init`, modules numbered in the order of loading, the job.
fn initramfs_of(spec: &VmSpec, kernel: &Kernel, workload: &Workload, disks: u16) -> Result<Vec<u8>, VmError> {
    let program = match &spec.program {
        Some(path) => path.clone(),
        None => std::env::current_exe()
            .map_err(|source| VmError::io("find", Path::new("the running program"), source))?,
    };
    let mut archive = Archive::new();
    archive.character_device("dev/console", 5, 1);
    for dir in ["proc", "sys", "tmp", guest::MODULE_DIR] {
        archive.directory(dir);
    }
    elf::Program::read(&program)?.install(&mut archive)?;
    let tree = ModuleTree::of(&kernel.modules)?;
    let mut wanted = modules_of(spec);
    if wanted.contains(&swap::ZRAM_MODULE) {
        wanted.extend(swap::COMPRESSORS.into_iter().filter(|name| tree.has_file(name)));
    }
    let modules = tree.load(&wanted)?;
    for (index, (name, content)) in modules.iter().enumerate() {
        archive.file(&format!("{}/{index:02}-{name}.ko", guest::MODULE_DIR), content);
    }
    if let Some(trace) = protocol::packed_trace(workload) {
        archive.file(TRACE_PATH, &trace);
    }
    let (workload, params) = Job::describe(workload);
    let job = Job {
        workload,
        params,
        seed: spec.seed.0,
        sysctls: spec.sysctls.clone(),
        sample_period: spec.sample_period,
        limit: spec.limit,
        filesystem: spec.filesystem,
        disks,
        lru_gen: spec.lru_gen.is_on().then(|| spec.lru_gen.to_sysfs()),
        swap: spec.swap.to_string(),
        read_ahead_kib: spec.read_ahead_kib,
        timeout: spec.timeout,
    };
    let job = serde_json::to_vec(&job).expect("a job is plain data");
    archive.file(JOB_PATH, &job);
    Ok(archive.finish())
}

/// Whether this user may use KVM. Whether it works is another question, which a boot answers.
fn kvm_opens() -> bool {
    std::fs::File::options().read(true).write(true).open(KVM_DEVICE).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_multi_gen_lru_is_asked_of_no_kernel_before_6_1() {
        for (release, has) in [("5.10.0-30-amd64", false), ("6.0.19", false), ("6.1.0-50-cloud-amd64", true)]
        {
            assert_eq!(check_lru_gen(LruGen::ON, release).is_ok(), has, "{release}");
            assert!(check_lru_gen(LruGen::OFF, release).is_ok(), "{release}");
        }
        let error = check_lru_gen(LruGen::ON, "5.10.0-30-amd64").unwrap_err();
        assert_eq!(error.to_string(), "kernel 5.10.0-30-amd64 has no multi-gen LRU");
    }

    #[test]
    fn a_guest_that_does_not_fit_this_host_is_refused_before_its_disk_is_made() {
        let runs = tempfile::tempdir().unwrap();
        let refused = |mem: u64, disk: u64, share, pairs: &[(&'static str, &'static str)]| {
            let workload = Workload::new("hot-and-stream", pairs.iter().copied()).unwrap();
            let hardware = Hardware { mem: Bytes(mem << 20), cpus: 2, numa_nodes: 1 };
            let (disk, kernel) = (Bytes(disk << 30), VmKernel::parse("6.12"));
            let spec = VmSpec { hardware, disk, share, ..VmSpec::new(kernel) };
            match check_bounds(&spec, &workload, &runs.path().join("runs")) {
                Ok(_) => "fits".to_owned(),
                Err(error) => error.to_string(),
            }
        };
        let small = [("hot", "1M"), ("stream", "6M")];
        let all = DiskShare::Percent(100);
        assert_eq!(refused(128, 32, all, &small), "fits");
        let mem = refused(1 << 40, 32, all, &small);
        assert!(mem.starts_with("`--mem 1048576T` is more than the "), "{mem}");
        assert_eq!(
            refused(128, 1, all, &[("stream", "2G")]),
            "`hot-and-stream` makes 3 files of 2.07 GiB together, and the guest's disk of 1G holds 960 MiB"
        );
        let disk = refused(128, 32, DiskShare::Size(Bytes(64 << 20)), &small);
        assert!(disk.contains("the guest's disk takes up to 345 MiB in "), "{disk}");
        assert!(disk.ends_with(" and 64 MiB may be used (64M)"), "{disk}");
        assert!(!runs.path().join("runs").exists());
    }
}
