//! One scenario on a real kernel, this host's or a guest's, to a recording; and a recording of any
//! command on this host.
//!
//! What a scenario says of the model's kernel does not apply here: the kernel is the one that
//! runs, and its release is what the recording names. Left out: retries and repeats.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use linux::host::{self, HostOptions};
use linux::vm::{self, Hardware, VmFilesystem, VmKernel, VmSpec};
use linux::{LinuxError, LinuxResult};
use recording::{Recording, Series};
use units::Bytes;
use workload::scenario::{Backend, Scenario};

use crate::counted::{phases, since};
use crate::error::LabError;
use crate::resolve::GUEST_MEM;

const SAMPLE_PERIOD: Duration = Duration::from_secs(1);
/// What a workload on this host may use unless said otherwise.
const HOST_LIMIT: Bytes = Bytes(256 << 20);

/// What a run may do to this host, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPolicy {
    /// `memory.max` of all that a run does.
    pub limit: Bytes,
    /// Where the workload's files are made; none is the folder for temporary files.
    pub dir: Option<PathBuf>,
    /// Whether it may drop all caches and write sysctls.
    pub allow_host_pressure: bool,
}

impl Default for HostPolicy {
    fn default() -> Self {
        Self { limit: HOST_LIMIT, dir: None, allow_host_pressure: false }
    }
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
    tell: &dyn Fn(&str),
) -> Result<Recording, LabError> {
    let result = match &scenario.backend {
        Backend::Sim => unreachable!("the simulator has a module of its own"),
        Backend::Host => {
            on_host(scenario, policy, stop, tell).map_err(|error| (error.to_string(), error.hint()))
        }
        Backend::Vm(version) => {
            in_vm(scenario, version, stop, tell).map_err(|error| (error.to_string(), error.hint()))
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

fn on_host(
    scenario: &Scenario,
    policy: &HostPolicy,
    stop: &AtomicBool,
    tell: &dyn Fn(&str),
) -> Result<LinuxResult, LinuxError> {
    let HostPolicy { limit, dir, allow_host_pressure } = policy.clone();
    let host = host::prepare(HostOptions { limit, dir, allow_host_pressure })?;
    host.run(scenario.workload.clone(), texts(scenario), SAMPLE_PERIOD, stop, tell)
}

fn in_vm(
    scenario: &Scenario,
    version: &str,
    stop: &AtomicBool,
    tell: &dyn Fn(&str),
) -> Result<LinuxResult, vm::VmError> {
    let kernel = if version.contains('/') {
        VmKernel::Path(PathBuf::from(version))
    } else {
        VmKernel::Version(version.to_owned())
    };
    let filesystem = match scenario.workload.params().get("filesystem") {
        Some(workload::ParamValue::Choice("xfs")) => VmFilesystem::Xfs,
        _ => VmFilesystem::Ext4,
    };
    let guest = scenario.guest.unwrap_or_default();
    let spec = VmSpec {
        hardware: Hardware {
            mem: scenario.mem.unwrap_or(GUEST_MEM),
            cpus: guest.cpus,
            numa_nodes: guest.numa_nodes,
        },
        filesystem,
        sysctls: texts(scenario),
        lru_gen: guest.lru_gen,
        sample_period: SAMPLE_PERIOD,
        ..VmSpec::new(kernel)
    };
    Ok(vm::run(&spec, &scenario.workload, stop, tell)?.result)
}

/// Monitors a command on this host from its start to its end; returns its exit status, too.
///
/// # Errors
/// A command that cannot be started; [`LabError::Interrupted`].
pub fn record(command: &[OsString], stop: &AtomicBool) -> Result<(Recording, i32), LabError> {
    let (program, args) = command.split_first().expect("the command line asks for a command");
    let shown = command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let recorded = linux::record::run(program, args, SAMPLE_PERIOD, stop).map_err(|error| match error {
        LinuxError::Command { command, source } => LabError::Command { command, source },
        error => LabError::Host { message: error.to_string(), hint: error.hint() },
    })?;
    let release = recorded.result.kernel_release.clone();
    let identity = Recording::new(&shown, "record", "host", release, 0);
    Ok((filled(identity, recorded.result), recorded.exit_code))
}

/// Brings Debian's newest kernel of `version` into the cache folder; returns its release.
///
/// # Errors
/// No apt, no network, no such package, a damaged package.
pub fn fetch_kernel(version: &str, tell: &mut dyn FnMut(&str)) -> Result<String, LabError> {
    vm::fetch(version, &vm::cache_dir(), tell)
        .map(|kernel| kernel.release)
        .map_err(|error| LabError::Host { message: error.to_string(), hint: error.hint() })
}

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
    Recording { scenario_toml: scenario.to_toml(), ..filled(identity, result) }
}

fn filled(identity: Recording, result: LinuxResult) -> Recording {
    let ended = result.phases.into_iter().map(|phase| (phase.name, phase.at_ns, phase.vmstat));
    Recording {
        metrics: result.outcome.metrics,
        samples: result.outcome.samples,
        vmstat: since(&result.vmstat_before, &result.vmstat),
        memcg: result.memcg,
        phases: phases(result.vmstat_before, ended),
        series: Series::new(result.columns, result.rows),
        notes: result.notes,
        wall_ns: Some(result.wall_ns),
        ..identity
    }
}
