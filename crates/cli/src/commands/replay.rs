//! `pagetide replay`: a trace on caches.

use lab::replay::{self, PageCacheRequest, ReplayRequest};
use lab::{Recording, Request, check_new_folder};

use crate::args::{Format, ReplayArgs};
use crate::printer::{Failure, Printer};
use crate::progress::{ReplayBar, stop_flag};

pub(crate) fn replay(args: &ReplayArgs, printer: &Printer) -> Result<(), Failure> {
    if args.mem.is_some() { page_cache(args, printer) } else { on_policies(args, printer) }
}

fn page_cache(args: &ReplayArgs, printer: &Printer) -> Result<(), Failure> {
    if let Some(out) = &args.out {
        check_new_folder(out)?;
    }
    let machine = Request {
        kernel: args.kernel.clone(),
        machine: args.machine.clone(),
        mem: args.mem.clone(),
        sysctls: args.sysctls.clone(),
        seed: args.seed,
        ..Request::of_a_machine()
    };
    let words: Vec<String> = std::env::args().skip(1).collect();
    let request = PageCacheRequest {
        trace: args.trace.clone(),
        format: args.trace_format,
        timing: args.timing.unwrap_or_default(),
        machine,
        command: format!("pagetide {}", words.join(" ")),
    };
    let bar = ReplayBar::new(printer);
    let watched = bar.simulated();
    let recording = replay::page_cache(&request, &stop_flag(), move |progress| watched(progress.now));
    bar.done();
    let recording = recording?;
    if let Some(out) = &args.out {
        recording.write(out)?;
    }
    printer.data(&match args.format {
        Format::Text => report::run_text(&recording, printer.width()),
        Format::Json => report::to_json(&[&recording])?,
        Format::Csv => report::to_csv(&[&recording])?,
        Format::Md => report::metrics_markdown(&[&recording])?,
    })
}

fn on_policies(args: &ReplayArgs, printer: &Printer) -> Result<(), Failure> {
    let request = ReplayRequest {
        trace: args.trace.clone(),
        format: args.trace_format,
        policies: args.policies.clone(),
        capacities: args.capacities.clone(),
    };
    let bar = ReplayBar::new(printer);
    let results = replay::replay(&request, &stop_flag(), |progress| bar.advance(progress));
    bar.done();
    let results = results?;
    let results: Vec<&Recording> = results.iter().collect();
    let text = match args.format {
        Format::Text => report::metrics_text(&results, printer.width())?,
        Format::Json => report::to_json(&results)?,
        Format::Csv => report::to_csv(&results)?,
        Format::Md => report::metrics_markdown(&results)?,
    };
    printer.data(&text)
}
