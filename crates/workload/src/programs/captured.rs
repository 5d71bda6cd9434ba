//! `program`: a captured program, made again against a kernel: its tasks, their files, their memory.
//!
//! Theory of operation. [`Plan`] divides the trace's operations among tasks, before anything runs. Each task of the
//! trace becomes a task of the [`System`], spawned where the trace spawned it, all in one cgroup with [`Limits`].
//! Its operations are made in their order. Each begins when as much time has passed since the one before had ended
//! as the program had thought ([`Pace::Think`], a closed loop), at its recorded time ([`Pace::Recorded`]), or at once.
//! Between tasks nothing keeps order but that a task begins when it is spawned, and that whoever waited for its end
//! in the trace waits for it here.
//!
//! What there was before is laid out: files of the captured sizes, as far as the program comes, on a disk whose
//! cache is empty.
//!
//! Threads are processes here, on every kernel, because a memory cgroup holds processes: what a process does to its
//! memory (mapping, touching, advice) is done by the task of its first thread, at its times; each task opens a file
//! for itself, and so has readahead of its own. Thinking is sleeping: tasks do not compete for CPUs. A touch is made
//! when it was seen, which is up to one interval of the sampling after it happened.
//!
//! Files that lay in memory (tmpfs, `memfd`) do so here, below a directory of their own, where the backend can mount
//! one. Anonymous memory that processes share is shared here, too, by the task that maps it and those that it spawns;
//! where some of the trace came by it in another way, that task touches it for all, and a remark says so.
//!
//! Left out, and counted in `operations_left_out`: files in memory where it cannot, and private mappings of them,
//! direct I/O, pages that a process only reads and shares with the one that forked it, and what a backend has no call
//! for. Left out without a count: content, pipes and sockets between tasks, and what else the trace says that it lacks.
//!
//! | file | what it holds |
//! |---|---|
//! | `captured/plan.rs` | which task does what, and what must be there before |
//! | `captured/pieces.rs` | the parts of a mapping that live and end together |
//! | `captured/thinks.rs` | how long a task thinks before each step |
//! | `captured/player.rs` | one task at work |
//! | `captured/counts.rs` | what they count |

mod counts;
mod pieces;
mod plan;
mod player;
mod thinks;

use std::fmt;
use std::sync::Arc;

use trace::Trace;
use units::Bytes;

use crate::parts::footprint::Footprint;
use crate::parts::group_figures::GroupFigures;
use crate::parts::limits::Limits;
use crate::system::System;
use crate::system::errno::Errno;
use crate::system::outcome::{Outcome, WorkloadError};
use counts::Counts;
use language::metric::{Better, MetricSpec, TIME_RESOLUTION_SECONDS, metric};
use language::params::{ParamError, ParamKind, ParamSpec, Params};
use plan::Plan;
use player::Course;
pub use player::Pace;

/// The name in scenarios.
pub const NAME: &str = "program";
/// One line about it.
pub const HELP: &str = "a captured program in one cgroup: its tasks, files and memory, from its trace (also `pagetide replay TRACE`)";
/// Its phases, in order.
pub const PHASES: &[&str] = &["laid_out", "replayed"];
/// What a seed decides.
pub const VARIES: &[&str] =
    &["simulated: the phase of the kernel's periodic workers (vmstat each second, memory.stat every 2 s)"];

const SIZE_MAX: Bytes = Bytes(16 << 40);

/// Its parameters.
pub const PARAMS: &[ParamSpec] = &[
    ParamSpec {
        name: "trace",
        kind: ParamKind::File,
        default: None,
        help: "file of the trace, as `pagetide capture` makes it; has to be given",
    },
    ParamSpec::size("limit", Bytes(0)..=SIZE_MAX, "memory.max of its cgroup"),
    ParamSpec::size("high", Bytes(0)..=SIZE_MAX, "memory.high of its cgroup"),
    ParamSpec::size("low", Bytes(0)..=SIZE_MAX, "memory.low of its cgroup"),
    ParamSpec::choice(
        "pace",
        &["think", "recorded", "asap"],
        "think: the captured time after each operation; recorded: at the captured times; asap: at once",
    ),
    ParamSpec::choice("filesystem", &["ext4", "xfs"], "filesystem that the machine puts the files on"),
];

/// The metrics that head its reports.
pub const METRICS: &[MetricSpec] = &[
    metric("page_misses", "pages", Better::Less, "pages not in memory when read").of("pages_accessed"),
    metric("refaults", "pages", Better::Less, "file pages that came back after they had been reclaimed"),
    metric("pages_scanned", "pages", Better::Less, "pages that reclaim looked at in its cgroup"),
    metric("replay_seconds", "s", Better::Less, "until its last task has ended")
        .resolved_to(TIME_RESOLUTION_SECONDS),
];

/// A captured program, ready to be made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    path: Option<&'static str>,
    limits: Limits,
    pace: Pace,
    plan: Option<Held>,
}

/// A plan that many runs share. Two are equal if they are one.
#[derive(Clone)]
struct Held(Arc<Plan>);

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Held {}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a plan of {} operations", self.0.trace.operations.len())
    }
}

impl Program {
    pub(crate) fn from_params(params: &Params) -> Result<Self, ParamError> {
        let pace = match params.choice("pace") {
            Some("recorded") => Pace::Recorded,
            Some("asap") => Pace::Asap,
            _ => Pace::Think,
        };
        let size = |name| params.size(name);
        let limits = Limits { max: size("limit"), high: size("high"), low: size("low") };
        Ok(Self { path: params.file("trace"), limits, pace, plan: None })
    }

    /// The file of its trace, which whoever runs it reads.
    pub(crate) const fn path(&self) -> Option<&'static str> {
        self.path
    }

    /// Its trace, once it has one.
    pub(crate) fn trace(&self) -> Option<&Arc<Trace>> {
        self.plan.as_ref().map(|plan| &plan.0.trace)
    }

    /// The same one with its trace, which passes [`Trace::check`].
    pub(crate) fn with_trace(&self, trace: Arc<Trace>) -> Self {
        Self { plan: Some(Held(Arc::new(Plan::of(trace)))), ..self.clone() }
    }

    /// The same one with the trace of another one, and the plan that was made of it.
    pub(crate) fn with_plan_of(&self, other: &Self) -> Self {
        Self { plan: other.plan.clone(), ..self.clone() }
    }

    /// What it makes.
    pub(crate) fn footprint(&self) -> Footprint {
        let nothing = Footprint { files: Bytes(0), file_count: 0, anonymous: Bytes(0), tasks: 1, disks: 1 };
        self.plan.as_ref().map_or(nothing, |plan| plan.0.footprint())
    }

    /// What its results leave out, a sentence each.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let Some(Held(plan)) = &self.plan else { return Vec::new() };
        let gaps = plan.trace.gaps.iter().map(|gap| format!("the trace says: {gap}"));
        gaps.chain(plan.remarks()).collect()
    }

    /// Makes all of it.
    ///
    /// # Errors
    /// The first system call that fails and means more than that tasks came in another order.
    pub(crate) async fn run<S: System>(&self, sys: S) -> Result<Outcome, WorkloadError> {
        let missing = "the program's trace was not read: name its file by `--param trace=FILE`";
        let Held(plan) = self.plan.clone().ok_or_else(|| WorkloadError::Trace(missing.to_owned()))?;
        let has_memory = plan.uses_memory()
            && match sys.make_dir_in_memory(plan::IN_MEMORY).await {
                Ok(()) => true,
                Err(error) if matches!(error.errno, Errno::NotSup | Errno::Perm | Errno::Acces) => false,
                Err(error) => return Err(error.into()),
            };
        let files = plan.files().filter(|(number, _)| has_memory || !plan.is_file_in_memory(*number));
        let files: Vec<_> = files.map(|(number, file)| (plan.name(number), file.laid_out)).collect();
        sys.lay_out_files(&files).await?;
        sys.begin_cold().await?;
        self.limits.group(&sys).await?;
        sys.mark("laid_out");
        let begin = sys.now();
        let course = Course { pace: self.pace, begin, has_memory };
        let mut tasks = Vec::new();
        for &root in &plan.roots {
            let delay = plan.first_think(root, 0);
            tasks.push(player::spawn(&sys, &plan, root, course, delay, None).await?);
        }
        let mut counts = Counts::default();
        for task in tasks {
            counts.join(sys.join(task).await)?;
        }
        let length = sys.now().saturating_sub(begin);
        sys.mark("replayed");
        let mut outcome = counts.outcome(length);
        GroupFigures::read(&sys).await?.tell(&mut outcome);
        Ok(outcome)
    }
}

impl Counts {
    /// Adds what a task counted; one that the OOM killer took leaves nothing but that it was taken.
    fn join(
        &mut self,
        joined: Result<Result<Self, WorkloadError>, crate::system::errno::SystemError>,
    ) -> Result<(), WorkloadError> {
        match joined {
            Ok(Ok(counts)) => self.add(&counts),
            Ok(Err(WorkloadError::System(error))) | Err(error) if error.errno == Errno::Killed => {
                self.tasks_killed += 1;
            }
            Ok(Err(error)) => return Err(error),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
