//! Texts name only what is there, and nothing of the machine that they were written on.

use std::path::Path;

use crate::tree::{assert_none, root, texts};

/// Where people keep their files: a path below these is nobody else's.
const HOMES: [&str; 5] = ["home", "root", "Users", "work", "workspace"];

/// Mentions of files below the folder of documents, in code or prose.
fn mentions_of_docs(content: &str) -> impl Iterator<Item = String> {
    content.match_indices("docs/").filter_map(move |(at, _)| {
        let continues = content[..at].ends_with(|c: char| c.is_alphanumeric() || "/._-".contains(c));
        let rest = &content[at..];
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || "/._-".contains(c))).unwrap_or(rest.len());
        let mention = rest[..end].trim_end_matches(['.', '/']);
        (!continues && mention != "docs").then(|| mention.to_owned())
    })
}

/// Targets of Markdown links that are files of this repository.
fn linked_files(content: &str) -> impl Iterator<Item = String> {
    content.match_indices("](").filter_map(move |(at, _)| {
        let target = content[at + 2..].split(')').next().unwrap_or_default();
        let file = target.split('#').next().unwrap_or_default();
        (!file.is_empty() && !file.contains("://") && !file.contains(' ')).then(|| file.to_owned())
    })
}

#[test]
fn documents_that_are_named_exist() {
    let root = root();
    let mut missing = Vec::new();
    for text in texts(&[".rs", ".md", ".toml"]) {
        for mention in mentions_of_docs(&text.content) {
            if !root.join(&mention).exists() {
                missing.push(format!("{}: {mention}", text.path));
            }
        }
        if text.path.ends_with(".md") {
            let folder = root.join(&text.path).parent().unwrap_or(Path::new("")).to_owned();
            let broken = linked_files(&text.content).filter(|file| !folder.join(file).exists());
            missing.extend(broken.map(|file| format!("{}: {file}", text.path)));
        }
    }
    assert_none("named, but not there", &missing);
}

#[test]
fn nothing_names_a_path_of_one_machine() {
    let mut found = Vec::new();
    for text in texts(&[".rs", ".md", ".toml", ".sh", ".py", ".yml", "run"]) {
        for (index, line) in text.content.lines().enumerate() {
            for home in HOMES {
                let path = format!("/{home}/");
                let starts = line.match_indices(&path).any(|(at, _)| {
                    !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-/}*".contains(c))
                });
                if starts {
                    found.push(format!("{}:{}: {path}", text.path, index + 1));
                }
            }
        }
    }
    assert_none("paths of one machine", &found);
}

#[test]
fn mentions_and_links_are_told_from_other_text() {
    // Written in parts, so that this file itself passes the checks above.
    let docs = "docs";
    let content = format!("see `{docs}/a.md` and {docs}/b/C.md. Not my{docs}/x or https://e.org/{docs}/y.");
    assert_eq!(
        mentions_of_docs(&content).collect::<Vec<_>>(),
        ["a.md", "b/C.md"].map(|file| format!("{docs}/{file}"))
    );
    let links = "[a](A.md#top) [b](https://example.org/x) [c](#here)";
    assert_eq!(linked_files(links).collect::<Vec<_>>(), ["A.md"]);
}
