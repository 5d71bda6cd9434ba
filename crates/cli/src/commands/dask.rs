//! `pagetide sweep --dask`: the plan is made here, and run on a cluster by the Python package.
//!
//! Python gets the plan on standard input, writes the result to our standard output and everything else to our
//! standard error, and ends with our exit code. Left out: everything about clusters, see `pagetide/_dask.py`.

use std::env;
use std::io::Write;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

use lab::sweep::SweepPlan;
use lab::sweep::chunk::ClusterRequest;

use crate::args::{Format, SweepArgs, Verbosity};
use crate::exit;
use crate::printer::{Failure, Printer};
use crate::signals;

/// Tells what is missing where the package cannot be imported.
const BEGIN: &str = "\
import sys
try:
    from pagetide import _from_cli
except ImportError as error:
    sys.stderr.write(f'error: `--dask` needs the Python package pagetide: {error}\\n'
        f'hint: `{sys.executable} -m pip install pagetide[dask]`, or name another Python in PAGETIDE_PYTHON\\n')
    sys.exit(2)
sys.exit(_from_cli.main(sys.stdin))
";
/// Time between two looks at signals and at the child.
const LOOK: Duration = Duration::from_millis(50);
/// Time for the child to end by itself after a signal. Then it is killed, which loses nothing that has finished.
const TO_END: Duration = Duration::from_secs(10);

/// Returns Python's exit status.
pub(super) fn sweep(
    args: &SweepArgs,
    plan: &SweepPlan,
    scheduler: &str,
    printer: &Printer,
) -> Result<u8, Failure> {
    let request = ClusterRequest {
        plan: plan.handed_over()?,
        scheduler: scheduler.to_owned(),
        out: args.grid.out.as_ref().map(|out| out.to_string_lossy().into_owned()),
        resume: args.grid.resume,
        chunk_runs: None,
        format: name(args.grid.format).to_owned(),
        all: args.grid.all,
        width: printer.width(),
        quiet: printer.verbosity() == Verbosity::Quiet,
    };
    let python = env::var("PAGETIDE_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let stop = signals::stop_flag();
    let started = Command::new(&python).args(["-c", BEGIN]).stdin(Stdio::piped()).spawn();
    let mut child = started.map_err(|error| {
        let remedy = "install Python 3.10 or newer, or name it in PAGETIDE_PYTHON";
        Failure::Usage(format!("`--dask` needs Python, and `{python}` cannot be started: {error}; {remedy}"))
    })?;
    if let Some(mut input) = child.stdin.take() {
        // Python that ended before it read has told why.
        let _ = input.write_all(request.to_json().as_bytes());
    }
    let status = waited(&mut child, || stop.load(Ordering::Relaxed)).map_err(Failure::Output)?;
    if stop.load(Ordering::Relaxed) {
        return Ok(signals::exit_code());
    }
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(exit::INTERNAL))
}

/// As the package calls it.
const fn name(format: Format) -> &'static str {
    match format {
        Format::Text => "text",
        Format::Json => "json",
        Format::Csv => "csv",
        Format::Md => "md",
    }
}

fn waited(child: &mut Child, stopped: impl Fn() -> bool) -> std::io::Result<ExitStatus> {
    let mut since: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if stopped() && since.get_or_insert_with(Instant::now).elapsed() > TO_END {
            child.kill()?;
        }
        sleep(LOOK);
    }
}
