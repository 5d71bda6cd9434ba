//! Processes as memory management sees them: a cgroup, some memory of their own, and the OOM
//! killer's verdict.
//!
//! A process costs memory by itself: stack, heap and libraries' private pages, page tables and a
//! kernel stack. The sizes are those of a small static helper started by a shell in the measured
//! guests (`anon` 45 pages, `pagetables` 7, other kernel memory 12 in its cgroup one second into a
//! run). They are charged while it lives.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use mm::MemcgId;
use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::base::ids::AnonId;
use mm::pages::pace::FIRST_POLL;
use units::{Nanos, Order, Pfn};

use crate::huge::HugeAdvice;
use crate::kernel::Kernel;
use crate::machine::{CostOp, Machine};

/// Private pages of a process besides what the program maps.
const PROCESS_ANON_PAGES: u32 = 45;
/// Page tables, kernel stack and other kernel memory of a process.
const PROCESS_KERNEL_PAGES: u32 = 19;

/// Why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errno {
    /// No such file, directory or cgroup.
    NoEnt,
    /// It exists already.
    Exist,
    /// Not empty.
    NotEmpty,
    /// Busy.
    Busy,
    /// Invalid argument.
    Inval,
    /// No space left on the device.
    NoSpc,
    /// Out of memory.
    NoMem,
    /// The process was killed by the OOM killer.
    Killed,
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoEnt => "ENOENT",
            Self::Exist => "EEXIST",
            Self::NotEmpty => "ENOTEMPTY",
            Self::Busy => "EBUSY",
            Self::Inval => "EINVAL",
            Self::NoSpc => "ENOSPC",
            Self::NoMem => "ENOMEM",
            Self::Killed => "killed",
        })
    }
}

/// Identity of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessId(pub u32);

/// A process. Clones are handles on one process.
#[derive(Debug, Clone)]
pub struct Process(pub(crate) Rc<ProcessState>);

#[derive(Debug)]
pub(crate) struct ProcessState {
    pub(crate) id: ProcessId,
    pub(crate) name: String,
    pub(crate) memcg: MemcgId,
    pub(crate) killed: Cell<bool>,
    /// Anonymous mappings; the first holds the process's own pages. None: unmapped.
    pub(crate) anon: RefCell<Vec<Option<AnonArea>>>,
    pub(crate) kernel_pages: RefCell<Vec<Pfn>>,
    /// Page tables, by mapping and 2 MiB in it.
    pub(crate) page_tables: RefCell<BTreeMap<(usize, u32), Pfn>>,
    /// Pages charged above some `memory.high` since the last return to user mode.
    pub(crate) over_high_pages: Cell<u64>,
    pub(crate) pace: WriterPace,
}

/// How a process goes on making pages dirty (`nr_dirtied`, `nr_dirtied_pause`,
/// `dirty_paused_when`).
#[derive(Debug)]
pub(crate) struct WriterPace {
    /// Pages since the last look.
    pub(crate) dirtied: Cell<u32>,
    /// Pages until the next look.
    pub(crate) poll: Cell<u32>,
    /// When the last pause ended.
    pub(crate) paused_at: Cell<Nanos>,
}

/// An anonymous mapping of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnonArea {
    pub(crate) anon: AnonId,
    /// Its length in pages.
    pub(crate) pages: u64,
    pub(crate) advice: HugeAdvice,
}

/// Every living process, by id.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    pub(crate) list: Vec<Process>,
    next: u32,
}

impl Process {
    /// Its cgroup.
    pub fn memcg(&self) -> MemcgId {
        self.0.memcg
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether the OOM killer took it.
    pub fn is_killed(&self) -> bool {
        self.0.killed.get()
    }

    /// Fails if it was killed: checked at every system call.
    pub(crate) fn check_alive(&self) -> Result<(), Errno> {
        if self.is_killed() { Err(Errno::Killed) } else { Ok(()) }
    }
}

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Starts a process in `memcg`: allocates and charges what it costs by itself.
    ///
    /// # Errors
    /// `NoMem`; what was allocated so far is given back.
    pub async fn process_start(&self, name: &str, memcg: MemcgId) -> Result<Process, Errno> {
        let anon = self.mem(|mem| mem.anon_create());
        let own = AnonArea { anon, pages: u64::from(PROCESS_ANON_PAGES), advice: HugeAdvice::None };
        let process = {
            let mut processes = self.shared.processes.borrow_mut();
            let id = ProcessId(processes.next);
            processes.next += 1;
            let process = Process(Rc::new(ProcessState {
                id,
                name: name.to_string(),
                memcg,
                killed: Cell::new(false),
                anon: RefCell::new(vec![Some(own)]),
                kernel_pages: RefCell::new(Vec::new()),
                page_tables: RefCell::default(),
                over_high_pages: Cell::new(0),
                pace: WriterPace {
                    dirtied: Cell::new(0),
                    poll: Cell::new(FIRST_POLL),
                    paused_at: Cell::new(Nanos::ZERO),
                },
            }));
            processes.list.push(process.clone());
            process
        };
        let started = self.populate(&process).await;
        if let Err(errno) = started {
            self.process_exit(&process);
            return Err(errno);
        }
        Ok(process)
    }

    async fn populate(&self, process: &Process) -> Result<(), Errno> {
        for _ in 0..PROCESS_KERNEL_PAGES {
            let pfn = self.alloc_kernel_page(process).await?;
            process.0.kernel_pages.borrow_mut().push(pfn);
        }
        for index in 0..PROCESS_ANON_PAGES {
            self.add_anon_page(process, 0, index).await?;
        }
        Ok(())
    }

    /// An unmovable page of kernel memory, charged to the process's cgroup.
    pub(crate) async fn alloc_kernel_page(&self, process: &Process) -> Result<Pfn, Errno> {
        let gfp = Gfp::KERNEL | Gfp::ACCOUNT;
        self.charge_pages(process, process.memcg(), 1, gfp).await?;
        let Some(pfn) = self.alloc_pages(Some(process), gfp, Order(0)).await else {
            self.mem(|mem| mem.core.cgroups.uncharge(process.memcg(), 1));
            return Err(Errno::NoMem);
        };
        self.mem(|mem| {
            mem.core.cgroups.count_kernel_pages(process.memcg(), 1);
            mem.core.alloc.frames.set_memcg(pfn, process.memcg().0);
        });
        Ok(pfn)
    }

    /// Ends a process: frees what it maps and what it cost.
    pub fn process_exit(&self, process: &Process) {
        self.reap(process);
        let cpu = self.machine().current_cpu();
        for area in process.0.anon.borrow_mut().drain(..).flatten() {
            self.mem(|mem| mem.anon_remove(cpu, area.anon));
        }
        let tables = std::mem::take(&mut *process.0.page_tables.borrow_mut());
        let own = std::mem::take(&mut *process.0.kernel_pages.borrow_mut());
        tables.into_values().chain(own).for_each(|pfn| self.free_kernel_page(process, pfn));
        self.shared.processes.borrow_mut().list.retain(|other| other.0.id != process.0.id);
    }

    /// Frees a process's anonymous memory (`exit_mmap`, and the OOM reaper).
    pub(crate) fn reap(&self, process: &Process) {
        let cpu = self.machine().current_cpu();
        for area in process.0.anon.borrow().iter().flatten() {
            let freed = self.mem(|mem| mem.anon_unmap(cpu, area.anon, 0, u32::MAX));
            self.machine().charge(CostOp::PcpFree, freed);
        }
    }

    /// Anonymous pages that a process holds: what the OOM killer sorts by.
    pub(crate) fn anon_pages(&self, process: &Process) -> u64 {
        let areas = process.0.anon.borrow();
        self.mem(|mem| areas.iter().flatten().map(|area| mem.anon.pages(area.anon)).sum())
    }
}
