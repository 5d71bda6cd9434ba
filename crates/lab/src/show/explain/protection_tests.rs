//! What is said of `memory.low` after runs in which it held or did not, each for another reason.
//!
//! The runs are chosen so that their sizes leave one possible answer.

use std::fmt::Write;

use report::{Explained, Format, View};
use serde_json::Value;
use sim::run::{Checks, verify};
use sim::{SimRun, SimSystem};
use units::{Bytes, Nanos};
use workload::system::{OpenMode, System, TaskSpec};
use workload::{Outcome, WorkloadError};

use super::*;
use crate::resolve::request::{Request, Subject};
use crate::run::simulate::{plan, recorded};

/// What protects or limits a cgroup: its path, a file, MiB.
type Sets = &'static [(&'static str, &'static str, u64)];
/// Who reads: a cgroup, MiB of a file of its own, how often. One after the other.
type Reads = &'static [(&'static str, u64, u32)];

const MIB: u64 = 1 << 20;

fn scenario(kernel: &str, params: &[&str]) -> Scenario {
    let request = Request {
        kernel: Some(kernel.to_owned()),
        mem: Some("128M".to_owned()),
        params: params.iter().map(|&param| param.to_owned()).collect(),
        ..Request::new(Subject::Workload("hot-and-stream".to_owned()))
    };
    request.resolve().unwrap()
}

async fn read(sys: SimSystem, file: String, mib: u64, times: u32) -> Result<(), WorkloadError> {
    let file = sys.open(&file, OpenMode::Read).await?;
    for _ in 0..times {
        for at in 0..mib {
            sys.read(&file, at * MIB, MIB).await?;
        }
    }
    Ok(())
}

async fn program(sys: SimSystem, sets: Sets, reads: Reads) -> Result<Outcome, WorkloadError> {
    for path in ["B", "P", "P/A", "P/B"] {
        sys.cgroup_create(path).await?;
    }
    for (path, file, mib) in sets {
        sys.cgroup_write(path, file, &(mib * MIB).to_string()).await?;
    }
    for (number, &(path, mib, times)) in reads.iter().enumerate() {
        let file = format!("file {number}");
        sys.lay_out_file(&file, Bytes(mib * MIB)).await?;
        let spec = TaskSpec::named(format!("reader-{number}")).in_cgroup(path);
        let task = sys.spawn(spec, move |sys| read(sys, file, mib, times)).await?;
        sys.join(task).await.map_err(WorkloadError::from)??;
    }
    Ok(Outcome::default())
}

/// A run of these cgroups and readers in 128 MiB.
fn world(kernel: &str, sets: Sets, reads: Reads) -> Recording {
    let (spec, identity) = plan(&scenario(kernel, &[]), "a world").unwrap();
    let spec = SimRun { sample_period: Nanos::from_millis(5), ..spec };
    let (result, _) = verify(&spec, Checks::AtTheEnd, move |sys| program(sys, sets, reads)).unwrap();
    recorded(identity, result)
}

/// Verdict and sentence of a cgroup.
fn told(recording: &Recording, events: Option<&Digest>, cgroup: &str) -> String {
    let json = report::views::explain(&Explained { recording, events, with_events: None }, &View::default())
        .render(Format::Json, 80);
    let json: Value = serde_json::from_str(&json).unwrap();
    let groups = json["protection"].as_array().unwrap();
    let group = groups.iter().find(|group| group["cgroup"] == cgroup).expect("it is protected");
    format!("{}: {}", group["verdict"].as_str().unwrap(), group["sentence"].as_str().unwrap())
}

/// A and B are beside each other below P, and 128 MiB are not enough for B's stream.
#[test]
fn what_a_protection_is_worth_depends_on_where_reclaim_begins() {
    const A: (&str, &str, u64) = ("P/A", "memory.low", 40);
    let worlds: [(&str, Sets, Reads); 9] = [
        ("P shares out as much", &[("P", "memory.low", 40), A], &[("P/A", 30, 1), ("B", 400, 1)]),
        ("P has none", &[A], &[("P/A", 30, 1), ("B", 400, 1)]),
        ("P has none, and pages of A are active", &[A], &[("P/A", 30, 2), ("B", 400, 1)]),
        ("P has little", &[("P", "memory.low", 10), A], &[("P/A", 30, 1), ("B", 400, 1)]),
        (
            "P has none, but is itself at its limit",
            &[("P", "memory.max", 60), A],
            &[("P/A", 30, 1), ("P/B", 400, 1)],
        ),
        (
            "A is at its own limit",
            &[("P", "memory.low", 40), A, ("P/A", "memory.max", 20)],
            &[("P/A", 30, 2)],
        ),
        ("A is all that P has", &[("P", "memory.max", 35), A], &[("P/A", 50, 1)]),
        (
            "A uses more, and P is at its limit",
            &[("P", "memory.max", 60), A],
            &[("P/A", 55, 1), ("P/B", 400, 1)],
        ),
        ("nobody needs anything", &[("P", "memory.low", 40), A], &[("P/A", 30, 2)]),
    ];
    let mut text = String::new();
    for (what, sets, reads) in worlds {
        let recording = world("linux-6.12", sets, reads);
        let _ = writeln!(text, "{what}\n  {}", told(&recording, None, "P/A"));
    }
    insta::assert_snapshot!(text, @"
    P shares out as much
      protected: `memory.low` of 40 MiB on cgroup `P/A` protected it: it used 30.1 MiB at most, so every walk of reclaim could pass it by; it lost nothing while 79218 pages were taken elsewhere.
    P has none
      nothing above: `memory.low` of 40 MiB on cgroup `P/A` did not protect it: cgroup `P` above it has none to share out, so for reclaim that begins above that one it counts for nothing; 6657 of its pages were reclaimed, 0 came back.
    P has none, and pages of A are active
      not needed: `memory.low` of 40 MiB on cgroup `P/A` was not what kept its pages: it used 30.5 MiB at most, and cgroup `P` above it has none to share out, and yet reclaim took none of it: no active list was opened in the whole run, so inactive pages of others were enough.
    P has little
      too little above: `memory.low` of 40 MiB on cgroup `P/A` protected a part: cgroup `P` above it has only 10 MiB to share out for reclaim that begins above that one, and it used 30.1 MiB at most; 4488 of its pages were reclaimed, 0 came back.
    P has none, but is itself at its limit
      protected: `memory.low` of 40 MiB on cgroup `P/A` protected it: it used 30.1 MiB at most, so every walk of reclaim could pass it by; it lost nothing while 95079 pages were taken elsewhere.
    A is at its own limit
      own limit: `memory.low` of 40 MiB on cgroup `P/A` did not protect it from its own `memory.max`: protection counts for reclaim from above only; 10325 of its pages were reclaimed, 7680 came back.
    A is all that P has
      overridden: `memory.low` of 40 MiB on cgroup `P/A` did not hold: it was overridden 315 times, when reclaim found too little elsewhere; 3969 of its pages were reclaimed, 0 came back.
    A uses more, and P is at its limit
      in part: `memory.low` of 40 MiB on cgroup `P/A` protected a part: it used 52.6 MiB at most, and what is above its protection reclaim may take, since Linux 5.4 the less the nearer it is: it went down to 41 MiB; 3621 of its pages were reclaimed, 0 came back.
    nobody needs anything
      no reclaim: `memory.low` of 40 MiB on cgroup `P/A` had nothing to do: nobody reclaimed anything.
    ");
}

/// Events tell more than counters: how often reclaim came, and at whose limit pages went.
#[test]
fn a_run_with_events_says_how_often_the_protection_decided() {
    let mut text = String::new();
    for (kernel, params) in [
        ("linux-6.12", &["topology=siblings", "low=20M"][..]),
        ("linux-6.12", &["topology=same", "low=1G"]),
        ("linux-6.12", &["topology=same", "low=60M"]),
        ("linux-6.12", &["topology=parent", "limit=48M", "low=20M"]),
        ("linux-6.12", &["topology=parent", "limit=12M", "low=20M"]),
        ("linux-5.3", &["topology=same", "low=1G"]),
        ("linux-5.3", &["topology=siblings", "low=4M"]),
    ] {
        let params = [&["hot=16M", "stream=300M"], params].concat();
        let plan = PlannedRun { label: "a run".to_owned(), scenario: scenario(kernel, &params) };
        let With { recording, events, .. } = run(&plan, Question::default(), &Control::default()).unwrap();
        let cgroup = if params.contains(&"topology=parent") { "P/A" } else { "A" };
        let told = told(&recording, events.as_ref(), cgroup);
        let _ = writeln!(text, "{kernel} {}\n  {told}", params[2..].join(" "));
    }
    insta::assert_snapshot!(text, @"
    linux-6.12 topology=siblings low=20M
      protected: `memory.low` of 20 MiB on cgroup `A` protected it: it used 16.2 MiB at most, so every walk of reclaim could pass it by; it lost nothing while 49987 pages were taken elsewhere. Reclaim passed it by 1221 times for it.
    linux-6.12 topology=same low=1G
      overridden: `memory.low` of 1 GiB on cgroup `A` did not hold: it was overridden 3273 times, when reclaim found too little elsewhere; 49271 of its pages were reclaimed, 0 came back. Reclaim also passed it by 104179 times for it.
    linux-6.12 topology=same low=60M
      in part: `memory.low` of 60 MiB on cgroup `A` protected a part: it used 124 MiB at most, and what is above its protection reclaim may take, since Linux 5.4 the less the nearer it is: it went down to 121 MiB; 50083 of its pages were reclaimed, 0 came back. No walk of reclaim found it below its protection.
    linux-6.12 topology=parent limit=48M low=20M
      protected: `memory.low` of 20 MiB on cgroup `P/A` protected it: it used 16.3 MiB at most, so every walk of reclaim could pass it by; it lost nothing while 68924 pages were taken elsewhere. Reclaim passed it by 6065 times for it.
    linux-6.12 topology=parent limit=12M low=20M
      overridden: `memory.low` of 20 MiB on cgroup `P/A` did not hold: it was overridden 1332 times, when reclaim found too little elsewhere; 9324 of its pages were reclaimed, 8192 came back. Reclaim also passed it by 130348 times for it.
    linux-5.3 topology=same low=1G
      overridden: `memory.low` of 1 GiB on cgroup `A` did not hold: it was overridden 3198 times, when reclaim found too little elsewhere; 49035 of its pages were reclaimed, 0 came back. Reclaim also passed it by 72441 times for it.
    linux-5.3 topology=siblings low=4M
      in part: `memory.low` of 4 MiB on cgroup `A` protected a part: it used 16.1 MiB at most, and what is above its protection reclaim may take, since Linux 5.4 the less the nearer it is; 1648 of its pages were reclaimed, 1647 came back. No walk of reclaim found it below its protection.
    ");
}
