//! What all commands that run a scenario take: machine, guest, host.

use std::path::PathBuf;

use clap::Args;

use super::whole;

/// The shape of a guest.
#[derive(Debug, Clone, Args)]
pub(crate) struct GuestArgs {
    /// With `--on uml:` or `vm:`: CPUs [default: 2; of `uml:` 1] [example: 4]
    #[arg(long = "vm-cpus", value_name = "N", value_parser = whole::<u16>, allow_negative_numbers = true, help_heading = "Guest")]
    pub(crate) cpus: Option<u16>,
    /// With `--on vm:`: NUMA nodes, which share CPUs and memory evenly [default: 1] [example: 2]
    #[arg(long = "vm-nodes", value_name = "N", value_parser = whole::<u16>, allow_negative_numbers = true, help_heading = "Guest")]
    pub(crate) numa_nodes: Option<u16>,
    /// With `--on uml:` or `vm:`: multi-gen LRU, on, off or bits of its `enabled` [default: off] [example: on]
    #[arg(long, value_name = "on|off", help_heading = "Guest")]
    pub(crate) lru_gen: Option<String>,
    /// With `--on uml:` or `vm:` and XFS: MiB of its log [default: what mkfs.xfs chooses] [example: 16]
    #[arg(long = "vm-xfs-log", value_name = "MIB", value_parser = whole::<u16>, allow_negative_numbers = true, help_heading = "Guest")]
    pub(crate) xfs_log: Option<u16>,
}

/// What a run on this host may do.
#[derive(Debug, Clone, Args)]
pub(crate) struct HostArgs {
    /// With `--on host`: memory of all that the run does [default: 256M] [example: 512M]
    #[arg(long, value_name = "SIZE", help_heading = "Host", allow_hyphen_values = true)]
    pub(crate) host_limit: Option<String>,
    /// With `--on host`: where its files are made [default: for temporary files] [example: /data]
    #[arg(long, value_name = "DIR", help_heading = "Host")]
    pub(crate) host_dir: Option<PathBuf>,
    /// With `--on host`, `uml:` or `vm:`: what its files may take of the free disk, such as 80% or 20G
    /// [default: 50%] [example: 20G]
    #[arg(long, value_name = "SHARE", help_heading = "Host", allow_hyphen_values = true)]
    pub(crate) host_disk: Option<String>,
    /// With `--on host`: let it drop all caches of this host and write its sysctls
    #[arg(long, help_heading = "Host")]
    pub(crate) allow_host_pressure: bool,
    /// Stop a run that takes longer than this on the clock; it leaves nothing [default: none] [example: 60s]
    #[arg(long, value_name = "TIME", help_heading = "Run", allow_hyphen_values = true)]
    pub(crate) max_time: Option<String>,
}

impl HostArgs {
    /// The option that was given, the first of several.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--host-limit", self.host_limit.is_some()),
            ("--host-dir", self.host_dir.is_some()),
            ("--allow-host-pressure", self.allow_host_pressure),
            ("--host-disk", self.host_disk.is_some()),
            ("--max-time", self.max_time.is_some()),
        ];
        given.into_iter().find_map(|(option, given)| given.then_some(option))
    }
}

/// What a scenario is made from, but for the kernel.
#[derive(Debug, Clone, Args)]
pub(crate) struct ScenarioArgs {
    /// Parameter of the workload; may be repeated [default: see `list workloads NAME`] [example: hot=50M]
    #[arg(long = "param", value_name = "NAME=VALUE", help_heading = "Run", allow_hyphen_values = true)]
    pub(crate) params: Vec<String>,
    /// Seed of all randomness in the run [default: 1] [example: 7]
    #[arg(long, value_name = "N", help_heading = "Run", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Time between two samples of all counters, from 1ms to 3600s [default: 100ms simulated, 1s of real kernels]
    /// [example: 20ms]
    #[arg(long, value_name = "TIME", help_heading = "Run", allow_hyphen_values = true)]
    pub(crate) interval: Option<String>,
    /// Where to run: sim, host, uml:VERSION, vm:VERSION or a PATH of either; comparisons take several [default: sim]
    /// [example: uml:6.12]
    #[arg(long = "on", value_name = "BACKEND", help_heading = "Run")]
    pub(crate) backends: Vec<String>,
    /// Print the resolved scenario instead of running it
    #[arg(long, help_heading = "Run", conflicts_with = "format")]
    pub(crate) dry_run: bool,
    /// Simulated machine to run on, by name or a machine file (*.toml) [default: the workload's own]
    /// [example: vm-2cpu]
    #[arg(long, value_name = "NAME|FILE", help_heading = "Machine")]
    pub(crate) machine: Option<String>,
    /// Memory of a simulated or virtual machine [default: the workload's own] [example: 1016336kB]
    #[arg(long, value_name = "SIZE", help_heading = "Machine", allow_hyphen_values = true)]
    pub(crate) mem: Option<String>,
    /// What a simulated or virtual machine swaps to: zram:SIZE, disk:SIZE, several with commas,
    /// each perhaps with ,prio=N behind it, or none
    /// [default: the workload's own] [example: zram:256M]
    #[arg(long, value_name = "AREAS", help_heading = "Machine", allow_hyphen_values = true)]
    pub(crate) swap: Option<String>,
    /// Sysctl to set; may be repeated [default: the kernel's own] [example: vm.swappiness=10]
    #[arg(long = "set", value_name = "SYSCTL=VALUE", help_heading = "Machine", allow_hyphen_values = true)]
    pub(crate) sysctls: Vec<String>,
    #[command(flatten)]
    pub(crate) vm: GuestArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

impl ScenarioArgs {
    /// The option that was given, the first of several.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--param", !self.params.is_empty()),
            ("--seed", self.seed.is_some()),
            ("--interval", self.interval.is_some()),
            ("--on", !self.backends.is_empty()),
            ("--dry-run", self.dry_run),
            ("--machine", self.machine.is_some()),
            ("--mem", self.mem.is_some()),
            ("--swap", self.swap.is_some()),
            ("--set", !self.sysctls.is_empty()),
            ("--vm-cpus", self.vm.cpus.is_some()),
            ("--vm-nodes", self.vm.numa_nodes.is_some()),
            ("--lru-gen", self.vm.lru_gen.is_some()),
            ("--vm-xfs-log", self.vm.xfs_log.is_some()),
        ];
        given.into_iter().find_map(|(option, given)| given.then_some(option)).or(self.host.given())
    }
}
