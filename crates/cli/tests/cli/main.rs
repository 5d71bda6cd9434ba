//! The command line as a person meets it: golden texts of help, results and errors.
//!
//! `support` runs the program; `runs`, `lists` and `machines` hold what succeeds, `wrong_inputs` what
//! does not, `old_kernels` what an old kernel lacks, `refusals` what would succeed if it were taken for
//! something else than was said, `real_runs` what happens on this host; `replays`, `sizes`, `sweeps`, `ablations`,
//! `grids` and `worlds` hold both of what they are about; `trace_info` has logs of other programs, `traces` are for
//! them, `pages` for people; `playground` is another way to the same.

mod ablations;
mod captures;
mod comparing;
mod events;
mod explain;
mod grids;
mod inode_storm;
mod killed;
mod limits;
mod lists;
mod machines;
mod old_files;
mod old_kernels;
mod pages;
mod playground;
mod readers;
mod real_runs;
mod recordings;
mod reference_suite;
mod refusals;
mod replays;
mod runs;
mod series;
mod sizes;
mod small_files;
mod statistics;
mod support;
mod swaps;
mod sweeps;
mod trace_info;
mod traces;
mod workload_files;
mod worlds;
mod wrong_inputs;
