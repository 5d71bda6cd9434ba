//! The slab caches of kernel objects that files cost (MECHANISMS 9.1, MECHANISMS-6X 7.1): how large
//! their slabs are, and which mobility type their pages have.
//!
//! Left out: objects of directories, NUMA placement of objects. Neighbours:
//! [`crate::version::geometry`] for which there are, [`crate::slab::cache`] for one cache,
//! [`crate::slab::object`] for allocation.

use units::{Order, Pfn};

use crate::base::gfp::Gfp;
use crate::slab::cache::SlabCache;
use crate::version::geometry::{Cache, Geometry, geometry};
use crate::version::presets::Tuning;

impl Cache {
    /// Its geometry in a kernel with these constants.
    pub fn geometry(self, tuning: &Tuning) -> Geometry {
        match self {
            Self::TreeNode => geometry(tuning.tree_node_size, tuning.tree_node_slab_order, true, true),
            other => tuning.file_caches[other as usize - 1],
        }
    }
}

/// All caches.
#[derive(Debug, Clone)]
pub struct Slabs {
    pub(super) caches: [SlabCache; Cache::COUNT],
    geometries: [Geometry; Cache::COUNT],
    /// Bytes per object that accounting adds.
    pub(super) cgroup_overhead: u16,
}

impl Slabs {
    /// Empty caches of a kernel with these constants.
    pub fn new(tuning: &Tuning) -> Self {
        let geometries = Cache::ALL.map(|cache| cache.geometry(tuning));
        let caches = geometries.map(|geometry| SlabCache::new(u32::from(geometry.object_size)));
        Self { caches, geometries, cgroup_overhead: tuning.object_cgroup_overhead }
    }

    /// One of them.
    pub fn cache(&self, cache: Cache) -> &SlabCache {
        &self.caches[cache as usize]
    }

    /// How a cache lays its objects out.
    pub fn geometry(&self, cache: Cache) -> Geometry {
        self.geometries[cache as usize]
    }

    /// The order that a slab of `cache` is first tried with, and what is added to the request's
    /// flags.
    pub fn request(&self, cache: Cache) -> (Order, Gfp) {
        let geometry = self.geometry(cache);
        let gfp = if geometry.reclaimable { Gfp::RECLAIMABLE_BIT } else { Gfp::default() };
        (Order(geometry.order), gfp)
    }

    /// Hands the block of `order` at `pfn` to a cache.
    pub fn grow(&mut self, cache: Cache, pfn: Pfn, order: Order) {
        self.caches[cache as usize].grow(pfn, order);
    }

    /// Pages of all slabs of reclaimable or of other caches.
    pub fn pages(&self, reclaimable: bool) -> u64 {
        let caches = self.caches.iter().zip(&self.geometries);
        caches
            .filter(|(_, geometry)| geometry.reclaimable == reclaimable)
            .map(|(cache, _)| cache.pages())
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::presets::Version;
    use units::PAGE_SIZE;

    #[test]
    fn slabs_hold_as_many_objects_as_were_counted() {
        // MECHANISMS-6X 7.1 for 6.1 and 6.12, MECHANISMS 9.1 for 5.3.
        let objects = |kernel: &str, cache: Cache| {
            let geometry = cache.geometry(&Version::parse(kernel).unwrap().tuning);
            (PAGE_SIZE << geometry.order) / u64::from(geometry.object_size)
        };
        for (kernel, cache, expected) in [
            ("linux-6.1", Cache::Dentry, 21),
            ("linux-6.1", Cache::Ext4Inode, 13),
            ("linux-6.12", Cache::Ext4Inode, 14),
            ("linux-6.1", Cache::XfsInode, 16),
            ("linux-6.1", Cache::XfsLogItem, 20),
            ("linux-6.1", Cache::BufferHead, 39),
            ("linux-6.1", Cache::TreeNode, 14),
            ("linux-5.3", Cache::XfsInode, 34),
            ("linux-5.3", Cache::TreeNode, 28),
        ] {
            assert_eq!(objects(kernel, cache), expected, "{kernel} {}", cache.name());
        }
    }
}
