//! Rules that every Rust file keeps.

use std::collections::BTreeSet;

use crate::tree::{Text, assert_none, texts};

/// Longest file: beyond this it holds more than one concept.
const LINES_MAX: usize = 700;
/// Longest line of a comment; code is rustfmt's, and long texts cannot be broken.
const COLUMNS_MAX: usize = 120;
/// Files that are longer today, with the length that they must not pass. Never add one.
const LONGER_FILES: &[(&str, usize)] = &[];

/// Crates whose results depend on their inputs alone.
const DETERMINISTIC: [&str; 8] = ["units", "language", "policy", "mm", "bpf", "kernel", "sim", "workload"];
/// What would let a clock, the operating system or the order of hashing in.
const NOT_DETERMINISTIC: [&str; 7] =
    ["HashMap", "HashSet", "Instant", "SystemTime", "thread_rng", "rand::rng", "std::thread"];

/// Crates of mechanisms, which must not know what runs on them.
const MECHANISMS: [&str; 3] = ["mm", "kernel", "sim"];
/// Names of workloads, as files and as types.
const WORKLOADS: [&str; 5] =
    ["small-files", "sequential-readers", "hot-and-stream", "inode-storm", "huge-faults"];

/// The mark of what is compiled for tests only.
pub(crate) const TEST: &str = "#[cfg(test)]";

/// Tells files that are compiled for tests only: those below `tests`, and modules under [`TEST`] with what is below.
pub(crate) fn is_test_of(sources: &[Text]) -> impl Fn(&str) -> bool + use<> {
    let declared = |text: &Text| -> Vec<String> {
        let items = text.content.split(TEST).skip(1).filter_map(|after| after.split_once(';'));
        let modules = items.filter_map(|(item, _)| item.trim_start().rsplit_once("mod "));
        modules.map(|(_, name)| format!("/{name}")).filter(|name| !name.contains(' ')).collect()
    };
    let modules: BTreeSet<String> = sources.iter().flat_map(declared).collect();
    let is = |path: &str, module: &str| {
        let file = path.strip_suffix(".rs").is_some_and(|path| path.ends_with(module));
        file || path.contains(&format!("{module}/"))
    };
    move |path| path.contains("/tests/") || modules.iter().any(|module| is(path, module))
}

/// The files of some crates that are compiled for users.
pub(crate) fn sources_of(crates: &[&str]) -> Vec<Text> {
    let mut sources = texts(&[".rs"]);
    let is_test = is_test_of(&sources);
    sources.retain(|text| {
        let inside = |name: &&str| text.path.starts_with(&format!("crates/{name}/src/"));
        crates.iter().any(inside) && !is_test(&text.path)
    });
    assert!(!sources.is_empty(), "no sources of {crates:?}: the check looks at the wrong place");
    sources
}

/// Lines of code with their numbers: without comments, and without the tests at a file's end.
pub(crate) fn code(text: &Text) -> impl Iterator<Item = (usize, &str)> {
    let until_tests = text.content.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let numbered = until_tests.lines().enumerate().map(|(index, line)| (index + 1, line));
    numbered.map(|(number, line)| (number, line.split("//").next().unwrap_or_default()))
}

fn has_word(line: &str, word: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].ends_with(part_of_word) && !line[at + word.len()..].starts_with(part_of_word)
    })
}

#[test]
fn every_file_opens_with_what_it_is() {
    let silent = texts(&[".rs"]).into_iter().filter(|text| !text.content.starts_with("//! "));
    assert_none("files that do not open with `//!`", &silent.map(|text| text.path).collect::<Vec<_>>());
}

/// Lines of comments that begin an example in Rust.
fn examples(content: &str) -> impl Iterator<Item = usize> {
    let comment = |line: &str| {
        let line = line.trim_start();
        let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
        text.trim().strip_prefix("```").map(str::to_owned)
    };
    let fences =
        content.lines().enumerate().filter_map(move |(index, line)| Some((index + 1, comment(line)?)));
    let is_rust = |language: &str| matches!(language, "" | "rust" | "no_run" | "should_panic" | "ignore");
    fences.step_by(2).filter(move |(_, language)| is_rust(language)).map(|(line, _)| line)
}

/// No crate runs them (`doctest = false`): to look for them takes seconds in each.
#[test]
fn no_comment_has_an_example_that_is_not_run() {
    let of =
        |text: Text| examples(&text.content).map(|line| format!("{}:{line}", text.path)).collect::<Vec<_>>();
    let found: Vec<String> = texts(&[".rs"]).into_iter().flat_map(of).collect();
    assert_none("examples in comments: make them tests, or name another language, such as text", &found);
    let lines = "//! ```text\n//! ```\n/// ```\n/// let a = 1;\n/// ```\n";
    assert_eq!(examples(lines).collect::<Vec<_>>(), [3]);
}

/// Whether cargo or `other` has `path` as a module: a root at or above its folder, or a file of its
/// folder's name, in a line that ends with `mod NAME;`.
fn has_module(other: &Text, path: &str) -> bool {
    let (folder, name) = path.trim_end_matches("/mod.rs").trim_end_matches(".rs").rsplit_once('/').unwrap();
    let (above, file) = other.path.rsplit_once('/').unwrap();
    let is_root = ["lib.rs", "main.rs", "mod.rs"].contains(&file) && format!("{folder}/").starts_with(above);
    let declared = format!("mod {name};");
    (is_root || other.path == format!("{folder}.rs"))
        && other.content.lines().any(|line| line.ends_with(&declared))
}

/// Nobody would notice that tests in such a file no longer run.
#[test]
fn every_file_is_part_of_a_program() {
    let sources = texts(&[".rs"]);
    let is_root = |path: &str| {
        let beside_src = path.split('/').count() == 4 && !path.contains("/src/");
        beside_src || path.ends_with("/build.rs") || path.ends_with("/lib.rs") || path.ends_with("/main.rs")
    };
    let modules = sources.iter().filter(|text| !is_root(&text.path));
    let alone = modules.filter(|text| !sources.iter().any(|other| has_module(other, &text.path)));
    assert_none(
        "files that no program has as a module",
        &alone.map(|text| text.path.clone()).collect::<Vec<_>>(),
    );
    let root = Text { path: "crates/a/src/lib.rs".into(), content: "pub mod b {\n    mod c;\n}\n".into() };
    assert!(has_module(&root, "crates/a/src/b/c.rs") && !has_module(&root, "crates/a/tests/c.rs"));
    assert!(has_module(&root, "crates/a/src/c/mod.rs") && !has_module(&root, "crates/a/src/d.rs"));
}

#[test]
fn files_and_lines_stay_short() {
    let mut long = Vec::new();
    for text in texts(&[".rs"]) {
        let lines = text.content.lines().count();
        let listed = LONGER_FILES.iter().find(|(path, _)| *path == text.path);
        if lines > listed.map_or(LINES_MAX, |&(_, max)| max) {
            long.push(format!("{} has {lines} lines", text.path));
        }
        for (index, line) in text.content.lines().enumerate() {
            let columns = line.chars().count();
            let comment = line.trim_start().starts_with("//") && !line.contains("://");
            if comment && columns > COLUMNS_MAX {
                long.push(format!("{}:{} has {columns} columns", text.path, index + 1));
            }
        }
    }
    assert_none("too long", &long);
}

#[test]
fn deterministic_crates_have_no_clock_no_randomness_and_no_hash_order() {
    let mut found = Vec::new();
    for text in sources_of(&DETERMINISTIC) {
        for (number, line) in code(&text) {
            let banned = NOT_DETERMINISTIC.iter().filter(|banned| has_word(line, banned));
            found.extend(banned.map(|banned| format!("{}:{number}: {banned}", text.path)));
        }
    }
    assert_none("not deterministic", &found);
}

#[test]
fn no_mechanism_knows_a_workload() {
    let mut found = Vec::new();
    for text in sources_of(&MECHANISMS) {
        for (number, line) in code(&text) {
            for workload in WORKLOADS {
                let type_name: String = workload.split('-').map(capitalised).collect();
                let spellings = [workload.to_owned(), workload.replace('-', "_"), type_name];
                if spellings.iter().any(|spelling| has_word(line, spelling)) {
                    found.push(format!("{}:{number}: {workload}", text.path));
                }
            }
        }
    }
    assert_none("workloads named by mechanisms", &found);
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[test]
fn words_are_found_whole_only() {
    assert!(has_word("let x = HashMap::new();", "HashMap"));
    assert!(!has_word("let x = MyHashMap::new(); // Instantly", "HashMap"));
    assert!(!has_word("Instantly", "Instant"));
    let text = Text {
        path: String::new(),
        content: "//! HashMap\nfn f() {} // Instant\n\n#[cfg(test)]\nmod tests {\n    use HashMap;\n}\n"
            .into(),
    };
    assert!(code(&text).all(|(_, line)| !has_word(line, "HashMap") && !has_word(line, "Instant")));
}
