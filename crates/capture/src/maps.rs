//! What `/proc/PID` says of an address space: mappings of a program that has just begun, pages that were used.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use crate::memory::Referenced;

/// A mapping, as a line of `maps` (`proc_pid_maps(5)`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapped {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) writable: bool,
    pub(crate) executable: bool,
    pub(crate) shared: bool,
    pub(crate) offset: u64,
    /// The file's path; nothing for memory.
    pub(crate) path: Option<PathBuf>,
    /// The first task's stack, which grows downwards by itself.
    pub(crate) stack: bool,
}

/// Mappings of a process; none where it is gone, or not ours to see.
pub(crate) fn mappings(pid: i32) -> Vec<Mapped> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    text.lines().filter_map(mapped).collect()
}

fn mapped(line: &str) -> Option<Mapped> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let rights = fields.next()?.as_bytes();
    let offset = hex(fields.next()?)?;
    let (_device, inode) = (fields.next()?, fields.next()?);
    let path = fields.next().map(str::trim_start).filter(|_| inode != "0").map(PathBuf::from);
    let has = |at: usize, letter: u8| rights.get(at) == Some(&letter);
    Some(Mapped {
        start: hex(start)?,
        end: hex(end)?,
        writable: has(1, b'w'),
        executable: has(2, b'x'),
        shared: has(3, b's'),
        offset,
        path,
        stack: line.ends_with("[stack]"),
    })
    .filter(|mapped| !is_the_kernels(line) && mapped.start < mapped.end)
}

/// Pages that the kernel lends to every process.
fn is_the_kernels(line: &str) -> bool {
    ["[vdso]", "[vvar]", "[vvar_vclock]", "[vsyscall]"].iter().any(|name| line.ends_with(name))
}

/// Where the heap of a process ends: the line of `maps` that is called so, or where it would begin (field 47 of
/// `stat`).
pub(crate) fn heap_end(pid: i32) -> Option<u64> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    if let Some(heap) = maps.lines().find(|line| line.ends_with("[heap]")) {
        return mapped(heap).map(|mapped| mapped.end);
    }
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields = &text[text.rfind(')')? + 1..];
    fields.split_ascii_whitespace().nth(44)?.parse().ok()
}

/// Its name; empty where it is gone.
pub(crate) fn name(tid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{tid}/comm")).unwrap_or_default().trim_end().to_owned()
}

/// A field of `status`.
pub(crate) fn status(tid: i32, field: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    Some(line.trim().to_owned())
}

/// The call that a task waits in; nothing where it runs.
pub(crate) fn call_of(tid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{tid}/syscall")).ok()?;
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// The process that a task is of.
pub(crate) fn process_of(tid: i32) -> Option<i32> {
    status(tid, "Tgid")?.parse().ok()
}

/// The process that made it, or took it over.
pub(crate) fn parent_of(pid: i32) -> Option<i32> {
    status(pid, "PPid")?.parse().ok()
}

/// Processes that a process has made, and that are there.
pub(crate) fn children_of(pid: i32) -> Vec<i32> {
    let of =
        |tid: i32| std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
    let texts = tasks_of(pid).into_iter().map(of);
    texts
        .flat_map(|text| {
            text.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

/// Tasks of a process.
pub(crate) fn tasks_of(pid: i32) -> Vec<i32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Numbers that a process has open.
pub(crate) fn descriptors_of(pid: i32) -> Vec<u32> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Has the kernel forget which pages were used.
///
/// # Errors
/// It is not ours to ask for.
pub(crate) fn forget_used(pid: i32) -> io::Result<()> {
    std::fs::OpenOptions::new().write(true).open(format!("/proc/{pid}/clear_refs"))?.write_all(b"1")
}

/// How much of each mapping was used since it was last asked to forget.
pub(crate) fn used(pid: i32) -> Vec<Referenced> {
    let mut text = String::new();
    let read = File::open(format!("/proc/{pid}/smaps")).and_then(|mut file| file.read_to_string(&mut text));
    if read.is_err() {
        return Vec::new();
    }
    used_of(&text)
}

fn used_of(text: &str) -> Vec<Referenced> {
    let mut used = Vec::new();
    let mut range = None;
    for line in text.lines() {
        if let Some(amount) = line.strip_prefix("Referenced:") {
            let kilobytes = amount.trim().strip_suffix(" kB").and_then(|text| text.parse::<u64>().ok());
            if let (Some((start, end)), Some(kilobytes @ 1..)) = (range, kilobytes) {
                used.push(Referenced { start, end, bytes: kilobytes * 1024 });
            }
        } else if line
            .as_bytes()
            .first()
            .is_some_and(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase())
        {
            range = mapped(line).map(|mapped| (mapped.start, mapped.end));
        }
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps_are_read_whatever_the_path_holds() {
        let line = "7f1e40000000-7f1e40021000 r-xp 00002000 fd:01 1234                       /usr/lib/a b.so";
        let read = mapped(line).unwrap();
        assert_eq!((read.start, read.end, read.offset), (0x7f1e_4000_0000, 0x7f1e_4002_1000, 0x2000));
        assert_eq!((read.writable, read.executable, read.shared), (false, true, false));
        assert_eq!(read.path, Some(PathBuf::from("/usr/lib/a b.so")));
        let stack =
            mapped("7ffd0000-7ffe0000 rw-p 00000000 00:00 0                          [stack]").unwrap();
        assert_eq!(stack.path, None);
        assert_eq!(mapped("7ffd0000-7ffe0000 r-xp 00000000 00:00 0                          [vdso]"), None);
        assert_eq!(mapped("no line"), None);
    }

    #[test]
    fn used_pages_are_told_by_mapping() {
        let text = "1000-3000 rw-p 00000000 00:00 0 \nSize: 8 kB\nReferenced:            4 kB\nVmFlags: rd\n\
                    a000-b000 rw-p 00000000 00:00 0 \nReferenced:            0 kB\n";
        assert_eq!(used_of(text), [Referenced { start: 0x1000, end: 0x3000, bytes: 4096 }]);
    }

    #[test]
    fn this_process_has_mappings_and_a_heap() {
        let here = std::process::id() as i32;
        assert!(mappings(here).iter().any(|mapped| mapped.executable && mapped.path.is_some()));
        assert!(heap_end(here).unwrap() > 0);
    }
}
