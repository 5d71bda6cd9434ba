//! Arguments of `pagetide list`.

use clap::{Args, ValueEnum};

use super::Format;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pagetide list kernels
  pagetide list workloads hot-and-stream
  pagetide list counters --format csv
  pagetide list zones --machine guest-tcg --mem 512M --set vm.min_free_kbytes=10000")]
pub(crate) struct ListArgs {
    /// What to list
    #[arg(value_enum)]
    pub(crate) what: ListWhat,
    /// Only these of it; workloads with their parameters [default: all] [example: hot-and-stream]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
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
    /// Workloads; those that are named, and all as CSV, JSON and Markdown, with their parameters
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
    /// Replacement policies for `replay --policy`, with their parameters
    Policies,
    /// Zones of a machine as they are after boot: watermarks, reserves, per-CPU lists
    Zones,
}
