//! Arguments of `pagetide report`.

use std::path::PathBuf;

use clap::Args;

use super::Format;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pagetide report recordings/run
  pagetide report recordings/aging --format md
  pagetide report recordings/aging -o report.html
  pagetide report recordings/aging --plot story.svg --figure story")]
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
    /// Write a page with figures, to look at in a browser; an earlier page is replaced
    /// [example: report.html]
    #[arg(short, long, value_name = "FILE", help_heading = "Output", conflicts_with_all = ["format", "all"])]
    pub(crate) out: Option<PathBuf>,
    /// Write one figure as SVG [example: story.svg]
    #[arg(long, value_name = "FILE", help_heading = "Output", conflicts_with_all = ["format", "all"])]
    pub(crate) plot: Option<PathBuf>,
    /// Which figure `--plot` writes; the first of the page without it [example: story]
    #[arg(long, value_name = "NAME", requires = "plot", help_heading = "Output")]
    pub(crate) figure: Option<String>,
}
