//! What a kernel must have to be a guest, looked for in the guest itself: a kernel of one's own may
//! have it built in, and nobody outside can tell.
//!
//! Drivers are registered before init starts or while their module loads, so one that is not there
//! by then will never come, and the run ends at once with its name. Left out: what a kernel lacks
//! that gets no program to run (see the hints in `error.rs`).

use std::fs;
use std::path::Path;

/// One thing, how to find it, and the option that builds it.
#[derive(Debug, Clone, Copy)]
struct Need {
    name: &'static str,
    what: &'static str,
    /// Exists below `/sys` once the driver is there.
    trace: &'static str,
    option: &'static str,
}

/// What the guest speaks to its host through.
const CHANNEL: [Need; 2] = [
    Need {
        name: "virtio_pci",
        what: "the bus of its disk and of its channel to the host",
        trace: "bus/pci/drivers/virtio-pci",
        option: "CONFIG_VIRTIO_PCI",
    },
    Need {
        name: "virtio_console",
        what: "its channel to the host",
        trace: "bus/virtio/drivers/virtio_console",
        option: "CONFIG_VIRTIO_CONSOLE",
    },
];

const DISK: Need = Need {
    name: "virtio_blk",
    what: "the driver of its data disk",
    trace: "bus/virtio/drivers/virtio_blk",
    option: "CONFIG_VIRTIO_BLK",
};

/// What is missing, and what to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) message: String,
    pub(super) hint: String,
}

/// Looks for the channel's drivers below `sys`.
pub(super) fn check_channel(sys: &Path) -> Result<(), Missing> {
    CHANNEL.iter().try_for_each(|need| need.check(sys))
}

/// Looks for the data disk's driver below `sys`.
pub(super) fn check_disk_driver(sys: &Path) -> Result<(), Missing> {
    DISK.check(sys)
}

/// Looks for the data disk's filesystem in `proc`.
pub(super) fn check_filesystem(proc: &Path, filesystem: &str) -> Result<(), Missing> {
    let known = fs::read_to_string(proc.join("filesystems")).unwrap_or_default();
    if known.lines().any(|line| line.split_whitespace().last() == Some(filesystem)) {
        return Ok(());
    }
    let option = format!("CONFIG_{}_FS", filesystem.to_uppercase());
    Err(missing(filesystem, "the filesystem of its data disk", &option))
}

/// Looks for the memory controller in `cgroup`, where cgroup v2 is mounted.
pub(super) fn check_memory_controller(cgroup: &Path) -> Result<(), Missing> {
    let controllers = fs::read_to_string(cgroup.join("cgroup.controllers")).unwrap_or_default();
    if controllers.split_whitespace().any(|name| name == "memory") {
        return Ok(());
    }
    Err(Missing {
        message: "the kernel has no memory cgroups".to_owned(),
        hint: "build it with CONFIG_MEMCG=y".to_owned(),
    })
}

impl Need {
    fn check(self, sys: &Path) -> Result<(), Missing> {
        if sys.join(self.trace).exists() {
            return Ok(());
        }
        Err(missing(self.name, self.what, self.option))
    }
}

fn missing(name: &str, what: &str, option: &str) -> Missing {
    Missing {
        message: format!("the kernel has no {name}, {what}"),
        hint: format!(
            "build it in ({option}=y), or give the module: in the folder `modules` beside the image, in \
             /lib/modules, or in the kernel's build tree (`--on vm:/path/to/linux`)"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kernel_lacks_is_told_by_the_name_of_its_option() {
        let root = tempfile::tempdir().unwrap();
        let (sys, proc) = (root.path().join("sys"), root.path().join("proc"));
        let give = |path: &str| fs::create_dir_all(sys.join(path)).unwrap();
        let lacks = |checked: Result<(), Missing>| {
            checked.map_err(|missing| (missing.message, missing.hint.split(')').next().unwrap().to_owned()))
        };
        let lacking = |message: &str, hint: &str| Err((message.to_owned(), hint.to_owned()));
        let no_pci = "the kernel has no virtio_pci, the bus of its disk and of its channel to the host";
        assert_eq!(lacks(check_channel(&sys)), lacking(no_pci, "build it in (CONFIG_VIRTIO_PCI=y"));
        give("bus/pci/drivers/virtio-pci");
        let no_console = "the kernel has no virtio_console, its channel to the host";
        assert_eq!(lacks(check_channel(&sys)), lacking(no_console, "build it in (CONFIG_VIRTIO_CONSOLE=y"));
        give("bus/virtio/drivers/virtio_console");
        assert_eq!(check_channel(&sys), Ok(()));
        let disk =
            |filesystem| lacks(check_disk_driver(&sys).and_then(|()| check_filesystem(&proc, filesystem)));
        let no_disk = "the kernel has no virtio_blk, the driver of its data disk";
        assert_eq!(disk("ext4"), lacking(no_disk, "build it in (CONFIG_VIRTIO_BLK=y"));
        give("bus/virtio/drivers/virtio_blk");
        fs::create_dir(&proc).unwrap();
        fs::write(proc.join("filesystems"), "nodev\tsysfs\n\text3\n\text4\n").unwrap();
        assert_eq!(disk("ext4"), Ok(()));
        let no_xfs = "the kernel has no xfs, the filesystem of its data disk";
        assert_eq!(disk("xfs"), lacking(no_xfs, "build it in (CONFIG_XFS_FS=y"));
    }

    #[test]
    fn cgroups_without_the_memory_controller_do_not_do() {
        let cgroup = tempfile::tempdir().unwrap();
        let checked = || check_memory_controller(cgroup.path()).map_err(|missing| missing.hint);
        assert_eq!(checked(), Err("build it with CONFIG_MEMCG=y".to_owned()));
        fs::write(cgroup.path().join("cgroup.controllers"), "cpuset memory_like\n").unwrap();
        assert!(checked().is_err());
        fs::write(cgroup.path().join("cgroup.controllers"), "cpuset memory pids\n").unwrap();
        assert_eq!(checked(), Ok(()));
    }
}
