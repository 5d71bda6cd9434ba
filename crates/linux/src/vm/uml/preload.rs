//! What such a kernel is run with: room for its memory where programs may be; a library that makes its disks faster
//! (`shim/disk.rs`); and one that stands before `ptrace` where the CPU has more registers than the kernel knows of
//! (`shim/xstate.rs`). The libraries tell why.

use std::path::Path;

use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};
use units::Bytes;

use crate::vm::error::VmError;

/// The first release that asks the host how many registers there are.
pub(super) const BEFORE: &str = "6.13";

/// Made by `build.rs`.
const DISK: (&str, &[u8]) = ("disk.so", include_bytes!(concat!(env!("OUT_DIR"), "/disk.so")));
const XSTATE: (&str, &[u8]) = ("xstate.so", include_bytes!(concat!(env!("OUT_DIR"), "/xstate.so")));
/// Components of the registers that lie beyond the 2696 bytes that older kernels keep, as /proc/cpuinfo calls them.
const LARGE: [&str; 2] = ["amx_tile", "apx"];

/// Whether this host's CPU has registers that older kernels do not know of.
pub(super) fn is_needed() -> bool {
    host_has(&LARGE)
}

/// Whether this host's CPU has one of `wanted`, as /proc/cpuinfo calls them.
pub(super) fn host_has(wanted: &[&str]) -> bool {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = text.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|flags| flags.split_whitespace().any(|flag| wanted.contains(&flag)))
}

/// Puts the libraries into a run's folder; returns their names for the loader, from there.
pub(super) fn put_into(dir: &Path, with_registers: bool) -> Result<String, VmError> {
    let libraries = [DISK].into_iter().chain(with_registers.then_some(XSTATE));
    let names = libraries.map(|(name, library)| {
        let path = dir.join(name);
        std::fs::write(&path, library).map_err(|source| VmError::io("write", &path, source))?;
        Ok(format!("./{name}"))
    });
    Ok(names.collect::<Result<Vec<_>, VmError>>()?.join(":"))
}

/// Whether a guest's memory can be in `dir`, page by page as it is used: programs run from there.
pub(super) fn has_room(dir: &Path, mem: Bytes) -> bool {
    let Ok(found) = statvfs(dir) else { return false };
    let takes_files = access(dir, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    let runs_programs = !found.f_flag.contains(StatVfsMountFlags::NOEXEC);
    takes_files && runs_programs && found.f_bavail * found.f_frsize > mem.get()
}

// What `shim/disk.rs` is made of, for its test.
#[cfg(test)]
#[expect(unsafe_code, reason = "it makes system calls by hand")]
#[path = "../../../shim/batch.rs"]
mod batch;
#[cfg(test)]
#[expect(unsafe_code, dead_code, reason = "it makes system calls by hand, and sets no error here")]
#[path = "../../../shim/sys.rs"]
mod sys;

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::MetadataExt as _;

    use super::batch::{At, Batch, Kind};
    use super::sys::IoVec;
    use super::*;

    /// Adds pieces of a page, each so many pages into the file.
    #[expect(unsafe_code, reason = "a batch is given memory by its address")]
    fn add(batch: &mut Batch, kind: Kind, fd: i32, pieces: &mut [(i64, [u8; 4096])]) -> Result<(), i32> {
        for (page, bytes) in pieces {
            let piece = IoVec { base: bytes.as_mut_ptr().cast(), len: bytes.len() };
            // SAFETY: the pieces outlive the batch's use of them: each test flushes it before it looks at them.
            unsafe { batch.add(At { kind, fd, offset: *page * 4096 }, piece)? };
        }
        Ok(())
    }

    #[test]
    fn neighbouring_pages_are_kept_until_others_come_and_all_arrive() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (fd, len) = (file.as_file().as_raw_fd(), || file.as_file().metadata().unwrap().len());
        let page = |page: i64| (page, [u8::try_from(page).unwrap() + 1; 4096]);
        let mut batch = Batch::new();
        let mut written: Vec<_> = (0..40).map(page).collect();
        add(&mut batch, Kind::Write, fd, &mut written[..32]).unwrap();
        assert_eq!(len(), 0, "a request's pages are kept");
        add(&mut batch, Kind::Write, fd, &mut written[32..]).unwrap();
        assert_eq!(len(), 32 * 4096, "but not more");
        let mut far = [page(50)];
        add(&mut batch, Kind::Write, fd, &mut far).unwrap();
        assert_eq!(len(), 40 * 4096, "and what does not follow is done by itself");
        // A read of what was written: each way waits for the other. Page 51 lies behind the end.
        let mut read: Vec<_> = (0..52).map(|page| (page, [0xff; 4096])).collect();
        add(&mut batch, Kind::Read, fd, &mut read).unwrap();
        batch.flush().unwrap();
        for (number, bytes) in read {
            let is_there = number < 40 || number == 50;
            assert_eq!(bytes, if is_there { page(number).1 } else { [0; 4096] }, "page {number}");
        }
    }

    #[test]
    fn zeros_stay_holes_and_are_written_over_what_lies_there() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let (fd, blocks) = (file.as_file().as_raw_fd(), || file.as_file().metadata().unwrap().blocks());
        file.as_file().set_len(8 * 4096).unwrap();
        let mut batch = Batch::new();
        let mut last_byte = [0; 4096];
        last_byte[4095] = 1;
        let mut written = [(0, [0; 4096]), (1, [0; 4096]), (4, [7; 4096]), (6, last_byte)];
        add(&mut batch, Kind::Write, fd, &mut written[..2]).unwrap();
        batch.flush().unwrap();
        assert_eq!(blocks(), 0, "the host holds none of it");
        add(&mut batch, Kind::Write, fd, &mut written[2..]).unwrap();
        batch.flush().unwrap();
        assert_ne!(blocks(), 0);
        let mut read = |page: i64| {
            let mut read = [(page, [0xff; 4096])];
            add(&mut batch, Kind::Read, fd, &mut read).unwrap();
            batch.flush().unwrap();
            read[0].1
        };
        for (page, bytes) in [(0, [0; 4096]), (3, [0; 4096]), (4, [7; 4096]), (6, last_byte), (9, [0; 4096])]
        {
            assert_eq!(read(page), bytes, "page {page}");
        }
        let mut zeros = [(4, [0; 4096])];
        add(&mut batch, Kind::Write, fd, &mut zeros).unwrap();
        batch.flush().unwrap();
        let mut read = [(4, [0xff; 4096])];
        add(&mut batch, Kind::Read, fd, &mut read).unwrap();
        batch.flush().unwrap();
        assert_eq!(read[0].1, [0; 4096], "what lay there is gone");
    }

    #[test]
    fn what_the_host_cannot_do_is_told_by_its_number() {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut batch = Batch::new();
        add(&mut batch, Kind::Write, full.as_raw_fd(), &mut [(0, [1; 4096])]).unwrap();
        assert_eq!(batch.flush(), Err(libc::ENOSPC));
        add(&mut batch, Kind::Read, -1, &mut [(0, [1; 4096])]).unwrap();
        assert_eq!(batch.flush(), Err(libc::EBADF));
        assert_eq!(batch.flush(), Ok(()), "it is told once");
    }

    #[test]
    fn the_libraries_are_elf_files_that_a_loader_finds_from_the_runs_folder() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(put_into(dir.path(), false).unwrap(), "./disk.so");
        assert_eq!(put_into(dir.path(), true).unwrap(), "./disk.so:./xstate.so");
        for name in ["disk.so", "xstate.so"] {
            assert_eq!(&std::fs::read(dir.path().join(name)).unwrap()[..4], b"\x7fELF");
        }
    }

    #[test]
    fn memory_goes_where_there_is_room() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!has_room(dir.path(), Bytes(u64::MAX)));
        assert!(!has_room(&dir.path().join("none"), Bytes(1)));
        // Nobody may make files there, be it in a container whose /dev/shm is read-only.
        assert!(!has_room(Path::new("/proc"), Bytes(0)));
    }
}
