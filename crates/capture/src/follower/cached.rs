//! What is in memory of a process's files when we come: told as read ahead at the beginning.

use std::fs::File;
use std::os::fd::AsFd;

use trace::OperationKind;

use super::Follower;
use crate::calls::Descriptor;
use crate::{maps, sys};

/// What one call reads ahead at most on a disk of the usual settings.
const AHEAD: u64 = 128 << 10;
/// Pages that are told of at most, of all files together: 16 GiB.
const PAGES_MAX: u64 = 4 << 20;

impl Follower {
    /// Files that it has open or mapped; each is told once, by whoever has it first.
    pub(super) fn read_cached(&mut self, pid: i32) {
        for fd in maps::descriptors_of(pid) {
            let file = Descriptor::try_from(fd).ok().and_then(|fd| self.file_of(pid, fd));
            if let Some(held) = file {
                self.tell_cached(pid, held.file, &format!("/proc/{pid}/fd/{fd}"));
            }
        }
        for mapped in maps::mappings(pid) {
            let Some(path) = mapped.path else { continue };
            if let Some(file) = self.file_named(pid, &path) {
                self.tell_cached(pid, file, &format!("/proc/{pid}/root{}", path.display()));
            }
        }
    }

    fn tell_cached(&mut self, pid: i32, file: u32, path: &str) {
        if !self.cached.insert(file) || self.files.rows.get(file as usize).is_none_or(|row| row.in_memory) {
            return;
        }
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let Ok((size, opened)) = opened else { return };
        for (start, end) in sys::cached(opened.as_fd(), size).unwrap_or_default() {
            let mut from = start;
            while from < end && self.cached_pages < PAGES_MAX {
                let len = AHEAD.min(end - from);
                self.note(pid, OperationKind::ReadAhead, file, from, len, 0);
                self.cached_pages += len / 4096;
                from += len;
            }
        }
    }
}
