//! Texts name only what is there, and nothing of the machine that they were written on; links lead somewhere.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{assert_none, root, texts};

/// Where people keep their files: a path below these is nobody else's.
const HOMES: [&str; 5] = ["home", "root", "Users", "work", "workspace"];

/// The pages that `cargo xtask book` makes a site of.
const SITE: &str = "docs/";

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

/// Targets of Markdown links within this repository: a file, or none for the page itself, and an anchor.
fn links(content: &str) -> impl Iterator<Item = (&str, &str)> {
    content.match_indices("](").filter_map(move |(at, _)| {
        let target = content[at + 2..].split(')').next().unwrap_or_default();
        let is_within = !target.contains("://") && !target.contains(' ');
        is_within.then(|| target.split_once('#').unwrap_or((target, "")))
    })
}

/// What links to headings of a page call them, as GitHub and mdBook do.
fn anchors(content: &str) -> BTreeSet<String> {
    let (mut anchors, mut is_code) = (BTreeSet::new(), false);
    for line in content.lines() {
        is_code ^= line.starts_with("```");
        let text = line.trim_start_matches('#');
        if is_code || text.len() == line.len() || !text.starts_with(' ') {
            continue;
        }
        let kept = |c: char| match c {
            ' ' => Some('-'),
            _ => (c.is_alphanumeric() || c == '-' || c == '_').then(|| c.to_ascii_lowercase()),
        };
        let name: String = text.trim().chars().filter_map(kept).collect();
        let mut names = std::iter::once(name.clone()).chain((1..).map(|count| format!("{name}-{count}")));
        anchors.extend(names.find(|name| !anchors.contains(name)));
    }
    anchors
}

/// The path in the repository of what `page` calls `path`.
fn beside(page: &str, path: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
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
    }
    assert_none("named, but not there", &missing);
}

#[test]
fn links_lead_to_files_and_headings() {
    let pages: BTreeMap<String, String> =
        texts(&[".md"]).into_iter().map(|text| (text.path, text.content)).collect();
    let anchors: BTreeMap<&str, BTreeSet<String>> =
        pages.iter().map(|(path, content)| (path.as_str(), anchors(content))).collect();
    let mut broken = Vec::new();
    for (page, content) in &pages {
        for (file, anchor) in links(content) {
            let path = if file.is_empty() { page.clone() } else { beside(page, file) };
            let leads = match anchors.get(path.as_str()) {
                Some(anchors) => anchor.is_empty() || anchors.contains(anchor),
                None => root().join(&path).exists(),
            };
            // The site has what is below `docs`, and nothing else.
            if !leads || (page.starts_with(SITE) && !path.starts_with(SITE)) {
                broken.push(format!("{page}: {file}#{anchor}"));
            }
        }
    }
    assert_none("links that lead nowhere, or from the site to a file that it has not", &broken);
}

#[test]
fn the_contents_of_the_site_name_every_page_once() {
    let contents = format!("{SITE}SUMMARY.md");
    let pages = texts(&[".md"]).into_iter().filter(|text| text.path.starts_with(SITE));
    let (listing, pages): (Vec<_>, Vec<_>) = pages.partition(|text| text.path == contents);
    let mut listed: Vec<String> =
        links(&listing[0].content).map(|(file, _)| beside(&contents, file)).collect();
    listed.sort();
    assert_eq!(listed, pages.into_iter().map(|text| text.path).collect::<Vec<_>>());
}

/// Code that a page shows under `<!-- file: PATH -->`: the path, and the text of the block.
fn shown_files(content: &str) -> impl Iterator<Item = (&str, &str)> {
    content.split("<!-- file: ").skip(1).filter_map(|after| {
        let (path, rest) = after.split_once(" -->\n```")?;
        let (_language, rest) = rest.split_once('\n')?;
        Some((path, rest.split_once("\n```\n")?.0))
    })
}

/// So that it is compiled and run.
#[test]
fn code_that_a_page_shows_of_a_file_is_that_file() {
    let mut wrong = Vec::new();
    let mut shows = 0;
    for page in texts(&[".md"]) {
        for (path, shown) in shown_files(&page.content) {
            shows += 1;
            let file = std::fs::read_to_string(root().join(path)).unwrap_or_default();
            if file.trim_end() != shown {
                wrong.push(format!("{}: {path}", page.path));
            }
        }
    }
    assert_none("pages that show another text than the file has", &wrong);
    assert!(shows > 0, "no page shows a file");
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
    let text = "[a](A.md#top) [b](https://example.org/x) [c](#here) [d](../b)";
    assert_eq!(links(text).collect::<Vec<_>>(), [("A.md", "top"), ("", "here"), ("../b", "")]);
    assert_eq!(beside("a/b/c.md", "../d.md"), "a/d.md");
}

#[test]
fn headings_have_the_names_that_links_call_them_by() {
    let page = "# What `memory.low` did, and why\n```sh\n# no heading\n```\n## In CI\n## In CI\n#no\n";
    let expected = ["what-memorylow-did-and-why", "in-ci", "in-ci-1"].map(str::to_owned);
    assert_eq!(anchors(page), BTreeSet::from(expected));
}
