//! Where the fields lie that a policy reads of a kernel's structs.
//!
//! A real kernel has its own places, and whoever loads an object rewrites its instructions (CO-RE). Here it is the
//! other way about: the emulated structs are laid out as the object was compiled. A struct that an object has no full
//! type of it does not look into. Where the object says nothing of the structs of cache_ext itself, fields lie as in
//! its kernel, a patch of 6.6.
//!
//! Next: [`crate::view`], what is read there.

use mm::lru::cache_ext::lists::Folio;

use crate::btf::Btf;
use crate::memory::{FOLIOS, split};

/// Bytes of the largest struct that is emulated; a real `struct inode` has some 600.
const SIZE_MAX: u32 = 1 << 12;

/// Fields of `struct folio`, and of what it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// From one folio to the next.
    pub(crate) folio_size: u32,
    pub(crate) folio_flags: u32,
    pub(crate) folio_mapping: u32,
    pub(crate) folio_index: u32,
    pub(crate) mapping_host: u32,
    pub(crate) inode_number: u32,
    /// From one list node to the next.
    pub(crate) node_size: u32,
    pub(crate) node_folio: u32,
    pub(crate) eviction: EvictionLayout,
    pub(crate) admission: AdmissionLayout,
    pub(crate) sample_size: u32,
    pub(crate) iterate: IterateLayout,
    pub(crate) flags: FlagBits,
}

/// `struct cache_ext_eviction_ctx`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EvictionLayout {
    pub(crate) size: u32,
    pub(crate) requested: u32,
    pub(crate) count: u32,
    pub(crate) folios: u32,
    pub(crate) scores: u32,
}

/// `struct cache_ext_admission_ctx`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AdmissionLayout {
    pub(crate) size: u32,
    pub(crate) inode: u32,
    pub(crate) offset: u32,
    pub(crate) length: u32,
}

/// `struct cache_ext_iterate_opts`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IterateLayout {
    pub(crate) continue_list: u32,
    pub(crate) continue_mode: u32,
    pub(crate) evict_list: u32,
    pub(crate) evict_mode: u32,
    pub(crate) continued: u32,
    pub(crate) evicted: u32,
}

/// Which bits of `flags` say what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlagBits {
    pub(crate) locked: u32,
    pub(crate) referenced: u32,
    pub(crate) uptodate: u32,
    pub(crate) dirty: u32,
    pub(crate) lru: u32,
    pub(crate) active: u32,
    pub(crate) workingset: u32,
    pub(crate) writeback: u32,
    pub(crate) reclaim: u32,
    pub(crate) unevictable: u32,
    /// They are in the object, and not those of 6.6.
    pub(crate) are_known: bool,
}

impl Layout {
    /// By the types of an object.
    pub(crate) fn of(btf: &Btf) -> Self {
        let field = |name: &str, field: &str, otherwise: u32| {
            btf.structure(name).and_then(|id| btf.offset(id, field)).unwrap_or(otherwise)
        };
        let size = |name: &str, otherwise: u32| {
            let size = btf.structure(name).and_then(|id| btf.size(id));
            size.filter(|size| (8..=SIZE_MAX).contains(size)).unwrap_or(otherwise)
        };
        let evicting = |name, otherwise| field("cache_ext_eviction_ctx", name, otherwise);
        let admitting = |name, otherwise| field("cache_ext_admission_ctx", name, otherwise);
        let iterating = |name, otherwise| field("cache_ext_iterate_opts", name, otherwise);
        Self {
            folio_size: size("folio", 64),
            folio_flags: field("folio", "flags", 0),
            folio_mapping: field("folio", "mapping", 24),
            folio_index: field("folio", "index", 32),
            mapping_host: field("address_space", "host", 0),
            inode_number: field("inode", "i_ino", 64),
            node_size: size("cache_ext_list_node", 24),
            node_folio: field("cache_ext_list_node", "folio", 0),
            eviction: EvictionLayout {
                size: size("cache_ext_eviction_ctx", 528),
                requested: evicting("request_nr_folios_to_evict", 0),
                count: evicting("nr_folios_to_evict", 8),
                folios: evicting("folios_to_evict", 16),
                scores: evicting("scores", 272),
            },
            admission: AdmissionLayout {
                size: size("cache_ext_admission_ctx", 24),
                inode: admitting("ino", 0),
                offset: admitting("offset", 8),
                length: admitting("size", 16),
            },
            sample_size: field("sampling_options", "sample_size", 0),
            iterate: IterateLayout {
                continue_list: iterating("continue_list", 0),
                continue_mode: iterating("continue_mode", 8),
                evict_list: iterating("evict_list", 16),
                evict_mode: iterating("evict_mode", 24),
                continued: iterating("nr_folios_continue", 32),
                evicted: iterating("nr_folios_evict", 40),
            },
            flags: FlagBits::of(btf),
        }
    }
}

impl Layout {
    /// Where a folio lies for the policy.
    pub(crate) fn folio_address(&self, folio: Folio) -> u64 {
        FOLIOS + u64::from(folio.0) * u64::from(self.folio_size)
    }

    /// The folio that a policy names.
    pub(crate) fn folio_at(&self, address: u64) -> Option<Folio> {
        match split(address, FOLIOS, u64::from(self.folio_size)) {
            Some((number, 0)) => Some(Folio(number)),
            _ => None,
        }
    }
}

impl FlagBits {
    /// Those of `enum pageflags`, which compilers leave out where only its numbers are used; then those of 6.6.
    fn of(btf: &Btf) -> Self {
        let bit = |name: &str, of_6_6: u32| btf.enumerator(name).filter(|&bit| bit < 64).unwrap_or(of_6_6);
        Self {
            locked: bit("PG_locked", 0),
            referenced: bit("PG_referenced", 1),
            uptodate: bit("PG_uptodate", 2),
            dirty: bit("PG_dirty", 3),
            lru: bit("PG_lru", 4),
            active: bit("PG_active", 5),
            workingset: bit("PG_workingset", 6),
            writeback: bit("PG_writeback", 15),
            reclaim: bit("PG_reclaim", 18),
            unevictable: bit("PG_unevictable", 20),
            are_known: btf.enumerator("PG_lru").is_some(),
        }
    }
}
