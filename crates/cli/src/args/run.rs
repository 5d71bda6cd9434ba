//! Arguments of `pagetide run`.

use std::path::PathBuf;

use clap::Args;

use super::{EventsArgs, Format, PlotArgs, ScenarioArgs};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pagetide run hot-and-stream --kernel linux-5.4+root-aging
  pagetide run hot-and-stream --param stream=2G --mem 512M --format json
  pagetide run scenario.toml --out recordings/first
  pagetide run my-server.toml --on sim --on uml:6.12     the same as `compare`")]
pub(crate) struct RunArgs {
    /// Workload by name, or a file: your own or a scenario (*.toml), fio jobs (*.fio) [example: hot-and-stream]
    #[arg(value_name = "WORKLOAD|FILE")]
    pub(crate) subject: String,
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Simulated kernel, with features added (+) or taken away (-) [default: linux-6.12]
    /// [example: linux-5.4+root-aging]
    #[arg(long, value_name = "KERNEL", help_heading = "Machine")]
    pub(crate) kernel: Option<String>,
    /// Keep the recording in this new folder [default: not kept] [example: recordings/first]
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Check all of the model's state after every event, which takes long; what is wrong is a bug of pagetide
    #[arg(long, help_heading = "Run", conflicts_with = "out")]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) events: EventsArgs,
    /// Form of the result on standard output [example: json]
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = "Output")]
    pub(crate) format: Format,
    /// Show all metrics, counters and cgroups, as JSON and CSV always do
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) plot: PlotArgs,
}
