//! The command line: commands, options, and their help.
//!
//! Names and values of the model are texts here; `pagetide-lab` reads and checks them, so that
//! a mistake is told the same way wherever it was made.

mod ablate;
mod capture;
mod compare;
mod events;
mod explain;
mod export;
mod grid;
mod import;
mod list;
mod machine;
mod plot;
mod record;
mod replay;
mod report;
mod run;
mod scenario;
mod size;
mod stats;
mod sweep;
mod trace;
mod vm;
mod worlds;

use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;

use clap::{ArgAction, Parser, Subcommand, ValueEnum};

pub(crate) use ablate::AblateArgs;
pub(crate) use capture::CaptureArgs;
pub(crate) use compare::{CompareArgs, Style};
pub(crate) use events::{Events, EventsArgs};
pub(crate) use explain::ExplainArgs;
pub(crate) use export::{ExportArgs, ExportForm};
pub(crate) use grid::GridArgs;
pub(crate) use import::{ImportArgs, ImportForm};
pub(crate) use list::{ListArgs, ListWhat};
pub(crate) use machine::{MachineArgs, MachineCommand};
pub(crate) use plot::PlotArgs;
pub(crate) use record::RecordArgs;
pub(crate) use replay::{ReadingArgs, ReplayArgs};
pub(crate) use report::ReportArgs;
pub(crate) use run::RunArgs;
pub(crate) use scenario::{GuestArgs, HostArgs, ScenarioArgs};
pub(crate) use size::SizeArgs;
pub(crate) use stats::{BetterArg, RowsArg, StatsArgs};
pub(crate) use sweep::SweepArgs;
pub(crate) use trace::{InfoArgs, TraceArgs, TraceCommand, TraceStyle};
pub(crate) use vm::{UmlArgs, UmlCommand, VmArgs, VmCommand};
pub(crate) use worlds::{ShrinkArgs, WorldArgs, WorldsArgs, WorldsPart};

/// Run Linux memory management: the effect of a change to reclaim on a workload, in seconds
#[derive(Debug, Parser)]
#[command(name = "pagetide", version, help_expected = true, max_term_width = 100)]
#[command(after_help = crate::exit::HELP, subcommand_required = true, arg_required_else_help = true)]
#[command(infer_subcommands = false, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Say less: no progress
    #[arg(
        short,
        long,
        global = true,
        conflicts_with = "verbose",
        help_heading = "Output",
        display_order = 0
    )]
    quiet: bool,
    /// Say more: the start of each run, too
    #[arg(short, long, global = true, action = ArgAction::SetTrue, help_heading = "Output", display_order = 0)]
    verbose: bool,
}

/// How much to say on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verbosity {
    /// Errors only.
    Quiet,
    /// Progress.
    Normal,
    /// Progress in detail.
    Verbose,
}

impl Cli {
    pub(crate) fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, false) => Verbosity::Normal,
            (false, true) => Verbosity::Verbose,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the names that other commands take, and the zones of a machine
    #[command(arg_required_else_help = true)]
    List(ListArgs),
    /// Run one workload on one kernel
    Run(RunArgs),
    /// Put kernels, or recordings made earlier, side by side
    Compare(CompareArgs),
    /// Run one workload, or replay a trace, with every combination of several values
    Sweep(SweepArgs),
    /// Switch features of a kernel, every subset of them: what each does, and each pair together
    Ablate(AblateArgs),
    /// Replay a recorded trace through page cache and reclaim, or on plain policies
    Replay(ReplayArgs),
    /// Say how much memory a trace needs: its curve, the knee, and what to set
    Size(SizeArgs),
    /// Hold the model to real kernels: random scenarios on both, judged counter by counter
    Worlds(WorldsArgs),
    /// Say why a run went as it went: who waited on whom, what evicted which page
    Explain(ExplainArgs),
    /// Follow a program: what it and its children do to files and memory, as a trace to replay
    Capture(CaptureArgs),
    /// Monitor this host while a command runs
    Record(RecordArgs),
    /// Show recordings made earlier, each by itself
    Report(ReportArgs),
    /// Compare numbers or samples of recordings: means, intervals, percentiles, tables of mmtests
    Stats(StatsArgs),
    /// Write recordings in the form of another suite
    Export(ExportArgs),
    /// Read runs of another suite as recordings
    Import(ImportArgs),
    /// Write a run as a trace that other programs show, such as the Perfetto user interface
    Trace(TraceArgs),
    /// Write this host, or a built-in machine, as a machine file
    Machine(MachineArgs),
    /// Get kernels that run as programs (User-Mode Linux)
    Uml(UmlArgs),
    /// Get kernels for virtual machines
    Vm(VmArgs),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables for a terminal
    Text,
    /// One JSON object
    Json,
    /// One row for each number
    Csv,
    /// Tables in Markdown
    Md,
}

impl From<Format> for ::report::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::Text => Self::Text,
            Format::Json => Self::Json,
            Format::Csv => Self::Csv,
            Format::Md => Self::Markdown,
        }
    }
}

/// The form of what has no table to be rows of CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextFormat {
    /// For a terminal
    Text,
    /// One JSON object
    Json,
    /// Markdown
    Md,
}

impl From<TextFormat> for ::report::Format {
    fn from(format: TextFormat) -> Self {
        match format {
            TextFormat::Text => Self::Text,
            TextFormat::Json => Self::Json,
            TextFormat::Md => Self::Markdown,
        }
    }
}

/// A whole number, of the type that an option has.
fn whole<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, &'static str> {
    text.parse().map_err(|error: ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow => "it is too large",
        _ => "it takes a whole number, such as 2",
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_argument_is_documented() {
        Cli::command().debug_assert(); // `help_expected` is checked here.
    }

    /// A line of `capture --help` had a single word.
    #[test]
    fn lines_of_help_that_are_broken_by_hand_fit() {
        let mut open = vec![Cli::command()];
        while let Some(command) = open.pop() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for paragraph in help.split("\n\n").filter(|paragraph| paragraph.contains('\n')) {
                let wide = paragraph.lines().find(|line| line.chars().count() > 100);
                assert_eq!(wide, None, "in `{}`", command.get_name());
            }
            open.extend(command.get_subcommands().cloned());
        }
    }

    /// Clap took `--capacity -1` for an unknown option, and told to write `-- -1`.
    #[test]
    fn a_number_may_be_negative_so_that_it_is_told_why_it_cannot() {
        const NUMBERS: [&str; 9] =
            ["N", "SEED", "PID", "TIME", "SIZE", "SIZES", "OBJECTS", "HOW MUCH", "LIMIT"];
        for command in Cli::command().get_subcommands() {
            for argument in command.get_arguments() {
                let is_number = |name: &clap::builder::Str| NUMBERS.contains(&name.as_str());
                if argument.get_value_names().is_some_and(|names| names.iter().any(is_number)) {
                    let taken =
                        argument.is_allow_hyphen_values_set() || argument.is_allow_negative_numbers_set();
                    assert!(taken, "`{}` of `{}`", argument.get_id(), command.get_name());
                }
            }
        }
    }

    /// README.md showed `pagetide export` without the form to write.
    #[test]
    fn every_command_of_the_documents_can_be_typed() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let folders = ["docs", "docs/tutorials"].map(|name| format!("{root}/{name}"));
        let docs = folders.iter().flat_map(|name| std::fs::read_dir(name).expect("a folder").flatten());
        let files =
            docs.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|is| is == "md"));
        let (mut typed, mut wrong) = (0, Vec::new());
        for file in files.chain([format!("{root}/README.md").into()]) {
            let text = std::fs::read_to_string(&file).expect("a document").replace("\\\n", " ");
            let mut in_code = false;
            for line in text.lines().map(str::trim) {
                in_code ^= line.starts_with("```");
                if !in_code || !line.starts_with("pagetide ") {
                    continue; // Prose, or another command.
                }
                if line.contains("...") || line.contains("[--") {
                    continue; // A part of a command.
                }
                let words = words_of_a_shell(&line.replace("PID", "1").replace("$repeats", "2"));
                if let Err(error) = Cli::command().try_get_matches_from(words) {
                    wrong.push(format!("{}: `{line}`: {error}", file.display()));
                }
                typed += 1;
            }
        }
        assert_eq!(wrong, Vec::<String>::new());
        assert!(typed > 50, "only {typed}");
    }

    #[test]
    fn the_reference_has_every_command() {
        let reference = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/commands.md");
        let page = std::fs::read_to_string(reference).expect("a page");
        let heads: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        let commands = Cli::command();
        let names = commands.get_subcommands().flat_map(|command| {
            let parts =
                command.get_subcommands().map(|part| format!("{} {}", command.get_name(), part.get_name()));
            std::iter::once(command.get_name().to_owned()).chain(parts.collect::<Vec<_>>())
        });
        assert_eq!(heads, names.collect::<Vec<_>>());
    }

    /// The words of the first command in a line: up to a comment or what a shell does next; quotes keep blanks.
    fn words_of_a_shell(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quoted = false;
        for c in line.chars() {
            match c {
                '\'' => quoted = !quoted,
                '#' | '|' | ';' | '>' if !quoted => break,
                ' ' if !quoted => words.push(String::new()),
                _ => words.last_mut().expect("starts with one").push(c),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    #[test]
    fn every_option_with_a_value_has_an_example() {
        for command in Cli::command().get_subcommands() {
            for argument in command.get_arguments() {
                let listed = !argument.get_possible_values().is_empty();
                if argument.get_action().takes_values() && !listed {
                    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                    let (name, command) = (argument.get_id(), command.get_name());
                    assert!(help.contains("[example: "), "`{name}` of `{command}`");
                }
            }
        }
    }
}
