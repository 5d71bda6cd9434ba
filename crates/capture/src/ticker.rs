//! What happens by the clock: looks at memory, and signals that this process got and the command is to have.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::follower::{Follower, look_at};
use crate::memory::Referenced;
use crate::sys::{self, Sleeper};
use crate::writing::Outlet;
use crate::{locked, maps};

/// How often signals are looked for.
const TICK: Duration = Duration::from_millis(50);

/// Every so manieth look it is asked how much was used after these times, too.
const SAMPLED: u64 = 4;
const SAMPLES: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(30)];

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
    /// How long it is followed.
    pub(crate) length: Option<Duration>,
}

impl Ticker<'_> {
    /// Until the bell rings.
    pub(crate) fn run(&self) {
        let (mut ticked_at, mut looked_at, mut passed_at) = (Instant::now(), Instant::now(), Instant::now());
        let mut looked = HashMap::new();
        let began = Instant::now();
        let tick = self.sample.unwrap_or(TICK).min(TICK);
        while !self.bell.wait(if looked.is_empty() { tick } else { tick.min(SAMPLES[0]) }) {
            sample(&mut looked);
            if ticked_at.elapsed() < tick {
                continue;
            }
            ticked_at = Instant::now();
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
            if self.length.is_some_and(|length| began.elapsed() >= length) {
                self.leave.store(true, Ordering::Release);
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
            let now = Instant::now();
            let mut points = Vec::new();
            let mut after_ms = 0.0;
            let mut looks = 0;
            if let Some(before) = looked.remove(&pid) {
                after_ms = ms(now - before.forgot);
                looks = before.looks + 1;
                points = before.points;
            }
            if !points.is_empty() {
                points.push((after_ms, look.used.clone()));
            }
            let _ = maps::forget_used(tid); // Then what was used before counts again.
            let (forgot, again) = (Instant::now(), Instant::now() + began.elapsed() * PAUSE);
            looked.insert(pid, Looked { tid, ran, again, forgot, looks, points: Vec::new() });
            let mut follower = locked(self.follower);
            follower.sampled(pid, &points);
            follower.looked(pid, &look, after_ms);
            self.outlet.pass(&mut follower);
        }
    }
}

/// A look at a process.
struct Looked {
    /// The task that was asked.
    tid: i32,
    /// How long it had run then.
    ran: Option<u64>,
    /// When the next one may be.
    again: Instant,
    /// When it was asked to forget what was used.
    forgot: Instant,
    /// How many there were before.
    looks: u64,
    /// So many milliseconds after that, this much had been used.
    points: Vec<(f64, Vec<Referenced>)>,
}

impl Looked {
    /// Whether it is time to ask what was used.
    fn is_due(&self) -> bool {
        let next = self.looks.is_multiple_of(SAMPLED).then(|| SAMPLES.get(self.points.len())).flatten();
        next.is_some_and(|next| self.forgot.elapsed() >= *next)
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Asks what was used meanwhile, of those whose look is sampled.
fn sample(looked: &mut HashMap<i32, Looked>) {
    for one in looked.values_mut().filter(|one| one.is_due()) {
        let began = Instant::now();
        let used = maps::used(one.tid);
        // It is read page by page: on average in the middle.
        one.points.push((ms(began - one.forgot + began.elapsed() / 2), used));
        one.again += began.elapsed() * PAUSE;
    }
}

/// Whether a Ctrl-C at the terminal goes to this process, and with it to the command: some programs take a second
/// one for impatience. Its group is then the terminal's.
fn terminal_signals_us() -> bool {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let mut fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_ascii_whitespace().skip(2);
    let (group, terminals) = (fields.next(), fields.nth(2));
    group.is_some() && group == terminals
}
