//! Adding pages to the page cache: allocated, charged, and put into the tree of their file
//! (`filemap_add_folio`).
//!
//! Next: [`super::filemap`] adds one page, [`super::readahead`] a window, [`super::io`] reads them.

use mm::event::Trace;
use mm::frame::PageFlags;
use mm::gfp::Gfp;
use mm::mapping::{Prepared, Slot};
use mm::slab_caches::Cache;
use units::{Order, Pfn};

use crate::errno::Errno;
use crate::files::inode::Inode;
use crate::fs::Filesystem;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Flags for pages of files: XFS forbids reclaim to enter the filesystem (MECHANISMS 9.7).
    pub(crate) fn page_gfp(&self) -> Gfp {
        match self.shared.filesystem {
            Filesystem::Ext4 => Gfp::HIGHUSER_MOVABLE,
            Filesystem::Xfs => Gfp::HIGHUSER_MOVABLE.without(Gfp::FS),
        }
    }

    pub(crate) async fn add_single(
        &self,
        process: &Process,
        inode: &Inode,
        index: u32,
        gfp: Gfp,
    ) -> Result<bool, Errno> {
        let pfn = self.alloc_pages(Some(process), gfp, Order(0)).await.ok_or(Errno::NoMem)?;
        let added = self.charge_and_insert(process, inode, index, pfn, gfp).await;
        let cpu = self.machine().current_cpu();
        if added == Ok(true) {
            self.machine().charge(CostOp::PageCacheAdd, 1);
            self.mem(|mem| mem.lru_add(cpu, pfn));
        } else {
            self.mem(|mem| mem.alloc.free(cpu, pfn, Order(0)));
        }
        added
    }

    /// Allocates, charges and adds one locked page or folio (`filemap_add_folio`). False: the slot
    /// was taken meanwhile.
    pub(crate) async fn add_page(
        &self,
        process: &Process,
        inode: &Inode,
        index: u32,
        order: Order,
        marker: bool,
    ) -> Result<bool, Errno> {
        // Readahead may fail: it neither retries nor kills.
        let gfp = self.page_gfp() | Gfp::NORETRY;
        let pfn = self.alloc_pages(Some(process), gfp, order).await.ok_or(Errno::NoMem)?;
        let added = self.charge_and_insert(process, inode, index, pfn, gfp).await;
        if added != Ok(true) {
            let cpu = self.machine().current_cpu();
            self.mem(|mem| mem.alloc.free(cpu, pfn, order));
            return added;
        }
        self.machine().charge(CostOp::PageCacheAdd, u64::from(order.pages()));
        let cpu = self.machine().current_cpu();
        self.mem(|mem| {
            if marker {
                mem.alloc.frames.set_flags(pfn, PageFlags::READAHEAD);
            }
            mem.lru_add(cpu, pfn);
        });
        Ok(true)
    }

    pub(crate) async fn charge_and_insert(
        &self,
        process: &Process,
        inode: &Inode,
        index: u32,
        pfn: Pfn,
        gfp: Gfp,
    ) -> Result<bool, Errno> {
        let memcg = process.memcg();
        let pages = self.mem(|mem| mem.alloc.frames.pages(pfn));
        self.charge_pages(process, memcg, pages, gfp).await?;
        if let Err(errno) = self.prepare_tree(process, inode, index, pages).await {
            self.mem(|mem| mem.memcgs.uncharge(memcg, u64::from(pages)));
            return Err(errno);
        }
        Ok(self.mem(|mem| {
            let taken = (index..index + pages)
                .any(|index| matches!(mem.mappings.find(inode.mapping, index), Slot::Page(_)));
            if taken {
                mem.memcgs.uncharge(memcg, u64::from(pages));
                return false;
            }
            mem.alloc.frames.set_flags(pfn, PageFlags::LOCKED);
            if let Some(shadow) = mem.insert_page(inode.mapping, index, pfn, memcg) {
                mem.refault(pfn, shadow);
            }
            true
        }))
    }

    /// Makes the tree nodes on the way to `index`, charging and allocating slab as needed.
    pub(crate) async fn prepare_tree(
        &self,
        process: &Process,
        inode: &Inode,
        index: u32,
        pages: u32,
    ) -> Result<(), Errno> {
        let gfp = Gfp::KERNEL;
        loop {
            let cpu = self.machine().current_cpu();
            let memcg = process.memcg();
            match self.mem(|mem| mem.prepare_insert(cpu, inode.mapping, index, pages, memcg)) {
                Prepared::Ready => return Ok(()),
                Prepared::NeedsCharge { pages } => self.charge_objects(process, pages, gfp).await?,
                Prepared::NeedsSlab => self.grow_slab(Some(process), Cache::TreeNode, gfp).await?,
            }
        }
    }
}
