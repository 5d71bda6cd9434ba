//! What a stepped run's memory looks like at one moment, small enough to be kept for many: its zones, the lists of its
//! cgroups, and page frames at even distances.
//!
//! Left out: what is on the disk; per-CPU lists one by one. Neighbours: the parent, for one page of one file and for
//! the files of the kernel.

use mm::base::frame::{FrameState, PageFlags};
use mm::base::ids::{MappingId, MemcgId};
use mm::base::layout::ZoneKind;
use mm::lru::lists::LruList;
use mm::lru::mglru::state::Kind;
use sim::SimMemory;
use units::Pfn;

use super::{LIST_NAMES, Stepping};
use crate::error::LabError;
use mm::alloc::watermark::Mark;

/// A zone, in pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ZoneLook {
    /// Its node.
    pub node: u16,
    /// Its name.
    pub name: &'static str,
    /// What the allocator has of it.
    pub managed: u64,
    /// What is free.
    pub free: u64,
    /// Its watermarks `min`, `low` and `high`, as boosted.
    pub marks: [u64; 3],
}

/// A list of a cgroup, over all nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListLook {
    /// Path of the cgroup; empty for the root.
    pub cgroup: String,
    /// The list, by the name in `/proc/vmstat` without `nr_`; `anon` or `file` where there are generations.
    pub list: &'static str,
    /// Its generation, of the first node.
    pub generation: Option<u64>,
    /// Pages on it.
    pub pages: u64,
}

/// What a frame is used for; the order is that of maps, from what is free to what cannot be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Use {
    /// Never the allocator's.
    Reserved,
    /// In a free block.
    Free,
    /// On a per-CPU list.
    PerCpu,
    /// The kernel's own: slab, page tables, or on the way to its first list.
    Kernel,
    /// Anonymous memory that is not active.
    InactiveAnon,
    /// Anonymous memory that is active.
    ActiveAnon,
    /// Page cache that is not active.
    InactiveFile,
    /// Page cache that is active.
    ActiveFile,
    /// Locked, or else not to be reclaimed.
    Unevictable,
}

impl Use {
    /// All, in their order.
    pub const ALL: [(Self, &'static str); 9] = [
        (Self::Reserved, "reserved"),
        (Self::Free, "free"),
        (Self::PerCpu, "on a per-CPU list"),
        (Self::Kernel, "kernel"),
        (Self::InactiveAnon, "inactive_anon"),
        (Self::ActiveAnon, "active_anon"),
        (Self::InactiveFile, "inactive_file"),
        (Self::ActiveFile, "active_file"),
        (Self::Unevictable, "unevictable"),
    ];
}

/// A frame, and which page it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameLook {
    /// What it is used for.
    pub used: Use,
    /// Whether its page is to be written, or being written.
    pub dirty: bool,
    /// Whether reclaim or compaction has it in its hands.
    pub isolated: bool,
    /// The file or the anonymous memory that it holds a page of, by its number, and which page.
    pub page: Option<(Home, u32)>,
    /// The cgroup that it is charged to, by its number.
    pub cgroup: u16,
}

/// Where a page belongs. Numbers are given again when a file has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// The page cache of a file.
    File(u32),
    /// Anonymous memory.
    Anon,
}

/// What of a file is in the page cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLook {
    /// Its path.
    pub path: String,
    /// Its number, as in [`Home::File`].
    pub number: u32,
    /// Pages.
    pub pages: u64,
}

/// Files that are told apart at most, and names that are looked at for them.
const FILES_MAX: usize = 64;

/// The memory of a run at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The zones.
    pub zones: Vec<ZoneLook>,
    /// The lists that are not empty.
    pub lists: Vec<ListLook>,
    /// The files in memory, by their paths; none of them where there are many.
    pub files: Vec<FileLook>,
    /// The frames at the places of [`Stepping::places`].
    pub frames: Vec<FrameLook>,
}

impl Stepping {
    /// `count` frame numbers at even distances, or those of all frames if there are fewer.
    ///
    /// # Errors
    /// As [`Stepping::now`].
    pub fn places(&self, count: usize) -> Result<Vec<Pfn>, LabError> {
        let all = self.run()?.memory(|memory| memory.core.alloc.frames.len());
        // Of a program of 32 bits, too.
        let (all, count) = (all as u64, count.min(all) as u64);
        Ok((0..count).map(|place| Pfn((place * all / count) as u32)).collect())
    }

    /// The memory as it is now, with the frames at `places`.
    ///
    /// # Errors
    /// As [`Stepping::now`].
    pub fn look(&self, places: &[Pfn]) -> Result<Look, LabError> {
        let run = self.run()?;
        let files = run.files(FILES_MAX).unwrap_or_default();
        Ok(run.memory(|memory| Look {
            zones: zones(memory),
            lists: lists(memory),
            files: files.into_iter().map(|(path, mapping)| file(memory, path, mapping)).collect(),
            frames: places.iter().map(|&pfn| frame(memory, pfn)).collect(),
        }))
    }

    /// Paths of all cgroups there have been, by their numbers; the root's is empty.
    ///
    /// # Errors
    /// As [`Stepping::now`].
    pub fn cgroups(&self) -> Result<Vec<String>, LabError> {
        Ok(self.run()?.memory(|memory| {
            let groups = &memory.core.cgroups;
            groups.ids().map(|id| groups[id].path.clone()).collect()
        }))
    }
}

fn zones(memory: &SimMemory) -> Vec<ZoneLook> {
    let zones = memory.core.alloc.zones().iter().map(|zone| ZoneLook {
        node: zone.node.0.into(),
        name: zone.kind.name(),
        managed: zone.managed.0,
        free: zone.free_pages().0,
        marks: [Mark::Min, Mark::Low, Mark::High].map(|mark| zone.watermarks.mark(mark)),
    });
    zones.collect()
}

fn lists(memory: &SimMemory) -> Vec<ListLook> {
    let mut found: Vec<ListLook> = Vec::new();
    let groups = &memory.core.cgroups;
    for id in groups.ids().filter(|&id| id == MemcgId::ROOT || groups[id].online) {
        let first = found.len();
        let mut add = |list, generation, pages| {
            let same = |look: &&mut ListLook| look.list == list && look.generation == generation;
            match found[first..].iter_mut().find(same) {
                Some(look) => look.pages += pages,
                None if pages > 0 => {
                    found.push(ListLook { cgroup: groups[id].path.clone(), list, generation, pages });
                }
                None => {}
            }
        };
        for node in memory.nodes() {
            let lruvec = memory.lru.lruvec(id, node);
            match lruvec.gens() {
                None => LruList::ALL.iter().zip(LIST_NAMES).for_each(|(&of, name)| {
                    add(name, None, lruvec.size(of, ZoneKind::ALL[ZoneKind::COUNT - 1]));
                }),
                Some(gens) => {
                    for (kind, name) in [(Kind::Anon, "anon"), (Kind::File, "file")] {
                        for seq in gens.min_seq(kind)..=gens.max_seq() {
                            add(name, Some(seq), gens.pages_of(kind, seq));
                        }
                    }
                }
            }
        }
    }
    found
}

fn file(memory: &SimMemory, path: String, mapping: MappingId) -> FileLook {
    FileLook { path, number: mapping.0, pages: memory.cache.trees().pages(mapping) }
}

/// The head of the block that `pfn` is in: the largest one that covers it, as frames behind a head say nothing.
fn head(memory: &SimMemory, pfn: Pfn) -> Pfn {
    let frames = &memory.core.alloc.frames;
    let covers = |order: u32| {
        let head = Pfn(pfn.0 & !((1 << order) - 1));
        let used = !matches!(frames.state(head), FrameState::Reserved | FrameState::Tail);
        (used && frames.pages(head) > pfn.0 - head.0).then_some(head)
    };
    (0..=MAX_ORDER).rev().find_map(covers).unwrap_or(pfn)
}

/// No block is larger than 2 to this.
const MAX_ORDER: u32 = 10;

fn frame(memory: &SimMemory, pfn: Pfn) -> FrameLook {
    let head = head(memory, pfn);
    let frames = &memory.core.alloc.frames;
    let (state, flags) = (frames.state(head), frames.flags(head));
    let used = match state {
        FrameState::Reserved => Use::Reserved,
        FrameState::Free => Use::Free,
        FrameState::Pcp => Use::PerCpu,
        FrameState::InUse | FrameState::Tail => Use::Kernel,
        FrameState::Batch | FrameState::Lru | FrameState::Isolated => match LruList::of(flags) {
            LruList::InactiveAnon => Use::InactiveAnon,
            LruList::ActiveAnon => Use::ActiveAnon,
            LruList::InactiveFile => Use::InactiveFile,
            LruList::ActiveFile => Use::ActiveFile,
            LruList::Unevictable => Use::Unevictable,
        },
    };
    let is_page = frames.is_lru_page(head);
    let home = if frames.is_anon(head) { Home::Anon } else { Home::File(frames.owner(head)) };
    FrameLook {
        used,
        dirty: is_page && flags.has_any(PageFlags::DIRTY.set(PageFlags::WRITEBACK)),
        isolated: state == FrameState::Isolated,
        page: is_page.then(|| (home, frames.index(head) + (pfn.0 - head.0))),
        cgroup: if is_page { memory.page_memcg(head).0 } else { 0 },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use units::Nanos;

    use super::*;
    use crate::resolve::request::{Request, Subject};

    /// What is seen of all frames is what the kernel counts.
    #[test]
    fn frames_and_lists_add_up_to_the_counters() {
        let mut request = Request::new(Subject::Workload("hot-and-stream".to_owned()));
        request.mem = Some("64M".to_owned());
        request.params = vec!["hot=4M".to_owned(), "stream=64M".to_owned()];
        let stop = Arc::new(AtomicBool::new(false));
        let mut run = Stepping::begin(&request.resolve().unwrap(), "run", &stop, |_| {}).unwrap();
        run.run_until(Nanos(40_000_000)).unwrap();
        let places = run.places(usize::MAX).unwrap();
        let (look, vmstat) = (run.look(&places).unwrap(), run.vmstat().unwrap());
        for list in LIST_NAMES {
            let of_it = look.lists.iter().filter(|look| look.list == list);
            assert_eq!(of_it.map(|look| look.pages).sum::<u64>(), vmstat[&format!("nr_{list}")], "{list}");
        }
        let frames = |used| look.frames.iter().filter(|frame| frame.used == used).count() as u64;
        let pages = vmstat["nr_active_file"] + vmstat["nr_inactive_file"];
        assert!(pages > 0 && frames(Use::InactiveFile) + frames(Use::ActiveFile) >= pages);
        let files: u64 = look.files.iter().map(|file| file.pages).sum();
        assert_eq!(look.files.iter().map(|file| &file.path[..]).collect::<Vec<_>>(), ["hot", "stream"]);
        // The rest is the disk's own: tables of inodes, directories.
        let cached = vmstat["nr_file_pages"];
        assert!((cached * 9 / 10..=cached).contains(&files), "{:?} of {cached}", look.files);
        assert_eq!(frames(Use::Free), look.zones.iter().map(|zone| zone.free).sum::<u64>());
    }
}
