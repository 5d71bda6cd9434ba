//! Arguments of `pagetide trace`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{Events, ScenarioArgs};

#[derive(Debug, Args)]
#[command(
    after_help = "Open the file at https://ui.perfetto.dev, which reads it in the browser and sends it nowhere.

Examples:
  pagetide trace hot-and-stream --mem 256M -o run.perfetto-trace
  pagetide run hot-and-stream --events pages --out recordings/run
  pagetide trace recordings/run -o run.perfetto-trace
  pagetide trace recordings/run --format ftrace | less -S"
)]
pub(crate) struct TraceArgs {
    /// A recording, or a workload or scenario file (*.toml) to run for it [example: recordings/run]
    #[arg(value_name = "RECORDING|WORKLOAD|SCENARIO.toml")]
    pub(crate) subject: String,
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Simulated kernel, with features added (+) or taken away (-) [default: linux-6.12]
    /// [example: linux-5.4+root-aging]
    #[arg(long, value_name = "KERNEL", help_heading = "Machine")]
    pub(crate) kernel: Option<String>,
    /// Of a run that is made for it, which events [default: reclaim; a recording's are what it has]
    /// [example: pages]
    #[arg(long, value_enum, help_heading = "Output")]
    pub(crate) events: Option<Events>,
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
    /// A `trace.dat` for `trace-cmd report` and KernelShark
    TraceDat,
}
