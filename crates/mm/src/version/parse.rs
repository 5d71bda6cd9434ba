//! Names of kernels: `linux-5.4+root-aging` is Linux 5.4 with one feature more,
//! `linux-5.5-nofragment` is Linux 5.5 with one less.
//!
//! What was taken away goes first, then what was added; so `-watermark-boost+watermark-boost-v2` puts
//! one form in the other's place, in whichever order it is written. A change that changes nothing is
//! an error, and so are two answers to one decision: both would compare a kernel with itself under
//! another name. What shows by itself may be hidden by another change, though: one can ask what both come to.
//! Neighbours: [`crate::version::feature`], [`crate::version::effect`] and [`crate::version::presets`].

use core::fmt;
use std_alloc::format;
use std_alloc::string::{String, ToString};
use std_alloc::vec::Vec;

use crate::version::feature::Feature;
use crate::version::presets::{Preset, Version, presets};
use crate::version::rules::{Rule, Rules};

/// A feature that is added (true) or taken away (false).
pub type Change = (Feature, bool);

/// Why a text names no kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionError {
    /// The part before the first `+` or `-name` is no known version.
    UnknownVersion(String),
    /// What follows a `+` or `-` is no known feature.
    UnknownFeature(String),
    /// A change that makes no sense.
    Change(ChangeError),
}

impl fmt::Display for VersionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownVersion(name) => write!(f, "unknown kernel `{name}`"),
            Self::UnknownFeature(name) => write!(f, "unknown feature `{name}`"),
            Self::Change(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for VersionError {}

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
        /// What the version has in its place.
        instead: Option<Feature>,
    },
    /// A feature is added that answers what another one of the version answers.
    Replaces {
        /// The version.
        base: &'static str,
        /// The feature that the version has.
        own: Feature,
        /// The feature that is added.
        added: Feature,
    },
    /// A feature is added or taken away that shows neither by itself nor with the other changes.
    NoEffect {
        /// The version.
        base: &'static str,
        /// The change.
        change: Change,
        /// What hides it.
        reason: &'static str,
        /// A change that lets it show, if one does.
        reveals: Option<Change>,
    },
    /// Two features are added that answer one decision.
    Together {
        /// One.
        first: Feature,
        /// The other.
        second: Feature,
    },
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Present { base, feature } => write!(f, "`{base}` has `{feature}` already"),
            Self::Absent { base, feature, .. } => write!(f, "`{base}` has no `{feature}` to take away"),
            Self::Replaces { base, own, added } => {
                let decision = own.on().decision();
                write!(f, "`{added}` and `{own}`, which `{base}` has, are forms of one decision: {decision}")
            }
            Self::NoEffect { base, change: (feature, on), reason, .. } => {
                write!(f, "`{}{feature}` changes nothing in `{base}`: {reason}", sign(on))
            }
            Self::Together { first, second } => {
                let decision = first.on().decision();
                write!(f, "`{first}` and `{second}` are forms of one decision: {decision}")
            }
        }
    }
}

impl core::error::Error for ChangeError {}

impl ChangeError {
    /// What to write instead.
    pub fn hint(&self) -> String {
        match *self {
            Self::Present { feature, .. } => format!("leave `+{feature}` out"),
            Self::Absent { feature, instead: None, .. } => format!("leave `-{feature}` out"),
            Self::Absent { base, instead: Some(own), .. } => {
                format!("`{base}` has `{own}` in its place: `{base}-{own}`")
            }
            Self::Replaces { base, own, added } if own.off() == added.on() => {
                format!("take `{own}` away to get it: `{base}-{own}`")
            }
            Self::Replaces { base, own, added } => {
                format!("to put it in the other's place, take that away first: `{base}-{own}+{added}`")
            }
            Self::NoEffect { base, change, reveals: Some((other, on)), .. } => {
                let (other, change) =
                    (format!("{}{other}", sign(on)), format!("{}{}", sign(change.1), change.0));
                format!("with `{other}` it shows: `{base}{other}{change}`")
            }
            Self::NoEffect { change: (feature, on), .. } => {
                let change = format!("{}{feature}", sign(on));
                match presets().filter(|preset| changed(preset, &[(feature, on)]).is_ok()).last() {
                    Some(preset) => format!("leave it out, or take `{}{change}`", preset.name),
                    None => format!("leave `{change}` out"),
                }
            }
            Self::Together { .. } => "leave one of them out".to_string(),
        }
    }
}

impl Version {
    /// Reads `linux-5.4`, `linux-5.4+root-aging`, `linux-5.5-nofragment+...`.
    ///
    /// # Errors
    /// An unknown version or feature, with its text for a suggestion; a change that makes no sense.
    pub fn parse(text: &str) -> Result<Self, VersionError> {
        let preset = presets()
            .filter(|preset| text.starts_with(preset.name))
            .max_by_key(|preset| preset.name.len())
            .ok_or_else(|| VersionError::UnknownVersion(until_plus(text)))?;
        let mut rest = &text[preset.name.len()..];
        let mut changes = Vec::new();
        while !rest.is_empty() {
            let on = match rest.as_bytes()[0] {
                b'+' => true,
                b'-' => false,
                _ => return Err(VersionError::UnknownVersion(until_plus(text))),
            };
            let feature = Feature::ALL
                .iter()
                .copied()
                .filter(|feature| starts_with_name(&rest[1..], feature.name()))
                .max_by_key(|feature| feature.name().len())
                .ok_or_else(|| VersionError::UnknownFeature(until_plus(&rest[1..])))?;
            changes.push((feature, on));
            rest = &rest[1 + feature.name().len()..];
        }
        let rules = changed(preset, &changes).map_err(VersionError::Change)?;
        Ok(Self { name: text.to_string(), base: preset.name, rules, tuning: preset.tuning })
    }

    /// Checks that each of `changes` changes version `base`, and that no two of them answer one decision.
    /// Their order does not matter.
    ///
    /// # Errors
    /// The first change, or pair of changes, that makes no sense.
    ///
    /// # Panics
    /// When there is no such version.
    pub fn check_changes(base: &str, changes: &[Change]) -> Result<(), ChangeError> {
        let preset = presets().find(|preset| preset.name == base).expect("a version that is modelled");
        changed(preset, changes).map(|_| ())
    }
}

/// The rules of a version with changes.
fn changed(preset: &Preset, changes: &[Change]) -> Result<Rules, ChangeError> {
    let base = preset.name;
    let mut rules = preset.rules;
    for &(feature, on) in changes {
        match (on, preset.rules.has(feature.on())) {
            (true, true) => return Err(ChangeError::Present { base, feature }),
            (false, false) => {
                let instead = own_form(&preset.rules, feature).filter(|own| own.off() == feature.on());
                return Err(ChangeError::Absent { base, feature, instead });
            }
            (false, true) => rules = rules.with(feature.off()),
            (true, false) => {}
        }
    }
    for (index, &(added, on)) in changes.iter().enumerate() {
        if !on {
            continue;
        }
        let same_decision = |other: &Change| other.1 && other.0.on().decision() == added.on().decision();
        if let Some(&(second, _)) = changes[index + 1..].iter().find(|other| same_decision(other)) {
            return Err(ChangeError::Together { first: added, second });
        }
        let own = own_form(&rules, added).filter(|&own| !added.takes_the_place_of(own));
        if let Some(own) = own {
            return Err(ChangeError::Replaces { base, own, added });
        }
        rules = rules.with(added.on());
    }
    match changes.iter().find_map(|&change| hidden(preset, &rules, change)) {
        Some(error) => Err(error),
        None => Ok(rules),
    }
}

/// Why a change shows neither in the rules of a version nor, with all others, in `rules`; none: it does show.
fn hidden(preset: &Preset, rules: &Rules, change: Change) -> Option<ChangeError> {
    let (feature, _) = change;
    let need = feature.lacks(rules)?;
    feature.lacks(&preset.rules)?;
    // What one feature put in the place of what is needed, taking it away brings back.
    let brings_back = |rule: &Rule| {
        let mut present = Feature::ALL.iter().filter(|other| preset.rules.has(other.on()));
        present.find(|other| other.off() == *rule).map(|&other| (other, false))
    };
    let reveals = need.any.iter().find_map(brings_back);
    Some(ChangeError::NoEffect { base: preset.name, change, reason: need.or_else, reveals })
}

/// How a change is written.
const fn sign(on: bool) -> char {
    if on { '+' } else { '-' }
}

/// The feature by which `rules` answer the decision of `feature`, if their answer has a name.
fn own_form(rules: &Rules, feature: Feature) -> Option<Feature> {
    let decision = feature.on().decision();
    Feature::ALL.iter().copied().find(|own| own.on().decision() == decision && rules.has(own.on()))
}

/// Whether `text` starts with the whole name `name`: what follows is the end or another sign.
fn starts_with_name(text: &str, name: &str) -> bool {
    text.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', '-']))
}

fn until_plus(text: &str) -> String {
    text.split('+').next().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::Feature as F;
    use super::*;
    use crate::version::rules::{
        Backoff, ColdOrder, FragmentStall, PcpFallback, PcpGeneration, PcpLists, Rule, Spread,
        WatermarkBoost, WriteFault,
    };

    fn rules(text: &str) -> Rules {
        Version::parse(text).unwrap().rules
    }

    fn told(text: &str) -> (String, String) {
        match Version::parse(text) {
            Err(VersionError::Change(error)) => (error.to_string(), error.hint()),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn five_five_is_five_four_with_root_aging_and_without_the_shared_walk() {
        let by_parts = Version::parse("linux-5.4+root-aging-shared-memcg-walk").unwrap();
        // But for a count of faults, which no feature is for.
        let by_parts_counted = by_parts.rules.edited(&[Rule::WriteFault(WriteFault::TriedAgain)]);
        assert_eq!(by_parts_counted, rules("linux-5.5"));
        assert_ne!(rules("linux-5.4+root-aging"), rules("linux-5.5"), "one change alone");
        assert_eq!(by_parts.tuning, Version::parse("linux-5.5").unwrap().tuning);
    }

    #[test]
    fn a_minus_brings_back_what_was_there_before() {
        let version = rules("linux-5.5-nofragment-watermark-boost");
        assert_eq!(version.spread, Spread::Off);
        assert_eq!(version.watermark_boost, WatermarkBoost::Off);
        assert_eq!(version.aging, rules("linux-5.5").aging);
        assert_eq!(rules("linux-6.12-pcp-auto-size").pcp, PcpGeneration::HighOrder);
        assert_eq!(rules("linux-6.1-pcp-high-order").pcp, PcpGeneration::Classic);
    }

    #[test]
    fn the_longest_version_wins() {
        assert_eq!(Version::parse("linux-6.12").unwrap().base, "linux-6.12");
        assert_eq!(Version::parse("linux-6.1").unwrap().base, "linux-6.1");
    }

    #[test]
    fn the_series_of_source_4_is_switched_step_by_step() {
        let forms = |text| {
            let rules = rules(text);
            (rules.spread, rules.watermark_boost, rules.fragment_stall)
        };
        assert_eq!(forms("linux-4.20-rc1"), (Spread::Off, WatermarkBoost::Off, FragmentStall::Off));
        assert_eq!(
            forms("linux-4.20-rc1+nofragment+watermark-boost-v2+fragment-stall"),
            (Spread::Dma32, WatermarkBoost::V2, FragmentStall::V2)
        );
        assert_eq!(
            forms("linux-4.20-rc1+nofragment+watermark-boost+fragment-stall-v5"),
            (Spread::Dma32, WatermarkBoost::Merged, FragmentStall::V5)
        );
        assert_eq!(
            forms("linux-4.19+fragment-stall-v1"),
            (Spread::Off, WatermarkBoost::Off, FragmentStall::V1)
        );
    }

    #[test]
    fn unknown_names_are_returned_for_a_suggestion() {
        let unknown = |text| Version::parse(text).unwrap_err();
        assert_eq!(unknown("linux-7"), VersionError::UnknownVersion("linux-7".into()));
        assert_eq!(unknown("linux-5.4+rot-aging"), VersionError::UnknownFeature("rot-aging".into()));
        assert_eq!(unknown("linux-5.44"), VersionError::UnknownVersion("linux-5.44".into()));
    }

    #[test]
    fn changes_that_change_nothing_are_named() {
        for (text, error) in [
            ("linux-5.5+root-aging", "`linux-5.5` has `root-aging` already"),
            ("linux-5.4-root-aging", "`linux-5.4` has no `root-aging` to take away"),
        ] {
            assert_eq!(told(text).0, error);
        }
        for change in [(F::RootAging, true), (F::WatermarkBoost, false)] {
            assert_eq!(Version::check_changes("linux-5.4", &[change]), Ok(()));
        }
    }

    #[test]
    fn a_change_that_nothing_asks_for_is_refused_with_what_hides_it() {
        for (text, error, hint) in [
            (
                "linux-6.12+pressure-wait",
                "`+pressure-wait` changes nothing in `linux-6.12`: neither its slow path nor its kswapd pauses",
                "with `-reclaim-retry` it shows: `linux-6.12-reclaim-retry+pressure-wait`",
            ),
            (
                "linux-4.19-wait-iff-congested",
                "`-wait-iff-congested` changes nothing in `linux-4.19`: neither its slow path nor its reclaimers \
                 pause",
                "with `-reclaim-retry` it shows: `linux-4.19-reclaim-retry-wait-iff-congested`",
            ),
            (
                "linux-4.19-pcp-cold-order",
                "`-pcp-cold-order` changes nothing in `linux-4.19`: all its pages are alike, and none is cold",
                "leave it out, or take `linux-2.6.32-pcp-cold-order`",
            ),
            (
                "linux-6.1-pcp-per-migratetype",
                "`-pcp-per-migratetype` changes nothing in `linux-6.1`: lists that hold more than single pages \
                 are by type in any case",
                "with `-pcp-high-order` it shows: `linux-6.1-pcp-high-order-pcp-per-migratetype`",
            ),
            (
                "linux-6.12-pcp-per-migratetype",
                "`-pcp-per-migratetype` changes nothing in `linux-6.12`: lists that hold more than single pages \
                 are by type in any case",
                "leave it out, or take `linux-5.10-pcp-per-migratetype`",
            ),
            (
                "linux-2.6.32-evict-once-ratio+memcg-stat-threshold",
                "`+memcg-stat-threshold` changes nothing in `linux-2.6.32`: it has no memory cgroups",
                "leave it out, or take `linux-5.10+memcg-stat-threshold`",
            ),
        ] {
            assert_eq!(told(text), (error.to_string(), hint.to_string()));
            if let Some((_, suggested)) = hint.split_once("shows: ") {
                let _ = rules(suggested.trim_matches('`'));
            }
        }
    }

    #[test]
    fn a_change_that_shows_by_itself_may_be_hidden_by_another() {
        let rules = rules("linux-5.10-watermark-boost-atomic-ignores-boost");
        assert_eq!(rules.watermark_boost, WatermarkBoost::Off);
        let alone = [(F::WatermarkBoost, false), (F::AtomicIgnoresBoost, false)];
        for change in alone {
            assert_eq!(Version::check_changes("linux-5.10", &[change]), Ok(()));
        }
    }

    #[test]
    fn the_pressure_wait_takes_the_place_of_either_pause() {
        for text in [
            "linux-2.6.32+pressure-wait",
            "linux-5.10-reclaim-retry+pressure-wait",
            "linux-5.10-reclaim-retry-wait-iff-congested+pressure-wait",
        ] {
            assert_eq!(rules(text).backoff, Backoff::PressureWait);
        }
        assert_eq!(
            told("linux-2.6.32+pressure-wait+wait-iff-congested").0,
            "`pressure-wait` and `wait-iff-congested` are forms of one decision: the pause of the slow path"
        );
    }

    #[test]
    fn source_1_takes_its_two_commits_away_by_themselves_and_together() {
        let lists = |text| {
            let rules = rules(text);
            (rules.pcp_lists, rules.cold_order, rules.pcp_fallback)
        };
        let (single, by_type) = (PcpLists::Single, PcpLists::PerType);
        let (falling, rising) = (ColdOrder::Falling, ColdOrder::Rising);
        for (text, expected) in [
            ("linux-2.6.32", (by_type, rising, PcpFallback::Left)),
            ("linux-2.6.32-pcp-cold-order", (by_type, falling, PcpFallback::Left)),
            ("linux-2.6.32-pcp-per-migratetype", (single, rising, PcpFallback::Left)),
            ("linux-2.6.32-pcp-cold-order-pcp-per-migratetype", (single, falling, PcpFallback::Left)),
            ("linux-2.6.32+pcp-cross-fallback", (by_type, rising, PcpFallback::Taken)),
            ("linux-6.1+pcp-cross-fallback", (by_type, rising, PcpFallback::Taken)),
        ] {
            assert_eq!(lists(text), expected, "{text}");
        }
    }

    #[test]
    fn two_answers_to_one_decision_are_named_both() {
        for (text, error) in [
            (
                "linux-4.20-rc1+fragment-stall+fragment-stall-v1",
                "`fragment-stall` and `fragment-stall-v1` are forms of one decision: the stall on fragmentation",
            ),
            (
                "linux-6.1+watermark-boost-v2-nofragment",
                "`watermark-boost-v2` and `watermark-boost`, which `linux-6.1` has, are forms of one decision: \
                 the watermark boost",
            ),
            (
                "linux-6.12-nofragment+shared-memcg-walk",
                "`shared-memcg-walk` and `partial-memcg-walk`, which `linux-6.12` has, are forms of one \
                 decision: the walk over the cgroup tree",
            ),
        ] {
            assert_eq!(told(text).0, error);
        }
    }

    #[test]
    fn one_form_takes_the_place_of_another_that_is_taken_away() {
        assert_eq!(
            told("linux-6.1+watermark-boost-v2").1,
            "to put it in the other's place, take that away first: \
             `linux-6.1-watermark-boost+watermark-boost-v2`"
        );
        for text in
            ["linux-6.1-watermark-boost+watermark-boost-v2", "linux-6.1+watermark-boost-v2-watermark-boost"]
        {
            assert_eq!(rules(text).watermark_boost, WatermarkBoost::V2);
        }
    }

    #[test]
    fn a_feature_that_a_later_one_replaced_is_had_by_taking_the_later_one_away() {
        let hint = "`linux-6.12` has `pcp-auto-size` in its place: `linux-6.12-pcp-auto-size`";
        assert_eq!(told("linux-6.12-pcp-high-order").1, hint);
        let hint = "take `pcp-auto-size` away to get it: `linux-6.12-pcp-auto-size`";
        assert_eq!(told("linux-6.12+pcp-high-order").1, hint);
        // The later one may come without the earlier one having been there.
        assert_eq!(rules("linux-5.4+pcp-auto-size").pcp, PcpGeneration::AutoSize);
    }
}
