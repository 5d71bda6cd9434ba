//! Arguments of `pagetide explain`.

use clap::{Args, ValueEnum};

use super::ScenarioArgs;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pagetide explain recordings/run
  pagetide explain hot-and-stream --kernel linux-5.4 --param low=20M
  pagetide explain sequential-readers --kernel linux-2.6.32 --folded > stacks.txt")]
pub(crate) struct ExplainArgs {
    /// A recording, or a workload or scenario file (*.toml) to run for it [example: recordings/run]
    #[arg(value_name = "RECORDING|WORKLOAD|SCENARIO.toml")]
    pub(crate) subject: String,
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Simulated kernel, with features added (+) or taken away (-) [default: linux-6.12]
    /// [example: linux-5.4+root-aging]
    #[arg(long, value_name = "KERNEL", help_heading = "Machine")]
    pub(crate) kernel: Option<String>,
    /// Print stacks of waits in nanoseconds, as programs read them that draw flame graphs
    #[arg(long, help_heading = "Output", conflicts_with = "format")]
    pub(crate) folded: bool,
    /// Form of the result on standard output [example: json]
    #[arg(long, value_enum, default_value_t = ExplainFormat::Text, help_heading = "Output")]
    pub(crate) format: ExplainFormat,
    /// Show every row
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExplainFormat {
    /// For a terminal
    Text,
    /// One JSON object
    Json,
    /// Markdown
    Md,
}
