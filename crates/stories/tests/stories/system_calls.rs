//! What programs may rely on: small stories, each told with all invariants checked after every
//! event. Most were bugs once.

use kernel::{Filesystem, WaitReason};
use mm::base::layout::MemoryLayout;

use sim::{CostTable, DeviceModel, Hardware, SimRun, SimSystem};
use units::{Bytes, Nanos, Pages};
use workload::Errno;
use workload::system::{OpenMode, System, TaskSpec};

use crate::story::{self, tell};

/// A machine of 16 MiB.
fn machine(kernel: &str) -> SimRun {
    story::machine(kernel, 16)
}

/// `compute` of a workload file took its time after the phase that it was to be part of had ended.
#[test]
fn a_task_that_computes_is_later_by_that() {
    tell(&machine("linux-6.12"), |sys| async move {
        let begin = sys.now();
        sys.spin(Nanos::from_millis(3)).await;
        let took = sys.now().saturating_sub(begin);
        assert!((Nanos::from_millis(3)..Nanos::from_millis(4)).contains(&took), "{took:?}");
        Ok(())
    });
}

#[test]
fn an_unlinked_file_can_be_read_until_it_is_closed() {
    let result = tell(&machine("linux-6.1"), |sys| async move {
        sys.lay_out_file("old", Bytes(1 << 20)).await?;
        let old = sys.open("old", OpenMode::Read).await?;
        assert_eq!(sys.read(&old, 0, 65536).await?, 65536);
        sys.unlink("old").await?;
        assert_eq!(sys.open("old", OpenMode::Read).await.err().map(|error| error.errno), Some(Errno::NoEnt));
        // A new file does not get the old one's pages, nor the other way round.
        sys.lay_out_file("new", Bytes(1 << 20)).await?;
        let new = sys.open("new", OpenMode::Read).await?;
        assert_eq!(sys.resident_pages(&new, 0, 1 << 20).await?, 0);
        assert_eq!(sys.read(&old, 0, 1 << 20).await?, 1 << 20);
        assert_eq!(sys.resident_pages(&old, 0, 1 << 20).await?, 256);
        Ok(())
    });
    // The directory's names and inode, which the unlink changed.
    assert_eq!(
        result.vmstat["nr_file_pages"], 2,
        "two blocks of metadata; the file went with its descriptor"
    );
}

#[test]
fn pages_become_active_by_being_read_twice_but_not_by_being_written() {
    for (kernel, writes_activate) in
        [("linux-4.19", false), ("linux-6.12", false), ("linux-4.19+writes-are-accesses", true)]
    {
        let spec = SimRun { filesystem: Filesystem::Xfs, ..machine(kernel) };
        let active = |sys: SimSystem| async move {
            let counters = sys.vmstat().await.expect("the simulation has it");
            counters.into_iter().find(|(name, _)| name == "nr_active_file").expect("a counter").1
        };
        tell(&spec, move |sys| async move {
            let file = sys.open("journal", OpenMode::Create).await?;
            for _ in 0..3 {
                sys.write(&file, 0, 256 << 10).await?;
            }
            assert_eq!(active(sys.clone()).await > 0, writes_activate, "{kernel}");
            // Anew each time: a read that begins in the folio where the last one ended is no access to it,
            // and since 6.6 the whole file is one folio.
            for _ in 0..2 {
                let reader = sys.open("journal", OpenMode::Read).await?;
                sys.read(&reader, 0, 256 << 10).await?;
            }
            assert!(active(sys.clone()).await > 0, "{kernel}");
            Ok(())
        });
    }
}

#[test]
fn a_request_costs_the_same_whatever_its_length() {
    let mut costs = CostTable::free();
    costs.set("io_request", Nanos::from_micros(3)).expect("a cost");
    for (readahead_pages, requests) in [(32, 8), (0, 256)] {
        let hardware =
            Hardware { costs: costs.clone(), ..Hardware::with_cpus(2).with_device(DeviceModel::INSTANT) };
        let spec = SimRun { hardware, readahead_pages, filesystem: Filesystem::Xfs, ..machine("linux-5.4") };
        tell(&spec, move |sys| async move {
            sys.lay_out_file("file", Bytes(1 << 20)).await?;
            let file = sys.open("file", OpenMode::Read).await?;
            let begin = sys.now();
            sys.read(&file, 0, 1 << 20).await?;
            assert_eq!(sys.now().saturating_sub(begin), Nanos::from_micros(3 * requests));
            Ok(())
        });
    }
}

#[test]
fn a_request_leaves_when_the_work_before_it_is_done_and_its_reader_waits() {
    let mut costs = CostTable::free();
    costs.set("syscall", Nanos::from_micros(100)).expect("a cost");
    let hardware = Hardware { costs, ..Hardware::with_cpus(2).with_device(DeviceModel::VIRTIO_RAM) };
    let spec = SimRun { hardware, readahead_pages: 0, filesystem: Filesystem::Xfs, ..machine("linux-5.4") };
    tell(&spec, |sys| async move {
        sys.lay_out_file("file", Bytes(4096)).await?;
        let file = sys.open("file", OpenMode::Read).await?;
        let begin = sys.now();
        sys.read(&file, 0, 4096).await?;
        // 100 us of work, 1 us in the disk's channel, 7 us until it answers: none beside the other.
        assert_eq!(sys.now().saturating_sub(begin), Nanos::from_micros(108));
        Ok(())
    });
}

#[test]
fn a_reader_sleeps_once_for_each_page_whatever_others_read() {
    let spec = SimRun { readahead_pages: 0, filesystem: Filesystem::Xfs, ..machine("linux-5.4") };
    let result = tell(&spec, |sys| async move {
        let mut readers = Vec::new();
        for number in 0..40 {
            let path = format!("file{number}");
            sys.lay_out_file(&path, Bytes(100 * 4096)).await?;
            let program = move |sys: SimSystem| async move {
                let file = sys.open(&path, OpenMode::Read).await?;
                for page in 0..100 {
                    sys.read(&file, page * 4096, 4096).await?;
                }
                Ok::<_, workload::SystemError>(())
            };
            readers.push(sys.spawn(TaskSpec::named(format!("reader{number}")), program).await?);
        }
        for reader in readers {
            sys.join(reader).await??;
        }
        Ok(())
    });
    let sleeps = result.stalls.iter().filter(|stall| stall.reason == WaitReason::PageRead);
    let sleeps: Vec<u64> = sleeps.map(|stall| stall.count).collect();
    // Once each was woken by every read, then by those of pages that shared a queue of 256 with its own; Linux
    // wakes nobody of a queue but who waits for the page.
    assert!(sleeps.len() == 40 && sleeps.iter().all(|&count| count == 100), "{sleeps:?}");
}

#[test]
fn looking_at_the_size_of_a_file_brings_its_inode_back_and_no_page() {
    let spec = SimRun { filesystem: Filesystem::Xfs, ..machine("linux-5.4") };
    let result = tell(&spec, |sys| async move {
        let file = sys.open("file", OpenMode::Create).await?;
        sys.write(&file, 0, 5000).await?;
        drop(file);
        // What is dirty stays in memory, page and inode.
        sys.sync().await?;
        sys.sleep(Nanos::from_secs(40)).await; // XFS frees no inode before the log is done with it.
        sys.drop_caches(3).await?;
        let inodes = async |sys: &SimSystem| {
            let counters = sys.vmstat().await.expect("the simulation has it");
            counters.into_iter().find(|(name, _)| name == "nr_inodes").expect("a counter").1
        };
        assert_eq!(inodes(&sys).await, 0);
        assert_eq!(sys.file_size("file").await?, 5000);
        assert_eq!(inodes(&sys).await, 1);
        assert_eq!(sys.file_size("other").await.err().map(|error| error.errno), Some(Errno::NoEnt));
        Ok(())
    });
    // The name that is not there has a dentry, too.
    assert_eq!((result.vmstat["nr_file_pages"], result.vmstat["nr_dentries"]), (0, 2));
}

#[test]
fn a_file_may_be_unlinked_while_its_readahead_is_on_its_way() {
    let result = tell(&machine("linux-6.1"), |sys| async move {
        sys.lay_out_file("file", Bytes(1 << 20)).await?;
        let file = sys.open("file", OpenMode::Read).await?;
        sys.read(&file, 0, 131_072).await?; // The next window is being read now.
        drop(file);
        sys.unlink("file").await?;
        sys.sleep(Nanos::from_secs(1)).await;
        Ok(())
    });
    assert_eq!(result.vmstat["nr_file_pages"], 2, "metadata, as above");
}

#[test]
fn a_large_folio_gives_way_to_pages_that_lie_in_its_place() {
    let spec = SimRun { filesystem: Filesystem::Xfs, ..machine("linux-6.12") };
    tell(&spec, |sys| async move {
        sys.lay_out_file("file", Bytes(1 << 20)).await?;
        let file = sys.open("file", OpenMode::ReadWrite).await?;
        for page in (5..256).step_by(9) {
            sys.write(&file, page * 4096, 4096).await?;
        }
        assert_eq!(sys.read(&file, 0, 1 << 20).await?, 1 << 20);
        assert_eq!(sys.resident_pages(&file, 0, 1 << 20).await?, 256);
        Ok(())
    });
}

#[test]
fn windows_may_be_larger_than_any_leaf_of_the_page_cache_tree() {
    let spec = SimRun { filesystem: Filesystem::Xfs, readahead_pages: 1024, ..machine("linux-6.12") };
    tell(&spec, |sys| async move {
        sys.lay_out_file("file", Bytes(64 << 20)).await?;
        let file = sys.open("file", OpenMode::Read).await?;
        let mut offset = 0;
        while offset < 64 << 20 {
            offset += sys.read(&file, offset, 1 << 20).await?;
        }
        Ok(())
    });
}

#[test]
fn without_readahead_a_large_read_goes_page_by_page() {
    let spec = SimRun { readahead_pages: 0, ..machine("linux-6.1") };
    let result = tell(&spec, |sys| async move {
        sys.cgroup_create("A").await?;
        sys.cgroup_write("A", "memory.max", "1M").await?;
        sys.lay_out_file("file", Bytes(4 << 20)).await?;
        let reader = |sys: SimSystem| async move {
            let file = sys.open("file", OpenMode::Read).await.expect("it exists");
            sys.read(&file, 0, u64::MAX).await
        };
        let task = sys.spawn(TaskSpec::named("reader").in_cgroup("A"), reader).await?;
        assert_eq!(sys.join(task).await?, Ok(4 << 20));
        Ok(())
    });
    // Each page once, and one of metadata; not the whole rest for every page that was evicted.
    assert_eq!(result.vmstat["pgpgin"], 1025 * 4);
}

#[test]
fn a_reader_makes_progress_whatever_reclaim_does_to_its_pages() {
    let spec = SimRun { readahead_pages: 256, ..machine("linux-5.5") };
    tell(&spec, |sys| async move {
        sys.cgroup_create("A").await?;
        sys.lay_out_file("file", Bytes(8 << 20)).await?;
        let reader = |sys: SimSystem| async move {
            let file = sys.open("file", OpenMode::Read).await.expect("it exists");
            sys.read(&file, 0, 8 << 20).await
        };
        let task = sys.spawn(TaskSpec::named("reader").in_cgroup("A"), reader).await?;
        for _ in 0..20 {
            sys.cgroup_write("A", "memory.high", "0").await?;
        }
        assert_eq!(sys.join(task).await?, Ok(8 << 20));
        Ok(())
    });
}

#[test]
fn lowering_memory_max_below_what_cannot_be_reclaimed_kills_and_succeeds() {
    tell(&machine("linux-6.1"), |sys| async move {
        for group in ["A", "A/x"] {
            sys.cgroup_create(group).await?;
        }
        let eater = |sys: SimSystem| async move {
            let memory = sys.map_anonymous(Bytes(2 << 20)).await.expect("addresses");
            sys.touch(&memory, 0, 512).await.expect("memory");
            sys.sleep(Nanos::from_secs(5)).await;
        };
        let task = sys.spawn(TaskSpec::named("eater").in_cgroup("A/x"), eater).await?;
        sys.sleep(Nanos::from_secs(1)).await;
        sys.cgroup_write("A", "memory.high", "0").await?;
        sys.cgroup_write("A", "memory.max", "1M").await?;
        assert_eq!(sys.join(task).await.err().map(|error| error.errno), Some(Errno::Killed));
        // memory.events counts for the whole subtree.
        let events = sys.cgroup_read("A", "memory.events").await?;
        assert!(events.contains("oom 1\n") && events.contains("oom_kill 1\n"), "{events}");
        Ok(())
    });
}

#[test]
fn the_victim_has_the_most_memory_below_the_limit_and_is_the_oldest_of_equals() {
    let result = tell(&machine("linux-6.1"), |sys| async move {
        for group in ["A", "A/x", "B"] {
            sys.cgroup_create(group).await?;
        }
        let mut tasks = Vec::new();
        for (name, group, pages) in [
            ("other", "B", 600),
            ("small", "A", 100),
            ("first", "A/x", 300),
            ("second", "A/x", 300),
            ("most", "A", 301),
        ] {
            let eater = move |sys: SimSystem| async move {
                let memory = sys.map_anonymous(Bytes(pages * 4096)).await.expect("addresses");
                sys.touch(&memory, 0, pages).await.expect("memory");
                sys.sleep(Nanos::from_secs(5)).await;
            };
            tasks.push(sys.spawn(TaskSpec::named(name).in_cgroup(group), eater).await?);
        }
        sys.sleep(Nanos::from_secs(1)).await;
        sys.cgroup_write("A", "memory.max", "64K").await?;
        let mut killed = Vec::new();
        for task in tasks {
            killed.push(sys.join(task).await.is_err());
        }
        assert_eq!(killed, [false, true, true, true, true]);
        Ok(())
    });
    assert!(result.oom_kills.iter().all(|kill| kill.by_limit));
    let victims: Vec<&str> = result.oom_kills.iter().map(|kill| kill.task.as_str()).collect();
    assert_eq!(victims, ["most", "first", "second", "small"]);
}

#[test]
fn nobody_else_is_killed_while_the_memory_of_a_victim_comes_free() {
    let mut costs = CostTable::free();
    costs.set("pcp_free", Nanos::from_micros(100)).expect("a cost");
    let plain = machine("linux-6.1");
    let spec = SimRun { hardware: Hardware { costs, ..plain.hardware.clone() }, ..plain };
    let result = tell(&spec, |sys| async move {
        let eater = |pages: u64| {
            move |sys: SimSystem| async move {
                let memory = sys.map_anonymous(Bytes(pages * 4096)).await.expect("addresses");
                let _ = sys.touch(&memory, 0, pages).await;
                sys.sleep(Nanos::from_secs(5)).await;
            }
        };
        let sleeper = sys.spawn(TaskSpec::named("sleeper"), eater(2500)).await?;
        sys.sleep(Nanos::from_secs(1)).await;
        let eaters = ["one", "two"].map(TaskSpec::named);
        let mut tasks = vec![sleeper];
        for spec in eaters {
            tasks.push(sys.spawn(spec, eater(4000)).await?);
        }
        for task in tasks {
            let _ = sys.join(task).await;
        }
        Ok(())
    });
    let kills = &result.oom_kills;
    assert_eq!(kills[0].task, "sleeper", "it has the most");
    assert!(kills.len() > 1, "the others eat what it had while it is being freed, and more");
    for (kill, next) in kills.iter().zip(&kills[1..]) {
        let freed = kill.at + Nanos::from_micros(100 * kill.anon_pages);
        assert!(next.at >= freed, "{} dies at {:?} although memory was due at {freed:?}", next.task, next.at);
    }
}

#[test]
fn a_file_beyond_32_bit_page_numbers_is_refused() {
    tell(&machine("linux-6.1"), |sys| async move {
        let error = sys.lay_out_file("huge", Bytes(16 << 40)).await.expect_err("too large");
        assert_eq!(error.errno, Errno::Inval);
        Ok(())
    });
}

#[test]
fn a_mapping_costs_a_page_table_for_every_2_mib_that_was_touched_until_it_goes() {
    tell(&machine("linux-6.1"), |sys| async move {
        sys.cgroup_create("A").await?;
        let toucher = |sys: SimSystem| async move {
            let kernel_memory = async || {
                let stat = sys.cgroup_read("A", "memory.stat").await.expect("it exists");
                let line = stat.lines().find_map(|line| line.strip_prefix("kernel ")).expect("6.1 has it");
                line.parse::<u64>().expect("bytes")
            };
            let before = kernel_memory().await;
            let mapping = sys.map_anonymous(Bytes(6 << 20)).await.expect("addresses");
            for page in [0, 1, 600, 511] {
                sys.touch(&mapping, page, 1).await.expect("memory");
            }
            let touched = kernel_memory().await - before;
            drop(mapping);
            (touched, kernel_memory().await - before)
        };
        let task = sys.spawn(TaskSpec::named("toucher").in_cgroup("A"), toucher).await?;
        assert_eq!(sys.join(task).await?, (2 * 4096, 0), "pages of two ranges");
        Ok(())
    });
}

#[test]
fn no_page_of_a_file_on_xfs_is_had_by_throwing_dentries_out() {
    // Neither pages nor the tree nodes above them may enter the filesystem; each page here needs a node
    // of its own. Global reclaim could, but memory is plenty.
    for (filesystem, throws) in [(Filesystem::Xfs, false), (Filesystem::Ext4, true)] {
        let spec = SimRun { filesystem, readahead_pages: 0, ..machine("linux-5.4") };
        let spec = SimRun { layout: MemoryLayout::flat(Pages(64 << 8), 2), ..spec };
        let result = tell(&spec, |sys| async move {
            sys.cgroup_create("A").await?;
            sys.lay_out_file("sparse", Bytes(1000 << 18)).await?;
            let program = |sys: SimSystem| async move {
                for number in 0..800 {
                    drop(sys.open(&format!("file{number}"), OpenMode::Create).await.expect("memory"));
                }
                sys.cgroup_write("A", "memory.max", "2M").await.expect("a limit");
                let file = sys.open("sparse", OpenMode::Read).await.expect("it exists");
                for page in 0..1000 {
                    sys.read(&file, page << 18, 4096).await.expect("memory");
                }
            };
            let task = sys.spawn(TaskSpec::named("reader").in_cgroup("A"), program).await?;
            sys.join(task).await?;
            Ok(())
        });
        let left = result.vmstat["nr_dentries"];
        assert_eq!(left < 801, throws, "{filesystem:?}: {left} dentries left");
    }
}
