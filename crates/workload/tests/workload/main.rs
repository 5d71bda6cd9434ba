//! Programs, workload files and scenario files from outside.
//!
//! `fake` is the kernel under programs: it has unlimited memory and remembers all calls. What needs the catalog or
//! runs a program is here and not beside what it tests: the crate is linked, and not compiled again.

mod catalog;
mod fake;
mod fio;
mod footprint;
mod guest;
mod hot_and_stream;
mod random_calls;
mod real;
mod scenario;
mod swap;
mod written;
