//! One workload on this kernel, from the first counter to the last.
//!
//! Theory of operation. The caller's thread is the monitor. It forks the workload's main process,
//! which forks the tasks; then it waits for whichever comes first: the time of the next sample, a
//! message from a task, the result, a request to stop. So all sampling happens in one place, in a
//! process that no cgroup of the run limits. Whatever way the run ends, all of its processes are
//! gone when [`run()`] returns, and sysctls are as they were.
//!
//! Left out: making and removing directories, see [`crate::host`].

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Signal};
use units::{Bytes, Nanos};
use workload::{Errno, Outcome, SystemError, WorkloadError};

use crate::bounds::{Disk, Rounded};
use crate::cgroup::Tree;
use crate::control::{self, Kept, Message, Receiver};
use crate::error::LinuxError;
use crate::kmsg::{KernelLog, Report};
use crate::machine;
use crate::monitor::Monitor;
use crate::process::{self, Child, Ended, Group, block_on};
use crate::spec::{CgroupVersion, LinuxResult, LinuxRun, OomKill, Told};
use crate::sysctls::Sysctls;
use crate::system::{LinuxSystem, Shared, content, monotonic};
use crate::tracefs::Tracing;

/// The longest time without a look at `stop`.
pub(crate) const STOP_LATENCY: Duration = Duration::from_millis(100);
/// The shortest time between samples: below, the machine would do little else.
pub(crate) const PERIOD_MIN: Duration = Duration::from_millis(1);

type WorkloadResult = Result<Outcome, WorkloadError>;

/// Runs `spec` to its end while the counters are sampled.
///
/// `tell` hears of the end of each phase, and every [`LinuxRun::tell_every`] how far the run is, in
/// terms of what can be seen: time, memory of the cgroup, room on the disk. The workload runs in processes of
/// its own, forked from this one: call it from a program with one thread where that is possible.
///
/// # Errors
/// See [`LinuxError`]; a task that the OOM killer took is no error. `stop` is looked at every 100 ms;
/// the run then ends with
/// [`LinuxError::Stopped`], and none of its processes is left.
pub fn run(spec: &LinuxRun, stop: &AtomicBool, tell: &dyn Fn(Told<'_>)) -> Result<LinuxResult, LinuxError> {
    check_filesystem(&spec.root.files)?;
    let tree = Tree::open(&spec.root)?;
    if let Some(limit) = spec.limit {
        tree.write("", "memory.max", &limit.get().to_string()).map_err(WorkloadError::from)?;
    }
    let _restored = Sysctls::set(&spec.sysctls, spec.host_wide, spec.keep_in.as_deref())?;
    let mut monitor = Monitor::of_machine();
    let mut tracing = Tracing::start(&mut monitor, spec.alone);
    monitor.add_group(&tree, "");
    if spec.root.version == CgroupVersion::V1 {
        monitor.note(
            "cgroup v1 counts no reclaim per group: see pgscan_file and pgsteal_file of the machine"
                .to_owned(),
        );
    }
    process::allow_many_files();
    let log = KernelLog::from_now();
    let started = monotonic();
    monitor.sample(0);
    let mut running = Running::start(spec, &tree, tracing.extfrag_histogram(), started)?;
    let outcome =
        running.watch(spec, &tree, Watching { monitor: &mut monitor, tracing: &mut tracing }, stop, tell);
    let wall_ns = elapsed(started);
    monitor.sample(wall_ns);
    let waits = tracing.finish(monotonic(), &mut monitor);
    let counter = |counters: &BTreeMap<String, u64>| counters.get("oom_kill").copied();
    let (outcome, error) = match outcome {
        Ok(outcome) => (outcome, None),
        Err(error) if killed_task(&error).is_some() => (running.kept.whole().clone(), Some(error)),
        Err(error) => return Err(error),
    };
    let result = LinuxResult { waits, ..result(outcome, monitor, wall_ns) };
    let killed = counter(&result.vmstat) > counter(&result.vmstat_before);
    if error.is_none() && !killed {
        return Ok(result);
    }
    let said = log.map(|mut log| log.first_kill());
    let mut result = result;
    if let Err(reason) = &said {
        result.notes.push(format!("what the kernel printed of the kill is not known: /dev/kmsg: {reason}"));
    }
    let said = said.ok().flatten();
    if let Some(error) = error {
        let task = killed_task(&error).expect("it was looked at above");
        // A SIGKILL by somebody else is an error, not a result.
        if said.is_none() && !killed {
            return Err(LinuxError::NoOomKill { task });
        }
        if result.outcome != Outcome::default() {
            result.notes.push(format!("`{task}` was killed: its figures are what it had told before"));
        }
        result.oom_kill = Some(oom_kill(task, said, spec, started, wall_ns));
    } else if let Some(task) = said.as_ref().and_then(|said| said.task.clone()) {
        // The workload went on without the task that was killed, or it was none of its own.
        result.oom_kill = Some(oom_kill(task, said, spec, started, wall_ns));
    }
    Ok(result)
}

/// The task that was killed, if that is why the workload failed.
fn killed_task(error: &LinuxError) -> Option<String> {
    match error {
        LinuxError::Workload(WorkloadError::System(SystemError {
            subject, errno: Errno::Killed, ..
        })) => Some(subject.clone()),
        LinuxError::Killed { signal: libc::SIGKILL } => Some("workload".to_owned()),
        _ => None,
    }
}

/// A kill as the run's result has it: on its clock, with paths below its root.
fn oom_kill(task: String, said: Option<Report>, spec: &LinuxRun, started: Nanos, wall_ns: u64) -> OomKill {
    const PAGE_KB: u64 = units::PAGE_SIZE / 1024;
    let Some(Report { at_ns, by_limit, cgroup, task: _, anon_kb, lines }) = said else {
        let by_limit = spec.limit.is_some();
        return OomKill {
            at_ns: wall_ns,
            task,
            cgroup: String::new(),
            by_limit,
            panicked: false,
            anon_pages: None,
            memory: Vec::new(),
        };
    };
    let root = spec.root.cgroup.file_name().map(|name| format!("/{}", name.to_string_lossy()));
    let below = |path: &str| Some(path.split_once(root.as_deref()?)?.1.trim_start_matches('/').to_owned());
    OomKill {
        at_ns: at_ns.saturating_sub(started.get()).min(wall_ns),
        task,
        cgroup: cgroup.as_deref().and_then(below).unwrap_or_default(),
        by_limit,
        panicked: false,
        anon_pages: anon_kb.map(|kb| kb / PAGE_KB),
        memory: lines,
    }
}

/// What a workload calls the share of its regions that got a huge page.
const HUGE_SHARE: &str = "percentage_huge";

/// The result of a run that has ended.
pub(crate) fn result(outcome: Outcome, monitor: Monitor, wall_ns: u64) -> LinuxResult {
    let mut samples = monitor.finish();
    if outcome.metrics.contains_key(HUGE_SHARE) && !samples.vmstat.contains_key("thp_fault_alloc") {
        samples.notes.push("this kernel has no huge pages: every fault gets small ones".to_owned());
    }
    LinuxResult {
        outcome,
        oom_kill: None,
        vmstat_before: samples.vmstat_before,
        vmstat: samples.vmstat,
        memcg: samples.memcg,
        phases: samples.phases,
        laid_out: samples.laid_out,
        columns: samples.columns,
        rows: samples.rows,
        waits: None,
        wall_ns,
        kernel_release: rustix::system::uname().release().to_string_lossy().into_owned(),
        notes: samples.notes,
    }
}

pub(crate) fn elapsed(started: Nanos) -> u64 {
    monotonic().saturating_sub(started).get()
}

/// What listens to the kernel during a run.
struct Watching<'a> {
    monitor: &'a mut Monitor,
    tracing: &'a mut Tracing,
}

/// The workload's processes, and what they tell.
struct Running {
    main: Main,
    messages: Receiver,
    started: Nanos,
    last_phase: Option<String>,
    kept: Kept,
}

impl Running {
    fn start(
        spec: &LinuxRun,
        tree: &Tree,
        extfrag: Option<PathBuf>,
        started: Nanos,
    ) -> Result<Self, LinuxError> {
        let (control, messages) =
            control::channel().map_err(|error| LinuxError::io("open a pipe for", "messages", error))?;
        let path = tree.procs_file(None).map_err(WorkloadError::from)?;
        let procs = fs::OpenOptions::new().write(true).open(&path);
        let procs = procs.map_err(|error| LinuxError::io("open", &path, error))?;
        let total = machine::memory_total().saturating_sub(spec.beyond);
        let program = || {
            let system = LinuxSystem::new(Shared {
                files: spec.root.files.clone(),
                more_disks: spec.root.more_disks.clone(),
                tree: tree.clone(),
                control,
                host_wide: spec.host_wide,
                vmstat: OnceCell::new(),
                content: content(spec.alone),
                memory: spec.limit.map_or(total, |limit| limit.to_pages_floor().min(total)),
                seed: spec.seed,
                started,
                extfrag: extfrag.clone(),
                buffer: RefCell::default(),
                gates: RefCell::default(),
                memories: RefCell::default(),
            });
            process::be_called("workload");
            block_on(spec.workload.run(system))
        };
        let child = Child::spawn(Some(&procs), Group::Own, program)
            .map_err(|error| LinuxError::io("start a process in", path, error))?;
        Ok(Self { main: Main(Some(child)), messages, started, last_phase: None, kept: Kept::default() })
    }

    /// Samples until the workload has ended.
    fn watch(
        &mut self,
        spec: &LinuxRun,
        tree: &Tree,
        mut watching: Watching<'_>,
        stop: &AtomicBool,
        tell: &dyn Fn(Told<'_>),
    ) -> Result<Outcome, LinuxError> {
        let mut pace = Pace::new(spec.sample_period, self.started);
        let mut telling = spec.tell_every.map(|every| Pace::new(every, self.started));
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(LinuxError::Stopped);
            }
            let (message, ended) = self.wait(pace.wait().min(watching.tracing.patience()));
            if message {
                self.answer(tree, &mut watching, tell)?;
            } else if ended {
                return self.main.join();
            }
            if let Some(at_ns) = pace.due() {
                watching.monitor.sample(at_ns);
            }
            watching.tracing.look(monotonic());
            if let Some(at_ns) = telling.as_mut().and_then(Pace::due) {
                tell(Told::Progress(&self.so_far(spec, tree, at_ns)));
            }
        }
    }

    /// How far the run is.
    fn so_far(&self, spec: &LinuxRun, tree: &Tree, at_ns: u64) -> String {
        let mut text = format!("{} s", at_ns / 1_000_000_000);
        if let Some(phase) = &self.last_phase {
            text.push_str(&format!(", after `{phase}`"));
        }
        let used = tree.read("", "memory.current").ok().and_then(|used| used.trim().parse().ok());
        if let (Some(used), Some(limit)) = (used, spec.limit) {
            text.push_str(&format!("; memory {} of {}", Rounded::down(Bytes(used)), Rounded::down(limit)));
        }
        if let Ok(disk) = Disk::at(&spec.root.files) {
            text.push_str(&format!("; {} free on disk", Rounded::down(disk.free)));
        }
        text
    }

    /// Waits at most so long; says whether there is a message and whether the main process ended.
    fn wait(&self, length: Duration) -> (bool, bool) {
        let Some(main) = &self.main.0 else { return (false, true) };
        let mut files =
            [PollFd::new(self.messages.file(), PollFlags::IN), PollFd::new(main.result(), PollFlags::IN)];
        let timeout = Timespec {
            tv_sec: i64::try_from(length.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: length.subsec_nanos().into(),
        };
        // An interruption is as good as a timeout: the loop looks at everything again.
        let _ = rustix::event::poll(&mut files, Some(&timeout));
        let ready = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
        let [message, ended] = files.map(|file| file.revents());
        (message.contains(PollFlags::IN), ended.intersects(ready))
    }

    fn answer(
        &mut self,
        tree: &Tree,
        watching: &mut Watching<'_>,
        tell: &dyn Fn(Told<'_>),
    ) -> Result<(), LinuxError> {
        let Watching { monitor, tracing } = watching;
        let failed = |error| LinuxError::io("read", "messages", error);
        for message in self.messages.receive().map_err(failed)? {
            match message {
                Message::Note(note) => {
                    monitor.note(note);
                    continue;
                }
                Message::Kept { part, last } => {
                    self.kept.take(part, last);
                    if last {
                        tell(Told::Kept(self.kept.whole()));
                    }
                    continue;
                }
                Message::Group(path) => monitor.add_group(tree, &path),
                Message::LaysOut(begins) => monitor.lays_out(begins, elapsed(self.started)),
                Message::Mark(phase) => {
                    let at_ns = elapsed(self.started);
                    tell(Told::Phase(&format!("{phase} after {:.1} s", Nanos(at_ns).as_secs_f64())));
                    monitor.mark(phase.clone(), at_ns);
                    tracing.end_phase(monotonic());
                    self.last_phase = Some(phase);
                }
            }
            self.messages.acknowledge().map_err(failed)?;
        }
        Ok(())
    }
}

/// When to sample next. A sample that is late does not make the next ones early.
pub(crate) struct Pace {
    period: Duration,
    started: Nanos,
    next_ns: u64,
}

impl Pace {
    pub(crate) fn new(period: Duration, started: Nanos) -> Self {
        let period = period.max(PERIOD_MIN);
        let mut pace = Self { period, started, next_ns: 0 };
        pace.next_ns = pace.period_ns();
        pace
    }

    fn period_ns(&self) -> u64 {
        u64::try_from(self.period.as_nanos()).unwrap_or(u64::MAX)
    }

    /// How long to wait for something else.
    pub(crate) fn wait(&self) -> Duration {
        Duration::from_nanos(self.next_ns.saturating_sub(elapsed(self.started))).min(STOP_LATENCY)
    }

    /// The time of a sample that is due now.
    pub(crate) fn due(&mut self) -> Option<u64> {
        let now = elapsed(self.started);
        if now < self.next_ns {
            return None;
        }
        let missed = (now - self.next_ns) / self.period_ns();
        self.next_ns = self.next_ns.saturating_add(self.period_ns().saturating_mul(missed.saturating_add(1)));
        Some(now)
    }
}

/// The main process. Dropped before it has ended, it is killed with all of its tasks.
struct Main(Option<Child<WorkloadResult>>);

impl Main {
    fn join(&mut self) -> Result<Outcome, LinuxError> {
        let child = self.0.take().expect("it is taken here only");
        // Tasks that nobody joined die with it.
        match child.join().map_err(|error| LinuxError::io("wait for", "the workload", error))? {
            Ended::Returned(outcome) => Ok(outcome?),
            Ended::Panicked(message) => Err(LinuxError::Panicked { message }),
            Ended::Signalled(signal) => Err(LinuxError::Killed { signal }),
        }
    }
}

impl Drop for Main {
    fn drop(&mut self) {
        if let Some(child) = self.0.take() {
            kill_group(child.pid());
            let _ = child.join();
        }
    }
}

fn kill_group(leader: Pid) {
    let _ = rustix::process::kill_process_group(leader, Signal::KILL);
}

/// # Errors
/// Filesystems that live in memory: their pages cannot be dropped, so nothing would be measured.
pub(crate) fn check_filesystem(path: &Path) -> Result<(), LinuxError> {
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    const RAMFS_MAGIC: i64 = 0x8584_58f6;
    let stat = rustix::fs::statfs(path).map_err(|error| LinuxError::io("look at", path, error))?;
    #[allow(clippy::unnecessary_cast)] // Its width depends on the architecture.
    let filesystem = match stat.f_type as i64 {
        TMPFS_MAGIC => "tmpfs",
        RAMFS_MAGIC => "ramfs",
        _ => return Ok(()),
    };
    Err(LinuxError::MemoryFilesystem { path: path.to_owned(), filesystem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_sample_skips_those_that_it_missed() {
        let started = monotonic();
        let mut pace = Pace::new(Duration::from_millis(10), started);
        assert_eq!(pace.due(), None);
        pace.started = Nanos(started.get() - 35_000_000);
        assert!(pace.due().is_some_and(|at_ns| at_ns >= 35_000_000));
        assert!(pace.next_ns > elapsed(pace.started) - 10_000_000);
        assert_eq!(pace.next_ns % 10_000_000, 0);
    }

    #[test]
    fn a_filesystem_in_memory_is_refused() {
        let Ok(()) = fs::metadata("/dev/shm").map(drop) else {
            return;
        };
        if let Err(error) = check_filesystem(Path::new("/dev/shm")) {
            assert_eq!(
                error.to_string(),
                "`/dev/shm` is on tmpfs, whose files cannot be evicted from memory"
            );
        }
    }
}
