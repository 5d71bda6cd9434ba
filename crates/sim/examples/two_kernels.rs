//! One workload on two kernels: how much of a file that is in use survives a stream through another cgroup.
//!
//! `cargo run --release -p pagetide-sim --example two_kernels`. The command `pagetide compare` does this with tables,
//! seeds and recordings.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mm::Version;
use pagetide_sim::run::run;
use pagetide_sim::{Program, SimRun, machines};
use units::Bytes;
use workload::Workload;

/// Pages of the hot file in memory at the end.
fn hot_pages(kernel: &str) -> Result<f64, Box<dyn Error>> {
    let kernel = Version::parse(kernel).map_err(|error| error.to_string())?;
    let (hardware, layout) = machines::build("vm-2cpu", Bytes(64 << 20), &kernel)?;
    let workload = Workload::new("hot-and-stream", [("hot", "4M"), ("stream", "128M")])?;
    let scene = SimRun::new(Program::Workload(workload), kernel, hardware, layout);
    let result = run(&scene, Arc::new(AtomicBool::new(false)), |_| {})?;
    Ok(result.outcome.metrics["hot_pages_cached"])
}

#[allow(clippy::print_stdout, reason = "a line is what it is for")]
fn main() -> Result<(), Box<dyn Error>> {
    for kernel in ["linux-5.4", "linux-5.5"] {
        println!("{kernel}: {} of 1024 hot pages", hot_pages(kernel)?);
    }
    Ok(())
}

#[test]
fn the_newer_kernel_keeps_what_is_in_use() {
    assert!(hot_pages("linux-5.5").unwrap() > hot_pages("linux-5.4").unwrap());
}
