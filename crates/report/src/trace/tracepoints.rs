//! How a kernel prints its tracepoints: `TP_printk` of `include/trace/events/{vmscan,filemap,pagemap,compaction,kmem,
//! block,oom,writeback}.h` of Linux 6.12, with the fields that an event of a recording has.
//!
//! Waits of `congestion_wait` and `reclaim_throttle` have tracepoints, others and the life of a page are printed
//! in the same way under names of our own. Left out: `mark_victim`, which needs more than the event
//! ([`super::ftrace`]).

use std::fmt::{Result, Write};

use recording::WITHIN;

use super::line::{About, device, word};

/// Pages of a pageblock are two to the power of this, on x86.
const PAGEBLOCK_ORDER: i64 = 9;
/// `PAGE_SHIFT`, and what of it is a sector.
const PAGE_SHIFT: u32 = 12;
const SECTOR_SHIFT: u32 = 9;

/// Which format an event has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tracepoint {
    Node,
    KswapdWake,
    WakeupKswapd,
    ReclaimBegin,
    ReclaimEnd,
    ShrinkInactive,
    ShrinkActive,
    SlabStart,
    SlabEnd,
    Filemap,
    LruInsertion,
    LruActivate,
    CompactionBegin,
    CompactionEnd,
    Extfrag,
    RequestIssue,
    RequestComplete,
    MarkVictim,
    Wait,
    Own,
}

impl Tracepoint {
    /// The format of the event of this name.
    pub(super) fn of(event: &str) -> Self {
        match event {
            "mm_vmscan_kswapd_sleep" => Self::Node,
            "mm_vmscan_kswapd_wake" => Self::KswapdWake,
            "mm_vmscan_wakeup_kswapd" => Self::WakeupKswapd,
            "mm_vmscan_direct_reclaim_begin" | "mm_vmscan_memcg_reclaim_begin" => Self::ReclaimBegin,
            "mm_vmscan_direct_reclaim_end" | "mm_vmscan_memcg_reclaim_end" => Self::ReclaimEnd,
            "mm_vmscan_lru_shrink_inactive" => Self::ShrinkInactive,
            "mm_vmscan_lru_shrink_active" => Self::ShrinkActive,
            "mm_shrink_slab_start" => Self::SlabStart,
            "mm_shrink_slab_end" => Self::SlabEnd,
            "mm_filemap_add_to_page_cache" | "mm_filemap_delete_from_page_cache" => Self::Filemap,
            "mm_lru_insertion" => Self::LruInsertion,
            "mm_lru_activate" => Self::LruActivate,
            "mm_compaction_begin" => Self::CompactionBegin,
            "mm_compaction_end" => Self::CompactionEnd,
            "mm_page_alloc_extfrag" => Self::Extfrag,
            "block_rq_issue" => Self::RequestIssue,
            "block_rq_complete" => Self::RequestComplete,
            "oom_kill" => Self::MarkVictim,
            "wait" => Self::Wait,
            _ => Self::Own,
        }
    }

    /// Writes the event, its name first.
    pub(super) fn write(self, about: &About<'_>, out: &mut String) -> Result {
        match self {
            Self::Wait => wait(about, out),
            Self::Own => own(about, out),
            _ => {
                write!(out, "{}: ", about.names.text(about.event.event))?;
                self.fields(about, out)
            }
        }
    }

    fn fields(self, about: &About<'_>, out: &mut String) -> Result {
        let event = about.event;
        let (node, order) = (event.node.unwrap_or(0), event.order.unwrap_or(0));
        let value = event.value.unwrap_or(0);
        match self {
            Self::Node => write!(out, "nid={node}"),
            Self::KswapdWake => write!(out, "nid={node} order={order}"),
            Self::WakeupKswapd => write!(out, "nid={node} order={order} gfp_flags=unknown"),
            Self::ReclaimBegin => write!(out, "order={order} gfp_flags=unknown"),
            Self::ReclaimEnd => write!(out, "nr_reclaimed={value}"),
            Self::ShrinkInactive | Self::ShrinkActive | Self::SlabStart | Self::SlabEnd => {
                self.shrink(about, out)
            }
            Self::Filemap | Self::LruInsertion | Self::LruActivate => self.page(about, out),
            Self::RequestIssue | Self::RequestComplete => self.request(about, out),
            Self::CompactionBegin | Self::CompactionEnd => {
                out.push_str("zone_start=0x0 migrate_pfn=0x0 free_pfn=0x0 zone_end=0x0, mode=");
                if self == Self::CompactionBegin {
                    out.write_str(&about.word(event.reason))
                } else {
                    write!(out, "unknown status={}", about.word(event.reason))
                }
            }
            Self::Extfrag => extfrag(about, out),
            Self::MarkVictim | Self::Wait | Self::Own => unreachable!("they have a format of their own"),
        }
    }

    fn shrink(self, about: &About<'_>, out: &mut String) -> Result {
        let event = about.event;
        let (node, pages, value) = (event.node.unwrap_or(0), event.pages, event.value.unwrap_or(0));
        let priority = event.priority.unwrap_or(0);
        let flags = match about.reason() {
            "file" => "RECLAIM_WB_FILE|RECLAIM_WB_ASYNC",
            "anon" => "RECLAIM_WB_ANON|RECLAIM_WB_ASYNC",
            _ => "unknown",
        };
        match self {
            Self::ShrinkInactive => write!(
                out,
                "nid={node} nr_scanned={pages} nr_reclaimed={value} nr_dirty=0 nr_writeback=0 nr_congested=0 \
                 nr_immediate=0 nr_activate_anon=0 nr_activate_file=0 nr_ref_keep=0 nr_unmap_fail=0 \
                 priority={priority} flags={flags}"
            ),
            Self::ShrinkActive => write!(
                out,
                "nid={node} nr_taken={pages} nr_active=0 nr_deactivated={value} nr_referenced=0 \
                 priority={priority} flags={flags}"
            ),
            Self::SlabStart => write!(
                out,
                "{}+0x0/0x0 0000000000000000: nid: {node} objects to shrink 0 gfp_flags unknown cache items 0 \
                 delta 0 total_scan {value} priority {priority}",
                shrinker(about.reason())
            ),
            _ => write!(
                out,
                "{}+0x0/0x0 0000000000000000: nid: {node} unused scan count 0 new scan count 0 \
                 total_scan {value} last shrinker return val 0",
                shrinker(about.reason())
            ),
        }
    }

    fn page(self, about: &About<'_>, out: &mut String) -> Result {
        let (event, folio) = (about.event, about.folio());
        match self {
            Self::Filemap => {
                let inode = about.file.map_or(0, |(_, inode)| inode);
                let offset = u128::from(event.page.unwrap_or(0)) << PAGE_SHIFT;
                let order = event.order.unwrap_or(0);
                write!(out, "dev 8:0 ino {inode:x} pfn=0x0 ofs={offset} order={order}")
            }
            Self::LruInsertion => {
                // `enum lru_list`; anonymous pages are `PAGEMAP_SWAPBACKED`.
                let is_file = event.page.is_some();
                let active = i32::from(about.reason() == "active");
                let (lru, flags) = if is_file { (2 + active, " f    ") } else { (active, " a b  ") };
                write!(out, "folio={folio} pfn=0x0 lru={lru} flags={flags}")
            }
            _ => write!(out, "folio={folio} pfn=0x0"),
        }
    }

    fn request(self, about: &About<'_>, out: &mut String) -> Result {
        let event = about.event;
        let disk = about.file.and_then(|(name, _)| device(name)).unwrap_or(0);
        let kind = match about.reason() {
            "read" => "R",
            "write" => "W",
            "durable write" => "WFS",
            _ => "N",
        };
        let bytes = event.value.unwrap_or(0);
        let (sector, sectors) =
            (event.page.unwrap_or(0) << (PAGE_SHIFT - SECTOR_SHIFT), bytes >> SECTOR_SHIFT);
        write!(out, "8,{} {kind} ", disk * 16)?;
        if self == Self::RequestIssue {
            let task = about.word(event.task);
            write!(out, "{bytes} () {sector} + {sectors} none,0,0 [{task}]")
        } else {
            write!(out, "() {sector} + {sectors} none,0,0 [0]")
        }
    }
}

/// A shrinker as its function is called (`%pS`).
fn shrinker(name: &str) -> String {
    match name {
        "super-block shrinker" => "super_cache_scan".to_owned(),
        "shadow node shrinker" => "scan_shadow_nodes".to_owned(),
        "extent status shrinker" => "ext4_es_scan".to_owned(),
        "XFS buffer shrinker" => "xfs_buftarg_shrink_scan".to_owned(),
        other => word(other),
    }
}

/// `WANTED from a block of OWNER pages`, and behind it whether the block changes hands.
fn extfrag(about: &About<'_>, out: &mut String) -> Result {
    let number = |kind: &str| match kind.trim() {
        "unmovable" => 0,
        "movable" => 1,
        "reclaimable" => 2,
        _ => 3,
    };
    let (wanted, rest) = about.reason().split_once(" from a block of ").unwrap_or(("", ""));
    let owner = rest.split_once(" pages").map_or(rest, |(owner, _)| owner);
    let (wanted, owner) = (number(wanted), number(owner));
    let (order, fallback_order) = (about.event.order.unwrap_or(0), about.event.value.unwrap_or(0));
    let fragmenting = i32::from(fallback_order < PAGEBLOCK_ORDER);
    let claimed = i32::from(rest.ends_with("claimed"));
    write!(
        out,
        "page=0000000000000000 pfn=0x0 alloc_order={order} fallback_order={fallback_order} \
         pageblock_order={PAGEBLOCK_ORDER} alloc_migratetype={wanted} fallback_migratetype={owner} \
         fragmenting={fragmenting} change_ownership={claimed}"
    )
}

/// A wait under its own tracepoint, where a kernel has one.
fn wait(about: &About<'_>, out: &mut String) -> Result {
    let reason = about.reason();
    let (wait, within) = reason.split_once(" in ").unwrap_or((reason, ""));
    let delayed = about.event.duration_ns / 1000;
    let node = about.event.node.unwrap_or(0);
    match wait {
        "congestion_wait" => {
            write!(out, "writeback_congestion_wait: usec_timeout=0 usec_delayed={delayed}")
        }
        "wait_iff_congested" => {
            write!(out, "writeback_wait_iff_congested: usec_timeout=0 usec_delayed={delayed}")
        }
        "reclaim_throttle: writeback" | "reclaim_throttle: no progress" => {
            let why = if wait.ends_with("writeback") { "WRITEBACK" } else { "NOPROGRESS" };
            // The kernel has the misspelling, too.
            write!(
                out,
                "mm_vmscan_throttled: nid={node} usec_timeout=0 usect_delayed={delayed} \
                 reason=VMSCAN_THROTTLE_{why}"
            )
        }
        _ => {
            write!(out, "wait: function={} usec_delayed={delayed}", word(wait))?;
            if !within.is_empty() {
                write!(out, " within={}", word(&within.replace(WITHIN, ">")))?;
            }
            match about.event.value {
                Some(0) => write!(out, " ended_by=wake"),
                Some(1) => write!(out, " ended_by=timeout futile=0"),
                Some(_) => write!(out, " ended_by=timeout futile=1"),
                None => Ok(()),
            }
        }
    }
}

/// An event of our own: all that it has.
fn own(about: &About<'_>, out: &mut String) -> Result {
    let event = about.event;
    write!(out, "{}:", word(about.names.text(event.event)))?;
    if let Some((_, inode)) = about.file {
        write!(out, " ino={inode:x}")?;
    }
    if let Some(page) = event.page {
        write!(out, " folio={} ofs={}", about.folio(), u128::from(page) << PAGE_SHIFT)?;
    }
    if event.pages > 0 {
        write!(out, " pages={}", event.pages)?;
    }
    let numbers = [("nid", event.node), ("priority", event.priority), ("order", event.order)];
    for (name, number) in numbers {
        if let Some(number) = number {
            write!(out, " {name}={number}")?;
        }
    }
    for (name, text) in [("cgroup", event.cgroup), ("by_cgroup", event.by_cgroup)] {
        if let Some(path) = text {
            write!(out, " {name}=/{}", word(about.names.text(path)))?;
        }
    }
    if event.reason.is_some() {
        write!(out, " reason={}", about.word(event.reason))?;
    }
    if let Some(value) = event.value {
        write!(out, " value={value}")?;
    }
    if event.duration_ns > 0 {
        write!(out, " usec_delayed={}", event.duration_ns / 1000)?;
    }
    Ok(())
}
