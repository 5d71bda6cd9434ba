//! Evicted inodes: found again, freed, waited for or passed by.

use super::*;
use crate::fs::xfs::inode_reclaim::{InodeNext, InodeReclaim};

impl Scene {
    fn pass(&self, count: u64) -> InodeReclaim {
        InodeReclaim::shrinker(self.mem.core.rules(), count)
    }

    fn step(&mut self, pass: &mut InodeReclaim) -> InodeNext {
        self.mem.inode_reclaim_step(pass, CPU)
    }

    /// Four evicted inodes: clean, pinned, in the AIL, flushing with its cluster.
    fn evicted(kernel: &str) -> Self {
        let mut scene = Self::boot(kernel, 16);
        scene.inodes(97);
        scene.create(64);
        scene.create(96);
        scene.force();
        scene.create(32);
        let Memory { fs, .. } = &mut scene.mem;
        crate::fs::xfs::ail::flush_cluster(&mut fs.xfs_log, &mut fs.xfs_buffers, ClusterId(3));
        for inode in [0, 32, 64, 96] {
            scene.evict(inode);
        }
        assert_eq!(scene.four(), ".paf");
        assert_eq!(scene.mem.fs.vfs.reclaimable.count(), 4);
        scene.check();
        scene
    }

    fn four(&self) -> String {
        let all: Vec<char> = self.drawn().chars().collect();
        [0, 32, 64, 96].iter().map(|&inode: &usize| all[inode]).collect()
    }
}

const fn looked(looked: u64, freed: u64) -> InodeNext {
    InodeNext::Looked { looked, freed }
}

#[test]
fn since_5_9_the_shrinker_passes_inodes_by_that_are_not_clean() {
    for kernel in ["linux-5.10", "linux-5.3+async-inode-reclaim"] {
        let mut scene = Scene::evicted(kernel);
        let mut pass = scene.pass(32);
        assert_eq!(scene.step(&mut pass), looked(4, 1), "{kernel}");
        assert_eq!(scene.step(&mut pass), InodeNext::Done);
        assert_eq!(scene.four(), "-paf");
        scene.check();
    }
}

#[test]
fn up_to_5_8_the_shrinker_waits_until_an_inode_is_clean() {
    for kernel in ["linux-5.3", "linux-5.10-async-inode-reclaim"] {
        let mut scene = Scene::evicted(kernel);
        let mut pass = scene.pass(32);
        assert_eq!(scene.step(&mut pass), looked(1, 1), "{kernel}: the clean one goes first");
        assert_eq!(scene.step(&mut pass), InodeNext::ForceLog, "{kernel}");
        scene.force();
        assert_eq!(scene.step(&mut pass), InodeNext::Write(ClusterId(1)), "{kernel}");
        assert_eq!(scene.four(), "-faf");
        assert_eq!(scene.step(&mut pass), InodeNext::WaitForCluster(ClusterId(1)), "still on its way");
        scene.mem.cluster_written(CPU, ClusterId(1));
        assert_eq!(scene.step(&mut pass), looked(1, 1));
        assert_eq!(scene.step(&mut pass), InodeNext::Write(ClusterId(2)));
        scene.mem.cluster_written(CPU, ClusterId(2));
        assert_eq!(scene.step(&mut pass), looked(1, 1));
        assert_eq!(scene.step(&mut pass), InodeNext::WaitForCluster(ClusterId(3)));
        scene.mem.cluster_written(CPU, ClusterId(3));
        assert_eq!(scene.step(&mut pass), looked(1, 1));
        assert_eq!(scene.step(&mut pass), InodeNext::Done);
        assert_eq!(scene.four(), "----");
        scene.check();
    }
}

#[test]
fn up_to_5_8_an_evicted_buffer_is_read_before_the_inode_is_written() {
    let mut scene = Scene::boot("linux-5.3", 16);
    scene.inodes(1);
    scene.create(0);
    scene.force();
    scene.evict(0);
    scene.shrink_buffers();
    let mut pass = scene.pass(1);
    assert_eq!(scene.step(&mut pass), InodeNext::Read(ClusterId(0)));
    scene.buffer(ClusterId(0));
    assert_eq!(scene.step(&mut pass), InodeNext::Write(ClusterId(0)));
}

#[test]
fn the_mates_of_a_cluster_that_was_written_are_cheap() {
    let mut scene = Scene::boot("linux-5.3", 16);
    scene.inodes(32);
    (0..32).for_each(|inode| scene.create(inode));
    scene.force();
    (0..32).for_each(|inode| scene.evict(inode));
    let mut pass = scene.pass(32);
    assert_eq!(scene.step(&mut pass), InodeNext::Write(ClusterId(0)));
    scene.mem.cluster_written(CPU, ClusterId(0));
    assert_eq!(scene.step(&mut pass), looked(32, 32));
    assert_eq!(scene.step(&mut pass), InodeNext::Done);
}

#[test]
fn a_group_that_is_busy_is_skipped_and_waited_for_in_the_second_round() {
    let mut scene = Scene::boot("linux-5.3", 64);
    scene.inodes(1100); // Two groups.
    scene.create(0);
    scene.force();
    (0..40).chain(1024..1064).for_each(|inode| scene.evict(inode));
    let (mut first, mut second) = (scene.pass(200), scene.pass(200));
    assert_eq!(scene.step(&mut first), InodeNext::Write(ClusterId(0)), "the first group is locked");
    assert_eq!(scene.step(&mut second), looked(32, 32), "so this one takes the second");
    assert_eq!(scene.step(&mut second), looked(8, 8));
    assert_eq!(scene.step(&mut second), InodeNext::WaitForGroup(0));
    scene.mem.cluster_written(CPU, ClusterId(0));
    assert_eq!(scene.step(&mut first), looked(32, 32));
    assert_eq!(scene.step(&mut first), looked(8, 8));
    assert_eq!(scene.step(&mut first), InodeNext::Done);
    assert_eq!(scene.step(&mut second), InodeNext::Done);
    scene.check();
}

/// It once took all from the first group, and the others kept what was clean in them.
#[test]
fn every_group_gives_a_batch_however_few_inodes_are_asked_for() {
    for kernel in ["linux-5.3", "linux-6.1"] {
        let mut scene = Scene::boot(kernel, 16);
        scene.inodes(4 * 1024);
        (0..4).flat_map(|group| (group * 1024)..(group * 1024 + 100)).for_each(|inode| scene.evict(inode));
        let mut pass = scene.pass(40);
        for group in ["two of the first", "the same", "one of the second", "of the third", "of the fourth"] {
            assert_eq!(scene.step(&mut pass), looked(32, 32), "{kernel}: {group}");
        }
        assert_eq!(scene.step(&mut pass), InodeNext::Done, "{kernel}");
        assert_eq!(scene.mem.fs.vfs.reclaimable.count(), 400 - (5 * 32));
    }
}

#[test]
fn the_shrinker_goes_on_where_it_stopped() {
    let mut scene = Scene::boot("linux-6.1", 16);
    scene.inodes(96);
    scene.create(40);
    (0..96).for_each(|inode| scene.evict(inode));
    let freed = |scene: &mut Scene| {
        let mut pass = scene.pass(1);
        let next = scene.step(&mut pass);
        assert_eq!(scene.step(&mut pass), InodeNext::Done);
        next
    };
    assert_eq!(freed(&mut scene), looked(32, 32));
    assert_eq!(freed(&mut scene), looked(32, 31));
    assert_eq!(freed(&mut scene), looked(32, 32));
    assert_eq!(freed(&mut scene), InodeNext::Done, "that was the end of the group");
    assert_eq!(freed(&mut scene), looked(1, 0), "from its beginning again");
}

#[test]
fn an_evicted_inode_is_found_again_by_an_open_whatever_state_it_is_in() {
    let mut scene = Scene::boot("linux-6.1", 16);
    scene.inodes(2);
    scene.create(0);
    (0..2).for_each(|inode| scene.evict(inode));
    let objects = scene.mem.core.slabs.objects(Cache::XfsInode);
    assert!(!scene.mem.fs.vfs.has_inode(scene.inodes[0]));
    scene.load(0);
    assert!(scene.mem.fs.vfs.has_inode(scene.inodes[0]));
    assert_eq!(scene.mem.fs.vfs.reclaimable.count(), 1);
    assert_eq!(scene.mem.core.slabs.objects(Cache::XfsInode), objects, "nothing is allocated");
    assert_eq!(scene.drawn(), "p.");
    let mut worker = InodeReclaim::worker();
    assert_eq!(scene.step(&mut worker), looked(1, 1));
    assert_eq!(scene.drawn(), "p-");
    assert!(!scene.mem.recycle_inode(scene.inodes[1]), "it is gone");
    scene.check();
}
