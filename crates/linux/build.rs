//! Makes the small library that stands before `ptrace()` of User-Mode Linux (`shim/xstate.rs`), for hosts that can
//! run it.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=shim/xstate.rs");
    let var = |name: &str| std::env::var(name).expect("cargo sets it");
    let library = Path::new(&var("OUT_DIR")).join("xstate.so");
    let is_host = var("CARGO_CFG_TARGET_OS") == "linux" && var("CARGO_CFG_TARGET_ARCH") == "x86_64";
    if !is_host {
        std::fs::write(&library, []).expect("cargo's folder can be written");
        return;
    }
    let made = Command::new(var("RUSTC"))
        .args([
            "--edition=2024",
            "--crate-type=cdylib",
            "--crate-name=xstate",
            "-Copt-level=2",
            "-Cpanic=abort",
        ])
        .args([
            "-Clink-arg=-nostdlib",
            "-Clink-arg=-nostartfiles",
            "-Cstrip=symbols",
            "-Ctarget-feature=-crt-static",
        ])
        .arg(format!("--target={}", var("TARGET")))
        .arg("-o")
        .arg(&library)
        .arg("shim/xstate.rs")
        .status();
    assert!(made.is_ok_and(|status| status.success()), "the compiler cannot make shim/xstate.rs");
}
