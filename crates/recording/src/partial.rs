//! Folders that are not whole yet: `NAME.partial` beside the target, renamed when all is there.
//!
//! What is left of one when a run is killed is [`crate::growing`]'s to read.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::RecordingError;
use crate::layout::{MANIFEST, is_growing};

/// Name of the folder in which a recording grows; further numbers are of others that were killed, or write
/// at the same time.
pub(crate) fn partial_name(target: &Path, number: u32) -> Option<PathBuf> {
    let mut name = OsString::from(target.file_name()?);
    name.push(if number == 1 { ".partial".to_owned() } else { format!(".partial-{number}") });
    Some(target.with_file_name(name))
}

/// Whether `path` has the name of a folder in which a recording grows.
pub fn is_partial(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let numbered = |rest: &str| rest.strip_prefix('-').is_some_and(|number| number.parse::<u32>().is_ok());
    name.rsplit_once(".partial").is_some_and(|(_, rest)| rest.is_empty() || numbered(rest))
}

/// Removes what runs left beside `target` that were to become this recording and did not end. Whoever calls this
/// makes the run again, or has; folders of other things stay, whatever their names.
///
/// # Errors
/// The system refuses.
pub fn remove_left(target: &Path) -> Result<(), RecordingError> {
    let left = (1..).map_while(|number| partial_name(target, number).filter(|path| path.is_dir()));
    for path in left.filter(|path| is_growing(path) && !path.join(MANIFEST).is_file()) {
        fs::remove_dir_all(&path).map_err(|source| RecordingError::Unwritable { path, source })?;
    }
    Ok(())
}

/// A folder beside the target; removed when dropped, unless it was renamed or is to be kept.
#[derive(Debug)]
pub(crate) struct PartialFolder {
    pub(crate) path: PathBuf,
    /// Parents that were made for it, innermost first; removed with it.
    parents: Vec<PathBuf>,
}

impl PartialFolder {
    pub(crate) fn create_for(target: &Path) -> Result<Self, RecordingError> {
        let name = |number| partial_name(target, number);
        let first = name(1).ok_or_else(|| RecordingError::NotAName { path: target.to_owned() })?;
        if target.symlink_metadata().is_ok() {
            return Err(RecordingError::Exists { path: target.to_owned() });
        }
        let parent = match first.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        let mut partial = Self { path: PathBuf::new(), parents: Vec::new() };
        partial.make_parents(parent)?;
        // Another writer, or one that was killed, may have left its own: take the next number.
        for path in (1_u32..).filter_map(name) {
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self { path, parents: std::mem::take(&mut partial.parents) }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(RecordingError::Unwritable { path: parent.to_owned(), source }),
            }
        }
        unreachable!("four billion writers at once")
    }

    /// Makes `folder` and those above it, as far as they are missing.
    fn make_parents(&mut self, folder: &Path) -> Result<(), RecordingError> {
        let above = folder.ancestors().take_while(|above| *above != Path::new(""));
        let missing: Vec<&Path> = above.take_while(|above| above.symlink_metadata().is_err()).collect();
        let existing = missing.last().map_or(Some(folder), |outermost| outermost.parent());
        if let Some(path) = existing.filter(|path| *path != Path::new("") && !path.is_dir()) {
            return Err(RecordingError::NoParent { path: path.to_owned() });
        }
        for &path in missing.iter().rev() {
            match fs::create_dir(path) {
                Ok(()) => self.parents.insert(0, path.to_owned()),
                // Another run may have been faster.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(RecordingError::Unwritable { path: path.to_owned(), source }),
            }
        }
        Ok(())
    }

    /// Writes a file, which replaces one that was there.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), RecordingError> {
        let path = self.path.join(name);
        let write = || {
            let mut file = fs::File::create(&path)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        write().map_err(|source| RecordingError::Unwritable { path: path.clone(), source })
    }

    /// Linux refuses to rename a folder onto one that has files: of two writers one wins.
    pub(crate) fn rename_to(&mut self, target: &Path) -> Result<(), RecordingError> {
        fs::rename(&self.path, target).map_err(|source| match source.kind() {
            io::ErrorKind::DirectoryNotEmpty
            | io::ErrorKind::AlreadyExists
            | io::ErrorKind::NotADirectory => RecordingError::Exists { path: target.to_owned() },
            _ => RecordingError::Unwritable { path: target.to_owned(), source },
        })?;
        self.keep();
        Ok(())
    }

    /// Leaves the folder where it is.
    pub(crate) fn keep(&mut self) {
        self.parents.clear();
        self.path = PathBuf::new();
    }
}

impl Drop for PartialFolder {
    fn drop(&mut self) {
        // After the rename there is nothing left to remove; nobody can be told in a drop.
        if self.path != Path::new("") {
            let _ = fs::remove_dir_all(&self.path);
        }
        for parent in &self.parents {
            let _ = fs::remove_dir(parent); // Refused where others have put something there.
        }
    }
}
