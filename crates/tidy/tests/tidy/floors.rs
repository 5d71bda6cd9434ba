//! Which file of a crate stands on which.
//!
//! A crate of drivers is methods of one handle, so its imports alone say little: a call of a method
//! that another file defines counts as a use of that file, too. Each file uses only files below it;
//! so there is no circle, and a reader can start at either end.

use std::collections::BTreeMap;

use crate::sources::{code, sources_of};
use crate::tree::{Text, assert_none};

/// Files of `kernel`, top floor first; the map in `ARCHITECTURE.md` names their rooms.
const KERNEL: &[&str] = &[
    "lib",
    // A kernel and its files in /proc.
    "boot",
    "proc",
    // Processes and their memory.
    "tasks/start",
    "tasks/kthreadd",
    "anon/advice",
    "anon/file",
    "anon/mapping",
    "anon/file_fault",
    "anon/khugepaged",
    "anon/huge",
    "anon/shared",
    "anon/page_table",
    "swap/zswap",
    "swap/fault",
    "anon/page",
    "anon/lock",
    // Files, and their pages on the way to the disk.
    "files/truncate",
    "files/advice",
    "files/open",
    "files/rename",
    "files/directories",
    "files/names",
    "files/lookup",
    "writeback/flusher",
    "writeback/sync",
    // The page cache, from a system call down to a page.
    "fs/inodes",
    "fs/directories",
    "fs/ext3_table",
    "cache/filemap",
    // Up to 3.1 a writer writes back itself.
    "writeback/pause",
    "writeback/work",
    "writeback/pages",
    "fs/flush",
    "fs/ext4_table",
    "fs/ext4_change",
    "fs/ext4_commit",
    "fs/xfs_log",
    "fs/xfs",
    "cache/mapped_readahead",
    "cache/readahead",
    "fs/pages",
    "fs/ext3",
    "fs/ext4",
    "cache/add",
    // Memory for all of the above.
    "objects",
    "cgroup/files",
    "cgroup/proactive",
    "cgroup/charge",
    "alloc/slow_path",
    "reclaim/kswapd",
    "alloc/oom",
    "alloc/report",
    "alloc/stall",
    "compact/direct",
    "alloc/page",
    // Who frees it.
    "reclaim/direct",
    "reclaim/limit",
    "reclaim/run",
    "reclaim/pass",
    "fs/xfs_reclaim",
    "reclaim/throttle",
    "reclaim/pause",
    "reclaim/wake",
    "compact/kcompactd",
    "compact/zone",
    // The threads of XFS, which take no memory but the reserve.
    "fs/xfs_ail",
    "fs/xfs_checkpoint",
    "fs/xfs_io",
    // What nobody waits for.
    "tasks/reap",
    "swap/write",
    "writeback/plug",
    "writeback/wake",
    "cache/look",
    "cache/io",
    "files/close",
    "cache/wait",
    // What all of them share, and the state below it.
    "handle",
    "queues",
    "writeback/inodes",
    "writeback/request",
    "tasks/process",
    "anon/area",
    "anon/shared_file",
    "files/table",
    "files/disk",
    "files/descriptor",
    "files/inode",
    "files/extents",
    "files/directory",
    "files/spelling",
    "fs",
    "cache/in_flight",
    "cache/window",
    "alloc/kills",
    "alloc/purpose",
    "alloc/oom_watch",
    "alloc/used_frames",
    "time",
    "errno",
    "machine",
    "section",
];

/// The header of a block of methods of the handle.
const HANDLE: &str = "Kernel<M, T> {";

/// A file: its path in the crate without ending, and its code without comments and tests.
struct File {
    name: String,
    code: String,
}

fn files(package: &str) -> Vec<File> {
    let prefix = format!("crates/{package}/src/");
    let file = |text: &Text| {
        let name = text.path.strip_prefix(&prefix).and_then(|path| path.strip_suffix(".rs"));
        let name = name.expect("a source of the package");
        let name = name.strip_suffix("/mod").unwrap_or(name).to_owned();
        File { name, code: code(text).map(|(_, line)| format!("{line}\n")).collect() }
    };
    sources_of(&[package]).iter().map(file).collect()
}

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    &text[..end]
}

/// The blocks of methods of the handle in a file.
fn methods_of_handle(code: &str) -> impl Iterator<Item = &str> {
    code.split("\nimpl").skip(1).filter_map(|block| {
        let (header, rest) = block.split_once('\n')?;
        let own = header.ends_with(HANDLE) && !header.contains(" for ");
        own.then(|| rest.split("\n}").next().unwrap_or_default())
    })
}

/// Names of the handle's methods that a file defines.
fn defined(file: &File) -> impl Iterator<Item = &str> {
    methods_of_handle(&file.code).flat_map(str::lines).filter_map(|line| {
        let item = line.strip_prefix("    ").filter(|item| !item.starts_with(' '))?;
        item.split_once("fn ").map(|(_, rest)| word(rest))
    })
}

/// Names of methods that a file calls on a handle.
fn called(file: &File) -> Vec<&str> {
    let mut called = Vec::new();
    for block in methods_of_handle(&file.code) {
        for receiver in ["self", "kernel", "Self { shared }"] {
            for (at, _) in block.match_indices(receiver) {
                let Some(rest) = block[at + receiver.len()..].trim_start().strip_prefix('.') else {
                    continue;
                };
                let name = word(rest);
                if rest[name.len()..].starts_with('(') {
                    called.push(name);
                }
            }
        }
    }
    called
}

/// Files that a file names by their path from the crate's root.
fn imported<'a>(file: &'a File, known: &'a [&'a str]) -> impl Iterator<Item = (String, Option<&'a str>)> {
    file.code.match_indices("crate::").map(|(at, found)| {
        let path = &file.code[at + found.len()..];
        let end = path.find(|c: char| !(c.is_alphanumeric() || "_:".contains(c))).unwrap_or(path.len());
        let path = path[..end].replace("::", "/");
        let holds = |name: &&&str| path == **name || path.starts_with(&format!("{name}/"));
        let target = known.iter().filter(holds).max_by_key(|name| name.len()).copied();
        (path, target)
    })
}

/// Uses that do not go down in `order`, and files that it does not name.
fn upward(files: &[File], order: &[&str]) -> Vec<String> {
    let floor = |name: &str| order.iter().position(|known| *known == name);
    let homes: BTreeMap<&str, &str> =
        files.iter().flat_map(|file| defined(file).map(|method| (method, file.name.as_str()))).collect();
    let mut wrong = Vec::new();
    for file in files {
        let Some(own) = floor(&file.name) else {
            // A room's front door, which only names its files.
            if file.code.contains("fn ") || file.code.contains("use ") {
                wrong.push(format!("{} has no floor yet", file.name));
            }
            continue;
        };
        let mut goes_down = |target: &str, what: &str| {
            if target != file.name && floor(target).is_none_or(|floor| floor <= own) {
                wrong.push(format!("{} uses {what} of {target}, which is not below it", file.name));
            }
        };
        for (path, target) in imported(file, order) {
            match target {
                Some(target) => goes_down(target, "a name"),
                None => goes_down("lib", &path),
            }
        }
        for method in called(file) {
            if let Some(home) = homes.get(method) {
                goes_down(home, method);
            }
        }
    }
    let gone = order.iter().filter(|name| !files.iter().any(|file| file.name == **name));
    wrong.extend(gone.map(|name| format!("{name} has a floor, but is not there")));
    wrong.sort();
    wrong.dedup();
    wrong
}

#[test]
fn files_of_the_kernel_use_only_what_stands_below_them() {
    let wrong = upward(&files("kernel"), KERNEL);
    assert_none("uses that go up; move what both need below both, or see the order in floors.rs", &wrong);
}

#[test]
fn uses_are_found_in_imports_and_in_calls() {
    let file = |name: &str, code: &str| File { name: name.to_owned(), code: code.to_owned() };
    let handle = "\nimpl<M: Machine, T: Trace> Kernel<M, T> {\n";
    let files = [
        file(
            "a",
            &format!(
                "use crate::c::d::Name;\n{handle}    pub fn top(&self) {{\n        self\n            .low();\n    }}\n}}\n"
            ),
        ),
        file(
            "b",
            &format!(
                "{handle}    pub(crate) async fn low(&self) {{\n        self.top();\n        mem.top();\n    }}\n}}\n"
            ),
        ),
        file("c/d", "use crate::Kernel;\nimpl Other {\n    fn low(&self) {\n        self.top();\n    }\n}\n"),
        file("new", "fn any() {}\n"),
    ];
    let expected = [
        "b uses top of a, which is not below it",
        "c/d uses Kernel of lib, which is not below it",
        "new has no floor yet",
        "old has a floor, but is not there",
    ];
    assert_eq!(upward(&files, &["a", "b", "c/d", "old"]), expected);
}
