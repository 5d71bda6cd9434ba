//! What following costs: a command by itself, captured, and under `strace -f`, in turns, in one run.
//!
//! `cargo run --release -p pagetide-capture --example overhead -- ROUNDS PAGETIDE COMMAND...`: `PAGETIDE` is the
//! built program, or `-` for a capture that is not written. The command's output goes nowhere. Printed are the
//! medians of time on the clock and of CPU time, of the command and of who follows it together, and what a capture
//! adds as a share of what strace adds. CPU time tells the same on a machine that has other work to do. strace
//! follows the calls that a capture does: by itself, with the times and paths that a capture has, too, and with its
//! own seccomp filter.

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

/// What a run took, in seconds.
#[derive(Debug, Clone, Copy)]
struct Took {
    clock: f64,
    /// Of CPUs, by all processes of the run.
    cpus: f64,
}

impl Took {
    const fn clock(&self) -> f64 {
        self.clock
    }

    const fn cpus(&self) -> f64 {
        self.cpus
    }
}

fn took(words: &[String]) -> Option<Took> {
    let (began, before) = (Instant::now(), cpu_seconds());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().ok()?;
    Some(Took { clock: began.elapsed().as_secs_f64(), cpus: cpu_seconds() - before })
}

/// CPU time of all children that have ended, and of theirs.
#[allow(unsafe_code)]
fn cpu_seconds() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes this structure of numbers, of which zeroes are a value.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn median(times: &[Took], of: fn(&Took) -> f64) -> f64 {
    let mut times: Vec<f64> = times.iter().map(of).collect();
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
            let Some(took) = took(words) else { return ExitCode::FAILURE };
            times.push(took);
            let _ = std::fs::remove_dir_all(&folder);
        }
    }
    for (what, of) in [("on the clock", Took::clock as fn(&Took) -> f64), ("of CPUs", Took::cpus)] {
        let medians: Vec<f64> = times.iter().map(|times| median(times, of)).collect();
        let added = |way: usize| medians[way] - medians[0];
        for (way, (name, _)) in ways.iter().enumerate() {
            let (median, factor) = (medians[way], medians[way] / medians[0]);
            let share = match way {
                0 | 1 => String::new(),
                _ => format!("  capture adds {:.2} of that", added(1) / added(way)),
            };
            println!(
                "{name:<25} {median:>8.3} s {what}  factor {factor:>6.2}  added {:>8.3} s{share}",
                added(way)
            );
        }
    }
    ExitCode::SUCCESS
}
