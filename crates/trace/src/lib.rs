//! What a program and its children did to files and memory: a trace that can be replayed on any kernel.
//!
//! Start with [`Trace`]: tasks, files and mappings by number, and the [`Operation`]s on them in order of time.
//! [`Trace::check`] tells whether it can be replayed.
//!
//! Left out: content of files, sockets, pipes, and the calls that touch neither files nor memory. What a program
//! touched of a mapping is sampled, not followed: [`Trace::sampled_every_ns`] says how often.
//! How a trace lies on disk is in the crate `recording`.
//!
//! Requests to a device or a cache, without a program, are in [`requests`]: start there with
//! [`requests::TraceReader`]. [`import`] makes traces of what strace, perf trace, blkparse, fio and DAMON wrote.

mod check;
pub mod import;
pub mod info;
mod operation;
pub mod requests;

use serde::{Deserialize, Serialize};

pub use check::{Broken, BrokenTrace};
pub use operation::{ActsOn, Operation, OperationKind, advice, open};

/// A number that stands for "none" where a table or an operation names another row.
pub const NONE: u32 = u32::MAX;

/// [`Trace::source`] of a command that was followed from its start: its line is [`Trace::command`], for a shell.
pub const CAPTURED: &str = "capture";

/// A program's operations, and what they are on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// Where it comes from: `capture`, `strace`, `perf-trace`, `blkparse`, `fio`, `damon`.
    pub source: String,
    /// The command that was captured, or the file that was imported.
    pub command: String,
    /// How long it lasted, from the first task's start to the last one's end, in nanoseconds.
    pub length_ns: u64,
    /// How often touched pages of mappings were looked at, in nanoseconds; 0 where they never were.
    pub sampled_every_ns: u64,
    /// What is known to be missing, in sentences for the reader: events lost, calls that could not be read.
    pub gaps: Vec<String>,
    /// Tasks by their number; the first is the program itself.
    pub tasks: Vec<TraceTask>,
    /// Files by their number.
    pub files: Vec<TraceFile>,
    /// Mappings by their number: each call of `mmap(2)` makes a new one.
    pub mappings: Vec<TraceMapping>,
    /// In order of time; at one time, in the order in which they were seen.
    pub operations: Vec<Operation>,
}

/// A thread or process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceTask {
    /// Its thread ID when it ran; 0 where the source does not tell.
    pub tid: u32,
    /// The number of the task that made it; [`NONE`] for the first, or where the source does not tell.
    pub parent: u32,
    /// The number of the first task of its process: tasks with the same share memory. A process is a task whose
    /// `process` is its own number.
    pub process: u32,
    /// The program's name, as `comm`; the last one where it changed.
    pub name: String,
}

/// A regular file, or a device that was read as one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFile {
    /// Its absolute path when it was first opened.
    pub path: String,
    /// Its bytes when it was first opened; of a file that the program made, 0.
    pub size_bytes: u64,
    /// Whether it lies in memory only: tmpfs, `memfd`.
    pub in_memory: bool,
}

/// A mapping of memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceMapping {
    /// The file's number; [`NONE`] for anonymous memory.
    pub file: u32,
    /// Where in the file it begins, in bytes.
    pub file_offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// Whether writes reach the file or other tasks: `MAP_SHARED`.
    pub shared: bool,
    /// Whether it may be written to: `PROT_WRITE`.
    pub writable: bool,
    /// Whether code runs in it: `PROT_EXEC`.
    pub executable: bool,
}
