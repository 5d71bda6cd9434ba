//! What a scenario says of the virtual machine that runs it: CPUs, NUMA nodes, multi-gen LRU, log of XFS.
//!
//! Only backends `vm:VERSION` and `uml:VERSION` have it. Left out: whether such a machine can be built (User-Mode
//! Linux has one node, and one CPU as a rule) and whether its kernel has a multi-gen LRU, which the backend finds out.

use std::fmt;
use std::str::FromStr;

use crate::scenario::error::ScenarioProblem;

/// CPUs that a guest has at most.
pub const GUEST_CPUS_MAX: u16 = 64;
/// NUMA nodes that a guest has at most.
pub const GUEST_NODES_MAX: u16 = 8;
/// MiB that a log of XFS has at least (blocks of 4 KiB, as made for the guest) and at most.
pub const XFS_LOG_MIB: std::ops::RangeInclusive<u16> = 4..=2047;

/// The shape of a guest. The default is that of the measured guests of QEMU's; see [`Backend::default_guest`].
///
/// [`Backend::default_guest`]: crate::scenario::backend::Backend::default_guest
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guest {
    /// CPUs, from 1 to [`GUEST_CPUS_MAX`].
    pub cpus: u16,
    /// NUMA nodes, from 1 to [`GUEST_NODES_MAX`], each with a CPU; memory is divided evenly.
    pub numa_nodes: u16,
    /// The multi-gen LRU.
    pub lru_gen: LruGen,
    /// MiB of the log of XFS, from [`XFS_LOG_MIB`]; none is what `mkfs.xfs` chooses.
    pub xfs_log: Option<u16>,
}

impl Default for Guest {
    fn default() -> Self {
        Self { cpus: 2, numa_nodes: 1, lru_gen: LruGen::OFF, xfs_log: None }
    }
}

impl Guest {
    /// Checks that such a machine makes sense.
    ///
    /// # Errors
    /// [`ScenarioProblem::Guest`].
    pub fn check(&self) -> Result<(), ScenarioProblem> {
        let wrong =
            |key, value: u16, why: String| Err(ScenarioProblem::Guest { key, value: value.to_string(), why });
        let Self { cpus, numa_nodes, xfs_log, .. } = *self;
        if !(1..=GUEST_CPUS_MAX).contains(&cpus) {
            return wrong("cpus", cpus, format!("a virtual machine has 1 to {GUEST_CPUS_MAX}"));
        }
        if !(1..=GUEST_NODES_MAX).contains(&numa_nodes) {
            return wrong("numa_nodes", numa_nodes, format!("a virtual machine has 1 to {GUEST_NODES_MAX}"));
        }
        if numa_nodes > cpus {
            return wrong("numa_nodes", numa_nodes, format!("each node needs a CPU, and there are {cpus}"));
        }
        if let Some(mib) = xfs_log.filter(|mib| !XFS_LOG_MIB.contains(mib)) {
            let (least, most) = (XFS_LOG_MIB.start(), XFS_LOG_MIB.end());
            return wrong("xfs_log", mib, format!("a log of XFS has {least} to {most} MiB"));
        }
        Ok(())
    }

    /// What differs from `default`, for a label: `cpus=4,numa_nodes=2`. Empty when nothing does.
    pub fn differences(&self, default: &Self) -> String {
        let log = |mib: Option<u16>| mib.map_or_else(String::new, |mib| format!("{mib}M"));
        let entries = [
            ("cpus", self.cpus.to_string(), default.cpus.to_string()),
            ("numa_nodes", self.numa_nodes.to_string(), default.numa_nodes.to_string()),
            ("lru_gen", self.lru_gen.to_string(), default.lru_gen.to_string()),
            ("xfs_log", log(self.xfs_log), log(default.xfs_log)),
        ];
        let different = entries.into_iter().filter(|(_, own, default)| own != default);
        different.map(|(key, own, _)| format!("{key}={own}")).collect::<Vec<_>>().join(",")
    }
}

/// Which parts of the multi-gen LRU are on: the bits of `/sys/kernel/mm/lru_gen/enabled`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LruGen(u8);

impl LruGen {
    /// None: the kernel keeps two lists.
    pub const OFF: Self = Self(0);
    /// All that the kernel has.
    pub const ON: Self = Self(0x7);

    /// Whether there are generations instead of two lists.
    pub fn is_on(self) -> bool {
        self.0 & 1 == 1
    }

    /// What to write to `/sys/kernel/mm/lru_gen/enabled`.
    pub fn to_sysfs(self) -> String {
        match self {
            Self::OFF => "n".to_owned(),
            Self::ON => "y".to_owned(),
            Self(bits) => format!("{bits:#06x}"),
        }
    }
}

impl fmt::Display for LruGen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OFF => f.write_str("off"),
            Self::ON => f.write_str("on"),
            Self(bits) => write!(f, "{bits:#06x}"),
        }
    }
}

impl FromStr for LruGen {
    type Err = ScenarioProblem;

    /// `on`, `off`, and what the kernel's file takes: `y`, `n`, or bits such as `0x0003`.
    fn from_str(text: &str) -> Result<Self, ScenarioProblem> {
        let bits = match text {
            "on" | "y" | "Y" => Some(Self::ON.0),
            "off" | "n" | "N" => Some(Self::OFF.0),
            _ => match text.strip_prefix("0x") {
                Some(digits) => u8::from_str_radix(digits, 16).ok(),
                None => text.parse().ok(),
            },
        };
        // The other bits do nothing without the first.
        bits.filter(|bits| *bits == 0 || (*bits <= Self::ON.0 && bits & 1 == 1)).map(Self).ok_or_else(|| {
            ScenarioProblem::Guest {
                key: "lru_gen",
                value: text.to_owned(),
                why: "it is `on`, `off`, or bits of /sys/kernel/mm/lru_gen/enabled: 0x0001, 0x0003, 0x0005"
                    .to_owned(),
            }
        })
    }
}
