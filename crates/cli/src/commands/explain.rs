//! `pagetide explain`: why a run went as it went.

use lab::explain::{With, recorded};
use lab::{PlannedRun, view};
use report::{Explained, Question, explain_json, explain_markdown, explain_text, folded_stacks};

use super::{host_policy, one_backend, refuse_options_of_runs, request, told_of_runs};
use crate::args::{ExplainArgs, ExplainFormat};
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
    with.map_or(Ok(()), |with| printer.data(&shown(&with, args, printer)))
}

fn shown(with: &With, args: &ExplainArgs, printer: &Printer) -> String {
    let With { recording, events, with_events } = with;
    if args.folded {
        return folded_stacks(recording);
    }
    let explained = Explained { recording, events: events.as_ref(), with_events: with_events.as_deref() };
    let view = view([recording], printer.width(), args.all, Vec::new());
    match args.format {
        ExplainFormat::Text => explain_text(&explained, &view),
        ExplainFormat::Json => explain_json(&explained),
        ExplainFormat::Md => explain_markdown(&explained, &view),
    }
}

/// Runs the scenario once, for its explanation only; nothing with `--dry-run`.
fn run(args: &ExplainArgs, question: Question, printer: &Printer) -> Result<Option<With>, Failure> {
    one_backend("explain", &args.scenario.backends)?;
    let request = request(&args.subject, args.kernel.as_ref(), &args.scenario);
    let (scenario, told) = request.resolve_telling()?;
    if let Some(told) = told {
        printer.note(&told);
    }
    let policy = host_policy(&args.scenario.host, [&scenario])?;
    if args.scenario.dry_run {
        printer.data(&scenario.to_toml())?;
        return Ok(None);
    }
    let plan = [PlannedRun { label: lab::compare::label(&scenario), scenario }];
    told_of_runs(&plan, &policy, printer)?;
    let progress = RunProgress::new(plan.len(), policy, printer);
    let with = lab::explain::run(&plan[0], question, &progress.control);
    progress.done();
    Ok(Some(with?))
}
