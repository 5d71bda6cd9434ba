//! Files as the system has them: read, written whole, and as text.

use std::fs;
use std::io;
use std::path::Path;

use crate::RecordingError;

pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, RecordingError> {
    fs::read(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => RecordingError::Missing { path: path.to_owned() },
        _ => RecordingError::Unreadable { path: path.to_owned(), source },
    })
}

/// Writes a file that has its name only when it is complete. It survives the end of the process; what shall
/// survive the machine's, asks for that: [`sync`].
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), RecordingError> {
    let partial = path.with_extension("partial");
    fs::write(&partial, bytes).and_then(|()| fs::rename(&partial, path)).map_err(|source| {
        let _ = fs::remove_file(&partial); // What was refused may have left a part; nobody wants it.
        RecordingError::Unwritable { path: path.to_owned(), source }
    })
}

/// Brings a file to the disk.
pub(crate) fn sync(path: &Path) -> Result<(), RecordingError> {
    let synced = fs::File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|source| RecordingError::Unwritable { path: path.to_owned(), source })
}

/// A file of text.
pub(crate) fn utf8<'a>(bytes: &'a [u8], path: &Path) -> Result<&'a str, RecordingError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        RecordingError::Malformed {
            path: path.to_owned(),
            line: before.iter().filter(|&&byte| byte == b'\n').count() as u64 + 1,
            column: (before.len() - line_start) as u64 + 1,
            problem: format!("byte {:#04x} is not UTF-8 text", bytes[before.len()]),
        }
    })
}
