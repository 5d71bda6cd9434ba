//! What fio wrote with `write_iolog`: versions 2 and 3 ("Trace file format" in its HOWTO).
//!
//! ```text
//! fio version 2 iolog             fio version 3 iolog
//! FILE add|open|close             MICROSECONDS FILE add|open|close
//! FILE read|write OFFSET LENGTH   MICROSECONDS FILE read|write OFFSET LENGTH
//! FILE sync|datasync 0 0          ...
//! FILE wait MICROSECONDS 0
//! ```
//! A `wait` counts from the one before it, so that a line's time is the sum of all waits above it. The job is one
//! task; fio does not tell its threads apart. `trim` is left out and counted. Sizes of files are as far as the log goes.

use std::io::BufRead;

use super::builder::{Builder, Done, Noted};
use super::lines::Lines;
use super::{ImportError, ImportFormat, shortened};
use crate::{NONE, OperationKind, Trace, open};

/// Whether a log begins with this line.
pub(super) fn is_heading(line: &str) -> bool {
    line.starts_with("fio version ") && line.trim_end().ends_with(" iolog")
}

/// Longer operations, of a terabyte, are a mistake.
const LEN_MAX: u64 = 1 << 40;

struct Log {
    builder: Builder,
    noted: Noted,
    /// Version 3: lines begin with a time.
    has_times: bool,
    at_ns: u64,
}

/// Reads a log.
pub(super) fn read(name: &str, source: impl BufRead) -> Result<Trace, ImportError> {
    let mut lines = Lines::new(source);
    let heading = lines.next()?.unwrap_or_default();
    let has_times = match heading.trim() {
        "fio version 2 iolog" => false,
        "fio version 3 iolog" => true,
        other => {
            let problem = format!(
                "`fio version 2 iolog` or `fio version 3 iolog` was expected, not {}",
                shortened(other)
            );
            return Err(ImportError::Malformed { line: 1, problem });
        }
    };
    let mut builder = Builder::new(ImportFormat::Fio.name(), name);
    builder.task(0, NONE, None, 0);
    let mut log = Log { builder, noted: Noted::default(), has_times, at_ns: 0 };
    while let Some(line) = lines.next()? {
        if let Err(problem) = log.line(&line, lines.number) {
            if lines.is_whole {
                return Err(ImportError::Malformed { line: lines.number, problem });
            }
            log.noted.add("the log ends within a line", lines.number);
        }
    }
    log.finish(lines.number)
}

impl Log {
    fn line(&mut self, line: &str, number: u64) -> Result<(), String> {
        let mut words = line.split_ascii_whitespace();
        let mut word =
            |what: &str| words.next().ok_or_else(|| format!("{what} is missing in {}", shortened(line)));
        if line.trim().is_empty() {
            return Ok(());
        }
        if self.has_times {
            let at_us = amount(word("the time")?)?;
            let at_ns = at_us.checked_mul(1000).ok_or_else(|| format!("{at_us} us is no time"))?;
            if at_ns < self.at_ns {
                return Err(format!("{at_us} us is before the line before it"));
            }
            self.at_ns = at_ns;
        }
        let path = word("the file")?;
        let action = word("the action")?.to_owned();
        let mut range = || -> Result<(u64, u64), String> {
            let (offset, len) = (amount(word("the offset")?)?, amount(word("the length")?)?);
            let fits = offset.checked_add(len).is_some_and(|end| end <= i64::MAX.cast_unsigned());
            match (fits, len <= LEN_MAX) {
                (true, true) => Ok((offset, len)),
                (true, false) => Err(format!("nobody moves {len} bytes at once")),
                (false, _) => Err(format!("no file has bytes {offset} and {len} more")),
            }
        };
        let (kind, (offset, len)) = match action.as_str() {
            "add" => {
                self.builder.file(path);
                return Ok(());
            }
            "open" => (OperationKind::Open, (0, 0)),
            "close" => (OperationKind::Close, (0, 0)),
            "read" => (OperationKind::Read, range()?),
            "write" => (OperationKind::Write, range()?),
            "sync" | "datasync" | "sync_file_range" => (OperationKind::Fsync, (0, 0)),
            "wait" if !self.has_times => {
                let wait_us = amount(word("how long")?)?;
                self.at_ns = self.at_ns.saturating_add(wait_us.saturating_mul(1000));
                return Ok(());
            }
            "trim" => {
                self.noted.add("`trim` is left out", number);
                return Ok(());
            }
            _ => return Err(format!("`{action}` is no action of an iolog")),
        };
        let (object, _) = self.builder.file(path);
        if matches!(kind, OperationKind::Read | OperationKind::Write) {
            self.builder.at_least(object, offset + len);
        }
        let detail = if kind == OperationKind::Open { open::READ | open::WRITE } else { 0 };
        self.builder.push(Done { at_ns: self.at_ns, took_ns: 0, task: 0, kind, object, offset, len, detail });
        Ok(())
    }

    fn finish(self, lines: u64) -> Result<Trace, ImportError> {
        let mut trace = self.builder.finish(self.at_ns);
        if trace.operations.is_empty() {
            let found = format!("{lines} lines");
            return Err(ImportError::Nothing { format: ImportFormat::Fio, found });
        }
        trace.gaps.push("files are taken to be as long as the log reads and writes them".to_owned());
        trace.gaps.extend(self.noted.sentences());
        Ok(trace)
    }
}

fn amount(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no whole number"))
}
