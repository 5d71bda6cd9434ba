//! Machines of files: `--machine my-server.toml`, and how a built-in machine or this host is written as one.
//!
//! A file becomes the text that a machine has on the command line, a name with changes behind it; so it goes into
//! scenarios, recordings and guests as any machine does. `docs/machine-files.md` tells the keys. Next:
//! [`sim::machines`], what can be changed; [`linux::probe`], which looks at this host.

use std::fmt::Write as _;
use std::fs::read_to_string;
#[cfg(unix)]
use std::io::ErrorKind;
use std::path::Path;
#[cfg(unix)]
use std::sync::atomic::AtomicBool;

#[cfg(unix)]
use linux::probe::Probed;
use sim::machines::{MachineSpec, SERVER};
use units::{Bytes, Nanos};
use workload::scenario::UML_MACHINE;
use workload::table::{Entry, Mistake, Source, Table};

use crate::error::{LabError, machine_hint};
use crate::name::written;

/// A machine file, as options of the command line would say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineFile {
    /// The machine with its changes.
    pub machine: String,
    /// Its memory.
    pub memory: Option<String>,
    /// Sysctls, each `name=value`.
    pub sysctls: Vec<String>,
}

const KEYS: [&str; 10] =
    ["base", "help", "memory", "nodes", "cpus", "hz", "cpu_percent", "protection_keys", "disk", "costs"];
const DISK_KEYS: [&str; 12] = [
    "class",
    "latency",
    "between",
    "bandwidth",
    "readahead",
    "count",
    "log",
    "flush",
    "gathers",
    "scheduler",
    "segment",
    "adapter",
];

/// Whether a machine is a file: it is called so, or in a folder.
fn is_one(machine: &str) -> bool {
    Path::new(machine).extension().is_some_and(|extension| extension == "toml")
        || (machine.contains('/') && !machine.contains('+'))
}

/// The file that an option names, if it names one.
///
/// # Errors
/// As [`read`].
pub(crate) fn of_option(machine: Option<&str>) -> Result<Option<MachineFile>, LabError> {
    machine.filter(|machine| is_one(machine)).map(|path| read(Path::new(path))).transpose()
}

/// Reads the machine file at `path`.
///
/// # Errors
/// It cannot be read; the first mistake in it, at its line.
pub fn read(path: &Path) -> Result<MachineFile, LabError> {
    let text = read_to_string(path).map_err(|source| LabError::unreadable_machine(path, source))?;
    of_text(&text).map_err(|mistake| written::failed(path, mistake))
}

/// Reads a machine file that is a text.
///
/// # Errors
/// As [`read`].
pub fn read_text(text: &str) -> Result<MachineFile, LabError> {
    of_text(text).map_err(|mistake| written::failed(Path::new("machine text"), mistake))
}

/// The machine with the changes so far, each checked where it stands.
struct Changed<'t> {
    source: Source<'t>,
    machine: String,
}

impl Changed<'_> {
    fn add(&mut self, at: usize, change: &str) -> Result<(), Mistake> {
        let machine = format!("{}+{change}", self.machine);
        MachineSpec::parse(&machine)
            .map_err(|error| self.source.fail_hint(at, error.to_string(), error.hint()))?;
        self.machine = machine;
        Ok(())
    }

    /// `key` of a table as the change `change`.
    fn key(&mut self, table: &Table<'_>, key: &str, change: &str) -> Result<(), Mistake> {
        let Some(entry) = table.get(key) else { return Ok(()) };
        let value = table.scalar_of(entry)?;
        self.add(entry.value_at, &format!("{change}={value}"))
    }
}

fn of_text(text: &str) -> Result<MachineFile, Mistake> {
    let source = Source(text);
    let table = source.parse()?;
    let top = Table::new(source, "the file".to_owned(), 0, table.get_ref());
    let base = top.text("base")?.unwrap_or_else(|| SERVER.to_owned());
    if let Err(error) = MachineSpec::parse(&base) {
        let at = top.get("base").map_or(0, |entry| entry.value_at);
        return Err(source.fail_hint(at, error.to_string(), machine_hint(&error)));
    }
    top.text("help")?;
    let mut changed = Changed { source, machine: base };
    for key in ["nodes", "cpus", "hz", "cpu_percent"] {
        changed.key(&top, key, key)?;
    }
    if top.flag("protection_keys")? {
        let at = top.get("protection_keys").map_or(0, |entry| entry.value_at);
        changed.add(at, "protection_keys=true")?;
    }
    if let Some(entry) = top.get("disk") {
        disk(&Table::of(source, "`disk`".to_owned(), entry)?, entry, &mut changed)?;
    }
    if let Some(entry) = top.get("costs") {
        let costs = Table::of(source, "`costs`".to_owned(), entry)?;
        let mut pairs = Vec::new();
        for entry in costs.all() {
            let pair = format!("{}:{}", entry.name, costs.scalar_of(entry)?);
            // Each by itself first, so that a mistake is told at its line.
            let alone = format!("{}+costs={pair}", changed.machine);
            if MachineSpec::parse(&alone).is_err() {
                let message = format!("cost `{}` cannot be so", pair.replace(':', " = "));
                let hint = "a name of `pagetide machine show x86-64`, and a time such as `\"120ns\"`";
                return Err(source.fail_hint(entry.key_at, message, hint));
            }
            pairs.push(pair);
        }
        if !pairs.is_empty() {
            changed.add(entry.value_at, &format!("costs={}", pairs.join(",")))?;
        }
    }
    let memory = top.get("memory").map(|entry| memory(&top, entry)).transpose()?;
    let sysctls = match top.get("sysctls") {
        Some(entry) => {
            let table = Table::of(source, "`sysctls`".to_owned(), entry)?;
            let pair = |entry: &Entry<'_>| Ok(format!("{}={}", entry.name, table.scalar_of(entry)?));
            table.all().map(pair).collect::<Result<_, Mistake>>()?
        }
        None => Vec::new(),
    };
    top.finish(&[&KEYS[..], &["sysctls"]].concat())?;
    Ok(MachineFile { machine: changed.machine, memory, sysctls })
}

fn memory(top: &Table<'_>, entry: &Entry<'_>) -> Result<String, Mistake> {
    let text = top.scalar_of(entry)?;
    match units::parse_size(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(top.source.fail_hint(entry.value_at, format!("`memory`: {error}"), error.hint())),
    }
}

fn disk(table: &Table<'_>, entry: &Entry<'_>, changed: &mut Changed<'_>) -> Result<(), Mistake> {
    let measured = ["latency", "between", "bandwidth"].map(|key| table.get(key));
    match (table.get("class"), measured) {
        (Some(_), [Some(entry), ..]) | (Some(_), [_, Some(entry), _]) => {
            let message = "a disk has a `class`, or is as it was measured";
            return Err(table.source.fail_hint(entry.key_at, message, "leave `class` or these out"));
        }
        (Some(_), _) => changed.key(table, "class", "disk")?,
        (None, [Some(latency), Some(between), Some(bandwidth)]) => {
            let [latency, between, bandwidth] =
                [latency, between, bandwidth].map(|entry| table.scalar_of(entry));
            let text = format!("disk={}:{}:{}", latency?, between?, bandwidth?);
            changed.add(entry.value_at, &text)?;
        }
        (None, [None, None, _]) => {}
        (None, _) => {
            let message = "a measured disk has `latency`, `between` and `bandwidth`";
            return Err(table.source.fail_hint(
                entry.value_at,
                message,
                "`pagetide machine probe` measures them",
            ));
        }
    }
    if table.get("latency").is_none() {
        changed.key(table, "bandwidth", "bandwidth")?;
    }
    let others = ["readahead", "log", "flush", "gathers", "scheduler", "segment", "adapter"];
    for key in others {
        changed.key(table, key, key)?;
    }
    changed.key(table, "count", "disks")?;
    table.finish(&DISK_KEYS)
}

/// A built-in machine, perhaps with changes, as a file.
///
/// # Errors
/// No machine has this name.
pub fn of_machine(name: &str) -> Result<String, LabError> {
    let spec = MachineSpec::parse(name)?;
    let mut text = String::new();
    let mut line = |line: String| writeln!(text, "{line}").expect("text can be written to");
    line(format!("# {}. {}.", spec.help, spec.source));
    if name != spec.name {
        // Its changes say all of it.
        line(format!("base = \"{name}\"\nmemory = \"{}\"", spec.default_mem));
        return Ok(text);
    }
    line(format!("base = \"{}\"", spec.name));
    line(format!("memory = \"{}\"", spec.default_mem));
    if spec.name == SERVER {
        line(format!("nodes = {}", spec.nodes));
    }
    line(format!("cpus = {}\nhz = {}\ncpu_percent = {}", spec.cpus, spec.hz, spec.cpu_percent));
    if spec.name == UML_MACHINE {
        line(format!("protection_keys = {}", spec.protection_keys));
    }
    line("\n[disk]".to_owned());
    line(format!("# {}", spec.disk.name));
    line(format!("count = {}", spec.disks));
    if let Some(readahead) = spec.readahead {
        line(format!("readahead = \"{readahead}\""));
    }
    if let Some(adapter) = spec.host_bandwidth {
        line(format!("adapter = \"{}\"", Bytes(adapter)));
    }
    line("\n[costs]".to_owned());
    for (name, cost) in spec.costs.names() {
        line(format!("{name} = \"{}ns\"", cost.get()));
    }
    Ok(text)
}

/// Looks at this host and times it for some ten seconds; returns a machine file. Files are made in `folder`, and
/// removed, also when `stop` ends it early.
///
/// # Errors
/// None can be made there; it was stopped.
#[cfg(unix)]
pub fn probe(folder: &Path, stop: &AtomicBool) -> Result<String, LabError> {
    let hint = "name a folder of yours with 64 MiB to spare by `--dir`";
    let probed = linux::probe::probe(folder, stop).map_err(|source| match source.kind() {
        ErrorKind::Interrupted => LabError::Interrupted { finished: 0, total: 1 },
        _ if !folder.is_dir() => {
            LabError::refused(format!("there is no folder `{}`", folder.display()), hint)
        }
        why => LabError::refused(format!("no file can be made in `{}`: {why}", folder.display()), hint),
    })?;
    Ok(of_host(&probed))
}

/// This host as a file.
#[cfg(unix)]
fn of_host(probed: &Probed) -> String {
    let mut text = String::new();
    let mut line = |line: String| writeln!(text, "{line}").expect("text can be written to");
    line(format!("# This host, as `pagetide machine probe` found it under Linux {}.", probed.kernel));
    for lacking in &probed.lacking {
        line(format!("# Not found: {lacking}."));
    }
    line(format!("base = \"{SERVER}\"\nmemory = \"{}\"", probed.memory));
    line(format!("nodes = {}\ncpus = {}", probed.nodes, probed.cpus));
    if let Some(hz) = probed.hz {
        line(format!("hz = {hz}"));
    }
    if let Some(disk) = probed.disk {
        line("\n[disk]".to_owned());
        line(format!("latency = \"{}\"\nbetween = \"{}\"", time(disk.latency), time(disk.between)));
        line(format!("bandwidth = \"{}M\"", (disk.bandwidth.get() >> 20).max(1)));
        if let Some(readahead) = disk.readahead {
            line(format!("readahead = \"{readahead}\""));
        }
    }
    line("\n[costs]".to_owned());
    for (name, cost) in &probed.costs {
        line(format!("{name} = \"{}ns\"", cost.get()));
    }
    line("\n[sysctls]".to_owned());
    for (name, value) in &probed.sysctls {
        line(format!("\"{name}\" = \"{value}\""));
    }
    text
}

/// A time in the largest unit that leaves two digits or more.
fn time(time: Nanos) -> String {
    match time.get() {
        ns if ns >= 10_000_000 => format!("{}ms", ns / 1_000_000),
        ns if ns >= 10_000 => format!("{}us", ns / 1_000),
        ns => format!("{ns}ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_name_with_changes() {
        let file = of_text(
            "memory = \"64G\"\nnodes = 2\ncpus = 32\nhz = 1000\n[disk]\nclass = \"nvme\"\ncount = 2\n\
             [costs]\nsyscall = \"120ns\"\nminor_fault = \"700ns\"\n[sysctls]\n\"vm.swappiness\" = 10\n",
        );
        let file = file.unwrap();
        assert_eq!(
            file.machine,
            "x86-64+nodes=2+cpus=32+hz=1000+disk=nvme+disks=2+costs=syscall:120ns,minor_fault:700ns"
        );
        assert_eq!(file.memory.as_deref(), Some("64G"));
        assert_eq!(file.sysctls, ["vm.swappiness=10"]);
    }

    #[test]
    fn every_built_in_machine_is_the_same_machine_as_a_file() {
        for spec in sim::machines::MACHINES {
            let file = of_text(&of_machine(spec.name).unwrap()).unwrap();
            assert_eq!(MachineSpec::parse(&file.machine).unwrap(), *spec);
        }
        let changed = "vm-2cpu+disk=nvme+cpus=4+costs=syscall:1us";
        let file = of_text(&of_machine(changed).unwrap()).unwrap();
        assert_eq!(MachineSpec::parse(&file.machine), MachineSpec::parse(changed));
    }

    #[test]
    fn mistakes_are_told_where_they_stand() {
        let told = |text: &str| {
            let mistake = of_text(text).unwrap_err();
            format!("{mistake} | {}", mistake.hint.clone().unwrap_or_default())
        };
        insta::assert_snapshot!(
            [
                "base = \"pdp-11\"",
                "cpus = 0",
                "nodes = 100",
                "base = \"vm-2cpu\"\nnodes = 2",
                "hz = 42",
                "protection_keys = true",
                "base = \"guest-uml\"\nprotection_keys = 1",
                "memory = \"lots\"",
                "ram = \"64G\"",
                "[disk]\nclass = \"tape\"",
                "[disk]\nlatency = \"90us\"",
                "[disk]\nclass = \"nvme\"\nlatency = \"90us\"",
                "[disk]\nspeed = 1",
                "[costs]\nsyscal = \"1ns\"",
                "[costs]\nsyscall = \"fast\"",
                "cpus = [",
            ]
            .map(told)
            .join("\n"),
            @r#"
        line 1, column 8: unknown machine `pdp-11` | known names: `vm-2cpu`, `guest-tcg`, `guest-uml`, `x86-64`, `skylake-1s`, `haswell-2s`, `evo-ssd`, `quad-node-16g`, `s390-fcp`
        line 1, column 8: `cpus` of a machine cannot be `0` | it takes a number from the machine's nodes to 1024
        line 1, column 9: `nodes` of a machine cannot be `100` | it takes a number of memory nodes from 1 to 30, of `x86-64` alone; write it before `cpus`
        line 2, column 9: `nodes` of a machine cannot be `2` | it takes a number of memory nodes from 1 to 30, of `x86-64` alone; write it before `cpus`
        line 1, column 6: `hz` of a machine cannot be `42` | it takes ticks a second that kernels are built with: 100, 250, 300 or 1000
        line 1, column 19: `protection_keys` of a machine cannot be `true` | it takes whether the host's CPU has them, `true` or `false` (`ospke` in its /proc/cpuinfo), of `guest-uml` alone
        line 2, column 19: `protection_keys` is a whole number, not true or false | 
        line 1, column 10: `memory`: `lots` is not a size | write a whole number with an optional suffix, such as `256M`, `1016336kB` or `18G`
        line 1, column 1: unknown key `ram` of the file | known names: `base`, `help`, `memory`, `nodes`, `cpus`, `hz`, `cpu_percent`, `protection_keys`, `disk`, `costs`, `sysctls`
        line 2, column 9: `disk` of a machine cannot be `tape` | it takes `nvme`, `ssd`, `hdd`, `network`, or LATENCY:BETWEEN:BANDWIDTH:READAHEAD of a measured one, such as 92us:9us:2G:128k
        line 1, column 1: a measured disk has `latency`, `between` and `bandwidth` | `pagetide machine probe` measures them
        line 3, column 1: a disk has a `class`, or is as it was measured | leave `class` or these out
        line 2, column 1: unknown key `speed` of `disk` | known names: `class`, `latency`, `between`, `bandwidth`, `readahead`, `count`, `log`, `flush`, `gathers`, `scheduler`, `segment`, `adapter`
        line 2, column 1: cost `syscal = 1ns` cannot be so | a name of `pagetide machine show x86-64`, and a time such as `"120ns"`
        line 2, column 1: cost `syscall = fast` cannot be so | a name of `pagetide machine show x86-64`, and a time such as `"120ns"`
        line 1, column 9: unclosed array, expected `]` |
        "#
        );
    }
}
