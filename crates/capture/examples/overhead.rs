//! What following costs: a command by itself, captured, and under `strace -f`, in turns, in one run.
//!
//! `cargo run --release -p pagetide-capture --example overhead -- ROUNDS PAGETIDE COMMAND...`: `PAGETIDE` is the
//! built program. Its output goes nowhere. Printed are the median time of each, and what it adds as a share of what
//! strace adds. strace follows the calls that a capture does, with and without its own seccomp filter.

use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

const CALLS: &str = "trace=open,openat,openat2,creat,read,pread64,readv,preadv,preadv2,write,pwrite64,writev,pwritev,\
    pwritev2,close,close_range,dup2,dup3,fadvise64,readahead,ftruncate,truncate,fallocate,fsync,fdatasync,\
    sync_file_range,sync,syncfs,msync,mmap,munmap,mremap,madvise,brk,unlink,unlinkat,rename,renameat,renameat2,\
    sendfile,splice,copy_file_range,fork,vfork,clone,clone3,execve,exit_group";

fn seconds(words: &[String]) -> Option<f64> {
    let began = Instant::now();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().ok()?;
    Some(began.elapsed().as_secs_f64())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[allow(clippy::print_stdout, reason = "it is what it is for")]
fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [rounds, pagetide, command @ ..] = &words[..] else { return ExitCode::from(2) };
    let (Ok(rounds), false) = (rounds.parse::<usize>(), command.is_empty()) else { return ExitCode::from(2) };
    let folder = std::env::temp_dir().join(format!("overhead-{}", std::process::id()));
    let trace = folder.join("app.trace").to_string_lossy().into_owned();
    let log = folder.join("strace.log").to_string_lossy().into_owned();
    let with = |prefix: &[&str]| -> Vec<String> {
        prefix.iter().map(|word| (*word).to_owned()).chain(command.iter().cloned()).collect()
    };
    let ways = [
        ("plain", with(&[])),
        ("capture", with(&[pagetide, "capture", "-q", "-o", &trace, "--"])),
        ("strace -f", with(&["strace", "-f", "-o", &log, "-e", CALLS])),
        ("strace -f --seccomp-bpf", with(&["strace", "-f", "--seccomp-bpf", "-o", &log, "-e", CALLS])),
    ];
    let mut times = vec![Vec::new(); ways.len()];
    for _ in 0..rounds {
        for ((_, words), times) in ways.iter().zip(&mut times) {
            let _ = std::fs::create_dir_all(&folder);
            let Some(time) = seconds(words) else { return ExitCode::FAILURE };
            times.push(time);
            let _ = std::fs::remove_dir_all(&folder);
        }
    }
    let medians: Vec<f64> = times.into_iter().map(median).collect();
    let added = |way: usize| medians[way] - medians[0];
    for (way, (name, _)) in ways.iter().enumerate() {
        let factor = medians[way] / medians[0];
        println!("{name:<26}{:>9.3} s  factor {factor:>6.2}  added {:>9.3} s", medians[way], added(way));
    }
    println!("capture adds {:.2} of what strace -f adds, {:.2} of it with its filter", added(1) / added(2), added(1) / added(3));
    ExitCode::SUCCESS
}
