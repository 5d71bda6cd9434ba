//! Arguments of `pagetide trace`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{Events, ReadingArgs, ScenarioArgs, TextFormat};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Open the file at https://ui.perfetto.dev, which reads it in the browser and sends it nowhere.

Examples:
  pagetide trace hot-and-stream --mem 256M -o run.perfetto-trace
  pagetide run hot-and-stream --events pages --out recordings/run
  pagetide trace recordings/run -o run.perfetto-trace
  pagetide trace recordings/run --format ftrace | less -S
  pagetide trace info app.trace"
)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    pub(crate) command: Option<TraceCommand>,
    /// A recording, or a workload, by name or from a file (*.toml, *.fio), to run for it [example: recordings/run]
    #[arg(value_name = "RECORDING|WORKLOAD|FILE", required = true)]
    pub(crate) subject: Option<String>,
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

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Say what is in a trace of a program or of requests: tasks, files, footprint, reuse distances
    Info(InfoArgs),
}

#[derive(Debug, Args)]
#[command(
    after_help = "It takes traces of `pagetide capture`, logs of strace, perf trace, blkparse, fio and DAMON, and
traces of requests, all told by their content and perhaps compressed. The table of reuse says how
many accesses an LRU cache of that size would have had; `pagetide size` simulates a kernel instead.

Examples:
  pagetide trace info app.trace
  pagetide trace info strace.log.gz --format json"
)]
pub(crate) struct InfoArgs {
    /// The trace, `-` for a log or requests on standard input [example: app.trace]
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    /// Form of the result on standard output [example: json]
    #[arg(long, value_enum, default_value_t = TextFormat::Text, help_heading = "Output")]
    pub(crate) format: TextFormat,
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
