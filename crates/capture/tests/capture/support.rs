//! Runs a program under capture, and shows what it did to the files of one folder.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use pagetide_capture::{CaptureError, Captured, Ended, Options, Piece};
use trace::{Operation, OperationKind, Trace};

/// Says what a test leaves out, straight to the stream: the test harness hides what the macros print.
pub(crate) fn skipped(what: &str) {
    writeln!(std::io::stderr(), "SKIPPED: {what}").expect("somebody listens");
}

/// What a capture left, whole.
pub(crate) struct Seen {
    pub(crate) trace: Trace,
    pub(crate) ended: Ended,
}

pub(crate) fn options() -> Options {
    Options { sample: Some(Duration::from_millis(20)), ..Options::default() }
}

pub(crate) fn try_follow(words: &[&str], options: &Options) -> Result<Seen, CaptureError> {
    let arguments: Vec<OsString> = words[1..].iter().map(OsString::from).collect();
    let mut trace = Trace::default();
    let mut sink = |piece: Piece| {
        trace.operations.extend(piece.operations);
        trace.tasks.extend(piece.tasks);
        trace.files.extend(piece.files);
        trace.mappings.extend(piece.mappings);
        assert_eq!(trace.check(), Ok(()), "what has come so far can be read");
        Ok(())
    };
    let signal = AtomicUsize::new(0);
    let captured = pagetide_capture::command(OsStr::new(words[0]), &arguments, options, &signal, &mut sink)?;
    Ok(whole(captured, trace))
}

pub(crate) fn whole(captured: Captured, collected: Trace) -> Seen {
    captured.written.expect("the sink takes all");
    let trace = Trace { operations: collected.operations, ..captured.trace };
    assert_eq!(trace.files, collected.files);
    assert_eq!(trace.check(), Ok(()));
    assert_eq!(captured.counts.iter().sum::<u64>(), trace.operations.len() as u64);
    Seen { trace, ended: captured.ended }
}

pub(crate) fn follow(words: &[&str]) -> Seen {
    try_follow(words, &options()).expect("it can be followed")
}

/// A script of the shell, in a folder.
pub(crate) fn shell(folder: &Path, script: &str) -> Seen {
    let script = format!("cd {} && {{ {script}\n}}", folder.display());
    follow(&["sh", "-c", &script])
}

impl Seen {
    /// Operations of these kinds.
    pub(crate) fn of(&self, kinds: &[OperationKind]) -> Vec<Operation> {
        self.trace.operations.iter().filter(|operation| kinds.contains(&operation.kind)).copied().collect()
    }

    /// What was done to files below a folder, a line each: task's name, operation, file, range.
    pub(crate) fn below(&self, folder: &Path) -> String {
        let mut lines = String::new();
        for operation in &self.trace.operations {
            let Operation { task, kind, object, offset, len, detail, .. } = *operation;
            if kind.acts_on() != trace_acts_on_file() {
                continue;
            }
            let path = Path::new(&self.trace.files[object as usize].path);
            let Ok(name) = path.strip_prefix(folder) else { continue };
            let number = self.trace.tasks[task as usize].name.as_str();
            writeln!(lines, "{number}: {} {} {offset}+{len} {detail}", kind.name(), name.display())
                .expect("a text takes all");
        }
        lines
    }
}

fn trace_acts_on_file() -> trace::ActsOn {
    OperationKind::Read.acts_on()
}
