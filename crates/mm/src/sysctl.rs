//! The sysctls below `vm.` that the mechanisms read, with their ranges and defaults
//! (MECHANISMS section 15). Marks are recomputed by [`crate::page_alloc::PageAllocator::set_sysctl`], not here.

use core::fmt;
use std_alloc::string::{String, ToString};

macro_rules! sysctls {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $min:literal ..= $max:literal, $default:literal, $help:literal;)*) => {
        /// A tunable number below `/proc/sys/vm`.
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
                match self { $(Self::$variant => concat!("vm.", $name),)* }
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
    MinFreeKbytes = "min_free_kbytes", 0 ..= 0xffff_ffff, 0, "kB that the min watermarks add up to (default: from memory size)";
    /// Distance between watermarks in 1/10000 of a zone.
    WatermarkScaleFactor = "watermark_scale_factor", 1 ..= 3000, 10, "distance between watermarks, per 10000 of the zone";
    /// Largest boost in 1/10000 of the high watermark; 0 = no boosting.
    WatermarkBoostFactor = "watermark_boost_factor", 0 ..= 1_000_000, 15_000, "largest watermark boost, per 10000 of the high mark (0: off)";
    /// How eagerly dentries and inodes are reclaimed, in percent.
    VfsCachePressure = "vfs_cache_pressure", 0 ..= 1_000_000, 100, "reclaim pressure on dentries and inodes, percent";
    /// Relative cost of swapping against dropping page cache.
    Swappiness = "swappiness", 0 ..= 200, 60, "preference for reclaiming anonymous memory (no effect without swap)";
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
            Self::OutOfRange { sysctl, value } => {
                let (min, max) = sysctl.range();
                write!(f, "`{value}` is no value for `{sysctl}`: it takes {min} to {max}")
            }
        }
    }
}

impl core::error::Error for SysctlError {}

impl Sysctl {
    /// Finds a sysctl by `vm.name`, `vm/name` or bare `name`.
    ///
    /// # Errors
    /// An unknown name.
    pub fn parse(name: &str) -> Result<Self, SysctlError> {
        let bare = name.strip_prefix("vm.").or_else(|| name.strip_prefix("vm/")).unwrap_or(name);
        Self::ALL
            .iter()
            .copied()
            .find(|sysctl| &sysctl.name()[3..] == bare)
            .ok_or_else(|| SysctlError::Unknown(name.to_string()))
    }

    /// Reads a value for this sysctl.
    ///
    /// # Errors
    /// Not a whole number, or out of range.
    pub fn parse_value(self, text: &str) -> Result<u64, SysctlError> {
        let (min, max) = self.range();
        text.trim()
            .parse()
            .ok()
            .filter(|value| (min..=max).contains(value))
            .ok_or_else(|| SysctlError::OutOfRange { sysctl: self, value: text.to_string() })
    }
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
    use std_alloc::format;

    #[test]
    fn names_are_found_in_all_three_spellings() {
        for name in ["vm.swappiness", "vm/swappiness", "swappiness"] {
            assert_eq!(Sysctl::parse(name), Ok(Sysctl::Swappiness));
        }
    }

    #[test]
    fn a_value_out_of_range_names_the_range() {
        let error = Sysctl::WatermarkScaleFactor.parse_value("0").unwrap_err();
        assert_eq!(format!("{error}"), "`0` is no value for `vm.watermark_scale_factor`: it takes 1 to 3000");
    }

    #[test]
    fn defaults_are_in_range() {
        for &sysctl in Sysctl::ALL {
            let mut sysctls = Sysctls::default();
            sysctls.set(sysctl, Sysctls::default().get(sysctl));
        }
    }
}
