//! Why there is no sweep, or not all of it, and what to do about it.

use std::path::PathBuf;

use thiserror::Error;

use crate::error::class::Class;

/// Runs that one sweep takes at most: more than that are a mistake.
pub const RUNS_MAX: usize = 1_000;

/// Runs that a sweep into a dataset takes at most: it holds none of their recordings.
pub const RUNS_MAX_OF_DATASET: usize = 100_000;

/// What many runs were planned for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanOf {
    /// `pagetide sweep`.
    Sweep,
    /// `pagetide ablate`.
    Ablation,
    /// `pagetide compare`.
    Comparison,
    /// `pagetide worlds`.
    Worlds,
}

impl PlanOf {
    /// In words, with its article.
    pub const fn told(self) -> &'static str {
        match self {
            Self::Sweep => "a sweep",
            Self::Ablation => "an ablation",
            Self::Comparison => "a comparison",
            Self::Worlds => "worlds",
        }
    }
}

/// Why there is no sweep.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SweepError {
    /// Nothing has several values.
    #[error("there is nothing to sweep over: no option has several values")]
    NoAxis,
    /// A text that is no value, list or range.
    #[error("`{axis}`: `{text}` {problem}")]
    Values {
        /// The axis.
        axis: String,
        /// The text.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// More values than anyone can mean.
    #[error("`{axis}` has more than {max} values")]
    TooManyValues {
        /// The axis.
        axis: String,
        /// How many are allowed.
        max: usize,
    },
    /// A value that is listed twice.
    #[error("`{axis}` has the value `{value}` twice")]
    ValueTwice {
        /// The axis.
        axis: String,
        /// The value.
        value: String,
    },
    /// One sysctl or parameter in two options.
    #[error("`{0}` is given twice")]
    AxisTwice(String),
    /// `--seed` beside `--seeds`, with several values.
    #[error("`--seeds` counts from one `--seed`, and several are given")]
    Seeds,
    /// A combination of all that is too large.
    #[error("this makes {runs} runs; a sweep takes {max} at most")]
    TooManyRuns {
        /// How many it would be.
        runs: u128,
        /// How many are allowed.
        max: usize,
    },
    /// An option that the subject does not have.
    #[error("`--{option}` is {of}, and `{subject}` is {is}")]
    NotFor {
        /// The option.
        option: &'static str,
        /// Whose it is.
        of: &'static str,
        /// The subject.
        subject: String,
        /// What it is.
        is: &'static str,
    },
    /// Policies and kernels at once.
    #[error("a sweep is over policies or over kernels, not over both")]
    TwoKinds,
    /// A folder of a plan, without `--resume`.
    #[error("`{}` has {} already", path.display(), of.told())]
    Exists {
        /// The folder.
        path: PathBuf,
        /// What the plan is.
        of: PlanOf,
    },
    /// A folder without a plan, with `--resume`.
    #[error("`{}` is no folder of {}", path.display(), of.told())]
    NoPlan {
        /// The folder.
        path: PathBuf,
        /// What the plan would be.
        of: PlanOf,
    },
    /// A folder with another plan.
    #[error("`{}` has {} of another plan: {}", path.display(), of.told(), differences.join("; "))]
    OtherPlan {
        /// The folder.
        path: PathBuf,
        /// What the plan is.
        of: PlanOf,
        /// What differs.
        differences: Vec<String>,
    },
    /// A sweep into a dataset, of real kernels.
    #[error("a sweep into a dataset runs the model, and this one runs on `{0}`")]
    NotSimulated(String),
    /// What should be a plan that was handed over, and is none.
    #[error("this is no plan of a sweep: {0}")]
    NoPlanAtAll(String),
    /// A sweep into a dataset that another pagetide planned.
    #[error("the sweep was planned by pagetide {planned}, and this is pagetide {here}")]
    OtherVersion {
        /// The version that planned.
        planned: String,
        /// This one.
        here: String,
    },
    /// Runs that failed, while others did not.
    #[error("{failed} of {total} runs failed")]
    SomeFailed {
        /// How many failed.
        failed: usize,
        /// How many there are.
        total: usize,
        /// Whose fault the worst one is.
        class: Class,
    },
}

impl SweepError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        const SYNTAX: &str = "write values as `10,100,1000`, numbers also as `0..11` or `0..100+10`, sizes as \
                              `256M..2G` (doubling) or `256M..512M+32M`; what has commas or `..` itself goes in \
                              double quotes";
        Some(match self {
            Self::NoAxis => {
                "give one option several values, as in `--mem 256M..2G` or `--set vm.swappiness=10,60`"
                    .to_owned()
            }
            Self::Values { .. } => SYNTAX.to_owned(),
            Self::TooManyValues { .. } | Self::TooManyRuns { .. } => {
                "take larger steps, as in `0..1000+100` or `1..1000*10`".to_owned()
            }
            Self::ValueTwice { .. } => "use `--seeds N` to repeat runs".to_owned(),
            Self::AxisTwice(name) => format!("list its values in one option: `{name}=A,B`"),
            Self::Seeds => "give `--seeds N`, or list them: `--seed 1..N`".to_owned(),
            Self::NotFor { .. } => "leave it out".to_owned(),
            Self::TwoKinds => "make two sweeps, or `pagetide replay` with both".to_owned(),
            Self::Exists { .. } => "add `--resume` to go on with it, or name a new folder".to_owned(),
            Self::NoPlan { of: PlanOf::Worlds, .. } => "name a new folder".to_owned(),
            Self::NoPlan { .. } => "leave `--resume` out and name a new folder".to_owned(),
            Self::OtherPlan { .. } => {
                "give the options that it was begun with, or name a new folder".to_owned()
            }
            Self::NotSimulated(_) => {
                "what runs on real kernels differs from run to run: `pagetide sweep` keeps recordings of them"
                    .to_owned()
            }
            Self::NoPlanAtAll(_) => return None,
            Self::OtherVersion { .. } => "install the same version everywhere, workers included".to_owned(),
            Self::SomeFailed { .. } => {
                "the column `error` says why; with `--out DIR`, `--resume` runs them again".to_owned()
            }
        })
    }
}
