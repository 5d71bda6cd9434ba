//! A tree of memory cgroups, spoken to by the names of cgroup v2 whatever the kernel has.
//!
//! v1 has no protection (`memory.low`, `memory.min`) and no throttling (`memory.high`): these are
//! `NotSup`. Its soft limit is something else, so it does not stand in for them. Its `memory.stat`
//! counts no reclaim per group (`pgscan`, `pgsteal`), and neither does ours then.
//!
//! v2 lets processes live in leaves only, so the main process of a run gets a leaf of its own
//! below the root. Left out: threaded mode, controllers other than memory. Next:
//! [`crate::discover`] for where a tree can be made.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use units::Bytes;
use workload::{Errno, SystemError};

use crate::error::LinuxError;
use crate::parse::{self, Parser};
use crate::spec::{CgroupVersion, RootPaths};

/// The leaf of the main process under v2.
const MAIN_LEAF: &str = "pagetide-main";

/// A file of a group that is sampled: its name, what precedes its numbers' names, its parser.
pub(crate) struct GroupFile {
    pub(crate) file: &'static str,
    pub(crate) prefix: &'static str,
    pub(crate) parser: Parser,
}

const fn group_file(file: &'static str, prefix: &'static str, parser: Parser) -> GroupFile {
    GroupFile { file, prefix, parser }
}

const FILES_V2: &[GroupFile] = &[
    group_file("memory.stat", "", parse::pairs),
    group_file("memory.current", "current", parse::single),
    group_file("memory.events", "events_", parse::pairs),
    group_file("memory.low", "memory.low", parse::single),
    group_file("memory.min", "memory.min", parse::single),
    group_file("memory.max", "memory.max", parse::single),
    group_file("memory.swap.current", "swap_current", parse::single),
    group_file("memory.swap.events", "swap_events_", parse::pairs),
    group_file("memory.pressure", "", parse::pressure),
];

const FILES_V1: &[GroupFile] = &[
    group_file("memory.stat", "", parse::memory_stat_v1),
    group_file("memory.usage_in_bytes", "current", parse::single),
    group_file("memory.kmem.usage_in_bytes", "kernel", parse::single),
    group_file("memory.failcnt", "events_max", parse::single),
    group_file("memory.oom_control", "events_", parse::oom_control_v1),
];

/// The tree below a run's root cgroup.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    root: PathBuf,
    version: CgroupVersion,
}

impl Tree {
    /// The tree below `root`, ready for tasks: the memory controller reaches its children.
    pub(crate) fn open(paths: &RootPaths) -> Result<Self, LinuxError> {
        let tree = Self { root: paths.cgroup.clone(), version: paths.version };
        match tree.version {
            CgroupVersion::V2 => {
                enable_memory(&tree.root)
                    .map_err(|error| LinuxError::io("enable the memory controller in", &tree.root, error))?;
                let main = tree.root.join(MAIN_LEAF);
                create_if_missing(&main).map_err(|error| LinuxError::io("create cgroup", &main, error))?;
            }
            CgroupVersion::V1 => {
                // Before 5.11 a v1 group did not count for its parent unless told to. Later
                // kernels refuse anything else, so a failure here says nothing.
                let _ = fs::write(tree.root.join("memory.use_hierarchy"), "1");
            }
        }
        Ok(tree)
    }

    /// The directory of the group at `path`; the empty path is the root.
    ///
    /// # Errors
    /// `Inval` for a path that would leave the root.
    fn directory(&self, call: &'static str, path: &str) -> Result<PathBuf, SystemError> {
        below(&self.root, path).ok_or_else(|| SystemError::new(call, path, Errno::Inval))
    }

    /// Where a task of `group` writes itself in.
    pub(crate) fn procs_file(&self, group: Option<&str>) -> Result<PathBuf, SystemError> {
        let directory = match (group, self.version) {
            (Some(path), _) => self.directory("spawn", path)?,
            (None, CgroupVersion::V1) => self.root.clone(),
            (None, CgroupVersion::V2) => self.root.join(MAIN_LEAF),
        };
        Ok(directory.join("cgroup.procs"))
    }

    /// Creates a group with the memory controller on.
    pub(crate) fn create(&self, path: &str) -> Result<(), SystemError> {
        let failed = |error: io::Error| SystemError::new("mkdir", path, errno(&error));
        let directory = self.directory("mkdir", path)?;
        if self.version == CgroupVersion::V2
            && let Some(parent) = directory.parent()
        {
            enable_memory(parent).map_err(failed)?;
        }
        fs::create_dir(&directory).map_err(failed)
    }

    /// Removes an empty group.
    pub(crate) fn remove(&self, path: &str) -> Result<(), SystemError> {
        let directory = self.directory("rmdir", path)?;
        fs::remove_dir(directory).map_err(|error| SystemError::new("rmdir", path, errno(&error)))
    }

    /// Writes a v2 file, or the file of v1 that means the same.
    pub(crate) fn write(&self, path: &str, file: &str, value: &str) -> Result<(), SystemError> {
        let failed = |errno| SystemError::new("cgroup_write", format!("{path}/{file}"), errno);
        let (file, value) = match (self.version, file) {
            (CgroupVersion::V2, file) => (file, value),
            (CgroupVersion::V1, "memory.max") => {
                ("memory.limit_in_bytes", if value.trim() == "max" { "-1" } else { value })
            }
            (CgroupVersion::V1, _) => return Err(failed(Errno::NotSup)),
        };
        if file.contains('/') {
            return Err(failed(Errno::Inval));
        }
        let target = self.directory("cgroup_write", path)?.join(file);
        write_existing(&target, value).map_err(|error| failed(errno(&error)))
    }

    /// Reads a v2 file, or what v1 has of it in v2's form.
    pub(crate) fn read(&self, path: &str, file: &str) -> Result<String, SystemError> {
        let failed = |errno| SystemError::new("cgroup_read", format!("{path}/{file}"), errno);
        let directory = self.directory("cgroup_read", path)?;
        if file.contains('/') {
            return Err(failed(Errno::Inval));
        }
        let text =
            |name: &str| fs::read_to_string(directory.join(name)).map_err(|error| failed(errno(&error)));
        match (self.version, file) {
            (CgroupVersion::V2, file) => text(file),
            (CgroupVersion::V1, "memory.max") => text("memory.limit_in_bytes").map(limit_of_v1),
            (CgroupVersion::V1, "memory.current") => text("memory.usage_in_bytes"),
            (CgroupVersion::V1, "memory.peak") => text("memory.max_usage_in_bytes"),
            (CgroupVersion::V1, "memory.stat") => {
                Ok(translate(&text("memory.stat")?, "", parse::memory_stat_v1)
                    + &translate(&text("memory.kmem.usage_in_bytes")?, "kernel", parse::single))
            }
            (CgroupVersion::V1, "memory.events") => {
                Ok(translate(&text("memory.failcnt")?, "max", parse::single)
                    + &translate(&text("memory.oom_control")?, "", parse::oom_control_v1))
            }
            (CgroupVersion::V1, _) => Err(failed(Errno::NotSup)),
        }
    }

    /// The files of a group that a monitor samples, with the group's directory.
    pub(crate) fn sampled(&self, path: &str) -> Option<(PathBuf, &'static [GroupFile])> {
        let files = match self.version {
            CgroupVersion::V1 => FILES_V1,
            CgroupVersion::V2 => FILES_V2,
        };
        Some((below(&self.root, path)?, files))
    }
}

/// The limit on the memory of the group in `directory`, where it has one.
pub(crate) fn limit_of(directory: &Path, version: CgroupVersion) -> Option<Bytes> {
    let (root, name) = (directory.parent()?, directory.file_name()?.to_str()?);
    let limit = Tree { root: root.to_owned(), version }.read(name, "memory.max").ok()?;
    limit.trim().parse().ok().map(Bytes)
}

/// `memory.max` of v2 from `memory.limit_in_bytes`: no limit is the largest multiple of a page.
fn limit_of_v1(text: String) -> String {
    let unlimited = text.trim().parse::<u64>().is_ok_and(|limit| limit >= (i64::MAX as u64) & !0xffff);
    if unlimited { "max\n".to_owned() } else { text }
}

fn translate(text: &str, prefix: &str, parser: Parser) -> String {
    let mut lines = String::new();
    parser(text, &mut |name, value| {
        lines.push_str(&format!("{prefix}{} {value}\n", name.concat()));
    });
    lines
}

/// Lets the children of a v2 group have the memory controller.
pub(crate) fn enable_memory(directory: &Path) -> io::Result<()> {
    let control = directory.join("cgroup.subtree_control");
    let enabled = fs::read_to_string(&control)?;
    if enabled.split_ascii_whitespace().any(|controller| controller == "memory") {
        return Ok(());
    }
    write_existing(&control, "+memory")
}

fn create_if_missing(directory: &Path) -> io::Result<()> {
    match fs::create_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Writes a kernel's file, which must be there already: `fs::write` would try to create it.
pub(crate) fn write_existing(path: &Path, value: &str) -> io::Result<()> {
    use std::io::Write;
    fs::OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

/// `path` below `root`; `None` when it is absolute or climbs out.
pub(crate) fn below(root: &Path, path: &str) -> Option<PathBuf> {
    use std::path::Component;
    let inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    Path::new(path).components().all(inside).then(|| root.join(path))
}

/// The workload's word for an I/O error.
pub(crate) fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::Io, errno_of)
}

/// The workload's word for an error number of Linux.
pub(crate) fn errno_of(number: i32) -> Errno {
    match number {
        libc::EPERM => Errno::Perm,
        libc::ENOENT => Errno::NoEnt,
        libc::EEXIST => Errno::Exist,
        libc::ENOTDIR => Errno::NotDir,
        libc::EISDIR => Errno::IsDir,
        libc::ENOTEMPTY => Errno::NotEmpty,
        libc::EACCES => Errno::Acces,
        libc::EBUSY => Errno::Busy,
        libc::EINVAL => Errno::Inval,
        libc::ENOSPC => Errno::NoSpc,
        libc::ENOMEM => Errno::NoMem,
        libc::EIO => Errno::Io,
        libc::EOPNOTSUPP | libc::ENOSYS => Errno::NotSup,
        other => Errno::Other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A v1 group as files in a plain directory.
    fn fake_v1() -> (tempfile::TempDir, Tree) {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("P");
        fs::create_dir(&group).unwrap();
        for (file, text) in [
            ("memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory.usage_in_bytes", "8192\n"),
            ("memory.kmem.usage_in_bytes", "4096\n"),
            ("memory.failcnt", "3\n"),
            ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"),
            ("memory.stat", "cache 1\ntotal_cache 40960\ntotal_inactive_file 36864\n"),
        ] {
            fs::write(group.join(file), text).unwrap();
        }
        let tree = Tree { root: root.path().to_owned(), version: CgroupVersion::V1 };
        (root, tree)
    }

    #[test]
    fn v1_answers_to_the_names_of_v2_or_says_that_it_cannot() {
        let (root, tree) = fake_v1();
        assert_eq!(tree.read("P", "memory.max").unwrap(), "max\n");
        assert_eq!(limit_of(&root.path().join("P"), CgroupVersion::V1), None);
        assert_eq!(tree.read("P", "memory.stat").unwrap(), "file 40960\ninactive_file 36864\nkernel 4096\n");
        assert_eq!(tree.read("P", "memory.events").unwrap(), "max 3\noom_kill 1\n");
        tree.write("P", "memory.max", "4096\n").unwrap();
        assert!(fs::read_to_string(root.path().join("P/memory.limit_in_bytes")).unwrap().starts_with("4096"));
        for file in ["memory.low", "memory.high", "memory.min"] {
            let error = tree.write("P", file, "1").unwrap_err();
            assert_eq!(error.to_string(), format!("cgroup_write `P/{file}`: not supported"));
        }
    }

    #[test]
    fn v2_hands_the_controller_down_and_keeps_the_main_process_in_a_leaf() {
        let root = tempfile::tempdir().unwrap();
        let control = |group: &str| root.path().join(group).join("cgroup.subtree_control");
        fs::write(control(""), "").unwrap();
        let paths = RootPaths {
            files: root.path().to_owned(),
            more_disks: Vec::new(),
            cgroup: root.path().to_owned(),
            version: CgroupVersion::V2,
        };
        let tree = Tree::open(&paths).unwrap();
        assert_eq!(fs::read_to_string(control("")).unwrap(), "+memory");
        assert_eq!(tree.procs_file(None).unwrap(), root.path().join("pagetide-main/cgroup.procs"));
        fs::write(control(""), "cpu memory\n").unwrap();
        tree.create("P").unwrap();
        assert_eq!(fs::read_to_string(control("")).unwrap(), "cpu memory\n");
        fs::write(control("P"), "").unwrap();
        tree.create("P/A").unwrap();
        assert_eq!(fs::read_to_string(control("P")).unwrap(), "+memory");
        let error = tree.write("P", "memory.low", "1").unwrap_err();
        assert_eq!(error.to_string(), "cgroup_write `P/memory.low`: no such file or directory");
    }

    #[test]
    fn no_path_leads_out_of_the_root() {
        let (_root, tree) = fake_v1();
        for path in ["../x", "/sys", "P/../../x"] {
            assert_eq!(tree.create(path).unwrap_err().errno, Errno::Inval);
            assert_eq!(tree.write(path, "memory.max", "1").unwrap_err().errno, Errno::Inval);
            assert_eq!(tree.read(path, "memory.max").unwrap_err().errno, Errno::Inval);
        }
        assert_eq!(tree.read("P", "../memory.max").unwrap_err().errno, Errno::Inval);
        assert_eq!(tree.create("P").unwrap_err().errno, Errno::Exist);
        assert_eq!(tree.create("Q/R").unwrap_err().errno, Errno::NoEnt);
    }
}
