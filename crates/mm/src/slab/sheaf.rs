//! Arrays of free objects: two at each CPU, and some more in the barn of each node (7.0; MECHANISMS-510-72 7.1).
//!
//! ```text
//!   alloc <-- main <-- spare <-- full sheaves of the barn <-- partial slabs <-- new slabs
//!   free  --> main --> spare --> full sheaves of the barn, up to ten --> slabs
//! ```
//! An object in a sheaf is taken from its slab. So up to (2 * CPUs + 10 * nodes) sheaves of free objects, of
//! whichever slabs, keep the pages of those from being freed, and no reclaim flushes them.
//!
//! A sheaf is filled from the slabs that there are; a new slab is asked for when there is none, and fills up to
//! one sheaf. Left out: memory of the sheaves themselves, the sheaf that collects objects freed by RCU (they
//! come one by one, a grace period later), objects of other nodes, which bypass sheaves. Neighbours:
//! [`crate::slab::table`] for the slabs, [`crate::slab::cpu_slabs`] for what was there before.

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
        let of = |&node| CpuSheaves { node, main: Vec::new(), spare: Vec::new() };
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
        if own.main.is_empty() {
            own.gather(table, self.capacity);
        }
        own.main.pop()
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
            for id in own.main.drain(..) {
                put(table, id);
            }
        }
    }

    /// Objects in sheaves.
    pub(super) fn objects(&self) -> u64 {
        let of_cpus = self.cpus.iter().flat_map(|own| [&own.main, &own.spare]);
        of_cpus.chain(self.barns.iter().flatten()).map(|sheaf| sheaf.len() as u64).sum()
    }
}

impl CpuSheaves {
    /// Fills the main sheaf from slabs that are listed.
    fn gather(&mut self, table: &mut SlabTable, capacity: usize) {
        while self.main.len() < capacity
            && let Some(id) = table.hold_partial(self.node)
        {
            while self.main.len() < capacity && table.take(id) {
                self.main.push(id);
            }
            table.relist(id);
        }
    }
}

/// An object goes back to its slab.
fn put(table: &mut SlabTable, id: SlabId) {
    if table.put(id) {
        table.release(id);
    }
}
