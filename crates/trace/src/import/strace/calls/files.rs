//! Calls on files: which file a path or descriptor is, where it is read and written, how large it is.

use super::super::line::{annotation, number, string, unescaped};
use super::super::world::{Descriptor, Opened, Task};
use super::{At, Importer, Size};
use crate::{NONE, OperationKind, open};

/// No call moves more bytes (`MAX_RW_COUNT`).
const MOVED_MAX: u64 = 0x7fff_f000;

impl Importer {
    // ---- paths and files ----

    /// The path in argument `place`, below the directory in argument `below` or the working directory.
    pub(super) fn path(&mut self, at: At<'_>, below: Option<usize>, place: usize) -> Option<String> {
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
    pub(super) fn file(&mut self, path: &str) -> u32 {
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
    pub(super) fn opened(&mut self, at: At<'_>, place: usize) -> Option<usize> {
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

    pub(super) fn new_descriptor(
        &mut self,
        task: Task,
        number: u64,
        opened: Opened,
        until_exec: bool,
    ) -> usize {
        let place = self.world.opened.len();
        self.world.opened.push(opened);
        self.world.set_descriptor(task, number, Descriptor { opened: place, until_exec });
        place
    }

    pub(super) fn file_of(&mut self, at: At<'_>, place: usize) -> Option<u32> {
        let opened = self.opened(at, place)?;
        Some(self.world.opened[opened].file).filter(|&file| file != NONE)
    }

    pub(super) fn on_file(&mut self, at: At<'_>, kind: OperationKind, range: (u64, u64), detail: u32) {
        if let Some(file) = self.file_of(at, 0) {
            self.push(at, kind, file, range, detail);
        }
    }

    pub(super) fn open(&mut self, at: At<'_>) {
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

    pub(super) fn close(&mut self, at: At<'_>, number: Option<u64>) {
        if let Some(file) = number.and_then(|number| self.world.close(at.task, number)) {
            self.push(at, OperationKind::Close, file, (0, 0), 0);
        }
    }

    pub(super) fn dup(&mut self, at: At<'_>, until_exec: bool) {
        let Some(opened) = self.opened(at, 0) else { return };
        if at.number(0) != Some(at.value) {
            self.close(at, Some(at.value));
        }
        self.world.set_descriptor(at.task, at.value, Descriptor { opened, until_exec });
    }

    pub(super) fn seek(&mut self, at: At<'_>) {
        let Some(opened) = self.opened(at, 0) else { return };
        self.world.opened[opened].position = at.value;
        let file = self.world.opened[opened].file;
        if at.has_flag(2, "SEEK_END") && at.argument(1) == "0" && file != NONE {
            self.tell_size(file, at.value);
        }
    }

    // ---- reads and writes ----

    pub(super) fn read(&mut self, at: At<'_>, offset: Option<u64>) {
        let Some(opened) = self.opened(at, 0) else { return };
        self.read_at(at, opened, offset);
    }

    pub(super) fn read_at(&mut self, at: At<'_>, opened: usize, offset: Option<u64>) {
        let Opened { file, position, .. } = self.world.opened[opened];
        let (from, len) =
            (offset.filter(|&offset| offset <= i64::MAX.cast_unsigned()).unwrap_or(position), at.value);
        let Some(end) = end_of(from, len).filter(|_| file != NONE && len <= MOVED_MAX) else { return };
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

    pub(super) fn write(&mut self, at: At<'_>, place: usize, offset: Option<u64>) {
        let Some(opened) = self.opened(at, place) else { return };
        self.write_at(at, opened, offset);
    }

    pub(super) fn write_at(&mut self, at: At<'_>, opened: usize, offset: Option<u64>) {
        let Opened { file, position, appends } = self.world.opened[opened];
        if file == NONE || at.value == 0 || at.value > MOVED_MAX {
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
    pub(super) fn copy(&mut self, at: At<'_>, from: (usize, usize), to: (usize, usize)) {
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

    pub(super) fn truncate(&mut self, at: At<'_>, len: Option<u64>) {
        if let (Some(file), Some(len)) = (self.file_of(at, 0), len.filter(|&len| end_of(0, len).is_some())) {
            self.sizes[file as usize].now = len;
            self.push(at, OperationKind::Truncate, file, (0, len), 0);
        }
    }

    // ---- names and sizes ----

    pub(super) fn unlink(&mut self, at: At<'_>, below: Option<usize>, place: usize) {
        let Some(path) = self.path(at, below, place).filter(|path| is_of_interest(path)) else { return };
        let file = self.file(&path);
        self.builder.forget(&path);
        self.told.remove(&path);
        self.missing.insert(path);
        self.push(at, OperationKind::Unlink, file, (0, 0), 0);
    }

    pub(super) fn rename(&mut self, at: At<'_>, from: (Option<usize>, usize), to: (Option<usize>, usize)) {
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
    pub(super) fn learn_size(&mut self, at: At<'_>, named: Option<(Option<usize>, usize)>, place: usize) {
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
    pub(super) fn tell_size(&mut self, file: u32, size: u64) {
        let known = &mut self.sizes[file as usize];
        let is_first = !known.told && known.now <= self.builder.trace.files[file as usize].size_bytes;
        *known = Size { told: true, now: size };
        if is_first {
            self.builder.at_least(file, size);
        }
    }
}

/// The end of a range, if a file can have it.
pub(super) fn end_of(offset: u64, len: u64) -> Option<u64> {
    offset.checked_add(len).filter(|&end| end <= i64::MAX.cast_unsigned())
}

/// The path behind a descriptor, if it is one.
pub(super) fn annotation_of(argument: &str) -> Option<String> {
    plain(annotation(&argument[argument.find('<')?..])?)
}

/// A path out of its annotation: without its escapes, and the remark that it was removed.
pub(super) fn plain(text: &str) -> Option<String> {
    // With `-yy` a device's numbers stand behind it.
    let text = text.split_once('<').map_or(text, |(path, _)| path);
    let path = unescaped(text.strip_suffix(" (deleted)").unwrap_or(text));
    Some(path)
}

/// Whether a path may be that of a regular file or a disk: no socket, pipe, terminal, or file of a kernel's own.
pub(super) fn is_of_interest(path: &str) -> bool {
    const KERNELS_OWN: [&str; 3] = ["/proc/", "/sys/", "/dev/"];
    const DISKS: [&str; 9] = ["sd", "nvme", "vd", "hd", "xvd", "dm-", "md", "mapper/", "shm/"];
    match path.strip_prefix("/dev/") {
        Some(device) => DISKS.into_iter().any(|disk| device.starts_with(disk)),
        None if path.starts_with('/') => !KERNELS_OWN.into_iter().any(|own| path.starts_with(own)),
        None => !path.is_empty() && !path.contains(":[") && !path.starts_with("anon_inode:"),
    }
}

/// A path without `.`, `..` and empty parts.
pub(super) fn clean(path: &str) -> String {
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
