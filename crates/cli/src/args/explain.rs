//! Arguments of `pagetide explain`.

use std::ops::RangeInclusive;

use clap::Args;

use super::{ScenarioArgs, TextFormat};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pagetide explain recordings/run
  pagetide explain hot-and-stream --kernel linux-5.4 --param low=20M
  pagetide explain hot-and-stream --kernel linux-5.4 --mem 256M --file hot --page 17
  pagetide explain sequential-readers --kernel linux-2.6.32 --folded > stacks.txt")]
pub(crate) struct ExplainArgs {
    /// A recording, or a workload, by name or from a file (*.toml, *.fio), to run for it [example: recordings/run]
    #[arg(value_name = "RECORDING|WORKLOAD|FILE")]
    pub(crate) subject: String,
    /// Tell the story of this file, or of memory, which is called anon:TASK/N [example: hot]
    #[arg(long, value_name = "NAME", conflicts_with = "folded")]
    pub(crate) file: Option<String>,
    /// With `--file`: tell the whole story of this page, or of pages N to M [example: 17]
    #[arg(long, value_name = "N|N-M", requires = "file", value_parser = pages, allow_hyphen_values = true)]
    pub(crate) page: Option<RangeInclusive<u64>>,
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
    #[arg(long, value_enum, default_value_t = TextFormat::Text, help_heading = "Output")]
    pub(crate) format: TextFormat,
    /// Show every row
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,
}

/// `17`, or `17-31`.
fn pages(text: &str) -> Result<RangeInclusive<u64>, &'static str> {
    const HELP: &str = "it takes the number of a page, such as 17, or of several, such as 17-31";
    let number = |text: &str| text.parse::<u64>().map_err(|_| HELP);
    let (first, last) = text.split_once('-').map_or((text, text), |pair| pair);
    let (first, last) = (number(first)?, number(last)?);
    if first > last { Err(HELP) } else { Ok(first..=last) }
}
