//! How `fs_mark` makes a file, which several workloads do in great number: a `mkdir` of the directory,
//! which mostly fails, a creation, a write and a close.
//!
//! Left out: which directory a file goes into, and when it is the next one's turn: each workload's own.
//! Next: [`crate::programs::small_files`], [`crate::programs::inode_storm`].

use units::{Bytes, Nanos};

use crate::system::errno::{Errno, SystemError};
use crate::system::{OpenMode, System};

/// What `fs_mark` itself needs for a file: 502 s of user time for 31 million files (source 0).
pub(crate) const OWN_WORK: Nanos = Nanos::from_micros(16);

/// A directory that files are made in, and the path of the last one. Of a path for each of millions of
/// files, all but the end is made once.
#[derive(Debug, Default)]
pub(crate) struct Place {
    path: String,
    directory_len: usize,
}

impl Place {
    /// Goes to `directory`, which each file makes where it is missing.
    pub(crate) fn enter(&mut self, directory: &str) {
        self.path.clear();
        self.path.push_str(directory);
        self.directory_len = directory.len();
    }

    /// Makes the file of `number` in round `round`, with `size` bytes that one call writes; an empty one is
    /// not written.
    pub(crate) async fn make_file<S: System>(
        &mut self,
        sys: &S,
        round: u64,
        number: u64,
        size: Bytes,
    ) -> Result<(), SystemError> {
        self.path.truncate(self.directory_len);
        match sys.make_dir(&self.path).await {
            Err(error) if error.errno != Errno::Exist => return Err(error),
            _ => {}
        }
        self.path.push('/');
        push_padded(&mut self.path, round, 3);
        push_padded(&mut self.path, number, 9);
        let handle = sys.open(&self.path, OpenMode::Create).await?;
        if size > Bytes(0) {
            sys.write(&handle, 0, size.get()).await?;
        }
        drop(handle);
        sys.compute(OWN_WORK);
        Ok(())
    }
}

/// Appends a number, with zeros before it up to `width` digits. Formatting takes thrice as long.
fn push_padded(text: &mut String, mut number: u64, width: usize) {
    let mut digits = [b'0'; 20];
    let mut first = digits.len();
    while number > 0 || digits.len() - first < width {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    text.push_str(str::from_utf8(&digits[first..]).expect("digits are text"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_padded_as_they_are_formatted() {
        for (number, width) in [(0, 3), (7, 1), (42, 9), (1000, 3), (u64::MAX, 9)] {
            let mut text = "/".to_owned();
            push_padded(&mut text, number, width);
            assert_eq!(text, format!("/{number:0width$}"));
        }
    }
}
