//! What `perf trace` printed: calls of the whole machine or of one program, without stopping it (perf-trace(1); the
//! lines are those of perf 6.1).
//!
//! ```text
//!      0.311 ( 0.015 ms): cat/354 openat(dfd: CWD, filename: "/etc/hosts", flags: RDONLY) = 4
//!      |       |          |   |   what it was called with, by name: those that are 0 are left out
//!      began   took       who task
//!     34.506 (         ): cat/354 wait4(upid: -1)                                  ...
//!     34.506 ( 1.200 ms): cat/354  ... [continued]: wait4())                       = 355
//!          ? (         ): cat/354  ... [continued]: execve())                      = 0
//! ```
//! Times are in milliseconds. Each call is written anew as `strace` has it and read by [`super::strace`], in order of
//! the times at which calls began. Names of files are texts where perf could look at the program's memory, else
//! addresses: then a file has the name that perf found behind its descriptor in `/proc`, when it printed the line.
//!
//! Said in [`Trace::gaps`]: that, lines that are no calls (page faults, other events), events that were lost. Left out:
//! sizes that `stat` told, and flags of `clone3` and `openat2`, which are not in the log.

use std::collections::BTreeMap;
use std::io::BufRead;

use super::lines::Lines;
use super::strace::{Importer, line};
use super::{ImportError, ImportFormat, found};
use crate::Trace;
use line::{Call, Returned};

/// What is printed where there is only one task.
const NAMELESS: u32 = 0;

/// Of calls that open files.
const NO_NAMES: &str = "files opened by names that are addresses in the log: they are what /proc said of their numbers \
                        when later lines were printed, which may be of a later file";

/// A line, taken apart.
#[derive(Debug)]
struct Line<'a> {
    /// When the call began, in nanoseconds; `None`: before the log.
    began_ns: Option<u64>,
    took_ns: Option<u64>,
    program: &'a str,
    tid: u32,
    what: What<'a>,
}

#[derive(Debug)]
enum What<'a> {
    /// From its name on.
    Call(&'a str),
    /// Without its end; no second part is printed of a call that never returns.
    Begun(&'a str),
    /// The name, and what it returned, from `=` on.
    Continued(&'a str, &'a str),
}

/// Nanoseconds of a decimal number of milliseconds.
fn milliseconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once(['.', ','])?;
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) || fraction.len() > 6 {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<6}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(fraction)
}

fn parse(text: &str) -> Option<Line<'_>> {
    let (began, rest) = text.split_once('(')?;
    let (took, rest) = rest.split_once("): ")?;
    let began_ns = match began.trim() {
        "?" => None,
        began => Some(milliseconds(began)?),
    };
    let took_ns = match took.trim() {
        "" => None,
        took => Some(milliseconds(took.strip_suffix("ms")?.trim_end())?),
    };
    let (program, tid, rest) = task(rest);
    let what = match rest.trim().strip_prefix("... [continued]: ") {
        Some(rest) => {
            let (name, returned) = rest.split_once("())")?;
            What::Continued(name, returned.trim())
        }
        None => {
            let call = rest.trim();
            let name = call.split('(').next()?;
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            if name.is_empty() || name.len() == call.len() || !name.bytes().all(is_name) {
                return None;
            }
            match call.strip_suffix("...") {
                Some(begun) => What::Begun(begun.trim_end()),
                None => What::Call(call),
            }
        }
    };
    Some(Line { began_ns, took_ns, program, tid, what })
}

/// `cat/354 `, `354 ` (`--no-comm`), or nothing where one task is followed. A program's name may have anything in it.
fn task(text: &str) -> (&str, u32, &str) {
    for (place, _) in text.match_indices('/') {
        let behind = &text[place + 1..];
        let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
        if let (Ok(tid), Some(b' ')) = (behind[..digits].parse(), behind.as_bytes().get(digits)) {
            let program = &text[..place];
            // What has no name yet is called by its number.
            return (if program.starts_with(':') { "" } else { program }, tid, &behind[digits..]);
        }
        if text[..place].contains('(') && text[..place].contains(": ") {
            break; // A path among the arguments.
        }
    }
    match text.split_once(' ').map(|(word, rest)| (word.parse(), rest)) {
        Some((Ok(tid), rest)) => ("", tid, rest),
        _ => ("", NAMELESS, text),
    }
}

/// Whether a line is of such a log.
pub(super) fn looks_like(text: &str) -> bool {
    parse(text).is_some_and(|line| match line.what {
        What::Call(call) => line::call(call).is_some(),
        What::Begun(_) | What::Continued(..) => true,
    })
}

/// A call, and whose.
struct Made {
    began_ns: u64,
    took_ns: Option<u64>,
    tid: u32,
    program: String,
    /// From its name on.
    text: String,
    line: u64,
}

struct Log {
    importer: Importer,
    /// Those that ended, in the order of their ends.
    calls: Vec<Made>,
    /// Those that have not ended, by task.
    begun: BTreeMap<u32, Made>,
    /// When the last line was.
    now_ns: u64,
    strange: u64,
}

/// Reads a log.
pub(super) fn read(name: &str, source: impl BufRead) -> Result<Trace, ImportError> {
    let mut lines = Lines::new(source);
    let importer = Importer::new(ImportFormat::PerfTrace, name);
    let mut log = Log { importer, calls: Vec::new(), begun: BTreeMap::new(), now_ns: 0, strange: 0 };
    while let Some(text) = lines.next()? {
        match text.trim() {
            "" => {}
            "Summary of events:" => break, // Of `-S`, behind all calls.
            lost if lost.starts_with("LOST ") => {
                log.importer.noted.add("lines that say that events were lost", lines.number);
            }
            _ if log.line(&text, lines.number) => {}
            _ if !lines.is_whole => {
                log.importer.noted.add("the log ends within a line, which is left out", lines.number);
            }
            _ => {
                log.strange += 1;
                log.importer.noted.add("lines that are no calls and are passed over", lines.number);
            }
        }
    }
    log.finish(lines.number)
}

impl Log {
    /// Takes a line; false if it is none of a call.
    fn line(&mut self, text: &str, number: u64) -> bool {
        let Some(line) = parse(text) else { return false };
        let made = |text: &str, began_ns: u64| Made {
            began_ns,
            took_ns: line.took_ns,
            tid: line.tid,
            program: line.program.to_owned(),
            text: text.to_owned(),
            line: number,
        };
        self.now_ns = self.now_ns.max(line.began_ns.unwrap_or(0));
        match (line.what, line.began_ns) {
            (What::Call(text), Some(began_ns)) if line::call(text).is_some() => {
                self.calls.push(made(text, began_ns));
            }
            (What::Call(_), _) => return false,
            (What::Begun(text), began_ns) => {
                self.begun.insert(line.tid, made(text, began_ns.unwrap_or(self.now_ns)));
            }
            (What::Continued(name, returned), _) => {
                let begun = self.begun.remove(&line.tid);
                match begun.filter(|begun| begun.text.split('(').next() == Some(name)) {
                    Some(begun) => {
                        let text = format!("{}{returned}", begun.text);
                        let program = line.program.to_owned();
                        self.calls.push(Made { text, program, took_ns: line.took_ns, ..begun });
                    }
                    // How a program and a new task begin.
                    None if matches!(name, "execve" | "clone" | "clone3" | "fork" | "vfork") => {}
                    None => self.importer.noted.add("calls that began before the log, left out", number),
                }
            }
        }
        true
    }

    fn finish(mut self, lines: u64) -> Result<Trace, ImportError> {
        let (calls, strange) = (self.calls.len() as u64, self.strange);
        if calls == 0 || strange > calls {
            let found = found(lines, calls);
            return Err(ImportError::Nothing { format: ImportFormat::PerfTrace, found });
        }
        self.calls.sort_by_key(|made| made.began_ns); // Stable. Who makes a task comes before it.
        let first_ns = self.calls[0].began_ns; // With `-T` times are those since the machine was started.
        for made in std::mem::take(&mut self.calls) {
            self.call(&made, made.began_ns - first_ns);
        }
        for begun in self.begun.into_values() {
            self.importer.noted.add("calls that had not ended when the log ends, left out", begun.line);
        }
        self.importer.has_durations = true;
        let trace = self.importer.finish(self.now_ns.saturating_sub(first_ns));
        if trace.operations.is_empty() {
            let found = format!("its calls, {calls} of them, are of other kinds");
            return Err(ImportError::Nothing { format: ImportFormat::PerfTrace, found });
        }
        Ok(trace)
    }

    fn call(&mut self, made: &Made, at_ns: u64) {
        let Some(call) = line::call(&made.text) else {
            return self.importer.noted.add("calls whose parts are no whole, left out", made.line);
        };
        if !self.importer.knows(made.tid) {
            self.importer.add_stranger(made.tid, at_ns);
        }
        if matches!(call.name, "exit" | "exit_group") {
            return self.importer.gone(made.tid, at_ns);
        }
        let arguments: Vec<String> = match PARAMETERS.iter().find(|(names, _)| names.contains(&call.name)) {
            Some((_, parameters)) => {
                (parameters.iter()).map(|&parameter| self.argument(&call, parameter, made.tid)).collect()
            }
            None => Vec::new(),
        };
        match (call.name, call.returned) {
            ("open" | "openat" | "creat", Some(Returned::Number(number, _)))
                if !arguments.iter().any(|argument| argument.starts_with('"')) =>
            {
                self.importer.noted.add(NO_NAMES, made.line);
                return self.importer.forget(made.tid, number);
            }
            ("openat2", Some(Returned::Number(number, _))) => {
                self.importer.noted.add("calls of `openat2`, whose flags are not in the log", made.line);
                return self.importer.forget(made.tid, number);
            }
            ("clone3", Some(Returned::Number(..))) => {
                let what =
                    "calls of `clone3`, whose flags are not in the log: what they make counts as a process";
                self.importer.noted.add(what, made.line);
            }
            _ => {}
        }
        let arguments = arguments.iter().map(String::as_str).collect();
        let call = Call { arguments, took_ns: made.took_ns, ..call };
        self.importer.call(made.tid, &call, at_ns, made.line);
        self.importer.name_task(made.tid, &made.program);
    }

    /// An argument as `strace` has it.
    fn argument(&self, call: &Call<'_>, (key, kind): Parameter, tid: u32) -> String {
        let given = call
            .arguments
            .iter()
            .find_map(|argument| argument.split_once(": ").filter(|given| given.0 == key));
        let text = given.map_or("", |(_, text)| text.trim());
        let flags = |prefix: &str| {
            let named = |word: &str| match word.starts_with(|first: char| first.is_ascii_digit()) {
                true => word.to_owned(),
                false => format!("{prefix}{}", word.strip_prefix(prefix).unwrap_or(word)),
            };
            text.split('|').map(|word| named(word.trim())).collect::<Vec<_>>().join("|")
        };
        match kind {
            Kind::Text if text.is_empty() => "NULL".to_owned(),
            Kind::Number if text.is_empty() => "0".to_owned(),
            Kind::Text | Kind::Number => text.to_owned(),
            // Of a descriptor whose file is known that counts, and not what /proc said later.
            Kind::Descriptor => match text.split('<').next().unwrap_or_default() {
                "" => "0".to_owned(),
                "CWD" => "AT_FDCWD".to_owned(),
                number if number.parse().is_ok_and(|number| self.importer.has_file(tid, number)) => {
                    number.to_owned()
                }
                _ => text.to_owned(),
            },
            Kind::Flags("O_") if !["RDONLY", "WRONLY", "RDWR"].into_iter().any(|way| text.contains(way)) => {
                format!("O_RDONLY|{}", flags("O_"))
            }
            Kind::Flags(prefix) => flags(prefix),
            Kind::Advice => {
                let names = ["NORMAL", "RANDOM", "SEQUENTIAL", "WILLNEED", "DONTNEED", "NOREUSE"];
                let number = if text.is_empty() { Ok(0) } else { text.parse::<usize>() };
                let name = number.ok().and_then(|number| names.get(number)).copied();
                name.map_or_else(|| flags("POSIX_FADV_"), |name| format!("POSIX_FADV_{name}"))
            }
        }
    }
}

/// How a value is printed.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Number,
    Text,
    Descriptor,
    /// Without what their names begin with.
    Flags(&'static str),
    /// Of `fadvise64`: a number.
    Advice,
}

/// What perf calls it, and how it is printed.
type Parameter = (&'static str, Kind);

const FD: Parameter = ("fd", Kind::Descriptor);
const BUFFER: Parameter = ("buf", Kind::Text);
const COUNT: Parameter = ("count", Kind::Number);
const OFFSET: Parameter = ("offset", Kind::Number);

/// The parameters of calls in the order of their manual pages, by the names that tracepoints of system calls have.
#[rustfmt::skip]
const PARAMETERS: &[(&[&str], &[Parameter])] = &[
    (&["open"], &[("filename", Kind::Text), ("flags", Kind::Flags("O_"))]),
    (&["openat"], &[("dfd", Kind::Descriptor), ("filename", Kind::Text), ("flags", Kind::Flags("O_"))]),
    (&["creat"], &[("pathname", Kind::Text)]),
    (&["read", "write"], &[FD, BUFFER, COUNT]),
    (&["readv", "writev"], &[FD, ("vec", Kind::Text), ("vlen", Kind::Number)]),
    (&["pread64", "pwrite64"], &[FD, BUFFER, COUNT, ("pos", Kind::Number)]),
    (&["preadv", "pwritev", "preadv2", "pwritev2"],
        &[FD, ("vec", Kind::Text), ("vlen", Kind::Number), ("pos_l", Kind::Number)]),
    (&["sendfile", "sendfile64"], &[("out_fd", Kind::Descriptor), ("in_fd", Kind::Descriptor)]),
    (&["copy_file_range", "splice"], &[("fd_in", Kind::Descriptor), ("", Kind::Text), ("fd_out", Kind::Descriptor)]),
    (&["close", "fsync", "fdatasync", "syncfs", "fchdir", "sync_file_range"], &[FD]),
    (&["close_range"], &[FD, ("max_fd", Kind::Number)]),
    (&["dup"], &[("fildes", Kind::Descriptor)]),
    (&["dup2", "dup3"], &[("oldfd", Kind::Descriptor), ("newfd", Kind::Descriptor), ("flags", Kind::Flags("O_"))]),
    (&["fcntl"], &[FD, ("cmd", Kind::Flags("F_"))]),
    (&["lseek"], &[FD, OFFSET, ("whence", Kind::Flags("SEEK_"))]),
    (&["ftruncate"], &[FD, ("length", Kind::Number)]),
    (&["truncate"], &[("path", Kind::Text), ("length", Kind::Number)]),
    (&["fallocate"], &[FD, ("mode", Kind::Number), OFFSET, ("len", Kind::Number)]),
    (&["unlink"], &[("pathname", Kind::Text)]),
    (&["unlinkat"], &[("dfd", Kind::Descriptor), ("pathname", Kind::Text), ("flag", Kind::Flags("AT_"))]),
    (&["rename"], &[("oldname", Kind::Text), ("newname", Kind::Text)]),
    (&["renameat", "renameat2"], &[("olddfd", Kind::Descriptor), ("oldname", Kind::Text),
        ("newdfd", Kind::Descriptor), ("newname", Kind::Text)]),
    (&["fadvise64"], &[FD, OFFSET, ("len", Kind::Number), ("advice", Kind::Advice)]),
    (&["readahead"], &[FD, OFFSET, COUNT]),
    (&["mmap"], &[("addr", Kind::Text), ("len", Kind::Number), ("prot", Kind::Flags("PROT_")),
        ("flags", Kind::Flags("MAP_")), FD, ("off", Kind::Number)]),
    (&["munmap"], &[("addr", Kind::Number), ("len", Kind::Number)]),
    (&["mremap"], &[("addr", Kind::Number), ("old_len", Kind::Number), ("new_len", Kind::Number)]),
    (&["mprotect"], &[("start", Kind::Number), ("len", Kind::Number), ("prot", Kind::Flags("PROT_"))]),
    (&["madvise"], &[("start", Kind::Number), ("len_in", Kind::Number), ("behavior", Kind::Flags("MADV_"))]),
    (&["msync"], &[("start", Kind::Number), ("len", Kind::Number), ("flags", Kind::Flags("MS_"))]),
    (&["execve"], &[("filename", Kind::Text)]),
    (&["chdir"], &[("filename", Kind::Text)]),
    (&["clone"], &[("clone_flags", Kind::Flags("CLONE_"))]),
    (&["newfstatat", "faccessat", "faccessat2", "statx"], &[("dfd", Kind::Descriptor), ("filename", Kind::Text)]),
    (&["access", "stat", "lstat"], &[("filename", Kind::Text)]),
];
