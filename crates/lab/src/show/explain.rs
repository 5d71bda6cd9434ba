//! What is to be explained: recordings that exist, or a run that is made for it, with its events.
//!
//! How it is told is `pagetide-report`'s. Next: [`crate::keep::folders`] for folders of recordings.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mm::base::event::Detail;
use recording::{Chunk, EventReader, Recording};
use report::{Digest, Question};
#[cfg(unix)]
use units::Nanos;
use workload::UnknownName;
#[cfg(unix)]
use workload::scenario::Backend;
use workload::scenario::Scenario;

use crate::error::LabError;
use crate::keep::folders::is_replay;
use crate::keep::trace::one_recording;
use crate::name::names::Names;
use crate::resolve::planned::PlannedRun;
use crate::resolve::texts::shell_quoted;
#[cfg(unix)]
use crate::run::batch::{Control, RunEvent, ended_in_time, run_all};
use crate::run::simulate::simulate_with_events;

/// A recording with what its explanation needs beside it.
#[derive(Debug)]
pub struct With {
    /// The run.
    pub recording: Recording,
    /// What its events say, if it has any.
    pub events: Option<Digest>,
    /// The command that runs it again with every event recorded; `None` where there is none, as of real
    /// kernels.
    pub with_events: Option<String>,
}

/// The recording that `subject` is, or the only one in that folder; `None` where it is no folder but something to
/// run.
///
/// # Errors
/// A folder that is no recording, has none or several, or cannot be read; a question that it cannot answer.
pub fn recorded(subject: &str, question: &Question) -> Result<Option<With>, LabError> {
    let folder = Path::new(subject);
    if !folder.is_dir() {
        return Ok(None);
    }
    let path = one_recording(folder)?;
    let recording = Recording::read(&path)?;
    let with_events = with_events(&path, &recording);
    let events = EventReader::open(&path)?.map(|events| digested(events, question)).transpose()?;
    answered(With { recording, events, with_events }, question).map(Some)
}

/// What the events of a recording say, read chunk by chunk.
fn digested(mut events: EventReader, question: &Question) -> Result<Digest, LabError> {
    let mut digest = Digest::new(question.clone());
    while let Some(chunk) = events.next() {
        digest.take(events.names(), &chunk?);
    }
    Ok(digest)
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

/// Makes a run for its explanation only: a simulated one with every event, which are digested as they come and
/// kept nowhere.
///
/// # Errors
/// As [`run_all`]; a file that is asked for and that no event is about.
#[cfg(unix)]
pub fn run(run: &PlannedRun, question: Question, control: &Control) -> Result<With, LabError> {
    if run.scenario.backend != Backend::Sim {
        let batch = run_all(std::slice::from_ref(run), 1, control, |_, _| Ok(()))?;
        let recording = batch.into_result()?.pop().expect("one run, one recording");
        return answered(With { recording, events: None, with_events: None }, &question);
    }
    (control.observer)(RunEvent::Started { index: 0, run });
    let observer = Arc::clone(&control.observer);
    let progress = move |progress: sim::Progress| {
        observer(RunEvent::Advanced { index: 0, simulated: progress.now });
    };
    let with = ended_in_time(run, control, |stop| simulated(run, question, stop, progress))?;
    let (simulated, wall) = (Nanos(with.recording.simulated_ns), Nanos(with.recording.wall_ns.unwrap_or(0)));
    (control.observer)(RunEvent::Finished { index: 0, run, simulated, wall });
    Ok(with)
}

/// Makes a simulated run for its explanation only. `stop` ends it early.
///
/// # Errors
/// As [`crate::simulate()`]; a file that is asked for and that no event is about.
pub fn simulated(
    run: &PlannedRun,
    question: Question,
    stop: &Arc<AtomicBool>,
    progress: impl FnMut(sim::Progress) + 'static,
) -> Result<With, LabError> {
    let digest = Rc::new(RefCell::new(Digest::new(question.clone())));
    let sink = {
        let digest = Rc::clone(&digest);
        move |names: &recording::Names, chunk: &Chunk| digest.borrow_mut().take(names, chunk)
    };
    let recording = simulate_with_events(&run.scenario, &run.label, stop, progress, Detail::Page, sink)?;
    let digest = Rc::into_inner(digest).expect("the run is over, and its sink gone").into_inner();
    answered(With { recording, events: Some(digest), with_events: None }, &question)
}

/// `with`, unless it cannot answer what was asked.
fn answered(with: With, question: &Question) -> Result<With, LabError> {
    let Some(file) = &question.file else { return Ok(with) };
    match &with.events {
        Some(events) if events.has_pages() => match events.unknown_file() {
            Some(known) => Err(UnknownName::new("file with events", file, known).into()),
            None => Ok(with),
        },
        _ => {
            let hint = match &with.with_events {
                Some(command) => format!("record them with `{command}`"),
                None => "only simulated runs record them: `pagetide explain WORKLOAD --file NAME`".to_owned(),
            };
            let label = &with.recording.label;
            Err(LabError::refused(format!("`{label}` was recorded without events of pages"), hint))
        }
    }
}

#[cfg(test)]
mod protection_tests;
#[cfg(test)]
mod tests;
