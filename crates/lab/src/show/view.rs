//! What a report shows first: the metrics that the workload of the recordings names.
//!
//! `pagetide-report` knows no workloads, so their headlines are handed to it here. Left out: how they
//! are written, see `pagetide-report`.

use crate::known::likeness::known_of_all;
use crate::name::written::spec_of;
use recording::Recording;
use report::{Direction, Headline, View};
use workload::metric::{Better, MetricSpec};
use workload::{WorkloadSpec, replay};

/// How `recordings`, all of one workload, are shown: `all` of them, or what matters most.
pub fn view<'a>(
    recordings: impl IntoIterator<Item = &'a Recording>,
    all: bool,
    warnings: Vec<String>,
) -> View {
    let mut recordings = recordings.into_iter().peekable();
    let headlines = recordings.peek().map_or(Vec::new(), |recording| headlines_of(recording));
    View { all, headlines, warnings, limits: Vec::new(), known: known_of_all(recordings) }
}

/// The headlines of a recording's workload, be it from a file, which the recording has in it.
pub fn headlines_of(recording: &Recording) -> Vec<Headline> {
    match spec_of(recording) {
        Some(spec) => spec.metrics.iter().map(headline).collect(),
        None => headlines(&recording.workload),
    }
}

/// The headlines of `workload`, most telling first; none of what is no workload of ours.
pub fn headlines(workload: &str) -> Vec<Headline> {
    match WorkloadSpec::known(workload) {
        Some(spec) => spec.metrics.iter().map(headline).collect(),
        // A trace has its file's name in the workload's, and is replayed on machines or on policies.
        None if workload.starts_with("replay ") => {
            replay::METRICS.iter().chain(policy::METRICS).map(headline).collect()
        }
        None => Vec::new(),
    }
}

fn headline(spec: &MetricSpec) -> Headline {
    let MetricSpec { name, unit, better, of, resolution, help } = *spec;
    let direction = match better {
        Better::More => Direction::Higher,
        Better::Less => Direction::Lower,
        Better::Neither => Direction::Neutral,
    };
    Headline { name, unit, direction, of, resolution, help }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::plan::replay::{ReplayControl, ReplayRequest};
    use crate::resolve::request::{Request, Subject};
    use crate::run::simulate::simulate;

    /// Names of metrics and samples that a few small runs leave.
    fn left_by(workload: &str, kernels: &[&str], mem: &str, params: &[&str]) -> BTreeSet<String> {
        let run = |kernel: &&str| {
            let request = Request {
                kernel: Some((*kernel).to_owned()),
                mem: Some(mem.to_owned()),
                params: params.iter().map(|&pair| pair.to_owned()).collect(),
                ..Request::new(Subject::Workload(workload.to_owned()))
            };
            simulate(&request.resolve().unwrap(), "run", &Arc::new(AtomicBool::new(false)), |_| {}).unwrap()
        };
        names(&kernels.iter().map(run).collect::<Vec<_>>())
    }

    fn names(recordings: &[Recording]) -> BTreeSet<String> {
        recordings.iter().flat_map(|r| r.metrics.keys().chain(r.samples.keys())).cloned().collect()
    }

    fn check(specs: &[MetricSpec], left: &BTreeSet<String>) {
        assert!(!specs.is_empty(), "no headline");
        for spec in specs {
            assert!(left.contains(spec.name), "no run leaves `{}`, only {left:?}", spec.name);
            assert!(spec.of.is_none_or(|whole| left.contains(whole)), "`{}`", spec.name);
            assert!(!spec.help.is_empty() && !spec.help.ends_with('.'), "`{}`", spec.name);
        }
    }

    #[test]
    fn every_headline_of_a_workload_is_what_its_runs_leave() {
        for spec in workload::catalog() {
            let left = match spec.name {
                "anon-and-file" => left_by(
                    spec.name,
                    &["linux-6.1"],
                    "256M",
                    &["hot=4M", "cold=8M", "file=16M", "every=4M", "limit=32M"],
                ),
                "containers" => left_by(spec.name, &["linux-6.12"], "128M", &["b_file=16M", "b_bytes=16M"]),
                "mapped-and-stream" => left_by(
                    spec.name,
                    &["linux-6.1"],
                    "128M",
                    &["hot=4M", "stream=16M", "every=2M", "limit=16M"],
                ),
                "hot-and-stream" => left_by(spec.name, &["linux-6.12"], "32M", &["hot=1M", "stream=64M"]),
                "random-calls" => left_by(spec.name, &["linux-6.12"], "64M", &["first=4M", "calls=4"]),
                // Its percentage needs a kernel with the counters, and readers that reclaim themselves.
                "sequential-readers" => {
                    left_by(spec.name, &["linux-2.6.32"], "64M", &["file=16M", "prepare=laid-out"])
                }
                "inode-storm" => left_by(
                    spec.name,
                    &["linux-5.7"],
                    "128M",
                    &["processes=3", "files=3000", "pin_from=80M", "pin_step=8M"],
                ),
                "simoop" => left_by(
                    spec.name,
                    &["linux-5.7"],
                    "256M",
                    &["threads=4", "file_size=8M", "seconds=3", "warmup=1", "interval=1"],
                ),
                "small-files" => left_by(spec.name, &["linux-5.3"], "128M", &["loops=3"]),
                // Both kinds of fault need runs with and without stalls.
                _ => left_by(
                    spec.name,
                    &["linux-4.20-rc1", "linux-4.20-rc1+nofragment+watermark-boost-v2+fragment-stall"],
                    "144M",
                    &["advice=madvise", "order=rounds"],
                ),
            };
            check(spec.metrics, &left);
        }
    }

    #[test]
    fn every_headline_of_a_replay_is_what_it_leaves() {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("trace.csv");
        std::fs::write(&trace, "1,10,4096\n2,11,4096\n3,10,4096\n").unwrap();
        let request = ReplayRequest {
            trace,
            policies: vec!["lru".parse().expect("a policy")],
            capacities: vec!["1".to_owned()],
            mems: vec!["64M".to_owned()],
            ..ReplayRequest::default()
        };
        let control = ReplayControl { stop: Arc::default(), observer: Arc::new(|_| {}), kept: None };
        let outcomes = request.plan().unwrap().run(0, &control, |_, _| Ok(())).unwrap();
        let recordings: Vec<Recording> =
            outcomes.iter().map(|outcome| outcome.recording().unwrap().clone()).collect();
        check(&[replay::METRICS, policy::METRICS].concat(), &names(&recordings));
        assert_eq!(headlines(&recordings[0].workload).len(), replay::METRICS.len() + policy::METRICS.len());
    }
}
