//! Processes of a cgroup, and the cgroup of a unit of systemd.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::CaptureError;

/// Where cgroups are mounted: version 2, version 2 beside version 1, hierarchies of version 1.
const MOUNTS: [&str; 4] =
    ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/memory"];
/// A folder is one if it has this file.
const PROCESSES: &str = "cgroup.procs";

/// The processes of a cgroup and of those below it, lowest number first. `path` is its folder, or its name below where
/// cgroups are mounted.
///
/// # Errors
/// There is no such cgroup, or no process is in it.
pub fn processes_of_cgroup(path: &Path) -> Result<Vec<u32>, CaptureError> {
    let below = path.strip_prefix("/").unwrap_or(path);
    let places =
        std::iter::once(path.to_owned()).chain(MOUNTS.iter().map(|mount| Path::new(mount).join(below)));
    let found: Vec<PathBuf> = places.filter(|place| place.join(PROCESSES).is_file()).collect();
    if found.is_empty() {
        return Err(CaptureError::NoCgroup { path: path.to_owned() });
    }
    // Of several hierarchies one may have the group and not its processes.
    for folder in found {
        let mut pids = Vec::new();
        collect(&folder, &mut pids);
        pids.sort_unstable();
        pids.dedup();
        if !pids.is_empty() {
            return Ok(pids);
        }
    }
    Err(CaptureError::EmptyCgroup { path: path.to_owned() })
}

fn collect(folder: &Path, pids: &mut Vec<u32>) {
    let text = std::fs::read_to_string(folder.join(PROCESSES)).unwrap_or_default();
    pids.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()).filter(|pid| *pid != 0));
    for below in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if below.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&below.path(), pids);
        }
    }
}

/// The processes of a unit; a name without a dot is a service's.
///
/// # Errors
/// systemd does not know it, or it does not run.
pub fn processes_of_unit(name: &str) -> Result<Vec<u32>, CaptureError> {
    let full = if name.contains('.') { name.to_owned() } else { format!("{name}.service") };
    let missing = || CaptureError::NoUnit { name: full.clone() };
    let asked =
        Command::new("systemctl").args(["show", "--property=ControlGroup", "--value", &full]).output();
    let told = asked.ok().filter(|output| output.status.success());
    let group = told.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    match group.filter(|group| !group.is_empty()) {
        Some(group) => processes_of_cgroup(Path::new(&group)),
        // Nobody to ask: services lie here.
        None => processes_of_cgroup(&Path::new("system.slice").join(&full)).map_err(|error| match error {
            CaptureError::NoCgroup { .. } => missing(),
            error => error,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_nested_cgroups_are_found_and_an_empty_one_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let group = folder.path().join("group");
        let error = |path: &Path| processes_of_cgroup(path).unwrap_err();
        assert!(matches!(error(&group), CaptureError::NoCgroup { .. }));
        std::fs::create_dir_all(group.join("below")).unwrap();
        std::fs::write(group.join(PROCESSES), "").unwrap();
        assert!(matches!(error(&group), CaptureError::EmptyCgroup { .. }));
        std::fs::write(group.join("below").join(PROCESSES), "12\n7\n").unwrap();
        assert_eq!(processes_of_cgroup(&group).unwrap(), [7, 12]);
        let error = processes_of_unit("no-such-unit-of-ours").unwrap_err();
        assert!(matches!(error, CaptureError::NoUnit { .. }), "{error}");
    }
}
