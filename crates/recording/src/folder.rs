//! Recordings on disk: a folder that is complete or not there.
//!
//! The writer fills a folder `NAME.partial` beside the target and renames it at the end, so that nobody ever
//! takes half a recording for a whole one. The reader takes the files that `MANIFEST` names and ignores whatever
//! else lies in the folder, such as a report made from it. What is left when a run is killed is [`crate::growing`]'s.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::files::{Files, JSON};
use crate::manifest::{MANIFEST, Manifest, TITLE};
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
        let Some(manifest) = manifest(path)? else { return growing::read(path) };
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

/// What `MANIFEST` of a recording says; `None` for what a run left that did not end.
///
/// # Errors
/// No recording, or `MANIFEST` cannot be read.
pub(crate) fn manifest(folder: &Path) -> Result<Option<Manifest>, RecordingError> {
    if !folder.exists() {
        let partial = partial_name(folder, 1).filter(|partial| partial.is_dir());
        return Err(RecordingError::NoFolder { path: folder.to_owned(), partial });
    }
    if !folder.is_dir() {
        return Err(RecordingError::NotAFolder { path: folder.to_owned() });
    }
    let path = folder.join(MANIFEST);
    match read_file(&path) {
        // Other programs have files of that name, too.
        Ok(bytes) if !bytes.starts_with(TITLE.as_bytes()) && !folder.join(JSON).is_file() => {
            Err(RecordingError::Foreign { path: folder.to_owned() })
        }
        Ok(bytes) => Manifest::decode(&bytes, &path).map(Some),
        Err(RecordingError::Missing { .. }) if growing::is_one(folder) => Ok(None),
        Err(RecordingError::Missing { .. }) if !folder.join(JSON).is_file() => {
            Err(RecordingError::Foreign { path: folder.to_owned() })
        }
        Err(error) => Err(error),
    }
}

pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, RecordingError> {
    fs::read(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => RecordingError::Missing { path: path.to_owned() },
        _ => RecordingError::Unreadable { path: path.to_owned(), source },
    })
}

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
    for path in left.filter(|path| growing::is_one(path) && !path.join(MANIFEST).is_file()) {
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

#[cfg(test)]
mod tests {
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
