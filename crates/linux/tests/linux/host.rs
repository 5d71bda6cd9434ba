//! `hot-and-stream` on this machine's own kernel, small, where a memory cgroup can be made.
//!
//! What cannot run here is said on stderr. The figures hold on any kernel: the stream is larger than
//! the limit, so it must be reclaimed. How much of the hot set stays is not asked: kernels that
//! decide by statistics of up to two seconds ago can lose all of it in a run this short.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pagetide_linux::host::{Host, HostOptions, prepare};
use pagetide_linux::{DEFAULT_SHARE, DiskShare, LinuxError, LinuxResult};
use units::{Bytes, Seed};
use workload::Workload;

/// Where the tests are built: on a disk, which a folder for temporary files may not be.
fn on_disk() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    program.parent().unwrap().to_owned()
}

/// A place on this machine, or `None` with the reason said aloud.
#[allow(clippy::print_stderr)] // A test that does not run must not look like one that passed.
fn place(limit: Bytes, workload: Workload) -> Option<Host> {
    match prepare(HostOptions { limit, dir: Some(on_disk()), ..HostOptions::default() }, workload) {
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

fn play(host: &Host, stop: bool) -> Result<LinuxResult, LinuxError> {
    host.run(Seed(1), Vec::new(), Duration::from_millis(20), &AtomicBool::new(stop), &|_| {})
}

#[test]
fn a_stream_is_reclaimed_below_its_limit_and_nothing_is_left_behind() {
    let workload = hot_and_stream(&[SMALL[0], SMALL[1], SMALL[2], ("limit", "16M")]);
    let Some(host) = place(Bytes(64 << 20), workload) else { return };
    let root = host.root();
    let result = play(&host, false).unwrap();
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
    let Some(host) = place(Bytes(64 << 20), hot_and_stream(&SMALL)) else { return };
    let cgroup = host.root().cgroup;
    let error = play(&host, true).unwrap_err();
    assert!(matches!(error, LinuxError::Stopped));
    drop(host);
    assert!(!cgroup.exists());
}

#[test]
fn a_failing_call_of_a_task_comes_back_with_its_name() {
    let Some(host) = place(Bytes(64 << 20), hot_and_stream(&SMALL)) else { return };
    // The file is there already, so it cannot be laid out.
    std::fs::write(host.root().files.join("hot"), "").unwrap();
    let error = play(&host, false).unwrap_err();
    assert_eq!(error.to_string(), "lay_out_file `hot`: file exists");
}

/// It took all of the host's memory for its own, and 1.5 times that for files.
#[test]
fn the_machine_that_huge_faults_sees_is_its_limit_and_not_the_host() {
    let workload = Workload::new("huge-faults", [("file_size", "1M")]).unwrap();
    let Some(host) = place(Bytes(64 << 20), workload) else { return };
    let result = play(&host, false).unwrap();
    let files = std::fs::read_dir(host.root().files.join("d0")).unwrap().count();
    assert_eq!(files, 24, "a fourth of 1.5 times 64 MiB");
    assert!(result.memcg[""]["current"] <= 64 << 20);
}

#[test]
fn a_run_that_does_not_fit_is_refused_before_it_has_written_anything() {
    let dir = tempfile::tempdir_in(on_disk()).unwrap();
    let options = |limit: u64, share| HostOptions {
        limit: Bytes(limit),
        dir: Some(dir.path().to_owned()),
        share,
        ..HostOptions::default()
    };
    let small = || hot_and_stream(&SMALL);
    for (options, workload) in [
        (options(64 << 20, DiskShare::Size(Bytes(52 << 20))), small()),
        (options(0, DEFAULT_SHARE), small()),
        (options(u64::MAX, DEFAULT_SHARE), small()),
        (options(64 << 20, DEFAULT_SHARE), hot_and_stream(&[("stream", "1T")])),
    ] {
        let error = prepare(options, workload).unwrap_err();
        assert!(matches!(error, LinuxError::Bounds(_) | LinuxError::MemoryFilesystem { .. }), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
