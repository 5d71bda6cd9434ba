//! Arrays of free objects: two at each CPU, and some more in the barn of each node (7.0; MECHANISMS-510-72 7.1).
//!
//! ```text
//!   alloc <-- main <-- spare <-- full sheaves of the barn <-- partial slabs <-- new slabs
//!   free  --> main --> spare --> full sheaves of the barn, up to ten --> slabs
//! ```
//! An object in a sheaf is taken from its slab. So up to (2 * CPUs + 10 * nodes) sheaves of free objects, of
//! whichever slabs, keep the pages of those from being freed, and no reclaim flushes them.
//!
//! Objects leave slabs by whole sheaves: in measured guests those that slabs lack are a multiple of 60 or 12. If
//! there is no slab to fill one up, what there is waits with the CPU. Left out: memory of the sheaves themselves, the
//! sheaf that collects objects freed by RCU (they come one by one, a grace period later), objects of other nodes,
//! which bypass sheaves. Neighbours: [`crate::slab::table`] for the slabs, [`crate::slab::cpu_slabs`] for what was
//! there before.

use std_alloc::vec;
use std_alloc::vec::Vec;

use units::{CpuId, NodeId};

use crate::slab::table::{SlabId, SlabTable};

/// Full sheaves that a barn takes (`MAX_FULL_SHEAVES`).
const FULL_MAX: usize = 10;

/// Free objects, by their slabs; the last one is the next to be taken.
type Sheaf = Vec<SlabId>;

#[derive(Debug, Clone)]
struct CpuSheaves {
    node: NodeId,
    main: Sheaf,
    /// Empty or full.
    spare: Sheaf,
    /// The next main sheaf, while it is filled.
    next: Sheaf,
}

/// All sheaves of a cache.
#[derive(Debug, Clone)]
pub(super) struct Sheaves {
    capacity: usize,
    cpus: Vec<CpuSheaves>,
    /// Full ones, by node. Empty ones are only memory.
    barns: Vec<Vec<Sheaf>>,
}

impl Sheaves {
    /// Empty ones of so many objects; `cpu_nodes` has the node of each CPU.
    pub(super) fn new(cpu_nodes: &[NodeId], nodes: usize, capacity: u32) -> Self {
        let empty = Vec::new;
        let of = |&node| CpuSheaves { node, main: empty(), spare: empty(), next: empty() };
        let (cpus, barns) = (cpu_nodes.iter().map(of).collect(), vec![Vec::new(); nodes]);
        Self { capacity: capacity as usize, cpus, barns }
    }

    /// Takes an object; none when a new slab is needed.
    #[inline]
    pub(super) fn alloc(&mut self, table: &mut SlabTable, cpu: CpuId) -> Option<SlabId> {
        let taken = self.cpus[cpu.index()].main.pop();
        if taken.is_some() { taken } else { self.alloc_slowly(table, cpu) }
    }

    fn alloc_slowly(&mut self, table: &mut SlabTable, cpu: CpuId) -> Option<SlabId> {
        let own = &mut self.cpus[cpu.index()];
        if own.spare.is_empty()
            && let Some(full) = self.barns[own.node.index()].pop()
        {
            own.main = full;
        } else {
            core::mem::swap(&mut own.main, &mut own.spare);
        }
        if own.main.is_empty() && own.is_next_full(table, self.capacity) {
            core::mem::swap(&mut own.main, &mut own.next);
        }
        own.main.pop()
    }

    /// A new slab, for a task on `cpu`: objects of it fill up the next sheaf, and what is left is listed. Where others
    /// have filled that meanwhile, an empty slab stays only while its node has few (`alloc_from_new_slab`).
    pub(super) fn grow(&mut self, table: &mut SlabTable, cpu: CpuId, id: SlabId) {
        let next = &mut self.cpus[cpu.index()].next;
        if next.len() == self.capacity {
            table.release(id);
            return;
        }
        while next.len() < self.capacity && table.take(id) {
            next.push(id);
        }
        table.relist(id);
    }

    /// Frees an object.
    #[inline]
    pub(super) fn free(&mut self, table: &mut SlabTable, cpu: CpuId, id: SlabId) {
        if self.cpus[cpu.index()].main.len() == self.capacity {
            self.empty_main(table, cpu);
        }
        self.cpus[cpu.index()].main.push(id);
    }

    /// Makes room in the main sheaf (`__pcs_replace_full_main`).
    fn empty_main(&mut self, table: &mut SlabTable, cpu: CpuId) {
        let own = &mut self.cpus[cpu.index()];
        let barn = &mut self.barns[own.node.index()];
        if own.spare.is_empty() {
            core::mem::swap(&mut own.main, &mut own.spare);
        } else if barn.len() < FULL_MAX {
            barn.push(core::mem::take(&mut own.main));
        } else {
            while let Some(id) = own.main.pop() {
                put(table, id);
            }
        }
    }

    /// Objects in sheaves.
    pub(super) fn objects(&self) -> u64 {
        let of_cpus = self.cpus.iter().flat_map(|own| [&own.main, &own.spare, &own.next]);
        of_cpus.chain(self.barns.iter().flatten()).map(|sheaf| sheaf.len() as u64).sum()
    }
}

impl CpuSheaves {
    /// Goes on filling the next sheaf from slabs that are listed; whether it is full.
    fn is_next_full(&mut self, table: &mut SlabTable, capacity: usize) -> bool {
        while self.next.len() < capacity
            && let Some(id) = table.hold_partial(self.node)
        {
            while self.next.len() < capacity && table.take(id) {
                self.next.push(id);
            }
            table.relist(id);
        }
        self.next.len() == capacity
    }
}

/// An object goes back to its slab.
fn put(table: &mut SlabTable, id: SlabId) {
    if table.put(id) {
        table.release(id);
    }
}
