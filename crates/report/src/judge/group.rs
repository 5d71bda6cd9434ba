//! What is judged: runs of one variant, several of which are compared; and why some cannot be.

use recording::Recording;

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
///
/// # Errors
/// No recordings, or recordings of different workloads.
pub fn common_workload<'a>(
    recordings: impl IntoIterator<Item = &'a Recording>,
) -> Result<&'a str, ReportError> {
    let mut names = recordings.into_iter().map(|recording| recording.workload.as_str());
    let first = names.next().ok_or(ReportError::NoRecordings)?;
    match names.find(|&name| name != first) {
        Some(other) => Err(ReportError::MixedWorkloads { first: first.into(), other: other.into() }),
        None => Ok(first),
    }
}

/// [`common_workload`] of groups, none of which may be empty.
pub(crate) fn common_workload_of_groups<'a>(groups: &[Group<'a>]) -> Result<&'a str, ReportError> {
    if let Some(group) = groups.iter().find(|group| group.recordings.is_empty()) {
        return Err(ReportError::EmptyGroup { label: group.label.clone() });
    }
    common_workload(groups.iter().flat_map(|group| group.recordings.iter().copied()))
}
