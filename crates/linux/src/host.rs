//! `--on host`: a place for a run on a machine that others use too, removed afterwards.
//!
//! Theory of operation. [`check`] writes nothing: it removes what killed runs left, and refuses a run
//! that needs more memory or more of the free disk than it may have, see `bounds`. [`prepare`] does so
//! again, creates a cgroup with a limit and a directory for files, and hands both to
//! [`crate::run()`]. Everything that the workload does is charged below that cgroup, also what its
//! own groups do not limit, and the limit is what it takes for the machine's memory: a workload
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

use units::{Bytes, Pages, Seed};
use workload::Workload;

use crate::bounds::{BoundsError, DEFAULT_SHARE, Disk, DiskShare, Memory, Rounded};
use crate::discover;
use crate::error::{CREATE_DIRECTORY, LinuxError};
use crate::machine;
use crate::owner::{OwnDirectory, Processes, leftover};
use crate::run::{check_filesystem, run};
use crate::spec::{CgroupVersion, LinuxResult, LinuxRun, RootPaths, TELL_EVERY, Told};
use crate::tracefs;

/// The limit of a run that names none.
pub const DEFAULT_LIMIT: Bytes = Bytes(256 << 20);

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
    /// What of the free disk there the files may take.
    pub share: DiskShare,
    /// Whether the run may drop the machine's caches and write its sysctls.
    pub allow_host_pressure: bool,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self { limit: DEFAULT_LIMIT, dir: None, share: DEFAULT_SHARE, allow_host_pressure: false }
    }
}

impl HostOptions {
    fn dir(&self) -> PathBuf {
        self.dir.clone().unwrap_or_else(std::env::temp_dir)
    }

    /// The machine that the workload is told to run on.
    fn memory(&self) -> Memory {
        Memory { option: "--host-limit", size: machine::size(self.limit), swap: Bytes(0) }
    }
}

/// A cgroup and a directory of our own, for one workload. Dropping it removes both.
#[derive(Debug)]
pub struct Host {
    workload: Workload,
    options: HostOptions,
    files: OwnDirectory,
    cgroup: OwnCgroup,
    notes: Vec<String>,
}

/// Says what a run would take of this host: a sentence for each thing worth knowing. Leftovers of
/// killed runs are removed first, and nothing is written.
///
/// # Errors
/// The directory is not there, or in memory; the run needs more than it may have.
pub fn check(options: &HostOptions, workload: &Workload) -> Result<Vec<String>, LinuxError> {
    let (memory_here, cgroup) = machine::memory_here()?;
    if options.limit > memory_here {
        let (what, asked) = ("--host-limit", options.limit);
        return Err(BoundsError::BeyondMemory { what, asked, memory: memory_here, cgroup }.into());
    }
    let (memory, dir) = (options.memory(), options.dir());
    memory.check(workload, memory_here)?;
    check_filesystem(&dir)?;
    let mut notes = remove_leftovers(&Processes::of_machine(), &dir)?;
    let disk = Disk::at(&dir).map_err(|error| LinuxError::io("look at", &dir, error))?;
    let made = memory.footprint(workload);
    if made.disks > 1 {
        return Err(BoundsError::Disks { workload: workload.name(), disks: made.disks }.into());
    }
    let (name, files) = (workload.name(), Rounded::up(made.files));
    let what = format!("`{name}` makes {} files of {files} together", made.file_count);
    disk.check(&what, made.files, options.share, |allowed| {
        format!("{}; `--host-dir` names a folder with more room", memory.smaller_files(workload, allowed))
    })?;
    disk.check_inodes(name, made.file_count)?;
    let limit = Rounded::down(options.limit);
    notes.push(format!("{what} {}; its memory is limited to {limit}", disk.room(options.share)));
    Ok(notes)
}

/// Prepares this machine for one run at a time.
///
/// # Errors
/// Those of [`check`]; no memory cgroup can be made here; the directory is not writable.
pub fn prepare(options: HostOptions, workload: Workload) -> Result<Host, LinuxError> {
    let mut notes = check(&options, &workload)?;
    let dir = options.dir();
    let failed = |error| LinuxError::io(CREATE_DIRECTORY, &dir, error);
    let (name, files) = Processes::of_machine().create_directory(&dir).map_err(failed)?;
    fs::create_dir(files.path().join("files")).map_err(failed)?;
    let (path, version) = discover::create_cgroup(&name)?;
    notes.push(format!("limited to {} in {}", options.limit, path.display()));
    Ok(Host { workload, options, files, cgroup: OwnCgroup { path, version }, notes })
}

impl Host {
    /// Where a run may put things. Drop the [`Host`] after the run.
    pub fn root(&self) -> RootPaths {
        RootPaths {
            files: self.files.path().join("files"),
            more_disks: Vec::new(),
            cgroup: self.cgroup.path.clone(),
            version: self.cgroup.version,
        }
    }

    /// Runs the workload here, with `sysctls` if the host may be changed.
    ///
    /// # Errors
    /// Those of [`crate::run()`].
    pub fn run(
        &self,
        seed: Seed,
        sysctls: Vec<(String, String)>,
        sample_period: Duration,
        stop: &AtomicBool,
        tell: &dyn Fn(Told<'_>),
    ) -> Result<LinuxResult, LinuxError> {
        let spec = LinuxRun {
            workload: self.workload.clone(),
            root: self.root(),
            seed,
            sysctls,
            keep_in: Some(self.files.path().to_owned()),
            sample_period,
            limit: Some(self.options.limit),
            tell_every: Some(TELL_EVERY),
            beyond: Pages(0),
            host_wide: self.options.allow_host_pressure,
            alone: false,
        };
        let mut result = run(&spec, stop, tell)?;
        result.notes.splice(0..0, self.notes.iter().cloned());
        Ok(result)
    }
}

/// A cgroup with all that is below it; removed when dropped.
#[derive(Debug)]
pub(crate) struct OwnCgroup {
    pub(crate) path: PathBuf,
    pub(crate) version: CgroupVersion,
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

/// Removes what dead runs left in `dir`, in the cgroups where runs are put, and in tracefs.
fn remove_leftovers(processes: &Processes, dir: &Path) -> Result<Vec<String>, LinuxError> {
    let mut said = processes.remove_dead_directories(dir);
    said.extend(tracefs::remove_dead(processes));
    for hierarchy in discover::hierarchies()? {
        let parents = hierarchy.own.ancestors().take_while(|path| path.starts_with(&hierarchy.mount));
        let dead = parents.flat_map(|parent| processes.dead(parent));
        said.extend(dead.filter(|path| remove_tree(path).is_ok()).map(|path| leftover(&path)));
    }
    Ok(said)
}
