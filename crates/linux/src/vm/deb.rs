//! Unpacks a Debian package: an `ar` archive with a tar archive `data.tar.xz` in it (deb(5)).
//!
//! Only what a guest needs is written out. Left out: other compressions than xz (Debian's kernels
//! have used no other since 2013; it is Ubuntu's that have zstd), signatures (apt has checked the
//! package's hash).

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use super::error::VmError;

/// Writes each regular file of the package `deb` for which `place` gives a path, below `target`.
/// `place` is asked with the path inside the package, without a leading `./`.
///
/// # Errors
/// The package is damaged, or a file cannot be written.
pub fn unpack(deb: &Path, target: &Path, place: impl Fn(&Path) -> Option<PathBuf>) -> Result<u32, VmError> {
    let failed = |source| VmError::io("read package", deb, source);
    let mut package = ar::Archive::new(File::open(deb).map_err(failed)?);
    while let Some(member) = package.next_entry() {
        let member = member.map_err(failed)?;
        match member.header().identifier() {
            b"data.tar.xz" => {
                return unpack_tar(lzma_rust2::XzReader::new(member, true), deb, target, place);
            }
            b"data.tar" => return unpack_tar(member, deb, target, place),
            name if name.starts_with(b"data.tar") => {
                let why = format!(
                    "its content is `{}`, and only data.tar.xz can be read",
                    String::from_utf8_lossy(name)
                );
                return Err(VmError::bad_kernel(deb, why));
            }
            _ => {}
        }
    }
    Err(VmError::bad_kernel(deb, "the package has no content"))
}

fn unpack_tar(
    tar: impl Read,
    deb: &Path,
    target: &Path,
    place: impl Fn(&Path) -> Option<PathBuf>,
) -> Result<u32, VmError> {
    let failed = |source| VmError::io("unpack package", deb, source);
    let mut written = 0;
    for entry in tar::Archive::new(tar).entries().map_err(failed)? {
        let mut entry = entry.map_err(failed)?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path: PathBuf = entry.path().map_err(failed)?.components().skip_while(is_here).collect();
        let Some(place) = place(&path) else { continue };
        if !place.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(VmError::bad_kernel(deb, format!("it has a file at `{}`", place.display())));
        }
        let path = target.join(place);
        let write_failed = |source| VmError::io("write", &path, source);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(write_failed)?;
        }
        let mut file = File::create(&path).map_err(write_failed)?;
        std::io::copy(&mut entry, &mut file).map_err(write_failed)?;
        written += 1;
    }
    Ok(written)
}

fn is_here(component: &Component<'_>) -> bool {
    matches!(component, Component::CurDir)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive with one file.
    fn tar_with(path: &str) -> Vec<u8> {
        let mut header = tar::Header::new_old();
        header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
        header.set_size(5);
        header.set_mode(0o644);
        header.set_cksum();
        let mut builder = tar::Builder::new(Vec::new());
        builder.append(&header, &b"hello"[..]).unwrap();
        builder.into_inner().unwrap()
    }

    #[test]
    fn files_land_where_they_are_asked_for_and_never_above() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        let unpack = |path: &str| {
            unpack_tar(&tar_with(path)[..], Path::new("a.deb"), &target, |path| {
                path.strip_prefix("lib").ok().map(Path::to_owned)
            })
            .map_err(|error| error.to_string())
        };
        assert_eq!(unpack("./lib/modules/a.ko"), Ok(1));
        assert_eq!(std::fs::read(target.join("modules/a.ko")).unwrap(), b"hello");
        assert_eq!(unpack("./usr/a.ko"), Ok(0));
        let error = unpack("./lib/../../a.ko").unwrap_err();
        assert_eq!(error, "`a.deb` cannot be used: it has a file at `../../a.ko`");
        assert!(!dir.path().join("a.ko").exists());
    }

    #[test]
    fn a_damaged_package_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let deb = dir.path().join("a.deb");
        let outcome = |content: &[u8]| {
            std::fs::write(&deb, content).unwrap();
            unpack(&deb, dir.path(), |path| Some(path.to_owned())).map_err(|error| {
                let VmError::BadKernel { why, .. } = error else { return "input or output".to_owned() };
                why
            })
        };
        assert_eq!(outcome(b"!<arch>\n"), Err("the package has no content".to_owned()));
        assert_eq!(outcome(b""), Err("input or output".to_owned()));
        assert_eq!(outcome(b"not a package"), Err("input or output".to_owned()));
        let holding = |member: &str| {
            let mut builder = ar::Builder::new(Vec::new());
            builder.append(&ar::Header::new(member.into(), 4), &b"junk"[..]).unwrap();
            outcome(&builder.into_inner().unwrap())
        };
        assert_eq!(holding("data.tar.xz"), Err("input or output".to_owned()));
        assert_eq!(
            holding("data.tar.zst"),
            Err("its content is `data.tar.zst`, and only data.tar.xz can be read".to_owned())
        );
    }
}
