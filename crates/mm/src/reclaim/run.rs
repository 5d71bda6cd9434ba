//! A run of reclaim: who runs it, for what, and what it has met so far (`struct scan_control`).
//!
//! Neighbours: [`crate::reclaim::pass`] for how much is looked at,
//! [`crate::reclaim::page`] for what becomes of it.

use units::{Nanos, NodeId, Order};

use crate::base::event::ScanFor;
use crate::base::ids::MemcgId;
use crate::base::layout::ZoneKind;

/// Runs without success after which kswapd gives up until somebody else has some.
pub const MAX_RECLAIM_RETRIES: u32 = 16;

/// Pages that reclaim takes at a time.
pub const SWAP_CLUSTER_MAX: u64 = 32;
/// The priority that a run starts with: 1/4096 of every list.
pub const DEF_PRIORITY: u8 = 12;

/// Who reclaims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reclaimer {
    /// kswapd of a node.
    Kswapd,
    /// A task that found no free page.
    Direct,
    /// A task whose charge hit a limit.
    Limit,
}

/// One run of reclaim (`struct scan_control`).
#[derive(Debug, Clone)]
pub struct ScanControl {
    /// Who runs it.
    pub reclaimer: Reclaimer,
    /// It is a kernel thread other than kswapd.
    pub kernel_thread: bool,
    /// Where in the cgroup tree it starts; the root for global reclaim.
    pub target: MemcgId,
    /// Order of the block that is wanted: above 0 reclaim goes on until compaction can work.
    pub order: Order,
    /// Pages that are enough.
    pub nr_to_reclaim: u64,
    /// log2 of the divisor of list sizes.
    pub priority: u8,
    /// Highest zone that pages are wanted from.
    pub reclaim_idx: ZoneKind,
    /// Dirty pages may be written.
    pub may_writepage: bool,
    /// The filesystem may be entered: `__GFP_FS` of whoever reclaims.
    pub may_fs: bool,
    /// I/O may be started: `__GFP_IO` of whoever reclaims.
    pub may_io: bool,
    /// Slab may be shrunk.
    pub may_shrinkslab: bool,
    /// Deactivate whatever the lists' balance says: the last resort of a run without success.
    pub force_deactivate: bool,
    /// An active list was left alone in this run.
    pub skipped_deactivate: bool,
    /// Ignore `memory.low`.
    pub memcg_low_reclaim: bool,
    /// A cgroup was skipped for its `memory.low` in this run.
    pub memcg_low_skipped: bool,
    /// Walk the whole tree even where positions are saved.
    pub memcg_full_walk: bool,
    /// Pages looked at in this run, at this priority.
    pub nr_scanned: u64,
    /// Where slab is pressed by scan: what part of the lists was scanned since it was pressed last.
    pub scanned: ScannedPart,
    /// Pages freed in this run, slab pages included.
    pub nr_reclaimed: u64,
    /// Slab objects looked at in this run.
    pub slab_scanned: u64,
    /// Slab pages freed in this pass, and pages dropped with inodes: not yet counted as reclaimed.
    pub reclaimed_slab: u64,
    /// File pages may be deactivated: decided at the target for the current pass.
    pub may_deactivate_file: bool,
    /// What else was decided there, if there is a swap area.
    pub at_target: AtTarget,
    /// Anonymous pages may be swapped out: not while kswapd works a watermark boost off.
    pub may_swap: bool,
    /// Somebody asked for it by writing to a file.
    pub proactive: bool,
    /// What the run was asked for instead of `vm.swappiness`.
    pub swappiness: Option<u64>,
    /// The only node whose memory is wanted.
    pub only_node: Option<NodeId>,
    /// Anonymous pages are weighed against those of files however many inactive ones of these there are.
    pub no_cache_trim: bool,
    /// A pass that freed nothing left anonymous pages alone for all the file pages.
    pub cache_trim_failed: bool,
    /// What the current pass met on the inactive lists.
    pub met: Met,
    /// What it keeps in mind about generations.
    pub gens: GenRun,
}

/// What a run keeps in mind about generations, where there are some.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GenRun {
    /// When the current pass began: new generations are born then.
    pub now: Nanos,
    /// Up to 6.2 kswapd makes new generations before the next pass (`memcgs_need_aging`).
    pub makes_new: bool,
    /// What came of the last visit.
    pub outcome: Outcome,
}

/// What came of a visit to a cgroup by generations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Outcome {
    /// Pages were evicted, or could have been.
    #[default]
    Evicted,
    /// It got a new generation, and is left alone for now.
    Aged,
}

/// What a pass found out at its target about anonymous and file pages, where lists are balanced there
/// (`prepare_scan_control`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AtTarget {
    /// Active anonymous pages may be deactivated.
    pub may_deactivate_anon: bool,
    /// There are plenty of inactive file pages, and few active ones (`cache_trim_mode`).
    pub cache_trim: bool,
    /// There are hardly any file pages (`file_is_tiny`).
    pub file_is_tiny: bool,
    /// What reclaim has cost there, of anonymous and of file pages.
    pub cost: [u64; 2],
}

/// A part of the lists that a reclaimer may take from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScannedPart {
    /// Pages that were looked at.
    pub pages: u64,
    /// Pages on the lists.
    pub listed: u64,
}

/// Pages that a pass over one node met on the inactive lists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Met {
    /// Taken off the lists.
    pub taken: u64,
    /// Of files.
    pub file_taken: u64,
    /// Dirty or under writeback.
    pub dirty: u64,
    /// Under writeback and marked for reclaim before.
    pub congested: u64,
    /// Dirty, and nobody writes them yet.
    pub unqueued_dirty: u64,
    /// Under writeback.
    pub writeback: u64,
    /// Under writeback, and met again although kswapd knows that there are many.
    pub immediate: u64,
}

impl Met {
    /// Every dirty page was under writeback to a congested device.
    pub const fn all_congested(&self) -> bool {
        self.dirty > 0 && self.dirty == self.congested
    }
}

impl ScanControl {
    fn new(reclaimer: Reclaimer, target: MemcgId, nr_to_reclaim: u64, reclaim_idx: ZoneKind) -> Self {
        Self {
            reclaimer,
            kernel_thread: false,
            target,
            order: Order(0),
            nr_to_reclaim,
            priority: DEF_PRIORITY,
            reclaim_idx,
            may_writepage: true,
            may_fs: true,
            may_io: true,
            may_shrinkslab: true,
            force_deactivate: false,
            skipped_deactivate: false,
            memcg_low_reclaim: false,
            memcg_low_skipped: false,
            memcg_full_walk: false,
            nr_scanned: 0,
            scanned: ScannedPart::default(),
            nr_reclaimed: 0,
            slab_scanned: 0,
            reclaimed_slab: 0,
            may_deactivate_file: false,
            at_target: AtTarget::default(),
            may_swap: true,
            proactive: false,
            swappiness: None,
            only_node: None,
            no_cache_trim: false,
            cache_trim_failed: false,
            met: Met::default(),
            gens: GenRun::default(),
        }
    }

    /// `try_to_free_pages`: a task wants pages of zones up to `highest_zoneidx`.
    pub fn direct(highest_zoneidx: ZoneKind) -> Self {
        Self::new(Reclaimer::Direct, MemcgId::ROOT, SWAP_CLUSTER_MAX, highest_zoneidx)
    }

    /// `try_to_free_mem_cgroup_pages`: a charge of `pages` failed at `target`.
    pub fn limit(target: MemcgId, pages: u64) -> Self {
        Self::new(Reclaimer::Limit, target, pages.max(SWAP_CLUSTER_MAX), ZoneKind::Movable)
    }

    /// `balance_pgdat`: kswapd balances zones up to `highest_zoneidx`.
    pub fn kswapd(highest_zoneidx: ZoneKind) -> Self {
        Self::new(Reclaimer::Kswapd, MemcgId::ROOT, 0, highest_zoneidx)
    }

    /// The same run for a block of `order`.
    #[must_use]
    pub const fn for_order(mut self, order: Order) -> Self {
        self.order = order;
        self
    }

    /// A pass begins now.
    pub const fn note_time(&mut self, now: Nanos) {
        self.gens.now = now;
    }

    /// Adds what a chunk met to what the pass met.
    pub(crate) fn note_writeback(&mut self, report: &ChunkReport) {
        let met = &mut self.met;
        met.taken += u64::from(report.taken.pages);
        met.file_taken += u64::from(report.taken.file);
        met.dirty += u64::from(report.dirty);
        met.congested += u64::from(report.congested);
        met.unqueued_dirty += u64::from(report.unqueued_dirty);
        met.writeback += u64::from(report.writeback);
        met.immediate += u64::from(report.immediate);
    }

    /// For whose sake, and how hard, for an event.
    pub const fn scan_for(&self) -> ScanFor {
        ScanFor { target: self.target, priority: self.priority }
    }

    /// Whether it reclaims for the machine rather than for a limit.
    pub const fn is_global(&self) -> bool {
        !matches!(self.reclaimer, Reclaimer::Limit)
    }
}

/// What one chunk did: for CPU time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct ChunkReport {
    /// Pages looked at, those of wrong zones included.
    pub scanned: u32,
    /// Pages freed.
    pub reclaimed: u32,
    /// Pages of freed file folios besides the first of each.
    pub tails: u32,
    /// Those of them that had a place of their own in their file's tree, as their folio filled no leaf of it.
    pub leaf_tails: u32,
    /// Pages moved from the active to the inactive list.
    pub deactivated: u32,
    /// Pages taken off the list, and of which kind.
    pub taken: Taken,
    /// Dirty pages met, and pages under writeback.
    pub dirty: u32,
    /// Pages under writeback that were marked for reclaim before.
    pub congested: u32,
    /// Dirty pages that nobody writes yet.
    pub unqueued_dirty: u32,
    /// Pages under writeback met.
    pub writeback: u32,
    /// Pages under writeback that came round again already marked for reclaim.
    pub immediate: u32,
    /// Pages whose write-out was started (`nr_pageout`).
    pub pageout: u32,
    /// Pages of an inactive list that became active.
    pub activated: u32,
    /// Pages of an active list that were accessed since they were last looked at.
    pub referenced: u32,
    /// What swapping pages out took.
    pub swap: SwapWork,
}

impl ChunkReport {
    /// Adds what another chunk did.
    pub(crate) fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.scanned, other.scanned),
            (&mut self.reclaimed, other.reclaimed),
            (&mut self.tails, other.tails),
            (&mut self.leaf_tails, other.leaf_tails),
            (&mut self.deactivated, other.deactivated),
            (&mut self.taken.pages, other.taken.pages),
            (&mut self.taken.file, other.taken.file),
            (&mut self.dirty, other.dirty),
            (&mut self.congested, other.congested),
            (&mut self.unqueued_dirty, other.unqueued_dirty),
            (&mut self.writeback, other.writeback),
            (&mut self.immediate, other.immediate),
            (&mut self.pageout, other.pageout),
            (&mut self.activated, other.activated),
            (&mut self.referenced, other.referenced),
            (&mut self.swap.slots, other.swap.slots),
            (&mut self.swap.fetched, other.swap.fetched),
            (&mut self.swap.unmapped, other.swap.unmapped),
            (&mut self.swap.remapped, other.swap.remapped),
            (&mut self.swap.cached, other.swap.cached),
            (&mut self.swap.compressed, other.swap.compressed),
            (&mut self.swap.tested, other.swap.tested),
        ] {
            *sum += more;
        }
    }
}

/// Pages taken off a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    /// All.
    pub pages: u32,
    /// Of files.
    pub file: u32,
}

/// What swapping pages out took, for CPU time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SwapWork {
    /// Slots that were taken.
    pub slots: u32,
    /// Slots that were fetched for the CPU.
    pub fetched: u32,
    /// Pages taken out of page tables.
    pub unmapped: u32,
    /// Mappings of a host that had to follow page tables ([`crate::base::layout::PageTables::UserMode`]).
    pub remapped: u32,
    /// Pages that came into the swap cache or left it.
    pub cached: u32,
    /// Pages that were compressed.
    pub compressed: u32,
    /// Pages that were tested for one repeated word.
    pub tested: u32,
}
