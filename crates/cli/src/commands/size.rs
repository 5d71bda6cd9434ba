//! `pagetide size`: how much memory a trace needs.

use std::path::Path;

use lab::check_new_folder;
use lab::page::{check_figure, check_writable, write};
use lab::size::SizeRequest;
use report::views;

use super::plot::{PAGE, told};
use super::replay::check_stdin;
use crate::args::SizeArgs;
use crate::printer::{Failure, Printer};
use crate::progress::SizeBar;

pub(crate) fn size(args: &SizeArgs, printer: &Printer) -> Result<(), Failure> {
    let plan = request(args).plan()?;
    check_stdin(&args.trace)?;
    if let Some(plot) = &args.plot {
        check_figure(plot)?;
    }
    if let Some(output) = &args.output {
        check_writable(output)?;
    }
    if let Some(out) = &args.out {
        check_new_folder(out)?;
    }
    let bar = SizeBar::new(printer);
    let found = plan.run(0, &bar.control, args.out.as_deref());
    bar.done();
    let (sized, interrupted) = found?;
    // What has finished is shown, also when the rest has not.
    printer.document(&views::size(&sized), args.format)?;
    if let Some(output) = &args.output {
        let page = views::size_page(&sized).render(report::Format::Html, PAGE);
        told(printer, output, write(output, &page)?);
    }
    if let Some(plot) = &args.plot {
        draw(&sized, plot, printer)?;
    }
    interrupted.map_or(Ok(()), |error| Err(error.into()))
}

fn draw(sized: &report::Sized, plot: &Path, printer: &Printer) -> Result<(), Failure> {
    match views::size_page(sized).svg(None) {
        Some(svg) => told(printer, plot, write(plot, &svg)?),
        None => printer.note("no figure: fewer than two limits were run"),
    }
    Ok(())
}

fn request(args: &SizeArgs) -> SizeRequest {
    SizeRequest {
        trace: args.trace.clone(),
        options: args.reading.options(),
        timing: args.reading.timing,
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
        interval: args.interval.clone(),
    }
}
