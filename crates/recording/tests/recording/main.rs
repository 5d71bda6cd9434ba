//! Recordings and traces from outside: they come back equal, and damage never goes unseen.
//!
//! What writes or reads whole files is here and not beside what it tests: the crate is linked, with its readers and
//! writers of Parquet, and they are not compiled again.

mod event_files;
mod example;
mod files;
mod folder;
mod growing;
mod trace;
mod waits;
