//! Files that are written: where their pages are, when they reach the disk, who waits for that, and
//! what memory the files themselves cost.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

use kernel::{Filesystem, Kernel, KernelConfig, Machine, OpenFile, Process, TaskId, WaitReason};
use mm::MemcgId;
use mm::base::layout::MemoryLayout;
use mm::base::sysctl::Sysctls;
use mm::base::vmstat::{MemcgStat, VmEvent};
use mm::cgroup::tree::Limit;
use mm::fs::inode::VfsLru;
use mm::version::geometry::Cache;
use sim::{Hardware, Simulation};
use units::{Bytes, Nanos, NodeId, PAGE_SIZE, Seed};

use sim::{DeviceCounters, DeviceModel, SimKernel, SimTrace, Stall, Statistics};

pub(super) const MIB: u64 = 1 << 20;

/// A machine to write on.
#[derive(Clone)]
pub(super) struct World {
    pub(super) kernel: &'static str,
    pub(super) filesystem: Filesystem,
    pub(super) mem: u64,
    pub(super) disk: DeviceModel,
}

impl World {
    pub(super) fn new(kernel: &'static str, mem: u64) -> Self {
        Self { kernel, filesystem: Filesystem::Ext4, mem, disk: DeviceModel::VIRTIO_RAM }
    }

    pub(super) fn boot(&self) -> (Simulation, SimKernel) {
        let simulation = Simulation::new(Hardware::with_cpus(2).with_device(self.disk.clone())).unwrap();
        let layout = MemoryLayout::flat(Bytes(self.mem).to_pages_floor(), 2);
        let config = KernelConfig {
            version: mm::Version::parse(self.kernel).unwrap(),
            sysctls: Sysctls::default(),
            layout,
            filesystem: self.filesystem,
            xfs_log_size: self.disk.xfs_log,
            gathers: self.disk.gathers,
            readahead_pages: 32,
            policy: None,
            seed: Seed(1),
        };
        let kernel = Kernel::boot(simulation.machine(), config, SimTrace::default()).unwrap();
        (simulation, kernel)
    }

    /// Runs `program` as one process of the root cgroup; then checks everything.
    pub(super) fn run<F: Future<Output = ()> + 'static>(
        &self,
        program: impl FnOnce(SimKernel, Process) -> F + 'static,
    ) -> End {
        let (mut simulation, kernel) = self.boot();
        let sim = simulation.machine();
        let here = kernel.clone();
        let task = sim.spawn("writer", None, async move {
            let process = here.process_start("writer", MemcgId::ROOT).await.expect("memory for a process");
            program(here, process).await;
        });
        let elapsed = simulation.run_until_task_done(task, Nanos::from_secs(3_600)).expect("it ends");
        kernel.mem(|mem| mem.check()).expect("a sound state");
        sim.check();
        let disk = sim.device_counters(0).expect("a disk");
        End {
            elapsed,
            disk,
            statistics: sim.statistics(),
            stalls: sim.stalls(),
            kernel,
            _simulation: simulation,
        }
    }
}

/// What is left after a run.
pub(super) struct End {
    elapsed: Nanos,
    pub(super) disk: DeviceCounters,
    statistics: Statistics,
    stalls: Vec<Stall>,
    kernel: SimKernel,
    _simulation: Simulation,
}

impl End {
    pub(super) fn count(&self, name: &str) -> u64 {
        self.kernel.vmstat().into_iter().find(|(other, _)| other == name).expect("a counter").1
    }

    pub(super) fn waited(&self, reason: WaitReason) -> Nanos {
        self.stalls.iter().filter(|stall| stall.reason == reason).map(|stall| stall.total).sum()
    }
}

pub(super) async fn create(kernel: &SimKernel, process: &Process, path: &str, len: u64) -> OpenFile {
    let file = kernel.open(process, path, true).await.expect("a new file");
    let mut offset = 0;
    while offset < len {
        let part = (len - offset).min(128 << 10);
        assert_eq!(kernel.write(process, &file, offset, part).await, Ok(part));
        offset += part;
    }
    file
}

/// ```text
///   fsync  |--- 1,024 pages, dirty when it began ---|---- waits ----| returns
///   other  writes them all over and over .............................
/// ```
/// In a guest of 6.12 three tasks that write over 643 pages and call it now and then dirty 4,506 pages in 547 MB.
#[test]
fn fsync_writes_what_was_dirty_once_whoever_dirties_it_again() {
    const PAGES: u64 = 1_024;
    let world = World { disk: DeviceModel::S390_FCP_2010, ..World::new("linux-6.12", 512 * MIB) };
    let end = world.run(|kernel, process| async move {
        let file = create(&kernel, &process, "file", PAGES * PAGE_SIZE).await;
        let is_done = Rc::new(Cell::new(false));
        let (other, stops) = (kernel.clone(), Rc::clone(&is_done));
        kernel.machine().spawn("other", None, async move {
            let process = other.process_start("other", MemcgId::ROOT).await.expect("memory for a process");
            let file = other.open(&process, "file", false).await.expect("it is there");
            while !stops.get() {
                for page in 0..PAGES {
                    assert_eq!(
                        other.write(&process, &file, page * PAGE_SIZE, PAGE_SIZE).await,
                        Ok(PAGE_SIZE)
                    );
                }
            }
        });
        kernel.fsync(&process, &file).await.expect("a disk");
        is_done.set(true);
        assert!(kernel.mem(|mem| mem.dirty_limits().dirty) > PAGES / 2, "most are dirty again");
    });
    assert!(end.count("nr_written") <= 2 * PAGES, "{} pages written", end.count("nr_written"));
}

/// It writes 256 MiB below 64 MiB on a machine of 1 GiB, which has room for twice as much that is dirty. Guests of 5.10
/// to 7.2 scan 86,570 pages of 400 MiB, and have 1 to 11 MB dirty behind every 100. 6.12 knows what is dirty as of the
/// last flush, so its writers go far beyond their share two seconds after boot (a guest that writes 4 GiB: up to 13,725
/// pages, one of 6.1 2,257).
#[test]
fn a_writer_below_a_limit_keeps_to_a_share_of_it_and_reclaim_finds_clean_pages() {
    let run = |kernel| {
        let most = Rc::new(Cell::new(0));
        let seen = Rc::clone(&most);
        let end = World::new(kernel, 1 << 30).run(move |kernel, process| async move {
            let group = kernel.mem(|mem| {
                let group = mem.memcg_create(MemcgId::ROOT, "g");
                mem.core.cgroups.set_limit(group, Limit::Max, 64 * MIB / PAGE_SIZE);
                group
            });
            kernel.process_move(&process, group);
            let file = kernel.open(&process, "big", true).await.expect("a new file");
            for part in 0..2048_u64 {
                assert_eq!(kernel.write(&process, &file, part << 17, 1 << 17).await, Ok(1 << 17));
                let dirty = kernel.mem(|mem| mem.dirty_limits().pending());
                seen.set(seen.get().max(dirty));
            }
        });
        let counted = |stat| end.kernel.mem(|mem| mem.core.cgroups.live_stat(MemcgId(1), NodeId(0), stat));
        let (scanned, freed) = (counted(MemcgStat::PgScanDirect), counted(MemcgStat::PgStealDirect));
        (most.get(), scanned, freed)
    };
    let (dirty, scanned, freed) = run("linux-6.1");
    // A fifth of 16,384 pages.
    assert!((1_500..=3_300).contains(&dirty), "{dirty} pages are dirty");
    assert!(freed > 45_000 && scanned < freed + freed / 50, "{freed} of {scanned}");
    let (dirty, ..) = run("linux-6.12");
    assert!(dirty > 8_000, "{dirty} pages are dirty of which nobody knows");
    let (dirty, scanned, freed) = run("linux-6.1-cgroup-writeback");
    assert!(dirty > 8_000 && scanned > freed + freed / 20, "{dirty} dirty, {freed} of {scanned}");
}

#[test]
fn a_writer_faster_than_the_disk_is_held_to_the_disks_speed_below_the_threshold() {
    const LEN: u64 = 2 << 30;
    for kernel in ["linux-5.4", "linux-6.1", "linux-6.12"] {
        let world = World { disk: DeviceModel::S390_FCP_2010, ..World::new(kernel, 512 * MIB) };
        let most = Rc::new(RefCell::new((0, 0)));
        let seen = Rc::clone(&most);
        let end = world.run(move |kernel, process| async move {
            let file = kernel.open(&process, "big", true).await.expect("a new file");
            for part in 0..(LEN >> 17) {
                assert_eq!(kernel.write(&process, &file, part << 17, 1 << 17).await, Ok(1 << 17));
                let limits = kernel.mem(|mem| mem.dirty_limits());
                let mut most = seen.borrow_mut();
                // A threshold falls when memory is taken; the writer sees it at its next look.
                most.0 = most.0.max(limits.pending());
                most.1 = most.1.max(limits.pending().saturating_sub(limits.threshold));
            }
        });
        let (pending, above) = *most.borrow();
        let written = end.disk.write_bytes.0;
        let rate = written * 1_000_000_000 / end.elapsed.0;
        assert!((90_000_000..=100_500_000).contains(&rate), "{kernel}: {rate} bytes/s of 100 MB/s");
        assert!(LEN - written < 110 * MIB, "{kernel}: {} MiB are left in memory", (LEN - written) / MIB);
        assert!(pending > 10_000 && above <= 64, "{kernel}: {pending} pages pending, {above} too many");
        let throttled = end.waited(WaitReason::DirtyThrottle);
        assert!(throttled > Nanos::from_secs(10), "{kernel}: paused for {throttled:?} of {:?}", end.elapsed);
        let bandwidth = end.kernel.mem(|mem| mem.cache.pace().bandwidth());
        assert!((22_000..=26_000).contains(&bandwidth), "{kernel}: measured {bandwidth} pages/s of 24414");
        assert_eq!(end.count("allocstall_movable"), 0, "{kernel}: clean pages are there to be reclaimed");
    }
}

#[test]
fn fsync_returns_when_every_page_is_on_the_disk() {
    let end = World::new("linux-6.1", 64 * MIB).run(|kernel, process| async move {
        let file = create(&kernel, &process, "log", MIB + 1).await;
        assert_eq!(kernel.mem(|mem| mem.cache.dirty()), 257, "metadata is in a transaction");
        kernel.fsync(&process, &file).await.expect("no error");
        assert_eq!(kernel.resident_pages(&file, 0, 2 * MIB), 257);
    });
    let counts =
        ["nr_dirty", "nr_writeback", "nr_dirtied", "nr_written", "pgpgout"].map(|name| end.count(name));
    // Two bitmaps, a descriptor, a block of the inode table, one of the directory: in the log, with a descriptor
    // and the commit block, and dirty now.
    assert_eq!(counts, [5, 0, 257 + 5, 257, (257 + 5 + 2) * 4]);
    let disk = (end.disk.writes, end.disk.write_bytes);
    assert_eq!(disk, (3 + 2, Bytes((257 + 5 + 2) * 4096)), "512 KiB at a time, then the commit");
}

#[test]
fn old_data_is_written_after_thirty_seconds_and_not_before() {
    let end = World::new("linux-6.1", 64 * MIB).run(|kernel, process| async move {
        kernel.lay_out_file("before", Bytes(MIB)).expect("a file"); // The flusher leaves pages dirty.
        let _file = create(&kernel, &process, "note", 4096).await;
        kernel.machine().sleep(Nanos::from_secs(29), WaitReason::UserSleep).await;
        assert_eq!(
            kernel.mem(|mem| mem.cache.dirty()),
            1 + 4,
            "and four metadata blocks, committed after 5 s"
        );
        kernel.machine().sleep(Nanos::from_secs(7), WaitReason::UserSleep).await;
        // Blocks that changed when the page was given its place, and were committed 5 s later.
        assert_eq!(kernel.mem(|mem| mem.cache.dirty()), 3, "inode table, bitmap of blocks, descriptor");
    });
    assert_eq!(
        end.disk.writes,
        2 + 1 + 2 + 2,
        "a commit, the page, a commit, directory and bitmap of inodes"
    );
}

/// Up to 3.1 a round of writeback ended with the chunk that brought it to the background threshold.
#[test]
fn a_round_of_writeback_goes_on_for_a_tenth_of_a_second_below_the_background_threshold() {
    for (kernel, goes_on) in [("linux-2.6.32", false), ("linux-6.12", true)] {
        let world = World { filesystem: Filesystem::Ext3, ..World::new(kernel, 128 * MIB) };
        let least = Rc::new(Cell::new(u64::MAX));
        let told = Rc::clone(&least);
        world.run(move |kernel, process| async move {
            let mut began = false;
            for number in 0..600 {
                drop(create(&kernel, &process, &format!("{number}"), 64 << 10).await);
                let limits = kernel.mem(|mem| mem.dirty_limits());
                began |= limits.dirty > limits.background;
                if began {
                    told.set(told.get().min(limits.dirty * 100 / limits.background));
                }
            }
        });
        let percent = least.get();
        assert_eq!(percent < 50, goes_on, "{kernel}: down to {percent} % of the threshold");
    }
}

/// One vector in the open checkpoint, and for a file with bytes another one beside it (guests of 5.10 to 7.2).
#[test]
fn xfs_has_a_second_vector_for_a_file_that_was_written() {
    for (len, vectors) in [(0, 100), (4096, 200)] {
        let world = World { filesystem: Filesystem::Xfs, ..World::new("linux-6.12", 64 * MIB) };
        world.run(move |kernel, process| async move {
            for number in 0..100 {
                drop(create(&kernel, &process, &format!("{number}"), len).await);
            }
            let objects = |cache| kernel.mem(|mem| mem.core.slabs.objects(cache));
            let held = objects(Cache::XfsLogVector) + objects(Cache::XfsLogVectorExtents);
            assert_eq!(held, vectors, "files of {len} bytes");
        });
    }
}

/// With a journal of 16 MiB, a quarter of the one that guests have, 84 runs of pages.
#[test]
fn ext4_has_as_many_runs_of_new_pages_on_their_way_as_its_journal_can_take() {
    for (kernel, at_most) in [("linux-5.4", None), ("linux-6.12", Some(84))] {
        let world = World { disk: DeviceModel::S390_FCP_2010, ..World::new(kernel, 32 * MIB) };
        let most = Rc::new(Cell::new(0));
        let told = Rc::clone(&most);
        world.run(move |kernel, process| async move {
            let watched = kernel.clone();
            let ended = Rc::new(Cell::new(false));
            let ends = Rc::clone(&ended);
            kernel.machine().spawn("watch", None, async move {
                while !ends.get() {
                    told.set(told.get().max(watched.mem(|mem| mem.cache.under_writeback())));
                    watched.machine().sleep(Nanos::from_micros(20), WaitReason::UserSleep).await;
                }
            });
            for number in 0..500 {
                drop(create(&kernel, &process, &format!("{number}"), 4096).await);
            }
            kernel.sync().await;
            ended.set(true);
        });
        match at_most {
            Some(runs) => assert!((runs / 2..=runs).contains(&most.get()), "{kernel}: {} pages", most.get()),
            None => assert!(most.get() > 100, "{kernel}: {} pages", most.get()),
        }
    }
}

#[test]
fn files_written_one_after_the_other_share_requests() {
    for filesystem in [Filesystem::Ext4, Filesystem::Xfs] {
        let world = World { filesystem, ..World::new("linux-6.1", 64 * MIB) };
        let end = world.run(|kernel, process| async move {
            for number in 0..1000 {
                drop(create(&kernel, &process, &format!("{number}"), 4096).await);
            }
            kernel.sync().await;
        });
        // 63 blocks of the inode tables, 5 of the directory, 2 bitmaps and a descriptor, once in the log, with its
        // own two blocks, and once in place; or the log.
        let inodes = if filesystem == Filesystem::Ext4 {
            ((2 * (63 + 5 + 3)) + 2) * 4096
        } else {
            log_bytes(1000 * (288 + 28))
        };
        assert_eq!(end.disk.write_bytes, Bytes((1000 * 4096) + inodes), "{filesystem:?}");
        assert!(end.disk.writes < 30, "{filesystem:?}: {} requests for 1000 files", end.disk.writes);
        assert_eq!(end.count("nr_inodes"), 1000, "{filesystem:?}");
    }
}

/// What changes of so many bytes take in the log of XFS: records of 32 KiB, each with a header.
fn log_bytes(changes: u64) -> u64 {
    const PAYLOAD: u64 = (32 << 10) - 512;
    let rest = changes % PAYLOAD;
    (changes / PAYLOAD * (32 << 10)) + if rest > 0 { (rest + 512).next_multiple_of(512) } else { 0 }
}

/// Unreclaimable slab pages after so many new files on a disk with a log of `log` bytes, and 31 s later;
/// bytes written by then.
fn log_memory(filesystem: Filesystem, log: u64, files: u64) -> (u64, u64, Bytes) {
    let disk = DeviceModel { xfs_log: Bytes(log), ..DeviceModel::VIRTIO_RAM };
    let world = World { filesystem, disk, ..World::new("linux-4.20-rc1", 64 * MIB) };
    let seen = Rc::new(Cell::new(0));
    let created = Rc::clone(&seen);
    let end = world.run(move |kernel, process| async move {
        for number in 0..files {
            drop(create(&kernel, &process, &format!("{number}"), 0).await);
        }
        created.set(kernel.mem(|mem| mem.slab_pages(false)));
        kernel.machine().sleep(Nanos::from_secs(31), WaitReason::UserSleep).await;
    });
    (seen.get(), end.kernel.mem(|mem| mem.slab_pages(false)), end.disk.write_bytes)
}

#[test]
fn new_files_of_xfs_hold_unmovable_memory_until_the_log_is_written() {
    let vectors = 1000_u64.div_ceil(16) * 2;
    let (created, later, written) = log_memory(Filesystem::Xfs, 64 * MIB, 1000);
    let gone = created - later;
    assert!((vectors * 3 / 4..=vectors).contains(&gone), "{gone} of {vectors} pages, less some empty slabs");
    let clusters = 32 * (16 << 10);
    assert_eq!(written, Bytes(log_bytes(1000 * 288) + clusters), "to the log, then to their places");
    let (created, later, _) = log_memory(Filesystem::Ext4, 64 * MIB, 1000);
    assert_eq!(created, later);
}

#[test]
fn an_eighth_of_the_log_is_the_most_that_a_checkpoint_holds() {
    let (roomy, ..) = log_memory(Filesystem::Xfs, 64 * MIB, 3000);
    let (tight, later, written) = log_memory(Filesystem::Xfs, 2 * MIB, 3000);
    assert!(tight < roomy - 80, "{tight} pages with room for 910 inodes, {roomy} with room for all");
    assert!(later <= tight);
    let clusters = 94 * (16 << 10);
    assert_eq!(written, Bytes(log_bytes(3000 * 288) + clusters), "written in parts, but once");
}

/// First pages and sizes in pages of the folios of the only file, after writes of so many bytes at these
/// offsets, before and after all of it was written to the disk.
fn folios(world: &World, writes: &'static [(u64, u64)]) -> Vec<(u32, u32)> {
    let end = world.run(move |kernel, process| async move {
        let file = kernel.open(&process, "file", true).await.expect("a new file");
        for &(offset, len) in writes {
            assert_eq!(kernel.write(&process, &file, offset, len).await, Ok(len));
        }
        let pages = writes.iter().map(|&(offset, len)| (offset + len).div_ceil(4096)).max();
        kernel.fsync(&process, &file).await.expect("no error");
        assert_eq!(Some(kernel.resident_pages(&file, 0, u64::MAX)), pages);
        let left = kernel.mem(|mem| mem.cache.dirty() + mem.cache.under_writeback());
        assert!(left <= 5, "but for metadata");
    });
    end.kernel.mem(|mem| {
        let size = |pfn| mem.core.alloc.frames.pages(pfn);
        let heads = mem.cache.trees().ids().flat_map(|mapping| mem.cache.trees().heads(mapping));
        heads.map(|(index, pfn)| (index, size(pfn))).collect()
    })
}

#[test]
fn a_write_to_xfs_makes_folios_as_large_as_itself_since_6_6() {
    let world = |kernel| World { filesystem: Filesystem::Xfs, ..World::new(kernel, 64 * MIB) };
    let new = world("linux-6.12");
    assert_eq!(folios(&new, &[(0, 65_536)]), [(0, 16)]);
    // 100 KiB: 64, 32 and 4.
    assert_eq!(folios(&new, &[(0, 102_400)]), [(0, 16), (16, 8), (24, 1)]);
    // What 4 KiB writes have made stays; the next writes are aligned to what they fill.
    assert_eq!(folios(&new, &[(0, 4096), (4096, 28_672)]), [(0, 1), (1, 1), (2, 2), (4, 4)]);
    assert_eq!(folios(&world("linux-6.1"), &[(0, 16_384)]), [(0, 1), (1, 1), (2, 1), (3, 1)]);
    assert_eq!(folios(&world("linux-6.12-large-folio-write"), &[(0, 8192)]), [(0, 1), (1, 1)]);
    let ext4 = World { filesystem: Filesystem::Ext4, ..new };
    assert!(folios(&ext4, &[(0, 65_536)]).iter().all(|&(_, pages)| pages == 1));
}

#[test]
fn a_folio_larger_than_a_request_is_clean_when_its_last_request_is_complete() {
    let world = World { filesystem: Filesystem::Xfs, ..World::new("linux-6.12", 64 * MIB) };
    let writes: &[(u64, u64)] = &[(0, 4096), (2 << 20, 2 << 20), (4096, 8192), (0, 4 << 20)];
    let folios = folios(&world, writes);
    assert_eq!(folios.iter().map(|&(_, pages)| pages).max(), Some(512), "{folios:?}");
}

#[test]
fn a_file_that_is_removed_before_it_is_written_never_reaches_the_disk() {
    let end = World { filesystem: Filesystem::Xfs, ..World::new("linux-6.1", 64 * MIB) }.run(
        |kernel, process| async move {
            let file = create(&kernel, &process, "gone", MIB).await;
            kernel.unlink(&process, "gone").await.expect("it is there");
            assert_eq!(kernel.read(&process, &file, 0, MIB).await, Ok(MIB), "still open, still readable");
            drop(file);
            kernel.drop_caches(3).await.expect("a mask");
        },
    );
    let bytes = Bytes(log_bytes(288 + 32 + 88));
    let logged = DeviceCounters { writes: 1, write_bytes: bytes, ..DeviceCounters::default() };
    assert_eq!(
        DeviceCounters { busy: Nanos::ZERO, waited: Nanos::ZERO, ..end.disk },
        DeviceCounters { segments: 1, most_in_flight: 1, ..logged },
        "its creation and its end, in the log"
    );
    let counts =
        ["nr_dirty", "nr_file_pages", "nr_dirtied", "nr_inodes", "nr_dentries"].map(|n| end.count(n));
    assert_eq!(counts, [0, 0, 256, 0, 0]);
}

#[test]
fn a_hole_reads_as_zeroes_without_the_disk_and_a_partial_write_reads_first() {
    let end = World { filesystem: Filesystem::Xfs, ..World::new("linux-6.1", 64 * MIB) }.run(
        |kernel, process| async move {
            let file = kernel.open(&process, "sparse", true).await.expect("a new file");
            assert_eq!(kernel.write(&process, &file, MIB, 4096).await, Ok(4096));
            assert_eq!(kernel.read(&process, &file, 0, 4096).await, Ok(4096));
            assert_eq!(kernel.machine().device_counters(0).unwrap().reads, 0);
            kernel.drop_caches(3).await.expect("a mask");
            assert_eq!(kernel.resident_pages(&file, 0, 2 * MIB), 0);
            assert_eq!(kernel.write(&process, &file, MIB + 100, 100).await, Ok(100));
            assert_eq!(kernel.write(&process, &file, 4096, 4096).await, Ok(4096));
        },
    );
    assert_eq!((end.disk.reads, end.disk.read_bytes), (1, Bytes(4096)), "the page that was changed in part");
}

#[test]
fn dropping_slab_frees_what_nobody_has_open() {
    for kernel in ["linux-5.4", "linux-6.1"] {
        let end = World::new(kernel, 64 * MIB).run(|kernel, process| async move {
            let kept = create(&kernel, &process, "kept", 4096).await;
            for number in 0..500 {
                drop(create(&kernel, &process, &format!("{number}"), 4096).await);
            }
            kernel.drop_caches(2).await.expect("a mask");
            kernel.drop_caches(1).await.expect("a mask");
            kernel.drop_caches(2).await.expect("a mask");
            assert_eq!(kernel.mem(|mem| (mem.fs.vfs.count(), mem.fs.vfs.listed(VfsLru::Dentry))), (1, 0));
            let again = kernel.open(&process, "250", false).await.expect("still on the disk");
            assert_eq!(kernel.read(&process, &again, 0, 4096).await, Ok(4096));
            drop(kept);
        });
        // The index and a leaf of the directory, the inode table, the page.
        assert_eq!((end.count("nr_dentries"), end.disk.reads), (2, 4), "{kernel}");
    }
}

/// Creates files of one page until there are `files`, in `mem` of memory.
fn small_files(kernel: &'static str, filesystem: Filesystem, mem: u64, files: u32) -> End {
    // With the log of 64 MiB that others have, 64 MiB of memory are full before any inode is written.
    let disk = DeviceModel { xfs_log: Bytes(4 * MIB), ..DeviceModel::VIRTIO_RAM };
    World { filesystem, disk, ..World::new(kernel, mem) }.run(move |kernel, process| async move {
        for number in 0..files {
            drop(create(&kernel, &process, &format!("{number}"), 4096).await);
        }
    })
}

#[test]
fn a_stream_of_small_files_makes_reclaim_free_their_inodes_too() {
    for (kernel, filesystem) in [
        ("linux-5.4", Filesystem::Ext4),
        ("linux-5.4", Filesystem::Xfs),
        ("linux-6.1", Filesystem::Ext4),
        ("linux-6.1", Filesystem::Xfs),
        ("linux-6.12", Filesystem::Ext4),
    ] {
        let end = small_files(kernel, filesystem, 64 * MIB, 40_000);
        let (inodes, steal) =
            (end.count("nr_inodes"), end.count("kswapd_inodesteal") + end.count("pginodesteal"));
        let name = format!("{kernel} {filesystem:?}: {inodes} of 40000 inodes are left");
        assert!((1_000..39_000).contains(&inodes), "{name}");
        assert!(end.count("slabs_scanned") > 0 && steal > 0, "{name}, {steal} were stolen");
        assert_eq!(end.count("oom_kill"), 0, "{name}");
        let slab = end.count("nr_slab_reclaimable") + end.count("nr_slab_unreclaimable");
        assert!(slab > inodes / 4, "{name} in {slab} pages");
    }
}

#[test]
fn the_same_run_twice_ends_the_same() {
    let run = || small_files("linux-6.1", Filesystem::Ext4, 48 * MIB, 20_000);
    let (one, other) = (run(), run());
    assert_eq!(one.statistics, other.statistics);
    assert_eq!(one.kernel.vmstat(), other.kernel.vmstat());
    assert_eq!((one.disk, one.stalls), (other.disk, other.stalls));
}

/// Runs tasks to their ends, and looks at the whole state after each so many events.
pub(super) fn run_checked(simulation: &mut Simulation, kernel: &SimKernel, tasks: &[TaskId], every: u32) {
    let (looked_at, mut events) = (kernel.clone(), 0_u32);
    simulation.after_every_event(move || {
        events += 1;
        if events.is_multiple_of(every) {
            looked_at.mem(|mem| mem.check()).unwrap_or_else(|broken| panic!("event {events}: {broken}"));
            looked_at.machine().check();
        }
    });
    for &task in tasks {
        simulation.run_until_task_done(task, Nanos::from_secs(3600)).expect("the tasks end");
    }
}

/// Tasks that do to a few files whatever can be done to them, in two small cgroups.
fn turmoil(kernel: &'static str, filesystem: Filesystem, seed: u64, check_every: u32) -> Vec<(String, u64)> {
    let disk = DeviceModel::SATA_EVO;
    let (mut simulation, kernel) = World { filesystem, disk, ..World::new(kernel, 12 * MIB) }.boot();
    for group in ["a", "b"] {
        kernel.mem(|mem| {
            let memcg = mem.memcg_create(mm::MemcgId::ROOT, group);
            mem.core.cgroups.set_limit(memcg, Limit::Max, 400);
        });
    }
    let mixers = [0, 1, 2, 3].map(|number| {
        let here = kernel.clone();
        kernel.machine().spawn(&format!("task {number}"), None, async move {
            let memcg = here.find_memcg(["", "a", "b", "a"][number]).expect("there");
            let process = here.process_start("mixer", memcg).await.expect("memory for a process");
            let mut stream = Seed(seed).stream(&format!("task {number}"));
            let mut open: Vec<OpenFile> = Vec::new();
            for _ in 0..250 {
                let path = format!("file {}", stream.below(40));
                let (offset, len) = (stream.below(3 << 20), 1 + stream.below(200_000));
                let file = (!open.is_empty()).then(|| open[stream.below(open.len() as u64) as usize].clone());
                match (stream.below(12), file) {
                    (0..=2, _) => open.extend(here.open(&process, &path, true).await),
                    (3, _) => open.extend(here.open(&process, &path, false).await),
                    (4, _) => {
                        let _ = here.unlink(&process, &path).await;
                    }
                    (5, Some(_)) => {
                        open.remove(0);
                    }
                    (6, Some(file)) => {
                        let _ = here.fsync(&process, &file).await;
                    }
                    (7, _) => here.machine().sleep(Nanos(offset * 400), WaitReason::UserSleep).await,
                    (8, Some(file)) => {
                        let _ = here.read(&process, &file, offset, len).await;
                    }
                    (9, _) if stream.chance(1, 25) => here.drop_caches(3).await.expect("a mask"),
                    (_, Some(file)) => {
                        let _ = here.write(&process, &file, offset, len).await;
                    }
                    _ => {}
                }
            }
            open.clear();
            here.process_exit(&process);
        })
    });
    run_checked(&mut simulation, &kernel, &mixers, check_every);
    kernel.mem(|mem| mem.check()).expect("a sound state");
    kernel.vmstat()
}

#[test]
fn whatever_tasks_do_to_files_every_invariant_holds() {
    for (kernel, filesystem, seed) in [
        ("linux-5.4", Filesystem::Ext4, 1),
        ("linux-5.4", Filesystem::Xfs, 2),
        ("linux-6.1", Filesystem::Ext4, 3),
        ("linux-6.1", Filesystem::Xfs, 4),
        ("linux-6.12", Filesystem::Ext4, 5),
        ("linux-6.12", Filesystem::Xfs, 6),
    ] {
        let counts = turmoil(kernel, filesystem, seed, 97);
        let count = |name: &str| counts.iter().find(|(other, _)| other == name).expect("a counter").1;
        let name = format!("{kernel} {filesystem:?} seed {seed}");
        assert!(count(VmEvent::NrWritten.name()) > 1000, "{name}: too little is written");
        assert!(count(VmEvent::PgScanFile.name()) > 500, "{name}: {} pages scanned", count("pgscan_file"));
    }
}
