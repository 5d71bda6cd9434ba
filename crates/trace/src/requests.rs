//! Recorded requests: readers that stream a trace as [`Request`]s, whatever its format.
//!
//! [`TraceReader::new`] looks at the first bytes and picks the format, unless it is told one;
//! then it is an iterator. The file is never held in memory, and no input makes it panic: what
//! cannot be read is a [`TraceError`] with its line or byte and what to do about it.
//!
//! Times must not decrease, and a trace has at least one request: anything else is an error, too.
//!
//! Map: `source` decompresses; `input` buffers bytes and cuts lines; `detect` names the format;
//! `columns` tells by a heading which column is what; `csv` and `oracle` turn lines and records into
//! requests; `error` is what can be wrong. Left out: formats with strings as keys.

mod columns;
mod csv;
mod detect;
mod error;
mod input;
mod oracle;
mod request;
mod source;
pub mod zipf;

use std::fs::File;
use std::io::Read;
use std::path::Path;

pub use error::{Expected, FILE_MAX, Place, TraceError, TraceProblem};
pub use request::{Request, RequestKind, TraceFormat};

use columns::Columns;
use detect::Detected;
use input::Input;

/// What `source` holds, decompressed on the way if it is gzip or zstd: for traces of other kinds.
///
/// # Errors
/// It cannot be read.
pub fn decompressed<R: Read>(source: R) -> std::io::Result<impl Read> {
    source::Source::new(source)
}

/// Streams the requests of a trace, in the order of the file. After an error it ends.
#[derive(Debug)]
pub struct TraceReader<R> {
    input: Input<R>,
    /// None for records.
    columns: Option<Columns>,
    seen: csv::Seen,
    had_heading: bool,
    requests: u64,
    /// Time of the request handed out last.
    time_ns: u64,
    unsorted: bool,
    ended: bool,
}

impl TraceReader<File> {
    /// Opens a trace file; `format` overrides what its content looks like.
    ///
    /// # Errors
    /// The file cannot be opened or read, is empty, or is of no known format.
    pub fn open(path: &Path, format: Option<TraceFormat>) -> Result<Self, TraceError> {
        let file = File::open(path).map_err(|error| TraceError::open(path, error))?;
        Self::new(file, format)
    }
}

impl<R: Read> TraceReader<R> {
    /// Reads a trace from `source`, which need not be buffered; `format` overrides what its
    /// content looks like.
    ///
    /// # Errors
    /// It cannot be read, is empty, or is of no known format.
    pub fn new(source: R, format: Option<TraceFormat>) -> Result<Self, TraceError> {
        let mut input = Input::new(source)?;
        let head = input.peek()?;
        if head.is_empty() {
            return Err(TraceError::at(Place::Byte(0), TraceProblem::Empty));
        }
        let (columns, heading) = match detect::detect(head, format)? {
            Detected::Text { columns, heading } => (Some(columns), heading),
            Detected::Records => (None, false),
        };
        Ok(Self {
            input,
            columns,
            seen: csv::Seen::nothing(heading),
            had_heading: heading,
            requests: 0,
            time_ns: 0,
            unsorted: false,
            ended: false,
        })
    }

    /// With `true`, times may decrease from one request to the next.
    #[must_use]
    pub fn unsorted(self, unsorted: bool) -> Self {
        Self { unsorted, ..self }
    }

    /// The format in use.
    pub fn format(&self) -> TraceFormat {
        self.columns.as_ref().map_or(TraceFormat::OracleGeneral, Columns::format)
    }

    /// Records so far that neither read nor write, such as a cache flush, and were left out.
    pub fn skipped(&self) -> u64 {
        self.seen.skipped
    }

    /// Bytes of the source read so far, compressed or not: for progress.
    pub fn bytes_read(&self) -> u64 {
        self.input.bytes_taken()
    }

    /// Where the request handed out last stands.
    pub fn place(&self) -> Place {
        match self.columns {
            Some(_) => self.input.line_place(),
            None => Place::Byte(self.input.position().saturating_sub(oracle::RECORD_LEN as u64)),
        }
    }

    /// The next request; `None` at the end.
    #[inline]
    fn read_next(&mut self) -> Result<Option<Request>, TraceError> {
        let next = match &self.columns {
            None => oracle::next(&mut self.input)?,
            Some(columns) => csv::next(&mut self.input, columns, &mut self.seen)?,
        };
        let Some(request) = next else { return self.end() };
        if request.time_ns < self.time_ns && !self.unsorted {
            let problem = TraceProblem::Backwards { time_ns: request.time_ns, before_ns: self.time_ns };
            return Err(TraceError::at(self.place(), problem));
        }
        self.time_ns = request.time_ns;
        self.requests += 1;
        Ok(next)
    }

    /// A trace without any request is a mistake.
    #[cold]
    fn end(&self) -> Result<Option<Request>, TraceError> {
        let problem = match self.seen.skipped {
            _ if self.requests > 0 => return Ok(None),
            0 if self.had_heading => TraceProblem::OnlyHeading,
            0 => TraceProblem::Empty,
            skipped => TraceProblem::OnlySkipped(skipped),
        };
        Err(TraceError::at(self.place(), problem))
    }
}

impl<R: Read> Iterator for TraceReader<R> {
    type Item = Result<Request, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read_next().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}
