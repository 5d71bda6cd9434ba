//! Runs on this machine's own kernel, from outside.
//!
//! They are here and not beside what they test: the crate is linked, and its programs are not compiled again.

mod host;
