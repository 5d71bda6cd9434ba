//! The files of the repository, read once by each check.

use std::path::{Path, PathBuf};

/// A text file.
pub(crate) struct Text {
    /// Path from the repository's root, with `/`.
    pub(crate) path: String,
    /// All of it.
    pub(crate) content: String,
}

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/tidy is two deep").to_owned()
}

/// All files below the root whose name ends in one of `endings`, sorted by path. Build output and
/// hidden folders other than `.cargo`, `.ci` and `.github` are left out.
pub(crate) fn texts(endings: &[&str]) -> Vec<Text> {
    let root = root();
    let mut texts = Vec::new();
    let mut open = vec![root.clone()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the repository") {
            let path = entry.expect("an entry of the repository").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let skipped = name == "target" || name == "recordings" || name == "node_modules";
            let hidden = name.starts_with('.') && ![".cargo", ".ci", ".github"].contains(&name.as_str());
            if path.is_dir() {
                if !skipped && !hidden {
                    open.push(path);
                }
            } else if endings.iter().any(|ending| name.ends_with(ending)) {
                let relative = path.strip_prefix(&root).expect("below the root");
                let content = std::fs::read(&path).expect("a file of the repository");
                texts.push(Text {
                    path: relative.to_string_lossy().replace('\\', "/"),
                    content: String::from_utf8_lossy(&content).into_owned(),
                });
            }
        }
    }
    texts.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(!texts.is_empty(), "nothing ends in {endings:?}: the check looks at the wrong place");
    texts
}

/// Fails with all places at once.
pub(crate) fn assert_none(problem: &str, places: &[String]) {
    assert!(places.is_empty(), "{problem}:\n  {}", places.join("\n  "));
}
