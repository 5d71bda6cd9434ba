//! Somebody else's command in a memory cgroup with a limit, on this host: how long it takes, what it reads again, and
//! whether it is killed.
//!
//! [`Room::make`] finds a place for a cgroup; each [`Room::run`] makes one below it, limits it, starts the command
//! there and removes it with all that the command left behind. A run is cold where its files are named: their pages
//! leave the cache first, whoever brought them, and inodes and dentries where that is asked for. Swap is not used, so
//! that a limit means what it means without swap.
//!
//! Left out: a terminal (standard input is empty, output goes to a file that is removed), other limits than that of
//! memory, and the pages of files that other programs have mapped, which stay in memory and are charged to them. Next:
//! [`crate::discover`] for where a cgroup can be made, [`crate::record`] for a command in the cgroup that it is in.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::Advice;
use rustix::process::{Pid, PidfdFlags, Signal};
use units::Bytes;

use crate::cgroup::Tree;
use crate::discover;
use crate::error::LinuxError;
use crate::host::OwnCgroup;
use crate::machine::{DROP_CACHES, drop_caches};
use crate::owner::Processes;
use crate::process::dying_with_us;
use crate::record::wait;
use crate::spec::{CgroupVersion, RootPaths};

/// Between two looks at what the group holds.
const LOOK: Duration = Duration::from_millis(20);
/// What is dropped, beside pages, of a cold run.
const INODES_AND_DENTRIES: u8 = 2;
/// The group of a run, below the room's own.
const GROUP: &str = "run";
/// The number of this process's next room; below are those of its runs' folders, whose groups have the same names.
static ROOMS: AtomicU32 = AtomicU32::new(1000);
/// What the shell that enters the group ends with if it cannot.
const NOT_ENTERED: i32 = 125;
/// What is kept of a command's output, from its end.
const TAIL: u64 = 2048;

/// One run as it is asked for.
#[derive(Debug, Clone)]
pub struct LimitedRun<'a> {
    /// The command and its arguments.
    pub command: &'a [OsString],
    /// `memory.max` of all that it does; none is no limit.
    pub limit: Option<Bytes>,
    /// Files whose pages leave the cache before it starts; those that are not there are left alone.
    pub cold: &'a [PathBuf],
    /// All inodes and dentries of this host that are not in use leave memory, too, so that it is charged for those that
    /// it looks up.
    pub without_inodes: bool,
    /// After so long it is killed.
    pub patience: Duration,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitedEnd {
    /// With this status, as a shell has it.
    Exited(i32),
    /// It had not ended when patience was over.
    TooLong,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Limited {
    /// From its start to the end of its first process.
    pub wall: Duration,
    /// How it ended.
    pub end: LimitedEnd,
    /// Processes that the OOM killer took for the limit.
    pub oom_kills: u64,
    /// Pages that came back after they had been reclaimed, of files and of anonymous memory.
    pub refaults: u64,
    /// Faults that waited for the disk.
    pub major_faults: u64,
    /// What the group held at most.
    pub peak: Bytes,
    /// What of it was anonymous, as far as was seen at looks of 20 ms.
    pub anon_peak: Bytes,
    /// The end of what it wrote, for who asks why it failed.
    pub output: String,
}

/// A place for runs. Dropping it removes what is left.
#[derive(Debug)]
pub struct Room {
    cgroup: OwnCgroup,
    tree: Tree,
}

impl Room {
    /// Makes it; what killed runs left there is removed first.
    ///
    /// # Errors
    /// No memory cgroup can be made here.
    pub fn make() -> Result<Self, LinuxError> {
        let processes = Processes::of_machine();
        remove_dead(&processes)?;
        let owner = processes.current().map_err(|error| LinuxError::io("look up", "/proc/self", error))?;
        let number = ROOMS.fetch_add(1, Ordering::Relaxed);
        let (path, version) = discover::create_cgroup(&owner.name(number))?;
        let cgroup = OwnCgroup { path: path.clone(), version };
        let paths = RootPaths { files: PathBuf::new(), more_disks: Vec::new(), cgroup: path, version };
        Ok(Self { cgroup, tree: Tree::open(&paths)? })
    }

    /// Which cgroups these are, for a reader.
    pub fn told(&self) -> &'static str {
        match self.cgroup.version {
            CgroupVersion::V1 => "a memory cgroup (v1) of this host",
            CgroupVersion::V2 => "a memory cgroup (v2) of this host",
        }
    }

    /// Runs a command to its end, or until `stop` is set. Whatever it started is gone then.
    ///
    /// # Errors
    /// It cannot be started, its group cannot be made, or it was stopped.
    pub fn run(&self, run: &LimitedRun<'_>, stop: &AtomicBool) -> Result<Limited, LinuxError> {
        run.cold.iter().for_each(|path| drop_from_cache(path));
        if run.without_inodes {
            let failed = |error| LinuxError::io("write", DROP_CACHES, error);
            drop_caches(INODES_AND_DENTRIES).map_err(failed)?;
        }
        self.in_group(run.limit, || self.run_in_group(run, stop))
    }

    /// Runs a command without a limit, and then lowers `memory.max` to that of `run`: how long the kernel takes to
    /// reclaim what the command left in page cache beyond it, and how much that is.
    ///
    /// # Errors
    /// As [`Room::run`]; a limit that is not reached.
    pub fn time_reclaim(&self, run: &LimitedRun<'_>) -> Result<(Duration, Bytes), LinuxError> {
        let failed = |error| LinuxError::Workload(workload::WorkloadError::System(error));
        let limit = run.limit.unwrap_or_default();
        run.cold.iter().for_each(|path| drop_from_cache(path));
        self.in_group(None, || {
            self.run_in_group(&LimitedRun { limit: None, ..run.clone() }, &AtomicBool::new(false))?;
            let held =
                || self.tree.read(GROUP, "memory.current").map(|text| text.trim().parse().unwrap_or(0));
            let before: u64 = held().map_err(failed)?;
            let begin = Instant::now();
            self.tree.write(GROUP, "memory.max", &limit.get().to_string()).map_err(failed)?;
            let took = begin.elapsed();
            Ok((took, Bytes(before.saturating_sub(held().map_err(failed)?))))
        })
    }

    /// Makes the group, has `work` done, and removes the group with all that is left in it.
    fn in_group<R>(
        &self,
        limit: Option<Bytes>,
        work: impl FnOnce() -> Result<R, LinuxError>,
    ) -> Result<R, LinuxError> {
        self.create(limit)?;
        let ended = work();
        let group = self.cgroup.path.join(GROUP);
        kill_all(&group);
        let removed = retried(|| fs::remove_dir(&group));
        let ended = ended?;
        removed.map_err(|error| LinuxError::io("remove the cgroup", &group, error))?;
        Ok(ended)
    }

    fn create(&self, limit: Option<Bytes>) -> Result<(), LinuxError> {
        let failed = |error| LinuxError::Workload(workload::WorkloadError::System(error));
        self.tree.create(GROUP).map_err(failed)?;
        let Some(limit) = limit else { return Ok(()) };
        self.tree.write(GROUP, "memory.max", &limit.get().to_string()).map_err(failed)?;
        // A kernel without swap accounting has no such file, and then most often no swap.
        let group = self.cgroup.path.join(GROUP);
        let _ = match self.cgroup.version {
            CgroupVersion::V2 => fs::write(group.join("memory.swap.max"), "0"),
            CgroupVersion::V1 => {
                fs::write(group.join("memory.memsw.limit_in_bytes"), limit.get().to_string())
            }
        };
        Ok(())
    }

    fn run_in_group(&self, run: &LimitedRun<'_>, stop: &AtomicBool) -> Result<Limited, LinuxError> {
        let (program, _) = run.command.split_first().expect("whoever asks names a command");
        let failed = |source| LinuxError::Command { command: PathBuf::from(program), source };
        let mut output = tempfile::tempfile().map_err(failed)?;
        let started = Instant::now();
        let mut child = self.start(run.command, &output).map_err(failed)?;
        let mut seen = Seen::default();
        let status = self.watch(&mut child, started, run.patience, stop, &mut seen);
        let wall = started.elapsed();
        if !matches!(status, Ok(Some(_))) {
            kill_all(&self.cgroup.path.join(GROUP));
            let _ = child.kill();
            let _ = child.wait();
        }
        let end = match status.map_err(failed)? {
            Some(status) => LimitedEnd::Exited(as_a_shell_has_it(status)),
            None if stop.load(Ordering::Relaxed) => return Err(LinuxError::Stopped),
            None => LimitedEnd::TooLong,
        };
        if end == LimitedEnd::Exited(NOT_ENTERED) {
            return Err(failed(io::Error::other(tail(&mut output))));
        }
        self.look(&mut seen);
        let stat = self.tree.read(GROUP, "memory.stat").unwrap_or_default();
        let of = |name| value(&stat, name);
        Ok(Limited {
            wall,
            end,
            oom_kills: value(&self.tree.read(GROUP, "memory.events").unwrap_or_default(), "oom_kill"),
            refaults: of("workingset_refault_file") + of("workingset_refault_anon"),
            major_faults: of("pgmajfault"),
            peak: Bytes(seen.held),
            anon_peak: Bytes(seen.anon),
            output: tail(&mut output),
        })
    }

    /// A shell enters the group and becomes the command, which is charged from its first page on.
    fn start(&self, command: &[OsString], output: &File) -> io::Result<Child> {
        let procs = self.tree.procs_file(Some(GROUP)).map_err(|error| io::Error::other(error.to_string()))?;
        let enter = format!("echo $$ > \"$0\" || exit {NOT_ENTERED}; exec \"$@\"");
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(enter).arg(procs).args(command);
        shell.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?);
        dying_with_us(&mut shell).spawn()
    }

    /// The command's status; none where patience was over first, or `stop` was set.
    fn watch(
        &self,
        child: &mut Child,
        started: Instant,
        patience: Duration,
        stop: &AtomicBool,
        seen: &mut Seen,
    ) -> io::Result<Option<ExitStatus>> {
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let file = pid.and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok());
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            if stop.load(Ordering::Relaxed) || started.elapsed() > patience {
                return Ok(None);
            }
            wait(file.as_ref(), LOOK);
            self.look(seen);
        }
    }

    fn look(&self, seen: &mut Seen) {
        let number = |file| -> u64 {
            self.tree.read(GROUP, file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
        };
        // `memory.peak` came with Linux 5.19.
        seen.held = seen.held.max(number("memory.current")).max(number("memory.peak"));
        let stat = self.tree.read(GROUP, "memory.stat").unwrap_or_default();
        seen.anon = seen.anon.max(value(&stat, "anon"));
    }
}

/// What was seen at looks.
#[derive(Debug, Default)]
struct Seen {
    held: u64,
    anon: u64,
}

/// The number behind `name` in a file of such lines; 0 where there is none.
fn value(text: &str, name: &str) -> u64 {
    let of_line = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok();
    text.lines().find_map(of_line).unwrap_or(0)
}

fn as_a_shell_has_it(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}

/// Has a file's pages leave the cache. What cannot be opened stays: it is as warm as it was.
fn drop_from_cache(path: &Path) {
    let Ok(file) = File::open(path) else { return };
    if file.metadata().is_ok_and(|found| found.is_file()) {
        let _ = file.sync_data(); // Dirty pages do not go.
        let _ = rustix::fs::fadvise(&file, 0, None, Advice::DontNeed);
    }
}

/// Kills what is in a group, until nothing is: a fork may come between a look and its signal.
fn kill_all(group: &Path) {
    let empty = || {
        let procs = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        let pids = procs.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
        let pids: Vec<Pid> = pids.collect();
        pids.iter().for_each(|&pid| {
            let _ = rustix::process::kill_process(pid, Signal::KILL); // It may have ended meanwhile.
        });
        if pids.is_empty() { Ok(()) } else { Err(io::ErrorKind::ResourceBusy.into()) }
    };
    let _ = retried(empty);
}

/// Does something until it is no longer refused because of what still ends.
fn retried(mut attempt: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    const TRIES: u32 = 200;
    const PAUSE: Duration = Duration::from_millis(10);
    for _ in 0..TRIES {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => std::thread::sleep(PAUSE),
            other => return other,
        }
    }
    attempt()
}

/// Removes groups of processes that were killed, and what still runs in them.
fn remove_dead(processes: &Processes) -> Result<(), LinuxError> {
    for hierarchy in discover::hierarchies()? {
        for parent in hierarchy.own.ancestors().take_while(|path| path.starts_with(&hierarchy.mount)) {
            for dead in processes.dead(parent) {
                kill_all(&dead.join(GROUP));
                let _ = retried(|| fs::remove_dir(dead.join(GROUP)));
                let _ = fs::remove_dir(&dead);
            }
        }
    }
    Ok(())
}

/// The end of what was written.
fn tail(output: &mut File) -> String {
    let mut text = Vec::new();
    let len = output.seek(SeekFrom::End(0)).unwrap_or(0);
    let _ = output.seek(SeekFrom::Start(len.saturating_sub(TAIL)));
    let _ = output.read_to_end(&mut text);
    String::from_utf8_lossy(&text).trim().to_owned()
}

/// A line for a shell, as a command.
pub fn by_shell(line: &str) -> Vec<OsString> {
    [OsStr::new("/bin/sh"), OsStr::new("-c"), OsStr::new(line)].map(OsStr::to_owned).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A room, or none where this host lets us make none: then it is said aloud.
    #[allow(clippy::print_stderr)] // A test that does not run must not look like one that passed.
    fn room() -> Option<Room> {
        Room::make().inspect_err(|error| eprintln!("SKIPPED: {error}")).ok()
    }

    fn run(room: &Room, script: &str, limit: Option<Bytes>, cold: &[PathBuf]) -> Limited {
        let command = by_shell(script);
        let run = LimitedRun { command: &command, limit, cold, without_inodes: false, patience: PATIENCE };
        room.run(&run, &AtomicBool::new(false)).unwrap()
    }

    #[test]
    fn a_command_that_fits_ends_as_it_would_and_one_that_does_not_is_killed() {
        let Some(room) = room() else { return };
        let fits = run(&room, "echo said; exit 3", Some(Bytes(64 << 20)), &[]);
        assert_eq!((fits.end, fits.oom_kills, &*fits.output), (LimitedEnd::Exited(3), 0, "said"));
        assert!(fits.peak.get() > 0 && fits.peak.get() < 64 << 20, "{fits:?}");
        // 48 MiB in a variable of the shell.
        let grows = "x=$(head -c 50331648 /dev/zero | tr '\\0' a); echo ${#x}";
        let killed = run(&room, grows, Some(Bytes(16 << 20)), &[]);
        assert!(killed.oom_kills > 0, "{killed:?}");
        let lives = run(&room, grows, None, &[]);
        assert_eq!((lives.oom_kills, &*lives.output), (0, "50331648"));
        assert!(lives.anon_peak.get() > 40 << 20, "{lives:?}");
    }

    #[test]
    fn a_file_that_does_not_fit_is_read_again_and_a_cold_one_from_the_disk() {
        let Some(room) = room() else { return };
        // Not in memory, as /tmp may be.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let file = folder.path().join("file");
        fs::write(&file, vec![1; 32 << 20]).unwrap();
        let script = format!("cat {0} {0} > /dev/null", file.display());
        let cold = [file, folder.path().join("missing")];
        let fits = run(&room, &script, None, &cold);
        assert!(fits.refaults < 100, "a page or two of the shell, perhaps: {fits:?}");
        assert!(fits.peak.get() > 32 << 20, "the cache was charged to it: {fits:?}");
        let tight = run(&room, &script, Some(Bytes(8 << 20)), &cold);
        assert!(tight.refaults > 1000 && tight.oom_kills == 0, "{tight:?}");
    }

    #[test]
    fn what_a_command_leaves_behind_ends_with_its_run_and_patience_ends() {
        let Some(room) = room() else { return };
        let left = run(&room, "sleep 1000 & exit 0", None, &[]);
        assert_eq!(left.end, LimitedEnd::Exited(0));
        assert!(!room.cgroup.path.join(GROUP).exists());
        let command = by_shell("sleep 1000");
        let patience = Duration::from_millis(100);
        let run = LimitedRun { command: &command, limit: None, cold: &[], without_inodes: false, patience };
        assert_eq!(room.run(&run, &AtomicBool::new(false)).unwrap().end, LimitedEnd::TooLong);
        assert!(matches!(room.run(&run, &AtomicBool::new(true)), Err(LinuxError::Stopped)));
        let path = room.cgroup.path.clone();
        drop(room);
        assert!(!path.exists());
    }
}
