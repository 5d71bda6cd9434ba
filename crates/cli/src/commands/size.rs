//! `pagetide size`: how much memory a trace needs, or a program with own caches of several sizes.

use std::path::Path;

use lab::page::{check_figure, check_page, write};
use lab::size::{OwnCacheRequest, SizeRequest, WatchedRequest, is_watched, patches};
use lab::{LabError, check_new_folder};
use report::{Document, views};

use super::plot::{PAGE, told};
use super::replay::check_stdin;
use crate::args::SizeArgs;
use crate::printer::{Failure, Printer};
use crate::progress::SizeBar;
use crate::signals::passed_on;

pub(crate) fn size(args: &SizeArgs, printer: &Printer) -> Result<(), Failure> {
    let series = args.trace.as_deref().filter(|file| is_watched(file));
    match (&args.own_cache, series) {
        (None, Some(_)) => of_series(args, printer),
        _ if !args.label.is_empty() => Err(LabError::refused(
            "`--label` is for series of memory use, and this is none",
            "leave it out, or name a file of Prometheus: docs/size.md says which",
        )
        .into()),
        (Some(own_cache), _) => with_own_caches(args, own_cache, printer),
        (None, None) => of_trace(args, printer),
    }
}

fn of_series(args: &SizeArgs, printer: &Printer) -> Result<(), Failure> {
    let given = [("--out", args.out.is_some()), ("--plot", args.plot.is_some())];
    let given = given.into_iter().filter(|(_, given)| *given).map(|(option, _)| option).collect();
    let (labels, patches) = (args.label.clone(), patches(&args.patch)?);
    let asked = WatchedRequest { size: request(args)?, given, labels, patches };
    check_files(args)?;
    let found = asked.judge()?;
    show(args, &views::watched(&found), &views::watched(&found), printer)
}

fn of_trace(args: &SizeArgs, printer: &Printer) -> Result<(), Failure> {
    let plan = request(args)?.plan()?.patched(patches(&args.patch)?);
    args.trace.as_deref().map_or(Ok(()), check_stdin)?;
    check_files(args)?;
    let bar = SizeBar::new(printer);
    let found = plan.run(0, &bar.control, args.out.as_deref());
    bar.done();
    let (sized, interrupted) = found?;
    // What has finished is shown, also when the rest has not.
    show(args, &views::size(&sized), &views::size_page(&sized), printer)?;
    interrupted.map_or(Ok(()), |error| Err(error.into()))
}

fn with_own_caches(args: &SizeArgs, own_cache: &str, printer: &Printer) -> Result<(), Failure> {
    let asked = OwnCacheRequest { own_cache: own_cache.to_owned(), size: request(args)? };
    let plan = asked.plan()?.patched(patches(&args.patch)?);
    check_files(args)?;
    let bar = SizeBar::new(printer);
    let found = plan.run(0, &bar.control, &passed_on(), args.out.as_deref());
    bar.done();
    let (found, interrupted) = found?;
    show(args, &views::own_cache(&found), &views::own_cache_page(&found), printer)?;
    interrupted.map_or(Ok(()), |error| Err(error.into()))
}

/// Before anything runs.
fn check_files(args: &SizeArgs) -> Result<(), Failure> {
    if let Some(plot) = &args.plot {
        check_figure(plot)?;
    }
    if let Some(page) = &args.page {
        check_page(page)?;
    }
    if let Some(out) = &args.out {
        if out.extension().is_some_and(|is| is.eq_ignore_ascii_case("html")) {
            let message = format!("`--out {}` would be a folder of recordings", out.display());
            return Err(LabError::refused(message, format!("`--page {}` is a page", out.display())).into());
        }
        check_new_folder(out)?;
    }
    Ok(())
}

fn show(args: &SizeArgs, text: &Document<'_>, page: &Document<'_>, printer: &Printer) -> Result<(), Failure> {
    printer.document(text, args.format)?;
    if let Some(path) = &args.page {
        let page = page.render(report::Format::Html, PAGE);
        told(printer, path, write(path, &page)?);
    }
    if let Some(plot) = &args.plot {
        draw(page, plot, printer)?;
    }
    Ok(())
}

fn draw(page: &Document<'_>, plot: &Path, printer: &Printer) -> Result<(), Failure> {
    match page.svg(None) {
        Some(svg) => told(printer, plot, write(plot, &svg)?),
        None => printer.note("no figure: fewer than two limits were run"),
    }
    Ok(())
}

fn request(args: &SizeArgs) -> Result<SizeRequest, LabError> {
    Ok(SizeRequest {
        trace: args.trace.clone().unwrap_or_default(),
        options: args.reading.options()?,
        timing: args.reading.timing.clone(),
        kernel: args.kernel.clone(),
        machine: args.machine.clone(),
        disk: args.disk.clone(),
        mem: args.mem.clone(),
        sysctls: args.sysctls.clone(),
        seed: args.seed,
        seeds: args.seeds,
        limits: args.limits.clone(),
        points: args.points,
        resolution: args.resolution.clone(),
        slowdown: args.slowdown.clone(),
        fail_if: args.fail_if.clone(),
        headroom: args.headroom.clone(),
        sample: args.sample.clone(),
        check_sample: args.check_sample,
        verify: args.verify.clone(),
        program: args.program.clone(),
        allow_host_pressure: args.allow_host_pressure,
        interval: args.interval.clone(),
    })
}
