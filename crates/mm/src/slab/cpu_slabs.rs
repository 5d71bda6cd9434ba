//! The slabs that each CPU has to itself: the current one and some partial ones
//! (`struct kmem_cache_cpu`; MECHANISMS-6X 7.1).
//!
//! ```text
//!   alloc: current --full--> newest of the CPU's partial slabs --none--> head of the node's list, which is
//!                                                               halfway filled up from there --> a new slab
//!   free:  slab of some CPU, or listed: counted there
//!          slab that was full: becomes the newest of this CPU's partial slabs; if there are too many, all
//!          of the others go to the node's list, where empty ones may be freed
//! ```
//! So an object that is freed makes its slab the next to be allocated from, and a slab held by a CPU is not
//! freed even when it is empty.
//!
//! Left out: that a CPU which goes idle or offline gives its slabs back. Neighbours:
//! [`crate::slab::table`] for the slabs, [`crate::slab::sheaf`] for what took their place in 7.0.

use std_alloc::vec::Vec;

use units::{CpuId, NodeId};

use crate::slab::layout::CpuPartial;
use crate::slab::table::{SlabId, SlabTable};

/// What a CPU holds.
#[derive(Debug, Clone)]
struct CpuSlabs {
    node: NodeId,
    current: Option<SlabId>,
    /// Partial slabs, the newest last, each with the free objects that it had when it came.
    partial: Vec<(SlabId, u32)>,
    /// Sum of those.
    free_once: u32,
}

impl CpuSlabs {
    fn push(&mut self, id: SlabId, free: u32) {
        self.partial.push((id, free));
        self.free_once += free;
    }

    fn pop(&mut self) -> Option<SlabId> {
        let (id, free) = self.partial.pop()?;
        self.free_once -= free;
        Some(id)
    }
}

/// What all CPUs hold of one cache.
#[derive(Debug, Clone)]
pub(super) struct AllCpuSlabs {
    cpus: Vec<CpuSlabs>,
    limit: CpuPartial,
}

impl AllCpuSlabs {
    /// Nothing yet; `cpu_nodes` has the node of each CPU.
    pub(super) fn new(cpu_nodes: &[NodeId], limit: CpuPartial) -> Self {
        let of = |&node| CpuSlabs { node, current: None, partial: Vec::new(), free_once: 0 };
        Self { cpus: cpu_nodes.iter().map(of).collect(), limit }
    }

    /// Takes an object (`slab_alloc_node`); none when a new slab is needed.
    #[inline]
    pub(super) fn alloc(&mut self, table: &mut SlabTable, cpu: CpuId) -> Option<SlabId> {
        match self.cpus[cpu.index()].current {
            Some(id) if table.take(id) => Some(id),
            _ => self.alloc_slowly(table, cpu),
        }
    }

    /// `___slab_alloc`.
    fn alloc_slowly(&mut self, table: &mut SlabTable, cpu: CpuId) -> Option<SlabId> {
        let own = &mut self.cpus[cpu.index()];
        if let Some(full) = own.current.take() {
            table.release(full);
        }
        let id = match own.pop() {
            Some(id) => id,
            None => self.hold_partial(table, cpu)?,
        };
        self.cpus[cpu.index()].current = Some(id);
        assert!(table.take(id), "a partial slab has a free object");
        Some(id)
    }

    /// Takes a slab from a node's list for the CPU's current one, and some more for later
    /// (`get_partial_node`).
    fn hold_partial(&mut self, table: &mut SlabTable, cpu: CpuId) -> Option<SlabId> {
        let own = &mut self.cpus[cpu.index()];
        let first = table.hold_partial(own.node)?;
        let (mut slabs, mut free) = (0, table.free_of(first));
        let from = table.node(first);
        loop {
            let enough = match self.limit {
                CpuPartial::None => true,
                CpuPartial::FreeObjects(limit) => free > limit / 2,
                CpuPartial::Slabs(limit) => slabs > limit / 2,
            };
            if enough {
                return Some(first);
            }
            let Some(next) = table.hold_partial_on(from) else { return Some(first) };
            own.push(next, table.free_of(next));
            (slabs, free) = (slabs + 1, free + table.free_of(next));
        }
    }

    /// Frees an object (`__slab_free`).
    #[inline]
    pub(super) fn free(&mut self, table: &mut SlabTable, cpu: CpuId, id: SlabId) {
        if table.put(id) {
            self.put_partial(table, cpu, id);
        }
    }

    /// A slab that was full has a free object (`put_cpu_partial`).
    fn put_partial(&mut self, table: &mut SlabTable, cpu: CpuId, id: SlabId) {
        let own = &mut self.cpus[cpu.index()];
        let is_too_much = match self.limit {
            CpuPartial::None => return table.release(id),
            CpuPartial::FreeObjects(limit) => own.free_once > limit,
            CpuPartial::Slabs(limit) => own.partial.len() >= limit as usize,
        };
        if is_too_much {
            while let Some(older) = own.pop() {
                table.release(older);
            }
        }
        table.hold(id);
        own.push(id, table.free_of(id));
    }

    /// A new slab, held by the CPU, becomes its current one.
    pub(super) fn grow(&mut self, table: &mut SlabTable, cpu: CpuId, id: SlabId) {
        if let Some(raced) = self.cpus[cpu.index()].current.replace(id) {
            table.release(raced);
        }
    }

    /// Slabs held.
    pub(super) fn held(&self) -> usize {
        self.cpus.iter().map(|own| own.partial.len() + usize::from(own.current.is_some())).sum()
    }
}
