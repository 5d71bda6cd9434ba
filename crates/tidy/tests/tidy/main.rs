//! What no compiler checks about this repository.
//!
//! `layers` holds the dependencies of crates against the map in `ARCHITECTURE.md`, `storeys` the files of a
//! crate against the order that `storeys/towers.rs` gives them, `fields` what `kernel` may do to `mm`; `sources` and
//! `functions` read every Rust file; `documents` and `references` follow what texts name. A failure lists all places.

mod documents;
mod fields;
mod functions;
mod layers;
mod references;
mod sources;
mod storeys;
mod switches;
mod tree;
