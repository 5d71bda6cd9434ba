//! Whether a run gets anywhere; one that does not ends, and says who waits for what.
//!
//! A run gets somewhere where a program goes back to user mode, works there or sleeps by choice, where more pages or
//! fewer are in use, and where a disk is asked for something. After [`PATIENCE`] of simulated time or [`EVENTS`]
//! without any of it, or where one task has waited for [`LONGEST_WAIT`] in the kernel, the run ends: every wait of
//! Linux that has an end is over by then. Who goes round, gets some pages and gives them back, gets nowhere.

use kernel::{Machine, WaitReason};
use mm::base::layout::ZoneKind;
use mm::base::vmstat::VmEvent;
use units::{Nanos, NodeId, Order};

use crate::accounts::waits::{WaitKind, kernel_name};
use crate::engine::sim::{SimKernel, SimMemory};
use crate::engine::simulation::RunError;
use crate::machine::readings::{Doing, Unfinished};
use crate::run::left::Left;

/// How long a run may get nowhere.
const PATIENCE: Nanos = Nanos::from_secs(600);
/// How long a task may wait for one thing that is not its own choice.
const LONGEST_WAIT: Nanos = Nanos::from_secs(3600);
/// Between two looks, simulated time or events: they cost more the more tasks there are.
const LOOK_EVERY: (Nanos, u64) = (Nanos::from_secs(10), 1 << 19);
/// Events in which a run may get nowhere: so many, and so many more for each page of memory, as reclaim looks at all of
/// it some times before it gives up.
const EVENTS: (u64, u64) = (1 << 22, 1 << 6);

/// What counts pages that are taken or given back.
const TURNED_OVER: [VmEvent; 5] = [
    VmEvent::PgAllocDma,
    VmEvent::PgAllocDma32,
    VmEvent::PgAllocNormal,
    VmEvent::PgAllocMovable,
    VmEvent::PgFree,
];
/// Pages that somebody may take and give back again and again: those of one request to the filesystem, or of a slab.
const ONE_REQUEST: u64 = 32;

/// The time and the events when nothing had happened.
const NEVER: (Nanos, u64) = (Nanos::ZERO, 0);

/// Looks at a run from time to time.
pub(super) struct Patience {
    kernel: SimKernel,
    /// The next look, by time and by events.
    next_look: (Nanos, u64),
    /// Events in which it may get nowhere.
    events_max: u64,
    /// Returns to user mode and pages when it was seen to get somewhere, and when that was.
    returns: u64,
    pages: Moved,
    since: (Nanos, u64),
    /// When a page was last seen to have moved, whoever gave it back.
    moved_since: (Nanos, u64),
    moved: u64,
}

/// What has become of pages so far.
#[derive(Default)]
struct Moved {
    /// In use now.
    used: u64,
    /// Allocations and pages freed.
    turned_over: u64,
    /// KiB that disks were asked for.
    asked: u64,
}

impl Patience {
    pub(super) fn with(kernel: SimKernel) -> Self {
        let frames = kernel.mem(|mem| mem.core.alloc.frames.len() as u64);
        let events_max = EVENTS.0 + (EVENTS.1 * frames);
        Self {
            kernel,
            next_look: (Nanos::ZERO, 0),
            events_max,
            returns: 0,
            pages: Moved::default(),
            since: NEVER,
            moved_since: NEVER,
            moved: 0,
        }
    }

    /// To be called every now and then.
    ///
    /// # Errors
    /// [`RunError::NoProgress`].
    pub(super) fn look(&mut self) -> Result<(), RunError> {
        let machine = self.kernel.machine();
        let (now, events) = (machine.now(), machine.statistics().events);
        if now < self.next_look.0 && events < self.next_look.1 {
            return Ok(());
        }
        self.next_look = (now + LOOK_EVERY.0, events + LOOK_EVERY.1);
        let tasks = machine.unfinished();
        let pages = Moved::of(&self.kernel);
        let moved = pages.turned_over + pages.asked;
        if moved != self.moved {
            (self.moved, self.moved_since) = (moved, (now, events));
        }
        let changed = pages.used.abs_diff(self.pages.used) > ONE_REQUEST || pages.asked != self.pages.asked;
        let returns = machine.returns();
        let by_choice = machine.works_until() > now || tasks.iter().any(sleeps);
        if changed || by_choice || returns != self.returns {
            (self.returns, self.pages, self.since) = (returns, pages, (now, events));
        }
        let is_over = |since: (Nanos, u64)| now - since.0 > PATIENCE || events - since.1 > self.events_max;
        // Others may well sleep by choice until one comes that goes round in the kernel.
        let stands_off = is_over(self.moved_since) && stands_off(&self.kernel, &tasks);
        let stuck =
            tasks.iter().find(|task| waits_since(task).is_some_and(|since| now - since > LONGEST_WAIT));
        if stuck.is_none() && !is_over(self.since) && !stands_off {
            return Ok(());
        }
        let since = if stands_off { self.moved_since.0 } else { self.since.0 };
        Err(no_progress(&self.kernel, since, stuck, &tasks))
    }
}

/// Whether kswapd has nothing to do, as some zone is above its high mark, while all who reclaim wait for the reserve of
/// all zones and wake it again and again: so does Linux, until a thread that does not wait takes a page of that zone.
fn stands_off(kernel: &SimKernel, tasks: &[Unfinished]) -> bool {
    let throttled = |task: &Unfinished| {
        matches!(task.doing, Doing::Waiting { reason: WaitReason::DirectReclaimThrottle, .. })
    };
    let is_content = |mem: &SimMemory, node: NodeId| {
        !mem.allow_direct_reclaim(node) && mem.is_balanced(node, Order(0), ZoneKind::Normal)
    };
    tasks.iter().any(throttled) && kernel.mem(|mem| mem.nodes().any(|node| is_content(mem, node)))
}

impl Moved {
    fn of(kernel: &SimKernel) -> Self {
        kernel.mem(|mem| {
            let sum = |events: &[VmEvent]| events.iter().map(|&event| mem.core.alloc.events.get(event)).sum();
            Self {
                used: mem.core.alloc.zones().iter().map(|zone| zone.managed.0 - zone.free_pages().0).sum(),
                turned_over: sum(&TURNED_OVER),
                asked: sum(&[VmEvent::PgPgIn, VmEvent::PgPgOut]),
            }
        })
    }
}

fn sleeps(task: &Unfinished) -> bool {
    matches!(task.doing, Doing::Waiting { reason: WaitReason::UserSleep, .. })
}

/// Since when a task waits that would rather go on.
fn waits_since(task: &Unfinished) -> Option<Nanos> {
    match task.doing {
        Doing::Waiting { reason, since } if WaitKind::of(reason) != WaitKind::Idle => Some(since),
        _ => None,
    }
}

fn no_progress(
    kernel: &SimKernel,
    since: Nanos,
    stuck: Option<&Unfinished>,
    tasks: &[Unfinished],
) -> RunError {
    let first = || tasks.iter().find(|task| waits_since(task).is_some());
    let who = match stuck.or_else(first) {
        Some(Unfinished { name, doing: Doing::Waiting { reason, .. }, .. }) => {
            format!("`{name}` waits in {}", kernel_name(*reason))
        }
        _ => "nobody goes back to its program".to_owned(),
    };
    let since = stuck.and_then(waits_since).unwrap_or(since);
    let Left { free, reclaimable, hope } = Left::of(kernel);
    let stands_off = stands_off(kernel, tasks);
    let memory = match (hope, stands_off) {
        (false, _) => format!("no memory is left that could be reclaimed ({free} pages are free)"),
        (true, true) => format!(
            "kswapd is content with one zone, and those who reclaim wait for more of all to be free ({free} pages are)"
        ),
        (true, false) => format!("{free} pages are free, {reclaimable} of files could be"),
    };
    let hope = hope && !stands_off;
    RunError::NoProgress { since, why: format!("{who}; {memory}"), hope, unfinished: tasks.to_vec() }
}
