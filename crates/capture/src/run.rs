//! A capture from its beginning to its end: what starts, in which order, and what is left.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use rustix::process::{Resource, Rlimit};
use trace::{OperationKind, Trace};

use crate::error::CaptureError;
use crate::follower::Follower;
use crate::locked;
use crate::notices::answer;
use crate::program::{find, line};
use crate::stops::Stops;
use crate::sys::{self, Attached, Child, Notices, Sleeper, Streams, fork_stopped, sleeper};
use crate::ticker::{Bell, Ticker};
use crate::writing::{Outlet, Piece, WAITING_MAX, write};

/// How a program is followed.
#[derive(Debug, Clone)]
pub struct Options {
    /// How often memory is looked at; never where nothing is said.
    pub sample: Option<Duration>,
    /// Tasks that it may make, then it is killed: a program that forks without end would fill memory.
    pub tasks_max: usize,
    /// How long processes that ran before are followed; to their end where nothing is said.
    pub length: Option<Duration>,
    /// Where a command's output and errors go; its input is empty then. It has our streams where nothing is said.
    pub output: Option<Arc<OwnedFd>>,
}

impl Default for Options {
    fn default() -> Self {
        Self { sample: Some(Duration::from_millis(100)), tasks_max: 200_000, length: None, output: None }
    }
}

/// How the command's first process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With this status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// It did not: we left first.
    Left,
    /// It made more tasks than it may, and was killed.
    TooManyTasks,
}

/// What a capture leaves, beside what it has handed on.
#[derive(Debug)]
pub struct Captured {
    /// Tasks, files, mappings and what is missing; no operations.
    pub trace: Trace,
    /// How many operations there were, by kind.
    pub counts: [u64; OperationKind::ALL.len()],
    /// How it ended.
    pub ended: Ended,
    /// Whether all pieces were taken.
    pub written: io::Result<()>,
}

impl Captured {
    /// All operations.
    pub fn operations(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// Runs a command and hands what it does to `sink`, piece by piece, on a thread of its own. The command has this
/// process's environment, and its standard streams unless `options` names an output. A signal whose number is put into
/// `signal` is passed on to it; once the command has ended and only its children are left, it ends them.
///
/// # Errors
/// The command cannot be run or followed. An error of `sink` does not stop the command; it is in
/// [`Captured::written`].
pub fn command(
    program: &OsStr,
    arguments: &[OsString],
    options: &Options,
    signal: &AtomicUsize,
    sink: &mut (dyn FnMut(Piece) -> io::Result<()> + Send),
) -> Result<Captured, CaptureError> {
    if cfg!(not(target_arch = "x86_64")) {
        return Err(CaptureError::Architecture);
    }
    let path = find(program)?;
    let line = line(&path, program, arguments)?;
    let shown = line.shown();
    let listens = sys::listens();
    let filter = crate::filter::filter(listens);
    let refused = |what| move |source| CaptureError::Refused { what, source };
    let prices = crate::prices::measure(false);
    let empty = options.output.as_ref().map(|_| File::open("/dev/null")).transpose();
    let empty = empty.map_err(refused("open"))?;
    let streams = options.output.as_ref().zip(empty.as_ref());
    let streams = streams.map(|(to, empty)| Streams { input: empty.as_raw_fd(), output: to.as_raw_fd() });
    let child = fork_stopped(line.path, &line.arguments, &line.environment, &filter, listens, streams)
        .map_err(refused("fork"))?;
    let _limit = MoreDescriptors::allow();
    let begun = begin(&child, listens);
    let notices = begun.inspect_err(|_| {
        sys::kill(child.pid);
        sys::reap(child.pid);
    })?;
    let follower = Mutex::new(Follower::new(false, prices));
    locked(&follower).first(child.pid);
    let run = Run {
        follower: &follower,
        options,
        signal,
        root: child.pid,
        notices: notices.as_ref(),
        is_probe: false,
    };
    let (ended, executed, written) = run.follow(false, || child.run(), sink);
    if !executed && let Some(source) = child.failure() {
        return Err(CaptureError::Command { command: program.into(), source });
    }
    Ok(left(follower, shown, options, ended, written))
}

/// Has the child ask us from now on; the notices that it asks by.
pub(crate) fn begin(child: &Child, listens: bool) -> Result<Option<Notices>, CaptureError> {
    let refused = |what| move |source| CaptureError::Refused { what, source };
    sys::attach(child.pid, Attached::DiesWithUs).map_err(refused("ptrace"))?;
    Ok(child.filter(listens).map_err(refused("seccomp"))?.map(Notices::new))
}

/// What all threads of a capture share.
pub(crate) struct Run<'a> {
    pub(crate) follower: &'a Mutex<Follower>,
    pub(crate) options: &'a Options,
    pub(crate) signal: &'a AtomicUsize,
    pub(crate) root: i32,
    pub(crate) notices: Option<&'a Notices>,
    /// It is a probe: nobody else is followed, and this thread may have other children.
    pub(crate) is_probe: bool,
}

impl Run<'_> {
    pub(crate) fn follow(
        self,
        was_there: bool,
        start: impl FnOnce(),
        sink: &mut (dyn FnMut(Piece) -> io::Result<()> + Send),
    ) -> (Ended, bool, io::Result<()>) {
        let (sender, pieces) = sync_channel(WAITING_MAX);
        let (outlet, bell) = (Outlet::new(sender), Bell::default());
        let (done, leave, root_ended) =
            (AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false));
        let answerer: OnceLock<Sleeper> = OnceLock::new();
        let ticker = Ticker {
            follower: self.follower,
            outlet: &outlet,
            bell: &bell,
            signal: self.signal,
            root: self.root,
            was_there,
            root_ended: &root_ended,
            leave: &leave,
            waiter: sleeper(),
            sample: self.options.sample,
            length: self.options.length.filter(|_| was_there),
        };
        std::thread::scope(|scope| {
            let writer = scope.spawn(move || write(pieces, sink));
            let answers = self.notices.map(|notices| {
                let (outlet, done, answerer) = (&outlet, &done, &answerer);
                scope.spawn(move || {
                    answerer.get_or_init(sleeper);
                    answer(notices, self.follower, outlet, done);
                })
            });
            let ticks = scope.spawn(|| ticker.run());
            start();
            let mut stops = Stops::new(self.follower, &outlet, self.root, &leave, &root_ended);
            stops.every_call = was_there;
            stops.notices = self.notices.is_some();
            stops.with_root = self.is_probe;
            stops.tasks_max = self.options.tasks_max;
            stops.looks = self.options.sample.is_some();
            let ended = stops.follow();
            done.store(true, Ordering::Release);
            bell.ring();
            // It may be about to wait when it is woken, so it is woken until it is gone.
            while answers.as_ref().is_some_and(|thread| !thread.is_finished()) {
                answerer.get().iter().for_each(|thread| thread.wake());
                std::thread::sleep(Duration::from_millis(1));
            }
            let _ = ticks.join(); // A look that is under way has its operations, too.
            outlet.pass_all(&mut locked(self.follower), true);
            outlet.close();
            let written = writer.join().unwrap_or_else(|_| Err(io::Error::other("the writer panicked")));
            (ended, stops.executed, written)
        })
    }
}

pub(crate) fn left(
    follower: Mutex<Follower>,
    command: String,
    options: &Options,
    ended: Ended,
    written: io::Result<()>,
) -> Captured {
    let follower = follower.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let rows = follower.rows_from(0, 0, 0);
    let sampled_every_ns =
        options.sample.map_or(0, |every| u64::try_from(every.as_nanos()).unwrap_or(u64::MAX));
    let mut gaps = follower.told_gaps();
    if options.sample.is_none() {
        gaps.push("memory was not looked at: what the program used of its own, and of mappings".to_owned());
    }
    let trace = Trace {
        source: "capture".to_owned(),
        command,
        length_ns: follower.now_ns(),
        sampled_every_ns,
        gaps,
        tasks: rows.tasks,
        files: rows.files,
        mappings: rows.mappings,
        operations: Vec::new(),
    };
    Captured { trace, counts: follower.counts(), ended, written }
}

/// As many descriptors as this process may have: one is held for each file that the command has open.
pub(crate) struct MoreDescriptors(Rlimit);

impl MoreDescriptors {
    pub(crate) fn allow() -> Self {
        let before = rustix::process::getrlimit(Resource::Nofile);
        let _ = rustix::process::setrlimit(Resource::Nofile, Rlimit { current: before.maximum, ..before });
        Self(before)
    }
}

impl Drop for MoreDescriptors {
    fn drop(&mut self) {
        let _ = rustix::process::setrlimit(Resource::Nofile, self.0);
    }
}
