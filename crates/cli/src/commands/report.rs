//! `pagetide report`: recordings made earlier, each by itself, or all on a page with figures.

use std::path::Path;

use lab::folders::{Loaded, SideBySide, load};
use lab::page::{no_figure, write};
use lab::{Recording, view};
use report::Group;
use report::html::Page;

use super::made_by;
use crate::args::{Format, ReportArgs, Verbosity};
use crate::printer::{Failure, Printer};

pub(crate) fn report(args: &ReportArgs, printer: &Printer) -> Result<(), Failure> {
    if args.output.is_some() || args.plot.is_some() {
        return page(args, printer);
    }
    let SideBySide { columns: loaded, unfinished, .. } = load(&args.folders)?;
    unfinished.iter().for_each(|told| printer.warning(told));
    let all: Vec<&Recording> = loaded.iter().flat_map(|loaded| &loaded.recordings).collect();
    let text = match args.format {
        Format::Text => {
            let texts = all.iter().map(|&recording| {
                let view = view([recording], printer.width(), args.all, Vec::new());
                report::run_text(recording, view) + &made_by(recording)
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        Format::Json => report::to_json(&all)?,
        Format::Csv => report::to_csv(&all)?,
        Format::Md => {
            let values = |loaded: &Loaded| {
                let view = view(&loaded.recordings, printer.width(), args.all, Vec::new());
                report::to_markdown(&[loaded.group()], view)
            };
            loaded.iter().map(values).collect::<Result<Vec<_>, _>>()?.join("\n")
        }
    };
    printer.data(&text)
}

/// The page and the figure that are asked for.
fn page(args: &ReportArgs, printer: &Printer) -> Result<(), Failure> {
    let SideBySide { columns, mut warnings, unfinished } = load(&args.folders)?;
    warnings.extend(unfinished);
    let grid = lab::page::grid(&columns);
    let (columns, left_out) = lab::page::of_one_setting(&columns);
    left_out.iter().for_each(|told| printer.warning(told));
    warnings.extend(left_out);
    let groups: Vec<Group<'_>> = columns.iter().copied().map(lab::page::group).collect();
    let command = lab::page::command(&args.folders, args.output.as_deref());
    let page = lab::page::page(&groups, grid, lab::page::heats(&columns)?, warnings, command);
    if let Some(path) = &args.output {
        told(printer, path, write(path, &page.html()?)?);
    }
    match &args.plot {
        Some(path) => plot(&page, path, args.figure.as_deref(), printer),
        None => Ok(()),
    }
}

/// Writes the figure of this name, or the first one.
pub(super) fn plot(
    page: &Page<'_>,
    path: &Path,
    name: Option<&str>,
    printer: &Printer,
) -> Result<(), Failure> {
    match page.figure(name)? {
        Some(figure) => told(printer, path, write(path, &figure)?),
        None => return Err(no_figure(name, page.figures()?).into()),
    }
    Ok(())
}

pub(super) fn told(printer: &Printer, path: &Path, bytes: usize) {
    if printer.verbosity() > Verbosity::Quiet {
        printer.note(&format!("`{}`: {} KiB", path.display(), bytes.div_ceil(1024)));
    }
}
