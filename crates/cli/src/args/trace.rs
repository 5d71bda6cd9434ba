//! Arguments of `pagetide trace`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

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
    /// For which programs [default: perfetto] [example: ftrace]
    #[arg(long, value_enum, default_value_t = TraceStyle::Perfetto, hide_default_value = true, help_heading = "Output")]
    pub(crate) format: TraceStyle,
    /// Write the trace to this new file [default: standard output] [example: run.perfetto-trace]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceStyle {
    /// The Perfetto user interface and `trace_processor`
    Perfetto,
    /// The text of a kernel's `trace` file, for what reads ftrace
    Ftrace,
}
