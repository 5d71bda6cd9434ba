//! What is in a trace, for people and for programs.

use trace::info::{FileInfo, Reuse, TraceInfo, Transfers};

use crate::number::plain;
use crate::table::{Align, Table};
use crate::wrap::paragraph;

/// Bytes of a page.
const PAGE: u64 = 4096;
/// How many programs are named.
const PROGRAMS_NAMED: usize = 6;

/// For a terminal of this width.
pub fn trace_info_text(info: &TraceInfo, width: usize) -> String {
    let mut text = paragraph(&format!("{} ({})", info.command, info.source), width, 2);
    for sentence in sentences(info) {
        text += &paragraph(&format!("  {sentence}"), width, 2);
    }
    text += &format!("\n{}", operations(info).to_text(width));
    for (heading, files) in [("most read", &info.most_read), ("largest", &info.largest)] {
        if !files.is_empty() {
            text += &format!("\n{}", of_files(heading, files).to_text(width));
        }
    }
    if info.reuse.followed > 0 {
        text += &format!("\n{}", of_reuse(&info.reuse).to_text(width));
        text += &paragraph(&format!("  {}", reuse_said(&info.reuse)), width, 2);
    }
    if !info.gaps.is_empty() {
        text += "\nwhat is missing or assumed\n";
        info.gaps.iter().for_each(|gap| text += &paragraph(&format!("  - {gap}"), width, 2));
    }
    text
}

/// As one JSON object: the figures as they are.
pub fn trace_info_json(info: &TraceInfo) -> String {
    let mut text = serde_json::to_string_pretty(info).expect("plain values");
    text.push('\n');
    text
}

/// As Markdown.
pub fn trace_info_markdown(info: &TraceInfo) -> String {
    let mut text = format!("## {} ({})\n\n", info.command, info.source);
    sentences(info).iter().for_each(|sentence| text += &format!("- {sentence}\n"));
    text += &format!("\n{}", operations(info).to_markdown());
    for (heading, files) in [("most read", &info.most_read), ("largest", &info.largest)] {
        if !files.is_empty() {
            text += &format!("\n{}", of_files(heading, files).to_markdown());
        }
    }
    if info.reuse.followed > 0 {
        text += &format!("\n{}\n{}\n", of_reuse(&info.reuse).to_markdown(), reuse_said(&info.reuse));
    }
    if !info.gaps.is_empty() {
        text += "\nWhat is missing or assumed:\n\n";
        info.gaps.iter().for_each(|gap| text += &format!("- {gap}\n"));
    }
    text
}

fn sentences(info: &TraceInfo) -> Vec<String> {
    let footprint = &info.footprint;
    let about = if info.reuse.one_in > 1 { "about " } else { "" };
    let mut all = vec![
        format!(
            "{} s; its tasks computed for {} s and were in these calls for {} s",
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

fn counted(count: u64, what: &str, plural: &str) -> String {
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

/// A table whose first column names the row.
fn headed<const N: usize>(headings: [&str; N]) -> Table {
    let aligned = std::iter::once(Align::Left).chain(std::iter::repeat(Align::Right));
    Table::new(headings.map(str::to_owned).into_iter().zip(aligned))
}

fn operations(info: &TraceInfo) -> Table {
    let mut table = headed(["operation", "times", "bytes"]);
    for &(name, times, bytes) in &info.operations {
        table.push([name.to_owned(), times.to_string(), if bytes > 0 { size(bytes) } else { String::new() }]);
    }
    table
}

fn of_files(heading: &str, files: &[FileInfo]) -> Table {
    let mut table = headed([heading, "size", "read", "written"]);
    for file in files {
        let figures = [file.size_bytes, file.read_bytes, file.written_bytes].map(size);
        table.push([vec![file.path.clone()], figures.to_vec()].concat());
    }
    table
}

fn of_reuse(reuse: &Reuse) -> Table {
    let mut table = headed(["LRU cache of", "accesses again within", "hits in it"]);
    for &(most, count) in &reuse.within {
        let hits = format!("{:.1} %", 100.0 * reuse.hit_ratio(most));
        table.push([size(most * PAGE), (count * reuse.one_in).to_string(), hits]);
    }
    table.push(["any".to_owned(), (reuse.first * reuse.one_in).to_string(), "first accesses".to_owned()]);
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
