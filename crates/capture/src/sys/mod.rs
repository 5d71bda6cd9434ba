//! The system calls that no library wraps safely: `ptrace`, seccomp's notices, another process's memory.
//!
//! All `unsafe` of this crate is in this folder. What is above it passes numbers and buffers, and cannot break a
//! promise that is made here.

mod cached;
mod cpu_time;
mod memory;
mod nudge;
mod probe;
mod scan;
mod seccomp;
mod spawn;
mod tracing;

pub(crate) use cached::cached;
pub(crate) use cpu_time::cpu_time;
pub(crate) use memory::{read_memory, read_path};
pub(crate) use nudge::{Sleeper, sleeper};
pub(crate) use probe::{Cost, KINDS, MAPPED_PAGES, READ_MORE};
#[cfg(test)]
pub(crate) use scan::Categories;
pub(crate) use scan::{Region, alone, scan};
pub(crate) use seccomp::{Instruction, Notices, listens};
pub(crate) use spawn::{Child, Streams, fork_probe, fork_stopped};
pub(crate) use tracing::{
    Attached, CallInfo, Resume, attach, block_signals, call_info, detach, event_message, interrupt, kill,
    listen, pass_signal, reap, restart_quietly, resume, same_files, wait,
};
