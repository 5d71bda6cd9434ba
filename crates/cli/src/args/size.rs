//! `pagetide size`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use lab::size::VERIFY_DEFAULT;

use super::{Format, ReadingArgs, whole};

/// How much memory a trace needs: its hits at several limits, where they bend, and what to set; with `--own-cache`
/// how to split memory between a program's own cache and the page cache
#[derive(Debug, Args)]
#[command(after_help = "\
The trace runs in a cgroup of a simulated machine: without a limit, at limits over all that it kept there, and then \
where the curve bends. docs/size.md says how to read the result and how the recommendation is made.

With --own-cache the command after `--` is captured with each size in the place of `{}` (`64M`), `{bytes}`, `{KiB}` or \
`{MiB}`. It must do the same work with each and end by itself.

Examples:
  pagetide size app.trace --verify
  pagetide size app.csv --slowdown 5%
  pagetide size app.csv --sample 1/16 --check-sample
  pagetide size app.csv --fail-if 'refaults > 1000' --plot curve.svg --out runs
  pagetide size --own-cache 16M..256M -- sort -S {} -o sorted.txt big.txt
  pagetide size --own-cache 64M..1G --slowdown 10% -- ./bench-with-postgres shared_buffers={MiB}MB")]
pub(crate) struct SizeArgs {
    /// Trace of requests, or of a program (`pagetide capture`, `pagetide import`), `-` is standard input; or what
    /// Prometheus has of a container's memory (JSON of `query_range`, or cAdvisor's text with times)
    /// [example: app.trace]
    #[arg(value_name = "TRACE", required_unless_present = "own_cache")]
    pub(crate) trace: Option<PathBuf>,
    /// The kernel [default: the newest long-term one] [example: linux-6.12]
    #[arg(short, long, value_name = "KERNEL", help_heading = "Kernel and machine")]
    pub(crate) kernel: Option<String>,
    /// Machine [default: vm-2cpu] [example: vm-2cpu]
    #[arg(long, value_name = "NAME", help_heading = "Kernel and machine")]
    pub(crate) machine: Option<String>,
    /// Disk: `nvme`, `ssd`, `hdd`, `network`, `measured` (this host's), or LATENCY:BETWEEN:BANDWIDTH:READAHEAD; several
    /// after commas: the first counts, the others stand beside it [default: measured where the files of a captured
    /// program lie, beside network; else the machine's] [example: nvme,hdd]
    #[arg(long, value_name = "DISK", help_heading = "Kernel and machine", allow_hyphen_values = true)]
    pub(crate) disk: Option<String>,
    /// Memory of the machine, which is not to be the limit [default: half as much again as the trace asks for, and 1G]
    /// [example: 8G]
    #[arg(long, value_name = "SIZE", help_heading = "Kernel and machine", allow_hyphen_values = true)]
    pub(crate) mem: Option<String>,
    /// Sysctl of the kernel; may be repeated [example: vm.dirty_ratio=10]
    #[arg(
        long = "set",
        value_name = "SYSCTL=VALUE",
        help_heading = "Kernel and machine",
        allow_hyphen_values = true
    )]
    pub(crate) sysctls: Vec<String>,
    /// Seed of the first run [default: 1] [example: 7]
    #[arg(long, value_name = "N", help_heading = "Kernel and machine", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Run each limit with so many seeds [default: 1] [example: 5]
    #[arg(long, value_name = "N", help_heading = "Kernel and machine", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub(crate) seeds: Option<u64>,
    /// How much slower it may be than without a limit [default: 5%, unless --fail-if says more] [example: 5%]
    #[arg(long, value_name = "PART", help_heading = "Target", allow_hyphen_values = true)]
    pub(crate) slowdown: Option<String>,
    /// What must not be so at a limit that is enough; changes are from no limit; may be repeated
    /// [example: 'refaults > 1000']
    #[arg(long, value_name = "LIMIT", help_heading = "Target", allow_hyphen_values = true)]
    pub(crate) fail_if: Vec<String>,
    /// How far memory.max is above memory.high [default: 10%] [example: 20%]
    #[arg(long, value_name = "PART", help_heading = "Target", allow_hyphen_values = true)]
    pub(crate) headroom: Option<String>,
    /// Run these limits and no others [default: those that the curve needs] [example: 64M..1G]
    #[arg(long, value_name = "SIZES", help_heading = "Curve", allow_hyphen_values = true)]
    pub(crate) limits: Option<String>,
    /// Run so many limits at most [default: 32] [example: 48]
    #[arg(long, value_name = "N", help_heading = "Curve", value_parser = whole::<usize>, allow_negative_numbers = true)]
    pub(crate) points: Option<usize>,
    /// How near the limits are between which the knee and the target lie [default: 5%] [example: 2%]
    #[arg(long, value_name = "PART", help_heading = "Curve", allow_hyphen_values = true)]
    pub(crate) resolution: Option<String>,
    /// Simulate a hashed part of the trace's addresses, with limits in proportion [example: 1/16]
    #[arg(long, value_name = "1/N", help_heading = "Curve", allow_hyphen_values = true)]
    pub(crate) sample: Option<String>,
    /// Run all of the trace at the same limits, too, and say how far off the sample is
    #[arg(long, help_heading = "Curve")]
    pub(crate) check_sample: bool,
    /// Run the program itself at the recommendation and around it, in a memory cgroup of this host, and correct the
    /// recommendation by that (`program`, or nothing, as the last word); or replay three points of the curve on a real
    /// kernel (`uml:VERSION`, `vm:VERSION`, `host`), as of a trace of requests [example: uml:6.12]
    #[arg(long, value_name = "BY", num_args = 0..=1, default_missing_value = VERIFY_DEFAULT, help_heading = "Check")]
    pub(crate) verify: Option<String>,
    /// Before each run of the program, drop inodes and dentries of this whole host: the program is charged for its own,
    /// as where it starts first
    #[arg(long, help_heading = "Check")]
    pub(crate) allow_host_pressure: bool,
    /// Sizes of a program's own cache: the command after `--` is captured with each, and the best split of memory
    /// between its cache and the page cache is found [example: 64M..1G]
    #[arg(long, value_name = "SIZES", help_heading = "Own cache", allow_hyphen_values = true)]
    pub(crate) own_cache: Option<String>,
    /// The program to check it with, or to capture with `--own-cache`, after `--` [default: the command of the trace]
    /// [example: ./server --port 80]
    #[arg(value_name = "COMMAND", last = true, help_heading = "Check")]
    pub(crate) program: Vec<OsString>,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    /// Of a series that Prometheus has of several containers: a label of the one that is meant; may be repeated
    /// [example: container=web]
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Trace")]
    pub(crate) label: Vec<String>,
    /// Write the recommendation as a patch, too, for `kubectl` or `systemctl edit`: KIND/NAME, KIND/NAME/CONTAINER,
    /// where KIND is deployment, statefulset, daemonset, vpa or unit; may be repeated [example: deployment/web]
    #[arg(long, value_name = "WHAT", help_heading = "Output")]
    pub(crate) patch: Vec<String>,
    /// Time between two samples of counters [default: 100ms] [example: 10ms]
    #[arg(long, value_name = "TIME", help_heading = "Output", allow_hyphen_values = true)]
    pub(crate) interval: Option<String>,
    /// Form of the result on standard output [example: json]
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = "Output")]
    pub(crate) format: Format,
    /// Write a page with the curve as a figure, too; an earlier page is replaced [example: size.html]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) page: Option<PathBuf>,
    /// Write the curve as a figure, too [example: curve.svg]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) plot: Option<PathBuf>,
    /// Keep the recording of each run, and traces that were captured for it, in this new folder [example: runs]
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
}
