//! Boots real kernels and runs small workloads in them.
//!
//! All four kernels run as programs (User-Mode Linux), and one in a virtual machine. It runs what is in the cache
//! (`pagetide uml fetch 6.12`, `pagetide vm fetch 6.12`), and says so when it is not, or when QEMU is missing.
//! With `PAGETIDE_VM_TEST=1` it fails then. `PAGETIDE_VM_FETCH=1` fetches them first; it needs the network.
#![expect(clippy::print_stderr, reason = "a test without a harness reports by itself")]

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pagetide_linux::Told;
use pagetide_linux::vm::{self, Engine, VmError, VmFilesystem, VmKernel, VmRun, VmSpec, uml};
use workload::Workload;

const KERNELS: [&str; 4] = ["5.10", "6.1", "6.12", "7.2"];
/// The one that also boots in a virtual machine.
const IN_QEMU: &str = "6.12";

fn main() -> ExitCode {
    vm::guest::become_init_in_a_guest();
    // `cargo test -- --list` and filters are for the usual harness.
    if std::env::args().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    let mut tests = Tests { code: ExitCode::SUCCESS };
    let begin = Instant::now();
    for version in KERNELS {
        tests.fetch(Engine::UserMode, version);
        tests.one(Engine::UserMode, version, "a stream under a limit", a_stream_under_a_limit);
    }
    tests.one(Engine::UserMode, "6.12", "XFS, two ways to swap, Ctrl-C", |spec| {
        memory_goes_to_both_swap_areas(spec)?;
        a_stopped_guest_leaves_nothing(spec)
    });
    eprintln!("User-Mode Linux: {:.1?} for all", begin.elapsed());
    tests.fetch(Engine::Qemu, IN_QEMU);
    tests.one(Engine::Qemu, IN_QEMU, "a stream under a limit", a_stream_under_a_limit);
    tests.code
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| value == "1")
}

struct Tests {
    code: ExitCode,
}

impl Tests {
    fn fetch(&mut self, engine: Engine, version: &str) {
        if !is_set("PAGETIDE_VM_FETCH") {
            return;
        }
        let mut tell = |text: &str| eprintln!("  {text}");
        let mut fetched = || match engine {
            Engine::Qemu => vm::cache_dir().and_then(|cache| vm::fetch(version, &cache, false, &mut tell)),
            Engine::UserMode => {
                uml::cache_dir().and_then(|cache| uml::fetch(version, &cache, false, &mut tell))
            }
        };
        // A mirror may change between its list and the package, or have a bad minute.
        let mut result = fetched();
        if result.as_ref().is_err_and(is_of_a_mirror) {
            std::thread::sleep(Duration::from_secs(10));
            result = fetched();
        }
        match result {
            Ok(_) => {}
            // Debian takes old releases off its mirrors some day, and mirrors fail; no change here can help that.
            Err(error) if matches!(error, VmError::PackageNotFound { .. }) || is_of_a_mirror(&error) => {
                eprintln!("SKIPPED fetch of {version}: {error}");
            }
            Err(error) => {
                eprintln!("fetch of {version} failed: {error}");
                self.code = ExitCode::FAILURE;
            }
        }
    }

    fn one(
        &mut self,
        engine: Engine,
        version: &str,
        what: &str,
        test: impl FnOnce(&VmSpec) -> Result<(), VmError>,
    ) {
        let spec = VmSpec::new(engine, VmKernel::Version(version.to_owned()));
        match test(&spec) {
            Ok(()) => eprintln!("boot test of {version} passed: {what}"),
            Err(
                error @ (VmError::NoQemu { .. } | VmError::KernelMissing { .. } | VmError::NoMkfs { .. }),
            ) if !is_set("PAGETIDE_VM_TEST") => {
                eprintln!("SKIPPED boot test of {version}: {error}; {}", error.hint().unwrap_or_default());
            }
            Err(error) => {
                eprintln!("boot test of {version} FAILED: {what}: {error}");
                self.code = ExitCode::FAILURE;
            }
        }
    }
}

/// Whether apt says that a file did not come.
fn is_of_a_mirror(error: &VmError) -> bool {
    let says = ["Failed to fetch", "Unable to fetch", "failed to download"];
    matches!(error, VmError::Apt { message, .. } if says.iter().any(|says| message.contains(says)))
}

fn run(spec: &VmSpec, name: &str, pairs: &[(&'static str, &'static str)]) -> Result<VmRun, VmError> {
    let workload = Workload::new(name, pairs.iter().copied()).expect("they are right");
    let run = vm::run(spec, &workload, &AtomicBool::new(false), &|told| eprintln!("  {told:?}"))?;
    let release = &run.result.kernel_release;
    eprintln!("  {release}: ready after {:.1?}, done after {:.1?}", run.boot, run.total);
    Ok(run)
}

fn metric(run: &VmRun, name: &str) -> f64 {
    run.result.outcome.metrics.get(name).copied().unwrap_or(f64::NAN)
}

/// What counters of a cgroup may be off by, which kernels add up in batches: 32 pages for each of its children and
/// each CPU.
const BATCHED_ERROR: f64 = 128.0;

/// Both files pass through a limit, and nothing else is charged there: what is not in it at the end was taken, once
/// and at first sight, and none of it was hot.
fn a_stream_under_a_limit(spec: &VmSpec) -> Result<(), VmError> {
    const MIB: f64 = 256.0; // pages
    let (hot, stream, limit) = (8.0 * MIB, 256.0 * MIB, 64.0 * MIB);
    let pairs = [("hot", "8M"), ("stream", "256M"), ("topology", "parent"), ("limit", "64M")];
    let spec = VmSpec { sample_period: Duration::from_millis(200), ..spec.clone() };
    let run = run(&spec, "hot-and-stream", &pairs)?;
    let [kept, scanned, stolen] =
        ["hot_pages_cached", "memcg_pgscan", "memcg_pgsteal"].map(|name| metric(&run, name));
    eprintln!("  {kept} hot pages kept, {scanned} pages scanned, {stolen} taken");
    assert_eq!(kept, hot, "nothing of the hot file may be evicted");
    assert!((scanned - stolen).abs() <= BATCHED_ERROR, "each page of the stream is taken at first sight");
    let passed = hot + stream - limit;
    assert!((passed - stolen).abs() < passed / 50.0, "{stolen} is not near {passed}");
    let VmKernel::Version(version) = &spec.kernel else { unreachable!("tests name versions") };
    assert!(vm::kernels::is_of_version(&run.result.kernel_release, version), "{}", run.result.kernel_release);
    assert!(run.result.phases.iter().any(|phase| phase.name == "stream_done"), "phases are sampled");
    Ok(())
}

fn memory_goes_to_both_swap_areas(spec: &VmSpec) -> Result<(), VmError> {
    let swap = "zram:24M,prio=2,disk:256M,prio=1".parse().expect("it is right");
    let spec = VmSpec { swap, filesystem: VmFilesystem::Xfs, ..spec.clone() };
    let pairs = [
        ("limit", "48M"),
        ("topology", "parent"),
        ("hot", "16M"),
        ("cold", "64M"),
        ("file", "32M"),
        ("every", "16M"),
        ("loops", "2"),
        ("filesystem", "xfs"),
    ];
    let run = run(&spec, "anon-and-file", &pairs)?;
    let before = run.result.vmstat_before.get("pswpout").copied().unwrap_or_default();
    let swapped = run.result.vmstat["pswpout"] - before;
    eprintln!("  {swapped} pages swapped out");
    assert!(swapped > 24 * 256, "{swapped} pages fit into the first area");
    Ok(())
}

/// Stopped in the middle, as by Ctrl-C.
fn a_stopped_guest_leaves_nothing(spec: &VmSpec) -> Result<(), VmError> {
    let workload = Workload::new("hot-and-stream", [("stream", "2G")]).expect("it is right");
    let stop = AtomicBool::new(false);
    let tell = |told: Told<'_>| {
        if let Told::Phase(phase) = told {
            // The guest's first words: it has booted.
            stop.store(!phase.starts_with("booting"), Ordering::Relaxed);
        }
    };
    let stopped = vm::run(spec, &workload, &stop, &tell);
    assert!(matches!(stopped, Err(VmError::Stopped)), "{stopped:?}");
    let runs = uml::cache_dir()?.with_file_name("runs");
    let own = format!("pagetide-{}-", std::process::id());
    let left = |dir: &Path| {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&own)).count()
    };
    assert_eq!(left(&runs), 0, "its folder is gone");
    let begin = Instant::now();
    while let Some(command) = guest_of(&own) {
        assert!(begin.elapsed() < Duration::from_secs(10), "`{command}` still runs");
    }
    Ok(())
}

/// A process that was started in a folder of ours.
fn guest_of(own: &str) -> Option<String> {
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    processes.into_iter().find_map(|process| {
        let dir = std::fs::read_link(process.path().join("cwd")).ok()?;
        let is_own = dir.to_string_lossy().contains(own);
        is_own.then(|| std::fs::read_to_string(process.path().join("comm")).unwrap_or_default())
    })
}
