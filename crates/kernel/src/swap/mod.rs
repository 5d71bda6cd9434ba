//! Swap: faults on pages that are swapped out, and writes to areas on disks; the worker of zswap.

mod fault;
mod write;
mod zswap;
