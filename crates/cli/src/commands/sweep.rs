//! `pagetide sweep`: one workload with several values of a sysctl, a row for each.

use lab::compare::OutFolder;
use lab::{LabError, Recording, run_all, sweep as lab_sweep};

use super::{host_policy, request};
use crate::args::{Format, SweepArgs};
use crate::printer::{Failure, Printer};
use crate::progress::RunProgress;

pub(crate) fn sweep(args: &SweepArgs, printer: &Printer) -> Result<(), Failure> {
    let plan = lab_sweep::plan(&request(&args.subject, args.kernel.as_ref(), &args.scenario))?;
    let policy = host_policy(&args.scenario.host, plan.iter().map(|run| &run.scenario))?;
    if args.scenario.dry_run {
        let scenarios = plan.iter().map(|run| run.scenario.to_toml());
        return printer.data(&scenarios.collect::<Vec<_>>().join("\n"));
    }
    let out = args.out.as_deref().map(OutFolder::new).transpose()?;
    let progress = RunProgress::new(plan.len(), policy, printer);
    let batch = run_all(&plan, args.jobs.unwrap_or(0), &progress.control, |index, recording| match &out {
        Some(out) => out.keep(&plan, index, recording),
        None => Ok(()),
    });
    progress.done();
    let batch = batch?;
    let finished: Vec<&Recording> = batch.recordings.iter().flatten().collect();
    let interrupted = matches!(batch.error, Some(LabError::Interrupted { .. }));
    if batch.error.is_none() || (interrupted && !finished.is_empty()) {
        printer.data(&shown(&finished, args.format, printer.width())?)?;
    }
    batch.error.map_or(Ok(()), |error| Err(error.into()))
}

fn shown(recordings: &[&Recording], format: Format, width: usize) -> Result<String, Failure> {
    Ok(match format {
        Format::Text => report::metrics_text(recordings, width)?,
        Format::Json => report::to_json(recordings)?,
        Format::Csv => report::to_csv(recordings)?,
        Format::Md => report::metrics_markdown(recordings)?,
    })
}
