//! A request to write in the making (`struct blk_plug`). Next: [`super::plug`] fills it and sends it off.

use crate::cache::in_flight::PageRange;

/// A request in the making: pages that lie one behind the other on the disk.
#[derive(Debug, Default)]
pub(crate) struct Plug {
    pub(crate) offset: u64,
    pub(crate) pages: u32,
    /// Folios of which this request carries the last page: they are clean when it is complete.
    pub(crate) ranges: Vec<PageRange>,
}
