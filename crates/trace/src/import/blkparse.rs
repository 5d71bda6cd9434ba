//! What `blkparse` prints in its own format: `%D %2c %8s %5T.%9t %5p %2a %3d `, then `%S + %n [%C]` (blkparse(1),
//! "Output description and formatting").
//!
//! ```text
//!   8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]
//!   |      |        |     |             |    |   | sector, sectors of 512 bytes, program
//!   device CPU   number   seconds     task   |   what: R, W, D, F, N, with A, B, F, M, S behind it
//!                                            action
//! ```
//! Of the actions on a request one is read, so that each request counts once: `Q`, which is what a filesystem or a
//! program asked for, before requests are merged; `D` (sent to the disk), then `C` (done) where the log has none.
//! A device is a file, as far as the log reaches into it. Lines of other actions, messages (`m`) and the summary at the
//! end are passed over. Discards are left out and counted.

use std::collections::BTreeMap;
use std::io::BufRead;

use super::builder::{Builder, Done, Noted, seconds};
use super::lines::Lines;
use super::{ImportError, ImportFormat, shortened};
use crate::{NONE, OperationKind, Trace};

const SECTOR: u64 = 512;
/// The actions that are read, in the order of preference.
const ACTIONS: [(char, &str); 3] = [
    ('Q', "requests are those that were queued (Q), before merging"),
    ('D', "requests are those sent to the disk (D), after merging: the log has none that were queued (Q)"),
    ('C', "requests are those that were done (C): the log has none that were queued (Q) or sent (D)"),
];

/// A line about an event.
struct Event<'a> {
    device: &'a str,
    at_ns: u64,
    tid: u32,
    action: &'a str,
    rest: &'a str,
}

/// The words of an event's heading; `None`: this line is about something else.
fn event(line: &str) -> Option<Event<'_>> {
    let mut rest = line;
    let mut word = || {
        rest = rest.trim_start();
        let end = rest.find(' ').unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        rest = behind;
        word
    };
    let (device, cpu, number, time, tid, action) = (word(), word(), word(), word(), word(), word());
    let (major, minor) = device.split_once(',')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if ![major, minor, cpu, number, tid].into_iter().all(is_number) {
        return None;
    }
    Some(Event { device, at_ns: seconds(time)?, tid: tid.parse().ok()?, action, rest: rest.trim_start() })
}

/// Whether a line is of such a log.
pub(super) fn looks_like(line: &str) -> bool {
    event(line).is_some_and(|event| !event.action.is_empty())
}

/// A request, of any action.
struct Request {
    at_ns: u64,
    device: u32,
    tid: u32,
    kind: OperationKind,
    offset: u64,
    len: u64,
}

struct Log {
    builder: Builder,
    noted: Noted,
    /// By action, in the order of [`ACTIONS`].
    requests: [Vec<Request>; 3],
    /// Names of programs, by thread ID.
    programs: BTreeMap<u32, String>,
    events: u64,
}

/// Reads a log.
pub(super) fn read(name: &str, source: impl BufRead) -> Result<Trace, ImportError> {
    let mut lines = Lines::new(source);
    let mut log = Log {
        builder: Builder::new(ImportFormat::Blkparse.name(), name),
        noted: Noted::default(),
        requests: [const { Vec::new() }; 3],
        programs: BTreeMap::new(),
        events: 0,
    };
    while let Some(line) = lines.next()? {
        let Some(event) = event(&line) else {
            if log.events == 0 && !line.trim().is_empty() {
                let problem = format!(
                    "an event was expected, such as `8,0 3 1 0.0 697 Q R 8 + 8 [cat]`, not {}",
                    shortened(&line)
                );
                return Err(ImportError::Malformed { line: lines.number, problem });
            }
            if !lines.is_whole && looks_cut(&line) {
                log.noted.add("the log ends within a line", lines.number);
            }
            continue; // The summary.
        };
        log.events += 1;
        if let Err(problem) = log.event(&event, lines.number) {
            if lines.is_whole {
                return Err(ImportError::Malformed { line: lines.number, problem });
            }
            log.noted.add("the log ends within a line", lines.number);
        }
    }
    log.finish()
}

fn looks_cut(line: &str) -> bool {
    line.trim_start().starts_with(|first: char| first.is_ascii_digit())
}

impl Log {
    fn event(&mut self, event: &Event<'_>, line: u64) -> Result<(), String> {
        let Some(action) = ACTIONS.iter().position(|&(letter, _)| event.action.starts_with(letter)) else {
            return if event.action.is_empty() { Err("the action is missing".to_owned()) } else { Ok(()) };
        };
        let mut words = event.rest.split_ascii_whitespace();
        let what = words.next().ok_or("what was requested is missing")?;
        let kind = match what.trim_start_matches('F').chars().next() {
            _ if what.contains('D') => {
                self.noted.add("discards are left out", line);
                return Ok(());
            }
            Some('R') => OperationKind::Read,
            Some('W') => OperationKind::Write,
            _ if what.contains('F') => OperationKind::Fsync,
            _ => return Ok(()), // N: neither, such as a command to the drive.
        };
        let (offset, len) = match (words.next(), words.next(), words.next()) {
            (Some(sector), Some("+"), Some(count)) => (sectors(sector)?, sectors(count)?),
            _ if kind == OperationKind::Fsync => (0, 0),
            (None, ..) => return Err("the sector is missing".to_owned()),
            _ if event.rest.contains('[') => (0, 0), // `R [program]`: no range.
            _ => return Err("`SECTOR + SECTORS` was expected".to_owned()),
        };
        let end = offset.checked_add(len).filter(|&end| end <= i64::MAX.cast_unsigned());
        // Sectors of a request are a number of 32 bits.
        let end = end.filter(|_| len / SECTOR <= u64::from(u32::MAX));
        let end = end.ok_or_else(|| format!("no request has bytes {offset} and {len} more"))?;
        let kind = if len == 0 { OperationKind::Fsync } else { kind }; // A flush, with whatever letters.
        let (device, _) = self.builder.file(&format!("/dev/block/{}", event.device.replace(',', ":")));
        self.builder.at_least(device, end);
        self.note_program(event);
        let Event { at_ns, tid, .. } = *event;
        self.requests[action].push(Request { at_ns, device, tid, kind, offset, len });
        Ok(())
    }

    fn note_program(&mut self, event: &Event<'_>) {
        if !self.programs.contains_key(&event.tid)
            && let Some((_, program)) = event.rest.rsplit_once('[')
        {
            self.programs.insert(event.tid, program.trim_end_matches(']').to_owned());
        }
    }

    fn finish(mut self) -> Result<Trace, ImportError> {
        let Some(action) = self.requests.iter().position(|requests| !requests.is_empty()) else {
            let found = format!("{} events, none of which is Q, D or C of a read or write", self.events);
            return Err(ImportError::Nothing { format: ImportFormat::Blkparse, found });
        };
        let mut requests = std::mem::take(&mut self.requests[action]);
        requests.sort_by_key(|request| request.at_ns); // CPUs are merged in blocks.
        let mut tasks = BTreeMap::new();
        for Request { at_ns, device, tid, kind, offset, len } in requests {
            let task = *tasks.entry(tid).or_insert_with(|| {
                let task = self.builder.task(tid, NONE, None, 0);
                self.builder.trace.tasks[task as usize].name = self.programs.remove(&tid).unwrap_or_default();
                task
            });
            self.builder.push(Done { at_ns, took_ns: 0, task, kind, object: device, offset, len, detail: 0 });
        }
        let mut trace = self.builder.finish(0);
        trace.gaps.push(ACTIONS[action].1.to_owned());
        trace.gaps.push(
            "what the page cache had when the log was written is not in it: requests are what missed"
                .to_owned(),
        );
        trace.gaps.extend(self.noted.sentences());
        Ok(trace)
    }
}

fn sectors(text: &str) -> Result<u64, String> {
    let count: u64 = text.parse().map_err(|_| format!("`{text}` is no number of sectors"))?;
    count.checked_mul(SECTOR).ok_or_else(|| format!("no device has {count} sectors"))
}
