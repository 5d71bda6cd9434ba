//! `--plot`: one figure of the page that `pagetide report` would make of the same runs, beside a command's tables.

use std::path::Path;

use lab::Recording;
use lab::page::{check_figure, check_figure_name, no_figure, with_page, write};
use report::Style;
use report::page::{Page, page};

use crate::args::PlotArgs;
use crate::printer::{Failure, Printer};

/// How a page is written: signed.
pub(super) const PAGE: Style<'static> =
    Style { width: 80, made_by: concat!("pagetide ", env!("CARGO_PKG_VERSION")) };

/// Refuses a file that cannot be written and a figure that `command` never draws, before runs that may take long.
pub(super) fn check(command: &str, args: &PlotArgs, never: &[&str]) -> Result<(), Failure> {
    if let Some(name) = &args.figure {
        check_figure_name(command, name, never)?;
    }
    args.plot.as_deref().map_or(Ok(()), |path| Ok(check_figure(path)?))
}

/// Draws the figure of these runs, if one is asked for and there are runs.
pub(super) fn draw<'a>(
    args: &PlotArgs,
    runs: impl IntoIterator<Item = &'a Recording>,
    printer: &Printer,
) -> Result<(), Failure> {
    let mut runs = runs.into_iter().peekable();
    match &args.plot {
        Some(path) if runs.peek().is_some() => {
            with_page(runs, |page| figure(page, path, args.figure.as_deref(), printer))
        }
        _ => Ok(()),
    }
}

/// Writes the figure of this name, or the first one.
pub(super) fn figure(
    of: &Page<'_>,
    path: &Path,
    name: Option<&str>,
    printer: &Printer,
) -> Result<(), Failure> {
    check_figure(path)?;
    let page = page(of)?;
    match page.svg(name) {
        Some(figure) => told(printer, path, write(path, &figure)?),
        None => return Err(no_figure(name, &page.figures()).into()),
    }
    Ok(())
}

/// Says that a file was written.
pub(super) fn told(printer: &Printer, path: &Path, bytes: usize) {
    printer.note(&format!("`{}`: {} KiB", path.display(), bytes.div_ceil(1024)));
}
