//! Nothing is lost: as many calls on files as strace counts.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use trace::OperationKind;

use crate::support::{follow, skipped};

/// Calls on files below a folder, by name of the operation, of an strace log with paths.
fn counted(log: &str, folder: &Path) -> BTreeMap<&'static str, usize> {
    let kinds = [
        ("read(", OperationKind::Read),
        ("pread64(", OperationKind::Read),
        ("write(", OperationKind::Write),
        ("pwrite64(", OperationKind::Write),
    ];
    let folder = format!("{}/", folder.display()); // The folder itself is no file.
    let mut counts = BTreeMap::new();
    for call in log.lines().filter_map(|line| Some(line.split_once(' ')?.1.trim_start())) {
        // A descriptor is told with its path when a call begins, and what was opened when it ends; another task's
        // line may come between.
        let opened = call.starts_with("openat(") || call.starts_with("<... openat resumed>");
        if opened && call.rsplit_once(" = ").is_some_and(|(_, result)| result.contains(&*folder)) {
            *counts.entry(OperationKind::Open.name()).or_default() += 1;
        }
        let kind = kinds.iter().find(|(name, _)| call.starts_with(name));
        let descriptor = call.split(['(', ',']).nth(1).unwrap_or_default();
        if let (Some((_, kind)), true) = (kind, descriptor.contains(&*folder)) {
            *counts.entry(kind.name()).or_default() += 1;
        }
        // One call, a read and a write; between file systems it fails.
        if call.starts_with("copy_file_range(") && descriptor.contains(&*folder) && !call.contains(" = -1 ") {
            *counts.entry(OperationKind::Read.name()).or_default() += 1;
            *counts.entry(OperationKind::Write.name()).or_default() += 1;
        }
    }
    counts
}

/// A folder of files, and a script that uses them.
fn scene() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..200 {
        let name = folder.path().join(format!("file{number}"));
        std::fs::write(name, format!("{number}\n").repeat(number * 50)).unwrap();
    }
    let script = format!(
        "cd {} && cat file* > all && grep -c 7 file* > /dev/null; cp --sparse=never --reflink=never all copy; \
         sort file1* > sorted; (cat all >> copy) & (cat all > other) & wait; dd if=all of=odd bs=777 2>/dev/null",
        folder.path().display()
    );
    (folder, script)
}

#[test]
fn as_many_calls_as_strace_counts() {
    let (folder, script) = scene();
    let log = tempfile::NamedTempFile::new().unwrap();
    let strace = Command::new("strace")
        .args(["-f", "-y", "-qq", "-e", "trace=read,pread64,write,pwrite64,openat,copy_file_range", "-o"])
        .arg(log.path())
        .args(["sh", "-c", &script])
        .status();
    if !strace.is_ok_and(|status| status.success()) {
        return skipped("calls beside strace's: there is no strace here");
    }
    let counted = counted(&std::fs::read_to_string(log.path()).unwrap(), folder.path());
    let (folder, script) = scene();
    let seen = follow(&["sh", "-c", &script]);
    let mut ours = BTreeMap::new();
    for one in seen.of(&[OperationKind::Read, OperationKind::Write, OperationKind::Open]) {
        if Path::new(&seen.trace.files[one.object as usize].path).starts_with(folder.path()) {
            *ours.entry(one.kind.name()).or_default() += 1;
        }
    }
    assert_eq!(ours, counted);
    assert!(ours["read"] > 1000, "{ours:?}");
}
