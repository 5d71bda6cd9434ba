//! Arguments of `pagetide compare`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{EventsArgs, Format, PlotArgs, RunArgs, ScenarioArgs, whole};

/// Whose tables a comparison prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Style {
    /// Its own.
    Own,
    /// Those of mmtests, as of 2019.
    Mmtests,
    /// Those of mmtests of today: other labels, fewer rows, another star.
    MmtestsHead,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Without --kernel, kernels are those of the workload's source before and after its change.
The first kernel or folder is the baseline. A folder takes precedence over a workload's name.
JSON has a key `comparison`, CSV rows of that kind: change, interval, p and verdict of each metric.

Limits for --fail-if; NAME is a metric, samples (their mean, or NAME.p99, .min, .median, .max), a
counter, or CGROUP:COUNTER:
  NAME < -5%          the change from the baseline, in percent; also <=, >, >=
  NAME change > 100   the change in the number's own unit, or in one that is named, such as 2ms
  NAME > 100          the number itself, the mean of all runs
  NAME worse by 5%    by more than that in the way that is worse; also better, changed
  NAME worse          a clear change that way, of any size
A change that is not clear from noise, by the test that the table shows, counts as none, and that is
said; one run of a real kernel is taken as measured. A limit is not kept either where runs lack what
the baseline has, as after an OOM kill; a name that no run has is an error. The grid of an
experiment is not looked at.

Examples:
  pagetide compare hot-and-stream
  pagetide compare hot-and-stream --kernel linux-6.1 --kernel linux-6.12 --seeds 10
  pagetide compare recordings/first recordings/second --format md
  pagetide compare small-files --seeds 5 --out kept --resume --fail-if 'files_per_sec worse by 5%'"
)]
pub(crate) struct CompareArgs {
    /// Workload by name, a file (*.toml, *.fio), or folders with recordings [example: hot-and-stream]
    #[arg(value_name = "WORKLOAD|FILE|DIR", required = true)]
    pub(crate) subjects: Vec<String>,
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Simulated kernel to compare; a list, or repeated [default: the source's own before and after]
    /// [example: linux-6.1,linux-6.12]
    #[arg(long = "kernel", value_name = "KERNEL", help_heading = "Machine")]
    #[arg(value_delimiter = ',')]
    pub(crate) kernels: Vec<String>,
    /// Runs of each kernel, with this many seeds [default: 1] [example: 10]
    #[arg(long, value_name = "N", help_heading = "Run", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub(crate) seeds: Option<u64>,
    /// Runs at a time, 0 is one for each CPU; results do not depend on it [default: 0] [example: 2]
    #[arg(long, value_name = "N", help_heading = "Run", value_parser = whole::<usize>, allow_negative_numbers = true)]
    pub(crate) jobs: Option<usize>,
    /// Keep all recordings in this new folder [default: not kept] [example: recordings/aging]
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Go on with the comparison in that folder: what has finished is not run again
    #[arg(long, requires = "out", help_heading = "Output")]
    pub(crate) resume: bool,
    /// End with code 5 if this is so for any run beside the baseline; may be repeated
    /// [example: 'files_per_sec < -5%']
    #[arg(long, value_name = "LIMIT", help_heading = "Output", allow_hyphen_values = true)]
    pub(crate) fail_if: Vec<String>,
    /// Write the limits, and what came of them, to this new file as JUnit's XML, for CI [example: limits.xml]
    #[arg(long, value_name = "FILE", requires = "fail_if", help_heading = "Output")]
    pub(crate) junit: Option<PathBuf>,
    /// Write limits that are not kept to this new file as SARIF 2.1.0, for GitHub's code scanning
    /// [example: limits.sarif]
    #[arg(long, value_name = "FILE", requires = "fail_if", help_heading = "Output")]
    pub(crate) sarif: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) events: EventsArgs,
    /// Form of the result on standard output [example: json]
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = "Output")]
    pub(crate) format: Format,
    /// Tables as text: its own, or mmtests' with all rows of samples, durations and Ops
    #[arg(long, value_enum, default_value_t = Style::Own, help_heading = "Output")]
    pub(crate) style: Style,
    /// Show all metrics, counters and cgroups, as JSON and CSV always do
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) plot: PlotArgs,
}

impl CompareArgs {
    /// What a run on several backends asks for.
    pub(crate) fn of_run(run: &RunArgs) -> Self {
        Self {
            subjects: vec![run.subject.clone()],
            scenario: run.scenario.clone(),
            kernels: run.kernel.iter().cloned().collect(),
            seeds: None,
            jobs: None,
            out: run.out.clone(),
            resume: false,
            fail_if: Vec::new(),
            junit: None,
            sarif: None,
            events: run.events.clone(),
            format: run.format,
            style: Style::Own,
            all: run.all,
            plot: run.plot.clone(),
        }
    }
}
