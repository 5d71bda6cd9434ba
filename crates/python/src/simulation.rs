//! A run that is stopped to look at it.
//!
//! A simulation has handles that cannot leave their thread, so each has one of its own; what Python asks is sent there
//! as a function and its answer comes back, while Python's lock is free. The thread ends when the object goes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use lab::stepping::{self, CachedPage, PageLook, Stepping};
use lab::{LabError, Request};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::asked::Asked;
use crate::errors::{OrRaised, raised, usage};
use crate::names::rows;
use crate::recording::Recording;
use crate::run::stopped;
use crate::work::{Watch, Worked, watched};

/// A time of a run, such as `2 s`, in nanoseconds.
#[pyfunction]
pub(crate) fn parse_moment(py: Python<'_>, text: &str) -> PyResult<u64> {
    Ok(stepping::parse_moment(text).or_raised(py)?.get())
}

type Asking = Box<dyn FnOnce(&mut Option<Stepping>) + Send>;

/// A simulated run between two events.
#[pyclass(frozen, module = "pagetide._native")]
pub(crate) struct Simulation {
    thread: Mutex<Option<Thread>>,
    stop: Arc<AtomicBool>,
    /// Simulated time that was asked for, in nanoseconds: nothing may have happened just then.
    asked_ns: Mutex<u64>,
    scenario: String,
}

/// Where the run is.
struct Thread {
    ask: Sender<Asking>,
    handle: JoinHandle<()>,
}

impl Simulation {
    /// Asks the run something that may take long: stopped by Ctrl-C.
    fn ask<T: Send + 'static>(
        &self,
        py: Python<'_>,
        question: impl FnOnce(Stepped<'_>) -> Result<T, LabError> + Send + 'static,
    ) -> PyResult<T> {
        let (tell, told) = channel();
        let asking: Asking = Box::new(move |run| {
            let answer = run.is_some().then(|| question(Stepped(run)));
            // Whoever asked waits for it.
            let _ = tell.send(answer);
        });
        {
            let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
            let sent = thread.as_ref().map(|thread| thread.ask.send(asking));
            if !matches!(sent, Some(Ok(()))) {
                return Err(over(py));
            }
        }
        let watch = Watch::stopping(&self.stop);
        let told = Mutex::new(told);
        let wait = || told.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Worked { value, stopped_by } = watched(py, &watch, None, wait);
        self.stop.store(false, Ordering::Relaxed);
        match (value, stopped_by) {
            (_, Some(error)) => Err(stopped(py, error, "interrupted: the run can go on", None)),
            (Ok(Some(answer)), None) => answer.or_raised(py),
            (Ok(None) | Err(_), None) => Err(over(py)),
        }
    }
}

/// The run, for one question.
struct Stepped<'a>(&'a mut Option<Stepping>);

impl Stepped<'_> {
    fn run(&mut self) -> &mut Stepping {
        self.0.as_mut().expect("a question is asked of a run")
    }
}

fn over(py: Python<'_>) -> PyErr {
    usage(py, "the simulation has been finished: its recording is what is left")
}

fn live(questions: &Receiver<Asking>, begin: impl FnOnce() -> Option<Stepping>) {
    let mut run = begin();
    while let Ok(question) = questions.recv() {
        question(&mut run);
    }
}

#[pymethods]
impl Simulation {
    /// Boots the machine of a scenario; its workload has done nothing yet.
    #[new]
    fn new(py: Python<'_>, asked: Asked) -> PyResult<Self> {
        let (scenario, _) = Request::from(asked).resolve_telling().or_raised(py)?;
        let label = lab::label(&scenario);
        let toml = scenario.to_toml();
        let stop = Arc::new(AtomicBool::new(false));
        let (ask, questions) = channel();
        let (tell, told) = channel();
        let stop_run = Arc::clone(&stop);
        let handle = std::thread::spawn(move || {
            let begin = || match Stepping::begin(&scenario, &label, &stop_run, |_| {}) {
                Ok(run) => {
                    let _ = tell.send(Ok(()));
                    Some(run)
                }
                Err(error) => {
                    let _ = tell.send(Err(error));
                    None
                }
            };
            live(&questions, begin);
        });
        let told = Mutex::new(told);
        let begun = py.detach(|| told.lock().unwrap_or_else(PoisonError::into_inner).recv());
        match begun {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(raised(py, &error)),
            Err(_) => return Err(usage(py, "the simulation could not be begun")),
        }
        let thread = Mutex::new(Some(Thread { ask, handle }));
        Ok(Self { thread, stop, asked_ns: Mutex::new(0), scenario: toml })
    }

    /// The resolved scenario, TOML.
    #[getter]
    fn scenario(&self) -> &str {
        &self.scenario
    }

    /// Goes on up to this time, such as `2 s`, or to the end of the workload.
    fn run_until(&self, py: Python<'_>, time: &str) -> PyResult<()> {
        let time = stepping::parse_moment(time).or_raised(py)?;
        self.ask(py, move |mut run| run.run().run_until(time))?;
        let mut asked = self.asked_ns.lock().unwrap_or_else(PoisonError::into_inner);
        *asked = asked.max(time.get());
        Ok(())
    }

    /// Goes on by so many events.
    fn step(&self, py: Python<'_>, events: u64) -> PyResult<()> {
        self.ask(py, move |mut run| run.run().step(events))
    }

    /// Simulated time in nanoseconds: up to when everything has happened.
    fn now_ns(&self, py: Python<'_>) -> PyResult<u64> {
        let (now, is_over) = self.ask(py, |mut run| {
            let run = run.run();
            Ok((run.now()?.get(), run.is_over()))
        })?;
        let asked = *self.asked_ns.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(if is_over { now } else { now.max(asked) })
    }

    /// Events so far.
    fn events(&self, py: Python<'_>) -> PyResult<u64> {
        self.ask(py, |mut run| run.run().events())
    }

    /// Whether the workload has ended.
    fn is_over(&self, py: Python<'_>) -> PyResult<bool> {
        self.ask(py, |mut run| Ok(run.run().is_over()))
    }

    /// `/proc/vmstat` now.
    fn vmstat<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.ask(py, |mut run| run.run().vmstat())?.into_pyobject(py)
    }

    /// The files of every cgroup now, as last flushed.
    fn memcg<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.ask(py, |mut run| run.run().memcg())?.into_pyobject(py)
    }

    /// The zones now, in pages.
    fn zones<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        rows(py, &self.ask(py, |mut run| run.run().zones())?)
    }

    /// The lists or generations of a cgroup now, in pages.
    fn lru<'py>(&self, py: Python<'py>, cgroup: String) -> PyResult<Bound<'py, PyAny>> {
        rows(py, &self.ask(py, move |mut run| run.run().lru(&cgroup))?)
    }

    /// The tasks that have not ended.
    fn tasks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        rows(py, &self.ask(py, |mut run| run.run().tasks())?)
    }

    /// A page of a file: whether it is `cached`, `evicted` or `absent`, or there is `no file` of that name, and what
    /// is known of it.
    fn page<'py>(&self, py: Python<'py>, file: String, index: u32) -> PyResult<Bound<'py, PyDict>> {
        let look = self.ask(py, move |mut run| run.run().page(&file, index))?;
        let page = PyDict::new(py);
        let (is, cached) = match look {
            PageLook::NoFile => ("no file", None),
            PageLook::Absent => ("absent", None),
            PageLook::Evicted => ("evicted", None),
            PageLook::Cached(cached) => ("cached", Some(cached)),
        };
        page.set_item("is", is)?;
        if let Some(CachedPage { pfn, pages, zone, cgroup, state, list, flags }) = cached {
            page.set_item("pfn", pfn)?;
            page.set_item("pages", pages)?;
            page.set_item("zone", zone)?;
            page.set_item("cgroup", cgroup)?;
            page.set_item("state", state)?;
            page.set_item("list", list)?;
            page.set_item("flags", flags)?;
        }
        Ok(page)
    }

    /// Goes on to the end; the recording is that of any other run of the scenario.
    fn finish(&self, py: Python<'_>) -> PyResult<Recording> {
        let recording = self.ask(py, |run| run.0.take().expect("there is a run").finish())?;
        Ok(Recording::new(Arc::new(recording), None))
    }
}

impl Drop for Simulation {
    /// Ends the thread, which never waits for Python.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Thread { ask, handle }) = thread {
            drop(ask);
            let _ = handle.join(); // A panic there has told what it is.
        }
    }
}
