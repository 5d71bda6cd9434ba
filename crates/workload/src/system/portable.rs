//! Reading back the names in errors that have crossed a process boundary.
//!
//! Errors name calls and counters by `&'static str`, which no bytes from a pipe are. An error ends
//! its run, so a name is read back, and its few bytes are kept for good, at most once a run.

use serde::{Deserialize, Deserializer};

/// `&'static str` by another name: serde would borrow a field of the plain type from the bytes,
/// which would then have to live as long as the program.
pub(crate) type StaticName = &'static str;

/// A name that lives as long as the program.
pub(crate) fn static_name<'de, D: Deserializer<'de>>(from: D) -> Result<&'static str, D::Error> {
    String::deserialize(from).map(|name| &*name.leak())
}
