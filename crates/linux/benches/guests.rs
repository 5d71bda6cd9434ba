//! One scenario in two kinds of guest, one after the other: a kernel as a program, and the same version in an emulated
//! machine.
//!
//! `cargo bench -p pagetide-linux --bench guests` needs `pagetide uml fetch 6.12`, `pagetide vm fetch 6.12` and QEMU.
//! The scenario is that of README.md in a machine of 2 GiB with a stream of 2 GiB; all is included: files, boot, the
//! run. The program runs three times, and the middle one counts, as its few seconds differ most. Left out: KVM, which
//! most hosts of such a comparison have not.
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use pagetide_linux::vm::{self, Accelerator, Engine, VmError, VmKernel, VmSpec};
use units::Bytes;
use workload::Workload;

const VERSION: &str = "6.12";
const PARAMETERS: [(&str, &str); 2] = [("hot", "50M"), ("stream", "2G")];

fn main() -> ExitCode {
    vm::guest::become_init_in_a_guest();
    if std::env::args().any(|argument| argument == "--test") {
        println!("SKIPPED: guests take minutes; `cargo bench -p pagetide-linux --bench guests` runs them");
        return ExitCode::SUCCESS;
    }
    match (middle_of_three(), seconds(Engine::Qemu, Some(Accelerator::Tcg))) {
        (Ok(program), Ok(machine)) => {
            println!(
                "uml:{VERSION} {program:.1} s, vm:{VERSION} emulated {machine:.1} s: {:.1} times",
                machine / program
            );
            ExitCode::SUCCESS
        }
        (program, machine) => {
            for error in [program.err(), machine.err()].into_iter().flatten() {
                println!("error: {error}; {}", error.hint().unwrap_or_default());
            }
            ExitCode::FAILURE
        }
    }
}

fn middle_of_three() -> Result<f64, VmError> {
    let mut took = [0.0; 3];
    for took in &mut took {
        *took = seconds(Engine::UserMode, None)?;
    }
    took.sort_by(f64::total_cmp);
    Ok(took[1])
}

/// How long the run took from its start to its end.
fn seconds(engine: Engine, accelerator: Option<Accelerator>) -> Result<f64, VmError> {
    let mut spec = VmSpec { accelerator, ..VmSpec::new(engine, VmKernel::Version(VERSION.to_owned())) };
    spec.hardware.mem = Bytes(2 << 30);
    let workload = Workload::new("hot-and-stream", PARAMETERS).expect("it is right");
    let run = vm::run(&spec, &workload, &AtomicBool::new(false), &|_| ())?;
    println!("{}: ready after {:.1?}, done after {:.1?}", run.result.kernel_release, run.boot, run.total);
    Ok(run.total.as_secs_f64())
}
