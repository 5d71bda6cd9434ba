//! A program's run to a trace: `capture` follows, `recording` writes, and what is told at the end.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, PipeReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use ::capture::{Captured, Ended, Footprint, Options, Piece};
use ::trace::{OperationKind, Trace};
use recording::{TraceError, TraceWriter};
use workload::scenario::parse_interval;

use crate::error::LabError;

/// How often what came is written in any case, so that little is lost by a kill.
const FLUSH: Duration = Duration::from_secs(10);
/// What is kept of a command's output, from its end.
const TAIL: usize = 2048;

/// Whom to follow.
#[derive(Debug, Clone)]
pub enum Whom<'a> {
    /// A command, with its arguments.
    Command(Vec<OsString>),
    /// A process that runs already, and its children.
    Process(u32),
    /// All processes of a cgroup and of those below it, by its folder or its name.
    Cgroup(&'a Path),
    /// All processes of a unit of systemd.
    Unit(&'a str),
}

/// A capture as a person asks for it.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The new file.
    pub out: &'a Path,
    /// Whom to follow.
    pub whom: Whom<'a>,
    /// How long processes that run already are followed: a time.
    pub length: Option<&'a str>,
    /// How often memory is looked at: a time, or `off`; each 100 ms where nothing is said.
    pub sample: Option<&'a str>,
    /// Tasks that may be made at most.
    pub max_tasks: Option<&'a str>,
}

/// What a capture came to.
#[derive(Debug)]
pub struct Done {
    /// What is in the trace, in lines for a person.
    pub summary: String,
    /// The command's exit status as a shell has it: 128 and the signal's number if it was killed; 0 of a process
    /// that goes on.
    pub status: u8,
    /// How it ended, where that is no plain end.
    pub told: Option<String>,
    /// Why the trace is not whole.
    pub failure: Option<LabError>,
}

/// Follows a program to its end and writes what it does to a new file. A signal whose number is put into `signal` is
/// passed on to the command; a process that ran before is let go.
///
/// # Errors
/// Nothing was started: the file exists, the program does not or cannot be followed, an option makes no sense.
pub fn run(request: &Request<'_>, signal: &AtomicUsize) -> Result<Done, LabError> {
    follow(request, options(request)?, signal)
}

/// The same of a command that has not our streams: what it came to, and the end of what it said.
///
/// # Errors
/// As [`run`].
pub fn quietly(words: &[OsString], out: &Path, signal: &AtomicUsize) -> Result<(Done, String), LabError> {
    let command = || PathBuf::from(words.first().map_or_else(OsString::new, OsString::clone));
    let (reader, writer) = io::pipe().map_err(|source| LabError::Command { command: command(), source })?;
    let whom = Whom::Command(words.to_vec());
    let request = Request { out, whom, length: None, sample: None, max_tasks: None };
    let options = Options { output: Some(Arc::new(writer.into())), ..Options::default() };
    std::thread::scope(|scope| {
        let said = scope.spawn(move || tail(reader));
        let done = follow(&request, options, signal)?;
        Ok((done, said.join().unwrap_or_default()))
    })
}

/// The end of what comes.
fn tail(mut reader: PipeReader) -> String {
    let (mut kept, mut part) = (Vec::new(), [0; TAIL]);
    loop {
        match reader.read(&mut part) {
            Ok(len @ 1..) => kept.extend_from_slice(&part[..len]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => break,
        }
        kept.drain(..kept.len().saturating_sub(TAIL));
    }
    String::from_utf8_lossy(&kept).trim().to_owned()
}

/// Follows it; what `options` holds is let go at the end.
fn follow(request: &Request<'_>, options: Options, signal: &AtomicUsize) -> Result<Done, LabError> {
    let pids = match request.whom {
        Whom::Command(_) => Vec::new(),
        Whom::Process(pid) => vec![pid],
        Whom::Cgroup(path) => ::capture::processes_of_cgroup(path)?,
        Whom::Unit(name) => ::capture::processes_of_unit(name)?,
    };
    let writer = TraceWriter::create(request.out).map_err(not_written)?;
    let mut writing = Writing::new(writer);
    let mut sink = |piece: Piece| writing.take(&piece);
    let captured = match &request.whom {
        Whom::Command(words) => {
            let (program, arguments) = words.split_first().expect("the command line asks for a command");
            ::capture::command(program, arguments, &options, signal, &mut sink)
        }
        _ => ::capture::processes(&pids, &options, signal, &mut sink),
    };
    let captured = captured?;
    let footprint = (writing.footprint.file_bytes(), writing.footprint.memory_bytes());
    let written = writing.end(&captured).map_err(not_written);
    let whole = written.is_ok();
    let failure = written.err().or_else(|| {
        let max = (captured.ended == Ended::TooManyTasks).then_some(options.tasks_max)?;
        let (out, tasks) = (request.out.display(), if max == 1 { "task" } else { "tasks" });
        Some(LabError::refused(
            format!(
                "the command was killed: it made more than {max} {tasks}; what it did until then is in `{out}`"
            ),
            "if it is meant to make so many, allow more with `--max-tasks`",
        ))
    });
    let (status, told) = status(&captured, &request.whom);
    Ok(Done {
        summary: if whole { summary(&captured, footprint, request.out) } else { String::new() },
        status,
        told,
        failure,
    })
}

fn not_written(error: TraceError) -> LabError {
    LabError::Program(Box::new(error))
}

fn options(request: &Request<'_>) -> Result<Options, LabError> {
    let mut options = Options::default();
    match request.sample {
        None => {}
        Some("off") => options.sample = None,
        Some(text) => {
            let every = parse_interval("--sample", text)?;
            options.sample = Some(Duration::from_nanos(every.get()));
        }
    }
    if let Some(text) = request.length {
        options.length = Some(Duration::from_nanos(parse_interval("--for", text)?.get()));
    }
    if let Some(text) = request.max_tasks {
        let message = || format!("`--max-tasks` takes a whole number from 1 to 10000000, not `{text}`");
        let tasks = text.parse().ok().filter(|tasks| (1..=10_000_000).contains(tasks));
        options.tasks_max = tasks.ok_or_else(|| LabError::refused(message(), "leave it out for 200000"))?;
    }
    Ok(options)
}

/// A trace that grows.
struct Writing {
    writer: Option<TraceWriter>,
    so_far: Trace,
    flushed: Instant,
    footprint: Footprint,
    failed: Option<TraceError>,
}

impl Writing {
    fn new(writer: TraceWriter) -> Self {
        Self {
            writer: Some(writer),
            so_far: Trace { source: "capture".to_owned(), ..Trace::default() },
            flushed: Instant::now(),
            footprint: Footprint::default(),
            failed: None,
        }
    }

    fn take(&mut self, piece: &Piece) -> io::Result<()> {
        self.footprint.add(piece);
        self.so_far.tasks.extend_from_slice(&piece.tasks);
        self.so_far.files.extend_from_slice(&piece.files);
        self.so_far.mappings.extend_from_slice(&piece.mappings);
        let Some(writer) = &mut self.writer else { return Err(io::ErrorKind::Other.into()) };
        let mut written = writer.append(&self.so_far, &piece.operations);
        if written.is_ok() && self.flushed.elapsed() > FLUSH {
            self.flushed = Instant::now();
            written = writer.flush(&self.so_far);
        }
        written.map_err(|error| {
            self.failed = Some(error);
            io::ErrorKind::Other.into()
        })
    }

    fn end(mut self, captured: &Captured) -> Result<(), TraceError> {
        match (self.failed.take(), self.writer.take()) {
            (Some(failed), _) => Err(failed),
            (None, Some(writer)) => writer.finish(&captured.trace),
            (None, None) => Ok(()),
        }
    }
}

/// The exit status of a shell, and a sentence where there is something to say.
fn status(captured: &Captured, whom: &Whom<'_>) -> (u8, Option<String>) {
    match captured.ended {
        Ended::Exited(status) => (u8::try_from(status).unwrap_or(1), None),
        Ended::Signalled(signal) => {
            let told = format!("it was killed by signal {signal}, its exit status is {}", 128 + signal);
            (u8::try_from(128 + signal).unwrap_or(1), Some(told))
        }
        Ended::Left => match whom {
            Whom::Process(pid) => (0, Some(format!("process {pid} goes on"))),
            Whom::Cgroup(path) => (0, Some(format!("the processes of `{}` go on", path.display()))),
            Whom::Unit(name) => (0, Some(format!("the processes of `{name}` go on"))),
            Whom::Command(_) => (1, Some("the command was killed".to_owned())),
        },
        Ended::TooManyTasks => (1, None),
    }
}

fn summary(captured: &Captured, (files, memory): (u64, u64), out: &Path) -> String {
    let Captured { trace, counts, .. } = captured;
    let of = |kind: OperationKind| counts[kind as usize];
    let mut text = format!("captured in {}\n", out.display());
    let mut line = |name: &str, what: String| {
        let _ = writeln!(text, "  {name:<11}{what}"); // A text takes all.
    };
    let (reads, writes) = (of(OperationKind::Read), of(OperationKind::Write));
    let counted = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let (reads, writes) = (counted(reads, "read"), counted(writes, "write"));
    line("operations", format!("{}: {reads}, {writes}", captured.operations()));
    line("tasks", trace.tasks.len().to_string());
    line("files", trace.files.len().to_string());
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    line("footprint", format!("{} of files, {} of anonymous memory", mib(files), mib(memory)));
    line("duration", format!("{:.3} s", trace.length_ns as f64 / 1e9));
    for gap in &trace.gaps {
        line("missing", gap.clone());
    }
    let _ = write!(text, "next: `pagetide size {}`", out.display());
    text
}
