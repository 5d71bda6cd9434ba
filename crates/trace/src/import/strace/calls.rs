//! Calls of a log to operations.

use std::collections::{BTreeMap, BTreeSet};

use super::super::builder::{Builder, Done, Noted};
use super::line::{Call, Returned, annotation, number, string};
use super::world::{Descriptor, Opened, Range, Shares, Task, World};
use crate::{NONE, OperationKind, Trace, TraceMapping, advice, open};

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
pub(super) struct Importer {
    builder: Builder,
    pub(super) noted: Noted,
    world: World,
    tasks: BTreeMap<u32, Task>,
    sizes: Vec<Size>,
    /// Sizes that a `stat` of a path told before it was opened.
    told: BTreeMap<String, u64>,
    /// Paths that were not there when somebody looked.
    missing: BTreeSet<String>,
    has_command: bool,
    /// Whether any call says how long it took (`-T`).
    pub(super) has_durations: bool,
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
    pub(super) fn new(name: &str) -> Self {
        Self {
            builder: Builder::new(super::ImportFormat::Strace.name(), name),
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

    pub(super) fn knows(&self, tid: u32) -> bool {
        self.tasks.contains_key(&tid)
    }

    /// The task that has not ended, if there is only one.
    pub(super) fn only_task(&self) -> Option<u32> {
        self.tasks.keys().next().copied().filter(|_| self.tasks.len() == 1)
    }

    /// A task that nobody in the log made.
    pub(super) fn add_stranger(&mut self, tid: u32, at_ns: u64) {
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

    pub(super) fn gone(&mut self, tid: u32, at_ns: u64) {
        if let Some(task) = self.tasks.remove(&tid) {
            self.push_by(task.number, at_ns, 0, OperationKind::Exit, NONE, (0, 0), 0);
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
        if !self.has_command {
            self.has_command = true;
            let words = at.argument(place + 1);
            let words = words.trim_start_matches('[').trim_end_matches(']').split(", ");
            let words: Vec<String> = words.filter_map(string).collect();
            self.builder.trace.command = if words.is_empty() { path } else { words.join(" ") };
        }
    }

    // ---- all calls ----

    /// A call has ended. Returns the thread ID of a task that it made.
    pub(super) fn call(&mut self, tid: u32, call: &Call<'_>, at_ns: u64, line: u64) -> Option<u32> {
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

    // ---- paths and files ----

    /// The path in argument `place`, below the directory in argument `below` or the working directory.
    fn path(&mut self, at: At<'_>, below: Option<usize>, place: usize) -> Option<String> {
        let name = string(at.argument(place))?;
        if name.starts_with('/') {
            return Some(clean(&name));
        }
        let directory = below.and_then(|below| annotation_of(at.argument(below)));
        if directory.is_some() && below.is_some_and(|below| at.argument(below).starts_with("AT_FDCWD")) {
            self.world.directory(at.task).clone_from(&directory);
        }
        let directory = directory.or_else(|| self.world.directory(at.task).clone());
        Some(match directory {
            Some(directory) => clean(&format!("{directory}/{name}")),
            None => {
                self.noted.add("paths from a directory that is not in the log", self.line);
                name
            }
        })
    }

    /// The file of this path, with what is known of its size.
    fn file(&mut self, path: &str) -> u32 {
        let (file, is_new) = self.builder.file(path);
        if is_new {
            let told = self.told.get(path).copied();
            self.builder.at_least(file, told.unwrap_or(0));
            self.sizes.push(Size { told: told.is_some(), now: told.unwrap_or(0) });
        }
        file
    }

    /// The open file that the descriptor in argument `place` is of; if the log does not say when it was opened,
    /// it was before, and its position is taken as 0.
    fn opened(&mut self, at: At<'_>, place: usize) -> Option<usize> {
        let number = at.number(place)?;
        let path = annotation_of(at.argument(place));
        let known = self.world.descriptor(at.task, number);
        let Some(path) = path else {
            if known.is_none() {
                self.noted.add("calls on descriptors that were opened before the log, left out", self.line);
            }
            return known.map(|known| known.opened);
        };
        if let Some(known) = known {
            let file = self.world.opened[known.opened].file;
            // It may have been closed by a call that is not read here, and the number be of something else now.
            let is_other = self.builder.known(&path).is_some_and(|other| other != file);
            if is_of_interest(&path) && !is_other {
                return Some(known.opened);
            }
        }
        let file = if is_of_interest(&path) { self.file(&path) } else { NONE };
        Some(self.new_descriptor(at.task, number, Opened { file, position: 0, appends: false }, false))
    }

    fn new_descriptor(&mut self, task: Task, number: u64, opened: Opened, until_exec: bool) -> usize {
        let place = self.world.opened.len();
        self.world.opened.push(opened);
        self.world.set_descriptor(task, number, Descriptor { opened: place, until_exec });
        place
    }

    fn file_of(&mut self, at: At<'_>, place: usize) -> Option<u32> {
        let opened = self.opened(at, place)?;
        Some(self.world.opened[opened].file).filter(|&file| file != NONE)
    }

    fn on_file(&mut self, at: At<'_>, kind: OperationKind, range: (u64, u64), detail: u32) {
        if let Some(file) = self.file_of(at, 0) {
            self.push(at, kind, file, range, detail);
        }
    }

    fn open(&mut self, at: At<'_>) {
        let (below, place) = if at.call.name.starts_with("openat") { (Some(0), 1) } else { (None, 0) };
        let asked = self.path(at, below, place);
        // Behind a symbolic link it has another name.
        let path = at.path.and_then(plain).or(asked.clone());
        let flags = if at.call.name == "creat" { "O_CREAT|O_WRONLY|O_TRUNC" } else { at.argument(place + 1) };
        let flags = flags.rsplit("flags=").next().unwrap_or_default();
        let has = |flag: &str| flags.split(['|', ',', '}']).any(|word| word.trim() == flag);
        let until_exec = has("O_CLOEXEC");
        let Some(path) = path.filter(|path| is_of_interest(path) && !has("O_DIRECTORY") && !has("O_PATH"))
        else {
            let none = Opened { file: NONE, position: 0, appends: false };
            self.new_descriptor(at.task, at.value, none, until_exec);
            return;
        };
        let is_first = self.builder.known(&path).is_none();
        let was_missing = self.missing.remove(&path) | asked.is_some_and(|asked| self.missing.remove(&asked));
        let is_made = has("O_CREAT") && (has("O_EXCL") || was_missing || (is_first && has("O_TRUNC")));
        if is_made {
            self.told.remove(&path);
        }
        let file = self.file(&path);
        if is_made || has("O_TRUNC") {
            self.sizes[file as usize] = Size { told: is_made || self.sizes[file as usize].told, now: 0 };
        }
        let opened = Opened { file, position: 0, appends: has("O_APPEND") };
        self.new_descriptor(at.task, at.value, opened, until_exec);
        let bits = [
            (has("O_RDONLY") || has("O_RDWR"), open::READ),
            (has("O_WRONLY") || has("O_RDWR"), open::WRITE),
            (is_made, open::CREATED),
            (has("O_TRUNC") && !is_made, open::TRUNCATED),
            (has("O_DIRECT"), open::DIRECT),
            (has("O_SYNC") || has("O_DSYNC"), open::SYNC),
        ];
        let detail = bits.into_iter().filter(|&(is_set, _)| is_set).map(|(_, bit)| bit).sum();
        self.push(at, OperationKind::Open, file, (0, 0), detail);
    }

    fn close(&mut self, at: At<'_>, number: Option<u64>) {
        if let Some(file) = number.and_then(|number| self.world.close(at.task, number)) {
            self.push(at, OperationKind::Close, file, (0, 0), 0);
        }
    }

    fn dup(&mut self, at: At<'_>, until_exec: bool) {
        let Some(opened) = self.opened(at, 0) else { return };
        if at.number(0) != Some(at.value) {
            self.close(at, Some(at.value));
        }
        self.world.set_descriptor(at.task, at.value, Descriptor { opened, until_exec });
    }

    fn seek(&mut self, at: At<'_>) {
        let Some(opened) = self.opened(at, 0) else { return };
        self.world.opened[opened].position = at.value;
        let file = self.world.opened[opened].file;
        if at.has_flag(2, "SEEK_END") && at.argument(1) == "0" && file != NONE {
            self.tell_size(file, at.value);
        }
    }

    // ---- reads and writes ----

    fn read(&mut self, at: At<'_>, offset: Option<u64>) {
        let Some(opened) = self.opened(at, 0) else { return };
        self.read_at(at, opened, offset);
    }

    fn read_at(&mut self, at: At<'_>, opened: usize, offset: Option<u64>) {
        let Opened { file, position, .. } = self.world.opened[opened];
        let (from, len) =
            (offset.filter(|&offset| offset <= i64::MAX.cast_unsigned()).unwrap_or(position), at.value);
        let Some(end) = end_of(from, len).filter(|_| file != NONE) else { return };
        if from == position && offset.is_none() {
            self.world.opened[opened].position = end;
        }
        let size = &mut self.sizes[file as usize];
        if end > size.now {
            size.now = end;
            if !size.told {
                self.builder.at_least(file, end);
            }
        }
        self.push(at, OperationKind::Read, file, (from, len), 0);
    }

    fn write(&mut self, at: At<'_>, place: usize, offset: Option<u64>) {
        let Some(opened) = self.opened(at, place) else { return };
        self.write_at(at, opened, offset);
    }

    fn write_at(&mut self, at: At<'_>, opened: usize, offset: Option<u64>) {
        let Opened { file, position, appends } = self.world.opened[opened];
        if file == NONE || at.value == 0 {
            return;
        }
        let there = if appends { self.sizes[file as usize].now } else { position };
        let from = offset.filter(|&offset| offset <= i64::MAX.cast_unsigned()).unwrap_or(there);
        let Some(end) = end_of(from, at.value) else { return };
        if offset.is_none() {
            self.world.opened[opened].position = end;
        }
        let size = &mut self.sizes[file as usize];
        size.now = size.now.max(end);
        self.push(at, OperationKind::Write, file, (from, at.value), 0);
    }

    /// From the descriptor in one argument to that in another, each with the place of its offset.
    fn copy(&mut self, at: At<'_>, from: (usize, usize), to: (usize, usize)) {
        let offset = |place: usize| {
            let text = at.argument(place).trim_start_matches('[');
            number(text.split([' ', ']']).next().unwrap_or_default())
        };
        if at.value == 0 {
            return;
        }
        let source = self.opened(at, from.0);
        let target = self.opened(at, to.0);
        if let Some(opened) = source {
            self.read_at(at, opened, offset(from.1));
        }
        if let Some(opened) = target {
            // All the time is the read's.
            self.write_at(
                At { took_ns: 0, at_ns: at.at_ns.saturating_add(at.took_ns), ..at },
                opened,
                offset(to.1),
            );
        }
    }

    fn truncate(&mut self, at: At<'_>, len: Option<u64>) {
        if let (Some(file), Some(len)) = (self.file_of(at, 0), len.filter(|&len| end_of(0, len).is_some())) {
            self.sizes[file as usize].now = len;
            self.push(at, OperationKind::Truncate, file, (0, len), 0);
        }
    }

    // ---- names and sizes ----

    fn unlink(&mut self, at: At<'_>, below: Option<usize>, place: usize) {
        let Some(path) = self.path(at, below, place).filter(|path| is_of_interest(path)) else { return };
        let file = self.file(&path);
        self.builder.forget(&path);
        self.told.remove(&path);
        self.missing.insert(path);
        self.push(at, OperationKind::Unlink, file, (0, 0), 0);
    }

    fn rename(&mut self, at: At<'_>, from: (Option<usize>, usize), to: (Option<usize>, usize)) {
        let (Some(from), Some(to)) = (self.path(at, from.0, from.1), self.path(at, to.0, to.1)) else {
            return;
        };
        if !is_of_interest(&from) || !is_of_interest(&to) || from == to {
            return;
        }
        let file = self.file(&from);
        let replaced = self.builder.forget(&to).unwrap_or(NONE);
        self.builder.forget(&from);
        self.builder.call(&to, file);
        let told = self.told.remove(&from);
        self.told.remove(&to);
        self.told.extend(told.map(|told| (to.clone(), told)));
        self.missing.remove(&to);
        self.missing.insert(from);
        self.push(at, OperationKind::Rename, file, (0, 0), replaced);
    }

    /// `{st_mode=S_IFREG|0644, st_size=12, ...}` in argument `place`, of a path or of the descriptor in the first.
    fn learn_size(&mut self, at: At<'_>, named: Option<(Option<usize>, usize)>, place: usize) {
        let of = at.argument(place);
        if !of.contains("S_IFREG") {
            return;
        }
        let size = of.split_once("_size=").map(|(_, rest)| rest.split([',', '}']).next().unwrap_or_default());
        let Some(size) = size.and_then(number).filter(|&size| end_of(0, size).is_some()) else { return };
        let named = named.filter(|&(_, place)| at.argument(place) != "\"\"");
        let Some((below, place)) = named else {
            if let Some(file) = self.file_of(at, 0) {
                self.tell_size(file, size);
            }
            return;
        };
        let Some(path) = self.path(at, below, place).filter(|path| is_of_interest(path)) else { return };
        match self.builder.known(&path) {
            Some(file) => self.tell_size(file, size),
            None => drop(self.told.insert(path, size)),
        }
    }

    /// The log says how large a file is. What it was at first is known if nobody wrote to it before.
    fn tell_size(&mut self, file: u32, size: u64) {
        let known = &mut self.sizes[file as usize];
        let is_first = !known.told && known.now <= self.builder.trace.files[file as usize].size_bytes;
        *known = Size { told: true, now: size };
        if is_first {
            self.builder.at_least(file, size);
        }
    }

    // ---- memory ----

    fn map(&mut self, at: At<'_>) {
        let is_anonymous = at.has_flag(3, "MAP_ANONYMOUS") || at.has_flag(3, "MAP_ANON");
        let file = if is_anonymous { NONE } else { self.file_of(at, 4).unwrap_or(NONE) };
        let (Some(len), offset) = (at.number(1), at.number(5).unwrap_or(0)) else { return };
        let Some(end) = end_of(offset, len) else { return };
        if file == NONE && !is_anonymous {
            return; // A device or what else is none of its own.
        }
        if file != NONE && !self.sizes[file as usize].told {
            self.builder.at_least(file, end);
        }
        let shared = at.argument(3).contains("MAP_SHARED");
        let (writable, executable) = (at.has_flag(2, "PROT_WRITE"), at.has_flag(2, "PROT_EXEC"));
        self.unmap(at, at.value, len);
        let offset = if file == NONE { 0 } else { offset };
        self.add_mapping(
            at,
            at.value,
            TraceMapping { file, file_offset: offset, len, shared, writable, executable },
        );
    }

    fn add_mapping(&mut self, at: At<'_>, address: u64, mapping: TraceMapping) {
        let number = u32::try_from(self.builder.trace.mappings.len()).expect("fewer than 2^32 mappings");
        let len = mapping.len;
        self.builder.trace.mappings.push(mapping);
        self.world.space(at.task).put(address, Range { len, mapping: number, offset: 0 });
        self.push(at, OperationKind::Map, number, (0, len), 0);
    }

    fn unmap(&mut self, at: At<'_>, from: u64, len: u64) {
        let end = from.saturating_add(len.next_multiple_of(4096));
        for part in self.world.space(at.task).cut(from, end) {
            self.push(at, OperationKind::Unmap, part.mapping, (part.offset, part.len), 0);
        }
    }

    fn remap(&mut self, at: At<'_>, from: u64, old_len: u64) {
        let Some(new_len) = at.number(2) else { return };
        let parts = self.world.space(at.task).within(from, from.saturating_add(old_len));
        let Some(&part) = parts.first() else { return };
        let of = self.builder.trace.mappings[part.mapping as usize];
        let begin = of.file_offset + if of.file == NONE { 0 } else { part.offset };
        if at.value == from && new_len <= old_len {
            self.unmap(at, from + new_len, old_len - new_len);
        } else if at.value == from {
            let file_offset = begin + if of.file == NONE { 0 } else { old_len };
            let grown = TraceMapping { file_offset, len: new_len - old_len, ..of };
            self.add_mapping(at, from + old_len, grown);
        } else {
            self.unmap(at, from, old_len);
            self.unmap(at, at.value, new_len);
            self.add_mapping(at, at.value, TraceMapping { file_offset: begin, len: new_len, ..of });
        }
    }

    fn set_heap_end(&mut self, at: At<'_>) {
        let before = self.world.space(at.task).heap_end.replace(at.value);
        match before {
            Some(before) if at.value > before => {
                let heap = TraceMapping {
                    file: NONE,
                    len: at.value - before,
                    writable: true,
                    ..TraceMapping::default()
                };
                self.add_mapping(at, before, heap);
            }
            Some(before) if at.value < before => self.unmap(at, at.value, before - at.value),
            _ => {}
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
    pub(super) fn finish(self, end_ns: u64) -> Trace {
        let (mut gaps, has_mappings) = (Vec::new(), !self.builder.trace.mappings.is_empty());
        if has_mappings {
            gaps.push("which pages of mappings were touched is not in a log of strace".to_owned());
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

/// The end of a range, if a file can have it.
fn end_of(offset: u64, len: u64) -> Option<u64> {
    offset.checked_add(len).filter(|&end| end <= i64::MAX.cast_unsigned())
}

/// The path behind a descriptor, if it is one.
fn annotation_of(argument: &str) -> Option<String> {
    plain(annotation(&argument[argument.find('<')?..])?)
}

/// A path out of its annotation: without its escapes, and the remark that it was removed.
fn plain(text: &str) -> Option<String> {
    // With `-yy` a device's numbers stand behind it.
    let text = text.split_once('<').map_or(text, |(path, _)| path);
    let path = super::line::unescaped(text.strip_suffix(" (deleted)").unwrap_or(text));
    Some(path)
}

/// Whether a path may be that of a regular file or a disk: no socket, pipe, terminal, or file of a kernel's own.
fn is_of_interest(path: &str) -> bool {
    const KERNELS_OWN: [&str; 3] = ["/proc/", "/sys/", "/dev/"];
    const DISKS: [&str; 9] = ["sd", "nvme", "vd", "hd", "xvd", "dm-", "md", "mapper/", "shm/"];
    match path.strip_prefix("/dev/") {
        Some(device) => DISKS.into_iter().any(|disk| device.starts_with(disk)),
        None if path.starts_with('/') => !KERNELS_OWN.into_iter().any(|own| path.starts_with(own)),
        None => !path.is_empty() && !path.contains(":[") && !path.starts_with("anon_inode:"),
    }
}

/// A path without `.`, `..` and empty parts.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
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
