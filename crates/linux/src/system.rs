//! [`System`] by the system calls of the kernel that we are on.
//!
//! Every call blocks its process and is complete when it returns, so futures are ready at once.
//! Tasks are processes, see [`crate::process`].
//!
//! `drop_caches` and sysctls belong to the whole machine. Where a run may not touch that
//! ([`crate::LinuxRun::host_wide`]), sysctls cannot be written, and `drop_caches` drops the pages
//! of the run's own files and says so in the notes.
//!
//! Left out: content (files hold one repeated byte). Next: [`crate::cgroup`], [`crate::memory`].

use std::cell::{OnceCell, RefCell};
use std::fs::{self, File, OpenOptions};
use std::future::Future;
use std::io::{self, IoSlice};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Advice as FadviseAdvice, FallocateFlags};
use rustix::mm::Advice as MemoryAdvice;
use rustix::time::ClockId;
use units::{Bytes, Nanos, Pages, Seed};
use workload::system::{ALL_CACHES, FileMapping};
use workload::{
    Advice, CpuTime, Errno, FileAdvice, Gate, OpenMode, Outcome, Portable, SharedMemory, System, SystemError,
    TaskSpec,
};

use crate::cgroup::{self, Tree, errno};
use crate::control::{self, Message, Sender};
use crate::machine;
use crate::memory::{Mapping, Shared as SharedPages, resident_pages};
use crate::process::{self, Child, Ended, Group, block_on};
use crate::{in_memory, parse};

/// One call to the kernel moves at most this much; the buffer is the task's own memory.
const BUFFER: usize = 1 << 20;
/// Files are laid out in steps of this many bytes, each on the device before the next: a limited
/// cgroup without cgroup writeback would otherwise fill up with dirty pages.
const LAY_OUT_STEP: u64 = 32 << 20;
/// Content of files. Not zero, which some filesystems store as a hole.
const CONTENT: u8 = 0xa5;
/// Content of files in a guest of our own, whose filesystems store all: its disk stays a hole of the host's file.
const CONTENT_IN_GUESTS: u8 = 0;

/// A task's handle on the kernel.
#[derive(Clone)]
pub struct LinuxSystem(Rc<Shared>);

pub(crate) struct Shared {
    pub(crate) files: PathBuf,
    /// Directories on further disks.
    pub(crate) more_disks: Vec<PathBuf>,
    pub(crate) tree: Tree,
    pub(crate) control: Sender,
    pub(crate) host_wide: bool,
    /// `/proc/vmstat`, once somebody has asked for kills.
    pub(crate) vmstat: OnceCell<File>,
    /// Each byte of files.
    pub(crate) content: u8,
    pub(crate) memory: Pages,
    pub(crate) seed: Seed,
    pub(crate) started: Nanos,
    /// Counts of fallbacks to other mobility types, where they are traced.
    pub(crate) extfrag: Option<PathBuf>,
    pub(crate) buffer: RefCell<Vec<u8>>,
    /// Pipes between tasks: both ends are those of every task that is spawned later.
    pub(crate) gates: RefCell<Vec<Pipe>>,
    /// Memory that this task shares with those that it spawns later.
    pub(crate) memories: RefCell<Vec<SharedPages>>,
}

/// The ends of a pipe that tasks wait on.
pub(crate) struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

/// An open file.
#[derive(Clone)]
pub struct LinuxFile(Rc<(String, File)>);

/// A task, running or ended.
pub struct LinuxTask<T> {
    name: String,
    child: Child<T>,
}

/// `CLOCK_MONOTONIC`, which all processes share.
pub(crate) fn monotonic() -> Nanos {
    read_clock(ClockId::Monotonic)
}

fn read_clock(clock: ClockId) -> Nanos {
    let now = rustix::time::clock_gettime(clock);
    Nanos(now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs())
}

impl LinuxSystem {
    pub(crate) fn new(shared: Shared) -> Self {
        Self(Rc::new(shared))
    }

    fn path(&self, call: &'static str, path: &str) -> Result<PathBuf, SystemError> {
        cgroup::below(&self.0.files, path).ok_or_else(|| SystemError::new(call, path, Errno::Inval))
    }

    /// Runs `transfer` on parts of a range until one is short; returns the bytes moved.
    fn transfer(
        &self,
        offset: u64,
        len: u64,
        mut transfer: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
    ) -> io::Result<u64> {
        let mut buffer = self.0.buffer.borrow_mut();
        let wanted = len.min(BUFFER as u64) as usize;
        if buffer.len() < wanted {
            buffer.resize(wanted, self.0.content);
        }
        let mut done = 0;
        while done < len {
            let part = (len - done).min(BUFFER as u64) as usize;
            let at = offset.checked_add(done).ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
            let moved = transfer(&mut buffer[..part], at)? as u64;
            if moved == 0 {
                break;
            }
            done += moved;
        }
        Ok(done)
    }

    fn lay_out(&self, path: &Path, size: u64) -> io::Result<()> {
        let file = OpenOptions::new().write(true).create_new(true).open(path)?;
        if size > 0 {
            // Contiguous blocks where the filesystem knows how; written blocks come below anyway.
            let _ = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size);
        }
        let mut offset = 0;
        while offset < size {
            let end = size.min(offset + LAY_OUT_STEP);
            while offset < end {
                offset += write_content(&file, self.0.content, offset, end - offset)?;
            }
            evict(&file)?;
        }
        file.sync_all()
    }
}

/// Writes at most `len` bytes at `offset` in one call, from a small buffer many times over: what a task takes to lay
/// files out must not be memory that it has during its run.
fn write_content(file: &File, content: u8, offset: u64, len: u64) -> io::Result<u64> {
    const PART: usize = 16 << 10;
    let part = vec![content; PART.min(len as usize)];
    let times = (len as usize / part.len()).min(BUFFER / PART);
    let written = rustix::io::pwritev(file, &vec![IoSlice::new(&part); times], offset)? as u64;
    if written == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(written) }
}

/// Writes a file's dirty pages and drops all of its pages.
fn evict(file: &File) -> io::Result<()> {
    file.sync_data()?;
    rustix::fs::fadvise(file, 0, None, FadviseAdvice::DontNeed)?;
    Ok(())
}

/// Evicts every file below `directory`.
fn evict_all(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            evict_all(&entry.path())?;
        } else if kind.is_file() {
            evict(&File::open(entry.path())?)?;
        }
    }
    Ok(())
}

/// The count of OOM kills of `/proc/vmstat`, which `read` reads a part of at an offset: a page at most, as the kernel
/// does. On the stack, as a process that takes memory for it goes through all that its parent has freed, and copies it.
fn kills_of(mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>) -> io::Result<u64> {
    let mut part = [0; units::PAGE_SIZE as usize];
    let (mut at, mut kept) = (0, 0);
    loop {
        let len = read(&mut part[kept..], at)?;
        let text = &part[..kept + len];
        match kills_in(text) {
            Some(kills) => return Ok(kills),
            None if len == 0 => return Ok(0),
            None => {}
        }
        at += len as u64;
        // The last line goes on in the next part.
        let line = text.iter().rposition(|&byte| byte == b'\n').unwrap_or(0);
        kept = text.len() - line;
        part.copy_within(line..line + kept, 0);
    }
}

/// The count of OOM kills in a part of `/proc/vmstat`, if its line is there whole.
fn kills_in(vmstat: &[u8]) -> Option<u64> {
    let (_, count) = str::from_utf8(vmstat).ok()?.split_once("\noom_kill ")?;
    count.split_once('\n')?.0.parse().ok()
}

/// What files are of.
pub(crate) fn content(in_guest: bool) -> u8 {
    if in_guest { CONTENT_IN_GUESTS } else { CONTENT }
}

/// The file of a sysctl below `/proc/sys`, by either form of its name; those of the multi-gen LRU and of zswap are in
/// sysfs.
pub(crate) fn sysctl_path(name: &str) -> Option<PathBuf> {
    let path = if name.contains('/') { name.to_owned() } else { name.replace('.', "/") };
    if let Some(parameter) = path.strip_prefix("zswap/") {
        return cgroup::below(Path::new("/sys/module/zswap/parameters"), parameter);
    }
    let root = if path.starts_with("lru_gen/") { "/sys/kernel/mm" } else { "/proc/sys" };
    cgroup::below(Path::new(root), &path)
}

impl System for LinuxSystem {
    type File = LinuxFile;
    type Mapping = Mapping;
    type Task<T: Portable> = LinuxTask<T>;

    fn now(&self) -> Nanos {
        monotonic().saturating_sub(self.0.started)
    }

    async fn sleep(&self, length: Nanos) {
        std::thread::sleep(std::time::Duration::from_nanos(length.get()));
    }

    async fn spin(&self, length: Nanos) {
        let used = || read_clock(ClockId::ThreadCPUTime);
        let end = used() + length;
        while used() < end {
            (0..1000).for_each(|_| std::hint::spin_loop());
        }
    }

    fn cpus_online(&self) -> u16 {
        machine::cpus_online()
    }

    fn nodes_online(&self) -> u16 {
        machine::nodes_online()
    }

    fn disks_online(&self) -> u16 {
        u16::try_from(1 + self.0.more_disks.len()).expect("a machine has few disks")
    }

    /// The limit of the run's root cgroup where it has one: what it calls the machine is that.
    fn memory_total(&self) -> Pages {
        self.0.memory
    }

    fn seed(&self) -> Seed {
        self.0.seed
    }

    fn mark(&self, phase: &str) {
        self.0.control.send(&Message::Mark(phase.to_owned()));
    }

    fn keep(&self, so_far: &Outcome) {
        control::kept(so_far).iter().for_each(|message| self.0.control.send(message));
    }

    fn has_ended<T: Portable>(&self, task: &LinuxTask<T>) -> bool {
        task.child.has_ended()
    }

    async fn spawn<T, F, Fut>(&self, spec: TaskSpec, program: F) -> Result<LinuxTask<T>, SystemError>
    where
        T: Portable,
        F: FnOnce(Self) -> Fut + Send + 'static,
        Fut: Future<Output = T> + 'static,
    {
        let failed = |error: io::Error| SystemError::new("spawn", spec.name.clone(), errno(&error));
        // Without a cgroup of its own a task belongs to the root, whoever its parent is.
        let procs = self.0.tree.procs_file(spec.cgroup.as_deref())?;
        let procs = OpenOptions::new().write(true).open(procs).map_err(failed)?;
        let child = Child::spawn(Some(&procs), Group::Parents, || {
            process::be_called(&spec.name);
            if let Some(cpu) = spec.cpu {
                machine::stay_on(cpu);
            }
            block_on(program(self.clone()))
        });
        Ok(LinuxTask { child: child.map_err(failed)?, name: spec.name })
    }

    async fn join<T: Portable>(&self, task: LinuxTask<T>) -> Result<T, SystemError> {
        let LinuxTask { name, child } = task;
        match child.join() {
            Ok(Ended::Returned(value)) => Ok(value),
            Ok(Ended::Panicked(message)) => panic!("task {name}: {message}"),
            Ok(Ended::Signalled(libc::SIGKILL)) => Err(SystemError::new("join", name, Errno::Killed)),
            Ok(Ended::Signalled(signal)) => Err(SystemError::new("join", name, Errno::Signal(signal))),
            Err(error) => Err(SystemError::new("join", name, errno(&error))),
        }
    }

    fn make_gate(&self) -> Result<Gate, SystemError> {
        let made = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC);
        let (read, write) = made.map_err(|error| failed("pipe", "gate", &error.into()))?;
        let mut gates = self.0.gates.borrow_mut();
        gates.push(Pipe { read, write });
        Ok(Gate(u32::try_from(gates.len() - 1).expect("a program has few gates")))
    }

    async fn open_gate(&self, gate: Gate) -> Result<(), SystemError> {
        let gates = self.0.gates.borrow();
        let pipe =
            gates.get(gate.0 as usize).ok_or_else(|| SystemError::new("write", "gate", Errno::Inval))?;
        rustix::io::write(&pipe.write, &[1]).map_err(|error| failed("write", "gate", &error.into()))?;
        Ok(())
    }

    async fn pass_gate(&self, gate: Gate, limit: Nanos) -> Result<bool, SystemError> {
        let failed = |error: rustix::io::Errno| failed("read", "gate", &error.into());
        let gates = self.0.gates.borrow();
        let pipe =
            gates.get(gate.0 as usize).ok_or_else(|| SystemError::new("read", "gate", Errno::Inval))?;
        let mut files = [PollFd::new(&pipe.read, PollFlags::IN)];
        let (seconds, nanos) = (limit.get() / 1_000_000_000, limit.get() % 1_000_000_000);
        let limit = Timespec { tv_sec: seconds.cast_signed(), tv_nsec: nanos.cast_signed() };
        if rustix::event::poll(&mut files, Some(&limit)).map_err(failed)? == 0 {
            return Ok(false);
        }
        let mut byte = [0];
        Ok(rustix::io::read(&pipe.read, &mut byte).map_err(failed)? == 1)
    }

    async fn cgroup_create(&self, path: &str) -> Result<(), SystemError> {
        self.0.tree.create(path)?;
        self.0.control.send(&Message::Group(path.to_owned()));
        Ok(())
    }

    async fn cgroup_remove(&self, path: &str) -> Result<(), SystemError> {
        self.0.tree.remove(path)
    }

    async fn cgroup_write(&self, path: &str, file: &str, value: &str) -> Result<(), SystemError> {
        self.0.tree.write(path, file, value)
    }

    async fn cgroup_read(&self, path: &str, file: &str) -> Result<String, SystemError> {
        self.0.tree.read(path, file)
    }

    async fn make_dir(&self, path: &str) -> Result<(), SystemError> {
        fs::create_dir(self.path("mkdir", path)?).map_err(|error| failed("mkdir", path, &error))
    }

    async fn make_dir_in_memory(&self, path: &str) -> Result<(), SystemError> {
        in_memory::mount(&self.path("mount", path)?).map_err(|error| failed("mount", path, &error))
    }

    async fn read_dir(&self, path: &str) -> Result<Vec<String>, SystemError> {
        let entries = fs::read_dir(self.path("readdir", path)?);
        let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        let names = entries.and_then(|entries| entries.map(name).collect());
        names.map_err(|error: io::Error| failed("readdir", path, &error))
    }

    async fn remove_dir(&self, path: &str) -> Result<(), SystemError> {
        fs::remove_dir(self.path("rmdir", path)?).map_err(|error| failed("rmdir", path, &error))
    }

    /// A directory of the first disk, or a symbolic link to the run's directory on another one.
    async fn make_dir_on(&self, path: &str, disk: u16) -> Result<(), SystemError> {
        let Some(further) = usize::from(disk).checked_sub(1) else { return self.make_dir(path).await };
        let target = self.0.more_disks.get(further);
        let target = target.ok_or_else(|| SystemError::new("mount", path, Errno::NoEnt))?;
        symlink(target, self.path("mount", path)?).map_err(|error| failed("mount", path, &error))
    }

    async fn lay_out_file(&self, path: &str, size: Bytes) -> Result<(), SystemError> {
        self.lay_out_files(&[(path.to_owned(), size)]).await
    }

    async fn lay_out_files(&self, files: &[(String, Bytes)]) -> Result<(), SystemError> {
        self.0.control.send(&Message::LaysOut(true));
        let laid_out = files.iter().try_for_each(|(path, size)| {
            let target = self.path("lay_out_file", path)?;
            self.lay_out(&target, size.get()).map_err(|error| failed("lay_out_file", path, &error))
        });
        self.0.control.send(&Message::LaysOut(false));
        laid_out
    }

    async fn open(&self, path: &str, mode: OpenMode) -> Result<LinuxFile, SystemError> {
        let mut options = OpenOptions::new();
        match mode {
            OpenMode::Read => options.read(true),
            OpenMode::ReadWrite => options.read(true).write(true),
            OpenMode::Create => options.read(true).write(true).create_new(true),
        };
        let file = options.open(self.path("open", path)?).map_err(|error| failed("open", path, &error))?;
        Ok(LinuxFile(Rc::new((path.to_owned(), file))))
    }

    async fn read(&self, file: &LinuxFile, offset: u64, len: u64) -> Result<u64, SystemError> {
        let (path, file) = &*file.0;
        self.transfer(offset, len, |bytes, at| file.read_at(bytes, at))
            .map_err(|error| failed("read", path, &error))
    }

    async fn write(&self, file: &LinuxFile, offset: u64, len: u64) -> Result<u64, SystemError> {
        let (path, file) = &*file.0;
        self.transfer(offset, len, |bytes, at| file.write_at(bytes, at))
            .map_err(|error| failed("write", path, &error))
    }

    async fn fsync(&self, file: &LinuxFile) -> Result<(), SystemError> {
        file.0.1.sync_all().map_err(|error| failed("fsync", &file.0.0, &error))
    }

    async fn sync(&self) -> Result<(), SystemError> {
        rustix::fs::sync();
        Ok(())
    }

    async fn file_size(&self, path: &str) -> Result<u64, SystemError> {
        let status = std::fs::metadata(self.path("stat", path)?);
        status.map(|status| status.len()).map_err(|error| failed("stat", path, &error))
    }

    async fn advise_random(&self, file: &LinuxFile) -> Result<(), SystemError> {
        self.advise_file(file, 0, 0, FileAdvice::Random).await
    }

    async fn advise_file(
        &self,
        file: &LinuxFile,
        offset: u64,
        len: u64,
        advice: FileAdvice,
    ) -> Result<(), SystemError> {
        let advice = match advice {
            FileAdvice::Normal => FadviseAdvice::Normal,
            FileAdvice::Random => FadviseAdvice::Random,
            FileAdvice::Sequential => FadviseAdvice::Sequential,
            FileAdvice::WillNeed => FadviseAdvice::WillNeed,
            FileAdvice::DontNeed => FadviseAdvice::DontNeed,
            FileAdvice::NoReuse => FadviseAdvice::NoReuse,
        };
        rustix::fs::fadvise(&file.0.1, offset, NonZeroU64::new(len), advice)
            .map_err(|error| failed("posix_fadvise", &file.0.0, &error.into()))
    }

    /// `readahead(2)` is `POSIX_FADV_WILLNEED` by another name, since 4.20 in the kernel itself.
    async fn read_ahead(&self, file: &LinuxFile, offset: u64, len: u64) -> Result<(), SystemError> {
        match len {
            0 => Ok(()), // Of advice 0 bytes would be all of the file.
            len => self.advise_file(file, offset, len, FileAdvice::WillNeed).await,
        }
    }

    async fn truncate(&self, file: &LinuxFile, len: u64) -> Result<(), SystemError> {
        file.0.1.set_len(len).map_err(|error| failed("ftruncate", &file.0.0, &error))
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), SystemError> {
        let (old, new) = (self.path("rename", from)?, self.path("rename", to)?);
        fs::rename(old, new).map_err(|error| failed("rename", from, &error))
    }

    async fn unlink(&self, path: &str) -> Result<(), SystemError> {
        fs::remove_file(self.path("unlink", path)?).map_err(|error| failed("unlink", path, &error))
    }

    async fn resident_pages(&self, file: &LinuxFile, offset: u64, len: u64) -> Result<u64, SystemError> {
        resident_pages(&file.0.1, offset, len).map_err(|error| failed("mincore", &file.0.0, &error))
    }

    async fn map_anonymous(&self, len: Bytes) -> Result<Mapping, SystemError> {
        Mapping::anonymous(len).map_err(|error| failed("mmap", &len.get().to_string(), &error))
    }

    async fn share_memory(&self, len: Bytes) -> Result<SharedMemory, SystemError> {
        let made = SharedPages::new(len).map_err(|error| failed("mmap", &len.get().to_string(), &error))?;
        let mut memories = self.0.memories.borrow_mut();
        memories.push(made);
        Ok(SharedMemory(u32::try_from(memories.len() - 1).expect("fewer than addresses are left")))
    }

    async fn map_shared_memory(&self, memory: SharedMemory) -> Result<Mapping, SystemError> {
        let memories = self.0.memories.borrow();
        let missing = || SystemError::new("mmap", "shared memory", Errno::NoEnt);
        let taken = memories.get(memory.0 as usize).ok_or_else(missing)?.take();
        taken.map_err(|error| failed("mmap", "shared memory", &error))
    }

    async fn map_file(
        &self,
        file: &LinuxFile,
        offset: u64,
        len: Bytes,
        how: FileMapping,
    ) -> Result<Mapping, SystemError> {
        let mapping = Mapping::shown_file(&file.0.1, offset, len, how);
        mapping.map_err(|error| failed("mmap", &file.0.0, &error))
    }

    async fn touch(&self, mapping: &Mapping, first: u64, count: u64) -> Result<(), SystemError> {
        mapping.touch(first, count).map_err(|error| failed("touch", &format!("{first}+{count}"), &error))
    }

    async fn touch_reading(&self, mapping: &Mapping, first: u64, count: u64) -> Result<(), SystemError> {
        let read = mapping.touch_reading(first, count);
        read.map_err(|error| failed("touch", &format!("{first}+{count}"), &error))
    }

    async fn write_content(
        &self,
        mapping: &Mapping,
        first: u64,
        count: u64,
        compressed: u16,
    ) -> Result<(), SystemError> {
        let written = mapping.write_content(first, count, compressed, self.0.seed);
        written.map_err(|error| failed("write", &format!("{first}+{count}"), &error))
    }

    async fn fill(&self, mapping: &Mapping, first: u64, count: u64) -> Result<(), SystemError> {
        mapping.fill(first, count).map_err(|error| failed("memset", &format!("{first}+{count}"), &error))
    }

    async fn mapping_resident(&self, mapping: &Mapping, first: u64, count: u64) -> Result<u64, SystemError> {
        let found = mapping.resident_in(first, count);
        found.map_err(|error| failed("mincore", &format!("{first}+{count}"), &error))
    }

    async fn advise(&self, mapping: &Mapping, advice: Advice) -> Result<(), SystemError> {
        let linux = match advice {
            Advice::HugePage => MemoryAdvice::LinuxHugepage,
            Advice::NoHugePage => MemoryAdvice::LinuxNoHugepage,
            Advice::DontNeed => MemoryAdvice::LinuxDontNeed,
            Advice::Cold => MemoryAdvice::LinuxCold,
            Advice::PageOut => MemoryAdvice::LinuxPageOut,
            Advice::Free => MemoryAdvice::LinuxFree,
            Advice::Normal => MemoryAdvice::Normal,
            Advice::Random => MemoryAdvice::Random,
            Advice::Sequential => MemoryAdvice::Sequential,
            Advice::WillNeed => MemoryAdvice::WillNeed,
        };
        mapping.advise(linux).map_err(|error| failed("madvise", &format!("{advice:?}"), &error))
    }

    async fn lock_memory(&self, mapping: &Mapping, first: u64, count: u64) -> Result<(), SystemError> {
        mapping.lock(first, count).map_err(|error| failed("mlock", &format!("{first}+{count}"), &error))
    }

    async fn drop_caches(&self, mask: u8) -> Result<(), SystemError> {
        let failed = |error: io::Error| failed("drop_caches", &mask.to_string(), &error);
        if self.0.host_wide {
            rustix::fs::sync();
            return machine::drop_caches(mask).map_err(failed);
        }
        if mask & 1 != 0 {
            evict_all(&self.0.files).map_err(failed)?;
        }
        let note = "drop_caches dropped the pages of the run's own files only, and no slab objects";
        self.0.control.send(&Message::Note(note.to_owned()));
        Ok(())
    }

    async fn begin_cold(&self) -> Result<(), SystemError> {
        self.0.control.send(&Message::LaysOut(true));
        let dropped = self.drop_caches(ALL_CACHES).await;
        self.0.control.send(&Message::LaysOut(false));
        dropped
    }

    async fn sysctl_read(&self, name: &str) -> Result<String, SystemError> {
        let path = sysctl_path(name).ok_or_else(|| SystemError::new("sysctl_read", name, Errno::Inval))?;
        fs::read_to_string(path).map_err(|error| failed("sysctl_read", name, &error))
    }

    async fn sysctl_write(&self, name: &str, value: &str) -> Result<(), SystemError> {
        let refused = |errno| SystemError::new("sysctl_write", name, errno);
        if !self.0.host_wide {
            return Err(refused(Errno::Perm));
        }
        let path = sysctl_path(name).ok_or_else(|| refused(Errno::Inval))?;
        cgroup::write_existing(&path, value).map_err(|error| failed("sysctl_write", name, &error))
    }

    async fn node_write(&self, node: u8, file: &str, value: &str) -> Result<(), SystemError> {
        machine::write_of_node(node, file, value, self.0.host_wide)
    }

    /// In ticks of 10 ms, by `/proc/self/stat`.
    async fn cpu_time(&self) -> Result<CpuTime, SystemError> {
        const STAT: &str = "/proc/self/stat";
        let text = fs::read_to_string(STAT).map_err(|error| failed("read", STAT, &error))?;
        let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        let times = parse::cpu_ticks(&text).ok_or_else(|| SystemError::new("read", STAT, Errno::Io))?;
        let [user, system] = times.map(|ticks| Nanos(ticks * tick));
        Ok(CpuTime { user, system })
    }

    async fn set_oom_score_adj(&self, adj: i16) -> Result<(), SystemError> {
        let text = adj.to_string();
        cgroup::write_existing(Path::new("/proc/self/oom_score_adj"), &text).map_err(|error| {
            let error = failed("write oom_score_adj", &text, &error);
            if matches!(error.errno, Errno::Acces | Errno::Perm) {
                let note =
                    format!("no task could have an oom_score_adj of {text}: it needs CAP_SYS_RESOURCE");
                self.0.control.send(&Message::Note(note));
            }
            error
        })
    }

    async fn oom_kills(&self) -> Result<u64, SystemError> {
        let path = "/proc/vmstat";
        // It stays open: who pins memory asks every 32 pages, and a call takes a guest as long as mapping four.
        let file = match self.0.vmstat.get() {
            Some(file) => file,
            None => {
                let file = File::open(path).map_err(|error| failed("open", path, &error))?;
                self.0.vmstat.get_or_init(|| file)
            }
        };
        kills_of(|part, at| file.read_at(part, at)).map_err(|error| failed("read", path, &error))
    }

    async fn vmstat(&self) -> Result<Vec<(String, u64)>, SystemError> {
        let text =
            fs::read_to_string("/proc/vmstat").map_err(|error| failed("read", "/proc/vmstat", &error))?;
        let mut counters = Vec::new();
        parse::pairs(&text, &mut |name, value| counters.push((name.concat(), value)));
        // Not counters of the kernel but of its trace events, by the names that the simulator has.
        if let Some(histogram) = &self.0.extfrag
            && let Ok(text) = fs::read_to_string(histogram)
        {
            let names = ["extfrag_events_all", "extfrag_events"].map(str::to_owned);
            let mut counts = Vec::new();
            parse::trace_extfrag(&text, &mut |_, value| counts.push(value));
            counters.extend(names.into_iter().zip(counts));
        }
        Ok(counters)
    }
}

fn failed(call: &'static str, subject: &str, error: &io::Error) -> SystemError {
    SystemError::new(call, subject, errno(error))
}

#[cfg(test)]
mod tests;
