//! What is in the program: a bill of materials (CycloneDX 1.5, JSON), and the licences of all crates in it.
//!
//! `cargo tree` says what is linked, with the features that the program has; Cargo.lock, with which checksum. Left out:
//! the compiler's own library.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;

use super::{
    VERSION, cargo_command, cargo_home, done, folder, has_subcommand, outcome, output, program, told,
    workshop, write,
};
use crate::checkout::root;
use crate::step::Outcome;

/// The crate that the program is.
const PROGRAM: &str = "pagetide-cli";

/// The list of licences that we accept, as cargo-deny reads it.
const DENY: &str = include_str!("../../../../deny.toml");

/// A crate as `cargo tree` tells of it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone)]
struct Part {
    name: String,
    version: String,
    license: String,
}

impl Part {
    /// Its name in a bill.
    fn url(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }

    fn is_ours(&self) -> bool {
        self.name.starts_with("pagetide-")
    }
}

/// Holds the crates of all our programs, those that only builds need included, to `deny.toml`, where there is
/// cargo-deny. Left out: advisories, whose list is on the network.
pub(super) fn check() -> Outcome {
    if !has_subcommand("deny") {
        return Outcome::Skipped("there is no cargo-deny: `cargo install --locked cargo-deny`".to_owned());
    }
    outcome(done(cargo_command().args(["deny", "--locked", "check", "licenses", "bans", "sources"])))
}

/// Writes both.
pub(super) fn make() -> Result<(), String> {
    let tree = ["tree", "--locked", "--package", PROGRAM, "--target", program::TARGET];
    let form = ["--edges=normal,no-proc-macro", "--prefix=depth", "--no-dedupe", "--format", "\t{p}\t{l}"];
    let tree = output(cargo_command().args(tree).args(form))?;
    let parts = read_tree(&String::from_utf8_lossy(&tree));
    if let Some(part) = parts.keys().find(|part| !is_accepted(&part.license)) {
        return Err(format!(
            "{} {} is licensed as `{}`, which nobody has accepted",
            part.name, part.version, part.license
        ));
    }
    let lock = root().join("Cargo.lock");
    let lock = fs::read_to_string(&lock).map_err(|error| told(&lock, &error))?;
    write(&folder().join(format!("pagetide-{VERSION}.cdx.json")), bill(&parts, &checksums(&lock)))?;
    write(&workshop("THIRD-PARTY-LICENSES"), licenses(&parts)?)
}

/// Each crate, and those that it uses.
fn read_tree(tree: &str) -> BTreeMap<Part, BTreeSet<Part>> {
    let mut parts = BTreeMap::<Part, BTreeSet<Part>>::new();
    let mut above = Vec::<Part>::new();
    for line in tree.lines() {
        let mut columns = line.split('\t');
        let (Some(depth), Some(package), Some(license)) = (columns.next(), columns.next(), columns.next())
        else {
            continue;
        };
        let mut words = package.split(' ');
        let (Some(name), Some(version)) = (words.next(), words.next()) else { continue };
        let (name, version) = (name.to_owned(), version.trim_start_matches('v').to_owned());
        let part = Part { name, version, license: license.replace('/', " OR ") };
        above.truncate(depth.parse().unwrap_or(0));
        if let Some(user) = above.last() {
            parts.entry(user.clone()).or_default().insert(part.clone());
        }
        parts.entry(part.clone()).or_default();
        above.push(part);
    }
    parts
}

/// Whether one of the choices that a licence leaves is accepted.
fn is_accepted(license: &str) -> bool {
    let plain = license.replace(['(', ')'], "");
    let all = |choice: &str| choice.split(" AND ").all(|one| accepted().any(|name| name == one.trim()));
    // `(A OR B) AND C` is read as `A` or `B AND C`: each of the three must do then.
    let mixed = plain.contains(" AND ") && plain.contains(" OR ");
    if mixed { plain.split(" OR ").all(all) } else { plain.split(" OR ").any(all) }
}

/// The licences in the first list of that name.
fn accepted() -> impl Iterator<Item = &'static str> {
    let list = DENY.split_once("\nallow = [").and_then(|(_, behind)| behind.split_once(']'));
    let (names, _) = list.expect("deny.toml has a list `allow`");
    names.split(',').map(|name| name.trim().trim_matches('"')).filter(|name| !name.is_empty())
}

/// Checksums of crates by name and version.
fn checksums(lock: &str) -> BTreeMap<(&str, &str), &str> {
    let packages = lock.split("[[package]]").skip(1);
    packages
        .filter_map(|package| {
            let field = |key: &str| {
                let line = package.lines().find_map(|line| line.strip_prefix(key))?;
                Some(line.trim_start_matches(" = ").trim_matches('"'))
            };
            Some(((field("name")?, field("version")?), field("checksum")?))
        })
        .collect()
}

fn bill(parts: &BTreeMap<Part, BTreeSet<Part>>, checksums: &BTreeMap<(&str, &str), &str>) -> String {
    let component = |part: &Part| {
        let kind = if part.name == PROGRAM { "application" } else { "library" };
        let (name, version, url) = (&part.name, &part.version, part.url());
        let hash = checksums
            .get(&(name.as_str(), version.as_str()))
            .map(|sum| format!(", \"hashes\": [{{\"alg\": \"SHA-256\", \"content\": {sum:?}}}]"));
        format!(
            "{{\"type\": {kind:?}, \"bom-ref\": {url:?}, \"name\": {name:?}, \"version\": {version:?}, \
             \"purl\": {url:?}, \"licenses\": [{{\"expression\": {:?}}}]{}}}",
            part.license,
            hash.unwrap_or_default()
        )
    };
    let (program, libraries): (Vec<_>, Vec<_>) = parts.keys().partition(|part| part.name == PROGRAM);
    let used = |(part, uses): (&Part, &BTreeSet<Part>)| {
        let uses: Vec<String> = uses.iter().map(Part::url).collect();
        format!("{{\"ref\": {:?}, \"dependsOn\": {uses:?}}}", part.url())
    };
    let mut text = "{\"bomFormat\": \"CycloneDX\", \"specVersion\": \"1.5\", \"version\": 1,\n".to_owned();
    let list = |lines: Vec<String>| lines.join(",\n  ");
    let program = list(program.into_iter().map(component).collect());
    let libraries = list(libraries.into_iter().map(component).collect());
    let used = list(parts.iter().map(used).collect());
    let _ = write!(
        text,
        "\"metadata\": {{\"component\": {program}}},\n\
         \"components\": [\n  {libraries}\n],\n\"dependencies\": [\n  {used}\n]}}\n"
    );
    text
}

/// The licences of everything that is linked in and is not ours, as their packages have them.
fn licenses(parts: &BTreeMap<Part, BTreeSet<Part>>) -> Result<String, String> {
    let sources = fs::read_dir(cargo_home().join("registry/src")).into_iter().flatten().flatten();
    let indexes: Vec<_> = sources.map(|index| index.path()).collect();
    let mut all = "What others wrote and the program contains, with the licences of each.\n".to_owned();
    for part in parts.keys().filter(|part| !part.is_ours()) {
        let package = format!("{}-{}", part.name, part.version);
        let folder = indexes.iter().map(|index| index.join(&package)).find(|folder| folder.is_dir());
        let folder =
            folder.ok_or_else(|| format!("{package} is not among the sources that cargo has fetched"))?;
        let _ = write!(all, "\n==== {} {}: {}\n", part.name, part.version, part.license);
        let mut files: Vec<_> = fs::read_dir(&folder).into_iter().flatten().flatten().collect();
        files.sort_by_key(fs::DirEntry::file_name);
        for file in files {
            let name = file.file_name().to_string_lossy().to_uppercase();
            let is_license =
                ["LICEN", "COPYING", "NOTICE", "UNLICENSE"].iter().any(|begin| name.starts_with(begin));
            if let (true, Ok(text)) = (is_license, fs::read_to_string(file.path())) {
                let _ = write!(all, "---- {}\n{}\n", file.file_name().to_string_lossy(), text.trim());
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_licence_is_accepted_if_one_of_its_choices_is() {
        assert!(is_accepted("MIT OR GPL-3.0") && is_accepted("(MIT OR Apache-2.0) AND Unicode-3.0"));
        assert!(!is_accepted("GPL-3.0") && !is_accepted("MIT AND GPL-3.0") && !is_accepted(""));
        assert!(!is_accepted("(MIT OR GPL-3.0) AND Unicode-3.0"));
        assert_eq!((accepted().next(), accepted().last()), (Some("MIT"), Some("Zlib")));
    }

    #[test]
    fn the_bill_names_each_crate_once_with_its_checksum_and_its_uses() {
        let tree =
            "0\tpagetide-cli v0.1.0 (/x)\tMIT\n1\ta v1.0.0\tMIT/Zlib\n2\tb v2.0.0\tMIT\n1\tb v2.0.0\tMIT\n";
        let parts = read_tree(tree);
        assert_eq!(parts.len(), 3);
        let lock = "[[package]]\nname = \"b\"\nversion = \"2.0.0\"\nchecksum = \"beef\"\n";
        let bill = bill(&parts, &checksums(lock));
        for wanted in [
            "\"metadata\": {\"component\": {\"type\": \"application\", \"bom-ref\": \"pkg:cargo/pagetide-cli@0.1.0\"",
            "\"hashes\": [{\"alg\": \"SHA-256\", \"content\": \"beef\"}]",
            "\"expression\": \"MIT OR Zlib\"",
            "{\"ref\": \"pkg:cargo/pagetide-cli@0.1.0\", \"dependsOn\": [\"pkg:cargo/a@1.0.0\", \"pkg:cargo/b@2.0.0\"]}",
        ] {
            assert!(bill.contains(wanted), "{wanted}\n{bill}");
        }
    }
}
