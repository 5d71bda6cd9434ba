//! What refaults teach eviction: which type to take from, and from which tier on pages stay (MGLRU 6;
//! MECHANISMS-510-72 11).
//!
//! Each type counts, by tier, pages that were evicted and protected, and how many of the evicted came back while
//! the oldest generation was still the same. When it ends, the counts go into averages. A tier stays when its
//! refaults come to more than those of tier 0, at half the weight (two thirds since 6.14):
//!
//! ```text
//!   file, tier   0        1         evicted 60,000 and 2,367: tier 1 stays from 74 refaults on
//!   refaulted    0       74         74 * (60,000 + 64) * 1 > (0 + 1) * 2,367 * 2
//! ```
//! Below 64 refaults nothing stays. Neighbours: [`super::access`] for tiers, [`crate::lru::workingset`] for
//! shadows.

use units::{NodeId, Pfn};

use crate::base::event::{Reason, Trace, TraceEvent};
use crate::base::frame::{Frames, PageFlags};
use crate::base::ids::MemcgId;
use crate::base::vmstat::{MemcgStat, VmEvent};
use crate::core::Core;
use crate::lru::lists::Lru;
use crate::lru::mglru::access::{self, TIERS};
use crate::lru::mglru::state::{Gens, Kind, MAX_GENS, Tier};
use crate::version::rules::{GenAccess, GenForm, GenTiers, GenTypes};

/// Refaults of a tier below which it is not protected (`MIN_LRU_BATCH`).
const FEW: u64 = 64;

/// Refaults of some pages, of how many, and what they weigh.
#[derive(Debug, Clone, Copy)]
struct Position {
    refaulted: u64,
    total: u64,
    gain: u64,
}

/// Whether pages at `pv` may go as those at `sp` do.
fn may_go(sp: Position, pv: Position) -> bool {
    let product = |a: u64, b: u64, c: u64| u128::from(a) * u128::from(b) * u128::from(c);
    pv.refaulted < FEW
        || product(pv.refaulted, sp.total + FEW, sp.gain) <= product(sp.refaulted + 1, pv.total, pv.gain)
}

impl Gens {
    fn position(&self, kind: Kind, tier: usize, gain: u64) -> Position {
        let Tier { avg_refaulted, avg_total, refaulted, evicted, protected } =
            self.tiers[kind as usize][tier];
        Position { refaulted: avg_refaulted + refaulted, total: avg_total + evicted + protected, gain }
    }

    /// The highest tier such that pages of all up to it may go as those at `sp`.
    fn limit_at(&self, kind: Kind, sp: Position, gain: u64) -> usize {
        let goes = |tier: &usize| {
            self.tiers_are == GenTiers::Nothing || may_go(sp, self.position(kind, *tier, gain))
        };
        (1..TIERS).take_while(goes).count()
    }

    /// The highest tier whose pages are evicted; those above it stay (MGLRU 6.3).
    pub fn tier_limit(&self, kind: Kind) -> usize {
        let (own, others) = match self.access {
            GenAccess::Reads => (1, 2),
            GenAccess::Accesses => (2, 3),
        };
        self.limit_at(kind, self.position(kind, 0, own), others)
    }

    /// Which type to evict from, and up to which tier, where both may be: by what each loses with it.
    pub(crate) fn choose(&self, swappiness: u64) -> (Kind, usize) {
        if self.types_are == GenTypes::FilesFirst {
            return (Kind::File, self.tier_limit(Kind::File));
        }
        let gain = |kind| if kind == Kind::Anon { swappiness } else { 200 - swappiness };
        if self.access == GenAccess::Accesses {
            let sum = |kind| {
                (0..TIERS).map(|tier| self.position(kind, tier, gain(kind))).fold(
                    Position { refaulted: 0, total: 0, gain: gain(kind) },
                    |sum, of| Position {
                        refaulted: sum.refaulted + of.refaulted,
                        total: sum.total + of.total,
                        ..sum
                    },
                )
            };
            let kind = if may_go(sum(Kind::Anon), sum(Kind::File)) { Kind::File } else { Kind::Anon };
            return (kind, self.tier_limit(kind));
        }
        let first = |kind| self.position(kind, 0, gain(kind));
        let kind = if may_go(first(Kind::Anon), first(Kind::File)) { Kind::File } else { Kind::Anon };
        (kind, self.limit_at(kind, first(kind.other()), gain(kind)))
    }

    /// The oldest generation of a type has ended: what was counted of it goes into the averages.
    pub(super) fn close_books(&mut self, kind: Kind) {
        for tier in &mut self.tiers[kind as usize] {
            let total = tier.evicted + tier.protected;
            *tier = Tier {
                avg_refaulted: (tier.avg_refaulted + tier.refaulted) / 2,
                avg_total: (tier.avg_total + total) / 2,
                ..Tier::default()
            };
        }
    }

    /// A page stays for its tier. Tier 0 has no such pages.
    pub(crate) fn count_protected(&mut self, frames: &Frames, pfn: Pfn) {
        let flags = frames.flags(pfn);
        let tier = access::tier(flags, self.access);
        if tier > 0 {
            self.tiers[Kind::of(flags) as usize][tier].protected += u64::from(frames.pages(pfn));
        }
    }
}

/// What an evicted page leaves of itself: the oldest generation of its type and its accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Token {
    min_seq: u64,
    refs: u32,
}

impl Token {
    const fn pack(self) -> u64 {
        (self.min_seq << 3) | self.refs as u64
    }

    const fn unpack(bits: u64) -> Self {
        Self { min_seq: bits >> 3, refs: (bits & 7) as u32 }
    }
}

impl Lru {
    /// Counts an eviction; returns what the page's shadow says of it, and the bit that goes with that
    /// (`lru_gen_eviction`).
    pub(crate) fn gen_eviction<T: Trace>(&mut self, core: &Core<T>, pfn: Pfn) -> (u64, bool) {
        let (flags, (_, node)) = (core.alloc.frames.flags(pfn), core.page_place(pfn));
        let index = self.index(core.page_memcg(pfn), node);
        let gens = self.lruvecs[index].gens.as_mut().expect("evicted from a generation");
        let (kind, refs) = (Kind::of(flags), access::refs(flags, gens.access));
        let tier = access::tier(flags, gens.access);
        gens.tiers[kind as usize][tier].evicted += u64::from(core.alloc.frames.pages(pfn));
        let (refs, workingset) = match gens.access {
            GenAccess::Reads => (refs.saturating_sub(1), refs > 0),
            GenAccess::Accesses => (refs, flags.has(PageFlags::WORKINGSET)),
        };
        (Token { min_seq: gens.min_seq(kind), refs }.pack(), workingset)
    }

    /// A page is back that `memcg` lost on `node` (`lru_gen_refault`): whether in time, and what was known of it.
    /// `bits` and `workingset` are from [`Self::gen_eviction`].
    pub(crate) fn gen_refault<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        pfn: Pfn,
        (memcg, node): (MemcgId, NodeId),
        bits: u64,
        workingset: bool,
    ) {
        let (flags, (_, here)) = (core.alloc.frames.flags(pfn), core.page_place(pfn));
        if (core.page_memcg(pfn), here) != (memcg, node) {
            return;
        }
        let (kind, pages) = (Kind::of(flags), u64::from(core.alloc.frames.pages(pfn)));
        let index = self.index(memcg, node);
        let gens = self.lruvecs[index].gens.as_mut().expect("a kernel with generations");
        let (access, token) = (gens.access, Token::unpack(bits));
        let (in_time, ago) = match access {
            GenAccess::Reads => {
                let min_seq = gens.min_seq(kind);
                (token.min_seq == min_seq, min_seq.saturating_sub(token.min_seq))
            }
            GenAccess::Accesses => {
                let ago = gens.max_seq.saturating_sub(token.min_seq);
                (ago < MAX_GENS, ago)
            }
        };
        let refs = match access {
            GenAccess::Reads => token.refs + u32::from(workingset),
            GenAccess::Accesses => token.refs,
        };
        if in_time {
            let tier = access::tier_of(refs, workingset, access);
            gens.tiers[kind as usize][tier].refaulted += pages;
        }
        let form = gens.form;
        let counted = in_time || form == GenForm::Settled;
        core.tell_page(pfn, |page| TraceEvent::PageRefaulted {
            page,
            reason: if in_time { Reason::InTime } else { Reason::TooLate },
            distance: ago,
            counted: memcg,
            workingset,
        });
        if counted {
            count(core, (memcg, node), kind, REFAULT, pages);
        }
        if !in_time {
            return;
        }
        if form == GenForm::Settled {
            count(core, (memcg, node), kind, ACTIVATE, pages);
        }
        let (flags, is_restored) = restored(flags, access, refs, workingset);
        core.alloc.frames.put_flags(pfn, flags);
        if is_restored {
            count(core, (memcg, node), kind, RESTORE, pages);
        }
    }

    /// Eviction left pages where they were for their tier: in 6.1 statistics count them as activated refaults.
    pub(crate) fn note_protected<T: Trace>(&mut self, core: &mut Core<T>, pfn: Pfn) {
        let (_, node) = core.page_place(pfn);
        let memcg = core.page_memcg(pfn);
        let index = self.index(memcg, node);
        let gens = self.lruvecs[index].gens.as_mut().expect("a kernel with generations");
        gens.count_protected(&core.alloc.frames, pfn);
        if gens.form == GenForm::First {
            let pages = u64::from(core.alloc.frames.pages(pfn));
            let kind = Kind::of(core.alloc.frames.flags(pfn));
            count(core, (memcg, node), kind, ACTIVATE, pages);
        }
    }
}

/// Flags of a page that is back in time, and whether it counts as restored: it had so many accesses, or is needed
/// in a fault: anonymous pages, and those of files that [`access::faulted_in`] has marked so.
fn restored(flags: PageFlags, access: GenAccess, refs: u32, workingset: bool) -> (PageFlags, bool) {
    let set = flags.set(PageFlags::WORKINGSET);
    let in_fault = PageFlags::ACTIVE.set(PageFlags::REFERENCED);
    let is_needed = Kind::of(flags) == Kind::Anon || flags.has_any(in_fault);
    match access {
        GenAccess::Reads if is_needed || refs >= 3 => (access::with_count(set, 3), true),
        GenAccess::Reads => (flags, false),
        GenAccess::Accesses if workingset => (if is_needed { set.set(PageFlags::ACTIVE) } else { set }, true),
        GenAccess::Accesses if refs > 0 => {
            (access::with_count(flags.set(PageFlags::REFERENCED), refs - 1), false)
        }
        GenAccess::Accesses => (flags, false),
    }
}

/// A statistic of the working set: of anonymous pages, and of files.
type Counted = [(VmEvent, MemcgStat); 2];

const REFAULT: Counted = [
    (VmEvent::WorkingsetRefaultAnon, MemcgStat::WorkingsetRefaultAnon),
    (VmEvent::WorkingsetRefaultFile, MemcgStat::WorkingsetRefaultFile),
];
const ACTIVATE: Counted = [
    (VmEvent::WorkingsetActivateAnon, MemcgStat::WorkingsetActivateAnon),
    (VmEvent::WorkingsetActivateFile, MemcgStat::WorkingsetActivateFile),
];
const RESTORE: Counted = [
    (VmEvent::WorkingsetRestoreAnon, MemcgStat::WorkingsetRestoreAnon),
    (VmEvent::WorkingsetRestoreFile, MemcgStat::WorkingsetRestoreFile),
];

fn count<T: Trace>(core: &mut Core<T>, at: (MemcgId, NodeId), kind: Kind, counted: Counted, pages: u64) {
    let (event, stat) = counted[kind as usize];
    core.alloc.events.add(event, pages);
    core.cgroups.add_stat(at.0, at.1, stat, pages);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::presets::Version;
    use crate::version::rules::{Rule, Rules};

    fn gens(kernel: &str) -> Gens {
        Gens::new(&Version::parse(kernel).unwrap().rules)
    }

    /// Evicted and refaulted pages by tier.
    fn counted(kernel: &str, kind: Kind, tiers: &[(u64, u64)]) -> Gens {
        let mut gens = gens(kernel);
        for (tier, &(evicted, refaulted)) in tiers.iter().enumerate() {
            gens.tiers[kind as usize][tier] = Tier { evicted, refaulted, ..Tier::default() };
        }
        gens
    }

    #[test]
    fn a_tier_stays_once_it_came_back_more_often_than_tier_0_at_half_the_weight() {
        // 2367 pages of tier 1 went, none of tier 0: r * 64 > 2 * 2367 from r = 74 on (MGLRU 7.3).
        for (refaulted, limit) in [(0, 3), (63, 3), (73, 3), (74, 0), (2367, 0)] {
            let gens = counted("linux-6.12+lru-gen", Kind::File, &[(0, 0), (2367, refaulted)]);
            assert_eq!(gens.tier_limit(Kind::File), limit, "{refaulted} came back");
        }
        // Since 6.14 at two thirds: r * 64 * 2 > 3 * 2367 from 56 on, but 64 are the least.
        for (refaulted, limit) in [(63, 3), (64, 0)] {
            let gens = counted("linux-7.2+lru-gen", Kind::File, &[(0, 0), (2367, refaulted)]);
            assert_eq!(gens.tier_limit(Kind::File), limit, "{refaulted} came back");
        }
    }

    #[test]
    fn what_was_evicted_of_tier_0_makes_others_worth_more() {
        let limit = |evicted| {
            counted("linux-6.1+lru-gen", Kind::File, &[(evicted, 0), (2367, 64)]).tier_limit(Kind::File)
        };
        assert_eq!(limit(0), 3, "64 * 64 <= 2 * 2367");
        assert_eq!(limit(100), 0, "64 * 164 > 2 * 2367");
        let higher = counted("linux-6.1+lru-gen", Kind::File, &[(5000, 0), (100, 0), (100, 100)]);
        assert_eq!(higher.tier_limit(Kind::File), 1, "tier 1 goes, tier 2 stays");
    }

    #[test]
    fn averages_halve_with_each_generation_that_ends() {
        let mut gens = counted("linux-6.1+lru-gen", Kind::File, &[(1000, 100), (500, 300)]);
        gens.tiers[Kind::File as usize][1].protected = 100;
        gens.close_books(Kind::File);
        let tier = gens.tiers[Kind::File as usize][1];
        assert_eq!((tier.avg_refaulted, tier.avg_total), (150, 300));
        assert_eq!((tier.refaulted, tier.evicted, tier.protected), (0, 0, 0));
        gens.close_books(Kind::File);
        assert_eq!(gens.tiers[Kind::File as usize][1].avg_refaulted, 75);
        assert_eq!(gens.tiers[Kind::Anon as usize], [Tier::default(); TIERS]);
    }

    #[test]
    fn swappiness_weighs_refaults_of_the_two_types() {
        // Files came back, anonymous pages did not: those go, the more readily the higher swappiness is.
        let mut gens = counted("linux-6.12+lru-gen", Kind::File, &[(10_000, 500)]);
        gens.tiers[Kind::Anon as usize][0] = Tier { evicted: 1000, refaulted: 40, ..Tier::default() };
        let chosen = |gens: &Gens, swappiness| gens.choose(swappiness).0;
        // 500 * 1064 * sw <= 41 * 10000 * (200 - sw): files up to 87.
        assert_eq!(
            [60, 87, 88, 140].map(|swappiness| chosen(&gens, swappiness)),
            [Kind::File, Kind::File, Kind::Anon, Kind::Anon]
        );
        gens.tiers[Kind::File as usize][0].refaulted = 63;
        assert_eq!(chosen(&gens, 199), Kind::File, "fewer than 64 tell nothing");
    }

    #[test]
    fn each_part_of_the_feedback_can_be_left_out_alone() {
        let rules = Version::parse("linux-6.12+lru-gen").unwrap().rules;
        let gens = |rules: &Rules| {
            let mut gens = Gens::new(rules);
            gens.tiers[Kind::File as usize][0] = Tier { evicted: 10_000, refaulted: 500, ..Tier::default() };
            gens.tiers[Kind::File as usize][1] = Tier { evicted: 100, refaulted: 90, ..Tier::default() };
            gens.tiers[Kind::Anon as usize][0] = Tier { evicted: 1000, refaulted: 40, ..Tier::default() };
            (gens.choose(140).0, gens.tier_limit(Kind::File))
        };
        assert_eq!(gens(&rules), (Kind::Anon, 0));
        assert_eq!(gens(&rules.with(Rule::GenTypes(GenTypes::FilesFirst))), (Kind::File, 0));
        assert_eq!(gens(&rules.with(Rule::GenTiers(GenTiers::Nothing))), (Kind::Anon, 3));
    }

    #[test]
    fn a_token_packs_and_unpacks() {
        let token = Token { min_seq: 123_456, refs: 4 };
        assert_eq!(Token::unpack(token.pack()), token);
    }
}
