//! Arguments of `pagetide capture`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::whole;

#[derive(Debug, Args)]
#[command(
    after_help = "It needs no root. The command runs as it would by itself: its streams, signals and exit status are
its own, 128 and the signal's number if it was killed, 127 if it is not found, 126 if it cannot be
run. Set-user-ID programs and file capabilities have no effect in it. Ctrl-C goes to the command;
what it did until then is kept. With --attach, --cgroup or --unit, Ctrl-C ends the capture and they
go on.

Files are followed call by call. Memory is looked at now and then: which pages came, and how many of
each mapping were used. What is known to be missing is in the trace, and told at the end.

Examples:
  pagetide capture -o build.trace -- cargo build
  pagetide capture -o sql.trace -- sh -c 'sqlite3 my.db < queries.sql'
  pagetide capture -o server.trace --attach 4711 --for 60s
  pagetide size build.trace"
)]
pub(crate) struct CaptureArgs {
    /// Write the trace to this new file [example: app.trace]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: PathBuf,
    /// Time between two looks at memory, from 1ms to 3600s, or `off` [default: 100ms] [example: 1s]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) sample: Option<String>,
    /// Kill a command that has made this many tasks [default: 200000] [example: 1000000]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) max_tasks: Option<String>,
    /// Follow a process that runs already and its children; each of their calls stops them [example: 4711]
    #[arg(
        long,
        alias = "pid",
        value_name = "PID",
        value_parser = whole::<u32>,
        allow_negative_numbers = true,
        group = "running",
        help_heading = "What runs already"
    )]
    pub(crate) attach: Option<u32>,
    /// Follow all processes of a cgroup and of those below it [example: system.slice/redis-server.service]
    #[arg(long, value_name = "PATH", group = "running", help_heading = "What runs already")]
    pub(crate) cgroup: Option<PathBuf>,
    /// Follow all processes of a unit of systemd [example: redis-server]
    #[arg(long, value_name = "NAME", group = "running", help_heading = "What runs already")]
    pub(crate) unit: Option<String>,
    /// Let them go on by themselves after this time, from 1ms to 3600s [default: when they end] [example: 60s]
    #[arg(
        long = "for",
        value_name = "TIME",
        requires = "running",
        allow_hyphen_values = true,
        help_heading = "What runs already"
    )]
    pub(crate) length: Option<String>,
    /// The command and its arguments, after `--` [example: cargo build]
    #[arg(
        last = true,
        required_unless_present = "running",
        conflicts_with = "running",
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<OsString>,
}
