//! Whose a directory is: the name and the mark that let a later run clean up after a killed one,
//! and touch nothing else.
//!
//! A name is `pagetide-<pid>-<start time>[-<n>]`; the start time is that of `/proc/<pid>/stat`, in
//! ticks since boot, so that a process id that was given out again is not taken for its former
//! owner. A directory of files also holds a file `owner` with the name, the boot and the PID
//! namespace, because directories outlive a boot and may be shared with other containers.
//!
//! What cannot be judged (another namespace, no mark, not our name) stays.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::sysctls;

const PREFIX: &str = "pagetide-";
const MARK: &str = "owner";
/// Directories that one process may have at once.
const DIRECTORIES_MAX: u32 = 1000;

/// A process, for good: its id and when it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pid: u32,
    start_ticks: u64,
}

/// What there is to know about this machine and its processes; a plain directory in tests.
#[derive(Debug, Clone)]
pub(crate) struct Processes {
    proc: PathBuf,
}

impl Processes {
    /// Those of this machine.
    pub(crate) fn of_machine() -> Self {
        Self { proc: PathBuf::from("/proc") }
    }

    /// This process.
    pub(crate) fn current(&self) -> io::Result<Owner> {
        let pid = std::process::id();
        let unknown = || io::Error::new(io::ErrorKind::NotFound, "this process is not in /proc");
        Ok(Owner { pid, start_ticks: self.start_ticks(pid).ok_or_else(unknown)? })
    }

    /// When a process started; `None` when there is none.
    fn start_ticks(&self, pid: u32) -> Option<u64> {
        let stat = fs::read_to_string(self.proc.join(pid.to_string()).join("stat")).ok()?;
        // The name, in brackets, may hold anything; `starttime` is the 20th field behind it.
        stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
    }

    fn is_alive(&self, owner: Owner) -> bool {
        self.start_ticks(owner.pid) == Some(owner.start_ticks)
    }

    fn boot(&self) -> String {
        let path = self.proc.join("sys/kernel/random/boot_id");
        fs::read_to_string(path).unwrap_or_default().trim().to_owned()
    }

    fn namespace(&self) -> String {
        let link = fs::read_link(self.proc.join("self/ns/pid")).unwrap_or_default();
        link.to_string_lossy().into_owned()
    }

    /// The content of a mark.
    fn mark(&self, name: &str) -> String {
        format!("{name}\nboot {}\nnamespace {}\n", self.boot(), self.namespace())
    }

    /// Writes the mark of `name` into its directory.
    fn write_mark(&self, directory: &Path, name: &str) -> io::Result<()> {
        fs::write(directory.join(MARK), self.mark(name))
    }

    /// Makes a directory of our own in `parent`, with its mark; returns its name, too.
    pub(crate) fn create_directory(&self, parent: &Path) -> io::Result<(String, OwnDirectory)> {
        let owner = self.current()?;
        for n in 0..DIRECTORIES_MAX {
            let name = owner.name(n);
            let path = parent.join(&name);
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                other => other?,
            }
            let directory = OwnDirectory(path);
            self.write_mark(&directory.0, &name)?;
            return Ok((name, directory));
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Removes what dead owners left in `parent`, and puts back sysctls that they had set; returns a
    /// sentence on each.
    pub(crate) fn remove_dead_directories(&self, parent: &Path) -> Vec<String> {
        let mut said = Vec::new();
        for path in self.dead_directories(parent) {
            if self.is_of_this_boot(&path) {
                said.extend(sysctls::put_back(&path));
            }
            said.extend(remove(&path).is_ok().then(|| leftover(&path)));
        }
        said
    }

    fn is_of_this_boot(&self, directory: &Path) -> bool {
        let mark = fs::read_to_string(directory.join(MARK)).unwrap_or_default();
        mark.lines().nth(1).and_then(|line| line.strip_prefix("boot ")) == Some(&self.boot())
    }

    /// Directories of the kernel's below `parent` (cgroups, trace instances) whose owners are dead. They
    /// do not outlive a boot, and one that is in use or cannot be removed is left to its own.
    pub(crate) fn dead(&self, parent: &Path) -> Vec<PathBuf> {
        self.ours(parent).filter(|(owner, _)| !self.is_alive(*owner)).map(|(_, path)| path).collect()
    }

    /// Directories of files below `parent` whose owners are dead.
    pub(crate) fn dead_directories(&self, parent: &Path) -> Vec<PathBuf> {
        let dead = |(owner, path): &(Owner, PathBuf)| {
            let mark = fs::read_to_string(path.join(MARK)).unwrap_or_default();
            let mut lines = mark.lines();
            let named = lines.next() == path.file_name().and_then(|name| name.to_str());
            let boot = lines.next().and_then(|line| line.strip_prefix("boot "));
            let namespace = lines.next().and_then(|line| line.strip_prefix("namespace "));
            let (Some(boot), Some(namespace)) = (boot, namespace) else { return false };
            let other_boot = boot != self.boot();
            named && (other_boot || (namespace == self.namespace() && !self.is_alive(*owner)))
        };
        self.ours(parent).filter(dead).map(|(_, path)| path).collect()
    }

    /// Directories, not links to them, with a name of ours.
    fn ours(&self, parent: &Path) -> impl Iterator<Item = (Owner, PathBuf)> {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        entries.filter_map(|entry| {
            let owner = owner_of(entry.file_name().to_str()?)?;
            entry.file_type().ok()?.is_dir().then(|| (owner, entry.path()))
        })
    }
}

/// What is said of something that was removed.
pub(crate) fn leftover(path: &Path) -> String {
    format!("removed {}, left by a run that was killed", path.display())
}

/// A directory with our mark in it; removed when dropped.
#[derive(Debug)]
pub(crate) struct OwnDirectory(PathBuf);

impl OwnDirectory {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for OwnDirectory {
    fn drop(&mut self) {
        let _ = remove(&self.0);
    }
}

/// Removes a directory, its mark last: whoever is killed meanwhile leaves what can be judged.
fn remove(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false if entry.file_name() == MARK => {}
            false => fs::remove_file(entry.path())?,
        }
    }
    fs::remove_dir_all(directory)
}

impl Owner {
    /// The name of its `n`th directory.
    pub(crate) fn name(&self, n: u32) -> String {
        let base = format!("{PREFIX}{}-{}", self.pid, self.start_ticks);
        if n == 0 { base } else { format!("{base}-{n}") }
    }
}

fn owner_of(name: &str) -> Option<Owner> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    let owner = Owner { pid: parts.next()?.parse().ok()?, start_ticks: parts.next()?.parse().ok()? };
    let number = parts.next().map(str::parse::<u32>);
    (number.is_none_or(|number| number.is_ok()) && parts.next().is_none()).then_some(owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine on which process 7 started at tick 70; boot `b2`, namespace `pid:[1]`.
    fn fake() -> (tempfile::TempDir, Processes) {
        let root = tempfile::tempdir().unwrap();
        let proc = root.path().join("proc");
        for directory in ["7", "self/ns", "sys/kernel/random"] {
            fs::create_dir_all(proc.join(directory)).unwrap();
        }
        let zeros = " 0".repeat(18);
        fs::write(proc.join("7/stat"), format!("7 (a) b) S{zeros} 70 1 2\n")).unwrap();
        fs::write(proc.join("sys/kernel/random/boot_id"), "b2\n").unwrap();
        std::os::unix::fs::symlink("pid:[1]", proc.join("self/ns/pid")).unwrap();
        (root, Processes { proc })
    }

    fn names(paths: Vec<PathBuf>) -> Vec<String> {
        let mut names: Vec<_> =
            paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn only_cgroups_of_dead_owners_are_leftovers() {
        let (root, processes) = fake();
        let parent = root.path().join("cgroup");
        for name in [
            "pagetide-7-70",
            "pagetide-7-70-1",
            "pagetide-7-69",
            "pagetide-8-70-2",
            "pagetide-x-1",
            "pagetide-8",
            "other-8-1",
        ] {
            fs::create_dir_all(parent.join(name)).unwrap();
        }
        fs::write(parent.join("pagetide-9-9"), "a file").unwrap();
        assert_eq!(names(processes.dead(&parent)), ["pagetide-7-69", "pagetide-8-70-2"]);
        assert!(processes.dead(&root.path().join("nothing")).is_empty());
    }

    #[test]
    fn a_directory_is_a_leftover_only_with_its_mark_and_if_its_owner_can_be_judged() {
        let (root, processes) = fake();
        let parent = root.path().join("tmp");
        let here = |name: &str| format!("{name}\nboot b2\nnamespace pid:[1]\n");
        for (name, mark) in [
            ("pagetide-7-70", here("pagetide-7-70")), // alive
            ("pagetide-8-1", here("pagetide-8-1")),   // dead
            ("pagetide-8-2", here("pagetide-8-1")),   // somebody's copy
            ("pagetide-8-3", String::new()),          // no mark
            ("pagetide-8-4", "pagetide-8-4\nboot b2\nnamespace pid:[2]\n".to_owned()), // a container's
            ("pagetide-7-5", "pagetide-7-5\nboot b1\nnamespace pid:[2]\n".to_owned()), // before boot
        ] {
            fs::create_dir_all(parent.join(name)).unwrap();
            fs::write(parent.join(name).join(MARK), mark).unwrap();
        }
        std::os::unix::fs::symlink(parent.join("pagetide-8-1"), parent.join("pagetide-6-1")).unwrap();
        assert_eq!(names(processes.dead_directories(&parent)), ["pagetide-7-5", "pagetide-8-1"]);
    }

    #[test]
    fn this_process_is_alive_and_its_names_lead_back_to_it() {
        let machine = Processes::of_machine();
        let me = machine.current().unwrap();
        assert!(machine.is_alive(me));
        assert!(!machine.is_alive(Owner { start_ticks: me.start_ticks + 1, ..me }));
        assert_eq!([me.name(0), me.name(3)].map(|name| owner_of(&name)), [Some(me), Some(me)]);
        let directory = tempfile::tempdir().unwrap();
        machine.write_mark(directory.path(), &me.name(0)).unwrap();
        assert!(machine.dead_directories(directory.path()).is_empty());
    }
}
