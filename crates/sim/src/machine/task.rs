//! What the machine knows of a task.
//!
//! Tasks are numbered in the order in which they start and are never forgotten, so that their
//! waits can be attributed after the run. Task 0 is the swapper, as on Linux: it stands for
//! whatever is no task, that is boot and interrupts, and never runs.
//!
//! Read next: `schedule.rs` for what moves a task from one [`Place`] to the next.

use std::future::Future;
use std::pin::Pin;

use kernel::machine::{WaitReason, Woken};

use crate::accounts::pressure::OfTask;
use crate::accounts::sections::{Inside, SectionTotal};
use crate::accounts::waits::WaitTotal;
use crate::event::FOREVER;
use crate::machine::share::Share;

/// An index that points nowhere.
pub(crate) const NONE: u32 = u32::MAX;
/// The task that stands for boot and interrupts.
pub(crate) const SWAPPER: u32 = 0;

/// The program of a task.
pub(crate) type Program = Pin<Box<dyn Future<Output = ()>>>;

/// Where a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the run queue of its CPU.
    Queued,
    /// On its CPU: switched in, polled, or letting its debt pass.
    OnCpu,
    /// Asleep or waiting.
    Blocked,
    /// Ended.
    Done,
}

/// What a task does when its debt has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    /// Goes on with its program, outside of the kernel or in it.
    Resume { to_user: bool },
    /// Sleeps, unless it was woken meanwhile; [`FOREVER`] is no timeout.
    Block { reason: WaitReason, timeout: u64 },
    /// Ends.
    End,
}

/// A task.
pub(crate) struct Task {
    /// Absent while it is polled and after its end.
    pub(crate) program: Option<Program>,
    /// Nanoseconds of CPU that it has charged and that have not passed.
    pub(crate) debt: u64,
    /// Nanoseconds that it has been on a CPU, interrupts there included.
    pub(crate) ran: u64,
    pub(crate) then: Then,
    pub(crate) place: Place,
    /// The CPU it is on, queued on, or was on last.
    pub(crate) cpu: u16,
    pub(crate) pinned: bool,
    pub(crate) share: Share,
    /// How its last wait ended, until it asks for something else.
    pub(crate) woken: Option<Woken>,
    /// Whether a timer of this task's generation is in the agenda.
    pub(crate) timer_armed: bool,
    /// Tells the present timer from stale ones; wraps.
    pub(crate) generation: u32,
    /// The wait queue that it is in, and its neighbours there.
    pub(crate) queue: u32,
    pub(crate) before: u32,
    pub(crate) behind: u32,
    /// The label of its present wait, while blocked.
    pub(crate) reason: WaitReason,
    pub(crate) since: u64,
    /// Of its present wait; [`FOREVER`] for none.
    pub(crate) timeout: u64,
    /// Sections that it is in, and since when.
    pub(crate) inside: Inside,
    /// What it counts as in the pressure of its groups.
    pub(crate) pressure: OfTask,
    /// Writes that had been sent when its present wait began, if all of them were complete.
    pub(crate) writes_before: Option<u64>,
}

impl Task {
    /// A task that has not been placed on a CPU.
    pub(crate) fn new(program: Option<Program>, cpu: u16, pinned: bool) -> Self {
        let place = if program.is_some() { Place::Blocked } else { Place::Done };
        Self {
            program,
            debt: 0,
            ran: 0,
            then: Then::Resume { to_user: false },
            place,
            cpu,
            pinned,
            share: Share::default(),
            woken: None,
            timer_armed: false,
            generation: 0,
            queue: NONE,
            before: NONE,
            behind: NONE,
            reason: WaitReason::UserSleep,
            since: 0,
            timeout: FOREVER,
            inside: Inside::default(),
            pressure: OfTask::default(),
            writes_before: None,
        }
    }

    /// Whether it gives up its CPU when no debt is left.
    pub(crate) fn leaves_cpu(&self) -> bool {
        match self.then {
            Then::Resume { .. } => false,
            Then::Block { .. } => self.woken.is_none(),
            Then::End => true,
        }
    }
}

/// What is kept of a task for reports.
#[derive(Debug)]
pub(crate) struct TaskRecord {
    pub(crate) name: String,
    /// Of the present phase, in the order of the first of each; a task has few.
    pub(crate) waits: Vec<WaitTotal>,
    /// Of the present phase, too: time in sections.
    pub(crate) sections: Vec<SectionTotal>,
}
