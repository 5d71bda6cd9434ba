//! What tasks count while they replay a program.

use serde::{Deserialize, Serialize};
use units::{Nanos, PAGE_SIZE};

use crate::system::outcome::Outcome;

/// Of one task, or of several.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    pub(super) operations: u64,
    /// Operations that were not made: what they are on is not replayed, or the backend has no such call.
    pub(super) left_out: u64,
    /// Operations that another task should have come before or after: the file was not there, or there already.
    pub(super) out_of_order: u64,
    pub(super) tasks: u64,
    pub(super) tasks_killed: u64,
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
    /// Pages of reads, and those that were in memory before.
    pub(super) pages: u64,
    pub(super) hits: u64,
    /// Pages of mappings that were read, or written to.
    pub(super) touched: u64,
    pub(super) dirtied: u64,
    /// Nanoseconds in operations, of all tasks together.
    pub(super) in_operations: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.left_out += other.left_out;
        self.out_of_order += other.out_of_order;
        self.tasks += other.tasks;
        self.tasks_killed += other.tasks_killed;
        self.reads += other.reads;
        self.writes += other.writes;
        self.read_bytes += other.read_bytes;
        self.written_bytes += other.written_bytes;
        self.pages += other.pages;
        self.hits += other.hits;
        self.touched += other.touched;
        self.dirtied += other.dirtied;
        self.in_operations += other.in_operations;
    }

    /// A read of `len` bytes at `offset`, of which `hits` pages were in memory.
    pub(super) fn read(&mut self, offset: u64, len: u64, hits: u64) {
        self.reads += 1;
        self.read_bytes += len;
        if len > 0 {
            self.pages += (offset + len).div_ceil(PAGE_SIZE) - offset / PAGE_SIZE;
            self.hits += hits;
        }
    }

    pub(super) fn outcome(&self, length: Nanos) -> Outcome {
        let mut outcome = Outcome::default();
        let numbers = [
            ("operations", self.operations),
            ("operations_left_out", self.left_out),
            ("operations_out_of_order", self.out_of_order),
            ("tasks", self.tasks),
            ("tasks_killed", self.tasks_killed),
            ("requests_read", self.reads),
            ("requests_write", self.writes),
            ("read_bytes", self.read_bytes),
            ("written_bytes", self.written_bytes),
            ("pages_accessed", self.pages),
            ("page_hits", self.hits),
            ("page_misses", self.pages - self.hits),
            ("pages_touched", self.touched),
            ("pages_dirtied", self.dirtied),
        ];
        for (name, value) in numbers {
            outcome.metric(name, value as f64);
        }
        if self.pages > 0 {
            outcome.metric("page_miss_ratio", (self.pages - self.hits) as f64 / self.pages as f64);
        }
        outcome.metric("in_requests_seconds", Nanos(self.in_operations).as_secs_f64());
        outcome.metric("replay_seconds", length.as_secs_f64());
        outcome
    }
}
