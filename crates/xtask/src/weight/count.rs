//! Lines of Rust and Python, told apart: code, comments, tests. Blank lines count as nothing.
//!
//! Tests are what `#[cfg(test)]` stands before, files of modules that it stands before, and all below `tests` and
//! `benches`, with their comments. Documentation is comment. Left out: comments behind code, and `/* */`, of which
//! there are none; they count as code.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Lines that are not blank.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) code: usize,
    pub(crate) comments: usize,
    pub(crate) tests: usize,
}

impl Lines {
    pub(crate) fn add(&mut self, other: Self) {
        self.code += other.code;
        self.comments += other.comments;
        self.tests += other.tests;
    }
}

/// The lines of all files below the folder of a crate.
pub(crate) fn of_crate(folder: &Path) -> io::Result<Lines> {
    let mut files = Vec::new();
    for path in files_below(folder, &["rs", "py", "pyi"])? {
        let text = fs::read_to_string(&path)?;
        files.push((path.strip_prefix(folder).unwrap_or(&path).to_owned(), text));
    }
    let only_tests: BTreeSet<String> = files
        .iter()
        .flat_map(|(_, text)| test_modules(text))
        .chain(["tests", "benches"].map(str::to_owned))
        .collect();
    let mut all = Lines::default();
    for (path, text) in &files {
        let is_test =
            |part: &Path| part.file_stem().is_some_and(|name| only_tests.contains(&*name.to_string_lossy()));
        let mut lines = of_text(text, if path.extension().is_some_and(|is| is == "rs") { "//" } else { "#" });
        if path.iter().any(|part| is_test(Path::new(part))) {
            lines = Lines { tests: lines.code + lines.comments + lines.tests, ..Lines::default() };
        }
        all.add(lines);
    }
    Ok(all)
}

/// All files below `folder` with one of these extensions, sorted.
pub(crate) fn files_below(folder: &Path, extensions: &[&str]) -> io::Result<Vec<PathBuf>> {
    let (mut files, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && name != "target" {
                open.push(path);
            } else if path.extension().is_some_and(|is| extensions.iter().any(|wanted| is == *wanted)) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn of_text(text: &str, comment: &str) -> Lines {
    let mut lines = Lines::default();
    // How far in the item stands that `#[cfg(test)]` is before, and whether its first line is still to come.
    let mut in_test: Option<(usize, bool)> = None;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let trimmed = line.trim();
        let indent = line.len() - line.trim_start().len();
        if in_test.is_none() && trimmed == "#[cfg(test)]" {
            in_test = Some((indent, true));
            lines.tests += 1;
        } else if let Some((from, is_first)) = in_test {
            lines.tests += 1;
            let is_attribute = is_first && trimmed.starts_with("#[");
            let ends = (is_first && (trimmed.ends_with(';') || trimmed.ends_with('}')))
                || (indent == from && trimmed.starts_with('}'));
            in_test = if ends { None } else { Some((from, is_attribute)) };
        } else if trimmed.starts_with(comment) {
            lines.comments += 1;
        } else {
            lines.code += 1;
        }
    }
    lines
}

/// Names of modules in files of their own that only tests have.
fn test_modules(text: &str) -> Vec<String> {
    let mut lines = text.lines().map(str::trim);
    let mut names = Vec::new();
    while lines.any(|line| line == "#[cfg(test)]") {
        let item = lines.by_ref().find(|line| !line.starts_with("#["));
        let name = item.and_then(|item| item.split_once("mod ")?.1.strip_suffix(';'));
        names.extend(name.map(str::to_owned));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_comments_and_tests_are_told_apart() {
        let text = "//! A file.\n\nuse a::b;\n\n/// A.\nfn a() {}\n#[cfg(test)]\nuse c;\nfn b() {\n    // Why.\n    d();\n}\n\
                    #[cfg(test)]\nmod tests {\n    // Why.\n    fn e() {\n    }\n}\nfn last() {}\n";
        assert_eq!(of_text(text, "//"), Lines { code: 6, comments: 3, tests: 8 });
        assert_eq!(of_text("# Why.\nimport a\n", "#"), Lines { code: 1, comments: 1, tests: 0 });
    }

    #[test]
    fn a_module_of_tests_in_a_file_of_its_own_is_named() {
        let text = "mod a;\n#[cfg(test)]\n#[path = \"x.rs\"]\npub(crate) mod scenes;\nmod b;\n#[cfg(test)]\nmod tests {\n}\n";
        assert_eq!(test_modules(text), ["scenes"]);
    }
}
