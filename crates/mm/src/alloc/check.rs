//! What always holds between the frame table, the free lists and their counters.
//!
//! [`PageAllocator::check`] recounts everything in one walk over the frames. Tests call it after
//! every event in small machines. LRU lists and cgroups are checked beside it by `Memory`.

use core::fmt;

use units::{CpuId, Order, Pfn};

use crate::alloc::buddy::{LARGEST_ORDER, ORDERS, is_free, recorded_type};
use crate::alloc::page_alloc::PageAllocator;
use crate::alloc::pageblock::{PAGEBLOCK_ORDER, PAGEBLOCK_PAGES, heads};
use crate::alloc::zone::Zone;
use crate::base::event::Trace;
use crate::base::frame::FrameState;
use crate::base::gfp::MigrateType;
use crate::base::layout::ZoneId;
use crate::version::rules::FallbackPolicy;

/// The first thing that was found wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // The text of each says what its fields are.
pub enum Violation {
    BlockLeavesZone { zone: ZoneId, pfn: Pfn, order: Order },
    BlockNotAligned { pfn: Pfn, order: Order },
    FreeBehindHead { head: Pfn, pfn: Pfn },
    LostFrame { pfn: Pfn },
    Unmerged { pfn: Pfn, order: Order },
    ManagedPages { zone: ZoneId, counted: u64, managed: u64 },
    FreePages { zone: ZoneId, counted: u64, counter: u64 },
    FreeList { zone: ZoneId, kind: MigrateType, order: Order, counted: u32, listed: u32 },
    OnWrongList { pfn: Pfn, kind: MigrateType },
    WrongPageblock { pfn: Pfn, listed: MigrateType, block: MigrateType },
    PcpPages { zone: ZoneId, counted: u64, counter: u64 },
    PcpList { cpu: CpuId, zone: ZoneId, pfn: Pfn },
    PcpCount { cpu: CpuId, zone: ZoneId, listed: u32, counter: u32 },
    PageblockTotal { zone: ZoneId, counted: u32, spanned: u32 },
    HighAtomic { zone: ZoneId, blocks: u32, reserved: u64 },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BlockLeavesZone { zone, pfn, order } => {
                write!(f, "the block of {order:?} at {pfn:?} reaches beyond zone {}", zone.0)
            }
            Self::BlockNotAligned { pfn, order } => {
                write!(f, "the block at {pfn:?} is not aligned to {order:?}")
            }
            Self::FreeBehindHead { head, pfn } => write!(f, "{pfn:?} behind head {head:?} is marked as free"),
            Self::LostFrame { pfn } => write!(f, "{pfn:?} is a tail but belongs to no head"),
            Self::Unmerged { pfn, order } => {
                write!(f, "{pfn:?} and its buddy of {order:?} are free and not merged")
            }
            Self::ManagedPages { zone, counted, managed } => {
                write!(f, "zone {} holds {counted} pages but manages {managed}", zone.0)
            }
            Self::FreePages { zone, counted, counter } => {
                write!(f, "zone {} has {counted} free pages, its counter says {counter}", zone.0)
            }
            Self::FreeList { zone, kind, order, counted, listed } => write!(
                f,
                "zone {} has {counted} free blocks of {order:?} and type {kind:?}, its list has {listed}",
                zone.0
            ),
            Self::OnWrongList { pfn, kind } => {
                write!(f, "{pfn:?} is on a free list that is not its own, {kind:?}")
            }
            Self::WrongPageblock { pfn, listed, block } => {
                write!(f, "{pfn:?} is on the list of {listed:?} but its pageblock is {block:?}")
            }
            Self::PcpPages { zone, counted, counter } => write!(
                f,
                "{counted} pages of zone {} are marked as on per-CPU lists, the counters say {counter}",
                zone.0
            ),
            Self::PcpList { cpu, zone, pfn } => {
                write!(f, "{pfn:?} is on a list of {cpu:?} for zone {} where it does not belong", zone.0)
            }
            Self::PcpCount { cpu, zone, listed, counter } => {
                write!(f, "{cpu:?} lists {listed} pages of zone {}, its counter says {counter}", zone.0)
            }
            Self::PageblockTotal { zone, counted, spanned } => {
                write!(f, "zone {} has {counted} typed pageblocks for {spanned} frames", zone.0)
            }
            Self::HighAtomic { zone, blocks, reserved } => {
                write!(f, "zone {} has {blocks} highatomic blocks, its counter says {reserved} pages", zone.0)
            }
        }
    }
}

impl core::error::Error for Violation {}

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
            if recount.managed != zone.managed.0 {
                return Err(Violation::ManagedPages {
                    zone: id,
                    counted: recount.managed,
                    managed: zone.managed.0,
                });
            }
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
            if state == FrameState::Tail {
                return Err(Violation::LostFrame { pfn });
            }
            let order = self.frames.order(pfn);
            self.check_extent(id, zone, pfn, order)?;
            recount.managed += u64::from(order.pages());
            match state {
                FrameState::Free => {
                    let kind = recorded_type(&self.frames, pfn);
                    recount.free[kind as usize][order.index()] += 1;
                    self.check_merged(zone, pfn, order)?;
                    self.check_pageblock_type(zone, pfn, order, kind)?;
                }
                FrameState::Pcp => recount.on_pcp += u64::from(order.pages()),
                _ => {}
            }
        }
        Ok(recount)
    }

    fn check_extent(&self, id: ZoneId, zone: &Zone, pfn: Pfn, order: Order) -> Result<(), Violation> {
        if order > LARGEST_ORDER || pfn.0 + order.pages() > zone.start.0 + zone.spanned {
            return Err(Violation::BlockLeavesZone { zone: id, pfn, order });
        }
        if !pfn.0.is_multiple_of(order.pages()) {
            return Err(Violation::BlockNotAligned { pfn, order });
        }
        let mut behind = (pfn.0 + 1..pfn.0 + order.pages()).map(Pfn);
        match behind.find(|&tail| self.frames.state(tail) == FrameState::Free) {
            Some(tail) => Err(Violation::FreeBehindHead { head: pfn, pfn: tail }),
            None => Ok(()),
        }
    }

    fn check_merged(&self, zone: &Zone, pfn: Pfn, order: Order) -> Result<(), Violation> {
        if order == LARGEST_ORDER || (order == PAGEBLOCK_ORDER && zone.free_area.had_highatomic) {
            return Ok(());
        }
        let buddy = Pfn(pfn.0 ^ order.pages());
        if is_free(&self.frames, buddy, order) {
            return Err(Violation::Unmerged { pfn: pfn.min(buddy), order });
        }
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
        if self.version.rules.fallback == FallbackPolicy::StealAndClaim {
            return Ok(());
        }
        for at in (pfn.0..pfn.0 + order.pages()).step_by(PAGEBLOCK_PAGES as usize) {
            let block = zone.free_area.pageblocks().kind(Pfn(at));
            if block != listed {
                return Err(Violation::WrongPageblock { pfn, listed, block });
            }
        }
        Ok(())
    }

    fn check_free_lists(&self, id: ZoneId, zone: &Zone, recount: &Recount) -> Result<(), Violation> {
        let area = &zone.free_area;
        let mut pages = 0;
        for kind in MigrateType::ALL {
            for order in (0..=LARGEST_ORDER.0).map(Order) {
                let list = area.list(kind, order);
                let counted = recount.free[kind as usize][order.index()];
                pages += u64::from(counted) * u64::from(order.pages());
                // One element more than counted is enough to see a ring.
                let walked = list.iter(&self.frames).take(counted as usize + 1);
                let mut listed = 0;
                for pfn in walked {
                    listed += 1;
                    if !is_free(&self.frames, pfn, order) || recorded_type(&self.frames, pfn) != kind {
                        return Err(Violation::OnWrongList { pfn, kind });
                    }
                }
                if listed != counted || list.len() != counted || area.has(kind, order) != (counted > 0) {
                    return Err(Violation::FreeList { zone: id, kind, order, counted, listed: list.len() });
                }
            }
        }
        if pages != area.free_pages() {
            return Err(Violation::FreePages { zone: id, counted: pages, counter: area.free_pages() });
        }
        Ok(())
    }

    fn check_pcps(&self, id: ZoneId, recount: &Recount) -> Result<(), Violation> {
        let mut total = 0;
        for cpu in (0..self.cpu_count()).map(CpuId) {
            let pcp = self.pcp(cpu, id);
            let mut listed = 0;
            for (order, list) in pcp.lists() {
                for pfn in list.iter(&self.frames).take(list.len() as usize + 1) {
                    let is_pcp = self.frames.state(pfn) == FrameState::Pcp;
                    if !is_pcp || self.frames.order(pfn) != order || self.zone_of(pfn) != id {
                        return Err(Violation::PcpList { cpu, zone: id, pfn });
                    }
                    listed += order.pages();
                }
            }
            if listed != pcp.count() {
                return Err(Violation::PcpCount { cpu, zone: id, listed, counter: pcp.count() });
            }
            total += u64::from(listed);
        }
        if total != recount.on_pcp {
            return Err(Violation::PcpPages { zone: id, counted: recount.on_pcp, counter: total });
        }
        Ok(())
    }

    fn check_pageblocks(&self, id: ZoneId, zone: &Zone) -> Result<(), Violation> {
        let totals = zone.free_area.pageblocks().totals();
        let counted = totals.iter().sum();
        if counted * PAGEBLOCK_PAGES != zone.spanned {
            return Err(Violation::PageblockTotal { zone: id, counted, spanned: zone.spanned });
        }
        let blocks = totals[MigrateType::HighAtomic as usize];
        let reserved = zone.free_area.reserved_highatomic();
        if u64::from(blocks) * u64::from(PAGEBLOCK_PAGES) != reserved {
            return Err(Violation::HighAtomic { zone: id, blocks, reserved });
        }
        Ok(())
    }
}
