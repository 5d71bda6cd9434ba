//! A guest from its disks to its result: the disks are made, it is started and watched.
//!
//! Left out: what its root has in it (see `super::initramfs_of`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::error::VmError;
use super::kernels::Kernel;
use super::qemu::{self, Accelerator};
use super::spec::{VmRun, VmSpec};
use super::uml::{self, UserMode};
use super::watch::{self, Channel, Failure, Finished, Outputs, Patience};
use super::{image, swap};
use crate::process::on_cpus;
use crate::spec::Told;

const KVM_DEVICE: &str = "/dev/kvm";
/// With KVM a guest is ready after about a second; where KVM hangs, emulation should have its turn.
const KVM_BOOT: Duration = Duration::from_secs(10);
/// How long nothing may be heard from an emulated guest that boots: its kernel says nothing until its program
/// runs. Twelve tasks that are busy for each CPU of the host made that more than two minutes.
const TCG_BOOT: Duration = Duration::from_secs(300);

/// What runs guests on this host.
pub(super) enum Runner {
    /// QEMU, by its path, and the kernel that it boots.
    Qemu(PathBuf, Kernel),
    /// The kernel itself.
    UserMode(Box<UserMode>),
}

impl Runner {
    /// What boots.
    pub(super) fn kernel(&self) -> &Kernel {
        match self {
            Self::Qemu(_, kernel) => kernel,
            Self::UserMode(found) => &found.kernel,
        }
    }
}

/// A guest whose root is made.
pub(super) struct Machine<'a> {
    pub(super) spec: &'a VmSpec,
    pub(super) disks: u16,
    pub(super) runner: &'a Runner,
    pub(super) initramfs: &'a Path,
    pub(super) dir: &'a Path,
}

impl Machine<'_> {
    pub(super) fn run(&self, stop: &AtomicBool, tell: &dyn Fn(Told<'_>)) -> Result<VmRun, VmError> {
        match self.runner {
            Runner::Qemu(qemu, kernel) => self.run_in_qemu(qemu, kernel, stop, tell),
            Runner::UserMode(kernel) => {
                self.run_as_program(kernel, stop, tell).map_err(|failure| failure.error)
            }
        }
    }

    fn run_in_qemu(
        &self,
        qemu: &Path,
        kernel: &Kernel,
        stop: &AtomicBool,
        tell: &dyn Fn(Told<'_>),
    ) -> Result<VmRun, VmError> {
        let boot = |accelerator, patience| {
            let boot = || self.boot(qemu, kernel, accelerator, patience, stop, tell);
            if accelerator == Accelerator::Tcg { despite_stale_code(boot, tell) } else { boot() }
        };
        if let Some(accelerator) = self.spec.accelerator {
            return boot(accelerator, self.spec.quiet_timeout).map_err(|failure| failure.error);
        }
        if kvm_opens() {
            match boot(Accelerator::Kvm, KVM_BOOT.min(self.spec.quiet_timeout)) {
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
        let patience = TCG_BOOT.max(self.spec.quiet_timeout);
        boot(Accelerator::Tcg, patience).map_err(|failure| failure.error)
    }

    fn boot(
        &self,
        qemu: &Path,
        kernel: &Kernel,
        accelerator: Accelerator,
        boot_patience: Duration,
        stop: &AtomicBool,
        tell: &dyn Fn(Told<'_>),
    ) -> Result<VmRun, Failure> {
        let [console, channel, errors] = ["console", "channel", "errors"].map(|name| self.dir.join(name));
        let disks = self.make_disks().map_err(early)?;
        let files = qemu::Files {
            kernel: &kernel.image,
            initramfs: self.initramfs,
            disks: &disks,
            console: &console,
            channel: &channel,
        };
        let mut command = Command::new(qemu);
        command.args(qemu::arguments(&self.spec.hardware, accelerator, &files));
        let channel = Channel::Files { messages: &channel, errors: &errors };
        let outputs = Outputs { console: &console, channel, disks: &disks };
        tell(Told::Phase(&format!("booting {} with {}", kernel.release, accelerator.name())));
        let begin = Instant::now();
        let finished = watch::watch(command, &outputs, &self.patience(boot_patience), stop, tell)?;
        Ok(describe(finished, Some(accelerator), begin.elapsed()))
    }

    fn run_as_program(
        &self,
        kernel: &UserMode,
        stop: &AtomicBool,
        tell: &dyn Fn(Told<'_>),
    ) -> Result<VmRun, Failure> {
        let disks = self.make_disks().map_err(early)?;
        let files = uml::Files { dir: self.dir, initramfs: self.initramfs, disks: &disks };
        let mut command = uml::command(self.spec, kernel, &files).map_err(early)?;
        let place = (self.spec.hardware.cpus == 1).then(uml::Place::take).flatten();
        if let Some(place) = &place {
            on_cpus(&mut command, place.cpus());
        }
        let console = self.dir.join("console");
        let outputs = Outputs { console: &console, channel: Channel::Sockets, disks: &disks };
        tell(Told::Phase(&format!("booting {} as a program", kernel.kernel.release)));
        let begin = Instant::now();
        let finished = watch::watch(command, &outputs, &self.patience(self.spec.quiet_timeout), stop, tell)?;
        Ok(describe(finished, None, begin.elapsed()))
    }

    /// The images of the data disks and, behind them, those of swap disks.
    fn make_disks(&self) -> Result<Vec<PathBuf>, VmError> {
        let spec = self.spec;
        let mut disks: Vec<PathBuf> =
            (0..self.disks).map(|disk| self.dir.join(format!("disk{disk}"))).collect();
        for disk in &disks {
            image::make(
                disk,
                spec.filesystem,
                image::part(spec.disk, self.disks),
                &self.runner.kernel().release,
            )?;
        }
        for (index, size) in spec.swap_disks().enumerate() {
            let image = self.dir.join(format!("swap{index}"));
            swap::make_image(&image, size)?;
            disks.push(image);
        }
        Ok(disks)
    }

    fn patience(&self, boot: Duration) -> Patience {
        Patience { total: self.spec.timeout, boot, quiet: self.spec.quiet_timeout }
    }
}

/// Boots up to three times. QEMU now and then runs code that the guest has just changed as it was before, while its
/// other CPU waits for that: a trap that Linux had put there for a moment is met by nobody. (6.12 in QEMU 7.2 on a busy
/// host, two of some hundred boots.)
fn despite_stale_code<T>(
    mut boot: impl FnMut() -> Result<T, Failure>,
    tell: &dyn Fn(Told<'_>),
) -> Result<T, Failure> {
    let is_stale = |failure: &Failure| matches!(&failure.error, VmError::Crashed { line, .. } if line.contains("Oops: int3"));
    for _ in 0..2 {
        match boot() {
            Err(failure) if is_stale(&failure) => {
                tell(Told::Note("the emulator ran code that the kernel had changed (Oops: int3); once more"));
            }
            other => return other,
        }
    }
    boot()
}

fn early(error: VmError) -> Failure {
    Failure { error, was_ready: false }
}

fn describe(finished: Finished, accelerator: Option<Accelerator>, total: Duration) -> VmRun {
    let Finished { mut result, boot, oom_kills } = finished;
    match accelerator {
        Some(Accelerator::Tcg) => {
            result.notes.push("the CPU was emulated: trust counters, not times".to_owned());
        }
        Some(Accelerator::Kvm) => {}
        None => {
            result.notes.push(
                "the kernel ran as a program: its system calls and faults cost more than a machine's, and its disks are \
                 as fast as the host's page cache"
                    .to_owned(),
            );
            if !uml::sees_reads() {
                result.notes.push(
                    "reclaim did not see reads of mapped memory, as this host's CPU has no protection keys: files that \
                     are mapped and only read were let go sooner than on a machine"
                        .to_owned(),
                );
            }
        }
    }
    if oom_kills > 0 {
        result.notes.push(format!("the guest's OOM killer took {oom_kills} processes"));
    }
    VmRun { result, accelerator, boot, total }
}

/// Whether this user may use KVM. Whether it works is another question, which a boot answers.
fn kvm_opens() -> bool {
    std::fs::File::options().read(true).write(true).open(KVM_DEVICE).is_ok()
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    fn crashed(line: &str) -> Failure {
        early(VmError::Crashed { line: line.to_owned(), tail: Vec::new() })
    }

    #[test]
    fn a_guest_that_stale_code_of_the_emulator_kills_boots_again_and_says_so() {
        let (boots, notes) = (Cell::new(0), RefCell::new(Vec::new()));
        let boot = |line: &'static str, bad| {
            boots.set(0);
            let boot = || {
                boots.set(boots.get() + 1);
                if boots.get() <= bad { Err(crashed(line)) } else { Ok(boots.get()) }
            };
            let tell = |told: Told<'_>| notes.borrow_mut().push(format!("{told:?}"));
            (despite_stale_code(boot, &tell).ok(), boots.get(), notes.take().len())
        };
        assert_eq!(boot("Oops: int3: 0000 [#1] PREEMPT SMP NOPTI", 1), (Some(2), 2, 1));
        assert_eq!(boot("Oops: int3: 0000 [#1] PREEMPT SMP NOPTI", 9), (None, 3, 2));
        assert_eq!(boot("kernel BUG at mm/vmscan.c:1", 1), (None, 1, 0), "what the kernel does stands");
    }
}
