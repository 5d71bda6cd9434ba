//! The oracle of liveness: with reclaimable memory left, or somebody to kill, every task that waits
//! goes on within bounded simulated time.
//!
//! Two bounds, each made of timeouts of the kernel and of what the machine can do:
//!
//! - *A wait.* Every sleep has a reason, and [`Bounds::of_wait`] says how long that may last: the
//!   timeout, where there is one; the time of the device for a request for every page of memory;
//!   for a reclaimer that waits for kswapd, kswapd's runs until it gives its node up. Threads
//!   without work and programs that sleep wait as long as they like.
//! - *A call.* A task may also go round for ever, in short waits or in none. A call of `n` pages has
//!   [`Bounds::of_call`]: `(1 + tasks) * nodes * (16 retries * 13 priorities * 100 ms)` for its
//!   first page, as each series of retries ends with a page, an error or a task killed (and a page
//!   charged needs one series more), and 100 ms for each further one, as reclaim that waits that
//!   long comes back with 32, or 2 s where tasks sleep above `memory.high`; all this beside CPU time
//!   and the device. What others take away, they got: they go on. So the bound is none for a task
//!   alone among an endless crowd; worlds end.
//!
//! Where no memory is left that anybody could reclaim, nothing is asked for: Linux does not go on
//! either ([`Left`]).
//!
//! Left out: time in run queues (the scheduler's own invariants hold that nobody is forgotten).
//! Neighbours: `hangs` plants what the oracle must find.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};

use kernel::{CostOp, Machine, WaitReason};
use mm::decide::over_high;
use mm::version::rules::HighPause;
use sim::run::Left;
use sim::{Doing, Sim, SimRun, Stall, Unfinished};
use units::Nanos;
use workload::system::System;

/// A reclaimer's wait for the disk or for progress: `HZ` / 10.
const LONG_WAIT: Nanos = Nanos::from_millis(100);
/// A pause of a writer (a fifth of a second).
const LONGEST_PAUSE: Nanos = Nanos::from_millis(200);
/// A tick.
const TICK: Nanos = Nanos::from_millis(4);
/// Rounds without progress before the OOM killer, and runs without before kswapd gives up
/// (`MAX_RECLAIM_RETRIES`).
const RETRIES: u64 = 16;
/// Priorities of a run of reclaim: `DEF_PRIORITY` down to 0.
const PRIORITIES: u64 = 13;
/// Simulated time between two looks at who waits.
const LOOK_EVERY: Nanos = Nanos::from_secs(1);
/// Events within one call that are a livelock: whole worlds take far less.
const EVENTS_OF_A_CALL: u64 = 1 << 18;

/// How long waits and calls of a world may last.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// A request for every page of memory, one after the other.
    device: Nanos,
    /// CPU time to look at all memory once, while every other task wants the CPU as well.
    cpu: Nanos,
    nodes: u64,
    tasks: u64,
    /// What each page of a call may take after the first.
    further_page: Nanos,
}

impl Bounds {
    /// The bounds of a machine that runs `tasks` tasks of a program.
    pub fn of(spec: &SimRun, tasks: u64) -> Self {
        let nodes = spec.layout.nodes.len() as u64;
        let pages = spec.layout.memory().0;
        let device = spec.hardware.devices.iter().map(|model| {
            let speeds = [model.read, model.write, model.slowest_write()];
            let latency = speeds.map(|speed| speed.latency.0).into_iter().max().unwrap_or(0);
            let page =
                speeds.map(|speed| speed.op.0.max(speed.random_op.0).max(transfer_time(speed.bandwidth)));
            let occupancy = page.into_iter().max().unwrap_or(0);
            // What is queued twice over: pages, and the log of what happened to them.
            2 * pages * (occupancy + (latency / u64::from(model.depth)) + 1) + latency
        });
        let costs = &spec.hardware.costs;
        let look = [CostOp::ScanPage, CostOp::ReclaimPage, CostOp::DeactivatePage, CostOp::InodeEvict];
        let page: u64 = look.into_iter().map(|op| costs.get(op).0).sum();
        // Beside the program: main, kswapd and kcompactd, khugepaged, flusher, four workers.
        let crowd = tasks + (2 * nodes) + 8;
        let cpu = pages * page * crowd.div_ceil(u64::from(spec.hardware.cpus));
        let pauses = spec.kernel.rules.high_pause != HighPause::None;
        let further_page = if pauses { over_high::LONGEST } else { LONG_WAIT };
        Self { device: Nanos(device.sum()), cpu: Nanos(cpu), nodes, tasks, further_page }
    }

    /// A page for one task, or an error: see the module.
    fn page(&self) -> Nanos {
        let series = RETRIES * PRIORITIES * LONG_WAIT.0;
        Nanos((1 + self.tasks) * self.nodes * (series + (RETRIES * self.cpu.0)) + self.device.0)
    }

    /// How long a task may sleep for `reason`; as long as it likes if nobody needs it meanwhile.
    pub fn of_wait(&self, reason: WaitReason) -> Option<Nanos> {
        // Timers are coarse: up to an eighth, and at least a tick.
        self.of_timer(reason).map(|longest| Nanos(longest.0 + longest.0 / 8 + TICK.0))
    }

    fn of_timer(&self, reason: WaitReason) -> Option<Nanos> {
        use WaitReason as R;
        match reason {
            R::KswapdIdle | R::KcompactdIdle | R::KhugepagedIdle | R::FlusherIdle => None,
            R::UserSleep | R::Join | R::Periodic => None,
            // As long as the calls of those before it in line, whose own waits are bounded.
            R::FileLock => None,
            R::ThrottleNoProgress | R::OomLock => Some(TICK),
            R::KswapdDoze | R::FragmentStall | R::ThrottleWriteback | R::Congestion | R::PressureWait => {
                Some(LONG_WAIT)
            }
            R::DirtyThrottle => Some(LONGEST_PAUSE),
            R::OverHigh => Some(over_high::LONGEST),
            // Until kswapd has freed some, or has failed 16 times at all its priorities.
            R::DirectReclaimThrottle => {
                Some(Nanos(RETRIES * ((PRIORITIES * LONG_WAIT.0) + self.cpu.0) + self.device.0))
            }
            R::RequestQueue => Some(Nanos(self.device.0 + self.cpu.0)),
            // The workers need the CPU alone.
            R::ListDrain => Some(self.cpu),
            // Who locked the page, or holds the request back, may need memory before it goes on.
            R::PageRead | R::PageWriteback | R::LogWrite | R::LogSpace | R::InodeReclaim => {
                Some(Nanos(self.device.0 + self.page().0))
            }
        }
    }

    /// How long a call that touches `pages` pages may last.
    pub fn of_call(&self, pages: u64) -> Nanos {
        // Calls that write to one file wait for each other.
        Nanos((1 + self.tasks) * (self.page().0 + (pages * self.further_page.0)))
    }
}

fn transfer_time(bandwidth: u64) -> u64 {
    (4096 * 1_000_000_000_u64).div_ceil(bandwidth)
}

/// A call that has not returned.
#[derive(Debug, Clone)]
struct Call {
    task: String,
    name: &'static str,
    pages: u64,
    since: Nanos,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    calls: BTreeMap<u64, Call>,
    /// The longest call that has returned, for whoever asks.
    longest: Option<(Nanos, Call)>,
    /// Those that took longer than they may.
    overlong: Vec<String>,
}

/// The calls of all tasks of a world: who is in which, and since when.
#[derive(Debug, Clone)]
pub struct Calls {
    bounds: Bounds,
    open: Arc<Mutex<Open>>,
}

impl Calls {
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, open: Arc::default() }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().expect("nobody panics with the lock")
    }

    /// Makes a call of a task that touches `pages` pages.
    pub async fn during<S: System, V>(
        &self,
        (sys, task): (&S, &str),
        name: &'static str,
        pages: u64,
        call: impl Future<Output = V>,
    ) -> V {
        let ticket = self.enter(task, name, pages, sys.now());
        let answer = call.await;
        self.leave(ticket, sys.now());
        answer
    }

    /// A task enters a call; returns the ticket to leave with.
    pub fn enter(&self, task: &str, name: &'static str, pages: u64, now: Nanos) -> u64 {
        let mut open = self.open();
        let ticket = open.next;
        open.next += 1;
        open.calls.insert(ticket, Call { task: task.to_owned(), name, pages, since: now });
        ticket
    }

    /// The call is over.
    pub fn leave(&self, ticket: u64, now: Nanos) {
        let mut open = self.open();
        let call = open.calls.remove(&ticket).expect("a call that was entered");
        let length = now.saturating_sub(call.since);
        let bound = self.bounds.of_call(call.pages);
        if length > bound {
            open.overlong.push(format!("{}: it took {length}", may(&call, bound)));
        }
        if open.longest.as_ref().is_none_or(|(longest, _)| length > *longest) {
            open.longest = Some((length, call));
        }
    }

    /// The longest call so far, in words.
    pub fn longest(&self) -> Option<(Nanos, String)> {
        let open = self.open();
        let (length, call) = open.longest.as_ref()?;
        let Call { task, name, pages, .. } = call;
        Some((*length, format!("{length} for {name} of {pages} pages by `{task}`")))
    }
}

fn may(Call { task, name, pages, since }: &Call, bound: Nanos) -> String {
    format!("`{task}` is in {name} of {pages} pages since {since}, which may take {bound}")
}

/// How the text begins of a run that ended because no memory is left for anybody.
pub const NO_HOPE: &str = "no memory is left";

/// Looks at a run from time to time.
#[derive(Debug)]
pub struct Oracle {
    calls: Calls,
    next_look: Nanos,
    /// Events since any call returned.
    events: u64,
    returned: u64,
}

impl Oracle {
    pub fn new(calls: Calls) -> Self {
        Self { calls, next_look: Nanos::ZERO, events: 0, returned: 0 }
    }

    /// To be called after every event.
    ///
    /// # Panics
    /// When somebody waits for too long: with who, for what and since when.
    pub fn look(&mut self, machine: &Sim, left: impl FnOnce() -> Left) {
        self.events += 1;
        let now = machine.now();
        if now < self.next_look && !self.events.is_multiple_of(EVENTS_OF_A_CALL / 64) {
            return;
        }
        self.next_look = Nanos(now.0 + LOOK_EVERY.0);
        if let Some(found) = self.found(now, &machine.unfinished()) {
            let Left { free, reclaimable, hope } = left();
            assert!(hope, "{NO_HOPE}: {found}");
            let others = machine.unfinished().iter().map(describe).collect::<String>();
            panic!("at {now}, {free} pages free, {reclaimable} reclaimable: {found}\nall tasks:{others}");
        }
    }

    fn found(&mut self, now: Nanos, tasks: &[Unfinished]) -> Option<String> {
        for task in tasks {
            let Doing::Waiting { reason, since } = task.doing else { continue };
            let Some(bound) = self.calls.bounds.of_wait(reason) else { continue };
            if now.saturating_sub(since) > bound {
                let name = &task.name;
                return Some(format!("`{name}` waits for {reason:?} since {since}, which may take {bound}"));
            }
        }
        let open = self.calls.open();
        let returned = open.next - open.calls.len() as u64;
        if returned != std::mem::replace(&mut self.returned, returned) {
            self.events = 0;
        }
        let livelock = self.events >= EVENTS_OF_A_CALL;
        let call = open.calls.values().find(|call| {
            livelock || now.saturating_sub(call.since) > self.calls.bounds.of_call(call.pages)
        })?;
        let doing = tasks.iter().find(|task| task.name == call.task).map(|task| task.doing);
        let text = may(call, self.calls.bounds.of_call(call.pages));
        Some(format!("{text}; no call returned for {} events; it is {doing:?}", self.events))
    }
}

fn describe(Unfinished { name, doing, .. }: &Unfinished) -> String {
    match doing {
        Doing::Waiting { reason, since } => format!("\n  `{name}` waits for {reason:?} since {since}"),
        _ => format!("\n  `{name}` runs"),
    }
}

/// What took too long in a run that is over: waits by their longest, and calls.
pub fn overlong(calls: &Calls, stalls: &[Stall]) -> Option<String> {
    let wait = stalls.iter().find_map(|stall| {
        let bound = calls.bounds.of_wait(stall.reason)?;
        let Stall { name, reason, longest, .. } = stall;
        let text = || format!("`{name}` waited for {reason:?} for {longest}, which may take {bound}");
        (*longest > bound).then(text)
    });
    wait.or_else(|| calls.open().overlong.first().cloned())
}
