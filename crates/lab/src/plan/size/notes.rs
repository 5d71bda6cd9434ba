//! What a reader must know of a size: what is in the trace, what was assumed, what was not modelled.

use report::Advice;
use trace::Trace;
use units::PAGE_SIZE;
use workload::amount::Warmup;
use workload::replay::{Held, Timing, Whole};

use super::runs::{Field, Source};

/// What is in the trace, a phrase each.
pub(super) fn holds(field: &Field<'_>) -> Vec<String> {
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    match &field.source {
        Source::Program { info, .. } => vec![
            format!("`{}`", info.command),
            format!("{}, {}", counted(info.processes, "process", "es"), counted(info.tasks, "task", "s")),
            format!(
                "{}, {}",
                counted(info.reads.calls, "read", "s"),
                counted(info.writes.calls, "write", "s")
            ),
            format!("{} MiB of different file pages", mib(info.footprint.file_pages * PAGE_SIZE)),
            format!("{} MiB of anonymous memory mapped at most", mib(info.memory.anonymous_bytes_most)),
            format!("{:.1} s", info.seconds),
        ],
        Source::Requests { .. } => {
            let whole = field.source.held().map_or_else(Whole::default, |held| held.whole);
            let mut holds = vec![
                format!(
                    "{}, {:.0} % of them writes",
                    counted(whole.requests, "request", "s"),
                    percent(whole.writes, whole.requests)
                ),
                format!("{} asked for", counted(whole.accesses, "page", "s")),
                format!("{} MiB of different ones", mib(whole.footprint_pages * PAGE_SIZE)),
            ];
            if whole.span_ns > 0 {
                holds.push(format!("{:.0} s by its own clock", whole.span_ns as f64 / 1e9));
            }
            holds
        }
    }
}

/// A sentence each.
pub(super) fn notes(field: &Field<'_>, advice: Option<&Advice>, stopped: bool) -> Vec<String> {
    let plan = field.plan;
    let mut notes = Vec::new();
    if stopped {
        notes.push(
            "interrupted: limits that had not finished are missing, and the rest rests on those here"
                .to_owned(),
        );
    }
    match &field.source {
        Source::Program { like, trace, .. } => {
            notes.extend(crate::resolve::program::remarks(like));
            notes.extend(heap(trace, advice));
            notes.push(UNMODELLED.to_owned());
        }
        Source::Requests { .. } => notes.extend(of_requests(field)),
    }
    if plan.options.warmup != Warmup::None {
        notes
            .push(format!("The first {} of the trace fill memory and are not counted.", plan.options.warmup));
    }
    if let Some(one_in) = plan.sample {
        notes.push(format!(
            "Simulated is one address in {one_in}, with limits, memory of the machine and times of writeback in \
             proportion{}; batches of charges and of reclaim are not scaled. Counts and times are multiplied by how many \
             pages the trace has for one of the sample; misses are set against all pages that the trace asks for. \
             Another seed is another sample.",
            thinned(field)
        ));
        notes.extend(small_sample(field, one_in));
    }
    if let Some(advice) = advice
        && advice.run_as_set.as_ref().is_some_and(|run| run.keeps != Some(true))
    {
        notes.push("With all three set at once the target was not kept: treat them as too small.".to_owned());
    }
    if plan.seeds.len() == 1 {
        notes.push("One seed: `--seeds 5` shows how much of it is chance.".to_owned());
    }
    notes
}

/// Pages of a sample below which what does not scale with it moves the curve by points, not tenths.
const SAMPLE_PAGES_MIN: u64 = (1 << 30) / PAGE_SIZE;

/// Says so of a sample that is small, with the part that would not be.
fn small_sample(field: &Field<'_>, one_in: u32) -> Option<String> {
    let held = field.source.held()?;
    // Where the whole was read, too, the sample's own count is not at hand here: it is in proportion.
    let pages = held.whole.footprint_pages / u64::from(one_in);
    if pages >= SAMPLE_PAGES_MIN {
        return None;
    }
    let larger = match held.whole.footprint_pages / SAMPLE_PAGES_MIN {
        0 | 1 => "run the whole".to_owned(),
        one_in => format!("take `--sample 1/{one_in}` or run the whole"),
    };
    Some(format!(
        "This sample is small: about {} MiB of different pages. Batches of charges and of reclaim, and pages that CPUs hold, \
         are as large as ever and weigh more in it, most at the least limits, so its hits may be a point or two off, and \
         more where the curve is steep: {larger}, or measure it with `--check-sample`.",
        (pages * PAGE_SIZE) >> 20
    ))
}

/// What is scaled of a sample that has a page of each group of neighbours.
fn thinned(field: &Field<'_>) -> String {
    match field.source.sample().map_or(1, Held::one_of) {
        1 => String::new(),
        one_of => format!(
            "; of {one_of} neighbouring pages it has one, so readahead windows are a {one_of}th as long, a page counts as \
             a hit where the whole's readahead would have brought it, and what a request \
             costs the disk beside its bytes is divided among the parts that the sample has of it, on average (the CPU \
             time of calls is not, so times are longer than those of the whole)"
        ),
    }
}

/// Runtimes whose heap grows with their limit: a file by which they are known, and what sets it.
const RUNTIMES: [(&str, &str, &str); 3] = [
    ("/libjvm.so", "the JVM", "-Xmx"),
    ("/node", "V8", "--max-old-space-size="),
    ("/libcoreclr.so", ".NET", "DOTNET_GCHeapHardLimit"),
];
/// Of `memory.high`, in percent: threads, code and files need the rest.
const HEAP_PERCENT: u64 = 75;

/// That a heap is to be limited, too, and by what.
fn heap(trace: &Trace, advice: Option<&Advice>) -> Option<String> {
    let mib = (advice?.high * HEAP_PERCENT / 100) >> 20;
    let of = |end: &str| trace.files.iter().any(|file| file.path.ends_with(end));
    let (_, runtime, flag) = RUNTIMES.into_iter().find(|(end, ..)| of(end))?;
    let setting = match flag {
        "-Xmx" => format!("{flag}{mib}m"),
        "DOTNET_GCHeapHardLimit" => format!("{flag}=0x{:x}", mib << 20),
        _ => format!("{flag}{mib}"),
    };
    Some(format!(
        "The heap of {runtime} grows with the memory that it finds, so it would not be what this trace has: set \
         `{setting}` beside the limit ({HEAP_PERCENT} % of memory.high), and check it with `--verify`."
    ))
}

/// Whatever the trace is.
const UNMODELLED: &str =
    "Not modelled: that writers of a group are held back by its own share of dirty pages.";

/// What a trace of requests does not tell.
fn of_requests(field: &Field<'_>) -> Vec<String> {
    let whole = field.source.held().map_or_else(Whole::default, |held| held.whole);
    let first = percent(whole.footprint_pages, whole.accesses);
    let timing = match field.plan.options.timing {
        Timing::Asap => {
            "Each request is made as soon as the one before is done, so run time is time in the kernel and on the \
             disk alone: a program that computes in between is slowed down by less than this says."
        }
        Timing::Recorded => {
            "Requests are made at their recorded times, one after the other: run time is that of the trace, and a \
             slowdown is of `in_requests_seconds`, the time that all requests took."
        }
    };
    vec![
        format!(
            "Of the pages asked for, {first:.1} % are asked for the first time: they miss at every limit, but for \
             those that are read ahead."
        ),
        timing.to_owned(),
        "A trace of requests holds no memory of the program itself: add what it has on its heap, its stacks and its \
         code."
            .to_owned(),
        UNMODELLED.to_owned(),
    ]
}

fn counted(count: u64, what: &str, plural: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { plural })
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}
