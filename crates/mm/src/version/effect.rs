//! Which features have something to change in a kernel, and what hides the others.
//!
//! `+pressure-wait` is about pauses, so it changes nothing in a slow path that does not pause. Only what follows
//! from the rules themselves stands here; whether a machine or a workload ever asks for a decision does
//! not. Neighbours: [`crate::version::parse`] refuses changes without effect; a test of `sim` plays scenes with
//! and without them.

use crate::version::feature::Feature;
use crate::version::rules::*;

/// What a kernel must decide for a feature to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// Answers of which it must give one.
    pub any: &'static [Rule],
    /// What is so where it gives none.
    pub or_else: &'static str,
}

const CGROUPS: &[Need] = &[Need { any: &[Rule::Cgroups(Cgroups::V2)], or_else: "it has no memory cgroups" }];
const ASKED: &[Need] = &[Need {
    any: &[
        Rule::ProactiveReclaim(ProactiveReclaim::Whole),
        Rule::ProactiveReclaim(ProactiveReclaim::Quarters),
        Rule::ProactiveReclaim(ProactiveReclaim::QuartersOrAnon),
    ],
    or_else: "nobody can ask it for reclaim",
}];
const BOOSTS: &[Need] = &[Need {
    any: &[Rule::WatermarkBoost(WatermarkBoost::V2), Rule::WatermarkBoost(WatermarkBoost::Merged)],
    or_else: "it does not boost watermarks",
}];

impl Feature {
    /// All that a kernel must decide for the feature to show.
    pub const fn needs(self) -> &'static [Need] {
        match self {
            Self::PcpPerMigratetype => &[Need {
                any: &[Rule::PcpGeneration(PcpGeneration::Classic)],
                or_else: "lists that hold more than single pages are by type in any case",
            }],
            Self::PcpColdOrder => &[Need {
                any: &[Rule::ColdPages(ColdPages::Tail)],
                or_else: "all its pages are alike, and none is cold",
            }],
            Self::PressureWait => &[Need {
                any: &[Rule::SlowPath(SlowPath::Paused), Rule::KswapdDone(KswapdDone::EveryZone)],
                or_else: "neither its slow path nor its kswapd pauses",
            }],
            Self::WaitIffCongested => &[Need {
                any: &[
                    Rule::SlowPath(SlowPath::Paused),
                    Rule::KswapdDone(KswapdDone::EveryZone),
                    Rule::DirectPause(DirectPause::Paused),
                ],
                or_else: "neither its slow path nor its reclaimers pause",
            }],
            Self::AtomicIgnoresBoost | Self::ShrinkSlabWhenBoosted | Self::BoostFailureForgiven => BOOSTS,
            Self::EvictionAgesTarget => &[Need {
                any: &[Rule::Aging(Aging::Root)],
                or_else: "it balances the lists of each cgroup by themselves",
            }],
            Self::KswapdHopeNeedsBalance => &[Need {
                any: &[Rule::KswapdDone(KswapdDone::SomeZone)],
                or_else: "its kswapd gives up zone by zone",
            }],
            Self::CompactLargeFolios | Self::SmallCompactGap | Self::DefragMode => {
                &[Need { any: &[Rule::Compaction(Compaction::On)], or_else: "it does not compact memory" }]
            }
            Self::LargeFolioExt4 => &[Need {
                any: &[Rule::ReadaheadFolios(ReadaheadFolios::Large), Rule::WriteFolios(WriteFolios::Large)],
                or_else: "neither its readahead nor its writes make large folios",
            }],
            Self::ReparentLru => &[Need {
                any: &[Rule::ObjectCharge(ObjectCharge::ByObject)],
                or_else: "slabs belong to the cgroup that made them, and stay with it",
            }],
            Self::LruGen => &[Need {
                any: &[Rule::GenForm(GenForm::First), Rule::GenForm(GenForm::Settled)],
                or_else: "it has no multi-gen LRU, which came with Linux 6.1",
            }],
            Self::MglruTiers
            | Self::MglruTypes
            | Self::MglruWalk
            | Self::MglruBloom
            | Self::MglruAround
            | Self::MglruRefs
            | Self::MglruLimitStop => &[Need {
                any: &[Rule::LruKind(LruKind::Generations)],
                or_else: "it has the classic LRU (`lru-gen` is the other one)",
            }],
            Self::NodeReclaimFile | Self::ProactiveReclaimCounted => ASKED,
            _ if self.is_of_groups() => CGROUPS,
            _ => &[],
        }
    }

    /// Whether it is about memory cgroups, so that it needs them.
    const fn is_of_groups(self) -> bool {
        matches!(
            self,
            Self::SharedMemcgWalk
                | Self::PartialMemcgWalk
                | Self::SiblingProtection
                | Self::ScaledProtection
                | Self::ScaledProtectionSkips
                | Self::MemcgStatThreshold
                | Self::MemcgStatPeriodic
                | Self::SlabCreditGlobalOnly
                | Self::MemcgMultiStock
                | Self::LimitReclaimInVmstat
                | Self::MemoryReclaim
                | Self::MemoryReclaimSwappiness
                | Self::MemoryReclaimAnonOnly
                | Self::CgroupWriteback
                | Self::HighPause
                | Self::HighPauseRetries
                | Self::HighOverchargeAtOnce
                | Self::MemorySwapHigh
        )
    }

    /// What of its needs is missing in a kernel of these rules, if anything is.
    pub fn lacks(self, rules: &Rules) -> Option<&'static Need> {
        self.needs().iter().find(|need| !need.any.iter().any(|&rule| rules.has(rule)))
    }

    /// Whether it may be added where another feature answers the same decision: the other one came after
    /// what was there before both, or was made for the same purpose later.
    pub fn takes_the_place_of(self, other: Self) -> bool {
        other.on() == self.off() || (self, other) == (Self::PressureWait, Self::WaitIffCongested)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::presets::Version;

    fn lacks(kernel: &str, feature: Feature) -> Option<&'static str> {
        feature.lacks(&Version::parse(kernel).unwrap().rules).map(|need| need.or_else)
    }

    #[test]
    fn one_of_several_answers_is_enough() {
        assert_eq!(lacks("linux-2.6.32", Feature::PressureWait), None);
        assert_eq!(lacks("linux-5.10-reclaim-retry", Feature::PressureWait), None);
        assert!(lacks("linux-5.10", Feature::PressureWait).is_some());
        assert_eq!(lacks("linux-4.20-rc1+watermark-boost-v2", Feature::AtomicIgnoresBoost), None);
        assert_eq!(lacks("linux-5.3", Feature::AtomicIgnoresBoost), None);
        assert!(lacks("linux-4.19", Feature::AtomicIgnoresBoost).is_some());
    }

    #[test]
    fn answers_that_a_feature_needs_are_to_other_decisions_than_its_own() {
        for &feature in Feature::ALL {
            for need in feature.needs() {
                assert!(!need.any.is_empty(), "{feature}");
                for rule in need.any {
                    assert_ne!(rule.decision(), feature.on().decision(), "{feature}");
                }
            }
        }
    }

    #[test]
    fn what_shows_nowhere_would_be_no_feature() {
        let shows = |feature: &Feature| {
            let mut kernels = Version::presets().map(|(name, _)| name).chain(["linux-6.12+lru-gen"]);
            kernels.any(|kernel| lacks(kernel, *feature).is_none())
        };
        assert!(Feature::ALL.iter().all(shows));
    }
}
