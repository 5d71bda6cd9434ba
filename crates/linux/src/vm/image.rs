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
use workload::Footprint;

use super::error::VmError;
use super::kernels::compare_versions;
use crate::bounds::Rounded;
use crate::process::dying_with_us;

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

/// What of a disk is left for files: a filesystem's own tables and log take about 3 % of it.
const FILES_SHARE: (u64, u64) = (15, 16);
/// `mkfs.ext4` makes an inode for as many bytes (`inode_ratio` in mke2fs.conf); XFS as they come.
const EXT4_BYTES_PER_INODE: u64 = 16 << 10;
/// What a new image takes on the host: 261 MiB with ext4 and 65 MiB with XFS, for 32 GiB.
const EMPTY_IMAGE: u64 = 320 << 20;
/// What each further image takes, of disks that are smaller the more there are: its log.
const EMPTY_MORE: u64 = 80 << 20;
/// What a file takes besides its content: inode, directory entry, its share of the log.
const BYTES_PER_FILE: u64 = 1 << 10;

/// The first kernel that mounts an XFS as `mkfs.xfs` has made it since 2021, with these two.
const XFS_OF_TODAY: &str = "5.10";
const XFS_SINCE_THEN: &str = "bigtime=0,inobtcount=0";

const DISK_ID: &str = "7a6e7469-6465-4000-8000-000000000001";

impl VmFilesystem {
    /// The name that `mount` and the module loader know.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs | Self::XfsWithLog(_) => "xfs",
        }
    }

    /// What makes it for a kernel, which may be too old for what is made today.
    fn mkfs_for(self, release: &str) -> (&'static str, Vec<String>) {
        let (program, mut arguments) = self.mkfs();
        if self != Self::Ext4 && compare_versions(release, XFS_OF_TODAY).is_lt() {
            arguments.extend(["-m", XFS_SINCE_THEN].map(str::to_owned));
        }
        (program, arguments)
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

/// Whether the files of `made` fit on a disk of `size`; else what does, in words.
pub(crate) fn fits(made: &Footprint, filesystem: VmFilesystem, size: Bytes) -> Result<(), String> {
    let room = Bytes(size.get() / FILES_SHARE.1 * FILES_SHARE.0);
    if taken(made) > room {
        return Err(Rounded::down(room).to_string());
    }
    let inodes = size.get() / EXT4_BYTES_PER_INODE;
    match filesystem {
        VmFilesystem::Ext4 if made.file_count > inodes => Err(format!("{inodes} files")),
        _ => Ok(()),
    }
}

/// What the images take on the host when all files are made.
pub(crate) fn grows_to(made: &Footprint) -> Bytes {
    let more = u64::from(made.disks.saturating_sub(1)) * EMPTY_MORE;
    Bytes(taken(made).get().saturating_add(EMPTY_IMAGE + more))
}

/// The size of each of so many disks that have `size` together, in whole MiB.
pub(crate) fn part(size: Bytes, disks: u16) -> Bytes {
    Bytes(((size.get() / u64::from(disks)) >> 20) << 20)
}

fn taken(made: &Footprint) -> Bytes {
    Bytes(made.files.get().saturating_add(made.file_count.saturating_mul(BYTES_PER_FILE)))
}

/// Makes a disk image of `size` at `path`, for the kernel `release`.
///
/// # Errors
/// `mkfs` is missing or fails, or there is no room.
pub fn make(path: &Path, filesystem: VmFilesystem, size: Bytes, release: &str) -> Result<(), VmError> {
    let failed = |source| VmError::io("create disk image", path, source);
    File::create(path).and_then(|file| file.set_len(size.get())).map_err(failed)?;
    let (program, mut arguments) = filesystem.mkfs_for(release);
    let found = find_program(program).ok_or(VmError::NoMkfs { program })?;
    let mkfs = |arguments: &[String]| dying_with_us(Command::new(&found).args(arguments).arg(path)).output();
    let mut output = mkfs(&arguments).map_err(failed)?;
    if !output.status.success() && matches!(filesystem, VmFilesystem::XfsWithLog(_)) {
        // Since xfsprogs 5.19 a log below 64 MiB takes this word, which older ones do not know.
        arguments.push("--unsupported".to_owned());
        output = mkfs(&arguments).map_err(failed)?;
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
        let error = make(&dir.path().join("disk"), VmFilesystem::Ext4, Bytes(4096), "6.12").unwrap_err();
        assert!(matches!(&error, VmError::Mkfs { message, .. } if !message.is_empty()), "{error}");
    }

    #[test]
    fn files_that_do_not_fit_on_the_disk_are_found_out_before_it_is_made() {
        let made = |gib: u64, file_count| Footprint {
            files: Bytes(gib << 30),
            file_count,
            anonymous: Bytes(0),
            tasks: 1,
            disks: 1,
        };
        let disk = Bytes(32 << 30);
        let check = |files, filesystem| fits(&files, filesystem, disk);
        assert_eq!(check(made(29, 2), VmFilesystem::Ext4), Ok(()));
        assert_eq!(check(made(30, 2), VmFilesystem::Ext4), Err("30 GiB".to_owned()));
        assert_eq!(check(made(10, 3 << 20), VmFilesystem::Ext4), Err("2097152 files".to_owned()));
        assert_eq!(check(made(10, 3 << 20), VmFilesystem::Xfs), Ok(()));
        // With its inodes a file of one page is a fourth larger.
        assert_eq!(check(made(28, 7 << 20), VmFilesystem::Xfs), Err("30 GiB".to_owned()));
    }

    #[test]
    fn a_kernel_that_cannot_mount_what_is_made_today_gets_an_xfs_without_it() {
        let has_all = |filesystem: VmFilesystem, release| {
            !filesystem.mkfs_for(release).1.join(" ").contains("bigtime=0")
        };
        for (release, is_new) in [("4.19.1", false), ("5.9.1", false), ("5.10.46", true), ("6.12.113", true)]
        {
            for xfs in [VmFilesystem::Xfs, VmFilesystem::XfsWithLog(16)] {
                assert_eq!(has_all(xfs, release), is_new, "{release}");
            }
            assert!(has_all(VmFilesystem::Ext4, release), "{release}");
        }
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
