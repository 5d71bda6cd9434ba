//! `pagetide trace`: a run for other programs to show.

use std::io::{self, IsTerminal};

use lab::LabError;
use lab::trace::{TraceSink, TraceWritten, write_trace};

use crate::args::{TraceArgs, Verbosity};
use crate::printer::{Failure, Printer};

pub(crate) fn trace(args: &TraceArgs, printer: &Printer) -> Result<(), Failure> {
    let Some(out) = &args.out else {
        if io::stdout().is_terminal() {
            let problem = "a trace is no text for a terminal: name a file with `--out`, or pipe it on";
            return Err(Failure::Usage(problem.to_owned()));
        }
        return match write_trace(&args.folder, TraceSink::Stream(&mut io::stdout().lock())) {
            // Whoever reads the trace has had enough.
            Err(LabError::Unwritable { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(LabError::Unwritable { source, .. }) => Err(Failure::Output(source)),
            result => Ok(result.map(drop)?),
        };
    };
    let TraceWritten { bytes, events } = write_trace(&args.folder, TraceSink::File(out))?;
    if printer.verbosity() > Verbosity::Quiet {
        printer.note(&format!("`{}`: {bytes} bytes, {events} events", out.display()));
    }
    Ok(())
}
