//! What all importers share: a trace that grows, with its tasks and files by what a log calls them.

use std::collections::BTreeMap;

use crate::{NONE, Operation, OperationKind, Trace, TraceFile, TraceTask};

/// A trace while its log is read.
pub(super) struct Builder {
    pub(super) trace: Trace,
    /// When each task's last operation ended.
    ended_ns: Vec<u64>,
    /// Files by the name that they have now.
    by_path: BTreeMap<String, u32>,
}

/// An operation before it is known what its task did before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Done {
    pub(super) at_ns: u64,
    pub(super) took_ns: u64,
    pub(super) task: u32,
    pub(super) kind: OperationKind,
    pub(super) object: u32,
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) detail: u32,
}

impl Builder {
    pub(super) fn new(source: &str, command: &str) -> Self {
        let trace = Trace { source: source.to_owned(), command: command.to_owned(), ..Trace::default() };
        Self { trace, ended_ns: Vec::new(), by_path: BTreeMap::new() }
    }

    /// A new task, which begins at `at_ns`; without a `process` it is the first of its own.
    pub(super) fn task(&mut self, tid: u32, parent: u32, process: Option<u32>, at_ns: u64) -> u32 {
        let number = number(self.trace.tasks.len());
        let process = process.unwrap_or(number);
        self.trace.tasks.push(TraceTask { tid, parent, process, name: String::new() });
        self.ended_ns.push(at_ns);
        number
    }

    /// The file that has this name now, if any.
    pub(super) fn known(&self, path: &str) -> Option<u32> {
        self.by_path.get(path).copied()
    }

    /// The file that has this name now, or a new one; whether it is new.
    pub(super) fn file(&mut self, path: &str) -> (u32, bool) {
        if let Some(file) = self.known(path) {
            return (file, false);
        }
        let file = number(self.trace.files.len());
        let in_memory = path.starts_with("/dev/shm/") || path.starts_with("/memfd:");
        self.trace.files.push(TraceFile { path: path.to_owned(), size_bytes: 0, in_memory });
        self.by_path.insert(path.to_owned(), file);
        (file, true)
    }

    /// No file has this name any more.
    pub(super) fn forget(&mut self, path: &str) -> Option<u32> {
        self.by_path.remove(path)
    }

    /// A file has this name from now on.
    pub(super) fn call(&mut self, path: &str, file: u32) {
        self.by_path.insert(path.to_owned(), file);
    }

    pub(super) fn push(&mut self, done: Done) {
        let Done { at_ns, took_ns, task, kind, object, offset, len, detail } = done;
        let think_ns = at_ns.saturating_sub(self.ended_ns[task as usize]);
        self.ended_ns[task as usize] = at_ns.saturating_add(took_ns);
        self.trace.operations.push(Operation {
            at_ns,
            think_ns,
            took_ns,
            task,
            kind,
            object,
            offset,
            len,
            detail,
        });
    }

    /// A file has at least so many bytes: somebody read up to there, or the log says so.
    pub(super) fn at_least(&mut self, file: u32, end: u64) {
        let size = &mut self.trace.files[file as usize].size_bytes;
        *size = end.max(*size);
    }

    /// The whole trace: operations in order of time, up to the last one's end or `end_ns`.
    pub(super) fn finish(mut self, end_ns: u64) -> Trace {
        self.trace.operations.sort_by_key(|operation| operation.at_ns); // Stable.
        let last = self.ended_ns.iter().copied().max().unwrap_or(0);
        self.trace.length_ns = last.max(end_ns);
        self.trace
    }
}

fn number(count: usize) -> u32 {
    let number = u32::try_from(count).expect("a table of a trace has fewer than 2^32 rows");
    assert!(number != NONE, "a table of a trace has fewer than 2^32 rows");
    number
}

/// A part of a log that is counted, with the line where it was seen first, for a sentence in [`Trace::gaps`].
#[derive(Debug, Default)]
pub(super) struct Noted(BTreeMap<String, (u64, u64)>);

impl Noted {
    /// One more of those that `what` names, on `line`.
    pub(super) fn add(&mut self, what: &str, line: u64) {
        if let Some(noted) = self.0.get_mut(what) {
            noted.0 += 1;
        } else {
            self.0.insert(what.to_owned(), (1, line));
        }
    }

    /// A sentence for each.
    pub(super) fn sentences(self) -> impl Iterator<Item = String> {
        self.0.into_iter().map(|(what, (count, line))| match count {
            1 => format!("{what}: 1, on line {line}"),
            _ => format!("{what}: {count}, the first on line {line}"),
        })
    }
}

/// Nanoseconds of a decimal number of seconds, with a point or, from another locale, a comma.
pub(super) fn seconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once(['.', ',']).unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}
