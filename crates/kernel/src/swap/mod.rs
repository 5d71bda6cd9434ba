//! Swap: faults on pages that are swapped out, and writes to areas on disks.

mod fault;
mod write;
