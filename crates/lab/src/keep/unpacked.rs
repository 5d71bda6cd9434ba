//! Texts of others that are unpacked into memory, with a bound: a kilobyte of gzip may be a megabyte.
//!
//! Left out: traces, which are read piece by piece and need no such bound.

use std::io::{self, Read};

/// Bytes of a text at most: a container has a thousandth of it in a month.
const BYTES_MAX: u64 = 512 << 20;

/// All of a text.
///
/// # Errors
/// What the source says; it is more than anybody has.
pub(crate) fn whole(source: impl Read) -> io::Result<Vec<u8>> {
    bounded(source, BYTES_MAX)
}

fn bounded(source: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let problem = format!("unpacked it has more than {} MiB", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All memory was taken.
    #[test]
    fn a_text_that_is_unpacked_without_end_was_read_as_a_whole() {
        assert_eq!(bounded(io::repeat(b'a').take(1 << 20), 1 << 20).unwrap().len(), 1 << 20);
        let error = bounded(io::repeat(b'a'), 1 << 20).unwrap_err();
        assert_eq!(error.to_string(), "unpacked it has more than 1 MiB");
    }
}
