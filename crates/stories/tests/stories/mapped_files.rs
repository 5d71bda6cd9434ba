//! Mapped files: what a fault reads and maps, what reclaim makes of accesses through page tables, writes, and the end
//! of mappings (MAPPED). Stories are told with all invariants checked after every event.

use mm::version::rules::{FaultCount, MappedHits, WriteFault};
use sim::run::Checks;
use sim::{SimRun, SimSystem};
use units::{Bytes, Nanos};
use workload::system::{Advice, FileMapping, OpenMode, System, TaskSpec};
use workload::{Errno, WorkloadError};

use crate::story::{self, tell, tell_with};

const PAGE: u64 = 4096;
/// Pages of a mapping that begins at a huge page, where there are such.
const HUGE: u64 = 512;
const READ: FileMapping = FileMapping { shared: true, writable: false, executable: false };
const CODE: FileMapping = FileMapping { shared: false, writable: false, executable: true };
const SHARED: FileMapping = FileMapping { shared: true, writable: true, executable: false };
const PRIVATE: FileMapping = FileMapping { shared: false, writable: true, executable: false };

/// A machine of 16 MiB.
fn machine(kernel: &str) -> SimRun {
    story::machine(kernel, 16)
}

/// Faults, major faults, pages mapped.
async fn counts(sys: &SimSystem) -> (u64, u64, u64) {
    let counters = sys.vmstat().await.expect("the simulation has it");
    let of = |wanted: &str| counters.iter().find(|(name, _)| name == wanted).map_or(0, |&(_, value)| value);
    (of("pgfault"), of("pgmajfault"), of("nr_mapped"))
}

async fn counter(sys: &SimSystem, name: &str) -> u64 {
    let counters = sys.vmstat().await.expect("the simulation has it");
    counters.into_iter().find(|(of, _)| of == name).map_or(0, |(_, value)| value)
}

/// Faults, major faults and pages mapped since `before`.
async fn since(sys: &SimSystem, before: (u64, u64, u64)) -> (u64, u64, u64) {
    let now = counts(sys).await;
    (now.0 - before.0, now.1 - before.1, now.2 - before.2)
}

async fn mapped(
    sys: &SimSystem,
    pages: u64,
    how: FileMapping,
) -> Result<<SimSystem as System>::Mapping, WorkloadError> {
    sys.lay_out_file("file", Bytes(pages * PAGE)).await?;
    let file = sys.open("file", OpenMode::ReadWrite).await?;
    Ok(sys.map_file(&file, 0, Bytes(pages * PAGE), how).await?)
}

/// Windows are 32 pages.
#[test]
fn a_miss_reads_around_the_fault_and_maps_the_sixteen_pages_around_it() {
    let (tries, once) = (FaultCount::Tries, FaultCount::Completed);
    for (kernel, count, faults, entries) in [
        ("linux-2.6.32", tries, 2, 1),
        ("linux-4.19", tries, 2, 16),
        ("linux-6.1", tries, 2, 16),
        ("linux-6.1+faults-count-once", once, 1, 16),
        ("linux-6.12", once, 1, 16),
    ] {
        assert_eq!(machine(kernel).kernel.rules.fault_count, count, "{kernel}");
        tell(&machine(kernel), move |sys| async move {
            let mapping = mapped(&sys, HUGE, READ).await?;
            let before = counts(&sys).await;
            sys.touch_reading(&mapping, 120, 1).await?;
            assert_eq!(since(&sys, before).await, (faults, 1, entries), "{kernel}");
            // From 104 on: half a window before the fault.
            assert_eq!(sys.mapping_resident(&mapping, 104, 32).await?, 32, "{kernel}");
            assert_eq!(sys.mapping_resident(&mapping, 0, HUGE).await?, 32, "{kernel}");
            let before = counts(&sys).await;
            sys.touch_reading(&mapping, 112, 16).await?;
            let faults = if entries == 1 { 15 } else { 0 };
            assert_eq!(since(&sys, before).await, (faults, 0, faults), "{kernel}: no more are needed");
            Ok(())
        });
    }
}

/// 64 pages in memory, read in their order: from 2 MiB on a mapping begins at a huge page.
#[test]
fn a_short_mapping_begins_anywhere_and_takes_a_fault_more() {
    for (pages, faults) in [(64, 5), (HUGE, 4)] {
        tell(&machine("linux-6.12"), move |sys| async move {
            let first = mapped(&sys, pages, READ).await?;
            sys.touch_reading(&first, 0, 64).await?;
            let file = sys.open("file", OpenMode::Read).await?;
            let second = sys.map_file(&file, 0, Bytes(pages * PAGE), READ).await?;
            let before = counts(&sys).await;
            sys.touch_reading(&second, 0, 64).await?;
            assert_eq!(since(&sys, before).await.0, faults, "{pages} pages");
            Ok(())
        });
    }
}

/// Pages that are in memory are written to: the fault lets go of the address space to look whether the writer pauses.
/// In guests of 5.10 and 6.1 two tasks that write to 1,024 pages take 2,049 faults more than in 6.12; where the pages
/// are mapped to be read, guests of 6.1 take no more.
#[test]
fn a_write_to_a_shared_mapping_is_tried_again_since_5_5_and_counts_twice_up_to_6_3() {
    use WriteFault::{Completed, Holding, TriedAgain};
    for (kernel, how, faults, mapped_faults) in [
        ("linux-5.4", Holding, 64, 64),
        ("linux-5.5", TriedAgain, 128, 128),
        ("linux-6.1", Completed, 128, 64),
        ("linux-6.12", Completed, 64, 64),
    ] {
        assert_eq!(machine(kernel).kernel.rules.write_fault, how, "{kernel}");
        tell(&machine(kernel), move |sys| async move {
            let reader = mapped(&sys, 64, SHARED).await?;
            sys.touch_reading(&reader, 0, 64).await?;
            let before = counts(&sys).await;
            sys.touch(&reader, 0, 64).await?;
            assert_eq!(since(&sys, before).await.0, mapped_faults, "{kernel}: mapped to be read");
            Ok(())
        });
        tell(&machine(kernel), move |sys| async move {
            let reader = mapped(&sys, 64, SHARED).await?;
            sys.touch_reading(&reader, 0, 64).await?;
            let file = sys.open("file", OpenMode::ReadWrite).await?;
            let writer = sys.map_file(&file, 0, Bytes(64 * PAGE), SHARED).await?;
            let before = counts(&sys).await;
            sys.touch(&writer, 0, 64).await?;
            assert_eq!(since(&sys, before).await.0, faults, "{kernel}: in memory");
            Ok(())
        });
    }
}

/// Faults far from each other: each misses, reads around its page, and tries again.
#[test]
fn what_a_fault_has_read_itself_is_no_hit_since_7_2() {
    for (kernel, hits, around) in [
        ("linux-6.12", MappedHits::Around, 32),
        ("linux-6.12+one-mapped-hit", MappedHits::Wanted, 1),
        ("linux-7.2", MappedHits::Wanted, 1),
    ] {
        assert_eq!(machine(kernel).kernel.rules.mapped_hits, hits, "{kernel}");
        tell(&machine(kernel), move |sys| async move {
            let mapping = mapped(&sys, 64 * 110, READ).await?;
            for fault in 0..100 {
                sys.touch_reading(&mapping, 64 * fault + 32, 1).await?;
            }
            assert_eq!(sys.mapping_resident(&mapping, 0, 6400).await?, 3200, "{kernel}: a hundred misses");
            sys.touch_reading(&mapping, 6432, 1).await?;
            assert_eq!(sys.mapping_resident(&mapping, 6400, 64).await?, around, "{kernel}: one more");
            Ok(())
        });
    }
}

#[test]
fn a_fault_on_the_marker_reads_on() {
    tell(&machine("linux-6.12"), |sys| async move {
        let mapping = mapped(&sys, HUGE, READ).await?;
        sys.touch_reading(&mapping, 100, 1).await?;
        assert_eq!(
            counts(&sys).await.2,
            15,
            "all of 96 to 111 but the marker, at three quarters of the window"
        );
        sys.touch_reading(&mapping, 108, 1).await?;
        sys.sleep(Nanos::from_millis(10)).await;
        assert_eq!(sys.mapping_resident(&mapping, 84, 64).await?, 64, "the next window follows the first");
        assert_eq!(sys.mapping_resident(&mapping, 0, HUGE).await?, 64);
        Ok(())
    });
}

#[test]
fn advice_says_how_much_is_read_around_a_fault() {
    for (advice, expected) in
        [(Advice::Normal, (84, 32)), (Advice::Random, (100, 1)), (Advice::Sequential, (100, 32))]
    {
        tell(&machine("linux-6.12"), move |sys| async move {
            let mapping = mapped(&sys, 256, READ).await?;
            sys.advise(&mapping, advice).await?;
            sys.touch_reading(&mapping, 100, 1).await?;
            let (first, count) = expected;
            assert_eq!(sys.mapping_resident(&mapping, first, count).await?, count, "{advice:?}");
            assert_eq!(sys.mapping_resident(&mapping, 0, 256).await?, count, "{advice:?}");
            Ok(())
        });
    }
}

/// Measured: of 34 MiB a guest in a virtual machine reads 1280 KiB, those of User-Mode Linux 128 KiB.
#[test]
fn advice_to_read_all_reads_what_a_request_to_the_disk_holds() {
    for (kernel, read) in [("linux-2.6.32", 3000), ("linux-6.1", 320), ("linux-7.2", 1024)] {
        tell(&machine(kernel), move |sys| async move {
            let mapping = mapped(&sys, 3000, READ).await?;
            sys.advise(&mapping, Advice::WillNeed).await?;
            sys.sleep(Nanos::from_millis(100)).await;
            assert_eq!(sys.mapping_resident(&mapping, 0, 3000).await?, read, "{kernel}");
            Ok(())
        });
    }
}

#[test]
fn what_was_read_ahead_is_mapped_sixteen_pages_at_a_time() {
    tell(&machine("linux-6.1"), |sys| async move {
        let mapping = mapped(&sys, 300, READ).await?;
        sys.advise(&mapping, Advice::WillNeed).await?;
        sys.sleep(Nanos::from_millis(100)).await;
        let before = counts(&sys).await;
        sys.touch_reading(&mapping, 0, 300).await?;
        assert_eq!(since(&sys, before).await, (20, 0, 300), "a fault for each 16 pages, and one more");
        sys.advise(&mapping, Advice::DontNeed).await?;
        assert_eq!(counts(&sys).await.2, 0, "nothing is mapped, all is in memory");
        assert_eq!(sys.mapping_resident(&mapping, 0, 300).await?, 300);
        Ok(())
    });
}

/// After a hundred misses more than pages found, a fault reads its own page alone.
#[test]
fn a_file_of_misses_is_no_longer_read_around() {
    tell_with(&machine("linux-2.6.32"), Checks::AtTheEnd, |sys| async move {
        let mapping = mapped(&sys, 1 << 16, READ).await?;
        for fault in 0..101 {
            sys.touch_reading(&mapping, 64 * fault, 1).await?;
        }
        let read = counter(&sys, "pgpgin").await;
        for fault in 200..210 {
            sys.touch_reading(&mapping, 64 * fault, 1).await?;
        }
        assert_eq!(counter(&sys, "pgpgin").await - read, 10 * 4, "KiB");
        Ok(())
    });
}

/// Pages of `hot` that are left after a stream of twice the memory was read, and major faults of the way.
async fn beside_a_stream(
    sys: SimSystem,
    how: FileMapping,
    advice: Option<Advice>,
) -> Result<(u64, u64), WorkloadError> {
    let hot = mapped(&sys, 512, how).await?;
    if let Some(advice) = advice {
        sys.advise(&hot, advice).await?;
    }
    sys.lay_out_file("stream", Bytes(32 << 20)).await?;
    let stream = sys.open("stream", OpenMode::Read).await?;
    sys.touch_reading(&hot, 0, 512).await?;
    let before = counts(&sys).await.1;
    for chunk in 0..32 {
        sys.read(&stream, chunk << 20, 1 << 20).await?;
        sys.touch_reading(&hot, 0, 512).await?;
    }
    let faults = counts(&sys).await.1 - before;
    Ok((sys.mapping_resident(&hot, 0, 512).await?, faults))
}

#[test]
fn pages_that_a_program_keeps_accessing_stay_beside_a_stream() {
    for kernel in
        ["linux-2.6.32", "linux-4.19", "linux-6.1", "linux-6.12", "linux-6.1+lru-gen", "linux-7.2+lru-gen"]
    {
        tell_with(&machine(kernel), Checks::Spread(50), move |sys| async move {
            let (left, faults) = beside_a_stream(sys, READ, None).await?;
            assert_eq!((left, faults), (512, 0), "{kernel}");
            Ok(())
        });
    }
}

/// Since 6.3 accesses to a mapping that are said to be random do not count.
#[test]
fn random_accesses_keep_pages_up_to_6_2_and_sequential_ones_never() {
    for (kernel, advice, stays) in [
        ("linux-6.1", Advice::Random, true),
        ("linux-6.12", Advice::Random, false),
        ("linux-6.1", Advice::Sequential, false),
        ("linux-6.12", Advice::Sequential, false),
    ] {
        tell_with(&machine(kernel), Checks::AtTheEnd, move |sys| async move {
            let (_, faults) = beside_a_stream(sys, READ, Some(advice)).await?;
            assert_eq!(faults == 0, stays, "{kernel} {advice:?}: {faults} faults");
            Ok(())
        });
    }
}

#[test]
fn a_page_that_was_accessed_once_is_kept_once_and_code_becomes_active() {
    for (kernel, how, activated) in [
        ("linux-6.1", READ, false),
        ("linux-6.1", CODE, true),
        ("linux-2.6.32", READ, true),
        ("linux-2.6.32+mapped-twice-activates", READ, false),
    ] {
        tell_with(&machine(kernel), Checks::AtTheEnd, move |sys| async move {
            let hot = mapped(&sys, 64, how).await?;
            sys.touch_reading(&hot, 0, 64).await?;
            sys.lay_out_file("stream", Bytes(64 << 20)).await?;
            let stream = sys.open("stream", OpenMode::Read).await?;
            sys.advise_random(&stream).await?;
            for chunk in 0..40 {
                sys.read(&stream, chunk << 20, 1 << 20).await?;
            }
            let active = counter(&sys, "pgactivate").await;
            assert_eq!(active >= 60, activated, "{kernel}: {active} activated");
            Ok(())
        });
    }
}

/// Guests of 6.12 and 7.2 that access 2,048 pages of a mapping in order: 1 miss, and 64 on 7.2 where code runs in it,
/// also where accesses are said to be random.
#[test]
fn since_7_2_a_miss_in_code_reads_a_window_from_there_on() {
    for (kernel, how, advice, misses) in [
        ("linux-6.12", CODE, Advice::Normal, 1),
        ("linux-6.12", CODE, Advice::Random, 256),
        ("linux-7.2", READ, Advice::Normal, 1),
        ("linux-7.2", READ, Advice::Random, 256),
        ("linux-7.2", CODE, Advice::Normal, 8),
        ("linux-7.2", CODE, Advice::Random, 8),
        ("linux-7.2", CODE, Advice::Sequential, 1),
        ("linux-7.2-exec-readahead", CODE, Advice::Random, 256),
    ] {
        tell_with(&machine(kernel), Checks::AtTheEnd, move |sys| async move {
            let mapping = mapped(&sys, 256, how).await?;
            sys.advise(&mapping, advice).await?;
            let before = counts(&sys).await;
            sys.touch_reading(&mapping, 0, 256).await?;
            assert_eq!(since(&sys, before).await.1, misses, "{kernel}, {how:?}, {advice:?}");
            Ok(())
        });
    }
}

/// Guests of 5.10, 6.1 and 7.2 that write to 2,048 pages of a private mapping, each a miss: 1,989 to 1,998 pages freed
/// more than where one miss reads all.
#[test]
fn a_copy_is_given_back_where_its_fault_has_to_wait_and_another_is_taken() {
    for (advice, freed) in [(Advice::Random, 64), (Advice::Normal, 3)] {
        tell(&machine("linux-6.12"), move |sys| async move {
            let mapping = mapped(&sys, 64, PRIVATE).await?;
            sys.advise(&mapping, advice).await?;
            let before = counter(&sys, "pgfree").await;
            sys.touch(&mapping, 0, 64).await?;
            assert_eq!(counter(&sys, "pgfree").await - before, freed, "{advice:?}");
            Ok(())
        });
    }
}

#[test]
fn a_shared_write_makes_a_page_dirty_and_faults_again_after_it_was_written() {
    tell(&machine("linux-6.12"), |sys| async move {
        let mapping = mapped(&sys, 64, SHARED).await?;
        sys.touch_reading(&mapping, 0, 16).await?;
        let before = counts(&sys).await.0;
        sys.touch(&mapping, 0, 4).await?;
        assert_eq!(counts(&sys).await.0 - before, 4, "each page by itself");
        assert_eq!(counter(&sys, "nr_dirty").await, 4);
        sys.touch(&mapping, 0, 4).await?;
        assert_eq!(counts(&sys).await.0 - before, 4, "it may be written to now");
        sys.sync().await?;
        assert_eq!(counter(&sys, "nr_dirty").await, 0);
        sys.touch_reading(&mapping, 0, 4).await?;
        assert_eq!(counts(&sys).await.0 - before, 4, "it is still mapped");
        sys.touch(&mapping, 0, 4).await?;
        assert_eq!((counts(&sys).await.0 - before, counter(&sys, "nr_dirty").await), (8, 4));
        Ok(())
    });
}

#[test]
fn a_private_write_makes_a_copy_that_the_file_does_not_see() {
    tell(&machine("linux-6.12"), |sys| async move {
        let mapping = mapped(&sys, 64, PRIVATE).await?;
        let anon = counter(&sys, "nr_anon_pages").await;
        sys.touch_reading(&mapping, 0, 1).await?;
        sys.touch(&mapping, 3, 2).await?;
        assert_eq!(counter(&sys, "nr_anon_pages").await - anon, 2);
        assert_eq!((counter(&sys, "nr_dirty").await, counts(&sys).await.2), (0, 14));
        let before = counts(&sys).await;
        sys.touch_reading(&mapping, 0, 16).await?;
        assert_eq!(since(&sys, before).await, (0, 0, 0), "copies are not mapped over");
        drop(mapping);
        assert_eq!((counter(&sys, "nr_anon_pages").await, counts(&sys).await.2), (anon, 0));
        Ok(())
    });
}

/// What a page table saw is not lost with it.
#[test]
fn unmapping_marks_what_was_accessed() {
    tell(&machine("linux-6.1"), |sys| async move {
        sys.lay_out_file("file", Bytes(64 * PAGE)).await?;
        let file = sys.open("file", OpenMode::Read).await?;
        for round in 0..2 {
            let mapping = sys.map_file(&file, 0, Bytes(64 * PAGE), READ).await?;
            sys.touch_reading(&mapping, 0, 64).await?;
            drop(mapping);
            let active = counter(&sys, "nr_active_file").await;
            assert_eq!(active >= 32, round == 1, "{active} active pages after round {round}");
        }
        Ok(())
    });
}

#[test]
fn a_file_stays_as_long_as_it_is_mapped() {
    let result = tell(&machine("linux-6.1"), |sys| async move {
        sys.lay_out_file("file", Bytes(64 * PAGE)).await?;
        let file = sys.open("file", OpenMode::Read).await?;
        let mapping = sys.map_file(&file, 32 * PAGE, Bytes(32 * PAGE), READ).await?;
        drop(file);
        sys.unlink("file").await?;
        sys.touch_reading(&mapping, 0, 32).await?;
        assert_eq!(sys.mapping_resident(&mapping, 0, 32).await?, 32);
        assert_eq!(counts(&sys).await.2, 32);
        Ok(())
    });
    assert_eq!(result.vmstat["nr_mapped"], 0);
    assert_eq!(result.vmstat["nr_file_pages"], 2, "the directory's names and inode");
}

#[test]
fn processes_that_map_one_file_share_its_pages() {
    tell(&machine("linux-6.12"), |sys| async move {
        let mapping = mapped(&sys, 64, READ).await?;
        sys.touch_reading(&mapping, 0, 64).await?;
        let before = counts(&sys).await;
        let other = sys.spawn(TaskSpec::named("other"), |sys| async move {
            let file = sys.open("file", OpenMode::Read).await?;
            let mapping = sys.map_file(&file, 0, Bytes(64 * PAGE), READ).await?;
            sys.touch_reading(&mapping, 0, 64).await?;
            Ok::<u64, workload::SystemError>(counts(&sys).await.2)
        });
        assert_eq!(sys.join(other.await?).await??, 64, "each page counts once");
        assert_eq!(since(&sys, before).await, (5, 0, 0));
        Ok(())
    });
}

/// Pages deactivated, activated and in memory of 64 that were read twice and mapped, once `advice` was given. Guests of
/// 5.10, 6.1, 6.12 and 7.2 answer so of 2,048.
fn advised(how: FileMapping, advice: Advice, by_two: bool, write: bool, want: (u64, u64, u64)) {
    tell(&machine("linux-6.12"), move |sys| async move {
        sys.lay_out_file("file", Bytes(HUGE * PAGE)).await?;
        let file = sys.open("file", OpenMode::ReadWrite).await?;
        for page in (0..64).chain(0..64) {
            sys.read(&file, page * PAGE, PAGE).await?;
        }
        let mapping = sys.map_file(&file, 0, Bytes(HUGE * PAGE), how).await?;
        let other = sys.map_file(&file, 0, Bytes(HUGE * PAGE), READ).await?;
        match write {
            true => sys.touch(&mapping, 0, 64).await?,
            false => sys.touch_reading(&mapping, 0, 64).await?,
        }
        if by_two {
            sys.touch_reading(&other, 0, 32).await?;
        }
        // Advice begins with what lies in batches.
        let nothing = sys.map_anonymous(Bytes(PAGE)).await?;
        sys.advise(&nothing, Advice::Cold).await?;
        let before = (counter(&sys, "pgdeactivate").await, counter(&sys, "pgactivate").await);
        sys.advise(&mapping, advice).await?;
        let now = (counter(&sys, "pgdeactivate").await, counter(&sys, "pgactivate").await);
        let resident = sys.mapping_resident(&other, 0, 64).await?;
        assert_eq!((now.0 - before.0, now.1 - before.1, resident), want, "{advice:?}");
        Ok(())
    });
}

#[test]
fn cold_and_page_out_heed_what_nobody_else_maps_of_a_file() {
    advised(READ, Advice::Cold, false, false, (64, 0, 64));
    advised(READ, Advice::Cold, true, false, (32, 0, 64)); // The others are mapped twice.
    advised(READ, Advice::PageOut, false, false, (0, 0, 0));
    advised(READ, Advice::PageOut, true, false, (0, 0, 32));
    advised(SHARED, Advice::PageOut, false, true, (0, 64, 64)); // Dirty pages become active.
}

#[test]
fn what_cannot_be_done_is_refused() {
    tell(&machine("linux-6.12"), |sys| async move {
        sys.lay_out_file("file", Bytes(8 * PAGE)).await?;
        let file = sys.open("file", OpenMode::ReadWrite).await?;
        let errno = |result: Result<(), workload::SystemError>| result.err().map(|error| error.errno);
        let odd = sys.map_file(&file, 100, Bytes(PAGE), READ).await;
        assert_eq!(odd.err().map(|error| error.errno), Some(Errno::Inval));
        let beyond = sys.map_file(&file, 0, Bytes(16 * PAGE), READ).await?;
        assert_eq!(errno(sys.touch_reading(&beyond, 8, 1).await), Some(Errno::Inval), "a signal");
        assert_eq!(errno(sys.touch(&beyond, 0, 1).await), Some(Errno::Inval), "it may not be written to");
        assert_eq!(errno(sys.lock_memory(&beyond, 0, 1).await), Some(Errno::NotSup));
        assert_eq!(errno(sys.advise(&beyond, Advice::Free).await), Some(Errno::Inval));
        sys.touch_reading(&beyond, 0, 8).await?;
        Ok(())
    });
}
