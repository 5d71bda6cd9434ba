//! What no compiler checks about this repository.
//!
//! `layers` holds the dependencies of crates against the map in `ARCHITECTURE.md`, `floors` the files
//! of a crate against their order; `sources` reads every Rust file; `documents` follows the links in
//! texts. A failure lists all places.

mod documents;
mod floors;
mod layers;
mod sources;
mod tree;
