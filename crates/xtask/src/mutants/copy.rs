//! A copy of the sources in which wrong code is built.
//!
//! It lives below the build folder, keeps its own build, and is brought up to date by each run:
//! whatever an earlier run left wrong is overwritten, and what did not change is not built again.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::checkout;

/// What cargo needs of the repository.
const PARTS: [&str; 4] = ["Cargo.toml", "Cargo.lock", ".cargo", "crates"];

/// How the copy is built: quickly, as most of the time goes into compiling. Cargo takes this from above
/// the copy before what the copy's own `Cargo.toml` says.
const CONFIG: &str = "\
[profile.dev]
debug = false
[profile.dev.package.pagetide-mm]
opt-level = 0
";

const ENVIRONMENT: [(&str, &str); 2] = [
    // Wrong code may leave values unused.
    ("RUSTFLAGS", "--cap-lints=warn"),
    // A drawing that differs is a failure and leaves nothing behind.
    ("INSTA_UPDATE", "no"),
];

/// The copy, which this process has for itself.
pub(super) struct SourceCopy {
    folder: PathBuf,
    /// Held while the process lives.
    _lock: File,
}

impl SourceCopy {
    /// Makes it what the repository is now.
    pub(super) fn refresh() -> Result<Self, String> {
        let folder = checkout::target().join("mutants");
        let told = |error: std::io::Error| format!("{}: {error}", folder.display());
        fs::create_dir_all(&folder).map_err(told)?;
        let lock = File::create(folder.join("lock")).map_err(told)?;
        if lock.try_lock().is_err() {
            return Err("another `cargo xtask mutants` is running".into());
        }
        fs::create_dir_all(folder.join(".cargo")).map_err(told)?;
        fs::write(folder.join(".cargo/config.toml"), CONFIG).map_err(told)?;
        let copy = Self { folder, _lock: lock };
        let root = checkout::root();
        let mut wanted = BTreeSet::new();
        for part in PARTS {
            copy.take(&root, Path::new(part), &mut wanted).map_err(|error| format!("{part}: {error}"))?;
        }
        copy.drop_others(Path::new(""), &wanted)
            .map_err(|error| format!("{}: {error}", copy.folder.display()))?;
        Ok(copy)
    }

    fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    /// Copies what differs at `path`, and adds the files there to `wanted`.
    fn take(&self, root: &Path, path: &Path, wanted: &mut BTreeSet<PathBuf>) -> std::io::Result<()> {
        let from = root.join(path);
        if from.is_dir() {
            if from.file_name().is_some_and(|name| name == "target") {
                return Ok(());
            }
            for entry in fs::read_dir(from)? {
                self.take(root, &path.join(entry?.file_name()), wanted)?;
            }
            return Ok(());
        }
        if from.exists() {
            let (content, to) = (fs::read(&from)?, self.tree().join(path));
            if fs::read(&to).ok().as_ref() != Some(&content) {
                fs::create_dir_all(to.parent().expect("it is below the copy's root"))?;
                fs::write(&to, content)?;
            }
            wanted.insert(path.to_owned());
        }
        Ok(())
    }

    /// Removes files that the repository does not have (any more).
    fn drop_others(&self, path: &Path, wanted: &BTreeSet<PathBuf>) -> std::io::Result<()> {
        for entry in fs::read_dir(self.tree().join(path))? {
            let path = path.join(entry?.file_name());
            let full = self.tree().join(&path);
            if full.is_dir() {
                self.drop_others(&path, wanted)?;
            } else if !wanted.contains(&path) {
                fs::remove_file(full)?;
            }
        }
        Ok(())
    }

    /// A command of cargo in the copy.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(super::cargo());
        command.current_dir(self.tree()).envs(ENVIRONMENT);
        command.env("CARGO_TARGET_DIR", self.folder.join("build"));
        command.env("CARGO_MUTANTS_OUTPUT", &self.folder);
        command
    }

    /// Where lists of what became of mutants will be; those of an earlier run are gone.
    pub(super) fn results(&self) -> Result<PathBuf, String> {
        let results = self.folder.join("mutants.out");
        if results.exists() {
            fs::remove_dir_all(&results).map_err(|error| format!("{}: {error}", results.display()))?;
        }
        Ok(results)
    }

    /// The file or the files of the folder at `below`, from `crates/mm/src`; `.rs` may be left out.
    pub(super) fn files_at(&self, below: &str) -> Result<Vec<String>, String> {
        let source = self.source("");
        let path = source.join(below);
        let with_ending = format!("{}.rs", below.trim_end_matches('/'));
        if path.is_file() {
            Ok(vec![below.to_owned()])
        } else if path.is_dir() {
            let mut files = Vec::new();
            files_below(&path, &mut files).map_err(|error| format!("{below}: {error}"))?;
            let name = |file: &PathBuf| {
                file.strip_prefix(&source).expect("below the source").to_string_lossy().into_owned()
            };
            Ok(files.iter().map(name).collect())
        } else if source.join(&with_ending).is_file() {
            Ok(vec![with_ending])
        } else {
            Ok(Vec::new())
        }
    }

    /// A file of `mm`.
    pub(super) fn source(&self, file: &str) -> PathBuf {
        self.tree().join("crates/mm/src").join(file)
    }

    /// The folder in which cargo runs tests of `mm`.
    pub(super) fn package(&self) -> PathBuf {
        self.tree().join("crates/mm")
    }
}

fn files_below(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files_below(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
