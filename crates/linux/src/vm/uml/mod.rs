//! User-Mode Linux: the kernel built as a program (`ARCH=um`), which boots in half a second and needs no QEMU.
//!
//! What is a guest's own is elsewhere: the archive with its program, the disks, the messages. Here is the
//! [kernel](find), which tells its release and its configuration itself; what it [lacks](check), told before it
//! boots; and the [`command`] that starts it. [`fetch()`] brings Debian's here.
//!
//! ```text
//!   sh (KEEPER)            ends with us, and takes along the process group of the kernel
//!    └ linux mem=...       stdin: a socket, the guest's /dev/ttyS0   stdout: its console   TMPDIR: its memory
//!       ├ a thread for disks
//!       └ a process for each address space of the guest
//! ```
//! Left out: NUMA, huge pages, devices other than disks, none of which it has; more than one CPU before 7.2.

mod config;
mod fetch;
mod place;
mod preload;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use units::{Bytes, PAGE_SIZE};

pub use config::Config;
pub use fetch::fetch;
pub(super) use place::Place;

use super::error::VmError;
use super::kernels::{self, Kernel, Modules, VmKernel};
use super::protocol::{BEYOND_VARIABLE, GUEST_OF_UML, GUEST_VARIABLE};
use super::qemu::Hardware;
use super::{VmSpec, elf};
use crate::process::{at_fixed_addresses, dying_with_us};

/// The options that a kernel of one's own needs, and what to leave out.
pub const CONFIG_FRAGMENT: &str = include_str!("pagetide.config");

/// The program, in a folder of the cache and where `make` puts it.
const BINARY: &str = "linux";
/// Libraries of the kernel's own, where those of the host are too old. The program asks for its loader by this path, so
/// its folder must have it.
const LIBRARIES: &str = "lib";
/// What only such a program has: the option that names the folder of its sockets.
const MARK: &[u8] = b"uml_dir=";
/// Disks of the driver (`MAX_DEV` in ubd_kern.c, from its help).
pub(super) const DISKS_MAX: u16 = 16;
/// Pages of the archive in the guests that the machine `guest-uml` was measured on.
const MEASURED_ARCHIVE: u64 = 186;
/// What a kernel keeps of each page.
const STRUCT_PAGE: u64 = 64;
/// Nobody has looked below this.
const LEAST_MEMORY: Bytes = Bytes(64 << 20);
/// What a guest needs beside its archive to unpack it, from a release on: of guests with an archive of 34.2 MiB those
/// with 54, 65, 72 and 73.5 MiB did not boot ("System is deadlocked on memory", or an abort), and with 1 to 3 MiB more
/// they did. Here are 2 MiB beyond that.
const ROOM_TO_UNPACK: [(&str, Bytes); 4] = [
    ("5.10", Bytes(26 << 20)),
    ("6.1", Bytes(34 << 20)),
    ("6.12", Bytes(41 << 20)),
    ("7.2", Bytes(43 << 20)),
];
/// Where the guest's memory is, if programs may be there and there is room.
const SHARED_MEMORY: &str = "/dev/shm";

/// A kernel that is a program.
#[derive(Debug, Clone)]
pub struct UserMode {
    /// Its program and modules.
    pub kernel: Kernel,
    /// What it was built with.
    pub config: Config,
    /// Libraries to run it with.
    libraries: Option<PathBuf>,
}

/// Where fetched kernels are: beside those of virtual machines.
///
/// # Errors
/// As [`kernels::cache_dir`].
pub fn cache_dir() -> Result<PathBuf, VmError> {
    Ok(kernels::cache_dir()?.with_file_name("uml"))
}

/// Releases in the cache, oldest version first.
pub fn cached(cache: &Path) -> Vec<String> {
    kernels::cached_with(cache, BINARY)
}

/// Finds the kernel and asks it what it is. Versions are looked for in `cache`.
///
/// # Errors
/// It is not there, is no such kernel, or does not run on this host.
pub fn find(kernel: &VmKernel, cache: &Path) -> Result<UserMode, VmError> {
    match kernel {
        VmKernel::Version(version) => {
            let have = cached(cache);
            match kernels::newest_of(&have, version) {
                Some(release) => in_folder(&cache.join(release)),
                None => Err(VmError::KernelMissing {
                    version: version.clone(),
                    cache: cache.to_owned(),
                    have,
                    command: "uml",
                }),
            }
        }
        VmKernel::Path(path) if path.is_dir() => {
            let binary = path.join(BINARY);
            if !binary.is_file() {
                let why = "it is a folder without the program `linux`, which `make ARCH=um linux` makes";
                return Err(VmError::bad_kernel(path, why));
            }
            UserMode::of(&binary, |_| Modules::BuildTree(path.clone()), None)
        }
        VmKernel::Path(path) => UserMode::of(
            path,
            |release| {
                let beside = path.parent().unwrap_or(Path::new(".")).join("modules");
                let installed = Path::new("/usr/lib/uml/modules").join(release);
                let found = [beside.join(release), beside, installed].into_iter().find(|dir| dir.is_dir());
                found.map_or(Modules::BuiltIn, Modules::Installed)
            },
            None,
        ),
    }
}

/// A kernel of the cache.
fn in_folder(folder: &Path) -> Result<UserMode, VmError> {
    let libraries = Some(folder.join(LIBRARIES)).filter(|dir| dir.is_dir());
    UserMode::of(&folder.join(BINARY), |_| Modules::Complete(folder.join("modules")), libraries)
}

impl UserMode {
    fn of(
        binary: &Path,
        modules: impl FnOnce(&str) -> Modules,
        libraries: Option<PathBuf>,
    ) -> Result<Self, VmError> {
        let binary = std::path::absolute(binary).map_err(|source| VmError::io("find", binary, source))?;
        check_binary(&binary)?;
        let asked = |what: &str| {
            let mut command = Command::new(&binary);
            with_libraries(&mut command, libraries.as_deref());
            asked_of(&mut command, what, &binary)
        };
        let release = asked("--version")?.trim().to_owned();
        let config = Config::read(&asked("--showconfig")?);
        let modules = modules(&release);
        Ok(Self { kernel: Kernel { release, image: binary, modules }, config, libraries })
    }

    /// The modules that a guest like `spec` loads: those that are neither built in nor unknown to this kernel.
    pub(super) fn modules_of(&self, spec: &VmSpec) -> Vec<&'static str> {
        let zram = (spec.zram() > Bytes(0)).then_some(super::swap::ZRAM_MODULE);
        let wanted = [spec.filesystem.name()].into_iter().chain(zram);
        wanted.filter(|name| self.config.is_module(&config::option_of(name))).collect()
    }

    /// Whether `ptrace` is told less than all registers of this host's CPU by this kernel, and it can be helped.
    fn needs_registers(&self) -> bool {
        preload::is_needed() && kernels::compare_versions(&self.kernel.release, preload::BEFORE).is_lt()
    }
}

/// Refuses what would not boot, or not be what was asked for, before anything is made.
pub(super) fn check(spec: &VmSpec, kernel: &UserMode, disks: u16) -> Result<(), VmError> {
    check_hardware(&spec.hardware, kernel)?;
    if disks > DISKS_MAX {
        let why = format!("User-Mode Linux has 1 to {DISKS_MAX} disks, not {disks}");
        return Err(VmError::NotUserMode { why, instead: "`--on vm:VERSION` has more".to_owned() });
    }
    kernel.config.check(spec, &kernel.kernel)
}

fn check_hardware(hardware: &Hardware, kernel: &UserMode) -> Result<(), VmError> {
    let Hardware { mem, cpus, numa_nodes } = *hardware;
    let refused = |why: String, instead: &str| {
        let instead = format!("{instead}, or boot a virtual machine: `--on vm:VERSION`");
        Err(VmError::NotUserMode { why, instead })
    };
    if numa_nodes != 1 {
        return refused(
            format!("User-Mode Linux has one NUMA node, not {numa_nodes}"),
            "leave `--vm-nodes` out",
        );
    }
    if cpus > kernel.config.cpus() {
        let why = match kernel.config.cpus() {
            1 => format!("this User-Mode Linux has one CPU, not {cpus}"),
            most => format!("this User-Mode Linux has at most {most} CPUs, not {cpus}"),
        };
        return refused(why, "leave `--vm-cpus` out (from 7.2 on it can be built with CONFIG_SMP)");
    }
    if mem < LEAST_MEMORY {
        return refused(
            format!("User-Mode Linux needs at least {LEAST_MEMORY} of memory, not {mem}"),
            "give it more with `--mem`",
        );
    }
    Ok(())
}

/// Refuses a guest that would run out of memory while it boots: it has its archive twice then.
pub(super) fn check_archive(spec: &VmSpec, kernel: &UserMode, archive: usize) -> Result<(), VmError> {
    let (mem, release) = (spec.hardware.mem, &kernel.kernel.release);
    let is_not_newer = |of: &&(&str, Bytes)| kernels::compare_versions(of.0, release).is_le();
    let (_, room) = ROOM_TO_UNPACK.iter().rfind(is_not_newer).unwrap_or(&ROOM_TO_UNPACK[0]);
    let least = Bytes((archive as u64 + room.get()).next_multiple_of(1 << 20));
    if mem >= least {
        return Ok(());
    }
    let why = format!("User-Mode Linux {release} needs at least {least} of memory to boot, not {mem}");
    let instead =
        "give it more with `--mem`, and hold a workload to less by a cgroup's limit, where it has one";
    Err(VmError::NotUserMode { why, instead: instead.to_owned() })
}

/// What a run's folder has, by the names that the kernel is given: it is started there.
pub(super) struct Files<'a> {
    pub(super) dir: &'a Path,
    pub(super) initramfs: &'a Path,
    pub(super) disks: &'a [PathBuf],
}

/// Starts its arguments and waits for them. SIGUSR1 ends them, as a shell cannot trap SIGHUP under `nohup`; so does
/// SIGTERM, which tells that the parent is gone and removes the folder of the run, too. The kernel makes itself a
/// session and a process group, and its helpers would outlive it: all of them are killed, in any case.
const KEEPER: &str = r#"dir=$1; shift
end() { kill -KILL $! -$! 2>/dev/null; exit; }
trap end USR1
trap 'rm -rf "$dir"; end' TERM
exec 3<&0
"$@" <&3 3<&- &
wait $!
end"#;

/// Whether a guest on this host learns of reads of a page after it took the page's accessed bit: it maps the page to be
/// executed alone then, which a CPU without protection keys lets programs read.
pub fn sees_reads() -> bool {
    preload::host_has(&["ospke"])
}

/// The program that runs the guest.
///
/// # Errors
/// A folder or file cannot be made.
pub(super) fn command(spec: &VmSpec, kernel: &UserMode, files: &Files<'_>) -> Result<Command, VmError> {
    // For the kernel alone: the shell has the host's libraries.
    let mut environment = Vec::new();
    if let Some(libraries) = &kernel.libraries {
        // The program names its loader from here.
        let link = files.dir.join(LIBRARIES);
        if !link.exists() {
            std::os::unix::fs::symlink(libraries, &link)
                .map_err(|source| VmError::io("create", &link, source))?;
        }
        environment.push(format!("LD_LIBRARY_PATH={LIBRARIES}"));
    }
    environment.push(format!("LD_PRELOAD={}", preload::put_into(files.dir, kernel.needs_registers())?));
    let memory = Path::new(SHARED_MEMORY);
    let memory =
        if preload::has_room(memory, guest_memory(spec, pages_beyond(files))) { SHARED_MEMORY } else { "." };
    environment.push(format!("TMPDIR={memory}"));
    let mut command = Command::new("/bin/sh");
    command.args(["-c", KEEPER, "sh"]).arg(files.dir).arg("env").args(environment);
    command.arg(&kernel.kernel.image).args(arguments(spec, files)).current_dir(files.dir);
    // Kernels before 7.2 describe the gap before their heap as memory. Where the host puts that at random, they manage
    // another amount each time: 6.12 with 512 MiB 122774 to 125782 pages in three boots, and always 125877 without.
    at_fixed_addresses(&mut command);
    Ok(command)
}

/// Pages that the guest's own program takes for good beyond what it took when the machine was measured.
fn pages_beyond(files: &Files<'_>) -> u64 {
    let archive = std::fs::metadata(files.initramfs).map_or(0, |archive| archive.len());
    archive.div_ceil(PAGE_SIZE).saturating_sub(MEASURED_ARCHIVE)
}

/// The memory that is asked for and those pages, with the kernel's notes on them: so a workload has as much whatever
/// the size of that program.
fn guest_memory(spec: &VmSpec, beyond: u64) -> Bytes {
    let notes = (beyond * STRUCT_PAGE).div_ceil(PAGE_SIZE);
    Bytes(spec.hardware.mem.get() + (beyond + notes) * PAGE_SIZE)
}

/// The kernel's command line. Names in it have no path: blanks, commas and colons would be understood.
fn arguments(spec: &VmSpec, files: &Files<'_>) -> Vec<OsString> {
    let name = |path: &Path| path.file_name().expect("it is in the folder").to_string_lossy().into_owned();
    let beyond = pages_beyond(files);
    let mut words = vec![
        format!("mem={}K", guest_memory(spec, beyond).get() >> 10),
        format!("initrd={}", name(files.initramfs)),
    ];
    let plain = [
        "root=/dev/ram0",
        "rdinit=/init",
        "uml_dir=.",
        "umid=guest",
        // The console has an input that stays open, without which kernels before 5.13 do not open it.
        "con=null",
        "con0=fd:2,fd:1",
        "ssl=null",
        "ssl0=fd:0",
        "quiet",
        "panic=-1",
        "oops=panic",
        // What Debian's kernels measure as they boot, for nine tenths of the second that it takes: which code for RAID
        // is the fastest, which no guest has, and how many loops delays are, of which this is enough.
        "initcall_blacklist=raid6_select_algo,calibrate_xor_blocks",
        "lpj=50000000",
    ];
    words.extend(plain.map(str::to_owned));
    if spec.hardware.cpus > 1 {
        // Programs on several CPUs are stopped by a filter of theirs, as `ptrace` cannot.
        words.extend([format!("ncpus={}", spec.hardware.cpus), "seccomp=on".to_owned()]);
    }
    words.extend(files.disks.iter().enumerate().map(|(index, disk)| format!("ubd{index}={}", name(disk))));
    words.push(format!("LD_LIBRARY_PATH=/{}", elf::LIBRARY_DIR));
    words.push(format!("{GUEST_VARIABLE}={GUEST_OF_UML}"));
    words.push(format!("{BEYOND_VARIABLE}={beyond}"));
    words.into_iter().map(OsString::from).collect()
}

/// Refuses what is no program that boots, in words; nothing of it runs.
fn check_binary(binary: &Path) -> Result<(), VmError> {
    let bytes =
        std::fs::read(binary).map_err(|source| VmError::io(super::error::READ_UML, binary, source))?;
    let machine = elf::machine_of(&bytes);
    let is_marked = memchr::memmem::find(&bytes, MARK).is_some();
    let why = match machine {
        _ if bytes.get(0x202..0x206) == Some(b"HdrS") => {
            "it is a kernel for machines (an x86 bzImage), which `--on vm:PATH` boots".to_owned()
        }
        None => "it is no 64-bit ELF program: `make ARCH=um linux` makes one".to_owned(),
        Some(elf::X86_64) if is_marked => return Ok(()),
        Some(elf::X86_64) => {
            "it is a program, but no User-Mode Linux: `make ARCH=um linux` makes one".to_owned()
        }
        Some(other) => format!("it is for another architecture (ELF machine {other}) than x86-64"),
    };
    Err(VmError::bad_kernel(binary, why))
}

/// Lets a program that was made for libraries of its own run with them.
fn with_libraries(command: &mut Command, libraries: Option<&Path>) {
    if let Some(folder) = libraries.and_then(Path::parent) {
        command.current_dir(folder).env("LD_LIBRARY_PATH", LIBRARIES);
    }
}

/// What the kernel answers to a question that it does not boot for.
fn asked_of(command: &mut Command, what: &str, binary: &Path) -> Result<String, VmError> {
    command.arg(what).stdin(std::process::Stdio::null());
    let output = dying_with_us(command).output().map_err(|source| VmError::io("run", binary, source))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
        let why = if words.is_empty() { output.status.to_string() } else { words };
        return Err(VmError::bad_kernel(binary, format!("`linux {what}` fails: {why}")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests;
