//! `hot-and-stream` on this machine's own kernel, small, where a memory cgroup can be made.
//!
//! What cannot run here is said on stderr. The figures hold on any kernel: the stream is larger than
//! the limit, so it must be reclaimed. How much of the hot set stays is not asked: kernels that
//! decide by statistics of up to two seconds ago can lose all of it in a run this short.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pagetide_linux::host::{self, HostOptions};
use pagetide_linux::{LinuxError, LinuxResult};
use units::Bytes;
use workload::Workload;

/// A place on this machine, or `None` with the reason said aloud.
#[allow(clippy::print_stderr)] // A test that does not run must not look like one that passed.
fn place(limit: Bytes) -> Option<host::Host> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).to_owned();
    match host::prepare(HostOptions { limit, dir: Some(dir), ..HostOptions::default() }) {
        Ok(host) => Some(host),
        Err(error @ (LinuxError::NoMemoryController { .. } | LinuxError::MemoryFilesystem { .. })) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn hot_and_stream(pairs: &[(&'static str, &'static str)]) -> Workload {
    Workload::new("hot-and-stream", pairs.iter().copied()).unwrap()
}

const SMALL: [(&str, &str); 3] = [("hot", "4M"), ("stream", "48M"), ("topology", "parent")];

fn run(host: &host::Host, workload: Workload, stop: bool) -> Result<LinuxResult, LinuxError> {
    host.run(workload, Vec::new(), Duration::from_millis(20), &AtomicBool::new(stop), &|_| {})
}

#[test]
fn a_stream_is_reclaimed_below_its_limit_and_nothing_is_left_behind() {
    let Some(host) = place(Bytes(64 << 20)) else { return };
    let root = host.root();
    let workload = hot_and_stream(&[SMALL[0], SMALL[1], SMALL[2], ("limit", "16M")]);
    let result = run(&host, workload, false).unwrap();
    assert_eq!(result.outcome.metrics["hot_pages_before"], 1024.0);
    let phases: Vec<_> = result.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(phases, ["hot_ready", "stream_done", "reread_done"]);
    let groups: Vec<_> = result.memcg.keys().map(String::as_str).collect();
    assert_eq!(groups, ["", "P", "P/A", "P/B"]);
    assert!(result.memcg["P"]["file"] <= 16 << 20);
    assert!(result.memcg["P/B"]["file"] >= 8 << 20);
    let scanned = result.vmstat["pgscan_file"] - result.vmstat_before["pgscan_file"];
    assert!(scanned >= (48 - 16) << 8, "{scanned}");

    let json = serde_json::to_string(&result).unwrap();
    assert_eq!(serde_json::from_str::<LinuxResult>(&json).unwrap(), result);
    drop(host);
    assert!(!root.cgroup.exists() && !root.files.exists());
}

#[test]
fn a_stopped_run_leaves_no_process_and_no_cgroup() {
    let Some(host) = place(Bytes(64 << 20)) else { return };
    let cgroup = host.root().cgroup;
    let error = run(&host, hot_and_stream(&SMALL), true).unwrap_err();
    assert!(matches!(error, LinuxError::Stopped));
    drop(host);
    assert!(!cgroup.exists());
}

#[test]
fn a_failing_call_of_a_task_comes_back_with_its_name() {
    let Some(host) = place(Bytes(64 << 20)) else { return };
    // The file is there already, so it cannot be laid out.
    std::fs::write(host.root().files.join("hot"), "").unwrap();
    let error = run(&host, hot_and_stream(&SMALL), false).unwrap_err();
    assert_eq!(error.to_string(), "lay_out_file `hot`: file exists");
}
