//! Writing dirty pages back: the flusher, requests, `sync`, and pauses of writers.
//!
//! Start with [`flusher`].

pub mod flusher;
pub(crate) mod inodes;
pub mod pause;
pub mod request;
pub mod sync;
