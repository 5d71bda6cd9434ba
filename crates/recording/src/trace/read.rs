//! Reads traces, group by group; of a file that was cut short, all complete groups.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
#[cfg(unix)]
use std::os::unix::fs::FileExt;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{ChunkReader, FileReader, Length};
use parquet::file::serialized_reader::SerializedFileReader;
use trace::{Operation, Trace};

use super::{About, KEY, MARK, MARK_LEN, TRACE_SCHEMA, TraceError, columns};
use crate::partial::partial_name;
use crate::table;

/// What Parquet files begin and end with.
const MAGIC: &[u8; 4] = b"PAR1";
/// How much is searched for a mark at once.
const WINDOW: u64 = 1 << 20;

/// WebAssembly has no files: it reads no traces of programs.
#[cfg(not(unix))]
trait FileExt {
    fn read_exact_at(&self, _bytes: &mut [u8], _place: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(not(unix))]
impl FileExt for File {}

/// Whether the file at `path` begins as a trace of a program does: as Parquet.
///
/// # Errors
/// The system refuses to read it.
pub fn is_trace(path: &Path) -> io::Result<bool> {
    let mut magic = Vec::new();
    File::open(path)?.take(MAGIC.len() as u64).read_to_end(&mut magic)?;
    Ok(magic == MAGIC)
}

/// Reads a whole trace. One that was cut short is read as far as it goes and says so among its gaps.
///
/// # Errors
/// No such file, no trace, one of a newer version, damaged, or with rows that contradict each other.
pub fn read_trace(path: &Path) -> Result<Trace, TraceError> {
    let mut reader = TraceReader::open(path)?;
    let mut operations = Vec::new();
    while let Some(mut more) = reader.next_group()? {
        operations.append(&mut more);
    }
    let mut trace = reader.into_tables();
    operations.sort_by_key(|operation| operation.at_ns);
    trace.operations = operations;
    trace.check().map_err(|source| TraceError::Broken { path: path.to_owned(), source })?;
    Ok(trace)
}

/// Reads a trace group by group: for one that does not fit into memory.
#[derive(Debug)]
pub struct TraceReader {
    path: PathBuf,
    file: Arc<File>,
    groups: Groups,
    next: usize,
    tables: Trace,
}

/// Where the groups of rows are.
#[derive(Debug)]
enum Groups {
    /// In a complete file, of so many bytes.
    All { end: u64, count: usize },
    /// Each in what ends at one of these places, which is a Parquet file by itself.
    Each(Vec<u64>),
}

impl TraceReader {
    /// A reader of the file at `path`.
    ///
    /// # Errors
    /// No such file, no trace, one of a newer version, damaged.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        let unreadable = |source| TraceError::Unreadable { path: path.to_owned(), source };
        let file = File::open(path).map_err(|source| missing(path, source))?;
        if !is_trace(path).map_err(unreadable)? {
            let problem = "it does not begin as Parquet does".to_owned();
            return Err(TraceError::Foreign { path: path.to_owned(), problem });
        }
        let file = Arc::new(file);
        let end = file.metadata().map_err(unreadable)?.len();
        if let Ok(whole) = metadata(&file, end) {
            let about = about(path, &whole)?;
            let count = whole.num_row_groups();
            let tables = Trace { gaps: about.gaps.clone(), ..empty(about) };
            return Ok(Self {
                path: path.to_owned(),
                file,
                groups: Groups::All { end, count },
                next: 0,
                tables,
            });
        }
        let ends = marks(&file, end).map_err(unreadable)?;
        let Some(&last) = ends.last() else { return Err(cut(path, &file, end)) };
        let damaged = |problem| TraceError::Damaged { path: path.to_owned(), problem };
        let about = about(path, &metadata(&file, last).map_err(damaged)?)?;
        let tables = empty(about);
        Ok(Self { path: path.to_owned(), file, groups: Groups::Each(ends), next: 0, tables })
    }

    /// Tasks, files and mappings of all groups read so far, and what is known of the trace as a whole; without
    /// operations.
    pub const fn tables(&self) -> &Trace {
        &self.tables
    }

    /// [`TraceReader::tables`], at the end.
    pub fn into_tables(self) -> Trace {
        self.tables
    }

    /// The operations of the next group, in order of time; those of the next one may begin a little before.
    /// `None` at the end.
    ///
    /// # Errors
    /// The system refuses, the group is damaged.
    pub fn next_group(&mut self) -> Result<Option<Vec<Operation>>, TraceError> {
        let (end, place) = match &self.groups {
            Groups::All { end, count } if self.next < *count => (*end, self.next),
            Groups::Each(ends) if self.next < ends.len() => (ends[self.next], 0),
            Groups::All { .. } => return Ok(None),
            Groups::Each(_) => {
                self.tell_the_end();
                return Ok(None);
            }
        };
        let damaged = |problem| TraceError::Damaged { path: self.path.clone(), problem };
        let piece = Piece { file: Arc::clone(&self.file), end };
        let read = || table::read_group(&*SerializedFileReader::new(piece)?.get_row_group(place)?, end);
        let columns = table::guarded(AssertUnwindSafe(read)).map_err(damaged)?;
        columns::take(columns, &mut self.tables).map_err(damaged)?;
        self.next += 1;
        let operations = std::mem::take(&mut self.tables.operations);
        if let (Groups::Each(_), Some(last)) = (&self.groups, operations.last()) {
            self.tables.length_ns = self.tables.length_ns.max(last.at_ns.saturating_add(last.took_ns));
        }
        Ok(Some(operations))
    }

    /// A trace that was cut short says up to where it goes.
    fn tell_the_end(&mut self) {
        let at_s = self.tables.length_ns as f64 / 1e9;
        let gap =
            format!("the trace was cut short: it goes up to {at_s:.3} s, where its last complete part ends");
        if !self.tables.gaps.contains(&gap) {
            self.tables.gaps.push(gap);
        }
    }
}

fn empty(about: About) -> Trace {
    let About { source, command, length_ns, sampled_every_ns, gaps, .. } = about;
    Trace { source, command, length_ns, sampled_every_ns, gaps, ..Trace::default() }
}

fn missing(path: &Path, source: io::Error) -> TraceError {
    if source.kind() != io::ErrorKind::NotFound {
        return TraceError::Unreadable { path: path.to_owned(), source };
    }
    let partial = partial_name(path, 1).filter(|partial| partial.is_file());
    TraceError::Missing { path: path.to_owned(), partial }
}

/// What the file that ends at `end` says of itself.
fn metadata(file: &Arc<File>, end: u64) -> Result<ParquetMetaData, String> {
    let piece = Piece { file: Arc::clone(file), end };
    table::guarded(AssertUnwindSafe(|| Ok(SerializedFileReader::new(piece)?.metadata().clone())))
}

fn about(path: &Path, metadata: &ParquetMetaData) -> Result<About, TraceError> {
    let entries = metadata.file_metadata().key_value_metadata();
    let entry = entries.and_then(|entries| entries.iter().find(|entry| entry.key == KEY));
    let foreign = || {
        let problem = format!("it is Parquet of another program, without the key `{KEY}`");
        TraceError::Foreign { path: path.to_owned(), problem }
    };
    let text = entry.and_then(|entry| entry.value.as_ref()).ok_or_else(foreign)?;
    // What is newer may say anything else.
    let json: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let found = json.get("schema").and_then(serde_json::Value::as_u64);
    if let Some(found) =
        found.and_then(|found| u32::try_from(found).ok()).filter(|&found| found > TRACE_SCHEMA)
    {
        return Err(TraceError::Schema { path: path.to_owned(), found });
    }
    let damaged = |error| TraceError::Damaged { path: path.to_owned(), problem: format!("`{KEY}`: {error}") };
    serde_json::from_value(json).map_err(damaged)
}

/// Why there is no complete group: the file was cut before, or is no trace.
fn cut(path: &Path, file: &File, end: u64) -> TraceError {
    let mut magic = [0; MAGIC.len()];
    let whole = end > 8 && file.read_exact_at(&mut magic, end - 4).is_ok() && magic == *MAGIC;
    if whole {
        let problem = "its last part tells of groups of rows that are not there".to_owned();
        return TraceError::Damaged { path: path.to_owned(), problem };
    }
    TraceError::Cut { path: path.to_owned() }
}

/// The places of all marks, the first one first: where complete groups end.
fn marks(file: &File, end: u64) -> io::Result<Vec<u64>> {
    let mut places = Vec::new();
    let mut next = last_mark(file, end)?;
    while let Some((place, before)) = next {
        places.push(place);
        next = match before {
            0 => None,
            before if before < place => mark_at(file, before)?.map(|before_that| (before, before_that)),
            _ => None,
        };
    }
    places.reverse();
    Ok(places)
}

/// The last mark before `end`, and the place of the one before.
fn last_mark(file: &File, end: u64) -> io::Result<Option<(u64, u64)>> {
    let mut window_end = end;
    while window_end > 0 {
        let start = window_end.saturating_sub(WINDOW);
        // A mark may begin in this window and end in the one behind.
        let mut window = vec![0; (end.min(window_end + MARK_LEN as u64) - start) as usize];
        file.read_exact_at(&mut window, start)?;
        for offset in (0..window.len().saturating_sub(MARK.len())).rev() {
            if window[offset..].starts_with(MARK)
                && let Some(before) = mark_at(file, start + offset as u64)?
            {
                return Ok(Some((start + offset as u64, before)));
            }
        }
        window_end = start;
    }
    Ok(None)
}

/// The place of the mark before the one at `place`; `None` if there is none.
fn mark_at(file: &File, place: u64) -> io::Result<Option<u64>> {
    let mut bytes = [0; MARK_LEN];
    match file.read_exact_at(&mut bytes, place) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    Ok((bytes.starts_with(MARK) && number(24) == place).then(|| number(16)))
}

/// A file up to some place, for the library to take for a whole one.
struct Piece {
    file: Arc<File>,
    end: u64,
}

impl Length for Piece {
    fn len(&self) -> u64 {
        self.end
    }
}

impl ChunkReader for Piece {
    type T = BufReader<File>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(start))?;
        Ok(BufReader::new(file))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.end) {
            return Err(ParquetError::EOF("it ends too early".to_owned()));
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes.into())
    }
}
