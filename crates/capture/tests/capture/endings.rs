//! Captures that do not go well: clear errors, and what was captured is kept.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use pagetide_capture::{CaptureError, Ended, Options, command, processes};

use crate::support::{options, try_follow};

#[test]
fn a_program_that_cannot_be_run_is_named() {
    let refusal = |words: &[&str]| {
        let error = try_follow(words, &options()).err().expect("it cannot be run");
        (error.to_string(), error.is_missing(), error.hint().is_some())
    };
    let (message, missing, hint) = refusal(&["no-such-program"]);
    assert_eq!(message, "cannot run `no-such-program`: No such file or directory (os error 2)");
    assert!(missing && hint);
    let (message, missing, hint) = refusal(&["/etc/passwd"]);
    assert_eq!(message, "cannot run `/etc/passwd`: Permission denied (os error 13)");
    assert!(!missing && hint);
    // It may be run, as far as its rights go, and is no program.
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, "no program").unwrap();
    std::fs::set_permissions(&text, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (message, missing, _) = refusal(&[&text.to_string_lossy()]);
    assert!(message.ends_with("Exec format error (os error 8)"), "{message}");
    assert!(!missing);
}

#[test]
fn a_program_that_forks_without_end_is_killed() {
    let options = Options { tasks_max: 30, ..options() };
    let seen = try_follow(&["sh", "-c", "while :; do /bin/true; done"], &options).unwrap();
    assert_eq!(seen.ended, Ended::TooManyTasks);
    assert_eq!(seen.trace.tasks.len(), 31);
    assert!(!seen.trace.operations.is_empty());
    // Each makes two more, so that many stop before it is told whose they are: the capture once waited for them.
    let seen = try_follow(&["sh", "-c", "f() { f & f; }; f"], &options).unwrap();
    assert_eq!(seen.ended, Ended::TooManyTasks);
    // Many at once, too.
    let seen = try_follow(&["sh", "-c", "while :; do sleep 60 & done"], &options).unwrap();
    assert_eq!(seen.ended, Ended::TooManyTasks);
}

/// What it says comes by a pipe, and there is nothing to read for it.
#[test]
fn a_command_that_has_not_our_streams_has_no_input_and_one_output() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let options = Options { output: Some(Arc::new(writer.into())), ..options() };
    let seen = try_follow(&["sh", "-c", "cat; echo said; echo wrong >&2"], &options).unwrap();
    assert_eq!(seen.ended, Ended::Exited(0));
    drop(options);
    let mut said = String::new();
    reader.read_to_string(&mut said).unwrap();
    assert_eq!(said, "said\nwrong\n");
}

/// A disk that is full is no matter of the program's.
#[test]
fn a_sink_that_takes_no_more_does_not_disturb_the_program() {
    let words = ["-c", "for i in 1 2 3; do cat /etc/passwd; done > /dev/null; exit 9"].map(OsString::from);
    let mut sink = |_| Err(std::io::ErrorKind::StorageFull.into());
    let captured = command(OsStr::new("sh"), &words, &options(), &AtomicUsize::new(0), &mut sink).unwrap();
    assert_eq!(captured.ended, Ended::Exited(9));
    assert_eq!(captured.written.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
}

/// A program that does little fills no piece for long: all of it was lost where the capture was killed.
#[test]
fn what_a_slow_program_did_is_passed_on_each_second() {
    let words =
        ["-c", "cat /etc/passwd > /dev/null; sleep 2.5; cat /etc/passwd > /dev/null"].map(OsString::from);
    let mut pieces = Vec::new();
    let mut sink = |piece: pagetide_capture::Piece| {
        pieces.push(piece.operations.len());
        Ok(())
    };
    command(OsStr::new("sh"), &words, &options(), &AtomicUsize::new(0), &mut sink).unwrap();
    assert!(pieces.len() > 1 && pieces[0] > 10, "{pieces:?}");
}

#[test]
fn a_process_that_runs_is_followed_and_let_go() {
    let script = "while [ ! -e go ]; do sleep 0.01; done; cat in > out; while :; do sleep 0.01; done";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in"), "some text").unwrap();
    let mut child =
        std::process::Command::new("sh").args(["-c", script]).current_dir(&folder).spawn().unwrap();
    let pid = child.id();
    let signal = AtomicUsize::new(0);
    let mut operations = Vec::new();
    let captured = std::thread::scope(|scope| {
        scope.spawn(|| {
            // Each step waits for the one before it: a busy machine takes seconds for them.
            until(|| follower_of(pid) != 0);
            std::fs::write(folder.path().join("go"), "").unwrap();
            until(|| std::fs::read(folder.path().join("out")).is_ok_and(|text| text.len() == 9));
            signal.store(2, std::sync::atomic::Ordering::Relaxed);
        });
        let mut sink = |piece: pagetide_capture::Piece| {
            operations.extend(piece.operations);
            Ok(())
        };
        processes(&[pid], &options(), &signal, &mut sink).unwrap()
    });
    assert_eq!(captured.ended, Ended::Left);
    let named =
        |name: &str| captured.trace.files.iter().position(|file| file.path.ends_with(name)).unwrap() as u32;
    let read = operations.iter().find(|one| one.object == named("/in") && one.len == 9).unwrap();
    assert_eq!(read.kind, trace::OperationKind::Read);
    assert!(
        operations.iter().any(|one| one.object == named("/out") && one.kind == trace::OperationKind::Write)
    );
    // It goes on: nobody has touched it.
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The process that traces `pid`, 0 if none does.
fn follower_of(pid: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let field = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    field.unwrap().trim().parse().unwrap()
}

fn until(done: impl Fn() -> bool) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !done() && std::time::Instant::now() < end {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_process_that_is_not_there_or_not_ours_is_refused() {
    let follow = |pid| {
        let error = processes(&[pid], &options(), &AtomicUsize::new(0), &mut |_| Ok(())).unwrap_err();
        assert!(error.hint().is_some());
        error
    };
    assert!(matches!(follow(u32::MAX), CaptureError::NoProcess { .. }));
    assert!(matches!(follow(0), CaptureError::NoProcess { .. }));
    // A thread cannot follow its own process.
    let error = follow(std::process::id());
    assert!(matches!(error, CaptureError::NotOurs { .. }), "{error}");
}

/// A service with its children, who end when the test does, however that is: who lives on holds its output open.
struct Service(std::process::Child);

impl Service {
    fn begin(script: &str, folder: &std::path::Path) -> Self {
        let mut shell = std::process::Command::new("bash");
        std::os::unix::process::CommandExt::process_group(&mut shell, 0);
        Self(shell.args(["-c", script]).current_dir(folder).spawn().unwrap())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let group = self.0.id().to_string();
        let _ = std::process::Command::new("pkill").args(["-KILL", "-g", &group]).status();
        let _ = self.0.wait();
    }
}

/// A shell that has a child and memory before anybody comes; after 2 s it is let go.
#[test]
fn what_a_service_has_when_we_come_is_told_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let script =
        "x=$(head -c 3000000 /dev/zero | tr '\\0' x); (while :; do cat in > out; sleep 0.02; done) & wait";
    std::fs::write(folder.path().join("in"), "some text").unwrap();
    let mut service = Service::begin(script, folder.path());
    let shell = service.0.id();
    until(|| folder.path().join("out").exists());
    let mut operations = Vec::new();
    let mut sink = |piece: pagetide_capture::Piece| {
        operations.extend(piece.operations);
        Ok(())
    };
    let options = Options { length: Some(std::time::Duration::from_secs(2)), ..options() };
    let began = std::time::Instant::now();
    let captured = processes(&[shell], &options, &AtomicUsize::new(0), &mut sink).unwrap();
    assert_eq!(captured.ended, Ended::Left);
    assert!(began.elapsed() < std::time::Duration::from_secs(20));
    assert!(captured.trace.tasks.len() > 2, "{:?}", captured.trace.tasks);
    let of = |kind| operations.iter().filter(move |one: &&trace::Operation| one.kind == kind);
    let written: u64 = of(trace::OperationKind::Dirty).filter(|one| one.task == 0).map(|one| one.len).sum();
    assert!(written >= 3_000_000, "{written}");
    let is_bash = |one: &&trace::Operation| captured.trace.files[one.object as usize].path.ends_with("/bash");
    let cached: u64 = of(trace::OperationKind::ReadAhead).filter(is_bash).map(|one| one.len).sum();
    assert!(cached > 0, "the program is in memory");
    assert!(of(trace::OperationKind::Read).any(|one| one.len == 9));
    // It goes on as before.
    assert_eq!(follower_of(shell), 0);
    std::fs::remove_file(folder.path().join("out")).unwrap();
    until(|| folder.path().join("out").exists());
    assert!(folder.path().join("out").exists() && service.0.try_wait().unwrap().is_none());
}
