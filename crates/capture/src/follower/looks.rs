//! What a look at a process's memory found, as operations on its mappings.
//!
//! Looking takes a while and needs nothing of ours, so it is done by itself: [`look_at`], then
//! [`Follower::looked`]. Without root the kernel shows of each page whether it is there and whose it is, and of each
//! mapping how much of it was used since it was asked to forget.

use std::fs::File;
use std::io;

use trace::{NONE, OperationKind};

use super::Follower;
use crate::maps;
use crate::memory::{Referenced, TouchedPart};
use crate::sys::{self, Region};

/// Address after the last that a process may use.
const END: u64 = (1 << 47) - PAGE;
const PAGE: u64 = 4096;

/// What a look found.
#[derive(Debug, Default)]
pub(crate) struct Look {
    found: Vec<Region>,
    pub(crate) used: Vec<Referenced>,
    refused: bool,
}

/// Looks at the memory of a process, by a task of it that is there. With `used`, also at how much was used. Of what is
/// `inherited` only pages that no other process has are its own.
pub(crate) fn look_at(tid: i32, used: bool, inherited: &[(u64, u64)]) -> Look {
    let found = File::open(format!("/proc/{tid}/pagemap")).and_then(|pagemap| {
        let found = sys::scan(&pagemap, 0, END)?;
        if inherited.is_empty() { Ok(found) } else { own_of(&pagemap, &found, inherited) }
    });
    let Ok(found) = found else {
        return Look { refused: true, ..Look::default() };
    };
    let used = if used { maps::used(tid) } else { Vec::new() };
    Look { found, used, refused: false }
}

/// The same without pages that are another process's, too.
fn own_of(pagemap: &File, found: &[Region], inherited: &[(u64, u64)]) -> io::Result<Vec<Region>> {
    let mut own = Vec::new();
    for region in found {
        if !region.categories.is_own() {
            own.push(*region);
            continue;
        }
        let mut from = region.start;
        let first = inherited.partition_point(|(_, end)| *end <= region.start);
        for (start, end) in inherited[first..].iter().take_while(|(start, _)| *start < region.end) {
            let (start, end) = ((*start).max(from), (*end).min(region.end));
            own.push(Region { start: from, end: start, ..*region });
            let alone = sys::alone(pagemap, start, end)?.into_iter();
            own.extend(alone.map(|(start, end)| Region { start, end, ..*region }));
            from = end;
        }
        own.push(Region { start: from, ..*region });
    }
    own.retain(|region| region.start < region.end);
    Ok(own)
}

impl Follower {
    /// Of what a process used: so many milliseconds after it was asked to forget, and how much, several times; the last
    /// is the next look.
    pub(crate) fn sampled(&mut self, pid: i32, points: &[(f64, Vec<Referenced>)]) {
        if let Some(memory) = self.memory_of(pid) {
            memory.sampled(points);
        }
    }

    /// Takes what a look at a process found, so many milliseconds after it was asked to forget what it used.
    pub(crate) fn looked(&mut self, pid: i32, look: &Look, after_ms: f64) {
        let at_ns = self.now_ns();
        let Some(process) = self.processes.get(&pid) else { return };
        if look.refused {
            self.gaps.looks_refused += 1;
            return;
        }
        let (task, memory) = (process.number, process.memory);
        let Some(memory) = self.memories.get_mut(&memory) else { return };
        memory.looks_after(after_ms);
        let is_first = memory.is_first_look();
        let touched = memory.look(&look.found, &look.used);
        let prices = self.pace.prices();
        let price = |one: &TouchedPart| {
            one.part.len / PAGE * if one.written { prices.page_ns } else { prices.file_page_ns }
        };
        let owed: u64 = touched.iter().filter(|one| one.new && !is_first).map(price).sum();
        if let Some(process) = self.processes.get_mut(&pid) {
            process.owed_ns += owed;
        }
        self.gaps.used_again |= !look.used.is_empty();
        for one in touched {
            let Some(mapping) = self.mappings.get(one.part.mapping as usize) else { continue };
            self.gaps.shared_mappings |= mapping.shared && mapping.writable && mapping.file != NONE;
            // Memory that processes share looks like a file; a page of it is there because somebody wrote to it.
            let shared_memory = mapping.shared && mapping.file == NONE;
            let kind = if one.written || shared_memory { OperationKind::Dirty } else { OperationKind::Touch };
            let uses = if one.uses > 1 { one.uses } else { 0 };
            self.note_part(task, kind, one.part, (at_ns, uses));
        }
    }
}
