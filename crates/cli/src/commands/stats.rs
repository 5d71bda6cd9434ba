//! `pagetide stats`: numbers or recordings in, statistics out.

use std::path::{Path, PathBuf};

use lab::folders::{Loaded, SideBySide, load};
use lab::{numbers, view};
use report::{Better, Direction, Group, RowSet, Rules, Run, views};

use crate::args::{BetterArg, Format, RowsArg, StatsArgs, Style};
use crate::printer::{Failure, Printer};

pub(crate) fn stats(args: &StatsArgs, printer: &Printer) -> Result<(), Failure> {
    if args.style != Style::Own && args.format != Format::Text {
        return Err(Failure::Usage("mmtests' tables are text; leave `--format` out".to_owned()));
    }
    if args.style == Style::Own && args.rows.is_some() {
        return Err(Failure::Usage("`--rows` is for `--style mmtests` and `mmtests-head`".to_owned()));
    }
    if args.inputs.iter().any(|input| Path::new(input).is_dir()) {
        return of_recordings(args, printer);
    }
    let runs = numbers::read(&args.inputs, args.operation.as_deref().unwrap_or("value"))?;
    tell_directions(&runs, args, printer);
    let better = |name: &str| better(name, args);
    match rules(args.style) {
        Some(rules) => printer.data(&report::comparison(&runs, rules, rows(args, rules), &better)),
        None => printer.document(&views::samples(&runs, &better), args.format),
    }
}

fn of_recordings(args: &StatsArgs, printer: &Printer) -> Result<(), Failure> {
    if args.operation.is_some() {
        return Err(Failure::Usage("recordings name their samples; leave `--operation` out".to_owned()));
    }
    let folders: Vec<PathBuf> = args.inputs.iter().map(PathBuf::from).collect();
    let SideBySide { columns, warnings, unfinished } = load(&folders)?;
    unfinished.iter().for_each(|told| printer.warning(told));
    warnings.iter().for_each(|warning| printer.warning(warning));
    let groups: Vec<Group<'_>> = columns.iter().map(Loaded::group).collect();
    let recordings = groups.iter().flat_map(|group| group.recordings.iter().copied());
    let view = view(recordings, true, Vec::new());
    let known = |name: &str| match args.better {
        Some(_) => better(name, args),
        None => report::better_in(&view, name),
    };
    let Some(rules) = rules(args.style) else {
        let runs = report::pooled_samples(&groups)?;
        return printer.document(&views::samples(&runs, &known), args.format);
    };
    for note in report::mmtests_notes(&groups, rules) {
        printer.warning(&note);
    }
    printer.data(&report::mmtests_tables(&groups, rules, rows(args, rules), &known)?)
}

/// Says of which operations nobody knows the good side, unless that was given.
fn tell_directions(runs: &[Run], args: &StatsArgs, printer: &Printer) {
    let names = report::operations(runs);
    let unknown: Vec<&str> =
        names.into_iter().filter(|name| report::direction(name) == Direction::Neutral).collect();
    if args.better.is_none() && !unknown.is_empty() {
        let (names, are) = (unknown.join("`, `"), if unknown.len() == 1 { "is" } else { "are each" });
        printer.warning(&format!(
            "`{names}` {are} taken for a time, less of which is better; `--better higher` if not"
        ));
    }
}

fn better(name: &str, args: &StatsArgs) -> Better {
    match args.better {
        Some(BetterArg::Higher) => Better::Higher,
        Some(BetterArg::Lower) => Better::Lower,
        None => report::better(report::direction(name)),
    }
}

pub(super) fn rules(style: Style) -> Option<Rules> {
    match style {
        Style::Own => None,
        Style::Mmtests => Some(Rules::G19),
        Style::MmtestsHead => Some(Rules::Head),
    }
}

fn rows(args: &StatsArgs, rules: Rules) -> RowSet {
    match args.rows {
        Some(RowsArg::All) => RowSet::Variable,
        Some(RowsArg::Few) => RowSet::Multiops,
        None => report::usual_rows(rules),
    }
}
