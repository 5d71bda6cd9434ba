//! `pagetide trace`: a run for other programs to show, and what is in a trace.

use std::io::{self, IsTerminal};
use std::path::Path;

use lab::trace::{TraceSink, TraceWritten, check_new_file, write_trace};
use lab::{Backend, LabError, run_all};
use report::TraceFormat;

use super::replay::check_stdin;
use super::{check_events, keep_runs, planned_run, refuse_options_of_runs, told_of_runs};
use crate::args::{Events, InfoArgs, TraceArgs, TraceCommand, TraceStyle};
use crate::printer::{Failure, Printer};
use crate::progress::RunProgress;

pub(crate) fn trace(args: &TraceArgs, printer: &Printer) -> Result<(), Failure> {
    match (&args.command, &args.subject) {
        (Some(TraceCommand::Info(args)), _) => info(args, printer),
        (None, Some(name)) => show(name, args, printer),
        (None, None) => Err(Failure::Usage("name a recording or a workload".to_owned())),
    }
}

fn info(args: &InfoArgs, printer: &Printer) -> Result<(), Failure> {
    if let Some(option @ ("--timing" | "--warmup")) = args.reading.given() {
        return Err(Failure::Usage(format!("`{option}` is for a replay; all of the trace is counted")));
    }
    check_stdin(&args.trace)?;
    let info = lab::program_file::info(&args.trace, &args.reading.options()?)?;
    printer.document(&report::views::trace_info(&info), args.format)
}

fn show(name: &str, args: &TraceArgs, printer: &Printer) -> Result<(), Failure> {
    let format = match args.format {
        TraceStyle::Perfetto => TraceFormat::Perfetto,
        TraceStyle::Ftrace => TraceFormat::Ftrace,
        TraceStyle::TraceDat => TraceFormat::TraceDat,
    };
    match &args.out {
        Some(out) => check_new_file(out)?,
        None if format != TraceFormat::Ftrace && !args.scenario.dry_run && io::stdout().is_terminal() => {
            let problem = "this trace is no text for a terminal: name a file with `--out`, or pipe it on";
            return Err(Failure::Usage(problem.to_owned()));
        }
        None => {}
    }
    let subject = Path::new(name);
    if subject.is_dir() {
        refuse_options_of_runs(name, args.kernel.is_some(), &args.scenario)?;
        if args.events.is_some() {
            let problem = format!("`--events` is for a run; `{name}` has the events it has");
            return Err(Failure::Usage(problem));
        }
        return write(subject, args, format, printer);
    }
    let folder = lab::trace::scratch()?;
    let run = folder.path().join("run");
    if run_into(&run, name, args, printer)? { write(&run, args, format, printer) } else { Ok(()) }
}

/// Runs the scenario once, with events, into the new folder `run`; false if it was only printed.
fn run_into(run: &Path, subject: &str, args: &TraceArgs, printer: &Printer) -> Result<bool, Failure> {
    let TraceArgs { kernel, scenario, .. } = args;
    let planned = planned_run("trace", subject, kernel.as_ref(), scenario, printer)?;
    let Some((planned, policy)) = planned else { return Ok(false) };
    let plan = [planned];
    // Of real kernels there are none: the trace says so.
    let by_default = if plan[0].scenario.backend == Backend::Sim { Events::Reclaim } else { Events::None };
    let events = args.events.unwrap_or(by_default);
    check_events(events, &plan)?;
    told_of_runs(&plan, &policy, printer)?;
    let mut progress = RunProgress::new(plan.len(), policy, printer);
    let kept = run.to_owned();
    progress.control.kept = keep_runs(events, move |_| kept.clone());
    // Simulated runs are there already, real ones come when they have ended.
    let batch = run_all(&plan, 1, &progress.control, |_, recording| {
        recording.write(run).map(drop).map_err(Into::into)
    });
    progress.done();
    batch?.into_result()?;
    Ok(true)
}

fn write(folder: &Path, args: &TraceArgs, format: TraceFormat, printer: &Printer) -> Result<(), Failure> {
    let written = match &args.out {
        Some(out) => write_trace(folder, format, TraceSink::File(out))?,
        None => match write_trace(folder, format, TraceSink::Stream(&mut io::stdout().lock())) {
            // Whoever reads the trace has had enough.
            Err(LabError::Unwritable { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => {
                return Ok(());
            }
            Err(LabError::Unwritable { source, .. }) => return Err(Failure::Output(source)),
            result => result?,
        },
    };
    let TraceWritten { bytes, events, has_events } = written;
    if !has_events {
        printer.warning(
            "the recording has no events: waits are sums for each phase, and reclaim is counters only; \
             `run --events reclaim` records them",
        );
    }
    if let Some(out) = &args.out {
        printer.note(&format!(
            "`{}`: {} KiB, from {events} recorded events",
            out.display(),
            bytes.div_ceil(1024)
        ));
    }
    Ok(())
}
