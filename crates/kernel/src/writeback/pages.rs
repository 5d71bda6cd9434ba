//! Writing the dirty pages of a file.
//!
//! Where pages go on the disk is decided when they are first written: files that are written one
//! after the other lie one behind the other, so their pages are merged. Next: [`super::plug`].

use std::ops::Range;
use std::pin::pin;
use std::rc::Rc;

use mm::base::event::Trace;
use mm::base::frame::PageFlags;
use mm::pages::tree::Slot;

use crate::files::inode::Inode;
use crate::fs::Filesystem;
use crate::handle::Kernel;
use crate::machine::{CostOp, Machine};
use crate::writeback::plug::REQUEST_PAGES;
use crate::writeback::request::Plug;

/// Pages that are looked up at a time; then others may run (a `pagevec`).
const PAGES_AT_A_TIME: u32 = 15;

impl<M: Machine, T: Trace> Kernel<M, T> {
    /// Starts writing up to `max` dirty pages of an inode, on from where the last call ended.
    pub(crate) async fn write_pages(&self, inode: &Rc<Inode>, max: u64, plug: &mut Plug) -> u64 {
        let mut written = 0;
        let mut wrapped = inode.writeback_index.get() == 0;
        while written < max {
            self.wait_for_request_slot(inode, plug).await;
            if inode.is_orphan() {
                break;
            }
            let run = u32::try_from((max - written).min(u64::from(REQUEST_PAGES))).expect("at most 128");
            let from = inode.writeback_index.get();
            let Some((first, count)) = self.mem(|mem| mem.start_writeback(inode.mapping, from, run)) else {
                if std::mem::replace(&mut wrapped, true) {
                    break;
                }
                inode.writeback_index.set(0);
                continue;
            };
            inode.writeback_index.set(first + count);
            self.write_run(inode, first, count, plug).await;
            written += u64::from(count);
        }
        self.charge_inode(written > 0);
        written
    }

    /// Writes those pages of `tagged` that are still dirty, once what is being written of them from before is done
    /// (`WB_SYNC_ALL`).
    pub(crate) async fn write_tagged(&self, inode: &Rc<Inode>, tagged: Vec<Range<u32>>, plug: &mut Plug) {
        let mut has_written = false;
        for Range { start: mut from, end } in tagged {
            loop {
                self.wait_for_request_slot(inode, plug).await;
                if inode.is_orphan() {
                    return;
                }
                let next = self.mem(|mem| mem.cache.trees().next_dirty(inode.mapping, from));
                let Some(dirty) = next.filter(|&dirty| dirty < end) else { break };
                if self.is_being_written(inode, dirty) {
                    self.submit_plug(plug);
                    self.wait_for_written_pages().await;
                    continue;
                }
                let run = REQUEST_PAGES.min(end - dirty);
                let started = self.mem(|mem| mem.start_writeback(inode.mapping, dirty, run));
                from = dirty + 1; // Behind one that the journal has, which is clean for that.
                let Some((first, count)) = started else { continue };
                if first == dirty {
                    from = first + count;
                }
                inode.writeback_index.set(from);
                self.write_run(inode, first, count, plug).await;
                has_written = true;
            }
        }
        self.charge_inode(has_written);
    }

    fn is_being_written(&self, inode: &Inode, index: u32) -> bool {
        self.mem(|mem| match mem.cache.find(inode.mapping, index) {
            Slot::Page(pfn) => mem.core.alloc.frames.flags(pfn).has(PageFlags::WRITEBACK),
            _ => false,
        })
    }

    /// Pages whose writeback has begun get blocks, and join others in a request.
    async fn write_run(&self, inode: &Rc<Inode>, first: u32, count: u32, plug: &mut Plug) {
        let grows = first + count > inode.mapped_pages();
        self.allocate_blocks(inode, first, count);
        self.add_to_plug(inode, first, count, plug);
        if grows {
            self.note_end(inode, plug);
        }
        self.give_bio(inode, plug).await;
        if grows {
            self.with_plug(plug, pin!(self.log_extend(inode))).await;
        }
        self.machine().charge(CostOp::WritebackPage, u64::from(count));
        plug.without_rest += count;
        if plug.without_rest >= PAGES_AT_A_TIME {
            plug.without_rest = 0;
            self.machine().cond_resched().await; // write_cache_pages
        }
    }

    /// What it costs to write an inode with pages.
    fn charge_inode(&self, has_written: bool) {
        let chunks = u64::from(has_written);
        self.machine().charge(CostOp::WritebackInode, chunks);
        if self.shared.filesystem == Filesystem::Ext4 {
            self.machine().charge(CostOp::WritebackInodeExt4, chunks);
        }
    }

    /// Starts writing the dirty pages of a range, and does not wait for them.
    pub(crate) async fn start_range(&self, inode: &Rc<Inode>, first: u32, past: u32) {
        let mut plug = Plug::default();
        let mut from = first;
        loop {
            self.wait_for_request_slot(inode, &mut plug).await;
            if inode.is_orphan() {
                break;
            }
            let started = self.mem(|mem| {
                let dirty = mem.cache.trees().next_dirty(inode.mapping, from)?;
                let left = past.checked_sub(dirty).filter(|&left| left > 0)?;
                mem.start_writeback(inode.mapping, dirty, REQUEST_PAGES.min(left))
            });
            let Some((begun, count)) = started else { break };
            self.write_run(inode, begun, count, &mut plug).await;
            from = begun + count;
        }
        self.submit_plug(&mut plug);
    }

    async fn wait_for_request_slot(&self, inode: &Inode, plug: &mut Plug) {
        while self.is_queue_full(inode) || self.are_runs_in_flight(inode.device) {
            self.submit_plug(plug);
            self.wait_for_a_request().await;
        }
    }
}
