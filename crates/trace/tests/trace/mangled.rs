//! Logs with bytes that were changed, taken out or put in: an error or a trace that can be replayed, and figures of it,
//! but never a panic.

use pagetide_trace::import::{ImportFormat, import};
use pagetide_trace::info::TraceInfo;
use units::Seed;

use crate::{blkparse, damon, fio, perf, strace};

const ROUNDS: u64 = 3000;

#[test]
fn no_change_of_a_log_makes_the_importers_panic() {
    let mut stream = Seed(5).stream("mangled");
    let logs = [
        (ImportFormat::Strace, strace::LOG),
        (ImportFormat::Strace, strace::THREADS),
        (ImportFormat::PerfTrace, perf::ADDRESSES),
        (ImportFormat::PerfTrace, perf::NAMES),
        (ImportFormat::Blkparse, blkparse::LOG),
        (ImportFormat::Fio, fio::VERSION_2),
        (ImportFormat::Fio, fio::VERSION_3),
        (ImportFormat::Damon, damon::EVENTS),
        (ImportFormat::Damon, damon::JSON),
    ];
    let mut read = 0;
    for round in 0..ROUNDS {
        let (format, log) = logs[(round % logs.len() as u64) as usize];
        let mut bytes = log.as_bytes().to_vec();
        for _ in 0..=stream.below(4) {
            let place = stream.below(bytes.len() as u64) as usize;
            match stream.below(5) {
                0 => bytes[place] = stream.below(256) as u8,
                1 => drop(bytes.remove(place)),
                2 => bytes.insert(place, b"0123456789<>()\"[]{},=-\n"[stream.below(23) as usize]),
                3 => drop(bytes.splice(place..place, *b"18446744073709551615")),
                _ => {
                    let end = (place + stream.below(200) as usize).min(bytes.len());
                    bytes.drain(place..end);
                    bytes.push(b'\n');
                }
            }
        }
        let _ = ImportFormat::of(&bytes);
        if let Ok(trace) = import(format, "a.log", bytes.as_slice()) {
            let text = String::from_utf8_lossy(&bytes);
            trace.check().unwrap_or_else(|error| panic!("{error}:\n{text}"));
            let info = TraceInfo::of(&trace);
            assert!(info.reuse.followed <= info.reuse.accesses);
            read += 1;
        }
    }
    assert!(read > ROUNDS / 4, "{read} of {ROUNDS} can be read");
}
