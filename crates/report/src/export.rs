//! Recordings for programs: one JSON object, or one tidy CSV table.

use recording::Recording;
use serde_json::{Value, json};

use crate::{ReportError, common_workload};

/// The object that `--format json` prints, with a newline at its end.
///
/// `{"schema": 1, "workload", "runs": [{"label", "backend", "kernel", "seed", "metrics", "samples",
/// "vmstat", "wall_seconds", "simulated_seconds", "events", "memcg", "phases", "stalls", "notes"}]}`.
/// What is not known is `null`: the wall time of a simulated run, the simulated time and events of a
/// real one, a metric that is not a number.
///
/// # Errors
/// No recordings, or recordings of different workloads.
pub fn to_json(recordings: &[&Recording]) -> Result<String, ReportError> {
    let workload = common_workload(recordings.iter().copied())?;
    let runs: Vec<Value> = recordings.iter().map(|recording| run(recording)).collect();
    let object = json!({ "schema": 1, "workload": workload, "runs": runs });
    Ok(format!("{object:#}\n"))
}

pub(crate) fn run(recording: &Recording) -> Value {
    let simulated = recording.is_simulated();
    let phases: Vec<Value> = recording
        .phases
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
    json!({
        "label": recording.label,
        "backend": recording.backend,
        "kernel": recording.kernel,
        "seed": recording.seed,
        "metrics": recording.metrics,
        "samples": recording.samples,
        "vmstat": recording.vmstat,
        "wall_seconds": recording.wall_ns.map(seconds),
        "simulated_seconds": simulated.then(|| seconds(recording.simulated_ns)),
        "events": simulated.then_some(recording.events),
        "memcg": recording.memcg,
        "phases": phases,
        "stalls": stalls,
        "notes": recording.notes,
    })
}

pub(crate) fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// One row for each number, for spreadsheets and data frames:
/// `workload,label,backend,kernel,seed,kind,name,index,value`.
///
/// `kind` is `metric`, `sample`, `vmstat` or `memcg:PATH`; `index` counts samples from 0 and is
/// empty elsewhere; a value that is not a number is empty.
///
/// # Errors
/// No recordings, or recordings of different workloads.
pub fn to_csv(recordings: &[&Recording]) -> Result<String, ReportError> {
    common_workload(recordings.iter().copied())?;
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = ["workload", "label", "backend", "kernel", "seed", "kind", "name", "index", "value"];
    writer.write_record(header).expect("memory takes every write");
    for recording in recordings {
        let seed = recording.seed.to_string();
        let identity = [&recording.workload, &recording.label, &recording.backend, &recording.kernel, &seed];
        for number in numbers(recording) {
            let cells: [&str; 4] = [&number.kind, number.name, &number.index, &number.value];
            writer
                .write_record(identity.iter().map(|text| text.as_str()).chain(cells))
                .expect("memory takes every write");
        }
    }
    let bytes = writer.into_inner().expect("memory takes every write");
    Ok(String::from_utf8(bytes).expect("made of text"))
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
    let kinds = std::iter::once(("vmstat".to_owned(), &recording.vmstat))
        .chain(recording.memcg.iter().map(|(path, counters)| (format!("memcg:{path}"), counters)));
    for (kind, counters) in kinds {
        for (name, value) in counters {
            all.push(Number { kind: kind.clone(), name, index: String::new(), value: value.to_string() });
        }
    }
    all
}
