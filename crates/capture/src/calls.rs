//! The system calls that matter, each with what it does in our terms: one table for the filter and for reading
//! arguments.
//!
//! The new numbers of `dup` and `fcntl(F_DUPFD)` were closed before and are looked up when they are used. Left out
//! on purpose: `lseek`, because the kernel is asked where a file stands; `chdir`, because paths are looked up through
//! the task's own folder in `/proc`.

/// A descriptor, a folder's descriptor, a path's address.
pub(crate) type Descriptor = i32;

/// How a call is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Its beginning is noted, what it comes to is worked out: it costs least.
    Noted,
    /// Its end is waited for, too.
    Followed,
}

/// How many bytes a call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// So many.
    Bytes(u64),
    /// As many as the buffers at this address, of this number, hold: `struct iovec`.
    Vectors(u64, u64),
}

/// A place in memory that names a path, from a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PathAt {
    /// The folder's descriptor, or `AT_FDCWD`.
    pub(crate) folder: Descriptor,
    /// Where the path lies in the task's memory.
    pub(crate) address: u64,
}

/// A new mapping's arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MapCall {
    /// `PROT_...`.
    pub(crate) protection: u32,
    /// `MAP_...`.
    pub(crate) flags: u32,
    /// The file's descriptor.
    pub(crate) fd: Descriptor,
    /// Bytes.
    pub(crate) len: u64,
    /// Where in the file.
    pub(crate) offset: u64,
}

/// A file of a copy: its descriptor, and where its position lies in memory; 0 for its own position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CopyEnd {
    /// The descriptor.
    pub(crate) fd: Descriptor,
    /// Address of its position.
    pub(crate) offset_at: u64,
}

/// What a task asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Transfer {
        fd: Descriptor,
        write: bool,
        wanted: Wanted,
        at: Option<u64>,
    },
    Open {
        path: PathAt,
        flags: u64,
    },
    /// `openat2`: where its flags lie.
    OpenHow {
        path: PathAt,
        address: u64,
    },
    Close {
        fd: Descriptor,
    },
    CloseRange {
        first: u32,
        last: u32,
        flags: u32,
    },
    /// `dup2`, `dup3`: this number is closed first.
    Replace {
        fd: Descriptor,
    },
    Copy {
        from: CopyEnd,
        to: CopyEnd,
    },
    /// A copy whose length is found later, by where its source stands then.
    Send {
        from: CopyEnd,
        to: CopyEnd,
        len: u64,
    },
    Advise {
        fd: Descriptor,
        offset: u64,
        len: u64,
        advice: u32,
    },
    ReadAhead {
        fd: Descriptor,
        offset: u64,
        len: u64,
    },
    Cut {
        fd: Descriptor,
        len: u64,
    },
    CutPath {
        path: PathAt,
        len: u64,
    },
    Allocate {
        fd: Descriptor,
        mode: u32,
        end: u64,
    },
    Sync {
        fd: Descriptor,
    },
    SyncAll,
    Unlink {
        path: PathAt,
    },
    Rename {
        from: PathAt,
        to: PathAt,
        flags: u32,
    },
    Map(MapCall),
    Unmap {
        start: u64,
        len: u64,
    },
    Remap {
        start: u64,
        old_len: u64,
        len: u64,
        flags: u32,
    },
    Break {
        end: u64,
    },
    AdviseMemory {
        start: u64,
        len: u64,
        advice: u32,
    },
    SyncMemory {
        start: u64,
    },
    /// A number is given to a file by another way than opening, or another program is to run: what was opened
    /// before is to be looked at now.
    Settle,
    /// What goes past every call that is looked at.
    Unseen(&'static str),
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Known {
    /// The call's number.
    pub(crate) number: libc::c_long,
    /// How it is followed.
    pub(crate) way: Way,
    /// What its arguments mean.
    pub(crate) read: fn([u64; 6]) -> Call,
}

impl Known {
    /// Whether it sends a file.
    pub(crate) fn sends(&self) -> bool {
        matches!((self.read)([0; 6]), Call::Send { .. })
    }

    /// Whether it makes a descriptor of a file's path.
    pub(crate) fn opens(&self) -> bool {
        matches!((self.read)([0; 6]), Call::Open { .. } | Call::OpenHow { .. })
    }
}

const HERE: Descriptor = libc::AT_FDCWD;

const fn fd(argument: u64) -> Descriptor {
    argument as u32 as i32 // The kernel takes the lower half.
}

const fn path(folder: u64, address: u64) -> PathAt {
    PathAt { folder: fd(folder), address }
}

const fn here(address: u64) -> PathAt {
    PathAt { folder: HERE, address }
}

const fn bytes(a: [u64; 6], write: bool, at: Option<u64>) -> Call {
    Call::Transfer { fd: fd(a[0]), write, wanted: Wanted::Bytes(a[2]), at }
}

const fn vectors(a: [u64; 6], write: bool, at: Option<u64>) -> Call {
    // An offset of -1 in the newest form is the file's own position.
    let at = match at {
        Some(u64::MAX) => None,
        at => at,
    };
    Call::Transfer { fd: fd(a[0]), write, wanted: Wanted::Vectors(a[1], a[2]), at }
}

const fn noted(number: libc::c_long, read: fn([u64; 6]) -> Call) -> Known {
    Known { number, way: Way::Noted, read }
}

const fn followed(number: libc::c_long, read: fn([u64; 6]) -> Call) -> Known {
    Known { number, way: Way::Followed, read }
}

/// All of them, those that programs make most first.
pub(crate) const KNOWN: &[Known] = &[
    noted(libc::SYS_read, |a| bytes(a, false, None)),
    noted(libc::SYS_write, |a| bytes(a, true, None)),
    noted(libc::SYS_pread64, |a| bytes(a, false, Some(a[3]))),
    noted(libc::SYS_pwrite64, |a| bytes(a, true, Some(a[3]))),
    noted(libc::SYS_close, |a| Call::Close { fd: fd(a[0]) }),
    noted(libc::SYS_openat, |a| Call::Open { path: path(a[0], a[1]), flags: a[2] }),
    noted(libc::SYS_open, |a| Call::Open { path: here(a[0]), flags: a[1] }),
    followed(libc::SYS_mmap, |a| {
        let (protection, flags) = (a[2] as u32, a[3] as u32);
        Call::Map(MapCall { protection, flags, fd: fd(a[4]), len: a[1], offset: a[5] })
    }),
    noted(libc::SYS_munmap, |a| Call::Unmap { start: a[0], len: a[1] }),
    noted(libc::SYS_madvise, |a| Call::AdviseMemory { start: a[0], len: a[1], advice: a[2] as u32 }),
    noted(libc::SYS_brk, |a| Call::Break { end: a[0] }),
    noted(libc::SYS_readv, |a| vectors(a, false, None)),
    noted(libc::SYS_writev, |a| vectors(a, true, None)),
    noted(libc::SYS_preadv, |a| vectors(a, false, Some(a[3]))),
    noted(libc::SYS_pwritev, |a| vectors(a, true, Some(a[3]))),
    noted(libc::SYS_preadv2, |a| vectors(a, false, Some(a[3]))),
    noted(libc::SYS_pwritev2, |a| vectors(a, true, Some(a[3]))),
    noted(libc::SYS_dup2, |a| Call::Replace { fd: fd(a[1]) }),
    noted(libc::SYS_dup3, |a| Call::Replace { fd: fd(a[1]) }),
    noted(libc::SYS_close_range, |a| Call::CloseRange {
        first: a[0] as u32,
        last: a[1] as u32,
        flags: a[2] as u32,
    }),
    noted(libc::SYS_fadvise64, |a| Call::Advise {
        fd: fd(a[0]),
        offset: a[1],
        len: a[2],
        advice: a[3] as u32,
    }),
    noted(libc::SYS_readahead, |a| Call::ReadAhead { fd: fd(a[0]), offset: a[1], len: a[2] }),
    noted(libc::SYS_ftruncate, |a| Call::Cut { fd: fd(a[0]), len: a[1] }),
    followed(libc::SYS_fallocate, |a| Call::Allocate {
        fd: fd(a[0]),
        mode: a[1] as u32,
        end: a[2].saturating_add(a[3]),
    }),
    noted(libc::SYS_creat, |a| Call::Open {
        path: here(a[0]),
        flags: (libc::O_CREAT | libc::O_TRUNC | libc::O_WRONLY) as u64,
    }),
    noted(libc::SYS_openat2, |a| Call::OpenHow { path: path(a[0], a[1]), address: a[2] }),
    followed(libc::SYS_mremap, |a| Call::Remap { start: a[0], old_len: a[1], len: a[2], flags: a[3] as u32 }),
    followed(libc::SYS_fsync, |a| Call::Sync { fd: fd(a[0]) }),
    followed(libc::SYS_fdatasync, |a| Call::Sync { fd: fd(a[0]) }),
    followed(libc::SYS_sync_file_range, |a| Call::Sync { fd: fd(a[0]) }),
    followed(libc::SYS_sync, |_| Call::SyncAll),
    followed(libc::SYS_syncfs, |_| Call::SyncAll),
    followed(libc::SYS_msync, |a| Call::SyncMemory { start: a[0] }),
    followed(libc::SYS_truncate, |a| Call::CutPath { path: here(a[0]), len: a[1] }),
    followed(libc::SYS_unlink, |a| Call::Unlink { path: here(a[0]) }),
    followed(libc::SYS_unlinkat, |a| Call::Unlink { path: path(a[0], a[1]) }),
    followed(libc::SYS_rename, |a| Call::Rename { from: here(a[0]), to: here(a[1]), flags: 0 }),
    followed(libc::SYS_renameat, |a| Call::Rename { from: path(a[0], a[1]), to: path(a[2], a[3]), flags: 0 }),
    followed(libc::SYS_renameat2, |a| Call::Rename {
        from: path(a[0], a[1]),
        to: path(a[2], a[3]),
        flags: a[4] as u32,
    }),
    noted(libc::SYS_sendfile, |a| Call::Send {
        from: CopyEnd { fd: fd(a[1]), offset_at: a[2] },
        to: CopyEnd { fd: fd(a[0]), offset_at: 0 },
        len: a[3],
    }),
    followed(libc::SYS_splice, |a| Call::Copy {
        from: CopyEnd { fd: fd(a[0]), offset_at: a[1] },
        to: CopyEnd { fd: fd(a[2]), offset_at: a[3] },
    }),
    followed(libc::SYS_copy_file_range, |a| Call::Copy {
        from: CopyEnd { fd: fd(a[0]), offset_at: a[1] },
        to: CopyEnd { fd: fd(a[2]), offset_at: a[3] },
    }),
    noted(libc::SYS_execve, |_| Call::Settle),
    noted(libc::SYS_execveat, |_| Call::Settle),
    noted(libc::SYS_dup, |_| Call::Settle),
    noted(libc::SYS_memfd_create, |_| Call::Settle),
    noted(libc::SYS_open_by_handle_at, |_| Call::Settle),
    noted(libc::SYS_pidfd_getfd, |_| Call::Settle),
    // Of these the filter tells those that make a number.
    noted(libc::SYS_fcntl, |_| Call::Settle),
    noted(libc::SYS_io_uring_enter, |_| Call::Unseen("io_uring_enter")),
    noted(libc::SYS_io_uring_setup, |_| Call::Unseen("io_uring_setup")),
    noted(libc::SYS_io_submit, |_| Call::Unseen("io_submit")),
];

/// Numbers of calls are below this.
const NUMBERS: usize = 512;
const NONE: u8 = u8::MAX;

/// Where in [`KNOWN`] each number is.
static INDEX: [u8; NUMBERS] = index();

const fn index() -> [u8; NUMBERS] {
    let mut index = [NONE; NUMBERS];
    let mut row = 0;
    while row < KNOWN.len() {
        index[KNOWN[row].number as usize] = row as u8;
        row += 1;
    }
    index
}

/// The row of a call's number; `None` for one that does not matter.
pub(crate) fn known(number: u64) -> Option<&'static Known> {
    let row = *INDEX.get(usize::try_from(number).ok()?)?;
    KNOWN.get(usize::from(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_by_its_number_and_read_by_its_arguments() {
        let read = known(libc::SYS_pread64 as u64).unwrap();
        let wanted = Wanted::Bytes(100);
        let call = Call::Transfer { fd: 7, write: false, wanted, at: Some(4096) };
        assert_eq!((read.read)([7, 0xdead, 100, 4096, 0, 0]), call);
        assert!(known(libc::SYS_getpid as u64).is_none());
        assert!(known(u64::MAX).is_none());
    }

    #[test]
    fn no_number_stands_in_the_table_twice() {
        for (row, one) in KNOWN.iter().enumerate() {
            assert_eq!(usize::from(INDEX[one.number as usize]), row);
        }
    }
}
