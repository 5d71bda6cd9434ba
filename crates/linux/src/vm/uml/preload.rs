//! What this host needs to run such a kernel: room for its memory where programs may be, and a library that stands
//! before
//! `ptrace` where the CPU has more registers than the kernel knows of (`shim/xstate.rs`, which tells why).

use std::path::Path;

use rustix::fs::{StatVfsMountFlags, statvfs};
use units::Bytes;

use crate::vm::error::VmError;

/// The first release that asks the host how many registers there are.
pub(super) const BEFORE: &str = "6.13";

/// Made by `build.rs`.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/xstate.so"));
const NAME: &str = "xstate.so";
/// Components of the registers that lie beyond the 2696 bytes that older kernels keep, as /proc/cpuinfo calls them.
const LARGE: [&str; 2] = ["amx_tile", "apx"];

/// Whether this host's CPU has registers that older kernels do not know of.
pub(super) fn is_needed() -> bool {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = text.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|flags| flags.split_whitespace().any(|flag| LARGE.contains(&flag)))
}

/// Puts the library into a run's folder; returns its name for the loader, from there.
pub(super) fn put_into(dir: &Path) -> Result<String, VmError> {
    let path = dir.join(NAME);
    std::fs::write(&path, LIBRARY).map_err(|source| VmError::io("write", &path, source))?;
    Ok(format!("./{NAME}"))
}

/// Whether a guest's memory can be in `dir`, page by page as it is used: programs run from there.
pub(super) fn has_room(dir: &Path, mem: Bytes) -> bool {
    let Ok(found) = statvfs(dir) else { return false };
    !found.f_flag.contains(StatVfsMountFlags::NOEXEC) && found.f_bavail * found.f_frsize > mem.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_an_elf_file_that_a_loader_finds_from_the_runs_folder() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(put_into(dir.path()).unwrap(), "./xstate.so");
        assert_eq!(&std::fs::read(dir.path().join("xstate.so")).unwrap()[..4], b"\x7fELF");
    }

    #[test]
    fn memory_goes_where_there_is_room() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!has_room(dir.path(), Bytes(u64::MAX)));
        assert!(!has_room(&dir.path().join("none"), Bytes(1)));
    }
}
