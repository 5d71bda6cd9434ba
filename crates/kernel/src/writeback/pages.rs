//! Writing the dirty pages of a file.
//!
//! Where pages go on the disk is decided when they are first written: files that are written one
//! after the other lie one behind the other, so their pages are merged. Next: [`super::plug`].

use std::rc::Rc;

use mm::base::event::Trace;

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
            let grows = first + count > inode.mapped_pages();
            self.allocate_blocks(inode, first, count);
            self.add_to_plug(inode, first, count, plug);
            if grows {
                self.note_end(inode, plug);
            }
            self.give_bio(inode, plug).await;
            if grows {
                self.with_plug(plug, self.log_extend(inode)).await;
            }
            written += u64::from(count);
            self.machine().charge(CostOp::WritebackPage, u64::from(count));
            plug.without_rest += count;
            if plug.without_rest >= PAGES_AT_A_TIME {
                plug.without_rest = 0;
                self.machine().cond_resched().await; // write_cache_pages
            }
        }
        let chunks = u64::from(written > 0);
        self.machine().charge(CostOp::WritebackInode, chunks);
        if self.shared.filesystem == Filesystem::Ext4 {
            self.machine().charge(CostOp::WritebackInodeExt4, chunks);
        }
        written
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
            let grows = begun + count > inode.mapped_pages();
            self.allocate_blocks(inode, begun, count);
            self.add_to_plug(inode, begun, count, &mut plug);
            if grows {
                self.note_end(inode, &mut plug);
            }
            self.give_bio(inode, &mut plug).await;
            if grows {
                self.with_plug(&mut plug, self.log_extend(inode)).await;
            }
            self.machine().charge(CostOp::WritebackPage, u64::from(count));
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
