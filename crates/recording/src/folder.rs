//! Recordings on disk: a folder that is complete or not there.
//!
//! The writer fills a folder `NAME.partial` beside the target and renames it at the end, so that nobody ever
//! takes half a recording for a whole one. The reader takes the files that `MANIFEST` names and ignores whatever
//! else lies in the folder, such as a report made from it. What is left when a run is killed is [`crate::growing`]'s.

use std::path::Path;

use crate::disk::read_file;
use crate::files::Files;
use crate::layout::MANIFEST;
use crate::manifest::Manifest;
use crate::partial::PartialFolder;
pub use crate::partial::{is_partial, remove_left};
use crate::{ContentHash, Recording, RecordingError, growing};

impl Recording {
    /// Writes the recording as a new folder `path`, whose parents are made where they are missing;
    /// returns the hash of what was written. A run that is long or has events uses
    /// [`crate::RecordingWriter`] instead.
    ///
    /// # Errors
    /// Something is there already, the system refuses. Nothing is left behind then, no parents
    /// either.
    pub fn write(&self, path: &Path) -> Result<ContentHash, RecordingError> {
        let files = Files::encode(self);
        let mut partial = PartialFolder::create_for(path)?;
        for (name, bytes) in &files.files {
            partial.write(name, bytes)?;
        }
        partial.write(MANIFEST, &files.manifest.encode())?;
        partial.rename_to(path)?;
        Ok(files.content_hash())
    }

    /// Reads the folder `path`. What a run left that did not end is read as far as it goes, and says so
    /// ([`Recording::incomplete`]).
    ///
    /// # Errors
    /// No such folder, no recording, a file is missing or unreadable, of a newer version, cut short or changed.
    pub fn read(path: &Path) -> Result<Self, RecordingError> {
        let Some(manifest) = Manifest::of(path)? else { return growing::read(path) };
        let read = |(name, _): &(String, _)| Ok((name.clone(), read_file(&path.join(name))?));
        let files = manifest.files.iter().map(read).collect::<Result<_, RecordingError>>()?;
        let recording = Files { files, manifest }.decode(path)?;
        Ok(recording)
    }
}

/// Whether a recording can be written as `path`: to be asked before a long run, not after it.
///
/// # Errors
/// Those of [`Recording::write`].
pub fn check_new_folder(path: &Path) -> Result<(), RecordingError> {
    PartialFolder::create_for(path).map(drop)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("raced");
        let mut partial = PartialFolder::create_for(&target).unwrap();
        partial.write(MANIFEST, b"x").unwrap();
        fs::create_dir(&target).unwrap();
        fs::write(target.join("theirs"), b"").unwrap();
        let error = partial.rename_to(&target).unwrap_err();
        assert!(matches!(error, RecordingError::Exists { .. }), "{error}");
        drop(partial);
        let names: Vec<_> =
            fs::read_dir(parent.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["raced"]);
    }
}
