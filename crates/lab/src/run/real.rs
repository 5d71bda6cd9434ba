//! One scenario on a real kernel, this host's or a guest's, to a recording; and a recording of any
//! command on this host.
//!
//! What a scenario says of the model's kernel does not apply here: the kernel is the one that
//! runs, and its release is what the recording names. Left out: retries and repeats.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use linux::host::{self, HostOptions};
use linux::vm::{self, Engine, Hardware, VmFilesystem, VmKernel, VmSpec};
use linux::{DiskShare, LinuxError, LinuxResult, NotAShare, Told};
use recording::{OomKill, Phase, Recording, Series, Wait, WaitEnd, WaitKind};
use sim::machines::MachineSpec;
use units::{Bytes, Nanos, parse_nanos, parse_size};
use workload::scenario::{Backend, Scenario, ScenarioProblem, parse_interval};

use crate::error::LabError;
use crate::resolve::command::kept_command;
use crate::resolve::defaults::guest_mem;
use crate::resolve::planned::PlannedRun;
use crate::resolve::program::{remarks, with_traces};
use crate::resolve::texts::shell_quoted;
use crate::run::at_kill::with_kill;
use crate::run::balance::with_balance;
use crate::run::counted::{as_counted, phases, since};
use crate::run::laid_out::{rows_without, without};
use crate::run::simulate::machine;
use crate::run::waited::{phase_name, with_waits};

const SAMPLE_PERIOD: Duration = Duration::from_secs(1);

/// What a run may do to this host, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPolicy {
    /// `memory.max` of all that a run does.
    pub limit: Bytes,
    /// What of the free disk its files may take, or the disk of its virtual machine.
    pub share: DiskShare,
    /// Where the workload's files are made; none is the folder for temporary files.
    pub dir: Option<PathBuf>,
    /// Whether it may drop all caches and write sysctls.
    pub allow_host_pressure: bool,
    /// How long a run may take on the clock, a simulated one, too; it is stopped then.
    pub max_time: Option<Nanos>,
}

impl Default for HostPolicy {
    fn default() -> Self {
        let HostOptions { limit, dir, share, allow_host_pressure } = HostOptions::default();
        Self { limit, share, dir, allow_host_pressure, max_time: None }
    }
}

/// Reads a size that a run on this host is limited to. Whether it is sensible is told by [`check`].
///
/// # Errors
/// It is not a size.
pub fn parse_host_limit(text: &str) -> Result<Bytes, LabError> {
    let key = "--host-limit";
    Ok(parse_size(text).map_err(|source| ScenarioProblem::NotASize { key, source })?)
}

/// Reads the time that a run may take.
///
/// # Errors
/// It is no duration, or none at all.
pub fn parse_max_time(text: &str) -> Result<Nanos, LabError> {
    let key = "--max-time";
    match parse_nanos(text).map_err(|source| ScenarioProblem::NotADuration { key, source })? {
        Nanos(0) => {
            Err(LabError::refused("`--max-time` of 0 would stop every run", "give it more, or leave it out"))
        }
        max => Ok(max),
    }
}

/// Reads a share of the free disk: a size or a percentage.
///
/// # Errors
/// It is neither.
pub fn parse_disk_share(text: &str) -> Result<DiskShare, LabError> {
    let hint = "write it as in `--host-disk 10G` or `--host-disk 80%`";
    text.parse().map_err(|error: NotAShare| LabError::refused(format!("`--host-disk`: {error}"), hint))
}

/// Looks whether the real runs among `plan` fit this host, before any begins: memory, free disk, the
/// kernel of a guest. Removes what killed runs left and writes nothing. Returns what is worth
/// knowing, a sentence each.
///
/// # Errors
/// The first run that does not fit, with figures, and what would.
pub fn check(plan: &[PlannedRun], policy: &HostPolicy) -> Result<Vec<String>, LabError> {
    let mut said: Vec<String> = Vec::new();
    let mut images: BTreeMap<String, PathBuf> = BTreeMap::new();
    for PlannedRun { scenario, .. } in &*with_traces(plan)? {
        let found = match &scenario.backend {
            Backend::Sim => Ok(Vec::new()),
            Backend::Host => host::check(&host_options(policy), &scenario.workload).map_err(told),
            Backend::Vm(kernel) | Backend::Uml(kernel) => {
                check_log(scenario)?;
                let checked = vm::check(&vm_spec(scenario, kernel, policy), &scenario.workload);
                checked.map_err(vm_told).map(|checked| {
                    images.insert(scenario.backend.to_string(), checked.image);
                    checked.notes
                })
            }
        };
        let found = found.map_err(|(message, hint)| LabError::Refused { message, hint })?;
        // Seeds of one scenario have the same to say.
        said.extend(found.into_iter().filter(|text| !said.contains(text)).collect::<Vec<_>>());
    }
    said.extend(same_kernels(&images));
    Ok(said)
}

/// A warning for each two kernels of other names whose images are the same, as after a build that failed.
fn same_kernels(images: &BTreeMap<String, PathBuf>) -> Vec<String> {
    let same = |one: &Path, other: &Path| {
        let length = |path: &Path| std::fs::metadata(path).map(|found| found.len()).ok();
        let read = |path: &Path| std::fs::read(path).ok();
        length(one).is_some() && length(one) == length(other) && read(one) == read(other)
    };
    let pairs = images
        .iter()
        .enumerate()
        .flat_map(|(index, one)| images.iter().skip(index + 1).map(move |other| (one, other)));
    pairs
        .filter(|((_, one), (_, other))| same(one, other))
        .map(|((one, _), (other, _))| {
            format!("warning: `{one}` and `{other}` are the same kernel, byte for byte")
        })
        .collect()
}

/// Only XFS has a log of the size that was asked for.
fn check_log(scenario: &Scenario) -> Result<(), LabError> {
    let filesystem = scenario.workload.params().get("filesystem");
    let is_xfs = matches!(filesystem, Some(workload::ParamValue::Choice("xfs")));
    if is_xfs || scenario.guest.is_none_or(|guest| guest.xfs_log.is_none()) {
        return Ok(());
    }
    let message = "`--vm-xfs-log` says how large a log of XFS is, and the disk has ext4";
    Err(LabError::refused(message, "leave it out, or add `--param filesystem=xfs`"))
}

/// An error of a backend: its message and its hint.
type ToldError = (String, Option<String>);

fn told(error: LinuxError) -> ToldError {
    (error.to_string(), error.hint())
}

fn vm_told(error: vm::VmError) -> ToldError {
    (error.to_string(), error.hint())
}

/// Runs `scenario` on its real backend.
///
/// # Errors
/// What the backend lacks, with a hint; a failing workload; [`LabError::Interrupted`].
pub(crate) fn run(
    scenario: &Scenario,
    label: &str,
    policy: &HostPolicy,
    stop: &AtomicBool,
    tell: &dyn Fn(Told<'_>),
) -> Result<Recording, LabError> {
    let result = match &scenario.backend {
        Backend::Sim => unreachable!("the simulator has a module of its own"),
        Backend::Host => on_host(scenario, policy, stop, tell).map_err(told),
        Backend::Vm(kernel) | Backend::Uml(kernel) => {
            let spec = vm_spec(scenario, kernel, policy);
            vm::run(&spec, &scenario.workload, stop, tell).map(|run| run.result).map_err(vm_told)
        }
    };
    match result {
        Ok(result) => Ok(recorded(scenario, label, result)),
        Err(_) if stop.load(Ordering::Relaxed) => Err(LabError::Interrupted { finished: 0, total: 1 }),
        Err((message, hint)) => {
            Err(LabError::Run { label: label.to_owned(), seed: scenario.seed.0, message, hint })
        }
    }
}

fn texts(scenario: &Scenario) -> Vec<(String, String)> {
    scenario.sysctls.iter().map(|(name, value)| (name.clone(), value.to_string())).collect()
}

fn host_options(policy: &HostPolicy) -> HostOptions {
    let HostPolicy { limit, share, dir, allow_host_pressure, max_time: _ } = policy.clone();
    HostOptions { limit, dir, share, allow_host_pressure }
}

fn on_host(
    scenario: &Scenario,
    policy: &HostPolicy,
    stop: &AtomicBool,
    tell: &dyn Fn(Told<'_>),
) -> Result<LinuxResult, LinuxError> {
    let host = host::prepare(host_options(policy), scenario.workload.clone())?;
    host.run(scenario.seed, texts(scenario), sample_period(scenario.interval), stop, tell)
}

fn vm_spec(scenario: &Scenario, kernel: &str, policy: &HostPolicy) -> VmSpec {
    let backend = &scenario.backend;
    let guest = scenario.guest.unwrap_or_else(|| backend.default_guest());
    let engine = if matches!(backend, Backend::Uml(_)) { Engine::UserMode } else { Engine::Qemu };
    let filesystem = match (scenario.workload.params().get("filesystem"), guest.xfs_log) {
        (Some(workload::ParamValue::Choice("xfs")), None) => VmFilesystem::Xfs,
        (Some(workload::ParamValue::Choice("xfs")), Some(mib)) => VmFilesystem::XfsWithLog(mib),
        _ => VmFilesystem::Ext4,
    };
    VmSpec {
        hardware: Hardware {
            mem: scenario.mem.unwrap_or_else(|| guest_mem(backend)),
            cpus: guest.cpus,
            numa_nodes: guest.numa_nodes,
        },
        filesystem,
        read_ahead_kib: read_ahead_kib(scenario),
        share: policy.share,
        seed: scenario.seed,
        sysctls: texts(scenario),
        lru_gen: guest.lru_gen,
        swap: scenario.swap.clone().unwrap_or_default(),
        sample_period: sample_period(scenario.interval),
        ..VmSpec::new(engine, VmKernel::parse(kernel))
    }
}

/// How far a guest reads its disks ahead: as its machine says, `guest-tcg+readahead=8M`, or as the measured ones do.
fn read_ahead_kib(scenario: &Scenario) -> u32 {
    let own = scenario.backend.guest_machine().expect("only guests are asked for it");
    let machine = MachineSpec::parse(scenario.machine.as_deref().unwrap_or(own));
    let readahead = machine.expect("the machine was checked").readahead.expect("guests have one");
    u32::try_from(readahead.get() >> 10).expect("64 MiB at most")
}

/// The time between two samples that was asked for, or that of those who ask for none.
fn sample_period(interval: Option<Nanos>) -> Duration {
    interval.map_or(SAMPLE_PERIOD, |interval| Duration::from_nanos(interval.get()))
}

/// Monitors a command on this host from its start to its end; returns its exit status, too. A
/// signal whose number is put into `signal` is passed on to it.
///
/// # Errors
/// A command that cannot be started; `interval`, the time between two samples, is none.
pub fn record(
    command: &[OsString],
    interval: Option<&str>,
    signal: &AtomicUsize,
) -> Result<(Recording, i32), LabError> {
    let (program, args) = command.split_first().expect("the command line asks for a command");
    let shown = command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let interval = interval.map(|text| parse_interval("--interval", text)).transpose()?;
    let recorded = linux::record::run(program, args, sample_period(interval), signal);
    let recorded = recorded.map_err(|error| match error {
        LinuxError::Command { command, source } => LabError::Command { command, source },
        error => LabError::Refused { message: error.to_string(), hint: error.hint() },
    })?;
    let release = recorded.result.kernel_release.clone();
    let again = command.iter().map(|word| shell_quoted(&word.to_string_lossy())).collect::<Vec<_>>();
    let identity = Recording {
        command: format!("pagetide record -- {}", again.join(" ")),
        ..Recording::new(&shown, "record", "host", release, 0)
    };
    Ok((filled(identity, recorded.result), recorded.exit_code))
}

/// Brings Debian's newest kernel of `version` for virtual machines into the cache folder; returns its release. Where
/// one is there already, only `update` looks for a newer one.
///
/// # Errors
/// No apt, no network, no such package, a damaged package.
pub fn fetch_kernel(version: &str, update: bool, tell: &mut dyn FnMut(&str)) -> Result<String, LabError> {
    fetched(vm::cache_dir().and_then(|cache| vm::fetch(version, &cache, update, tell)))
}

/// The same of User-Mode Linux.
///
/// # Errors
/// As [`fetch_kernel`]; it does not run on this host.
pub fn fetch_uml(version: &str, update: bool, tell: &mut dyn FnMut(&str)) -> Result<String, LabError> {
    fetched(vm::uml::cache_dir().and_then(|cache| vm::uml::fetch(version, &cache, update, tell)))
}

fn fetched(kernel: Result<vm::Kernel, vm::VmError>) -> Result<String, LabError> {
    kernel
        .map(|kernel| kernel.release)
        .map_err(|error| LabError::Refused { message: error.to_string(), hint: error.hint() })
}

/// The real kernels that were fetched, in a sentence; nothing without any.
pub fn kernels_here() -> Option<String> {
    let of = |cache: Result<PathBuf, vm::VmError>, cached: fn(&Path) -> Vec<String>, kind: &str| {
        let releases = cache.map(|cache| cached(&cache)).unwrap_or_default();
        releases.into_iter().map(|release| format!("{kind}:{release}")).collect::<Vec<_>>()
    };
    let mut here = of(vm::uml::cache_dir(), vm::uml::cached, "uml");
    here.extend(of(vm::cache_dir(), vm::kernels::cached, "vm"));
    (!here.is_empty()).then(|| format!("real kernels here, for `--on`: {}", here.join(", ")))
}

/// The options to build User-Mode Linux with, to merge into a kernel's `.config`.
pub const UML_CONFIG: &str = vm::uml::CONFIG_FRAGMENT;

/// In a guest of [`Backend::Vm`] this process is init: it runs its job and never returns. Call it
/// first in `main`; elsewhere it does nothing.
pub fn become_init_in_a_guest() {
    vm::guest::become_init_in_a_guest();
}

fn recorded(scenario: &Scenario, label: &str, result: LinuxResult) -> Recording {
    let identity = Recording::new(
        label,
        scenario.workload.name(),
        scenario.backend.to_string(),
        result.kernel_release.clone(),
        scenario.seed.0,
    );
    let identity = Recording { machine: machine(scenario), command: kept_command(scenario), ..identity };
    let mut recording = Recording { scenario_toml: scenario.to_toml(), ..filled(identity, result) };
    recording.notes.extend(remarks(scenario));
    recording
}

fn filled(identity: Recording, mut result: LinuxResult) -> Recording {
    let laid_out = &result.laid_out;
    without(laid_out, result.wall_ns, &mut result.vmstat);
    for phase in &mut result.phases {
        without(laid_out, phase.at_ns, &mut phase.vmstat);
    }
    let first_phase_ns = result.phases.first().map_or(result.wall_ns, |phase| phase.at_ns);
    rows_without(laid_out, first_phase_ns, &result.columns, &mut result.rows);
    let ended = result.phases.into_iter().map(|phase| (phase.name, phase.at_ns, phase.vmstat));
    let vmstat = since(&result.vmstat_before, &result.vmstat);
    let recording = Recording {
        metrics: as_counted(result.outcome.metrics, &identity.workload, &vmstat),
        samples: result.outcome.samples,
        vmstat,
        memcg: result.memcg,
        phases: phases(result.vmstat_before, ended),
        series: Series::new(result.columns, result.rows),
        notes: result.notes,
        wall_ns: Some(result.wall_ns),
        ..identity
    };
    let recording = with_machine(recording).killed(result.oom_kill.into_iter().map(oom_kill).collect());
    let recording = with_kill(with_balance(recording), None);
    let Some(waits) = result.waits else { return recording };
    let phases = recording.phases_to_the_end();
    with_waits(recording, waits.into_iter().map(|wait| traced(wait, &phases)).collect())
}

/// This host has no name: its CPUs and memory say what it is.
fn with_machine(mut recording: Recording) -> Recording {
    let memory = recording.series.column("mi_MemTotal").and_then(|column| column.first().copied());
    if let (true, Some(kib)) = (recording.machine.is_empty(), memory) {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        recording.machine = format!("{cpus} CPUs, {kib} kB of memory");
    }
    recording
}

/// Waits that a real kernel told of.
fn traced(wait: linux::Wait, phases: &[Phase]) -> Wait {
    Wait {
        phase: phase_name(phases, wait.phase),
        kind: match wait.kind {
            linux::WaitKind::Writes => WaitKind::Writes,
            linux::WaitKind::Reclaim => WaitKind::Reclaim,
        },
        ended: if wait.timed_out { WaitEnd::Timeout } else { WaitEnd::Wake },
        task: wait.task,
        wait: wait.wait,
        futile: wait.futile,
        count: wait.count,
        requested_ns: Some(wait.requested_ns),
        spent_ns: wait.spent_ns,
        longest_ns: wait.longest_ns,
        lengths: wait.lengths,
        ..Wait::default()
    }
}

fn oom_kill(kill: linux::OomKill) -> OomKill {
    let linux::OomKill { at_ns, task, cgroup, by_limit, panicked, anon_pages, memory } = kill;
    OomKill { at_ns, task, cgroup, by_limit, anon_pages, memory, panicked, ..OomKill::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `make` had failed in the patched tree, and a comparison of a kernel with itself found no difference.
    #[test]
    fn two_names_of_one_kernel_are_warned_of() {
        let folder = tempfile::tempdir().unwrap();
        let image = |name: &str, content: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            (format!("uml:{name}"), path)
        };
        let images = [image("base", "linux 1"), image("patched", "linux 1"), image("other", "linux 2")];
        let warned = same_kernels(&BTreeMap::from(images));
        assert_eq!(warned, ["warning: `uml:base` and `uml:patched` are the same kernel, byte for byte"]);
    }
}
