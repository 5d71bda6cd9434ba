//! `pagetide explain`: why a run went as it went.

use lab::explain::{With, recorded};
use lab::view;
use report::{Explained, Question, views};

use super::{planned_run, refuse_options_of_runs, told_of_runs};
use crate::args::ExplainArgs;
use crate::printer::{Failure, Printer};
use crate::progress::RunProgress;

pub(crate) fn explain(args: &ExplainArgs, printer: &Printer) -> Result<(), Failure> {
    let question = Question { file: args.file.clone(), pages: args.page.clone() };
    let with = match recorded(&args.subject, &question)? {
        Some(with) => {
            refuse_options_of_runs(&args.subject, args.kernel.is_some(), &args.scenario)?;
            Some(with)
        }
        None => run(args, question, printer)?,
    };
    with.map_or(Ok(()), |with| show(&with, args, printer))
}

fn show(with: &With, args: &ExplainArgs, printer: &Printer) -> Result<(), Failure> {
    let With { recording, events, with_events } = with;
    if args.folded {
        return printer.data(&views::folded_stacks(recording));
    }
    let explained = Explained { recording, events: events.as_ref(), with_events: with_events.as_deref() };
    let view = view([recording], args.all, Vec::new());
    printer.document(&views::explain(&explained, &view), args.format)
}

/// Runs the scenario once, for its explanation only; nothing with `--dry-run`.
fn run(args: &ExplainArgs, question: Question, printer: &Printer) -> Result<Option<With>, Failure> {
    let ExplainArgs { subject, kernel, scenario, .. } = args;
    let planned = planned_run("explain", subject, kernel.as_ref(), scenario, printer)?;
    let Some((planned, policy)) = planned else { return Ok(None) };
    let plan = [planned];
    told_of_runs(&plan, &policy, printer)?;
    let progress = RunProgress::new(plan.len(), policy, printer);
    let with = lab::explain::run(&plan[0], question, &progress.control);
    progress.done();
    Ok(Some(with?))
}
