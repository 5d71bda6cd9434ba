//! Arguments of `pagetide trace`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(
    after_help = "Open the file at https://ui.perfetto.dev, which reads it in the browser and sends it nowhere.

Examples:
  pagetide run hot-and-stream --out recordings/run
  pagetide trace recordings/run -o run.perfetto-trace"
)]
pub(crate) struct TraceArgs {
    /// A recording [example: recordings/run]
    #[arg(value_name = "RECORDING")]
    pub(crate) folder: PathBuf,
    /// Write the trace to this new file [default: standard output] [example: run.perfetto-trace]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
}
