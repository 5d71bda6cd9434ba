//! Which worlds are like a run, and why none is.
//!
//! A run is like those of its kernel, workload and scope where all that it has could have been drawn. Else they are
//! the nearest there are, and what could not is said. Left out: worlds that are near it in more than that; there are
//! too few of them to tell apart.

use std::collections::BTreeMap;

use recording::Recording;
use recording::chunk::FactKind;
use report::{Known, KnownOff};
use units::Bytes;
use workload::scenario::{Scenario, UML_MACHINE};
use workload::{ParamValue, Params};

use super::cost::{COST_MAX, cost};
use super::ranges::{self, MEMORY, Range};
use super::{ALL, COUNTS, KnownError, POOL, TIMES, is_made_from, known_errors_of};
use crate::name::names::Names;

/// Worlds of a workload from which on they stand for it.
const ENOUGH: usize = 5;
/// What no world has, of what is not said by a range.
const TRACE: &str = "a trace";

/// What is known of runs like this one; none of what the model did not run.
pub fn known_of(recording: &Recording) -> Option<Known> {
    known_in(&known_errors_of(&[&recording.kernel]), recording)
}

/// What is known of a trace below limits.
pub(crate) fn known_of_trace(kernel: &str) -> Known {
    let asked = Asked { kernel, workload: ALL, scope: "limit", outside: vec![TRACE.to_owned()] };
    asked.in_table(&known_errors_of(&[kernel]))
}

/// The same of many: the table is read once.
pub(crate) fn known_of_all<'a>(recordings: impl IntoIterator<Item = &'a Recording>) -> Vec<(String, Known)> {
    let recordings: Vec<&Recording> = recordings.into_iter().collect();
    let mut kernels: Vec<&str> = recordings.iter().map(|recording| recording.kernel.as_str()).collect();
    kernels.sort_unstable();
    kernels.dedup();
    let table = known_errors_of(&kernels);
    let of = |recording: &Recording| Some((recording.scenario_toml.clone(), known_in(&table, recording)?));
    recordings.into_iter().filter_map(of).collect()
}

fn known_in(table: &[KnownError], recording: &Recording) -> Option<Known> {
    let is_replay = recording.workload.starts_with("replay ");
    if !recording.is_simulated() || !recording.kernel.starts_with("linux-") {
        return None;
    }
    let scenario = Scenario::read(&recording.scenario_toml, &Names::default().vocabulary()).ok();
    let asked = match &scenario {
        Some(scenario) => Asked {
            kernel: &recording.kernel,
            workload: &recording.workload,
            scope: scope(scenario),
            outside: outside(scenario),
        },
        None if is_replay => Asked {
            kernel: &recording.kernel,
            workload: ALL,
            scope: if is_limited(&recording.scenario_toml) { "limit" } else { "global" },
            outside: vec![TRACE.to_owned()],
        },
        None => return None,
    };
    Some(asked.in_table(table))
}

/// Whether a replay has a limit.
fn is_limited(scenario_toml: &str) -> bool {
    scenario_toml.lines().any(|line| line.starts_with("limit = "))
}

/// What is asked about.
pub(crate) struct Asked<'a> {
    pub(crate) kernel: &'a str,
    pub(crate) workload: &'a str,
    pub(crate) scope: &'static str,
    pub(crate) outside: Vec<String>,
}

impl Asked<'_> {
    /// Its own rows, or those nearest to it.
    pub(crate) fn in_table(mut self, table: &[KnownError]) -> Known {
        let kernels = table.iter().map(|row| row.kernel.as_str());
        let kernels = kernels.filter(|kernel| is_made_from(self.kernel, kernel));
        let Some(kernel) = kernels.max_by_key(|kernel| kernel.len()) else {
            return Known { of: self.kernel.to_owned(), outside: self.outside, ..Known::default() };
        };
        if kernel != self.kernel {
            self.outside.insert(0, format!("kernel {}", self.kernel));
        }
        let near = |row: &&KnownError| row.kernel == kernel && row.scope == self.scope;
        let pool = |workload: &str, counter: &str| {
            let is =
                |row: &&KnownError| row.kind == POOL && row.workload == workload && row.counter == counter;
            table.iter().filter(near).find(is)
        };
        // A few worlds say more of themselves than of others.
        let own = pool(self.workload, COUNTS).or(pool(self.workload, TIMES));
        let is_own = own.is_some_and(|row| row.worlds >= ENOUGH);
        let workload = if is_own { self.workload } else { ALL };
        let (counts, times) = (pool(workload, COUNTS), pool(workload, TIMES));
        let kinds = [FactKind::Metric.name(), FactKind::Vmstat.name()];
        let own = |row: &&KnownError| row.workload == workload && kinds.contains(&row.kind.as_str());
        let measures: BTreeMap<String, KnownOff> =
            table.iter().filter(near).filter(own).map(|row| (row.counter.clone(), off(row))).collect();
        let room = if self.scope == "limit" { "under a limit" } else { "of the whole machine" };
        let what = if workload == ALL { "all workloads" } else { workload };
        Known {
            of: format!("{kernel}, {what}, {room}"),
            is_own,
            worlds: counts.or(times).map_or(0, |row| row.worlds),
            counts: counts.map(off),
            times: times.map(off),
            measures,
            outside: self.outside,
        }
    }
}

fn off(row: &KnownError) -> KnownOff {
    let [spread, two, ten, ..] = row.near;
    let within_10 = (spread + two + ten) as f64 / row.near.iter().sum::<usize>() as f64;
    KnownOff { worlds: row.worlds, median: row.median, p90: row.p90, within_10 }
}

/// `limit` where a cgroup may have less than there is.
pub(crate) fn scope(scenario: &Scenario) -> &'static str {
    let params = scenario.workload.params();
    let has_group = params.get("topology") != Some(ParamValue::Choice("global"));
    let size = |name: &str| match params.get(name) {
        Some(ParamValue::Size(size)) if has_group => Some(size.get()),
        _ => None,
    };
    // Of two containers both have one, and room beside each other, or they are below one.
    let alone = params.choice("b_does") == Some("none");
    let own = size("a_max").and_then(|a| Some(a + if alone { 0 } else { size("b_max")? }));
    let limit = size("limit").into_iter().chain(own).min();
    let is_less = |limit: u64| scenario.mem.is_none_or(|mem| limit < mem.get());
    if limit.is_some_and(is_less) { "limit" } else { "global" }
}

/// What of it no world can have, a phrase each.
fn outside(scenario: &Scenario) -> Vec<String> {
    let mut reasons = Vec::new();
    let machine = scenario.machine.as_deref().unwrap_or(UML_MACHINE);
    // Worlds run on guests of some host, as fast as they are there.
    let (name, changes) = machine.split_once('+').unwrap_or((machine, "costs="));
    let is_of_a_host = |change: &str| change.starts_with("costs=") || change.starts_with("protection_keys=");
    if name != UML_MACHINE || !changes.split('+').all(is_of_a_host) {
        reasons.push(format!("machine {machine}"));
    }
    let mem = scenario.mem.unwrap_or(Bytes(MEMORY.1));
    if !(MEMORY.0..=MEMORY.1).contains(&mem.get()) {
        reasons.push(format!("{mem} of memory"));
    }
    let (workload, params) = (scenario.workload.name(), scenario.workload.params());
    if scenario.workload.spec().file_text().is_some() {
        reasons.push("a workload of a file".to_owned());
        return reasons;
    }
    if workload == workload::captured::NAME {
        reasons.push(TRACE.to_owned());
        return reasons;
    }
    reasons.extend(
        params
            .iter()
            .filter(|&(name, value)| !is_drawn(workload, name, value, params, mem))
            .map(|(name, value)| format!("{name}={value}")),
    );
    if reasons.is_empty() && cost(workload, params, mem) > COST_MAX {
        reasons.push("it does more than a world may".to_owned());
    }
    let is_out = |(name, value): &(&String, &String)| {
        let range = ranges::SYSCTLS.iter().find(|(known, _)| known == name);
        let drawn = match (range, value.parse::<u64>()) {
            (Some((_, Range::Count(least, most))), Ok(value)) => (*least..=*most).contains(&value),
            _ => false,
        };
        !drawn
    };
    let set = scenario.sysctls.iter().filter(is_out);
    reasons.extend(set.map(|(name, value)| format!("{name}={value}")));
    reasons
}

/// Whether a world can have this parameter at this value.
fn is_drawn(workload: &str, name: &str, value: ParamValue, params: &Params, mem: Bytes) -> bool {
    let within = |value: u64, least: u64, most: u64| (least..=most).contains(&value);
    match (ranges::of_param(workload, name), value) {
        // All choices are drawn.
        (None, _) => true,
        (Some(Range::Words(words)), value) => words.contains(&value.to_string().as_str()),
        // None is drawn but the default.
        (Some(Range::Never(_)), value) => {
            let spec = workload::WorkloadSpec::find(workload).ok();
            spec.is_none_or(|spec| spec.defaults().get(name) == Some(value))
        }
        (Some(Range::Count(least, most)), ParamValue::Count(count)) => within(count, least, most),
        (Some(Range::Size(least, most)), ParamValue::Size(size)) => {
            within(size.get(), least.get().min(1), most.get())
        }
        // Halving makes them as small as you like.
        (Some(Range::OfMemory(_, most)), ParamValue::Size(size)) => {
            within(size.get(), 0, mem.get() / 1000 * most)
        }
        // A limit of nothing is none.
        _ => params.get(name).is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::read;

    const TABLE: &str =
        "kernel,workload,scope,kind,counter,worlds,spread,within_2,within_10,within_25,beyond,median,p90
linux-6.12,all,global,pool,counts,9,9,0,0,0,0,0.1,0.5
linux-6.12,all,limit,pool,counts,8,8,0,0,0,0,0.2,inf
linux-6.12,anon-and-file,limit,pool,counts,2,2,0,0,0,0,0,0
linux-6.12,hot-and-stream,limit,metric,hot_pages_cached,6,6,0,0,0,0,0,0.01
linux-6.12,hot-and-stream,limit,pool,counts,6,6,0,0,0,0,0.004,0.03
linux-6.12,hot-and-stream,limit,pool,times,6,0,0,0,0,6,0.6,0.9
linux-6.12+lru-gen,all,limit,pool,counts,1,1,0,0,0,0,0,0
";

    fn known(kernel: &str, workload: &str, scope: &'static str) -> Known {
        Asked { kernel, workload, scope, outside: Vec::new() }.in_table(&read(TABLE).unwrap())
    }

    #[test]
    fn a_run_has_the_rows_of_its_own_workload_or_of_all() {
        let own = known("linux-6.12", "hot-and-stream", "limit");
        assert_eq!((own.worlds, own.counts.unwrap().median, own.times.unwrap().p90), (6, 0.004, 0.9));
        assert_eq!(own.measures["hot_pages_cached"].p90, 0.01);
        assert!(own.outside.is_empty());
        let all = known("linux-6.12", "hot-and-stream", "global");
        assert_eq!((all.worlds, all.is_own, all.measures.len()), (9, false, 0));
        assert_eq!(known("linux-6.12", "anon-and-file", "limit").worlds, 8, "two of its own are few");
    }

    /// It once had no cost, and what could have been a world otherwise ended the command.
    #[test]
    fn a_captured_program_on_the_machine_of_worlds_is_a_trace() {
        let text = "kernel = \"linux-6.12\"\nmachine = \"guest-uml\"\nmem = \"512M\"\nworkload = \"program\"\n\
                    params.trace = \"app.trace\"\n";
        let scenario = Scenario::read(text, &Names::default().vocabulary()).unwrap();
        assert_eq!(outside(&scenario), ["a trace"]);
    }

    #[test]
    fn a_kernel_that_nobody_ran_has_those_that_it_is_made_from_or_none() {
        let made = known("linux-6.12-eevdf", "hot-and-stream", "limit");
        assert_eq!((made.worlds, made.outside), (6, vec!["kernel linux-6.12-eevdf".to_owned()]));
        assert_eq!(known("linux-6.12+lru-gen", "hot-and-stream", "limit").worlds, 1);
        assert_eq!(known("linux-6.1", "hot-and-stream", "limit").worlds, 0);
        assert_eq!(known("linux-6.1", "hot-and-stream", "limit").of, "linux-6.1");
    }
}
