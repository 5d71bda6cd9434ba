//! One run as a trace for other programs: read from a recording, written to a file or a stream.
//!
//! A file is written beside its place and moved there when it is whole, and nothing that exists is overwritten. Events
//! are read and written chunk by chunk, so that memory does not grow with the run. Left out: what is drawn, see
//! `pagetide-report`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use recording::{EventReader, Recording};
use report::{RunTrace, TraceFormat};

use crate::error::LabError;
use crate::keep::folders::recordings_in;

/// Where a trace goes.
pub enum TraceSink<'a> {
    /// A new file.
    File(&'a Path),
    /// Somewhere that takes bytes, such as standard output.
    Stream(&'a mut dyn Write),
}

/// What a trace has become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceWritten {
    /// Bytes of the trace.
    pub bytes: u64,
    /// Events that the recording had.
    pub events: u64,
    /// Whether it has events at all: without, waits are sums.
    pub has_events: bool,
}

/// The recording that `folder` is, or the only one in it.
///
/// # Errors
/// It is none, or has several: a trace is of one run.
pub fn one_recording(folder: &Path) -> Result<PathBuf, LabError> {
    let mut found = recordings_in(folder)?;
    match found.len() {
        1 => Ok(found.remove(0)),
        count => Err(LabError::refused(
            format!("`{}` has {count} recordings, and this is about one", folder.display()),
            format!("name one, such as `{}`", found[0].display()),
        )),
    }
}

/// Writes the recording in `folder` as a trace.
///
/// # Errors
/// No recording, several, or one that cannot be read, or that has no events where there is nothing without them; a
/// file that exists, or cannot be written. Nothing is left behind then. A stream's own errors come as they are in
/// [`LabError::Unwritable`].
pub fn write_trace(
    folder: &Path,
    format: TraceFormat,
    sink: TraceSink<'_>,
) -> Result<TraceWritten, LabError> {
    let folder = one_recording(folder)?;
    let recording = Recording::read(&folder)?;
    if EventReader::open(&folder)?.is_none() && format != TraceFormat::Perfetto {
        return Err(LabError::refused(
            format!("`{}` has no events, and this form of a trace has nothing else", folder.display()),
            "`pagetide run WORKLOAD --events reclaim --out DIR` records them",
        ));
    }
    match sink {
        TraceSink::Stream(out) => {
            written(&folder, &recording, format, out, |source| unwritable(None, source))
        }
        TraceSink::File(path) => {
            check_new_file(path)?;
            let failed = |source| unwritable(Some(path), source);
            let mut file = new_file_beside(path).map_err(failed)?;
            let done = written(&folder, &recording, format, file.as_file_mut(), failed)?;
            file.as_file().sync_all().map_err(failed)?;
            file.persist_noclobber(path).map_err(|error| match error.error.kind() {
                io::ErrorKind::AlreadyExists => LabError::file_exists(path),
                _ => failed(error.error),
            })?;
            Ok(done)
        }
    }
}

/// A folder for the recording of a run that is made for its trace only; removed when dropped.
///
/// # Errors
/// The system refuses.
pub fn scratch() -> Result<tempfile::TempDir, LabError> {
    tempfile::tempdir()
        .map_err(|source| LabError::Unwritable { what: "to a folder for temporary files".to_owned(), source })
}

/// Refuses a file that is there already: to be asked before a long run, not after it.
///
/// # Errors
/// It exists.
pub fn check_new_file(path: &Path) -> Result<(), LabError> {
    match path.symlink_metadata() {
        Ok(_) => Err(LabError::file_exists(path)),
        Err(_) => check_folder_of(path),
    }
}

/// Refuses a file whose folder does not exist: nothing that runs before it is written would be kept.
pub(crate) fn check_folder_of(file: &Path) -> Result<(), LabError> {
    match folder_of(file) {
        folder if folder.is_dir() => Ok(()),
        folder => Err(LabError::refused(
            format!("cannot write `{}`: there is no folder `{}`", file.display(), folder.display()),
            "make the folder first, or name another one",
        )),
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// A hidden file in the folder of `path`, removed when dropped.
pub(crate) fn new_file_beside(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let folder = folder_of(path);
    let mut builder = tempfile::Builder::new();
    // As any other file that a program writes: what the user's mask lets through.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let made = builder.prefix(".pagetide-").suffix(".partial").tempfile_in(folder);
    made.map_err(|error| io::Error::from(error.kind())) // Without the hidden name, which says nothing.
}

pub(crate) fn unwritable(path: Option<&Path>, source: io::Error) -> LabError {
    let what = path.map_or_else(|| "standard output".to_owned(), |path| format!("`{}`", path.display()));
    LabError::Unwritable { what, source }
}

fn written(
    folder: &Path,
    recording: &Recording,
    format: TraceFormat,
    out: &mut dyn Write,
    failed: impl Fn(io::Error) -> LabError,
) -> Result<TraceWritten, LabError> {
    let has_events = EventReader::open(folder)?.is_some();
    let mut trace = RunTrace::new(format, recording, has_events);
    if trace.sees_all_first() {
        show(folder, &mut trace, |_| Ok(()))?;
        trace = trace.again(recording);
    }
    let mut bytes = 0;
    let events = show(folder, &mut trace, |part| {
        bytes += part.len() as u64;
        out.write_all(&part).map_err(&failed)
    })?;
    out.flush().map_err(failed)?;
    Ok(TraceWritten { bytes, events, has_events })
}

/// Shows all events to `trace` and hands on what it writes; returns how many there are.
fn show(
    folder: &Path,
    trace: &mut RunTrace,
    mut sink: impl FnMut(Vec<u8>) -> Result<(), LabError>,
) -> Result<u64, LabError> {
    let mut events = 0;
    sink(trace.take())?;
    if let Some(mut reader) = EventReader::open(folder)? {
        while let Some(chunk) = reader.next() {
            let chunk = chunk?;
            events += chunk.events.len() as u64;
            trace.events(&chunk, reader.names());
            sink(trace.take())?;
        }
    }
    trace.finish();
    sink(trace.take())?;
    Ok(events)
}
