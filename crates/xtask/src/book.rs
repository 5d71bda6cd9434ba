//! `cargo xtask book`: the documents as a site, by mdBook, below cargo's target folder.
//!
//! The `mdbook` on the search path makes it. Where there is none, one is installed below cargo's target folder, once,
//! and said so. Then every link of the site is followed. Links of the pages themselves, `tidy` follows, without mdBook.
//! Left out: publishing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::checkout::{root, target};
use crate::say::say;
use crate::step::{Outcome, cargo};

/// The version that is installed; without its server, and what watches files.
const VERSION: &str = "0.5.4";

/// Makes the site and follows its links.
pub(crate) fn make() -> Outcome {
    let book = match mdbook() {
        Ok(book) => book,
        Err(outcome) => return outcome,
    };
    let site = root().join(target()).join("book");
    let status = Command::new(&book).args(["build", "--dest-dir"]).arg(&site).current_dir(root()).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => return Outcome::Failed(format!("`{} build`: {status}", book.display())),
        Err(error) => return Outcome::Failed(format!("{}: {error}", book.display())),
    }
    match broken_links(&site) {
        Ok(broken) if broken.is_empty() => {
            say(&format!("made {}", site.join("index.html").display()));
            Outcome::Passed(Default::default())
        }
        Ok(broken) => Outcome::Failed(format!("links to what is not there:\n  {}", broken.join("\n  "))),
        Err(error) => error.into(),
    }
}

/// The program, installed if it is not there.
fn mdbook() -> Result<PathBuf, Outcome> {
    let tools = root().join(target()).join("tools");
    let own = tools.join("bin").join("mdbook");
    for book in [PathBuf::from("mdbook"), own.clone()] {
        let version = Command::new(&book).arg("--version").output();
        if let Ok(version) = version.as_ref().map(|output| String::from_utf8_lossy(&output.stdout)) {
            say(&format!("{}: {}", book.display(), version.trim()));
            return Ok(book);
        }
    }
    say(&format!("there is no `mdbook`; installing {VERSION} below {}, once", tools.display()));
    let place = tools.to_string_lossy();
    let what = ["install", "mdbook", "--version", VERSION, "--locked", "--root", &place];
    match cargo(&[&what[..], &["--no-default-features", "--features", "search"]].concat(), &[]) {
        Outcome::Passed(_) => Ok(own),
        outcome => Err(outcome),
    }
}

/// `page: link` for each link of the site to a file or an anchor that is not there.
fn broken_links(site: &Path) -> std::io::Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    let mut open = vec![site.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|is| is == "html") {
                pages.insert(path.clone(), fs::read_to_string(&path)?);
            }
        }
    }
    let anchors: BTreeMap<&Path, BTreeSet<&str>> =
        pages.iter().map(|(path, text)| (path.as_path(), values(text, "id=\"").collect())).collect();
    let mut broken = Vec::new();
    for (path, text) in &pages {
        // Of all pages on one, and of the page for paths that are not there, links are relative to others.
        if path.file_name().is_some_and(|name| name == "print.html" || name == "404.html") {
            continue;
        }
        let folder = path.parent().unwrap_or(site);
        for link in values(text, "href=\"").chain(values(text, "src=\"")) {
            if link.contains(':') {
                continue; // To elsewhere.
            }
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let file = if file.is_empty() { path.clone() } else { plain(&folder.join(file)) };
            let is_there = match anchors.get(file.as_path()) {
                Some(anchors) => anchor.is_empty() || anchors.contains(anchor),
                None => file.exists(),
            };
            if !is_there {
                broken.push(format!("{}: {link}", path.strip_prefix(site).unwrap_or(path).display()));
            }
        }
    }
    Ok(broken)
}

/// What stands between `before` and the next quote.
fn values<'a>(text: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(before).filter_map(move |(at, _)| text[at + before.len()..].split('"').next())
}

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part.as_os_str() == ".." {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_files_and_anchors_that_are_not_there_are_found() {
        let site = std::env::temp_dir().join(format!("pagetide-book-{}", std::process::id()));
        fs::create_dir_all(site.join("a")).unwrap();
        fs::write(
            site.join("index.html"),
            "<h1 id=\"top\"><a href=\"a/b.html#x\"><a href=\"https://e.org/\">",
        )
        .unwrap();
        fs::write(
            site.join("a/b.html"),
            "<h2 id=\"x\"><a href=\"../index.html#top\"><a href=\"#y\"><a href=\"c.html\">",
        )
        .unwrap();
        assert_eq!(broken_links(&site).unwrap(), ["a/b.html: #y", "a/b.html: c.html"]);
        fs::remove_dir_all(site).unwrap();
    }
}
