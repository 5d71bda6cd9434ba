//! The machine that we are on, as far as it decides how large a workload is: CPUs, nodes, memory.
//!
//! Memory is twofold. [`memory_total`] is what the kernel manages, as every program sees it.
//! [`memory_here`] is what this process may use: the smallest limit of the cgroups above it, where
//! one is below that. Left out: swap; limits other than `memory.max`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use units::{Bytes, Pages};
use workload::{Errno, MachineSize, SystemError};

use crate::cgroup::{errno, limit_of, write_existing};
use crate::discover;
use crate::error::LinuxError;
use crate::parse;

/// Where caches are dropped.
pub(crate) const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// CPUs that are online.
pub(crate) fn cpus_online() -> u16 {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    cpus_in(&online).max(1)
}

/// Writes a file of a NUMA node, which is for all programs: only where those may be disturbed.
pub(crate) fn write_of_node(node: u8, file: &str, value: &str, host_wide: bool) -> Result<(), SystemError> {
    let subject = format!("node{node}/{file}");
    let failed = |errno| SystemError::new("write", &subject, errno);
    if !host_wide {
        return Err(failed(Errno::Perm));
    }
    let path = Path::new("/sys/devices/system/node").join(&subject);
    write_existing(&path, value).map_err(|error| failed(errno(&error)))
}

/// Drops clean page cache (1), inodes and dentries (2), or both (3) of the whole machine.
pub(crate) fn drop_caches(mask: u8) -> io::Result<()> {
    write_existing(Path::new(DROP_CACHES), &mask.to_string())
}

/// Keeps this task on a CPU; where that is not allowed it goes on where it is.
pub(crate) fn stay_on(cpu: u16) {
    let mut set = rustix::thread::CpuSet::new();
    set.set(usize::from(cpu));
    let _ = rustix::thread::sched_setaffinity(None, &set);
}

/// Memory nodes that are online, at least 1.
pub(crate) fn nodes_online() -> u16 {
    // The list has the form of that of CPUs; without NUMA there is none.
    let online = fs::read_to_string("/sys/devices/system/node/online").unwrap_or_default();
    cpus_in(&online).max(1)
}

/// `MemTotal`.
pub(crate) fn memory_total() -> Pages {
    let mut total = 0;
    parse::meminfo(&fs::read_to_string("/proc/meminfo").unwrap_or_default(), &mut |name, kib| {
        if name == ["mi_", "MemTotal"] {
            total = kib;
        }
    });
    Bytes(total * 1024).to_pages_floor()
}

/// What this process may use of it, and the cgroup that says so where one does.
pub(crate) fn memory_here() -> Result<(Bytes, Option<PathBuf>), LinuxError> {
    let hierarchies = discover::hierarchies()?;
    let groups = hierarchies.iter().flat_map(|hierarchy| {
        let above = hierarchy.own.ancestors().take_while(|path| path.starts_with(&hierarchy.mount));
        above.map(|path| (path, limit_of(path, hierarchy.version)))
    });
    Ok(smallest(memory_total().to_bytes(), groups))
}

fn smallest<'a>(
    total: Bytes,
    groups: impl Iterator<Item = (&'a Path, Option<Bytes>)>,
) -> (Bytes, Option<PathBuf>) {
    let limits = groups.filter_map(|(path, limit)| Some((limit?, path)));
    match limits.min_by_key(|&(limit, _)| limit) {
        Some((limit, path)) if limit < total => (limit, Some(path.to_owned())),
        _ => (total, None),
    }
}

/// This machine as a workload sees it that may use `memory` of it.
pub(crate) fn size(memory: Bytes) -> MachineSize {
    MachineSize { memory: memory.to_pages_floor(), nodes: nodes_online(), cpus: cpus_online(), disks: 1 }
}

/// How many CPUs a list such as `0-3,5` has.
fn cpus_in(list: &str) -> u16 {
    let span = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    list.trim().split(',').filter_map(span).fold(0, u16::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_have_spans_and_singles() {
        assert_eq!(["0-3,5\n", "0\n", "", "7-5", "x"].map(cpus_in), [5, 1, 0, 0, 0]);
    }

    #[test]
    fn a_container_has_the_memory_of_its_cgroup_and_not_of_the_host() {
        let groups = |limits: [Option<u64>; 3]| {
            let paths = ["/c/a/b", "/c/a", "/c"].map(Path::new);
            let of = paths.into_iter().zip(limits.map(|limit| limit.map(Bytes)));
            smallest(Bytes(100), of)
        };
        assert_eq!(groups([None, None, None]), (Bytes(100), None));
        assert_eq!(groups([Some(70), Some(50), None]), (Bytes(50), Some("/c/a".into())));
        assert_eq!(groups([None, Some(100), Some(200)]), (Bytes(100), None));
    }

    #[test]
    fn this_machine_has_memory_and_this_process_no_more_of_it() {
        let (here, _) = memory_here().unwrap();
        assert!(here > Bytes(0) && here <= memory_total().to_bytes());
    }
}
