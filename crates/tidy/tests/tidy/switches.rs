//! No switch without somebody who reads it, and none without a test.
//!
//! Mechanisms tell the answers to a decision apart by naming them, so at most one answer to each may stay
//! unnamed outside `version`. Each answer and each feature is named by a test, as `Aging::Root`, in a table as
//! `Aging(Root)`, or as `root-aging`. Left out: whether anything comes of an answer; a test of `sim` walks all
//! of them for that.

use crate::sources::{TEST, code, is_test_of, sources_of};
use crate::tree::{Text, assert_none, texts};

const DECISIONS: &str = "crates/mm/src/version/decisions/";
const FEATURES: &str = "crates/mm/src/version/feature.rs";

/// Decisions with their answers, as the macro `decisions!` is given them.
fn decisions(source: &str) -> Vec<(&str, Vec<&str>)> {
    let declared = source.split("\ndecisions! {\n").skip(1);
    let mut decisions: Vec<(&str, Vec<&str>)> = Vec::new();
    let lines = declared.flat_map(|part| part.lines().take_while(|line| *line != "}"));
    for line in lines.filter(|line| !line.trim_start().starts_with("///")) {
        if let Some(answer) = line.strip_prefix("        ").and_then(|line| line.strip_suffix(',')) {
            decisions.last_mut().expect("an answer belongs to a decision").1.push(answer);
        } else if let Some((name, _)) = line.split_once(" = \"") {
            decisions.push((name.trim_start(), Vec::new()));
        }
    }
    decisions
}

/// Features with their names on the command line, as the macro `features!` is given them.
fn features(source: &str) -> Vec<(&str, &str)> {
    let (_, declared) = source.split_once("\nfeatures! {\n").expect("the features are declared by a macro");
    let lines = declared.lines().take_while(|line| *line != "}");
    lines.filter_map(|line| line.trim().strip_suffix("\",")?.split_once(" = \"")).collect()
}

/// All that is compiled for tests only, other than these checks.
fn test_code() -> String {
    let mut sources = texts(&[".rs"]);
    sources.retain(|text| !text.path.starts_with("crates/tidy/"));
    let is_test = is_test_of(&sources);
    let of_file = |text: &Text| match is_test(&text.path) {
        true => text.content.clone(),
        false => text.content.split_once(TEST).map_or(String::new(), |(_, tests)| tests.to_owned()),
    };
    sources.iter().map(of_file).collect()
}

/// Whether `name` stands somewhere by itself, and not as a part of a longer name.
fn names(text: &str, name: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let taken_away = before == Some('-') && !text[..at - 1].ends_with(goes_on);
        (!before.is_some_and(goes_on) || taken_away) && !text[at + name.len()..].starts_with(goes_on)
    })
}

/// The files whose path begins so, one after another.
fn source(path: &str) -> String {
    let all = texts(&[".rs"]).into_iter().filter(|text| text.path.starts_with(path));
    let found: Vec<String> = all.map(|text| text.content).collect();
    assert!(!found.is_empty(), "no file {path}");
    found.concat()
}

#[test]
fn mechanisms_tell_the_answers_to_every_decision_apart() {
    let rules = source(DECISIONS);
    let sources = sources_of(&["mm", "kernel", "sim"]);
    let outside = sources.iter().filter(|text| !text.path.starts_with("crates/mm/src/version/"));
    let mechanisms: String =
        outside.flat_map(|text| code(text).map(|(_, line)| format!("{line}\n"))).collect();
    let mut silent = Vec::new();
    for (decision, answers) in decisions(&rules) {
        let unnamed: Vec<&str> = answers
            .into_iter()
            .filter(|answer| !names(&mechanisms, &format!("{decision}::{answer}")))
            .collect();
        if unnamed.len() > 1 {
            silent.push(format!("{decision}: {}", unnamed.join(", ")));
        }
    }
    assert_none("answers that no mechanism tells apart", &silent);
}

#[test]
fn a_test_names_every_answer_and_every_feature() {
    let (rules, listed, tests) = (source(DECISIONS), source(FEATURES), test_code());
    let mut missing = Vec::new();
    for (decision, answers) in decisions(&rules) {
        let named = |answer: &&str| {
            [format!("{decision}::{answer}"), format!("{decision}({answer})")]
                .iter()
                .any(|name| names(&tests, name))
        };
        missing.extend(
            answers.into_iter().filter(|answer| !named(answer)).map(|answer| format!("{decision}::{answer}")),
        );
    }
    for (feature, name) in features(&listed) {
        if !names(&tests, &format!("Feature::{feature}")) && !names(&tests, name) {
            missing.push(format!("{feature}, which is {name}"));
        }
    }
    assert_none("switches that no test names", &missing);
}

#[test]
fn switches_are_found_where_they_are_declared() {
    let rules = "use x;\n\ndecisions! {\n    /// A = \"no\"\n    Aging = \"the balance\" {\n        /// Here.\n        \
                 PerCgroup,\n        /// There.\n        Root,\n    }\n}\nfn f() { x, }\n";
    assert_eq!(decisions(rules), [("Aging", vec!["PerCgroup", "Root"])]);
    let listed = "\nfeatures! {\n    /// A\n    RootAging = \"root-aging\",\n        \"help\",\n        \"5.5\", Aging: PerCgroup => Root;\n}\n";
    assert_eq!(features(listed), [("RootAging", "root-aging")]);
    assert!(names("linux-5.4+root-aging", "root-aging") && names("x -root-aging", "root-aging"));
    assert!(!names("root-aging-v2 shoot-root-aging", "root-aging"));
}
