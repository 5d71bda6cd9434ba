//! Arguments of `pagetide ablate`.

use clap::Args;

use super::{GridArgs, ScenarioArgs, whole};

#[derive(Debug, Args)]
#[command(
    after_help = "Each feature is switched: taken away where the kernel has it, added where it does not. Every subset
of the changes is run with every seed: k features make 2^k kernels. At most 6 features, 1000 runs.
A row of the first table is what `pagetide run` with that kernel gives. Then, for each metric:
  effect of a   mean of all kernels with the change minus mean of all without it
  a x b         half of what a does where b is changed, minus half of what it does where b is not

Examples:
  pagetide ablate hot-and-stream --features root-aging,shared-memcg-walk
  pagetide ablate huge-faults --mem 256M --param advice=madvise --seeds 5 \\
    --features nofragment,watermark-boost-v2,fragment-stall"
)]
pub(crate) struct AblateArgs {
    /// Workload by name, or a file: your own or a scenario (*.toml), fio jobs (*.fio) [example: hot-and-stream]
    #[arg(value_name = "WORKLOAD|FILE")]
    pub(crate) subject: String,
    /// Features to switch, a list; may be repeated [example: root-aging,shared-memcg-walk]
    #[arg(long, value_name = "FEATURES", required = true, help_heading = "Run", allow_hyphen_values = true)]
    pub(crate) features: Vec<String>,
    /// Runs of each kernel, with this many seeds [default: 1] [example: 10]
    #[arg(long, value_name = "N", help_heading = "Run", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub(crate) seeds: Option<u64>,
    /// Runs at a time, 0 is one for each CPU; results do not depend on it [default: 0] [example: 2]
    #[arg(long, value_name = "N", help_heading = "Run", value_parser = whole::<usize>, allow_negative_numbers = true)]
    pub(crate) jobs: Option<usize>,
    /// Kernel whose features are switched [default: the baseline of the workload's source, or linux-6.12]
    /// [example: linux-5.4]
    #[arg(long, value_name = "KERNEL", help_heading = "Machine")]
    pub(crate) kernel: Option<String>,
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    #[command(flatten)]
    pub(crate) grid: GridArgs,
}
