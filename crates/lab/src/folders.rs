//! Folders of several recordings: written as they are made, and read back as columns of a report.
//!
//! Left out: what one recording is on disk, see `pagetide-recording`. Next: [`crate::batch`], which
//! hands recordings over as runs finish.

use std::path::{Path, PathBuf};

use recording::folder::check_new_folder;
use recording::{Recording, RecordingError};
use report::Group;

use crate::batch::PlannedRun;
use crate::error::LabError;

/// A new folder that takes the recordings of a comparison, one folder each, as they are made.
#[derive(Debug)]
pub struct OutFolder(PathBuf);

impl OutFolder {
    /// Checks that `path` can become a folder; it is not made before there is a recording.
    ///
    /// # Errors
    /// It exists already, or cannot be written.
    pub fn new(path: &Path) -> Result<Self, LabError> {
        check_new_folder(path)?;
        Ok(Self(path.to_owned()))
    }

    /// Writes the recording of run `index` of `plan`. Names begin with the run's number, so that
    /// they sort in the order of the plan and the baseline stays the baseline.
    ///
    /// # Errors
    /// The system refuses.
    pub fn keep(&self, plan: &[PlannedRun], index: usize, recording: &Recording) -> Result<(), LabError> {
        let run = &plan[index];
        self.keep_as(&format!("{}-seed{}", run.label, run.scenario.seed.0), index, plan.len(), recording)
    }

    /// Writes the recording that is number `index` of `count` under its label.
    ///
    /// # Errors
    /// The system refuses.
    pub fn keep_labelled(&self, index: usize, count: usize, recording: &Recording) -> Result<(), LabError> {
        self.keep_as(&recording.label, index, count, recording)
    }

    fn keep_as(&self, name: &str, index: usize, count: usize, recording: &Recording) -> Result<(), LabError> {
        match std::fs::create_dir(&self.0) {
            Err(source) if source.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(RecordingError::Unwritable { path: self.0.clone(), source }.into());
            }
            _ => {}
        }
        let digits = count.to_string().len();
        let name = format!("{:0digits$}-{}", index + 1, name.replace(['/', ' '], "-"));
        recording.write(&self.0.join(name))?;
        Ok(())
    }
}

/// Recordings of one label that were read from disk.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// What the column is called.
    pub label: String,
    /// The command that makes the first run again.
    pub command: String,
    /// The recordings, in the order of their folders' names.
    pub recordings: Vec<Recording>,
}

impl Loaded {
    /// As a column of a report.
    pub fn group(&self) -> Group<'_> {
        let (label, command) = (self.label.clone(), self.command.clone());
        Group { label, command, recordings: self.recordings.iter().collect() }
    }
}

/// Reads recordings, or folders of recordings as a comparison writes them, and puts those of one
/// folder and one label together.
///
/// # Errors
/// A folder that is no recording and has none, or one that cannot be read.
pub fn load(folders: &[PathBuf]) -> Result<Vec<Loaded>, LabError> {
    let mut columns: Vec<(PathBuf, Loaded)> = Vec::new();
    for folder in folders {
        for path in recordings_in(folder)? {
            let recording = Recording::read(&path)?;
            let same =
                |(of, column): &&mut (PathBuf, Loaded)| of == folder && column.label == recording.label;
            match columns.iter_mut().find(same) {
                Some((_, column)) => column.recordings.push(recording),
                None => {
                    let scenario = path.join("scenario.toml");
                    // Replays and commands that were monitored have none: `#` makes it a shell's comment.
                    let command = if recording.scenario_toml.is_empty() {
                        format!("# `{}` has no scenario to run again", path.display())
                    } else {
                        let verb =
                            if crate::replay::is_replay(&recording.scenario_toml) { "replay" } else { "run" };
                        format!("pagetide {verb} {}", scenario.display())
                    };
                    let label = recording.label.clone();
                    columns.push((folder.clone(), Loaded { label, command, recordings: vec![recording] }));
                }
            }
        }
    }
    Ok(told_apart(columns))
}

/// Columns of different folders with the same label take the folder's name.
fn told_apart(columns: Vec<(PathBuf, Loaded)>) -> Vec<Loaded> {
    let labels: Vec<String> = columns.iter().map(|(_, column)| column.label.clone()).collect();
    let ambiguous = |label: &str| labels.iter().filter(|other| *other == label).count() > 1;
    let named = columns.into_iter().map(|(folder, mut column)| {
        if ambiguous(&column.label) {
            column.label = format!("{} ({})", column.label, folder.display());
        }
        column
    });
    named.collect()
}

fn recordings_in(folder: &Path) -> Result<Vec<PathBuf>, LabError> {
    if !folder.is_dir() {
        return Err(LabError::NotARecording(folder.display().to_string()));
    }
    if is_recording(folder) {
        return Ok(vec![folder.to_owned()]);
    }
    let unreadable = |source| LabError::Unreadable { path: folder.to_owned(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if is_recording(&path) && !hidden {
            found.push(path);
        }
    }
    found.sort();
    if found.is_empty() { Err(LabError::EmptyFolder(folder.to_owned())) } else { Ok(found) }
}

/// A recording that lacks files still is one, so that the missing file is named.
fn is_recording(folder: &Path) -> bool {
    ["MANIFEST", "recording.json"].iter().any(|name| folder.join(name).is_file())
}
