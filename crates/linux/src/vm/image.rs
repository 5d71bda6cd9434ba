//! The guest's data disk: a sparse file with a fresh filesystem in it.
//!
//! The filesystem is made on the host, by the host's own `mkfs`, which needs no privileges on a
//! file. Its identifiers are fixed, so that every run starts from the same disk, and nothing is
//! left to be initialised in the background while the guest is measured.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};
use units::Bytes;

use super::error::VmError;

/// The filesystem of the guest's data disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VmFilesystem {
    /// ext4.
    Ext4,
    /// XFS with the log size that its `mkfs` chooses.
    Xfs,
    /// XFS with a log of this many MiB. A small one makes log space a bottleneck of its own.
    XfsWithLog(u16),
}

const DISK_ID: &str = "7a6e7469-6465-4000-8000-000000000001";

impl VmFilesystem {
    /// The name that `mount` and the module loader know.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs | Self::XfsWithLog(_) => "xfs",
        }
    }

    fn mkfs(self) -> (&'static str, Vec<String>) {
        let strings =
            |arguments: &[&str]| arguments.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        match self {
            Self::Ext4 => {
                let lazy = format!("lazy_itable_init=0,lazy_journal_init=0,hash_seed={DISK_ID}");
                ("mkfs.ext4", strings(&["-q", "-F", "-U", DISK_ID, "-E", &lazy]))
            }
            Self::Xfs => ("mkfs.xfs", strings(&["-q", "-f", "-m", &format!("uuid={DISK_ID}")])),
            Self::XfsWithLog(mib) => {
                let (program, mut arguments) = Self::Xfs.mkfs();
                arguments.extend(["-l".to_owned(), format!("size={mib}m")]);
                (program, arguments)
            }
        }
    }
}

/// Makes a disk image of `size` at `path`.
///
/// # Errors
/// `mkfs` is missing or fails, or there is no room.
pub fn make(path: &Path, filesystem: VmFilesystem, size: Bytes) -> Result<(), VmError> {
    let failed = |source| VmError::io("create disk image", path, source);
    File::create(path).and_then(|file| file.set_len(size.get())).map_err(failed)?;
    let (program, mut arguments) = filesystem.mkfs();
    let found = find_program(program).ok_or(VmError::NoMkfs { program })?;
    let mut output = Command::new(&found).args(&arguments).arg(path).output().map_err(failed)?;
    if !output.status.success() && matches!(filesystem, VmFilesystem::XfsWithLog(_)) {
        // Since xfsprogs 5.19 a log below 64 MiB takes this word, which older ones do not know.
        arguments.push("--unsupported".to_owned());
        output = Command::new(&found).args(&arguments).arg(path).output().map_err(failed)?;
    }
    if !output.status.success() {
        // A page of usage often follows; the first line says what is wrong.
        let text = String::from_utf8_lossy(&output.stderr);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        let message = line.unwrap_or("it does not say why").to_owned();
        return Err(VmError::Mkfs { program, message });
    }
    Ok(())
}

/// Finds a program in `PATH`, and where administrators' programs are, which users' paths lack.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    dirs.map(|dir| dir.join(name)).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::print_stderr, reason = "a skipped test says so")]
    fn a_disk_too_small_for_its_filesystem_says_why() {
        if find_program("mkfs.ext4").is_none() {
            eprintln!("skipped: mkfs.ext4 is not installed");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let error = make(&dir.path().join("disk"), VmFilesystem::Ext4, Bytes(4096)).unwrap_err();
        assert!(matches!(&error, VmError::Mkfs { message, .. } if !message.is_empty()), "{error}");
    }

    #[test]
    fn equal_disks_have_equal_names_for_everything() {
        assert_eq!(
            VmFilesystem::XfsWithLog(16).mkfs().1,
            ["-q", "-f", "-m", "uuid=7a6e7469-6465-4000-8000-000000000001", "-l", "size=16m"]
        );
        assert!(VmFilesystem::Ext4.mkfs().1.join(" ").contains(&format!("hash_seed={DISK_ID}")));
    }
}
