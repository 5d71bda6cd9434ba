//! What is in a trace, for people and for programs.

use serde_json::json;
use trace::info::{FileInfo, Reuse, TraceInfo, Transfers};

use crate::document::number::plain;
use crate::document::{Document, Mark, Section, Table, row};

/// Bytes of a page.
const PAGE: u64 = 4096;
/// How many programs are named.
const PROGRAMS_NAMED: usize = 6;

/// What is in a trace; for programs its figures as they are.
pub fn trace_info(info: &TraceInfo) -> Document<'_> {
    let reuse = (info.reuse.followed > 0).then(|| of_reuse(&info.reuse));
    let said = reuse.is_some().then(|| reuse_said(&info.reuse));
    Document::new("a trace")
        .section(
            Section::first(format!("{} ({})", info.command, info.source), None)
                .list(Mark::Sentence, sentences(info)),
        )
        .section(Section::untitled().with(operations(info)))
        .section(Section::untitled().with(of_files("most read", &info.most_read)))
        .section(Section::untitled().with(of_files("largest", &info.largest)))
        .section(Section::untitled().with_all(reuse).list(Mark::Sentence, said))
        .section(Section::new("what is missing or assumed").list(Mark::Dash, info.gaps.iter().cloned()))
        .json(move || json!(info))
}

fn sentences(info: &TraceInfo) -> Vec<String> {
    let footprint = &info.footprint;
    let about = if info.reuse.one_in > 1 { "about " } else { "" };
    let mut all = vec![
        format!(
            "{} s; its tasks, taken together, computed or waited for {} s and were in these calls for {} s",
            plain(info.seconds),
            plain(info.thinking_seconds),
            plain(info.in_calls_seconds)
        ),
        format!(
            "{}: {}",
            counted(info.processes, "process", "es") + &threads(info),
            programs(&info.programs)
        ),
        format!(
            "{}, {} in all; {about}{} of files were accessed",
            counted(info.files, "file", "s"),
            size(info.file_bytes),
            size(footprint.file_pages * PAGE)
        ),
    ];
    for (what, transfers) in [("reads", &info.reads), ("writes", &info.writes)] {
        if transfers.calls > 0 {
            all.push(format!("{what}: {}", moved(transfers)));
        }
    }
    let memory = &info.memory;
    if memory.file_mappings + memory.anonymous_mappings > 0 {
        all.push(format!(
            "mapped at most: {} of files ({}), {} of anonymous memory ({})",
            size(memory.mapped_bytes_most),
            counted(memory.file_mappings, "mapping", "s"),
            size(memory.anonymous_bytes_most),
            counted(memory.anonymous_mappings, "mapping", "s")
        ));
    }
    if memory.touched_pages + memory.dirtied_pages > 0 {
        all.push(format!(
            "seen touched in mappings: {} times a page, {} times one that was written to; {about}{} of anonymous \
             memory",
            memory.touched_pages,
            memory.dirtied_pages,
            size(footprint.anonymous_pages * PAGE)
        ));
    }
    all
}

/// So many of something.
pub(super) fn counted(count: u64, what: &str, plural: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { plural })
}

fn threads(info: &TraceInfo) -> String {
    match info.tasks.saturating_sub(info.processes) {
        0 => String::new(),
        threads => format!(" with {}", counted(threads, "more thread", "s")),
    }
}

fn programs(programs: &[(String, u64)]) -> String {
    let name = |name: &str| if name.is_empty() { "(no name)".to_owned() } else { name.to_owned() };
    let mut named: Vec<String> = (programs.iter().take(PROGRAMS_NAMED))
        .map(|(program, count)| match count {
            1 => name(program),
            _ => format!("{} ({count})", name(program)),
        })
        .collect();
    if programs.len() > PROGRAMS_NAMED {
        named.push(format!("{} more", programs.len() - PROGRAMS_NAMED));
    }
    named.join(", ")
}

fn moved(transfers: &Transfers) -> String {
    let Transfers { calls, bytes, sequential_calls, runs } = *transfers;
    format!(
        "{}, {}; {} % go on where the one before ended, runs of {} on average",
        counted(calls, "call", "s"),
        size(bytes),
        plain(100.0 * sequential_calls as f64 / calls.max(1) as f64),
        size(bytes / runs.max(1))
    )
}

/// Bytes as people say them.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    format!("{} {}", plain(value), UNITS[unit])
}

fn operations(info: &TraceInfo) -> Table {
    let mut table = Table::new().texts(["operation"]).amounts(["times", "bytes"]);
    for &(name, times, bytes) in &info.operations {
        table.push(row![name, times, if bytes > 0 { size(bytes) } else { String::new() }]);
    }
    table
}

fn of_files(heading: &str, files: &[FileInfo]) -> Table {
    let mut table = Table::new().texts([heading]).amounts(["size", "read", "written"]);
    for file in files {
        table.push(row![&file.path, size(file.size_bytes), size(file.read_bytes), size(file.written_bytes)]);
    }
    table
}

fn of_reuse(reuse: &Reuse) -> Table {
    let mut table = Table::new().texts(["LRU cache of"]).amounts(["accesses again within", "hits in it"]);
    for &(most, count) in &reuse.within {
        let hits = format!("{:.1} %", 100.0 * reuse.hit_ratio(most));
        table.push(row![size(most * PAGE), count * reuse.one_in, hits]);
    }
    table.push(row!["any", reuse.first * reuse.one_in, "first accesses"]);
    table
}

fn reuse_said(reuse: &Reuse) -> String {
    let sampled = match reuse.one_in {
        1 => String::new(),
        one_in => format!(", from one page in {one_in}"),
    };
    format!(
        "{} accesses to pages of 4 KiB{sampled}; a row is what a cache of half the size would miss",
        reuse.accesses
    )
}
