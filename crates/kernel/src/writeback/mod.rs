//! Writing dirty pages back: the flusher, requests, `sync`, and pauses of writers.
//!
//! Start with [`flusher`].

pub mod bios;
pub mod flusher;
pub(crate) mod inodes;
pub mod pages;
pub mod pause;
pub mod plug;
pub(crate) mod request;
pub(crate) mod shares;
pub mod sync;
pub mod wake;
pub mod work;
