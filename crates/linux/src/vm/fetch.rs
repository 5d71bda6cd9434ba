//! Fetches a Debian kernel into the cache: `pagetide vm fetch 6.12`.
//!
//! apt does what it is good at: it knows this host's mirrors and proxies, and checks signatures.
//! It runs without privileges, with lists and state in a folder of our own; when that refresh
//! fails, the lists that the system has are used. The package is unpacked, never installed.
//!
//! Left out: other distributions' kernels (see [`VmKernel::Path`]) and other CPUs than amd64.
//!
//! [`VmKernel::Path`]: super::kernels::VmKernel::Path

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::deb;
use super::error::VmError;
use super::kernels::{self, Kernel, compare_versions, is_of_version};
use super::modules::{GUEST_MODULES, ModuleTree};
use crate::owner::Processes;
use crate::process::dying_with_us;

const PREFIX: &str = "linux-image-";
const SUFFIX: &str = "-cloud-amd64";

/// Brings the newest kernel of `version` (`6.12`, `6.1.0-50`, a whole release) into `cache`.
/// When exactly that release is there already, it only says so.
///
/// # Errors
/// No apt, no network, no such package, a damaged package.
pub fn fetch(version: &str, cache: &Path, progress: &mut dyn FnMut(&str)) -> Result<Kernel, VmError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || ".+-~".contains(c);
    if !version.starts_with(|c: char| c.is_ascii_digit()) || !version.chars().all(fits) {
        return Err(VmError::BadVersion { text: version.to_owned() });
    }
    kernels::create_private(cache)?;
    for said in Processes::of_machine().remove_dead_directories(cache) {
        progress(&said);
    }
    progress("refreshing package lists");
    let own = Apt::with_own_lists(cache)?;
    let apt = match own.run(&["update"]) {
        Ok(_) => own,
        Err(VmError::NoApt) => return Err(VmError::NoApt),
        Err(error) => {
            progress(&format!("{error}; using the lists of this system"));
            Apt::default()
        }
    };
    let release = apt.newest(version)?;
    let folder = cache.join(&release);
    if folder.is_dir() {
        progress(&format!("kernel {release} is here already"));
        return Kernel::in_folder(&folder);
    }
    let failed = |source| VmError::io("create a folder in", cache, source);
    let (_, work) = Processes::of_machine().create_directory(cache).map_err(failed)?;
    progress(&format!("downloading {PREFIX}{release}"));
    let deb = apt.download(&format!("{PREFIX}{release}"), work.path())?;
    progress("unpacking");
    let fresh = work.path().join(&release);
    unpack_kernel(&deb, &release, &fresh)?;
    std::fs::rename(&fresh, &folder).map_err(|source| VmError::io("create", &folder, source))?;
    Ok(Kernel { image: folder.join("vmlinuz"), modules: folder.join("modules"), release })
}

/// Unpacks what guests need of the package `deb` and checks that it is complete.
fn unpack_kernel(deb: &Path, release: &str, folder: &Path) -> Result<(), VmError> {
    let image = PathBuf::from(format!("boot/vmlinuz-{release}"));
    let modules = PathBuf::from(format!("lib/modules/{release}"));
    let usr_modules = Path::new("usr").join(&modules);
    let all = folder.join("all");
    deb::unpack(deb, &all, |path| {
        if path == image {
            return Some("vmlinuz".into());
        }
        let inner = path.strip_prefix(&modules).or_else(|_| path.strip_prefix(&usr_modules)).ok()?;
        Some(Path::new("modules").join(inner))
    })?;
    let failed = |source| VmError::io("write", folder, source);
    // Keep the few modules that a guest loads, ready to load.
    let tree = ModuleTree::scan(&all.join("modules"))?;
    let roots: Vec<&str> = GUEST_MODULES.into_iter().chain(["ext4", "xfs"]).collect();
    let kept = folder.join("modules");
    std::fs::create_dir(&kept).map_err(failed)?;
    for (name, content) in tree.load(&roots)? {
        std::fs::write(kept.join(format!("{name}.ko")), content).map_err(failed)?;
    }
    std::fs::rename(all.join("modules/modules.builtin"), kept.join("modules.builtin")).map_err(failed)?;
    std::fs::rename(all.join("vmlinuz"), folder.join("vmlinuz")).map_err(failed)?;
    std::fs::remove_dir_all(&all).map_err(failed)?;
    Kernel::in_folder(folder).map(drop)
}

/// How to call apt: with which options before the command's own.
#[derive(Debug, Default)]
struct Apt {
    options: Vec<OsString>,
}

impl Apt {
    fn with_own_lists(cache: &Path) -> Result<Self, VmError> {
        let mut apt = Self::default();
        for (option, folder) in [
            ("Dir::State", "state"),
            ("Dir::State::lists", "state/lists"),
            ("Dir::Cache", "cache"),
            ("Dir::Cache::archives", "cache/archives"),
        ] {
            let folder = cache.join(".apt").join(folder);
            let partial = folder.join("partial");
            std::fs::create_dir_all(&partial).map_err(|source| VmError::io("create", &partial, source))?;
            let mut value = OsString::from(format!("{option}="));
            value.push(folder);
            apt.options.extend(["-o".into(), value]);
        }
        // What is installed does not matter, but apt wants to read it where it is.
        apt.options.extend(["-o".into(), "Dir::State::status=/var/lib/dpkg/status".into()]);
        Ok(apt)
    }

    fn run(&self, arguments: &[&str]) -> Result<Output, VmError> {
        self.run_program("apt-get", arguments, Path::new("."))
    }

    fn run_program(&self, program: &str, arguments: &[&str], dir: &Path) -> Result<Output, VmError> {
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
            return Ok(output);
        }
        let message = last_lines(&String::from_utf8_lossy(&output.stderr), 3);
        let command = format!("{program} {}", arguments.first().copied().unwrap_or_default());
        Err(VmError::Apt { command, message })
    }

    /// The newest release of `version` in the package lists.
    fn newest(&self, version: &str) -> Result<String, VmError> {
        let pattern = format!("^{PREFIX}{}.*{SUFFIX}$", version.replace('.', r"\.").replace('+', r"\+"));
        let arguments = ["search", "--names-only", &pattern];
        let output = self.run_program("apt-cache", &arguments, Path::new("."))?;
        newest_release(&String::from_utf8_lossy(&output.stdout), version)
            .ok_or_else(|| VmError::PackageNotFound { pattern: format!("{PREFIX}{version}*{SUFFIX}") })
    }

    /// Downloads one package into `dir`.
    fn download(&self, package: &str, dir: &Path) -> Result<PathBuf, VmError> {
        self.run_program("apt-get", &["download", package], dir)?;
        let entries = std::fs::read_dir(dir).map_err(|source| VmError::io("list", dir, source))?;
        let mut files = entries.flatten().map(|entry| entry.path());
        files.find(|path| path.extension().is_some_and(|extension| extension == "deb")).ok_or_else(|| {
            VmError::Apt { command: "apt-get download".into(), message: format!("no file of {package} came") }
        })
    }
}

/// Picks from lines `package - description`. A package without a number below the version, such
/// as `linux-image-6.12-cloud-amd64`, only points to another one.
fn newest_release(search: &str, version: &str) -> Option<String> {
    search
        .lines()
        .filter_map(|line| line.split_once(' ').map_or(Some(line), |(name, _)| Some(name)))
        .filter_map(|name| name.strip_prefix(PREFIX).filter(|release| release.ends_with(SUFFIX)))
        .filter(|release| is_of_version(release, version))
        .filter(|release| release.matches('.').count() >= 2)
        .max_by(|a, b| compare_versions(a, b))
        .map(str::to_owned)
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(count)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEARCH: &str = "\
linux-image-6.1.0-47-cloud-amd64 - Linux 6.1 for x86-64 cloud (signed)
linux-image-6.1.0-9-cloud-amd64 - Linux 6.1 for x86-64 cloud (signed)
linux-image-6.1.0-50-cloud-amd64 - Linux 6.1 for x86-64 cloud (signed)
linux-image-6.12-cloud-amd64 - Linux for x86-64 cloud (meta-package)
linux-image-6.12.107+deb12-cloud-amd64 - Linux 6.12 for x86-64 cloud (signed)
linux-image-6.12.117+deb12-cloud-amd64 - Linux 6.12 for x86-64 cloud (signed)
linux-image-6.12.99+deb12-cloud-amd64 - Linux 6.12 for x86-64 cloud (signed)
";

    #[test]
    fn the_newest_package_of_a_version_is_taken_and_never_a_meta_package() {
        let newest = |version| newest_release(SEARCH, version);
        assert_eq!(newest("6.1").as_deref(), Some("6.1.0-50-cloud-amd64"));
        assert_eq!(newest("6.12").as_deref(), Some("6.12.117+deb12-cloud-amd64"));
        assert_eq!(newest("6.12.107").as_deref(), Some("6.12.107+deb12-cloud-amd64"));
        assert_eq!(newest("6.12.117+deb12-cloud-amd64").as_deref(), Some("6.12.117+deb12-cloud-amd64"));
        assert_eq!(newest("6.18"), None);
    }

    #[test]
    fn a_version_that_is_no_version_does_not_reach_apt() {
        let cache = tempfile::tempdir().unwrap();
        for text in ["", "-o", "latest", "6.1;x", "6.1 6.12"] {
            let error = fetch(text, cache.path(), &mut |_| ()).unwrap_err();
            assert!(matches!(error, VmError::BadVersion { .. }), "{text}: {error}");
        }
    }
}
