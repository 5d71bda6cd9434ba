//! Recordings that are written while their run goes, because their events have no room in memory.
//!
//! A write that the system refuses ends the run soon, and its error is that of the write. Left out: recordings
//! without events, which are written when the run has ended. Neighbours: [`crate::simulate`] runs,
//! `events.rs` translates, [`recording::RecordingWriter`] writes.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mm::base::event::Detail;
use recording::events::{Chunk, Names};
use recording::{Recording, RecordingError, RecordingWriter};
use sim::Progress;
use sim::run::SimRun;

use crate::error::LabError;
use crate::simulate::run_with_events;

/// The new folder of a run by its place in the plan.
pub type FolderOfRun = Arc<dyn Fn(usize) -> PathBuf + Send + Sync>;

/// Runs are to keep their events, each in the recording that it writes while it goes.
#[derive(Clone)]
pub struct KeepEvents {
    /// Which events.
    pub detail: Detail,
    /// Where.
    pub folder: FolderOfRun,
}

/// Where events go while a run goes, until the system refuses to write one.
struct Going {
    writer: RecordingWriter,
    refused: Option<RecordingError>,
}

impl KeepEvents {
    /// For a part of a plan: its runs' places in the whole of it.
    pub(crate) fn of_places(self, places: Vec<usize>) -> Self {
        let Self { detail, folder } = self;
        Self { detail, folder: Arc::new(move |index| folder(places[index])) }
    }

    /// Runs `spec`, number `index` of its plan, and writes its recording.
    ///
    /// # Errors
    /// As a run without events; the folder cannot be written.
    pub(crate) fn run(
        &self,
        index: usize,
        spec: &SimRun,
        identity: Recording,
        command: &str,
        stop: &Arc<AtomicBool>,
        mut progress: impl FnMut(Progress) + 'static,
    ) -> Result<Recording, LabError> {
        let writer = RecordingWriter::begin(&(self.folder)(index), &identity)?;
        let going = Rc::new(RefCell::new(Going { writer, refused: None }));
        let stop_this = Arc::new(AtomicBool::new(false));
        let watch = {
            let (going, stop, stop_this) = (Rc::clone(&going), Arc::clone(stop), Arc::clone(&stop_this));
            move |so_far| {
                let ends = stop.load(Ordering::Relaxed) || going.borrow().refused.is_some();
                stop_this.store(ends, Ordering::Relaxed);
                progress(so_far);
            }
        };
        let sink = {
            let going = Rc::clone(&going);
            move |names: &Names, chunk: &Chunk| going.borrow_mut().take(names, chunk)
        };
        let result = run_with_events(spec, identity, command, &stop_this, watch, self.detail, sink);
        let Ok(going) = Rc::try_unwrap(going) else { unreachable!("the run is over, and what it held") };
        let Going { writer, refused } = going.into_inner();
        if let Some(error) = refused {
            return Err(error.into());
        }
        let recording = result?;
        writer.finish(&recording)?;
        Ok(recording)
    }
}

impl Going {
    fn take(&mut self, names: &Names, chunk: &Chunk) {
        if self.refused.is_none() {
            let written = self.writer.events().and_then(|events| events.append(chunk, names));
            self.refused = written.err();
        }
    }
}

impl std::fmt::Debug for KeepEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeepEvents").field("detail", &self.detail).finish_non_exhaustive()
    }
}
