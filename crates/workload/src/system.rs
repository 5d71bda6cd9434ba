//! `System`: a program's view of the kernel, and the seam between workloads and backends.
//!
//! It models the system calls that memory-pressure workloads make: tasks in cgroups, files,
//! anonymous memory, `mincore`, `drop_caches`, sysctls, cgroup v2 files and time. Calls that can
//! fail do so with an errno and the name of the call, as on Linux.
//!
//! Three implementations: the simulated kernel, this host, a guest in a virtual machine. In the
//! simulator tasks are futures on one thread; on Linux each task is a process, because a memory
//! cgroup holds processes and not threads. Hence a task shares no memory with its parent, its
//! closure is `Send`, and what it returns is [`Portable`]: bytes that can go through a pipe.
//!
//! Left out: signals, sockets, content of files (nothing that is modelled depends on it).

pub mod errno;
pub mod outcome;
mod portable;

use std::future::Future;

use serde::Serialize;
use serde::de::DeserializeOwned;
use units::{Bytes, Nanos, Pages, Seed};

pub use errno::{Errno, SystemError};

use crate::system::outcome::Outcome;

/// What of its own program not every task needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnCode {
    /// It takes the time of its calls and keeps them.
    Timing,
    /// It draws places by their popularity.
    Popularity,
    /// It does more than to wait for others and to tell them.
    Work,
}

/// For [`System::drop_caches`]: page cache, and with dentries and inodes reclaimable slab.
pub const ALL_CACHES: u8 = 3;

/// What a task may return. The simulator hands it over as it is; on Linux it leaves the task's
/// process as bytes.
pub trait Portable: Send + Serialize + DeserializeOwned + 'static {}

impl<T: Send + Serialize + DeserializeOwned + 'static> Portable for T {}

/// How to start a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSpec {
    /// What the task is called in reports.
    pub name: String,
    /// The cgroup it lives in, as a path below the workload's root such as `P/A`; `None` is the
    /// workload's root itself.
    pub cgroup: Option<String>,
    /// The CPU that it stays on; `None` leaves it to the scheduler.
    pub cpu: Option<u16>,
    /// It is moved to its cgroup once it is there, so that this one does not pay for what it costs by itself.
    pub moved: bool,
}

impl TaskSpec {
    /// A task in the workload's root cgroup.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), cgroup: None, cpu: None, moved: false }
    }

    /// The same task in cgroup `path`.
    #[must_use]
    pub fn in_cgroup(mut self, path: impl Into<String>) -> Self {
        self.cgroup = Some(path.into());
        self
    }

    /// The same task, moved to its cgroup after it has begun in the workload's root: its stack, its libraries and
    /// what the kernel keeps of it stay charged there. A real kernel does so in any case, as a task is forked
    /// first, and copies what it writes to later.
    #[must_use]
    pub fn moved(mut self) -> Self {
        self.moved = true;
        self
    }

    /// The same task on one CPU, as `sched_setaffinity(2)` would keep it.
    #[must_use]
    pub fn on_cpu(mut self, cpu: u16) -> Self {
        self.cpu = Some(cpu);
        self
    }
}

/// A pipe between tasks of one program: each [`System::open_gate`] lets one [`System::pass_gate`] through. It is a
/// number that goes into the closure of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gate(pub u32);

/// Memory that tasks of one program share: that of [`System::share_memory`]. It is a number that goes into the closure
/// of a task, and means the same to the task that made it and to all that come of that one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedMemory(pub u32);

/// How to open a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing file, for reading.
    Read,
    /// An existing file, for reading and writing.
    ReadWrite,
    /// A new file, for reading and writing; it is an error when it exists.
    Create,
}

/// CPU time of processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In the programs themselves.
    pub user: Nanos,
    /// In the kernel.
    pub system: Nanos,
}

/// Advice on a mapping, as for `madvise(2)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Prefer huge pages.
    HugePage,
    /// Do not use huge pages.
    NoHugePage,
    /// Drop the pages now.
    DontNeed,
    /// They are not needed soon: first in line for reclaim (`MADV_COLD`, 5.4).
    Cold,
    /// Reclaim them now (`MADV_PAGEOUT`, 5.4).
    PageOut,
    /// They need not be kept: reclaim may drop them until they are written again (`MADV_FREE`, 4.5).
    Free,
    /// Of a mapped file: read around a fault, as at first (`MADV_NORMAL`).
    Normal,
    /// Of a mapped file: nothing is read but what a fault asks for (`MADV_RANDOM`).
    Random,
    /// Of a mapped file: read ahead of a fault, and far (`MADV_SEQUENTIAL`).
    Sequential,
    /// Read it in now (`MADV_WILLNEED`).
    WillNeed,
}

/// Advice on a range of a file, as for `posix_fadvise(2)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAdvice {
    /// Read ahead as the kernel does unasked.
    Normal,
    /// Nothing is read ahead.
    Random,
    /// Read ahead twice as far.
    Sequential,
    /// Read it now.
    WillNeed,
    /// Drop what is cached of it and clean.
    DontNeed,
    /// It is read once.
    NoReuse,
}

/// How a file is mapped, as `mmap(2)` is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileMapping {
    /// Whether writes reach the file (`MAP_SHARED`); otherwise a page that is written to becomes anonymous.
    pub shared: bool,
    /// Whether it may be written to (`PROT_WRITE`).
    pub writable: bool,
    /// Whether code runs in it (`PROT_EXEC`): reclaim keeps such pages longer.
    pub executable: bool,
}

/// A program's view of a kernel.
///
/// Determinism: in the simulator every call returns the same at the same simulated time for the
/// same scenario. Paths of files and cgroups are relative to a root that the backend owns and
/// removes afterwards.
#[allow(async_fn_in_trait)] // Futures are not `Send` by design, see the module's header.
pub trait System: Clone + 'static {
    /// An open file. Cloning shares the descriptor; dropping the last clone closes it.
    type File: Clone + 'static;
    /// A mapping, of anonymous memory or of a file. Dropping it unmaps it.
    type Mapping: 'static;
    /// A running task that returns a `T`.
    type Task<T: Portable>;

    /// Time since boot (simulated) or since the start of the run (real).
    fn now(&self) -> Nanos;
    /// Sleeps; never fails.
    async fn sleep(&self, length: Nanos);
    /// CPUs that are online.
    fn cpus_online(&self) -> u16;
    /// Memory nodes that are online, at least 1.
    fn nodes_online(&self) -> u16;
    /// Disks for files, at least 1. Files lie on disk 0 unless their directory is on another one.
    fn disks_online(&self) -> u16 {
        1
    }
    /// Memory of the machine: what the kernel manages (`MemTotal`), or the limit of a run on a host
    /// that others use, too.
    fn memory_total(&self) -> Pages;
    /// The scenario's seed: all that a program draws comes from streams of it, so that two variants
    /// of a scenario see the same arrivals.
    fn seed(&self) -> Seed;
    /// The program works for so long by itself, without a system call: told where the model is to charge
    /// it. A real program takes its time anyway, and nothing happens.
    fn compute(&self, _length: Nanos) {}
    /// The program uses the CPU for so long without a system call, on a real kernel, too.
    async fn spin(&self, length: Nanos);
    /// CPU time of the task and of those of its tasks that were joined, as `times(2)` tells it: what a
    /// shell's `time` prints.
    ///
    /// # Errors
    /// `NotSup` where a backend has no such call.
    async fn cpu_time(&self) -> Result<CpuTime, SystemError> {
        Err(SystemError::new("times", "self", Errno::NotSup))
    }
    /// Makes the OOM killer like or spare this task, as `/proc/self/oom_score_adj`: of a thousand, so many
    /// parts of the memory count as if it held them besides what it does; -1000 is never killed. Tasks that
    /// it spawns later inherit it.
    ///
    /// # Errors
    /// `Inval` outside of -1000 to 1000; `Acces` when a lower value needs a privilege that the task lacks.
    async fn set_oom_score_adj(&self, adj: i16) -> Result<(), SystemError>;
    /// Tasks that the OOM killer has taken since boot, of whatever program: `oom_kill` of `/proc/vmstat`, 0
    /// where a kernel does not count them. A program that is to see its own end reads it often.
    async fn oom_kills(&self) -> Result<u64, SystemError>;
    /// Tells the monitors that a phase of the workload ends here: all counters are sampled under
    /// this name.
    fn mark(&self, phase: &str);

    /// What the program has measured so far: what is left of it where the machine does not survive the run, or the
    /// program does not. Its first task calls it.
    fn keep(&self, _so_far: &Outcome) {}

    /// Starts a task: a process of its own in `spec.cgroup`.
    ///
    /// # Errors
    /// `NoEnt` when the cgroup does not exist; `NoMem`.
    async fn spawn<T, F, Fut>(&self, spec: TaskSpec, program: F) -> Result<Self::Task<T>, SystemError>
    where
        T: Portable,
        F: FnOnce(Self) -> Fut + Send + 'static,
        Fut: Future<Output = T> + 'static;
    /// Whether a task has returned or was killed, so that joining it does not wait.
    fn has_ended<T: Portable>(&self, task: &Self::Task<T>) -> bool;
    /// Waits until a task has returned.
    ///
    /// # Errors
    /// `Killed` when the OOM killer took it.
    async fn join<T: Portable>(&self, task: Self::Task<T>) -> Result<T, SystemError>;

    /// Makes a gate, which is closed. To be called before the tasks that use it are spawned.
    ///
    /// # Errors
    /// `NotSup` where a backend has no such call.
    fn make_gate(&self) -> Result<Gate, SystemError> {
        Err(SystemError::new("pipe", "gate", Errno::NotSup))
    }
    /// Lets one task pass: writes a byte to the pipe.
    ///
    /// # Errors
    /// `NotSup`.
    async fn open_gate(&self, _gate: Gate) -> Result<(), SystemError> {
        Err(SystemError::new("write", "gate", Errno::NotSup))
    }
    /// Waits until the gate lets this task pass, or for `limit`; tells whether it did.
    ///
    /// # Errors
    /// `NotSup`.
    async fn pass_gate(&self, _gate: Gate, _limit: Nanos) -> Result<bool, SystemError> {
        Err(SystemError::new("read", "gate", Errno::NotSup))
    }
    /// Whether buffers of up to 128 KiB count, too: what a process costs was measured without them.
    fn counts_buffers(&self) -> bool {
        false
    }

    /// Later reads and writes of this task use a buffer of its own of so many bytes. A real program has such a buffer
    /// anyway, and nothing happens; the model gives it one and fills it.
    ///
    /// # Errors
    /// `NoMem`; `Killed`.
    async fn use_buffer(&self, _len: Bytes) -> Result<(), SystemError> {
        Ok(())
    }

    /// This task does something for the first time that takes more of its own program. A real one faults for that by
    /// itself, and nothing happens; the model counts those faults.
    fn first_use(&self, _of: OwnCode) {}

    /// Creates a cgroup (v2 names) with the memory controller enabled.
    async fn cgroup_create(&self, path: &str) -> Result<(), SystemError>;
    /// Removes an empty cgroup.
    async fn cgroup_remove(&self, path: &str) -> Result<(), SystemError>;
    /// Writes a cgroup v2 file such as `memory.max`.
    async fn cgroup_write(&self, path: &str, file: &str, value: &str) -> Result<(), SystemError>;
    /// Reads a cgroup v2 file such as `memory.stat`, in the kernel's own text form. Reading
    /// `memory.stat` flushes statistics, as it does on Linux. `memory.pressure` is that of the group and all below
    /// it; the empty path is the workload's root, in the simulator the machine.
    async fn cgroup_read(&self, path: &str, file: &str) -> Result<String, SystemError>;

    /// Creates a directory: `mkdir(2)`.
    ///
    /// # Errors
    /// `Exist` when something has that name already; `NoEnt` when the directory that it is to lie in does not
    /// exist.
    async fn make_dir(&self, path: &str) -> Result<(), SystemError>;
    /// Names in a directory, without those of itself and its parent; the simulator gives them in the order in
    /// which they were created: `getdents(2)` until the end.
    ///
    /// # Errors
    /// `NoEnt`; `NotDir`; `NotSup` where a backend has no such call.
    async fn read_dir(&self, path: &str) -> Result<Vec<String>, SystemError> {
        Err(SystemError::new("readdir", path, Errno::NotSup))
    }
    /// Removes an empty directory: `rmdir(2)`.
    ///
    /// # Errors
    /// `NotEmpty`; `NoEnt`; `NotDir`; `NotSup` where a backend has no such call.
    async fn remove_dir(&self, path: &str) -> Result<(), SystemError> {
        Err(SystemError::new("rmdir", path, Errno::NotSup))
    }
    /// Creates a directory at the top whose files lie on `disk`: the mount point of that disk's
    /// filesystem.
    ///
    /// # Errors
    /// `NoEnt` when the machine has no such disk.
    async fn make_dir_on(&self, path: &str, disk: u16) -> Result<(), SystemError> {
        if disk == 0 {
            return self.make_dir(path).await;
        }
        Err(SystemError::new("mount", path, Errno::NoEnt))
    }
    /// Creates a directory at the top whose files lie in memory: a tmpfs is mounted there. Backends may have it without
    /// directories below.
    ///
    /// # Errors
    /// `Exist`; `Perm`; `NotSup` where a backend has no such call.
    async fn make_dir_in_memory(&self, path: &str) -> Result<(), SystemError> {
        Err(SystemError::new("mount", path, Errno::NotSup))
    }
    /// Makes a file of `size` with all blocks allocated and none of its pages cached: the state
    /// of a file that was written long ago.
    async fn lay_out_file(&self, path: &str, size: Bytes) -> Result<(), SystemError>;
    /// The same of many files, by path and size, one after the other: a real kernel's counters are read before the
    /// first and after the last alone.
    ///
    /// # Errors
    /// That of the first file that cannot be made.
    async fn lay_out_files(&self, files: &[(String, Bytes)]) -> Result<(), SystemError> {
        for (path, size) in files {
            self.lay_out_file(path, *size).await?;
        }
        Ok(())
    }
    /// Opens a file.
    async fn open(&self, path: &str, mode: OpenMode) -> Result<Self::File, SystemError>;
    /// Bytes of a file, which is not opened: `stat(2)`. Dentry and inode are in memory then.
    async fn file_size(&self, path: &str) -> Result<u64, SystemError>;
    /// Reads `len` bytes at `offset`; returns how many there were before the end.
    async fn read(&self, file: &Self::File, offset: u64, len: u64) -> Result<u64, SystemError>;
    /// Writes `len` bytes at `offset` into the page cache.
    async fn write(&self, file: &Self::File, offset: u64, len: u64) -> Result<u64, SystemError>;
    /// Waits until a file's dirty pages are on the device.
    async fn fsync(&self, file: &Self::File) -> Result<(), SystemError>;
    /// Waits until all dirty pages are on their devices: `sync(2)`.
    async fn sync(&self) -> Result<(), SystemError>;
    /// Announces random reads of a file, so that nothing is read ahead: `posix_fadvise(2)`.
    async fn advise_random(&self, file: &Self::File) -> Result<(), SystemError>;
    /// Advises on a range of a file, 0 bytes being all up to its end: `posix_fadvise(2)`.
    ///
    /// # Errors
    /// `NotSup` where a backend has no such call.
    async fn advise_file(
        &self,
        _file: &Self::File,
        _offset: u64,
        _len: u64,
        _advice: FileAdvice,
    ) -> Result<(), SystemError> {
        Err(SystemError::new("fadvise", "file", Errno::NotSup))
    }
    /// Reads a range into the page cache and does not wait for all of it: `readahead(2)`.
    ///
    /// # Errors
    /// `NotSup` where a backend has no such call.
    async fn read_ahead(&self, _file: &Self::File, _offset: u64, _len: u64) -> Result<(), SystemError> {
        Err(SystemError::new("readahead", "file", Errno::NotSup))
    }
    /// Cuts or grows a file to `len` bytes; what it grows by is a hole: `ftruncate(2)`.
    ///
    /// # Errors
    /// `NotSup` where a backend has no such call.
    async fn truncate(&self, _file: &Self::File, _len: u64) -> Result<(), SystemError> {
        Err(SystemError::new("ftruncate", "file", Errno::NotSup))
    }
    /// Gives a file another name; the file that had it is removed: `rename(2)`.
    ///
    /// # Errors
    /// `NoEnt`; `NotSup` where a backend has no such call.
    async fn rename(&self, from: &str, _to: &str) -> Result<(), SystemError> {
        Err(SystemError::new("rename", from, Errno::NotSup))
    }
    /// Removes a file.
    async fn unlink(&self, path: &str) -> Result<(), SystemError>;
    /// Pages of the range that are in memory, by `mincore(2)`. It touches nothing.
    async fn resident_pages(&self, file: &Self::File, offset: u64, len: u64) -> Result<u64, SystemError>;

    /// Maps private anonymous memory.
    async fn map_anonymous(&self, len: Bytes) -> Result<Self::Mapping, SystemError>;
    /// Makes memory that this task shares with those that it spawns from now on, and they with theirs:
    /// `mmap(MAP_SHARED | MAP_ANONYMOUS)`. Its pages come when they are first touched, lie with the other anonymous
    /// ones, count as shared memory, and go when the last task that has it ends or drops its mapping.
    ///
    /// # Errors
    /// `NoMem`; `Killed`; `NotSup` where a backend has no such call.
    async fn share_memory(&self, _len: Bytes) -> Result<SharedMemory, SystemError> {
        Err(SystemError::new("mmap", "shared memory", Errno::NotSup))
    }
    /// The mapping that this task has of such memory; whoever drops it has it no more.
    ///
    /// # Errors
    /// `NoEnt` where the task does not have it; `Exist` for a mapping that was handed out already.
    async fn map_shared_memory(&self, _memory: SharedMemory) -> Result<Self::Mapping, SystemError> {
        Err(SystemError::new("mmap", "shared memory", Errno::NotSup))
    }
    /// Maps a range of a file, from a page's edge: `mmap(2)`. [`System::touch_reading`], [`System::touch`],
    /// [`System::advise`] and [`System::mapping_resident`] take such a mapping, too; a touch of a private one
    /// that writes makes an anonymous copy.
    ///
    /// # Errors
    /// `Inval` when `offset` is not that of a page; `NotSup` where a backend has no such call.
    async fn map_file(
        &self,
        _file: &Self::File,
        _offset: u64,
        _len: Bytes,
        _how: FileMapping,
    ) -> Result<Self::Mapping, SystemError> {
        Err(SystemError::new("mmap", "file", Errno::NotSup))
    }
    /// Touches (writes one byte to) every page of `first..first + count`.
    async fn touch(&self, mapping: &Self::Mapping, first: u64, count: u64) -> Result<(), SystemError>;
    /// Reads one byte of every page of `first..first + count`. The model has no page of zeros that is shared: one
    /// that was never written is made as by [`System::touch`].
    ///
    /// # Errors
    /// `Inval` outside of the mapping; `NotSup` where a backend has no such call.
    async fn touch_reading(
        &self,
        _mapping: &Self::Mapping,
        _first: u64,
        _count: u64,
    ) -> Result<(), SystemError> {
        Err(SystemError::new("touch", "anonymous memory", Errno::NotSup))
    }
    /// Writes to every page of `first..first + count` content that a compressor brings down to about
    /// `compressed` bytes; 0 is a page of one repeated byte.
    ///
    /// # Errors
    /// `Inval` outside of the mapping; `NotSup` where a backend has no such call.
    async fn write_content(
        &self,
        _mapping: &Self::Mapping,
        _first: u64,
        _count: u64,
        _compressed: u16,
    ) -> Result<(), SystemError> {
        Err(SystemError::new("write", "anonymous memory", Errno::NotSup))
    }
    /// Writes every byte of the pages `first..first + count`.
    async fn fill(&self, mapping: &Self::Mapping, first: u64, count: u64) -> Result<(), SystemError>;
    /// Advises on the whole mapping.
    async fn advise(&self, mapping: &Self::Mapping, advice: Advice) -> Result<(), SystemError>;
    /// Pages of `first..first + count` that are in memory, by `mincore(2)`. It touches nothing.
    ///
    /// # Errors
    /// `Inval` outside of the mapping; `NotSup` where a backend has no such call.
    async fn mapping_resident(
        &self,
        _mapping: &Self::Mapping,
        _first: u64,
        _count: u64,
    ) -> Result<u64, SystemError> {
        Err(SystemError::new("mincore", "anonymous memory", Errno::NotSup))
    }
    /// Locks the pages of `first..first + count` into memory, faulting them in.
    async fn lock_memory(&self, mapping: &Self::Mapping, first: u64, count: u64) -> Result<(), SystemError>;

    /// Drops clean page cache (bit 0) and reclaimable slab (bit 1), after a sync.
    async fn drop_caches(&self, mask: u8) -> Result<(), SystemError>;
    /// Drops all caches once files are laid out: what that frees was left by making them, and by whoever ran before,
    /// so that it is counted as little as making them is.
    ///
    /// # Errors
    /// Those of [`System::drop_caches`].
    async fn begin_cold(&self) -> Result<(), SystemError> {
        self.drop_caches(ALL_CACHES).await
    }
    /// Reads a sysctl by its name below `/proc/sys`, such as `vm/min_free_kbytes`, or `vm.…`.
    async fn sysctl_read(&self, name: &str) -> Result<String, SystemError>;
    /// Writes a sysctl.
    async fn sysctl_write(&self, name: &str, value: &str) -> Result<(), SystemError>;
    /// Writes a file of a NUMA node below `/sys/devices/system/node`, such as `reclaim`.
    ///
    /// # Errors
    /// `NoEnt` where the kernel has no such node or file; `NotSup` where a backend has no such call.
    async fn node_write(&self, node: u8, file: &str, _value: &str) -> Result<(), SystemError> {
        Err(SystemError::new("write", format!("node{node}/{file}"), Errno::NotSup))
    }
    /// `/proc/vmstat` as names and values.
    async fn vmstat(&self) -> Result<Vec<(String, u64)>, SystemError>;
}
