//! A run, fully resolved, and its text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use units::{Bytes, Nanos, Seed};

use crate::catalog::Workload;
use crate::language::vocabulary::KernelSpec;
use crate::scenario::backend::Backend;
use crate::scenario::bounds::{SCHEMA, interval_text};
use crate::scenario::guest::Guest;
use crate::scenario::swap::Swap;
use language::params::ParamValue;

/// A run, fully resolved. A simulated one has a kernel, a machine and memory; a guest has memory and
/// is a machine of its own; this host has nothing to choose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// What runs, with all its parameters.
    pub workload: Workload,
    /// The file that the workload was read from, for whoever runs it again; no part of what is written of the run.
    pub file: Option<PathBuf>,
    /// The simulated kernel. A real one is what it is.
    pub kernel: Option<KernelSpec>,
    /// The machine that the kernel runs on, by name; a guest has [one](Backend::guest_machine).
    pub machine: Option<String>,
    /// The machine's memory, from [`MEM_MIN`](super::MEM_MIN) to [`MEM_MAX`](super::MEM_MAX).
    pub mem: Option<Bytes>,
    /// What the machine swaps to; `None` where nobody says, and the workload has nothing of its own.
    pub swap: Option<Swap>,
    /// Sysctls that differ from the kernel's own, by dotted name; values in single blanks.
    pub sysctls: BTreeMap<String, String>,
    /// Where all randomness comes from.
    pub seed: Seed,
    /// Time between two samples of all counters, from [`INTERVAL_MIN`](super::INTERVAL_MIN) to
    /// [`INTERVAL_MAX`](super::INTERVAL_MAX); the backend's own where nobody says. Reading
    /// counters of cgroups is not free of effect (MECHANISMS-6X 4.3).
    pub interval: Option<Nanos>,
    /// Where it runs.
    pub backend: Backend,
    /// The virtual machine, where the file says something of it. Other backends do not look at it.
    pub guest: Option<Guest>,
}

impl Scenario {
    /// The scenario as TOML: every value, always in this order, ending in a line feed. A table
    /// without entries is left out, and so is what a real kernel does not leave to choose.
    pub fn to_toml(&self) -> String {
        let mut toml = String::new();
        let head = [
            ("schema", Some(SCHEMA.to_string())),
            ("workload", Some(quoted(self.workload.name()))),
            ("program", self.workload.spec().file_text().map(literal)),
            ("kernel", self.kernel.as_ref().map(|kernel| quoted(&kernel.to_string()))),
            ("machine", self.machine.as_deref().map(quoted)),
            ("mem", self.mem.map(|mem| quoted(&mem.to_string()))),
            ("swap", self.swap.as_ref().map(|swap| quoted(&swap.to_string()))),
            ("seed", Some(number_or_quoted(&self.seed.0.to_string()))),
            ("interval", self.interval.map(|interval| quoted(&interval_text(interval)))),
            ("backend", Some(quoted(&self.backend.to_string()))),
        ];
        let said = head.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        write_pairs(&mut toml, said);
        let params = self.workload.params().iter().map(|(name, value)| match value {
            ParamValue::Count(count) => (name.to_owned(), number_or_quoted(&count.to_string())),
            other => (name.to_owned(), quoted(&other.to_string())),
        });
        toml.push_str("\n[params]\n");
        write_pairs(&mut toml, params);
        if !self.sysctls.is_empty() {
            toml.push_str("\n[sysctls]\n");
            let pairs = self.sysctls.iter().map(|(name, value)| (quoted(name), number_or_quoted(value)));
            write_pairs(&mut toml, pairs);
        }
        if let Some(Guest { cpus, numa_nodes, lru_gen, xfs_log }) = &self.guest {
            toml.push_str("\n[vm]\n");
            let pairs = [
                ("cpus", cpus.to_string()),
                ("numa_nodes", numa_nodes.to_string()),
                ("lru_gen", quoted(&lru_gen.to_string())),
            ];
            let log = xfs_log.map(|mib| ("xfs_log", mib.to_string()));
            let pairs = pairs.into_iter().chain(log);
            write_pairs(&mut toml, pairs.map(|(key, value)| (key.to_owned(), value)));
        }
        toml
    }
}

fn write_pairs(toml: &mut String, pairs: impl IntoIterator<Item = (String, String)>) {
    for (key, value) in pairs {
        writeln!(toml, "{key} = {value}").expect("a String takes all that is written");
    }
}

/// A TOML string. Texts here have no control characters: names, and values that were checked.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A TOML string of several lines, as it stands where that is possible.
fn literal(text: &str) -> String {
    let plain = !text.contains("'''")
        && !text.ends_with('\'')
        && !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t'));
    if plain {
        return format!("'''\n{text}'''");
    }
    let escaped = text.chars().map(|c| match c {
        '\n' => c.to_string(),
        '\\' => "\\\\".to_owned(),
        '"' => "\\\"".to_owned(),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    });
    format!("\"\"\"\n{}\"\"\"", escaped.collect::<String>())
}

/// A TOML integer where that keeps the text as it is and every reader of TOML can hold it.
fn number_or_quoted(text: &str) -> String {
    let as_number = text.parse::<i64>().map(|number| number.to_string());
    if as_number.as_deref() == Ok(text) { text.to_owned() } else { quoted(text) }
}
