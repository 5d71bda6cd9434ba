//! A look at some of the frames, for the end of runs that a recount of all of memory would make noticeably longer.
//!
//! Left out: all that has to be added up over pages; that is the whole check's ([`super`]).

use std_alloc::string::String;

use units::Pfn;

use crate::base::event::Trace;
use crate::base::frame::FrameState;
use crate::base::ids::MappingId;
use crate::base::violation::{Violation, ensure};
use crate::memory::Memory;
use crate::pages::tree::Slot;

impl<T: Trace> Memory<T> {
    /// Checks what is known without going through all pages, and about `count` frames, evenly spread.
    ///
    /// # Errors
    /// The first invariant that does not hold.
    pub fn check_sample(&self, count: u64) -> Result<(), Violation> {
        self.check_node_sizes()?;
        self.core.cgroups.check().map_err(|problem| Violation(String::from(problem)))?;
        let frames = &self.core.alloc.frames;
        let count = usize::try_from(count).unwrap_or(usize::MAX).max(1);
        for index in (0..frames.len()).step_by(frames.len().div_ceil(count).max(1)) {
            let pfn = Pfn(u32::try_from(index).expect("frames are numbered in 32 bits"));
            let state = frames.state(pfn);
            ensure!(state != FrameState::Isolated, "{pfn:?} is isolated between steps");
            if frames.is_lru_page(pfn) && !frames.is_anon(pfn) {
                let slot = self.cache.find(MappingId(frames.owner(pfn)), frames.index(pfn));
                ensure!(slot == Slot::Page(pfn), "{pfn:?} says that it is cached; its slot holds {slot:?}");
            }
        }
        Ok(())
    }
}
