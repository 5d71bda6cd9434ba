//! Files: names, inodes, and what it means to have one open.

pub mod close;
pub(crate) mod descriptor;
pub(crate) mod inode;
pub mod names;
pub mod open;
pub(crate) mod table;
