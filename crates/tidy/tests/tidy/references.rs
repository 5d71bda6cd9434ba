//! Sections of the documents in `docs/mechanisms` that comments name exist.
//!
//! A reference is the name of a document and sections after it: `MECHANISMS 2.9`, `MECHANISMS-6X 1.1 and
//! 1.2`, `MECHANISMS 3.1-3.3, 4`. Left out: whether a section says what the comment says. Neighbours:
//! `documents` for links.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{assert_none, root, texts};

const FOLDER: &str = "docs/mechanisms/";
const NAME: &str = "MECHANISMS";
/// How the names of all documents begin.
const NAMES: [&str; 4] = [NAME, "SWAP", "MGLRU", "MAPPED"];

/// Sections of a document: numbers of headings (`## 2.`, `### 0.2`), and those in bold that begin a paragraph
/// (`**2.9`).
fn sections(document: &str) -> BTreeSet<&str> {
    let heading = |line| str::strip_prefix(line, "## ").or_else(|| str::strip_prefix(line, "### "));
    let headings = document.lines().filter_map(heading).map(section);
    let paragraphs = document.match_indices("**").map(|(at, mark)| section(&document[at + mark.len()..]));
    headings.chain(paragraphs).filter(|section| !section.is_empty()).collect()
}

/// The number of a section at the beginning of `text`, such as `6`, `6.6` or `6.6a`.
fn section(text: &str) -> &str {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let whole = digits(text);
    let part = text[whole..].strip_prefix('.').map_or(0, digits);
    if whole == 0 || part == 0 {
        return &text[..whole];
    }
    let end = whole + 1 + part;
    let letter = text[end..].starts_with(|c: char| c.is_ascii_lowercase())
        && !text[end + 1..].starts_with(|c: char| c.is_alphanumeric());
    &text[..end + usize::from(letter)]
}

/// References in a text: the document without its folder, and a section.
fn references(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for (at, _) in NAMES.iter().flat_map(|name| text.match_indices(name)) {
        let of_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-';
        let end = text[at..].find(|c| !of_name(c)).map_or(text.len(), |end| at + end);
        let (name, mut rest) = (&text[at..end], &text[end..]);
        loop {
            let between = [" sections ", " section ", " to ", " and ", ", ", " ", "-"];
            let Some(next) = between.iter().find_map(|between| rest.strip_prefix(between)) else { break };
            let number = section(next);
            if number.is_empty() {
                break;
            }
            found.push((name, number));
            rest = &next[number.len()..];
        }
    }
    found
}

/// The comments of a program, as if each block stood on one line; other texts whole.
fn prose(path: &str, content: &str) -> String {
    let comment = |line: &str| {
        let (_, comment) = line.split_once("//")?;
        Some(comment.trim_start_matches(['/', '!']).trim().to_owned())
    };
    let lines: Vec<String> = match path.ends_with(".rs") {
        true => content.lines().map(|line| comment(line).unwrap_or_default()).collect(),
        false => content.lines().map(|line| line.trim().to_owned()).collect(),
    };
    lines.join(" ")
}

#[test]
fn sections_that_are_named_exist() {
    let documents: BTreeMap<String, String> = texts(&[".md"])
        .into_iter()
        .filter_map(|text| {
            Some((text.path.strip_prefix(FOLDER)?.strip_suffix(".md")?.to_owned(), text.content))
        })
        .collect();
    assert!(documents.contains_key(NAME), "{} is not there", root().join(FOLDER).display());
    let sections: BTreeMap<&str, BTreeSet<&str>> =
        documents.iter().map(|(name, content)| (name.as_str(), sections(content))).collect();
    let mut wrong = Vec::new();
    for text in texts(&[".rs", ".md", ".toml"]) {
        if text.path.starts_with(FOLDER) || text.path.ends_with("tidy/references.rs") {
            continue;
        }
        for (name, number) in references(&prose(&text.path, &text.content)) {
            if !sections.get(name).is_some_and(|sections| sections.contains(number)) {
                wrong.push(format!("{}: {name} {number}", text.path));
            }
        }
    }
    assert_none("sections that are named, but are not in docs/mechanisms", &wrong);
}

#[test]
fn references_are_told_from_other_numbers() {
    let text = "(MECHANISMS 6.4 to 7.3, 8.3; MECHANISMS-6X 3, 4 and 0 row 9). MECHANISMS sections 0 and 6.x, or \
                MECHANISMS 6.6a; MECHANISMS-6X 7.1 gives 115. MECHANISMS 9.1 for 5.3.";
    let of = |document: &'static str, numbers: &[&'static str]| -> Vec<(&str, &str)> {
        numbers.iter().map(|&number| (document, number)).collect()
    };
    let expected = [
        of("MECHANISMS", &["6.4", "7.3", "8.3"]),
        of("MECHANISMS-6X", &["3", "4", "0"]),
        of("MECHANISMS", &["0", "6", "6.6a"]),
        of("MECHANISMS-6X", &["7.1"]),
        of("MECHANISMS", &["9.1"]),
    ];
    assert_eq!(references(text), expected.concat());
    let document = "## 2. Buddy\n**2.9 Stall** and **S3** 11.6\n**6.6a isolate(n)**: **all**";
    assert_eq!(sections(document), ["2", "2.9", "6.6a"].into());
    assert_eq!(prose("a.rs", "let a = 1; // MECHANISMS\n    /// 2.9\n"), "MECHANISMS 2.9");
}
