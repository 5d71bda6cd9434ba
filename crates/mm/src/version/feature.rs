//! Features and kernels: what one version of Linux does differently from another.
//!
//! A [`Feature`] is one behavioural change that can be switched on or off by itself. A
//! [`Kernel`] is a named set of features plus the constants that changed in passing
//! ([`Tuning`]). `linux-5.4+root-aging` is Linux 5.4 with one feature more, `linux-5.5-nofragment`
//! is Linux 5.5 with one less.
//!
//! Only what this crate implements is listed. Source of each row: MECHANISMS sections 0 and 6.x
//! of `docs/mechanisms`. Neighbours: `forms` for features that do not go together,
//! [`crate::base::sysctl`] for what an administrator can change.

mod forms;

use core::fmt;
use std_alloc::string::{String, ToString};
use std_alloc::vec::Vec;

use units::Bytes;

pub use forms::{ChangeError, FORMS};

use crate::version::geometry::{FILE_CACHES_5X, FILE_CACHES_61, FILE_CACHES_612, FileCaches};

macro_rules! features {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $help:literal;)*) => {
        /// One behavioural change of the kernel.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Feature {
            $($(#[$doc])* $variant,)*
        }

        impl Feature {
            /// Every feature, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name on the command line.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// One line on what it changes.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => $help,)* }
            }
        }
    };
}

features! {
    /// Active/inactive balance and refault detection at the root of the reclaim run instead of in
    /// each cgroup (5.5; source 2, MECHANISMS 7.2 and 7.3).
    RootAging = "root-aging", "balance active and inactive lists over the whole reclaimed tree, not per cgroup (5.5)";
    /// kswapd shrinks slab also while it reclaims for a watermark boost (5.4; source 0).
    ShrinkSlabWhenBoosted = "shrink-slab-when-boosted", "kswapd shrinks slab also while it reclaims for a watermark boost (5.4)";
    /// A request that prefers the Normal zone goes to DMA32 before it mixes mobility types (5.0).
    NoFragment = "nofragment", "spread to the DMA32 zone before mixing mobility types in a pageblock (5.0)";
    /// A fragmenting fallback raises the zone's watermarks and wakes kswapd (5.0).
    WatermarkBoost = "watermark-boost", "a fragmenting fallback raises watermarks for a while (5.0)";
    /// [`Feature::WatermarkBoost`] as posted on 7 Nov 2018 (v2; v1 is the same): the cap is taken
    /// from the boosted high mark and so grows with the boost, kswapd is woken by every request
    /// that mixes types, whatever it may do, and slab is reclaimed during a boost too. Requests
    /// that may not wake kswapd are not spread (source 4; MECHANISMS 2.6, 2.8).
    WatermarkBoostV2 = "watermark-boost-v2", "watermark-boost as posted for 4.20-rc1: cap from the boosted mark, wakes kswapd always, reclaims slab";
    /// A movable request that would fragment badly waits for kswapd first (source 4, MECHANISMS
    /// 2.9), as posted on 7 Nov 2018 (v2): boosts faster, waits up to 100 ms.
    FragmentStall = "fragment-stall", "movable requests wait for kswapd before a badly fragmenting fallback (v2: up to 100 ms)";
    /// [`Feature::FragmentStall`] as first posted on 31 Oct 2018: does not boost faster, waits for
    /// each zone that was tried, counts nothing.
    FragmentStallV1 = "fragment-stall-v1", "fragment-stall as first posted: for each zone tried, no faster boost, no counter";
    /// [`Feature::FragmentStall`] with a timeout of 20 ms (21 Nov 2018).
    FragmentStallV3 = "fragment-stall-v3", "fragment-stall that waits up to 20 ms";
    /// [`Feature::FragmentStallV3`] that is also woken while kswapd works a boost off (23 Nov 2018).
    FragmentStallV5 = "fragment-stall-v5", "fragment-stall-v3, also woken while kswapd works a boost off";
    /// Direct and limit reclaimers share one saved position per cgroup and priority and stop in
    /// mid-tree once their target is met (up to 5.4, MECHANISMS 6.7).
    SharedMemcgWalk = "shared-memcg-walk", "reclaimers share a saved position in the cgroup tree (up to 5.4)";
    /// Direct and limit reclaim continue the cgroup walk at a saved position and stop once their
    /// target is met (6.12, MECHANISMS-6X 4.2).
    PartialMemcgWalk = "partial-memcg-walk", "direct and limit reclaim walk part of the cgroup tree from a saved position (6.12)";
    /// Effective protection is shared out among siblings in proportion to their usage also
    /// directly below the root's children (5.7, MECHANISMS 8.3).
    SiblingProtection = "sibling-protection", "share memory.low among siblings by protected usage at every level (5.7)";
    /// New anonymous pages start on the inactive list (5.9).
    AnonStartsInactive = "anon-starts-inactive", "new anonymous pages start on the inactive list (5.9)";
    /// Deferred slab work is paid back only in the fraction 2^-priority (5.11, MECHANISMS-6X 7.2).
    DeferredSlabDecay = "deferred-slab-decay", "deferred slab scanning is paid back by priority (5.11)";
    /// Per-CPU lists hold orders 0 to 3 and are sized from the low watermark (5.13).
    PcpHighOrder = "pcp-high-order", "per-CPU page lists hold orders 0 to 3, sized from the low watermark (5.13)";
    /// Per-CPU lists size themselves and refill in doubling batches (6.7, MECHANISMS-6X 1.4).
    PcpAutoSize = "pcp-auto-size", "per-CPU page lists size themselves, refills double (6.7)";
    /// Order-0 atomic requests test the minimum mark again without its boost (5.9).
    AtomicIgnoresBoost = "atomic-ignores-boost", "atomic requests ignore the watermark boost (5.9)";
    /// Fallback claims whole pageblocks first and steals single pages only then (6.12,
    /// MECHANISMS-6X 9.3).
    ClaimThenSteal = "claim-then-steal", "fallback claims a pageblock whole or steals a single page (6.12)";
    /// Compaction moves folios that are smaller than the block it works for, and keeps free targets
    /// by order (6.12, MECHANISMS-6X 9.2).
    CompactLargeFolios = "compact-large-folios", "compaction moves large folios smaller than the wanted block (6.12)";
    /// The reserve for high-order atomic requests is skipped in zones too small for it (6.12).
    SmallZoneNoHighatomic = "small-zone-no-highatomic", "no highatomic reserve in small zones (6.12)";
    /// Readahead allocates large folios where the filesystem can (5.18, XFS).
    LargeFolioReadahead = "large-folio-readahead", "readahead allocates large folios on XFS (5.18)";
    /// Buffered writes allocate large folios where the filesystem can (6.6, XFS).
    LargeFolioWrite = "large-folio-write", "buffered writes allocate large folios on XFS (6.6)";
    /// Reclaim reads cgroup statistics that are flushed when many updates are pending (6.1,
    /// MECHANISMS-6X 4.3).
    MemcgStatThreshold = "memcg-stat-threshold", "cgroup statistics are flushed for reclaim when many updates are pending (5.16)";
    /// Reclaim reads cgroup statistics as the periodic flusher left them (6.12).
    MemcgStatPeriodic = "memcg-stat-periodic", "cgroup statistics are flushed for reclaim every 2 s only (6.8)";
    /// A direct reclaimer that frees nothing sleeps a tick at its last priority (5.16, MECHANISMS
    /// 4.5).
    ReclaimThrottle = "reclaim-throttle", "direct reclaim without progress sleeps a tick (5.16)";
    /// kswapd may write a single dirty page where the filesystem lets it: ext4 up to 6.x, XFS up
    /// to 5.17 (MECHANISMS 6.8, MECHANISMS-6X 0 row 9).
    WritepageHook = "writepage-hook", "kswapd may write single dirty pages (ext4 up to 6.2, XFS up to 5.17)";
    /// An inode is put on its LRU only once its pages are gone; before, inodes with pages were on
    /// it, and the inode shrinker freed their pages (5.16, MECHANISMS 9.4, MECHANISMS-6X 7.4).
    InodeLruWithoutPages = "inode-lru-without-pages", "inodes with cached pages are not on the inode LRU (5.16)";
    /// Slab pages freed by shrinkers are credited to global reclaim only (6.12).
    SlabCreditGlobalOnly = "slab-credit-global-only", "freed slab pages do not count for limit reclaim (6.12)";
}

const _: () = assert!(Feature::ALL.len() <= 64, "a set of features is one u64");

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of features.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct FeatureSet(u64);

impl FeatureSet {
    /// No feature at all.
    pub const EMPTY: Self = Self(0);

    /// The set of these features.
    pub const fn of(features: &[Feature]) -> Self {
        let mut bits = 0;
        let mut i = 0;
        while i < features.len() {
            bits |= 1 << (features[i] as u8);
            i += 1;
        }
        Self(bits)
    }

    /// Which form of the watermark boost is on, if any.
    #[inline]
    pub const fn watermark_boost(self) -> Option<WatermarkBoost> {
        if self.has(Feature::WatermarkBoostV2) {
            Some(WatermarkBoost::V2)
        } else if self.has(Feature::WatermarkBoost) {
            Some(WatermarkBoost::Merged)
        } else {
            None
        }
    }

    /// Which form of the stall on fragmentation is on, if any; of several the latest.
    #[inline]
    pub const fn fragment_stall(self) -> Option<FragmentStall> {
        if self.has(Feature::FragmentStallV5) {
            Some(FragmentStall::V5)
        } else if self.has(Feature::FragmentStallV3) {
            Some(FragmentStall::V3)
        } else if self.has(Feature::FragmentStall) {
            Some(FragmentStall::V2)
        } else if self.has(Feature::FragmentStallV1) {
            Some(FragmentStall::V1)
        } else {
            None
        }
    }

    /// Whether `feature` is on.
    #[inline]
    pub const fn has(self, feature: Feature) -> bool {
        (self.0 & (1 << (feature as u8))) != 0
    }

    /// The set with `feature` switched on or off.
    #[must_use]
    pub const fn with(self, feature: Feature, on: bool) -> Self {
        let bit = 1 << (feature as u8);
        Self(if on { self.0 | bit } else { self.0 & !bit })
    }

    /// The features of both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The features that are on, in the order of [`Feature::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Feature> {
        Feature::ALL.iter().copied().filter(move |&feature| self.has(feature))
    }
}

impl fmt::Debug for FeatureSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Feature::name)).finish()
    }
}

/// Forms of the watermark boost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatermarkBoost {
    /// [`Feature::WatermarkBoostV2`]
    V2,
    /// [`Feature::WatermarkBoost`]
    Merged,
}

/// Forms of the stall on fragmentation, by posting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FragmentStall {
    /// [`Feature::FragmentStallV1`]
    V1,
    /// [`Feature::FragmentStall`]
    V2,
    /// [`Feature::FragmentStallV3`]
    V3,
    /// [`Feature::FragmentStallV5`]
    V5,
}

/// Constants that differ between versions and that nobody switches by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// Pages in a per-CPU LRU batch (pagevec, folio_batch): 15, since 6.8 31.
    pub lru_batch: u8,
    /// Pages that a cgroup charge takes in advance for the CPU's stock: 32, since 5.16 64.
    pub charge_batch: u32,
    /// Rounds of limit reclaim before a charge gives up: 5, since 5.9 16.
    pub charge_retries: u8,
    /// Size of a page cache tree node in bytes (`radix_tree_node`).
    pub tree_node_size: u16,
    /// log2 of the pages of a slab of tree nodes.
    pub tree_node_slab_order: u8,
    /// Slab caches of dentries, inodes and what belongs to them.
    pub file_caches: FileCaches,
    /// Bytes per object that accounting adds for its own pointer: 0, since 5.9 8.
    pub object_cgroup_overhead: u16,
    /// Upper bound of `min_free_kbytes` as computed at boot: 65536, since 5.8 262144.
    pub min_free_kbytes_max: u64,
    /// What a checkpoint of the log of XFS grows to at most: any size, since 5.7 32 MiB.
    pub xfs_checkpoint_max: Bytes,
    /// Whether huge pages are on, `thp.enabled` = `always` (what Kconfig proposes, and what Debian's
    /// guests say), and raise `min_free_kbytes` at boot. Neither below 512 MiB of memory.
    pub huge_pages: bool,
    /// Whether a walk over the zones that found nothing while keeping mobility types apart starts
    /// over without that wish (5.1), or goes on where it ended, as the patch was posted: on a
    /// machine of one node such a request then takes the slow path (MECHANISMS 2.6).
    pub walk_starts_over: bool,
    /// Whether zones of less than four pageblocks are never boosted (5.7, MECHANISMS 2.8).
    pub small_zones_unboosted: bool,
}

/// A version of Linux with features switched on or off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The name as written: `linux-5.4+root-aging`.
    pub name: String,
    /// The version that it starts from: `linux-5.4`.
    pub base: &'static str,
    /// What is switched on.
    pub features: FeatureSet,
    /// The version's constants.
    pub tuning: Tuning,
}

struct Preset {
    name: &'static str,
    help: &'static str,
    features: FeatureSet,
    tuning: Tuning,
}

const TUNING_5X: Tuning = Tuning {
    lru_batch: 15,
    charge_batch: 32,
    charge_retries: 5,
    tree_node_size: 576,
    tree_node_slab_order: 2,
    file_caches: FILE_CACHES_5X,
    object_cgroup_overhead: 0,
    min_free_kbytes_max: 65536,
    xfs_checkpoint_max: Bytes(u64::MAX),
    huge_pages: true,
    walk_starts_over: true,
    small_zones_unboosted: false,
};

const TUNING_4X: Tuning = Tuning { walk_starts_over: false, ..TUNING_5X };

const TUNING_61: Tuning = Tuning {
    charge_batch: 64,
    charge_retries: 16,
    tree_node_size: 584,
    tree_node_slab_order: 1,
    file_caches: FILE_CACHES_61,
    object_cgroup_overhead: 8,
    min_free_kbytes_max: 262_144,
    xfs_checkpoint_max: Bytes(32 << 20),
    small_zones_unboosted: true,
    ..TUNING_5X
};

const FEATURES_419: FeatureSet = FeatureSet::of(&[Feature::SharedMemcgWalk, Feature::WritepageHook]);
const FEATURES_53: FeatureSet =
    FEATURES_419.union(FeatureSet::of(&[Feature::NoFragment, Feature::WatermarkBoost]));
const FEATURES_54: FeatureSet = FEATURES_53.with(Feature::ShrinkSlabWhenBoosted, true);
// Exactly 5.4 with root aging: the walk of 5.4 is kept, so that one change is one feature.
const FEATURES_55: FeatureSet = FEATURES_54.with(Feature::RootAging, true);
const FEATURES_61: FeatureSet = FEATURES_55.with(Feature::SharedMemcgWalk, false).union(FeatureSet::of(&[
    Feature::SiblingProtection,
    Feature::AnonStartsInactive,
    Feature::DeferredSlabDecay,
    Feature::PcpHighOrder,
    Feature::AtomicIgnoresBoost,
    Feature::LargeFolioReadahead,
    Feature::MemcgStatThreshold,
    Feature::ReclaimThrottle,
    Feature::InodeLruWithoutPages,
]));
const FEATURES_612: FeatureSet = FEATURES_61
    .with(Feature::MemcgStatThreshold, false)
    .with(Feature::WritepageHook, false)
    .union(FeatureSet::of(&[
        Feature::PartialMemcgWalk,
        Feature::PcpAutoSize,
        Feature::ClaimThenSteal,
        Feature::CompactLargeFolios,
        Feature::SmallZoneNoHighatomic,
        Feature::LargeFolioWrite,
        Feature::MemcgStatPeriodic,
        Feature::SlabCreditGlobalOnly,
    ]));

const PRESETS: &[Preset] = &[
    Preset { name: "linux-4.19", help: "Linux 4.19 (2018)", features: FEATURES_419, tuning: TUNING_4X },
    Preset {
        name: "linux-4.20-rc1",
        help: "Linux 4.20-rc1 (Nov 2018): what the fragmentation avoidance series was posted for",
        features: FEATURES_419,
        tuning: TUNING_4X,
    },
    Preset { name: "linux-5.3", help: "Linux 5.3 (2019)", features: FEATURES_53, tuning: TUNING_5X },
    Preset {
        name: "linux-5.4",
        help: "Linux 5.4: 5.3 + shrink-slab-when-boosted",
        features: FEATURES_54,
        tuning: TUNING_5X,
    },
    Preset {
        name: "linux-5.5",
        help: "Linux 5.5: 5.4 + root-aging",
        features: FEATURES_55,
        tuning: TUNING_5X,
    },
    Preset {
        name: "linux-6.1",
        help: "Linux 6.1 (2022), classic LRU, as packaged by Debian 12",
        features: FEATURES_61,
        tuning: TUNING_61,
    },
    Preset {
        name: "linux-6.12",
        help: "Linux 6.12 (2024), classic LRU, as packaged by Debian 13",
        features: FEATURES_612,
        tuning: Tuning { lru_batch: 31, file_caches: FILE_CACHES_612, ..TUNING_61 },
    },
];

/// Why a text names no kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelError {
    /// The part before the first `+` or `-name` is no known version.
    UnknownKernel(String),
    /// What follows a `+` or `-` is no known feature.
    UnknownFeature(String),
}

impl fmt::Display for KernelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKernel(name) => write!(f, "unknown kernel `{name}`"),
            Self::UnknownFeature(name) => write!(f, "unknown feature `{name}`"),
        }
    }
}

impl core::error::Error for KernelError {}

impl Kernel {
    /// Names and one-line descriptions of the versions that are modelled, oldest first.
    pub fn presets() -> impl Iterator<Item = (&'static str, &'static str)> {
        PRESETS.iter().map(|preset| (preset.name, preset.help))
    }

    /// Reads `linux-5.4`, `linux-5.4+root-aging`, `linux-5.5-nofragment+...`.
    ///
    /// # Errors
    /// An unknown version or feature, with its text for a suggestion.
    pub fn parse(text: &str) -> Result<Self, KernelError> {
        let preset = PRESETS
            .iter()
            .filter(|preset| text.starts_with(preset.name))
            .max_by_key(|preset| preset.name.len())
            .ok_or_else(|| KernelError::UnknownKernel(base_part(text)))?;
        let mut rest = &text[preset.name.len()..];
        let mut features = preset.features;
        while !rest.is_empty() {
            let on = match rest.as_bytes()[0] {
                b'+' => true,
                b'-' => false,
                _ => return Err(KernelError::UnknownKernel(base_part(text))),
            };
            let feature = Feature::ALL
                .iter()
                .copied()
                .filter(|feature| starts_with_name(&rest[1..], feature.name()))
                .max_by_key(|feature| feature.name().len())
                .ok_or_else(|| KernelError::UnknownFeature(feature_part(&rest[1..])))?;
            features = features.with(feature, on);
            rest = &rest[1 + feature.name().len()..];
        }
        Ok(Self { name: text.to_string(), base: preset.name, features, tuning: preset.tuning })
    }
}

/// Whether `text` starts with the whole name `name`: what follows is the end or another sign.
fn starts_with_name(text: &str, name: &str) -> bool {
    text.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', '-']))
}

fn base_part(text: &str) -> String {
    text.split('+').next().unwrap_or_default().to_string()
}

fn feature_part(text: &str) -> String {
    text.split('+').next().unwrap_or_default().to_string()
}

/// Names of all features, for listings and suggestions.
pub fn feature_names() -> Vec<&'static str> {
    Feature::ALL.iter().map(|feature| feature.name()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_five_is_five_four_with_root_aging() {
        let by_parts = Kernel::parse("linux-5.4+root-aging").unwrap();
        assert_eq!(by_parts.features, Kernel::parse("linux-5.5").unwrap().features);
        assert_eq!(by_parts.tuning, Kernel::parse("linux-5.5").unwrap().tuning);
    }

    #[test]
    fn a_minus_takes_a_feature_away() {
        let kernel = Kernel::parse("linux-5.5-nofragment-watermark-boost").unwrap();
        assert!(!kernel.features.has(Feature::NoFragment));
        assert!(!kernel.features.has(Feature::WatermarkBoost));
        assert!(kernel.features.has(Feature::RootAging));
    }

    #[test]
    fn the_longest_version_wins() {
        assert_eq!(Kernel::parse("linux-6.12").unwrap().base, "linux-6.12");
        assert_eq!(Kernel::parse("linux-6.1").unwrap().base, "linux-6.1");
    }

    #[test]
    fn the_series_of_source_4_is_switched_step_by_step() {
        let forms = |text| {
            let features = Kernel::parse(text).unwrap().features;
            (features.has(Feature::NoFragment), features.watermark_boost(), features.fragment_stall())
        };
        assert_eq!(forms("linux-4.20-rc1"), (false, None, None));
        assert_eq!(
            forms("linux-4.20-rc1+nofragment+watermark-boost-v2+fragment-stall"),
            (true, Some(WatermarkBoost::V2), Some(FragmentStall::V2))
        );
        assert_eq!(
            forms("linux-4.20-rc1+nofragment+watermark-boost+fragment-stall-v5"),
            (true, Some(WatermarkBoost::Merged), Some(FragmentStall::V5))
        );
        assert_eq!(forms("linux-4.19+fragment-stall-v1"), (false, None, Some(FragmentStall::V1)));
    }

    #[test]
    fn unknown_names_are_returned_for_a_suggestion() {
        assert_eq!(Kernel::parse("linux-7"), Err(KernelError::UnknownKernel("linux-7".into())));
        assert_eq!(
            Kernel::parse("linux-5.4+rot-aging"),
            Err(KernelError::UnknownFeature("rot-aging".into()))
        );
        assert_eq!(Kernel::parse("linux-5.44"), Err(KernelError::UnknownKernel("linux-5.44".into())));
    }
}
