//! New generations, and the end of old ones (MGLRU 4, 5.3; MECHANISMS-510-72 11).
//!
//! ```text
//!   age:      young pages -> max_seq;  the oldest of four -> tail of the next;  max_seq + 1
//!   advance:  an oldest generation without pages ends, while two are left
//! ```
//! A walk of page tables looks at every anonymous page of the cgroup on the node, where there is swap, and at the
//! files that its processes map, as [`super::filter`] says. Neighbours: [`super::state`], [`super::feedback`];
//! [`crate::reclaim::mglru::visit`] says when.

use core::cmp::Ordering;
use std_alloc::collections::{BTreeMap, BTreeSet};
use std_alloc::vec::Vec;

use units::{CpuId, Nanos, NodeId, Pfn};

use crate::base::event::Trace;
use crate::base::frame::{FrameState, PageFlags, anon_owner};
use crate::base::ids::{AnonId, MemcgId};
use crate::base::layout::{PageTables, ZoneKind};
use crate::core::Core;
use crate::lru::lists::{Lru, LruList};
use crate::lru::mglru::access;
use crate::lru::mglru::filter::{Mapped, TABLE_PAGES, Table, is_dense};
use crate::lru::mglru::state::{Evictable, Gens, Kind, MAX_GENS, MIN_GENS, slot};
use crate::version::rules::{GenAccess, GenTables};

/// Where a page goes that eviction does not take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sorted {
    /// To the head of the generation that a walk of page tables promoted it to.
    Promoted,
    /// To the tail of the generation after the oldest.
    NextTail,
    /// To its head.
    NextHead,
    /// To the tail of the generation that it was promoted to.
    PromotedTail,
}

/// How a page gets to the youngest generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Promotion {
    /// By its number: it stays on its list until eviction comes to it. So do those who walk page tables, kswapd, and
    /// `memory.reclaim`.
    Listed,
    /// By the CPU's batch of pages to activate: so does a task that reclaims for itself (measured: 6.12 counts
    /// `pgactivate` and no `pgrefill` then, and for the others `pgrefill` alone).
    Moved(CpuId),
}

/// Whether page tables are walked for a new generation: nobody does whose CPU does not mark in them what is accessed.
pub(crate) fn walks_page_tables<T: Trace>(core: &Core<T>) -> bool {
    core.rules().gen_tables == GenTables::Walked
        && core.page_tables == PageTables::Hardware
        && core.alloc.sysctls().lru_gen_walks()
}

impl Gens {
    /// The oldest generation that can be evicted from.
    pub fn oldest_evictable(&self, types: Evictable) -> u64 {
        types.kinds().map(|kind| self.min_seq(kind)).min().expect("some type can be evicted")
    }

    /// Whether a new generation is due before eviction goes on (MGLRU 4.1): there are but two left, or three
    /// of which the youngest has too many pages, or the oldest too few. `first`: it is the first priority, at
    /// which since 6.14 three are enough.
    pub fn needs_aging(&self, types: Evictable, first: bool) -> bool {
        let oldest = self.oldest_evictable(types);
        match (oldest + MIN_GENS).cmp(&self.max_seq) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal if self.access == GenAccess::Accesses => !first,
            Ordering::Equal => {
                let sum = |of: &dyn Fn(Kind) -> u64| types.kinds().map(of).sum::<u64>();
                let total = sum(&|kind| self.total(kind));
                let young = sum(&|kind| self.pages_of(kind, self.max_seq));
                let old = sum(&|kind| self.pages_of(kind, self.max_seq - MIN_GENS));
                2 * young > total || 4 * old < total
            }
        }
    }

    /// Sizes that statistics count otherwise once the youngest generation is `max_seq` + 1: from active to
    /// inactive, and back, by type and zone.
    fn begin_generation(&mut self, now: Nanos) -> (usize, usize) {
        let (leaves, joins) = (slot(self.max_seq - 1), slot(self.max_seq + 1));
        self.max_seq += 1;
        self.born[joins] = now;
        (leaves, joins)
    }
}

impl Lru {
    pub(crate) fn gens_mut(&mut self, at: (MemcgId, NodeId)) -> &mut Gens {
        let index = self.index(at.0, at.1);
        self.lruvecs[index].gens.as_mut().expect("an lruvec has generations as long as the kernel has")
    }

    /// Makes a new generation of a cgroup on a node (`try_to_inc_max_seq`). `young_files`: folios that its processes
    /// have accessed through page tables; `was_accessed`: whether anonymous memory was since it was asked last.
    pub(crate) fn age<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        at: (MemcgId, NodeId),
        types: Evictable,
        now: Nanos,
        young_files: Vec<Pfn>,
        was_accessed: impl FnMut(AnonId) -> bool,
    ) {
        if types.has(Kind::Anon) && walks_page_tables(core) {
            self.walk_page_tables(core, at, was_accessed);
        }
        for pfn in young_files {
            self.see_young(core, pfn, Promotion::Listed);
        }
        for kind in Kind::ALL {
            if self.gens_mut(at).generations(kind) == MAX_GENS {
                self.end_oldest(core, at, kind, types.has(kind));
            }
        }
        let (leaves, joins) = self.gens_mut(at).begin_generation(now);
        for kind in Kind::ALL {
            let (active, inactive) = (LruList::of_kind(kind, true), LruList::of_kind(kind, false));
            for zone in ZoneKind::ALL {
                let gens = self.gens_mut(at);
                let left = gens.counts(leaves, kind)[zone as usize];
                let joined = gens.counts(joins, kind)[zone as usize];
                self.recount(core, at, zone, active, inactive, left);
                self.recount(core, at, zone, inactive, active, joined);
            }
        }
    }

    /// Young pages belong to the youngest generation; since 6.14 those that are young for the second time.
    fn walk_page_tables<T: Trace>(
        &mut self,
        core: &mut Core<T>,
        at: (MemcgId, NodeId),
        mut was_accessed: impl FnMut(AnonId) -> bool,
    ) {
        let young = PageFlags::YOUNG.set(PageFlags::MAPPED);
        let gens = self.gens_mut(at);
        let max_seq = gens.max_seq;
        let (mut tables, mut anons): (BTreeMap<Table, Vec<Pfn>>, BTreeSet<AnonId>) = Default::default();
        for (generation, zone) in (0..MAX_GENS as usize).flat_map(|of| ZoneKind::ALL.map(|zone| (of, zone))) {
            for pfn in gens.list(generation, Kind::Anon, zone).iter(&core.alloc.frames) {
                let frames = &core.alloc.frames;
                let Some(anon) = anon_owner(frames.owner(pfn)).filter(|_| frames.flags(pfn).has(young))
                else {
                    continue;
                };
                anons.insert(anon);
                tables.entry(Table::of(Mapped::Anon(anon), frames.index(pfn))).or_default().push(pfn);
            }
        }
        // Whether a mapping is new, of those whose program has run since the last walk.
        let walked = anons.into_iter().filter(|&anon| was_accessed(anon));
        let walked = walked.inspect(|&anon| core.aged.note(anon)).map(Mapped::Anon);
        let walked: BTreeMap<_, _> =
            walked.map(|mapped| (mapped, gens.filters.begin(max_seq, mapped))).collect();
        tables.retain(|table, _| {
            walked.get(&table.mapped()).is_some_and(|is_new| *is_new || gens.filters.visits(max_seq, *table))
        });
        for (table, found) in tables {
            let young: u32 = found.iter().map(|&pfn| core.alloc.frames.pages(pfn)).sum();
            if is_dense(young, TABLE_PAGES) {
                self.gens_mut(at).filters.add(max_seq + 1, table);
            }
            for pfn in found {
                self.see_young(core, pfn, Promotion::Listed);
            }
        }
    }

    /// A page table says that a listed page was accessed: it belongs to the youngest generation; since 6.14 if it was
    /// before, too.
    pub(crate) fn see_young<T: Trace>(&mut self, core: &mut Core<T>, pfn: Pfn, how: Promotion) {
        let (_, node) = core.page_place(pfn);
        core.note_aged(pfn);
        let flags = core.alloc.frames.flags(pfn).clear(PageFlags::YOUNG);
        if core.alloc.frames.state(pfn) != FrameState::Lru || flags.has(PageFlags::UNEVICTABLE) {
            return;
        }
        let gens = self.gens_mut((core.page_memcg(pfn), node));
        let (access, max_seq) = (gens.access, gens.max_seq);
        let known = flags.has_any(PageFlags::REFERENCED.set(PageFlags::WORKINGSET));
        let is_youngest = access::generation(flags) == slot(max_seq);
        let marked = match (access, how) {
            (GenAccess::Accesses, _) if known => flags.set(PageFlags::REFERENCED).set(PageFlags::WORKINGSET),
            (GenAccess::Accesses, _) => flags.set(PageFlags::REFERENCED),
            (GenAccess::Reads, Promotion::Listed) => access::forgotten(flags),
            (GenAccess::Reads, Promotion::Moved(_)) => flags,
        };
        core.alloc.frames.put_flags(pfn, marked);
        if access == GenAccess::Accesses && !known {
            return;
        }
        match how {
            Promotion::Listed => self.promote(core, pfn, max_seq),
            Promotion::Moved(cpu) if !is_youngest => self.activate(core, cpu, pfn),
            Promotion::Moved(_) => {}
        }
    }

    /// Lets a page belong to generation `seq`; it stays on its list.
    pub(crate) fn promote<T: Trace>(&mut self, core: &mut Core<T>, pfn: Pfn, seq: u64) {
        let (zone, node) = core.page_place(pfn);
        let at = (core.page_memcg(pfn), node);
        let kind = Kind::of(core.alloc.frames.flags(pfn));
        let pages = u64::from(core.alloc.frames.pages(pfn));
        let (was, is) = self.gens_mut(at).set_generation(&mut core.alloc.frames, pfn, zone, seq);
        self.recount(core, at, zone, LruList::of_kind(kind, was), LruList::of_kind(kind, is), pages);
    }

    /// The pages of the oldest generation of a type go to the tail of the next one, the oldest of them first, so
    /// that their order is reversed. `moves`: of a type that
    /// cannot be evicted only the number goes on.
    fn end_oldest<T: Trace>(&mut self, core: &mut Core<T>, at: (MemcgId, NodeId), kind: Kind, moves: bool) {
        for zone in ZoneKind::ALL {
            while moves && let Some(pfn) = self.gens_mut(at).oldest(kind, zone) {
                let gens = self.gens_mut(at);
                if gens.access == GenAccess::Accesses {
                    gens.count_protected(&core.alloc.frames, pfn);
                }
                let how = if Gens::is_promoted(core.alloc.frames.flags(pfn)) {
                    Sorted::PromotedTail
                } else {
                    Sorted::NextTail
                };
                self.sort(core, pfn, how);
            }
        }
        let gens = self.gens_mut(at);
        gens.close_books(kind);
        gens.min_seq[kind as usize] += 1;
    }

    /// Moves a page of the oldest generation to where eviction does not look now. One that goes to the next
    /// generation starts anew there.
    pub(crate) fn sort<T: Trace>(&mut self, core: &mut Core<T>, pfn: Pfn, how: Sorted) {
        let (zone, node) = core.page_place(pfn);
        let at = (core.page_memcg(pfn), node);
        let flags = core.alloc.frames.flags(pfn);
        let tail = matches!(how, Sorted::NextTail | Sorted::PromotedTail);
        if matches!(how, Sorted::NextTail | Sorted::NextHead) {
            let seq = self.gens_mut(at).min_seq(Kind::of(flags)) + 1;
            core.alloc.frames.put_flags(pfn, access::forgotten(flags));
            self.promote(core, pfn, seq);
        }
        self.gens_mut(at).move_home(&mut core.alloc.frames, pfn, zone, tail);
    }

    /// Ends oldest generations without pages, of each type that may be evicted (`try_to_inc_min_seq`). Returns
    /// whether there was one.
    pub(crate) fn advance(&mut self, at: (MemcgId, NodeId), types: Evictable) -> bool {
        let gens = self.gens_mut(at);
        let before = gens.min_seq;
        for kind in types.kinds() {
            while gens.min_seq(kind) + MIN_GENS <= gens.max_seq && gens.is_oldest_empty(kind) {
                gens.min_seq[kind as usize] += 1;
            }
        }
        if types == Evictable::Both && gens.access == GenAccess::Reads {
            // Pages of files do not get ahead of anonymous ones, nor those behind them.
            let [anon, file] = gens.min_seq;
            let anon = anon.min(file);
            gens.min_seq = [anon, anon.max(before[Kind::File as usize])];
        }
        let moved = Kind::ALL.map(|kind| gens.min_seq[kind as usize] != before[kind as usize]);
        Kind::ALL.into_iter().filter(|&kind| moved[kind as usize]).for_each(|kind| gens.close_books(kind));
        moved.contains(&true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::event::NoTrace;
    use crate::base::layout::{FollowTables, MemoryLayout, OldReads};
    use crate::base::sysctl::{Sysctl, Sysctls};
    use crate::version::presets::Version;
    use units::Pages;

    #[test]
    fn page_tables_are_walked_where_the_cpu_marks_them_and_a_bit_and_a_rule_say_so() {
        let walks = |kernel: &str, tables: PageTables, enabled: &str| {
            let mut sysctls = Sysctls::default();
            sysctls.set(Sysctl::LruGenEnabled, Sysctl::LruGenEnabled.parse_value(enabled).unwrap());
            let (layout, version) = (MemoryLayout::flat(Pages(2048), 1), Version::parse(kernel).unwrap());
            let mut core = Core::boot(&layout, version, sysctls, NoTrace).unwrap();
            core.page_tables = tables;
            walks_page_tables(&core)
        };
        let hardware = PageTables::Hardware;
        let nobody = PageTables::UserMode { follow: FollowTables::ByRun, reads: OldReads::Fault };
        for (enabled, expected) in [("y", true), ("7", true), ("3", true), ("1", false), ("5", false)] {
            assert_eq!(walks("linux-6.12+lru-gen", hardware, enabled), expected, "{enabled}");
        }
        assert!(!walks("linux-6.12+lru-gen", nobody, "7"));
        assert!(!walks("linux-6.12+lru-gen-mglru-walk", hardware, "7"));
    }
}
