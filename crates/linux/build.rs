//! Makes the small libraries that stand before functions of the C library in User-Mode Linux (`shim/`), for hosts that
//! can run it.

use std::path::Path;
use std::process::Command;

/// Each is `shim/NAME.rs` and becomes `NAME.so`.
const LIBRARIES: [&str; 2] = ["xstate", "disk"];

fn main() {
    println!("cargo::rerun-if-changed=shim");
    let var = |name: &str| std::env::var(name).expect("cargo sets it");
    let is_host = var("CARGO_CFG_TARGET_OS") == "linux" && var("CARGO_CFG_TARGET_ARCH") == "x86_64";
    for name in LIBRARIES {
        let library = Path::new(&var("OUT_DIR")).join(format!("{name}.so"));
        if !is_host {
            std::fs::write(&library, []).expect("cargo's folder can be written");
            continue;
        }
        let made = Command::new(var("RUSTC"))
            .args(["--edition=2024", "--crate-type=cdylib", "--crate-name", name])
            .args(["-Copt-level=2", "-Cpanic=abort"])
            .args([
                "-Clink-arg=-nostdlib",
                "-Clink-arg=-nostartfiles",
                "-Cstrip=symbols",
                "-Ctarget-feature=-crt-static",
            ])
            .arg(format!("--target={}", var("TARGET")))
            .arg("-o")
            .arg(&library)
            .arg(format!("shim/{name}.rs"))
            .status();
        assert!(made.is_ok_and(|status| status.success()), "the compiler cannot make shim/{name}.rs");
    }
}
