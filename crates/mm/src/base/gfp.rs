//! GFP flags: what a caller allows the allocator to do (MECHANISMS 1.8).

use core::fmt;
use core::ops::BitOr;

/// Mobility of a page, and the type of a pageblock or free list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum MigrateType {
    /// Kernel memory that stays where it is.
    Unmovable,
    /// Page cache and anonymous memory: can be moved or dropped.
    Movable,
    /// Slab of objects that shrinkers free: dentries, inodes, page cache tree nodes.
    Reclaimable,
    /// Reserve for high-order atomic requests; never asked for by callers. Up to 4.3 it was one for all who
    /// find nothing else (`MIGRATE_RESERVE`).
    HighAtomic,
}

impl MigrateType {
    /// Every type.
    pub const ALL: [Self; 4] = [Self::Unmovable, Self::Movable, Self::Reclaimable, Self::HighAtomic];
    /// Types that requests ask for, and that per-CPU lists are kept for.
    pub const PCP_TYPES: usize = 3;

    /// The type with this number.
    #[inline]
    pub const fn from_index(index: usize) -> Self {
        Self::ALL[index]
    }
}

/// Request flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Gfp(pub u16);

impl Gfp {
    /// `__GFP_DIRECT_RECLAIM`: the caller may wait and reclaim.
    pub const DIRECT_RECLAIM: Self = Self(1 << 0);
    /// `__GFP_KSWAPD_RECLAIM`: kswapd may be woken.
    pub const KSWAPD_RECLAIM: Self = Self(1 << 1);
    /// `__GFP_IO`: reclaim may start I/O.
    pub const IO: Self = Self(1 << 2);
    /// `__GFP_FS`: reclaim may call the filesystem.
    pub const FS: Self = Self(1 << 3);
    /// `__GFP_MOVABLE`.
    pub const MOVABLE_BIT: Self = Self(1 << 4);
    /// `__GFP_RECLAIMABLE`.
    pub const RECLAIMABLE_BIT: Self = Self(1 << 5);
    /// `__GFP_HIGH`: may use half of the reserve below the min mark.
    pub const HIGH: Self = Self(1 << 6);
    /// `__GFP_ATOMIC`: cannot wait, may go deeper still.
    pub const ATOMIC_BIT: Self = Self(1 << 7);
    /// `__GFP_NORETRY`.
    pub const NORETRY: Self = Self(1 << 8);
    /// `__GFP_NOMEMALLOC`.
    pub const NOMEMALLOC: Self = Self(1 << 9);
    /// `__GFP_NOFAIL`.
    pub const NOFAIL: Self = Self(1 << 10);
    /// `__GFP_RETRY_MAYFAIL`.
    pub const RETRY_MAYFAIL: Self = Self(1 << 11);
    /// `__GFP_WRITE`: the page is about to be dirtied.
    pub const WRITE: Self = Self(1 << 12);
    /// `__GFP_ACCOUNT`: charge kernel memory to the task's cgroup.
    pub const ACCOUNT: Self = Self(1 << 13);
    /// `__GFP_DMA`: from the DMA zone only.
    pub const DMA: Self = Self(1 << 14);
    /// `__GFP_COLD`: a device will write the page, so that it need not be in a cache (up to 4.14).
    pub const COLD: Self = Self(1 << 15);

    /// `GFP_KERNEL`.
    pub const KERNEL: Self = Self(Self::DIRECT_RECLAIM.0 | Self::KSWAPD_RECLAIM.0 | Self::IO.0 | Self::FS.0);
    /// `GFP_NOFS`.
    pub const NOFS: Self = Self(Self::DIRECT_RECLAIM.0 | Self::KSWAPD_RECLAIM.0 | Self::IO.0);
    /// `GFP_ATOMIC`.
    pub const ATOMIC: Self = Self(Self::HIGH.0 | Self::ATOMIC_BIT.0 | Self::KSWAPD_RECLAIM.0);
    /// `GFP_HIGHUSER_MOVABLE`: anonymous memory and page cache.
    pub const HIGHUSER_MOVABLE: Self = Self(Self::KERNEL.0 | Self::MOVABLE_BIT.0);

    /// Whether all of `flags` are set.
    #[inline]
    pub const fn has(self, flags: Self) -> bool {
        (self.0 & flags.0) == flags.0
    }

    /// Without `flags`.
    #[inline]
    #[must_use]
    pub const fn without(self, flags: Self) -> Self {
        Self(self.0 & !flags.0)
    }

    /// Which free lists serve the request.
    #[inline]
    pub const fn migrate_type(self) -> MigrateType {
        if self.has(Self::MOVABLE_BIT) {
            MigrateType::Movable
        } else if self.has(Self::RECLAIMABLE_BIT) {
            MigrateType::Reclaimable
        } else {
            MigrateType::Unmovable
        }
    }
}

/// Names of combinations, the widest ones first.
const COMBINED: [(Gfp, &str); 4] = [
    (Gfp::HIGHUSER_MOVABLE, "GFP_HIGHUSER_MOVABLE"),
    (Gfp::KERNEL, "GFP_KERNEL"),
    (Gfp::NOFS, "GFP_NOFS"),
    (Gfp::ATOMIC, "GFP_ATOMIC"),
];

/// Names of single flags.
const SINGLE: [(Gfp, &str); 16] = [
    (Gfp::DIRECT_RECLAIM, "__GFP_DIRECT_RECLAIM"),
    (Gfp::KSWAPD_RECLAIM, "__GFP_KSWAPD_RECLAIM"),
    (Gfp::IO, "__GFP_IO"),
    (Gfp::FS, "__GFP_FS"),
    (Gfp::MOVABLE_BIT, "__GFP_MOVABLE"),
    (Gfp::RECLAIMABLE_BIT, "__GFP_RECLAIMABLE"),
    (Gfp::HIGH, "__GFP_HIGH"),
    (Gfp::ATOMIC_BIT, "__GFP_ATOMIC"),
    (Gfp::NORETRY, "__GFP_NORETRY"),
    (Gfp::NOMEMALLOC, "__GFP_NOMEMALLOC"),
    (Gfp::NOFAIL, "__GFP_NOFAIL"),
    (Gfp::RETRY_MAYFAIL, "__GFP_RETRY_MAYFAIL"),
    (Gfp::WRITE, "__GFP_WRITE"),
    (Gfp::ACCOUNT, "__GFP_ACCOUNT"),
    (Gfp::DMA, "__GFP_DMA"),
    (Gfp::COLD, "__GFP_COLD"),
];

/// As the kernel prints a mask (`%pGg`): the largest combination that is in it, then single flags.
impl fmt::Display for Gfp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut rest, mut bar) = (*self, "");
        let combined = COMBINED.into_iter().find(|&(flags, _)| self.has(flags));
        let single = SINGLE.into_iter();
        for (flags, name) in combined.into_iter().chain(single) {
            if rest.has(flags) {
                write!(f, "{bar}{name}")?;
                (rest, bar) = (rest.without(flags), "|");
            }
        }
        if self.0 == 0 { f.write_str("0") } else { Ok(()) }
    }
}

impl BitOr for Gfp {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_named_as_the_kernel_names_it() {
        let named = |gfp: Gfp| std_alloc::format!("{gfp}");
        assert_eq!(named(Gfp::HIGHUSER_MOVABLE), "GFP_HIGHUSER_MOVABLE");
        assert_eq!(named(Gfp::NOFS | Gfp::WRITE | Gfp::MOVABLE_BIT), "GFP_NOFS|__GFP_MOVABLE|__GFP_WRITE");
        assert_eq!(named(Gfp::KERNEL | Gfp::ACCOUNT), "GFP_KERNEL|__GFP_ACCOUNT");
        assert_eq!(named(Gfp::default()), "0");
    }

    #[test]
    fn mobility_follows_the_bits() {
        assert_eq!(Gfp::KERNEL.migrate_type(), MigrateType::Unmovable);
        assert_eq!(Gfp::HIGHUSER_MOVABLE.migrate_type(), MigrateType::Movable);
        assert_eq!((Gfp::KERNEL | Gfp::RECLAIMABLE_BIT).migrate_type(), MigrateType::Reclaimable);
    }
}
