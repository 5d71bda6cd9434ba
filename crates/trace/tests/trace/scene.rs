//! Logs in the tests, and traces as texts.

use std::fmt::Write as _;

use pagetide_trace::import::{ImportError, ImportFormat, import};
use pagetide_trace::{ActsOn, NONE, Trace};

/// A log's trace; it is told by its content, and can be replayed.
pub(crate) fn trace(log: &str) -> Trace {
    let trace = read(log).unwrap_or_else(|error| panic!("{error}"));
    trace.check().expect("it can be replayed");
    trace
}

/// What is said of a log that cannot be read.
pub(crate) fn refused(format: ImportFormat, log: &[u8]) -> String {
    let error = import(format, "a.log", log).expect_err("it cannot be read");
    format!("{error}; {}", error.hint().unwrap_or("no hint"))
}

fn read(log: &str) -> Result<Trace, ImportError> {
    let format = ImportFormat::of(log.as_bytes()).expect("a format");
    import(format, "a.log", log.as_bytes())
}

/// Operations, a line each: time and length in microseconds, task, what, and on what.
pub(crate) fn operations(trace: &Trace) -> String {
    let mut text = String::new();
    for operation in &trace.operations {
        let object = match operation.kind.acts_on() {
            ActsOn::File => trace.files[operation.object as usize].path.clone(),
            ActsOn::Mapping => format!("mapping {}", operation.object),
            ActsOn::Task => format!("task {}", operation.object),
            ActsOn::Nothing => "-".to_owned(),
        };
        let detail = if operation.detail == NONE { "none".to_owned() } else { operation.detail.to_string() };
        let (at, took) = (operation.at_ns / 1000, operation.took_ns / 1000);
        let (task, kind) = (operation.task, operation.kind.name());
        writeln!(
            text,
            "{at:>6} {took:>4} t{task} {kind:<8} {object} {}+{} {detail}",
            operation.offset, operation.len
        )
        .expect("a text");
    }
    text
}

/// Files, a line each: path and size.
pub(crate) fn files(trace: &Trace) -> String {
    trace.files.iter().map(|file| format!("{} {}\n", file.path, file.size_bytes)).collect()
}

/// What is missing, a line each.
pub(crate) fn gaps(trace: &Trace) -> String {
    trace.gaps.iter().map(|gap| format!("{gap}\n")).collect()
}
