//! Which file of `mm` stands on which.
//!
//! A file may use its own storey and those below, and no two files use each other, directly or through
//! others. An import is a use. So is a call of a method of a type whose methods stand in several files, as
//! those of `Memory` do. All other methods stand beside their type, and who holds a value stands above its
//! type by imports alone. Left out: methods whose name several files define, such as `new`.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources::{code, sources_of};
use crate::tree::{Text, assert_none};

/// The storeys of `mm`, from the foot upwards: folders, and files beside them.
const STOREYS_OF_MM: [&str; 21] = [
    "base", "version", "cgroup", "alloc", "slab", "swap", "core", "lru", "pages", "fs", "reclaim", "compact",
    "memory", "mapping", "swapping", "journals", "decide", "readings", "mem_info", "why", "check",
];

/// A file of `mm` by its path within the crate, such as `lru::lists`, and the files that it uses.
struct Room {
    path: String,
    uses: BTreeSet<String>,
}

impl Room {
    fn storey(&self) -> &str {
        self.path.split("::").next().unwrap_or_default()
    }
}

/// The files of `mm` other than `lib.rs`, each with its code.
fn files_of_mm() -> BTreeMap<String, String> {
    let file = |text: &Text| {
        let inside = text.path.strip_prefix("crates/mm/src/")?.strip_suffix(".rs")?;
        let path = inside.trim_end_matches("/mod").replace('/', "::");
        (path != "lib").then(|| (path, code(text).map(|(_, line)| format!("{line}\n")).collect()))
    };
    sources_of(&["mm"]).iter().filter_map(file).collect()
}

fn rooms(files: &BTreeMap<String, String>) -> Vec<Room> {
    let paths: BTreeSet<&str> = files.keys().map(String::as_str).collect();
    let homes = homes_of_methods(files);
    let room = |(path, code): (&String, &String)| {
        let called = called(code).filter_map(|name| homes.get(name)).map(|&home| home.to_owned());
        let mut uses: BTreeSet<String> = named_files(code, &paths).into_iter().chain(called).collect();
        uses.remove(path);
        Room { path: path.clone(), uses }
    };
    files.iter().map(room).collect()
}

/// The type that a block of methods belongs to, and the block.
fn inherent_blocks(code: &str) -> impl Iterator<Item = (&str, &str)> {
    code.split("\nimpl").skip(1).filter_map(|block| {
        let (header, methods) = block.split_once(" {\n")?;
        let generics = header.starts_with('<').then(|| header.find("> ")).flatten();
        let subject = header[generics.map_or(0, |end| end + 1)..].trim_start();
        let inherent = !header.contains(" for ");
        inherent.then(|| (word(subject), methods.split("\n}").next().unwrap_or_default()))
    })
}

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    &text[..end]
}

/// Functions that a text defines.
fn defined(code: &str) -> impl Iterator<Item = &str> {
    code.match_indices("fn ")
        .map(|(at, found)| word(&code[at + found.len()..]))
        .filter(|name| !name.is_empty())
}

/// Functions that a text calls by a receiver or a type.
fn called(code: &str) -> impl Iterator<Item = &str> {
    code.match_indices('(').filter_map(|(at, _)| {
        let name = code[..at].rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
        let before = &code[..at - name.len()];
        (before.ends_with('.') || before.ends_with("::")).then_some(name)
    })
}

/// The file of each method of a type whose methods stand in several files, by a name that no other file
/// gives to a function.
fn homes_of_methods(files: &BTreeMap<String, String>) -> BTreeMap<&str, &str> {
    let mut files_of_types: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut files_of_names: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, code) in files {
        for (subject, _) in inherent_blocks(code) {
            files_of_types.entry(subject).or_default().insert(path);
        }
        for name in defined(code) {
            files_of_names.entry(name).or_default().insert(path);
        }
    }
    let mut homes = BTreeMap::new();
    for (path, code) in files {
        let spread = inherent_blocks(code).filter(|(subject, _)| files_of_types[subject].len() > 1);
        let names = spread.flat_map(|(_, methods)| defined(methods));
        homes.extend(names.filter(|name| files_of_names[name].len() == 1).map(|name| (name, path.as_str())));
    }
    homes
}

/// The files that code names by `crate::...`; what stands in no file, such as a name that `lib.rs` gives to
/// others, is named as it is written.
fn named_files(code: &str, files: &BTreeSet<&str>) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for (at, found) in code.match_indices("crate::") {
        let written = &code[at + found.len()..];
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
    for room in rooms(&files_of_mm()) {
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
    assert_none("uses against the tower of mm in ARCHITECTURE.md", &wrong);
}

#[test]
fn no_two_files_of_mm_use_each_other() {
    // Files that use nothing that is left, or that nothing left uses, are in no circle.
    let mut left: BTreeMap<String, BTreeSet<String>> =
        rooms(&files_of_mm()).into_iter().map(|room| (room.path, room.uses)).collect();
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
    let content = "use crate::lru::lists::{Lru, LruList};\nuse crate::core::Core;\n\
                   fn f() -> crate::fs::xfs::log::XfsLog {}\nuse crate::Memory;\n";
    let named = named_files(content, &files);
    assert_eq!(named, ["lru::lists", "core", "fs::xfs::log", "Memory"].map(String::from).into());
}

#[test]
fn a_call_is_a_use_of_the_file_that_added_the_method() {
    let file = |path: &str, code: &str| (path.to_owned(), format!("\n{code}\n"));
    let files = BTreeMap::from([
        file("lru", "impl Lru {\n    pub fn add(&mut self) {\n        Self::evict(self);\n    }\n}"),
        file("reclaim", "impl<T: Trace> Lru {\n    pub fn evict(&mut self) {\n        self.len();\n    }\n}"),
        file(
            "check",
            "impl Check for Lru {\n    fn len(&self) {\n        lru\n            .add();\n    }\n}",
        ),
    ]);
    let uses: Vec<String> = rooms(&files)
        .into_iter()
        .flat_map(|room| room.uses.into_iter().map(move |used| format!("{} uses {used}", room.path)))
        .collect();
    assert_eq!(uses, ["check uses lru", "lru uses reclaim"]);
}
