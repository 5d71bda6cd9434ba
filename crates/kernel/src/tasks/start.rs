//! Starting and ending processes.
//!
//! A process costs memory by itself: stack, heap and libraries' private pages, page tables and a
//! kernel stack. The sizes are those of a small static helper in the measured guests. They are charged while it lives.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use mm::MemcgId;
use mm::base::event::Trace;
use units::Order;

use crate::anon::area::{AnonArea, HugeAdvice};
use crate::errno::Errno;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine, Stacks};
use crate::tasks::process::{Process, ProcessId, ProcessState, STACK_PAGES};

/// Private pages of a process besides what the program maps.
const PROCESS_ANON_PAGES: u32 = 45;

/// Page tables, kernel stack and other kernel memory of a process.
const PROCESS_KERNEL_PAGES: u32 = 19;

/// Faults of a process once it has moved itself into its cgroup: measured, 32 to 33 in guests of 5.10 and 6.12.
const FAULTS_IN_GROUP: u32 = 32;

/// That of a kernel stack in one block.
const STACK_ORDER: Order = Order(STACK_PAGES.trailing_zeros() as u8);

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Starts a process in `memcg`: allocates and charges what it costs by itself.
    ///
    /// # Errors
    /// `NoMem`; what was allocated so far is given back.
    pub async fn process_start(&self, name: &str, memcg: MemcgId) -> Result<Process, Errno> {
        let anon = self.mem(|mem| mem.anon_create());
        let pages = u64::from(PROCESS_ANON_PAGES);
        let own = AnonArea { anon, file: None, shared: false, pages, advice: HugeAdvice::None };
        let process = {
            let mut processes = self.shared.processes.borrow_mut();
            let id = ProcessId(processes.next);
            processes.next += 1;
            let process = Process(Rc::new(ProcessState {
                id,
                name: name.to_string(),
                memcg: Cell::new(memcg),
                first_memcg: memcg,
                killed: Cell::new(false),
                oom_score_adj: Cell::new(0),
                anon: RefCell::new(vec![Some(own)]),
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
        let started = self.populate(&process).await;
        if let Err(errno) = started {
            self.process_exit(&process);
            return Err(errno);
        }
        // Those of the fork itself are of the group that its parent is in.
        let faults = self.machine().build().process_faults.saturating_sub(FAULTS_IN_GROUP);
        self.take_faults(MemcgId::ROOT, faults);
        Ok(process)
    }

    async fn populate(&self, process: &Process) -> Result<(), Errno> {
        let mut singles = PROCESS_KERNEL_PAGES;
        if self.machine().build().stacks == Stacks::Contiguous {
            process.0.stack.set(Some(self.alloc_kernel_pages(process, STACK_ORDER).await?));
            singles -= STACK_ORDER.pages();
        }
        for _ in 0..singles {
            let pfn = self.alloc_kernel_pages(process, Order(0)).await?;
            process.0.kernel_pages.borrow_mut().push(pfn);
        }
        for index in 0..PROCESS_ANON_PAGES {
            self.add_anon_page(process, 0, index).await?;
        }
        Ok(())
    }

    /// A process begins to run, in its cgroup: the last of the faults by which it gets its pages, where they are known.
    pub fn process_runs(&self, process: &Process) {
        let faults = self.machine().build().process_faults.min(FAULTS_IN_GROUP);
        self.take_faults(process.memcg(), faults);
    }

    fn take_faults(&self, memcg: MemcgId, faults: u32) {
        self.machine().charge(CostOp::AccessFault, faults.into());
        self.count_faults(memcg, faults.into());
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
        let payer = process.0.first_memcg;
        own.into_iter().for_each(|pfn| self.free_kernel_pages(payer, pfn, Order(0)));
        if let Some(stack) = process.0.stack.take() {
            self.free_kernel_pages(payer, stack, STACK_ORDER);
        }
        self.shared.processes.borrow_mut().list.retain(|other| other.0.id != process.0.id);
    }
}
