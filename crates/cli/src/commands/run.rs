//! `pagetide run`: one scenario, one recording; with a second `--on`, what `compare` makes of both.

use lab::worlds::WorldsError;
use lab::{Backend, Batch, LabError, PlannedRun, check_new_folder, command, run_all, view};
use report::views;

use super::{check_events, compare, keep_runs, planned_run, plot, told_of_runs};
use crate::args::{CompareArgs, Format, RunArgs};
use crate::printer::{Failure, Printer};
use crate::progress::RunProgress;

/// Figures that need several runs, or events that are kept.
const NOT_OF_ONE_RUN: [&str; 7] = ["misses", "ablation", "grid", "ages", "regions", "seeds", "changes"];

pub(crate) fn run(args: &RunArgs, printer: &Printer) -> Result<(), Failure> {
    let RunArgs { subject, kernel, scenario, .. } = args;
    if scenario.backends.len() > 1 {
        return match scenario.backends.iter().find(|on| *on != "sim").filter(|_| args.check) {
            Some(real) => Err(LabError::from(WorldsError::CheckOn(real.clone())).into()),
            None => compare::compare(&CompareArgs::of_run(args), printer),
        };
    }
    plot::check("run", &args.plot, &NOT_OF_ONE_RUN)?;
    let planned = planned_run("run", subject, kernel.as_ref(), scenario, printer)?;
    let Some((planned, policy)) = planned else { return Ok(()) };
    if let Some(out) = &args.out {
        check_new_folder(out)?;
    }
    let again = command(&planned.scenario);
    let plan = [planned];
    check_events(args.events.which, &plan)?;
    check_is_of_the_model(args.check, &plan)?;
    told_of_runs(&plan, &policy, printer)?;
    let mut progress = RunProgress::new(plan.len(), policy, printer);
    progress.control.check = args.check;
    if let Some(out) = args.out.clone() {
        progress.control.kept = keep_runs(args.events.which, move |_| out.clone());
    }
    let batch = run_all(&plan, 1, &progress.control, |_, recording| match &args.out {
        Some(out) => recording.write(out).map(drop).map_err(Into::into),
        None => Ok(()),
    });
    progress.done();
    // A result that could not be written is shown all the same.
    let Batch { recordings, error } = batch?;
    recordings.iter().flatten().try_for_each(|recording| {
        // Who reads a file of it has not typed the command.
        let again = (args.format == Format::Md).then(|| again.clone());
        let view = view([recording], args.all, Vec::new());
        printer.document(&views::run(recording, again, &view), args.format)
    })?;
    plot::draw(&args.plot, recordings.iter().flatten(), printer)?;
    error.map_or(Ok(()), |error| Err(error.into()))
}

/// Refuses to check a real kernel.
fn check_is_of_the_model(check: bool, plan: &[PlannedRun]) -> Result<(), LabError> {
    match plan.iter().find(|run| run.scenario.backend != Backend::Sim).filter(|_| check) {
        Some(run) => Err(WorldsError::CheckOn(run.scenario.backend.to_string()).into()),
        None => Ok(()),
    }
}
