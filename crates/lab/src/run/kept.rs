//! Recordings that are written while their run goes: events have no room in memory, and what was sampled shall
//! outlive a process that is killed.
//!
//! A write that the system refuses ends the run soon, and its error is that of the write. Left out: runs on real
//! kernels, whose recordings are written when they have ended. Neighbours: [`crate::run::simulate`] runs,
//! `events.rs` translates, [`recording::RecordingWriter`] writes.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mm::base::event::Detail;
use recording::events::{Chunk, Names};
use recording::{Recording, RecordingError, RecordingWriter, Series};
use sim::Progress;
use sim::run::{SampleChunk, SampleSink, SimRun, Watch};

use crate::error::LabError;
use crate::run::counted::{phases, since};
use crate::run::simulate::{run_watched, translated};

/// The new folder of a run by its place in the plan.
pub type FolderOfRun = Arc<dyn Fn(usize) -> PathBuf + Send + Sync>;

/// Runs are to keep what they leave, each in the recording that it writes while it goes.
#[derive(Clone)]
pub struct KeepRuns {
    /// Which events, too; none if nobody wants any.
    pub detail: Option<Detail>,
    /// Where.
    pub folder: FolderOfRun,
}

/// Where a run's samples and events go while it goes, until the system refuses to write some.
struct Going {
    writer: RecordingWriter,
    identity: Recording,
    refused: Option<RecordingError>,
}

impl KeepRuns {
    /// For a part of a plan: its runs' places in the whole of it.
    pub(crate) fn of_places(self, places: Vec<usize>) -> Self {
        let Self { detail, folder } = self;
        Self { detail, folder: Arc::new(move |index| folder(places[index])) }
    }

    /// Runs `spec`, number `index` of its plan, and writes its recording.
    ///
    /// # Errors
    /// As a run that is not kept; the folder cannot be written, which may be after the run has ended.
    pub(crate) fn run(
        &self,
        index: usize,
        spec: &SimRun,
        identity: Recording,
        stop: &Arc<AtomicBool>,
        mut progress: impl FnMut(Progress) + 'static,
    ) -> Result<Recording, LabError> {
        let writer = RecordingWriter::begin(&(self.folder)(index), &identity)?;
        let going = Going { writer, identity: identity.clone(), refused: None };
        let going = Rc::new(RefCell::new(going));
        let stop_this = Arc::new(AtomicBool::new(false));
        let watch = {
            let (going, stop, stop_this) = (Rc::clone(&going), Arc::clone(stop), Arc::clone(&stop_this));
            move |so_far| {
                let ends = stop.load(Ordering::Relaxed) || going.borrow().refused.is_some();
                stop_this.store(ends, Ordering::Relaxed);
                progress(so_far);
            }
        };
        let mut wanted = Watch { samples: Some(samples_to(&going)), ..Watch::default() };
        if let Some(detail) = self.detail {
            let going = Rc::clone(&going);
            let sink = move |names: &Names, chunk: &Chunk| going.borrow_mut().take_events(names, chunk);
            wanted.events = Some(translated(detail, sink));
        }
        let result = run_watched(spec, identity, &stop_this, watch, wanted);
        let Ok(going) = Rc::try_unwrap(going) else { unreachable!("the run is over, and what it held") };
        let Going { writer, refused, .. } = going.into_inner();
        if let Some(error) = refused {
            return Err(writer.refused(error).into());
        }
        let recording = result?;
        match writer.finish(&recording) {
            Ok(_) => Ok(recording),
            Err(error) => Err(LabError::NotKept(Box::new(recording), error)),
        }
    }
}

fn samples_to(going: &Rc<RefCell<Going>>) -> SampleSink {
    let going = Rc::clone(going);
    Box::new(move |chunk| going.borrow_mut().take_samples(chunk))
}

impl Going {
    fn take_samples(&mut self, chunk: SampleChunk<'_>) {
        if self.refused.is_some() {
            return;
        }
        let SampleChunk { columns, rows, phases: ended, vmstat_before, vmstat } = chunk;
        let rows: Vec<_> = rows.into_iter().map(|(at, values)| (at.get(), values)).collect();
        let ended = ended.iter().map(|phase| (phase.name.clone(), phase.at.get(), phase.vmstat.clone()));
        let known = Recording {
            vmstat: since(vmstat_before, &vmstat),
            phases: phases(vmstat_before.clone(), ended),
            simulated_ns: rows.last().map_or(0, |(at, _)| *at),
            ..self.identity.clone()
        };
        let rows = Series { columns, rows, ..Series::default() };
        self.refused = self.writer.sampled(&known, &rows).err();
    }

    fn take_events(&mut self, names: &Names, chunk: &Chunk) {
        if self.refused.is_none() {
            let written = self.writer.events().and_then(|events| events.append(chunk, names));
            self.refused = written.err();
        }
    }
}

impl std::fmt::Debug for KeepRuns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeepRuns").field("detail", &self.detail).finish_non_exhaustive()
    }
}
