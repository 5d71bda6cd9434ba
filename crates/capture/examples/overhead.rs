//! What following costs: a command by itself, captured, and under `strace -f`, in turns, in one run.
//!
//! `cargo run --release -p pagetide-capture --example overhead -- ROUNDS PAGETIDE COMMAND...`: `PAGETIDE` is the
//! built program, or `-` for a capture that is not written. The command's output goes nowhere. Printed are the
//! median time of each, and what a capture adds as a share of what strace adds. strace follows the calls that a
//! capture does: by itself, with the times and paths that a capture has, too, and with its own seccomp filter.

use std::ffi::{OsStr, OsString};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use pagetide_capture::Options;

const FOLLOW: &str = "--follow";

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

/// Follows a command, counts what it did and forgets it.
#[allow(clippy::print_stderr, reason = "it is what it is for")]
fn follow(command: &[String]) -> ExitCode {
    let arguments: Vec<OsString> = command[1..].iter().map(OsString::from).collect();
    let (options, signal) = (Options::default(), AtomicUsize::new(0));
    match pagetide_capture::command(OsStr::new(&command[0]), &arguments, &options, &signal, &mut |_| Ok(())) {
        Ok(captured) => {
            for (kind, count) in trace::OperationKind::ALL.iter().zip(captured.counts) {
                eprintln!("{kind:?} {count}");
            }
            captured.trace.gaps.iter().for_each(|gap| eprintln!("{gap}"));
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

#[allow(clippy::print_stdout, reason = "it is what it is for")]
fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [follows, command @ ..] = &words[..]
        && follows == FOLLOW
    {
        return follow(command);
    }
    let [rounds, pagetide, command @ ..] = &words[..] else { return ExitCode::from(2) };
    let (Ok(rounds), false) = (rounds.parse::<usize>(), command.is_empty()) else { return ExitCode::from(2) };
    let folder = std::env::temp_dir().join(format!("overhead-{}", std::process::id()));
    let trace = folder.join("app.trace").to_string_lossy().into_owned();
    let log = folder.join("strace.log").to_string_lossy().into_owned();
    let with = |prefix: &[&str]| -> Vec<String> {
        prefix.iter().map(|word| (*word).to_owned()).chain(command.iter().cloned()).collect()
    };
    let itself = std::env::current_exe().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    let capture = match pagetide.as_str() {
        "-" => with(&[&itself, FOLLOW]),
        pagetide => with(&[pagetide, "capture", "-q", "-o", &trace, "--"]),
    };
    let ways = [
        ("plain", with(&[])),
        ("capture", capture),
        ("strace -f", with(&["strace", "-f", "-o", &log, "-e", CALLS])),
        ("strace -f -tt -y", with(&["strace", "-f", "-tt", "-y", "-o", &log, "-e", CALLS])),
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
    for (way, (name, _)) in ways.iter().enumerate().skip(2) {
        println!("capture adds {:.2} of what {name} adds", added(1) / added(way));
    }
    ExitCode::SUCCESS
}
