//! Which points a comparison runs beside its own, and in which tables their runs end up.

use super::*;
use crate::plan::compare;

fn request() -> Request {
    Request::new(Subject::Workload("sequential-readers".to_owned()))
}

fn labels(request: &Request, kernels: &[&str]) -> Vec<String> {
    let kernels: Vec<String> = kernels.iter().map(|&kernel| kernel.to_owned()).collect();
    let comparison = compare::plan(request, &kernels, &[], 1).unwrap();
    comparison.runs().into_iter().map(|run| run.label).collect()
}

const TWO: [&str; 2] = ["linux-2.6.32", "linux-2.6.32+pressure-wait"];

#[test]
fn each_kernel_runs_once_at_each_point_and_the_own_points_come_first() {
    let labels = labels(&request(), &TWO);
    assert_eq!(labels[..2], TWO);
    let of_first: Vec<&str> =
        labels[2..10].iter().map(|label| label.strip_prefix("linux-2.6.32 ").unwrap()).collect();
    // 16 readers with 256M are in both tables, and are the comparison's own runs.
    assert_eq!(
        of_first,
        ["readers=4", "readers=8", "mem=160M", "mem=192M", "mem=224M", "mem=288M", "mem=320M", "mem=356M"]
    );
    assert_eq!(labels.len(), 2 * 9);
    let experiment = Experiment::of("sequential-readers").unwrap();
    let comparison = compare::plan(&request(), &[], &[], 3).unwrap();
    assert_eq!(comparison.runs().len(), experiment.kernels.len() * 9 * 3, "every seed at every point");
}

#[test]
fn who_chooses_a_point_gets_that_point_only() {
    let own = |change: &dyn Fn(&mut Request)| {
        let mut request = request();
        change(&mut request);
        labels(&request, &TWO)
    };
    assert_eq!(own(&|request| request.mem = Some("256M".to_owned())), TWO);
    assert_eq!(own(&|request| request.params.push("readers=16".to_owned())), TWO);
    assert_eq!(own(&|request| request.machine = Some("vm-2cpu".to_owned())), TWO);
    let others = own(&|request| request.params.push("file=4M".to_owned()));
    assert_eq!(others.len(), 2 * 9, "what the grid does not vary goes to all points");
    let other = Request::new(Subject::Workload("hot-and-stream".to_owned()));
    assert_eq!(labels(&other, &[]).len(), 2, "a workload without a grid");
}

/// A table that showed one kernel's runs as another's would look like a result.
#[test]
fn every_run_ends_up_in_its_own_cell() {
    let kernels = TWO.map(str::to_owned);
    let comparison = compare::plan(&request(), &kernels, &[], 2).unwrap();
    let recordings: Vec<Option<Recording>> = comparison
        .runs()
        .iter()
        .map(|run| {
            let scenario = &run.scenario;
            Some(Recording::new(run.label.clone(), scenario.workload.name(), "sim", "", scenario.seed.0))
        })
        .collect();
    let grid = comparison.grid(&recordings).unwrap();
    assert_eq!(grid.recordings.len(), 2 * 9 * 2);
    for (kernel, name) in grid.kernels.iter().zip(TWO) {
        let points = grid.layout.values.iter().map(|value| format!("{name} readers={value}"));
        let mems = grid.layout.mems.iter().map(|mem| format!("{name} mem={mem}"));
        for (label, runs) in points.chain(mems).zip(kernel.by_value.iter().chain(&kernel.by_mem)) {
            let label = match label.strip_suffix(" readers=16").or(label.strip_suffix(" mem=256M")) {
                Some(own) => own.to_owned(),
                None => label,
            };
            let found: Vec<(&str, u64)> = runs.iter().map(|run| (run.label.as_str(), run.seed)).collect();
            assert_eq!(found, [(label.as_str(), 1), (label.as_str(), 2)]);
        }
    }
    let groups = comparison.groups(&recordings);
    assert_eq!(groups.len(), 2, "the comparison below the tables is that of the own point");
}
