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

/// A dentry, by its place in the table. Places are reused after it is freed. Roots of filesystems have
/// numbers of their own: they are always in memory, and no object stands for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DentryId(pub u32);

impl DentryId {
    const LAST_ROOT: u32 = u32::MAX - 1;

    /// The root of the filesystem on a disk.
    #[inline]
    pub const fn root(disk: u16) -> Self {
        Self(Self::LAST_ROOT - disk as u32)
    }

    /// Whether it is the root of some filesystem.
    #[inline]
    pub const fn is_root(self) -> bool {
        self.0 >= Self::LAST_ROOT - u16::MAX as u32
    }
}

/// An anonymous mapping, by its place in the table. Places are reused after it is
/// removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AnonId(pub u32);

/// A stretch of a file in an address space, by its place in the table. Places are reused after it is unmapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileAreaId(pub u32);
