//! Fetches a Debian kernel into the cache: `pagetide vm fetch 6.12`.
//!
//! apt does what it is good at: it knows this host's mirrors and proxies, and checks signatures.
//! It runs without privileges, with lists and state in folders of our own. A version is looked for
//! in the suites of /etc/apt, by lists of ours and then by those that the system has, and after
//! that, on the same mirror, in the suite that Debian keeps it in. A release is one package or, as
//! 7.2 is, several; they are unpacked into one folder and never installed.
//!
//! Left out: other distributions' kernels (see [`VmKernel::Path`]) and other CPUs than amd64.
//!
//! [`VmKernel::Path`]: super::kernels::VmKernel::Path

use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::deb;
use super::error::VmError;
use super::kernels::{self, Kernel, compare_versions, is_of_version};
use super::modules::{GUEST_MODULES, ModuleTree};
use super::swap::{COMPRESSORS, ZRAM_MODULE};
use crate::owner::Processes;
use crate::process::dying_with_us;

const IMAGE: &str = "linux-image-";
const SUFFIX: &str = "-cloud-amd64";
/// Where a release is split, these have the image, the modules and the list of built-in ones.
const PARTS: [&str; 3] = ["linux-binary-", "linux-modules-", "linux-base-"];
const SUITES: [(&str, &str); 3] = [("5.10", "bullseye"), ("6.1", "bookworm"), ("6.12", "trixie")];
/// Debian's suite of what is not yet released.
const NEWEST_SUITE: &str = "sid";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

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
    let (apt, release) = look_for(version, &cache.join(".apt"), progress)?;
    let folder = cache.join(&release);
    // One that was fetched before guests swapped lacks a module.
    if folder.is_dir() && ModuleTree::scan(&folder.join("modules"))?.has(ZRAM_MODULE) {
        progress(&format!("kernel {release} is here already"));
        return Kernel::in_folder(&folder);
    }
    let failed = |source| VmError::io("create a folder in", cache, source);
    let (_, work) = Processes::of_machine().create_directory(cache).map_err(failed)?;
    let packages = apt.packages(&release)?;
    progress(&format!("downloading {}", packages.join(", ")));
    let debs = apt.download(&packages, work.path())?;
    progress("unpacking");
    let fresh = work.path().join(&release);
    unpack_kernel(&debs, &release, &fresh)?;
    if folder.is_dir() {
        std::fs::remove_dir_all(&folder).map_err(|source| VmError::io("remove", &folder, source))?;
    }
    std::fs::rename(&fresh, &folder).map_err(|source| VmError::io("create", &folder, source))?;
    Kernel::in_folder(&folder)
}

/// The newest release of `version`, and the package lists that have it.
fn look_for(version: &str, state: &Path, progress: &mut dyn FnMut(&str)) -> Result<(Apt, String), VmError> {
    progress("refreshing package lists");
    let own = Apt::with_own_lists(state)?;
    match own.run("apt-get", &["update"]) {
        Err(VmError::NoApt) => return Err(VmError::NoApt),
        Err(error) => progress(&format!("{error}; using the lists of this system")),
        Ok(_) => {}
    }
    let mut mirror = None;
    for apt in [own, Apt::default()] {
        if let Some(release) = apt.newest(version)? {
            return Ok((apt, release));
        }
        mirror = mirror.or(apt.debian_mirror()?);
    }
    let missing = |suite| VmError::PackageNotFound { pattern: format!("{IMAGE}{version}*{SUFFIX}"), suite };
    let mirror = mirror.ok_or_else(|| missing(None))?;
    let suite = suite_of(version);
    progress(&format!("refreshing the package list of Debian's suite {suite}"));
    let apt = Apt::of_suite(&mirror, suite, &state.join(suite))?;
    // Without this word a list that did not come is a warning only.
    let refreshed = apt.run("apt-get", &["update", "-o", "APT::Update::Error-Mode=any"]);
    match (apt.newest(version)?, refreshed) {
        (Some(release), _) => Ok((apt, release)),
        (None, Err(error)) => Err(error),
        (None, Ok(_)) => Err(missing(Some(suite))),
    }
}

/// Unpacks what guests need of the packages `debs` and checks that it is complete.
fn unpack_kernel(debs: &[PathBuf], release: &str, folder: &Path) -> Result<(), VmError> {
    let image = PathBuf::from(format!("boot/vmlinuz-{release}"));
    let modules = PathBuf::from(format!("lib/modules/{release}"));
    let usr_modules = Path::new("usr").join(&modules);
    let all = folder.join("all");
    for deb in debs {
        deb::unpack(deb, &all, |path| {
            if path == image {
                return Some("vmlinuz".into());
            }
            let inner = path.strip_prefix(&modules).or_else(|_| path.strip_prefix(&usr_modules)).ok()?;
            // Where the image is a package of its own, it lies beside the modules.
            if inner == Path::new("vmlinuz") {
                return Some("vmlinuz".into());
            }
            Some(Path::new("modules").join(inner))
        })?;
    }
    for part in ["vmlinuz", "modules/modules.builtin"] {
        if !all.join(part).is_file() {
            return Err(VmError::bad_kernel(&debs[0], format!("the packages of {release} have no {part}")));
        }
    }
    let failed = |source| VmError::io("write", folder, source);
    // Keep the few modules that a guest loads, ready to load.
    let tree = ModuleTree::scan(&all.join("modules"))?;
    let optional = [ZRAM_MODULE].into_iter().chain(COMPRESSORS).filter(|name| tree.has_file(name));
    let roots: Vec<&str> = GUEST_MODULES.into_iter().chain(["ext4", "xfs"]).chain(optional).collect();
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

/// In which suite Debian has the series of `version`: its releases keep one each.
fn suite_of(version: &str) -> &'static str {
    let kept = SUITES.iter().find(|(series, _)| is_of_version(version, series));
    kept.map_or(NEWEST_SUITE, |(_, suite)| suite)
}

/// How to call apt: with which options before the command's own.
#[derive(Debug, Default)]
struct Apt {
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

    fn set(&mut self, option: &str, value: impl AsRef<OsStr>) {
        let mut text = OsString::from(format!("{option}="));
        text.push(value);
        self.options.extend(["-o".into(), text]);
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String, VmError> {
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

    /// The newest release of `version` in the package lists.
    fn newest(&self, version: &str) -> Result<Option<String>, VmError> {
        let found = self.search(&format!("^{IMAGE}{}.*{SUFFIX}$", escaped(version)))?;
        Ok(newest_release(&found, version))
    }

    /// The packages that have the kernel `release`, in the order of [`PARTS`].
    fn packages(&self, release: &str) -> Result<Vec<String>, VmError> {
        let found = self.search(&format!("^linux-[a-z]+-{}$", escaped(release)))?;
        let parts: Vec<String> = PARTS.iter().map(|prefix| format!("{prefix}{release}")).collect();
        let is_there = |package: &String| package_names(&found).any(|name| name == package);
        let is_split = is_there(&parts[0]);
        Ok(if is_split { parts } else { vec![format!("{IMAGE}{release}")] })
    }

    fn search(&self, pattern: &str) -> Result<String, VmError> {
        self.run("apt-cache", &["search", "--names-only", pattern])
    }

    /// The mirror that this host has Debian from.
    fn debian_mirror(&self) -> Result<Option<String>, VmError> {
        let format = "$(REPO_URI) $(ORIGIN) $(LABEL)";
        let targets = self.run("apt-get", &["indextargets", "--format", format, "Identifier: Packages"])?;
        Ok(targets.lines().find_map(|line| line.strip_suffix(" Debian Debian")).map(str::to_owned))
    }

    /// Downloads packages into `dir`. apt has held them against the hashes of the signed lists.
    fn download(&self, packages: &[String], dir: &Path) -> Result<Vec<PathBuf>, VmError> {
        let arguments: Vec<&str> = ["download"].into_iter().chain(packages.iter().map(|p| &**p)).collect();
        self.run_in(dir, "apt-get", &arguments)?;
        let entries = std::fs::read_dir(dir).map_err(|source| VmError::io("list", dir, source))?;
        let files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        let file_of = |package: &String| {
            let is_it = |file: &&PathBuf| {
                let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
                name.strip_prefix(&**package).is_some_and(|rest| rest.starts_with('_'))
                    && name.ends_with(".deb")
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

fn escaped(version: &str) -> String {
    version.replace('.', r"\.").replace('+', r"\+")
}

/// The names in lines `package - description`.
fn package_names(search: &str) -> impl Iterator<Item = &str> {
    search.lines().filter_map(|line| line.split_whitespace().next())
}

/// Picks from what a search found. A package without a number below the version, such as
/// `linux-image-6.12-cloud-amd64`, only points to another one.
fn newest_release(search: &str, version: &str) -> Option<String> {
    package_names(search)
        .filter_map(|name| name.strip_prefix(IMAGE).filter(|release| release.ends_with(SUFFIX)))
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

    /// A package without compression, with these files.
    fn package(path: &Path, files: &[(&str, &[u8])]) {
        let mut tar = tar::Builder::new(Vec::new());
        for (name, content) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, name, *content).unwrap();
        }
        let tar = tar.into_inner().unwrap();
        let mut deb = ar::Builder::new(std::fs::File::create(path).unwrap());
        deb.append(&ar::Header::new(b"data.tar".to_vec(), tar.len() as u64), &tar[..]).unwrap();
    }

    const RELEASE: &str = "7.2.13-cloud-amd64";
    const BUILTIN: &[u8] =
        b"kernel/virtio_pci.ko\nkernel/virtio_blk.ko\nkernel/virtio_console.ko\nkernel/ext4.ko\nkernel/xfs.ko\n";

    #[test]
    fn a_kernel_in_one_package_and_one_in_three_become_the_same_folder() {
        let dir = tempfile::tempdir().unwrap();
        let image = kernels::tests::image(RELEASE);
        let at = |name: &str| dir.path().join(name);
        let old_image = format!("./boot/vmlinuz-{RELEASE}");
        let old_list = format!("./lib/modules/{RELEASE}/modules.builtin");
        package(&at("image.deb"), &[(&old_image, &image), (&old_list, BUILTIN)]);
        package(&at("binary.deb"), &[(&format!("./usr/lib/modules/{RELEASE}/vmlinuz"), &image)]);
        package(&at("modules.deb"), &[]);
        package(&at("base.deb"), &[(&format!("./usr/lib/modules/{RELEASE}/modules.builtin"), BUILTIN)]);
        let unpack = |parts: &[&str], into: &str| {
            let debs: Vec<PathBuf> = parts.iter().map(|part| at(&format!("{part}.deb"))).collect();
            let folder = at(into).join(RELEASE);
            unpack_kernel(&debs, RELEASE, &folder).map(|()| {
                let mut files: Vec<_> =
                    std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().file_name()).collect();
                files.sort();
                (files, std::fs::read(folder.join("modules/modules.builtin")).unwrap())
            })
        };
        let whole = unpack(&["image"], "one").unwrap();
        assert_eq!(whole.0, ["modules", "vmlinuz"]);
        assert_eq!(unpack(&["binary", "modules", "base"], "three").unwrap(), whole);
        for (parts, lacks) in
            [(["binary", "modules"], "modules/modules.builtin"), (["base", "modules"], "vmlinuz")]
        {
            let error = unpack(&parts, lacks).unwrap_err().to_string();
            assert!(error.ends_with(&format!("the packages of {RELEASE} have no {lacks}")), "{error}");
        }
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
