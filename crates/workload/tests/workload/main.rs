//! Programs and scenario files from outside.
//!
//! `fake` is the kernel under `hot_and_stream`: it has unlimited memory and remembers all calls.

mod fake;
mod hot_and_stream;
mod scenario;
mod written;
