//! Runs a workload on a real kernel in a guest, without privileges: User-Mode Linux ([`uml`]), or a virtual machine
//! ([`qemu`]).
//!
//! Start with [`run()`]: it takes a kernel ([`kernels`], [`uml`]), writes an initramfs ([`cpio`]) with this very
//! program as its init ([`elf`]), the few [`modules`] that it needs and the job, makes a data disk
//! ([`image`]), starts the guest (`machine`) and watches it (`watch`, [`console`]). Inside, [`guest`] prepares
//! the machine and calls [`crate::run()`]; its result comes back through a serial port
//! ([`protocol`]). [`fetch()`] and [`uml::fetch()`] bring Debian's kernels here (`apt`, `deb`).
//!
//! Deliberately absent: anything that depends on a workload; installing anything; network in the
//! guest.

mod apt;
pub mod console;
pub mod cpio;
pub mod deb;
pub mod elf;
mod error;
mod fetch;
pub mod guest;
pub mod image;
pub mod kernels;
mod machine;
pub mod modules;
mod needs;
pub mod protocol;
pub mod qemu;
mod spec;
mod swap;
pub mod uml;
mod watch;

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use units::Bytes;
use workload::scenario::{LruGen, SwapDevice};
use workload::{MachineSize, Workload};

pub use error::VmError;
pub use fetch::fetch;
pub use image::VmFilesystem;
pub use kernels::{Kernel, Modules, VmKernel, cache_dir};
pub use qemu::{Accelerator, Hardware};
pub use spec::{Engine, VmRun, VmSpec};

use crate::bounds::{BoundsError, Disk, Memory, Rounded};
use crate::machine::{memory_here, memory_total};
use crate::owner::Processes;
use crate::spec::Told;
use cpio::Archive;
use machine::{Machine, Runner};
use modules::{GUEST_MODULES, ModuleTree};
use protocol::{JOB_PATH, Job, TRACE_PATH};

const QEMU: &str = "qemu-system-x86_64";
/// The first kernel with a multi-gen LRU.
const LRU_GEN_SINCE: &str = "6.1";
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
    let Found { runner, runs, .. } = look(spec, workload)?;
    kernels::create_private(&runs)?;
    let failed = |source| VmError::io("create a folder in", &runs, source);
    let (_, dir) = Processes::of_machine().create_directory(&runs).map_err(failed)?;
    let initramfs = dir.path().join("initramfs");
    let disks = memory_of(spec).footprint(workload).disks;
    let archive = initramfs_of(spec, &runner, workload, disks)?;
    if let Runner::UserMode(kernel) = &runner {
        uml::check_archive(spec, kernel, archive.len())?;
    }
    std::fs::write(&initramfs, archive).map_err(|source| VmError::io("write", &initramfs, source))?;
    Machine { spec, disks, runner: &runner, initramfs: &initramfs, dir: dir.path() }.run(stop, tell)
}

/// What a guest would boot, and what its run would take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The kernel's image or program.
    pub image: PathBuf,
    /// A sentence for each thing worth knowing.
    pub notes: Vec<String>,
}

/// Says what a run would take of this host. Folders of killed runs are removed first, and nothing is written.
///
/// # Errors
/// There is no such machine or kernel; the run needs more than there is, in the guest or here.
pub fn check(spec: &VmSpec, workload: &Workload) -> Result<Checked, VmError> {
    let Found { runner, notes, .. } = look(spec, workload)?;
    Ok(Checked { image: runner.kernel().image.clone(), notes })
}

/// What a run uses of this host.
struct Found {
    runner: Runner,
    /// Where folders of runs are made.
    runs: PathBuf,
    notes: Vec<String>,
}

fn look(spec: &VmSpec, workload: &Workload) -> Result<Found, VmError> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(VmError::WrongHost);
    }
    let kernels = cache_dir()?;
    let runs = kernels.with_file_name("runs");
    let mut notes = Processes::of_machine().remove_dead_directories(&runs);
    let runner = match spec.engine {
        Engine::Qemu => look_for_qemu(spec, &kernels)?,
        Engine::UserMode => {
            let found = uml::find(&spec.kernel, &uml::cache_dir()?)?;
            uml::check(spec, &found, disks_of(spec, workload))?;
            Runner::UserMode(Box::new(found))
        }
    };
    let kernel = runner.kernel();
    notes.extend(kernel.doubt());
    let assumed = ModuleTree::of(&kernel.modules)?.assumed(&modules_of(spec, &runner));
    if !assumed.is_empty() {
        let image = kernel.image.display();
        notes.push(format!(
            "taken for built into `{image}`, as no modules say otherwise: {}",
            assumed.join(", ")
        ));
    }
    notes.push(check_bounds(spec, workload, &runs)?);
    Ok(Found { runner, runs, notes })
}

fn look_for_qemu(spec: &VmSpec, kernels: &Path) -> Result<Runner, VmError> {
    spec.hardware.check()?;
    let qemu = image::find_program(QEMU).ok_or_else(|| VmError::NoQemu { program: QEMU.to_owned() })?;
    let kernel = spec.kernel.find(kernels)?;
    check_lru_gen(spec.lru_gen, &kernel.release)?;
    check_zram(spec, &kernel)?;
    Ok(Runner::Qemu(qemu, kernel))
}

/// Holds what the workload makes against the guest's memory and disk, and those against this host's.
fn check_bounds(spec: &VmSpec, workload: &Workload, runs: &Path) -> Result<String, VmError> {
    let mem = spec.hardware.mem;
    let (host, cgroup) = memory_here().unwrap_or_else(|_| (memory_total().to_bytes(), None));
    if mem > host {
        return Err(BoundsError::BeyondMemory { what: "--mem", asked: mem, memory: host, cgroup }.into());
    }
    let memory = memory_of(spec);
    memory.check(workload, host)?;
    let made = memory.footprint(workload);
    let disks = disks_of(spec, workload);
    if disks > qemu::DISKS_MAX {
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
    Memory { option: "--mem", size, swap: Bytes(spec.swap.areas.iter().map(|area| area.size.get()).sum()) }
}

/// All disks of the guest, those that it swaps to, too.
fn disks_of(spec: &VmSpec, workload: &Workload) -> u16 {
    let swap = u16::try_from(spec.swap_disks().count()).expect("few areas");
    memory_of(spec).footprint(workload).disks + swap
}

/// Refuses compressed memory where the module for it is not there: kernels that were fetched when nobody kept it.
fn check_zram(spec: &VmSpec, kernel: &Kernel) -> Result<(), VmError> {
    if spec.zram() > Bytes(0) && !ModuleTree::of(&kernel.modules)?.has(swap::ZRAM_MODULE) {
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

/// The modules that a guest like `spec` loads, unless they are built in.
fn modules_of(spec: &VmSpec, runner: &Runner) -> Vec<&'static str> {
    if let Runner::UserMode(kernel) = runner {
        return kernel.modules_of(spec);
    }
    let zram = (spec.zram() > Bytes(0)).then_some(swap::ZRAM_MODULE);
    GUEST_MODULES.into_iter().chain([spec.filesystem.name()]).chain(zram).collect()
}

/// The guest's root: the program as `/init`, modules numbered in the order of loading, the job.
fn initramfs_of(spec: &VmSpec, runner: &Runner, workload: &Workload, disks: u16) -> Result<Vec<u8>, VmError> {
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
    let tree = ModuleTree::of(&runner.kernel().modules)?;
    let mut wanted = modules_of(spec, runner);
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
    let program = workload.spec().file_text().map(str::to_owned);
    let (workload, params) = Job::describe(workload);
    let job = Job {
        workload,
        program,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::DiskShare;

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
            let spec = VmSpec { hardware, disk, share, ..VmSpec::new(Engine::Qemu, kernel) };
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
