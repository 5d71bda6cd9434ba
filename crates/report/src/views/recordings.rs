//! Recordings for programs: one JSON object, or one tidy CSV table.

use recording::Recording;
use serde_json::{Value, json};

use crate::document::number::seconds;
use crate::document::{Document, Records};
use crate::judge::View;
use crate::views::blocked::{sections_csv, sections_json};
use crate::views::latency::percentiles_json;
use crate::views::oom::oom_json;
use crate::views::pressure::pressure_json;
use crate::views::waits::{waits_csv, waits_json};

/// Adds what programs get of recordings, all of one workload.
///
/// JSON: `{"schema": 1, "workload", "runs": [{"label", "backend", "kernel", "seed", "metrics", "samples",
/// "percentiles", "vmstat", "wall_seconds", "simulated_seconds", "events", "memcg", "pressure", "phases",
/// "stalls", "waits", "sections", "oom_kills", "notes"}]}`. What is not known is `null`: the wall time of a simulated
/// run, the simulated time and events of a real one, a metric that is not a number. A simulated run has
/// `known_error`, too: `{"of", "worlds", "counts", "times", "measures": {NAME: {"worlds", "median_error",
/// "p90_error", "within_10_percent"}}, "outside"}`, errors as parts of what real kernels have, `null` where that is 0.
///
/// CSV: one row for each number, for spreadsheets and data frames:
/// `workload,label,backend,kernel,seed,kind,name,index,value`. `kind` is `metric`, `sample`, `vmstat`, `memcg:PATH`,
/// `wait:WAIT` (who, and by `index` `times`, `seconds` and where it is known `futile_seconds`), `within:PATH` (who, and
/// by `index` `times` and `seconds`; a path leads into sections, or on to a wait and whom that was on) or `oom_kill`
/// (who, and after how many seconds); `index` counts samples from 0 and is empty elsewhere; a value that is not a
/// number is empty.
pub(crate) fn with_data<'a>(
    document: Document<'a>,
    recordings: Vec<&'a Recording>,
    view: impl Fn(&Recording) -> View,
) -> Document<'a> {
    let rows = recordings.clone();
    let views: Vec<View> = recordings.iter().map(|recording| view(recording)).collect();
    document
        .json(move || {
            let workload = recordings.first().map(|recording| &recording.workload);
            let runs = recordings.iter().zip(&views).map(|(recording, view)| run(recording, view));
            let runs: Vec<Value> = runs.collect();
            json!({ "schema": 1, "workload": workload, "runs": runs })
        })
        .csv(move || runs_as_rows(&rows))
}

pub(crate) fn run(recording: &Recording, view: &View) -> Value {
    let simulated = recording.is_simulated();
    let phases: Vec<Value> = recording
        .phases_to_the_end()
        .iter()
        .map(
            |phase| json!({ "name": phase.name, "at_seconds": seconds(phase.at_ns), "vmstat": phase.vmstat }),
        )
        .collect();
    let stalls: Vec<Value> = recording
        .stalls
        .iter()
        .map(|stall| {
            json!({
                "task": stall.task,
                "reason": stall.reason,
                "count": stall.count,
                "total_seconds": seconds(stall.total_ns),
                "max_seconds": seconds(stall.max_ns),
            })
        })
        .collect();
    let mut object = json!({
        "label": recording.label,
        "backend": recording.backend,
        "kernel": recording.kernel,
        "seed": recording.seed,
        "metrics": recording.metrics,
        "samples": recording.samples,
        "percentiles": percentiles_json(recording),
        "vmstat": recording.vmstat,
        "wall_seconds": recording.wall_ns.map(seconds),
        "simulated_seconds": simulated.then(|| seconds(recording.simulated_ns)),
        "events": simulated.then_some(recording.events),
        "memcg": recording.memcg,
        "pressure": pressure_json(recording),
        "phases": phases,
        "stalls": stalls,
        "waits": waits_json(recording),
        "sections": sections_json(recording),
        "oom_kills": oom_json(recording),
        "notes": recording.notes,
    });
    if let Some(known) = view.known_of(recording) {
        object["known_error"] = known.value();
    }
    object
}

/// A number of a CSV file; empty where there is none.
pub(crate) fn number(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(String::new, |value| value.to_string())
}

/// Numbers about one thing as rows: what each is, and the number. Backend, kernel and seed are empty there.
pub(crate) fn rows_about<'a>(
    [workload, label, kind, name]: [&'a str; 4],
    numbers: impl IntoIterator<Item = (&'a str, String)>,
) -> impl Iterator<Item = Vec<String>> {
    numbers.into_iter().map(move |(what, value)| {
        [workload, label, "", "", "", kind, name, what, &value].map(str::to_owned).to_vec()
    })
}

/// The numbers of all recordings, below the names of the columns.
pub(crate) fn runs_as_rows(recordings: &[&Recording]) -> Records {
    let header = ["workload", "label", "backend", "kernel", "seed", "kind", "name", "index", "value"];
    let mut records = vec![header.map(str::to_owned).to_vec()];
    for recording in recordings {
        let Recording { workload, label, backend, kernel, seed, .. } = *recording;
        let seed = seed.to_string();
        records.extend(numbers(recording).into_iter().map(|Number { kind, name, index, value }| {
            let identity = [workload, label, backend, kernel, &seed];
            identity.into_iter().cloned().chain([kind, name.to_owned(), index, value]).collect()
        }));
    }
    records
}

struct Number<'a> {
    kind: String,
    name: &'a str,
    index: String,
    value: String,
}

fn numbers(recording: &Recording) -> Vec<Number<'_>> {
    let float = |value: f64| if value.is_finite() { value.to_string() } else { String::new() };
    let mut all = Vec::new();
    for (name, &value) in &recording.metrics {
        all.push(Number { kind: "metric".into(), name, index: String::new(), value: float(value) });
    }
    for (name, samples) in &recording.samples {
        for (index, &value) in samples.iter().enumerate() {
            all.push(Number { kind: "sample".into(), name, index: index.to_string(), value: float(value) });
        }
    }
    for (wait, task, what, value) in waits_csv(recording) {
        let (index, value) = (what.to_owned(), value.to_string());
        all.push(Number { kind: format!("wait:{wait}"), name: task, index, value });
    }
    for (path, task, what, value) in sections_csv(recording) {
        let (index, value) = (what.to_owned(), value.to_string());
        all.push(Number { kind: format!("within:{path}"), name: task, index, value });
    }
    for (index, kill) in recording.oom_kills.iter().enumerate() {
        let (index, value) = (index.to_string(), seconds(kill.at_ns).to_string());
        all.push(Number { kind: "oom_kill".into(), name: &kill.task, index, value });
    }
    let kinds = std::iter::once(("vmstat".to_owned(), &recording.vmstat))
        .chain(recording.memcg.iter().map(|(path, counters)| (format!("memcg:{path}"), counters)));
    for (kind, counters) in kinds {
        for (name, value) in counters {
            all.push(Number { kind: kind.clone(), name, index: String::new(), value: value.to_string() });
        }
    }
    all
}
