//! DAMON's tracepoint `damon:damon_aggregated` as `perf script`, `trace-cmd report` or a kernel's own `trace` prints
//! it: a line for each region (include/trace/events/damon.h of Linux 5.15 to 7.2).
//!
//! ```text
//! kdamond.0   165 [000]    18.525803: damon:damon_aggregated: target_id=0 nr_regions=10 4096-8192: 19 1
//! kdamond.0-165   [000] ..... 18.525803: damon_aggregated: target_id=0 nr_regions=10 4096-8192: 19 1
//!                             |                                        |             |          |  age
//!                             seconds         lines of the snapshot ---+             bytes      samples that found it
//! ```
//! A snapshot is as many lines of a target; where some were lost, it ends where addresses fall. Its time is that of its
//! first line. Other lines are passed over and counted: other events, headings. Linux 5.15 prints no age.

use std::collections::BTreeMap;
use std::io::BufRead;

use super::recording::{Recording, Snapshot};
use crate::import::builder::seconds;
use crate::import::lines::Lines;
use crate::import::{ImportError, shortened};

/// The event, whichever way its system is named before it.
const EVENT: &str = "damon_aggregated:";

/// A line.
#[derive(Debug, PartialEq, Eq)]
struct Event {
    at_ns: u64,
    target: u64,
    /// How many lines the snapshot has.
    regions: u64,
    start: u64,
    end: u64,
    /// None in the line that damo writes behind a lone snapshot, to say how long that was.
    samples: Option<u64>,
}

/// What a line says; `None`: it is of something else.
fn event(line: &str) -> Option<Result<Event, String>> {
    let (head, fields) = line.split_once(EVENT)?;
    let head = head.trim_end().strip_suffix("damon:").unwrap_or(head);
    Some(parse(head, fields))
}

fn parse(head: &str, fields: &str) -> Result<Event, String> {
    let time = head.split_ascii_whitespace().next_back().and_then(|word| word.strip_suffix(':'));
    let at_ns = time.and_then(seconds).ok_or_else(|| {
        format!("a time such as `82877.315633:` is expected before the event, not {}", shortened(head))
    })?;
    let mut words = fields.split_ascii_whitespace();
    let mut word = |what: &str, read: &dyn Fn(&str) -> Option<(u64, u64)>| {
        let found = words.next().and_then(read);
        found.ok_or_else(|| format!("{what} is expected in {}", shortened(fields)))
    };
    let labelled =
        |label: &'static str| move |word: &str| Some((word.strip_prefix(label).and_then(number)?, 0));
    let (target, _) = word("a target such as `target_id=0`", &labelled("target_id="))?;
    let (regions, _) = word("a number of regions such as `nr_regions=10`", &labelled("nr_regions="))?;
    let (start, end) = word("a region such as `4096-8192:`", &|word| {
        let (start, end) = word.strip_suffix(':')?.split_once('-')?;
        Some((number(start)?, number(end)?))
    })?;
    let (samples, is_mark) = word("a number of samples such as `19`", &|word| match word {
        "-1" if end == 0 => Some((0, 1)),
        word => Some((number(word)?, 0)),
    })?;
    let samples = (is_mark == 0).then_some(samples);
    Ok(Event { at_ns, target, regions, start, end, samples })
}

fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Whether a line is of such a log.
pub(super) fn looks_like(line: &str) -> bool {
    event(line).is_some_and(|event| event.is_ok())
}

/// A target's snapshot while its lines come.
struct Open {
    snapshot: Snapshot,
    /// Lines that it should have, and has.
    regions: u64,
    lines: u64,
    /// Where its last region ended.
    end: u64,
}

/// Reads a log.
pub(super) fn read(source: impl BufRead) -> Result<(Recording, u64), ImportError> {
    let mut lines = Lines::new(source);
    let mut recording = Recording::default();
    let mut open: BTreeMap<u64, Open> = BTreeMap::new();
    while let Some(line) = lines.next()? {
        let taken = match event(&line) {
            None => {
                if !line.trim().is_empty() && !line.starts_with('#') {
                    recording.noted.add("lines that are no `damon_aggregated` are left out", lines.number);
                }
                continue;
            }
            Some(event) => event.and_then(|event| take(&mut recording, &mut open, &event, lines.number)),
        };
        if let Err(problem) = taken {
            if lines.is_whole {
                return Err(ImportError::Malformed { line: lines.number, problem });
            }
            recording.noted.add("the log ends within a line", lines.number);
        }
    }
    for (target, open) in open {
        let line = lines.number;
        close(&mut recording, target, open, line)
            .map_err(|problem| ImportError::Malformed { line, problem })?;
    }
    Ok((recording, lines.number))
}

fn take(
    recording: &mut Recording,
    open: &mut BTreeMap<u64, Open>,
    event: &Event,
    line: u64,
) -> Result<(), String> {
    let Some(samples) = event.samples else { return Ok(()) };
    let goes_on = |open: &Open| open.regions == event.regions && open.end <= event.start;
    if let Some(other) = open.remove(&event.target) {
        if goes_on(&other) {
            open.insert(event.target, other);
        } else {
            close(recording, event.target, other, line)?;
        }
    }
    let now = open.entry(event.target).or_insert_with(|| {
        let snapshot = Snapshot { end_ns: event.at_ns, ..Snapshot::default() };
        Open { snapshot, regions: event.regions, lines: 0, end: 0 }
    });
    now.snapshot.region(event.start, event.end, samples)?;
    (now.end, now.lines) = (event.end, now.lines + 1);
    recording.regions += 1;
    if now.lines >= now.regions
        && let Some(whole) = open.remove(&event.target)
    {
        close(recording, event.target, whole, line)?;
    }
    Ok(())
}

fn close(recording: &mut Recording, target: u64, open: Open, line: u64) -> Result<(), String> {
    if open.lines < open.regions {
        recording.noted.add("snapshots that lack regions, which were lost or cut off", line);
    }
    recording.target(target).push(open.snapshot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perf_and_ftrace_tell_the_same_with_and_without_an_age() {
        let fields = "target_id=3 nr_regions=10 4096-8192: 19";
        let read = |line: &str| event(line).expect("an event").expect("as printed");
        let perf = read(&format!("kdamond.0  165 [000]    18.525803: damon:damon_aggregated: {fields} 1"));
        let own = read(&format!("  kdamond.0-165     [000] .N...    18.525803: damon_aggregated: {fields}"));
        let (at_ns, samples) = (18_525_803_000, Some(19));
        assert_eq!(perf, Event { at_ns, target: 3, regions: 10, start: 4096, end: 8192, samples });
        assert_eq!(own, perf);
        assert_eq!(event("kdamond.0 165 [000] 1.0: damon:damos_before_apply: ctx_idx=0"), None);
    }
}
