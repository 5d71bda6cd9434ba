//! Whoever wants to see memory as it is when the OOM killer is called, before it takes anybody: tests that
//! ask whether it had to. Nothing of the model depends on it. Next: [`super::slow_path`], which shows it.

use std::cell::RefCell;

use mm::Memory;
use mm::base::event::Trace;
use mm::base::gfp::Gfp;
use units::{CpuId, Order};

/// The request that the OOM killer is called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OomCall {
    /// What it may do and where its page may lie.
    pub gfp: Gfp,
    /// The block that it wants.
    pub order: Order,
    /// Whose zonelist it goes through.
    pub cpu: CpuId,
}

type Watch<T> = Box<dyn FnMut(&Memory<T>, OomCall)>;

/// Who is shown memory before each kill; mostly nobody.
pub(crate) struct OomWatch<T: Trace>(RefCell<Option<Watch<T>>>);

impl<T: Trace> Default for OomWatch<T> {
    fn default() -> Self {
        Self(RefCell::new(None))
    }
}

impl<T: Trace> OomWatch<T> {
    pub(crate) fn set(&self, watch: impl FnMut(&Memory<T>, OomCall) + 'static) {
        *self.0.borrow_mut() = Some(Box::new(watch));
    }

    pub(crate) fn show(&self, mem: &Memory<T>, call: OomCall) {
        if let Some(watch) = &mut *self.0.borrow_mut() {
            watch(mem, call);
        }
    }
}
