//! What a policy of one's own for file pages is: the hooks of cache_ext (Zussman et al., "cache_ext: Customizing the
//! Page Cache with eBPF", SOSP 2025), which lets a cgroup's file pages be evicted by a program of its user. No release
//! of Linux has them.
//!
//! ```text
//!   a page is read      --> admit_folio? --> folio_added --> folio_accessed, each time
//!   memory is wanted    --> evict_folios: up to 32 candidates --> the kernel frees those that it can
//!   a page has gone, evicted or truncated --> folio_removed
//! ```
//! There is one policy for each cgroup on each node, as there are lists. The kernel keeps its own lists beside it: what
//! a policy leaves short, or names and the kernel cannot free, comes from there, so that a bad policy costs time and
//! hits and nothing else.
//!
//! What an access is, the kernel says (`folio_mark_accessed`): a `read`, the one that a page was brought in for
//! included; a write in some versions; an access through page tables when the page is unmapped. Next:
//! [`super::lists`] for what a policy can do, [`super::attached`] for who calls it.

use core::fmt::Debug;
use std_alloc::boxed::Box;
use std_alloc::string::String;

use crate::lru::cache_ext::lists::{Eviction, Folio, Lists, Place};

/// A policy for the file pages of one cgroup on one node. Until [`EvictionPolicy::init`] it is a pattern, which each of
/// them gets a copy of.
pub trait EvictionPolicy: Debug + Send + Sync + Copied {
    /// Its cgroup begins: it makes its lists.
    fn init(&mut self, lists: &mut Lists<'_>);

    /// Memory is wanted: it names candidates.
    fn evict_folios(&mut self, lists: &mut Lists<'_>, eviction: &mut Eviction);

    /// A folio has come into the cache. It is on no list yet.
    fn folio_added(&mut self, lists: &mut Lists<'_>, folio: Folio);

    /// A folio is accessed.
    fn folio_accessed(&mut self, lists: &mut Lists<'_>, folio: Folio);

    /// A folio leaves the cache, whoever wanted it. What the policy keeps of it is to go; its list it leaves by itself.
    fn folio_removed(&mut self, lists: &mut Lists<'_>, folio: Folio);

    /// Whether a missing page that is read, or read ahead, shall come into the cache. One that shall not is read past
    /// it. Nobody asks where a page is written to or mapped.
    fn admit_folio(&mut self, _place: Place) -> bool {
        true
    }

    /// Why it, or another copy of its pattern, gave up, if one did: it names no candidates from then on.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// A copy of a policy with all that it knows.
pub trait Copied {
    /// Makes it.
    fn copied(&self) -> Box<dyn EvictionPolicy>;
}

impl<P: EvictionPolicy + Clone + 'static> Copied for P {
    fn copied(&self) -> Box<dyn EvictionPolicy> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn EvictionPolicy> {
    fn clone(&self) -> Self {
        (**self).copied()
    }
}
