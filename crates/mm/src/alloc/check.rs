//! What always holds between the frame table, the free lists and their counters.
//!
//! [`PageAllocator::check`] recounts everything in one walk over the frames. Tests call it after
//! every event in small machines. LRU lists and cgroups are checked beside it by `Memory`.

use units::{CpuId, Order, Pfn};

use crate::alloc::buddy::{LARGEST_ORDER, ORDERS, is_free, recorded_type};
use crate::alloc::page_alloc::PageAllocator;
use crate::alloc::pageblock::heads;
use crate::alloc::pcp::Pcp;
use crate::alloc::zone::Zone;
use crate::base::event::Trace;
use crate::base::frame::FrameState;
use crate::base::gfp::MigrateType;
use crate::base::layout::ZoneId;
use crate::base::violation::{Violation, ensure};
use crate::version::rules::{FallbackPolicy, HighatomicReserve};

/// What the walk over a zone's frames counted.
struct Recount {
    free: [[u32; ORDERS]; MigrateType::ALL.len()],
    managed: u64,
    on_pcp: u64,
}

impl<T: Trace> PageAllocator<T> {
    /// Recounts all frames and compares lists and counters with them. Takes time in proportion to
    /// the machine's memory.
    ///
    /// # Errors
    /// The first violation that was found, in the order of zones and frames.
    pub fn check(&self) -> Result<(), Violation> {
        for (index, zone) in self.zones.iter().enumerate() {
            let id = ZoneId(u8::try_from(index).expect("at most 32 zones"));
            let recount = self.recount(id, zone)?;
            ensure!(
                recount.managed == zone.managed.0,
                "zone {index} holds {} pages but manages {}",
                recount.managed,
                zone.managed.0
            );
            self.check_free_lists(id, zone, &recount)?;
            self.check_pcps(id, &recount)?;
            self.check_pageblocks(id, zone)?;
        }
        Ok(())
    }

    /// Walks the frames of a zone from head to head.
    fn recount(&self, id: ZoneId, zone: &Zone) -> Result<Recount, Violation> {
        let mut recount = Recount { free: [[0; ORDERS]; MigrateType::ALL.len()], managed: 0, on_pcp: 0 };
        for (pfn, state) in heads(&self.frames, zone.start, zone.spanned) {
            if state == FrameState::Reserved {
                continue;
            }
            ensure!(state != FrameState::Tail, "{pfn:?} is a tail but belongs to no head");
            let order = self.frames.order(pfn);
            self.check_extent(id, zone, pfn, order)?;
            recount.managed += u64::from(order.pages());
            match state {
                FrameState::Free => {
                    let migrate_type = recorded_type(&self.frames, pfn);
                    recount.free[migrate_type as usize][order.index()] += 1;
                    self.check_merged(zone, pfn, order)?;
                    self.check_pageblock_type(zone, pfn, order, migrate_type)?;
                }
                FrameState::Pcp => recount.on_pcp += u64::from(order.pages()),
                _ => {}
            }
        }
        Ok(recount)
    }

    fn check_extent(&self, id: ZoneId, zone: &Zone, pfn: Pfn, order: Order) -> Result<(), Violation> {
        let fits = order <= LARGEST_ORDER && pfn.0 + order.pages() <= zone.start.0 + zone.spanned;
        ensure!(fits, "the block of {order:?} at {pfn:?} reaches beyond zone {}", id.0);
        ensure!(pfn.0.is_multiple_of(order.pages()), "the block at {pfn:?} is not aligned to {order:?}");
        for tail in (pfn.0 + 1..pfn.0 + order.pages()).map(Pfn) {
            ensure!(
                self.frames.state(tail) != FrameState::Free,
                "{tail:?} behind head {pfn:?} is marked as free"
            );
        }
        Ok(())
    }

    fn check_merged(&self, zone: &Zone, pfn: Pfn, order: Order) -> Result<(), Violation> {
        let block = zone.free_area.blocks.size().order();
        if order == LARGEST_ORDER || (order == block && zone.free_area.had_highatomic) {
            return Ok(());
        }
        let buddy = Pfn(pfn.0 ^ order.pages());
        ensure!(
            !is_free(&self.frames, buddy, order),
            "{:?} and its buddy of {order:?} are free and not merged",
            pfn.min(buddy)
        );
        Ok(())
    }

    /// Where fallback claims whole pageblocks, a free page is on the list of its pageblock's type.
    fn check_pageblock_type(
        &self,
        zone: &Zone,
        pfn: Pfn,
        order: Order,
        listed: MigrateType,
    ) -> Result<(), Violation> {
        let rules = &self.version.rules;
        if rules.fallback != FallbackPolicy::ClaimThenSteal || rules.highatomic == HighatomicReserve::Blocks {
            return Ok(());
        }
        for at in (pfn.0..pfn.0 + order.pages()).step_by(zone.free_area.blocks.size().pages() as usize) {
            let block = zone.free_area.pageblocks().migrate_type(Pfn(at));
            ensure!(block == listed, "{pfn:?} is on the list of {listed:?} but its pageblock is {block:?}");
        }
        Ok(())
    }

    fn check_free_lists(&self, id: ZoneId, zone: &Zone, recount: &Recount) -> Result<(), Violation> {
        let area = &zone.free_area;
        let mut pages = 0;
        for migrate_type in MigrateType::ALL {
            for order in (0..=LARGEST_ORDER.0).map(Order) {
                let list = area.list(migrate_type, order);
                let counted = recount.free[migrate_type as usize][order.index()];
                pages += u64::from(counted) * u64::from(order.pages());
                // One element more than counted is enough to see a ring.
                let walked = list.iter(&self.frames).take(counted as usize + 1);
                let mut listed = 0;
                for pfn in walked {
                    listed += 1;
                    let is_own =
                        is_free(&self.frames, pfn, order) && recorded_type(&self.frames, pfn) == migrate_type;
                    ensure!(is_own, "{pfn:?} is on a free list that is not its own, {migrate_type:?}");
                }
                ensure!(
                    listed == counted
                        && list.len() == counted
                        && area.has(migrate_type, order) == (counted > 0),
                    "zone {} has {counted} free blocks of {order:?} and type {migrate_type:?}, its list has {}",
                    id.0,
                    list.len()
                );
            }
        }
        ensure!(
            pages == area.free_pages(),
            "zone {} has {pages} free pages, its counter says {}",
            id.0,
            area.free_pages()
        );
        Ok(())
    }

    fn check_pcps(&self, id: ZoneId, recount: &Recount) -> Result<(), Violation> {
        let mut total = 0;
        for cpu in (0..self.cpu_count()).map(CpuId) {
            let pcp = self.pcp(cpu, id);
            let mut listed = 0;
            for (index, (order, list)) in pcp.lists().enumerate() {
                for pfn in list.iter(&self.frames).take(list.len() as usize + 1) {
                    let is_pcp = self.frames.state(pfn) == FrameState::Pcp;
                    let recorded = recorded_type(&self.frames, pfn);
                    let belongs = is_pcp
                        && self.frames.order(pfn) == order
                        && self.zone_of(pfn) == id
                        && Pcp::belongs(index, order, recorded, &self.version.rules);
                    ensure!(
                        belongs,
                        "{pfn:?} is on a list of {cpu:?} for zone {} where it does not belong",
                        id.0
                    );
                    listed += order.pages();
                }
            }
            ensure!(
                listed == pcp.count(),
                "{cpu:?} lists {listed} pages of zone {}, its counter says {}",
                id.0,
                pcp.count()
            );
            total += u64::from(listed);
        }
        ensure!(
            total == recount.on_pcp,
            "{} pages of zone {} are marked as on per-CPU lists, the counters say {total}",
            recount.on_pcp,
            id.0
        );
        Ok(())
    }

    fn check_pageblocks(&self, id: ZoneId, zone: &Zone) -> Result<(), Violation> {
        let totals = zone.free_area.pageblocks().totals();
        let mut types = [0; MigrateType::ALL.len()];
        zone.free_area.pageblocks().iter().for_each(|(_, migrate_type)| types[migrate_type as usize] += 1);
        ensure!(types == totals, "zone {} has pageblocks of types {types:?}, not {totals:?}", id.0);
        let counted: u32 = totals.iter().sum();
        let block = zone.free_area.blocks.size().pages();
        ensure!(
            counted * block == zone.spanned,
            "zone {} has {counted} typed pageblocks for {} frames",
            id.0,
            zone.spanned
        );
        let blocks = totals[MigrateType::HighAtomic as usize];
        let reserved = zone.free_area.reserved_highatomic();
        let counts = self.version.rules.highatomic != HighatomicReserve::Blocks;
        ensure!(
            u64::from(if counts { blocks } else { 0 }) * u64::from(block) == reserved,
            "zone {} has {blocks} highatomic blocks, its counter says {reserved} pages",
            id.0
        );
        Ok(())
    }
}
