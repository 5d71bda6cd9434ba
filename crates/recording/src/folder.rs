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
    use crate::files::tests::example;

    fn names_in(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_run_left_that_did_not_end_goes_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("run");
        for _ in 0..2 {
            std::mem::forget(crate::RecordingWriter::begin(&target, &example()).unwrap()); // Killed.
        }
        let foreign = parent.path().join("run.partial-3");
        fs::create_dir(&foreign).unwrap();
        fs::write(foreign.join("thesis"), b"x").unwrap();
        remove_left(&target).unwrap();
        assert_eq!(names_in(parent.path()), ["run.partial-3"]);
        remove_left(&parent.path().join("never")).unwrap();
    }

    #[test]
    fn a_written_folder_reads_back_and_leaves_nothing_else_behind() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("first");
        let hash = example().write(&target).unwrap();
        assert_eq!(hash, example().content_hash());
        assert_eq!(Recording::read(&target).unwrap(), example());
        assert_eq!(names_in(parent.path()), ["first"]);
        assert_eq!(
            names_in(&target),
            ["MANIFEST", "recording.json", "samples.parquet", "scenario.toml", "series.parquet"]
        );
    }

    #[test]
    fn an_existing_folder_is_never_touched_even_when_empty() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("mine");
        fs::create_dir(&target).unwrap();
        let error = example().write(&target).unwrap_err();
        assert_eq!(error.to_string(), format!("`{}` exists already", target.display()));
        assert_eq!(error.hint(), "name a new folder, or remove this one first");
        assert_eq!(names_in(parent.path()), ["mine"]);
        assert!(names_in(&target).is_empty());
    }

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
        assert_eq!(names_in(parent.path()), ["raced"]);
    }

    /// `--out a/b` was refused where there was no `a`.
    #[test]
    fn missing_parents_are_made_and_go_away_with_what_fails() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("a/b/first");
        let partial = PartialFolder::create_for(&target).unwrap();
        assert_eq!(names_in(&parent.path().join("a/b")), ["first.partial"]);
        drop(partial);
        assert!(names_in(parent.path()).is_empty(), "a run that failed leaves no folders behind");
        example().write(&target).unwrap();
        example().write(&parent.path().join("a/b/second")).unwrap();
        assert!(example().write(&target).is_err());
        assert_eq!(names_in(&parent.path().join("a/b")), ["first", "second"]);
        let relative = PartialFolder::create_for(Path::new("no-such-folder/below")).unwrap();
        drop(relative);
        assert!(!Path::new("no-such-folder").exists());
    }

    #[test]
    fn a_target_can_be_checked_before_the_run() {
        let parent = tempfile::tempdir().unwrap();
        check_new_folder(&parent.path().join("later")).unwrap();
        check_new_folder(&parent.path().join("much/later/still")).unwrap();
        assert!(names_in(parent.path()).is_empty());
        for (target, kind) in [
            ("a-file/below", "is not a folder"),
            ("a-file/far/below", "is not a folder"),
            ("..", "does not name"),
        ] {
            fs::write(parent.path().join("a-file"), b"").unwrap();
            let error = check_new_folder(&parent.path().join(target)).unwrap_err();
            assert!(error.to_string().contains(kind), "{target}: {error}");
        }
        assert!(matches!(check_new_folder(Path::new("")), Err(RecordingError::NotAName { .. })));
    }

    #[test]
    fn a_name_that_is_too_long_is_the_systems_refusal() {
        let parent = tempfile::tempdir().unwrap();
        let error = example().write(&parent.path().join("x".repeat(300))).unwrap_err();
        assert!(matches!(error, RecordingError::Unwritable { .. }), "{error}");
    }

    #[test]
    fn what_is_not_a_recording_is_told_apart() {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("first");
        let read = |path: &Path| Recording::read(path).unwrap_err();
        assert!(matches!(read(&target), RecordingError::NoFolder { .. }));
        assert!(matches!(read(parent.path()), RecordingError::Foreign { .. }));
        example().write(&target).unwrap();
        assert!(matches!(read(&target.join("MANIFEST")), RecordingError::NotAFolder { .. }));
        fs::remove_file(target.join("series.parquet")).unwrap();
        assert!(
            matches!(read(&target), RecordingError::Missing { path } if path.ends_with("series.parquet"))
        );
        fs::create_dir(target.join("series.parquet")).unwrap();
        assert!(
            matches!(read(&target), RecordingError::Unreadable { path, .. } if path.ends_with("series.parquet"))
        );
    }
}
