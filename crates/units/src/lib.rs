//! The words that every other crate speaks: sizes, times, page frames and identities as
//! newtypes, their text forms, and seeded random streams.
//!
//! Start with [`count`] (the newtypes), then [`text`] (how a person writes a size or a
//! duration) and [`random`] (one stream per named entity, so that adding an entity never
//! changes what another one draws).
//!
//! Deliberately absent: floats, clocks, I/O and global state. This crate is `no_std`, so that
//! the mechanisms built on it can be lifted into a kernel or a cache of another program.
#![no_std]

extern crate alloc;

pub mod count;
pub mod random;
pub mod text;

pub use count::{Bytes, CpuId, Nanos, NodeId, Order, Pages, Pfn};
pub use random::{Seed, Stream};
pub use text::{ParseUnitError, parse_nanos, parse_size};

/// Bytes in one page frame: 4 KiB on every machine that is modelled.
pub const PAGE_SIZE: u64 = 4096;
/// log2 of [`PAGE_SIZE`].
pub const PAGE_SHIFT: u32 = 12;

const _: () = assert!(PAGE_SIZE == (1 << PAGE_SHIFT));
