//! What is to be explained: recordings that exist, with how to get what they do not hold.
//!
//! How it is told is `pagetide-report`'s. Next: [`crate::folders`] for folders of recordings.

use std::path::{Path, PathBuf};

use recording::Recording;
use workload::Scenario;

use crate::error::LabError;
use crate::folders::recordings_in;
use crate::names::Names;
use crate::replay::is_replay;
use crate::resolve::shell_quoted;

/// A recording with what its explanation needs beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct With {
    /// The run.
    pub recording: Recording,
    /// The command that runs it again with every event recorded; `None` where there is none, as of real
    /// kernels.
    pub with_events: Option<String>,
}

/// The recordings in the folder `subject`, or itself; `None` where that is not a folder but something to run.
///
/// # Errors
/// A folder that is no recording and has none, or cannot be read.
pub fn recordings(subject: &str) -> Result<Option<Vec<With>>, LabError> {
    let folder = PathBuf::from(subject);
    if !folder.is_dir() {
        return Ok(None);
    }
    let read = |path: PathBuf| {
        let recording = Recording::read(&path)?;
        let with_events = with_events(&path, &recording);
        Ok(With { recording, with_events })
    };
    recordings_in(&folder)?.into_iter().map(read).collect::<Result<_, _>>().map(Some)
}

/// The command that makes the recording at `path` again, with events.
fn with_events(path: &Path, recording: &Recording) -> Option<String> {
    if !recording.is_simulated() {
        return None;
    }
    let is_scenario = || Scenario::read(&recording.scenario_toml, &Names::default().vocabulary()).is_ok();
    let command = match () {
        () if is_replay(&recording.scenario_toml) => "replay",
        () if is_scenario() => "run",
        () => return None,
    };
    let scenario = shell_quoted(&path.join("scenario.toml").to_string_lossy());
    Some(format!("pagetide {command} {scenario} --events pages --out DIR"))
}
