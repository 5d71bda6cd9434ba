//! Long work for Python: in a thread of its own, watched by the one that called, stopped by Ctrl-C.
//!
//! # Theory of operation
//! The thread that works never touches Python: what it has to tell goes into [`Seen`]. The thread that called waits
//! without Python's lock, wakes ten times a second, looks for signals and calls the watcher with what was seen. So a
//! watcher runs where it was handed in, can take as long as it likes, and can neither block nor be called by a run.
//! A signal, or an exception of the watcher, sets the stop flag; the work is then waited for, and what it made until
//! then is returned beside the exception. Nobody is left running.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lab::replay::{ReplayControl, ReplayProgress};
use lab::size::{SizeControl, SizeProgress};
use lab::{Control, RunEvent, Told};
use pyo3::prelude::*;

/// Time between two looks at signals.
const LOOK: Duration = Duration::from_millis(100);

/// What a thread that works tells.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Seen {
    /// Runs that are over.
    pub(crate) done: usize,
    /// Runs that there are, as far as anybody knows.
    pub(crate) total: usize,
    /// What goes on.
    pub(crate) text: String,
    /// Simulated time of the run that told last, in seconds.
    pub(crate) simulated: f64,
    /// Sentences that nobody has been told yet.
    pub(crate) notes: Vec<String>,
    /// Bytes of a trace that were read, by all caches together.
    bytes: u64,
    is_over: bool,
}

/// The two sides of a watched piece of work.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    seen: Mutex<Seen>,
    changed: Condvar,
    /// Set to end the work soon.
    pub(crate) stop: Arc<AtomicBool>,
}

/// What work came to, and the exception that stopped it, if one did.
pub(crate) struct Worked<T> {
    pub(crate) value: T,
    pub(crate) stopped_by: Option<PyErr>,
}

impl Watch {
    pub(crate) fn new(total: usize) -> Arc<Self> {
        let watch = Self::default();
        watch.seen().total = total;
        Arc::new(watch)
    }

    /// Of work that `stop` stops.
    pub(crate) fn stopping(stop: &Arc<AtomicBool>) -> Self {
        Self { stop: Arc::clone(stop), ..Self::default() }
    }

    /// To be changed by the side that works.
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        // What a thread that panicked left of it is good enough to be shown.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The control of simulated and real runs that tells this watch.
    pub(crate) fn control(self: &Arc<Self>) -> Control {
        let watch = Arc::clone(self);
        let observer = move |event: RunEvent<'_>| {
            let mut seen = watch.seen();
            match event {
                RunEvent::Started { run, .. } => {
                    seen.text = format!("{}, seed {}", run.label, run.scenario.seed.0)
                }
                RunEvent::Advanced { simulated, .. } => seen.simulated = simulated.as_secs_f64(),
                RunEvent::Told { told: Told::Note(text), .. } => seen.notes.push(text.to_owned()),
                RunEvent::Told { told: Told::Phase(text) | Told::Progress(text), .. } => {
                    text.clone_into(&mut seen.text);
                }
                RunEvent::Told { told: Told::Kept(_), .. } => {}
                RunEvent::Finished { simulated, .. } => {
                    seen.done += 1;
                    seen.simulated = simulated.as_secs_f64();
                }
            }
        };
        Control { stop: Arc::clone(&self.stop), observer: Arc::new(observer), ..Control::default() }
    }

    /// The control of replays that tells this watch.
    pub(crate) fn replay_control(self: &Arc<Self>) -> ReplayControl {
        let watch = Arc::clone(self);
        let observer = move |progress: ReplayProgress| {
            let mut seen = watch.seen();
            match progress {
                ReplayProgress::Read { bytes, total } => {
                    seen.bytes += bytes;
                    seen.text = format!("{} of {} MiB of the trace", seen.bytes >> 20, total >> 20);
                }
                ReplayProgress::Kept { .. } => {}
                ReplayProgress::Fed { caches, .. } => seen.done += caches,
                ReplayProgress::Finished { .. } => seen.done += 1,
            }
        };
        ReplayControl { stop: Arc::clone(&self.stop), observer: Arc::new(observer), kept: None }
    }

    /// The control of a size that tells this watch.
    pub(crate) fn size_control(self: &Arc<Self>) -> SizeControl {
        let watch = Arc::clone(self);
        let observer = move |progress: SizeProgress<'_>| {
            let mut seen = watch.seen();
            match progress {
                SizeProgress::Read { bytes, total } => {
                    seen.text = format!("{} of {} MiB of the trace", bytes >> 20, total >> 20);
                }
                SizeProgress::Planned { runs } => seen.total = runs,
                SizeProgress::Finished { finished, label, seed, .. } => {
                    seen.done = finished;
                    seen.text = format!("{label}, seed {seed}");
                }
                SizeProgress::Checks { limit } => {
                    let at = limit.map_or("without a limit".to_owned(), |limit| format!("at {limit}"));
                    seen.text = format!("the program itself, {at}");
                }
                SizeProgress::Captures { .. } | SizeProgress::Timed { .. } => {}
            }
        };
        SizeControl { stop: Arc::clone(&self.stop), observer: Arc::new(observer) }
    }

    /// Waits a moment; whether the work is over.
    fn wait(&self) -> bool {
        let seen = self.seen();
        let waited = self.changed.wait_timeout_while(seen, LOOK, |seen| !seen.is_over);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_over
    }

    /// Looks for signals and tells the watcher.
    fn look(&self, py: Python<'_>, watcher: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        py.check_signals()?;
        let Some(watcher) = watcher else { return Ok(()) };
        let now = {
            let mut seen = self.seen();
            Seen { notes: std::mem::take(&mut seen.notes), ..seen.clone() }
        };
        watcher.call1((now.done, now.total, now.text, now.simulated, now.notes, now.is_over))?;
        Ok(())
    }
}

/// Says that the work is over, also when it panics.
struct Over<'a>(&'a Watch);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.seen().is_over = true;
        self.0.changed.notify_all();
    }
}

/// Does `work` in a thread of its own. `watcher` is called with what `watch` has seen.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    watch: &Watch,
    watcher: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce() -> T + Send,
) -> Worked<T> {
    // The first look is before anything begins: work that is short is told of, too.
    let mut stopped_by = watch.look(py, watcher).err();
    watch.stop.fetch_or(stopped_by.is_some(), Ordering::Relaxed);
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let _over = Over(watch);
            work()
        });
        loop {
            let is_over = py.detach(|| watch.wait());
            if stopped_by.is_none()
                && let Err(error) = watch.look(py, watcher)
            {
                watch.stop.store(true, Ordering::Relaxed);
                stopped_by = Some(error);
            }
            if is_over {
                break;
            }
        }
        // A panic is a bug of ours, and told as Python tells one.
        let value = py.detach(|| worker.join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Worked { value, stopped_by }
    })
}
