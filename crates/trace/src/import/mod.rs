//! Logs of other programs as a [`Trace`]: `strace`, `perf trace`, `blkparse`, fio and DAMON, each by its documented
//! layout.
//!
//! [`ImportFormat::of`] tells a log by its first lines, [`import`] reads it. A line that cannot be read is an error
//! where the format writes nothing but what is documented, and a sentence in [`Trace::gaps`] where the log may hold
//! other text between its lines (`strace` and `perf trace` on a terminal), or where the log ends within it.
//!
//! The whole trace is in memory: some 60 bytes an operation. Left out: how a log is compressed, and where it comes
//! from. Next: [`builder`], which all share; requests to a device that are no log are read by [`crate::requests`].

mod blkparse;
mod builder;
mod damon;
mod fio;
mod lines;
mod perf;
mod strace;

use std::io::BufRead;

use thiserror::Error;

use crate::Trace;

/// Which program wrote a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportFormat {
    /// `strace -f -tt -y`, with or without `-T`; `-ttt` and `-r` as well.
    Strace,
    /// `perf trace` of a program or a machine.
    PerfTrace,
    /// `blkparse` in its own format.
    Blkparse,
    /// fio's `write_iolog`, version 2 or 3.
    Fio,
    /// DAMON's regions: a file of `damo record`, or the tracepoint `damon:damon_aggregated` as text.
    Damon,
}

impl ImportFormat {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Strace, Self::PerfTrace, Self::Blkparse, Self::Fio, Self::Damon];

    /// The name on the command line, and [`Trace::source`].
    pub const fn name(self) -> &'static str {
        match self {
            Self::Strace => "strace",
            Self::PerfTrace => "perf-trace",
            Self::Blkparse => "blkparse",
            Self::Fio => "fio",
            Self::Damon => "damon",
        }
    }

    /// Which one a log is that begins with `head`, some kilobytes of it; `None` if it looks like none.
    pub fn of(head: &[u8]) -> Option<Self> {
        /// More lines would tell no more.
        const LINES_MAX: usize = 64;
        if damon::is_damo(head) {
            return Some(Self::Damon);
        }
        let text = String::from_utf8_lossy(head);
        if fio::is_heading(text.lines().next().unwrap_or_default()) {
            return Some(Self::Fio);
        }
        text.lines().take(LINES_MAX).find_map(|line| {
            let is_strace = strace::looks_like(line);
            let is_perf = perf::looks_like(line);
            let is_blkparse = blkparse::looks_like(line);
            let is_traced = is_strace.then_some(Self::Strace).or(is_perf.then_some(Self::PerfTrace));
            let is_damon = damon::looks_like(line);
            is_traced.or(is_blkparse.then_some(Self::Blkparse)).or(is_damon.then_some(Self::Damon))
        })
    }
}

/// Why a log cannot be read.
#[derive(Debug, Error)]
pub enum ImportError {
    /// The system refused.
    #[error("line {line}: cannot be read: {source}")]
    Unreadable {
        /// The line, from 1.
        line: u64,
        /// Why.
        source: std::io::Error,
    },
    /// A line is not as the format has it.
    #[error("line {line}: {problem}")]
    Malformed {
        /// The line, from 1.
        line: u64,
        /// What is wrong, with what was found.
        problem: String,
    },
    /// A file that is not made of lines is not as its program writes it.
    #[error("{place}: {problem}")]
    Document {
        /// Where in it.
        place: String,
        /// What is wrong, with what was found.
        problem: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// There is nothing in it that touches a file or memory.
    #[error("read as a log of {}: no operation on a file or on memory is in it; {found}", format.name())]
    Nothing {
        /// How it was read.
        format: ImportFormat,
        /// What there is instead.
        found: String,
    },
}

impl ImportError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Unreadable { .. } => None,
            Self::Document { remedy, .. } => Some(remedy),
            Self::Malformed { line: 0 | 1, .. } => Some("name a log of this form, or write it again"),
            Self::Malformed { .. } => Some("cut the log before that line, or write it again"),
            Self::Nothing { format: ImportFormat::Strace, .. } => {
                Some("write it with `strace -f -tt -T -y -o LOG COMMAND`")
            }
            Self::Nothing { format: ImportFormat::PerfTrace, .. } => {
                Some("write it with `perf trace -o LOG COMMAND`")
            }
            Self::Nothing { format: ImportFormat::Blkparse, .. } => {
                Some("write it with `blkparse -i DEVICE`, in its own format")
            }
            Self::Nothing { format: ImportFormat::Fio, .. } => Some("write it with `write_iolog=LOG` of fio"),
            Self::Nothing { format: ImportFormat::Damon, .. } => Some(
                "write it with `damo record`, or print events of `perf record -a -e damon:damon_aggregated` with \
                 `perf script`",
            ),
        }
    }
}

/// What there is in a log of so many lines.
fn found(lines: u64, calls: u64) -> String {
    match (lines, calls) {
        (0, _) => "it is empty".to_owned(),
        (lines, 0) => format!("none of its lines is a call; there are {lines}"),
        (lines, calls) => format!("of its {lines} lines only {calls} can be read as calls"),
    }
}

/// Reads a log to its end; `name` is what to call it where it does not say which command it is of.
///
/// # Errors
/// See [`ImportError`]. What is returned passes [`Trace::check`].
pub fn import(format: ImportFormat, name: &str, source: impl BufRead) -> Result<Trace, ImportError> {
    let trace = match format {
        ImportFormat::Strace => strace::read(name, source),
        ImportFormat::PerfTrace => perf::read(name, source),
        ImportFormat::Blkparse => blkparse::read(name, source),
        ImportFormat::Fio => fio::read(name, source),
        ImportFormat::Damon => damon::read(name, source),
    }?;
    debug_assert!(trace.check().is_ok());
    Ok(trace)
}

/// A line shortened for a message.
fn shortened(line: &str) -> String {
    /// Enough to find it again.
    const CHARS_MAX: usize = 60;
    let mut chars = line.trim().chars();
    let head: String = chars.by_ref().take(CHARS_MAX).collect();
    if chars.next().is_some() { format!("`{head}...`") } else { format!("`{head}`") }
}
