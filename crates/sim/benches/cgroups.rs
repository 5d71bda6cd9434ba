//! What a page costs the simulator beside 1, 10, 100 and 1000 other cgroups: one task reads a file
//! twice the machine's memory over and over, so that every page is allocated, charged, inserted,
//! evicted and refaulted with kswapd and direct reclaim at work.
//!
//! `cargo bench -p pagetide-sim --bench cgroups [-- WORD...]` runs the scenes whose name has every word,
//! and prints nanoseconds of processor time per page, the best of a few runs, beside those of the same
//! scene with one cgroup. Two builds that print the same hashes simulate the same.
//!
//! A global pass visits every cgroup, as Linux does, and the task that runs it pays simulated time for
//! each. That part of the walk is inherent; what the simulator itself spends on it is measured here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mm::base::layout::MemoryLayout;
use pagetide_sim::run::{Checks, verify};
use pagetide_sim::{DeviceModel, Hardware, Program, SimResult, SimRun, SimSystem};
use units::{Bytes, Nanos, Pages};
use workload::system::{OpenMode, System, TaskSpec};
use workload::{Outcome, Workload, WorkloadError};

const KERNELS: [&str; 4] = ["linux-5.4", "linux-5.5", "linux-6.1", "linux-6.12"];
const COUNTS: [u64; 4] = [1, 10, 100, 1000];
const MEMORY_MIB: u32 = 128;
/// The file that is read, and how often.
const FILE: u64 = 256 << 20;
const ROUNDS: u64 = 4;
/// What each of the other cgroups holds where they hold something.
const HELD: u64 = 8 << 12;
/// What the reader may use where it is limited.
const LIMIT: u64 = 64 << 20;
const RUNS: usize = 3;
/// What the tests run once of each scene: so many cgroups, one round.
const TEST_COUNTS: [u64; 2] = [1, 10];

/// What the other cgroups are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Others {
    /// Empty.
    Idle,
    /// Each has read a few pages, below what reclaim takes of them at usual priorities.
    Holding,
    /// As holding, and the reader is at a limit of its own: nobody walks beyond it.
    Limited,
    /// As holding, below one parent, each with `memory.low` above what it holds.
    Protected,
}

#[allow(clippy::print_stdout)] // The figures.
fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let only_once = std::env::args().any(|word| word == "--test");
    let (counts, rounds, runs): (&[u64], u64, usize) =
        if only_once { (&TEST_COUNTS, 1, 1) } else { (&COUNTS, ROUNDS, RUNS) };
    let mut one = None;
    for others in [Others::Idle, Others::Holding, Others::Limited, Others::Protected] {
        for (kernel, &count) in
            KERNELS.into_iter().flat_map(|kernel| counts.iter().map(move |count| (kernel, count)))
        {
            let name = format!("{kernel} {others:?} {count}");
            if !words.iter().all(|word| name.split(' ').any(|part| part.eq_ignore_ascii_case(word))) {
                continue;
            }
            let (result, cost) = (0..runs)
                .map(|_| play(kernel, others, count, rounds))
                .min_by_key(|&(_, cost)| cost)
                .expect("there are runs");
            let nanos = cost.as_nanos() as f64 / (rounds * FILE / units::PAGE_SIZE) as f64;
            if count == counts[0] {
                one = Some(nanos);
            }
            let ratio = one.map_or(String::new(), |one| format!("{:.2} times", nanos / one));
            println!("{name:<28} {nanos:>8.0} ns/page {ratio:>12}   result {:016x}", hash(&result));
        }
    }
}

/// Runs a scene; how much processor time it took to read, without making the scene.
fn play(kernel: &str, others: Others, count: u64, rounds: u64) -> (SimResult, Duration) {
    let program = Program::Workload(Workload::new("hot-and-stream", []).expect("the defaults"));
    let kernel = mm::Version::parse(kernel).expect("a preset");
    let hardware = Hardware::with_cpus(2).with_device(DeviceModel::NVME);
    let layout = MemoryLayout::flat(Pages(u64::from(MEMORY_MIB) << 8), 2);
    let spec = SimRun {
        time_limit: Nanos::from_secs(3600),
        sample_period: Nanos::from_secs(3600),
        ..SimRun::new(program, kernel, hardware, layout)
    };
    let cost = Arc::new(AtomicU64::new(0));
    let spent = Arc::clone(&cost);
    let program = move |sys: SimSystem| async move {
        sys.lay_out_file("file", Bytes(FILE)).await?;
        make_others(&sys, others, count).await?;
        sys.cgroup_create("reader").await?;
        if others == Others::Limited {
            sys.cgroup_write("reader", "memory.max", &LIMIT.to_string()).await?;
        }
        let reader = TaskSpec::named("reader").in_cgroup("reader");
        let task = sys.spawn(reader, move |sys: SimSystem| async move {
            let begin = processor_time();
            let done = read(&sys, rounds).await;
            let nanos = processor_time().saturating_sub(begin).as_nanos();
            spent.store(u64::try_from(nanos).expect("less than centuries"), Ordering::Relaxed);
            done
        });
        let task = task.await?;
        sys.join(task).await??;
        Ok(Outcome::default())
    };
    let (result, _) = verify(&spec, Checks::Sample, program).expect("it ends");
    (result, Duration::from_nanos(cost.load(Ordering::Relaxed)))
}

async fn read(sys: &SimSystem, rounds: u64) -> Result<(), WorkloadError> {
    let file = sys.open("file", OpenMode::Read).await?;
    for _ in 0..rounds {
        for offset in (0..FILE).step_by(1 << 16) {
            sys.read(&file, offset, 1 << 16).await?;
        }
    }
    Ok(())
}

async fn make_others(sys: &SimSystem, others: Others, count: u64) -> Result<(), WorkloadError> {
    let above = if others == Others::Protected { "above/" } else { "" };
    if others == Others::Protected {
        sys.cgroup_create("above").await?;
        sys.cgroup_write("above", "memory.low", &(count * HELD * 2).to_string()).await?;
    }
    for number in 0..count {
        let path = format!("{above}other{number}");
        sys.cgroup_create(&path).await?;
        if others == Others::Idle {
            continue;
        }
        if others == Others::Protected {
            sys.cgroup_write(&path, "memory.low", &(HELD * 2).to_string()).await?;
        }
        sys.lay_out_file(&path.replace('/', "-"), Bytes(HELD)).await?;
        let name = path.replace('/', "-");
        let task = sys.spawn(TaskSpec::named(&path).in_cgroup(&path), move |sys: SimSystem| async move {
            let file = sys.open(&name, OpenMode::Read).await?;
            sys.read(&file, 0, HELD).await
        });
        let task = task.await?;
        sys.join(task).await??;
    }
    Ok(())
}

/// Processor time of this thread where the system tells, else time on a clock.
fn processor_time() -> Duration {
    thread_local! {
        static START: Instant = Instant::now();
    }
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|word| word.parse().ok());
    nanos.map_or_else(|| START.with(Instant::elapsed), Duration::from_nanos)
}

/// FNV-1a of everything that a run leaves.
fn hash(result: &SimResult) -> u64 {
    format!("{result:?}")
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
