//! Requests per second: policies on 20 million Zipf requests, and the trace readers. Each prints its
//! misses, or a hash of its result, once, so that nobody optimises the meaning away.

use std::io::Cursor;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use divan::Bencher;
use divan::counter::ItemsCount;
use pagetide_policy::{Cache, Capacity, Future, PolicySpec, Wanted};
use trace::requests::zipf::Zipf;
use trace::requests::{Request, TraceError, TraceFormat, TraceReader};
use units::Seed;

const OBJECTS: u32 = 1_000_000;

fn main() {
    divan::main();
    let _ = std::fs::remove_dir_all(folder()); // If there is one.
}

/// Where the trace is for a program that reads it from a file.
fn folder() -> PathBuf {
    std::env::temp_dir().join(format!("pagetide-bench-{}", std::process::id()))
}

/// Requests of the trace: few where tests only see whether the bench still runs.
fn requests() -> usize {
    let measures = std::env::args().any(|argument| argument == "--bench");
    if measures { 20_000_000 } else { 20_000 }
}

/// The trace, made once.
fn zipf() -> &'static [u64] {
    static DRAWN: OnceLock<Vec<u64>> = OnceLock::new();
    DRAWN.get_or_init(|| Zipf::new(OBJECTS, 100, Seed(1)).take(requests()).collect())
}

/// Prints each line once, not once per sample.
#[allow(clippy::print_stderr)] // A bench has no other way to tell.
fn print_once(line: &str) {
    static PRINTED: std::sync::Mutex<Vec<String>> = std::sync::Mutex::new(Vec::new());
    let mut printed = PRINTED.lock().expect("no bench panics while it prints");
    if !printed.iter().any(|other| other == line) {
        eprintln!("{line}");
        printed.push(line.to_owned());
    }
}

/// The same requests, known beforehand: made once, and not part of what is measured.
fn future() -> &'static Arc<Future> {
    static KNOWN: OnceLock<Arc<Future>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let mut future = Future::default();
        zipf().iter().for_each(|&object| future.push(object).expect("not too many"));
        Arc::new(future)
    })
}

#[divan::bench(args = [("lru", 10_000), ("lru", 500_000), ("lru", 100_000), ("fifo", 100_000), ("clock", 100_000),
    ("s3fifo", 100_000), ("sieve", 100_000), ("arc", 100_000), ("2q", 100_000), ("lirs", 100_000),
    ("clock-pro", 100_000), ("belady", 100_000), ("s3fifo:batch=32", 100_000), ("sieve:batch=32", 100_000)],
    sample_count = 3, sample_size = 1)]
fn policy(bencher: Bencher, (policy, capacity): (&str, u64)) {
    let objects = zipf();
    let policy: PolicySpec = policy.parse().expect("a policy");
    let future = if policy.info().needs_future { Arc::clone(future()) } else { Arc::default() };
    let capacity = Capacity::new(capacity).expect("not zero");
    bencher.counter(ItemsCount::new(objects.len())).bench_local(|| {
        let mut cache = Cache::new(&policy, capacity, &future);
        // In parts, as a replay hands them out.
        let mut part = Vec::with_capacity(1 << 14);
        for objects in objects.chunks(1 << 14) {
            part.clear();
            part.extend(objects.iter().map(|&object| Wanted { object, bytes: 4096 }));
            cache.feed(&part, true);
        }
        let counted = cache.counted();
        print_once(&format!("{policy} {}: {} misses", capacity.get(), counted.misses));
        counted
    });
}

/// The same requests through libCacheSim's `cachesim`, whose start and reading are measured with them: if
/// `PAGETIDE_CACHESIM` names it.
#[divan::bench(args = ["lru", "fifo", "clock", "s3fifo", "sieve", "arc", "twoq", "lirs"], sample_count = 3,
    sample_size = 1)]
fn peer(bencher: Bencher, policy: &str) {
    let Some(program) = std::env::var_os("PAGETIDE_CACHESIM") else {
        return print_once("peer: skipped, PAGETIDE_CACHESIM does not name a `cachesim` program");
    };
    let folder = folder();
    let trace = folder.join("zipf.oracleGeneral");
    if !trace.exists() {
        std::fs::create_dir_all(&folder).expect("room for a trace");
        std::fs::write(&trace, encode(TraceFormat::OracleGeneral, zipf())).expect("room for a trace");
    }
    bencher.counter(ItemsCount::new(zipf().len())).bench_local(|| {
        let mut run = Command::new(&program);
        run.current_dir(&folder).arg(&trace).args([
            "oracleGeneral",
            policy,
            "100000",
            "--ignore-obj-size",
            "1",
        ]);
        let output = run.output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8_lossy(&output.stdout);
        print_once(&format!("peer {policy}: {}", said.lines().last().unwrap_or_default()));
    });
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn zipf_draws(bencher: Bencher) {
    let table = Zipf::new(OBJECTS, 100, Seed(1));
    bencher.counter(ItemsCount::new(10_000_000_usize)).bench_local(|| {
        table.clone().take(10_000_000).fold(0_u64, |hash, object| hash.rotate_left(1) ^ object)
    });
}

#[divan::bench(args = [TraceFormat::BlockCsv, TraceFormat::Msr, TraceFormat::ObjectCsv, TraceFormat::OracleGeneral],
    sample_count = 5, sample_size = 1)]
fn reader(bencher: Bencher, format: TraceFormat) {
    let requests = requests() / 10;
    let bytes = encode(format, &zipf()[..requests]);
    bencher.counter(ItemsCount::new(requests)).bench_local(|| {
        let reader = TraceReader::new(Cursor::new(&bytes), Some(format)).expect("a trace");
        let fold = |hash: u64, request: Result<Request, TraceError>| {
            let request = request.expect("a request");
            hash.rotate_left(1) ^ request.object ^ request.time_ns ^ u64::from(request.size_bytes)
        };
        let hash = reader.fold(0, fold);
        print_once(&format!("{}: result {hash:016x}", format.name()));
        hash
    });
}

fn encode(format: TraceFormat, objects: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (number, &object) in objects.iter().enumerate() {
        let seconds = 5_633_898 + (number / 16) as u32;
        match format {
            TraceFormat::BlockCsv => {
                let lbn = 42_000_000 + object;
                bytes.extend_from_slice(format!("1,{seconds},2a,65536,{lbn}\n").as_bytes());
            }
            TraceFormat::Msr => {
                let (ticks, offset) = (128_166_372_003_061_629 + number as u64 * 100_000, object * 65536);
                bytes.extend_from_slice(format!("{ticks},usr,0,Write,{offset},65536,4011\n").as_bytes());
            }
            TraceFormat::ObjectCsv => {
                bytes.extend_from_slice(format!("{seconds},{object},4096\n").as_bytes())
            }
            TraceFormat::OracleGeneral => {
                bytes.extend_from_slice(&seconds.to_le_bytes());
                bytes.extend_from_slice(&object.to_le_bytes());
                bytes.extend_from_slice(&4096_u32.to_le_bytes());
                bytes.extend_from_slice(&(-1_i64).to_le_bytes());
            }
        }
    }
    bytes
}
