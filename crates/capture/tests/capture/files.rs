//! What programs do to files.

use crate::plays::{self, play, played_on};
use crate::support::{follow, shell, skipped};
use pagetide_capture::Ended;
use trace::{Operation, OperationKind};

#[test]
fn reads_and_writes_are_told_with_their_place_and_length() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in"), vec![7; 10_000]).unwrap();
    let seen = shell(folder.path(), "dd if=in of=out bs=4096 2>/dev/null; rm in; mv out kept; exit 7");
    assert_eq!(seen.ended, Ended::Exited(7));
    // The last write of dd goes where the read before it came from.
    assert_eq!(
        seen.below(folder.path()),
        "\
dd: open in 0+0 1
dd: close in 0+0 0
dd: open out 0+0 6
dd: close out 0+0 0
dd: read in 0+4096 0
dd: write out 0+4096 0
dd: read in 4096+4096 0
dd: write out 4096+4096 0
dd: read in 8192+1808 0
dd: write out 8192+1808 0
dd: read in 10000+0 0
dd: close in 0+0 0
dd: close out 0+0 0
rm: unlink in 0+0 0
mv: rename out 0+0 4294967295
"
    );
}

/// Opens are settled when their task is seen next, of a task by itself as of threads.
#[test]
fn each_open_is_told_once_and_none_that_failed() {
    if let Some(file) = played_on() {
        return plays::opens(&file);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "some bytes").unwrap();
    let words = play("files::each_open_is_told_once_and_none_that_failed", &file);
    let seen = follow(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(seen.ended, Ended::Exited(0));
    let opens = seen.of(&[OperationKind::Open]);
    let of_the_file = |one: &&Operation| seen.trace.files[one.object as usize].path == file.to_string_lossy();
    let opens: Vec<_> = opens.iter().filter(of_the_file).collect();
    assert!(opens.iter().all(|open| open.detail == trace::open::READ));
    assert_eq!(opens.len(), 104);
}

/// Numbers go from one thread to another as they are closed and opened, while others fail to open: each open is its
/// thread's, and each read is of its file.
#[test]
fn of_threads_that_open_at_a_time_each_open_is_told() {
    if let Some(file) = played_on() {
        return plays::opening_threads(&file);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    for part in 0..4 {
        std::fs::write(folder.path().join(format!("file{part}")), vec![1; 100 + part]).unwrap();
    }
    let words = play("files::of_threads_that_open_at_a_time_each_open_is_told", &file);
    let seen = follow(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(seen.ended, Ended::Exited(0));
    for part in 0..4 {
        let name = folder.path().join(format!("file{part}"));
        let number = seen.trace.files.iter().position(|file| file.path == name.to_string_lossy()).unwrap();
        let of = |kind| -> Vec<Operation> {
            let all = seen.of(&[kind]);
            all.iter().filter(|one| one.object as usize == number).copied().collect()
        };
        let (opens, reads) = (of(OperationKind::Open), of(OperationKind::Read));
        assert_eq!((opens.len(), reads.len()), (300, 300), "{part}: {:?}", seen.trace.gaps);
        assert_eq!(of(OperationKind::Close).len(), 300, "{part}");
        assert!(reads.iter().all(|read| read.len == 100 + part as u64));
        assert!(opens.iter().chain(&reads).all(|one| one.task == reads[0].task), "{part}");
    }
}

/// Of 1,200 opens by four threads one was lost now and then: an open has its number before it has its file, so that
/// a file may lie beyond a number that is free.
#[test]
fn an_open_is_told_though_another_waits_with_a_lower_number() {
    if let Some(file) = played_on() {
        return plays::opens_beside_one_that_waits(&file);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "some bytes").unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap();
    assert!(pipe.success());
    let words = play("files::an_open_is_told_though_another_waits_with_a_lower_number", &file);
    let seen = follow(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(seen.ended, Ended::Exited(0));
    let number = seen.trace.files.iter().position(|one| one.path == file.to_string_lossy()).unwrap();
    let of = |kind| seen.of(&[kind]).iter().filter(|one| one.object as usize == number).count();
    if !takes_numbers_from_threads() {
        skipped("before Linux 6.9 numbers cannot be had of a process whose first thread has left");
        assert!(seen.trace.gaps.iter().any(|gap| gap.contains("could not be looked up")));
        return;
    }
    assert_eq!(of(OperationKind::Open), 40, "{:?}", seen.trace.gaps);
    assert_eq!((of(OperationKind::Read), of(OperationKind::Close)), (20, 21), "{:?}", seen.trace.gaps);
}

fn takes_numbers_from_threads() -> bool {
    let flags = rustix::process::PidfdFlags::from_bits_retain(libc::O_EXCL.cast_unsigned());
    rustix::process::pidfd_open(rustix::process::getpid(), flags).is_ok()
}

/// A task that opens and then sleeps does not hold back what others do.
#[test]
fn an_open_is_told_though_its_task_sleeps() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("in"), "x").unwrap();
    let seen = shell(folder.path(), "exec 3<in; (exec 4<nowhere) 2>/dev/null; sleep 0.3; cat in >/dev/null");
    let told = seen.below(folder.path());
    assert_eq!(told.matches(": open in").count(), 2, "{told}");
}

#[test]
fn of_a_file_that_is_sent_as_much_is_told_as_was_taken() {
    if let Some(file) = played_on() {
        return plays::sends(&file);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, vec![1; 300_000]).unwrap();
    let words = play("files::of_a_file_that_is_sent_as_much_is_told_as_was_taken", &file);
    let seen = follow(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(seen.ended, Ended::Exited(0));
    let sent: u64 = std::fs::read_to_string(folder.path().join("sent")).unwrap().parse().unwrap();
    let parts = |kind, name: &str| {
        let is = |one: &&trace::Operation| {
            seen.trace.files[one.object as usize].path == folder.path().join(name).to_string_lossy()
        };
        let of: Vec<_> = seen.of(&[kind]).into_iter().filter(|one| is(&one)).collect();
        of.iter().map(|one| (one.offset, one.len)).collect::<Vec<_>>()
    };
    let thirds = [(0, 100_000), (100_000, 100_000), (200_000, 100_000)];
    assert_eq!(parts(OperationKind::Write, "copy"), thirds);
    assert_eq!(parts(OperationKind::Read, "file"), [&thirds[..], &[(0, sent)]].concat());
}
