//! Why reclaim gave up before the OOM killer ran: what it did last, how far each zone was from its mark, and
//! who held the memory.
//!
//! The kernel prints nothing of the kind: there one has to guess it from `Mem-Info`, or trace
//! `reclaim_retry_zone`. Units are pages unless others stand there. Left out: what kswapd did
//! meanwhile, but for how often it failed. Neighbours: `mem_info.rs`, [`crate::decide::effort`].

use core::fmt::Write;
use std_alloc::format;
use std_alloc::string::String;
use std_alloc::vec::Vec;

use units::{CpuId, Order};

use crate::alloc::flags::{AllocFlags, gfp_zone};
use crate::alloc::watermark::Mark;
use crate::base::event::Trace;
use crate::base::gfp::Gfp;
use crate::base::layout::ZoneId;
use crate::decide::effort::{Effort, Passes};
use crate::decide::slow_path::SlowRequest;
use crate::lru::lists::LruList;
use crate::memory::Memory;
use crate::version::geometry::Cache;

/// The largest slab caches that are named.
const NAMED_CACHES: usize = 3;

impl<T: Trace> Memory<T> {
    /// Why a request of a task on `cpu` was given up, line by line.
    pub fn why_given_up(&self, cpu: CpuId, request: &SlowRequest) -> Vec<String> {
        let ((gfp, order), effort) = (request.wanted(), request.effort());
        let zones = self.core.alloc.zonelist(cpu, gfp);
        let helps = zones.iter().any(|&zone| self.could_pass(zone, gfp, order));
        let reason = match (request.is_out_of_rounds(), helps) {
            (true, _) => format!("{} runs in a row freed nothing, as often as a request may", effort.in_vain),
            (false, true) if order > Order(0) => format!("there are pages, but no block of order {order}"),
            (false, true) => String::from("the last run freed nothing"),
            (false, false) => String::from("no zone would pass its min mark if all file pages were free"),
        };
        let mut lines = Vec::from([reason, runs(effort)]);
        lines.extend(zones.iter().map(|&zone| self.zone_balance(zone, gfp, order)));
        lines.extend(last_run(&effort.last));
        lines.extend(self.nodes().filter_map(|node| {
            let failed = self.reclaim.node(node).kswapd_failures;
            (failed > 0).then(|| format!("kswapd of node {node}: the last {failed} runs freed nothing"))
        }));
        lines.extend(self.holders());
        lines
    }

    /// Why a charge was given up for which limit reclaim did so much.
    pub fn why_charge_given_up(&self, effort: &Effort) -> Vec<String> {
        let reason = format!("{} runs of limit reclaim in a row freed nothing", effort.in_vain);
        let mut lines = Vec::from([reason, runs(effort)]);
        lines.extend(last_run(&effort.last));
        lines
    }

    /// Whether a zone would pass its min mark if all its file pages were free (`should_reclaim_retry`).
    fn could_pass(&self, id: ZoneId, gfp: Gfp, order: Order) -> bool {
        let zone = self.core.alloc.zone(id);
        let available = zone.free_pages().0 + self.zone_reclaimable_pages(zone.node, zone.kind);
        let mark = zone.watermarks.mark(Mark::Min);
        let flags = AllocFlags::slow(self.core.rules().reserve_users, gfp, order, false);
        zone.watermark_ok(order, mark, gfp_zone(gfp), flags, available)
    }

    fn zone_balance(&self, id: ZoneId, gfp: Gfp, order: Order) -> String {
        let zone = self.core.alloc.zone(id);
        format!(
            "Node {} {}: {} free and {} of files against min {} and a reserve of {}: {}",
            zone.node,
            zone.kind.name(),
            zone.free_pages().0,
            self.zone_reclaimable_pages(zone.node, zone.kind),
            zone.watermarks.mark(Mark::Min),
            zone.watermarks.reserve(gfp_zone(gfp)),
            if self.could_pass(id, gfp, order) { "could pass" } else { "could not pass" }
        )
    }

    /// Who held the memory, the largest first.
    fn holders(&self) -> Vec<String> {
        let managed: u64 = self.core.alloc.zones().iter().map(|zone| zone.managed.0).sum();
        let file = self.lru_pages(LruList::InactiveFile) + self.lru_pages(LruList::ActiveFile);
        let anon = self.lru_pages(LruList::InactiveAnon) + self.lru_pages(LruList::ActiveAnon);
        let mut parts = Vec::from([
            ("free", self.core.alloc.free_pages().0),
            ("unevictable", self.lru_pages(LruList::Unevictable)),
            ("anonymous", anon),
            ("of files", file),
            ("reclaimable slab", self.slab_pages(true)),
            ("other slab", self.slab_pages(false)),
        ]);
        let known: u64 = parts.iter().map(|(_, pages)| pages).sum();
        parts.push(("other pages of the kernel, and on the way to lists", managed.saturating_sub(known)));
        parts.sort_by_key(|&(_, pages)| core::cmp::Reverse(pages));
        let part = |&(name, pages): &(&str, u64)| format!("{} % {name} ({pages})", tenths(pages, managed));
        let parts: Vec<String> = parts.iter().filter(|(_, pages)| *pages > 0).map(part).collect();
        let mut lines = Vec::from([format!("of {managed} pages: {}", parts.join(", "))]);
        lines.push(format!(
            "of files: {} dirty, {} under writeback",
            self.cache.dirty(),
            self.cache.under_writeback()
        ));
        lines.extend(self.largest_caches());
        lines.extend(self.inodes_of_xfs());
        lines
    }

    fn largest_caches(&self) -> Option<String> {
        let slabs = &self.core.slabs;
        let mut caches: Vec<(u64, Cache)> =
            Cache::ALL.into_iter().map(|cache| (slabs.cache_pages(cache), cache)).collect();
        caches.sort_by_key(|&(pages, _)| core::cmp::Reverse(pages));
        let cache = |&(pages, cache): &(u64, Cache)| {
            let (used, awaiting) = (slabs.objects(cache), slabs.awaiting_rcu(cache));
            let (places, _) = slabs.places(cache);
            let rcu = if awaiting > 0 { format!(", {awaiting} wait for RCU") } else { String::new() };
            format!("{} {pages} ({used} of {places} objects in use{rcu})", cache.name())
        };
        let largest = caches.iter().filter(|(pages, _)| *pages > 0).take(NAMED_CACHES);
        let largest: Vec<String> = largest.map(cache).collect();
        (!largest.is_empty()).then(|| format!("largest slab caches: {}", largest.join(", ")))
    }

    fn inodes_of_xfs(&self) -> Option<String> {
        let inodes = self.core.slabs.objects(Cache::XfsInode);
        let items = self.fs.xfs_log.items();
        (inodes > 0).then(|| {
            format!(
                "inodes of XFS: {inodes}, {} evicted and not yet freed, {} not clean ({} in the AIL)",
                self.fs.vfs.reclaimable.count(),
                items.not_clean(),
                items.in_ail()
            )
        })
    }
}

fn runs(effort: &Effort) -> String {
    format!("runs of reclaim for it: {}, which freed {}", effort.runs, effort.freed)
}

/// `the last run, scanned/freed/objects by priority: 12 3/0/0, 11 ...`.
fn last_run(passes: &Passes) -> Option<String> {
    let mut line = String::from("the last run, pages scanned/freed and slab objects scanned, by priority:");
    let empty = line.len();
    for (priority, pass) in passes.iter() {
        let _ = write!(line, " {priority}: {}/{}, {};", pass.scanned, pass.freed, pass.objects);
    }
    (line.len() > empty).then(|| line.trim_end_matches(';').into())
}

/// A share in percent, with one digit behind the point.
fn tenths(part: u64, whole: u64) -> String {
    let permille = (part * 1000 + whole / 2) / whole.max(1);
    format!("{}.{}", permille / 10, permille % 10)
}
