//! What `strace -f -tt -y` wrote: the way from a machine where nothing may be installed.
//!
//! Read are reads and writes of all kinds, what opens, closes, maps, advises, cuts, renames and removes, and what
//! makes and ends tasks; [`calls`] has the list. With `-y` paths come from descriptors; without, descriptors are
//! followed from their opening on. A call that other tasks' lines interrupt (`<unfinished ...>`) begins where its first
//! part stands. Its time is that of `-T`, else that between its parts, else 0: then it counts as computing.
//!
//! What is not in such a log is said in [`Trace::gaps`]: which pages of mappings were touched, what calls on rings
//! (`io_uring`) and of `io_submit` did, lines that are no calls, calls that had not ended at the end of the log.
//! Left out: what else a machine did with a file meanwhile; mounts, so that one file has one name.
//!
//! Next: [`line`] takes lines apart, [`world`] has descriptors and memory, [`calls`] makes operations.

mod calls;
pub(super) mod line;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

pub(super) use self::calls::Importer;
use self::line::{Call, Stamp, What};
use super::lines::Lines;
use super::{ImportError, ImportFormat, found};
use crate::Trace;

/// What a task is called that has no number in the log.
const NAMELESS: u32 = 0;

const DAY_NS: u64 = 24 * 3600 * 1_000_000_000;

/// Whether a line is of such a log.
pub(super) fn looks_like(line: &str) -> bool {
    line::parse(line).is_some_and(|line| match line.what {
        What::Call(text) => line::call(text).is_some(),
        What::Unfinished(_) | What::Resumed(..) => true,
        _ => false,
    })
}

/// A call that has begun and not ended.
#[derive(Debug)]
struct Begun {
    text: String,
    at_ns: u64,
    line: u64,
}

/// What happened to a task, kept until it is known who made it.
#[derive(Debug)]
enum Kept {
    Call { text: String, at_ns: u64, ended_ns: u64, is_split: bool, line: u64 },
    Gone { at_ns: u64 },
}

impl Kept {
    fn is_readable(&self) -> bool {
        match self {
            Self::Call { text, .. } => line::call(text).is_some(),
            Self::Gone { .. } => true,
        }
    }
}

/// The lines of a log on their way to calls.
struct Reader {
    importer: Importer,
    clock: Clock,
    begun: BTreeMap<u32, Begun>,
    /// Tasks whose lines came before the end of the call that made them.
    early: BTreeMap<u32, Vec<Kept>>,
    /// Tasks that `strace` said it follows.
    attached: BTreeSet<u32>,
    calls: u64,
    strange: u64,
}

/// Reads a log.
pub(super) fn read(name: &str, source: impl BufRead) -> Result<Trace, ImportError> {
    let mut lines = Lines::new(source);
    let mut reader = Reader {
        importer: Importer::new(ImportFormat::Strace, name),
        clock: Clock::default(),
        begun: BTreeMap::new(),
        early: BTreeMap::new(),
        attached: BTreeSet::new(),
        calls: 0,
        strange: 0,
    };
    let mut broken = String::new();
    while let Some(text) = lines.next()? {
        // On a terminal a remark may come in the middle of a line, which goes on behind it.
        let (text, remark) = remark(&text);
        if let Some(attached) = remark {
            reader.attached.extend(attached);
            broken.push_str(text);
            continue;
        }
        let text = std::mem::take(&mut broken) + text;
        if text.trim().is_empty() {
            continue;
        }
        if !reader.line(&text, lines.number) {
            if lines.is_whole {
                reader.strange += 1;
                reader.importer.noted.add("lines that are no calls and are passed over", lines.number);
            } else {
                reader.importer.noted.add("the log ends within a line, which is left out", lines.number);
            }
        }
    }
    reader.finish(lines.number)
}

/// A line without what `strace` itself says at its end, and whether it says something: perhaps which task it follows
/// from now on.
fn remark(line: &str) -> (&str, Option<Option<u32>>) {
    let Some((before, said)) = line.split_once("strace: ") else { return (line, None) };
    let process = said.strip_prefix("Process ").and_then(|said| said.split_once(' '));
    match process {
        Some((tid, "attached")) => (before, Some(tid.parse().ok())),
        Some((_, "detached")) => (before, Some(None)),
        _ if said.starts_with("[ Process PID=") => (before, Some(None)),
        _ => (line, None),
    }
}

impl Reader {
    /// Takes a line; false if it is none of `strace`, or its call has no end.
    fn line(&mut self, text: &str, number: u64) -> bool {
        let Some(line) = line::parse(text) else { return false };
        let at_ns = self.clock.now(line.stamp);
        if self.clock.went_back {
            self.importer.noted.add("times that go back are taken as those before", number);
        }
        let tid = self.who(line.tid, at_ns);
        match line.what {
            What::Call(text) => self.ended(
                tid,
                Kept::Call { text: text.to_owned(), at_ns, ended_ns: at_ns, is_split: false, line: number },
            ),
            What::Unfinished(text) => {
                self.begun.insert(tid, Begun { text: text.to_owned(), at_ns, line: number });
                true
            }
            What::Resumed(name, rest) => {
                let Some(begun) = self.begun.remove(&tid) else {
                    self.importer.noted.add("calls that began before the log, left out", number);
                    return true;
                };
                if !begun.text.starts_with(name) {
                    return false;
                }
                let text = format!("{}{rest}", begun.text);
                let Begun { at_ns: began_ns, line, .. } = begun;
                self.ended(tid, Kept::Call { text, at_ns: began_ns, ended_ns: at_ns, is_split: true, line })
            }
            What::Gone => {
                self.begun.remove(&tid);
                self.ended(tid, Kept::Gone { at_ns })
            }
            What::Superseded(by) => {
                // The thread that begins a program takes the number of its process.
                self.importer.rename_task(by, tid, at_ns);
                if let Some(begun) = self.begun.remove(&by) {
                    self.begun.insert(tid, begun);
                }
                true
            }
            What::Else => true,
        }
    }

    /// Whose line it is. On a terminal the only task has no number, and gets one when there is another.
    fn who(&mut self, tid: Option<u32>, at_ns: u64) -> u32 {
        let Some(tid) = tid else { return self.importer.only_task().unwrap_or(NAMELESS) };
        let is_known =
            self.importer.knows(tid) || self.early.contains_key(&tid) || self.attached.contains(&tid);
        if !is_known && self.importer.knows(NAMELESS) {
            self.importer.rename_task(NAMELESS, tid, at_ns);
            if let Some(begun) = self.begun.remove(&NAMELESS) {
                self.begun.insert(tid, begun);
            }
        }
        tid
    }

    /// Something is complete: it is told to the importer, or kept until its task's maker is known.
    fn ended(&mut self, tid: u32, kept: Kept) -> bool {
        let is_early = self.early.contains_key(&tid);
        if (is_early || !self.importer.knows(tid)) && !kept.is_readable() {
            return false;
        }
        if let Some(early) = self.early.get_mut(&tid) {
            early.push(kept);
            return true;
        }
        if !self.importer.knows(tid) {
            let may_be_child = self.begun.values().any(|begun| calls::makes_tasks(&begun.text));
            if may_be_child {
                self.early.insert(tid, vec![kept]);
                return true;
            }
            let (Kept::Call { at_ns, .. } | Kept::Gone { at_ns }) = kept;
            self.importer.add_stranger(tid, at_ns);
        }
        self.tell(tid, kept)
    }

    fn tell(&mut self, tid: u32, kept: Kept) -> bool {
        let (text, at_ns, ended_ns, is_split, line) = match kept {
            Kept::Gone { at_ns } => {
                self.importer.gone(tid, at_ns);
                return true;
            }
            Kept::Call { text, at_ns, ended_ns, is_split, line } => (text, at_ns, ended_ns, is_split, line),
        };
        let Some(call) = line::call(&text) else { return false };
        self.calls += 1;
        self.importer.has_durations |= call.took_ns.is_some();
        let split_ns = is_split.then(|| ended_ns.saturating_sub(at_ns));
        let call = Call { took_ns: call.took_ns.or(split_ns), ..call };
        let made = self.importer.call(tid, &call, at_ns, line);
        // The first lines of a task that this call made.
        if let Some(kept) = made.and_then(|made| self.early.remove(&made).map(|kept| (made, kept))) {
            for each in kept.1 {
                self.tell(kept.0, each);
            }
        }
        true
    }

    fn finish(mut self, lines: u64) -> Result<Trace, ImportError> {
        if self.calls == 0 || self.strange > self.calls {
            let found = found(lines, self.calls);
            return Err(ImportError::Nothing { format: ImportFormat::Strace, found });
        }
        for (tid, kept) in std::mem::take(&mut self.early) {
            let begun = match kept.first() {
                Some(Kept::Call { at_ns, .. } | Kept::Gone { at_ns }) => *at_ns,
                None => 0,
            };
            self.importer.add_stranger(tid, begun);
            for each in kept {
                self.tell(tid, each);
            }
        }
        let is_exit = |begun: &Begun| begun.text.starts_with("exit");
        for begun in self.begun.into_values().filter(|begun| !is_exit(begun)) {
            self.importer.noted.add("calls that had not ended when the log ends, left out", begun.line);
        }
        let trace = self.importer.finish(self.clock.now_ns);
        if trace.operations.is_empty() {
            let found = format!("its calls, {} of them, are of other kinds", self.calls);
            return Err(ImportError::Nothing { format: ImportFormat::Strace, found });
        }
        Ok(trace)
    }
}

/// Times of lines, since the first.
#[derive(Debug, Default)]
struct Clock {
    first: Option<u64>,
    /// Added to times of day that are past midnight.
    days_ns: u64,
    now_ns: u64,
    went_back: bool,
}

impl Clock {
    fn now(&mut self, stamp: Stamp) -> u64 {
        let last = self.first.map(|first| first.saturating_add(self.now_ns));
        let absolute = match stamp {
            Stamp::SinceLast(ns) => last.map_or(0, |last| last.saturating_add(ns)),
            Stamp::Epoch(ns) => ns,
            Stamp::OfDay(ns) => {
                let of_day = ns.saturating_add(self.days_ns);
                let is_past_midnight = last.is_some_and(|last| of_day.saturating_add(DAY_NS / 2) < last);
                self.days_ns += if is_past_midnight { DAY_NS } else { 0 };
                ns.saturating_add(self.days_ns)
            }
        };
        let first = *self.first.get_or_insert(absolute);
        self.went_back = last.is_some_and(|last| absolute < last);
        self.now_ns = self.now_ns.max(absolute.saturating_sub(first));
        self.now_ns
    }
}
