//! One thing that a task did, and the kinds that there are.
//!
//! An operation is one row of the trace on disk, so all kinds have the same fields; [`OperationKind`] says what
//! each means.

use serde::{Deserialize, Serialize};

/// One thing that a task did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// When it began, in nanoseconds since the trace's beginning.
    pub at_ns: u64,
    /// How long the task computed, and waited for others, before it, since its last operation ended; nanoseconds.
    /// Time in calls that are not in the trace counts, too. Of what a capture saw by looking at memory it is 0: that
    /// happened while the task thought.
    pub think_ns: u64,
    /// How long it took, in nanoseconds; 0 where the source does not tell.
    pub took_ns: u64,
    /// Which task did it.
    pub task: u32,
    /// What it did.
    pub kind: OperationKind,
    /// Number of the file, the mapping or the task that it was done to; see [`OperationKind`].
    pub object: u32,
    /// First byte, of the file or of the mapping.
    pub offset: u64,
    /// Bytes that it came to: of a read, those that were read.
    pub len: u64,
    /// What else there is to say, by kind.
    pub detail: u32,
}

/// What a task did. `object` is a file where nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum OperationKind {
    /// Opened a file; `detail` is a set of flags of [`open`].
    Open,
    /// Closed a file's descriptor: its last one, of this task's process.
    Close,
    /// Read `len` bytes at `offset`: `read`, `pread64`, `readv`, `sendfile`, `splice`, `copy_file_range`.
    Read,
    /// Wrote `len` bytes at `offset`.
    Write,
    /// Waited until a file's dirty pages were on disk: `fsync`, `fdatasync`, `sync_file_range`, `msync`.
    Fsync,
    /// Waited until all dirty pages were on disk: `sync`, `syncfs`; `object` is [`crate::NONE`].
    Sync,
    /// Cut or grew a file to `len` bytes: `truncate`, `fallocate`.
    Truncate,
    /// Removed a file's name.
    Unlink,
    /// Gave a file another name; `detail` is the file that had that name, which is gone then, or
    /// [`crate::NONE`].
    Rename,
    /// Advised on a file's range: `posix_fadvise`; `detail` is a number of [`advice`]. A `len` of 0 is up to the
    /// end.
    AdviseFile,
    /// Read a range ahead: `readahead`.
    ReadAhead,
    /// Mapped memory; `object` is a mapping.
    Map,
    /// Took back `len` bytes at `offset` of a mapping, its `object`.
    Unmap,
    /// Advised on a range of a mapping, its `object`: `madvise`; `detail` is a number of [`advice`].
    AdviseMapping,
    /// Was seen to have read pages of a mapping, its `object`, since the last look: whole pages. `detail` is how often
    /// each, as estimated; 0 and 1 are once.
    Touch,
    /// Was seen to have written to pages of a mapping, its `object`, since the last look: whole pages; `detail` as of
    /// a touch.
    Dirty,
    /// Made a task; `object` is its number.
    Spawn,
    /// Began another program: its process's mappings are gone. `object` is [`crate::NONE`].
    Exec,
    /// Ended; `object` is [`crate::NONE`].
    Exit,
}

impl OperationKind {
    /// All kinds, in the order of their numbers on disk.
    pub const ALL: [Self; 19] = [
        Self::Open,
        Self::Close,
        Self::Read,
        Self::Write,
        Self::Fsync,
        Self::Sync,
        Self::Truncate,
        Self::Unlink,
        Self::Rename,
        Self::AdviseFile,
        Self::ReadAhead,
        Self::Map,
        Self::Unmap,
        Self::AdviseMapping,
        Self::Touch,
        Self::Dirty,
        Self::Spawn,
        Self::Exec,
        Self::Exit,
    ];

    /// The name in the column `operation`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Close => "close",
            Self::Read => "read",
            Self::Write => "write",
            Self::Fsync => "fsync",
            Self::Sync => "sync",
            Self::Truncate => "truncate",
            Self::Unlink => "unlink",
            Self::Rename => "rename",
            Self::AdviseFile => "fadvise",
            Self::ReadAhead => "readahead",
            Self::Map => "mmap",
            Self::Unmap => "munmap",
            Self::AdviseMapping => "madvise",
            Self::Touch => "touch",
            Self::Dirty => "dirty",
            Self::Spawn => "clone",
            Self::Exec => "exec",
            Self::Exit => "exit",
        }
    }

    /// Which table `object` is a number of.
    pub const fn acts_on(self) -> ActsOn {
        match self {
            Self::Map | Self::Unmap | Self::AdviseMapping | Self::Touch | Self::Dirty => ActsOn::Mapping,
            Self::Spawn => ActsOn::Task,
            Self::Sync | Self::Exec | Self::Exit => ActsOn::Nothing,
            _ => ActsOn::File,
        }
    }
}

/// What an operation's `object` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActsOn {
    /// A file.
    File,
    /// A mapping.
    Mapping,
    /// A task.
    Task,
    /// [`crate::NONE`].
    Nothing,
}

/// What a file was opened for: bits of `detail`.
pub mod open {
    /// For reading.
    pub const READ: u32 = 1;
    /// For writing.
    pub const WRITE: u32 = 2;
    /// It was made then.
    pub const CREATED: u32 = 4;
    /// It was cut to nothing then.
    pub const TRUNCATED: u32 = 8;
    /// Past the page cache: `O_DIRECT`.
    pub const DIRECT: u32 = 16;
    /// Writes wait for the disk: `O_SYNC`, `O_DSYNC`.
    pub const SYNC: u32 = 32;
}

/// Numbers of `posix_fadvise(2)` and `madvise(2)`, which are Linux's own.
pub mod advice {
    /// Reads as the kernel thinks best.
    pub const NORMAL: u32 = 0;
    /// Nothing is read ahead.
    pub const RANDOM: u32 = 1;
    /// More is read ahead.
    pub const SEQUENTIAL: u32 = 2;
    /// Read it now.
    pub const WILL_NEED: u32 = 3;
    /// It is not needed any more; anonymous memory is gone.
    pub const DONT_NEED: u32 = 4;
    /// Of files only: once (`POSIX_FADV_NOREUSE`).
    pub const NO_REUSE: u32 = 5;
    /// Of mappings: content may be thrown away (`MADV_FREE`).
    pub const FREE: u32 = 8;
    /// Of mappings: huge pages are wanted (`MADV_HUGEPAGE`).
    pub const HUGE_PAGE: u32 = 14;
    /// Of mappings: huge pages are not wanted (`MADV_NOHUGEPAGE`).
    pub const NO_HUGE_PAGE: u32 = 15;
    /// Of mappings: reclaim it first (`MADV_COLD`).
    pub const COLD: u32 = 20;
    /// Of mappings: reclaim it now (`MADV_PAGEOUT`).
    pub const PAGE_OUT: u32 = 21;
}
