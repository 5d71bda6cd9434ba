//! Names and values as texts: read and checked, quoted and listed.
//!
//! Next: [`crate::name::names`], which has the vocabulary; [`crate::resolve::kernel_name`] for which changes make a
//! kernel.

use std::collections::BTreeMap;

use mm::version::presets::Version;
use workload::KernelSpec;
use workload::params::split_pair;
use workload::scenario::{ScenarioProblem, parse_sysctl_value};

use crate::error::LabError;
use crate::name::names::Names;
use crate::resolve::kernel_name::check_changes;
use crate::resolve::policy_object;

/// Reads the name of a kernel with features added and taken away.
///
/// # Errors
/// An unknown name; a change that changes nothing; two forms of one decision.
pub(crate) fn kernel_named(text: &str, names: &Names) -> Result<KernelSpec, LabError> {
    let mut kernel = names.vocabulary().kernel(text)?;
    check_changes(&kernel)?;
    policy_object::seal(&mut kernel)?;
    Ok(kernel)
}

/// Reads `name=value` texts.
pub(crate) fn sysctl_pairs(texts: &[String], names: &Names) -> Result<BTreeMap<String, String>, LabError> {
    let mut pairs = BTreeMap::new();
    for text in texts {
        let (name, value) = split_pair(text).map_err(|_| LabError::not_a_pair(text))?;
        let name = names.vocabulary().sysctl(name)?;
        let second = parse_sysctl_value(&name, value)?;
        if let Some(first) = pairs.insert(name.clone(), second.clone()) {
            return Err(ScenarioProblem::SysctlTwice { name, first, second }.into());
        }
    }
    Ok(pairs)
}

/// The first value that was there before.
pub(crate) fn first_twice<T: PartialEq>(values: &[T]) -> Option<&T> {
    values.iter().enumerate().find(|(index, value)| values[..*index].contains(value)).map(|(_, value)| value)
}

/// The kernel when none is named: the newest that is maintained for long.
pub(crate) fn newest_kernel() -> &'static str {
    Version::NEWEST_LONG_TERM
}

/// `--kernel`, `--machine` and `--mem`; nothing where there is nothing.
pub(crate) fn listed(names: &[&str]) -> Option<String> {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match &quoted[..] {
        [] => None,
        [only] => Some(only.clone()),
        [first @ .., last] => Some(format!("{} and {last}", first.join(", "))),
    }
}

pub(crate) fn shell_quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,:+/%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
