//! One figure beside the tables of a command.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Clone, Args)]
pub(crate) struct PlotArgs {
    /// Write one figure as SVG, too [example: story.svg]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) plot: Option<PathBuf>,
    /// Which figure `--plot` writes, as those of `report`; the first without it [example: story]
    #[arg(long, value_name = "NAME", requires = "plot", help_heading = "Output")]
    pub(crate) figure: Option<String>,
}
