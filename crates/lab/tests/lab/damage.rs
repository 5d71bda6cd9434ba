//! A harness for readers of bytes that others have written: it changes good ones, and no change may end in a panic, or
//! in a reader that does not come back.
//!
//! Changes are drawn from a seed, so that what was found is found again; what a reader fails on is kept in a file for
//! whoever mends it. A test takes a moment; `PAGETIDE_DAMAGE_SECONDS` says how long each takes instead. Left out:
//! guidance by what code was reached.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use units::{Seed, Stream};

/// Changed inputs of a test that is not told how long it has.
const ROUNDS: u64 = 150;
/// A reader that takes longer than this for one input hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Numbers that are at the end of what fits.
const EXTREMES: [&[u8]; 6] =
    [b"18446744073709551615", b"-1", b"0", b"1e308", &[0xff; 8], &[0, 0, 0, 0x80, 0, 0, 0, 0]];

/// Gives `read` each sample, and then damaged ones.
pub(crate) fn damage(name: &'static str, samples: Vec<Vec<u8>>, read: impl Fn(&[u8]) + Send + 'static) {
    let seconds = std::env::var("PAGETIDE_DAMAGE_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let (begun, rounds) = channel();
    let worker = std::thread::spawn(move || {
        let mut stream = Seed(5).stream(name);
        for round in 0.. {
            let ends = until.map_or(round == ROUNDS, |until| Instant::now() > until);
            if ends {
                return;
            }
            let sample = &samples[(round % samples.len() as u64) as usize];
            let bytes =
                if round < samples.len() as u64 { sample.clone() } else { changed(sample, &mut stream) };
            begun.send(bytes.clone()).expect("the other side waits");
            let outcome = catch_unwind(AssertUnwindSafe(|| read(&bytes)));
            assert!(outcome.is_ok(), "`{name}` panicked in round {round}: {}", kept(name, &bytes));
        }
    });
    let mut last = Vec::new();
    loop {
        match rounds.recv_timeout(PATIENCE) {
            Ok(bytes) => last = bytes,
            Err(RecvTimeoutError::Timeout) => panic!("`{name}` hangs: {}", kept(name, &last)),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    assert!(worker.join().is_ok(), "the worker has told what it is");
}

fn kept(name: &str, bytes: &[u8]) -> String {
    let path = std::env::temp_dir().join(format!("pagetide-damage-{name}-{}", std::process::id()));
    let shown: PathBuf = path.clone();
    match std::fs::write(path, bytes) {
        Ok(()) => format!("the input is in `{}`", shown.display()),
        Err(error) => format!("the input cannot be kept: {error}"),
    }
}

/// A few changes, small ones and large ones.
fn changed(sample: &[u8], stream: &mut Stream) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    for _ in 0..=stream.below(4) {
        if bytes.is_empty() {
            bytes.push(b'\n');
        }
        let len = bytes.len() as u64;
        let place = stream.below(len) as usize;
        let end = (place + stream.below(200) as usize).min(bytes.len());
        match stream.below(8) {
            0 => bytes[place] = stream.below(256) as u8,
            1 => bytes[place] ^= 1 << stream.below(8),
            2 => drop(bytes.remove(place)),
            3 => bytes.insert(place, b"0123456789<>()\"[]{},=-\n"[stream.below(23) as usize]),
            4 => {
                let extreme = EXTREMES[stream.below(EXTREMES.len() as u64) as usize];
                let end = (place + extreme.len()).min(bytes.len());
                drop(bytes.splice(place..end, extreme.iter().copied()));
            }
            5 => drop(bytes.drain(place..end)),
            6 => {
                let part = bytes[place..end].to_vec();
                let at = stream.below(len) as usize;
                drop(bytes.splice(at..at, part));
            }
            _ => bytes.truncate(place),
        }
    }
    bytes
}
