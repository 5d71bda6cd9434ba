//! Which file a descriptor is, by device, inode and time of birth, so that a file with many names is one and one
//! that took another's inode is another.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Statx, StatxFlags};
use trace::TraceFile;

/// What makes a file itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Identity {
    device: (u32, u32),
    inode: u64,
    born: (i64, u32),
}

impl Identity {
    fn of(status: &Statx) -> Self {
        Self {
            device: (status.stx_dev_major, status.stx_dev_minor),
            inode: status.stx_ino,
            born: (status.stx_btime.tv_sec, status.stx_btime.tv_nsec),
        }
    }
}

/// What files of a file system are to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// Pages of a disk.
    OnDisk,
    /// Pages without a disk.
    InMemory,
    /// What the kernel makes up as it is read.
    Nothing,
}

/// Magic numbers of file systems whose files have no pages (statfs(2)).
const MADE_UP: [u64; 16] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x6367_7270, // cgroup2
    0x27_e0eb,   // cgroup
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x7363_6673, // securityfs
    0xcafe_4a11, // bpf
    0x1cd1,      // devpts
    0x6165_676c, // pstore
    0xde5e_81e4, // efivarfs
    0x4249_4e4d, // binfmt_misc
    0xf97c_ff8c, // selinux
    0x0904_1934, // anonymous inodes
    0x6e73_6673, // nsfs
    0x6573_5543, // fuse control
];
/// tmpfs, ramfs, hugetlbfs.
const IN_MEMORY: [u64; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];

/// A descriptor of the command's that we hold, too: it shows where the file stands and how long it is.
#[derive(Debug)]
pub(crate) struct Held {
    descriptor: OwnedFd,
    /// The file's number.
    pub(crate) file: u32,
    /// Each write goes to the end.
    append: bool,
    reads: bool,
    writes: bool,
    /// A device has no size that a look tells.
    endless: bool,
}

impl Held {
    /// Bytes that the file has now.
    pub(crate) fn size(&self) -> u64 {
        if self.endless {
            return u64::MAX >> 1;
        }
        rustix::fs::fstat(&self.descriptor).map_or(0, |status| status.st_size.max(0).cast_unsigned())
    }

    /// Where the next read or write without an offset begins.
    pub(crate) fn position(&self) -> u64 {
        rustix::fs::tell(&self.descriptor).unwrap_or(0)
    }

    /// Where a write begins.
    pub(crate) fn write_position(&self, at: Option<u64>) -> u64 {
        match at {
            _ if self.append => self.size(),
            Some(at) => at,
            None => self.position(),
        }
    }

    /// Whether it may be read, or written to.
    pub(crate) const fn may(&self, write: bool) -> bool {
        if write { self.writes } else { self.reads }
    }
}

/// What a look at a descriptor found.
#[derive(Debug)]
pub(crate) struct Looked {
    /// The descriptor, held.
    pub(crate) held: Held,
    /// Flags that it has.
    pub(crate) flags: OFlags,
    /// When the file was made, in seconds of the clock on the wall.
    pub(crate) born: f64,
}

impl Looked {
    /// Whether these flags of an open ask for the access that it has.
    pub(crate) fn has_access(&self, flags: u64) -> bool {
        let mode = u64::from(OFlags::ACCMODE.bits());
        flags & mode == u64::from(self.flags.bits()) & mode
    }
}

/// Files by number.
#[derive(Debug)]
pub(crate) struct Files {
    /// The folder of this process's descriptors as links, where their paths are read.
    links: Option<Arc<OwnedFd>>,
    numbers: HashMap<Identity, u32>,
    file_systems: HashMap<(u32, u32), Holds>,
    /// The table.
    pub(crate) rows: Vec<TraceFile>,
    /// Sizes at the last look, by number; what lies before that is there, unless the file was cut.
    known_sizes: Vec<u64>,
}

impl Default for Files {
    fn default() -> Self {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        Self {
            links: rustix::fs::open("/proc/self/fd", flags, Mode::empty()).ok().map(Arc::new),
            numbers: HashMap::new(),
            file_systems: HashMap::new(),
            rows: Vec::new(),
            known_sizes: Vec::new(),
        }
    }
}

impl Files {
    /// Takes a descriptor of the command's; nothing where it is no file with pages.
    pub(crate) fn look(&mut self, descriptor: OwnedFd) -> Option<Looked> {
        let status = status(descriptor.as_fd(), Path::new(""), AtFlags::EMPTY_PATH)?;
        let flags = rustix::fs::fcntl_getfl(&descriptor).ok()?;
        if flags.contains(OFlags::PATH) {
            return None;
        }
        let links = self.links.clone();
        let name = || PathBuf::from(OsStr::from_bytes(&own_path(links.as_deref(), descriptor.as_fd())));
        let file = self.number(&status, || holds(descriptor.as_fd()), name)?;
        let access = flags & OFlags::ACCMODE;
        let held = Held {
            descriptor,
            file,
            append: flags.contains(OFlags::APPEND),
            reads: access != OFlags::WRONLY,
            writes: access != OFlags::RDONLY,
            endless: file_type(&status) == FileType::BlockDevice,
        };
        Some(Looked {
            held,
            flags,
            born: status.stx_btime.tv_sec as f64 + f64::from(status.stx_btime.tv_nsec) / 1e9,
        })
    }

    /// How many of `wanted` bytes at `offset` a file has. One that somebody else cuts meanwhile may have fewer.
    pub(crate) fn there(&mut self, held: &Held, offset: u64, wanted: u64) -> u64 {
        let Some(known) = self.known_sizes.get_mut(held.file as usize) else { return wanted };
        if wanted > known.saturating_sub(offset) {
            *known = held.size();
        }
        wanted.min(known.saturating_sub(offset))
    }

    /// A file is cut: nothing is known of its size.
    pub(crate) fn cut(&mut self, file: u32) {
        if let Some(known) = self.known_sizes.get_mut(file as usize) {
            *known = 0;
        }
    }

    /// The number of the file that this path names; `named` is the path as the command has it.
    pub(crate) fn at_path(
        &mut self,
        path: &Path,
        follow: bool,
        named: impl FnOnce() -> PathBuf,
    ) -> Option<u32> {
        let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        let status = status(rustix::fs::CWD, path, flags)?;
        let holds = || rustix::fs::statfs(path).map_or(Holds::OnDisk, |found| of_magic(found.f_type as u64));
        self.number(&status, holds, named)
    }

    fn number(
        &mut self,
        status: &Statx,
        holds: impl FnOnce() -> Holds,
        path: impl FnOnce() -> PathBuf,
    ) -> Option<u32> {
        if !matches!(file_type(status), FileType::RegularFile | FileType::BlockDevice) {
            return None;
        }
        let identity = Identity::of(status);
        if let Some(number) = self.numbers.get(&identity) {
            return Some(*number);
        }
        let holds = *self.file_systems.entry(identity.device).or_insert_with(holds);
        if holds == Holds::Nothing {
            return None;
        }
        let number = u32::try_from(self.rows.len()).ok().filter(|number| *number != trace::NONE)?;
        let path = path().to_string_lossy().into_owned();
        self.rows.push(TraceFile { path, size_bytes: status.stx_size, in_memory: holds == Holds::InMemory });
        self.known_sizes.push(0);
        self.numbers.insert(identity, number);
        Some(number)
    }
}

/// `AT_STATX_DONT_SYNC`, which `rustix` does not name for every C library: what the cache knows will do.
const DONT_SYNC: AtFlags = AtFlags::from_bits_retain(0x4000);

fn status(folder: BorrowedFd<'_>, path: &Path, flags: AtFlags) -> Option<Statx> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    rustix::fs::statx(folder, path, flags | DONT_SYNC, wanted).ok()
}

fn file_type(status: &Statx) -> FileType {
    FileType::from_raw_mode(status.stx_mode.into())
}

fn holds(descriptor: BorrowedFd<'_>) -> Holds {
    rustix::fs::fstatfs(descriptor).map_or(Holds::OnDisk, |found| of_magic(found.f_type as u64))
}

fn of_magic(magic: u64) -> Holds {
    match magic & 0xffff_ffff {
        magic if MADE_UP.contains(&magic) => Holds::Nothing,
        magic if IN_MEMORY.contains(&magic) => Holds::InMemory,
        _ => Holds::OnDisk,
    }
}

/// The path of a descriptor of ours, read in the folder of links.
fn own_path(links: Option<&OwnedFd>, descriptor: BorrowedFd<'_>) -> Vec<u8> {
    use std::os::fd::AsRawFd;
    let link = descriptor.as_raw_fd().to_string();
    let path = links.map(|links| rustix::fs::readlinkat(links, link, Vec::new()));
    path.and_then(Result::ok).map(std::ffi::CString::into_bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_itself_under_every_name_and_a_new_one_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        std::fs::write(&one, "some bytes").unwrap();
        std::fs::hard_link(&one, &two).unwrap();
        let mut files = Files::default();
        let mut look = |path: &Path| files.look(std::fs::File::open(path).unwrap().into()).unwrap();
        let held = look(&one).held;
        assert_eq!((held.file, held.size(), held.may(true)), (0, 10, false));
        assert_eq!(look(&two).held.file, 0);
        std::fs::write(folder.path().join("three"), "").unwrap();
        assert_eq!(look(&folder.path().join("three")).held.file, 1);
        assert_eq!(files.rows[0].path, one.to_string_lossy());
    }

    #[test]
    fn what_the_kernel_makes_up_is_no_file() {
        let mut files = Files::default();
        for path in ["/proc/self/maps", "/dev/null", "/"] {
            assert!(files.look(std::fs::File::open(path).unwrap().into()).is_none(), "{path}");
        }
    }
}
