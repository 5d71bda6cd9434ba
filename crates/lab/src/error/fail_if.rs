//! Why a limit is none, or was not kept, and what to do about it.

use report::LimitError;
use thiserror::Error;
use workload::UnknownName;

/// Why a limit is none, or was not kept.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FailIfError {
    /// It cannot be read.
    #[error("`--fail-if '{text}'`: {problem}")]
    Syntax {
        /// As it was written.
        text: String,
        /// What is wrong with it.
        problem: String,
        /// What to write instead, if that is not one of the forms.
        hint: Option<String>,
    },
    /// It is on something that no run has.
    #[error("`--fail-if '{text}'`: no run has a metric, samples or a counter `{}`", unknown.name)]
    Unknown {
        /// As it was written.
        text: String,
        /// The name, with what there is instead.
        unknown: UnknownName,
    },
    /// It does not suit what it is on.
    #[error("`--fail-if`: {0}")]
    Unsuitable(LimitError),
    /// It was not kept.
    #[error("{failed} of {total} limits {}: {}", if *.failed == 1 { "is not kept" } else { "are not kept" }, told.join(", "))]
    Crossed {
        /// How many were not, of one column each.
        failed: usize,
        /// How many there are.
        total: usize,
        /// Which, with numbers.
        told: Vec<String>,
    },
}

impl FailIfError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        const FORMS: &str = "write `METRIC < -5%` for the change from the baseline, `METRIC > 100` for the number \
                             itself, `METRIC change > 100`, or `METRIC worse by 5%`";
        match self {
            Self::Syntax { hint, .. } => Some(hint.clone().unwrap_or_else(|| FORMS.to_owned())),
            Self::Unknown { unknown, .. } => Some(unknown.hint()),
            Self::Unsuitable(LimitError::NoDirection { name, .. }) => {
                Some(format!("say it with a sign, as in `{name} > +5%`, or `{name} changed by 5%`"))
            }
            Self::Unsuitable(_) => Some("give the amount without a unit, or in percent".to_owned()),
            Self::Crossed { .. } => None,
        }
    }
}
