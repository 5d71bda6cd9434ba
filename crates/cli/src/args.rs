//! The command line: commands, options, and their help.
//!
//! Names and values of the model are texts here; `pagetide-lab` reads and checks them, so that
//! a mistake is told the same way wherever it was made.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, ArgMatches, Args, Parser, Subcommand, ValueEnum};
use lab::names::Listing;
use lab::sweep::Swept;
use lab::{PolicyKind, ReplayOptions, Timing, TraceFormat, Warmup};

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
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = "Output")]
    quiet: bool,
    /// Say more: the start of each run, too
    #[arg(short, long, global = true, action = ArgAction::SetTrue, help_heading = "Output")]
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
    /// Monitor this host while a command runs
    Record(RecordArgs),
    /// Show recordings made earlier, each by itself
    Report(ReportArgs),
    /// Get kernels for virtual machines
    Vm(VmArgs),
}

#[derive(Debug, Args)]
#[command(
    after_help = "The command's exit status is passed on: 128 and the signal's number if it was killed,
127 if it is not found, 126 if it cannot be run.

Example:
  pagetide record --out recordings/build -- cargo build"
)]
pub(crate) struct RecordArgs {
    /// Keep the recording in this new folder [default: not kept] [example: recordings/build]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Form of the result on standard error, as standard output is the command's [example: json]
    #[arg(long, value_enum, default_value_t = Format::Text, conflicts_with = "out", help_heading = "Output")]
    pub(crate) format: Format,
    /// Show all metrics, counters and cgroups, as JSON and CSV always do
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,
    /// The command and its arguments, after `--` [example: cargo build]
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

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
    },
}

/// The shape of a guest.
#[derive(Debug, Args)]
pub(crate) struct GuestArgs {
    /// With `--on vm:VERSION`: CPUs [default: 2] [example: 4]
    #[arg(long = "vm-cpus", value_name = "N", value_parser = small_count, allow_negative_numbers = true, help_heading = "Virtual machine")]
    pub(crate) cpus: Option<u16>,
    /// With `--on vm:VERSION`: NUMA nodes, which share CPUs and memory evenly [default: 1] [example: 2]
    #[arg(long = "vm-nodes", value_name = "N", value_parser = small_count, allow_negative_numbers = true, help_heading = "Virtual machine")]
    pub(crate) numa_nodes: Option<u16>,
    /// With `--on vm:VERSION`: multi-gen LRU, on, off or bits of its `enabled` [default: off] [example: on]
    #[arg(long, value_name = "on|off", help_heading = "Virtual machine")]
    pub(crate) lru_gen: Option<String>,
    /// With `--on vm:VERSION` and XFS: MiB of its log [default: what mkfs.xfs chooses] [example: 16]
    #[arg(long = "vm-xfs-log", value_name = "MIB", value_parser = small_count, allow_negative_numbers = true, help_heading = "Virtual machine")]
    pub(crate) xfs_log: Option<u16>,
}

/// What a run on this host may do.
#[derive(Debug, Args)]
pub(crate) struct HostArgs {
    /// With `--on host`: memory of all that the run does [default: 256M] [example: 512M]
    #[arg(long, value_name = "SIZE", help_heading = "Host", allow_hyphen_values = true)]
    pub(crate) host_limit: Option<String>,
    /// With `--on host`: where its files are made [default: for temporary files] [example: /data]
    #[arg(long, value_name = "DIR", help_heading = "Host")]
    pub(crate) host_dir: Option<PathBuf>,
    /// With `--on host` or `vm:VERSION`: what its files may take of the free disk, such as 80% or 20G
    /// [default: 50%] [example: 20G]
    #[arg(long, value_name = "SHARE", help_heading = "Host", allow_hyphen_values = true)]
    pub(crate) host_disk: Option<String>,
    /// With `--on host`: let it drop all caches of this host and write its sysctls
    #[arg(long, help_heading = "Host")]
    pub(crate) allow_host_pressure: bool,
}

impl HostArgs {
    /// The option that was given, the first of several.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--host-limit", self.host_limit.is_some()),
            ("--host-dir", self.host_dir.is_some()),
            ("--allow-host-pressure", self.allow_host_pressure),
            ("--host-disk", self.host_disk.is_some()),
        ];
        given.into_iter().find_map(|(option, given)| given.then_some(option))
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pagetide list kernels
  pagetide list counters --format csv
  pagetide list zones --machine guest-tcg --mem 512M --set vm.min_free_kbytes=10000")]
pub(crate) struct ListArgs {
    /// What to list
    #[arg(value_enum)]
    pub(crate) what: ListWhat,
    /// With `zones`: kernel that boots [default: linux-6.12] [example: linux-6.1]
    #[arg(long, value_name = "KERNEL", help_heading = "Machine")]
    pub(crate) kernel: Option<String>,
    /// With `zones`: machine [default: vm-2cpu] [example: guest-tcg]
    #[arg(long, value_name = "NAME", help_heading = "Machine")]
    pub(crate) machine: Option<String>,
    /// With `zones`: memory of the machine [default: the machine's own] [example: 512M]
    #[arg(long, value_name = "SIZE", help_heading = "Machine", allow_hyphen_values = true)]
    pub(crate) mem: Option<String>,
    /// With `zones`: sysctl to set; may be repeated [default: the kernel's own] [example: vm.min_free_kbytes=10000]
    #[arg(long = "set", value_name = "SYSCTL=VALUE", help_heading = "Machine", allow_hyphen_values = true)]
    pub(crate) sysctls: Vec<String>,
    /// Form of the list on standard output [example: json]
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = "Output")]
    pub(crate) format: Format,
}

impl ListArgs {
    /// The option of a machine that was given, the first of several.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--kernel", self.kernel.is_some()),
            ("--machine", self.machine.is_some()),
            ("--mem", self.mem.is_some()),
            ("--set", !self.sysctls.is_empty()),
        ];
        given.into_iter().find_map(|(option, given)| given.then_some(option))
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ListWhat {
    /// Workloads with their parameters and defaults
    Workloads,
    /// Kernels
    Kernels,
    /// Features that a kernel can have or not
    Features,
    /// Sysctls with their ranges and defaults
    Sysctls,
    /// Counters in recordings: where they come from, events or gauges
    Counters,
    /// Machines: nodes, CPUs, memory, speed, disk, and where the figures come from
    Machines,
    /// Zones of a machine as they are after boot: watermarks, reserves, per-CPU lists
    Zones,
}

impl ListWhat {
    /// The list of names; zones depend on a machine.
    pub(crate) fn listing(self) -> Option<Listing> {
        match self {
            Self::Workloads => Some(Listing::Workloads),
            Self::Kernels => Some(Listing::Kernels),
            Self::Features => Some(Listing::Features),
            Self::Sysctls => Some(Listing::Sysctls),
            Self::Counters => Some(Listing::Counters),
            Self::Machines => Some(Listing::Machines),
            Self::Zones => None,
        }
    }
}

/// What a scenario is made from, but for the kernel.
#[derive(Debug, Args)]
pub(crate) struct ScenarioArgs {
    /// Parameter of the workload; may be repeated [default: see `list workloads`] [example: hot=50M]
    #[arg(long = "param", value_name = "NAME=VALUE", help_heading = "Run", allow_hyphen_values = true)]
    pub(crate) params: Vec<String>,
    /// Seed of all randomness in the run [default: 1] [example: 7]
    #[arg(long, value_name = "N", help_heading = "Run", allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Where to run: sim, host, vm:VERSION or vm:PATH; comparisons take several [default: sim] [example: vm:6.12]
    #[arg(long = "on", value_name = "BACKEND", help_heading = "Run")]
    pub(crate) backends: Vec<String>,
    /// Print the resolved scenario instead of running it
    #[arg(long, help_heading = "Run")]
    pub(crate) dry_run: bool,
    /// Simulated machine to run on [default: the workload's own] [example: vm-2cpu]
    #[arg(long, value_name = "NAME", help_heading = "Machine")]
    pub(crate) machine: Option<String>,
    /// Memory of a simulated or virtual machine [default: the workload's own] [example: 1016336kB]
    #[arg(long, value_name = "SIZE", help_heading = "Machine", allow_hyphen_values = true)]
    pub(crate) mem: Option<String>,
    /// Sysctl to set; may be repeated [default: the kernel's own] [example: vm.swappiness=10]
    #[arg(long = "set", value_name = "SYSCTL=VALUE", help_heading = "Machine", allow_hyphen_values = true)]
    pub(crate) sysctls: Vec<String>,
    #[command(flatten)]
    pub(crate) vm: GuestArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

/// Whose tables a comparison prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Style {
    /// Its own.
    Own,
    /// Those of mmtests, as of 2019.
    Mmtests,
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

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pagetide run hot-and-stream --kernel linux-5.4+root-aging
  pagetide run hot-and-stream --param stream=2G --mem 512M --format json
  pagetide run scenario.toml --out recordings/first")]
pub(crate) struct RunArgs {
    /// Workload by name, or a scenario file (*.toml) [example: hot-and-stream]
    #[arg(value_name = "WORKLOAD|SCENARIO.toml")]
    pub(crate) subject: String,
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Simulated kernel, with features added (+) or taken away (-) [default: linux-6.12]
    /// [example: linux-5.4+root-aging]
    #[arg(long, value_name = "KERNEL", help_heading = "Machine")]
    pub(crate) kernel: Option<String>,
    /// Keep the recording in this new folder [default: not kept] [example: recordings/first]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Form of the result on standard output [example: json]
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = "Output")]
    pub(crate) format: Format,
    /// Show all metrics, counters and cgroups, as JSON and CSV always do
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Without --kernel, kernels are those of the workload's source before and after its change.
The first kernel or folder is the baseline. A folder takes precedence over a workload's name.
JSON has a key `comparison`, CSV rows of the kind `comparison`: change, interval, p and verdict of each metric.

Examples:
  pagetide compare hot-and-stream
  pagetide compare hot-and-stream --kernel linux-6.1 --kernel linux-6.12 --seeds 10
  pagetide compare recordings/first recordings/second --format md"
)]
pub(crate) struct CompareArgs {
    /// Workload by name, a scenario file (*.toml), or folders with recordings [example: hot-and-stream]
    #[arg(value_name = "WORKLOAD|DIR", required = true)]
    pub(crate) subjects: Vec<String>,
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Simulated kernel to compare; repeated [default: the source's own before and after] [example: linux-6.1]
    #[arg(long = "kernel", value_name = "KERNEL", help_heading = "Machine")]
    pub(crate) kernels: Vec<String>,
    /// Runs of each kernel, with this many seeds [default: 1] [example: 10]
    #[arg(long, value_name = "N", help_heading = "Run", allow_negative_numbers = true)]
    pub(crate) seeds: Option<u64>,
    /// Runs at a time; results do not depend on it [default: one for each CPU] [example: 2]
    #[arg(long, value_name = "N", help_heading = "Run", allow_negative_numbers = true)]
    pub(crate) jobs: Option<usize>,
    /// Keep all recordings in this new folder [default: not kept] [example: recordings/aging]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Form of the result on standard output [example: json]
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = "Output")]
    pub(crate) format: Format,
    /// Tables as text: its own, or mmtests' with all rows of samples, durations and Ops
    #[arg(long, value_enum, default_value_t = Style::Own, help_heading = "Output")]
    pub(crate) style: Style,
    /// Show all metrics, counters and cgroups, as JSON and CSV always do
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pagetide report recordings/run
  pagetide report recordings/aging --format md")]
pub(crate) struct ReportArgs {
    /// Recordings, or folders of recordings as a comparison leaves them [example: recordings/run]
    #[arg(value_name = "DIR", required = true)]
    pub(crate) folders: Vec<PathBuf>,
    /// Form of the result on standard output [example: json]
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = "Output")]
    pub(crate) format: Format,
    /// Show all metrics, counters and cgroups, as JSON and CSV always do
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Options with several values are axes; every combination is run, the first axis slowest.
  A,B,C         a list, in which each may be a range
  A..B          both included: numbers go up by one, sizes and capacities double
  A..B+STEP     in steps: 256M..512M+32M
  A..B*FACTOR   by a factor: 1..1000*10
  \"A,B\"         one value with its commas or points
At most 1000 runs. A run that fails does not stop the others; its row says why, and the exit code tells.

Examples:
  pagetide sweep hot-and-stream --mem 256M..2G --kernel linux-6.1,linux-6.12 --out recordings/mem
  pagetide sweep huge-faults --set vm.fragment_stall_order=0..11 --param advice=madvise --mem 256M \\
    --kernel linux-4.20-rc1+nofragment+watermark-boost-v2+fragment-stall
  pagetide sweep trace.csv --mem 256M..2G --kernel linux-5.5 --kernel linux-6.12
  pagetide sweep trace.csv --policy lru,clock --capacity 1k,10k"
)]
pub(crate) struct SweepArgs {
    /// Workload by name, a scenario file (*.toml), or a trace [example: huge-faults]
    #[arg(value_name = "WORKLOAD|SCENARIO.toml|TRACE")]
    pub(crate) subject: String,
    /// Parameter of the workload with its values; may be repeated [example: hot=25M..100M]
    #[arg(long = "param", value_name = "NAME=VALUES", help_heading = "Run", allow_hyphen_values = true)]
    params: Vec<String>,
    /// Seeds [default: 1] [example: 1..5]
    #[arg(long = "seed", value_name = "VALUES", help_heading = "Run")]
    seed: Vec<String>,
    /// Runs of each combination, with this many seeds [default: 1] [example: 5]
    #[arg(long, value_name = "N", help_heading = "Run")]
    pub(crate) seeds: Option<u64>,
    /// Where to run: sim, host, vm:VERSION or vm:PATH [default: sim] [example: vm:6.12]
    #[arg(long = "on", value_name = "BACKEND", help_heading = "Run")]
    pub(crate) backend: Option<String>,
    /// Runs at a time; results do not depend on it [default: one for each CPU] [example: 2]
    #[arg(long, value_name = "N", help_heading = "Run", allow_negative_numbers = true)]
    pub(crate) jobs: Option<usize>,
    /// Print the resolved scenarios instead of running them
    #[arg(long, help_heading = "Run")]
    pub(crate) dry_run: bool,
    /// Kernels, with features added (+) or taken away (-) [default: linux-6.12] [example: linux-6.1,linux-6.12]
    #[arg(long = "kernel", value_name = "VALUES", help_heading = "Machine")]
    kernels: Vec<String>,
    /// Machines [default: the workload's own] [example: vm-2cpu]
    #[arg(long = "machine", value_name = "VALUES", help_heading = "Machine")]
    machines: Vec<String>,
    /// Memory of the machine [default: the workload's own] [example: 256M..2G]
    #[arg(long = "mem", value_name = "VALUES", help_heading = "Machine", allow_hyphen_values = true)]
    mems: Vec<String>,
    /// Sysctl with its values; may be repeated [default: the kernel's own] [example: vm.swappiness=10,60]
    #[arg(long = "set", value_name = "SYSCTL=VALUES", help_heading = "Machine", allow_hyphen_values = true)]
    sysctls: Vec<String>,
    /// Of a trace: policies: lru, fifo, clock [example: lru,clock]
    #[arg(long = "policy", value_name = "VALUES", requires = "capacities", help_heading = "Trace")]
    policies: Vec<String>,
    /// Of a trace: objects that fit into the cache, k is 1000 [example: 1k,10k]
    #[arg(long = "capacity", value_name = "VALUES", requires = "policies", help_heading = "Trace")]
    capacities: Vec<String>,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    #[command(flatten)]
    pub(crate) vm: GuestArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    /// Keep all recordings in this folder as they come [default: not kept] [example: recordings/sweep]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Go on with the sweep in that folder: what has finished is not run again
    #[arg(long, requires = "out", help_heading = "Output")]
    pub(crate) resume: bool,
    /// Form of the result on standard output; JSON and CSV have one record for each run [example: json]
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = "Output")]
    pub(crate) format: Format,
    /// Show all metrics, as JSON and CSV always do
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,
    /// What can be an axis, in the order of the command line.
    #[arg(skip)]
    pub(crate) swept: Vec<(Swept, String)>,
}

impl SweepArgs {
    /// Fills in what only the order of the command line tells.
    pub(crate) fn in_order_of(&mut self, matches: &ArgMatches) {
        let options = [
            ("kernels", Swept::Kernel),
            ("machines", Swept::Machine),
            ("mems", Swept::Mem),
            ("sysctls", Swept::Set),
            ("params", Swept::Param),
            ("seed", Swept::Seed),
            ("policies", Swept::Policy),
            ("capacities", Swept::Capacity),
        ];
        let mut given: Vec<(usize, Swept, String)> = Vec::new();
        for (id, swept) in options {
            let texts = matches.get_many::<String>(id).into_iter().flatten();
            let places = matches.indices_of(id).into_iter().flatten();
            given.extend(places.zip(texts).map(|(place, text)| (place, swept, text.clone())));
        }
        given.sort_by_key(|(place, ..)| *place);
        self.swept = given.into_iter().map(|(_, swept, text)| (swept, text)).collect();
    }
}

#[derive(Debug, Args)]
#[command(
    after_help = "Each feature is switched: taken away where the kernel has it, added where it does not. Every subset
of the changes is run with every seed: k features make 2^k kernels, at most 6 features and 1000 runs.
A row of the first table is what `pagetide run` with that kernel gives. Then, for each metric:
  effect of a   mean of all kernels with the change minus mean of all without it
  a x b         half of what a does where b is changed, minus half of what it does where b is not

Examples:
  pagetide ablate hot-and-stream --features root-aging,shared-memcg-walk
  pagetide ablate huge-faults --mem 256M --param advice=madvise --seeds 5 \\
    --features nofragment,watermark-boost-v2,fragment-stall"
)]
pub(crate) struct AblateArgs {
    /// Workload by name, or a scenario file (*.toml) [example: hot-and-stream]
    #[arg(value_name = "WORKLOAD|SCENARIO.toml")]
    pub(crate) subject: String,
    /// Features to switch, a list; may be repeated [example: root-aging,shared-memcg-walk]
    #[arg(long, value_name = "FEATURES", required = true, help_heading = "Run", allow_hyphen_values = true)]
    pub(crate) features: Vec<String>,
    /// Runs of each kernel, with this many seeds [default: 1] [example: 10]
    #[arg(long, value_name = "N", help_heading = "Run", allow_negative_numbers = true)]
    pub(crate) seeds: Option<u64>,
    /// Runs at a time; results do not depend on it [default: one for each CPU] [example: 2]
    #[arg(long, value_name = "N", help_heading = "Run", allow_negative_numbers = true)]
    pub(crate) jobs: Option<usize>,
    /// Kernel whose features are switched [default: the baseline of the workload's source, or linux-6.12]
    /// [example: linux-5.4]
    #[arg(long, value_name = "KERNEL", help_heading = "Machine")]
    pub(crate) kernel: Option<String>,
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Keep all recordings in this folder as they come [default: not kept] [example: recordings/ablation]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Go on with the ablation in that folder: what has finished is not run again
    #[arg(long, requires = "out", help_heading = "Output")]
    pub(crate) resume: bool,
    /// Form of the result on standard output [example: json]
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = "Output")]
    pub(crate) format: Format,
    /// Show all metrics, as JSON and CSV always do
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The trace may be compressed (gzip, zstd) and have quotes. A first line that names columns tells
their order: time, object (or key, id), size; or time, op, size, lbn (or lba, offset).
All policies are fed from one reading of the trace, also of standard input (`-`); each kernel
reads it for itself, so standard input is then kept in a temporary file.

Examples:
  pagetide replay trace.csv --mem 256M,512M --kernel linux-6.12 --warmup 10%
  pagetide replay trace.csv.zst --policy lru,clock --capacity 1k,10k,100k
  zcat trace.gz | pagetide replay - --policy lru --capacity 10k
  pagetide replay recordings/first/scenario.toml"
)]
pub(crate) struct ReplayArgs {
    /// Trace file, `-` for standard input, or the scenario of a replay made earlier (*.toml) [example: trace.csv]
    #[arg(value_name = "TRACE|SCENARIO.toml")]
    pub(crate) trace: PathBuf,
    /// Replacement policy: lru, fifo or clock; a list, or repeated [example: lru,clock]
    #[arg(long = "policy", value_name = "POLICY", requires = "capacities", help_heading = "Cache")]
    #[arg(value_delimiter = ',')]
    #[arg(value_parser = |text: &str| text.parse::<PolicyKind>().map_err(|error| with_hint(&error)))]
    pub(crate) policies: Vec<PolicyKind>,
    /// Objects that fit into the cache, k is 1000; a list, or repeated [example: 1k,10k,100k]
    #[arg(long = "capacity", value_name = "OBJECTS", requires = "policies", help_heading = "Cache")]
    #[arg(value_delimiter = ',')]
    pub(crate) capacities: Vec<String>,
    /// Memory of a simulated machine whose page cache it is; a list, or repeated [example: 256M,512M]
    #[arg(long = "mem", value_name = "SIZE", help_heading = "Cache", allow_hyphen_values = true)]
    #[arg(value_delimiter = ',')]
    pub(crate) mems: Vec<String>,
    /// Kernel of that machine; a list, or repeated [default: linux-6.12] [example: linux-6.1,linux-6.12]
    #[arg(long = "kernel", value_name = "KERNEL", requires = "mems", help_heading = "Cache")]
    #[arg(value_delimiter = ',')]
    pub(crate) kernels: Vec<String>,
    /// That machine, by name [default: vm-2cpu] [example: vm-2cpu]
    #[arg(long, value_name = "NAME", requires = "mems", help_heading = "Cache")]
    pub(crate) machine: Option<String>,
    /// Sysctl of that kernel; may be repeated [default: the kernel's own] [example: vm.swappiness=10]
    #[arg(long = "set", value_name = "SYSCTL=VALUE", requires = "mems", help_heading = "Cache")]
    pub(crate) sysctls: Vec<String>,
    /// Seed of all randomness in that machine [default: 1] [example: 7]
    #[arg(long, value_name = "N", requires = "mems", help_heading = "Run")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    /// Keep the recording, or those of several caches, in this new folder [default: not kept]
    /// [example: recordings/trace]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Form of the result on standard output [example: json]
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = "Output")]
    pub(crate) format: Format,
    /// Show all metrics, counters and cgroups, as JSON and CSV always do
    #[arg(long, help_heading = "Output")]
    pub(crate) all: bool,
}

/// How a trace is read, and what of it counts.
#[derive(Debug, Args)]
pub(crate) struct ReadingArgs {
    /// When requests are made of a kernel: asap or recorded [default: asap] [example: recorded]
    #[arg(long, value_name = "WHEN", help_heading = "Trace")]
    #[arg(value_parser = |text: &str| text.parse::<Timing>().map_err(|error| with_hint(&error)))]
    pub(crate) timing: Option<Timing>,
    /// Beginning that is not counted: a part (10%), requests (5k), or a time of the trace (30s) [default: 0]
    /// [example: 10%]
    #[arg(long, value_name = "HOW MUCH", help_heading = "Trace")]
    #[arg(value_parser = |text: &str| text.parse::<Warmup>().map_err(|error| format!("{error}; {}", error.hint())))]
    pub(crate) warmup: Option<Warmup>,
    /// Format of the trace: block-csv, object-csv or oracle-general [default: by content] [example: block-csv]
    #[arg(long, value_name = "FORMAT", help_heading = "Trace")]
    #[arg(value_parser = |text: &str| text.parse::<TraceFormat>().map_err(|error| with_hint(&error)))]
    pub(crate) trace_format: Option<TraceFormat>,
    /// Take requests in the order of the trace though its times decrease
    #[arg(long, help_heading = "Trace")]
    pub(crate) unsorted: bool,
}

impl ReadingArgs {
    /// As the lab takes it.
    pub(crate) fn options(&self) -> ReplayOptions {
        ReplayOptions {
            format: self.trace_format,
            unsorted: self.unsorted,
            timing: self.timing.unwrap_or_default(),
            warmup: self.warmup.unwrap_or_default(),
        }
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

fn small_count(text: &str) -> Result<u16, &'static str> {
    text.parse().map_err(|_| "it takes a whole number, such as 2")
}

fn with_hint(error: &lab::UnknownName) -> String {
    format!("{error}; {}", error.hint())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_argument_is_documented() {
        Cli::command().debug_assert(); // `help_expected` is checked here.
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
