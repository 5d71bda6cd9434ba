//! Arguments of `pagetide vm`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct VmArgs {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: VmCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum VmCommand {
    /// Bring Debian's newest kernel of a version into the cache folder, with apt, unprivileged
    #[command(
        after_help = "A kernel of your own needs no fetching: `--on vm:PATH` takes its image, or the folder
that it is built in.

Example:
  pagetide vm fetch 6.12"
    )]
    Fetch {
        /// Version: 5.10, 6.1, 6.12, 7.2, or a whole release [example: 6.12]
        #[arg(value_name = "VERSION")]
        version: String,
        /// Look for a newer one, if one is here already
        #[arg(long)]
        update: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct UmlArgs {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: UmlCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UmlCommand {
    /// Bring Debian's User-Mode Linux of a version into the cache folder, with apt, unprivileged
    #[command(
        after_help = "A kernel of your own needs no fetching: `--on uml:PATH` takes the program `linux`, or the tree
that it was built in.

Example:
  pagetide uml fetch 6.12"
    )]
    Fetch {
        /// Version: 5.10, 6.1, 6.12, 7.2, or a whole release [example: 6.12]
        #[arg(value_name = "VERSION")]
        version: String,
        /// Look for a newer one, if one is here already
        #[arg(long)]
        update: bool,
    },
    /// Print the options to build a User-Mode Linux with
    #[command(after_help = "Example, in a kernel tree:
  pagetide uml config > pagetide.config
  make ARCH=um KCONFIG_ALLCONFIG=pagetide.config allnoconfig
  make ARCH=um -j2 linux")]
    Config,
}
