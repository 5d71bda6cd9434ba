//! Watermarks: how much free memory a zone keeps, and for whom (MECHANISMS 1.3-1.7, 2.8;
//! MECHANISMS-6X 1.2).
//!
//! Three marks per zone (min, low, high), raised together by a boost after fragmenting fallbacks,
//! and a reserve against requests that could also use a higher zone. All figures are pages.
//!
//! Left out: the drift of the free counter. Each CPU keeps what it added and took to itself until that is more
//! than 10 to 30 pages on small machines, so a test is up to so many pages off for each CPU, either way
//! (MECHANISMS 1.7; 3.5 for the machine of source 1: at worst as much as its min mark). The error has no
//! lasting sign: it blurs where a mark is met, which so many requests of several pages do here, too.
//! Neighbours: [`crate::alloc::page_alloc`] tests marks, [`crate::alloc::fallback`] boosts them,
//! [`crate::alloc::boot`] computes them first.

use units::Pages;

use crate::alloc::pageblock::HUGE_PAGES;
use crate::base::gfp::MigrateType;
use crate::base::layout::ZoneKind;
use crate::version::rules::WatermarkBoost;

/// One of a zone's three marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Mark {
    /// Below it only reserves are left.
    Min,
    /// Below it kswapd is woken.
    Low,
    /// Above it kswapd is done.
    High,
}

impl Mark {
    /// Every mark, lowest first.
    pub const ALL: [Self; 3] = [Self::Min, Self::Low, Self::High];
}

/// A zone's marks, boost, reserve and the flags that go with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Watermarks {
    pub(super) base: [u64; 3],
    pub(super) boost: u64,
    /// Pages kept from requests by their highest_zoneidx (index [`ZoneKind`]).
    pub(super) reserve: [u64; ZoneKind::COUNT],
    /// The most of them.
    pub(super) reserve_max: u64,
    /// `ZONE_BOOSTED_WATERMARK`: boosted by a request that may wake kswapd, which nobody did yet.
    pub boosted: bool,
    /// `ZONE_BELOW_HIGH`: an allocation found the zone below its high mark (6.7).
    pub below_high: bool,
    /// `ZONE_RECLAIM_ACTIVE`: kswapd works on this zone, per-CPU lists keep less (5.13).
    pub reclaim_active: bool,
}

impl Watermarks {
    /// The mark without boost.
    #[inline]
    pub const fn base(&self, mark: Mark) -> u64 {
        self.base[mark as usize]
    }

    /// The mark that is in force: base and boost (MECHANISMS 1.5).
    #[inline]
    pub const fn mark(&self, mark: Mark) -> u64 {
        self.base[mark as usize] + self.boost
    }

    /// The present boost.
    #[inline]
    pub const fn boost(&self) -> Pages {
        Pages(self.boost)
    }

    /// Takes `pages` of the boost back: kswapd has reclaimed them.
    pub fn reduce_boost(&mut self, pages: Pages) {
        self.boost = self.boost.saturating_sub(pages.0);
    }

    /// Pages kept from requests of `highest_zoneidx`.
    #[inline]
    pub const fn reserve(&self, highest_zoneidx: ZoneKind) -> u64 {
        self.reserve[highest_zoneidx as usize]
    }

    /// The most that is kept from any request.
    #[inline]
    pub const fn reserve_max(&self) -> u64 {
        self.reserve_max
    }

    /// Raises the boost by `blocks` pageblocks of `block` pages, up to `factor` / 10000 of the high mark but at
    /// least one of them. As merged that is the mark without boost; in v2 the one with it, so that the cap
    /// grows with the boost. Returns whether boosting is on at all.
    pub(super) fn raise_boost(&mut self, form: WatermarkBoost, factor: u64, block: u64, blocks: u64) -> bool {
        let cap = match form {
            WatermarkBoost::Off => 0,
            WatermarkBoost::Merged => self.base(Mark::High) * factor / 10_000,
            WatermarkBoost::V2 if factor == 0 => 0,
            WatermarkBoost::V2 => (self.mark(Mark::High) * factor / 10_000).max(block),
        };
        if cap == 0 {
            return false;
        }
        self.boost = (self.boost + (blocks * block)).min(cap.max(block));
        true
    }

    /// Sets the marks of a zone of `kind` with `managed` pages out of `lowmem`; drops the boost
    /// (MECHANISMS 1.4, 1.5).
    pub(super) fn set_base(&mut self, shares: MarkShares, kind: ZoneKind, managed: u64) {
        let min = if kind == ZoneKind::Movable {
            (managed / 1024).clamp(32, 128)
        } else {
            (shares.min_free_kbytes / 4) * managed / shares.lowmem.max(1)
        };
        let share = (shares.min_free_kbytes / 4) * managed / shares.lowmem.max(1);
        let quarter_and_half = [share / 4, share / 2];
        let [to_low, to_high] = shares.scale_factor.map_or(quarter_and_half, |scale_factor| {
            let gap = (share / 4).max(managed * scale_factor / 10_000);
            [gap, 2 * gap]
        });
        self.base = [min, min + to_low, min + to_high];
        self.boost = 0;
    }

    pub(super) fn set_reserve(&mut self, reserve: [u64; ZoneKind::COUNT]) {
        self.reserve = reserve;
        self.reserve_max = reserve.into_iter().max().unwrap_or(0);
    }
}

/// What the marks of all zones are made from.
#[derive(Debug, Clone, Copy)]
pub(super) struct MarkShares {
    /// kB that the min marks add up to.
    pub min_free_kbytes: u64,
    /// `vm.watermark_scale_factor`, where the kernel has it.
    pub scale_factor: Option<u64>,
    /// Managed pages of all zones up to Normal.
    pub lowmem: u64,
}

/// `min_free_kbytes` as computed at boot for `lowmem` pages: 4 * sqrt(kB), in 128..=`max`
/// (MECHANISMS 1.3).
pub fn min_free_kbytes(lowmem: Pages, max: u64) -> u64 {
    (16 * lowmem.to_kib()).isqrt().clamp(128, max)
}

/// What huge pages ask for in `min_free_kbytes`: room for two pageblocks and for each pair of
/// types one more per zone, but at most 5 % of `lowmem` pages (MECHANISMS 1.3).
pub fn huge_page_min_free_kbytes(populated_zones: u64, lowmem: Pages) -> u64 {
    const PCP_TYPES: u64 = MigrateType::PCP_TYPES as u64;
    let block = u64::from(HUGE_PAGES);
    let wanted = block * populated_zones * (2 + (PCP_TYPES * PCP_TYPES));
    Pages(wanted.min(lowmem.0 / 20)).to_kib()
}

/// Divisors of `vm.lowmem_reserve_ratio`, by kind of the zone that is protected; 0 = off.
const LOWMEM_RESERVE_RATIO: [u64; ZoneKind::COUNT] = [256, 256, 32, 0];

/// Pages that a zone of `kind` keeps from requests by their highest_zoneidx; `managed` holds the pages of its node's
/// zones by kind (MECHANISMS 1.6).
pub(super) fn lowmem_reserve(kind: ZoneKind, managed: &[u64; ZoneKind::COUNT]) -> [u64; ZoneKind::COUNT] {
    let ratio = LOWMEM_RESERVE_RATIO[kind as usize];
    let mut reserve = [0; ZoneKind::COUNT];
    let mut above = 0;
    for highest_zoneidx in (kind as usize + 1)..ZoneKind::COUNT {
        above += managed[highest_zoneidx];
        reserve[highest_zoneidx] = u64::checked_div(above, ratio).unwrap_or(0);
    }
    reserve
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boost_raises_all_three_marks_until_it_is_taken_back() {
        let mut marks = Watermarks { base: [1000, 1250, 1500], ..Watermarks::default() };
        assert!(marks.raise_boost(WatermarkBoost::Merged, 15_000, 512, 1));
        assert_eq!(Mark::ALL.map(|mark| marks.mark(mark)), [1512, 1762, 2012]);
        for _ in 0..9 {
            marks.raise_boost(WatermarkBoost::Merged, 15_000, 512, 1);
        }
        assert_eq!(marks.boost(), Pages(2250), "one and a half times the base high mark");
        marks.reduce_boost(Pages(250));
        assert_eq!(marks.boost(), Pages(2000));
        assert!(!marks.raise_boost(WatermarkBoost::Merged, 0, 512, 1), "switched off");
        assert!(!marks.raise_boost(WatermarkBoost::V2, 0, 512, 1));
    }

    #[test]
    fn as_posted_the_cap_of_a_boost_grows_with_the_boost() {
        let marks = Watermarks { base: [1000, 1250, 1500], ..Watermarks::default() };
        let boosted = |form| {
            let mut marks = marks;
            (0..100).for_each(|_| assert!(marks.raise_boost(form, 15_000, 512, 1)));
            marks.boost()
        };
        assert_eq!(boosted(WatermarkBoost::Merged), Pages(2250));
        assert_eq!(boosted(WatermarkBoost::V2), Pages(51_200), "every raise counts");
    }
}
