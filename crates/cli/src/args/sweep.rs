//! Arguments of `pagetide sweep`.

use clap::{ArgMatches, Args};
use lab::sweep::Swept;

use super::{GridArgs, GuestArgs, HostArgs, ReadingArgs, whole};

#[derive(Debug, Args)]
#[command(
    after_help = "Options with several values are axes; every combination is run, the first axis slowest.
  A,B,C         a list, in which each may be a range
  A..B          both included: numbers go up by one, sizes and capacities double
  A..B+STEP     in steps: 256M..512M+32M
  A..B*FACTOR   by a factor: 1..1000*10
  \"A,B\"         one value with its commas or points
At most 1000 runs, on a cluster 100000. A run that fails does not stop the others; its row says why,
and the exit code tells.

Examples:
  pagetide sweep hot-and-stream --mem 256M..2G --kernel linux-6.1,linux-6.12 --out recordings/mem
  pagetide sweep huge-faults --set vm.fragment_stall_order=0..11 --param advice=madvise --mem 256M \\
    --kernel linux-4.20-rc1+nofragment+watermark-boost-v2+fragment-stall
  pagetide sweep trace.csv --mem 256M..2G --kernel linux-5.5 --kernel linux-6.12
  pagetide sweep trace.csv --policy lru,clock --capacity 1k,10k
  pagetide sweep hot-and-stream --mem 256M..2G --dask tcp://scheduler:8786 --out sweeps/mem"
)]
pub(crate) struct SweepArgs {
    /// Workload by name, a file (*.toml, *.fio), or a trace [example: huge-faults]
    #[arg(value_name = "WORKLOAD|FILE|TRACE")]
    pub(crate) subject: String,
    /// Parameter of the workload with its values; may be repeated [example: hot=25M..100M]
    #[arg(long = "param", value_name = "NAME=VALUES", help_heading = "Run", allow_hyphen_values = true)]
    params: Vec<String>,
    /// Seeds [default: 1] [example: 1..5]
    #[arg(long = "seed", value_name = "VALUES", help_heading = "Run", allow_hyphen_values = true)]
    seed: Vec<String>,
    /// Runs of each combination, with this many seeds [default: 1] [example: 5]
    #[arg(long, value_name = "N", help_heading = "Run", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub(crate) seeds: Option<u64>,
    /// Time between two samples of all counters, from 1ms to 3600s [default: 100ms simulated, 1s of real kernels]
    /// [example: 20ms]
    #[arg(long, value_name = "TIME", help_heading = "Run", allow_hyphen_values = true)]
    pub(crate) interval: Option<String>,
    /// Where to run: sim, host, uml:VERSION, vm:VERSION or a PATH of either [default: sim] [example: uml:6.12]
    #[arg(long = "on", value_name = "BACKEND", help_heading = "Run")]
    pub(crate) backend: Option<String>,
    /// Runs at a time, 0 is one for each CPU; results do not depend on it [default: 0] [example: 2]
    #[arg(long, value_name = "N", help_heading = "Run", value_parser = whole::<usize>, allow_negative_numbers = true)]
    pub(crate) jobs: Option<usize>,
    /// Run on this Dask cluster, by the Python package pagetide; --out takes one dataset of Parquet files instead of
    /// recordings, here or at a URL [default: on this machine] [example: tcp://scheduler:8786]
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["jobs", "plot", "max_time"], help_heading = "Run")]
    pub(crate) dask: Option<String>,
    /// Print the resolved scenarios instead of running them
    #[arg(long, help_heading = "Run", conflicts_with = "format")]
    pub(crate) dry_run: bool,
    /// Kernels, with features added (+) or taken away (-) [default: linux-6.12] [example: linux-6.1,linux-6.12]
    #[arg(long = "kernel", value_name = "VALUES", help_heading = "Machine", allow_hyphen_values = true)]
    kernels: Vec<String>,
    /// Machines [default: the workload's own] [example: vm-2cpu]
    #[arg(long = "machine", value_name = "VALUES", help_heading = "Machine", allow_hyphen_values = true)]
    machines: Vec<String>,
    /// Memory of the machine [default: the workload's own] [example: 256M..2G]
    #[arg(long = "mem", value_name = "VALUES", help_heading = "Machine", allow_hyphen_values = true)]
    mems: Vec<String>,
    /// What the machine swaps to; several areas of one value between quotes [default: the workload's own]
    /// [example: none,zram:256M]
    #[arg(long = "swap", value_name = "VALUES", help_heading = "Machine", allow_hyphen_values = true)]
    swaps: Vec<String>,
    /// Sysctl with its values; may be repeated [default: the kernel's own] [example: vm.swappiness=10,60]
    #[arg(long = "set", value_name = "SYSCTL=VALUES", help_heading = "Machine", allow_hyphen_values = true)]
    sysctls: Vec<String>,
    /// Of a trace: policies, by name and parameters (`list policies`) [example: lru,s3fifo:small=0.2]
    #[arg(
        long = "policy",
        value_name = "VALUES",
        requires = "capacities",
        help_heading = "Trace",
        allow_hyphen_values = true
    )]
    policies: Vec<String>,
    /// Of a trace: objects that fit into the cache, k is 1000 [example: 1k,10k]
    #[arg(
        long = "capacity",
        value_name = "VALUES",
        requires = "policies",
        help_heading = "Trace",
        allow_hyphen_values = true
    )]
    capacities: Vec<String>,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    #[command(flatten)]
    pub(crate) vm: GuestArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
    #[command(flatten)]
    pub(crate) grid: GridArgs,
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
            ("swaps", Swept::Swap),
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
