//! How `fs_mark` makes a file, which several workloads do in great number: a `mkdir` of the directory,
//! which mostly fails, a creation, a write and a close.
//!
//! Left out: which directory a file goes into, and when it is the next one's turn: each workload's own.
//! Next: [`crate::programs::small_files`], [`crate::programs::inode_storm`].

use std::fmt::Write as _;

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
        write!(self.path, "/{round:03}{number:09}").expect("text can be written to");
        let handle = sys.open(&self.path, OpenMode::Create).await?;
        if size > Bytes(0) {
            sys.write(&handle, 0, size.get()).await?;
        }
        drop(handle);
        sys.compute(OWN_WORK);
        Ok(())
    }
}
