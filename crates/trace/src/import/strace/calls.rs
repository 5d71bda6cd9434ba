//! Calls of a log to operations. Next: [`files`], [`memory`].

mod files;
mod memory;

use std::collections::{BTreeMap, BTreeSet};

use self::files::{annotation_of, is_of_interest};
use super::super::ImportFormat;
use super::super::builder::{Builder, Done, Noted};
use super::line::{Call, Returned, number, string};
use super::world::{Shares, Task, World};
use crate::{NONE, OperationKind, Trace, TraceMapping, advice};

/// Whether a call, from its name on, makes tasks.
pub(super) fn makes_tasks(text: &str) -> bool {
    ["clone(", "clone3(", "fork(", "vfork("].into_iter().any(|call| text.starts_with(call))
}

/// What is known of a file's size.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    /// Whether the log says how large it was at first.
    told: bool,
    /// Bytes that it has now, as far as is known.
    now: u64,
}

/// Makes a trace of calls.
pub(in crate::import) struct Importer {
    builder: Builder,
    pub(in crate::import) noted: Noted,
    world: World,
    tasks: BTreeMap<u32, Task>,
    sizes: Vec<Size>,
    /// Sizes that a `stat` of a path told before it was opened.
    told: BTreeMap<String, u64>,
    /// Paths that were not there when somebody looked.
    missing: BTreeSet<String>,
    has_command: bool,
    /// Whether any call says how long it took (`-T`).
    pub(in crate::import) has_durations: bool,
    line: u64,
}

/// The call that is looked at, and who made it.
#[derive(Clone, Copy)]
struct At<'a> {
    call: &'a Call<'a>,
    task: Task,
    at_ns: u64,
    took_ns: u64,
    /// What it returned, and the path behind that.
    value: u64,
    path: Option<&'a str>,
}

impl<'a> At<'a> {
    fn argument(&self, place: usize) -> &'a str {
        self.call.arguments.get(place).copied().unwrap_or_default()
    }

    fn number(&self, place: usize) -> Option<u64> {
        let text = self.argument(place);
        number(text.split(['<', ' ']).next().unwrap_or_default())
    }

    fn has_flag(&self, place: usize, flag: &str) -> bool {
        self.argument(place).split('|').any(|word| word.trim() == flag)
    }
}

impl Importer {
    pub(in crate::import) fn new(format: ImportFormat, name: &str) -> Self {
        Self {
            builder: Builder::new(format.name(), name),
            noted: Noted::default(),
            world: World::default(),
            tasks: BTreeMap::new(),
            sizes: Vec::new(),
            told: BTreeMap::new(),
            missing: BTreeSet::new(),
            has_command: false,
            has_durations: false,
            line: 0,
        }
    }

    // ---- tasks ----

    pub(in crate::import) fn knows(&self, tid: u32) -> bool {
        self.tasks.contains_key(&tid)
    }

    /// The task that has not ended, if there is only one.
    pub(super) fn only_task(&self) -> Option<u32> {
        self.tasks.keys().next().copied().filter(|_| self.tasks.len() == 1)
    }

    /// A task that nobody in the log made.
    pub(in crate::import) fn add_stranger(&mut self, tid: u32, at_ns: u64) {
        let number = self.builder.task(tid, NONE, None, at_ns);
        let task = self.world.stranger(number);
        self.tasks.insert(tid, task);
    }

    pub(super) fn rename_task(&mut self, from: u32, to: u32, at_ns: u64) {
        self.gone(to, at_ns);
        if let Some(task) = self.tasks.remove(&from) {
            self.tasks.insert(to, task);
            self.builder.trace.tasks[task.number as usize].tid = to;
        }
    }

    pub(in crate::import) fn gone(&mut self, tid: u32, at_ns: u64) {
        if let Some(task) = self.tasks.remove(&tid) {
            self.push_by(task.number, at_ns, 0, OperationKind::Exit, NONE, (0, 0), 0);
        }
    }

    /// The name of its program, if the log has one.
    pub(in crate::import) fn name_task(&mut self, tid: u32, name: &str) {
        if let Some(task) = self.tasks.get(&tid).filter(|_| !name.is_empty()) {
            name.clone_into(&mut self.builder.trace.tasks[task.number as usize].name);
        }
    }

    /// Whether it is known which file a descriptor is of.
    pub(in crate::import) fn has_file(&self, tid: u32, number: u64) -> bool {
        let descriptor = self.tasks.get(&tid).and_then(|&task| self.world.descriptor(task, number));
        descriptor.is_some_and(|known| self.world.opened[known.opened].file != NONE)
    }

    /// A descriptor is of a file that the log does not name.
    pub(in crate::import) fn forget(&mut self, tid: u32, number: u64) {
        if let Some(&task) = self.tasks.get(&tid) {
            self.world.close(task, number);
        }
    }

    fn spawn(&mut self, at: At<'_>) -> Option<u32> {
        let tid = u32::try_from(at.value).ok().filter(|&tid| tid > 0)?;
        let flags = at.call.arguments.join("|");
        let has = |flag: &str| flags.contains(flag);
        let is_vfork = at.call.name == "vfork";
        let shares = Shares {
            process: has("CLONE_THREAD"),
            descriptors: has("CLONE_FILES"),
            memory: has("CLONE_VM") || is_vfork,
            directory: has("CLONE_FS"),
        };
        let process = shares.process.then_some(at.task.process);
        let number = self.builder.task(tid, at.task.number, process, at.at_ns);
        self.builder.trace.tasks[number as usize].name =
            self.builder.trace.tasks[at.task.number as usize].name.clone();
        let child = self.world.child(number, at.task, shares);
        self.tasks.insert(tid, child);
        self.push(at, OperationKind::Spawn, number, (0, 0), 0);
        Some(tid)
    }

    fn exec(&mut self, tid: u32, at: At<'_>) {
        let place = usize::from(at.call.name == "execveat");
        let path = string(at.argument(place)).unwrap_or_default();
        let mut task = at.task;
        for file in self.world.exec(&mut task) {
            self.push(at, OperationKind::Close, file, (0, 0), 0);
        }
        self.tasks.insert(tid, task);
        let name = path.rsplit('/').next().unwrap_or_default().chars().take(15).collect();
        self.builder.trace.tasks[task.number as usize].name = name;
        self.push(at, OperationKind::Exec, NONE, (0, 0), 0);
        if !self.has_command && !path.is_empty() {
            self.has_command = true;
            let words = at.argument(place + 1);
            let words = words.trim_start_matches('[').trim_end_matches(']').split(", ");
            let words: Vec<String> = words.filter_map(string).collect();
            self.builder.trace.command = if words.is_empty() { path } else { words.join(" ") };
        }
    }

    // ---- all calls ----

    /// A call has ended. Returns the thread ID of a task that it made.
    pub(in crate::import) fn call(
        &mut self,
        tid: u32,
        call: &Call<'_>,
        at_ns: u64,
        line: u64,
    ) -> Option<u32> {
        self.line = line;
        let task = self.tasks[&tid];
        let (value, path) = match call.returned {
            Some(Returned::Number(value, path)) => (value, path),
            Some(Returned::Error(error)) => {
                self.failed(task, call, error);
                return None;
            }
            None => return None,
        };
        let at = At { call, task, at_ns, took_ns: call.took_ns.unwrap_or(0), value, path };
        match call.name {
            "clone" | "clone3" | "fork" | "vfork" => return self.spawn(at),
            "execve" | "execveat" => self.exec(tid, at),
            "open" | "openat" | "openat2" | "creat" => self.open(at),
            "read" | "readv" => self.read(at, None),
            "pread64" | "preadv" | "preadv2" => self.read(at, at.number(3)),
            "write" | "writev" => self.write(at, 0, None),
            "pwrite64" | "pwritev" | "pwritev2" => self.write(at, 0, at.number(3)),
            "sendfile" | "sendfile64" => self.copy(at, (1, 2), (0, usize::MAX)),
            "copy_file_range" | "splice" => self.copy(at, (0, 1), (2, 3)),
            "io_uring_enter" | "io_submit" => {
                let what = format!("calls of `{}`, whose reads and writes are not in the log", call.name);
                self.noted.add(&what, line);
            }
            "prctl" if at.argument(0) == "PR_SET_NAME" => {
                if let Some(name) = string(at.argument(1)) {
                    self.builder.trace.tasks[task.number as usize].name = name;
                }
            }
            "chdir" => *self.world.directory(task) = self.path(at, None, 0),
            "fchdir" => *self.world.directory(task) = annotation_of(at.argument(0)),
            _ => self.call_on_files(at),
        }
        None
    }

    fn call_on_files(&mut self, at: At<'_>) {
        let zero = (0, 0);
        match at.call.name {
            "close" => self.close(at, at.number(0)),
            "close_range" => {
                let (from, to) = (at.number(0).unwrap_or(0), at.number(1).unwrap_or(u64::MAX));
                for number in self.world.numbers(at.task, from, to) {
                    self.close(at, Some(number));
                }
            }
            "dup" | "dup2" | "dup3" => self.dup(at, at.has_flag(2, "O_CLOEXEC")),
            "fcntl" | "fcntl64" if at.argument(1).starts_with("F_DUPFD") => {
                self.dup(at, at.argument(1) == "F_DUPFD_CLOEXEC");
            }
            "lseek" | "_llseek" => self.seek(at),
            "fsync" | "fdatasync" | "sync_file_range" => self.on_file(at, OperationKind::Fsync, zero, 0),
            "sync" | "syncfs" => self.push(at, OperationKind::Sync, NONE, zero, 0),
            "ftruncate" | "ftruncate64" => self.truncate(at, at.number(1)),
            "truncate" | "truncate64" => {
                if let (Some(path), Some(len)) = (self.path(at, None, 0), at.number(1)) {
                    let file = self.file(&path);
                    self.sizes[file as usize] = Size { told: self.sizes[file as usize].told, now: len };
                    self.push(at, OperationKind::Truncate, file, (0, len), 0);
                }
            }
            "fallocate" if at.argument(1) == "0" => {
                let end = at.number(2).zip(at.number(3)).and_then(|(offset, len)| offset.checked_add(len));
                let file = self.file_of(at, 0);
                let grows = |end: &u64| file.is_some_and(|file| *end > self.sizes[file as usize].now);
                self.truncate(at, end.filter(grows));
            }
            "unlink" => self.unlink(at, None, 0),
            "unlinkat" if !at.has_flag(2, "AT_REMOVEDIR") => self.unlink(at, Some(0), 1),
            "rename" => self.rename(at, (None, 0), (None, 1)),
            "renameat" | "renameat2" => self.rename(at, (Some(0), 1), (Some(2), 3)),
            "fadvise64" | "fadvise64_64" | "posix_fadvise" => {
                let range = (at.number(1).unwrap_or(0), at.number(2).unwrap_or(0));
                if let Some(advice) = file_advice(at.argument(3)) {
                    self.on_file(at, OperationKind::AdviseFile, range, advice);
                }
            }
            "readahead" => {
                let range = (at.number(1).unwrap_or(0), at.number(2).unwrap_or(0));
                self.on_file(at, OperationKind::ReadAhead, range, 0);
            }
            "fstat" | "fstat64" => self.learn_size(at, None, 1),
            "stat" | "stat64" | "lstat" | "lstat64" => self.learn_size(at, Some((None, 0)), 1),
            "newfstatat" | "fstatat64" => self.learn_size(at, Some((Some(0), 1)), 2),
            "statx" => self.learn_size(at, Some((Some(0), 1)), 4),
            _ => self.call_on_memory(at),
        }
    }

    fn call_on_memory(&mut self, at: At<'_>) {
        let range = at.number(0).zip(at.number(1));
        match (at.call.name, range) {
            ("mmap" | "mmap2", _) => self.map(at),
            ("munmap", Some((from, len))) => self.unmap(at, from, len),
            ("mremap", Some((from, len))) => self.remap(at, from, len),
            ("brk", _) => self.set_heap_end(at),
            ("mprotect" | "pkey_mprotect", Some((from, len))) => {
                let (is_written, is_code) = (at.has_flag(2, "PROT_WRITE"), at.has_flag(2, "PROT_EXEC"));
                for range in self.world.space(at.task).within(from, from.saturating_add(len)) {
                    let mapping = &mut self.builder.trace.mappings[range.mapping as usize];
                    mapping.writable |= is_written;
                    mapping.executable |= is_code;
                }
            }
            ("madvise", Some((from, len))) => {
                let Some(advice) = memory_advice(at.argument(2)) else { return };
                for part in self.world.space(at.task).within(from, from.saturating_add(len)) {
                    let range = (part.offset, part.len);
                    self.push(at, OperationKind::AdviseMapping, part.mapping, range, advice);
                }
            }
            ("msync", Some((from, len))) if at.has_flag(2, "MS_SYNC") => {
                for part in self.world.space(at.task).within(from, from.saturating_add(len)) {
                    let TraceMapping { file, shared, .. } =
                        self.builder.trace.mappings[part.mapping as usize];
                    if file != NONE && shared {
                        self.push(at, OperationKind::Fsync, file, (0, 0), 0);
                    }
                }
            }
            _ => {}
        }
    }

    /// A call came back with an error: all that is of interest is what is not there.
    fn failed(&mut self, task: Task, call: &Call<'_>, error: &str) {
        if error != "ENOENT" {
            return;
        }
        let at = At { call, task, at_ns: 0, took_ns: 0, value: 0, path: None };
        let path = match call.name {
            "openat" | "openat2" | "newfstatat" | "fstatat64" | "statx" | "faccessat" | "faccessat2"
            | "unlinkat" => self.path(at, Some(0), 1),
            "open" | "stat" | "lstat" | "access" | "unlink" | "readlink" => self.path(at, None, 0),
            _ => None,
        };
        if let Some(path) = path.filter(|path| is_of_interest(path)) {
            self.missing.insert(path);
        }
    }

    // ---- operations ----

    fn push(&mut self, at: At<'_>, kind: OperationKind, object: u32, range: (u64, u64), detail: u32) {
        self.push_by(at.task.number, at.at_ns, at.took_ns, kind, object, range, detail);
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of a row")]
    fn push_by(
        &mut self,
        task: u32,
        at_ns: u64,
        took_ns: u64,
        kind: OperationKind,
        object: u32,
        (offset, len): (u64, u64),
        detail: u32,
    ) {
        self.builder.push(Done { at_ns, took_ns, task, kind, object, offset, len, detail });
    }

    /// The whole trace, of a log that ends at `end_ns`.
    pub(in crate::import) fn finish(self, end_ns: u64) -> Trace {
        let (mut gaps, has_mappings) = (Vec::new(), !self.builder.trace.mappings.is_empty());
        if has_mappings {
            let source = &self.builder.trace.source;
            gaps.push(format!("which pages of mappings were touched is not in a log of {source}"));
        }
        if !self.has_durations {
            gaps.push(
                "how long calls took is not in the log (`strace -T`): it counts as computing".to_owned(),
            );
        }
        gaps.extend(self.noted.sentences());
        let mut trace = self.builder.finish(end_ns);
        trace.gaps = gaps;
        trace
    }
}

fn file_advice(text: &str) -> Option<u32> {
    Some(match text {
        "POSIX_FADV_NORMAL" => advice::NORMAL,
        "POSIX_FADV_RANDOM" => advice::RANDOM,
        "POSIX_FADV_SEQUENTIAL" => advice::SEQUENTIAL,
        "POSIX_FADV_WILLNEED" => advice::WILL_NEED,
        "POSIX_FADV_DONTNEED" => advice::DONT_NEED,
        "POSIX_FADV_NOREUSE" => advice::NO_REUSE,
        _ => return None,
    })
}

fn memory_advice(text: &str) -> Option<u32> {
    Some(match text {
        "MADV_NORMAL" => advice::NORMAL,
        "MADV_RANDOM" => advice::RANDOM,
        "MADV_SEQUENTIAL" => advice::SEQUENTIAL,
        "MADV_WILLNEED" => advice::WILL_NEED,
        "MADV_DONTNEED" => advice::DONT_NEED,
        "MADV_FREE" => advice::FREE,
        "MADV_HUGEPAGE" => advice::HUGE_PAGE,
        "MADV_NOHUGEPAGE" => advice::NO_HUGE_PAGE,
        "MADV_COLD" => advice::COLD,
        "MADV_PAGEOUT" => advice::PAGE_OUT,
        _ => return None,
    })
}
