//! Objects in use, and what a request for one comes to. Neighbour: [`crate::slab::account`] takes and frees them.

use crate::base::ids::MemcgId;
use crate::slab::table::SlabId;
use crate::version::geometry::Cache;

/// An object in use: where it lies and who pays for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object {
    /// Its cache.
    pub cache: Cache,
    /// The slab that it lies in.
    pub slab: SlabId,
    /// The cgroup that it is charged to; the root if it is not accounted.
    pub memcg: MemcgId,
}

// Files in memory hold several of them.
const _: () = assert!(size_of::<Object>() == 8 && size_of::<Option<Object>>() == 8);

/// What an allocation came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum ObjectAlloc {
    /// Here it is.
    Done(Object),
    /// Charge this many pages of kernel memory to the cgroup, tell
    /// [`crate::cgroup::tree::Memcgs::object_pages_charged`], and ask again.
    NeedsCharge {
        /// Pages to charge.
        pages: u32,
    },
    /// Allocate a block with the cache's flags, hand it to [`crate::core::Core::grow_slab`], and ask again.
    NeedsSlab,
}
