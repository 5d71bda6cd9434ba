//! Faults on pages that are swapped out (`do_swap_page`; SWAP 2.6, 3.5).
//!
//! A page in the swap cache is mapped as it is. One on a device that answers at once is read past the swap cache by the
//! task itself; for one on a disk it is read into the swap cache, with neighbours, and the task sleeps until it
//! is there.
//!
//! Left out: that a page under writeback is waited for where a device needs it to stay as it is. Next:
//! [`crate::cache::wait`], [`super::write`].

use mm::MemcgId;
use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use mm::base::vmstat::{MemcgStat, VmEvent};
use mm::pages::anon_swap::SwapFault;
use mm::swap::areas::AreaKind;
use mm::swap::slot::SwapSlot;
use mm::swapping::SwapLook;
use mm::version::geometry::Cache;
use units::{Bytes, NodeId, Order, PAGE_SIZE, Pfn};

use crate::alloc::purpose::Purpose;
use crate::cache::in_flight::{PageRange, Transfer};
use crate::errno::Errno;
use crate::handle::Kernel;
use crate::machine::{CostOp, IoKind, IoRequest, Machine};
use crate::tasks::process::Process;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Brings a swapped-out page of a mapping of so many pages back; tells whether it had to be read.
    ///
    /// # Errors
    /// `NoMem`; `Killed`.
    pub(crate) async fn swap_fault(
        &self,
        process: &Process,
        fault: SwapFault,
        pages: u32,
    ) -> Result<bool, Errno> {
        let mut major = false;
        loop {
            match self.mem(|mem| mem.look_swapped(fault)) {
                SwapLook::Gone => break,
                SwapLook::Cached(pfn) => {
                    let cpu = self.machine().current_cpu();
                    self.machine().charge(if major { CostOp::MajorFault } else { CostOp::MinorFault }, 1);
                    self.mem(|mem| mem.map_cached(cpu, fault, pfn));
                    break;
                }
                SwapLook::Locked(tree, index) => self.wait_for_page(tree, index).await,
                SwapLook::Written(tree) => self.wait_for_writeback(tree).await,
                SwapLook::Bypass => {
                    major = true;
                    self.machine().charge(CostOp::MajorFault, 1);
                    if self.read_past_cache(process, fault).await? {
                        break;
                    }
                }
                SwapLook::Read => {
                    major = true;
                    self.read_ahead_of_swap(process, fault, pages).await?;
                }
            }
            if process.is_killed() {
                return Err(Errno::Killed);
            }
        }
        Ok(major)
    }

    /// A fault: `pgfault`.
    pub(crate) fn count_fault(&self, memcg: MemcgId) {
        self.mem(|mem| {
            mem.core.alloc.events.add(VmEvent::PgFault, 1);
            mem.core.cgroups.add_stat(memcg, NodeId(0), MemcgStat::PgFault, 1);
        });
    }

    /// Counts a fault that had to wait for a page. A call that reads a page of a file in memory back is none.
    pub(crate) fn count_major_fault(&self, process: &Process) {
        self.mem(|mem| {
            mem.core.alloc.events.add(VmEvent::PgMajFault, 1);
            mem.core.cgroups.add_stat(process.memcg(), NodeId(0), MemcgStat::PgMajFault, 1);
        });
    }

    /// A page charged to the cgroup of a slot; none: the slot is free by now.
    async fn alloc_for_swap(&self, process: &Process, slot: SwapSlot) -> Result<Option<Pfn>, Errno> {
        let gfp = Gfp::HIGHUSER_MOVABLE;
        let memcg = |slot| self.mem(|mem| mem.core.swap.memcg(slot));
        if memcg(slot).is_none() {
            return Ok(None);
        }
        let page = self.alloc_pages_for(Purpose::SwapIn, Some(process), gfp, Order(0)).await;
        let pfn = page.ok_or(Errno::NoMem)?;
        let Some(owner) = memcg(slot) else {
            self.free_unused(pfn, None);
            return Ok(None);
        };
        if let Err(errno) = self.charge_pages(process, owner, 1, gfp).await {
            self.free_unused(pfn, None);
            return Err(errno);
        }
        // Much may have happened while it waited for memory.
        if memcg(slot) != Some(owner) {
            self.free_unused(pfn, Some(owner));
            return Ok(None);
        }
        Ok(Some(pfn))
    }

    fn free_unused(&self, pfn: Pfn, charged_to: Option<mm::MemcgId>) {
        let cpu = self.machine().current_cpu();
        self.mem(|mem| {
            if let Some(memcg) = charged_to {
                mem.core.cgroups.uncharge(memcg, 1);
            }
            mem.core.alloc.free(cpu, pfn, Order(0));
        });
    }

    /// Reads the page of a fault from a device that answers at once; false: the fault has to look again.
    async fn read_past_cache(&self, process: &Process, fault: SwapFault) -> Result<bool, Errno> {
        let Some(pfn) = self.alloc_for_swap(process, fault.slot).await? else { return Ok(false) };
        let owner = self.mem(|mem| mem.core.swap.memcg(fault.slot));
        let same = self.mem(|mem| mem.look_swapped(fault)) == SwapLook::Bypass;
        if process.is_killed() || !same {
            self.free_unused(pfn, owner);
            return Ok(false);
        }
        let cpu = self.machine().current_cpu();
        let bytes = self.mem(|mem| mem.map_bypassing(cpu, fault, pfn));
        self.pay_for_load(bytes);
        Ok(true)
    }

    fn pay_for_load(&self, bytes: Option<u16>) {
        match bytes {
            Some(0) => self.machine().charge(CostOp::ClearPage, 1),
            Some(_) => self.machine().charge(CostOp::DecompressPage, 1),
            None => {}
        }
    }

    /// Begins to read the page of a fault, and others with it (`swapin_readahead`).
    async fn read_ahead_of_swap(&self, process: &Process, fault: SwapFault, pages: u32) -> Result<(), Errno> {
        let mut begun = Vec::new();
        for slot in self.mem(|mem| mem.slots_to_read(fault, pages)) {
            let wanted = slot == fault.slot;
            match self.begin_to_read(process, slot, !wanted).await {
                Ok(true) => begun.push(slot),
                Err(errno) if wanted => {
                    self.read_swap(&begun);
                    return Err(errno);
                }
                Ok(false) | Err(_) => {}
            }
        }
        self.read_swap(&begun);
        Ok(())
    }

    /// Puts a page for the content of a slot into the swap cache, locked; false: somebody else did, or the slot is
    /// free.
    pub(crate) async fn begin_to_read(
        &self,
        process: &Process,
        slot: SwapSlot,
        ahead: bool,
    ) -> Result<bool, Errno> {
        let Some(pfn) = self.alloc_for_swap(process, slot).await? else { return Ok(false) };
        let cpu = self.machine().current_cpu();
        let owner = self.mem(|mem| mem.core.swap.memcg(slot));
        let begun = self.mem(|mem| mem.begin_swap_read(cpu, slot, pfn, ahead));
        if begun {
            self.machine().charge(CostOp::SwapCache, 1);
            return Ok(true);
        }
        self.free_unused(pfn, owner);
        // Nobody else did, and it has its content: there was no page at all for the tree.
        if self.mem(|mem| mem.is_swapped_out(slot)) {
            self.grow_slab(None, Cache::TreeNode, Gfp::KERNEL).await?;
        }
        Ok(false)
    }

    /// Reads slots whose pages are in the swap cache, locked: from disks by requests, from elsewhere at once.
    pub(crate) fn read_swap(&self, slots: &[SwapSlot]) {
        let mut rest = slots;
        while let Some(&first) = rest.first() {
            let (device, stored) = self.mem(|mem| {
                let device = match mem.core.swap.kind(first) {
                    AreaKind::Disk { device, .. } => Some(device),
                    AreaKind::Zram => None,
                };
                (device, mem.core.swap.stored_bytes(first))
            });
            let (mapping, index) = self.mem(|mem| mem.swap_place(first));
            let (Some(device), None) = (device, stored) else {
                self.pay_for_load(stored);
                let cpu = self.machine().current_cpu();
                self.mem(|mem| mem.end_stored_read(cpu, first));
                self.unlock_pages(PageRange { mapping, first: index, count: 1 });
                rest = &rest[1..];
                continue;
            };
            let follows = |(place, slot): &(u32, &SwapSlot)| {
                let at = first.plus(*place);
                **slot == at
                    && self.mem(|mem| {
                        mem.swap_place(at).0 == mapping && mem.core.swap.stored_bytes(at).is_none()
                    })
            };
            let count = (0..).zip(rest).take_while(follows).count();
            let pages = u32::try_from(count).expect("a window of slots");
            self.submit_swap_read(device, first, PageRange { mapping, first: index, count: pages });
            rest = &rest[count..];
        }
    }

    fn submit_swap_read(&self, device: u16, first: SwapSlot, range: PageRange) {
        let tag = self.shared.in_flight.borrow_mut().add(Transfer::Read(range));
        let len = u64::from(range.count) * PAGE_SIZE;
        self.mem(|mem| mem.core.alloc.events.add(VmEvent::PgPgIn, len / 1024));
        self.machine().charge(CostOp::ReadaheadPage, u64::from(range.count));
        let offset = u64::from(first.offset()) * PAGE_SIZE;
        let request =
            IoRequest { device, kind: IoKind::Read, offset, len: Bytes(len), segments: range.count, tag };
        self.start_io(request);
    }
}
