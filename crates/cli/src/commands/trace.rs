//! `pagetide trace`: a run for other programs to show.

use std::io::{self, IsTerminal};

use lab::LabError;
use lab::trace::{TraceSink, TraceWritten, write_trace};
use report::TraceFormat;

use crate::args::{TraceArgs, TraceStyle, Verbosity};
use crate::printer::{Failure, Printer};

pub(crate) fn trace(args: &TraceArgs, printer: &Printer) -> Result<(), Failure> {
    let format = match args.format {
        TraceStyle::Perfetto => TraceFormat::Perfetto,
        TraceStyle::Ftrace => TraceFormat::Ftrace,
    };
    let written = match &args.out {
        Some(out) => write_trace(&args.folder, format, TraceSink::File(out))?,
        None if format == TraceFormat::Perfetto && io::stdout().is_terminal() => {
            let problem = "this trace is no text for a terminal: name a file with `--out`, or pipe it on";
            return Err(Failure::Usage(problem.to_owned()));
        }
        None => match write_trace(&args.folder, format, TraceSink::Stream(&mut io::stdout().lock())) {
            // Whoever reads the trace has had enough.
            Err(LabError::Unwritable { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(());
            }
            Err(LabError::Unwritable { source, .. }) => return Err(Failure::Output(source)),
            result => result?,
        },
    };
    told(args, written, printer);
    Ok(())
}

fn told(args: &TraceArgs, written: TraceWritten, printer: &Printer) {
    let TraceWritten { bytes, events, has_events } = written;
    if !has_events {
        printer.warning(
            "the recording has no events: waits are sums for each phase, and reclaim is counters only; \
             `run --events reclaim` records them",
        );
    }
    if let Some(out) = args.out.as_ref().filter(|_| printer.verbosity() > Verbosity::Quiet) {
        printer.note(&format!("`{}`: {events} events, {bytes} bytes", out.display()));
    }
}
