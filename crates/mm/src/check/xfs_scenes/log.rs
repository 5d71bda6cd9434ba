//! Checkpoints, records, and space in the log.

use std_alloc::vec;

use super::*;
use crate::base::gfp::MigrateType;
use units::Bytes;

const NAMES: [&str; 2] = ["linux-5.3", "linux-6.1"];

#[test]
fn an_inode_is_clean_once_its_change_is_in_the_log_and_then_at_its_place() {
    for kernel in NAMES {
        let mut scene = Scene::boot(kernel, 16);
        scene.inodes(4);
        let mut story = vec![scene.drawn()];
        scene.create(0);
        scene.create(2);
        story.push(scene.drawn());
        scene.force();
        story.push(scene.drawn());
        scene.check();
        crate::fs::xfs::ail::flush_cluster(
            &mut scene.mem.fs.xfs_log,
            &mut scene.mem.fs.xfs_buffers,
            ClusterId(0),
        );
        scene.change(2, EXTEND);
        story.push(scene.drawn());
        let cleaned = scene.mem.cluster_written(CPU, ClusterId(0));
        story.push(scene.drawn());
        assert_eq!(cleaned, 1);
        scene.check();
        // What was written is not what the log says by now.
        scene.force();
        story.push(scene.drawn());
        scene.check();
        assert_eq!(story.join(" "), ".... p.p. a.a. f.F. ..p. ..a.", "{kernel}");
    }
}

#[test]
fn an_inode_that_changes_again_in_the_ail_goes_to_the_end_of_it() {
    let mut scene = Scene::boot("linux-6.1", 16);
    scene.inodes(3);
    (0..3).for_each(|inode| scene.create(inode));
    scene.force();
    let first = scene.mem.fs.xfs_log.items().first_in_ail().expect("all are in it");
    assert_eq!(first.0, scene.inodes[0]);
    scene.change(0, EXTEND);
    assert_eq!(scene.drawn(), "Paa");
    assert_eq!(scene.mem.fs.xfs_log.items().first_in_ail(), Some(first), "until that is on the disk");
    scene.force();
    assert_eq!(scene.drawn(), "aaa");
    let log = &scene.mem.fs.xfs_log;
    assert_eq!(log.items().first_in_ail(), Some((scene.inodes[1], first.1)));
    assert!(log.items().last_in_ail() > Some(first.1));
    scene.check();
}

#[test]
fn a_checkpoint_counts_only_when_its_last_record_is_filled_or_forced() {
    let mut scene = Scene::boot("linux-6.1", 16);
    scene.inodes(400);
    (0..200).for_each(|inode| scene.create(inode));
    // 57,600 bytes: one record of 32,256 and a part of the next one.
    scene.close(false);
    assert_eq!(scene.sent.len(), 1);
    scene.arrive();
    assert_eq!(scene.mem.fs.xfs_log.items().in_ail(), 0, "the end of it is in a record that waits");
    (200..250).for_each(|inode| scene.create(inode));
    scene.close(false);
    assert_eq!(scene.sent.len(), 1, "now that one is full");
    scene.arrive();
    assert_eq!(scene.mem.fs.xfs_log.items().in_ail(), 200, "the first checkpoint, not the second");
    scene.check();
    scene.force();
    assert_eq!(scene.mem.fs.xfs_log.items().in_ail(), 250);
    scene.check();
}

#[test]
fn records_arrive_in_any_order_and_count_in_theirs() {
    let mut scene = Scene::boot("linux-6.1", 16);
    scene.inodes(300);
    (0..300).for_each(|inode| scene.create(inode));
    scene.close(true);
    let numbers: Vec<u64> = scene.sent.iter().map(|record| record.number).collect();
    assert_eq!(numbers, [0, 1, 2]);
    for number in [2, 1] {
        scene.mem.log_record_written(number);
        assert!(!scene.mem.fs.xfs_log.can_commit(), "the first one is missing");
    }
    scene.mem.log_record_written(0);
    assert!(scene.mem.fs.xfs_log.can_commit());
}

#[test]
fn a_change_takes_the_regions_that_it_logs_and_an_inode_only_once_in_a_checkpoint() {
    let mut scene = Scene::boot("linux-6.1", 16);
    scene.inodes(2);
    let mut sizes = Vec::new();
    for change in
        [Change::Create, EXTEND, EXTEND, Change::Extend { extents: 3 }, Change::Extend { extents: 300 }]
    {
        scene.change(0, change);
        sizes.push(scene.mem.fs.xfs_log.open_bytes().get());
    }
    // Format 56, core 176, two headers of 12; the entry 32; then an extent of 16 with its header, and more of these, of
    // which an inode has room for 21.
    assert_eq!(sizes, [288, 316, 316, 348, 636]);
    scene.force();
    for change in [EXTEND, Change::Remove] {
        scene.change(0, change);
        sizes.push(scene.mem.fs.xfs_log.open_bytes().get());
    }
    assert_eq!(sizes[5..], [604, 604 + 32 + 88], "all of the inode again");
}

#[test]
fn a_checkpoint_gives_all_its_unmovable_memory_back_at_one_blow() {
    let mut scene = Scene::boot("linux-4.20-rc1", 16);
    scene.inodes(2200);
    let free = |scene: &mut Scene| {
        let _ = scene.mem.core.alloc.drain_all();
        let zones = scene.mem.core.alloc.zones().iter();
        zones.map(|zone| zone.free_area.free_of(MigrateType::Unmovable)).sum::<u64>()
    };
    let before = scene.mem.slab_pages(false);
    (0..2200).for_each(|inode| scene.create(inode));
    let held = scene.mem.slab_pages(false) - before;
    assert_eq!(held, 2200_u64.div_ceil(8), "8 vectors in a page");
    let unmovable = free(&mut scene);
    scene.force();
    let kept = scene.mem.slab_pages(false) - before;
    assert!(kept < held / 4, "some empty slabs: {kept} of {held} pages");
    assert_eq!(free(&mut scene) - unmovable, held - kept, "all of it unmovable");
    scene.check();
}

#[test]
fn a_checkpoint_is_full_at_an_eighth_of_the_log_and_since_5_7_at_32_mib() {
    use crate::fs::xfs::log::XfsLog;
    let limit =
        |kernel: &str, log| XfsLog::checkpoint_limit(Bytes(log), &Version::parse(kernel).unwrap().tuning);
    assert_eq!(limit("linux-4.20-rc1", 512 << 20), Bytes(64 << 20));
    assert_eq!(limit("linux-6.1", 512 << 20), Bytes(32 << 20));
    assert_eq!(limit("linux-6.1", 64 << 20), Bytes(8 << 20));
}

#[test]
fn nothing_is_added_to_a_checkpoint_that_is_twice_too_large_since_5_7() {
    for (kernel, waits) in [("linux-5.3", false), ("linux-6.1", true)] {
        let mut scene = Scene::boot(kernel, 4);
        scene.inodes(4000);
        let tuning = *scene.mem.core.alloc.tuning();
        let mut found = (None, None);
        for inode in 0..4000 {
            scene.create(inode);
            let log = &scene.mem.fs.xfs_log;
            found.0 = found.0.or(log.is_checkpoint_full(&tuning).then_some(inode));
            found.1 = found.1.or(log.is_checkpoint_overfull(&tuning).then_some(inode));
        }
        // 512 KiB are 1820 changes and a part, a mebibyte 3640 and a part.
        assert_eq!(found, (Some(1820), waits.then_some(3640)), "{kernel}");
    }
}

#[test]
fn the_log_has_room_again_when_its_tail_moves() {
    let mut scene = Scene::boot("linux-6.1", 4);
    scene.inodes(14_000);
    let mut inode = 0;
    while scene.mem.log_reserve() {
        scene.mem.log_unreserve();
        scene.create(inode);
        inode += 1;
        if inode % 1000 == 0 {
            scene.force();
        }
    }
    // 4 MiB less what one change has to have.
    let room = ((4 << 20) - (360 << 10)) / 288;
    assert_eq!(inode, room + 1);
    scene.force();
    scene.check();
    let free = scene.mem.fs.xfs_log.free();
    let Memory { fs, .. } = &mut scene.mem;
    crate::fs::xfs::ail::flush_cluster(&mut fs.xfs_log, &mut fs.xfs_buffers, ClusterId(0));
    scene.mem.cluster_written(CPU, ClusterId(0));
    assert_eq!(scene.mem.fs.xfs_log.free(), free, "others of that checkpoint keep its place");
    for cluster in 1..32 {
        let Memory { fs, .. } = &mut scene.mem;
        crate::fs::xfs::ail::flush_cluster(&mut fs.xfs_log, &mut fs.xfs_buffers, ClusterId(cluster));
        scene.mem.cluster_written(CPU, ClusterId(cluster));
    }
    assert_eq!(scene.mem.fs.xfs_log.free() - free, Bytes(288 * 1000));
    assert!(scene.mem.log_reserve());
    scene.check();
}

#[test]
fn the_tail_is_pushed_when_less_than_a_quarter_of_the_log_is_free() {
    let mut scene = Scene::boot("linux-6.1", 4);
    scene.inodes(11_000);
    for inode in 0..10_900 {
        scene.create(inode);
    }
    scene.force();
    assert!(!scene.mem.log_push_tail(), "3 MiB are 10,922 changes");
    assert!(scene.mem.log_push_all(), "all of it, as the shrinker asks");
    assert!(!scene.mem.log_push_all(), "that is no news");
    (10_900..10_930).for_each(|inode| scene.create(inode));
    assert!(scene.mem.log_push_tail() && scene.mem.fs.xfs_log.has_work());
    assert!(!scene.mem.log_push_tail(), "the tail has not moved since");
}

#[test]
fn an_inode_that_is_gone_is_written_to_its_place_unless_its_chunk_goes_with_it() {
    for kernel in ["linux-5.3", "linux-6.1"] {
        let mut scene = Scene::boot(kernel, 16);
        scene.inodes(66);
        (0..66).for_each(|inode| scene.create(inode));
        scene.force();
        // Numbers 0 and 64 are of the first and the second chunk.
        (0..63).for_each(|inode| scene.change(inode, Change::Remove));
        scene.change(64, Change::Remove);
        scene.force();
        assert_eq!(scene.drawn(), "a".repeat(66), "{kernel}: one inode of each chunk is left");
        scene.change(63, Change::RemoveLast);
        assert_eq!(scene.drawn(), "a".repeat(63) + "Paa", "{kernel}: the log does not have it yet");
        scene.force();
        assert_eq!(scene.drawn(), ".".repeat(64) + "aa", "{kernel}: a chunk goes as one");
        scene.check();
    }
}

/// While a task waited to drop the last file of a chunk, another made a file with the number of one that was gone.
#[test]
fn a_file_that_is_made_in_a_chunk_that_was_to_be_freed_is_written() {
    for (reused, left) in [(0, String::from("a") + &".".repeat(63)), (63, ".".repeat(63) + "a")] {
        let mut scene = Scene::boot("linux-6.1", 16);
        scene.inodes(64);
        (0..64).for_each(|inode| scene.create(inode));
        (0..63).for_each(|inode| scene.change(inode, Change::Remove));
        scene.change(63, Change::RemoveLast);
        scene.evict(reused);
        scene.mem.reuse_inode(scene.inodes[reused]);
        scene.create(reused);
        scene.force();
        assert_eq!(scene.drawn(), left);
        scene.check();
    }
}

#[test]
fn the_buffer_of_an_inode_that_is_not_clean_stays_since_5_9() {
    for (kernel, stays) in [
        ("linux-5.3", false),
        ("linux-5.3+pin-inode-cluster", true),
        ("linux-5.10", true),
        ("linux-5.10-pin-inode-cluster", false),
    ] {
        let mut scene = Scene::boot(kernel, 16);
        scene.inodes(64);
        scene.create(3);
        scene.force();
        scene.shrink_buffers();
        let found = [0, 1].map(|cluster| scene.mem.fs.xfs_buffers.holders(ClusterId(cluster)));
        assert_eq!(found, [stays.then_some(1), None], "{kernel}");
        // Written, it goes with its last holder or is listed again.
        scene.buffer(ClusterId(0));
        let Memory { fs, .. } = &mut scene.mem;
        crate::fs::xfs::ail::flush_cluster(&mut fs.xfs_log, &mut fs.xfs_buffers, ClusterId(0));
        scene.shrink_buffers();
        assert!(scene.mem.fs.xfs_buffers.holders(ClusterId(0)).is_some(), "{kernel}: while it is written");
        scene.mem.cluster_written(CPU, ClusterId(0));
        scene.shrink_buffers();
        assert_eq!(scene.mem.fs.xfs_buffers.holders(ClusterId(0)), None, "{kernel}");
        scene.check();
    }
}

#[test]
fn an_inode_that_grows_in_the_open_checkpoint_keeps_its_first_vector_in_reserve() {
    let mut scene = Scene::boot("linux-6.1", 16);
    scene.inodes(1);
    let vectors = |scene: &Scene| {
        [Cache::XfsLogVector, Cache::XfsLogVectorExtents].map(|cache| scene.mem.core.slabs.objects(cache))
    };
    let mut story = Vec::new();
    for change in [Change::Create, EXTEND, EXTEND] {
        scene.change(0, change);
        story.push(vectors(&scene));
    }
    // The third change has no use for the small one in reserve, and brings one of its own.
    assert_eq!(story, [[1, 0], [1, 1], [0, 2]]);
    scene.force();
    assert_eq!(vectors(&scene), [0, 1], "that in the checkpoint is freed");
    scene.change(0, EXTEND);
    assert_eq!(vectors(&scene), [0, 1], "and that in reserve is used");
    scene.check();
    scene.force();
    assert_eq!(vectors(&scene), [0, 0]);
    scene.change(0, Change::Create);
    scene.change(0, Change::RemoveLast);
    assert_eq!(vectors(&scene), [0, 2]);
    scene.force();
    scene.evict(0);
    scene.mem.drop_slab(CPU);
    assert_eq!(vectors(&scene), [0, 0], "it goes with the inode");
    scene.check();
}

#[test]
fn what_frees_the_extents_of_a_file_is_held_until_its_checkpoint_is_written() {
    let mut scene = Scene::boot("linux-6.1", 64 << 20);
    scene.inodes(3);
    let intents = |scene: &Scene| scene.mem.core.slabs.objects(Cache::XfsExtentFree);
    for (inode, extents, so_far) in [(0, 0, 0), (1, 1, 1), (2, 5, 4)] {
        scene.change(inode, Change::Create);
        if extents > 0 {
            scene.change(inode, Change::Extend { extents });
        }
        scene.change(inode, Change::Remove);
        assert_eq!(intents(&scene), so_far, "two extents to an intent");
    }
    scene.check();
    scene.close(true);
    assert_eq!(intents(&scene), 4, "it is on its way to the disk");
    scene.arrive();
    assert_eq!(intents(&scene), 0);
    scene.check();
}
