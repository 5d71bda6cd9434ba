//! What happens by the clock: looks at memory, and signals that this process got and the command is to have.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::follower::{Follower, look_at};
use crate::sys::{self, Sleeper};
use crate::writing::Outlet;
use crate::{locked, maps};

/// How often signals are looked for.
const TICK: Duration = Duration::from_millis(50);

/// Between two looks at a process, as many times as long as a look takes: large ones are looked at more seldom.
const PAUSE: u32 = 4;

/// How often what was done is passed on in any case: little is lost where this process is killed.
const PASS: Duration = Duration::from_secs(1);

/// A clock that stops when it is told to.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    /// All is done.
    pub(crate) fn ring(&self) {
        *locked(&self.rung) = true;
        self.changed.notify_all();
    }

    /// Waits; whether all is done.
    fn wait(&self, length: Duration) -> bool {
        let rung = locked(&self.rung);
        let waited = self.changed.wait_timeout_while(rung, length, |rung| !*rung);
        waited.map_or(true, |(rung, _)| *rung)
    }
}

/// What the clock needs.
pub(crate) struct Ticker<'a> {
    pub(crate) follower: &'a Mutex<Follower>,
    pub(crate) outlet: &'a Outlet,
    pub(crate) bell: &'a Bell,
    /// Number of a signal that came, or 0.
    pub(crate) signal: &'a AtomicUsize,
    /// The first process.
    pub(crate) root: i32,
    /// It ran before we came, and goes on when we go.
    pub(crate) was_there: bool,
    pub(crate) root_ended: &'a AtomicBool,
    pub(crate) leave: &'a AtomicBool,
    /// The thread that waits for tasks.
    pub(crate) waiter: Sleeper,
    /// How often memory is looked at; never where nothing is said.
    pub(crate) sample: Option<Duration>,
}

impl Ticker<'_> {
    /// Until the bell rings.
    pub(crate) fn run(&self) {
        let (mut looked_at, mut passed_at) = (Instant::now(), Instant::now());
        let mut looked = HashMap::new();
        let tick = self.sample.unwrap_or(TICK).min(TICK);
        while !self.bell.wait(tick) {
            self.pass_signals();
            {
                let mut follower = locked(self.follower);
                follower.settle_all();
                follower.tick();
            }
            if self.sample.is_some_and(|sample| looked_at.elapsed() >= sample) {
                self.look(&mut looked);
                looked_at = Instant::now();
            }
            if passed_at.elapsed() >= PASS {
                let mut follower = locked(self.follower);
                if follower.ready() > 0 {
                    self.outlet.pass_all(&mut follower, false);
                }
                passed_at = Instant::now();
            }
            if self.leave.load(Ordering::Acquire) {
                self.waiter.wake();
            }
        }
    }

    fn pass_signals(&self) {
        let Ok(signal @ 1..) = i32::try_from(self.signal.swap(0, Ordering::Relaxed)) else { return };
        if self.was_there || self.root_ended.load(Ordering::Acquire) {
            self.leave.store(true, Ordering::Release);
        } else if !(signal == libc::SIGINT && terminal_signals_us()) {
            sys::pass_signal(self.root, signal);
        }
    }

    /// Looks at those that have run since, and at those whose pages their parent may have left to them.
    fn look(&self, looked: &mut HashMap<i32, Looked>) {
        let processes = locked(self.follower).to_look_at();
        looked.retain(|pid, _| processes.iter().any(|(one, _)| one == pid));
        for (pid, tid) in processes {
            let began = Instant::now();
            let before = looked.get(&pid);
            if before.is_some_and(|before| began < before.again) {
                continue;
            }
            let inherited = locked(self.follower).inherited(pid);
            let ran = sys::cpu_time(pid);
            if ran.is_some() && inherited.is_empty() && before.is_some_and(|before| before.ran == ran) {
                continue; // It has touched nothing.
            }
            let look = look_at(tid, true, &inherited);
            let _ = maps::forget_used(tid); // Then what was used before counts again.
            looked.insert(pid, Looked { ran, again: Instant::now() + began.elapsed() * PAUSE });
            let mut follower = locked(self.follower);
            follower.looked(pid, &look);
            self.outlet.pass(&mut follower);
        }
    }
}

/// A look at a process.
struct Looked {
    /// How long it had run then.
    ran: Option<u64>,
    /// When the next one may be.
    again: Instant,
}

/// Whether a Ctrl-C at the terminal goes to this process, and with it to the command: some programs take a second
/// one for impatience. Its group is then the terminal's.
fn terminal_signals_us() -> bool {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let mut fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_ascii_whitespace().skip(2);
    let (group, terminals) = (fields.next(), fields.nth(2));
    group.is_some() && group == terminals
}
