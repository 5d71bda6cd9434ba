//! A scenario back to the command that runs it. Next: `request.rs` for the other way.

use workload::scenario::{SEED_DEFAULT, interval_text};
use workload::small_files::SOURCE_MEMORY;
use workload::{Backend, Scenario};

use crate::resolve::defaults::{defaults, is_full};
use crate::resolve::setting::machine_spec;
use crate::resolve::texts::shell_quoted;

/// [`command`] as a recording keeps it: the same wherever the workload's file lies.
pub(crate) fn kept_command(scenario: &Scenario) -> String {
    command(&Scenario { file: None, ..scenario.clone() })
}

/// The command that runs `scenario`, with all that differs from the workload's defaults.
pub fn command(scenario: &Scenario) -> String {
    let spec = scenario.workload.spec();
    let subject = match &scenario.file {
        Some(file) => shell_quoted(&file.display().to_string()),
        // Where its file lies nobody knows; it is called after the workload as a rule.
        None if spec.file_text().is_some() => format!("{}.toml", spec.name),
        None => spec.name.to_owned(),
    };
    let mut command = format!("pagetide run {subject}");
    let mut add = |option: &str, value: &str| {
        command.push_str(&format!(" --{option} {}", shell_quoted(value)));
    };
    if let Some(kernel) = &scenario.kernel {
        add("kernel", &kernel.to_string());
    }
    let defaults = defaults(spec, scenario.backend.clone());
    let defaults = defaults.expect("the workload was made from it");
    let mut implied = defaults.mem;
    if let Some(machine) = scenario.machine.as_deref().filter(|own| Some(*own) != defaults.machine.as_deref())
    {
        add("machine", machine);
        implied = Some(machine_spec(machine).default_mem);
    }
    if is_full(scenario) {
        implied = Some(SOURCE_MEMORY);
    }
    if let Some(mem) = scenario.mem.filter(|_| scenario.mem != implied) {
        add("mem", &mem.to_string());
    }
    if scenario.swap != defaults.swap {
        add("swap", &scenario.swap.clone().unwrap_or_default().to_string());
    }
    let defaults = defaults.workload.params();
    for (name, value) in scenario.workload.params().iter() {
        if defaults.get(name) != Some(value) {
            add("param", &format!("{name}={value}"));
        }
    }
    for (name, value) in &scenario.sysctls {
        add("set", &format!("{name}={value}"));
    }
    if scenario.backend != Backend::Sim {
        add("on", &scenario.backend.to_string());
    }
    if let Some(guest) = &scenario.guest {
        let default = scenario.backend.default_guest();
        if guest.cpus != default.cpus {
            add("vm-cpus", &guest.cpus.to_string());
        }
        if guest.numa_nodes != default.numa_nodes {
            add("vm-nodes", &guest.numa_nodes.to_string());
        }
        if guest.lru_gen != default.lru_gen {
            add("lru-gen", &guest.lru_gen.to_string());
        }
        if let Some(mib) = guest.xfs_log {
            add("vm-xfs-log", &mib.to_string());
        }
    }
    if scenario.seed != SEED_DEFAULT {
        add("seed", &scenario.seed.0.to_string());
    }
    if let Some(interval) = scenario.interval {
        add("interval", &interval_text(interval));
    }
    command
}
