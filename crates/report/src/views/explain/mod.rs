//! Why a run went as it went: first a paragraph that a person would say, then the evidence.
//!
//! Start with [`explain`]. [`folded_stacks`] is for flame graphs.
//!
//! | file | what it tells |
//! |---|---|
//! | `summary.rs` | the paragraph |
//! | `stalls.rs` | who waited, where, for how long, on whom; folded stacks |
//! | `protection.rs` | what `memory.low` and `memory.min` did, and why |
//! | `pressure.rs` | watermarks, boosts, kswapd and direct reclaim over time |
//! | `digest.rs` | what is taken from events, chunk by chunk |
//! | `kind.rs` | what an event says |
//! | `evictions.rs` | who evicted whom |
//! | `moments.rs` | what happened when |
//! | `story.rs` | what became of files and of pages |
//! | `words.rs` | amounts and lists in a sentence |

mod digest;
mod evictions;
mod kind;
mod moments;
mod pressure;
mod protection;
mod stalls;
mod story;
mod summary;
mod words;

use recording::Recording;
use serde_json::{Value, json};

use crate::document::{Document, Section};
use crate::judge::View;
use crate::views::notes::notes;
use crate::views::oom::{oom_json, oom_section};
use crate::views::pressure::pressure_json;
pub use digest::Digest;
pub use story::Question;

/// What is explained.
#[derive(Debug, Clone, Copy)]
pub struct Explained<'a> {
    /// The run.
    pub recording: &'a Recording,
    /// What its events say, if it has any.
    pub events: Option<&'a Digest>,
    /// A command that runs it again with every event recorded, for what cannot be said without them.
    pub with_events: Option<&'a str>,
}

/// Why a run went as it went.
///
/// JSON: `{"schema": 1, "workload", "label", "kernel", "backend", "seed", "summary",
/// "stalls": [{"who", "tasks", "stack", "on", "count", "seconds", "longest_seconds", "futile_seconds"}],
/// "pressure", "protection": [{"cgroup", "verdict", "sentence", ...}], "moments", "evictions": {"cells": [{"of", "for",
/// "pages"}], "came_back", "by"}, "files": [{"file", ...}], "story": [{"time_ns", "event", ..., "says"}],
/// "oom_kills", "notes", "not_told"}`. `summary` is a list of sentences; `story` has every event of the pages that were
/// asked for. What is not known is `null`.
pub fn explain<'a>(explained: &'a Explained<'a>, view: &View) -> Document<'a> {
    let Explained { recording, .. } = *explained;
    let summary = summary::sentences(recording, explained.events).join(" ");
    Document::new(&recording.workload)
        .section(Section::first(title(recording), None))
        .section(Section::untitled().paragraph(summary))
        .section(oom_section(recording))
        .sections(sections(explained, view.all))
        .section(notes(&[recording]))
        .json(|| value(explained))
}

fn value(explained: &Explained<'_>) -> Value {
    let Explained { recording, .. } = explained;
    let stories = explained.events.filter(|events| events.has_pages()).map(|events| events.stories.json());
    json!({
        "schema": 1,
        "workload": recording.workload,
        "label": recording.label,
        "kernel": recording.kernel,
        "backend": recording.backend,
        "seed": recording.seed,
        "summary": summary::sentences(recording, explained.events),
        "stalls": stalls::json(recording),
        "pressure": pressure_json(recording),
        "protection": protection::json(recording, explained.events),
        "moments": explained.events.map(|events| events.moments.json()),
        "evictions": explained.events.map(|events| events.evictions().json()),
        "files": stories.as_ref().map(|(files, _)| files),
        "story": stories.as_ref().map(|(_, story)| story),
        "oom_kills": oom_json(recording),
        "notes": recording.notes,
        "not_told": not_told(explained),
    })
}

/// Where time was spent as stacks that flame graphs are drawn of, in nanoseconds: frames divided by `;`, a blank,
/// a number, on each line. Empty where nobody waited, or nobody knows.
pub fn folded_stacks(recording: &Recording) -> String {
    stalls::folded(recording)
}

fn title(recording: &Recording) -> String {
    let Recording { workload, kernel, backend, seed, label, .. } = recording;
    let label = if label == kernel { String::new() } else { format!("{label}: ") };
    format!("{label}{workload} on {kernel} ({backend}, seed {seed})")
}

fn sections(explained: &Explained<'_>, in_full: bool) -> Vec<Section> {
    let Explained { recording, events, .. } = *explained;
    let mut all = Vec::new();
    let asked = events.filter(|events| events.is_asked());
    all.extend(asked.into_iter().flat_map(|events| events.stories.sections(in_full)));
    all.push(stalls::section(recording, in_full));
    all.push(protection::section(recording, events));
    if let Some(events) = events.filter(|events| !events.is_empty()) {
        if !events.evictions().is_empty() {
            all.push(events.evictions().section(in_full));
        }
        if !events.is_asked() {
            all.extend(events.stories.sections(in_full));
        }
        all.push(events.moments.section());
    }
    all.push(pressure::section(recording));
    all.push(Section::untitled().paragraph(not_told(explained).unwrap_or_default()));
    all
}

/// What cannot be said without events, and how to get them.
fn not_told(explained: &Explained<'_>) -> Option<String> {
    let what = match explained.events {
        Some(events) if events.has_pages() => return None,
        Some(events) if !events.is_empty() => {
            "events of pages in this recording: what became of which page and file"
        }
        _ => {
            "events in this recording: what became of which page and file, who evicted whom, and when exactly"
        }
    };
    Some(match explained.with_events {
        Some(command) => format!("not told, for want of {what}; record them with `{command}`"),
        None => format!("not told, for want of {what}; only simulated runs record them"),
    })
}

#[cfg(test)]
mod tests;
