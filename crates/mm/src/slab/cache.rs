//! Slab pages: which pages hold kernel objects, and when an empty one goes back
//! (MECHANISMS 9.1, MECHANISMS-6X 7.1).
//!
//! A cache keeps slabs of equal objects. Objects have no identity beyond the slab they are in: an
//! allocation takes any free place, and a slab page is free only when all its objects are. That is
//! what makes shrinking slab slow, and what fragments memory.
//!
//! The cache never allocates pages itself: when it is full, the caller allocates one, waiting if
//! it must, and hands it over ([`SlabCache::grow`]).
//!
//! Left out: per-CPU slabs and freelist randomisation; objects fill the most recently used
//! partial slab first, as the per-CPU slab makes SLUB do.

use std_alloc::vec::Vec;

use units::{Order, PAGE_SIZE, Pfn};

/// A slab of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlabId(pub u32);

/// A page or block that holds no objects any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct EmptySlab {
    /// Its first page.
    pub pfn: Pfn,
    /// Its order.
    pub order: Order,
}

#[derive(Debug, Clone, Copy)]
struct Slab {
    pfn: Pfn,
    order: Order,
    used: u16,
    capacity: u16,
    listed: bool,
    live: bool,
}

/// Empty slabs that a cache keeps (SLUB's `min_partial` for small objects).
const EMPTY_SLABS_KEPT: u32 = 5;

/// A cache of objects of one size.
#[derive(Debug, Clone)]
pub struct SlabCache {
    object_size: u32,
    slabs: Vec<Slab>,
    free_ids: Vec<u32>,
    /// Slabs with a free place, most recently used last. May name slabs that filled up since.
    partial: Vec<u32>,
    objects: u64,
    pages: u64,
    empty: u32,
}

impl SlabCache {
    /// A cache of objects of `object_size` bytes.
    pub fn new(object_size: u32) -> Self {
        Self {
            object_size,
            slabs: Vec::new(),
            free_ids: Vec::new(),
            partial: Vec::new(),
            objects: 0,
            pages: 0,
            empty: 0,
        }
    }

    /// Bytes of one object.
    pub fn object_size(&self) -> u32 {
        self.object_size
    }

    /// Objects in use.
    pub fn objects(&self) -> u64 {
        self.objects
    }

    /// Pages of its slabs.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// First pages of its slabs with their orders, for checks.
    pub fn slabs(&self) -> impl Iterator<Item = EmptySlab> + '_ {
        self.slabs.iter().filter(|slab| slab.live).map(|slab| EmptySlab { pfn: slab.pfn, order: slab.order })
    }

    /// The first page of a slab.
    pub fn page(&self, slab: SlabId) -> Pfn {
        self.slabs[slab.0 as usize].pfn
    }

    /// Takes an object; none when every slab is full.
    pub fn alloc(&mut self) -> Option<SlabId> {
        while let Some(&id) = self.partial.last() {
            let slab = &mut self.slabs[id as usize];
            if !slab.live || slab.used == slab.capacity {
                slab.listed = false;
                self.partial.pop();
                if !self.slabs[id as usize].live {
                    self.free_ids.push(id);
                }
                continue;
            }
            if slab.used == 0 {
                self.empty -= 1;
            }
            slab.used += 1;
            self.objects += 1;
            return Some(SlabId(id));
        }
        None
    }

    /// Adds the block at `pfn` as an empty slab.
    pub fn grow(&mut self, pfn: Pfn, order: Order) {
        let bytes = u64::from(order.pages()) * PAGE_SIZE;
        let capacity = u16::try_from(bytes / u64::from(self.object_size)).expect("a slab is small");
        let slab = Slab { pfn, order, used: 0, capacity, listed: true, live: true };
        let id = match self.free_ids.pop() {
            Some(id) => {
                self.slabs[id as usize] = slab;
                id
            }
            None => {
                self.slabs.push(slab);
                u32::try_from(self.slabs.len() - 1).expect("fewer slabs than pages")
            }
        };
        self.partial.push(id);
        self.empty += 1;
        self.pages += u64::from(order.pages());
    }

    /// Frees an object of `slab`; returns the slab's pages if it is empty and not worth keeping.
    pub fn free(&mut self, slab: SlabId) -> Option<EmptySlab> {
        let entry = &mut self.slabs[slab.0 as usize];
        assert!(entry.live && entry.used > 0, "freed an object of an empty slab");
        entry.used -= 1;
        self.objects -= 1;
        if entry.used > 0 || self.empty < EMPTY_SLABS_KEPT {
            if entry.used == 0 {
                self.empty += 1;
            }
            if !entry.listed {
                entry.listed = true;
                self.partial.push(slab.0);
            }
            return None;
        }
        entry.live = false;
        let Slab { pfn, order, listed, .. } = *entry;
        if !listed {
            self.free_ids.push(slab.0);
        } // Else its id is in `partial` and becomes reusable when it comes up there.
        self.pages -= u64::from(order.pages());
        Some(EmptySlab { pfn, order })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slab_page_goes_back_only_when_all_its_objects_are_free() {
        let mut cache = SlabCache::new(1024);
        assert_eq!(cache.alloc(), None);
        for page in 0..7 {
            cache.grow(Pfn(page), Order(0));
        }
        let objects: Vec<SlabId> = (0..28).map(|_| cache.alloc().unwrap()).collect();
        assert_eq!((cache.objects(), cache.pages(), cache.alloc()), (28, 7, None));
        let mut returned = 0;
        for &object in &objects {
            returned += usize::from(cache.free(object).is_some());
        }
        assert_eq!((cache.objects(), returned), (0, 2), "five empty slabs are kept");
        assert_eq!(cache.pages(), 5);
    }

    #[test]
    fn slabs_are_reused_before_the_cache_grows() {
        let mut cache = SlabCache::new(2048);
        cache.grow(Pfn(1), Order(0));
        let first = cache.alloc().unwrap();
        let _ = cache.alloc().unwrap();
        assert_eq!(cache.free(first), None);
        assert_eq!(cache.alloc(), Some(first));
    }
}
