//! A pool of compressed memory with its pages (SWAP 4.3).
//!
//! Pages of the pool are kernel memory of nobody's cgroup, taken without regard to watermarks by whoever reclaims.
//! Here they stay where they are, though they lie among movable pages; the kernel can move them. Neighbours:
//! [`super::zram`] counts what objects take; [`super::store`] and [`super::zswap`] have a pool each.

use std_alloc::vec::Vec;

use units::{CpuId, Order, Pfn};

use crate::alloc::flags::AllocFlags;
use crate::alloc::page_alloc::PageAllocator;
use crate::base::event::Trace;
use crate::base::gfp::Gfp;
use crate::swap::zram::Zpool;
use crate::version::rules::Rules;

/// A pool and its pages.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    objects: Zpool,
    pages: Vec<Pfn>,
}

impl Pool {
    /// An empty one.
    pub(super) fn new(rules: &Rules) -> Self {
        Self { objects: Zpool::new(rules), pages: Vec::new() }
    }

    /// Stores a page that compresses to `bytes`, 0 for one of one repeated word; false: no page is left at all.
    pub(super) fn store<T: Trace>(&mut self, alloc: &mut PageAllocator<T>, cpu: CpuId, bytes: u16) -> bool {
        let grows = self.objects.store(bytes);
        for grown in 0..grows {
            let gfp = Gfp(Gfp::MOVABLE_BIT.0 | Gfp::KSWAPD_RECLAIM.0);
            let page = alloc.alloc(cpu, gfp, Order(0), AllocFlags::NO_WATERMARKS).page;
            let Some(page) = page else {
                self.objects.free(bytes);
                self.shrink(alloc, cpu, grown);
                return false;
            };
            self.pages.push(page);
        }
        true
    }

    /// Frees what [`Pool::store`] stored.
    pub(super) fn free<T: Trace>(&mut self, alloc: &mut PageAllocator<T>, cpu: CpuId, bytes: u16) {
        let shrinks = self.objects.free(bytes);
        self.shrink(alloc, cpu, shrinks);
    }

    /// Gives pages back.
    fn shrink<T: Trace>(&mut self, alloc: &mut PageAllocator<T>, cpu: CpuId, pages: u32) {
        for _ in 0..pages {
            let page = self.pages.pop().expect("the pool has pages");
            alloc.free(cpu, page, Order(0));
        }
    }

    /// Its pages.
    pub(super) fn pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// Pages that are stored in it.
    pub(super) fn stored(&self) -> u64 {
        self.objects.stored()
    }
}
