//! Arguments of `pagetide record`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::Format;

#[derive(Debug, Args)]
#[command(
    after_help = "The command's exit status is passed on: 128 and the signal's number if it was killed,
127 if it is not found, 126 if it cannot be run.

Example:
  pagetide record --out recordings/build -- cargo build"
)]
pub(crate) struct RecordArgs {
    /// Keep the recording in this new folder [default: not kept] [example: recordings/build]
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Time between two samples of all counters, from 1ms to 3600s [default: 1s] [example: 100ms]
    #[arg(long, value_name = "TIME", help_heading = "Output", allow_hyphen_values = true)]
    pub(crate) interval: Option<String>,
    /// Form of the result on standard error, as standard output is the command's [example: json]
    #[arg(long, value_enum, default_value_t = Format::Text, conflicts_with = "out", help_heading = "Output")]
    pub(crate) format: Format,
    /// Show all metrics, counters and cgroups, as JSON and CSV always do
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,
    /// The command and its arguments, after `--` [example: cargo build]
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
