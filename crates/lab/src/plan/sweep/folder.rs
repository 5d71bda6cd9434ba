//! The folder of a sweep, an ablation or a comparison: its plan, and a recording for each run that has finished.
//!
//! The plan is written before anything runs, so that a sweep that was stopped can go on: what has
//! finished is read back and not run again, and another plan is refused with what differs.

use std::fs;
use std::path::{Path, PathBuf};

use recording::folder::remove_left;
use recording::{Recording, RecordingError};
use xxhash_rust::xxh3::xxh3_128;

use super::SweepPlan;
use crate::error::LabError;
use crate::resolve::planned::PlanOf;

/// The line of the plan that tells any difference, and not which.
const HASH: &str = "hash of all scenarios";

/// A folder that takes the recordings of one plan.
#[derive(Debug, Clone)]
pub struct SweepFolder {
    path: PathBuf,
    names: Vec<String>,
}

impl SweepFolder {
    /// Makes the folder, or continues in one with the same plan if `resume`: then what killed runs left there is
    /// removed. Returns what has finished there already, one entry for each run.
    ///
    /// # Errors
    /// It exists and is not to be continued, has no plan, or another one; a recording in
    /// it is damaged; the system refuses.
    pub fn open(
        path: &Path,
        plan: &SweepPlan,
        resume: bool,
    ) -> Result<(Self, Vec<Option<Recording>>), LabError> {
        Self::open_for(path, plan.of, names(plan), &plan_text(plan)?, resume)
    }

    /// The same for runs that have these `names` and are planned as `written` tells.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn open_for(
        path: &Path,
        of: PlanOf,
        names: Vec<String>,
        written: &str,
        resume: bool,
    ) -> Result<(Self, Vec<Option<Recording>>), LabError> {
        let unwritable = |source| RecordingError::Unwritable { path: path.to_owned(), source };
        let file = path.join(of.file());
        let folder = Self { path: path.to_owned(), names };
        if path.symlink_metadata().is_err() {
            fs::create_dir_all(path).map_err(unwritable)?;
            // Whole or not at all, as a recording is.
            let partial = path.join(format!(".{}.partial", of.file()));
            fs::write(&partial, written).and_then(|()| fs::rename(&partial, &file)).map_err(unwritable)?;
            let none = vec![None; folder.names.len()];
            return Ok((folder, none));
        }
        match (file.is_file(), resume) {
            (true, false) => {
                let message = format!("`{}` has {} already", path.display(), of.told());
                return Err(LabError::refused(
                    message,
                    "add `--resume` to go on with it, or name a new folder",
                ));
            }
            (false, false) => return Err(RecordingError::Exists { path: path.to_owned() }.into()),
            (false, true) => {
                let message = format!("`{}` is no folder of {}", path.display(), of.told());
                let hint = match of {
                    PlanOf::Worlds => "name a new folder",
                    _ => "leave `--resume` out and name a new folder",
                };
                return Err(LabError::refused(message, hint));
            }
            (true, true) => {}
        }
        let found = fs::read_to_string(&file).map_err(|source| LabError::unreadable(&file, source))?;
        if found != written {
            let differences = differences(&found, written).join("; ");
            let message = format!("`{}` has {} of another plan: {differences}", path.display(), of.told());
            let hint = "give the options that it was begun with, or name a new folder";
            return Err(LabError::refused(message, hint));
        }
        // What was killed is made again, and of those that finished an earlier try may be left.
        folder.names.iter().try_for_each(|name| remove_left(&folder.path.join(name)))?;
        let finished = folder.names.iter().map(|name| folder.finished(name));
        let finished = finished.collect::<Result<Vec<_>, _>>()?;
        Ok((folder, finished))
    }

    fn finished(&self, name: &str) -> Result<Option<Recording>, LabError> {
        let path = self.path.join(name);
        if path.is_dir() { Ok(Some(Recording::read(&path)?)) } else { Ok(None) }
    }

    /// Writes the recording of a run.
    ///
    /// # Errors
    /// The system refuses.
    pub fn keep(&self, run: usize, recording: &Recording) -> Result<(), LabError> {
        recording.write(&self.folder_of(run))?;
        Ok(())
    }

    /// The folder of a run.
    pub fn folder_of(&self, run: usize) -> PathBuf {
        self.path.join(&self.names[run])
    }
}

/// Names begin with the run's number, so that they sort in the order of the plan.
fn names(plan: &SweepPlan) -> Vec<String> {
    let digits = plan.runs.len().to_string().len();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-+._=".contains(c) { c } else { '-' };
    let name = |(index, run): (usize, &super::SweepRun)| {
        let label: String = run.label.replace(", ", ",").chars().map(plain).take(100).collect();
        format!("{:0digits$}-{label}", index + 1)
    };
    plan.runs.iter().enumerate().map(name).collect()
}

/// A line for each thing that makes the plan: `name = value`.
fn plan_text(plan: &SweepPlan) -> Result<String, LabError> {
    let scenarios = plan.scenarios()?;
    let mut text = format!("subject = {}\nruns = {}\n", plan.subject, plan.runs.len());
    for axis in &plan.axes {
        text += &format!("axis {} = {}\n", axis.name, axis.values.join(", "));
    }
    let first = scenarios.first().map_or("", String::as_str);
    text += &first_and_hash(first, &scenarios.concat());
    Ok(text)
}

/// What the first run is made from, and the line that tells any difference of `all`.
pub(crate) fn first_and_hash(first: &str, all: &str) -> String {
    let lines = first.lines().filter(|line| line.contains(" = "));
    let lines: String = lines.map(|line| format!("first run's {line}\n")).collect();
    lines + &format!("{HASH} = {:032x}\n", xxh3_128(all.as_bytes()))
}

/// Which lines differ between two plans, in words.
fn differences(there: &str, here: &str) -> Vec<String> {
    let pairs = |text: &str| -> Vec<(String, String)> {
        let pair = |line: &str| line.split_once(" = ").map(|(key, value)| (key.to_owned(), value.to_owned()));
        text.lines().filter_map(pair).collect()
    };
    let (there, here) = (pairs(there), pairs(here));
    let value = |pairs: &[(String, String)], key: &str| {
        pairs
            .iter()
            .find(|(other, _)| other == key)
            .map_or("nothing".to_owned(), |(_, value)| format!("`{value}`"))
    };
    let mut keys: Vec<&String> = there.iter().map(|(key, _)| key).collect();
    keys.extend(here.iter().map(|(key, _)| key).filter(|key| !there.iter().any(|(other, _)| other == *key)));
    let differ: Vec<String> = keys
        .into_iter()
        .map(|key| (key, value(&there, key), value(&here, key)))
        .filter(|(_, there, here)| there != here)
        .map(|(key, there, here)| format!("{key}: {there} there, {here} here"))
        .collect();
    // The hash says something only where nothing else does.
    let telling: Vec<String> = differ.iter().filter(|text| !text.starts_with(HASH)).cloned().collect();
    if telling.is_empty() { differ } else { telling }
}
