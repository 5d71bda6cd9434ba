//! Lines for whoever runs a command.

use std::io::{self, Write};

/// A line to standard output; a reader that has gone away does not matter.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stdout().lock(), "{text}");
}
