//! A run as a trace that other programs show: for the Perfetto user interface, and as the text that a kernel's
//! `trace` file has.
//!
//! Both take events chunk by chunk, each by itself, and hand over what they have written after each, so that memory
//! does not grow with the run. The same recording gives the same bytes. [`perfetto`] draws what a recording tells of
//! the whole run, [`events`] what each event is on it; [`packets`] and [`proto`] are how it is written, [`counters`]
//! which unit a counter has, [`threads`] who is which thread. [`ftrace`] is the text, [`tracepoints`] how a kernel
//! prints an event, [`trace_dat`] the same for `trace-cmd`.

mod counters;
mod events;
mod ftrace;
mod line;
mod packets;
mod perfetto;
mod proto;
mod tasks;
mod threads;
mod trace_dat;
mod tracepoints;

use recording::{Chunk, Names, Recording};

use ftrace::FtraceText;
use perfetto::PerfettoTrace;
use trace_dat::TraceDat;

/// For whom a trace is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceFormat {
    /// `perfetto.protos.Trace`, which the Perfetto user interface and `trace_processor` open.
    Perfetto,
    /// The text of a kernel's `trace` file.
    Ftrace,
    /// A `trace.dat`, which `trace-cmd report` and KernelShark open.
    TraceDat,
}

/// A trace that is being written.
///
/// Write what [`RunTrace::take`] hands over after [`RunTrace::new`] and after each chunk, in that order. Times are the
/// run's own clock; deterministic.
#[derive(Debug)]
pub struct RunTrace(Inner);

#[derive(Debug)]
enum Inner {
    Perfetto(Box<PerfettoTrace>),
    Ftrace(FtraceText),
    TraceDat(Box<TraceDat>),
}

impl RunTrace {
    /// The trace of `recording` without its events; `has_events` if they will follow as chunks.
    pub fn new(format: TraceFormat, recording: &Recording, has_events: bool) -> Self {
        Self(match format {
            TraceFormat::Perfetto => Inner::Perfetto(Box::new(PerfettoTrace::new(recording, has_events))),
            TraceFormat::Ftrace => Inner::Ftrace(FtraceText::new(recording)),
            TraceFormat::TraceDat => Inner::TraceDat(Box::new(TraceDat::new(recording))),
        })
    }

    /// Whether it has to see all events before it can write the first: then it is shown them, what it hands over
    /// is thrown away, and [`RunTrace::again`] is shown them once more.
    pub const fn sees_all_first(&self) -> bool {
        matches!(self.0, Inner::TraceDat(_))
    }

    /// The trace of the same `recording`, now that all events are known.
    #[must_use]
    pub fn again(self, recording: &Recording) -> Self {
        match self.0 {
            Inner::TraceDat(trace) => Self(Inner::TraceDat(Box::new(trace.again(recording)))),
            other => Self(other),
        }
    }

    /// There are no more events.
    pub fn finish(&mut self) {
        if let Inner::TraceDat(trace) = &mut self.0 {
            trace.finish();
        }
    }

    /// Adds events, which follow those of the chunk before; `names` are all names so far.
    pub fn events(&mut self, chunk: &Chunk, names: &Names) {
        match &mut self.0 {
            Inner::Perfetto(trace) => trace.events(chunk, names),
            Inner::Ftrace(text) => text.events(chunk, names),
            Inner::TraceDat(trace) => trace.events(chunk, names),
        }
    }

    /// The bytes that have come since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        match &mut self.0 {
            Inner::Perfetto(trace) => trace.take(),
            Inner::Ftrace(text) => text.take(),
            Inner::TraceDat(trace) => trace.take(),
        }
    }
}

#[cfg(test)]
mod tests;
