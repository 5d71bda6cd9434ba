//! Where a memory cgroup of our own can be made: v2, v1, or both mounted side by side.
//!
//! The search begins at the cgroup that we live in, so that limits set on us hold for the run too,
//! and climbs. In v2 only a cgroup without processes, or the root, can hand the memory controller
//! to its children; in v1 any can that we may write to.
//!
//! Left out: mounting anything; asking systemd.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::cgroup::enable_memory;
use crate::error::LinuxError;
use crate::spec::CgroupVersion;

/// A mounted hierarchy that has, or may have, the memory controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    pub(crate) version: CgroupVersion,
    /// Where it is mounted.
    pub(crate) mount: PathBuf,
    /// The cgroup that this process lives in.
    pub(crate) own: PathBuf,
}

/// The hierarchies of this process, v1 first: where v1 has the memory controller v2 cannot.
pub(crate) fn hierarchies() -> Result<Vec<Hierarchy>, LinuxError> {
    let read = |path: &str| fs::read_to_string(path).map_err(|error| LinuxError::io("read", path, error));
    Ok(hierarchies_in(&read("/proc/self/mountinfo")?, &read("/proc/self/cgroup")?))
}

fn hierarchies_in(mountinfo: &str, cgroups: &str) -> Vec<Hierarchy> {
    let mut found: Vec<_> = mountinfo.lines().filter_map(|line| hierarchy_of(line, cgroups)).collect();
    found.sort_by_key(|hierarchy| hierarchy.version != CgroupVersion::V1);
    found
}

/// One line of mountinfo: `id parent dev root mount options... - type source superoptions`.
fn hierarchy_of(line: &str, cgroups: &str) -> Option<Hierarchy> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(3);
    let (root, mount) = (left.next()?, PathBuf::from(left.next()?));
    let mut right = right.split(' ');
    let version = match right.next()? {
        "cgroup2" => CgroupVersion::V2,
        "cgroup" if right.nth(1)?.split(',').any(|option| option == "memory") => CgroupVersion::V1,
        _ => return None,
    };
    let path = cgroups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let ours = match version {
            CgroupVersion::V1 => controllers.split(',').any(|controller| controller == "memory"),
            CgroupVersion::V2 => controllers.is_empty(),
        };
        ours.then_some(path)
    })?;
    // Without a cgroup namespace a container's mount begins at the container's cgroup.
    let inside = Path::new(path).strip_prefix(root).or_else(|_| Path::new(path).strip_prefix("/")).ok()?;
    let climbs = inside.components().any(|part| part == std::path::Component::ParentDir);
    let own = if climbs { mount.clone() } else { mount.join(inside) };
    Some(Hierarchy { version, mount, own })
}

/// Creates the cgroup `name` as deep in the hierarchies as is permitted.
///
/// # Errors
/// [`LinuxError::NoMemoryController`] with everything that was tried.
pub(crate) fn create_cgroup(name: &str) -> Result<(PathBuf, CgroupVersion), LinuxError> {
    let hierarchies = hierarchies()?;
    let mut reasons = Vec::new();
    for hierarchy in &hierarchies {
        for parent in hierarchy.own.ancestors() {
            if !parent.starts_with(&hierarchy.mount) {
                break;
            }
            match create_in(parent, name, hierarchy.version) {
                Ok(directory) => return Ok((directory, hierarchy.version)),
                Err(error) => reasons.push(format!("{}: {error}", parent.display())),
            }
        }
    }
    if reasons.is_empty() {
        reasons.push("no cgroup hierarchy with it is mounted".to_owned());
    }
    Err(LinuxError::NoMemoryController { reason: reasons.join("; ") })
}

fn create_in(parent: &Path, name: &str, version: CgroupVersion) -> io::Result<PathBuf> {
    if version == CgroupVersion::V2 {
        enable_memory(parent)?;
    }
    let directory = parent.join(name);
    fs::create_dir(&directory)?;
    let limit = match version {
        CgroupVersion::V1 => "memory.limit_in_bytes",
        CgroupVersion::V2 => "memory.max",
    };
    let usable = fs::OpenOptions::new()
        .write(true)
        .open(directory.join(limit))
        .and_then(|_| fs::OpenOptions::new().write(true).open(directory.join("cgroup.procs")));
    match usable {
        Ok(_) => Ok(directory),
        Err(error) => {
            let _ = fs::remove_dir(&directory);
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hybrid_unified_and_container_mounts_are_told_apart() {
        let hybrid = "30 29 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      33 29 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
                      34 29 0:30 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n";
        let show = |found: Vec<Hierarchy>| {
            let lines = found.iter().map(|one| format!("{:?} {}", one.version, one.own.display()));
            lines.collect::<Vec<_>>().join("\n")
        };
        assert_eq!(
            show(hierarchies_in(hybrid, "4:memory:/api/54\n1:cpu:/\n0::/\n")),
            "V1 /sys/fs/cgroup/memory/api/54\nV2 /sys/fs/cgroup/unified/"
        );
        let unified = "30 29 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(
            show(hierarchies_in(unified, "0::/user.slice/user-1000.slice\n")),
            "V2 /sys/fs/cgroup/user.slice/user-1000.slice"
        );
        let container = "30 29 0:26 /docker/ab /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n";
        assert_eq!(show(hierarchies_in(container, "0::/docker/ab\n")), "V2 /sys/fs/cgroup/");
        assert_eq!(show(hierarchies_in(container, "0::/../other\n")), "V2 /sys/fs/cgroup");
        assert_eq!(show(hierarchies_in("", "0::/\n")), "");
    }
}
