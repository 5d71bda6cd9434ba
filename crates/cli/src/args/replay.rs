//! Arguments of `pagetide replay`, and how any command reads a trace.

use std::path::PathBuf;

use clap::Args;
use lab::{LabError, ReplayOptions};

use super::{EventsArgs, Format, GuestArgs, HostArgs, PlotArgs, whole};

#[derive(Debug, Args)]
#[command(
    after_help = "The trace may be compressed (gzip, zstd) and have quotes. A first line that names columns tells
their order: time, object (or key, id), size; or time, op, size, lbn (or lba, offset).
All policies are fed from one reading of the trace, also of standard input (`-`); each kernel
reads it for itself, so standard input is then kept in a temporary file.

The trace of a program (`pagetide capture`) is made again by as many tasks as it had, with their
files and memory in one cgroup: on a simulated machine, on this host or in a virtual machine.
Requests that kernels replay are in a cgroup where `--limit`, `--high` or `--low` is given.

Examples:
  pagetide replay app.trace --mem 2G --limit 128M,256M
  pagetide replay app.trace --limit 256M --on sim --on uml:6.12
  pagetide replay trace.csv --mem 256M,512M --kernel linux-6.12 --warmup 10%
  pagetide replay trace.csv.zst --policy lru,clock --capacity 1k,10k,100k
  zcat trace.gz | pagetide replay - --policy lru --capacity 10k
  pagetide replay recordings/first/scenario.toml"
)]
pub(crate) struct ReplayArgs {
    /// Trace file, `-` for standard input, or the scenario of a replay made earlier (*.toml) [example: trace.csv]
    #[arg(value_name = "TRACE|SCENARIO.toml")]
    pub(crate) trace: PathBuf,
    /// Replacement policy, by name and parameters (`list policies`); a list, or repeated
    /// [example: lru,s3fifo:small=0.2:batch=32]
    #[arg(long = "policy", value_name = "POLICY", requires = "capacities", help_heading = "Cache")]
    #[arg(value_delimiter = ',')]
    pub(crate) policies: Vec<String>,
    /// Objects that fit into the cache, k is 1000; a list, or repeated [example: 1k,10k,100k]
    #[arg(
        long = "capacity",
        value_name = "OBJECTS",
        requires = "policies",
        help_heading = "Cache",
        allow_hyphen_values = true
    )]
    #[arg(value_delimiter = ',')]
    pub(crate) capacities: Vec<String>,
    /// Memory of a simulated machine whose page cache it is; a list, or repeated [example: 256M,512M]
    #[arg(long = "mem", value_name = "SIZE", help_heading = "Cache", allow_hyphen_values = true)]
    #[arg(value_delimiter = ',')]
    pub(crate) mems: Vec<String>,
    /// Kernel of that machine; a list, or repeated [default: linux-6.12] [example: linux-6.1,linux-6.12]
    #[arg(long = "kernel", value_name = "KERNEL", help_heading = "Cache")]
    #[arg(value_delimiter = ',')]
    pub(crate) kernels: Vec<String>,
    /// That machine, by name [default: vm-2cpu] [example: vm-2cpu]
    #[arg(long, value_name = "NAME", help_heading = "Cache")]
    pub(crate) machine: Option<String>,
    /// What that machine swaps to: zram:SIZE, disk:SIZE, several with commas [default: none] [example: zram:64M]
    #[arg(long, value_name = "AREAS", help_heading = "Cache", allow_hyphen_values = true)]
    pub(crate) swap: Option<String>,
    /// Sysctl of that kernel; may be repeated [default: the kernel's own] [example: vm.swappiness=10]
    #[arg(long = "set", value_name = "SYSCTL=VALUE", help_heading = "Cache", allow_hyphen_values = true)]
    pub(crate) sysctls: Vec<String>,
    /// memory.max of the cgroup that it runs in; of requests also `none`; a list, or repeated [default: no limit]
    /// [example: 128M,256M]
    #[arg(long = "limit", value_name = "SIZE", help_heading = "Cgroup", allow_hyphen_values = true)]
    #[arg(value_delimiter = ',')]
    pub(crate) limits: Vec<String>,
    /// memory.high of that cgroup [default: no limit] [example: 200M]
    #[arg(long, value_name = "SIZE", help_heading = "Cgroup", allow_hyphen_values = true)]
    pub(crate) high: Option<String>,
    /// memory.low of that cgroup [default: none] [example: 100M]
    #[arg(long, value_name = "SIZE", help_heading = "Cgroup", allow_hyphen_values = true)]
    pub(crate) low: Option<String>,
    /// Of a program's trace: when operations are made, as long after the task's previous one as captured (think), at
    /// the captured times (recorded), or at once (asap) [default: think] [example: recorded]
    #[arg(long, value_name = "WHEN", help_heading = "Program")]
    pub(crate) pace: Option<String>,
    /// Of a program's trace: where to run, sim, host, uml:VERSION, vm:VERSION or a PATH of either; may be repeated
    /// [default: sim] [example: uml:6.12]
    #[arg(long = "on", value_name = "BACKEND", help_heading = "Program")]
    pub(crate) backends: Vec<String>,
    #[command(flatten)]
    pub(crate) vm: GuestArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    /// Seed of all randomness in that machine [default: 1] [example: 7]
    #[arg(long, value_name = "N", help_heading = "Run", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Time between two samples of that machine's counters, from 1ms to 3600s [default: 100ms] [example: 20ms]
    #[arg(long, value_name = "TIME", help_heading = "Run", allow_hyphen_values = true)]
    pub(crate) interval: Option<String>,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    /// Keep the recording, or those of several caches, in this new folder [default: not kept]
    /// [example: recordings/trace]
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
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

/// How a trace is read, and what of it counts.
#[derive(Debug, Args)]
pub(crate) struct ReadingArgs {
    /// When requests are made of a kernel: asap or recorded [default: asap] [example: recorded]
    #[arg(long, value_name = "WHEN", help_heading = "Trace")]
    pub(crate) timing: Option<String>,
    /// Beginning that is not counted: a part (10%), requests (5k), or a time of the trace (30s) [default: 0]
    /// [example: 10%]
    #[arg(long, value_name = "HOW MUCH", help_heading = "Trace", allow_hyphen_values = true)]
    pub(crate) warmup: Option<String>,
    /// Format of the trace: block-csv, msr, object-csv or oracle-general [default: by content] [example: block-csv]
    #[arg(long, value_name = "FORMAT", help_heading = "Trace")]
    pub(crate) trace_format: Option<String>,
    /// Take requests in the order of the trace though its times decrease
    #[arg(long, help_heading = "Trace")]
    pub(crate) unsorted: bool,
}

impl ReadingArgs {
    /// As the lab takes it.
    pub(crate) fn options(&self) -> Result<ReplayOptions, LabError> {
        lab::replay::options(
            self.trace_format.as_deref(),
            self.timing.as_deref(),
            self.warmup.as_deref(),
            self.unsorted,
        )
    }

    /// The option that was given, the first of several.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--timing", self.timing.is_some()),
            ("--warmup", self.warmup.is_some()),
            ("--trace-format", self.trace_format.is_some()),
            ("--unsorted", self.unsorted),
        ];
        given.into_iter().find_map(|(option, given)| given.then_some(option))
    }
}
