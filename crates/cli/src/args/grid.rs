//! What becomes of the runs of a grid: of an ablation, of a sweep.

use std::path::PathBuf;

use clap::Args;

use super::{Format, PlotArgs};

#[derive(Debug, Args)]
pub(crate) struct GridArgs {
    /// Keep all recordings in this folder as they come [default: not kept] [example: recordings/grid]
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Go on with what is in that folder: what has finished is not run again
    #[arg(long, requires = "out", help_heading = "Output")]
    pub(crate) resume: bool,
    /// Form of the result on standard output; of a sweep, JSON and CSV have one record for each run [example: json]
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = "Output")]
    pub(crate) format: Format,
    /// Show all metrics, as JSON and CSV always do
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) plot: PlotArgs,
}
