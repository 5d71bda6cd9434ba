//! Arguments of `pagetide stats`.

use clap::{Args, ValueEnum};

use super::{Format, Style};

/// Which way of a measure is the good one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BetterArg {
    /// Rates: averaged harmonically
    Higher,
    /// Times: averaged arithmetically
    Lower,
}

/// Which rows a table of mmtests has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowsArg {
    /// Extremes, quartiles, percentiles, means, spread and means of the best
    All,
    /// Min, mean, spread, max and means of the best, as for most benchmarks
    Few,
}

#[derive(Debug, Args)]
#[command(after_help = "An input is `NAME=1.5,2.5`, `NAME=FILE`, `FILE`, or folders with recordings.
A file has numbers, one a line or with blanks between them; or it is CSV with a header,
`run,operation,value` or a column for each operation; or JSON: a list, lists by operation, or those
by run. The first run is the baseline.

Examples:
  pagetide stats base=4.1,4.3,4.0,4.2 patched=3.1,3.3,3.0,3.2
  pagetide stats vanilla=vanilla.txt patched=patched.txt --operation 1-files/sec --style mmtests
  pagetide stats recordings/aging --style mmtests-head")]
pub(crate) struct StatsArgs {
    /// Numbers of a run, files of numbers, or folders with recordings [example: base=base.txt]
    #[arg(value_name = "NUMBERS|FILE|DIR", required = true)]
    pub(crate) inputs: Vec<String>,
    /// What numbers are called where their input does not say [default: value] [example: 1-files/sec]
    #[arg(long, value_name = "NAME", help_heading = "Input")]
    pub(crate) operation: Option<String>,
    /// Which way of all numbers is the good one [default: what their name says] [example: higher]
    #[arg(long, value_enum, help_heading = "Input")]
    pub(crate) better: Option<BetterArg>,
    /// Tables of its own, or those of mmtests
    #[arg(long, value_enum, default_value_t = Style::Own, help_heading = "Output")]
    pub(crate) style: Style,
    /// With mmtests' styles: its rows [default: all in the style of 2019, few in that of today]
    #[arg(long, value_enum, help_heading = "Output")]
    pub(crate) rows: Option<RowsArg>,
    /// Form of the result on standard output [example: json]
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = "Output")]
    pub(crate) format: Format,
}
