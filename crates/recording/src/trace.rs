//! What a program did, on disk: one Parquet file that grows while the program runs.
//!
//! A row is an operation. Tasks, files and mappings are rows, too (`operation` is `task`, `file` or `mapping`), in
//! the group of rows in which an operation names them first. So each group can be read with those before it, and
//! whoever opens the file in pandas, polars or DuckDB has everything in one table; what is known of the trace as a
//! whole stands in the file's key `pagetide.trace` as JSON.
//!
//! | column | what it holds |
//! |---|---|
//! | `time_us` | when the operation began, since the trace's beginning |
//! | `task`, `process` | numbers of the task that did it and of the first task of its process |
//! | `program` | what the task was called then |
//! | `operation` | [`trace::OperationKind::name`], or a row of a table |
//! | `file`, `path` | the file that it was done to, or the mapping is of |
//! | `mapping` | the mapping that it was done to |
//! | `other_task` | the task that it made; of a `task`, the one that made it |
//! | `offset`, `length` | bytes; of a `file`, its size; of a `mapping`, where in the file it begins, and its size |
//! | `think_us`, `took_us` | computing before it, and how long it took |
//! | `detail` | [`trace::Operation::detail`]; of a `task`, its thread ID |
//! | | of a `file`, 1 if it is in memory only; of a `mapping`, 1 if shared, 2 if writable, 4 if executable |
//!
//! Times are rounded to microseconds: whoever follows a program adds some to each of its calls, and a random
//! nanosecond takes as much room as all else, but for the offset. So a random read takes nine bytes, and a day of
//! a thousand operations a second 0.8 GB.
//!
//! A file that is cut short is read up to its last complete group: each group is followed by a footer of Parquet
//! for itself alone and by a mark ([`MARK`]), which Parquet's readers pass over. Until it is finished the file is
//! called `NAME.partial`, and so it stays when the program, its writer or the disk comes to an end.
//!
//! The writer holds one group in memory, and the tables. Determinism: the same operations give the same bytes,
//! however they were handed over, unless [`TraceWriter::flush`] was called in between.
//!
//! Next: `trace/columns.rs`, rows to columns and back; `trace/read.rs`, the reader; `growing.rs`, recordings that
//! grow.

mod columns;
mod error;
mod read;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::file::metadata::{
    FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::file::writer::SerializedFileWriter;
use serde::{Deserialize, Serialize};
use trace::{Operation, Trace};

use self::columns::Rows;
pub use self::error::TraceError;
pub use self::read::{TraceReader, is_trace, read_trace};
use crate::partial::partial_name;
use crate::table;

/// The version of the format, in which all traces are written. A reader refuses any that is newer.
pub const TRACE_SCHEMA: u32 = 1;
/// The key of the file's metadata under which [`About`] stands.
const KEY: &str = "pagetide.trace";
/// What follows each group of rows and its footer; then come, in eight bytes each, the place of the mark before
/// (0 if none) and its own.
const MARK: &[u8; 16] = b"pagetide: chunk\n";
/// Bytes of a mark and its two numbers.
const MARK_LEN: usize = 32;
/// Operations of the first group; each further one has twice as many as the one before.
const FIRST_GROUP: usize = 4096;
/// Operations of a group at most: some ten megabytes of memory.
const LARGEST_GROUP: usize = 1 << 17;

/// What is known of a trace as a whole.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct About {
    schema: u32,
    source: String,
    command: String,
    length_ns: u64,
    sampled_every_ns: u64,
    gaps: Vec<String>,
    /// Whether the trace ends here as its writer meant it to.
    complete: bool,
}

impl About {
    fn of(trace: &Trace, complete: bool) -> Self {
        let Trace { source, command, length_ns, sampled_every_ns, gaps, .. } = trace;
        Self {
            schema: TRACE_SCHEMA,
            source: source.clone(),
            command: command.clone(),
            length_ns: *length_ns,
            sampled_every_ns: *sampled_every_ns,
            gaps: gaps.clone(),
            complete,
        }
    }

    fn entry(&self) -> KeyValue {
        let json = serde_json::to_string(self).expect("plain data");
        KeyValue::new(KEY.to_owned(), json)
    }
}

/// Writes a whole trace as a new file.
///
/// # Errors
/// Something is there already, a row is broken, the system refuses.
pub fn write_trace(path: &Path, trace: &Trace) -> Result<(), TraceError> {
    let mut writer = TraceWriter::create(path)?;
    writer.append(trace, &trace.operations)?;
    writer.finish(trace)
}

/// Writes a trace while its operations come.
///
/// Dropped without [`TraceWriter::finish`], it leaves `NAME.partial` if a group of rows is complete, and nothing
/// otherwise.
#[derive(Debug)]
pub struct TraceWriter {
    target: PathBuf,
    /// The file while it grows.
    partial: PathBuf,
    /// Made with the first group; `None` once it failed or ended, too.
    file: Option<SerializedFileWriter<File>>,
    groups: usize,
    /// Operations that are in no group yet.
    pending: Vec<Operation>,
    /// With how many there will be a group.
    room: usize,
    rows: Rows,
    /// How many operations came.
    taken: u64,
    /// Where the last mark is.
    last_mark: u64,
    finished: bool,
}

impl TraceWriter {
    /// A writer of the new file `path`, in a folder that exists.
    ///
    /// # Errors
    /// Something is there already, the system refuses.
    pub fn create(path: &Path) -> Result<Self, TraceError> {
        if path.symlink_metadata().is_ok() {
            return Err(TraceError::Exists { path: path.to_owned() });
        }
        let (partial, file) = create_partial(path)?;
        let rows = Rows::default();
        let columns = rows.columns(&Trace::default(), &[]);
        let writer = SerializedFileWriter::new(file, table::schema(&columns), table::properties(&columns));
        let mut new = Self {
            target: path.to_owned(),
            partial,
            file: None,
            groups: 0,
            pending: Vec::new(),
            room: FIRST_GROUP,
            rows,
            taken: 0,
            last_mark: 0,
            finished: false,
        };
        new.file = Some(writer.map_err(|error| new.refused(error))?);
        Ok(new)
    }

    /// The file while it grows.
    pub fn path(&self) -> &Path {
        &self.partial
    }

    /// Takes more operations; `so_far` has the tasks, files and mappings of all calls before, and perhaps more. A
    /// task may have got another name. Operations may be a little out of order: the reader puts them in order.
    ///
    /// # Errors
    /// An operation names what `so_far` does not have, the system refuses. Then nothing more can be written, and
    /// what is complete stays in `NAME.partial`.
    pub fn append(&mut self, so_far: &Trace, operations: &[Operation]) -> Result<(), TraceError> {
        let mut operations = operations;
        while !operations.is_empty() {
            let (now, later) = operations.split_at(operations.len().min(self.room - self.pending.len()));
            for operation in now {
                so_far.check_operation(operation).map_err(|what| {
                    let place = format!("operation {}", self.taken);
                    self.broken(trace::BrokenTrace { place, what })
                })?;
                self.taken += 1;
            }
            self.pending.extend_from_slice(now);
            if self.pending.len() == self.room {
                self.flush(so_far)?;
                self.room = (self.room * 2).min(LARGEST_GROUP);
            }
            operations = later;
        }
        Ok(())
    }

    /// Writes what came since the last group as one, so that it survives whatever happens next. Many small groups
    /// make a larger file: some ten seconds apart they do not matter.
    ///
    /// # Errors
    /// As [`TraceWriter::append`].
    pub fn flush(&mut self, so_far: &Trace) -> Result<(), TraceError> {
        so_far.check_tables().map_err(|broken| self.broken(broken))?;
        if self.pending.is_empty() && !self.rows.has_news(so_far) {
            return Ok(());
        }
        let mut operations = std::mem::take(&mut self.pending);
        operations.sort_by_key(|operation| operation.at_ns);
        let columns = self.rows.columns(so_far, &operations);
        operations.clear();
        self.pending = operations;
        self.rows.wrote(so_far);
        self.write_group(&columns, &About::of(so_far, false)).map_err(|error| self.refused(error))?;
        self.groups += 1;
        Ok(())
    }

    fn write_group(&mut self, columns: &[table::Column], about: &About) -> Result<(), ParquetError> {
        let gone = || ParquetError::General("a write before this one failed".to_owned());
        let mut file = self.file.take().ok_or_else(gone)?; // Put back when all went well.
        let group = table::write_group(&mut file, columns)?;
        file.write_all(&footer(&file, &group, about)?)?;
        let place = file.bytes_written() as u64;
        file.write_all(MARK)?;
        file.write_all(&self.last_mark.to_le_bytes())?;
        file.write_all(&place.to_le_bytes())?;
        file.flush()?;
        self.last_mark = place;
        self.file = Some(file);
        Ok(())
    }

    /// Completes the file and gives it its name.
    ///
    /// # Errors
    /// As [`TraceWriter::append`]; somebody took the name meanwhile.
    pub fn finish(mut self, whole: &Trace) -> Result<(), TraceError> {
        self.flush(whole)?;
        self.complete(whole).map_err(|error| self.refused(error))?;
        self.groups += 1; // All is there, only the name is not to be had.
        if self.target.symlink_metadata().is_ok() {
            let source = Box::new(TraceError::Exists { path: self.target.clone() });
            return Err(TraceError::Kept { path: self.partial.clone(), source });
        }
        std::fs::rename(&self.partial, &self.target).map_err(|error| self.refused(error.into()))?;
        self.finished = true;
        Ok(())
    }

    fn complete(&mut self, whole: &Trace) -> Result<(), ParquetError> {
        let gone = || ParquetError::General("a write before this one failed".to_owned());
        let mut file = self.file.take().ok_or_else(gone)?;
        file.append_key_value_metadata(About::of(whole, true).entry());
        file.into_inner()?.sync_all()?;
        Ok(())
    }

    fn refused(&mut self, error: ParquetError) -> TraceError {
        let source = match error {
            ParquetError::External(error) => std::io::Error::other(error),
            other => std::io::Error::other(other),
        };
        self.kept(TraceError::Unwritable { path: self.partial.clone(), source })
    }

    fn broken(&self, source: trace::BrokenTrace) -> TraceError {
        self.kept(TraceError::Broken { path: self.target.clone(), source })
    }

    /// The error, and what is left in spite of it.
    fn kept(&self, error: TraceError) -> TraceError {
        if self.groups == 0 {
            return error;
        }
        TraceError::Kept { path: self.partial.clone(), source: Box::new(error) }
    }
}

impl Drop for TraceWriter {
    fn drop(&mut self) {
        if !self.finished && self.groups == 0 {
            let _ = std::fs::remove_file(&self.partial); // Nobody wants an empty file; nobody can be told either.
        }
    }
}

/// The file in which a trace grows; further numbers are of others that were killed, or write at the same time.
fn create_partial(path: &Path) -> Result<(PathBuf, File), TraceError> {
    let unwritable = |path: &Path, source| TraceError::Unwritable { path: path.to_owned(), source };
    for number in 1_u32.. {
        let name = || std::io::Error::new(std::io::ErrorKind::InvalidInput, "this is no name of a file");
        let partial = partial_name(path, number).ok_or_else(|| unwritable(path, name()))?;
        match File::create_new(&partial) {
            Ok(file) => return Ok((partial, file)),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(unwritable(path, source)),
        }
    }
    unreachable!("four billion writers at once")
}

/// A footer of Parquet for one group of rows alone.
fn footer(
    file: &SerializedFileWriter<File>,
    group: &RowGroupMetaData,
    about: &About,
) -> Result<Vec<u8>, ParquetError> {
    let schema = Arc::new(file.schema_descr().clone());
    let entries = Some(vec![about.entry()]);
    let whole = FileMetaData::new(1, group.num_rows(), Some("pagetide".to_owned()), entries, schema, None);
    let metadata = ParquetMetaData::new(whole, vec![group.clone()]);
    let mut bytes = Vec::new();
    ParquetMetaDataWriter::new(&mut bytes, &metadata).finish()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use trace::{NONE, OperationKind, TraceTask};

    use super::*;

    /// `/dev/full` takes nothing.
    #[test]
    fn a_full_disk_is_told() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a.trace");
        let task = TraceTask { parent: NONE, name: "serve".to_owned(), ..TraceTask::default() };
        let exit = Operation {
            at_ns: 1000,
            think_ns: 0,
            took_ns: 0,
            task: 0,
            kind: OperationKind::Exit,
            object: NONE,
            offset: 0,
            len: 0,
            detail: 0,
        };
        let whole = Trace { tasks: vec![task], operations: vec![exit; 10], ..Trace::default() };
        let mut writer = TraceWriter::create(&path).unwrap();
        writer.append(&whole, &whole.operations).unwrap();
        *writer.file.as_mut().unwrap().inner_mut() =
            std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let error = writer.flush(&whole).unwrap_err();
        let told = format!("{error}\n{}", error.hint()).replace(&parent.path().display().to_string(), "P");
        insta::assert_snapshot!(told, @"
        cannot write `P/a.trace.partial`: No space left on device (os error 28)
        check permissions and free space there, or name another file
        ");
        assert!(writer.finish(&whole).is_err());
    }
}
