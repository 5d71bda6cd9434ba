//! Which kernel modules a guest loads, and in which order.
//!
//! A module names those that it needs in its section `.modinfo`: `depends=a,b` are hard, `softdep=
//! pre: c` should come first when there is such a module. This is what `depmod` reads to write
//! `modules.dep`, which kernel packages do not contain: it is made when they are installed.
//!
//! Left out: aliases and devices; what a guest has is known, since QEMU's command line is ours.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader as _, SectionHeader as _};

use super::error::VmError;
use super::kernels::Modules;

/// Modules of every guest: its disk, its channel to the host and the bus of both.
pub const GUEST_MODULES: [&str; 3] = ["virtio_pci", "virtio_blk", "virtio_console"];

/// What a module says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleInfo {
    /// Modules without which it cannot be loaded.
    pub depends: Vec<String>,
    /// Modules that should be loaded before it if they exist.
    pub before: Vec<String>,
}

/// A folder of modules, by name.
#[derive(Debug, Default)]
pub struct ModuleTree {
    files: BTreeMap<String, PathBuf>,
    builtin: BTreeSet<String>,
    /// Whether what is neither is taken for built in.
    may_lack: bool,
}

/// What `modules.builtin` in `dir` names; nothing without that file.
fn builtin_in(dir: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(dir.join("modules.builtin")).unwrap_or_default();
    text.lines().filter_map(|line| Path::new(line).file_name().and_then(module_name)).collect()
}

/// A module's canonical name: `crc32c-intel.ko.xz` is `crc32c_intel`.
pub fn module_name(file: &OsStr) -> Option<String> {
    let file = file.to_str()?;
    let stem =
        [".ko", ".ko.xz", ".ko.zst", ".ko.gz"].iter().find_map(|extension| file.strip_suffix(extension))?;
    Some(stem.replace('-', "_"))
}

impl ModuleTree {
    /// The modules of a kernel.
    ///
    /// # Errors
    /// Their folder cannot be read.
    pub fn of(modules: &Modules) -> Result<Self, VmError> {
        let tree = match modules {
            Modules::Complete(dir) => return Self::scan(dir),
            Modules::Installed(dir) => Self::scan(dir)?,
            Modules::BuildTree(dir) => Self::in_build_tree(dir)?,
            Modules::BuiltIn => Self::default(),
        };
        Ok(Self { may_lack: true, ..tree })
    }

    /// Finds all modules below `dir`, and those that `modules.builtin` in it says are part of the
    /// kernel itself. One that is neither is missing.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn scan(dir: &Path) -> Result<Self, VmError> {
        let mut tree = Self { builtin: builtin_in(dir), ..Self::default() };
        tree.scan_folder(dir)?;
        Ok(tree)
    }

    /// Modules where they were built. `modules.order` there names those of the last build, without
    /// what older ones left: as `kernel/fs/xfs/xfs.ko` up to 5.2, then as `fs/xfs/xfs.ko`, and since
    /// 6.2 as `fs/xfs/xfs.o`. A tree without this file is searched.
    fn in_build_tree(dir: &Path) -> Result<Self, VmError> {
        let Ok(order) = std::fs::read_to_string(dir.join("modules.order")) else { return Self::scan(dir) };
        let mut tree = Self { builtin: builtin_in(dir), ..Self::default() };
        for line in order.lines() {
            let named = [Some(line), line.strip_prefix("kernel/")].into_iter().flatten();
            let mut paths = named.map(|path| dir.join(path).with_extension("ko"));
            let Some(path) = paths.find(|path| path.is_file()) else { continue };
            if let Some(name) = path.file_name().and_then(module_name) {
                tree.files.insert(name, path);
            }
        }
        Ok(tree)
    }

    /// Whether a module can be loaded, or is part of the kernel as far as anybody knows.
    pub fn has(&self, name: &str) -> bool {
        self.may_lack || self.builtin.contains(name) || self.has_file(name)
    }

    /// Whether there is a file of a module.
    pub fn has_file(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// Those of `roots` that are taken for built in because nothing says otherwise.
    pub fn assumed<'a>(&self, roots: &[&'a str]) -> Vec<&'a str> {
        let is_known = |name: &str| self.builtin.contains(name) || self.files.contains_key(name);
        roots.iter().copied().filter(|root| self.may_lack && !is_known(root)).collect()
    }

    fn scan_folder(&mut self, dir: &Path) -> Result<(), VmError> {
        let failed = |source| VmError::io("list", dir, source);
        for entry in std::fs::read_dir(dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            // A build tree has its history here.
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                continue;
            }
            // Installed kernels have symbolic links to their sources here; do not follow them.
            if entry.file_type().map_err(failed)?.is_dir() {
                self.scan_folder(&entry.path())?;
            } else if let Some(name) = module_name(&entry.file_name()) {
                self.files.insert(name, entry.path());
            }
        }
        Ok(())
    }

    /// The modules that loading `roots` takes, each after those that it needs, with their
    /// uncompressed content. Modules that are part of the kernel, or taken for it, are left out.
    ///
    /// # Errors
    /// A module is neither here nor part of the kernel, or its file cannot be read.
    pub fn load(&self, roots: &[&str]) -> Result<Vec<(String, Vec<u8>)>, VmError> {
        let mut contents = BTreeMap::new();
        let order = load_order(roots, |name| {
            if self.builtin.contains(name) {
                return Ok(Found::Builtin);
            }
            let Some(path) = self.files.get(name) else {
                return Ok(if self.may_lack { Found::Builtin } else { Found::Missing });
            };
            let content = read_module(path)?;
            let info = module_info(&content)
                .ok_or_else(|| VmError::bad_kernel(path, "this module has no section .modinfo"))?;
            contents.insert(name.to_owned(), content);
            Ok(Found::Module(info))
        })?;
        Ok(order
            .into_iter()
            .map(|name| {
                let content = contents.remove(&name).expect("each ordered module was read once");
                (name, content)
            })
            .collect())
    }
}

enum Found {
    Builtin,
    Missing,
    Module(ModuleInfo),
}

/// Depth first over dependencies, in the order in which they are named.
fn load_order(
    roots: &[&str],
    mut find: impl FnMut(&str) -> Result<Found, VmError>,
) -> Result<Vec<String>, VmError> {
    enum Step {
        Enter { name: String, optional: bool },
        Leave(String),
    }
    let enter = |name: &str, optional| Step::Enter { name: name.replace('-', "_"), optional };
    let mut seen = BTreeSet::new();
    let mut order = Vec::new();
    let mut todo: Vec<Step> = roots.iter().rev().map(|root| enter(root, false)).collect();
    while let Some(step) = todo.pop() {
        let (name, optional) = match step {
            Step::Leave(name) => {
                order.push(name);
                continue;
            }
            Step::Enter { name, optional } => (name, optional),
        };
        if !seen.insert(name.clone()) {
            continue;
        }
        match find(&name)? {
            Found::Builtin => {}
            Found::Missing if optional => {}
            Found::Missing => return Err(VmError::ModuleMissing { name }),
            Found::Module(info) => {
                todo.push(Step::Leave(name));
                todo.extend(info.depends.iter().rev().map(|needed| enter(needed, false)));
                todo.extend(info.before.iter().rev().map(|wanted| enter(wanted, true)));
            }
        }
    }
    Ok(order)
}

/// Reads the section `.modinfo`: texts `key=value`, separated by NULs.
pub fn module_info(elf: &[u8]) -> Option<ModuleInfo> {
    let header = FileHeader64::<LittleEndian>::parse(elf).ok()?;
    let endian = header.endian().ok()?;
    let (_, section) = header.sections(endian, elf).ok()?.section_by_name(endian, b".modinfo")?;
    let mut info = ModuleInfo::default();
    for text in section.data(endian, elf).ok()?.split(|byte| *byte == 0) {
        let text = String::from_utf8_lossy(text);
        if let Some(names) = text.strip_prefix("depends=") {
            info.depends.extend(names.split(',').filter(|name| !name.is_empty()).map(str::to_owned));
        } else if let Some(rule) = text.strip_prefix("softdep=") {
            let before = rule.split_whitespace().skip_while(|word| *word != "pre:").skip(1);
            info.before.extend(before.take_while(|word| *word != "post:").map(str::to_owned));
        }
    }
    Some(info)
}

fn read_module(path: &Path) -> Result<Vec<u8>, VmError> {
    let failed = |source| VmError::io("read", path, source);
    let bytes = std::fs::read(path).map_err(failed)?;
    match path.extension().and_then(OsStr::to_str) {
        Some("xz") => {
            let mut plain = Vec::new();
            lzma_rust2::XzReader::new(&bytes[..], true).read_to_end(&mut plain).map_err(failed)?;
            Ok(plain)
        }
        Some("ko") => Ok(bytes),
        _ => Err(VmError::bad_kernel(path, "only .ko and .ko.xz modules can be read")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(roots: &[&str], modules: &[(&str, &[&str], &[&str])]) -> Result<Vec<String>, String> {
        load_order(roots, |name| {
            let strings = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            Ok(match modules.iter().find(|module| module.0 == name) {
                Some((_, depends, before)) => {
                    Found::Module(ModuleInfo { depends: strings(depends), before: strings(before) })
                }
                None if name == "crc32c_generic" => Found::Builtin,
                None => Found::Missing,
            })
        })
        .map_err(|error| error.to_string())
    }

    #[test]
    fn needed_modules_come_first_and_once_and_builtin_ones_never() {
        let modules: &[(&str, &[&str], &[&str])] = &[
            ("virtio_pci", &["virtio_ring", "virtio_pci_modern_dev", "virtio"], &[]),
            ("virtio_ring", &["virtio"], &[]),
            ("virtio_pci_modern_dev", &[], &[]),
            ("virtio", &[], &[]),
            ("xfs", &["libcrc32c"], &[]),
            ("libcrc32c", &["crc32c-generic"], &["crc32c", "crc32c-intel"]),
            ("crc32c_intel", &[], &[]),
        ];
        assert_eq!(
            order(&["virtio_pci", "xfs", "virtio"], modules).unwrap(),
            [
                "virtio",
                "virtio_ring",
                "virtio_pci_modern_dev",
                "virtio_pci",
                "crc32c_intel",
                "libcrc32c",
                "xfs"
            ]
        );
    }

    #[test]
    fn a_module_that_is_nowhere_is_an_error_and_a_circle_is_not_endless() {
        assert_eq!(order(&["a"], &[("a", &["b"], &[])]), Err("kernel module `b` is missing".to_owned()));
        assert_eq!(order(&["a"], &[("a", &["b"], &[]), ("b", &["a"], &[])]).unwrap(), ["b", "a"]);
    }

    /// An empty tree with these files in it.
    fn tree_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        dir
    }

    const ROOTS: [&str; 4] = ["virtio_pci", "virtio_blk", "virtio_console", "xfs"];

    #[test]
    fn a_build_tree_has_the_modules_of_its_last_build_however_its_kernel_names_them() {
        for line in ["kernel/fs/xfs/xfs.ko", "fs/xfs/xfs.ko", "fs/xfs/xfs.o"] {
            let order = format!("{line}\nkernel/kheaders.ko\nfs/gone/gone.o\n");
            let dir = tree_with(&[
                ("modules.order", &order),
                ("modules.builtin", "kernel/drivers/virtio/virtio_pci.ko\n"),
                ("fs/xfs/xfs.ko", ""),
                ("kernel/kheaders.ko", ""),
                ("drivers/block/virtio_blk.ko", "of an older build"),
            ]);
            let tree = ModuleTree::of(&Modules::BuildTree(dir.path().to_owned())).unwrap();
            assert_eq!(tree.files["xfs"], dir.path().join("fs/xfs/xfs.ko"), "{line}");
            assert_eq!(tree.files.keys().collect::<Vec<_>>(), ["kheaders", "xfs"], "{line}");
            assert_eq!(tree.assumed(&ROOTS), ["virtio_blk", "virtio_console"], "{line}");
        }
    }

    #[test]
    fn a_build_tree_without_a_list_is_searched_but_not_its_history() {
        let dir = tree_with(&[("fs/xfs/xfs.ko", ""), (".git/virtio_blk.ko", "")]);
        let tree = ModuleTree::of(&Modules::BuildTree(dir.path().to_owned())).unwrap();
        assert_eq!(tree.files.keys().collect::<Vec<_>>(), ["xfs"]);
    }

    #[test]
    fn what_a_kernel_by_path_has_no_module_for_is_taken_for_built_in() {
        let dir = tempfile::tempdir().unwrap();
        let kept = Modules::Complete(dir.path().to_owned());
        let error = ModuleTree::of(&kept).unwrap().load(&ROOTS).unwrap_err();
        assert_eq!(error.to_string(), "kernel module `virtio_pci` is missing");
        assert!(ModuleTree::of(&kept).unwrap().assumed(&ROOTS).is_empty());
        for modules in [Modules::BuiltIn, Modules::Installed(dir.path().to_owned())] {
            let tree = ModuleTree::of(&modules).unwrap();
            assert_eq!(tree.load(&ROOTS).unwrap(), []);
            assert_eq!(tree.assumed(&ROOTS), ROOTS);
        }
    }

    #[test]
    fn names_of_files_and_names_of_modules_agree() {
        let name = |file| module_name(OsStr::new(file));
        assert_eq!(name("crc32c-intel.ko.xz").as_deref(), Some("crc32c_intel"));
        assert_eq!(name("xfs.ko").as_deref(), Some("xfs"));
        assert_eq!(name("modules.builtin"), None);
    }
}
