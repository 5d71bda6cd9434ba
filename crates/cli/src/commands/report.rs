//! `pagetide report`: recordings made earlier, each by itself, or all on a page with figures.

use lab::folders::{Loaded, SideBySide, load};
use lab::page::{check_figure_name, check_page, write};
use lab::replay::command_of;
use lab::{Recording, view};
use report::{Group, page, views};

use super::plot::{PAGE, figure, told};
use crate::args::{Format, ReportArgs};
use crate::printer::{Failure, Printer};

pub(crate) fn report(args: &ReportArgs, printer: &Printer) -> Result<(), Failure> {
    if args.out.is_some() || args.plot.is_some() {
        return page(args, printer);
    }
    let SideBySide { columns: loaded, unfinished, .. } = load(&args.folders)?;
    unfinished.iter().for_each(|told| printer.warning(told));
    let all: Vec<&Recording> = loaded.iter().flat_map(|loaded| &loaded.recordings).collect();
    if matches!(args.format, Format::Json | Format::Csv) {
        report::common_workload(all.iter().copied())?;
    }
    // A replay's recording knows its command; who reads a file of any other has the folder's.
    let again = |loaded: &Loaded, recording: &Recording| match args.format {
        Format::Md => Some(loaded.group().command),
        _ => command_of(&recording.scenario_toml),
    };
    let mut runs = Vec::new();
    for loaded in &loaded {
        runs.extend(loaded.recordings.iter().map(|run| (run, again(loaded, run))));
    }
    let document = views::runs(&runs, |run| view([run], args.all, Vec::new()));
    printer.document(&document, args.format)
}

/// The page and the figure that are asked for.
fn page(args: &ReportArgs, printer: &Printer) -> Result<(), Failure> {
    args.out.as_deref().map_or(Ok(()), check_page)?;
    if let Some(name) = &args.figure {
        check_figure_name("report", name, &[])?;
    }
    let SideBySide { columns, mut warnings, unfinished } = load(&args.folders)?;
    warnings.extend(unfinished);
    let grid = lab::page::grid(&columns);
    let (columns, left_out) = lab::page::of_one_setting(&columns);
    left_out.iter().for_each(|told| printer.warning(told));
    warnings.extend(left_out);
    let groups: Vec<Group<'_>> = columns.iter().copied().map(lab::page::group).collect();
    let command = lab::page::command(&args.folders, args.out.as_deref());
    let page = lab::page::page(&groups, grid, lab::page::heats(&columns)?, warnings, command);
    if let Some(path) = &args.out {
        let html = page::page(&page)?.render(report::Format::Html, PAGE);
        told(printer, path, write(path, &html)?);
    }
    match &args.plot {
        Some(path) => figure(&page, path, args.figure.as_deref(), printer),
        None => Ok(()),
    }
}
