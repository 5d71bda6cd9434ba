//! Arguments of `pagetide worlds`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Format, whole};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "A world is a scenario drawn from a seed: a workload, each of its parameters, memory, swap, sysctls.
It runs on the real kernel and on the model of it, and each counter is judged by what real runs
differ by. Worlds that are in the folder are not run again. docs/worlds.md says how to read it.

Examples:
  pagetide worlds --on uml:6.12 --seeds 1..100 --out worlds/6.12
  pagetide worlds --on uml:6.12 --seeds 1..100 --workload anon-and-file --time 10m --out worlds/anon
  pagetide worlds --on uml:6.12 --seeds 1..100 --real-of worlds/6.12 --out worlds/mended
  pagetide worlds --on sim --check --seeds 1..2000
  pagetide worlds --on uml:./linux --kernel linux-6.12+lru-gen --seeds 1..50 --out worlds/own"
)]
pub(crate) struct WorldsArgs {
    #[command(subcommand)]
    pub(crate) part: Option<WorldsPart>,
    /// The seeds, first and last [example: 1..500]
    #[arg(long, value_name = "SEEDS", help_heading = "Worlds", allow_hyphen_values = true, required = true)]
    pub(crate) seeds: Option<String>,
    /// Draw only this workload; may be repeated [default: all] [example: hot-and-stream]
    #[arg(long = "workload", value_name = "NAME", help_heading = "Worlds")]
    pub(crate) workloads: Vec<String>,
    /// Of the model alone: small worlds of all kernels, with all of its state checked while they run
    #[arg(long, help_heading = "Worlds", conflicts_with_all = ["out", "real_of", "machine", "repeats", "model_seeds", "host_disk"])]
    pub(crate) check: bool,
    /// Print the commands of all worlds instead of running them, and what no world has
    #[arg(long, help_heading = "Worlds", conflicts_with = "format")]
    pub(crate) dry_run: bool,
    /// Where they run beside the model: uml:VERSION, vm:VERSION or a PATH of either; sim is the model alone
    /// [default: sim] [example: uml:6.12]
    #[arg(long = "on", value_name = "BACKEND", help_heading = "Run")]
    pub(crate) backend: Option<String>,
    /// Kernel of the model, with features added (+) or taken away (-) [default: that of the real one, or linux-6.12]
    /// [example: linux-6.12+lru-gen]
    #[arg(long, value_name = "KERNEL", help_heading = "Run")]
    pub(crate) kernel: Option<String>,
    /// With `--on sim`: another kernel of the model in place of a real one [example: linux-6.1]
    #[arg(long, value_name = "KERNEL", help_heading = "Run")]
    pub(crate) against: Option<String>,
    /// Take what ran for real from this folder of an earlier call; worlds that are not there run for real
    /// [example: worlds/6.12]
    #[arg(long, value_name = "DIR", help_heading = "Run")]
    pub(crate) real_of: Option<PathBuf>,
    /// Runs of each world on the real kernel [default: 2] [example: 3]
    #[arg(long, value_name = "N", help_heading = "Run", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub(crate) repeats: Option<u64>,
    /// Runs of each world on the model, with this many seeds [default: 3] [example: 5]
    #[arg(long, value_name = "N", help_heading = "Run", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub(crate) model_seeds: Option<u64>,
    /// Machine of the model's side [default: guest-uml, with the protection keys of this host, or as in `--real-of`]
    /// [example: guest.toml]
    #[arg(long, value_name = "NAME", help_heading = "Run")]
    pub(crate) machine: Option<String>,
    /// Begin no world after this time; the same command goes on later [default: until all are done] [example: 10m]
    #[arg(long, value_name = "TIME", help_heading = "Run", allow_hyphen_values = true)]
    pub(crate) time: Option<String>,
    /// Worlds at a time, 0 is one for each CPU [default: 1 of real kernels, else 0] [example: 2]
    #[arg(long, value_name = "N", help_heading = "Run", value_parser = whole::<usize>, allow_negative_numbers = true)]
    pub(crate) jobs: Option<usize>,
    /// What guests may take of the free disk, such as 80% or 20G [default: 50%] [example: 20G]
    #[arg(long, value_name = "SHARE", help_heading = "Run", allow_hyphen_values = true)]
    pub(crate) host_disk: Option<String>,
    /// The folder of the worlds, new or one to go on with [example: worlds/6.12]
    #[arg(short, long, value_name = "DIR", help_heading = "Output", required_unless_present_any = ["dry_run", "check"])]
    pub(crate) out: Option<PathBuf>,
    /// Form of the summary on standard output [example: json]
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = "Output")]
    pub(crate) format: Format,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorldsPart {
    /// Make a world that disagrees smaller while it still does: one command for each side
    Shrink(ShrinkArgs),
    /// Show both sides of a world beside each other: counters, and where the samples of one part
    #[command(after_help = "Examples:
  pagetide worlds explain 17 --in worlds/6.12
  pagetide worlds explain uml:6.12/17 --in worlds/6.12 --counter pgrefill")]
    Explain(WorldArgs),
}

#[derive(Debug, Args)]
#[command(
    after_help = "Ctrl-C shows the smallest world so far. What `pagetide worlds --check` finds is made smaller at once.

Examples:
  pagetide worlds shrink 17 --in worlds/6.12
  pagetide worlds shrink uml:6.12/17 --in worlds/6.12 --counter pgrefill --time 30m"
)]
pub(crate) struct ShrinkArgs {
    #[command(flatten)]
    pub(crate) world: WorldArgs,
    /// Try no smaller world after this time [example: 30m]
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10m",
        help_heading = "Run",
        allow_hyphen_values = true
    )]
    pub(crate) time: String,
}

#[derive(Debug, Args)]
pub(crate) struct WorldArgs {
    /// The world: its seed, or KERNEL/SEED as in the column `world` [example: uml:6.12/17]
    pub(crate) world: String,
    /// The folder that it is in, of an earlier call [example: worlds/6.12]
    #[arg(long = "in", value_name = "DIR", help_heading = "Worlds")]
    pub(crate) folder: PathBuf,
    /// The counter or metric, by its name in the table [default: the one that is off by the most] [example: pgrefill]
    #[arg(long, value_name = "NAME", help_heading = "Worlds")]
    pub(crate) counter: Option<String>,
    /// What guests may take of the free disk, such as 80% or 20G [default: 50%] [example: 20G]
    #[arg(long, value_name = "SHARE", help_heading = "Run", allow_hyphen_values = true)]
    pub(crate) host_disk: Option<String>,
    /// Form of the result on standard output [example: json]
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = "Output")]
    pub(crate) format: Format,
}
