//! Sysctls of a run: set before it and put back after it, also when its process was killed.
//!
//! Theory of operation. A run on a host keeps what it is about to change in a file of its own
//! directory, then changes it. Dropped, [`Sysctls`] puts the old values back. After SIGKILL the file
//! is still there, and the next run goes by it: a sysctl that has the run's value gets its old one,
//! and one that somebody has set since stays. The file counts only if it is this user's, since
//! everybody may write to the folder for temporary files, and only until the next boot.
//!
//! Left out: sysctls that a workload writes itself. Next: [`crate::owner`].

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cgroup;
use crate::error::LinuxError;
use crate::system::sysctl_path;

/// The file with the old values.
const FILE: &str = "sysctls.json";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Changed {
    name: String,
    old: String,
    new: String,
}

/// Sysctls with the values to put back.
pub(crate) struct Sysctls(Vec<Changed>);

impl Sysctls {
    /// Sets `pairs` of names and values, and keeps the old values in `directory` meanwhile.
    ///
    /// # Errors
    /// The machine is not ours to change; a sysctl that is not there or does not take its value.
    pub(crate) fn set(
        pairs: &[(String, String)],
        host_wide: bool,
        directory: Option<&Path>,
    ) -> Result<Self, LinuxError> {
        let mut changes = Vec::new();
        for (name, value) in pairs {
            let what = || format!("setting the sysctl `{name}`");
            let path = sysctl_path(name).filter(|_| host_wide);
            let path = path.ok_or_else(|| LinuxError::HostWide { what: what() })?;
            let old = fs::read_to_string(&path).map_err(|error| LinuxError::io("read", &path, error))?;
            changes.push(Changed { name: name.clone(), old, new: value.clone() });
        }
        if let Some(directory) = directory.filter(|_| !changes.is_empty()) {
            let file = directory.join(FILE);
            let text = serde_json::to_vec(&changes).expect("texts");
            fs::write(&file, text).map_err(|error| LinuxError::io("write", &file, error))?;
        }
        let before = Self(changes);
        for Changed { name, new, .. } in &before.0 {
            let path = sysctl_path(name).expect("it was read above");
            cgroup::write_existing(&path, new).map_err(|error| LinuxError::io("write", &path, error))?;
        }
        Ok(before)
    }
}

impl Drop for Sysctls {
    fn drop(&mut self) {
        // The last first: a sysctl that was set twice gets its first value back.
        for Changed { name, old, .. } in self.0.iter().rev() {
            if let Some(path) = sysctl_path(name) {
                let _ = cgroup::write_existing(&path, old.trim_end());
            }
        }
    }
}

/// Puts back what a killed run changed that kept it in `directory`; returns a sentence on each.
pub(crate) fn put_back(directory: &Path) -> Vec<String> {
    put_back_by(directory, sysctl_path)
}

fn put_back_by(directory: &Path, path_of: impl Fn(&str) -> Option<PathBuf>) -> Vec<String> {
    let file = directory.join(FILE);
    let ours = fs::symlink_metadata(&file)
        .is_ok_and(|found| found.is_file() && found.uid() == rustix::process::geteuid().as_raw());
    let text = fs::read(&file).ok().filter(|_| ours).unwrap_or_default();
    let changes: Vec<Changed> = serde_json::from_slice(&text).unwrap_or_default();
    let mut said = Vec::new();
    for Changed { name, old, new } in changes.into_iter().rev() {
        let Some(path) = path_of(&name) else { continue };
        let words = |text: &str| text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        let is_new = fs::read_to_string(&path).is_ok_and(|now| words(&now) == words(&new));
        if is_new && cgroup::write_existing(&path, old.trim_end()).is_ok() {
            said.push(format!("set {name} back to {}, as it was before a run that was killed", words(&old)));
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysctls_are_refused_where_the_machine_is_not_ours() {
        let pairs = [("vm.swappiness".to_owned(), "1".to_owned())];
        let error = Sysctls::set(&pairs, false, None).err().map(|error| (error.to_string(), error.hint()));
        let (message, hint) = error.unwrap();
        assert!(message.starts_with("setting the sysctl `vm.swappiness` would change the whole machine"));
        assert!(hint.unwrap().contains("--allow-host-pressure"));
    }

    #[test]
    fn what_a_killed_run_set_is_put_back_unless_somebody_has_set_it_since() {
        let root = tempfile::tempdir().unwrap();
        let path_of = |name: &str| Some(root.path().join(name));
        let changed = |name: &str, old: &str, new: &str| Changed {
            name: name.to_owned(),
            old: old.to_owned(),
            new: new.to_owned(),
        };
        let changes = [
            changed("a", "10\n", "20"),
            changed("b", "10\n", "20"),
            changed("c", "256\t256\t32\n", "1 2 3"),
            changed("gone", "1", "2"),
        ];
        fs::write(root.path().join(FILE), serde_json::to_vec(&changes).unwrap()).unwrap();
        for (name, now) in [("a", "20\n"), ("b", "30\n"), ("c", "1\t2\t3\n")] {
            fs::write(root.path().join(name), now).unwrap();
        }
        let said = put_back_by(root.path(), path_of);
        assert_eq!(
            said,
            [
                "set c back to 256 256 32, as it was before a run that was killed",
                "set a back to 10, as it was before a run that was killed"
            ]
        );
        let now = |name: &str| fs::read_to_string(root.path().join(name)).unwrap();
        assert!(now("a").starts_with("10") && now("b") == "30\n" && now("c").starts_with("256\t256"));
        assert!(put_back_by(root.path().join("nowhere").as_path(), path_of).is_empty());
    }
}
