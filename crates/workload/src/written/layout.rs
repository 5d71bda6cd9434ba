//! The files of a workload file on a machine: how many, how large, on which disk.
//!
//! Next: [`super::play`], which makes them.

use std::collections::BTreeMap;

use units::Seed;

use crate::written::definition::{Bound, FileSet, FileState, Place};

/// A file of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LaidFile {
    pub(crate) path: String,
    pub(crate) size: u64,
    /// The same with what lies behind it.
    pub(crate) on_disk: u64,
}

/// The files of one set.
#[derive(Debug, Clone)]
pub(crate) struct LaidSet {
    pub(crate) files: Vec<LaidFile>,
    pub(crate) state: FileState,
    pub(crate) is_many: bool,
    /// Directories that must be there, from the top.
    pub(crate) directories: Vec<Directory>,
}

/// A directory, and how it comes to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Directory {
    Plain(String),
    OnDisk(String, u16),
    InMemory(String),
}

/// Files of one workload, at most.
pub(crate) const FILES_MAX: u64 = 10_000_000;
const IN_MEMORY: &str = "memory";

/// All sets that are there, by name. `disks` are there.
pub(crate) fn lay_out(sets: &[FileSet], bound: &Bound, disks: u16, seed: Seed) -> BTreeMap<String, LaidSet> {
    let there = sets.iter().filter(|set| set.when.holds(bound));
    there.map(|set| (set.name.clone(), laid_set(set, bound, disks, seed))).collect()
}

fn laid_set(set: &FileSet, bound: &Bound, disks: u16, seed: Seed) -> LaidSet {
    let smallest = bound.amount(&set.smallest);
    let largest = set.largest.as_ref().map_or(smallest, |largest| bound.amount(largest)).max(smallest);
    let beyond = set.beyond.as_ref().map_or(0, |beyond| bound.amount(beyond));
    let mut stream = seed.stream(&format!("files/{}/sizes", set.name));
    let mut size =
        || if largest == smallest { smallest } else { smallest + stream.below(largest - smallest + 1) };
    let mut directories = Vec::new();
    let mut on_disk = |disk: u16| match disk {
        0 => String::new(),
        disk => {
            let directory = Directory::OnDisk(format!("disk{disk}"), disk);
            if !directories.contains(&directory) {
                directories.push(directory);
            }
            format!("disk{disk}/")
        }
    };
    let count = set.count.as_ref().map(|count| bound.amount(count));
    let prefix = |number: u64, on_disk: &mut dyn FnMut(u16) -> String| match &set.place {
        Place::Memory => format!("{IN_MEMORY}/"),
        Place::Disk(disk) => on_disk(u16::try_from(bound.amount(disk)).unwrap_or(u16::MAX)),
        Place::AllDisks => on_disk((number % u64::from(disks.max(1))) as u16),
    };
    let mut files = Vec::new();
    let mut own = Vec::new();
    for number in 0..count.unwrap_or(1) {
        let before = prefix(number, &mut on_disk);
        let path = match (&set.place, count) {
            (_, None) => format!("{before}{}", set.name),
            // There are no directories below.
            (Place::Memory, _) => format!("{before}{}-{number:07}", set.name),
            _ => {
                let directory = Directory::Plain(format!("{before}{}", set.name));
                if !own.contains(&directory) {
                    own.push(directory);
                }
                format!("{before}{}/{number:07}", set.name)
            }
        };
        let size = size();
        files.push(LaidFile { path, size, on_disk: size.saturating_add(beyond) });
    }
    if matches!(set.place, Place::Memory) {
        directories.push(Directory::InMemory(IN_MEMORY.to_owned()));
    }
    directories.extend(own);
    LaidSet { files, state: set.state, is_many: count.is_some(), directories }
}
