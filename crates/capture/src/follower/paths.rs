//! Paths of a task, as this process can look them up: through the task's own root and folder in `/proc`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::Follower;
use crate::calls::PathAt;
use crate::sys;

impl Follower {
    /// The number of the file that a path names; nothing where it names none, or none with pages.
    pub(super) fn file_at(&mut self, tid: i32, path: PathAt, follow: bool) -> Option<u32> {
        let Some(bytes) = sys::read_path(tid, path.address) else {
            self.gaps.unread += 1;
            return None;
        };
        let named = Path::new(OsStr::from_bytes(&bytes));
        let reached = reached(tid, path.folder, named);
        self.files.at_path(&reached, follow, || as_named(tid, path.folder, named))
    }

    /// Whether an open of this path may wait for others: it is a pipe or a device.
    pub(super) fn is_waited_for(tid: i32, path: PathAt) -> bool {
        let Some(bytes) = sys::read_path(tid, path.address) else { return false };
        let reached = reached(tid, path.folder, Path::new(OsStr::from_bytes(&bytes)));
        std::fs::metadata(reached).is_ok_and(|found| !found.is_file() && !found.is_dir())
    }

    /// The number of a file by its path in `maps`.
    pub(super) fn file_named(&mut self, tid: i32, path: &Path) -> Option<u32> {
        let reached = reached(tid, libc::AT_FDCWD, path);
        self.files.at_path(&reached, true, || path.to_owned())
    }
}

/// Where this process finds it.
fn reached(tid: i32, folder: i32, named: &Path) -> PathBuf {
    match named.strip_prefix("/") {
        Ok(below) => PathBuf::from(format!("/proc/{tid}/root")).join(below),
        Err(_) => folder_link(tid, folder).join(named),
    }
}

/// As the task would write it in full.
fn as_named(tid: i32, folder: i32, named: &Path) -> PathBuf {
    match named.is_absolute() {
        true => named.to_owned(),
        false => std::fs::read_link(folder_link(tid, folder)).unwrap_or_default().join(named),
    }
}

fn folder_link(tid: i32, folder: i32) -> PathBuf {
    match folder {
        libc::AT_FDCWD => PathBuf::from(format!("/proc/{tid}/cwd")),
        folder => PathBuf::from(format!("/proc/{tid}/fd/{folder}")),
    }
}
