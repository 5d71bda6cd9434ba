//! The frame table: what every page frame of the machine is used for.
//!
//! Frames are linked by number ([`crate::base::list`]), and all that is known of one lies in one place, for speed: what
//! happens to a page touches most of it. A frame is in exactly one place at a time, told by its [`FrameState`];
//! [`crate::check`] holds the places against each other. Content is never stored.
//!
//! A *block* or *folio* of order o is named by its first frame, the head. The frames behind a
//! head carry no state of their own ([`FrameState::Tail`] or whatever was there before): only
//! heads are looked at. No frame other than a head is ever `Free`.
//!
//! Neighbours: [`crate::alloc::buddy`] for free blocks, [`crate::lru::lists`] for pages in use.

use std_alloc::vec;
use std_alloc::vec::Vec;

use units::{Order, Pfn};

use crate::base::ids::AnonId;
use crate::base::list::{Link, Links, List};

/// No frame.
pub const NIL: u32 = u32::MAX;

/// Where a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum FrameState {
    /// Kernel image, memory holes, firmware: never managed.
    #[default]
    Reserved,
    /// Head of a free block on a buddy list.
    Free,
    /// Behind a head; see the module's header.
    Tail,
    /// Head of a block on a per-CPU list.
    Pcp,
    /// Head of a block that was handed out and is on no list: kernel memory, slab, page tables,
    /// or a page between allocation and its first list.
    InUse,
    /// A page in a per-CPU batch on its way to a list.
    Batch,
    /// On one of the lists of its lruvec.
    Lru,
    /// Taken off its list by reclaim or compaction.
    Isolated,
}

macro_rules! page_flags {
    ($($(#[$doc:meta])* $name:ident = $bit:literal;)*) => {
        /// Flags of a page or folio head, as in the kernel's page flags.
        #[derive(Clone, Copy, Default, PartialEq, Eq)]
        pub struct PageFlags(pub u32);

        impl PageFlags {
    /// Something hangs on the page that goes with it.
    pub const ATTACHED: Self = Self::PRIVATE.set(Self::JOURNAL_HEAD);

            /// None set.
            pub const NONE: Self = Self(0);
            $($(#[$doc])* pub const $name: Self = Self(1 << $bit);)*
        }

        impl core::fmt::Debug for PageFlags {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                let mut list = f.debug_list();
                $(if self.has(Self::$name) { list.entry(&stringify!($name)); })*
                list.finish()
            }
        }
    };
}

page_flags! {
    /// Accessed once since it became inactive.
    REFERENCED = 0;
    /// Belongs to an active list.
    ACTIVE = 1;
    /// Was part of the working set: deactivated or refaulted in time.
    WORKINGSET = 2;
    /// To be written.
    DIRTY = 3;
    /// Being written.
    WRITEBACK = 4;
    /// To be freed as soon as writeback ends.
    RECLAIM = 5;
    /// Anonymous or shared memory: belongs to the anon lists.
    SWAP_BACKED = 6;
    /// Not reclaimable: belongs to the unevictable list.
    UNEVICTABLE = 7;
    /// Locked by `mlock`.
    MLOCKED = 8;
    /// Being read: its content is not valid yet.
    LOCKED = 9;
    /// Readahead marker: reaching it starts the next window.
    READAHEAD = 10;
    /// Mapped by a page table.
    MAPPED = 11;
    /// The mapping's accessed bit is set.
    YOUNG = 12;
    /// Its buffers belong to a transaction of a journal that is not in the log yet: they cannot be dropped.
    JOURNAL = 13;
    /// Each of its pages has a buffer head, freed with it: see [`Frames::private`].
    PRIVATE = 14;
    /// Waits in a batch to be activated or given up, which holds a reference: reclaim cannot free it.
    ACTIVATING = 15;
    /// In the swap cache: it holds a slot of a swap area.
    SWAP_CACHE = 16;
    /// Its generation, modulo 4, in two bits; see [`crate::lru::mglru::access`].
    GENERATION_LOW = 17;
    /// The other bit of its generation.
    GENERATION_HIGH = 18;
    /// The generation whose list it is on, in two bits: an older one where a walk promoted it.
    LISTED_LOW = 19;
    /// The other bit of it.
    LISTED_HIGH = 20;
    /// Accesses beyond those that other flags stand for, in two bits.
    ACCESSES_LOW = 21;
    /// The other bit of them.
    ACCESSES_HIGH = 22;
    /// Accesses to a page on a FIFO queue since it came there, in two bits; see [`crate::lru::queues`].
    HITS_LOW = 23;
    /// The other bit of them.
    HITS_HIGH = 24;
    /// Anonymous memory that differs from what its slot holds, if it has one: written since, or never written out.
    ANON_DIRTY = 25;
    /// Its block has a journal head: see [`crate::pages::heads`].
    JOURNAL_HEAD = 26;
}

impl PageFlags {
    /// Whether all of `flags` are set.
    #[inline]
    pub const fn has(self, flags: Self) -> bool {
        (self.0 & flags.0) == flags.0
    }

    /// Whether any of `flags` is set.
    #[inline]
    pub const fn has_any(self, flags: Self) -> bool {
        (self.0 & flags.0) != 0
    }

    /// With `flags` set.
    #[inline]
    #[must_use]
    pub const fn set(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    /// With `flags` cleared.
    #[inline]
    #[must_use]
    pub const fn clear(self, flags: Self) -> Self {
        Self(self.0 & !flags.0)
    }
}

/// What is known of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) link: Link<Pfn>,
    pub(super) flags: PageFlags,
    pub(super) owner: u32,
    pub(super) index: u32,
    pub(super) memcg: u16,
    pub(super) order: u8,
    pub(super) state: FrameState,
}

const _: () = assert!(size_of::<Frame>() == 24);

/// The frame table.
#[derive(Debug, Clone)]
pub struct Frames {
    pub(super) frames: Vec<Frame>,
    private: Vec<u32>,
}

/// Owner of a frame that belongs to no mapping.
pub const NO_OWNER: u32 = u32::MAX;

/// Set in the owner of a frame that belongs to an anonymous mapping rather than to a file.
pub(crate) const ANON_OWNER: u32 = 1 << 31;

/// The anonymous mapping that an owner names; none for a file's mapping and for no owner.
#[inline]
pub(crate) const fn anon_owner(owner: u32) -> Option<AnonId> {
    if owner == NO_OWNER || (owner & ANON_OWNER) == 0 { None } else { Some(AnonId(owner & !ANON_OWNER)) }
}

impl Frames {
    /// A table for `count` frames, all reserved.
    pub fn new(count: usize) -> Self {
        assert!(count < NIL as usize, "frame numbers are 32 bits");
        let reserved = Frame {
            link: Link::UNUSED,
            flags: PageFlags::NONE,
            owner: NO_OWNER,
            index: 0,
            memcg: 0,
            order: 0,
            state: FrameState::Reserved,
        };
        Self { frames: vec![reserved; count], private: Vec::new() }
    }

    /// Number of frames.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether the machine has no memory.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Where `pfn` is.
    #[inline]
    pub fn state(&self, pfn: Pfn) -> FrameState {
        self.frames[pfn.index()].state
    }

    /// Whether `pfn` holds page cache or anonymous memory.
    #[inline]
    pub fn is_lru_page(&self, pfn: Pfn) -> bool {
        matches!(self.state(pfn), FrameState::Lru | FrameState::Batch | FrameState::Isolated)
    }

    /// Moves `pfn` to another place. The caller keeps lists and counts in step.
    #[inline]
    pub fn set_state(&mut self, pfn: Pfn, state: FrameState) {
        self.frames[pfn.index()].state = state;
    }

    /// Order of the block or folio that `pfn` heads.
    #[inline]
    pub fn order(&self, pfn: Pfn) -> Order {
        Order(self.frames[pfn.index()].order)
    }

    /// Sets the order of the block that `pfn` heads.
    #[inline]
    pub fn set_order(&mut self, pfn: Pfn, order: Order) {
        self.frames[pfn.index()].order = order.0;
    }

    /// Pages of the folio that `pfn` heads.
    #[inline]
    pub fn pages(&self, pfn: Pfn) -> u32 {
        1 << self.frames[pfn.index()].order
    }

    /// Flags of `pfn`.
    #[inline]
    pub fn flags(&self, pfn: Pfn) -> PageFlags {
        self.frames[pfn.index()].flags
    }

    /// Flags of `pfn`, to be changed.
    #[inline]
    pub(crate) fn flags_mut(&mut self, pfn: Pfn) -> &mut PageFlags {
        &mut self.frames[pfn.index()].flags
    }

    /// Replaces the flags of `pfn`.
    #[inline]
    pub fn put_flags(&mut self, pfn: Pfn, flags: PageFlags) {
        self.frames[pfn.index()].flags = flags;
    }

    /// Sets `flags` on `pfn`.
    #[inline]
    pub fn set_flags(&mut self, pfn: Pfn, flags: PageFlags) {
        let old = &mut self.frames[pfn.index()].flags;
        *old = old.set(flags);
    }

    /// Clears `flags` on `pfn`.
    #[inline]
    pub fn clear_flags(&mut self, pfn: Pfn, flags: PageFlags) {
        let old = &mut self.frames[pfn.index()].flags;
        *old = old.clear(flags);
    }

    /// Raw index of the cgroup that `pfn` is charged to.
    #[inline]
    pub fn memcg(&self, pfn: Pfn) -> u16 {
        self.frames[pfn.index()].memcg
    }

    /// Sets the cgroup that `pfn` is charged to.
    #[inline]
    pub fn set_memcg(&mut self, pfn: Pfn, memcg: u16) {
        self.frames[pfn.index()].memcg = memcg;
    }

    /// Charges all that is charged to one cgroup to another instead, by their raw indices.
    pub(crate) fn hand_over(&mut self, from: u16, to: u16) {
        let of_it = self.frames.iter_mut().filter(|frame| frame.memcg == from);
        of_it.for_each(|frame| frame.memcg = to);
    }

    /// Raw index of the mapping that holds `pfn`, or [`NO_OWNER`]; for anonymous memory see
    /// [`crate::pages::anon`].
    #[inline]
    pub fn owner(&self, pfn: Pfn) -> u32 {
        self.frames[pfn.index()].owner
    }

    /// Whether `pfn` holds no page of a file: anonymous memory, also where it is in the swap cache only or on the
    /// lists of file pages.
    #[inline]
    pub fn is_anon(&self, pfn: Pfn) -> bool {
        (self.owner(pfn) & ANON_OWNER) != 0
    }

    /// Page index of `pfn` in its mapping.
    #[inline]
    pub fn index(&self, pfn: Pfn) -> u32 {
        self.frames[pfn.index()].index
    }

    /// What a page of a folio with [`PageFlags::PRIVATE`] has attached: the raw number of a slab. A migration
    /// copies it along with the flags.
    #[inline]
    pub fn private(&self, pfn: Pfn) -> u32 {
        self.private.get(pfn.index()).copied().unwrap_or(0)
    }

    /// Attaches something to `pfn`; the table is made on first use.
    pub fn set_private(&mut self, pfn: Pfn, value: u32) {
        if self.private.is_empty() {
            self.private = vec![0; self.frames.len()];
        }
        self.private[pfn.index()] = value;
    }

    /// Puts `pfn` on a per-CPU list; `index` is what its list wants to know of it.
    #[inline]
    pub(crate) fn begin_pcp(&mut self, pfn: Pfn, index: u32) {
        let frame = &mut self.frames[pfn.index()];
        (frame.owner, frame.index, frame.state) = (NO_OWNER, index, FrameState::Pcp);
    }

    /// Makes `pfn` the head of a free block; `index` is what its list wants to know of it.
    #[inline]
    pub(crate) fn begin_free(&mut self, pfn: Pfn, order: Order, index: u32) {
        let frame = &mut self.frames[pfn.index()];
        (frame.owner, frame.index, frame.order) = (NO_OWNER, index, order.0);
        frame.state = FrameState::Free;
    }

    /// Whether `pfn` is the head of a free block of `order`.
    #[inline]
    pub(crate) fn is_free_block(&self, pfn: Pfn, order: Order) -> bool {
        let frame = &self.frames[pfn.index()];
        frame.state == FrameState::Free && frame.order == order.0
    }

    /// Whether `pfn` is the head of a block of `order` in use.
    #[inline]
    pub(crate) fn is_block_in_use(&self, pfn: Pfn, order: Order) -> bool {
        self.frames[pfn.index()].is_block_in_use(order)
    }

    /// Flags and cgroup of a single page that is in this place; none of anything else.
    #[inline]
    pub(crate) fn single_in(&self, place: FrameState, pfn: Pfn) -> Option<(PageFlags, u16)> {
        let frame = &self.frames[pfn.index()];
        (frame.state == place && frame.order == 0).then_some((frame.flags, frame.memcg))
    }

    /// A single page of a file: its flags, mapping, index and cgroup; none of anything else.
    #[inline]
    pub(crate) fn single_of_file(&self, pfn: Pfn) -> Option<(PageFlags, u32, u32, u16)> {
        let frame = &self.frames[pfn.index()];
        let is_one = frame.order == 0 && (frame.owner & ANON_OWNER) == 0;
        is_one.then_some((frame.flags, frame.owner, frame.index, frame.memcg))
    }

    /// Says which mapping holds `pfn`, and where.
    #[inline]
    pub fn set_owner(&mut self, pfn: Pfn, owner: u32, index: u32) {
        let frame = &mut self.frames[pfn.index()];
        (frame.owner, frame.index) = (owner, index);
    }
}

impl Frame {
    /// Whether it is the head of a block of `order` in use.
    #[inline]
    pub(super) fn is_block_in_use(&self, order: Order) -> bool {
        let in_use = matches!(
            self.state,
            FrameState::InUse | FrameState::Isolated | FrameState::Batch | FrameState::Lru
        );
        in_use && self.order == order.0
    }
}

impl Links<Pfn> for Frames {
    #[inline]
    fn link(&self, pfn: Pfn) -> Link<Pfn> {
        self.frames[pfn.index()].link
    }

    #[inline]
    fn link_mut(&mut self, pfn: Pfn) -> &mut Link<Pfn> {
        &mut self.frames[pfn.index()].link
    }
}

/// A list of heads, with its length in elements. The head is the youngest end for LRU lists and the
/// next to be taken for free lists.
pub type FrameList = List<Pfn>;
