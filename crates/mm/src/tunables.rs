//! Which tunables a version of Linux has, and what it lets them be.
//!
//! Left out: defaults and most ranges, which are taken to be the same in all versions ([`crate::base::sysctl`]).

use crate::base::sysctl::Sysctl;
use crate::version::rules::{
    Compaction, DefragMode, GenForm, HugePages, LruKind, MarkGap, ProactiveCompaction, Rules,
    SwappinessRange, WatermarkBoost, WatermarkScaleRange, Zswap,
};

impl Rules {
    /// Whether a kernel that decides so has this tunable. `watermark_boost_factor` is let to any since 4.6, so
    /// that a comparison with and without the boost can set it; `fragment_stall_order` to all, as it is
    /// of a patch.
    pub fn has_sysctl(&self, sysctl: Sysctl) -> bool {
        let has_scale_factor = self.mark_gap == MarkGap::Scaled;
        match sysctl {
            Sysctl::WatermarkScaleFactor => has_scale_factor,
            Sysctl::WatermarkBoostFactor => has_scale_factor || self.watermark_boost != WatermarkBoost::Off,
            Sysctl::ThpEnabled | Sysctl::ThpDefrag => self.huge_pages == HugePages::On,
            // Where a policy takes the place of the file lists there is nothing to switch to.
            Sysctl::LruGenEnabled | Sysctl::LruGenMinTtlMs => {
                self.gen_form != GenForm::NotBuilt
                    && matches!(self.lru, LruKind::TwoLists | LruKind::Generations)
            }
            Sysctl::ZswapEnabled | Sysctl::ZswapMaxPoolPercent | Sysctl::ZswapAcceptThresholdPercent => {
                self.zswap != Zswap::Absent
            }
            Sysctl::ZswapShrinkerEnabled => matches!(self.zswap, Zswap::ListPerGroup | Zswap::StoresAll),
            Sysctl::DefragMode => self.defrag_mode == DefragMode::Sysctl,
            Sysctl::CompactionProactiveness => {
                self.compaction == Compaction::On && self.proactive_compaction != ProactiveCompaction::None
            }
            _ => true,
        }
    }

    /// The largest value that a kernel that decides so takes for a tunable.
    pub fn sysctl_max(&self, sysctl: Sysctl) -> u64 {
        match sysctl {
            Sysctl::Swappiness if self.swappiness_range == SwappinessRange::UpTo100 => 100,
            Sysctl::WatermarkScaleFactor if self.watermark_scale_range == WatermarkScaleRange::UpTo1000 => {
                1000
            }
            _ => sysctl.range().1,
        }
    }
}

#[cfg(test)]
mod tests {
    use std_alloc::vec::Vec;

    use super::*;
    use crate::version::presets::Version;

    #[test]
    fn only_since_5_8_may_files_be_spared_altogether() {
        let most = |kernel| Version::parse(kernel).unwrap().rules.sysctl_max(Sysctl::Swappiness);
        assert_eq!(["linux-2.6.32", "linux-5.7", "linux-5.10"].map(most), [100, 100, 200]);
        assert_eq!(most("linux-5.7+swappiness-max"), 200);
    }

    #[test]
    fn only_since_5_17_may_watermarks_be_a_third_of_a_zone_apart() {
        let most = |kernel| Version::parse(kernel).unwrap().rules.sysctl_max(Sysctl::WatermarkScaleFactor);
        assert_eq!(
            ["linux-5.10", "linux-6.1", "linux-5.10+watermark-scale-max"].map(most),
            [1000, 3000, 3000]
        );
    }

    #[test]
    fn linux_2_6_32_has_neither_huge_pages_nor_factors_for_its_marks() {
        let lacks = |kernel| {
            let rules = Version::parse(kernel).unwrap().rules;
            let lacking = Sysctl::ALL.iter().filter(|&&sysctl| !rules.has_sysctl(sysctl));
            lacking.map(|sysctl| sysctl.name()).collect::<Vec<_>>()
        };
        let of_2632 = ["vm.watermark_scale_factor", "vm.watermark_boost_factor", "thp.enabled", "thp.defrag"];
        let lru_gen = ["lru_gen.enabled", "lru_gen.min_ttl_ms"];
        let shrinker = ["zswap.shrinker_enabled"];
        let zswap = ["zswap.enabled", "zswap.max_pool_percent", "zswap.accept_threshold_percent"];
        let defrag = ["vm.defrag_mode"];
        let of_swap = [&lru_gen[..], &zswap, &shrinker].concat();
        let newer = [&defrag[..], &of_swap].concat();
        let compacting = ["vm.compaction_proactiveness", "vm.defrag_mode"];
        assert_eq!(lacks("linux-2.6.32"), [&of_2632[..2], &compacting, &of_2632[2..], &of_swap].concat());
        let boosted = [&of_2632[..1], &compacting, &of_2632[2..], &of_swap].concat();
        assert_eq!(lacks("linux-2.6.32+watermark-boost"), boosted);
        assert_eq!(lacks("linux-5.10"), newer);
        assert_eq!(lacks("linux-6.1"), ["vm.defrag_mode", "zswap.shrinker_enabled"]);
        assert_eq!(lacks("linux-6.12"), defrag);
        assert_eq!(lacks("linux-7.2"), Vec::<&str>::new());
        assert_eq!(lacks("linux-7.2+file-lru-sieve"), lru_gen);
    }
}
