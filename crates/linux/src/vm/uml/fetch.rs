//! Fetches Debian's User-Mode Linux into the cache: `pagetide uml fetch 6.12`.
//!
//! A cached kernel is a folder named after its release (`6.12.113`): the program, `modules/` with the few that a guest
//! loads, `package` with the version of the package, and `lib/` with the C library of its suite where this host's
//! is too old for it. It appears by a rename, so it is complete or not there.
//!
//! A program names its loader by an absolute path, and that of the suite is elsewhere. Starting it by its loader does
//! not do, as the kernel starts itself again, by its own path. So the name in the file becomes one from the folder that
//! it is started in, which is shorter and takes the other's place.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{BINARY, LIBRARIES, UserMode, asked_of, cached, in_folder, with_libraries};
use crate::owner::Processes;
use crate::vm::apt::{Apt, check_version, look_for, suite_lists};
use crate::vm::error::VmError;
use crate::vm::kernels::{self, Kernel, compare_versions, is_of_version};
use crate::vm::modules::ModuleTree;
use crate::vm::swap::{COMPRESSORS, ZRAM_MODULE};
use crate::vm::{deb, elf};

const PACKAGE: &str = "user-mode-linux";
const MODULES: &str = "usr/lib/uml/modules";
/// The C library, and the names of what programs ask of it.
const LIBC: &str = "libc6";
const LIBC_FILES: [&str; 6] =
    ["ld-linux-", "libc.so.", "libm.so.", "libpthread.so.", "librt.so.", "libutil.so."];
/// Which package a folder of the cache is from.
const PACKAGE_FILE: &str = "package";

/// Brings Debian's newest User-Mode Linux of `version` (`6.12`, a whole release) into `cache`. Where one of it is
/// there already it only says so, or with `update` where exactly the newest is.
///
/// # Errors
/// No apt, no network, no such package, a damaged package; it does not run on this host.
pub fn fetch(
    version: &str,
    cache: &Path,
    update: bool,
    progress: &mut dyn FnMut(&str),
) -> Result<Kernel, VmError> {
    check_version(version)?;
    kernels::create_private(cache)?;
    for said in Processes::of_machine().remove_dead_directories(cache) {
        progress(&said);
    }
    // One that does not run is fetched anew.
    let found =
        kernels::newest_of(&cached(cache), version).and_then(|release| in_folder(&cache.join(release)).ok());
    if let Some(UserMode { kernel, .. }) = found.filter(|_| !update) {
        progress(&kernels::is_here(&kernel));
        return Ok(kernel);
    }
    let state = cache.join(".apt");
    let pattern = format!("{PACKAGE}={version}*");
    let (apt, package) = look_for(version, &pattern, &state, progress, |apt| newest(apt, version))?;
    let here = cached(cache).into_iter().map(|release| cache.join(release));
    let is_it = |folder: &PathBuf| {
        std::fs::read_to_string(folder.join(PACKAGE_FILE)).is_ok_and(|text| text.trim_end() == package)
    };
    if let Some(folder) = here.into_iter().find(is_it)
        && let Ok(found) = in_folder(&folder)
    {
        progress(&format!("kernel {} is here already, and the newest", found.kernel.release));
        return Ok(found.kernel);
    }
    let failed = |source| VmError::io("create a folder in", cache, source);
    let (_, work) = Processes::of_machine().create_directory(cache).map_err(failed)?;
    progress(&format!("downloading {PACKAGE} {package}"));
    let debs = apt.download(&[format!("{PACKAGE}={package}")], work.path())?;
    progress("unpacking");
    let fresh = work.path().join("fresh");
    let release = unpack(&debs[0], &fresh)?;
    let write = |path: PathBuf, text: &str| {
        std::fs::write(&path, text).map_err(|source| VmError::io("write", &path, source))
    };
    write(fresh.join(PACKAGE_FILE), &format!("{package}\n"))?;
    make_it_run(version, &fresh, work.path(), &state, progress)?;
    let folder = cache.join(&release);
    if folder.is_dir() {
        std::fs::remove_dir_all(&folder).map_err(|source| VmError::io("remove", &folder, source))?;
    }
    std::fs::rename(&fresh, &folder).map_err(|source| VmError::io("create", &folder, source))?;
    in_folder(&folder).map(|UserMode { kernel, .. }| kernel)
}

/// The newest package of `version` in the package lists, by its version. A release such as `6.12.113` is found by its
/// series, as packages do not name the rest.
fn newest(apt: &Apt, version: &str) -> Result<Option<String>, VmError> {
    let found = apt.run("apt-cache", &["madison", PACKAGE])?;
    Ok(newest_package(&found, version))
}

/// Picks from lines `user-mode-linux | 6.12um1+b22 | http://... Packages`.
fn newest_package(madison: &str, version: &str) -> Option<String> {
    // `6` is no series.
    let mut numbers = version.split('.');
    let series = format!("{}.{}", numbers.next()?, numbers.next()?);
    let versions = madison.lines().filter_map(|line| Some(line.split('|').nth(1)?.trim()));
    let fitting = versions.filter(|package| is_of_version(package, &series));
    fitting.max_by(|a, b| compare_versions(a, b)).map(str::to_owned)
}

/// Unpacks the program and the modules that guests load into `folder`; returns the release.
fn unpack(package: &Path, folder: &Path) -> Result<String, VmError> {
    let all = folder.join("all");
    deb::unpack(package, &all, |path| {
        if path == Path::new("usr/bin/linux.uml") {
            return Some(BINARY.into());
        }
        path.strip_prefix(MODULES).ok().map(|inner| Path::new("modules").join(inner))
    })?;
    let failed = |source| VmError::io("write", folder, source);
    let modules = all.join("modules");
    let release = std::fs::read_dir(&modules)
        .ok()
        .and_then(|entries| entries.flatten().find_map(|entry| entry.file_name().into_string().ok()))
        .ok_or_else(|| VmError::bad_kernel(package, "the package has no modules"))?;
    if !all.join(BINARY).is_file() {
        return Err(VmError::bad_kernel(package, "the package has no program `linux.uml`"));
    }
    let kept = folder.join("modules");
    std::fs::create_dir(&kept).map_err(failed)?;
    let tree = ModuleTree::scan(&modules.join(&release))?;
    let roots: Vec<&str> =
        [ZRAM_MODULE].into_iter().chain(COMPRESSORS).filter(|name| tree.has_file(name)).collect();
    for (name, content) in tree.load(&roots)? {
        std::fs::write(kept.join(format!("{name}.ko")), content).map_err(failed)?;
    }
    let builtin = modules.join(&release).join("modules.builtin");
    std::fs::rename(builtin, kept.join("modules.builtin")).map_err(failed)?;
    let binary = folder.join(BINARY);
    std::fs::rename(all.join(BINARY), &binary).map_err(failed)?;
    let may_run = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&binary, may_run).map_err(failed)?;
    std::fs::remove_dir_all(&all).map_err(failed)?;
    Ok(release)
}

/// Where the program does not run with this host's C library, its suite's own comes along.
fn make_it_run(
    version: &str,
    folder: &Path,
    work: &Path,
    state: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<(), VmError> {
    let binary = folder.join(BINARY);
    if asked_of(&mut Command::new(&binary), "--version", &binary).is_ok() {
        return Ok(());
    }
    progress("this host's C library is too old for it: downloading that of its suite");
    let apt = suite_lists(version, state, progress)?;
    let debs = apt.download(&[LIBC.to_owned()], work)?;
    let libraries = folder.join(LIBRARIES);
    deb::unpack(&debs[0], &libraries, |path| {
        let is_of_cpu = path.parent().is_some_and(|dir| dir.ends_with("lib/x86_64-linux-gnu"));
        let name = path.file_name()?.to_str()?;
        (is_of_cpu && LIBC_FILES.iter().any(|file| name.starts_with(file))).then(|| name.into())
    })?;
    let loader = elf::set_loader(&binary, LIBRARIES)?;
    let failed = |source| VmError::io("write", &libraries, source);
    let may_run = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(folder.join(&loader), may_run).map_err(failed)?;
    let mut command = Command::new(&binary);
    with_libraries(&mut command, Some(&libraries));
    asked_of(&mut command, "--version", &binary).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_of_a_series_is_found_by_the_release_too() {
        let lists = "user-mode-linux | 6.1um4+b9 | http://mirror/debian bookworm/main amd64 Packages\n\
                     user-mode-linux | 6.1um4+b13 | http://mirror/debian bookworm/main amd64 Packages\n\
                     user-mode-linux | 6.12um1+b22 | http://mirror/debian trixie/main amd64 Packages\n";
        let found = |version| newest_package(lists, version);
        assert_eq!(found("6.1").as_deref(), Some("6.1um4+b13"));
        assert_eq!(found("6.12.113").as_deref(), Some("6.12um1+b22"));
        assert_eq!((found("6"), found("5.10")), (None, None));
    }
}
