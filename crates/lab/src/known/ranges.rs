//! What each parameter and sysctl is drawn from, and what never is.
//!
//! Kinds, words and the smallest values are the catalog's. Here is only what it does not tell: how large a value may
//! be so that a guest needs seconds. A parameter of numbers that is not listed is a mistake that a test finds.
//! Neighbours: `draw.rs`, which draws; `cost.rs`, which bounds a world as a whole.

use units::Bytes;

/// What the values of something are drawn from. Numbers are log-uniform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Range {
    /// Bytes from the first to the second, both in thousandths of the memory; 0 now and then if it is allowed.
    OfMemory(u64, u64),
    /// Bytes from the first to the second.
    Size(Bytes, Bytes),
    /// A whole number from the first to the second.
    Count(u64, u64),
    /// One of these words, as often as it stands here.
    Words(&'static [&'static str]),
    /// Not drawn, and why.
    Never(&'static str),
}

use Range::{Count, Never, OfMemory, Size, Words};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const READ_SIZE: Range = Size(Bytes(4 * KIB), Bytes(4 * MIB));
const SIZE: Range = OfMemory(15, 4000);
/// Room of a cgroup: most of these worlds are to be under its limit.
const LIMIT: Range = OfMemory(60, 1000);

/// Calls that write between two of `fsync`.
const FSYNC: Range = Count(0, 4096);

/// Memory of a machine: with less than 96 MiB guests of 6.12 do not come to their program.
pub(crate) const MEMORY: (u64, u64) = (128 * MIB, 1024 * MIB);
/// Memory of a small machine of the model alone.
pub(crate) const SMALL_MEMORY: (u64, u64) = (8 * MIB, 64 * MIB);
/// An area of swap, in thousandths of the memory.
pub(crate) const SWAP: (u64, u64) = (60, 2000);

/// By workload and parameter.
pub(crate) const PARAMS: &[(&str, &[(&str, Range)])] = &[
    (
        "anon-and-file",
        &[
            ("steps", Words(&["loop", "loop", "loop", "pageout", "reclaim"])),
            ("hot", OfMemory(15, 800)),
            ("cold", OfMemory(15, 800)),
            ("file", SIZE),
            ("every", OfMemory(15, 500)),
            ("loops", Count(0, 64)),
            ("limit", LIMIT),
            ("swap_max", OfMemory(0, 1000)),
            ("swap_high", OfMemory(0, 1000)),
            ("reclaim", OfMemory(4, 250)),
            ("reclaim_swappiness", Count(0, 200)),
            ("huge", Never("guests have no huge pages")),
            ("compressed_bytes", Count(0, 4096)),
            ("read_size", READ_SIZE),
        ],
    ),
    (
        "containers",
        &[
            ("limit", LIMIT),
            ("a_file", OfMemory(4, 1500)),
            ("a_bytes", SIZE),
            ("a_block", READ_SIZE),
            ("a_fsync", FSYNC),
            ("a_memory", OfMemory(0, 300)),
            ("a_rounds", Count(1, 8)),
            ("a_tasks", Count(1, 4)),
            ("a_max", LIMIT),
            ("a_high", LIMIT),
            ("a_low", OfMemory(0, 500)),
            ("a_min", OfMemory(0, 250)),
            (
                "b_does",
                Words(&[
                    "none",
                    "none",
                    "none",
                    "none",
                    "read",
                    "write",
                    "overwrite",
                    "update",
                    "map",
                    "map-write",
                ]),
            ),
            ("b_file", OfMemory(4, 1500)),
            ("b_bytes", SIZE),
            ("b_block", READ_SIZE),
            ("b_fsync", FSYNC),
            ("b_memory", OfMemory(0, 300)),
            ("b_rounds", Count(1, 8)),
            ("b_tasks", Count(1, 4)),
            ("b_max", LIMIT),
            ("b_high", LIMIT),
        ],
    ),
    (
        "hot-and-stream",
        &[
            ("hot", OfMemory(0, 1000)),
            ("hot_reads", Count(0, 1000)),
            ("stream", OfMemory(0, 8000)),
            ("topology", Words(&["siblings", "parent", "parent", "same"])),
            ("limit", LIMIT),
            ("low", OfMemory(0, 500)),
            ("read_size", READ_SIZE),
        ],
    ),
    (
        "huge-faults",
        &[
            ("advice", Never("guests have no huge pages to ask for")),
            ("threads", Count(1, 16)),
            ("nodes", Never("guests have one")),
            ("file_size", Size(Bytes(4 * KIB), Bytes(MIB))),
            ("scale", Count(1, 100)),
            ("warm", Never("no figure of a world is of its readers alone")),
        ],
    ),
    (
        "inode-storm",
        &[
            ("processes", Count(1, 64)),
            ("files", Count(1, 16_384)),
            ("file_size", Size(Bytes(0), Bytes(64 * KIB))),
            ("per_directory", Count(1, 10_000)),
            ("pin_from", OfMemory(100, 520)),
            ("pin_to", OfMemory(520, 1000)),
            ("pin_step", OfMemory(15, 250)),
            ("programs", OfMemory(0, 200)),
        ],
    ),
    (
        "mapped-and-stream",
        &[
            ("hot", OfMemory(4, 800)),
            ("reads", Count(1, 16)),
            ("written", Count(0, 64)),
            ("stream", SIZE),
            ("every", OfMemory(4, 500)),
            ("loops", Count(0, 64)),
            ("limit", LIMIT),
            ("read_size", READ_SIZE),
        ],
    ),
    (
        "random-calls",
        &[
            ("program", Count(1, 1_000_000)),
            ("calls", Count(2, 24)),
            ("tasks", Words(&["1", "1", "1", "2"])),
            ("first", OfMemory(15, 1000)),
            ("second", OfMemory(1, 100)),
            ("small", Count(1, 1000)),
            ("small_size", Size(Bytes(4 * KIB), Bytes(512 * KIB))),
            ("mapping", OfMemory(1, 300)),
            ("limit", LIMIT),
        ],
    ),
    (
        "sequential-readers",
        &[
            ("readers", Count(1, 64)),
            ("file", OfMemory(4, 1000)),
            ("record", Size(Bytes(4 * KIB), Bytes(4 * MIB))),
            ("disks", Never("guests of User-Mode Linux have one for files")),
            ("held", OfMemory(0, 700)),
            ("filesystem", Words(&["ext4", "xfs"])),
        ],
    ),
    (
        "simoop",
        &[
            ("threads", Count(1, 16)),
            ("burners", Count(0, 2)),
            ("walkers", Count(0, 4)),
            ("walk_pause", Count(1, 4)),
            ("tree_files", Count(0, 4096)),
            ("directories", Count(1, 64)),
            ("working_set", OfMemory(50, 700)),
            ("mapped", OfMemory(15, 250)),
            ("alloc_wait", Count(0, 2640)),
            ("file_size", Size(Bytes(64 * KIB), Bytes(32 * MIB))),
            ("files", Count(1, 256)),
            ("pieces", Count(1, 16)),
            ("read_size", Size(Bytes(4 * KIB), Bytes(4 * MIB))),
            ("write_size", Size(Bytes(4 * KIB), Bytes(2 * MIB))),
            ("kept", Count(1, 32)),
            ("seconds", Count(4, 10)),
            ("warmup", Count(1, 3)),
            ("interval", Count(1, 3)),
        ],
    ),
    (
        "small-files",
        &[
            ("processes", Count(1, 64)),
            ("subdirectories", Count(1, 10_000)),
            ("per_directory", Count(1, 10_000)),
            ("file_size", Size(Bytes(1), Bytes(256 * KIB))),
            ("files", Count(1, 16_384)),
            ("loops", Count(1, 16)),
            ("scale", Never("it asks for 16 GiB of memory")),
        ],
    ),
];

/// By sysctl: the part of the memory in kB that `vm.min_free_kbytes` takes at most is a 16th.
pub(crate) const SYSCTLS: &[(&str, Range)] = &[
    ("vm.min_free_kbytes", Count(256, 65_536)),
    ("vm.watermark_scale_factor", Count(1, 3000)),
    ("vm.watermark_boost_factor", Count(0, 150_000)),
    ("vm.vfs_cache_pressure", Count(0, 10_000)),
    ("vm.dirty_ratio", Count(0, 100)),
    ("vm.dirty_background_ratio", Count(0, 100)),
    ("vm.dirty_expire_centisecs", Count(0, 6000)),
    ("vm.dirty_writeback_centisecs", Count(0, 1000)),
    ("vm.swappiness", Count(0, 200)),
    ("vm.page-cluster", Count(0, 8)),
    ("vm.compaction_proactiveness", Never("worlds have what each kernel starts with")),
    ("vm.defrag_mode", Never("only 6.15 and later have it")),
    ("vm.fragment_stall_order", Never("no kernel was released with it")),
    ("thp.enabled", Never("guests have no huge pages")),
    ("thp.defrag", Never("guests have no huge pages")),
    ("lru_gen.enabled", Never("the name of the kernel says it: `--kernel linux-6.12+lru-gen`")),
    ("lru_gen.min_ttl_ms", Never("a file of sysfs, which no run writes")),
    ("zswap.enabled", Never("`zswap` before an area of swap says it, and is drawn")),
    ("zswap.max_pool_percent", Never("a part of what is drawn of swap")),
    ("zswap.accept_threshold_percent", Never("a file of sysfs, which no run writes")),
    ("zswap.shrinker_enabled", Never("a file of sysfs, which no run writes")),
];

/// What else there is, and why no world has it.
pub(crate) const NEVER: &[(&str, &str)] = &[
    ("several CPUs or nodes", "guests of User-Mode Linux have one of each"),
    ("priorities of swap", "areas have those that `swapon` gives"),
    ("filesystem ext3, the size of the log of XFS", "guests make ext4 and XFS as mkfs does"),
    ("readahead of the disk", "all worlds have the machine's own"),
    ("traces, captured programs", "worlds run the workloads of the catalog"),
    ("what the kernel lacks", "such a draw is made anew"),
];

/// What is drawn otherwise for small worlds of the model alone.
const SMALL: &[(&str, &str, Range)] = &[
    ("simoop", "seconds", Count(2, 3)),
    ("simoop", "warmup", Count(1, 1)),
    ("simoop", "interval", Count(1, 1)),
    ("simoop", "threads", Count(1, 6)),
    ("simoop", "alloc_wait", Count(200, 2640)),
    ("sequential-readers", "readers", Count(1, 16)),
];

/// The smallest dirty_ratio of a small world: of so little memory less is a page or two, for which writers pause so
/// long that readers beside them take a minute of a clock.
const SMALL_DIRTY_RATIO: u64 = 5;

/// What this sysctl of a small world is drawn from.
pub(crate) fn of_small_sysctl(name: &str, range: Range) -> Range {
    match range {
        Count(least, most) if name == "vm.dirty_ratio" => Count(least.max(SMALL_DIRTY_RATIO), most),
        range => range,
    }
}

/// What this parameter of a small world is drawn from, as [`of_param`] tells of guests.
pub(crate) fn of_small_param(workload: &str, param: &str) -> Option<Range> {
    let own = SMALL.iter().find(|(own, name, _)| (*own, *name) == (workload, param));
    own.map(|(.., range)| *range).or_else(|| of_param(workload, param))
}

/// What this parameter is drawn from, where the kind of its values does not tell.
pub(crate) fn of_param(workload: &str, param: &str) -> Option<Range> {
    let (_, params) = PARAMS.iter().find(|(name, _)| *name == workload)?;
    params.iter().find(|(name, _)| *name == param).map(|(_, range)| *range)
}

/// All that is never drawn: what, and why.
pub(crate) fn never() -> Vec<(String, &'static str)> {
    let params = PARAMS.iter().flat_map(|(workload, params)| {
        params.iter().filter_map(move |(name, range)| match range {
            Never(why) => Some((format!("{name} of {workload}"), *why)),
            _ => None,
        })
    });
    let sysctls = SYSCTLS.iter().filter_map(|(name, range)| match range {
        Never(why) => Some(((*name).to_owned(), *why)),
        _ => None,
    });
    let others = NEVER.iter().map(|(what, why)| ((*what).to_owned(), *why));
    params.chain(sysctls).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use mm::base::sysctl::Sysctl;
    use workload::catalog::catalog;
    use workload::params::ParamKind;

    use super::*;

    /// Who adds a parameter or a sysctl says what worlds draw for it.
    #[test]
    fn every_parameter_and_sysctl_is_drawn_or_said_to_be_not() {
        for spec in catalog() {
            for param in spec.params {
                let told = of_param(spec.name, param.name).is_some();
                let is_choice = matches!(param.kind, ParamKind::Choice(_));
                assert!(told || is_choice, "`{}` of `{}`", param.name, spec.name);
            }
        }
        for &(workload, params) in PARAMS {
            let spec = workload::WorkloadSpec::find(workload).expect("a workload of the catalog");
            for (name, _) in params {
                assert!(spec.params.iter().any(|param| param.name == *name), "`{name}` of `{workload}`");
            }
        }
        let listed: Vec<&str> = SYSCTLS.iter().map(|(name, _)| *name).collect();
        let missing: Vec<&str> =
            Sysctl::ALL.iter().map(|sysctl| sysctl.name()).filter(|name| !listed.contains(name)).collect();
        assert_eq!((listed.len(), missing), (Sysctl::ALL.len(), Vec::new()));
    }
}
