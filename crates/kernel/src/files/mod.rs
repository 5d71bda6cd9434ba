//! Files: names, inodes, and what it means to have one open.
//!
//! On the disk are [`disk`] (inodes), [`directory`] (names) and [`spelling`] (what names are made of); in memory
//! [`inode`]. [`table`] has both and says what is where. Start with [`open`].

pub mod advice;
pub mod close;
pub(crate) mod descriptor;
pub mod directories;
pub(crate) mod directory;
pub(crate) mod disk;
pub(crate) mod extents;
pub(crate) mod inode;
pub(crate) mod lock;
pub(crate) mod locking;
pub mod lookup;
pub mod names;
pub mod open;
pub mod rename;
pub(crate) mod spelling;
pub(crate) mod table;
pub mod truncate;
