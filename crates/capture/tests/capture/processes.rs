//! Threads, children, other programs, signals.

use std::collections::BTreeSet;

use pagetide_capture::Ended;
use trace::{NONE, OperationKind};

use crate::plays::{self, play, played_on};
use crate::support::{follow, shell};

#[test]
fn each_thread_has_its_reads() {
    if let Some(file) = played_on() {
        return plays::threads(&file);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, vec![1; 400 * 4096]).unwrap();
    let words = play("processes::each_thread_has_its_reads", &file);
    let seen = follow(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(seen.ended, Ended::Exited(0));
    let name = file.to_string_lossy();
    let number = seen.trace.files.iter().position(|file| file.path == name).unwrap() as u32;
    let reads = seen.of(&[OperationKind::Read]);
    let reads: Vec<_> = reads.iter().filter(|read| read.object == number).collect();
    assert_eq!(reads.len(), 400);
    let offsets: BTreeSet<u64> = reads.iter().map(|read| read.offset / 4096).collect();
    assert_eq!(offsets, (0..400).collect());
    let tasks: BTreeSet<u32> = reads.iter().map(|read| read.task).collect();
    assert_eq!(tasks.len(), 4);
    let processes: BTreeSet<u32> =
        tasks.iter().map(|task| seen.trace.tasks[*task as usize].process).collect();
    assert_eq!(processes.len(), 1);
    // All that began have ended, and all but the first were made by one that was there.
    assert_eq!(seen.of(&[OperationKind::Exit]).len(), seen.trace.tasks.len());
    assert_eq!(seen.of(&[OperationKind::Spawn]).len(), seen.trace.tasks.len() - 1);
    assert!(seen.trace.tasks[1..].iter().all(|task| task.parent != NONE));
}

/// A thread stops before the one that made it tells of it, and meanwhile another one ends: it had no parent then.
#[test]
fn threads_that_end_while_others_begin_leave_none_without_a_parent() {
    if played_on().is_some() {
        return plays::short_lived();
    }
    let words = play(
        "processes::threads_that_end_while_others_begin_leave_none_without_a_parent",
        std::path::Path::new("/dev/null"),
    );
    let seen = follow(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(seen.ended, Ended::Exited(0));
    assert!(seen.trace.tasks.len() > 1_000);
    assert_eq!(seen.of(&[OperationKind::Spawn]).len(), seen.trace.tasks.len() - 1);
    assert!(seen.trace.tasks[1..].iter().all(|task| task.parent != NONE));
}

#[test]
fn no_alarm_ends_a_read_of_a_file() {
    if let Some(file) = played_on() {
        return plays::alarms(&file);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, vec![1; 4096]).unwrap();
    let words = play("processes::no_alarm_ends_a_read_of_a_file", &file);
    let seen = follow(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(seen.ended, Ended::Exited(0));
    let reads = seen.of(&[OperationKind::Read]).iter().filter(|read| read.len == 1).count();
    assert_eq!(reads, 4_000);
}

#[test]
fn a_child_and_its_program_are_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in"), "text").unwrap();
    let seen = shell(folder.path(), "(cat in; :) | wc -c > out; exec env sh -c 'exit 3'");
    assert_eq!(seen.ended, Ended::Exited(3));
    let names: Vec<&str> = seen.trace.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names[0], "sh");
    assert!(names.contains(&"cat") && names.contains(&"wc"), "{names:?}");
    assert!(seen.below(folder.path()).contains("cat: read in 0+4 0\n"));
    assert!(seen.below(folder.path()).contains("wc: write out 0+2 0\n"));
    assert!(seen.of(&[OperationKind::Exec]).len() >= 5);
}

#[test]
fn signals_reach_the_program_and_what_they_do_to_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let handled = shell(folder.path(), "trap 'echo caught > out' USR1; kill -USR1 $$; kill -TERM $$");
    assert_eq!(handled.ended, Ended::Signalled(libc::SIGTERM));
    assert_eq!(std::fs::read_to_string(folder.path().join("out")).unwrap(), "caught\n");
    let stopped =
        shell(folder.path(), "(sleep 0.2; kill -CONT $$) & kill -STOP $$; echo on > out; wait; exit 5");
    assert_eq!(stopped.ended, Ended::Exited(5));
    assert_eq!(std::fs::read_to_string(folder.path().join("out")).unwrap(), "on\n");
}

/// A program that is not there costs the shell an attempt, and changes nothing.
#[test]
fn an_exec_that_fails_leaves_the_task_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let seen = shell(folder.path(), "/no/such/program 2>/dev/null; echo $? > out");
    assert_eq!(seen.ended, Ended::Exited(0));
    assert_eq!(std::fs::read_to_string(folder.path().join("out")).unwrap(), "127\n");
}
