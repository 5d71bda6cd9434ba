//! Runs on this host: bounded before they begin, telling how far they are, and gone when stopped.
//!
//! What needs a memory cgroup of our own is skipped aloud where none can be made.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::Scene;

/// A folder on a disk: that for temporary files may be in memory.
fn on_disk() -> TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

fn entries(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

/// Cgroups that process `pid` made, wherever hierarchies are mounted.
fn cgroups_of(pid: u32) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![PathBuf::from("/sys/fs/cgroup")]);
    while let Some(folder) = open.pop() {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        for path in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            let ours = path.file_name().to_string_lossy().starts_with(&format!("pagetide-{pid}-"));
            if ours { found.push(path.path()) } else { open.push(path.path()) }
        }
    }
    found
}

/// A program that runs, and what it has said on standard error.
struct Running {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
    said: String,
}

impl Running {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr, said: String::new() }
    }

    /// Reads on until it says `words`; false when it ended before.
    fn says(&mut self, words: &str) -> bool {
        loop {
            let begin = self.said.len();
            if self.stderr.read_line(&mut self.said).unwrap() == 0 {
                return false;
            }
            if self.said[begin..].contains(words) {
                return true;
            }
        }
    }

    fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// The exit code and all of standard error.
    fn end(mut self) -> (Option<i32>, String) {
        let status = self.child.wait().unwrap();
        self.stderr.read_to_string(&mut self.said).unwrap();
        (status.code(), std::mem::take(&mut self.said))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A test that failed leaves nothing running; one that did not has waited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A run on this host that takes longer than anybody waits; none where there is no cgroup for it.
#[allow(clippy::print_stderr)] // A test that does not run must not look like one that passed.
fn long_run(scene: &Scene, folder: &Path) -> Option<Running> {
    let mut command = scene.command(
        "run hot-and-stream --on host --param hot=32M --param hot_reads=1000 --param read_size=512 \
         --param stream=1M --out kept --host-dir",
    );
    command.arg(folder);
    let mut running = Running::start(command);
    if running.says("; memory ") {
        return Some(running);
    }
    let (code, said) = running.end();
    assert!(said.contains("no memory cgroup can be created here"), "{code:?} {said}");
    eprintln!("SKIPPED: {said}");
    None
}

#[test]
fn files_that_do_not_fit_are_refused_with_the_figures_before_one_is_made() {
    let (scene, folder) = (Scene::new(), on_disk());
    let begin = Instant::now();
    let command = "run hot-and-stream --on host --param stream=15T --out kept --host-dir";
    let output = scene.command(command).arg(folder.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    // A second is promised; the rest is for a machine that has other things to do.
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("makes 3 files of 15.1 TiB together in "), "{said}");
    assert!(said.contains(" are free and ") && said.contains(" may be used (50 %)"), "{said}");
    assert_eq!((entries(folder.path()), scene.names().len()), (0, 0));
}

#[test]
fn a_comparison_does_not_run_its_simulated_half_before_it_refuses_the_real_one() {
    let (scene, folder) = (Scene::new(), on_disk());
    let command = "compare hot-and-stream --on sim --on host --param stream=15T --out kept --host-dir";
    let output = scene.command(command).arg(folder.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("error: `hot-and-stream` makes 3 files"), "{said}");
    assert_eq!(scene.names().len(), 0);
}

#[test]
fn limits_that_no_run_can_have_are_refused_with_the_figures() {
    let scene = Scene::new();
    let shown: Vec<String> = ["0", "4M", "x", "-1M"]
        .map(|limit| scene.shown(&format!("run hot-and-stream --on host --host-limit {limit}")))
        .into();
    insta::assert_snapshot!(shown.join("\n\n"), @"
    error: `--host-limit 0` is too little for `hot-and-stream`, which needs 5 MiB: 5 MiB for 2 processes
    hint: give it more, as in `--host-limit 8M`
    exit 1

    error: `--host-limit 4M` is too little for `hot-and-stream`, which needs 5 MiB: 5 MiB for 2 processes
    hint: give it more, as in `--host-limit 8M`
    exit 1

    error: `--host-limit`: `x` is not a size
    hint: write a whole number with an optional suffix, such as `256M`, `1016336kB` or `18G`
    exit 1

    error: `--host-limit`: `-1M` is negative
    hint: write a whole number with an optional suffix, such as `256M`, `1016336kB` or `18G`
    exit 1
    ");
    let beyond = scene.shown("run hot-and-stream --on host --host-limit 1000000T");
    assert!(beyond.contains("`--host-limit 1000000T` is more than the "), "{beyond}");
    assert!(beyond.contains("hint: give it a part of that, as in `--host-limit "), "{beyond}");
}

#[test]
fn a_share_of_the_disk_is_for_runs_that_fill_one() {
    let scene = Scene::new();
    let shown: Vec<String> = [
        "run hot-and-stream --on host --host-disk much",
        "run hot-and-stream --on host --host-disk 101%",
        "run hot-and-stream --host-disk 10G",
        "compare hot-and-stream --on sim --on vm:6.12 --host-disk 10G --host-limit 1G",
    ]
    .map(|command| scene.shown(command))
    .into();
    insta::assert_snapshot!(shown.join("\n\n"), @"
    error: `--host-disk`: `much` is neither a size nor 1 % to 100 %
    hint: write it as in `--host-disk 10G` or `--host-disk 80%`
    exit 1

    error: `--host-disk`: `101%` is neither a size nor 1 % to 100 %
    hint: write it as in `--host-disk 10G` or `--host-disk 80%`
    exit 1

    error: `--host-disk` is for runs on real kernels, and this runs on `sim`
    hint: add `--on host`, `uml:VERSION` or `vm:VERSION`, or leave it out
    exit 1

    error: `--host-limit` is for runs on this host, and this runs on `sim`
    hint: add `--on host`, or leave it out
    exit 1
    ");
    let fits = scene.output("compare hot-and-stream --on sim --on vm:6.12 --host-disk 10G --dry-run");
    assert!(fits.status.success(), "{fits:?}");
}

/// It was killed by SIGTERM, and left its files and its cgroup.
#[test]
fn a_real_run_says_how_far_it_is_and_a_sigterm_in_its_middle_leaves_nothing() {
    let (scene, folder) = (Scene::new(), on_disk());
    let begin = Instant::now();
    let Some(running) = long_run(&scene, folder.path()) else { return };
    // Half of it is for a machine that has other things to do.
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    let pid = running.child.id();
    assert_eq!((entries(folder.path()), cgroups_of(pid).len()), (1, 1));
    running.signal("TERM");
    running.signal("TERM"); // A second one must not end it in the middle of ending.
    let (code, said) = running.end();
    assert_eq!(code, Some(143), "{said}");
    assert!(said.contains(" are free and ") && said.contains("; memory "), "{said}");
    assert!(said.ends_with("error: interrupted: 0 of 1 runs finished\n"), "{said}");
    assert_eq!((entries(folder.path()), cgroups_of(pid), scene.names().len()), (0, Vec::new(), 0));
}

#[test]
fn what_a_killed_run_left_is_removed_by_the_next_one_which_says_so() {
    let (scene, folder) = (Scene::new(), on_disk());
    let Some(running) = long_run(&scene, folder.path()) else { return };
    let pid = running.child.id();
    running.signal("KILL");
    assert_eq!(running.end().0, None);
    assert_eq!((entries(folder.path()), cgroups_of(pid).len()), (1, 1));
    let command = "run hot-and-stream --on host --param hot=1M --param stream=1M --host-dir";
    let output = scene.command(command).arg(folder.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    // Others on this machine may have left something, too. Its files, its cgroup, and where tracefs is mounted its
    // instance of the tracer.
    let its_own = format!("/pagetide-{pid}-");
    let is_removal = |line: &&str| line.contains("left by a run that was killed") && line.contains(&its_own);
    let removed: Vec<&str> = said.lines().filter(is_removal).collect();
    let traced = removed.iter().filter(|line| line.contains("/tracing/instances/")).count();
    assert_eq!(removed.len() - traced, 2, "{said}");
    assert_eq!((entries(folder.path()), cgroups_of(pid)), (0, Vec::new()));
}

/// SIGTERM and SIGHUP ended the program at once.
#[test]
fn simulated_runs_end_by_sigterm_and_sighup_as_by_ctrl_c() {
    const SIZES: &str = "--param hot=1M --param stream=1G --mem 32M";
    for (command, signal, code) in [
        ("run hot-and-stream --param hot=1M --param stream=1T --mem 32M -v".to_owned(), "TERM", 143),
        (format!("compare hot-and-stream {SIZES} --seeds 9999 -v"), "HUP", 129),
        (format!("sweep hot-and-stream {SIZES} --set vm.swappiness=0..100 -v"), "TERM", 143),
    ] {
        if signal == "HUP" && ignores_hangup() {
            continue;
        }
        let mut running = Running::start(Scene::new().command(&command));
        assert!(running.says(" begins: "), "{command}");
        running.signal(signal);
        let (ended, said) = running.end();
        assert_eq!(ended, Some(code), "{command}: {said}");
        assert!(said.contains("error: interrupted: "), "{command}: {said}");
    }
}

/// Whether the tests run under `nohup`, which what they start inherits.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap_or(0) & 1 == 1)
}

#[test]
fn a_recorded_command_gets_the_signal_and_its_recording_is_kept() {
    let scene = Scene::new();
    let mut command = scene.command("record --out kept -- sh -c");
    command.arg("trap 'exit 7' TERM; echo ready >&2; while :; do sleep 0.05; done");
    let mut running = Running::start(command);
    assert!(running.says("ready"));
    running.signal("TERM");
    let (code, said) = running.end();
    assert_eq!(code, Some(7), "{said}");
    assert!(scene.path().join("kept/MANIFEST").exists(), "{said}");
}

/// Without HOME kernels were kept in a folder that everybody may write to.
#[test]
fn a_cache_folder_that_others_may_change_is_refused() {
    let scene = Scene::new();
    let user = std::fs::metadata(scene.path()).unwrap().uid();
    let folder = scene.path().join(format!("pagetide-{user}"));
    let fetch = || {
        let output = scene.command("vm fetch 6.12").env("TMPDIR", scene.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap().replace(&folder.display().to_string(), "TMPDIR/pagetide-7")
    };
    std::fs::DirBuilder::new().mode(0o700).create(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    let by_others = fetch();
    std::fs::remove_dir(&folder).unwrap();
    std::os::unix::fs::symlink(scene.path(), &folder).unwrap();
    insta::assert_snapshot!(by_others + "\n" + &fetch(), @"
    error: `TMPDIR/pagetide-7`, where kernels would be kept, can be written by others (mode 0777)
    hint: set HOME or XDG_CACHE_HOME to a folder of your own, or remove that one

    error: `TMPDIR/pagetide-7`, where kernels would be kept, is a symbolic link
    hint: set HOME or XDG_CACHE_HOME to a folder of your own, or remove that one
    ");
}

/// A Debian that has no kernel of its own, by an apt that says what a real one says.
#[test]
fn a_kernel_that_cannot_be_fetched_says_what_was_tried_and_what_to_do() {
    let scene = Scene::new();
    let programs = scene.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    let fetch = |version: &str, mirror: &str, update: &str| {
        let apt_get =
            format!("case \"$*\" in *indextargets*) {mirror} ;; *Error-Mode=any*) {update} ;; esac");
        for (name, script) in [("apt-get", &*apt_get), ("apt-cache", "")] {
            let program = programs.join(name);
            std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut command = scene.command(&format!("vm fetch {version}"));
        let output = command.env("PATH", &programs).env("XDG_CACHE_HOME", scene.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let debian = "echo http://mirror/debian/ Debian Debian";
    let offline = "echo 'E: Could not resolve host' >&2; exit 100";
    insta::assert_snapshot!(fetch("5.10", debian, offline), @"
    refreshing package lists
    refreshing the package list of Debian's suite bullseye
    error: `apt-get update` failed: E: Could not resolve host
    hint: check the network and /etc/apt; what was fetched before still works
    ");
    insta::assert_snapshot!(fetch("5.10", "echo http://mirror/ubuntu/ Ubuntu Ubuntu", ""), @"
    refreshing package lists
    error: no package `linux-image-5.10*-cloud-amd64` in the package lists
    hint: kernels come from Debian's `linux-image-*-cloud-amd64`; add a mirror of Debian to /etc/apt, or name a kernel by its path
    ");
    insta::assert_snapshot!(fetch("6.18", debian, ""), @"
    refreshing package lists
    refreshing the package list of Debian's suite sid
    error: no package `linux-image-6.18*-cloud-amd64` in the package lists of this host and of Debian's suite sid
    hint: Debian has 5.10, 6.1, 6.12 and in sid its newest kernel; name any other by its path
    ");
    assert!(!scene.path().join("pagetide/kernels/6.18").exists());
}
