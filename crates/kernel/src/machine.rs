//! `Machine`: the kernel's view of the hardware and of the scheduler; the seam below the kernel.
//!
//! It models CPUs that are charged for work, sleeping with and without a wait queue, block
//! devices and the creation of tasks. The simulated machine implements it; a real one can, for a
//! page cache inside another process.
//!
//! Rules for callers: no borrow of kernel state and no remembered count crosses an `.await`; an
//! `.await` stands only where Linux could schedule, and its [`WaitReason`] names the sleep.

use std::future::Future;
use std::ops::AddAssign;
use std::rc::Rc;

use mm::base::layout::PageTables;
use mm::version::geometry::SlabBuild;
use units::{Bytes, CpuId, Nanos};

use crate::section::{Section, Whom};

/// A task of the machine: a user thread or a kernel thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// A wait queue. Queues are made at boot or on first use and never freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(pub u32);

/// A group of tasks whose pressure is told: a cgroup with what is below it. 0 is the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

impl GroupId {
    /// All tasks.
    pub const MACHINE: Self = Self(0);
}

/// How much tasks of a group were stalled, of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stalled {
    /// Running averages over 10, 60 and 300 s, in hundredths of a percent.
    pub average: [u64; 3],
    /// Altogether.
    pub total: Nanos,
}

/// Pressure stall information for memory (`memory.pressure`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pressure {
    /// At least one task was stalled.
    pub some: Stalled,
    /// All tasks that had something to do were stalled at the same time.
    pub full: Stalled,
}

/// Why a task waits: the label that attributes a stall. Named after the kernel's own sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitReason {
    /// `kswapd` with nothing to do.
    KswapdIdle,
    /// `kswapd` dozing 100 ms before it sleeps for good.
    KswapdDoze,
    /// `kcompactd` with nothing to do.
    KcompactdIdle,
    /// `khugepaged` between two rounds.
    KhugepagedIdle,
    /// `throttle_direct_reclaim`: on `pfmemalloc_wait` until kswapd has freed some reserve.
    DirectReclaimThrottle,
    /// `stall_fragmentation`: on `pfmemalloc_wait` until kswapd makes progress (source 4).
    FragmentStall,
    /// `reclaim_throttle`, reason writeback.
    ThrottleWriteback,
    /// `reclaim_throttle`, reason no progress.
    ThrottleNoProgress,
    /// `congestion_wait` and `wait_iff_congested`.
    Congestion,
    /// `zonepressure_wait`: until a zone is above its low mark again; kswapd's own pause with it (source 1).
    PressureWait,
    /// Waiting for a page that is being read: `folio_wait_locked`.
    PageRead,
    /// Waiting for a page under writeback.
    PageWriteback,
    /// Another task writes to the file: `inode_lock`.
    FileLock,
    /// A writer is paused: `balance_dirty_pages`.
    DirtyThrottle,
    /// A cgroup uses more swap than it should: `mem_cgroup_handle_over_high`.
    OverHigh,
    /// The disk's queue is full: `blk_mq_get_tag`.
    RequestQueue,
    /// Records of the log of XFS are on their way: `xlog_wait`.
    LogWrite,
    /// The log of XFS has no room until its tail has moved: `xlog_grant_head_wait`.
    LogSpace,
    /// The shrinker of XFS waits until an inode is written: `xfs_reclaim_inode`.
    InodeReclaim,
    /// The flusher with nothing to do.
    FlusherIdle,
    /// One jiffy because another task runs the OOM killer.
    OomLock,
    /// Workers drain the per-CPU lists: `drain_all_pages`.
    ListDrain,
    /// The program itself asked to sleep.
    UserSleep,
    /// A program waits for another task of its own.
    Join,
    /// A periodic kernel worker between two rounds.
    Periodic,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Woken {
    /// Somebody woke the queue.
    Signalled,
    /// The timeout passed first.
    TimedOut,
}

/// An operation that costs CPU time. The machine's cost table maps each to nanoseconds; the
/// table's defaults and their sources are MECHANISMS section 16 (see `docs/mechanisms`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum CostOp {
    /// Entry and exit of a system call.
    Syscall,
    /// A page from the per-CPU list.
    PcpAlloc,
    /// A page to the per-CPU list.
    PcpFree,
    /// Refill or drain of a per-CPU list, for each page.
    PcpRefillPage,
    /// A block of order > 0 from the buddy lists.
    BuddyAlloc,
    /// Adding a page to the page cache: tree, LRU batch, charge.
    PageCacheAdd,
    /// Copying one page to or from user memory.
    CopyPage,
    /// Clearing one page.
    ClearPage,
    /// Readahead and extent mapping, for each page.
    ReadaheadPage,
    /// A request to a block device, however long: submission, dispatch, interrupt and wake-up.
    IoRequest,
    /// Looking at a page on an LRU list and keeping it.
    ScanPage,
    /// Freeing a clean page found by reclaim, beyond the scan.
    ReclaimPage,
    /// Another page of a clean file folio that reclaim frees, scan included.
    ReclaimTail,
    /// Its place in its file's tree, where its folio fills no leaf of it.
    ReclaimLeaf,
    /// Moving a page from the active to the inactive list.
    DeactivatePage,
    /// `fork` and `exit` of a process, beside its pages and faults.
    StartProcess,
    /// The same for each page of its parent that it shares (`copy_page_range`, `zap_pte_range`).
    ForkPage,
    /// A program reads the clock.
    ReadClock,
    /// A minor fault without the clearing of its page.
    MinorFault,
    /// The same of a page that a call maps, as `mlock` does: nobody traps.
    PopulatePage,
    /// A fault on a page that is there ([`PageTables::UserMode`]).
    AccessFault,
    /// A mapping of the host's follows a page table ([`PageTables::UserMode`]).
    Remap,
    /// Visiting one memcg in a reclaim walk.
    WalkMemcg,
    /// Scanning one slab object.
    SlabScanObject,
    /// Allocating or freeing a slab object.
    SlabObject,
    /// Moving all free pages of a pageblock on a steal.
    StealBlock,
    /// Draining the per-CPU lists of all CPUs, for each CPU.
    DrainCpu,
    /// Moving an unmapped file page to another frame, or failing to.
    MigratePage,
    /// Moving a mapped page to another frame.
    MigrateMappedPage,
    /// A frame that the migrate scanner looks at.
    CompactScanMigrate,
    /// A frame that the free scanner looks at.
    CompactScanFree,
    /// Clearing a huge page.
    ClearHugePage,
    /// A fault that brings in a huge page, without the clearing.
    HugeFault,
    /// A call that looks a path up: an open without the close, a `stat(2)`, a `mkdir(2)` of what is there.
    FileOpen,
    /// Creating a file, the close with it.
    FileCreate,
    /// Laying out a file before anything is measured, its pages aside.
    LayOutFile,
    /// Laying out a page of it.
    LayOutPage,
    /// Removing a file.
    FileUnlink,
    /// Evicting an inode.
    InodeEvict,
    /// Preparing a dirty page for its request.
    WritebackPage,
    /// Writing a chunk of an inode back, beyond its pages and requests.
    WritebackInode,
    /// What that takes more on ext4.
    WritebackInodeExt4,
    /// What is left to be done of a run of pages when the disk has it.
    WritebackEnd,
    /// The first use of a page frame since boot. Free on real memory; behind a hypervisor the host
    /// has to find a page of its own first.
    FirstUse,
    /// Locking a page of a mapping, beyond its fault, with what it takes to let it go again.
    LockPage,
    /// A microsecond of what a program does by itself, outside of the kernel.
    UserMicrosecond,
    /// A context switch.
    ContextSwitch,
    /// A fault that brings a page back from swap, without the device.
    MajorFault,
    /// Taking a page into the swap cache, or out of it.
    SwapCache,
    /// Putting a page into a request to swap, and what of the device's work is the CPU's.
    SwapWrite,
    /// A swap slot from those that the CPU keeps.
    SwapSlot,
    /// Fetching a swap slot from its area for the CPU.
    SwapSlotFetch,
    /// Taking a mapped page out of its page table, with its share of the flush.
    UnmapPage,
    /// Mapping a page that is in memory besides that of a fault.
    MapAround,
    /// Taking a page out of a page table that goes.
    ZapPage,
    /// Looking whether a page is of one repeated word.
    SameFilledTest,
    /// Compressing a page and storing what is left.
    CompressPage,
    /// Getting a compressed page back.
    DecompressPage,
}

impl CostOp {
    /// Number of operations: the length of a cost table.
    pub const COUNT: usize = Self::DecompressPage as usize + 1;
}

/// How a kernel is built for a machine, and started on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KernelBuild {
    /// How long ago it was booted when a run begins; none: so long that nothing goes by it.
    pub since_boot: Option<Nanos>,
    /// Who walks the page tables of its programs.
    pub page_tables: PageTables,
    /// What is missing as it is built for one CPU (`CONFIG_SMP=n`); none: it is for many.
    pub uniprocessor: Option<Uniprocessor>,
    /// When it preempts tasks inside itself; none: as its version does on most machines.
    pub preemption: Option<BuiltPreemption>,
    /// Where stacks of tasks lie.
    pub stacks: Stacks,
    /// What the first process of a run costs by itself.
    pub first_process: ProcessCost,
    /// What every later one costs.
    pub process: ProcessCost,
    /// Whether that is without their buffers for files.
    pub counts_buffers: bool,
    /// What starts and watches a run costs.
    pub run: RunCost,
    /// When files were written that lie there when a run begins.
    pub laid_out: LaidOut,
    /// Size of each of its disks, which decides how large the journal of ext4 is; none: nobody says it.
    pub disk_size: Option<Bytes>,
    /// What slab is made of.
    pub slab: SlabBuild,
    /// Writes that the queue of a disk holds before their sender sleeps (`nr_requests`); none: 128.
    pub requests_max: Option<u32>,
    /// Pages of one request to a disk (`max_sectors_kb`); none: 1280 KiB, since 6.14 4 MiB.
    pub request_pages_max: Option<u32>,
}

/// Preemption inside a kernel, where its build decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltPreemption {
    /// At `cond_resched()` alone (`PREEMPT_NONE`).
    None,
    /// Also where it might sleep (`PREEMPT_VOLUNTARY`).
    Voluntary,
}

/// A kernel for one CPU: it has no worker that tends per-CPU statistics and lists, and each switch of tasks ends a
/// grace period of RCU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uniprocessor {
    /// Whether its per-CPU lists of pages hold any.
    pub page_lists: bool,
}

/// When files were written that lie there when a run begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LaidOut {
    /// So long ago that memory knows nothing of it.
    #[default]
    LongAgo,
    /// Just before, a part after the other: the pages that they had are the last that were freed.
    JustBefore,
}

/// What a process costs by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessCost {
    /// From `fork` on.
    pub fork: OwnPages,
    /// Once it has moved itself into its cgroup, which pays for no more than this. None: it begins there.
    pub moved: Option<OwnPages>,
    /// What starting it costs more once whoever starts it has been told of the end of others.
    pub grown: Option<Grown>,
    /// Faults of one that takes the time of its calls, of one that draws places by popularity, and of one that does
    /// more than to wait for others and to tell them, beside those.
    pub used: [u32; 3],
}

impl ProcessCost {
    /// The same for one that had its faults before anybody counts or waits.
    #[must_use]
    pub const fn without_faults(mut self) -> Self {
        self.fork.faults = 0;
        if let Some(moved) = &mut self.moved {
            moved.faults = 0;
        }
        self
    }
}

/// What a process costs more that is started by one with more pages of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grown {
    /// Faults on pages that both have.
    pub faults: u32,
    /// Entries of its page tables that change and must be told to who walks them.
    pub remaps: u32,
}

/// Pages of a process, and the faults by which it gets them and finds those of its program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnPages {
    /// Private pages: stack, heap, what it writes to of its libraries.
    pub anon: u32,
    /// Page tables, kernel stack and other kernel memory.
    pub kernel: u32,
    /// Faults, where they were measured.
    pub faults: u32,
}

impl Default for ProcessCost {
    /// A small static program in guests of QEMU.
    fn default() -> Self {
        Self { fork: OwnPages { anon: 45, kernel: 19, faults: 0 }, moved: None, grown: None, used: [0; 3] }
    }
}

/// What the program that starts and watches a run adds to the counters of its machine, whatever the run is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunCost {
    /// Faults.
    pub faults: u32,
    /// Anonymous pages of that program, which all others have from `fork`.
    pub anon: u32,
    /// Of those, pages that whoever runs reads.
    pub used: u32,
    /// Pages allocated.
    pub allocated: u32,
    /// Of those, pages freed at once.
    pub freed: u32,
}

impl AddAssign for RunCost {
    fn add_assign(&mut self, more: Self) {
        self.faults += more.faults;
        self.anon += more.anon;
        self.used += more.used;
        self.allocated += more.allocated;
        self.freed += more.freed;
    }
}

/// Where the four pages of a task's kernel stack lie.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stacks {
    /// Anywhere (`CONFIG_VMAP_STACK`).
    #[default]
    Mapped,
    /// Side by side: a request of order 2, as long as there was no such option, and in User-Mode Linux.
    Contiguous,
}

/// Direction of a block request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoKind {
    /// From the device.
    Read,
    /// To the device.
    Write,
    /// To the device, complete when this and all that was written before lies where a loss of power cannot
    /// reach it (`REQ_PREFLUSH | REQ_FUA`).
    DurableWrite,
}

/// One request to a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoRequest {
    /// Index of the device in the machine.
    pub device: u16,
    /// Direction.
    pub kind: IoKind,
    /// Byte offset on the device.
    pub offset: u64,
    /// Length.
    pub len: Bytes,
    /// Runs of adjacent frames among its pages, in the order of the request: the elements of its
    /// scatter-gather list (`blk_rq_map_sg`). At least 1.
    pub segments: u32,
    /// Handed back to the handler of [`Machine::on_io_done`] when the request is complete.
    pub tag: u64,
}

/// The hardware and scheduler below a kernel. Handles are cheap clones of one machine.
#[allow(async_fn_in_trait)] // A run is single-threaded: futures need not be `Send`.
pub trait Machine: Clone + 'static {
    /// Time since boot.
    fn now(&self) -> Nanos;
    /// CPUs of the machine.
    fn cpu_count(&self) -> u16;
    /// Ticks per second of the kernel (`CONFIG_HZ`), as it is built for this machine.
    fn hz(&self) -> u64;
    /// How the kernel is built for it, and started on it.
    fn build(&self) -> KernelBuild;
    /// Block devices of the machine.
    fn device_count(&self) -> u16;
    /// Whether an operation takes no time, so that nobody need count it.
    fn is_free(&self, op: CostOp) -> bool;
    /// The CPU that the running task is on. It can change at every `.await`.
    fn current_cpu(&self) -> CpuId;
    /// The running task.
    fn current_task(&self) -> TaskId;

    /// The running task enters a section: its waits are told as part of it. A site is entered outside of
    /// all others, a shrinker at most within a site.
    fn enter(&self, section: Section);
    /// It leaves the section that it entered last.
    fn leave(&self, section: Section);
    /// Who could end the next waits of the running task; none: what their reasons say.
    fn blame(&self, whom: Option<Whom>);

    /// The running task begins or ends a stall on memory that is none of its sections (`psi_memstall_enter`,
    /// `psi_memstall_leave`). Sites of reclaim and compaction are stalls by themselves; they nest.
    fn stall(&self, begins: bool);
    /// A group is made below `parent`; groups are numbered from 1 in that order.
    fn add_group(&self, group: GroupId, parent: GroupId);
    /// The running task is of `group` from now on; before, it is of the machine only.
    fn join_group(&self, group: GroupId);
    /// What reading a group's `memory.pressure` shows. A look folds what CPUs have gathered, as in the kernel,
    /// and with that changes later totals by a little.
    fn pressure(&self, group: GroupId) -> Pressure;

    /// Adds `count` times the cost of `op` to the running task's CPU debt. Time passes at the
    /// next [`Machine::cond_resched`], sleep or end of the task.
    fn charge(&self, op: CostOp, count: u64);
    /// Lets the CPU time charged so far pass; another task may run meanwhile, here or elsewhere.
    async fn cond_resched(&self);
    /// The same at the end of a system call or fault, where every kernel lets a task that is to give way do so.
    async fn return_to_user(&self);
    /// Sleeps for `length`. The sleeper's CPU debt passes first.
    async fn sleep(&self, length: Nanos, reason: WaitReason);

    /// A new wait queue.
    fn new_queue(&self) -> QueueId;
    /// Waits on a queue until it is woken or `timeout` has passed. The caller's CPU debt passes
    /// after it has joined the queue, so that a wake-up in between is not lost.
    async fn wait(&self, queue: QueueId, reason: WaitReason, timeout: Option<Nanos>) -> Woken;
    /// Wakes every waiter of a queue; returns how many there were.
    fn wake_all(&self, queue: QueueId) -> usize;
    /// Whether anybody waits on a queue.
    fn has_waiters(&self, queue: QueueId) -> bool;

    /// Starts a task that is ready to run at once, pinned to `cpu` if given.
    fn spawn(&self, name: &str, cpu: Option<CpuId>, program: impl Future<Output = ()> + 'static) -> TaskId;

    /// Stops the machine for good: nothing happens any more once the running task waits.
    fn halt(&self);

    /// Hands a request to a block device, which it reaches when the CPU time charged before has
    /// passed.
    fn submit(&self, request: IoRequest);
    /// Registers what is called (in interrupt context: it may wake, not wait) with the tag of
    /// every completed request. Called once, at boot.
    fn on_io_done(&self, handler: Rc<dyn Fn(u64)>);
}
