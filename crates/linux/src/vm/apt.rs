//! Debian's package manager, asked for packages that are unpacked and never installed.
//!
//! apt does what it is good at: it knows this host's mirrors and proxies, and checks signatures.
//! It runs without privileges, with lists and state in folders of our own. A package is looked for
//! in the suites of /etc/apt, by lists of ours and then by those that the system has, and after
//! that, on the same mirror, in the suite that Debian keeps its version in. Next: [`super::fetch`] for
//! kernels of virtual machines, [`super::uml`] for User-Mode Linux.

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::VmError;
use super::kernels::is_of_version;
use crate::process::dying_with_us;

const SUITES: [(&str, &str); 3] = [("5.10", "bullseye"), ("6.1", "bookworm"), ("6.12", "trixie")];
/// Debian's suite of what is not yet released.
const NEWEST_SUITE: &str = "sid";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// In which suite Debian has the kernels of `version`: its releases keep one series each.
pub(super) fn suite_of(version: &str) -> &'static str {
    let kept = SUITES.iter().find(|(series, _)| is_of_version(version, series));
    kept.map_or(NEWEST_SUITE, |(_, suite)| suite)
}

/// Refuses what is no version before it reaches apt.
pub(super) fn check_version(version: &str) -> Result<(), VmError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || ".+-~".contains(c);
    match version.starts_with(|c: char| c.is_ascii_digit()) && version.chars().all(fits) {
        true => Ok(()),
        false => Err(VmError::BadVersion { text: version.to_owned() }),
    }
}

/// What `find` finds first in package lists below `state`, and the lists that have it. `pattern` is what an error
/// calls it.
pub(super) fn look_for<T>(
    version: &str,
    pattern: &str,
    state: &Path,
    progress: &mut dyn FnMut(&str),
    find: impl Fn(&Apt) -> Result<Option<T>, VmError>,
) -> Result<(Apt, T), VmError> {
    progress("refreshing package lists");
    let own = Apt::with_own_lists(state)?;
    match own.run("apt-get", &["update"]) {
        Err(VmError::NoApt) => return Err(VmError::NoApt),
        Err(error) => progress(&format!("{error}; using the lists of this system")),
        Ok(_) => {}
    }
    let mut mirror = None;
    for apt in [own, Apt::default()] {
        if let Some(found) = find(&apt)? {
            return Ok((apt, found));
        }
        mirror = mirror.or(apt.debian_mirror()?);
    }
    let missing = |suite| VmError::PackageNotFound { pattern: pattern.to_owned(), suite };
    let mirror = mirror.ok_or_else(|| missing(None))?;
    let suite = suite_of(version);
    let (apt, refreshed) = Apt::refreshed(&mirror, suite, state, progress)?;
    match (find(&apt)?, refreshed) {
        (Some(found), _) => Ok((apt, found)),
        (None, Err(error)) => Err(error),
        (None, Ok(())) => Err(missing(Some(suite))),
    }
}

/// The lists of the suite that `version` is in, from this host's mirror.
pub(super) fn suite_lists(
    version: &str,
    state: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Apt, VmError> {
    let suite = suite_of(version);
    let mirror = Apt::with_own_lists(state)?.debian_mirror()?.or(Apt::default().debian_mirror()?);
    let mirror = mirror.ok_or_else(|| VmError::PackageNotFound { pattern: suite.to_owned(), suite: None })?;
    let (apt, refreshed) = Apt::refreshed(&mirror, suite, state, progress)?;
    refreshed.map(|()| apt)
}

/// How to call apt: with which options before the command's own.
#[derive(Debug, Default)]
pub(super) struct Apt {
    options: Vec<OsString>,
}

impl Apt {
    /// The suites of /etc/apt, by lists below `state`.
    fn with_own_lists(state: &Path) -> Result<Self, VmError> {
        let mut apt = Self::default();
        for (option, folder) in [
            ("Dir::State", "state"),
            ("Dir::State::lists", "state/lists"),
            ("Dir::Cache", "cache"),
            ("Dir::Cache::archives", "cache/archives"),
        ] {
            let folder = state.join(folder);
            let partial = folder.join("partial");
            std::fs::create_dir_all(&partial).map_err(|source| VmError::io("create", &partial, source))?;
            apt.set(option, folder);
        }
        // What is installed does not matter, but apt wants to read it where it is.
        apt.set("Dir::State::status", "/var/lib/dpkg/status");
        Ok(apt)
    }

    /// One suite of the mirror at `uri` and nothing of /etc/apt, by lists below `state`.
    fn of_suite(uri: &str, suite: &str, state: &Path) -> Result<Self, VmError> {
        let mut apt = Self::with_own_lists(state)?;
        let sources = state.join("debian.sources");
        let text = source_entry(uri, suite, Path::new(KEYRING).is_file());
        std::fs::write(&sources, text).map_err(|source| VmError::io("write", &sources, source))?;
        apt.set("Dir::Etc::sourcelist", sources);
        apt.set("Dir::Etc::sourceparts", "-");
        Ok(apt)
    }

    /// The lists of `suite`, brought up to date, and whether that worked.
    fn refreshed(
        mirror: &str,
        suite: &str,
        state: &Path,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(Self, Result<(), VmError>), VmError> {
        progress(&format!("refreshing the package list of Debian's suite {suite}"));
        let apt = Self::of_suite(mirror, suite, &state.join(suite))?;
        // Without this word a list that did not come is a warning only.
        let refreshed = apt.run("apt-get", &["update", "-o", "APT::Update::Error-Mode=any"]);
        Ok((apt, refreshed.map(drop)))
    }

    fn set(&mut self, option: &str, value: impl AsRef<OsStr>) {
        let mut text = OsString::from(format!("{option}="));
        text.push(value);
        self.options.extend(["-o".into(), text]);
    }

    pub(super) fn run(&self, program: &str, arguments: &[&str]) -> Result<String, VmError> {
        self.run_in(Path::new("."), program, arguments)
    }

    fn run_in(&self, dir: &Path, program: &str, arguments: &[&str]) -> Result<String, VmError> {
        let mut command = Command::new(program);
        command.args(&self.options).args(["-q", "-o", "Dpkg::Use-Pty=0"]).args(arguments).current_dir(dir);
        if rustix::process::geteuid().is_root() {
            // Else apt downloads as a user who cannot write into our folders, and warns of it.
            command.args(["-o", "APT::Sandbox::User=root"]);
        }
        let output =
            dying_with_us(command.env("LC_ALL", "C")).output().map_err(|source| match source.kind() {
                ErrorKind::NotFound => VmError::NoApt,
                _ => VmError::io("run", Path::new(program), source),
            })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let message = last_lines(&String::from_utf8_lossy(&output.stderr), 3);
        let command = format!("{program} {}", arguments.first().copied().unwrap_or_default());
        Err(VmError::Apt { command, message })
    }

    pub(super) fn search(&self, pattern: &str) -> Result<String, VmError> {
        self.run("apt-cache", &["search", "--names-only", pattern])
    }

    /// The mirror that this host has Debian from.
    fn debian_mirror(&self) -> Result<Option<String>, VmError> {
        let format = "$(REPO_URI) $(ORIGIN) $(LABEL)";
        let targets = self.run("apt-get", &["indextargets", "--format", format, "Identifier: Packages"])?;
        Ok(targets.lines().find_map(|line| line.strip_suffix(" Debian Debian")).map(str::to_owned))
    }

    /// Downloads packages into `dir`. apt has held them against the hashes of the signed lists.
    pub(super) fn download(&self, packages: &[String], dir: &Path) -> Result<Vec<PathBuf>, VmError> {
        let arguments: Vec<&str> = ["download"].into_iter().chain(packages.iter().map(|p| &**p)).collect();
        self.run_in(dir, "apt-get", &arguments)?;
        let entries = std::fs::read_dir(dir).map_err(|source| VmError::io("list", dir, source))?;
        let files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        let file_of = |package: &String| {
            let name = package.split('=').next().unwrap_or(package);
            let prefix = format!("{name}_");
            let is_it = |file: &&PathBuf| {
                let file = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
                file.starts_with(&prefix) && file.ends_with(".deb")
            };
            files.iter().find(is_it).cloned().ok_or_else(|| VmError::Apt {
                command: "apt-get download".into(),
                message: format!("no file of {package} came"),
            })
        };
        packages.iter().map(file_of).collect()
    }
}

/// A source of apt (sources.list(5), deb822 style): only package lists, checked with Debian's keys.
fn source_entry(uri: &str, suite: &str, has_keyring: bool) -> String {
    let keys = if has_keyring { format!("Signed-By: {KEYRING}\n") } else { String::new() };
    format!(
        "Types: deb\nURIs: {uri}\nSuites: {suite}\nComponents: main\nArchitectures: amd64\nTargets: Packages\n\
         {keys}"
    )
}

pub(super) fn escaped(version: &str) -> String {
    version.replace('.', r"\.").replace('+', r"\+")
}

/// The names in lines `package - description`.
pub(super) fn package_names(search: &str) -> impl Iterator<Item = &str> {
    search.lines().filter_map(|line| line.split_whitespace().next())
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_series_has_its_suite_and_what_is_newer_is_in_sid() {
        let suites = ["5.10", "5.10.0-32", "6.1", "6.12.117", "7.2", "5.1"].map(suite_of);
        assert_eq!(suites, ["bullseye", "bullseye", "bookworm", "trixie", "sid", "sid"]);
        insta::assert_snapshot!(source_entry("http://mirror/debian", "sid", true), @"
        Types: deb
        URIs: http://mirror/debian
        Suites: sid
        Components: main
        Architectures: amd64
        Targets: Packages
        Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
        ");
        let pattern = escaped("7.2.13+deb14");
        assert_eq!(pattern, r"7\.2\.13\+deb14");
    }
}
