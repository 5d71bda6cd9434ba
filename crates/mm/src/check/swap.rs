//! Invariants of swap: every anonymous page is in memory, in a slot, or both; slots have the users that they say, and
//! are charged to whom they say (SWAP 2, 3).

use std_alloc::collections::BTreeMap;
use std_alloc::format;
use std_alloc::string::String;
use std_alloc::vec;

use crate::base::event::Trace;
use crate::base::ids::MemcgId;
use crate::base::violation::{Violation, ensure};
use crate::memory::Memory;

impl<T: Trace> Memory<T> {
    pub(super) fn check_swap(&self) -> Result<(), Violation> {
        let swap = &self.core.swap;
        if swap.total_pages() == 0 {
            return Ok(());
        }
        self.check_zswap()?;
        self.cache.check_swap(&self.core).map_err(|problem| Violation(format!("swap: {problem}")))?;
        let mut named = 0_u64;
        for anon in self.anon.ids() {
            for (index, slot) in self.anon.swapped(anon) {
                named += 1;
                let is_named = swap.is_mapped(slot);
                ensure!(
                    is_named,
                    "page {index} of {anon:?} is in {slot:?}, which no page table is said to name"
                );
            }
        }
        let charged = swap.charged();
        let mut charges = vec![0_u64; self.core.cgroups.ids().count()];
        let mut mapped = 0_u64;
        for (slot, memcg) in charged {
            charges[memcg.index()] += 1;
            mapped += u64::from(swap.is_mapped(slot));
        }
        ensure!(named == mapped, "page tables name {named} slots, {mapped} say that one does");
        for memcg in self.core.cgroups.ids() {
            let below = self.core.cgroups.subtree(memcg).iter().map(|id| charges[id.index()]).sum::<u64>();
            let said = self.core.cgroups[memcg].swap.usage;
            ensure!(said == below, "{memcg:?} is charged {said} slots, {below} are its own");
        }
        let total: u64 = self.anon.ids().map(|anon| self.anon.swapped_pages(anon)).sum();
        ensure!(total == named, "mappings say that {total} pages are swapped out, {named} are");
        self.anon.check_swapped().map_err(|problem| Violation(String::from(problem)))
    }

    fn check_zswap(&self) -> Result<(), Violation> {
        let mut stored: BTreeMap<MemcgId, u64> = BTreeMap::new();
        for (slot, entry) in self.core.swap.zswap.entries() {
            let owner = self.core.swap.memcg(slot);
            ensure!(
                owner == Some(entry.memcg),
                "zswap has {slot:?} of {:?}, whose is {owner:?}",
                entry.memcg
            );
            for memcg in self.core.cgroups.ancestors(entry.memcg) {
                *stored.entry(memcg).or_default() += u64::from(entry.bytes);
            }
        }
        for memcg in self.core.cgroups.ids() {
            let (said, found) = (self.core.cgroups[memcg].zswap.bytes, stored.get(&memcg).copied());
            ensure!(said == found.unwrap_or(0), "{memcg:?} has {said} bytes of zswap, found {found:?}");
        }
        Ok(())
    }
}
