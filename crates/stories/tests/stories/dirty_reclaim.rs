//! Reclaim that meets dirty pages: what it marks, what it writes, and where pages go when their write ends
//! (MECHANISMS 6.8, 10; MECHANISMS-510-72 3.4).

use kernel::Filesystem;
use mm::MemcgId;
use mm::base::frame::PageFlags;
use mm::lru::lists::LruList;
use mm::reclaim::run::Met;
use sim::{DeviceModel, SimKernel};
use units::NodeId;

use crate::writing::{End, MIB, World, create};

const NODE: NodeId = NodeId(0);

/// All inactive pages were met before and not read since, and kswapd knows that there is nothing but dirty ones.
fn mark_all(kernel: &SimKernel) {
    kernel.mem(|mem| {
        let pages: Vec<_> = mem.lru_list(MemcgId::ROOT, NODE, LruList::InactiveFile).collect();
        for pfn in pages {
            mem.core.alloc.frames.clear_flags(pfn, PageFlags::REFERENCED);
            mem.core.alloc.frames.set_flags(pfn, PageFlags::RECLAIM);
        }
        mem.reclaim.note_pass(NODE, &Met { taken: 32, file_taken: 32, unqueued_dirty: 32, ..Met::default() });
    });
}

/// Files of one page fill memory long before any limit of dirty pages is met, so that reclaim meets little
/// else; `marked`: and nothing that it has not met before.
fn fill_with_dirty_pages(kernel: &'static str, filesystem: Filesystem, marked: bool) -> End {
    let world = World { filesystem, disk: DeviceModel::S390_FCP_2010, ..World::new(kernel, 64 * MIB) };
    world.run(move |kernel, process| async move {
        // Something was written before, so that the flusher leaves pages dirty.
        let first = create(&kernel, &process, "first", 4096).await;
        kernel.fsync(&process, &first).await.expect("it is written");
        for (name, percent) in [("vm.dirty_ratio", "100"), ("vm.dirty_background_ratio", "90")] {
            kernel.sysctl_write(name, percent).expect("a sysctl");
        }
        for round in 0..150 {
            for number in 0..100 {
                // Where hardly any page is clean, it may be killed for memory in the end.
                let Ok(file) = kernel.open(&process, &format!("{round}-{number}"), true).await else {
                    return;
                };
                let _ = kernel.write(&process, &file, 0, 4096).await;
            }
            if marked {
                mark_all(&kernel);
            }
        }
    })
}

#[test]
fn pages_at_the_tail_are_marked_and_come_back_there_when_they_are_written() {
    for kernel in ["linux-5.4", "linux-6.12"] {
        let end = fill_with_dirty_pages(kernel, Filesystem::Ext4, false);
        let [immediate, rotated, written] =
            ["nr_vmscan_immediate_reclaim", "pgrotated", "nr_vmscan_write"].map(|name| end.count(name));
        assert!(immediate > 500 && rotated > 500, "{kernel}: {immediate} marked, {rotated} rotated");
        assert_eq!(written, 0, "{kernel}: the flusher, which reclaim wakes, is faster");
    }
}

/// ext4 gives no blocks to a page that reclaim wants written, and is asked again and again.
#[test]
fn kswapd_has_single_pages_written_where_the_filesystem_has_a_hook() {
    let asked = |kernel, filesystem| fill_with_dirty_pages(kernel, filesystem, true).count("nr_vmscan_write");
    assert!(asked("linux-5.4", Filesystem::Xfs) > 100);
    let ext4 = asked("linux-5.4", Filesystem::Ext4);
    assert!(ext4 > 100, "{ext4}");
    assert_eq!(asked("linux-6.1", Filesystem::Xfs), 0, "its hook went with large folios");
    assert_eq!(asked("linux-6.12", Filesystem::Ext4), 0);
}

/// Two processes that the flusher takes in turn: a directory of XFS is in another group of the disk than the
/// one before (MECHANISMS 11.1), so its files are not beside the other's. A disk that keeps one request at a
/// time in the making gets one for each file; who gathers several merges each with its own.
#[test]
fn files_of_two_directories_share_no_requests_on_xfs() {
    let requests = |filesystem, gathers| {
        let disk = DeviceModel { gathers, ..DeviceModel::VIRTIO_RAM };
        let world = World { filesystem, disk, ..World::new("linux-5.4", 64 * MIB) };
        let end = world.run(|kernel, process| async move {
            for directory in ["one", "other"] {
                kernel.make_dir(&process, directory).await.expect("a new directory");
            }
            for number in 0..400 {
                for directory in ["one", "other"] {
                    drop(create(&kernel, &process, &format!("{directory}/{number}"), 4096).await);
                }
            }
            kernel.sync().await;
        });
        end.disk.writes
    };
    let (ext4, xfs) = (requests(Filesystem::Ext4, 1), requests(Filesystem::Xfs, 1));
    assert!(ext4 < 40, "{ext4} requests of ext4");
    let merged = requests(Filesystem::Xfs, 16);
    assert!(merged < 100, "{merged} requests of XFS where 16 are gathered");
    assert!((800..900).contains(&xfs), "{xfs} requests of XFS for 800 files");
}
