//! Events of the simulator to those of a recording: numbers to names, begin and end to a length.
//!
//! | event | what its columns say |
//! |---|---|
//! | pages of a file | `cgroup` charged, `file`, `page` the first, `pages` all, `order` of each folio |
//! | anonymous pages | the same; `file` is `anon:TASK/N`, the N-th mapping of the task, 0 what it has from the start |
//! | `page_reclaimed`, `page_deactivated`, `page_rotated` | also `by_cgroup` and `priority` of the reclaimer |
//! | `page_swapped_in` | `reason`: from where, and whether ahead of a fault; `page_reclaimed` tells who went |
//! | `page_refaulted` | `value`: distance in pages |
//! | `mm_lru_activate` | what `pgactivate` counts, those that reclaim activates included: these have `by_cgroup` |
//! | `mm_lru_insertion` | `reason`: the list; without a file: anonymous |
//! | `mm_vmscan_*_reclaim_begin`, `_end` | `by_cgroup`; the end has begin and length, `value`: pages freed |
//! | `mm_vmscan_lru_shrink_inactive`, `_active` | `reason`: `file` or `anon`, `value`: of `pages` freed, deactivated |
//! | `mm_shrink_slab_*` | `reason`: the shrinker; the end has begin and length, `value`: objects looked at |
//! | `mm_compaction_*` | `reason`: mode or result; the end has begin and length, `value`: pages moved |
//! | `watermark_boost` | `reason`: the zone, `value`: the boost in pages |
//! | `memcg_low` | a cgroup's turn of which its protection decided; `reason`: how |
//! | `oom_kill` | `cgroup` of the victim, `by_cgroup` at its limit, `value`: anonymous pages |
//! | `wait` | begin and length; `value`: 0 woken, 1 timed out, 2 timed out and nothing could have come |
//! | `block_rq_*` | `file`: the device, `page` there, `value`: bytes; the completion has begin and length |
//!
//! An event of pages is what became of all of them at one instant, where they lie one behind the other; so there
//! are `pages` >> `order` folios.
//!
//! What has an end has its length by the time of its task, that is with CPU time that it has charged and that
//! has not passed, as time in sections is; its begin is so much before the end, which may be a little after
//! that of the `_begin`.
//!
//! Left out: the name of a victim, which [`recording::Recording::oom_kills`] has.

use std::collections::BTreeMap;

use kernel::machine::{IoKind, TaskId, WaitReason};
use mm::MemcgId;
use mm::base::event::{Home, PageId, Reason, ScanFor, TraceEvent};
use mm::base::gfp::MigrateType;
use mm::base::ids::{AnonId, MappingId};
use mm::reclaim::plan::Shrinker;
use recording::WITHIN;
use recording::events::{Chunk, Event, NameId, Names};
use sim::Within;
use sim::run::device_name;
use sim::trace::{EventNames, EventRow, What};
use units::{NodeId, PAGE_SIZE};

macro_rules! names {
    ($($variant:ident = $text:literal,)*) => {
        /// What events are called, and the lists of pages.
        #[derive(Debug, Clone, Copy)]
        enum Name {
            $($variant,)*
        }

        impl Name {
            const TEXTS: &[&str] = &[$($text,)*];
        }
    };
}

names! {
    Wait = "wait",
    BlockRqIssue = "block_rq_issue",
    BlockRqComplete = "block_rq_complete",
    FilemapAddToPageCache = "mm_filemap_add_to_page_cache",
    FilemapDeleteFromPageCache = "mm_filemap_delete_from_page_cache",
    LruInsertion = "mm_lru_insertion",
    LruActivate = "mm_lru_activate",
    PageAccessed = "page_accessed",
    PageDeactivated = "page_deactivated",
    PageRotated = "page_rotated",
    PageReclaimed = "page_reclaimed",
    PageRefaulted = "page_refaulted",
    PageSwappedIn = "page_swapped_in",
    VmscanLruShrinkInactive = "mm_vmscan_lru_shrink_inactive",
    VmscanLruShrinkActive = "mm_vmscan_lru_shrink_active",
    ShrinkSlabStart = "mm_shrink_slab_start",
    ShrinkSlabEnd = "mm_shrink_slab_end",
    VmscanDirectReclaimBegin = "mm_vmscan_direct_reclaim_begin",
    VmscanMemcgReclaimBegin = "mm_vmscan_memcg_reclaim_begin",
    VmscanDirectReclaimEnd = "mm_vmscan_direct_reclaim_end",
    VmscanMemcgReclaimEnd = "mm_vmscan_memcg_reclaim_end",
    MemcgLow = "memcg_low",
    VmscanKswapdWake = "mm_vmscan_kswapd_wake",
    VmscanKswapdSleep = "mm_vmscan_kswapd_sleep",
    WatermarkBoost = "watermark_boost",
    PageAllocExtfrag = "mm_page_alloc_extfrag",
    FragmentationStall = "mm_fragmentation_stall",
    CompactionBegin = "mm_compaction_begin",
    CompactionEnd = "mm_compaction_end",
    OomKill = "oom_kill",
    Active = "active",
    Inactive = "inactive",
}

/// Gives chunks of a recording's events to `F`.
pub(crate) struct Translator<F> {
    sink: F,
    chunk: Chunk,
    names: Names,
    /// By number of the simulator.
    tasks: Vec<Option<NameId>>,
    cgroups: Vec<Option<NameId>>,
    devices: Vec<Option<NameId>>,
    mappings: Vec<Option<NameId>>,
    /// By number of anonymous memory.
    anons: Vec<Option<NameId>>,
    /// By place in [`Reason::ALL`].
    reasons: Vec<Option<NameId>>,
    waits: BTreeMap<(WaitReason, Within), NameId>,
    /// When what a task is in the middle of began: reclaim, a shrinker, compaction.
    begun: BTreeMap<(TaskId, Lasting), u64>,
    /// By place in [`Name::TEXTS`].
    events: Vec<Option<NameId>>,
    /// What of pages was told last, and what became of it.
    last: Option<(TaskId, TraceEvent, Event)>,
    /// How blocks are mixed: what was wanted, what the block was, whether it is claimed.
    mixtures: BTreeMap<(MigrateType, MigrateType, bool), NameId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Lasting {
    Reclaim,
    Shrinker,
    Compaction,
}

impl<F: FnMut(&Names, &Chunk)> Translator<F> {
    pub(crate) fn new(sink: F) -> Self {
        Self {
            sink,
            chunk: Chunk::default(),
            names: Names::default(),
            tasks: Vec::new(),
            cgroups: Vec::new(),
            devices: Vec::new(),
            mappings: Vec::new(),
            anons: Vec::new(),
            reasons: vec![None; Reason::ALL.len()],
            waits: BTreeMap::new(),
            begun: BTreeMap::new(),
            events: vec![None; Name::TEXTS.len()],
            last: None,
            mixtures: BTreeMap::new(),
        }
    }

    /// Translates a chunk of rows.
    pub(crate) fn take(&mut self, rows: &[EventRow], names: &EventNames) {
        self.chunk.events.clear();
        self.chunk.events.reserve(rows.len());
        for row in rows {
            if let Some(event) = self.event(row, names) {
                self.chunk.events.push(event);
            }
        }
        (self.sink)(&self.names, &self.chunk);
    }

    fn event(&mut self, row: &EventRow, names: &EventNames) -> Option<Event> {
        if let What::Pages { event, folios } = &row.what {
            return Some(self.pages_again(row, event, *folios, names));
        }
        let own_ns = row.at.get() + u64::from(row.owed);
        let blank = Blank { time_ns: row.at.get(), own_ns, task: self.task(row.task, names) };
        Some(match row.what {
            What::HomeIs { home, file } => {
                let name = file.map(|file| self.names.intern(names.file(file)));
                match home {
                    Home::File(MappingId(number)) => *place(&mut self.mappings, number) = name,
                    Home::Anon(AnonId(number)) => *place(&mut self.anons, number) = name,
                    Home::Nobody => {}
                }
                return None;
            }
            What::Wait { reason, within, spent, timed_out, futile } => {
                let value = i64::from(timed_out) + i64::from(futile);
                let reason = Some(self.wait_name(reason, within));
                let event = blank.event(self.name(Name::Wait));
                lasted(Event { reason, value: Some(value), ..event }, spent.get())
            }
            What::IoIssued { device, kind, offset, len } => {
                let event = blank.event(self.name(Name::BlockRqIssue));
                self.request(event, device, kind, offset, len)
            }
            What::IoDone { device, kind, offset, len, spent } => {
                let event = blank.event(self.name(Name::BlockRqComplete));
                lasted(self.request(event, device, kind, offset, len), spent.get())
            }
            What::Kernel(event) => self.reclaim(blank, row.task, event, names),
            What::Pages { .. } => unreachable!("told above"),
        })
    }

    /// What is told of pages is mostly what was told of those before.
    fn pages_again(&mut self, row: &EventRow, event: &TraceEvent, folios: u32, names: &EventNames) -> Event {
        let page = event.page().expect("it is about pages");
        let (file, first) = self.home(page);
        let time_ns = row.at.get();
        let pages = page.order.pages() * folios;
        if let Some((task, last, told)) = &self.last
            && *task == row.task
            && last.says_what(event)
            && last.page().is_some_and(|last| PageId { home: last.home, index: last.index, ..page } == last)
        {
            return Event { time_ns, file, page: first, pages, ..*told };
        }
        let blank = Blank { time_ns, own_ns: time_ns, task: self.task(row.task, names) };
        let told = self.pages(blank, *event, names);
        self.last = Some((row.task, *event, told));
        Event { pages, ..told }
    }

    fn pages(&mut self, blank: Blank, event: TraceEvent, names: &EventNames) -> Event {
        match event {
            TraceEvent::FilemapAdd { page } => self.page(blank, Name::FilemapAddToPageCache, page, names),
            TraceEvent::FilemapDelete { page, reason } => {
                let event = self.page(blank, Name::FilemapDeleteFromPageCache, page, names);
                Event { reason: Some(self.reason(reason)), ..event }
            }
            TraceEvent::LruInsertion { page, active } => {
                let list = if active { Name::Active } else { Name::Inactive };
                let event = self.page(blank, Name::LruInsertion, page, names);
                Event { reason: Some(self.name(list)), ..event }
            }
            TraceEvent::LruActivate { page, reason, scan } => {
                let event = self.page(blank, Name::LruActivate, page, names);
                let event = Event { reason: Some(self.reason(reason)), ..event };
                self.maybe_scanned(event, scan, names)
            }
            TraceEvent::PageAccessed { page, reason } => {
                let event = self.page(blank, Name::PageAccessed, page, names);
                Event { reason: Some(self.reason(reason)), ..event }
            }
            TraceEvent::PageDeactivated { page, scan } => {
                let event = self.page(blank, Name::PageDeactivated, page, names);
                self.scanned(event, scan, names)
            }
            TraceEvent::PageRotated { page, reason, scan } => {
                let event = self.page(blank, Name::PageRotated, page, names);
                let event = Event { reason: Some(self.reason(reason)), ..event };
                self.maybe_scanned(event, scan, names)
            }
            TraceEvent::PageReclaimed { page, reason, scan } => {
                let event = self.page(blank, Name::PageReclaimed, page, names);
                let event = Event { reason: Some(self.reason(reason)), ..event };
                self.scanned(event, scan, names)
            }
            TraceEvent::PageSwappedIn { page, reason } => {
                let event = self.page(blank, Name::PageSwappedIn, page, names);
                Event { reason: Some(self.reason(reason)), ..event }
            }
            TraceEvent::PageRefaulted { page, reason, distance, .. } => {
                let event = self.page(blank, Name::PageRefaulted, page, names);
                Event { reason: Some(self.reason(reason)), value: Some(signed(distance)), ..event }
            }
            other => unreachable!("{other:?} is about no page"),
        }
    }

    fn reclaim(&mut self, blank: Blank, task: TaskId, event: TraceEvent, names: &EventNames) -> Event {
        match event {
            TraceEvent::VmscanLruShrinkInactive { nid, memcg, nr_scanned, nr_reclaimed, scan, file } => {
                let event = blank.event(self.name(Name::VmscanLruShrinkInactive));
                let event = self.shrunk(event, nid, memcg, scan, names);
                let reason = Some(self.names.intern(kind_of_list(file)));
                Event { pages: nr_scanned, reason, value: Some(i64::from(nr_reclaimed)), ..event }
            }
            TraceEvent::VmscanLruShrinkActive { nid, memcg, nr_scanned, nr_deactivated, scan, file } => {
                let event = blank.event(self.name(Name::VmscanLruShrinkActive));
                let event = self.shrunk(event, nid, memcg, scan, names);
                let reason = Some(self.names.intern(kind_of_list(file)));
                Event { pages: nr_scanned, reason, value: Some(i64::from(nr_deactivated)), ..event }
            }
            TraceEvent::ShrinkSlabStart { nid, memcg, shrinker, scan } => {
                self.begun.insert((task, Lasting::Shrinker), blank.own_ns);
                let event = blank.event(self.name(Name::ShrinkSlabStart));
                let event = self.shrunk(event, nid, memcg, scan, names);
                Event { reason: Some(self.names.intern(shrinker_name(shrinker))), ..event }
            }
            TraceEvent::ShrinkSlabEnd { nid, memcg, shrinker, total_scan, scan } => {
                let event = blank.event(self.name(Name::ShrinkSlabEnd));
                let event = self.shrunk(event, nid, memcg, scan, names);
                let reason = Some(self.names.intern(shrinker_name(shrinker)));
                let event = Event { reason, value: Some(signed(total_scan)), ..event };
                self.ended(event, blank, task, Lasting::Shrinker)
            }
            TraceEvent::VmscanReclaimBegin { order, memcg } => {
                self.begun.insert((task, Lasting::Reclaim), blank.own_ns);
                let is_limit = memcg != MemcgId::ROOT.0;
                let name =
                    if is_limit { Name::VmscanMemcgReclaimBegin } else { Name::VmscanDirectReclaimBegin };
                let event = blank.event(self.name(name));
                let by_cgroup = Some(self.cgroup(MemcgId(memcg), names));
                Event { by_cgroup, order: Some(order.0), ..event }
            }
            TraceEvent::VmscanReclaimEnd { nr_reclaimed, memcg } => {
                let is_limit = memcg != MemcgId::ROOT.0;
                let name = if is_limit { Name::VmscanMemcgReclaimEnd } else { Name::VmscanDirectReclaimEnd };
                let event = blank.event(self.name(name));
                let by_cgroup = Some(self.cgroup(MemcgId(memcg), names));
                let event = Event { by_cgroup, value: Some(signed(nr_reclaimed)), ..event };
                self.ended(event, blank, task, Lasting::Reclaim)
            }
            TraceEvent::MemcgProtected { memcg, nid, reason, scan } => {
                let event = blank.event(self.name(Name::MemcgLow));
                let event = self.shrunk(event, nid, memcg.0, scan, names);
                Event { reason: Some(self.reason(reason)), ..event }
            }
            other => self.machine(blank, task, other, names),
        }
    }

    fn machine(&mut self, blank: Blank, task: TaskId, event: TraceEvent, names: &EventNames) -> Event {
        match event {
            TraceEvent::VmscanKswapdWake { nid, order } => {
                let event = blank.event(self.name(Name::VmscanKswapdWake));
                Event { node: Some(nid.0), order: Some(order.0), ..event }
            }
            TraceEvent::VmscanKswapdSleep { nid } => {
                let event = blank.event(self.name(Name::VmscanKswapdSleep));
                Event { node: Some(nid.0), ..event }
            }
            TraceEvent::WatermarkBoost { nid, zone, boost } => {
                let event = blank.event(self.name(Name::WatermarkBoost));
                let reason = Some(self.names.intern(zone.name()));
                Event { node: Some(nid.0), reason, value: Some(signed(boost)), ..event }
            }
            TraceEvent::PageAllocExtfrag {
                alloc_order,
                fallback_order,
                alloc_migratetype,
                fallback_migratetype,
                change_ownership,
                ..
            } => {
                let reason = Some(self.mixed(alloc_migratetype, fallback_migratetype, change_ownership));
                let event = blank.event(self.name(Name::PageAllocExtfrag));
                let value = Some(i64::from(fallback_order.0));
                Event { order: Some(alloc_order.0), pages: alloc_order.pages(), reason, value, ..event }
            }
            TraceEvent::FragmentationStall { nid, duration } => {
                let event = blank.event(self.name(Name::FragmentationStall));
                lasted(Event { node: Some(nid.0), ..event }, duration * 1000)
            }
            TraceEvent::CompactionBegin { nid, order, sync } => {
                self.begun.insert((task, Lasting::Compaction), blank.own_ns);
                let event = blank.event(self.name(Name::CompactionBegin));
                let reason = Some(self.names.intern(if sync { "sync" } else { "async" }));
                Event { node: Some(nid.0), order: Some(order.0), reason, ..event }
            }
            TraceEvent::CompactionEnd { nid, order, status, moved } => {
                let event = blank.event(self.name(Name::CompactionEnd));
                let (reason, value) = (Some(self.names.intern(status)), Some(signed(moved)));
                let event = Event { node: Some(nid.0), order: Some(order.0), reason, value, ..event };
                self.ended(event, blank, task, Lasting::Compaction)
            }
            TraceEvent::MarkVictim { memcg, target, anon_pages } => {
                let event = blank.event(self.name(Name::OomKill));
                let cgroup = Some(self.cgroup(memcg, names));
                let by_cgroup = Some(self.cgroup(target, names));
                Event { cgroup, by_cgroup, value: Some(signed(anon_pages)), ..event }
            }
            other => unreachable!("{other:?} is told by the others"),
        }
    }

    fn page(&mut self, blank: Blank, name: Name, page: PageId, names: &EventNames) -> Event {
        let PageId { memcg, node, order, .. } = page;
        let (file, first) = self.home(page);
        Event {
            cgroup: Some(self.cgroup(memcg, names)),
            file,
            page: first,
            pages: order.pages(),
            node: Some(node.0),
            order: Some(order.0),
            ..blank.event(self.name(name))
        }
    }

    /// The name of whose page it is, and its number there; of anonymous memory without a name neither.
    fn home(&mut self, page: PageId) -> (Option<NameId>, Option<u64>) {
        let index = u64::from(page.index);
        match page.home {
            Home::File(MappingId(number)) => (*place(&mut self.mappings, number), Some(index)),
            Home::Anon(AnonId(number)) => {
                let name = *place(&mut self.anons, number);
                (name, name.map(|_| index))
            }
            Home::Nobody => (None, None),
        }
    }

    fn scanned(&mut self, event: Event, scan: ScanFor, names: &EventNames) -> Event {
        let by_cgroup = Some(self.cgroup(scan.target, names));
        Event { by_cgroup, priority: Some(scan.priority), ..event }
    }

    fn maybe_scanned(&mut self, event: Event, scan: Option<ScanFor>, names: &EventNames) -> Event {
        match scan {
            Some(scan) => self.scanned(event, scan, names),
            None => event,
        }
    }

    fn shrunk(&mut self, event: Event, nid: NodeId, memcg: u16, scan: ScanFor, names: &EventNames) -> Event {
        let cgroup = Some(self.cgroup(MemcgId(memcg), names));
        self.scanned(Event { cgroup, node: Some(nid.0), ..event }, scan, names)
    }

    fn request(&mut self, event: Event, device: u16, kind: IoKind, offset: u64, len: u64) -> Event {
        let kind = match kind {
            IoKind::Read => "read",
            IoKind::Write => "write",
            IoKind::DurableWrite => "durable write",
        };
        let pages = u32::try_from(len.div_ceil(PAGE_SIZE)).unwrap_or(u32::MAX);
        Event {
            file: Some(self.device(device)),
            page: Some(offset / PAGE_SIZE),
            pages,
            reason: Some(self.names.intern(kind)),
            value: Some(signed(len)),
            ..event
        }
    }

    /// What ends now lasted since it was begun, by the time of its task.
    fn ended(&mut self, event: Event, blank: Blank, task: TaskId, what: Lasting) -> Event {
        match self.begun.remove(&(task, what)) {
            Some(begin) => lasted(event, (blank.own_ns - begin).min(event.time_ns)),
            None => event,
        }
    }
}

/// Names.
impl<F> Translator<F> {
    fn name(&mut self, name: Name) -> NameId {
        let place = &mut self.events[name as usize];
        *place.get_or_insert_with(|| self.names.intern(Name::TEXTS[name as usize]))
    }

    fn reason(&mut self, reason: Reason) -> NameId {
        *self.reasons[reason as usize].get_or_insert_with(|| self.names.intern(reason.text()))
    }

    fn task(&mut self, task: TaskId, names: &EventNames) -> Option<NameId> {
        if task == TaskId(0) {
            return None;
        }
        let known = place(&mut self.tasks, task.0);
        Some(*known.get_or_insert_with(|| self.names.intern(names.task(task))))
    }

    fn cgroup(&mut self, memcg: MemcgId, names: &EventNames) -> NameId {
        let known = place(&mut self.cgroups, memcg.0.into());
        *known.get_or_insert_with(|| self.names.intern(names.cgroup(memcg)))
    }

    fn device(&mut self, device: u16) -> NameId {
        let known = place(&mut self.devices, device.into());
        *known.get_or_insert_with(|| self.names.intern(&device_name(device)))
    }

    fn wait_name(&mut self, reason: WaitReason, within: Within) -> NameId {
        if let Some(&id) = self.waits.get(&(reason, within)) {
            return id;
        }
        let wait = sim::kernel_name(reason);
        let path = within.path().collect::<Vec<_>>().join(WITHIN);
        let text = if path.is_empty() { wait.to_owned() } else { format!("{wait} in {path}") };
        let id = self.names.intern(&text);
        self.waits.insert((reason, within), id);
        id
    }

    fn mixed(&mut self, want: MigrateType, from: MigrateType, claimed: bool) -> NameId {
        let names = &mut self.names;
        *self.mixtures.entry((want, from, claimed)).or_insert_with(|| {
            let ending = if claimed { ", which is claimed" } else { "" };
            names.intern(&format!("{want:?} from a block of {from:?} pages{ending}").to_lowercase())
        })
    }
}

/// What every event has.
#[derive(Clone, Copy)]
struct Blank {
    time_ns: u64,
    /// The time as the task has it: with what it owes.
    own_ns: u64,
    task: Option<NameId>,
}

impl Blank {
    fn event(self, event: NameId) -> Event {
        Event { task: self.task, ..Event::new(self.time_ns, event) }
    }
}

/// An event that has lasted so long when it is told.
fn lasted(event: Event, nanos: u64) -> Event {
    Event { time_ns: event.time_ns - nanos, duration_ns: nanos, ..event }
}

fn place<T>(list: &mut Vec<Option<T>>, number: u32) -> &mut Option<T> {
    let index = number as usize;
    if list.len() <= index {
        list.resize_with(index + 1, || None);
    }
    &mut list[index]
}

/// Of which pages a list is.
const fn kind_of_list(file: bool) -> &'static str {
    if file { "file" } else { "anon" }
}

fn shrinker_name(number: u8) -> &'static str {
    sim::shrinker_name(Shrinker::ALL[usize::from(number)])
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
