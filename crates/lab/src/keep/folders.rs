//! Folders of several recordings: written as they are made, and read back as columns of a report.
//!
//! Left out: what one recording is on disk, see `pagetide-recording`. Next: [`crate::run::batch`], which
//! hands recordings over as runs finish.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use recording::folder::{check_new_folder, is_partial};
use recording::{MANIFEST, Recording, RecordingError};
use report::Group;
use workload::Scenario;

use crate::error::LabError;
use crate::keep::differences::{self, Column, Differences};
use crate::name::names::Names;
use crate::resolve::planned::PlanOf;
use crate::resolve::texts::shell_quoted;

/// A new folder that takes the recordings of a replay, one folder each, as they are made.
#[derive(Debug)]
pub struct OutFolder(PathBuf);

impl OutFolder {
    /// Checks that `path` can become a folder; it is made, with its parents, when there is a
    /// recording.
    ///
    /// # Errors
    /// It exists already, or cannot be written.
    pub fn new(path: &Path) -> Result<Self, LabError> {
        check_new_folder(path)?;
        Ok(Self(path.to_owned()))
    }

    /// A folder that has recordings of this replay already.
    pub fn continued(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// Writes the recording that is number `index` of `count` under its label. Names begin with the number, so
    /// that they sort in the order of the plan and the baseline stays the baseline.
    ///
    /// # Errors
    /// The system refuses.
    pub fn keep_labelled(&self, index: usize, count: usize, recording: &Recording) -> Result<(), LabError> {
        recording.write(&self.folder_of(index, count, &recording.label))?;
        Ok(())
    }

    /// The folder of what is number `index` of `count` and has this label.
    pub fn folder_of(&self, index: usize, count: usize, label: &str) -> PathBuf {
        let digits = count.to_string().len();
        self.0.join(format!("{:0digits$}-{}", index + 1, label.replace(['/', ' '], "-")))
    }
}

/// Recordings that differ in their seed only, read from disk.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// What the column is called.
    pub label: String,
    /// The command that makes the first run again.
    pub command: String,
    /// The recordings, in the order of their folders' names; labelled as the column.
    pub recordings: Vec<Recording>,
    /// Their folders.
    pub folders: Vec<PathBuf>,
}

impl Loaded {
    /// As a column of a report.
    pub fn group(&self) -> Group<'_> {
        let (label, command) = (self.label.clone(), self.command.clone());
        Group { label, command, recordings: self.recordings.iter().collect() }
    }
}

/// Recordings as columns, and what the reader has to know about their differences.
#[derive(Debug, Clone, PartialEq)]
pub struct SideBySide {
    /// The columns, in the order of the folders.
    pub columns: Vec<Loaded>,
    /// What differs beyond what is compared.
    pub warnings: Vec<String>,
    /// What runs left that did not end, and whether it is among the columns.
    pub unfinished: Vec<String>,
}

/// Reads recordings, or folders of recordings as a comparison writes them, and puts those of one
/// folder that differ in their seed only together. Columns are labelled by what they differ in;
/// those of a single folder, which were made together, keep labels that tell them apart.
///
/// # Errors
/// A folder that is named twice, is no recording and has none, or cannot be read.
pub fn load(folders: &[PathBuf]) -> Result<SideBySide, LabError> {
    let mut read: Vec<(Column, Loaded)> = Vec::new();
    let mut unfinished = Vec::new();
    for (index, folder) in folders.iter().enumerate() {
        let same = |other: &PathBuf| other.canonicalize().ok() == folder.canonicalize().ok();
        if folder.exists() && folders[..index].iter().any(same) {
            let message = format!("`{}` is named twice", folder.display());
            return Err(LabError::refused(message, "name another folder to put beside it"));
        }
        let begin = read.len();
        let found = found_in(folder)?;
        unfinished.extend(
            found
                .unfinished
                .iter()
                .map(|path| format!("`{}` is of a run that did not end, and left out", path.display())),
        );
        unfinished.extend(missing_of(folder, found.recordings.len() + found.unfinished.len()));
        for path in found.recordings {
            let recording = Recording::read(&path)?;
            unfinished.extend(recording.incomplete.then(|| of_unfinished(&path, &recording)));
            let keys = differences::keys(&recording);
            let own = |(column, _): &&mut (Column, Loaded)| {
                column.recorded == recording.label && column.keys == keys
            };
            match read[begin..].iter_mut().find(own) {
                Some((_, loaded)) => {
                    loaded.recordings.push(recording);
                    loaded.folders.push(path);
                }
                None => {
                    let recorded = recording.label.clone();
                    let folder = folder.display().to_string();
                    let (label, command) = (recorded.clone(), command_of(&path, &recording));
                    let loaded = Loaded { label, command, recordings: vec![recording], folders: vec![path] };
                    read.push((Column { recorded, folder, keys }, loaded));
                }
            }
        }
    }
    for (column, loaded) in &mut read {
        if !column.keys.is_empty() {
            column.keys.insert("seed".to_owned(), differences::seeds(&loaded.recordings));
        }
    }
    let (columns, mut loaded): (Vec<Column>, Vec<Loaded>) = read.into_iter().unzip();
    let distinct: BTreeSet<&String> = columns.iter().map(|column| &column.recorded).collect();
    if folders.len() == 1 && distinct.len() == columns.len() {
        return Ok(SideBySide { columns: loaded, warnings: Vec::new(), unfinished });
    }
    let Differences { labels, warnings } = Differences::of(&columns);
    for (loaded, label) in loaded.iter_mut().zip(labels) {
        for recording in &mut loaded.recordings {
            recording.label.clone_from(&label);
        }
        loaded.label = label;
    }
    Ok(SideBySide { columns: loaded, warnings, unfinished })
}

/// What is said of a folder with fewer recordings than its plan has runs.
fn missing_of(folder: &Path, found: usize) -> Option<String> {
    let plans = [PlanOf::Comparison, PlanOf::Sweep, PlanOf::Ablation];
    let plan = plans.iter().find_map(|of| std::fs::read_to_string(folder.join(of.file())).ok())?;
    let planned = plan.lines().find_map(|line| line.strip_prefix("runs = ")?.parse::<usize>().ok())?;
    let told = format!("`{}` has {found} of the {planned} runs that were planned", folder.display());
    (found < planned).then_some(told)
}

/// What is said of a recording that was asked for though its run did not end.
fn of_unfinished(path: &Path, recording: &Recording) -> String {
    let seconds = recording.series.times_ns().last().unwrap_or(0) as f64 / 1e9;
    format!(
        "`{}` is of a run that did not end: it goes up to {seconds:.3} s and has no metrics",
        path.display()
    )
}

/// The command that runs the scenario of the recording at `path` again.
fn command_of(path: &Path, recording: &Recording) -> String {
    let names = Names::default();
    let scenario = shell_quoted(&path.join("scenario.toml").to_string_lossy());
    match Scenario::read(&recording.scenario_toml, &names.vocabulary()) {
        Ok(_) => format!("pagetide run {scenario}"),
        Err(_) if is_replay(&recording.scenario_toml) => format!("pagetide replay {scenario}"),
        // Commands that were monitored have none: `#` makes it a shell's comment.
        Err(_) => format!("# `{}` has no scenario to run again", path.display()),
    }
}

/// What a folder has.
struct Found {
    /// At least one.
    recordings: Vec<PathBuf>,
    /// What runs left that did not end, beside recordings of runs that did.
    unfinished: Vec<PathBuf>,
}

/// The recordings that `folder` is or has, in the order of their names; at least one. Those of runs that did not
/// end only where there are no others.
pub(crate) fn recordings_in(folder: &Path) -> Result<Vec<PathBuf>, LabError> {
    found_in(folder).map(|found| found.recordings)
}

/// What to do where there is no recording.
const MAKES_ONE: &str = "`pagetide run WORKLOAD --out DIR` makes a recording";

fn found_in(folder: &Path) -> Result<Found, LabError> {
    if !folder.is_dir() {
        return match Recording::read(folder) {
            // Something is left of it, and the error says what.
            Err(error @ RecordingError::NoFolder { partial: Some(_), .. }) => Err(error.into()),
            _ => Err(LabError::refused(
                format!("`{}` is not a folder with recordings", folder.display()),
                MAKES_ONE,
            )),
        };
    }
    if is_recording(folder) {
        return Ok(Found { recordings: vec![folder.to_owned()], unfinished: Vec::new() });
    }
    let unreadable = |source| LabError::unreadable(folder, source);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if is_recording(&path) && !hidden {
            found.push(path);
        }
    }
    found.sort();
    // A folder that was only not renamed yet is of a run that has ended.
    let grows = |path: &PathBuf| is_partial(path) && !path.join(MANIFEST).is_file();
    let (unfinished, recordings): (Vec<PathBuf>, Vec<PathBuf>) = found.into_iter().partition(grows);
    match (recordings.is_empty(), unfinished.is_empty()) {
        (true, true) => {
            Err(LabError::refused(format!("there is no recording in `{}`", folder.display()), MAKES_ONE))
        }
        (true, false) => Ok(Found { recordings: unfinished, unfinished: Vec::new() }),
        (false, _) => Ok(Found { recordings, unfinished }),
    }
}

/// A recording that lacks files still is one, so that the missing file is named.
fn is_recording(folder: &Path) -> bool {
    [MANIFEST, "recording.json"].iter().any(|name| folder.join(name).is_file())
}

/// Whether a recording's scenario is a replay's.
pub(crate) fn is_replay(scenario_toml: &str) -> bool {
    scenario_toml.lines().any(|line| line.starts_with("replay = "))
}
