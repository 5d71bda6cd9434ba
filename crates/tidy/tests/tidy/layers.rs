//! Who may use whom.
//!
//! The tables are those of `ARCHITECTURE.md`. A crate may use those beside its name and whatever these
//! may use; tests and benches of a crate are held to the same. Within `mm`, a file may use its own storey
//! and those below, and no two files use each other, directly or through others.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::tree::{Text, assert_none, root, texts};

/// A crate and those that it may use directly.
const MAY_USE: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("mm", &["units"]),
    ("recording", &["units"]),
    ("stats", &["units"]),
    ("workload", &["units"]),
    ("kernel", &["mm"]),
    ("sim", &["kernel", "workload"]),
    ("linux", &["workload"]),
    ("report", &["recording", "stats"]),
    ("lab", &["sim", "linux", "report"]),
    ("cli", &["lab", "report"]),
    ("xtask", &[]),
    ("tidy", &[]),
];

/// The storeys of `mm`, from the foot upwards: folders, and files beside them.
const STOREYS_OF_MM: [&str; 16] = [
    "base", "version", "cgroup", "alloc", "slab", "core", "lru", "pages", "fs", "reclaim", "compact",
    "memory", "decide", "mem_info", "readings", "check",
];

/// Crates that hold mechanisms or decide what a run does: no async runtime, no clock, no hash
/// order, no operating system's randomness may come in with a dependency.
const NEVER_USED_BY_MECHANISMS: [&str; 6] = ["tokio", "rand", "getrandom", "rayon", "async-std", "chrono"];

/// Uses of each crate of the workspace, by short name, without build output or network.
fn uses() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let packages = metadata["packages"].as_array().expect("there are packages");
    let name = |value: &Value| value["name"].as_str().expect("names are texts").to_owned();
    let uses_of = |package: &Value| {
        let dependencies = package["dependencies"].as_array().expect("a list");
        (short(&name(package)), dependencies.iter().map(|used| short(&name(used))).collect())
    };
    packages.iter().map(uses_of).collect()
}

fn short(name: &str) -> String {
    name.strip_prefix("pagetide-").unwrap_or(name).to_owned()
}

/// `name` and all that it may use, also through others.
fn allowed(name: &str) -> BTreeSet<&'static str> {
    let mut allowed = BTreeSet::new();
    let mut open = vec![name];
    while let Some(name) = open.pop() {
        let (known, uses) = MAY_USE.iter().find(|(known, _)| *known == name).expect("listed");
        if allowed.insert(*known) {
            open.extend(uses.iter());
        }
    }
    allowed
}

#[test]
fn every_crate_is_on_the_map_and_uses_only_what_stands_below_it() {
    let on_map = |name: &str| MAY_USE.iter().any(|(known, _)| *known == name);
    let mut wrong = Vec::new();
    for (name, used) in uses() {
        if !on_map(&name) {
            wrong.push(format!("{name} is not on the map"));
            continue;
        }
        let allowed = allowed(&name);
        let ours = used.iter().filter(|used| on_map(used));
        let upward = ours.filter(|used| !allowed.contains(used.as_str()));
        wrong.extend(upward.map(|used| format!("{name} uses {used}")));
    }
    assert_none("dependencies against the map in ARCHITECTURE.md", &wrong);
}

#[test]
fn mechanisms_bring_in_no_clock_no_threads_and_no_randomness() {
    let uses = uses();
    let mut wrong = Vec::new();
    for name in ["units", "mm", "kernel", "sim"] {
        let banned = NEVER_USED_BY_MECHANISMS.iter().filter(|banned| uses[name].contains(**banned));
        wrong.extend(banned.map(|banned| format!("{name} uses {banned}")));
    }
    assert_none("dependencies that a deterministic crate must not have", &wrong);
}

#[test]
fn the_map_has_no_circle() {
    for (name, uses) in MAY_USE {
        for used in *uses {
            assert!(!allowed(used).contains(name), "{name} uses {used}, which may use {name}");
        }
    }
}

/// A file of `mm` by its path within the crate, such as `lru::lists`, and the files that it names.
struct Room {
    path: String,
    uses: BTreeSet<String>,
}

impl Room {
    fn storey(&self) -> &str {
        self.path.split("::").next().unwrap_or_default()
    }
}

/// The files of `mm` other than `lib.rs`.
fn rooms_of_mm() -> Vec<Room> {
    let sources: Vec<(String, Text)> = texts(&[".rs"])
        .into_iter()
        .filter_map(|text| {
            let inside = text.path.strip_prefix("crates/mm/src/")?.strip_suffix(".rs")?;
            let path = inside.trim_end_matches("/mod").replace('/', "::");
            (path != "lib").then_some((path, text))
        })
        .collect();
    assert!(!sources.is_empty(), "no sources of mm: the check looks at the wrong place");
    let paths: BTreeSet<&str> = sources.iter().map(|(path, _)| path.as_str()).collect();
    let room = |(path, text): &(String, Text)| {
        let mut uses = named_files(&text.content, &paths);
        uses.remove(path);
        Room { path: path.clone(), uses }
    };
    sources.iter().map(room).collect()
}

/// The files that code names by `crate::...`; what stands in no file, such as a name that `lib.rs` gives to
/// others, is named as it is written. Comments and the tests at a file's end do not count.
fn named_files(content: &str, files: &BTreeSet<&str>) -> BTreeSet<String> {
    let code = content.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    let mut named = BTreeSet::new();
    for (line, at) in lines.flat_map(|line| line.match_indices("crate::").map(move |(at, _)| (line, at))) {
        let written = &line[at + "crate::".len()..];
        let end = written.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | ':'));
        let written = written[..end.unwrap_or(written.len())].trim_end_matches(':');
        let parts: Vec<&str> = written.split("::").collect();
        let prefixes = (1..=parts.len()).rev().map(|count| parts[..count].join("::"));
        let file = prefixes.into_iter().find(|prefix| files.contains(prefix.as_str()));
        named.insert(file.unwrap_or_else(|| written.to_owned()));
    }
    named
}

#[test]
fn within_mm_files_use_their_own_storey_and_those_below() {
    let rank = |storey: &str| STOREYS_OF_MM.iter().position(|&known| known == storey);
    let mut wrong = Vec::new();
    for room in rooms_of_mm() {
        let Some(own) = rank(room.storey()) else {
            wrong.push(format!("{} is on no storey: give it a place in the tower", room.path));
            continue;
        };
        for used in &room.uses {
            let storey = used.split("::").next().unwrap_or_default();
            match rank(storey) {
                None => wrong.push(format!("{} names crate::{used}: name the file that holds it", room.path)),
                Some(above) if above > own => wrong.push(format!(
                    "{} uses {used}: {storey} stands above {}; return a value to it instead",
                    room.path,
                    room.storey()
                )),
                Some(_) => {}
            }
        }
    }
    assert_none("imports against the tower of mm in ARCHITECTURE.md", &wrong);
}

#[test]
fn no_two_files_of_mm_use_each_other() {
    // Files that use nothing that is left, or that nothing left uses, are in no circle.
    let mut left: BTreeMap<String, BTreeSet<String>> =
        rooms_of_mm().into_iter().map(|room| (room.path, room.uses)).collect();
    loop {
        let used: BTreeSet<&String> = left.values().flatten().collect();
        let is_end = |(path, uses): &(&String, &BTreeSet<String>)| {
            !used.contains(path) || uses.iter().all(|used| !left.contains_key(used))
        };
        let ends: Vec<String> = left.iter().filter(is_end).map(|(path, _)| path.clone()).collect();
        if ends.is_empty() {
            break;
        }
        left.retain(|path, _| !ends.contains(path));
    }
    let circles = left.iter().map(|(path, uses)| {
        let within: Vec<&str> =
            uses.iter().filter(|used| left.contains_key(*used)).map(String::as_str).collect();
        format!("{path} uses {}", within.join(", "))
    });
    assert_none("files of mm in a circle", &circles.collect::<Vec<_>>());
}

#[test]
fn files_are_found_by_what_code_names() {
    let files = BTreeSet::from(["lru::lists", "core", "fs::xfs::log"]);
    let content = "//! [`crate::memory`]\nuse crate::lru::lists::{Lru, LruList};\nuse crate::core::Core;\n\
                   fn f() -> crate::fs::xfs::log::XfsLog {} // crate::check\nuse crate::Memory;\n\
                   \n#[cfg(test)]\nmod tests {\n    use crate::check::Violation;\n}\n";
    let named = named_files(content, &files);
    assert_eq!(named, ["lru::lists", "core", "fs::xfs::log", "Memory"].map(String::from).into());
}

/// Whether a line assigns to something that is reached through `mem`.
fn writes_memory(line: &str) -> bool {
    let (place, rest) = line.trim().split_once(' ').unwrap_or_default();
    place.starts_with("mem.") && ["= ", "+= ", "-= ", "|= ", "&= "].iter().any(|sign| rest.starts_with(sign))
}

#[test]
fn kernel_changes_mm_by_methods_only() {
    let mut writes = Vec::new();
    for text in texts(&[".rs"]).iter().filter(|text| text.path.starts_with("crates/kernel/src/")) {
        let lines = text.content.lines().enumerate().filter(|(_, line)| writes_memory(line));
        writes.extend(lines.map(|(index, line)| format!("{}:{}: {}", text.path, index + 1, line.trim())));
    }
    assert_none("fields of mm that kernel writes: give mm a method that says what happened", &writes);
    assert!(
        writes_memory("    mem.core.alloc.trace = trace;") && writes_memory("mem.reclaim.failures += 1;")
    );
    assert!(!writes_memory("let found = mem.cache.find(mapping, 0);"));
}
