//! Recordings to text that people and programs read: tables, Markdown, JSON, CSV.
//!
//! Start with [`run_text`] (one run) and [`compare_text`] (several, the first is the baseline); both are
//! views of the same recordings as [`to_json`], [`to_csv`] and [`to_markdown`]. A [`View`] says how wide, how
//! much, and which measures matter most; a plain width stands for one that has all metrics and no more.
//! [`html::Page`] is the page to look at, with figures. [`mmtests_text`] is the table of the field's
//! reference suite. [`measure`] knows which way of a measure is the good one; [`number`] writes numbers with
//! as many digits as they deserve.
//!
//! Deliberately absent: I/O (every function returns a `String`), colour, clocks, and any
//! knowledge of how a recording was made. The same recordings give the same text.

mod ablate;
mod blocked;
mod compare;
mod compared;
mod explain;
mod export;
mod findings;
mod grid;
pub mod heat;
mod histogram;
pub mod html;
mod judge;
mod latency;
mod limits;
mod list;
pub mod measure;
mod metrics;
mod mmtests;
mod notes;
pub mod number;
mod oom;
mod outcome;
mod pressure;
mod printed;
mod run;
mod samples;
mod size;
mod sweep;
mod table;
mod timeline;
mod trace;
mod trace_info;
mod view;
mod waits;
mod worlds;
mod wrap;

use recording::Recording;

pub use ablate::{Ablated, AblatedRun, Subset, ablate_csv, ablate_json, ablate_markdown, ablate_text};
pub use compare::{compare_text, to_markdown};
pub use explain::{Digest, Explained, Question, explain_json, explain_markdown, explain_text, folded_stacks};
pub use export::{compare_csv, compare_json, to_csv, to_json};
pub use grid::{Grid, GridKernel, GridLayout, GridRow, grid_csv, grid_json, grid_markdown, grid_text};
pub use limits::{Amount, Condition, Limit, LimitError, LimitOn, Order, Way, judge_limits};
pub use list::{Cell, List};
pub use measure::{Direction, direction, unit};
pub use metrics::{metrics_markdown, metrics_text};
pub use mmtests::{
    Place, better, better_in, mmtests_notes, mmtests_tables, mmtests_text, ops_text, pooled_samples,
    usual_rows,
};
pub use outcome::{Judged, Outcome};
pub use run::run_text;
pub use samples::{samples_csv, samples_json, samples_markdown, samples_text};
pub use size::{
    Advice, SampleCheck, Sized, SizedKnee, SizedPoint, Spread, VerifiedPoint, size_csv, size_html, size_json,
    size_markdown, size_svg, size_text,
};
pub use stats::mmtests::{Better, RowSet, Rules};
pub use stats::mmtests_table::{Run, comparison, operations};
pub use sweep::{SweepRow, SweepRows, sweep_csv, sweep_json, sweep_markdown, sweep_text};
pub use trace::{RunTrace, TraceFormat};
pub use trace_info::{trace_info_json, trace_info_markdown, trace_info_text};
pub use view::{Headline, View};
pub use worlds::{
    WorldsCounter, WorldsHeadline, WorldsShares, WorldsSummary, worlds_csv, worlds_json, worlds_markdown,
    worlds_text,
};

/// Runs of one variant that differ in their seed only: one column of a comparison.
#[derive(Debug, Clone)]
pub struct Group<'a> {
    /// What the column is called.
    pub label: String,
    /// The command that makes these runs again.
    pub command: String,
    /// The runs, at least one.
    pub recordings: Vec<&'a Recording>,
}

/// Why a report cannot be made from these recordings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// There is nothing to report on.
    #[error("there are no recordings to report on")]
    NoRecordings,
    /// A group has no recording.
    #[error("`{label}` has no recordings")]
    EmptyGroup {
        /// The group's label.
        label: String,
    },
    /// A comparison needs two sides.
    #[error("there is only `{label}`: nothing to compare it with")]
    OneGroup {
        /// The only group's label.
        label: String,
    },
    /// The recordings are of different workloads.
    #[error("recordings of `{first}` and of `{other}` cannot be put side by side")]
    MixedWorkloads {
        /// Workload of the first recording.
        first: String,
        /// The other one.
        other: String,
    },
    /// A table of samples was asked for, and there are none.
    #[error("no recording has samples of `{workload}`")]
    NoSamples {
        /// The workload.
        workload: String,
    },
}

impl ReportError {
    /// What to do about it: one sentence without a full stop.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoRecordings | Self::EmptyGroup { .. } => "name at least one recording for each side",
            Self::OneGroup { .. } => "name a second recording or kernel",
            Self::MixedWorkloads { .. } => "compare recordings of the same workload",
            Self::NoSamples { .. } => "this workload has metrics only: use `--format text`",
        }
    }
}

/// The workload that all of `recordings` ran.
fn common_workload<'a>(recordings: impl IntoIterator<Item = &'a Recording>) -> Result<&'a str, ReportError> {
    let mut names = recordings.into_iter().map(|recording| recording.workload.as_str());
    let first = names.next().ok_or(ReportError::NoRecordings)?;
    match names.find(|&name| name != first) {
        Some(other) => Err(ReportError::MixedWorkloads { first: first.into(), other: other.into() }),
        None => Ok(first),
    }
}

/// [`common_workload`] of groups, none of which may be empty.
fn common_workload_of_groups<'a>(groups: &[Group<'a>]) -> Result<&'a str, ReportError> {
    if let Some(group) = groups.iter().find(|group| group.recordings.is_empty()) {
        return Err(ReportError::EmptyGroup { label: group.label.clone() });
    }
    common_workload(groups.iter().flat_map(|group| group.recordings.iter().copied()))
}

#[cfg(test)]
mod tests;
