//! A request to write in the making (`struct blk_plug`). Next: [`super::plug`] fills it and sends it off.

use units::Pfn;

use crate::cache::in_flight::PageRange;

/// A request in the making: pages that lie one behind the other on the disk.
#[derive(Debug, Default)]
pub(crate) struct Plug {
    pub(crate) device: u16,
    pub(crate) offset: u64,
    pub(crate) pages: u32,
    /// Runs of adjacent frames so far, and the last frame.
    pub(crate) segments: u32,
    pub(crate) last_frame: Option<Pfn>,
    /// Pages since the task that fills it last let others run.
    pub(crate) without_rest: u32,
    /// Folios of which this request carries the last page: they are clean when it is complete.
    pub(crate) ranges: Vec<PageRange>,
}
