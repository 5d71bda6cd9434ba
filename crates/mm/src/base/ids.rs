//! Names of what the crate keeps in tables.

/// A cgroup, by its place in the table. Places are not reused, so an id outlives its cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemcgId(pub u16);

impl MemcgId {
    /// The root of the tree: everything that is in no other cgroup.
    pub const ROOT: Self = Self(0);

    /// As an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A file's page cache, by its place in the table. Places are reused after the file is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MappingId(pub u32);

/// An anonymous mapping, by its place in the table. Places are reused after it is
/// removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AnonId(pub u32);
