//! Arguments of `pagetide export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// In whose form recordings are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportForm {
    /// The folder `work/log` of mmtests, as its scripts of 2019 read it
    Mmtests,
    /// The same for its scripts of today
    MmtestsHead,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Runs are named after the columns of a comparison of the same folders. With `--out log`, scripts of
mmtests find them by `compare-mmtests.pl -d log -b fsmark -n NAME,NAME`, or by being started in it.

Example:
  pagetide export mmtests recordings/aging --out log"
)]
pub(crate) struct ExportArgs {
    /// Form to write
    #[arg(value_enum)]
    pub(crate) form: ExportForm,
    /// Recordings, or folders of recordings as a comparison leaves them [example: recordings/run]
    #[arg(value_name = "DIR", required = true)]
    pub(crate) folders: Vec<PathBuf>,
    /// New folder for the runs [example: log]
    #[arg(short, long, value_name = "DIR", required = true, help_heading = "Output")]
    pub(crate) out: PathBuf,
}
