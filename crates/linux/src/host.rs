//! `--on host`: a place for a run on a machine that others use too, removed afterwards.
//!
//! Theory of operation. [`prepare`] removes what killed runs left, creates a cgroup with a
//! limit and a directory for files, and hands both to [`crate::run()`]. Everything that the
//! workload does is charged below that cgroup, also what its own groups do not limit: a workload
//! that presses on a whole machine in the simulator presses on the limit here. Dropping the
//! [`Host`] removes both; the stop flag given to the run is what a handler of SIGINT and SIGTERM
//! should set, so that the drop happens. After SIGKILL the run's processes die with us, and the
//! next run on this machine removes the rest, see [`crate::owner`].
//!
//! Left out: signal handlers, which belong to the program and not to a library.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use units::Bytes;
use workload::Workload;

use crate::discover;
use crate::error::{CREATE_DIRECTORY, LinuxError};
use crate::owner::Processes;
use crate::run::{check_filesystem, run};
use crate::spec::{CgroupVersion, LinuxResult, LinuxRun, RootPaths};

/// The limit of a run that names none.
pub const DEFAULT_LIMIT: Bytes = Bytes(256 << 20);

/// Directories that one process may have at once.
const DIRECTORIES_MAX: u32 = 1000;
/// A cgroup can be removed once the kernel is done with its last process.
const REMOVE_TRIES: u32 = 100;
const REMOVE_PAUSE: Duration = Duration::from_millis(20);

/// How to prepare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostOptions {
    /// `memory.max` of everything that the run does.
    pub limit: Bytes,
    /// Where the directory for files is made; `None` is `$TMPDIR`, or `/tmp`.
    pub dir: Option<PathBuf>,
    /// Whether the run may drop the machine's caches and write its sysctls.
    pub allow_host_pressure: bool,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self { limit: DEFAULT_LIMIT, dir: None, allow_host_pressure: false }
    }
}

/// A cgroup and a directory of our own. Dropping it removes both.
#[derive(Debug)]
pub struct Host {
    options: HostOptions,
    files: OwnDirectory,
    cgroup: OwnCgroup,
    notes: Vec<String>,
}

/// Prepares this machine for one run at a time.
///
/// # Errors
/// No memory cgroup can be made here; the directory is not writable, or in memory.
pub fn prepare(options: HostOptions) -> Result<Host, LinuxError> {
    let processes = Processes::of_machine();
    let dir = options.dir.clone().unwrap_or_else(std::env::temp_dir);
    let mut notes = remove_leftovers(&processes, &dir)?;
    let (name, files) = create_directory(&processes, &dir)?;
    check_filesystem(&files.0)?;
    let (path, version) = discover::create_cgroup(&name)?;
    notes.push(format!("limited to {} in {}", options.limit, path.display()));
    Ok(Host { options, files, cgroup: OwnCgroup { path, version }, notes })
}

impl Host {
    /// Where a run may put things. Drop the [`Host`] after the run.
    pub fn root(&self) -> RootPaths {
        RootPaths {
            files: self.files.0.join("files"),
            cgroup: self.cgroup.path.clone(),
            version: self.cgroup.version,
        }
    }

    /// Runs a workload here, with `sysctls` if the host may be changed.
    ///
    /// # Errors
    /// Those of [`crate::run()`].
    pub fn run(
        &self,
        workload: Workload,
        sysctls: Vec<(String, String)>,
        sample_period: Duration,
        stop: &AtomicBool,
        progress: &dyn Fn(&str),
    ) -> Result<LinuxResult, LinuxError> {
        let spec = LinuxRun {
            workload,
            root: self.root(),
            sysctls,
            sample_period,
            limit: Some(self.options.limit),
            host_wide: self.options.allow_host_pressure,
        };
        let mut result = run(&spec, stop, progress)?;
        result.notes.splice(0..0, self.notes.iter().cloned());
        Ok(result)
    }
}

/// The directory, with its mark, and `files` in it; removed when dropped.
#[derive(Debug)]
struct OwnDirectory(PathBuf);

impl Drop for OwnDirectory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn create_directory(processes: &Processes, dir: &Path) -> Result<(String, OwnDirectory), LinuxError> {
    let failed = |error| LinuxError::io(CREATE_DIRECTORY, dir, error);
    let owner = processes.current().map_err(failed)?;
    for n in 0..DIRECTORIES_MAX {
        let name = owner.name(n);
        let path = dir.join(&name);
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(failed(error)),
            Ok(()) => {}
        }
        let directory = OwnDirectory(path);
        processes.write_mark(&directory.0, &name).map_err(failed)?;
        fs::create_dir(directory.0.join("files")).map_err(failed)?;
        return Ok((name, directory));
    }
    Err(failed(io::ErrorKind::AlreadyExists.into()))
}

/// A cgroup with all that is below it; removed when dropped.
#[derive(Debug)]
struct OwnCgroup {
    path: PathBuf,
    version: CgroupVersion,
}

impl Drop for OwnCgroup {
    fn drop(&mut self) {
        for _ in 0..REMOVE_TRIES {
            match remove_tree(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(REMOVE_PAUSE);
                }
                _ => return,
            }
        }
    }
}

/// Removes a cgroup and those below it. Only directories can be removed there, and only if no
/// process is left in them.
fn remove_tree(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    fs::remove_dir(directory)
}

/// Removes what dead runs left in `dir` and in the cgroups where runs are put.
fn remove_leftovers(processes: &Processes, dir: &Path) -> Result<Vec<String>, LinuxError> {
    let mut removed = Vec::new();
    for path in processes.dead_directories(dir) {
        if fs::remove_dir_all(&path).is_ok() {
            removed.push(path);
        }
    }
    for hierarchy in discover::hierarchies()? {
        let parents = hierarchy.own.ancestors().take_while(|path| path.starts_with(&hierarchy.mount));
        for path in parents.flat_map(|parent| processes.dead_cgroups(parent)) {
            if remove_tree(&path).is_ok() {
                removed.push(path);
            }
        }
    }
    Ok(removed
        .iter()
        .map(|path| format!("removed {}, left by a run that was killed", path.display()))
        .collect())
}
