//! `pagetide replay`: a trace on caches.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lab::folders::OutFolder;
use lab::program_request::ProgramRequest;
use lab::replay::{CacheSpec, ReplayPlan, ReplayRequest, ReplayScenario, STDIN, command_of};
use lab::{
    Batch, KeepRuns, LabError, PlannedRun, Recording, Request, Subject, check_new_folder, run_all, view,
};
use report::views;

use super::{check_events, guest_request, host_policy, keep_runs, plot, told_of_runs};
use crate::args::{Events, ReplayArgs};
use crate::printer::{Failure, Printer};
use crate::progress::{ReplayBar, RunProgress};

pub(crate) fn replay(args: &ReplayArgs, printer: &Printer) -> Result<(), Failure> {
    plot::check("replay", &args.plot, &["ablation", "grid", "ages", "regions"])?;
    if lab::program::is_one(&args.trace) {
        return program(args, printer);
    }
    let plan = plan(args)?;
    check_stdin(&plan.trace)?;
    let mut bar = ReplayBar::new(printer);
    if let Some(out) = &args.out {
        check_new_folder(out)?;
        bar.control.kept = kept_runs(&plan, out, args.events.which)?;
    }
    let outcomes = plan.run(0, &bar.control, |_, _| Ok(()));
    bar.done();
    let (results, error) = lab::replay::results(outcomes?, bar.control.stop.load(Ordering::Relaxed));
    // What has finished is kept and shown, also when the rest has not.
    if let Some(out) = args.out.as_ref().filter(|_| !results.is_empty()) {
        keep(out, &plan, &results)?;
    }
    let results: Vec<&Recording> = results.iter().map(|(_, recording)| recording).collect();
    if !results.is_empty() {
        show(&results, args, printer)?;
    }
    plot::draw(&args.plot, results.iter().copied(), printer)?;
    error.map_or(Ok(()), |error| Err(error.into()))
}

/// The trace of a program: made again on every machine with every limit.
fn program(args: &ReplayArgs, printer: &Printer) -> Result<(), Failure> {
    let given = [("--policy", args.policies.is_empty()), ("--capacity", args.capacities.is_empty())];
    let given = given.into_iter().find_map(|(option, absent)| (!absent).then_some(option));
    if let Some(option) = given.or(args.reading.given()) {
        let path = args.trace.display();
        return Err(Failure::Usage(format!(
            "`{option}` is for a trace of requests, and `{path}` is that of a program"
        )));
    }
    let plan = program_request(args).plan()?;
    let policy = host_policy(&args.host, plan.iter().map(|run| &run.scenario))?;
    check_events(args.events.which, &plan)?;
    if let Some(out) = &args.out {
        check_new_folder(out)?;
    }
    told_of_runs(&plan, &policy, printer)?;
    let mut progress = RunProgress::new(plan.len(), policy, printer);
    let folder = args.out.as_ref().map(|out| RunFolders::new(out, &plan)).transpose()?;
    if let Some(folder) = folder.clone() {
        progress.control.kept = keep_runs(args.events.which, move |index| folder.of(index));
    }
    let batch = run_all(&plan, 0, &progress.control, |index, recording| match &folder {
        Some(folder) => recording.write(&folder.of(index)).map(drop).map_err(Into::into),
        None => Ok(()),
    });
    progress.done();
    let Batch { recordings, error } = batch?;
    let results: Vec<&Recording> = recordings.iter().flatten().collect();
    if !results.is_empty() {
        show(&results, args, printer)?;
    }
    plot::draw(&args.plot, results.iter().copied(), printer)?;
    error.map_or(Ok(()), |error| Err(error.into()))
}

/// Where the recordings of a plan go: one is the folder itself, several are in it.
#[derive(Clone)]
struct RunFolders {
    out: PathBuf,
    folder: Arc<OutFolder>,
    labels: Vec<String>,
}

impl RunFolders {
    fn new(out: &Path, plan: &[PlannedRun]) -> Result<Self, LabError> {
        let labels = plan.iter().map(|run| run.label.clone()).collect();
        Ok(Self { out: out.to_owned(), folder: Arc::new(OutFolder::new(out)?), labels })
    }

    fn of(&self, index: usize) -> PathBuf {
        match self.labels.len() {
            1 => self.out.clone(),
            count => self.folder.folder_of(index, count, &self.labels[index]),
        }
    }
}

fn program_request(args: &ReplayArgs) -> ProgramRequest {
    let run = Request {
        machine: args.machine.clone(),
        swap: args.swap.clone(),
        sysctls: args.sysctls.clone(),
        seed: args.seed,
        interval: args.interval.clone(),
        guest: guest_request(&args.vm),
        ..Request::new(Subject::Workload(String::new()))
    };
    ProgramRequest {
        trace: args.trace.clone(),
        limits: args.limits.clone(),
        high: args.high.clone(),
        low: args.low.clone(),
        pace: args.pace.clone(),
        mems: args.mems.clone(),
        kernels: args.kernels.clone(),
        backends: args.backends.clone(),
        run,
    }
}

/// The first option that was given and is for a program's trace, or for kernels and there is none.
fn given_in_vain(args: &ReplayArgs) -> Option<String> {
    let of_program = [("--pace", args.pace.is_some()), ("--on", !args.backends.is_empty())];
    let of_program = of_program.into_iter().find_map(|(option, given)| given.then_some(option));
    if let Some(option) = of_program.or(guest_request(&args.vm).given()).or(args.host.given()) {
        let path = args.trace.display();
        return Some(format!("`{option}` is for the trace of a program, and `{path}` is none"));
    }
    let of_kernel = [
        ("--kernel", !args.kernels.is_empty()),
        ("--machine", args.machine.is_some()),
        ("--swap", args.swap.is_some()),
        ("--limit", !args.limits.is_empty()),
        ("--high", args.high.is_some()),
        ("--low", args.low.is_some()),
        ("--set", !args.sysctls.is_empty()),
        ("--seed", args.seed.is_some()),
        ("--interval", args.interval.is_some()),
    ];
    let of_kernel = of_kernel.into_iter().find_map(|(option, given)| given.then_some(option));
    let told = |option| format!("`{option}` is for kernels: name their memory by `--mem`");
    of_kernel.filter(|_| args.mems.is_empty()).map(told)
}

/// The plan that options make, or a scenario that says all by itself.
fn plan(args: &ReplayArgs) -> Result<ReplayPlan, Failure> {
    if let Some(problem) = given_in_vain(args) {
        return Err(Failure::Usage(problem));
    }
    let Subject::File(path) = Subject::of_argument(&args.trace.to_string_lossy()) else {
        let policies = args.policies.iter().map(|policy| policy.parse());
        let request = ReplayRequest {
            trace: args.trace.clone(),
            options: args.reading.options()?,
            policies: policies.collect::<Result<_, _>>().map_err(LabError::from)?,
            capacities: args.capacities.clone(),
            mems: args.mems.clone(),
            kernels: args.kernels.clone(),
            machine: args.machine.clone(),
            swap: args.swap.clone(),
            limits: args.limits.clone(),
            high: args.high.clone(),
            low: args.low.clone(),
            sysctls: args.sysctls.clone(),
            seed: args.seed,
            interval: args.interval.clone(),
        };
        if let (true, Some(option)) = (args.mems.is_empty(), args.reading.timing.as_ref().map(|_| "--timing"))
        {
            let problem =
                format!("`{option}` is for kernels (`--mem`): a policy takes one request after the other");
            return Err(Failure::Usage(problem));
        }
        return Ok(request.plan()?);
    };
    let given = [("--policy", args.policies.is_empty()), ("--mem", args.mems.is_empty())];
    let given = given.into_iter().find_map(|(option, absent)| (!absent).then_some(option));
    if let Some(option) = given.or(args.reading.given()) {
        let problem = format!("`{option}` is for a trace; `{}` says all of its replay", path.display());
        return Err(Failure::Usage(problem));
    }
    Ok(ReplayScenario::read(&path)?.into())
}

/// A trace that somebody would have to type is a mistake.
pub(super) fn check_stdin(trace: &Path) -> Result<(), Failure> {
    if trace == Path::new(STDIN) && std::io::stdin().is_terminal() {
        return Err(Failure::Usage("standard input is a terminal: pipe a trace into it".to_owned()));
    }
    Ok(())
}

fn show(results: &[&Recording], args: &ReplayArgs, printer: &Printer) -> Result<(), Failure> {
    let view = view(results.iter().copied(), args.all, Vec::new());
    printer.document(
        &match results {
            // One kernel alone is shown with all that its run left, its time line too.
            [only] if only.is_simulated() => views::run(only, command_of(&only.scenario_toml), &view),
            results => views::metrics(results, &view)?,
        },
        args.format,
    )
}

/// One cache leaves a recording, as a run does; several leave a folder of them, as a comparison. Those of
/// kernels are there already.
fn keep(out: &Path, plan: &ReplayPlan, results: &[(usize, Recording)]) -> Result<(), LabError> {
    let mut missing = results.iter().filter(|(_, recording)| !recording.is_simulated()).peekable();
    if missing.peek().is_none() {
        return Ok(());
    }
    if let (1, [(_, only)]) = (plan.caches.len(), results) {
        only.write(out)?;
        return Ok(());
    }
    let folder = OutFolder::continued(out);
    missing.try_for_each(|(index, recording)| folder.keep_labelled(*index, plan.caches.len(), recording))
}

/// What kernels keep, each in its folder.
fn kept_runs(plan: &ReplayPlan, out: &Path, which: Events) -> Result<Option<KeepRuns>, LabError> {
    let labels: Vec<String> = plan.caches.iter().map(|(label, _)| label.clone()).collect();
    let has_kernel = plan.caches.iter().any(|(_, cache)| matches!(cache, CacheSpec::Kernel { .. }));
    if which != Events::None && !has_kernel {
        let message = "a replacement policy has no events to keep: they are a kernel's";
        return Err(LabError::refused(message, "name memory for a kernel with `--mem`"));
    }
    let (out, folder) = (out.to_owned(), OutFolder::new(out)?);
    Ok(keep_runs(which, move |index| match labels.len() {
        1 => out.clone(),
        count => folder.folder_of(index, count, &labels[index]),
    }))
}
