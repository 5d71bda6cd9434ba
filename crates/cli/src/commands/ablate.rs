//! `pagetide ablate`: one workload on every kernel that some features make, switched or not.

use lab::Ended;
use lab::ablate;
use lab::sweep::problem;
use report::views;

use super::sweep::{begin, run};
use super::{host_policy, one_backend, plot, request, tell_how_to_go_on};
use crate::args::AblateArgs;
use crate::printer::{Failure, Printer};

pub(crate) fn ablate(args: &AblateArgs, printer: &Printer) -> Result<(), Failure> {
    one_backend("ablate", &args.scenario.backends)?;
    plot::check("ablate", &args.grid.plot, &["misses", "grid", "ages", "regions"])?;
    let request = request(&args.subject, args.kernel.as_ref(), &args.scenario);
    let ablation = ablate::plan(&request, &args.features, args.seeds.unwrap_or(1))?;
    let plan = &ablation.plan;
    host_policy(&args.scenario.host, plan.planned().into_iter().flatten().map(|run| &run.scenario))?;
    if args.scenario.dry_run {
        return printer.data(&plan.scenarios()?.join("\n"));
    }
    let (folder, finished) =
        begin(args.grid.out.as_deref(), plan, args.grid.resume, &ablation.size(), printer)?;
    let (outcomes, stopped) = run(args.jobs, &args.scenario.host, plan, folder.as_ref(), finished, printer)?;
    let error = problem(&outcomes, stopped);
    if outcomes.iter().all(|outcome| outcome.recording().is_none()) {
        // There is no table whose rows could say why.
        let first = outcomes.into_iter().find_map(|outcome| match outcome {
            Ended::Failed(error) | Ended::NotKept(_, error) => Some(error),
            Ended::Recorded(_) | Ended::NotRun => None,
        });
        return first.or(error).map_or(Ok(()), |error| Err(error.into()));
    }
    let view = lab::view(outcomes.iter().filter_map(Ended::recording), args.grid.all, Vec::new());
    printer.document(&views::ablate(&ablation.ablated(&outcomes, view))?, args.grid.format)?;
    plot::draw(&args.grid.plot, outcomes.iter().filter_map(Ended::recording), printer)?;
    if stopped {
        tell_how_to_go_on(args.grid.out.as_deref(), printer);
    }
    error.map_or(Ok(()), |error| Err(error.into()))
}
