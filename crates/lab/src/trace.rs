//! One run as a trace for other programs: read from a recording, written to a file or a stream.
//!
//! A file is written beside its place and moved there when it is whole, and nothing that exists is overwritten. Left
//! out: what is drawn, see `pagetide-report`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use recording::Recording;
use report::PerfettoTrace;

use crate::error::LabError;
use crate::folders::recordings_in;

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
}

/// The recording that `folder` is, or the only one in it.
///
/// # Errors
/// It is none, or has several: a trace is of one run.
pub fn one_recording(folder: &Path) -> Result<PathBuf, LabError> {
    let mut found = recordings_in(folder)?;
    match found.len() {
        1 => Ok(found.remove(0)),
        count => {
            Err(LabError::SeveralRecordings { folder: folder.to_owned(), count, first: found.remove(0) })
        }
    }
}

/// Writes the recording in `folder` as a trace.
///
/// # Errors
/// No recording, several, or one that cannot be read; a file that exists, or cannot be written. Nothing is left
/// behind then. A stream's own errors come as they are in [`LabError::Unwritable`].
pub fn write_trace(folder: &Path, sink: TraceSink<'_>) -> Result<TraceWritten, LabError> {
    let folder = one_recording(folder)?;
    let recording = Recording::read(&folder)?;
    match sink {
        TraceSink::Stream(out) => written(&recording, out).map_err(|source| unwritable(None, source)),
        TraceSink::File(path) => {
            check_new_file(path)?;
            let failed = |source| unwritable(Some(path), source);
            let mut file = new_file_beside(path).map_err(failed)?;
            let done = written(&recording, file.as_file_mut()).map_err(failed)?;
            file.as_file().sync_all().map_err(failed)?;
            file.persist_noclobber(path).map_err(|error| match error.error.kind() {
                io::ErrorKind::AlreadyExists => LabError::FileExists(path.to_owned()),
                _ => failed(error.error),
            })?;
            Ok(done)
        }
    }
}

/// Refuses a file that is there already: to be asked before a long run, not after it.
///
/// # Errors
/// It exists.
pub fn check_new_file(path: &Path) -> Result<(), LabError> {
    match path.symlink_metadata() {
        Ok(_) => Err(LabError::FileExists(path.to_owned())),
        Err(_) => Ok(()),
    }
}

/// A hidden file in the folder of `path`, removed when dropped.
pub(crate) fn new_file_beside(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
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

/// Writes as it is made, so that memory does not grow with the run.
fn written(recording: &Recording, out: &mut dyn Write) -> io::Result<TraceWritten> {
    let mut trace = PerfettoTrace::new(recording, false);
    let mut done = TraceWritten { bytes: 0, events: 0 };
    let mut flush = |trace: &mut PerfettoTrace| {
        let bytes = trace.take();
        done.bytes += bytes.len() as u64;
        out.write_all(&bytes)
    };
    flush(&mut trace)?;
    out.flush()?;
    Ok(done)
}
