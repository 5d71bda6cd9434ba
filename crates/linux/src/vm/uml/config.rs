//! What a User-Mode Linux was built with, which it prints itself (`linux --showconfig`), and what it lacks for a run.
//!
//! Left out: options of which a run only says less (PSI, tracing): the notes of a run tell.

use std::collections::BTreeMap;

use units::Bytes;

use crate::vm::VmSpec;
use crate::vm::error::VmError;
use crate::vm::kernels::{Kernel, Modules};

/// Options that are not off, by their names without `CONFIG_`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config(BTreeMap<String, String>);

/// What every guest needs, and what for.
const NEEDS: [(&str, &str); 8] = [
    ("BLK_DEV_INITRD", "the archive with its first program"),
    ("PROC_FS", "/proc"),
    ("SYSFS", "/sys"),
    ("DEVTMPFS", "/dev"),
    ("SSL", "its serial line to the host"),
    ("BLK_DEV_UBD", "its disks"),
    ("MEMCG", "memory cgroups"),
    ("VM_EVENT_COUNTERS", "the counters of /proc/vmstat"),
];

/// The option that builds the driver of this name.
pub(super) fn option_of(module: &str) -> String {
    match module {
        "ext4" | "xfs" => format!("{}_FS", module.to_uppercase()),
        other => other.to_uppercase(),
    }
}

impl Config {
    /// Reads lines `CONFIG_X=y`; all else is a comment.
    pub fn read(text: &str) -> Self {
        let entries = text.lines().filter_map(|line| line.trim().strip_prefix("CONFIG_")?.split_once('='));
        Self(entries.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Whether an option is on, built in or as a module.
    pub fn has(&self, option: &str) -> bool {
        self.0.contains_key(option)
    }

    pub(super) fn is_module(&self, option: &str) -> bool {
        self.0.get(option).is_some_and(|value| value == "m")
    }

    /// CPUs that it can have.
    pub(super) fn cpus(&self) -> u16 {
        let most = self.0.get("NR_CPUS").and_then(|text| text.parse().ok());
        if self.has("SMP") { most.unwrap_or(1) } else { 1 }
    }

    /// Refuses a kernel that lacks what `spec` needs; what it has as a module has to be there.
    pub(super) fn check(&self, spec: &VmSpec, kernel: &Kernel) -> Result<(), VmError> {
        let lacks = |option: &str, what: &str| {
            Err(VmError::Lacks {
                release: kernel.release.clone(),
                what: what.to_owned(),
                option: format!("CONFIG_{option}"),
            })
        };
        for (option, what) in NEEDS {
            if !self.has(option) {
                return lacks(option, what);
            }
        }
        let has_driver = |module: &str| self.has(&option_of(module));
        let filesystem = spec.filesystem.name();
        if !has_driver(filesystem) {
            return lacks(&option_of(filesystem), &format!("{filesystem}, the filesystem of its data disk"));
        }
        if spec.lru_gen.is_on() && !self.has("LRU_GEN") {
            return lacks("LRU_GEN", "multi-gen LRU");
        }
        if spec.zram() > Bytes(0) && (!has_driver("zram") || self.lacks_module("zram", kernel)) {
            return lacks("ZRAM", "zram, or its module is not there");
        }
        if !spec.swap.is_none() && !self.has("SWAP") {
            return lacks("SWAP", "swap");
        }
        if spec.swap.zswap.is_some() && !self.has("ZSWAP") {
            return lacks("ZSWAP", "zswap");
        }
        Ok(())
    }

    fn lacks_module(&self, name: &str, kernel: &Kernel) -> bool {
        self.is_module(&option_of(name)) && kernel.modules == Modules::BuiltIn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_are_off_are_not_there() {
        let config = Config::read(
            "CONFIG_MEMCG=y\n# CONFIG_PSI is not set\nCONFIG_ZRAM=m\nCONFIG_NR_CPUS=64\n\nCONFIG_X=\"a=b\"\n",
        );
        assert!(config.has("MEMCG") && config.has("ZRAM") && !config.has("PSI"));
        assert!(config.is_module("ZRAM") && !config.is_module("MEMCG"));
        assert_eq!(config.cpus(), 1, "without SMP it has one, whatever it could have");
        assert_eq!(Config::read("CONFIG_SMP=y\nCONFIG_NR_CPUS=64").cpus(), 64);
        assert_eq!((option_of("xfs").as_str(), option_of("zram").as_str()), ("XFS_FS", "ZRAM"));
    }
}
