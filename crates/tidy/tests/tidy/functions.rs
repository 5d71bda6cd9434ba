//! Functions fit on a screen.
//!
//! What counts are lines of code: an expected text in the middle of a test may be as long as it is.
//! Neighbours: `sources` for files and lines.

use crate::tree::{Text, assert_none, texts};

/// Longest function: a driver or a decision fits on a screen.
const LINES_MAX: usize = 70;
/// Functions that are longer today, with the length that they must not pass. Take away what is gone, never add.
const LONGER: &[(&str, &str, usize)] = &[("crates/mm/tests/mm/compaction.rs", "apply", 91)];

/// `source` without comments and without what stands in literals. Line by line as before; a line that begins
/// inside a text begins with its quote.
fn without_texts(source: &str) -> String {
    let mut rest = source;
    let mut bare = String::with_capacity(source.len());
    while let Some(first) = rest.chars().next() {
        let (length, kept) = match first {
            '/' if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), ""),
            '"' => (text_end(rest, 1, "\""), "\""),
            'r' if !bare.ends_with(|c: char| c.is_alphanumeric() || c == '_') => match raw_text(rest) {
                Some(length) => (length, "\""),
                None => (1, "r"),
            },
            '\'' => (character(rest), "'"),
            _ => (first.len_utf8(), &rest[..first.len_utf8()]),
        };
        bare.push_str(kept);
        if length > kept.len() {
            let lines = rest[..length].matches('\n').count();
            bare.extend(std::iter::repeat_n("\n\"", lines));
        }
        rest = &rest[length..];
    }
    bare
}

/// Length of a text whose content begins at `begin`; a backslash takes its meaning from what follows.
fn text_end(rest: &str, begin: usize, end: &str) -> usize {
    let mut escaped = false;
    let mut bytes = rest.bytes().enumerate().skip(begin);
    let closes = |&(_, byte): &(usize, u8)| {
        let closes = byte == end.as_bytes()[0] && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    };
    bytes.find(closes).map_or(rest.len(), |(at, _)| at + 1)
}

/// Length of the raw text that begins here, if one does.
fn raw_text(rest: &str) -> Option<usize> {
    let quote = rest.find('"')?;
    let marks = rest[1..quote].chars().all(|c| c == '#').then_some(&rest[1..quote])?;
    let end = format!("\"{marks}");
    Some(rest[quote + 1..].find(&end).map_or(rest.len(), |at| quote + 1 + at + end.len()))
}

/// Length of a character, or of the quote of a lifetime.
fn character(rest: &str) -> usize {
    if rest[1..].starts_with('\\') {
        return text_end(rest, 1, "'");
    }
    let content = rest[1..].chars().next().map_or(0, char::len_utf8);
    if rest[1 + content..].starts_with('\'') { content + 2 } else { 1 }
}

/// Every function with a body: its name and its lines, from signature to brace.
fn functions(source: &str) -> Vec<(String, usize)> {
    let bare = without_texts(source);
    let lines: Vec<&str> = bare.lines().map(str::trim_end).collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let indent = &line[..line.len() - line.trim_start().len()];
        let Some((before, rest)) = line.trim_start().split_once("fn ") else { continue };
        let is_item = before
            .split_whitespace()
            .all(|word| ["pub", "pub(crate)", "pub(super)", "const", "async", "unsafe"].contains(&word));
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let opens = |line: &&str| line.ends_with('{') || line.ends_with('}') || line.ends_with(';');
        let signature = lines[start..].iter().position(opens);
        if let (true, Some(signature)) = (is_item && !name.is_empty(), signature)
            && lines[start + signature].ends_with('{')
        {
            let end = format!("{indent}}}");
            let body = &lines[start + signature..];
            let length = body.iter().position(|line| *line == end).expect("rustfmt closes what it opens");
            let of_code = body[..=length].iter().filter(|line| !line.starts_with('"')).count();
            found.push((name, signature + of_code));
        }
    }
    found
}

/// All that is longer than a screen.
fn long(sources: &[Text]) -> Vec<(&str, String, usize)> {
    let measured = sources.iter().flat_map(|text| {
        functions(&text.content).into_iter().map(|(name, lines)| (text.path.as_str(), name, lines))
    });
    measured.filter(|&(.., lines)| lines > LINES_MAX).collect()
}

#[test]
fn functions_fit_on_a_screen() {
    let sources = texts(&[".rs"]);
    let mut wrong = Vec::new();
    let long = long(&sources);
    for (path, name, lines) in &long {
        let known = LONGER.iter().find(|(listed, known, _)| listed == path && known == name);
        if known.is_none_or(|(.., max)| lines > max) {
            wrong.push(format!("{path}: {name} has {lines} lines: give a part of it a name"));
        }
    }
    for &(listed, known, max) in LONGER {
        if !long.iter().any(|(path, name, lines)| (*path, name.as_str(), *lines) == (listed, known, max)) {
            wrong.push(format!("{listed}: {known} has no longer {max} lines: say so in the list"));
        }
    }
    assert_none("longer than a screen, or no longer so", &wrong);
}

#[test]
fn functions_are_measured_from_signature_to_brace_without_their_texts() {
    let content = "impl A {
    pub(crate) async fn long(
        &self,
    ) -> u32 {
        if true {
            1
        }
    }

    fn short(&self) -> u32 { 1 }
}

const fn plain<'a>() {
    let name = \"fn \\\" {
}
\";
    let quotes = ['\"', '\\'', '}']; // fn comment() {
    let raw = r#\"
fn \"inside\" {
\"#;
}
";
    assert_eq!(functions(content), [("long".to_owned(), 7), ("plain".to_owned(), 5)]);
}
