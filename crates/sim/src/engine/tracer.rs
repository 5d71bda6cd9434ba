//! The tracer that the kernel has: what it tells becomes rows of the log, with the machine's time and task.

use std::rc::Rc;

use mm::base::event::{Detail, Trace, TraceEvent};

use crate::engine::core::Core;
use crate::trace::log::{EventLog, What};

/// The kernel's tracer: rows of the detail that is wanted; nothing, unless somebody wants it.
///
/// Whether it tells is asked while a run goes and not when it is compiled: there is one kernel to build, not a second
/// one for runs that nobody listens to.
#[derive(Clone, Default)]
pub struct SimTrace {
    detail: Option<Detail>,
    to: Option<(Rc<Core>, Rc<EventLog>)>,
}

impl SimTrace {
    pub(crate) fn new(core: Rc<Core>, log: Rc<EventLog>, detail: Detail) -> Self {
        Self { detail: Some(detail), to: Some((core, log)) }
    }
}

impl Trace for SimTrace {
    #[inline]
    fn listens(&self, detail: Detail) -> bool {
        self.detail.is_some_and(|wanted| detail <= wanted)
    }

    #[cold]
    #[inline(never)]
    fn event(&mut self, event: TraceEvent) {
        let Some((core, log)) = &self.to else { return };
        let (at, task) = (core.now.get(), core.task.get());
        match (event.page(), event) {
            (Some(page), _) => log.push_page(at, task, &event, page),
            (None, TraceEvent::AnonMapped { anon }) => log.forget(at, task, anon),
            (None, _) => log.push_owing(at, task, core.debt.get(), What::Kernel(event)),
        }
    }
}
