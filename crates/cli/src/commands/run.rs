//! `pagetide run`: one scenario, one recording.

use lab::{Batch, PlannedRun, Recording, check_new_folder, command, run_all, view};
use report::{Group, View};

use super::{check_events, host_policy, keep_runs, one_backend, request, told_of_runs};
use crate::args::{Format, RunArgs};
use crate::printer::{Failure, Printer};
use crate::progress::RunProgress;

pub(crate) fn run(args: &RunArgs, printer: &Printer) -> Result<(), Failure> {
    one_backend("run", &args.scenario.backends)?;
    let request = request(&args.subject, args.kernel.as_ref(), &args.scenario);
    let (scenario, told) = request.resolve_telling()?;
    if let Some(told) = told {
        printer.note(&told);
    }
    let policy = host_policy(&args.scenario.host, [&scenario])?;
    if args.scenario.dry_run {
        return printer.data(&scenario.to_toml());
    }
    if let Some(out) = &args.out {
        check_new_folder(out)?;
    }
    let again = command(&scenario);
    let plan = [PlannedRun { label: lab::compare::label(&scenario), scenario }];
    check_events(args.events, &plan)?;
    told_of_runs(&plan, &policy, printer)?;
    let mut progress = RunProgress::new(plan.len(), policy, printer);
    if let Some(out) = args.out.clone() {
        progress.control.kept = keep_runs(args.events, move |_| out.clone());
    }
    let batch = run_all(&plan, 1, &progress.control, |_, recording| match &args.out {
        Some(out) => recording.write(out).map(drop).map_err(Into::into),
        None => Ok(()),
    });
    progress.done();
    // A result that could not be written is shown all the same.
    let Batch { recordings, error } = batch?;
    recordings.iter().flatten().try_for_each(|recording| {
        let view = view([recording], printer.width(), args.all, Vec::new());
        printer.data(&shown(recording, again.clone(), args.format, view)?)
    })?;
    error.map_or(Ok(()), |error| Err(error.into()))
}

fn shown(recording: &Recording, command: String, format: Format, view: View) -> Result<String, Failure> {
    Ok(match format {
        Format::Text => report::run_text(recording, view),
        Format::Json => report::to_json(&[recording])?,
        Format::Csv => report::to_csv(&[recording])?,
        Format::Md => {
            let label = recording.label.clone();
            report::to_markdown(&[Group { label, command, recordings: vec![recording] }], view)?
        }
    })
}
