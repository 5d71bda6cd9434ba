//! `cargo xtask dist --check`: two checkouts in different folders, made into packages, must be equal.
//!
//! What is committed when it begins is checked out twice below cargo's target folder, and each copy is built from
//! nothing. Left out: another compiler, another machine.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{cargo_command, done, output, told, workshop};
use crate::checkout::root;
use crate::say::say;
use crate::step::Outcome;

/// Names of different lengths, so that a path that got in is seen by its length, too.
const FOLDERS: [&str; 2] = ["one", "and-another/below"];

/// Builds in both and compares checksums.
pub(super) fn run() -> Outcome {
    let commit = match output(Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root())) {
        Ok(commit) => String::from_utf8_lossy(&commit).trim().to_owned(),
        Err(why) => return Outcome::Failed(why),
    };
    match FOLDERS.map(|folder| make(folder, &commit)) {
        [Ok(one), Ok(other)] => compare(&one, &other),
        [Err(why), _] | [_, Err(why)] => Outcome::Failed(why),
    }
}

fn make(name: &str, commit: &str) -> Result<String, String> {
    let place = workshop("check").join(name);
    if place.exists() {
        fs::remove_dir_all(&place).map_err(|error| told(&place, &error))?;
    }
    done(Command::new("git").args(["clone", "--quiet", "--no-local"]).arg(root()).arg(&place))?;
    done(Command::new("git").args(["checkout", "--quiet", "--detach", commit]).current_dir(&place))?;
    say(&format!("== everything once more, in {}", place.display()));
    let mut dist = cargo_command();
    dist.args(["xtask", "dist"]).current_dir(&place).env_remove("CARGO_TARGET_DIR");
    done(&mut dist)?;
    let sums = place.join("target/dist/SHA256SUMS");
    fs::read_to_string(&sums).map_err(|error| told(&sums, &error))
}

/// Where the first build has what it made.
pub(super) fn made() -> PathBuf {
    workshop("check").join(FOLDERS[0]).join("target/dist")
}

fn compare(one: &str, other: &str) -> Outcome {
    say(one.trim_end());
    let differ: Vec<&str> = one.lines().filter(|line| !other.contains(line)).collect();
    if one == other {
        Outcome::Passed(Default::default())
    } else {
        Outcome::Failed(format!("not the same in the second build:\n  {}", differ.join("\n  ")))
    }
}
