//! Arguments of `pagetide import`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Whose runs are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportForm {
    /// A folder `work/log` of mmtests of any age, or one run in it
    Mmtests,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Durations and counters of all tests are read, and samples of fsmark, simoop, stressng,
thpfioscale and thpchallenge.

Example:
  pagetide import mmtests work/log --out recordings/mmtests"
)]
pub(crate) struct ImportArgs {
    /// Form to read
    #[arg(value_enum)]
    pub(crate) form: ImportForm,
    /// Folder to read [example: work/log]
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// New folder for the recordings [example: recordings/mmtests]
    #[arg(long, value_name = "DIR", required = true, help_heading = "Output")]
    pub(crate) out: PathBuf,
}
