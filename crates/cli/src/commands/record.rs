//! `pagetide record`: the monitors around any command.
//!
//! Standard output is the command's own; what was recorded is told on standard error.

use lab::{check_new_folder, view};
use report::views;

use crate::args::RecordArgs;
use crate::printer::{Failure, Printer};
use crate::signals::last_signal;

/// Returns the command's exit status.
pub(crate) fn record(args: &RecordArgs, printer: &Printer) -> Result<u8, Failure> {
    if let Some(out) = &args.out {
        check_new_folder(out)?;
    }
    let (recording, status) = lab::real::record(&args.command, args.interval.as_deref(), &last_signal())?;
    match &args.out {
        Some(out) => {
            recording.write(out)?;
            printer.note(&format!("recorded in {}", out.display()));
        }
        None => {
            let document = views::run(&recording, None, &view([&recording], args.all, Vec::new()));
            printer.line(document.render(args.format.into(), printer.width()).trim_end());
        }
    }
    // A shell's statuses fit a byte; anything else is a failure of no known kind.
    Ok(u8::try_from(status).unwrap_or(1))
}
