//! Advice on files, reading ahead and cutting them: stories, and scenes that are drawn. All invariants are checked
//! after every event.

use kernel::Filesystem;

use sim::run::Checks;
use sim::{SimRun, SimSystem, machines};
use units::{Bytes, Nanos, Seed};
use workload::TaskSpec;
use workload::system::{Errno, FileAdvice, OpenMode, System, SystemError};

use crate::story::{self, tell, tell_with};

/// A machine of 16 MiB.
fn machine(kernel: &str, filesystem: Filesystem) -> SimRun {
    SimRun { filesystem, ..story::machine(kernel, 16) }
}

async fn count(sys: &SimSystem, counter: &str) -> Result<u64, SystemError> {
    let counters = sys.vmstat().await?;
    Ok(counters.iter().find(|(name, _)| name == counter).map_or(0, |&(_, value)| value))
}

const MIB: u64 = 1 << 20;
const ALL: u64 = 4 * MIB;

#[test]
fn what_will_be_needed_is_read_and_what_is_not_needed_is_dropped_in_whole_pages() {
    for filesystem in [Filesystem::Ext4, Filesystem::Xfs] {
        tell(&machine("linux-6.12", filesystem), |sys| async move {
            sys.lay_out_file("old", Bytes(ALL)).await?;
            let old = sys.open("old", OpenMode::ReadWrite).await?;
            let resident = |offset, len| sys.resident_pages(&old, offset, len);
            sys.advise_file(&old, MIB, 2 * MIB, FileAdvice::WillNeed).await?;
            assert_eq!(resident(0, ALL).await?, 320, "what a request to the disk holds");
            assert_eq!(resident(MIB, 2 * MIB).await?, 320);
            sys.read_ahead(&old, 0, 1).await?;
            assert_eq!(resident(0, ALL).await?, 321);
            sys.read(&old, 0, ALL).await?;
            sys.advise_file(&old, MIB + 1, MIB, FileAdvice::DontNeed).await?;
            assert_eq!(resident(0, ALL).await?, 1024 - 255, "the pages at both ends stay");
            // What is dirty is written first, and goes with the next call.
            sys.write(&old, 0, 8192).await?;
            sys.advise_file(&old, 0, 0, FileAdvice::DontNeed).await?;
            assert_eq!(resident(0, ALL).await?, 2);
            sys.fsync(&old).await?;
            sys.advise_file(&old, 0, 0, FileAdvice::DontNeed).await?;
            assert_eq!(resident(0, ALL).await?, 0);
            Ok(())
        });
    }
}

/// Measured: guests of 5.10, 6.12 and 7.2 count none, where the model counted every page that such a write had to read.
#[test]
fn a_page_that_comes_back_to_be_written_in_part_is_no_refault() {
    tell_with(&story::machine("linux-6.12", 8), Checks::AtTheEnd, |sys| async move {
        sys.lay_out_file("old", Bytes(40 * MIB)).await?;
        let old = sys.open("old", OpenMode::ReadWrite).await?;
        for _ in 0..2 {
            for at in (0..40 * MIB).step_by(16 << 10) {
                sys.write(&old, at + 100, 1000).await?;
            }
        }
        assert!(count(&sys, "pgpgin").await? > 2 * 4 * 2200, "pages were evicted, and read again");
        assert_eq!(count(&sys, "workingset_refault_file").await?, 0);
        Ok(())
    });
}

/// Pages written back within eight seconds of 100 that are far from any threshold, where `laid_out` was written before.
fn written_of_a_few_dirty_pages(kernel: &str, laid_out: u64) -> u64 {
    let written = std::rc::Rc::new(std::cell::Cell::new(0));
    let seen = std::rc::Rc::clone(&written);
    tell_with(&machine(kernel, Filesystem::Ext4), Checks::AtTheEnd, move |sys| async move {
        sys.lay_out_file("old", Bytes(laid_out)).await?;
        let new = sys.open("new", OpenMode::Create).await?;
        sys.write(&new, 0, 100 * 4096).await?;
        sys.sleep(Nanos::from_secs(8)).await;
        seen.set(count(&sys, "nr_written").await?);
        Ok(())
    });
    written.get()
}

/// Measured: guests of 5.10, 6.1, 6.12 and 7.2 write all 1,200 new files of a page after five seconds, and none where a
/// file had been written before, 40 seconds ago as well.
#[test]
fn where_nothing_was_written_yet_the_flusher_leaves_nothing_dirty() {
    assert_eq!(written_of_a_few_dirty_pages("linux-6.12", 0), 100);
    assert_eq!(written_of_a_few_dirty_pages("linux-6.12", MIB), 0);
    assert_eq!(written_of_a_few_dirty_pages("linux-2.6.32", 0), 0, "no share of the threshold for anybody");
}

/// The next transaction was committed as it opened. Measured: a guest of 6.12 keeps its 2,040 journal heads.
#[test]
fn a_sync_leaves_no_request_for_a_commit_behind() {
    tell_with(&machine("linux-6.12", Filesystem::Ext4), Checks::AtTheEnd, |sys| async move {
        let written = async || count(&sys, "pgpgout").await;
        sys.open("synced", OpenMode::Create).await?;
        sys.sync().await?;
        let before = written().await?;
        sys.open("new", OpenMode::Create).await?;
        sys.sleep(Nanos::from_secs(1)).await;
        assert_eq!(written().await?, before);
        sys.sleep(Nanos::from_secs(5)).await;
        assert!(written().await? > before, "a transaction is five seconds old at most");
        Ok(())
    });
}

/// The block that names what was logged and the commit block are pages of the device. Measured: a guest of 6.12 that
/// lays out 100 or 2,000 files, with a commit for each, has 200 or 4,000 active pages by that.
#[test]
fn each_commit_leaves_two_pages_of_the_log_in_memory() {
    let tells = |commits: u32| {
        let result =
            tell_with(&machine("linux-6.12", Filesystem::Ext4), Checks::AtTheEnd, move |sys| async move {
                for number in 0..commits {
                    let file = sys.open(&number.to_string(), OpenMode::Create).await?;
                    sys.fsync(&file).await?;
                }
                Ok(())
            });
        result.vmstat["nr_active_file"]
    };
    assert_eq!(tells(31) - tells(1), 60);
}

#[test]
fn files_that_were_just_laid_out_left_their_commits_in_memory() {
    let kernel = mm::Version::parse("linux-6.12").expect("a preset");
    let (hardware, layout) =
        machines::build(workload::scenario::UML_MACHINE, Bytes(134 << 20), &kernel).expect("a machine");
    let spec = SimRun { hardware, layout, ..story::machine("linux-6.12", 134) };
    tell_with(&spec, Checks::AtTheEnd, |sys| async move {
        let files: Vec<_> = (0..100).map(|number| (format!("{number}"), Bytes(112_299))).collect();
        sys.lay_out_files(&files).await?;
        assert_eq!(count(&sys, "nr_file_pages").await?, 200);
        assert!(count(&sys, "nr_active_file").await? > 160, "all but what waits in batches");
        assert_eq!(count(&sys, "pgactivate").await?, 0, "that was before the run");
        sys.drop_caches(3).await?;
        assert_eq!(count(&sys, "nr_file_pages").await?, 0);
        Ok(())
    });
}

/// Pages in memory after reads of a page each, from the beginning on.
async fn read_ahead_by(sys: &SimSystem, advice: FileAdvice) -> Result<u64, SystemError> {
    let whole = sys.open("old", OpenMode::Read).await?;
    sys.read(&whole, 0, ALL).await?; // What is on its way from the disk would stay.
    sys.advise_file(&whole, 0, 0, FileAdvice::DontNeed).await?;
    let file = sys.open("old", OpenMode::Read).await?;
    sys.advise_file(&file, 0, 0, advice).await?;
    for page in 0..33 {
        sys.read(&file, page * 4096, 4096).await?;
    }
    sys.resident_pages(&file, 0, ALL).await
}

#[test]
fn a_sequential_file_is_read_ahead_twice_as_far_and_a_random_one_not_at_all() {
    tell(&machine("linux-6.1", Filesystem::Ext4), |sys| async move {
        sys.lay_out_file("old", Bytes(ALL)).await?;
        let mut pages = Vec::new();
        for advice in [FileAdvice::Normal, FileAdvice::Sequential, FileAdvice::Random, FileAdvice::NoReuse] {
            pages.push(read_ahead_by(&sys, advice).await?);
        }
        assert_eq!(pages[2], 33);
        assert_eq!(pages[0], pages[3]);
        assert!(pages[1] > pages[0] && pages[0] > 33, "{pages:?}");
        Ok(())
    });
}

/// A log that is cut and written anew is no refault, and one that grew reads as zeroes.
#[test]
fn what_is_cut_off_is_gone_and_does_not_come_back() {
    for filesystem in [Filesystem::Ext3, Filesystem::Ext4, Filesystem::Xfs] {
        let result = tell(&machine("linux-6.12", filesystem), |sys| async move {
            let log = sys.open("log", OpenMode::Create).await?;
            for len in [0, 10_000, 4096, MIB + 5, 0] {
                sys.write(&log, 0, MIB).await?;
                sys.fsync(&log).await?;
                sys.truncate(&log, len).await?;
                assert_eq!(sys.file_size("log").await?, len);
                let left = sys.resident_pages(&log, 0, 2 * MIB).await?;
                assert!(left <= len.div_ceil(4096), "{left} pages of {len} bytes");
                assert_eq!(sys.read(&log, 0, 2 * MIB).await?, len);
            }
            sys.write(&log, 0, 4096).await?;
            sys.truncate(&log, 0).await?;
            sys.sync().await?;
            Ok(())
        });
        assert_eq!(result.vmstat["workingset_refault_file"], 0);
    }
}

#[test]
fn a_file_takes_the_name_of_another_with_all_that_is_in_memory_of_it() {
    for filesystem in [Filesystem::Ext3, Filesystem::Ext4, Filesystem::Xfs] {
        tell(&machine("linux-6.12", filesystem), |sys| async move {
            sys.lay_out_file("settings", Bytes(5 * 4096)).await?;
            let old = sys.open("settings", OpenMode::Read).await?;
            sys.make_dir("d").await?;
            let new = sys.open("d/settings.new", OpenMode::Create).await?;
            sys.write(&new, 0, 8192).await?;
            sys.fsync(&new).await?;
            sys.rename("d/settings.new", "settings").await?;
            let errno = |result: Result<u64, SystemError>| result.expect_err("it has another name").errno;
            assert_eq!(errno(sys.file_size("d/settings.new").await), Errno::NoEnt);
            assert_eq!(sys.file_size("settings").await?, 8192);
            let renamed = sys.open("settings", OpenMode::Read).await?;
            assert_eq!(sys.resident_pages(&renamed, 0, 8192).await?, 2);
            // Who had the other one open still reads it, and nothing keeps the directory.
            assert_eq!(sys.read(&old, 0, ALL).await?, 5 * 4096);
            sys.remove_dir("d").await?;
            sys.rename("settings", "settings").await?;
            drop((old, new, renamed));
            sys.drop_caches(3).await?;
            sys.rename("settings", "other").await?;
            assert_eq!(sys.file_size("other").await?, 8192);
            let gone = sys.rename("settings", "other").await.expect_err("it was renamed");
            assert_eq!(gone.errno, Errno::NoEnt);
            sys.make_dir("d").await?;
            assert_eq!(sys.rename("d", "other").await.expect_err("a directory").errno, Errno::IsDir);
            Ok(sys.unlink("other").await?)
        });
    }
}

/// One of several that give two files the names of each other.
async fn renames(sys: SimSystem, seed: u64) -> Result<(), SystemError> {
    let mut chance = Seed(seed).stream("renames");
    for _ in 0..60 {
        let mut name = || ["a", "b", "d/a", "d/b"][chance.below(4) as usize];
        let (from, to) = (name(), name());
        let done = match chance.below(5) {
            0 => sys.unlink(from).await,
            1 | 2 => match sys.open(from, OpenMode::Create).await {
                Ok(file) => sys.write(&file, 0, chance.below(100_000)).await.map(drop),
                Err(error) => Err(error),
            },
            _ => sys.rename(from, to).await,
        };
        match done {
            Err(error) if !matches!(error.errno, Errno::NoEnt | Errno::Exist) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

#[test]
fn names_lead_to_one_file_each_whoever_renames_it() {
    for seed in 1..=8 {
        for filesystem in [Filesystem::Ext3, Filesystem::Ext4, Filesystem::Xfs] {
            tell(&machine("linux-6.12", filesystem), move |sys| async move {
                sys.make_dir("d").await?;
                let mut tasks = Vec::new();
                for task in 0..3 {
                    let program = move |sys: SimSystem| renames(sys, seed * 10 + task);
                    tasks.push(sys.spawn(TaskSpec::named("renames"), program).await?);
                }
                for task in tasks {
                    sys.join(task).await??;
                }
                Ok(())
            });
        }
    }
}

/// One of several readers, writers and cutters of two files in little memory.
async fn scene(sys: SimSystem, seed: u64) -> Result<(), SystemError> {
    let mut chance = Seed(seed).stream("file calls");
    let files = [sys.open("old", OpenMode::ReadWrite).await?, sys.open("new", OpenMode::ReadWrite).await?];
    for _ in 0..100 {
        let file = &files[chance.below(2) as usize];
        let (offset, len) = (chance.below(3 * ALL), chance.below(MIB));
        match chance.below(12) {
            0 => sys.advise_file(file, offset, len, FileAdvice::WillNeed).await?,
            1 => sys.advise_file(file, offset, len, FileAdvice::DontNeed).await?,
            2 => sys.advise_file(file, 0, 0, FileAdvice::DontNeed).await?,
            3 => sys.advise_file(file, 0, 0, FileAdvice::Sequential).await?,
            4 => sys.advise_file(file, 0, 0, FileAdvice::Normal).await?,
            5 => sys.read_ahead(file, offset, len).await?,
            6 => sys.truncate(file, offset).await?,
            7 => sys.fsync(file).await?,
            8 | 9 => drop(sys.write(file, offset, len).await?),
            _ => drop(sys.read(file, offset, len).await?),
        }
    }
    Ok(())
}

#[test]
fn files_stay_whole_whatever_two_tasks_call_on_them() {
    let kernels = ["linux-2.6.32", "linux-4.19", "linux-5.10", "linux-6.1", "linux-6.12", "linux-7.2"];
    for (seed, kernel) in (1..).zip(kernels) {
        for filesystem in [Filesystem::Ext3, Filesystem::Ext4, Filesystem::Xfs] {
            tell(&machine(kernel, filesystem), move |sys| async move {
                sys.lay_out_file("old", Bytes(3 * ALL + 77)).await?;
                sys.open("new", OpenMode::Create).await?;
                let mut tasks = Vec::new();
                for task in 0..2 {
                    let program = move |sys: SimSystem| scene(sys, seed * 10 + task);
                    tasks.push(sys.spawn(TaskSpec::named("worker"), program).await?);
                }
                for task in tasks {
                    sys.join(task).await??;
                }
                Ok(())
            });
        }
    }
}

/// While the flusher was writing a chunk of a file, `sync` passed that file by: 17,524 of 21,704 dirty pages were left.
#[test]
fn sync_writes_the_file_that_the_flusher_is_at() {
    let kernel = mm::Version::parse("linux-6.12").expect("a kernel");
    let (hardware, layout) = machines::build(machines::UML, Bytes(256 * MIB), &kernel).expect("a machine");
    let spec = SimRun { hardware, layout, ..story::machine("linux-6.12", 256) };
    tell_with(&spec, Checks::AtTheEnd, |sys| async move {
        sys.lay_out_file("file", Bytes(128 * MIB)).await?;
        let file = sys.open("file", OpenMode::ReadWrite).await?;
        // Every other page, so that each is a request of its own.
        for at in (0..128 * MIB).step_by(8192) {
            sys.write(&file, at, 4096).await?;
        }
        sys.sync().await?;
        let counters = sys.vmstat().await?;
        let dirty = counters.iter().find(|(name, _)| name == "nr_dirty");
        assert_eq!(dirty.map(|(_, pages)| *pages), Some(0));
        Ok(())
    });
}
