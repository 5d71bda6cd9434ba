//! Features that are forms of one decision, and changes to a kernel that change nothing.
//!
//! Each mechanism has an answer to every set of features: of two forms it takes one. So nothing here
//! is needed to run a kernel ([`Kernel::parse`] takes any set); it keeps a person from comparing a
//! kernel with itself under another name.

use core::fmt;
use std_alloc::format;
use std_alloc::string::{String, ToString};

use super::{Feature, FeatureSet, Kernel, PRESETS};

/// Decisions that have several forms, in words, and the forms: of each a kernel has one at most.
pub const FORMS: &[(&str, &[Feature])] = &[
    ("the watermark boost", &[Feature::WatermarkBoost, Feature::WatermarkBoostV2]),
    (
        "the stall on fragmentation",
        &[
            Feature::FragmentStall,
            Feature::FragmentStallV1,
            Feature::FragmentStallV3,
            Feature::FragmentStallV5,
        ],
    ),
    ("the walk over the cgroup tree", &[Feature::SharedMemcgWalk, Feature::PartialMemcgWalk]),
    ("when cgroup statistics are flushed", &[Feature::MemcgStatThreshold, Feature::MemcgStatPeriodic]),
];

/// Why a change to a kernel makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeError {
    /// A feature is added that the version has.
    Present {
        /// The version.
        base: &'static str,
        /// The feature.
        feature: Feature,
    },
    /// A feature is taken away that the version does not have.
    Absent {
        /// The version.
        base: &'static str,
        /// The feature.
        feature: Feature,
    },
    /// A form of a decision is added to another one that the version has.
    Replaces {
        /// The version.
        base: &'static str,
        /// The decision, in words.
        decision: &'static str,
        /// The form that the version has.
        own: Feature,
        /// The form that is added.
        added: Feature,
    },
    /// Two forms of a decision are added.
    Together {
        /// The decision, in words.
        decision: &'static str,
        /// One form.
        first: Feature,
        /// The other.
        second: Feature,
    },
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Present { base, feature } => write!(f, "`{base}` has `{feature}` already"),
            Self::Absent { base, feature } => write!(f, "`{base}` has no `{feature}` to take away"),
            Self::Replaces { base, decision, own, added } => {
                write!(f, "`{added}` and `{own}`, which `{base}` has, are forms of one decision: {decision}")
            }
            Self::Together { decision, first, second } => {
                write!(f, "`{first}` and `{second}` are forms of one decision: {decision}")
            }
        }
    }
}

impl core::error::Error for ChangeError {}

impl ChangeError {
    /// What to write instead.
    pub fn hint(&self) -> String {
        match self {
            Self::Present { feature, .. } => format!("leave `+{feature}` out"),
            Self::Absent { feature, .. } => format!("leave `-{feature}` out"),
            Self::Replaces { base, own, added, .. } => {
                format!("to put it in the other's place, take that away first: `{base}-{own}+{added}`")
            }
            Self::Together { .. } => "leave one of them out".to_string(),
        }
    }
}

impl Kernel {
    /// Checks that each of `changes` (features that are added, true, or taken away, false) changes
    /// version `base`, and that no two forms of one decision are left in it. The order of changes
    /// does not matter.
    ///
    /// # Errors
    /// The first change, or pair of forms, that makes no sense.
    ///
    /// # Panics
    /// When there is no such version.
    pub fn check_changes(base: &str, changes: &[(Feature, bool)]) -> Result<(), ChangeError> {
        let preset = PRESETS.iter().find(|preset| preset.name == base).expect("a version that is modelled");
        let base = preset.name;
        let mut features = preset.features;
        for &(feature, on) in changes {
            match (on, preset.features.has(feature)) {
                (true, true) => return Err(ChangeError::Present { base, feature }),
                (false, false) => return Err(ChangeError::Absent { base, feature }),
                _ => features = features.with(feature, on),
            }
        }
        for &(decision, forms) in FORMS {
            let mut left = FeatureSet::of(forms).iter().filter(|&form| features.has(form));
            let (Some(first), Some(second)) = (left.next(), left.next()) else { continue };
            return Err(match (preset.features.has(first), preset.features.has(second)) {
                (true, _) => ChangeError::Replaces { base, decision, own: first, added: second },
                (_, true) => ChangeError::Replaces { base, decision, own: second, added: first },
                _ => ChangeError::Together { decision, first, second },
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Feature as F;
    use super::*;

    #[test]
    fn no_version_has_two_forms_of_one_decision() {
        for preset in PRESETS {
            assert_eq!(Kernel::check_changes(preset.name, &[]), Ok(()), "{}", preset.name);
        }
    }

    #[test]
    fn changes_that_change_nothing_are_named() {
        for (base, change, told) in [
            ("linux-5.5", (F::RootAging, true), "`linux-5.5` has `root-aging` already"),
            ("linux-5.4", (F::RootAging, false), "`linux-5.4` has no `root-aging` to take away"),
        ] {
            assert_eq!(Kernel::check_changes(base, &[change]).unwrap_err().to_string(), told);
        }
        assert_eq!(Kernel::check_changes("linux-5.4", &[(F::RootAging, true)]), Ok(()));
        assert_eq!(Kernel::check_changes("linux-5.5", &[(F::RootAging, false)]), Ok(()));
    }

    #[test]
    fn two_forms_of_one_decision_are_named_both_and_one_can_take_the_place_of_the_other() {
        for (base, changes, told) in [
            (
                "linux-4.20-rc1",
                [(F::FragmentStall, true), (F::FragmentStallV1, true)],
                "`fragment-stall` and `fragment-stall-v1` are forms of one decision: the stall on fragmentation",
            ),
            (
                "linux-6.1",
                [(F::WatermarkBoostV2, true), (F::NoFragment, false)],
                "`watermark-boost-v2` and `watermark-boost`, which `linux-6.1` has, are forms of one decision: \
                 the watermark boost",
            ),
            (
                "linux-6.12",
                [(F::NoFragment, false), (F::SharedMemcgWalk, true)],
                "`shared-memcg-walk` and `partial-memcg-walk`, which `linux-6.12` has, are forms of one \
                 decision: the walk over the cgroup tree",
            ),
        ] {
            assert_eq!(Kernel::check_changes(base, &changes).unwrap_err().to_string(), told);
        }
        let error = Kernel::check_changes("linux-6.1", &[(F::WatermarkBoostV2, true)]).unwrap_err();
        assert_eq!(
            error.hint(),
            "to put it in the other's place, take that away first: \
             `linux-6.1-watermark-boost+watermark-boost-v2`"
        );
        for changes in [
            [(F::WatermarkBoost, false), (F::WatermarkBoostV2, true)],
            [(F::WatermarkBoostV2, true), (F::WatermarkBoost, false)],
        ] {
            assert_eq!(Kernel::check_changes("linux-6.1", &changes), Ok(()));
        }
    }
}
