//! Stories about figures that stand in more than one place of the same output.

use std::collections::BTreeMap;

use pagetide_lab::{Control, PlannedRun, Recording, Request, Subject, run_all};
use recording::is_gauge;

fn run(workload: &str, kernel: &str, mem: &str, params: &[&str]) -> Recording {
    let request = Request {
        kernel: Some(kernel.to_owned()),
        mem: Some(mem.to_owned()),
        params: params.iter().map(|&pair| pair.to_owned()).collect(),
        ..Request::new(Subject::Workload(workload.to_owned()))
    };
    let plan = [PlannedRun { label: kernel.to_owned(), scenario: request.resolve().unwrap() }];
    let batch = run_all(&plan, 1, &Control::default(), |_, _| Ok(())).unwrap();
    batch.into_result().unwrap().remove(0)
}

fn both_workloads() -> [Recording; 2] {
    [
        run("hot-and-stream", "linux-6.12", "256M", &["hot=25M", "stream=1G"]),
        run("huge-faults", "linux-6.12", "256M", &["advice=madvise"]),
    ]
}

/// `extfrag_events_all` was 34 among the metrics and 35 in the total: one of them counted what
/// happened before the workload began.
#[test]
fn a_metric_and_a_counter_of_one_name_are_one_number() {
    for recording in both_workloads() {
        let mut compared = 0;
        for (name, &metric) in &recording.metrics {
            let counter = match name.as_str() {
                "fragment_stalls" => "fragment_stall",
                name => name,
            };
            if let Some(&total) = recording.vmstat.get(counter) {
                assert_eq!(metric, total as f64, "{name} of {}", recording.workload);
                compared += 1;
            }
        }
        assert!(compared >= 5 || recording.workload != "huge-faults", "{compared} names");
    }
    let stalled = run(
        "huge-faults",
        "linux-4.20-rc1+nofragment+watermark-boost-v2+fragment-stall",
        "256M",
        &["advice=madvise"],
    );
    let samples = &stalled.samples["fragment_stall_us"];
    assert!(!samples.is_empty());
    assert_eq!(stalled.metrics["fragment_stalls"], samples.len() as f64);
    let seconds = stalled.metrics["fragment_stall_seconds"];
    assert!((samples.iter().sum::<f64>() / 1e6 - seconds).abs() < 1e-9, "{seconds} s");
}

/// What came after the last phase was in no row of the table.
#[test]
fn the_phases_of_a_run_add_up_to_its_total_for_every_counter() {
    for recording in both_workloads() {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for phase in recording.phases_to_the_end() {
            phase.vmstat.into_iter().for_each(|(name, count)| *sums.entry(name).or_default() += count);
        }
        for (name, &total) in recording.vmstat.iter().filter(|(name, _)| !is_gauge(name)) {
            assert_eq!(sums.get(name), Some(&total), "{name} of {}", recording.workload);
        }
        let text =
            report::views::run(&recording, None, &report::View::default()).render(report::Format::Text, 200);
        assert_columns_add_up(&text, &recording);
    }
}

/// The same for the table as it is printed: each of its columns, and the time that each row took.
fn assert_columns_add_up(text: &str, recording: &Recording) {
    let columns = [
        ("kswapd scanned", "pgscan_kswapd"),
        ("direct scanned", "pgscan_direct"),
        ("refaults", "workingset_refault"),
        ("alloc stalls", "allocstall"),
        ("slab scanned", "slabs_scanned"),
    ];
    let mut lines = text.lines().skip_while(|line| !line.starts_with(" phase "));
    let heading = lines.next().unwrap();
    let rows: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    // `hot-and-stream` ends with its last phase, the readers of `huge-faults` go on for a while.
    let goes_on = usize::from(recording.workload == "huge-faults");
    assert_eq!(rows.len(), recording.phases.len() + goes_on, "{text}");
    let mut seen = 0;
    for (name, counter) in columns {
        let Some(at) = heading.find(name) else { continue };
        let cell = |row: &&str| {
            let digits = row[..at + name.len()].rsplit(' ').next().unwrap();
            digits.parse::<f64>().unwrap_or_else(|error| panic!("`{digits}` under {name}: {error}"))
        };
        // `pgscan_direct_throttle` counts waits, and is no part of `pgscan_direct`.
        let is_part = |key: &str| key.starts_with(counter) && !key.ends_with("_throttle");
        let total: u64 =
            recording.vmstat.iter().filter(|(key, _)| is_part(key)).map(|(_, &count)| count).sum();
        assert_eq!(rows.iter().map(cell).sum::<f64>(), total as f64, "{name}:\n{text}");
        seen += 1;
    }
    assert!(seen >= 2, "{heading}");
    let last = recording.series.times_ns().last();
    assert_eq!(last, recording.duration_ns(), "the last reading is that of the run's end");
}

#[test]
fn the_catalog_knows_the_phases_and_the_document_the_metrics_of_every_workload() {
    let document = include_str!("../../../../docs/workloads.md");
    for recording in both_workloads() {
        let spec = workload::WorkloadSpec::find(&recording.workload).unwrap();
        let phases: Vec<&str> = recording.phases.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(phases, spec.phases);
        for name in recording.metrics.keys().chain(recording.samples.keys()) {
            assert!(
                document.contains(&format!("`{name}`")),
                "{name} of {} is not explained",
                recording.workload
            );
        }
    }
}
