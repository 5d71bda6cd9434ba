//! `pagetide ablate`: one workload on every kernel that some features make, switched or not.

use std::sync::atomic::Ordering;

use lab::ablate::{self, Ablation};
use lab::replay::Outcomes;
use lab::sweep::{SweepControl, SweepFolder, problem};
use lab::{Ended, HostPolicy, LabError, Recording};
use report::Ablated;

use super::sweep::begin;
use super::{host_policy, keep_runs, one_backend, plot, request};
use crate::args::{AblateArgs, Events, Format};
use crate::printer::{Failure, Printer};
use crate::progress::RunProgress;

pub(crate) fn ablate(args: &AblateArgs, printer: &Printer) -> Result<(), Failure> {
    one_backend("ablate", &args.scenario.backends)?;
    plot::check(&args.grid.plot)?;
    let request = request(&args.subject, args.kernel.as_ref(), &args.scenario);
    let ablation = ablate::plan(&request, &args.features, args.seeds.unwrap_or(1))?;
    let plan = &ablation.plan;
    host_policy(&args.scenario.host, plan.planned().into_iter().flatten().map(|run| &run.scenario))?;
    if args.scenario.dry_run {
        return printer.data(&plan.scenarios()?.join("\n"));
    }
    let (folder, finished) =
        begin(args.grid.out.as_deref(), plan, args.grid.resume, &ablation.size(), printer)?;
    let (outcomes, stopped) = run(args, &ablation, folder.as_ref(), finished, printer)?;
    let error = problem(&outcomes, stopped);
    if outcomes.iter().all(|outcome| outcome.recording().is_none()) {
        // There is no table whose rows could say why.
        let first = outcomes.into_iter().find_map(|outcome| match outcome {
            Ended::Failed(error) | Ended::NotKept(_, error) => Some(error),
            Ended::Recorded(_) | Ended::NotRun => None,
        });
        return first.or(error).map_or(Ok(()), |error| Err(error.into()));
    }
    let view =
        lab::view(outcomes.iter().filter_map(Ended::recording), printer.width(), args.grid.all, Vec::new());
    printer.data(&shown(&ablation.ablated(&outcomes, view), args.grid.format)?)?;
    plot::draw(&args.grid.plot, outcomes.iter().filter_map(Ended::recording), printer)?;
    error.map_or(Ok(()), |error| Err(error.into()))
}

/// Runs what has not finished; tells also whether it was interrupted.
fn run(
    args: &AblateArgs,
    ablation: &Ablation,
    folder: Option<&SweepFolder>,
    finished: Vec<Option<Recording>>,
    printer: &Printer,
) -> Result<(Outcomes, bool), LabError> {
    let keep = |index: usize, recording: &Recording| match folder {
        Some(folder) => folder.keep(index, recording),
        None => Ok(()),
    };
    let left = finished.iter().filter(|recording| recording.is_none()).count();
    let mut progress = RunProgress::new(left, HostPolicy::default(), printer);
    if let Some(folder) = folder.cloned() {
        progress.control.kept = keep_runs(Events::None, move |run| folder.folder_of(run));
    }
    let control = SweepControl::Runs(progress.control.clone());
    let outcomes = ablation.plan.run(finished, args.jobs.unwrap_or(0), &control, keep);
    progress.done();
    Ok((outcomes?, progress.control.stop.load(Ordering::Relaxed)))
}

fn shown(ablated: &Ablated<'_>, format: Format) -> Result<String, Failure> {
    Ok(match format {
        Format::Text => report::ablate_text(ablated)?,
        Format::Json => report::ablate_json(ablated)?,
        Format::Csv => report::ablate_csv(ablated)?,
        Format::Md => report::ablate_markdown(ablated)?,
    })
}
