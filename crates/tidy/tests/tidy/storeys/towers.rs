//! The towers: each crate's storeys from the top, folders and files. `ARCHITECTURE.md` says what is in them.

/// A crate's storeys. An entry holds a file, or all of a folder that no closer entry holds.
pub(super) struct Tower {
    /// The folder below `crates`.
    pub(super) package: &'static str,
    /// From the top downwards.
    pub(super) storeys: &'static [&'static str],
}

/// All towers.
pub(super) const TOWERS: &[Tower] = &[
    Tower { package: "mm", storeys: MM },
    Tower { package: "kernel", storeys: KERNEL },
    Tower { package: "lab", storeys: LAB },
    Tower { package: "sim", storeys: SIM },
    Tower { package: "workload", storeys: WORKLOAD },
    Tower { package: "stats", storeys: STATS },
    Tower { package: "report", storeys: REPORT },
];

const MM: &[&str] = &[
    "check", "why", "mem_info", "readings", "decide", "journals", "swapping", "mapping", "windows",
    "policies", "visits", "gather", "laid_out", "memory", "compact", "reclaim", "fs", "pages", "lru", "core",
    "swap", "slab", "alloc", "cgroup", "tunables", "version", "base",
];

const KERNEL: &[&str] = &[
    // A kernel and its files in /proc.
    "boot",
    "proc",
    // Processes and their memory.
    "tasks/start",
    "tasks/kthreadd",
    "anon/advice",
    "anon/file",
    "anon/mapping",
    "anon/file_fault",
    "anon/khugepaged",
    "anon/huge",
    "anon/shared",
    "anon/page_table",
    "swap/zswap",
    "anon/page",
    "anon/lock",
    // Files, and their pages on the way to the disk.
    "files/truncate",
    "files/advice",
    "files/open",
    "files/rename",
    "files/directories",
    "files/names",
    "files/lookup",
    "writeback/flusher",
    "writeback/sync",
    // The page cache, from a system call down to a page.
    "fs/inodes",
    "fs/directories",
    "fs/ext3_table",
    "cache/filemap",
    "cache/past",
    // Up to 3.1 a writer writes back itself.
    "writeback/pause",
    "writeback/work",
    "writeback/pages",
    "fs/xfs_ends",
    "writeback/bios",
    "fs/flush",
    "fs/ext4_table",
    "fs/ext4_change",
    "fs/ext4_commit",
    "fs/xfs_log",
    "fs/xfs",
    "cache/mapped_readahead",
    "cache/readahead",
    "fs/pages",
    "fs/ext3",
    "fs/ext4_extents",
    "fs/ext4",
    "cache/add",
    // Programs run on once a call ends.
    "tasks/own",
    "swap/fault",
    "files/locking",
    // Memory for all of the above.
    "objects",
    "cgroup/files",
    "cgroup/proactive",
    "cgroup/charge",
    "alloc/slow_path",
    "reclaim/kswapd",
    "alloc/oom",
    "alloc/report",
    "alloc/stall",
    "compact/direct",
    "alloc/page",
    // Who frees it.
    "reclaim/direct",
    "reclaim/limit",
    "reclaim/run",
    "reclaim/pass",
    "fs/xfs_reclaim",
    "reclaim/throttle",
    "reclaim/pause",
    "reclaim/vmpressure",
    "compact/kcompactd",
    "alloc/drain",
    "compact/zone",
    // The threads of XFS, which take no memory but the reserve.
    "fs/xfs_ail",
    "fs/xfs_checkpoint",
    "fs/xfs_io",
    "reclaim/wake",
    // What nobody waits for.
    "tasks/reap",
    "swap/write",
    "writeback/plug",
    "writeback/wake",
    "cache/look",
    "cache/io",
    "files/close",
    "cache/wait",
    // What all of them share, and the state below it.
    "handle",
    "queues",
    "writeback/inodes",
    "writeback/shares",
    "writeback/request",
    "tasks/process",
    "anon/area",
    "anon/shared_file",
    "files/table",
    "files/disk",
    "files/descriptor",
    "cache/in_flight",
    "files/inode",
    "files/lock",
    "files/extents",
    "files/directory",
    "files/spelling",
    "fs",
    "cache/window",
    "alloc/kills",
    "alloc/purpose",
    "alloc/oom_watch",
    "alloc/used_frames",
    "time",
    "errno",
    "machine",
    "section",
];

const LAB: &[&str] = &["worlds", "plan", "show", "keep", "run", "resolve", "known", "name", "error"];

const SIM: &[&str] = &[
    // A workload on a machine: to its end, looked at, or checked.
    "run/whole",
    "run/verify",
    "run/stepping",
    "run/begin",
    "run/going",
    "run/patience",
    "run/left",
    "run/result",
    "run/checks",
    "run/spec",
    // What a program sees, and what a monitor reads.
    "run/system",
    "run/buffer",
    "run/memories",
    "run/gates",
    "run/worked",
    "run/laying_out",
    "run/sample",
    "run/handing",
    "machines",
    "machines/change",
    "machines/spec",
    "machines/guest",
    "machines/uml",
    "machines/s390",
    "machines/server",
    "machines/measured",
    // What makes a machine go.
    "engine/simulation",
    "engine/sim",
    "engine/tracer",
    "engine/core",
    // A machine between two events: what looks at it, and what happens to it.
    "machine/check",
    "machine/readings",
    "machine/wait",
    "machine/schedule",
    "machine/inside",
    "machine/state",
    "machine/cpu",
    "machine/task",
    "machine/share",
    // What it is made of.
    "trace/log",
    "accounts/waits",
    "accounts/sections",
    "accounts/pressure",
    "accounts/average",
    "devices/device",
    "devices/elevator",
    "devices/sweep",
    "hardware",
    "hardware/cost",
    "hardware/device",
    "event",
];

const WORKLOAD: &[&str] =
    &["scenario", "catalog", "programs", "replay", "written", "parts", "system", "language"];

const STATS: &[&str] = &[
    "mmtests_table",
    "ops",
    "mmtests",
    "shift",
    "factorial",
    "difference",
    "describe",
    "multiple",
    "percentile",
];

const REPORT: &[&str] = &["views", "trace", "judge", "render", "document"];
