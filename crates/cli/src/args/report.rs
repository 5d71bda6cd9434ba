//! Arguments of `pagetide report`.

use std::path::PathBuf;

use clap::Args;

use super::Format;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pagetide report recordings/run
  pagetide report recordings/aging --format md")]
pub(crate) struct ReportArgs {
    /// Recordings, or folders of recordings as a comparison leaves them [example: recordings/run]
    #[arg(value_name = "DIR", required = true)]
    pub(crate) folders: Vec<PathBuf>,
    /// Form of the result on standard output [example: json]
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = "Output")]
    pub(crate) format: Format,
    /// Show all metrics, counters and cgroups, as JSON and CSV always do
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,
}
