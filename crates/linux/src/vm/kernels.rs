//! Kernels that guests can boot: the cache of fetched ones, and kernels by path.
//!
//! A cached kernel is a folder named after its release (`6.12.117+deb12-cloud-amd64`) with
//! `vmlinuz` and `modules/`. It appears by a rename, so it is complete or not there. A kernel
//! given by path is an x86 `bzImage`, whose modules are looked for beside it and in `/lib/modules`
//! by the release that the image itself names, or a folder in which somebody builds Linux. What of
//! it has no module is taken for built in; a guest that lacks it says so.
//!
//! Left out: kernels for other CPUs, uncompressed images.

use std::cmp::Ordering;
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::error::{READ_KERNEL, VmError};

/// Which kernel a guest runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VmKernel {
    /// The newest fetched kernel of a version: `6.12`, `6.1.0-50`, or a whole release.
    Version(String),
    /// A kernel image of your own, or the folder that it is built in.
    Path(PathBuf),
}

/// A kernel that is there and looks right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// What `uname -r` says in it.
    pub release: String,
    /// The image.
    pub image: PathBuf,
    /// Where its modules are.
    pub modules: Modules,
}

/// Where the modules of a kernel are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Modules {
    /// In a folder that has each that guests load and is not built in: a kernel of the cache.
    Complete(PathBuf),
    /// In a folder that may lack what is built in.
    Installed(PathBuf),
    /// Where they were built, named by `modules.order`.
    BuildTree(PathBuf),
    /// There are none.
    BuiltIn,
}

/// Where `make bzImage` puts the image.
const BUILT_IMAGE: &str = "arch/x86/boot/bzImage";
/// What `make` was configured to build last: the release that its modules are for.
const BUILT_RELEASE: &str = "include/config/kernel.release";

impl VmKernel {
    /// Reads `6.12` as a version and `./vmlinuz` or `/boot/vmlinuz` as a path.
    pub fn parse(text: &str) -> Self {
        if text.contains('/') { Self::Path(text.into()) } else { Self::Version(text.to_owned()) }
    }

    /// Finds the kernel. Versions are looked for in `cache`, see [`cache_dir`].
    ///
    /// # Errors
    /// It is not there, or it is no kernel.
    pub fn find(&self, cache: &Path) -> Result<Kernel, VmError> {
        match self {
            Self::Version(version) => {
                let have = cached(cache);
                let Some(release) = newest_of(&have, version) else {
                    return Err(VmError::KernelMissing {
                        version: version.clone(),
                        cache: cache.to_owned(),
                        have,
                        command: "vm",
                    });
                };
                Kernel::in_folder(&cache.join(release))
            }
            Self::Path(image) => Kernel::at_path(image),
        }
    }
}

impl Kernel {
    /// The kernel in a folder of the cache.
    ///
    /// # Errors
    /// The image is no kernel, or another one than the folder's name says.
    pub fn in_folder(folder: &Path) -> Result<Self, VmError> {
        let image = folder.join("vmlinuz");
        let release = image_release(&image)?;
        if folder.file_name().and_then(|name| name.to_str()) != Some(&release) {
            return Err(VmError::bad_kernel(folder, format!("it holds kernel {release}")));
        }
        Ok(Self { release, image, modules: Modules::Complete(folder.join("modules")) })
    }

    fn at_path(path: &Path) -> Result<Self, VmError> {
        if path.is_dir() {
            return Self::in_build_tree(path);
        }
        let release = image_release(path)?;
        let beside = path.parent().unwrap_or(Path::new(".")).join("modules");
        let installed = Path::new("/lib/modules").join(&release);
        let modules = [beside, installed].into_iter().find(|dir| dir.is_dir());
        let modules = modules.map_or(Modules::BuiltIn, Modules::Installed);
        Ok(Self { release, image: path.to_owned(), modules })
    }

    fn in_build_tree(tree: &Path) -> Result<Self, VmError> {
        let image = tree.join(BUILT_IMAGE);
        if !image.is_file() {
            let why =
                format!("it is a folder without {BUILT_IMAGE}, which `make bzImage` makes in a build tree");
            return Err(VmError::bad_kernel(tree, why));
        }
        Ok(Self { release: image_release(&image)?, image, modules: Modules::BuildTree(tree.to_owned()) })
    }

    /// What is doubtful about a build tree: that its image and its modules are of one build.
    pub fn doubt(&self) -> Option<String> {
        let Modules::BuildTree(tree) = &self.modules else { return None };
        let built = std::fs::read_to_string(tree.join(BUILT_RELEASE)).ok()?;
        let (built, release) = (built.trim(), &self.release);
        (built != release).then(|| {
            format!(
                "the image in `{}` is {release}, and what was built last is {built}: its modules may not load",
                tree.display()
            )
        })
    }
}

/// Where kernels are kept: `$XDG_CACHE_HOME/pagetide/kernels`, or `~/.cache/pagetide/kernels`.
/// Without either it is below `$TMPDIR` or `/tmp`, where everybody may write, in a folder that
/// nobody but this user can: what boots from there runs with this user's rights.
///
/// # Errors
/// [`VmError::SharedCache`]: that folder is there and not this user's alone.
pub fn cache_dir() -> Result<PathBuf, VmError> {
    let var = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // A relative path is invalid and to be ignored (XDG Base Directory Specification).
    let own = var("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    if let Some(cache) = own.or_else(|| var("HOME").map(|home| home.join(".cache"))) {
        return Ok(cache.join("pagetide/kernels"));
    }
    let user = rustix::process::geteuid().as_raw();
    let folder = std::env::temp_dir().join(format!("pagetide-{user}"));
    check_private(&folder, user)?;
    Ok(folder.join("kernels"))
}

/// Makes a folder of the cache; all that are missing above it, too, are this user's alone.
pub(crate) fn create_private(folder: &Path) -> Result<(), VmError> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    created.map_err(|source| VmError::io("create", folder, source))?;
    cache_dir().map(drop) // Somebody else may have been faster.
}

/// Refuses a folder in which others than `user` could put a kernel. One that is not there is fine.
fn check_private(folder: &Path, user: u32) -> Result<(), VmError> {
    let why = match folder.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(VmError::io("look at", folder, source)),
        Ok(found) if found.is_symlink() => "is a symbolic link".to_owned(),
        Ok(found) if !found.is_dir() => "is not a folder".to_owned(),
        Ok(found) if found.uid() != user => format!("belongs to user {}, not to {user}", found.uid()),
        Ok(found) if found.mode() & 0o022 != 0 => {
            format!("can be written by others (mode {:04o})", found.mode() & 0o7777)
        }
        Ok(_) => return Ok(()),
    };
    Err(VmError::SharedCache { path: folder.to_owned(), why })
}

/// Releases in the cache, oldest version first.
pub fn cached(cache: &Path) -> Vec<String> {
    cached_with(cache, "vmlinuz")
}

/// Folders of the cache that have `file`, oldest version first.
pub(super) fn cached_with(cache: &Path, file: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(cache) else { return Vec::new() };
    let mut releases: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.path().join(file).is_file())
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    releases.sort_by(|a, b| compare_versions(a, b));
    releases
}

/// The newest of `releases`, which are in order, that is of `version`.
pub(super) fn newest_of<'a>(releases: &'a [String], version: &str) -> Option<&'a String> {
    releases.iter().rfind(|release| is_of_version(release, version))
}

/// What is said of a kernel that need not be fetched.
pub(super) fn is_here(kernel: &Kernel) -> String {
    format!("kernel {} is here already; `--update` looks for a newer one", kernel.release)
}

/// Whether `release` is of `version`: it begins with it, and no number is cut in half.
pub fn is_of_version(release: &str, version: &str) -> bool {
    let rest = release.strip_prefix(version);
    rest.is_some_and(|rest| !version.is_empty() && !rest.starts_with(|next: char| next.is_ascii_digit()))
}

/// Orders versions as a person does: numbers by value, all else by its characters.
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    let parts = |text: &str| -> Vec<(u64, String)> {
        let mut parts = vec![(0_u64, String::new())];
        for c in text.chars() {
            let last: &mut (u64, String) = parts.last_mut().expect("it begins with one part");
            match c.to_digit(10) {
                Some(digit) if last.1.is_empty() => {
                    last.0 = last.0.saturating_mul(10).saturating_add(digit.into());
                }
                Some(digit) => parts.push((digit.into(), String::new())),
                None => last.1.push(c),
            }
        }
        parts
    };
    parts(a).cmp(&parts(b))
}

/// The release that a kernel image names: the x86 boot protocol has the offset of a text at
/// 0x20e, counted from 0x200 (kernel documentation, `arch/x86/boot.rst`, `kernel_version`).
fn image_release(image: &Path) -> Result<String, VmError> {
    let bytes = std::fs::read(image).map_err(|source| VmError::io(READ_KERNEL, image, source))?;
    release_of(&bytes).ok_or_else(|| VmError::bad_kernel(image, "it is no x86 bzImage with a version in it"))
}

fn release_of(bytes: &[u8]) -> Option<String> {
    if bytes.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let offset = u16::from_le_bytes(bytes.get(0x20e..0x210)?.try_into().ok()?);
    let text = bytes.get(0x200 + usize::from(offset)..)?;
    let text = text.split(|byte| *byte == 0 || *byte == b' ').next()?;
    let release = std::str::from_utf8(text).ok()?;
    let is_release = release.starts_with(|c: char| c.is_ascii_digit()) && release.len() < 100;
    is_release.then(|| release.to_owned())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The least that is a kernel's image.
    pub(in crate::vm) fn image(release: &str) -> Vec<u8> {
        let mut bytes = vec![0; 0x300];
        bytes[0x202..0x206].copy_from_slice(b"HdrS");
        bytes[0x20e..0x210].copy_from_slice(&0x80_u16.to_le_bytes());
        bytes[0x280..0x280 + release.len()].copy_from_slice(release.as_bytes());
        bytes
    }

    fn put(cache: &Path, folder: &str, release: &str) {
        std::fs::create_dir_all(cache.join(folder).join("modules")).unwrap();
        std::fs::write(cache.join(folder).join("vmlinuz"), image(&format!("{release} (maintainer) #1")))
            .unwrap();
    }

    #[test]
    fn a_version_means_the_newest_kernel_of_it_and_6_1_does_not_mean_6_12() {
        let cache = tempfile::tempdir().unwrap();
        let cache = cache.path();
        for release in ["6.1.0-9-cloud-amd64", "6.1.0-50-cloud-amd64", "6.12.117+deb12-cloud-amd64"] {
            put(cache, release, release);
        }
        let find = |version: &str| VmKernel::parse(version).find(cache).map(|kernel| kernel.release);
        assert_eq!(find("6.1").unwrap(), "6.1.0-50-cloud-amd64");
        assert_eq!(find("6.1.0-9").unwrap(), "6.1.0-9-cloud-amd64");
        assert_eq!(find("6.12").unwrap(), "6.12.117+deb12-cloud-amd64");
        let error = find("6.18").unwrap_err();
        assert_eq!(
            error.hint().unwrap(),
            "fetch it: `pagetide vm fetch 6.18`; there is 6.1.0-9-cloud-amd64, 6.1.0-50-cloud-amd64, \
             6.12.117+deb12-cloud-amd64"
        );
        put(cache, "6.18.1-cloud-amd64", "6.12.1-cloud-amd64");
        assert!(find("6.18").unwrap_err().to_string().ends_with("it holds kernel 6.12.1-cloud-amd64"));
    }

    #[test]
    fn a_path_is_an_image_with_its_modules_beside_it_or_without_any() {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), "mine", "6.13.0-rc1+");
        let path = folder.path().join("mine/vmlinuz");
        let find = || VmKernel::parse(path.to_str().unwrap()).find(Path::new("/nowhere")).unwrap();
        assert_eq!(find().release, "6.13.0-rc1+");
        let modules = folder.path().join("mine/modules");
        assert_eq!(find().modules, Modules::Installed(modules.clone()));
        std::fs::remove_dir(&modules).unwrap();
        assert_eq!(find().modules, Modules::BuiltIn);
    }

    #[test]
    fn a_build_tree_is_a_kernel_and_its_image_says_which() {
        let tree = tempfile::tempdir().unwrap();
        let find = || VmKernel::Path(tree.path().to_owned()).find(Path::new("/nowhere"));
        let error = find().unwrap_err().to_string();
        assert!(
            error.ends_with(
                "a folder without arch/x86/boot/bzImage, which `make bzImage` makes in a build tree"
            ),
            "{error}"
        );
        let put = |path: &str, content: &[u8]| {
            let path = tree.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        };
        put("arch/x86/boot/bzImage", &image("6.13.0-rc1+"));
        let kernel = find().unwrap();
        assert_eq!((&*kernel.release, kernel.doubt()), ("6.13.0-rc1+", None));
        assert_eq!(kernel.modules, Modules::BuildTree(tree.path().to_owned()));
        put("include/config/kernel.release", b"6.13.0-rc1+\n");
        assert_eq!(kernel.doubt(), None);
        put("include/config/kernel.release", b"6.13.0-rc2\n");
        let doubt = kernel.doubt().unwrap();
        assert!(
            doubt
                .ends_with("is 6.13.0-rc1+, and what was built last is 6.13.0-rc2: its modules may not load"),
            "{doubt}"
        );
    }

    #[test]
    fn what_is_no_kernel_image_has_no_release() {
        assert_eq!(release_of(b""), None);
        assert_eq!(release_of(&[0; 0x400]), None);
        assert_eq!(release_of(&image("")), None);
        let mut cut = image("6.1");
        cut[0x20e..0x210].copy_from_slice(&u16::MAX.to_le_bytes());
        assert_eq!(release_of(&cut), None);
    }

    #[test]
    fn a_cache_in_a_shared_folder_is_used_only_if_it_is_this_users_alone() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let shared = tempfile::tempdir().unwrap();
        let at = |name: &str| shared.path().join(name);
        let user = rustix::process::geteuid().as_raw();
        let why = |name: &str, user| match check_private(&at(name), user) {
            Ok(()) => "fine".to_owned(),
            Err(error) => {
                assert!(error.hint().unwrap().contains("HOME"), "{error}");
                error.to_string().split_once(", where kernels would be kept, ").unwrap().1.to_owned()
            }
        };
        assert_eq!(why("nothing", user), "fine");
        DirBuilder::new().mode(0o700).create(at("own")).unwrap();
        assert_eq!(why("own", user), "fine");
        assert_eq!(why("own", user + 1), format!("belongs to user {user}, not to {}", user + 1));
        symlink(at("own"), at("link")).unwrap();
        assert_eq!(why("link", user), "is a symbolic link");
        std::fs::write(at("file"), "").unwrap();
        assert_eq!(why("file", user), "is not a folder");
        for (mode, shown) in [(0o770, "0770"), (0o1777, "1777")] {
            std::fs::set_permissions(at("own"), std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(why("own", user), format!("can be written by others (mode {shown})"));
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(tail in proptest::collection::vec(0_u8.., 0..64), offset in 0_u16..) {
            let mut bytes = image("");
            bytes[0x20e..0x210].copy_from_slice(&offset.to_le_bytes());
            bytes.extend_from_slice(&tail);
            proptest::prop_assert!(release_of(&bytes).is_none_or(|release| release.len() < 100));
            crate::vm::modules::module_info(&tail);
        }

        #[test]
        fn versions_have_one_order(a in "[0-9.+a]{0,12}", b in "[0-9.+a]{0,12}", c in "[0-9.+a]{0,12}") {
            let le = |a: &str, b: &str| compare_versions(a, b) != Ordering::Greater;
            proptest::prop_assert_eq!(compare_versions(&a, &b), compare_versions(&b, &a).reverse());
            proptest::prop_assert!(!(le(&a, &b) && le(&b, &c)) || le(&a, &c));
        }
    }
}
