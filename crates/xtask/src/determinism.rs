//! The same scenario, the same bytes: from two runs, with one job and with two, and from a debug build.
//!
//! Recordings are compared file by file. The scenario is small enough for a debug build and large
//! enough for kswapd, direct reclaim and refaults.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::built;
use crate::say::say;
use crate::step::Outcome;

const SCENARIO: &str =
    "compare hot-and-stream --param hot=4M --param stream=512M --mem 64M --seeds 2 --format csv -q";

/// Runs made, all of which must leave the same: a name, the build, and the number of jobs.
const VARIANTS: [(&str, &str, &str); 4] = [
    ("first", "release", "1"),
    ("again", "release", "1"),
    ("two-jobs", "release", "2"),
    ("debug", "debug", "2"),
];

/// Runs the release build, which is there, and `others`, which are built, and compares what they leave.
pub(crate) fn check(others: &[&str]) -> Outcome {
    for profile in others {
        if let Outcome::Failed(why) = built::build(profile) {
            return Outcome::Failed(why);
        }
    }
    let folder = std::env::temp_dir().join(format!("pagetide-determinism-{}", std::process::id()));
    let outcome = match compare_variants(&folder, others) {
        Ok(()) => Outcome::Passed(Default::default()),
        Err(why) => Outcome::Failed(why),
    };
    // What is left in the temporary folder harms nobody.
    let _ = std::fs::remove_dir_all(&folder);
    outcome
}

fn compare_variants(folder: &Path, others: &[&str]) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut expected: Option<Left> = None;
    for (name, profile, jobs) in VARIANTS {
        if profile != "release" && !others.contains(&profile) {
            continue;
        }
        let left = run(folder, name, profile, jobs)?;
        match &expected {
            None => {
                say(&format!("{name}: {} files, the reference", left.len()));
                expected = Some(left);
            }
            Some(expected) => {
                if let Some(difference) = difference(expected, &left) {
                    return Err(format!(
                        "`{name}` ({profile}, {jobs} jobs) differs in {difference}: `pagetide {SCENARIO}`"
                    ));
                }
                say(&format!("{name} ({profile}, {jobs} jobs): the same bytes"));
            }
        }
    }
    Ok(())
}

/// What a run leaves: standard output under the empty path, and every file of its recordings.
type Left = BTreeMap<PathBuf, Vec<u8>>;

fn run(folder: &Path, name: &str, profile: &str, jobs: &str) -> Result<Left, String> {
    let out = folder.join(name);
    let own = ["--jobs", jobs, "--out"].map(OsStr::new).into_iter().chain([out.as_os_str()]);
    let output = built::output(profile, SCENARIO.split(' ').map(OsStr::new).chain(own))?;
    let mut left = files_below(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    left.insert(PathBuf::new(), output);
    Ok(left)
}

fn files_below(folder: &Path) -> std::io::Result<Left> {
    let mut files = Left::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else {
                let relative = path.strip_prefix(folder).expect("below the folder").to_owned();
                files.insert(relative, std::fs::read(&path)?);
            }
        }
    }
    Ok(files)
}

/// The first file that only one side has, or that is not the same on both.
fn difference(expected: &Left, left: &Left) -> Option<String> {
    let names = expected.keys().chain(left.keys());
    let differs = |name: &&PathBuf| expected.get(*name) != left.get(*name);
    names.min_by_key(|name| (!differs(name), (*name).clone())).filter(differs).map(|name| {
        if name.as_os_str().is_empty() { "standard output".to_owned() } else { name.display().to_string() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_and_a_changed_file_are_differences() {
        let left = |files: &[(&str, &str)]| -> Left {
            files.iter().map(|&(name, content)| (PathBuf::from(name), content.as_bytes().to_vec())).collect()
        };
        let base = left(&[("a", "1"), ("b", "2")]);
        assert_eq!(difference(&base, &base), None);
        assert_eq!(difference(&base, &left(&[("a", "1")])).as_deref(), Some("b"));
        assert_eq!(difference(&base, &left(&[("a", "9"), ("b", "2")])).as_deref(), Some("a"));
        assert_eq!(difference(&left(&[]), &left(&[("", "x")])).as_deref(), Some("standard output"));
    }
}
