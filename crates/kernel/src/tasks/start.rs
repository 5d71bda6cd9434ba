//! Starting and ending processes.
//!
//! A process costs memory by itself: stack, heap and libraries' private pages, page tables and a kernel stack. How much
//! is the machine's ([`ProcessCost`]). It is charged while the process lives.
//!
//! Left out: that parent and child copy the pages they share when they write to them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use mm::MemcgId;
use mm::base::event::Trace;
use mm::pages::anon::AnonMaps;
use units::Order;

use crate::anon::area::{AnonArea, HugeAdvice, UsedPages};
use crate::errno::Errno;
use crate::handle::Kernel;
use crate::machine::{CostOp, Grown, Machine, OwnPages, ProcessCost, RunCost, Stacks};
use crate::tasks::process::{OOM_SCORE_ADJ_MIN, Process, ProcessId, ProcessState, STACK_ORDER};

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Starts a process in `memcg`: allocates and charges what it costs by itself.
    ///
    /// # Errors
    /// `NoMem`; what was allocated so far is given back.
    pub async fn process_start(&self, name: &str, memcg: MemcgId) -> Result<Process, Errno> {
        self.start_at(name, memcg, self.machine().build().process).await
    }

    /// The same as a child of `parent`, whose private pages it shares: it has a table for each of its parent's
    /// (`copy_page_range`).
    ///
    /// # Errors
    /// As [`Self::process_start`].
    pub async fn process_fork(&self, parent: &Process, name: &str, memcg: MemcgId) -> Result<Process, Errno> {
        let areas = parent.inherited_areas();
        let pages = |maps: &AnonMaps, anon| maps.pages(anon) + maps.swapped_pages(anon);
        let shared = self.mem(|mem| areas.iter().map(|area| pages(&mem.anon, area.anon)).sum());
        self.machine().charge(CostOp::ForkPage, shared);
        let child = self.process_start(name, memcg).await?;
        let tables = OwnPages { anon: 0, kernel: parent.inherited_tables(), faults: 0 };
        let copied = self.populate(&child, tables, self.machine().build().process.fork.anon).await;
        self.started(child, copied)
    }

    /// A process whose start has come so far; one that failed gives back what it has.
    fn started(&self, process: Process, so_far: Result<(), Errno>) -> Result<Process, Errno> {
        if let Err(errno) = so_far {
            self.process_exit(&process);
            self.process_reaped(&process);
            return Err(errno);
        }
        Ok(process)
    }

    async fn start_at(&self, name: &str, memcg: MemcgId, cost: ProcessCost) -> Result<Process, Errno> {
        let anon = self.mem(|mem| mem.anon_create());
        let ProcessCost { fork, moved, grown, .. } = cost;
        let pages = u64::from(fork.anon + moved.map_or(0, |moved| moved.anon));
        let own = AnonArea { anon, file: None, shared: false, pages, advice: HugeAdvice::None };
        let process = {
            let mut processes = self.shared.processes.borrow_mut();
            let id = ProcessId(processes.next);
            processes.next += 1;
            let process = Process(Rc::new(ProcessState {
                id,
                name: name.to_string(),
                memcg: Cell::new(memcg),
                killed: Cell::new(false),
                oom_score_adj: Cell::new(0),
                anon: RefCell::new(vec![Some(own)]),
                mapped: Cell::new(pages),
                kernel_pages: RefCell::new(Vec::new()),
                stack: Cell::new(None),
                page_tables: RefCell::default(),
                mapped_files: RefCell::default(),
                shared_files: RefCell::default(),
                in_file_fault: Cell::new(false),
                locked: RefCell::default(),
                over_high_pages: Cell::new(0),
                pace: Cell::default(),
            }));
            processes.list.push(process.clone());
            process
        };
        self.pay_for_grown_parent(memcg, grown);
        let populated = self.populate(&process, fork, 0).await;
        self.started(process, populated)
    }

    /// Once whoever starts processes has been told of the end of some, it has more pages that a process is started
    /// with, and each of them is to be written to again.
    fn pay_for_grown_parent(&self, memcg: MemcgId, grown: Option<Grown>) {
        if let Some(Grown { faults, remaps }) = grown
            && self.shared.processes.borrow().has_reaped
        {
            self.take_faults(memcg, faults);
            self.machine().charge(CostOp::MinorFault, u64::from(faults));
            self.machine().charge(CostOp::Remap, u64::from(remaps));
        }
    }

    /// Gives a process pages of its own, charged to the group that it is in: of its anonymous ones those from `first`
    /// on.
    async fn populate(&self, process: &Process, own: OwnPages, first: u32) -> Result<(), Errno> {
        let payer = process.memcg();
        let mut singles = own.kernel;
        if self.machine().build().stacks == Stacks::Contiguous && first == 0 {
            process.0.stack.set(Some((self.alloc_kernel_pages(process, STACK_ORDER).await?, payer)));
            singles -= STACK_ORDER.pages();
        }
        for _ in 0..singles {
            let pfn = self.alloc_kernel_pages(process, Order(0)).await?;
            process.0.kernel_pages.borrow_mut().push((pfn, payer));
        }
        for index in first..first + own.anon {
            self.add_anon_page(process, 0, index).await?;
        }
        self.take_faults(payer, own.faults);
        Ok(())
    }

    /// A process begins to run, in its cgroup: it gets the last of its own pages there, or is killed for them.
    pub async fn process_runs(&self, process: &Process) {
        self.runs_at(process, self.machine().build().process).await;
    }

    async fn runs_at(&self, process: &Process, cost: ProcessCost) {
        self.machine().charge(CostOp::StartProcess, 1);
        let ProcessCost { fork, moved, .. } = cost;
        if let Some(moved) = moved {
            let _ = self.populate(process, moved, fork.anon).await;
        }
    }

    /// Starts the first process of a run, in the root, beside what starts and watches the run; `begin` is called when
    /// counting begins.
    ///
    /// # Errors
    /// As [`Self::process_start`].
    pub async fn run_begins(&self, name: &str, begin: impl FnOnce()) -> Result<Process, Errno> {
        let build = self.machine().build();
        self.start_watcher(build.run).await?;
        let process = self.start_at(name, MemcgId::ROOT, build.first_process).await?;
        self.runs_at(&process, build.first_process).await;
        let RunCost { faults, allocated, freed, .. } = build.run;
        begin();
        let payer = process.memcg();
        for number in 0..allocated {
            let Ok(pfn) = self.alloc_kernel_pages(&process, Order(0)).await else { break };
            // What is freed is so before more is taken: per-CPU lists refill by little then.
            if number < freed {
                self.free_kernel_pages(payer, pfn, Order(0));
            } else {
                process.0.kernel_pages.borrow_mut().push((pfn, payer));
            }
        }
        // They come before the workload is begun, or when it is over: it does not wait for them.
        (0..faults).for_each(|_| self.count_fault(process.memcg()));
        Ok(process)
    }

    /// The program that starts and watches a run, which nobody kills.
    async fn start_watcher(&self, run: RunCost) -> Result<(), Errno> {
        if run.anon > 0 {
            let kernel = self.machine().build().first_process.fork.kernel;
            let fork = OwnPages { anon: run.anon, kernel, faults: 0 };
            let cost = ProcessCost { fork, ..ProcessCost::default() };
            let watcher = self.start_at("init", MemcgId::ROOT, cost).await?;
            watcher.set_oom_score_adj(OOM_SCORE_ADJ_MIN)?;
            let area = watcher.0.anon.borrow()[0];
            let used = area.map(|area| UsedPages { area, used: run.used.into(), write: false });
            self.shared.inherited.set(used);
        }
        Ok(())
    }

    /// Faults of a process on pages of its program that it has not used before.
    pub fn program_faults(&self, process: &Process, faults: u32) {
        self.take_faults(process.memcg(), faults);
    }

    /// Counted one by one, as cgroups may be told of them in batches.
    fn take_faults(&self, memcg: MemcgId, faults: u32) {
        self.machine().charge(CostOp::AccessFault, faults.into());
        (0..faults).for_each(|_| self.count_fault(memcg));
    }

    /// Moves a process to `memcg`: what it allocates from here on is charged there, what it has is not
    /// (`cgroup.procs` of version 2).
    pub fn process_move(&self, process: &Process, memcg: MemcgId) {
        process.0.memcg.set(memcg);
    }

    /// Ends a process: frees what it maps and what it cost.
    pub fn process_exit(&self, process: &Process) {
        self.unmap_all(process);
        let cpu = self.machine().current_cpu();
        self.shared.cpu_paces.borrow_mut()[cpu.index()].leave(process.0.pace.get());
        for area in process.0.anon.borrow_mut().drain(..).flatten() {
            if !area.shared {
                self.mem(|mem| mem.anon_remove(cpu, area.anon));
            }
            if let Some(file) = area.file {
                self.mem(|mem| mem.unmap_area(cpu, file));
            }
        }
        process.0.mapped_files.borrow_mut().clear();
        process.0.shared_files.borrow_mut().clear();
        self.put_shared();
        self.put_closed();
        let tables = std::mem::take(&mut *process.0.page_tables.borrow_mut());
        let own = std::mem::take(&mut *process.0.kernel_pages.borrow_mut());
        tables.into_values().for_each(|pfn| self.free_kernel_pages(process.memcg(), pfn, Order(0)));
        own.into_iter().for_each(|(pfn, payer)| self.free_kernel_pages(payer, pfn, Order(0)));
        self.shared.processes.borrow_mut().list.retain(|other| other.0.id != process.0.id);
    }

    /// Whoever waited for an ended process has been told of it (`release_task`): a grace period later its stack is
    /// free.
    pub fn process_reaped(&self, process: &Process) {
        self.shared.processes.borrow_mut().has_reaped = true;
        if let Some(stack) = process.0.stack.take() {
            self.shared.processes.borrow_mut().stacks.push(stack);
            self.wake_queue(self.shared.rcu);
        }
    }
}
