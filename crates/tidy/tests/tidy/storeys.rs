//! Which file of a crate stands on which.
//!
//! Each crate has a tower, written down in `storeys/towers.rs`. A file may use its own storey and those below, and no
//! two files use each other, directly or through others. An import is a use. So is a call of a method that another file
//! adds to a type: of a name that one file alone gives to a function, or on the value itself (`self`, or what is called
//! as its type is, as `kernel`). All other methods stand beside their type, and who holds a value stands above its
//! type by imports alone. Left out: methods whose name several files define, called on other values.
//!
//! `lib.rs` stands above all and hands names to users; within the crate the file that holds a name is named. The front
//! of a folder (`mod.rs`) may hand names of its files on: who uses such a name uses the file.

mod towers;

use std::collections::{BTreeMap, BTreeSet};

use crate::sources::{code, sources_of};
use crate::tree::{Text, assert_none};
use towers::{TOWERS, Tower};

/// The files of a crate by their path within it, such as `lru::lists`, each with its code.
type Files = BTreeMap<String, String>;

/// What a file uses: other files, and what stands in no file, as it is written.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// The files of each crate that has a tower, other than `lib.rs` and `main.rs`.
fn crates() -> Vec<(&'static Tower, Files)> {
    let packages: Vec<&str> = TOWERS.iter().map(|tower| tower.package).collect();
    let sources = sources_of(&packages);
    let of = |tower: &'static Tower| {
        let prefix = format!("crates/{}/src/", tower.package);
        let file = |text: &Text| {
            let inside = text.path.strip_prefix(&prefix)?.strip_suffix(".rs")?;
            let path = inside.strip_suffix("/mod").unwrap_or(inside).replace('/', "::");
            let content = code(text).map(|(_, line)| format!("{line}\n")).collect();
            (path != "lib" && path != "main").then_some((path, content))
        };
        (tower, sources.iter().filter_map(file).collect())
    };
    TOWERS.iter().map(of).collect()
}

/// What each file of a crate uses; values of other crates have methods of these names, too.
fn uses(files: &Files, of_others: &BTreeSet<&str>) -> Uses {
    let fronts: BTreeMap<&str, BTreeMap<String, String>> =
        files.iter().map(|(path, code)| (path.as_str(), handed_on(path, code))).collect();
    let homes = homes_of_methods(files, of_others);
    let of = |(path, code): (&String, &String)| {
        let named = named(path, code).into_iter().map(|name| file_of(&name, files, &fronts));
        let mut uses: BTreeSet<String> = named.chain(called(code, &homes)).collect();
        uses.remove(path);
        (path.clone(), uses)
    };
    files.iter().map(of).collect()
}

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    &text[..end]
}

/// Paths from the root of the crate that the code of the file `path` names, other than those that it hands on.
fn named(path: &str, code: &str) -> BTreeSet<String> {
    let own: String = code.split_inclusive(';').filter(|item| !is_handing_on(item)).collect();
    let children = children(code).map(|child| (format!("{child}::"), format!("{path}::{child}")));
    let mut found = BTreeSet::new();
    for (at, _) in own.match_indices("crate::") {
        spread("", &own[at + "crate::".len()..], &mut found);
    }
    for (at, _) in own.match_indices("super::").filter(|(at, _)| !own[..*at].ends_with("super::")) {
        let mut rest = &own[at..];
        let mut above = path;
        while let Some(behind) = rest.strip_prefix("super::") {
            above = above.rsplit_once("::").map_or("", |(above, _)| above);
            rest = behind;
        }
        spread(above, rest, &mut found);
    }
    for (written, child) in children {
        let begins = |at: usize| {
            let before = &own[..at];
            before.ends_with("self::")
                || !before.ends_with(|c: char| c.is_alphanumeric() || "_:.".contains(c))
        };
        for (at, _) in own.match_indices(&written).filter(|(at, _)| begins(*at)) {
            spread(&child, &own[at + written.len()..], &mut found);
        }
    }
    // What it hands on it may use itself, under the name alone.
    let words: BTreeSet<&str> = own.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    found.extend(
        handed_on(path, code).into_iter().filter(|(name, _)| words.contains(name.as_str())).map(|(_, of)| of),
    );
    found
}

fn is_handing_on(item: &str) -> bool {
    item.trim_start().starts_with("pub use ")
}

/// Modules that stand in files of their own below this one.
fn children(code: &str) -> impl Iterator<Item = &str> {
    code.lines().filter_map(|line| {
        let (before, name) = line.strip_suffix(';')?.rsplit_once("mod ")?;
        matches!(before.trim(), "" | "pub" | "pub(crate)" | "pub(super)").then_some(name)
    })
}

/// Every path that `written` names behind `above`: one, or one for each member of a group.
fn spread(above: &str, written: &str, found: &mut BTreeSet<String>) {
    let end = written.find(|c: char| !(c.is_alphanumeric() || "_:".contains(c))).unwrap_or(written.len());
    let part = written[..end].trim_end_matches(':');
    let path = [above, part].iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("::");
    let Some(group) = written[end..].strip_prefix('{') else {
        found.insert(path.trim_end_matches("::self").to_owned());
        return;
    };
    let (mut depth, mut from) = (0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                let member = group[from..at].trim();
                if !member.is_empty() {
                    spread(&path, member, found);
                }
                from = at + 1;
                if c == '}' {
                    return;
                }
            }
            _ => {}
        }
    }
}

/// Names that a file hands on from its children, each with its path from the root.
fn handed_on(path: &str, code: &str) -> BTreeMap<String, String> {
    let mut found = BTreeSet::new();
    for item in code.split_inclusive(';').filter(|item| is_handing_on(item)) {
        let written = item.trim_start().trim_start_matches("pub use ");
        match written.strip_prefix("crate::") {
            Some(written) => spread("", written, &mut found),
            None => spread(path, written.trim_start_matches("self::"), &mut found),
        }
    }
    found.into_iter().filter_map(|path| Some((path.rsplit_once("::")?.1.to_owned(), path.clone()))).collect()
}

/// The file in which a path ends; what ends in none is left as it is written.
fn file_of(named: &str, files: &Files, fronts: &BTreeMap<&str, BTreeMap<String, String>>) -> String {
    let parts: Vec<&str> = named.split("::").collect();
    let prefix = |count: &usize| files.contains_key(&parts[..*count].join("::"));
    let Some(count) = (1..=parts.len()).rev().find(prefix) else { return named.to_owned() };
    let file = parts[..count].join("::");
    let next = parts.get(count).and_then(|name| fronts[file.as_str()].get(*name));
    match next {
        Some(next) if *next != named => file_of(next, files, fronts),
        _ => file,
    }
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

/// Functions that a text defines.
fn defined(code: &str) -> impl Iterator<Item = &str> {
    code.match_indices("fn ")
        .map(|(at, found)| word(&code[at + found.len()..]))
        .filter(|name| !name.is_empty())
}

/// Those of them that other files see.
fn public(methods: &str) -> impl Iterator<Item = &str> {
    methods.lines().filter(|line| line.trim_start().starts_with("pub")).flat_map(defined)
}

/// Functions that a text calls by a receiver or a type: the name, and what stands before it.
fn calls(code: &str) -> impl Iterator<Item = (&str, &str)> {
    code.match_indices('(').filter_map(|(at, _)| {
        let name = code[..at].rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
        let before = &code[..at - name.len()];
        let receiver = before.strip_suffix('.').or_else(|| before.strip_suffix("::"))?;
        Some((name, receiver.trim_end()))
    })
}

/// Where methods stand of the types that several files add methods to.
struct Homes<'a> {
    /// By a name that no other file gives to a function.
    by_name: BTreeMap<&'a str, &'a str>,
    /// By type and name.
    by_type: BTreeMap<(&'a str, &'a str), &'a str>,
}

fn homes_of_methods<'a>(files: &'a Files, of_others: &BTreeSet<&str>) -> Homes<'a> {
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
    let mut homes = Homes { by_name: BTreeMap::new(), by_type: BTreeMap::new() };
    for (path, code) in files {
        for (subject, methods) in
            inherent_blocks(code).filter(|(subject, _)| files_of_types[subject].len() > 1)
        {
            let known = |name: &&str| files_of_names[name].len() == 1 && !of_others.contains(name);
            homes.by_type.extend(defined(methods).map(|name| ((subject, name), path.as_str())));
            homes.by_name.extend(public(methods).filter(known).map(|name| (name, path.as_str())));
        }
    }
    homes
}

/// Files whose methods a text calls.
fn called(code: &str, homes: &Homes<'_>) -> BTreeSet<String> {
    let by_name = calls(code).filter_map(|(name, _)| homes.by_name.get(name));
    let on_itself = inherent_blocks(code).flat_map(|(subject, methods)| {
        let value = subject.to_lowercase();
        let is_it = move |receiver: &str| {
            let last =
                receiver.rsplit(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
            let is_field = receiver[..receiver.len() - last.len()].ends_with('.');
            !is_field && (last == "self" || last == value)
        };
        let own = calls(methods).filter(move |(_, receiver)| is_it(receiver));
        own.filter_map(move |(name, _)| homes.by_type.get(&(subject, name)))
    });
    by_name.chain(on_itself).map(|&home| home.to_owned()).collect()
}

/// Where a file stands in a tower, counted from the top: on the storey that names it, or its folder most closely.
fn storey(tower: &Tower, file: &str) -> Option<usize> {
    let file = file.replace("::", "/");
    let holds =
        |storey: &str| file.strip_prefix(storey).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let storeys = tower.storeys.iter().enumerate().filter(|(_, storey)| holds(storey));
    storeys.max_by_key(|(_, storey)| storey.len()).map(|(place, _)| place)
}

/// Uses that go up, files without a storey, and storeys without a file.
fn against(tower: &Tower, files: &Files, uses: Uses) -> Vec<String> {
    let Tower { package, storeys } = tower;
    let mut wrong = Vec::new();
    for (file, uses) in uses {
        // A front that names its files and holds nothing stands nowhere.
        let is_front = !files[&file].contains("fn ") && !files[&file].contains("\nuse ");
        let Some(own) = storey(tower, &file) else {
            if !is_front {
                wrong.push(format!("{package}: {file} is on no storey: give it a place in towers.rs"));
            }
            continue;
        };
        for used in uses {
            match files.contains_key(&used).then(|| storey(tower, &used)) {
                None => {
                    wrong.push(format!("{package}: {file} names crate::{used}: name the file that holds it"))
                }
                Some(Some(above)) if above < own => {
                    wrong.push(format!("{package}: {file} uses {used}, which stands above it"));
                }
                Some(_) => {}
            }
        }
    }
    let stands = |place: usize| files.keys().any(|file| storey(tower, file) == Some(place));
    let empty = storeys.iter().enumerate().filter(|(place, _)| !stands(*place));
    wrong.extend(empty.map(|(_, storey)| format!("{package}: no file is on the storey {storey}")));
    wrong
}

/// The files that use each other, with those that each uses.
fn circles(mut left: Uses) -> Vec<String> {
    // Files that use nothing that is left, or that nothing left uses, are in no circle.
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
    let circle = |(path, uses): (&String, &BTreeSet<String>)| {
        let within: Vec<&str> =
            uses.iter().filter(|used| left.contains_key(*used)).map(String::as_str).collect();
        format!("{path} uses {}", within.join(", "))
    };
    left.iter().map(circle).collect()
}

#[test]
fn files_use_what_stands_below_them_and_no_two_use_each_other() {
    let crates = crates();
    let (mut wrong, mut in_circles) = (Vec::new(), Vec::new());
    for (tower, files) in &crates {
        let others = crates.iter().filter(|(other, _)| other.package != tower.package);
        let of_others = others.flat_map(|(_, files)| files.values()).flat_map(|code| defined(code)).collect();
        let uses = uses(files, &of_others);
        wrong.extend(against(tower, files, uses.clone()));
        in_circles.extend(circles(uses).into_iter().map(|circle| format!("{}: {circle}", tower.package)));
    }
    assert_none(
        "uses against a tower in storeys/towers.rs; move what both need below both, or return a value instead",
        &wrong,
    );
    assert_none("files in a circle", &in_circles);
}

fn example<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Files {
    files.into_iter().map(|(path, code)| (path.to_owned(), format!("\n{code}\n"))).collect()
}

fn listed(uses: Uses) -> Vec<String> {
    let each = |(path, uses): (String, BTreeSet<String>)| {
        uses.into_iter().map(move |used| format!("{path} uses {used}")).collect::<Vec<_>>()
    };
    uses.into_iter().flat_map(each).collect()
}

#[test]
fn files_are_found_by_what_code_names() {
    let files = example([
        (
            "lru",
            "pub mod lists;\nmod size;\npub use size::{Order, Size};\nuse self::lists::Lru;\nfn f() -> Order {}",
        ),
        ("lru::lists", "use super::size::{self, Size};"),
        ("lru::size", ""),
        ("core", "use crate::lru::{Size, lists::{Lru, LruList}};\nuse crate::Memory;"),
        ("fs::xfs::log", "fn f() -> crate::core::Core {}\nuse super::super::disk::Disk;"),
        ("fs::disk", "use super::Fs;"),
    ]);
    let expected = [
        "core uses Memory",
        "core uses lru::lists",
        "core uses lru::size",
        "fs::disk uses fs::Fs",
        "fs::xfs::log uses core",
        "fs::xfs::log uses fs::disk",
        "lru uses lru::lists",
        "lru uses lru::size",
        "lru::lists uses lru::size",
    ];
    assert_eq!(listed(uses(&files, &BTreeSet::new())), expected);
}

#[test]
fn a_call_is_a_use_of_the_file_that_added_the_method() {
    let files = example([
        ("lru", "impl Lru {\n    pub fn add(&mut self) {\n        Self::evict(self);\n    }\n}"),
        ("reclaim", "impl<T: Trace> Lru {\n    pub fn evict(&mut self) {\n        self.len();\n    }\n}"),
        ("check", "impl Check for Lru {\n    fn len(&self) {\n        lru\n            .add();\n    }\n}"),
    ]);
    assert_eq!(listed(uses(&files, &BTreeSet::new())), ["check uses lru", "lru uses reclaim"]);
}

#[test]
fn a_method_whose_name_others_have_is_found_on_the_value_itself() {
    let handle = |body: &str| format!("impl<M: Machine, T: Trace> Kernel<M, T> {{\n    {body}\n}}");
    let [a, b] = [
        "fn top(&self) {\n        self\n            .low();\n    }",
        "fn low(&self) {\n        mem.top();\n        kernel.top();\n    }",
    ]
    .map(handle);
    let files = example([
        ("a", a.as_str()),
        ("b", b.as_str()),
        ("c", "impl Other {\n    fn low(&self) {\n        self.top();\n    }\n    fn top(&self) {}\n}"),
    ]);
    assert_eq!(listed(uses(&files, &BTreeSet::new())), ["a uses b", "b uses a"]);
    assert_eq!(circles(uses(&files, &BTreeSet::new())), ["a uses b", "b uses a"]);
    let tower = Tower { package: "kernel", storeys: &["a", "b", "d"] };
    let expected = [
        "kernel: b uses a, which stands above it",
        "kernel: c is on no storey: give it a place in towers.rs",
        "kernel: no file is on the storey d",
    ];
    assert_eq!(against(&tower, &files, uses(&files, &BTreeSet::new())), expected);
}
