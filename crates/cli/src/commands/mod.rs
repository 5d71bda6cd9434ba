//! One function for each command: ask the lab, print what it returns.

mod ablate;
mod capture;
mod compare;
mod dask;
mod explain;
mod export;
mod import;
mod list;
mod machine;
mod plot;
mod record;
mod replay;
mod report;
mod run;
mod size;
mod stats;
mod sweep;
mod trace;
mod vm;
mod worlds;

pub(crate) use ablate::ablate;
pub(crate) use capture::capture;
pub(crate) use compare::compare;
pub(crate) use explain::explain;
pub(crate) use export::export;
pub(crate) use import::import;
pub(crate) use list::list;
pub(crate) use machine::machine;
pub(crate) use record::record;
pub(crate) use replay::replay;
pub(crate) use report::report;
pub(crate) use run::run;
pub(crate) use size::size;
pub(crate) use stats::stats;
pub(crate) use sweep::sweep;
pub(crate) use trace::trace;
pub(crate) use vm::{uml, vm};
pub(crate) use worlds::worlds;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lab::{Backend, GuestRequest, HostPolicy, KeepRuns, LabError, PlannedRun, Request, Scenario, Subject};

use crate::args::{Events, GuestArgs, HostArgs, ScenarioArgs};
use crate::printer::{Failure, Printer};

/// The request that `subject` and options make.
fn request(subject: &str, kernel: Option<&String>, args: &ScenarioArgs) -> Request {
    Request {
        kernel: kernel.cloned(),
        machine: args.machine.clone(),
        mem: args.mem.clone(),
        swap: args.swap.clone(),
        params: args.params.clone(),
        sysctls: args.sysctls.clone(),
        seed: args.seed,
        interval: args.interval.clone(),
        backend: args.backends.first().cloned(),
        guest: guest_request(&args.vm),
        ..Request::new(Subject::of_argument(subject))
    }
}

/// What options say of a guest.
fn guest_request(args: &GuestArgs) -> GuestRequest {
    GuestRequest {
        cpus: args.cpus,
        numa_nodes: args.numa_nodes,
        lru_gen: args.lru_gen.clone(),
        xfs_log: args.xfs_log,
    }
}

/// Refuses a second backend, which only comparisons take.
fn one_backend(command: &str, backends: &[String]) -> Result<(), Failure> {
    match backends {
        [_, second, ..] => Err(Failure::Usage(format!(
            "`{command}` takes one backend; `compare` takes `--on {second}` as a second one"
        ))),
        _ => Ok(()),
    }
}

/// The one run that `subject` and options make, and what they allow on this host; nothing with `--dry-run`, which
/// prints it.
fn planned_run(
    command: &str,
    subject: &str,
    kernel: Option<&String>,
    args: &ScenarioArgs,
    printer: &Printer,
) -> Result<Option<(PlannedRun, HostPolicy)>, Failure> {
    one_backend(command, &args.backends)?;
    let (scenario, told) = request(subject, kernel, args).resolve_telling()?;
    if let Some(told) = told {
        printer.note(&told);
    }
    let policy = host_policy(&args.host, [&scenario])?;
    if args.dry_run {
        printer.data(&planned(&scenario))?;
        return Ok(None);
    }
    Ok(Some((PlannedRun { label: lab::label(&scenario), scenario }, policy)))
}

/// What `--dry-run` prints: the scenario, and behind it the file that its parameters come to where one is drawn.
fn planned(scenario: &Scenario) -> String {
    let mut text = scenario.to_toml();
    for line in scenario.workload.drawn_text().iter().flat_map(|drawn| drawn.lines()) {
        text += format!("# {line}").trim_end();
        text.push('\n');
    }
    text
}

/// What the options allow on this host, for runs of which one at least is there.
fn host_policy<'a>(
    args: &HostArgs,
    scenarios: impl IntoIterator<Item = &'a Scenario>,
) -> Result<HostPolicy, LabError> {
    let mut backends = scenarios.into_iter().map(|scenario| &scenario.backend).peekable();
    let elsewhere = backends.peek().map(ToString::to_string);
    if let (Some(what), Some(backend)) = (args.given(), elsewhere) {
        // The disk of a virtual machine is a file of this host.
        let is_for = |backend: &Backend| match what {
            "--host-disk" => *backend != Backend::Sim,
            "--max-time" => true,
            _ => *backend == Backend::Host,
        };
        if !backends.any(is_for) {
            let (runs, on) = match what {
                "--host-disk" => ("on real kernels", "`--on host`, `uml:VERSION` or `vm:VERSION`"),
                _ => ("on this host", "`--on host`"),
            };
            return Err(LabError::refused(
                format!("`{what}` is for runs {runs}, and this runs on `{backend}`"),
                format!("add {on}, or leave it out"),
            ));
        }
    }
    let mut policy = HostPolicy { allow_host_pressure: args.allow_host_pressure, ..HostPolicy::default() };
    if let Some(limit) = &args.host_limit {
        policy.limit = lab::real::parse_host_limit(limit)?;
    }
    if let Some(share) = &args.host_disk {
        policy.share = lab::real::parse_disk_share(share)?;
    }
    policy.max_time = args.max_time.as_deref().map(lab::real::parse_max_time).transpose()?;
    policy.dir.clone_from(&args.host_dir);
    Ok(policy)
}

/// Refuses real runs that do not fit this host, and tells what the others will take of it, and of what
/// will say little.
fn told_of_runs(plan: &[PlannedRun], policy: &HostPolicy, printer: &Printer) -> Result<(), LabError> {
    lab::batch::warnings(plan).iter().for_each(|warning| printer.warning(warning));
    lab::real::check(plan, policy)?.iter().for_each(|text| printer.note(text));
    Ok(())
}

/// A recording is what it is: options that describe a run would be without effect.
fn refuse_options_of_runs(subject: &str, has_kernel: bool, scenario: &ScenarioArgs) -> Result<(), Failure> {
    match has_kernel.then_some("--kernel").or(scenario.given()) {
        Some(option) => Err(Failure::Usage(format!(
            "`{option}` is for a run, and `{subject}` is one that was made already"
        ))),
        None => Ok(()),
    }
}

/// Refuses events of real kernels, of which they are not recorded.
fn check_events(which: Events, plan: &[PlannedRun]) -> Result<(), LabError> {
    let real = plan.iter().find(|run| run.scenario.backend != Backend::Sim);
    match real.filter(|_| which != Events::None) {
        Some(run) => Err(LabError::refused(
            format!("`{}` has no events to keep: they are the simulator's", run.scenario.backend),
            "leave `--events` out, or `--on`",
        )),
        None => Ok(()),
    }
}

/// Says how runs that were stopped go on, where they are kept.
fn tell_how_to_go_on(out: Option<&Path>, printer: &Printer) {
    if let Some(out) = out {
        let out = out.display();
        printer
            .warning(&format!("what has finished is in `{out}`; the same command with `--resume` goes on"));
    }
}

/// Runs keep what they leave, each in its folder, while they go, and these events.
fn keep_runs(which: Events, folder: impl Fn(usize) -> PathBuf + Send + Sync + 'static) -> Option<KeepRuns> {
    Some(KeepRuns { detail: which.detail(), folder: Arc::new(folder) })
}
