//! `pagetide sweep`: one workload with several values of a sysctl, a row for each.

use lab::{LabError, Recording, sweep as lab_sweep, view};
use report::View;

use super::{host_policy, one_backend, request, run_plan};
use crate::args::{Format, SweepArgs};
use crate::printer::{Failure, Printer};

pub(crate) fn sweep(args: &SweepArgs, printer: &Printer) -> Result<(), Failure> {
    one_backend("sweep", &args.scenario.backends)?;
    let plan = lab_sweep::plan(&request(&args.subject, args.kernel.as_ref(), &args.scenario))?;
    let policy = host_policy(&args.scenario.host, plan.iter().map(|run| &run.scenario))?;
    if args.scenario.dry_run {
        let scenarios = plan.iter().map(|run| run.scenario.to_toml());
        return printer.data(&scenarios.collect::<Vec<_>>().join("\n"));
    }
    let batch = run_plan(&plan, args.jobs, args.out.as_deref(), policy, printer)?;
    let finished: Vec<&Recording> = batch.recordings.iter().flatten().collect();
    let interrupted = matches!(batch.error, Some(LabError::Interrupted { .. }));
    if batch.error.is_none() || (interrupted && !finished.is_empty()) {
        let view = view(finished.iter().copied(), printer.width(), args.all, Vec::new());
        printer.data(&shown(&finished, args.format, view)?)?;
    }
    batch.error.map_or(Ok(()), |error| Err(error.into()))
}

fn shown(recordings: &[&Recording], format: Format, view: View) -> Result<String, Failure> {
    Ok(match format {
        Format::Text => report::metrics_text(recordings, view)?,
        Format::Json => report::to_json(recordings)?,
        Format::Csv => report::to_csv(recordings)?,
        Format::Md => report::metrics_markdown(recordings, view)?,
    })
}
