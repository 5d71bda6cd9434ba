//! How warm memory is: ages of resident pages over time, and where in files accesses and pages are.
//!
//! ```text
//!   pages by age        slice 0   1   2   3        region of a file   slice 0   1   2   3
//!     below 100 ms          40   38   2   0          pages 0..512          9   0   0   0
//!     100 ms to 1 s          0    2  36   1          512..1024             0   9   0   7
//!     1 s and more           0    0   2  39          1024..1536            0   0   9   0
//! ```
//! An age is the time since the last access by `read` or, where that counts, `write`; before the first one, since
//! the page came into the cache. It is known to the slice of time, of which a run has [`SLICES_MAX`] at most.
//! A file has [`REGIONS_MAX`] regions at most, whose size doubles as the file turns out to be longer.
//!
//! One pass over events in the order in which they were told, in any chunks; memory is bounded by the pages that
//! are in the cache at a time. Left out: anonymous memory, which has no accesses here, and block devices with
//! the metadata on them. Files beyond the first [`FILES_TRACKED`] are only counted.

use std::collections::BTreeMap;

use recording::events::{ANONYMOUS, Event, NameId, Names};

/// Slices of time at most.
pub const SLICES_MAX: u64 = 100;
/// Regions of a file at most.
pub const REGIONS_MAX: usize = 32;
/// Files whose regions are followed, the first ones that are read.
pub const FILES_TRACKED: usize = 256;
/// Files that are told, those with the most accesses.
pub const FILES_TOLD: usize = 6;

/// What the events of a run say of where memory is warm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heat {
    /// Length of a slice of time.
    pub slice_ns: u64,
    /// How many there are.
    pub slices: usize,
    /// Ages from and to; the last class is open.
    pub age_classes: Vec<(u64, Option<u64>)>,
    /// One for each cgroup that has pages, by path.
    pub ages: Vec<AgeMap>,
    /// The files with the most accesses, the most accessed first.
    pub files: Vec<FileHeat>,
    /// Files that were accessed, too.
    pub other_files: usize,
}

/// Ages of the pages of one cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgeMap {
    /// Its path; empty for the root.
    pub cgroup: String,
    /// Resident file pages at the end of each slice, by age class.
    pub pages: Vec<Vec<u64>>,
}

/// Where in a file accesses and pages are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHeat {
    /// Its path.
    pub file: String,
    /// Pages of a region.
    pub region_pages: u64,
    /// Accesses in pages, by region and slice.
    pub accessed: Vec<Vec<u64>>,
    /// Resident pages at the end of each slice, by region.
    pub resident: Vec<Vec<u64>>,
}

/// A resident page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Page {
    /// Slice of its last access, from 1; 0: it is not resident.
    last: u32,
    /// Its cgroup, as a place in [`HeatBuilder::groups`].
    group: u32,
}

const ABSENT: Page = Page { last: 0, group: 0 };
/// Pages of a file are kept in blocks, as files may be long and read here and there.
const BLOCK: u64 = 512;

type Blocks = BTreeMap<(NameId, u64), Box<[Page; BLOCK as usize]>>;

/// Resident pages of a cgroup.
#[derive(Debug, Default)]
struct Group {
    /// By slice of their last access.
    by_last: Vec<u64>,
    pages: Vec<Vec<u64>>,
}

/// Regions of a file so far.
#[derive(Debug)]
struct Regions {
    region_pages: u64,
    accessed: Vec<Vec<u64>>,
    resident_now: Vec<u64>,
    resident: Vec<Vec<u64>>,
    accesses: u64,
}

/// The events that matter here, as numbers of their names.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    added: Option<NameId>,
    deleted: Option<NameId>,
    accessed: Option<NameId>,
}

/// Takes events one after the other.
#[derive(Debug)]
pub struct HeatBuilder {
    slice_ns: u64,
    slices: usize,
    classes: Vec<(u64, Option<u64>)>,
    /// The slice that events are in.
    now: usize,
    known: Known,
    blocks: Blocks,
    group_of: BTreeMap<Option<NameId>, u32>,
    groups: Vec<Group>,
    files: BTreeMap<NameId, Regions>,
    untracked: std::collections::BTreeSet<NameId>,
}

impl HeatBuilder {
    /// For a run of this length.
    pub fn new(simulated_ns: u64) -> Self {
        let slice_ns = round_up((simulated_ns / SLICES_MAX).max(1));
        let slices = usize::try_from(simulated_ns.div_ceil(slice_ns)).expect("a hundred at most").max(1);
        Self {
            slice_ns,
            slices,
            classes: classes(slice_ns, simulated_ns),
            now: 0,
            known: Known::default(),
            blocks: Blocks::new(),
            group_of: BTreeMap::new(),
            groups: Vec::new(),
            files: BTreeMap::new(),
            untracked: std::collections::BTreeSet::new(),
        }
    }

    /// Takes the next event; `names` are those of all before and perhaps more.
    pub fn take(&mut self, names: &Names, event: &Event) {
        let (Some(file), Some(first)) = (event.file, event.page) else { return };
        let is_file = !names.text(file).starts_with(DEVICE) && !names.text(file).starts_with(ANONYMOUS);
        if !self.is_known(names, event.event) || !is_file {
            return;
        }
        self.advance(usize::try_from(event.time_ns / self.slice_ns).unwrap_or(usize::MAX));
        let kind = Some(event.event);
        let last = if kind == self.known.deleted { 0 } else { self.slice_number() };
        let group = self.group(event.cgroup);
        for page in first..first + u64::from(event.pages) {
            self.set(file, page, Page { last, group });
        }
        if kind == self.known.accessed {
            self.access(file, first, u64::from(event.pages));
        }
    }

    /// What all events together say.
    pub fn finish(mut self, names: &Names) -> Heat {
        self.advance(self.slices);
        let mut ages: Vec<AgeMap> = Vec::new();
        for (name, index) in &self.group_of {
            let cgroup = name.map_or("", |name| names.text(name)).to_owned();
            ages.push(AgeMap { cgroup, pages: std::mem::take(&mut self.groups[*index as usize].pages) });
        }
        ages.sort_by(|one, other| one.cgroup.cmp(&other.cgroup));
        let accessed = self.files.values().filter(|regions| regions.accesses > 0).count();
        let mut files: Vec<(&str, Regions)> =
            self.files.into_iter().map(|(name, regions)| (names.text(name), regions)).collect();
        files.sort_by(|(name, one), (other_name, other)| {
            (other.accesses, name).cmp(&(one.accesses, other_name))
        });
        files.truncate(FILES_TOLD);
        files.retain(|(_, regions)| regions.accesses > 0);
        let other_files = accessed - files.len() + self.untracked.len();
        let told = |(name, regions): (&str, Regions)| FileHeat {
            file: name.to_owned(),
            region_pages: regions.region_pages,
            accessed: regions.accessed,
            resident: regions.resident,
        };
        Heat {
            slice_ns: self.slice_ns,
            slices: self.slices,
            age_classes: self.classes,
            ages,
            files: files.into_iter().map(told).collect(),
            other_files,
        }
    }

    fn is_known(&mut self, names: &Names, event: NameId) -> bool {
        let known = &mut self.known;
        for (place, name) in [
            (&mut known.added, "mm_filemap_add_to_page_cache"),
            (&mut known.deleted, "mm_filemap_delete_from_page_cache"),
            (&mut known.accessed, "page_accessed"),
        ] {
            if place.is_none() {
                *place = names.find(name);
            }
        }
        [known.added, known.deleted, known.accessed].contains(&Some(event))
    }

    fn slice_number(&self) -> u32 {
        u32::try_from(self.now + 1).expect("a hundred at most")
    }

    fn group(&mut self, cgroup: Option<NameId>) -> u32 {
        if let Some(&index) = self.group_of.get(&cgroup) {
            return index;
        }
        let index = u32::try_from(self.groups.len()).expect("few cgroups");
        let pages = vec![vec![0; self.classes.len()]; self.now];
        self.groups.push(Group { by_last: vec![0; self.slices + 2], pages });
        self.group_of.insert(cgroup, index);
        index
    }

    /// A page comes, is accessed or goes.
    fn set(&mut self, file: NameId, page: u64, new: Page) {
        let block =
            self.blocks.entry((file, page / BLOCK)).or_insert_with(|| Box::new([ABSENT; BLOCK as usize]));
        let place = &mut block[(page % BLOCK) as usize];
        let old = std::mem::replace(place, if new.last == 0 { ABSENT } else { new });
        if old.last > 0 {
            self.groups[old.group as usize].by_last[old.last as usize] -= 1;
        }
        if new.last > 0 {
            self.groups[new.group as usize].by_last[new.last as usize] += 1;
        }
        let change = i64::from(new.last > 0) - i64::from(old.last > 0);
        if change != 0
            && let Some(regions) = self.regions(file)
        {
            let region = regions.region(page);
            let now = &mut regions.resident_now[region];
            *now = now.saturating_add_signed(change);
        }
    }

    fn access(&mut self, file: NameId, first: u64, pages: u64) {
        let now = self.now;
        let Some(regions) = self.regions(file) else { return };
        for page in first..first + pages {
            let region = regions.region(page);
            regions.accessed[region][now] += 1;
        }
        regions.accesses += pages;
    }

    /// The regions of a file, if it is among those that are followed.
    fn regions(&mut self, file: NameId) -> Option<&mut Regions> {
        if !self.files.contains_key(&file) && self.files.len() >= FILES_TRACKED {
            self.untracked.insert(file);
            return None;
        }
        let slices = self.slices;
        Some(self.files.entry(file).or_insert_with(|| Regions::new(slices)))
    }

    /// Ends slices up to this one.
    fn advance(&mut self, slice: usize) {
        while self.now < slice.min(self.slices) {
            let ages: Vec<usize> = (0..=self.now).map(|age| self.class(age)).collect();
            for group in &mut self.groups {
                let mut pages = vec![0; self.classes.len()];
                for (last, &count) in group.by_last[1..].iter().take(ages.len()).enumerate() {
                    pages[ages[self.now - last]] += count;
                }
                group.pages.push(pages);
            }
            for regions in self.files.values_mut() {
                for (region, &pages) in regions.resident_now.iter().enumerate() {
                    regions.resident[region][self.now] = pages;
                }
            }
            self.now += 1;
        }
        self.now = self.now.min(self.slices - 1);
    }

    /// The class of an age in slices.
    fn class(&self, age: usize) -> usize {
        let age = age as u64 * self.slice_ns;
        self.classes.iter().rposition(|&(from, _)| from <= age).unwrap_or(0)
    }
}

/// What block devices are called in events.
const DEVICE: &str = "block device ";

impl Regions {
    fn new(slices: usize) -> Self {
        Self {
            region_pages: 1,
            accessed: vec![vec![0; slices]; REGIONS_MAX],
            resident_now: vec![0; REGIONS_MAX],
            resident: vec![vec![0; slices]; REGIONS_MAX],
            accesses: 0,
        }
    }

    /// The region of a page; regions become longer until it is in the last one at most.
    fn region(&mut self, page: u64) -> usize {
        while page / self.region_pages >= REGIONS_MAX as u64 {
            self.region_pages *= 2;
            for table in [&mut self.accessed, &mut self.resident] {
                for region in 0..REGIONS_MAX / 2 {
                    let pair = [2 * region, (2 * region) + 1].map(|other| std::mem::take(&mut table[other]));
                    table[region] = pair[0].iter().zip(&pair[1]).map(|(one, other)| one + other).collect();
                }
                let slices = table[0].len();
                table[REGIONS_MAX / 2..].iter_mut().for_each(|row| *row = vec![0; slices]);
            }
            for region in 0..REGIONS_MAX / 2 {
                self.resident_now[region] =
                    self.resident_now[2 * region] + self.resident_now[(2 * region) + 1];
            }
            self.resident_now[REGIONS_MAX / 2..].fill(0);
        }
        usize::try_from(page / self.region_pages).expect("below REGIONS_MAX")
    }
}

/// The next number of the series 1, 2, 5, 10, 20, ...
fn round_up(nanos: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        for step in [1, 2, 5] {
            if step * power >= nanos {
                return step * power;
            }
        }
        power *= 10;
    }
}

/// Classes from one slice to the length of the run, each about three times as long as the one before.
fn classes(slice_ns: u64, simulated_ns: u64) -> Vec<(u64, Option<u64>)> {
    let mut edges = vec![0, slice_ns];
    for factor in [3, 10, 30] {
        if factor * slice_ns < simulated_ns {
            edges.push(factor * slice_ns);
        }
    }
    (0..edges.len()).map(|index| (edges[index], edges.get(index + 1).copied())).collect()
}

#[cfg(test)]
mod tests;
