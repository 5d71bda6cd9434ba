//! Arguments of `pagetide import`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Whose runs or logs are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportForm {
    /// A folder `work/log` of mmtests of any age, or one run in it: recordings
    Mmtests,
    /// A log of `strace -f -tt -T -y -o LOG COMMAND`: a trace of a program
    Strace,
    /// What `perf trace -o LOG COMMAND` prints: a trace of a program
    PerfTrace,
    /// What `blkparse` prints: a trace of requests to a device
    Blkparse,
    /// fio's `write_iolog`, version 2 or 3: a trace of a program
    Fio,
    /// A file of `damo record`, or the tracepoint `damon:damon_aggregated` as text: a trace of a program's memory
    Damon,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Of mmtests durations and counters of all tests are read, and samples of fsmark, simoop, stressng,
thpfioscale and thpchallenge.
Logs may be compressed (gzip, zstd). `replay`, `size` and `trace info` take them as they are, too;
what a log does not tell is said here and kept in the trace. Of DAMON damo's JSON is read, plain or
compressed, and what `perf script`, `trace-cmd report` or a kernel's own `trace` prints: regions
that were used are taken for pages of files that are only read.

Examples:
  pagetide import mmtests work/log --out recordings/mmtests
  strace -f -tt -T -y -o app.log ./app
  pagetide import strace app.log -o app.trace
  pagetide trace info app.trace
  damo record --timeout 60 $(pidof app) && pagetide size damon.data"
)]
pub(crate) struct ImportArgs {
    /// Form to read
    #[arg(value_enum)]
    pub(crate) form: ImportForm,
    /// Folder or log to read, `-` for a log on standard input [example: work/log]
    #[arg(value_name = "DIR|LOG")]
    pub(crate) from: PathBuf,
    /// New folder for the recordings, or new file for the trace [example: recordings/mmtests]
    #[arg(short, long, value_name = "DIR|FILE", required = true, help_heading = "Output")]
    pub(crate) out: PathBuf,
}
