//! `pagetide sweep`: one workload or trace with every combination of several values, a row for each.

use std::path::Path;
use std::sync::atomic::Ordering;

use lab::replay::Outcomes;
use lab::sweep::{
    self, RUNS_MAX, RUNS_MAX_OF_DATASET, SweepControl, SweepFolder, SweepPlan, SweepRequest, Swept, problem,
};
use lab::{Ended, LabError, Recording, Request, Subject};
use report::{SweepRow, SweepRows, views};

use super::replay::check_stdin;
use super::{dask, guest_request, host_policy, keep_runs, plot, tell_how_to_go_on};
use crate::args::{Events, HostArgs, SweepArgs};
use crate::exit;
use crate::printer::{Failure, Printer};
use crate::progress::{ReplayBar, RunProgress};

/// Returns the exit code.
pub(crate) fn sweep(args: &SweepArgs, printer: &Printer) -> Result<u8, Failure> {
    plot::check("sweep", &args.grid.plot, &["ages", "regions"])?;
    let max = if args.dask.is_some() { RUNS_MAX_OF_DATASET } else { RUNS_MAX };
    let plan = sweep::plan_up_to(&request(args)?, max)?;
    check_unused(args, &plan)?;
    if args.dry_run {
        return printer.data(&plan.scenarios()?.join("\n")).map(|()| exit::DONE);
    }
    if let Some(scheduler) = &args.dask {
        return dask::sweep(args, &plan, scheduler, printer);
    }
    let (folder, finished) = begin(args.grid.out.as_deref(), &plan, args.grid.resume, &plan.size(), printer)?;
    let (outcomes, stopped) = run(args.jobs, &args.host, &plan, folder.as_ref(), finished, printer)?;
    let rows = rows(&plan, &outcomes, args.grid.all);
    if !rows.rows.is_empty() {
        printer.document(&views::sweep(&rows)?, args.grid.format)?;
    }
    plot::draw(&args.grid.plot, outcomes.iter().filter_map(Ended::recording), printer)?;
    if stopped {
        tell_how_to_go_on(args.grid.out.as_deref(), printer);
    }
    problem(&outcomes, stopped).map_or(Ok(exit::DONE), |error| Err(error.into()))
}

/// The folder, if the runs are to be kept, and what has finished in it before; says how many runs there are.
pub(super) fn begin(
    out: Option<&Path>,
    plan: &SweepPlan,
    resume: bool,
    size: &str,
    printer: &Printer,
) -> Result<(Option<SweepFolder>, Vec<Option<Recording>>), Failure> {
    let folder = out.map(|out| SweepFolder::open(out, plan, resume)).transpose()?;
    let (folder, finished) = match folder {
        Some((folder, finished)) => (Some(folder), finished),
        None => (None, vec![None; plan.runs.len()]),
    };
    let done = finished.iter().flatten().count();
    let done = if resume { format!("; {done} have finished before") } else { String::new() };
    printer.note(&format!("{size}{done}"));
    Ok((folder, finished))
}

fn request(args: &SweepArgs) -> Result<SweepRequest, LabError> {
    let guest = guest_request(&args.vm);
    let base = Request::new(Subject::of_argument(&args.subject));
    Ok(SweepRequest {
        subject: args.subject.clone(),
        options: args.swept.clone(),
        seeds: args.seeds,
        base: Request { backend: args.backend.clone(), interval: args.interval.clone(), guest, ..base },
        reading: args.reading.options()?,
    })
}

/// Options that change nothing about this sweep.
fn check_unused(args: &SweepArgs, plan: &SweepPlan) -> Result<(), Failure> {
    let (option, of) = match plan.trace() {
        None => {
            host_policy(&args.host, plan.planned().into_iter().flatten().map(|run| &run.scenario))?;
            (args.reading.given(), "traces")
        }
        Some(trace) => {
            check_stdin(trace)?;
            if args.interval.is_some() && args.swept.iter().any(|(what, _)| *what == Swept::Policy) {
                let problem = "`--interval` is for kernels: policies have no counters to sample";
                return Err(Failure::Usage(problem.to_owned()));
            }
            let runs = args.backend.as_ref().map(|_| "--on");
            (runs.or(args.host.given()), "workloads")
        }
    };
    match option {
        Some(option) => {
            Err(Failure::Usage(format!("`{option}` is for {of}, and `{}` is none", args.subject)))
        }
        None => Ok(()),
    }
}

/// Runs what has not finished; tells also whether it was interrupted.
pub(super) fn run(
    jobs: Option<usize>,
    host: &HostArgs,
    plan: &SweepPlan,
    folder: Option<&SweepFolder>,
    finished: Vec<Option<Recording>>,
    printer: &Printer,
) -> Result<(Outcomes, bool), LabError> {
    let keep = |index: usize, recording: &Recording| match folder {
        Some(folder) => folder.keep(index, recording),
        None => Ok(()),
    };
    let jobs = jobs.unwrap_or(0);
    if let Some(runs) = plan.planned() {
        let policy = host_policy(host, runs.iter().map(|run| &run.scenario))?;
        let left = finished.iter().filter(|recording| recording.is_none()).count();
        let mut progress = RunProgress::new(left, policy, printer);
        if let Some(folder) = folder.cloned() {
            progress.control.kept = keep_runs(Events::None, move |run| folder.folder_of(run));
        }
        let control = SweepControl::Runs(progress.control.clone());
        let outcomes = plan.run(finished, jobs, &control, keep);
        progress.done();
        return Ok((outcomes?, progress.control.stop.load(Ordering::Relaxed)));
    }
    let bar = ReplayBar::new(printer);
    let outcomes = plan.run(finished, jobs, &SweepControl::Replays(bar.control.clone()), keep);
    bar.done();
    Ok((outcomes?, bar.control.stop.load(Ordering::Relaxed)))
}

fn rows<'a>(plan: &SweepPlan, outcomes: &'a Outcomes, all: bool) -> SweepRows<'a> {
    let over = plan.runs.iter().zip(outcomes).filter_map(|(run, outcome)| {
        let outcome = match outcome {
            Ended::Recorded(recording) | Ended::NotKept(recording, _) => Ok(recording),
            Ended::Failed(error) => Err(error.told()),
            Ended::NotRun => return None,
        };
        Some(SweepRow { values: run.values.clone(), outcome })
    });
    let recorded = outcomes.iter().find_map(Ended::recording);
    let workload = recorded.map_or(plan.subject.clone(), |recording| recording.workload.clone());
    SweepRows {
        axes: plan.axes.iter().map(|axis| axis.name.clone()).collect(),
        fixed: plan.fixed.clone(),
        rows: over.collect(),
        planned: plan.runs.len(),
        headlines: if all { Vec::new() } else { lab::headlines(&workload) },
        workload,
    }
}
