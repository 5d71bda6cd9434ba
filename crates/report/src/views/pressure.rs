//! Pressure on memory: for how much of a run tasks were stalled because memory was short.
//!
//! It is what the counters `psi_memory_*` of the machine and of each cgroup say, see `pagetide list counters`. Left
//! out: averages over longer than 10 s, and how it went over time, which the series of a recording tell.

use std::collections::BTreeMap;

use recording::Recording;
use serde_json::{Value, json};
use stats::describe::mean;

use crate::document::number::duration;
use crate::judge::Group;

/// Cgroups in the line of a run at most.
const CGROUPS_MAX: usize = 4;

/// One kind of stall of one group of tasks.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stalled {
    total_us: u64,
    /// Of the run, in percent; `None` where nobody knows how long that was.
    percent: Option<f64>,
    /// The highest `avg10` that was sampled, in percent: it decays over 10 s, so a short run does not fill it.
    most: Option<f64>,
}

/// Some and full.
type Pressure = [Stalled; 2];

const KINDS: [&str; 2] = ["some", "full"];

/// That of the machine; `None` where it was not told, as by a kernel without it.
fn of_machine(recording: &Recording) -> Option<Pressure> {
    of(recording, &recording.vmstat, "")
}

/// That of each cgroup that has been told of, by path.
fn of_cgroups(recording: &Recording) -> BTreeMap<&str, Pressure> {
    let with = |(path, counters): (&'_ String, &'_ BTreeMap<String, u64>)| {
        of(recording, counters, &format!("cg_{}_", path.replace('/', "_")))
    };
    let all = recording.memcg.iter().map(|entry| (entry.0.as_str(), with(entry)));
    all.filter_map(|(path, pressure)| Some((path, pressure?))).collect()
}

fn of(recording: &Recording, counters: &BTreeMap<String, u64>, prefix: &str) -> Option<Pressure> {
    let kind = |kind: &str| {
        let total_us = *counters.get(&format!("psi_memory_{kind}_total_us"))?;
        let whole = recording.duration_ns().filter(|&ns| ns > 0);
        let percent = whole.map(|ns| 100.0 * total_us as f64 * 1000.0 / ns as f64);
        let averages = recording.series.column(&format!("{prefix}psi_memory_{kind}_avg10"));
        let most = averages.into_iter().flatten().max().map(|hundredths| hundredths as f64 / 100.0);
        Some(Stalled { total_us, percent, most })
    };
    Some([kind(KINDS[0])?, kind(KINDS[1])?])
}

/// The pressure of a run in a sentence; nothing where there was none.
pub(crate) fn pressure_line(recording: &Recording) -> Option<String> {
    let [some, full] = of_machine(recording).filter(|[some, _]| some.total_us > 0)?;
    let most = some.most.zip(full.most).filter(|(some, _)| *some > 0.0);
    let most = most.map_or_else(String::new, |(some, full)| {
        format!("; the kernel's average over 10 s (avg10) at most {} and {}", percent(some), percent(full))
    });
    let mut line = format!(
        "pressure on memory: some task stalled for {}, all that had work for {}{most}",
        share(some),
        share(full)
    );
    let mut cgroups: Vec<(&str, Pressure)> = of_cgroups(recording)
        .into_iter()
        .filter(|(path, [some, _])| !path.is_empty() && some.total_us > 0)
        .collect();
    cgroups.sort_by_key(|&(path, [some, _])| (std::cmp::Reverse(some.total_us), path));
    let more = cgroups.len().saturating_sub(CGROUPS_MAX);
    let told = cgroups
        .iter()
        .take(CGROUPS_MAX)
        .map(|&(path, [some, full])| format!("{path} {} and {}", share_only(some), share_only(full)));
    let told: Vec<String> = told.chain((more > 0).then(|| format!("{more} more"))).collect();
    if !told.is_empty() {
        line += &format!("; of cgroups {}", told.join(", "));
    }
    Some(line)
}

/// The pressure of each group in a line, means over its runs; nothing where nobody told or there was none.
pub(crate) fn pressure_of_groups(groups: &[Group<'_>]) -> Option<String> {
    let percents = |group: &Group<'_>| -> Option<[f64; 2]> {
        let runs: Vec<Pressure> = group.recordings.iter().filter_map(|run| of_machine(run)).collect();
        let of = |kind: usize| {
            mean(&runs.iter().filter_map(|pressure| pressure[kind].percent).collect::<Vec<_>>())
        };
        Some([of(0)?, of(1)?])
    };
    let told: Vec<(&str, Option<[f64; 2]>)> =
        groups.iter().map(|group| (group.label.as_str(), percents(group))).collect();
    if !told.iter().any(|(_, percents)| percents.is_some_and(|[some, _]| some > 0.0)) {
        return None;
    }
    let each = told.into_iter().map(|(label, percents)| {
        let told = percents
            .map_or("not told".to_owned(), |[some, full]| format!("{} and {}", percent(some), percent(full)));
        format!("{label}: {told}")
    });
    Some(format!(
        "pressure on memory, some and all tasks stalled, of the run: {}",
        each.collect::<Vec<_>>().join("; ")
    ))
}

fn share(stalled: Stalled) -> String {
    let time = duration(stalled.total_us as f64 * 1000.0);
    stalled.percent.map_or(time.clone(), |share| format!("{} ({time})", percent(share)))
}

fn share_only(stalled: Stalled) -> String {
    stalled.percent.map_or_else(|| duration(stalled.total_us as f64 * 1000.0), percent)
}

fn percent(percent: f64) -> String {
    match percent {
        0.0 => "0 %".to_owned(),
        ..0.1 => "<0.1 %".to_owned(),
        _ => format!("{percent:.1} %"),
    }
}

/// `{"some": {"total_seconds", "percent", "avg10_max"}, "full": ..., "cgroups": {PATH: {"some", "full"}}}`,
/// `null` where it was not told. A cgroup's are since it was made.
pub(crate) fn pressure_json(recording: &Recording) -> Value {
    let kind = |stalled: Stalled| {
        json!({
            "total_seconds": stalled.total_us as f64 / 1e6,
            "percent": stalled.percent,
            "avg10_max": stalled.most,
        })
    };
    let both = |[some, full]: Pressure| json!({ "some": kind(some), "full": kind(full) });
    let Some(machine) = of_machine(recording) else { return Value::Null };
    let mut object = both(machine);
    let cgroups = of_cgroups(recording).into_iter().map(|(path, pressure)| (path.to_owned(), both(pressure)));
    object["cgroups"] = Value::Object(cgroups.collect());
    object
}

#[cfg(test)]
mod tests {
    use recording::Series;

    use super::*;
    use crate::document::Section;
    use crate::tests::text_of;

    fn told(line: Option<String>) -> String {
        text_of(Section::untitled().lines_of(line), 80)
    }

    fn recording() -> Recording {
        let mut run = Recording::new("linux-6.12", "hot-and-stream", "sim", "linux-6.12", 1);
        run.simulated_ns = 10_000_000_000;
        let counters = |some: u64, full: u64| {
            let names = KINDS.map(|kind| format!("psi_memory_{kind}_total_us"));
            names.into_iter().zip([some, full]).collect::<BTreeMap<String, u64>>()
        };
        run.vmstat = counters(1_250_000, 4_000);
        run.memcg = [
            ("A".to_owned(), counters(0, 0)),
            ("B".to_owned(), counters(1_200_000, 1_100_000)),
            ("C/D".to_owned(), counters(30_000, 30_000)),
        ]
        .into();
        let columns = KINDS.map(|kind| format!("psi_memory_{kind}_avg10")).to_vec();
        run.series = Series::new(columns, vec![(0, vec![0, 0]), (5, vec![2_050, 7]), (9, vec![900, 3])]);
        run
    }

    #[test]
    fn a_line_says_how_much_of_the_run_was_lost() {
        insta::assert_snapshot!(told(pressure_line(&recording())), @"
        pressure on memory: some task stalled for 12.5 % (1.25 s), all that had work
          for <0.1 % (4 ms); the kernel's average over 10 s (avg10) at most 20.5 % and
          <0.1 %; of cgroups B 12.0 % and 11.0 %, C/D 0.3 % and 0.3 %
        ");
        let mut calm = recording();
        calm.vmstat.values_mut().for_each(|total| *total = 0);
        assert_eq!(pressure_line(&calm), None);
        calm.vmstat.clear();
        assert_eq!((pressure_line(&calm), pressure_json(&calm)), (None, Value::Null));
    }

    #[test]
    fn a_comparison_puts_the_pressure_of_groups_beside_each_other() {
        let (before, mut after) = (recording(), recording());
        after.vmstat.values_mut().for_each(|total| *total /= 10);
        let mut old = recording();
        old.vmstat.clear();
        let group = |label: &str, run| Group {
            label: label.to_owned(),
            command: String::new(),
            recordings: vec![run],
        };
        let groups = [group("before", &before), group("after", &after), group("recorded earlier", &old)];
        insta::assert_snapshot!(told(pressure_of_groups(&groups)), @"
        pressure on memory, some and all tasks stalled, of the run: before: 12.5 % and
          <0.1 %; after: 1.2 % and <0.1 %; recorded earlier: not told
        ");
        assert_eq!(pressure_of_groups(&groups[2..]), None);
    }

    #[test]
    fn programs_get_seconds_and_percent_of_every_group() {
        let object = pressure_json(&recording());
        assert_eq!(object["some"], json!({ "total_seconds": 1.25, "percent": 12.5, "avg10_max": 20.5 }));
        assert_eq!(object["cgroups"]["C/D"]["full"]["percent"], json!(0.3));
        assert_eq!(object["cgroups"]["B"]["some"]["avg10_max"], Value::Null, "nobody sampled it");
    }
}
