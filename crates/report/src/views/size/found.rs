//! What was found of a trace: limits that were run, the knee, what to set.

use std::fmt;

use crate::judge::known::Known;

/// A number of one run for each seed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The least.
    pub least: f64,
    /// The mean.
    pub mean: f64,
    /// The most.
    pub most: f64,
}

impl Spread {
    /// Of these; `None` of none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let (mut least, mut most, mut sum, mut count) = (f64::INFINITY, f64::NEG_INFINITY, 0.0, 0);
        for value in values {
            (least, most) = (least.min(value), most.max(value));
            sum += value;
            count += 1;
        }
        (count > 0).then(|| Self { least, mean: sum / f64::from(count), most })
    }
}

/// What runs at one limit came to. What a kernel does not count is `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct SizedPoint {
    /// `memory.max` in bytes; none is no limit.
    pub limit: Option<u64>,
    /// Pages that were in memory when asked for, of all asked for.
    pub hit_ratio: Option<Spread>,
    /// Pages a second that came back after they had been reclaimed.
    pub refaults: Option<Spread>,
    /// Seconds that its task was in reclaim itself: limit reclaim and allocation stalls.
    pub in_reclaim: Option<Spread>,
    /// Seconds that its task waited for memory: `some` of `memory.pressure`.
    pub stalled: Option<Spread>,
    /// Bytes read from the disk.
    pub read: Option<Spread>,
    /// Bytes written to it.
    pub written: Option<Spread>,
    /// Seconds from the first request that counts to the end of the last.
    pub run: Option<Spread>,
    /// Percent more of what the target is on than without a limit, if it is a time.
    pub slowdown: Option<Spread>,
    /// Whether all seeds keep the target; none where none was set.
    pub keeps: Option<bool>,
    /// Runs that the OOM killer ended.
    pub killed: usize,
}

/// Where the curve bends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SizedKnee {
    /// The limit.
    pub limit: u64,
    /// The limits that were run beside it.
    pub between: (Option<u64>, Option<u64>),
}

/// What to set, and what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// `memory.high`: the least limit that keeps the target.
    pub high: u64,
    /// `memory.max`.
    pub max: u64,
    /// `memory.low`.
    pub low: u64,
    /// The largest limit run that does not keep it by itself.
    pub too_small: Option<u64>,
    /// Percent of `high` that `max` is above it.
    pub headroom: f64,
    /// All three set at once, as run.
    pub run_as_set: Option<SizedPoint>,
    /// Whether `low` is the knee, and not `high` for want of a lower knee.
    pub low_is_knee: bool,
}

/// One limit on a sample and on the whole.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleCheck {
    /// `memory.max` in bytes of the whole; none is no limit.
    pub limit: Option<u64>,
    /// Hit ratio that the sample tells, and that of the whole.
    pub hit_ratio: (f64, f64),
    /// Run time likewise.
    pub run: (f64, f64),
}

/// One limit by the model and on a real kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifiedPoint {
    /// Which point: the knee, below, above.
    pub what: String,
    /// By the model.
    pub model: SizedPoint,
    /// As measured.
    pub real: SizedPoint,
}

/// How a run of a program ended that did not end well.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ended {
    /// By itself, with this status.
    Status(i32),
    /// By us, after so many seconds.
    TooLong(f64),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => write!(f, "exit status {status}"),
            Self::TooLong(seconds) => write!(f, "ended after {seconds:.0} s"),
        }
    }
}

/// The program itself at one limit, cold; times are of its first process.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedPoint {
    /// `memory.max` in bytes; none is no limit.
    pub limit: Option<u64>,
    /// Seconds of each run.
    pub seconds: Option<Spread>,
    /// How many runs there were.
    pub runs: usize,
    /// Percent by which their median is above that without a limit; none where a run was cut short.
    pub slowdown: Option<f64>,
    /// What the model says of that.
    pub predicted: Option<f64>,
    /// Whether the model has it killed.
    pub predicted_killed: bool,
    /// Pages that came back after they had been reclaimed, the median.
    pub refaults: f64,
    /// Faults that waited for the disk, the median.
    pub major_faults: f64,
    /// Bytes that its group held at most.
    pub peak: u64,
    /// What of it was anonymous memory.
    pub anon_peak: u64,
    /// Runs in which the OOM killer took a process.
    pub killed: usize,
    /// How a run ended that did not end well.
    pub ended: Option<Ended>,
    /// Whether it keeps the target.
    pub keeps: bool,
}

/// What the program itself said of the recommendation.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramCheck {
    /// The command that was run.
    pub command: String,
    /// Where: which cgroup of what.
    pub place: String,
    /// How often each limit was run; without one it is again wherever a limit was too slow.
    pub repeats: usize,
    /// Without a limit.
    pub base: CheckedPoint,
    /// At limits, smallest first.
    pub points: Vec<CheckedPoint>,
    /// `memory.high` by the model; none where it had no recommendation.
    pub model: Option<u64>,
}

/// What a rule that people use would set, and what the model says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Practice {
    /// The rule.
    pub rule: String,
    /// The limit that it gives, in bytes.
    pub limit: u64,
    /// How much slower than without a limit, in percent; none where it was killed.
    pub slowdown: Option<f64>,
    /// Whether a run was killed.
    pub killed: bool,
    /// Whether it keeps the target; none where none was set.
    pub keeps: Option<bool>,
}

/// What the model says of another disk.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherDisk {
    /// The disk, as `--disk` takes it.
    pub disk: String,
    /// The least limit of those run that keeps the target on it; none where none does.
    pub high: Option<u64>,
    /// How much slower it is at the recommendation, in percent.
    pub slowdown: Option<f64>,
    /// Whether a run is killed there.
    pub killed: bool,
}

/// What is patched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchKind {
    /// A Deployment of Kubernetes.
    Deployment,
    /// A StatefulSet.
    StatefulSet,
    /// A DaemonSet.
    DaemonSet,
    /// The VerticalPodAutoscaler of a Deployment.
    Vpa,
    /// A unit of systemd.
    Unit,
}

impl PatchKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Deployment, Self::StatefulSet, Self::DaemonSet, Self::Vpa, Self::Unit];

    /// As `--patch` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Deployment => "deployment",
            Self::StatefulSet => "statefulset",
            Self::DaemonSet => "daemonset",
            Self::Vpa => "vpa",
            Self::Unit => "unit",
        }
    }
}

/// A patch that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// Of what.
    pub kind: PatchKind,
    /// Its name.
    pub name: String,
    /// Its container; none: one that is called as it is, or all.
    pub container: Option<String>,
}

/// As `--patch` takes it.
impl fmt::Display for Patch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind.name(), self.name)?;
        self.container.iter().try_for_each(|container| write!(f, "/{container}"))
    }
}

/// All that was found of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Sized {
    /// The trace's name.
    pub trace: String,
    /// What is in it: requests, pages, time, a phrase each.
    pub holds: Vec<String>,
    /// The kernel.
    pub kernel: String,
    /// The machine and its memory.
    pub machine: String,
    /// Seeds of the runs.
    pub seeds: Vec<u64>,
    /// One in so many of the trace's addresses; none: all.
    pub one_in: Option<u32>,
    /// Bytes that it keeps where nothing limits it.
    pub held: u64,
    /// What must not be so, as written.
    pub targets: Vec<String>,
    /// The time that `slowdown` is of, as a metric.
    pub slowdown_of: Option<String>,
    /// Limits that were run, smallest first, and none at the end.
    pub points: Vec<SizedPoint>,
    /// Neighbours are at most this part apart where it matters; none where limits were given.
    pub resolution: Option<f64>,
    /// Where the curve bends.
    pub knee: Option<SizedKnee>,
    /// What to set; none where no limit keeps the target.
    pub advice: Option<Advice>,
    /// The sample beside the whole.
    pub checked: Vec<SampleCheck>,
    /// On a real kernel: which, and the points.
    pub verified: Option<(String, Vec<VerifiedPoint>)>,
    /// What people set today, each run as a limit.
    pub practices: Vec<Practice>,
    /// The same on other disks.
    pub other_disks: Vec<OtherDisk>,
    /// Patches that are wanted of the advice.
    pub patches: Vec<Patch>,
    /// By runs of the program itself: then the advice is theirs.
    pub program: Option<ProgramCheck>,
    /// What a reader must know, a sentence each.
    pub notes: Vec<String>,
    /// What real kernels are known to differ by; none where nobody asked.
    pub known: Option<Known>,
    /// The command that finds all this again.
    pub command: String,
    /// Runs that it took.
    pub runs: usize,
}
