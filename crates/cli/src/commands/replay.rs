//! `pagetide replay`: a trace on caches.

use std::path::Path;

use lab::folders::OutFolder;
use lab::replay::{self, ReplayRequest};
use lab::{LabError, Recording, check_new_folder, view};

use crate::args::{Format, ReplayArgs};
use crate::printer::{Failure, Printer};
use crate::progress::ReplayBar;
use crate::signals::stop_flag;

pub(crate) fn replay(args: &ReplayArgs, printer: &Printer) -> Result<(), Failure> {
    let request = ReplayRequest {
        trace: args.trace.clone(),
        format: args.trace_format,
        policies: args.policies.clone(),
        capacities: args.capacities.clone(),
        mems: args.mems.clone(),
        timing: args.timing,
        kernels: args.kernels.clone(),
        sysctls: args.sysctls.clone(),
    };
    if let Some(out) = &args.out {
        check_new_folder(out)?;
    }
    let bar = ReplayBar::new(printer);
    let results = replay::replay(&request, &stop_flag(), |progress| bar.advance(progress));
    bar.done();
    let results = results?;
    if let Some(out) = &args.out {
        keep(out, &results)?;
    }
    let results: Vec<&Recording> = results.iter().collect();
    let view = view(results.iter().copied(), printer.width(), args.all, Vec::new());
    let text = match args.format {
        // One kernel alone is shown with all that its run left, its time line too.
        Format::Text if results.len() == 1 && !args.mems.is_empty() => report::run_text(results[0], view),
        Format::Text => report::metrics_text(&results, view)?,
        Format::Json => report::to_json(&results)?,
        Format::Csv => report::to_csv(&results)?,
        Format::Md => report::metrics_markdown(&results, view)?,
    };
    printer.data(&text)
}

/// One cache leaves a recording, as a run does; several leave a folder of them, as a comparison.
fn keep(out: &Path, results: &[Recording]) -> Result<(), LabError> {
    if let [only] = results {
        only.write(out)?;
        return Ok(());
    }
    let folder = OutFolder::new(out)?;
    results
        .iter()
        .enumerate()
        .try_for_each(|(index, recording)| folder.keep_labelled(index, results.len(), recording))
}
