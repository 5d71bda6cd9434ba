//! What distinguishes the columns of a comparison: the keys in which their scenarios differ.
//!
//! The keys that differ make a column's label, such as `linux-6.12 mem=256M` or `stream=2G`. What is
//! compared is the kernel or where it runs, or the one key that differs; whatever differs besides is
//! told, because it has its share in every figure. Left out: columns that were planned together, which
//! differ by design, see [`crate::plan::compare`]. Next: [`crate::keep::folders`], which asks.

use std::collections::{BTreeMap, BTreeSet};

use recording::Recording;

/// One column: its label as recorded, where it was read from, and what its runs are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    /// The label that its recordings have.
    pub(crate) recorded: String,
    /// What the folder is called.
    pub(crate) folder: String,
    /// Keys of the scenario with their values.
    pub(crate) keys: Keys,
}

/// Keys of a scenario with their values as text: `mem`, `stream`, `vm.swappiness`. Empty for a
/// recording without a scenario.
pub(crate) type Keys = BTreeMap<String, String>;

const KERNEL: &str = "kernel";
const BACKEND: &str = "backend";
const SEED: &str = "seed";
/// What the simulator alone, or a guest alone, makes of a scenario.
const OF_MODEL: &str = "machine";
const OF_GUEST: &str = "guest.";

/// The keys of `recording`, the seed left out. Of a real kernel it is the one that ran.
pub(crate) fn keys(recording: &Recording) -> Keys {
    let Ok(toml) = recording.scenario_toml.parse::<toml::Table>() else { return Keys::new() };
    let mut keys = Keys::new();
    for (key, value) in toml {
        match value {
            toml::Value::Table(table) => {
                let prefix = if key == "vm" { OF_GUEST } else { "" };
                keys.extend(table.iter().map(|(key, value)| (format!("{prefix}{key}"), text(value))));
            }
            value => drop(keys.insert(key, text(&value))),
        }
    }
    for key in ["schema", "workload", SEED] {
        keys.remove(key);
    }
    if !keys.is_empty() && recording.backend != "sim" && recording.backend != "policy" {
        keys.insert(KERNEL.to_owned(), recording.kernel.clone());
        keys.remove(OF_MODEL);
    }
    if recording.backend == "host" {
        keys.remove("mem");
    }
    keys
}

fn text(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The seeds of a column's runs as a value: `1`, `1..3`, `1,5`.
pub(crate) fn seeds(recordings: &[Recording]) -> String {
    let seeds: BTreeSet<u64> = recordings.iter().map(|recording| recording.seed).collect();
    let (Some(first), Some(last)) = (seeds.first(), seeds.last()) else { return String::new() };
    match seeds.len() {
        1 => first.to_string(),
        count if last - first == count as u64 - 1 => format!("{first}..{last}"),
        _ => seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(","),
    }
}

/// Labels that tell columns apart, and what to know about their differences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Differences {
    /// One for each column.
    pub(crate) labels: Vec<String>,
    /// What differs beyond what is compared.
    pub(crate) warnings: Vec<String>,
}

impl Differences {
    /// What distinguishes `columns`.
    pub(crate) fn of(columns: &[Column]) -> Self {
        let differing = differing(columns);
        let has_scenarios = columns.iter().all(|column| !column.keys.is_empty());
        let label = |column: &Column| {
            let label = if has_scenarios { made_of(&differing, column, columns) } else { String::new() };
            if label.is_empty() { column.recorded.clone() } else { label }
        };
        let labels = told_apart(columns.iter().map(label).collect(), columns);
        let warnings = if has_scenarios { warning(&differing, columns) } else { None };
        Self { labels, warnings: warnings.into_iter().collect() }
    }
}

/// Keys that columns have with other values, or not all of them: in the order of labels.
fn differing(columns: &[Column]) -> Vec<&str> {
    let keys: BTreeSet<&String> = columns.iter().flat_map(|column| column.keys.keys()).collect();
    let differs =
        |key: &&&String| columns.iter().any(|column| column.keys.get(**key) != columns[0].keys.get(**key));
    let mut differing: Vec<&str> = keys.iter().filter(differs).map(|key| key.as_str()).collect();
    // A model beside a real kernel has a machine and no guest, and cannot have the other.
    if differing.contains(&BACKEND) {
        differing.retain(|key| *key != OF_MODEL && !key.starts_with(OF_GUEST));
    }
    let rank = |key: &str| match key {
        KERNEL | BACKEND => 0,
        OF_MODEL => 1,
        "mem" => 2,
        SEED => 4,
        _ => 3,
    };
    differing.sort_by_key(|key| rank(key)); // stable: by name otherwise
    differing
}

fn made_of(differing: &[&str], column: &Column, columns: &[Column]) -> String {
    let mut parts = Vec::new();
    let value = |key: &str| column.keys.get(key).cloned().unwrap_or_else(|| "default".to_owned());
    if differing.contains(&KERNEL) || differing.contains(&BACKEND) {
        // A guest is called after what was asked for, and after its release among guests of that.
        let alike = |other: &&Column| other.keys.get(BACKEND) == column.keys.get(BACKEND);
        let only =
            columns.iter().filter(alike).all(|other| other.keys.get(KERNEL) == column.keys.get(KERNEL));
        let by_backend = value(BACKEND) != "sim" && differing.contains(&BACKEND) && only;
        parts.push(value(if by_backend { BACKEND } else { KERNEL }));
    }
    let others = differing.iter().filter(|key| ![KERNEL, BACKEND].contains(key));
    parts.extend(others.map(|key| format!("{}={}", key.trim_start_matches(OF_GUEST), value(key))));
    parts.join(" ")
}

/// Labels that are still the same get the folder's name; those of one folder are numbered.
fn told_apart(mut labels: Vec<String>, columns: &[Column]) -> Vec<String> {
    let plain = labels.clone();
    let is_taken = |label: &String| plain.iter().filter(|other| *other == label).count() > 1;
    for (label, column) in labels.iter_mut().zip(columns) {
        if is_taken(label) {
            *label = format!("{label} ({})", column.folder);
        }
    }
    let named = labels.clone();
    for (at, label) in labels.iter_mut().enumerate() {
        let before = named[..at].iter().filter(|other| *other == label).count();
        if before > 0 {
            *label = format!("{label} #{}", before + 1);
        }
    }
    labels
}

fn warning(differing: &[&str], columns: &[Column]) -> Option<String> {
    let by_kernel = differing.iter().any(|key| [KERNEL, BACKEND].contains(key));
    let more: Vec<&&str> = differing.iter().filter(|key| ![KERNEL, BACKEND].contains(*key)).collect();
    let told = |key: &&&str| {
        let values = columns.iter().map(|column| column.keys.get(**key).map_or("default", String::as_str));
        format!("{} ({})", key.trim_start_matches(OF_GUEST), values.collect::<Vec<_>>().join(", "))
    };
    let list = more.iter().map(told).collect::<Vec<_>>().join(", ");
    match (by_kernel, more.len()) {
        (false, 0) if columns.len() > 1 => Some("the scenarios do not differ, nor do their seeds".to_owned()),
        (_, 0) | (false, 1) => None,
        (true, _) => Some(format!("beside the kernel the scenarios differ in {list}")),
        (false, _) => Some(format!("the scenarios differ in more than one key: {list}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(folder: &str, keys: &[(&str, &str)]) -> Column {
        let keys = keys.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        Column { recorded: "linux-6.12".to_owned(), folder: folder.to_owned(), keys }
    }

    fn told(columns: &[Column]) -> String {
        let Differences { labels, warnings } = Differences::of(columns);
        format!("{}{}", labels.join(" | "), warnings.iter().map(|w| format!(" ! {w}")).collect::<String>())
    }

    /// Both were called `linux-6.12`.
    #[test]
    fn two_recordings_with_different_memory_do_not_have_the_same_label() {
        let of = |mem| column("x", &[("kernel", "linux-6.12"), ("backend", "sim"), ("mem", mem)]);
        assert_eq!(told(&[of("300M"), of("512M")]), "mem=300M | mem=512M");
        let recording = |mem: &str| {
            let mut recording = Recording::new("linux-6.12", "w", "sim", "linux-6.12", 1);
            recording.scenario_toml = format!(
                "workload = \"w\"\nmem = \"{mem}\"\nseed = 1\n[params]\nhot_reads = 2\n[sysctls]\n\"vm.swappiness\" = 10\n"
            );
            keys(&recording)
        };
        let wanted = [("hot_reads", "2"), ("mem", "300M"), ("vm.swappiness", "10")];
        assert_eq!(recording("300M"), column("", &wanted).keys);
    }

    /// The difference in memory was told as one of the kernel.
    #[test]
    fn what_differs_beside_the_kernel_is_told() {
        let of = |kernel, mem| column("x", &[("kernel", kernel), ("backend", "sim"), ("mem", mem)]);
        assert_eq!(
            told(&[of("linux-6.1", "300M"), of("linux-6.12", "512M")]),
            "linux-6.1 mem=300M | linux-6.12 mem=512M ! beside the kernel the scenarios differ in mem (300M, 512M)"
        );
        assert_eq!(told(&[of("linux-6.1", "1G"), of("linux-6.12", "1G")]), "linux-6.1 | linux-6.12");
    }

    #[test]
    fn two_keys_without_a_kernel_leave_open_what_is_compared() {
        let of = |pairs: &[(&str, &str)]| column("x", pairs);
        assert_eq!(
            told(&[
                of(&[("mem", "1G"), ("stream", "1G")]),
                of(&[("mem", "2G"), ("stream", "1G"), ("vm.swappiness", "1")])
            ]),
            "mem=1G vm.swappiness=default | mem=2G vm.swappiness=1 ! the scenarios differ in more than one key: mem (1G, 2G), vm.swappiness (default, 1)"
        );
    }

    #[test]
    fn a_model_beside_a_guest_differs_in_where_it_runs_only() {
        let model = column("a", &[("kernel", "linux-6.12"), ("backend", "sim"), ("machine", "guest-tcg")]);
        let guest = column("b", &[("kernel", "6.12.117"), ("backend", "vm:6.12"), ("guest.cpus", "2")]);
        assert_eq!(told(&[model, guest]), "linux-6.12 | vm:6.12");
    }

    #[test]
    fn recordings_that_differ_in_nothing_are_told_apart_by_seed_or_folder() {
        let of = |folder, seed| column(folder, &[("mem", "1G"), ("seed", seed)]);
        assert_eq!(told(&[of("a", "1"), of("b", "2")]), "seed=1 | seed=2");
        assert_eq!(
            told(&[of("a", "1"), of("b", "1")]),
            "linux-6.12 (a) | linux-6.12 (b) ! the scenarios do not differ, nor do their seeds"
        );
        let without = |folder| column(folder, &[]);
        assert_eq!(told(&[without("a"), without("a")]), "linux-6.12 (a) | linux-6.12 (a) #2");
    }

    #[test]
    fn seeds_are_told_as_a_span_where_they_are_one() {
        let of = |seeds: &[u64]| {
            seeds.iter().map(|&seed| Recording::new("l", "w", "sim", "k", seed)).collect::<Vec<_>>()
        };
        assert_eq!([&[7][..], &[3, 1, 2], &[1, 5]].map(|list| seeds(&of(list))), ["7", "1..3", "1,5"]);
    }
}
