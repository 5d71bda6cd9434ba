//! How fast the disk is that files lie on: timed reads of their own pages, past the page cache.
//!
//! Three times [`EACH`]: random pages one after the other, random pages by [`READERS`] threads, and one file after the
//! other in sequence. Reads go around the cache (`O_DIRECT`), so they leave it as it was. Left out: writes, which would
//! change somebody's files; what the disk does while others use it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use units::{Bytes, Nanos, Seed};

/// A part of the measurement takes so long.
const EACH: Duration = Duration::from_millis(330);
/// So many threads ask at once.
const READERS: u64 = 16;
/// Files that are read from at most: the largest.
const FILES_MAX: usize = 64;
/// With less in all, a reader would meet the same pages again and again.
const LEAST: u64 = 4 << 20;
const PAGE: usize = 4096;
/// One read in sequence.
const STRETCH: usize = 1 << 20;

/// What a disk was measured to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpeed {
    /// The median of random reads of a page, one after the other.
    pub latency: Nanos,
    /// Time for each of random reads of a page, many at once.
    pub between: Nanos,
    /// Bytes a second in sequence, without the latency of each read.
    pub bandwidth: Bytes,
    /// The readahead window that its kernel has for it; none where sysfs does not tell.
    pub readahead: Option<Bytes>,
}

/// Reads from the largest of these files for a second; none where they are too small, or nothing can be read around the
/// cache, as on a filesystem in memory.
pub fn measure(files: impl IntoIterator<Item = PathBuf>) -> Option<DiskSpeed> {
    let files = Files::open(files)?;
    let alone = AtomicU64::new(0);
    let mut times = files.random_reads(1, &alone)?;
    let middle = times.len() / 2;
    let latency = *times.select_nth_unstable(middle).1;
    let count = AtomicU64::new(0);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for reader in 0..READERS {
            let (files, count) = (&files, &count);
            scope.spawn(move || files.random_reads(2 + reader, count));
        }
    });
    let spent = u64::try_from(started.elapsed().as_nanos()).ok()?;
    let between = (spent / count.load(Ordering::Relaxed).max(1)).min(latency);
    let (latency, between) = (Nanos(latency), Nanos(between));
    Some(DiskSpeed { latency, between, bandwidth: files.in_sequence(latency)?, readahead: files.readahead() })
}

/// Files that are read around the cache, with their whole pages.
struct Files(Vec<(File, u64)>);

impl Files {
    fn open(files: impl IntoIterator<Item = PathBuf>) -> Option<Self> {
        let size = |path: PathBuf| {
            let found = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
            Some((found.len() / PAGE as u64, path))
        };
        let mut sizes: Vec<(u64, PathBuf)> = files.into_iter().filter_map(size).collect();
        sizes.sort_by(|a, b| b.cmp(a));
        let open = |(pages, path): (u64, PathBuf)| {
            let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path).ok()?;
            (pages > 0).then_some((file, pages))
        };
        let files: Vec<(File, u64)> = sizes.into_iter().take(FILES_MAX).filter_map(open).collect();
        let bytes = files.iter().map(|(_, pages)| pages).sum::<u64>() * PAGE as u64;
        (bytes >= LEAST).then_some(Self(files))
    }

    /// Nanoseconds of each read, for [`EACH`]; none where a read is refused.
    fn random_reads(&self, stream: u64, count: &AtomicU64) -> Option<Vec<u64>> {
        let mut random = Seed(stream).stream("disk speed");
        let mut buffer = Aligned::of(PAGE);
        let all: u64 = self.0.iter().map(|(_, pages)| pages).sum();
        let (mut times, started) = (Vec::new(), Instant::now());
        while started.elapsed() < EACH {
            let mut page = random.below(all);
            let (file, _) = self.0.iter().find(|(_, pages)| match page.checked_sub(*pages) {
                Some(rest) => {
                    page = rest;
                    false
                }
                None => true,
            })?;
            let before = Instant::now();
            file.read_exact_at(buffer.bytes(), page * PAGE as u64).ok()?;
            times.push(u64::try_from(before.elapsed().as_nanos()).ok()?);
            count.fetch_add(1, Ordering::Relaxed);
        }
        Some(times)
    }

    /// Of the block device that the first lies on, or of the disk that this is a part of.
    fn readahead(&self) -> Option<Bytes> {
        let device = rustix::fs::fstat(&self.0.first()?.0).ok()?.st_dev;
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let of = |queue: &str| {
            let path = format!("/sys/dev/block/{major}:{minor}/{queue}/read_ahead_kb");
            std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok()
        };
        Some(Bytes(of("queue").or_else(|| of("../queue"))? << 10))
    }

    /// Bytes a second, of whole stretches, beside the latency of each read.
    fn in_sequence(&self, latency: Nanos) -> Option<Bytes> {
        let mut buffer = Aligned::of(STRETCH);
        let (mut reads, mut read, started) = (0, 0, Instant::now());
        'files: for (file, pages) in self.0.iter().cycle() {
            let bytes = pages * PAGE as u64;
            let mut at = 0;
            while at < bytes {
                if started.elapsed() > EACH {
                    break 'files;
                }
                let len = (bytes - at).min(STRETCH as u64) as usize;
                file.read_exact_at(&mut buffer.bytes()[..len], at).ok()?;
                at += len as u64;
                read += len as u64;
                reads += 1;
            }
        }
        let spent = started.elapsed().as_secs_f64();
        // A disk that reads ahead answers some reads at once.
        let moving = (spent - f64::from(reads) * latency.get() as f64 / 1e9).max(spent / 4.0);
        Some(Bytes((read as f64 / moving) as u64).max(Bytes(1)))
    }
}

/// Memory that begins where a page does, as `O_DIRECT` asks.
struct Aligned {
    memory: Vec<u8>,
    len: usize,
}

impl Aligned {
    fn of(len: usize) -> Self {
        Self { memory: vec![0; len + PAGE], len }
    }

    fn bytes(&mut self) -> &mut [u8] {
        let start = self.memory.as_ptr().align_offset(PAGE);
        &mut self.memory[start..start + self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::print_stderr)] // A test that does not run must not look like one that passed.
    fn a_disk_is_measured_by_files_that_are_large_enough() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let file = |name: &str, len: usize| {
            let path = folder.path().join(name);
            std::fs::write(&path, vec![7; len]).unwrap();
            File::open(&path).unwrap().sync_all().unwrap();
            path
        };
        let (small, large) = (file("small", 5000), file("large", 8 << 20));
        assert_eq!(measure([small.clone(), folder.path().join("missing"), folder.path().to_owned()]), None);
        let Some(speed) = measure([small, large]) else {
            return eprintln!("SKIPPED: the files here are not on a disk");
        };
        assert!(speed.between <= speed.latency && speed.latency.get() > 100, "{speed:?}");
        assert!(speed.bandwidth.get() > 1 << 20, "{speed:?}");
    }
}
