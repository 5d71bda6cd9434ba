//! The whole simulator: drivers of the kernel on a simulated machine, and programs on both.
//!
//! `worlds` draws machines and programs at random; `rules` holds every answer to every decision of a
//! version of Linux against the others; the rest tell one story a test. They compile drivers of the kernel again,
//! and do with less optimisation than runs need: so they are a crate of their own.

mod admission;
mod anon_and_file;
mod attribution;
mod boosts;
mod containers;
mod defrag_mode;
mod dirty_reclaim;
mod events;
mod evicted_inodes;
mod file_calls;
mod files_in_turn;
mod fragment_stall;
mod hot_and_stream;
mod huge_faults;
mod huge_pages;
mod log_size;
mod machines;
mod mapped_files;
mod names;
mod old_kernel;
mod out_of_memory;
mod patience;
mod pauses;
mod plugged_pages;
mod pressure;
mod proactive;
mod proactive_compaction;
mod processes;
mod program;
mod programs;
mod readahead;
mod rules;
mod sequential_readers;
mod shared;
mod simoop;
mod small_files;
mod story;
mod swap_high;
mod system_calls;
mod worlds;
mod writing;

use sim::run::{Checks, Watch, run_watched};
use sim::{SimResult, SimRun};

/// What a run comes to that has to end. All of memory is looked at then.
fn ended(spec: &SimRun) -> SimResult {
    let watch = Watch { checks: Checks::AtTheEnd, ..Watch::default() };
    run_watched(spec, Default::default(), |_| {}, watch).expect("it ends")
}
