//! The sysctls below `vm.` that the mechanisms read, with their ranges and defaults
//! (MECHANISMS section 15), and two settings of huge pages that Linux keeps in sysfs
//! (`/sys/kernel/mm/transparent_hugepage`), here under `thp.`. The latter are named choices, stored
//! by their number; 0 stands for what the kernel sets at boot. So are those of the multi-gen LRU
//! (`/sys/kernel/mm/lru_gen`), under `lru_gen.`, and the parameters of zswap (`/sys/module/zswap/parameters`), under
//! `zswap.`, of which some are switches, Y or N.
//! Marks are recomputed by [`crate::alloc::page_alloc::PageAllocator::set_sysctl`], not here.

use core::fmt;
use std_alloc::format;
use std_alloc::string::{String, ToString};

macro_rules! sysctls {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $min:literal ..= $max:literal, $default:literal, $help:literal;)*) => {
        /// A tunable number below `/proc/sys/vm`, or a choice of the huge page settings.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Sysctl {
            $($(#[$doc])* $variant,)*
        }

        impl Sysctl {
            /// Every sysctl, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
            const DEFAULTS: &'static [u64] = &[$($default,)*];

            /// The name as `sysctl(8)` prints it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// One line on what it sets.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => $help,)* }
            }

            /// Smallest and largest value.
            pub const fn range(self) -> (u64, u64) {
                match self { $(Self::$variant => ($min, $max),)* }
            }
        }
    };
}

sysctls! {
    /// Free memory that the minimum watermarks add up to; 0 = computed at boot.
    MinFreeKbytes = "vm.min_free_kbytes", 0 ..= 0xffff_ffff, 0, "kB that the min watermarks add up to (default: from memory size)";
    /// Distance between watermarks in 1/10000 of a zone.
    WatermarkScaleFactor = "vm.watermark_scale_factor", 1 ..= 3000, 10, "distance between watermarks, per 10000 of the zone";
    /// Largest boost in 1/10000 of the high watermark; 0 = no boosting.
    WatermarkBoostFactor = "vm.watermark_boost_factor", 0 ..= 1_000_000, 15_000, "largest watermark boost, per 10000 of the high mark (0: off)";
    /// Fallbacks of a smaller order than this make a movable request wait; 0 = none.
    FragmentStallOrder = "vm.fragment_stall_order", 0 ..= 11, 4, "with fragment-stall: stalls before a fallback of a smaller order (0: off, 9: all that fragment)";
    /// How eagerly dentries and inodes are reclaimed, in percent.
    VfsCachePressure = "vm.vfs_cache_pressure", 0 ..= 1_000_000, 100, "reclaim pressure on dentries and inodes, percent";
    /// Dirty pages above which writers are paused, in percent of dirtyable memory.
    DirtyRatio = "vm.dirty_ratio", 0 ..= 100, 20, "dirty pages above which writers are throttled, percent of free and cached memory";
    /// Dirty pages above which the flusher writes in the background, in percent.
    DirtyBackgroundRatio = "vm.dirty_background_ratio", 0 ..= 100, 10, "dirty pages above which background writeback starts, percent";
    /// Age in 1/100 s at which dirty data is written whatever the amount.
    DirtyExpireCentisecs = "vm.dirty_expire_centisecs", 0 ..= 4_000_000, 3000, "age at which dirty data is written, 1/100 s";
    /// Time in 1/100 s between two looks of the flusher at old data; 0 = it never looks.
    DirtyWritebackCentisecs = "vm.dirty_writeback_centisecs", 0 ..= 4_000_000, 500, "period of the flusher, 1/100 s (0: off)";
    /// Relative cost of swapping against dropping page cache.
    Swappiness = "vm.swappiness", 0 ..= 200, 60, "preference for reclaiming anonymous memory (no effect without swap)";
    /// Pages that are read at once when one comes back from swap, as a power of two.
    PageCluster = "vm.page-cluster", 0 ..= 31, 3, "pages read from swap at once, as a power of two (no effect without swap)";
    /// How eagerly kcompactd compacts by itself; 0 = not at all.
    CompactionProactiveness = "vm.compaction_proactiveness", 0 ..= 100, 20, "how eagerly kcompactd makes blocks of 2 MiB by itself (0: off)";
    /// Whether pageblocks are kept whole: requests take from blocks of another type only once reclaim and compaction
    /// failed.
    DefragMode = "vm.defrag_mode", 0 ..= 1, 0, "keep pageblocks whole: mix mobility types only after reclaim and compaction failed (0: off)";
    /// Who gets huge pages: see [`ThpEnabled`]; 0 = set at boot.
    ThpEnabled = "thp.enabled", 0 ..= 3, 0, "huge pages for anonymous memory: always, madvise or never (default: from the kernel)";
    /// How hard a fault tries for a huge page: see [`ThpDefrag`]; 0 = set at boot.
    ThpDefrag = "thp.defrag", 0 ..= 5, 0, "effort of a fault for a huge page: always, defer, defer+madvise, madvise or never (default: madvise)";
    /// The multi-gen LRU: bits of its parts and 1 (see `lru_gen`, `lru_gen_walks`); 0 = as the kernel has it.
    LruGenEnabled = "lru_gen.enabled", 0 ..= 8, 0, "the multi-gen LRU: y, n, or bits of its parts: 1 turns it on, 2 lets it walk page tables (default: from the kernel)";
    /// Time in ms for which generations are to last; 0 = however short.
    LruGenMinTtlMs = "lru_gen.min_ttl_ms", 0 ..= 0xffff_ffff, 0, "with lru-gen: an OOM kill where generations last shorter, in ms (0: off)";
    /// Whether pages that are swapped out are stored in memory, compressed, if they can be.
    ZswapEnabled = "zswap.enabled", 0 ..= 1, 0, "compressed pages in memory in front of swap: Y or N (no effect without swap)";
    /// Pages of the pool at most, in percent of memory.
    ZswapMaxPoolPercent = "zswap.max_pool_percent", 0 ..= 100, 20, "with zswap: its pool at most, percent of memory";
    /// What a full pool has to fall to before it takes pages again, in percent of that.
    ZswapAcceptThresholdPercent = "zswap.accept_threshold_percent", 0 ..= 100, 90, "with zswap: what a full pool has to fall to, percent of its limit";
    /// Whether reclaim writes entries back before the pool is full.
    ZswapShrinkerEnabled = "zswap.shrinker_enabled", 0 ..= 1, 0, "with zswap: whether reclaim writes pages back before the pool is full: Y or N";
}

/// Values of [`Sysctl::ThpEnabled`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThpEnabled {
    /// Every mapping.
    Always,
    /// Mappings advised with `MADV_HUGEPAGE`.
    Madvise,
    /// None.
    Never,
}

/// Values of [`Sysctl::ThpDefrag`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThpDefrag {
    /// Every fault reclaims and compacts.
    Always,
    /// Faults wake kswapd and kcompactd.
    Defer,
    /// Advised faults reclaim and compact, others wake.
    DeferMadvise,
    /// Advised faults reclaim and compact, others do nothing.
    Madvise,
    /// No fault does anything.
    Never,
}

/// Names of the values from 1 on.
const THP_ENABLED: &[&str] = &["always", "madvise", "never"];
const THP_DEFRAG: &[&str] = &["always", "defer", "defer+madvise", "madvise", "never"];

impl Sysctl {
    /// The named values of a choice, stored as 1, 2, ...; none for a number.
    pub const fn choices(self) -> Option<&'static [&'static str]> {
        match self {
            Self::ThpEnabled => Some(THP_ENABLED),
            Self::ThpDefrag => Some(THP_DEFRAG),
            _ => None,
        }
    }

    /// Whether it is a switch, Y or N.
    const fn is_switch(self) -> bool {
        matches!(self, Self::ZswapEnabled | Self::ZswapShrinkerEnabled)
    }

    /// The text of a value: the choice's name, or the number.
    pub fn value_text(self, value: u64) -> String {
        if self.is_switch() {
            return if value == 0 { "N" } else { "Y" }.to_string();
        }
        if self == Self::LruGenEnabled {
            return format!("0x{:04x}", value.saturating_sub(1));
        }
        let name = self.choices().and_then(|names| names.get(usize::try_from(value).ok()?.checked_sub(1)?));
        name.map_or_else(|| value.to_string(), ToString::to_string)
    }
}

impl fmt::Display for Sysctl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a sysctl cannot be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SysctlError {
    /// No modelled sysctl has this name.
    Unknown(String),
    /// The value is not a whole number in the sysctl's range.
    OutOfRange {
        /// Which sysctl.
        sysctl: Sysctl,
        /// The text that was given.
        value: String,
    },
}

impl fmt::Display for SysctlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "unknown sysctl `{name}`"),
            Self::OutOfRange { sysctl, value } if sysctl.choices().is_some() => {
                let names = sysctl.choices().unwrap_or_default().join(", ");
                write!(f, "`{value}` is no value for `{sysctl}`: it takes one of {names}")
            }
            Self::OutOfRange { sysctl: sysctl @ Sysctl::LruGenEnabled, value } => {
                write!(
                    f,
                    "`{value}` is no value for `{sysctl}`: it takes y, n, or bits from 0x0000 to 0x0007"
                )
            }
            Self::OutOfRange { sysctl, value } if sysctl.is_switch() => {
                write!(f, "`{value}` is no value for `{sysctl}`: it takes Y or N")
            }
            Self::OutOfRange { sysctl, value } => {
                let (min, max) = sysctl.range();
                write!(f, "`{value}` is no value for `{sysctl}`: it takes {min} to {max}")
            }
        }
    }
}

impl core::error::Error for SysctlError {}

impl Sysctl {
    /// Finds a sysctl by `vm.name`, `vm/name` or bare `name`; huge page settings by `thp.name`.
    ///
    /// # Errors
    /// An unknown name.
    pub fn parse(name: &str) -> Result<Self, SysctlError> {
        let dotted = name.replacen('/', ".", 1);
        Self::ALL
            .iter()
            .copied()
            .find(|sysctl| sysctl.name() == dotted || sysctl.name().strip_prefix("vm.") == Some(name))
            .ok_or_else(|| SysctlError::Unknown(name.to_string()))
    }

    /// Reads a value for this sysctl: a number, or the name of a choice.
    ///
    /// # Errors
    /// No such choice, not a whole number, or out of range.
    pub fn parse_value(self, text: &str) -> Result<u64, SysctlError> {
        let (min, max) = self.range();
        let text = text.trim();
        let value = match self.choices() {
            Some(names) => names.iter().position(|&name| name == text).map(|index| index as u64 + 1),
            None if self == Self::LruGenEnabled => parse_bits(text).map(|bits| bits + 1),
            None if self.is_switch() => match text {
                "Y" | "y" | "1" | "on" => Some(1),
                "N" | "n" | "0" | "off" => Some(0),
                _ => None,
            },
            None => text.parse().ok().filter(|value| (min..=max).contains(value)),
        };
        value.ok_or_else(|| SysctlError::OutOfRange { sysctl: self, value: text.to_string() })
    }
}

/// What `lru_gen/enabled` takes: `y`, `n`, or three bits as a number.
fn parse_bits(text: &str) -> Option<u64> {
    match text {
        "y" | "Y" | "on" => return Some(7),
        "n" | "N" | "off" => return Some(0),
        _ => {}
    }
    let bits = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    bits.filter(|&bits| bits <= 7)
}

/// The value of every sysctl.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sysctls([u64; Sysctl::ALL.len()]);

impl Default for Sysctls {
    fn default() -> Self {
        let mut values = [0; Sysctl::ALL.len()];
        values.copy_from_slice(Sysctl::DEFAULTS);
        Self(values)
    }
}

impl Sysctls {
    /// The value of `sysctl`.
    #[inline]
    pub const fn get(&self, sysctl: Sysctl) -> u64 {
        self.0[sysctl as usize]
    }

    /// Who gets huge pages. Not set means nobody: boot sets it.
    pub const fn thp_enabled(&self) -> ThpEnabled {
        match self.get(Sysctl::ThpEnabled) {
            1 => ThpEnabled::Always,
            2 => ThpEnabled::Madvise,
            _ => ThpEnabled::Never,
        }
    }

    /// Whether the multi-gen LRU is to be on; none: as the kernel has it.
    pub const fn lru_gen(&self) -> Option<bool> {
        match self.get(Sysctl::LruGenEnabled) {
            0 => None,
            bits => Some(((bits - 1) & 1) != 0),
        }
    }

    /// Whether the multi-gen LRU may walk page tables: the second of its bits.
    pub const fn lru_gen_walks(&self) -> bool {
        match self.get(Sysctl::LruGenEnabled) {
            0 => true,
            bits => ((bits - 1) & 2) != 0,
        }
    }

    /// How hard faults try for a huge page.
    pub const fn thp_defrag(&self) -> ThpDefrag {
        match self.get(Sysctl::ThpDefrag) {
            1 => ThpDefrag::Always,
            2 => ThpDefrag::Defer,
            3 => ThpDefrag::DeferMadvise,
            5 => ThpDefrag::Never,
            _ => ThpDefrag::Madvise,
        }
    }

    /// Sets a value.
    ///
    /// # Panics
    /// When the value is out of the sysctl's range: texts go through [`Sysctl::parse_value`].
    pub fn set(&mut self, sysctl: Sysctl, value: u64) {
        let (min, max) = sysctl.range();
        assert!((min..=max).contains(&value), "{sysctl} = {value} is out of range");
        self.0[sysctl as usize] = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_all_three_spellings() {
        for name in ["vm.swappiness", "vm/swappiness", "swappiness"] {
            assert_eq!(Sysctl::parse(name), Ok(Sysctl::Swappiness));
        }
    }

    #[test]
    fn the_switch_of_the_multi_gen_lru_takes_what_its_file_takes() {
        let switch = Sysctl::parse("lru_gen/enabled").unwrap();
        for (text, said) in [("y", "0x0007"), ("n", "0x0000"), ("5", "0x0005"), ("0x0003", "0x0003")] {
            assert_eq!(switch.parse_value(text).map(|value| switch.value_text(value)), Ok(said.into()));
        }
        let error = switch.parse_value("8").unwrap_err();
        let said = "`8` is no value for `lru_gen.enabled`: it takes y, n, or bits from 0x0000 to 0x0007";
        assert_eq!(format!("{error}"), said);
    }

    #[test]
    fn choices_are_read_and_written_by_name() {
        let enabled = Sysctl::parse("thp.enabled").unwrap();
        assert_eq!(
            enabled.parse_value("madvise").map(|value| enabled.value_text(value)),
            Ok("madvise".into())
        );
        let error = enabled.parse_value("2").unwrap_err();
        assert_eq!(
            format!("{error}"),
            "`2` is no value for `thp.enabled`: it takes one of always, madvise, never"
        );
        let defrag = Sysctl::parse("thp/defrag").unwrap();
        let mut sysctls = Sysctls::default();
        sysctls.set(defrag, defrag.parse_value("defer+madvise").unwrap());
        assert_eq!(sysctls.thp_defrag(), ThpDefrag::DeferMadvise);
    }

    #[test]
    fn a_value_out_of_range_names_the_range() {
        let error = Sysctl::WatermarkScaleFactor.parse_value("0").unwrap_err();
        assert_eq!(format!("{error}"), "`0` is no value for `vm.watermark_scale_factor`: it takes 1 to 3000");
    }

    #[test]
    fn defaults_are_those_that_the_kernels_documentation_names() {
        for (name, value) in [
            ("vm.dirty_background_ratio", 10),
            ("vm.dirty_expire_centisecs", 3000),
            ("vm.dirty_ratio", 20),
            ("vm.dirty_writeback_centisecs", 500),
            ("vm.swappiness", 60),
            ("vm.vfs_cache_pressure", 100),
            ("vm.watermark_boost_factor", 15_000),
            ("vm.watermark_scale_factor", 10),
        ] {
            assert_eq!(Sysctls::default().get(Sysctl::parse(name).unwrap()), value, "{name}");
        }
    }

    #[test]
    fn defaults_are_in_range() {
        for &sysctl in Sysctl::ALL {
            let mut sysctls = Sysctls::default();
            sysctls.set(sysctl, Sysctls::default().get(sysctl));
        }
    }
}
