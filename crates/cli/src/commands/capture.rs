//! `pagetide capture`: a program, followed.
//!
//! Standard streams are the command's own; what was captured is told on standard error when it has ended.

use lab::capture::{Request, Whom, run};
use lab::trace::check_new_file;

use crate::args::CaptureArgs;
use crate::exit;
use crate::printer::{Failure, Printer};
use crate::signals::last_signal;

/// Returns the command's exit status.
pub(crate) fn capture(args: &CaptureArgs, printer: &Printer) -> Result<u8, Failure> {
    check_new_file(&args.out)?;
    let whom = match (args.attach, &args.cgroup, &args.unit) {
        (Some(pid), _, _) => Whom::Process(pid),
        (_, Some(path), _) => Whom::Cgroup(path),
        (_, _, Some(name)) => Whom::Unit(name),
        _ => Whom::Command(args.command.clone()),
    };
    let (sample, max_tasks) = (args.sample.as_deref(), args.max_tasks.as_deref());
    let length = args.length.as_deref();
    let done = run(&Request { out: &args.out, whom, length, sample, max_tasks }, &last_signal())?;
    let told = done.told.iter().chain([&done.summary]);
    told.filter(|text| !text.is_empty()).for_each(|text| printer.note(text));
    match done.failure {
        // A command that failed has said so itself; otherwise the trace is what failed.
        Some(failure) => {
            let code = printer.failure(&Failure::Lab(failure));
            Ok(if done.status == exit::DONE { code } else { done.status })
        }
        None => Ok(done.status),
    }
}
