//! Arguments of `pagetide machine`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct MachineArgs {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: MachineCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MachineCommand {
    /// Write this host as a machine file: nodes, CPUs, memory, disk, sysctls, and what calls cost here
    #[command(
        after_help = "It takes some ten seconds, makes a file of 64 MiB in the folder and removes it. Reclaim is timed
where a memory cgroup can be made. What could not be found stands in the file.

Examples:
  pagetide machine probe --dir /srv > my-server.toml
  pagetide run hot-and-stream --machine my-server.toml
  pagetide machine probe --on uml:6.12 > guest.toml
  pagetide worlds --on uml:6.12 --machine guest.toml --seeds 1..20 --out worlds/6.12"
    )]
    Probe {
        /// Where its files are made: on the disk that is to be timed [default: this folder] [example: /srv]
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,

        /// Guests of User-Mode Linux in place of the host: what calls, faults and pages cost there [example: uml:6.12]
        #[arg(long = "on", value_name = "WHERE", conflicts_with = "dir")]
        backend: Option<String>,
    },
    /// Print a machine, perhaps with changes behind its name, as a machine file
    #[command(after_help = "Examples:
  pagetide machine show x86-64
  pagetide machine show skylake-1s+cpus=16")]
    Show {
        /// Machine by name [example: x86-64]
        #[arg(value_name = "MACHINE")]
        machine: String,
    },
}
