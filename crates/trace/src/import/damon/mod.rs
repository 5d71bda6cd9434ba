//! A recording of DAMON, Linux's monitor of data access: what `damo record` writes, and what the tracepoint
//! `damon:damon_aggregated` prints (Documentation/mm/damon/design.rst; Linux 5.15 to 7.2).
//!
//! # Background
//! In each sampling interval DAMON looks whether one page of each region was used, and at the end of each aggregation
//! interval tells how many of these samples found it so. Regions are split and merged, so that pages of one are used
//! alike.
//!
//! # How it becomes a trace
//! ```text
//!  address    ..aaaa....bb..    what any snapshot found used, and nothing between
//!  file         aaaabb          one for each target, mapped by one task
//!  snapshot     ###.#.          touches: regions with samples above 0, as a whole, as often as samples found them used
//! ```
//! - Which of a region's pages were used is not known: between the samples' share of them, and all. All is what `damo
//!   report wss` counts, and what is right where a program comes by every few seconds. [`Trace::gaps`] has both.
//! - What is memory of files and what is anonymous is not known either. Anonymous memory stays without swap, so that
//!   the only answer to how much is needed would be all that was used. So all are pages of a file, which a limit can
//!   take and a disk brings back: how much of it is warm enough to stay. A disk can be named as swap would have it.
//! - Whether a page was written to is not told: all are read.
//!
//! Left out: memory that was never found used, which need not even be there; ages; what schemes did. Addresses may be
//! virtual or physical, and the recording does not say which. Next: [`recording`], what both forms are read as.

mod damo;
mod events;
mod recording;

use std::io::BufRead;

use flate2::bufread::ZlibDecoder;

use super::builder::{Builder, Done};
use super::{ImportError, ImportFormat};
use crate::{NONE, OperationKind, Trace, TraceMapping};
use recording::{PAGE, Recording, Snapshot, Target, Used};

/// Samples of an interval where nobody says how many: 100 ms of 5 ms.
const SAMPLES: u32 = 20;
/// More than this, 64 TiB, no machine has.
const PAGES_MAX: u64 = (64 << 40) / PAGE;

/// What is no text and no JSON, by its first bytes, and what to do with it.
const BINARY: [(&[u8], &str, &str); 2] = [
    (b"PERFILE2", "it is a file of `perf record`", "print it with `perf script -i FILE` and read that"),
    (
        b"damon_recfmt_ver",
        "it is damo's format `record`, of its versions 1 and older",
        "have the damo that wrote it write JSON: `damo convert_record_format`",
    ),
];

/// Whether bytes begin as one of zlib's files: deflated, with a check sum over both bytes.
fn is_zlib(head: &[u8]) -> bool {
    matches!(head, [0x78, flags, ..] if (0x7800 + u32::from(*flags)).is_multiple_of(31))
}

/// Whether a file begins as one of damo's.
pub(super) fn is_damo(head: &[u8]) -> bool {
    use std::io::Read as _;
    /// A record begins within it.
    const LOOKED_AT: u64 = 4096;
    if !is_zlib(head) {
        return damo::looks_like(&String::from_utf8_lossy(head));
    }
    let mut unpacked = Vec::new();
    let looked = ZlibDecoder::new(head).take(LOOKED_AT).read_to_end(&mut unpacked);
    // A head that is cut off is no error.
    drop(looked);
    damo::looks_like(&String::from_utf8_lossy(&unpacked))
}

/// Whether a line is one of the tracepoint.
pub(super) fn looks_like(line: &str) -> bool {
    events::looks_like(line)
}

/// Reads a recording.
pub(super) fn read(name: &str, mut source: impl BufRead) -> Result<Trace, ImportError> {
    let head = source.fill_buf().map_err(|source| ImportError::Unreadable { line: 1, source })?;
    if let Some((_, problem, remedy)) = BINARY.iter().find(|(magic, ..)| head.starts_with(magic)) {
        let (place, problem) = ("its beginning".to_owned(), (*problem).to_owned());
        return Err(ImportError::Document { place, problem, remedy });
    }
    let first = head.iter().find(|byte| !byte.is_ascii_whitespace());
    let (recording, lines) = if is_zlib(head) {
        (damo::read(ZlibDecoder::new(source))?, None)
    } else if matches!(first, Some(b'[' | b'{')) {
        (damo::read(source)?, None)
    } else {
        let (recording, lines) = events::read(source)?;
        (recording, Some(lines))
    };
    trace(name, recording, lines)
}

/// One target's memory as pages of a file.
struct Layout {
    /// Ranges of pages that were ever used, by address, and where each begins in the file.
    ranges: Vec<(u64, u64, u64)>,
    pages: u64,
}

impl Layout {
    fn of(target: &Target) -> Self {
        let mut used: Vec<(u64, u64)> = Vec::new();
        for snapshot in &target.snapshots {
            used.extend(snapshot.used.iter().map(|used| (used.first, used.past)));
        }
        used.sort_unstable();
        let mut layout = Self { ranges: Vec::new(), pages: 0 };
        for (first, past) in used {
            match layout.ranges.last_mut() {
                Some((_, end, _)) if first <= *end => {
                    layout.pages += past.saturating_sub(*end);
                    *end = past.max(*end);
                }
                _ => {
                    layout.ranges.push((first, past, layout.pages));
                    layout.pages += past - first;
                }
            }
        }
        layout
    }

    /// Where in the file what was used begins.
    fn place(&self, used: Used) -> u64 {
        let range = self.ranges.partition_point(|(first, ..)| *first <= used.first) - 1;
        let (first, _, place) = self.ranges[range];
        place + (used.first - first)
    }
}

fn trace(name: &str, recording: Recording, lines: Option<u64>) -> Result<Trace, ImportError> {
    let layouts: Vec<Layout> = recording.targets.iter().map(Layout::of).collect();
    let pages = layouts.iter().fold(0_u64, |sum, layout| sum.saturating_add(layout.pages));
    if pages == 0 {
        return Err(ImportError::Nothing { format: ImportFormat::Damon, found: found(&recording, lines) });
    }
    if pages > PAGES_MAX {
        let problem = format!("the regions that were found used have {} GiB together", pages / (1 << 18));
        let remedy = "record a part of the memory, or for longer, until regions fit what is used";
        return Err(ImportError::Document { place: "in all".to_owned(), problem, remedy });
    }
    let begin_ns = recording.targets.iter().filter_map(Target::begin_ns).min().unwrap_or(0);
    let mut builder = Builder::new(ImportFormat::Damon.name(), name);
    let mut end_ns = 0;
    for (target, layout) in recording.targets.iter().zip(&layouts) {
        map(&mut builder, target, layout);
        for snapshot in &target.snapshots {
            touch(&mut builder, snapshot, layout, begin_ns);
            end_ns = end_ns.max(snapshot.end_ns - begin_ns);
        }
    }
    let mut trace = builder.finish(end_ns);
    trace.sampled_every_ns = recording.targets.iter().map(Target::interval_ns).max().unwrap_or(0);
    trace.gaps = gaps(&recording, pages, end_ns);
    trace.gaps.extend(recording.noted.sentences());
    Ok(trace)
}

/// A target's task, which maps all of its memory when the recording begins.
fn map(builder: &mut Builder, target: &Target, layout: &Layout) {
    let task = builder.task(0, NONE, None, 0);
    let name = format!("target {}", target.id);
    // Records of several monitors may call their targets alike.
    let path = match builder.known(&name) {
        Some(_) => format!("{name}, record {}", task + 1),
        None => name,
    };
    let (file, _) = builder.file(&path);
    builder.trace.tasks[task as usize].name = path;
    builder.at_least(file, layout.pages * PAGE);
    let len = layout.pages * PAGE;
    builder.trace.mappings.push(TraceMapping { file, len, ..TraceMapping::default() });
    builder.push(Done {
        at_ns: 0,
        took_ns: 0,
        task,
        kind: OperationKind::Map,
        object: task,
        offset: 0,
        len,
        detail: 0,
    });
}

/// What a snapshot of the newest task found used.
fn touch(builder: &mut Builder, snapshot: &Snapshot, layout: &Layout, begin_ns: u64) {
    let task = builder.trace.tasks.len() as u32 - 1;
    let at_ns = snapshot.end_ns - begin_ns;
    for used in &snapshot.used {
        builder.push(Done {
            at_ns,
            took_ns: 0,
            task,
            kind: OperationKind::Touch,
            object: task,
            offset: layout.place(*used) * PAGE,
            len: used.pages() * PAGE,
            detail: if used.samples > 1 { used.samples } else { 0 },
        });
    }
}

fn found(recording: &Recording, lines: Option<u64>) -> String {
    if recording.regions > 0 {
        return format!("of its regions, {} in all, none was found used", recording.regions);
    }
    match lines {
        None => "it has no regions".to_owned(),
        Some(0) => "it is empty".to_owned(),
        Some(lines) => format!("of its lines, {lines} in all, none is a `damon_aggregated`"),
    }
}

/// What is assumed, for the reader.
fn gaps(recording: &Recording, pages: u64, length_ns: u64) -> Vec<String> {
    let watched = recording.targets.iter().map(|target| target.snapshots.iter().map(|one| one.watched).max());
    let watched: u64 = watched.flatten().fold(0, u64::saturating_add);
    let most = |of: fn(&Snapshot, u32) -> u64| -> u64 {
        let peak = |target: &Target| {
            let known = target.samples.filter(|samples| *samples > 0).unwrap_or(SAMPLES);
            target.snapshots.iter().map(|snapshot| of(snapshot, known)).max().unwrap_or(0)
        };
        recording.targets.iter().map(peak).fold(0, u64::saturating_add)
    };
    let whole = most(|snapshot, _| snapshot.used.iter().map(|used| used.pages()).sum());
    let least = most(|snapshot, of| {
        let share = |used: &Used| used.pages() * u64::from(used.samples.min(of)) / u64::from(of);
        snapshot.used.iter().map(share).sum()
    });
    let mut gaps = vec![
        "DAMON does not tell anonymous memory from files: all is taken for pages of files that are only read, which a \
         limit can take and a disk brings back"
            .to_owned(),
        format!(
            "a region that was found used counts as a whole: {} at most in one interval; with as large a share of its \
             pages as of its samples it would be {}",
            mib(whole),
            mib(least)
        ),
        format!("what was never found used is not in it: {} were, of regions with {}", mib(pages), mib(watched)),
    ];
    if recording.targets.iter().any(|target| target.samples.is_none()) {
        gaps.push(format!(
            "how many samples an interval had is not in it: taken for {SAMPLES}, as by default"
        ));
    }
    let unseen: u64 = recording.targets.iter().map(unseen_ns).max().unwrap_or(0);
    if unseen > length_ns / 10 {
        let seconds = |ns: u64| ns as f64 / 1e9;
        gaps.push(format!(
            "nobody looked between snapshots: {:.1} of {:.1} s",
            seconds(unseen),
            seconds(length_ns)
        ));
    }
    gaps.extend(recording.left_out());
    gaps
}

/// Time between the end of a snapshot and the beginning of the next.
fn unseen_ns(target: &Target) -> u64 {
    let pairs = target.snapshots.windows(2);
    pairs.filter_map(|pair| pair[1].start_ns.map(|start_ns| start_ns.saturating_sub(pair[0].end_ns))).sum()
}

fn mib(pages: u64) -> String {
    match pages.div_ceil(256) {
        mib if mib < 10 << 10 => format!("{mib} MiB"),
        mib => format!("{} GiB", mib.div_ceil(1 << 10)),
    }
}
