//! Fetches a Debian kernel into the cache: `pagetide vm fetch 6.12`.
//!
//! A release is one package or, as 7.2 is, several; they come by apt ([`super::apt`]) and are unpacked into one
//! folder.
//!
//! Left out: other distributions' kernels (see [`VmKernel::Path`]) and other CPUs than amd64.
//!
//! [`VmKernel::Path`]: super::kernels::VmKernel::Path

use std::path::{Path, PathBuf};

use super::apt::{Apt, check_version, escaped, look_for, package_names};
use super::deb;
use super::error::VmError;
use super::kernels::{self, Kernel, compare_versions, is_of_version};
use super::modules::{GUEST_MODULES, ModuleTree};
use super::swap::{COMPRESSORS, ZRAM_MODULE};
use crate::owner::Processes;

const IMAGE: &str = "linux-image-";
const SUFFIX: &str = "-cloud-amd64";
/// Where a release is split, these have the image, the modules and the list of built-in ones.
const PARTS: [&str; 3] = ["linux-binary-", "linux-modules-", "linux-base-"];

/// Brings the newest kernel of `version` (`6.12`, `6.1.0-50`, a whole release) into `cache`. Where one of it is there
/// already it only says so, or with `update` where exactly the newest is.
///
/// # Errors
/// No apt, no network, no such package, a damaged package.
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
    let found = kernels::newest_of(&kernels::cached(cache), version).map(|release| cache.join(release));
    // What is damaged is fetched anew.
    if let Some(kernel) = found.filter(|_| !update).and_then(|folder| complete(&folder)) {
        progress(&kernels::is_here(&kernel));
        return Ok(kernel);
    }
    let pattern = format!("{IMAGE}{version}*{SUFFIX}");
    let (apt, release) =
        look_for(version, &pattern, &cache.join(".apt"), progress, |apt| newest(apt, version))?;
    let folder = cache.join(&release);
    if let Some(kernel) = complete(&folder) {
        progress(&format!("kernel {release} is here already, and the newest"));
        return Ok(kernel);
    }
    let failed = |source| VmError::io("create a folder in", cache, source);
    let (_, work) = Processes::of_machine().create_directory(cache).map_err(failed)?;
    let packages = packages(&apt, &release)?;
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

/// The kernel in a folder of the cache, if all is there. One that was fetched before guests swapped lacks a module.
fn complete(folder: &Path) -> Option<Kernel> {
    let kernel = Kernel::in_folder(folder).ok()?;
    ModuleTree::scan(&folder.join("modules")).ok()?.has(ZRAM_MODULE).then_some(kernel)
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

/// The newest release of `version` in the package lists.
fn newest(apt: &Apt, version: &str) -> Result<Option<String>, VmError> {
    let found = apt.search(&format!("^{IMAGE}{}.*{SUFFIX}$", escaped(version)))?;
    Ok(newest_release(&found, version))
}

/// The packages that have the kernel `release`, in the order of [`PARTS`].
fn packages(apt: &Apt, release: &str) -> Result<Vec<String>, VmError> {
    let found = apt.search(&format!("^linux-[a-z]+-{}$", escaped(release)))?;
    let parts: Vec<String> = PARTS.iter().map(|prefix| format!("{prefix}{release}")).collect();
    let is_there = |package: &String| package_names(&found).any(|name| name == package);
    let is_split = is_there(&parts[0]);
    Ok(if is_split { parts } else { vec![format!("{IMAGE}{release}")] })
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
            let error = fetch(text, cache.path(), true, &mut |_| ()).unwrap_err();
            assert!(matches!(error, VmError::BadVersion { .. }), "{text}: {error}");
        }
    }

    /// To learn that it was there took the network.
    #[test]
    fn a_kernel_that_is_there_is_not_looked_for_elsewhere() {
        let cache = tempfile::tempdir().unwrap();
        let folder = cache.path().join(RELEASE);
        std::fs::create_dir_all(folder.join("modules")).unwrap();
        std::fs::write(folder.join("vmlinuz"), kernels::tests::image(RELEASE)).unwrap();
        assert_eq!(complete(&folder), None, "it lacks a module");
        std::fs::write(folder.join(format!("modules/{ZRAM_MODULE}.ko")), "").unwrap();
        let mut said = Vec::new();
        let kernel = fetch("7.2", cache.path(), false, &mut |text| said.push(text.to_owned())).unwrap();
        assert_eq!(kernel.release, RELEASE);
        assert_eq!(said, ["kernel 7.2.13-cloud-amd64 is here already; `--update` looks for a newer one"]);
    }
}
