//! Logs of other programs, from outside: what comes of each, and of those that are wrong.

mod blkparse;
mod damon;
mod fio;
mod mangled;
mod perf;
mod requests;
mod scene;
mod strace;
