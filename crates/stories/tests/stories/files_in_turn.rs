//! Files that grow in turn, and files that are made and removed again and again: what of them stays in memory, and
//! what of their metadata is written. Figures of guests are those of `uml:5.10`, with 2,000 and 500 files.

use std::cell::RefCell;
use std::rc::Rc;

use kernel::{Filesystem, Machine, OpenFile, Process, WaitReason};
use mm::version::geometry::Cache;
use sim::SimKernel;
use units::{Nanos, PAGE_SIZE};

use crate::writing::{End, MIB, World};

const FILES: u64 = 200;

fn count(kernel: &SimKernel, name: &str) -> u64 {
    kernel.vmstat().into_iter().find(|(other, _)| other == name).expect("a counter").1
}

/// Extents that are known, pages dirtied so far, active pages of files, KiB read.
fn counts(kernel: &SimKernel) -> [u64; 4] {
    let objects = kernel.mem(|mem| mem.core.slabs.objects(Cache::ExtentStatus));
    [objects, count(kernel, "nr_dirtied"), count(kernel, "nr_active_file"), count(kernel, "pgpgin")]
}

/// Gives each file a block in turn, and writes them back.
async fn round(kernel: &SimKernel, process: &Process, files: &[OpenFile], block: u64) {
    for file in files {
        assert_eq!(kernel.write(process, file, block * PAGE_SIZE, PAGE_SIZE).await, Ok(PAGE_SIZE));
    }
    kernel.sync().await;
}

/// ```text
///   blocks    1     4     5 .. 10                    17 .. 32
///   extents   1     4     5 .. 10, in a block that   one for all of these: their places were kept
///                         each writeback changes
/// ```
/// Guests: 22,032 objects and 33,295 pages dirtied after ten rounds, 2,000 more active pages from the fifth on.
#[test]
fn files_that_grow_in_turn_have_an_extent_for_each_writeback() {
    World::new("linux-5.10", 128 * MIB).run(|kernel, process| async move {
        let mut files = Vec::new();
        for number in 0..FILES {
            files.push(kernel.open(&process, &format!("{number}"), true).await.expect("a new file"));
        }
        let mut before = counts(&kernel);
        for block in 0..40 {
            round(&kernel, &process, &files, block).await;
            let now = counts(&kernel);
            let [known, dirtied, active, _] = [0, 1, 2, 3].map(|at| now[at] - before[at]);
            let extents = match block {
                0 => 2, // And the hole behind it.
                1..=16 | 32 => 1,
                _ => 0,
            };
            assert_eq!(known, extents * FILES, "block {block}");
            let leaf = u64::from(block >= 4);
            let beside = dirtied - (1 + leaf) * FILES;
            assert!(beside < FILES / 4, "block {block}: {beside} pages of tables and bitmaps");
            let made = if block == 4 { FILES } else { 0 };
            assert!(active.abs_diff(made) < FILES / 4, "block {block}: {active} more active");
            before = now;
        }
    });
}

/// Guests: a page each of 1,250 files with ten extents brought 12,500 objects, and 5,000 KiB more than those pages.
#[test]
fn where_a_page_lies_is_read_once_for_all_of_its_file() {
    for (blocks, leaf) in [(3, 0), (10, 4)] {
        World::new("linux-5.10", 128 * MIB).run(move |kernel, process| async move {
            let mut files = Vec::new();
            for number in 0..FILES {
                files.push(kernel.open(&process, &format!("{number}"), true).await.expect("a new file"));
            }
            for block in 0..blocks {
                round(&kernel, &process, &files, block).await;
            }
            kernel.drop_caches(3).await.expect("a mask");
            let before = counts(&kernel);
            assert_eq!(before[0], 0, "they could go, though the files are open");
            for (file, wanted) in files.iter().zip([1, 0, 2].into_iter().cycle()) {
                kernel.advise_random(file);
                let offset = wanted * PAGE_SIZE;
                assert_eq!(kernel.read(&process, file, offset, PAGE_SIZE).await, Ok(PAGE_SIZE));
            }
            let now = counts(&kernel);
            assert_eq!(now[0], blocks * FILES);
            assert_eq!(now[3] - before[3], (4 + leaf) * FILES);
            let active = now[2] - before[2]; // Or on their way, in a CPU's batch.
            assert!(active.abs_diff(FILES * leaf / 4) < 31, "{active} blocks of extents are active at once");
        });
    }
}

/// Inodes in memory after each of `rounds` in which 500 files are made and removed.
fn inodes(kernel: &'static str, rounds: u64, pause: Nanos) -> (Vec<u64>, End) {
    let told = Rc::new(RefCell::new(Vec::new()));
    let tell = Rc::clone(&told);
    let world = World { filesystem: Filesystem::Xfs, ..World::new(kernel, 256 * MIB) };
    let end = world.run(move |kernel, process| async move {
        drop(kernel.open(&process, "stays", true).await.expect("a new file"));
        for _ in 0..rounds {
            for number in 0..500 {
                drop(kernel.open(&process, &format!("{number}"), true).await.expect("a new file"));
            }
            for number in 0..500 {
                kernel.unlink(&process, &format!("{number}")).await.expect("it is there");
            }
            tell.borrow_mut().push(count(&kernel, "nr_inodes"));
            kernel.machine().sleep(pause, WaitReason::UserSleep).await;
        }
        kernel.check_files().expect("names and inodes agree");
    });
    (told.take(), end)
}

/// ```text
///   chunk     0: a file stays         1 .. 7: all are gone, and the chunk with them
///   round 2   takes 63 of its inodes  new chunks, since nobody takes blocks that were freed before the log is written
///   5 s       "                       what was left of the first ones goes
/// ```
/// Guests: 512, 944, 1,384, and 510 after the worker.
#[test]
fn a_new_file_takes_the_inode_of_one_that_is_gone_unless_its_chunk_went() {
    let (inodes, end) = inodes("linux-5.10", 3, Nanos::from_millis(100));
    assert_eq!(inodes, [501, 501 + 437, 501 + 2 * 437]);
    assert!(end.count("pgpgout") > 0, "the log is forced for the second new chunk");
}

#[test]
fn a_chunk_that_is_freed_leaves_memory_once_the_log_is_written() {
    let (inodes, _) = inodes("linux-5.10", 8, Nanos::from_secs(1));
    assert!(inodes.iter().all(|&inodes| inodes < 3_200), "{inodes:?}: the worker comes by every 5 s");
    assert!(inodes.windows(2).any(|pair| pair[1] < pair[0]), "{inodes:?}");
}
