//! Why there is no ablation, and what to do about it.

use mm::version::feature::Feature;
use thiserror::Error;

use crate::error::sweep::RUNS_MAX;

/// Features that one ablation takes at most: 64 kernels.
pub const FEATURES_MAX: usize = 6;

/// Why there is no ablation.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AblateError {
    /// Nothing is switched.
    #[error("there is nothing to ablate: no feature is named")]
    NoFeatures,
    /// More subsets than anyone waits for.
    #[error("{count} features make {} kernels; an ablation takes {FEATURES_MAX} features at most", 1_u128 << (*count).min(127))]
    TooManyFeatures {
        /// How many were named.
        count: usize,
    },
    /// Too many runs, for the seeds.
    #[error("{kernels} kernels with {seeds} seeds make {} runs; an ablation takes {RUNS_MAX} at most", u128::from(*seeds) * *kernels as u128)]
    TooManyRuns {
        /// Kernels.
        kernels: usize,
        /// Seeds.
        seeds: u64,
    },
    /// A feature that is named twice.
    #[error("feature `{0}` is named twice")]
    Twice(Feature),
    /// A sign that says otherwise than the base kernel.
    #[error("`{base}` {} `{feature}`, so it is {}", if *has { "has" } else { "has no" }, if *has { "taken away and not added" } else { "added and not taken away" })]
    Sign {
        /// The base kernel.
        base: String,
        /// The feature.
        feature: Feature,
        /// Whether the base has it.
        has: bool,
    },
    /// Features of which not every subset is a kernel.
    #[error("{} cannot be ablated together: {why}", listed(features))]
    Exclude {
        /// The features.
        features: Vec<Feature>,
        /// Why not.
        why: String,
    },
    /// A real kernel.
    #[error("features are switched on simulated kernels; `{0}` is a real one")]
    NotSimulated(String),
}

impl AblateError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NoFeatures => {
                "name some, as in `--features root-aging,shared-memcg-walk`; `pagetide list features` has all"
                    .to_owned()
            }
            Self::TooManyFeatures { .. } => {
                "ablate some of them first, then those that matter together".to_owned()
            }
            Self::TooManyRuns { .. } => "take fewer seeds or features".to_owned(),
            Self::Twice(_) => "name it once".to_owned(),
            Self::Sign { feature, has, .. } => {
                format!("write `{}{feature}`, or leave the sign out", if *has { '-' } else { '+' })
            }
            Self::Exclude { features, .. } => match &features[..] {
                [.., last] => format!("every subset is run: leave `{last}` out, or another one"),
                [] => return None,
            },
            Self::NotSimulated(_) => {
                "leave `--on` out; `pagetide compare --on` puts real kernels beside simulated ones".to_owned()
            }
        })
    }
}

fn listed(features: &[Feature]) -> String {
    let quoted: Vec<String> = features.iter().map(|feature| format!("`{feature}`")).collect();
    match &quoted[..] {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        all => all.concat(),
    }
}
