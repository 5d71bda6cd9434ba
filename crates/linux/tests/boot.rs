//! Boots real kernels and runs a small workload in them.
//!
//! It runs for each of the two reference kernels that is in the cache (`pagetide vm fetch 6.12`),
//! and says so when it is not, or when QEMU is missing. With `PAGETIDE_VM_TEST=1` it fails then.
//! `PAGETIDE_VM_FETCH=1` fetches them first; it needs the network.
#![expect(clippy::print_stderr, reason = "a test without a harness reports by itself")]

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use pagetide_linux::vm::{self, VmError, VmKernel, VmRun, VmSpec};
use workload::Workload;

const VERSIONS: [&str; 2] = ["6.1", "6.12"];
const PAIRS: [(&str, &str); 5] =
    [("hot", "25M"), ("stream", "1G"), ("topology", "parent"), ("limit", "256M"), ("filesystem", "ext4")];

fn main() -> ExitCode {
    vm::guest::become_init_in_a_guest();
    let set = |name| std::env::var_os(name).is_some_and(|value| value == "1");
    // `cargo test -- --list` and filters are for the usual harness.
    if std::env::args().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    let mut code = ExitCode::SUCCESS;
    for version in VERSIONS {
        if set("PAGETIDE_VM_FETCH")
            && let Err(error) = vm::cache_dir()
                .and_then(|cache| vm::fetch(version, &cache, &mut |text| eprintln!("  {text}")))
        {
            eprintln!("fetch of {version} failed: {error}");
            code = ExitCode::FAILURE;
        }
        match a_stream_under_a_limit_leaves_the_hot_file_alone(version) {
            Ok(()) => eprintln!("boot test of {version} passed"),
            Err(
                error @ (VmError::NoQemu { .. } | VmError::KernelMissing { .. } | VmError::NoMkfs { .. }),
            ) if !set("PAGETIDE_VM_TEST") => {
                eprintln!("SKIPPED boot test of {version}: {error}; {}", error.hint().unwrap_or_default());
            }
            Err(error) => {
                eprintln!("boot test of {version} FAILED: {error}");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}

/// Measured on 6.12.117 before this program existed; 6.1.176 scanned 203784. Both kept all hot
/// pages. There the stream's file went on behind what was read, so readahead took 32 pages more.
const REFERENCE_PGSCAN: f64 = 203_742.0;

fn a_stream_under_a_limit_leaves_the_hot_file_alone(version: &str) -> Result<(), VmError> {
    let workload = Workload::new("hot-and-stream", PAIRS).expect("the parameters are right");
    let spec = VmSpec::new(VmKernel::Version(version.to_owned()));
    let VmRun { result, accelerator, boot, total } =
        vm::run(&spec, &workload, &AtomicBool::new(false), &|told| eprintln!("  {told:?}"))?;
    eprintln!(
        "  {} on {}: ready after {boot:.1?}, done after {total:.1?}",
        result.kernel_release,
        accelerator.name()
    );
    let metric = |name| result.outcome.metrics.get(name).copied().unwrap_or(f64::NAN);
    let (kept, scanned, stolen) =
        (metric("hot_pages_cached"), metric("memcg_pgscan"), metric("memcg_pgsteal"));
    eprintln!("  {kept} hot pages kept, {scanned} pages scanned, {stolen} taken");
    assert_eq!(kept, 6400.0, "nothing of the hot file may be evicted");
    assert_eq!(scanned, stolen, "each page of the stream is clean, unused and taken at first sight");
    assert!(
        (REFERENCE_PGSCAN - scanned).abs() < REFERENCE_PGSCAN / 1000.0,
        "{scanned} is not near the reference"
    );
    assert!(vm::kernels::is_of_version(&result.kernel_release, version), "{}", result.kernel_release);
    assert!(result.phases.iter().any(|phase| phase.name == "stream_done"), "phases are sampled");
    Ok(())
}
