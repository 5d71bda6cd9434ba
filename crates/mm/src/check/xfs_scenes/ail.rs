//! The thread that pushes the AIL, by scripts of its steps.

use std_alloc::{format, vec};

use super::*;
use crate::fs::xfs::ail::{AilNext, AilPush};
use units::Nanos;

impl Scene {
    fn push(&mut self, push: &mut AilPush) -> AilNext {
        self.mem.ail_step(push)
    }

    /// Steps up to the first that is not a walk.
    fn walk(&mut self, push: &mut AilPush) -> AilNext {
        loop {
            match self.push(push) {
                AilNext::Walk(_) => {}
                next => return next,
            }
        }
    }

    fn written(&mut self, clusters: &[ClusterId]) {
        for &cluster in clusters {
            self.mem.cluster_written(CPU, cluster);
        }
    }
}

fn thread(kernel: &str) -> AilPush {
    AilPush::new(Version::parse(kernel).unwrap().tuning.xfs_push_pause)
}

const fn rest(millis: u64) -> AilNext {
    AilNext::Sleep(Some(Nanos::from_millis(millis)))
}

#[test]
fn clusters_are_written_whole_in_the_order_of_the_disk_and_all_is_clean() {
    let mut scene = Scene::boot("linux-6.1", 16);
    scene.inodes(96);
    for inode in [70, 3, 4, 40, 5] {
        scene.create(inode);
    }
    scene.force();
    let mut push = thread("linux-6.1");
    assert_eq!(scene.walk(&mut push), AilNext::Sleep(None), "nobody asked for anything");
    assert!(scene.mem.log_push_all());
    let all = vec![ClusterId(0), ClusterId(1), ClusterId(2)];
    assert_eq!(scene.walk(&mut push), AilNext::Write(all.clone()));
    assert_eq!(scene.mem.fs.xfs_log.items().not_clean(), 5);
    assert_eq!(scene.walk(&mut push), rest(50), "until they are written");
    assert_eq!(scene.walk(&mut push), rest(50), "they are flushing");
    scene.written(&all);
    assert_eq!(scene.mem.fs.xfs_log.items().not_clean(), 0);
    assert_eq!(scene.walk(&mut push), AilNext::Sleep(None));
    scene.check();
}

#[test]
fn an_inode_that_is_pinned_holds_the_thread_up_until_it_has_forced_the_log() {
    let mut scene = Scene::boot("linux-6.1", 16);
    scene.inodes(64);
    (0..64).for_each(|inode| scene.create(inode));
    scene.force();
    (0..32).for_each(|inode| scene.change(inode, EXTEND));
    assert!(scene.mem.log_push_all());
    let mut push = thread("linux-6.1");
    assert_eq!(scene.walk(&mut push), AilNext::Write(vec![ClusterId(1)]));
    assert_eq!(scene.walk(&mut push), rest(50));
    assert_eq!(scene.push(&mut push), AilNext::ForceLog);
    scene.force();
    scene.written(&[ClusterId(1)]);
    assert_eq!(scene.walk(&mut push), AilNext::Sleep(None), "what is in the log again is behind its target");
    assert!(scene.mem.log_push_all());
    assert_eq!(scene.walk(&mut push), AilNext::Write(vec![ClusterId(0)]));
    scene.check();
}

/// The directory, inode 0, changes with each file: whoever pushes what is in the AIL has new files committed that are
/// not in it. Without it nobody did, and the shrinker passed them by until the checkpoint was full.
#[test]
fn a_directory_in_which_files_are_made_has_the_thread_force_the_log() {
    for (changes, next) in [(false, AilNext::Sleep(None)), (true, AilNext::ForceLog)] {
        let mut scene = Scene::boot("linux-5.7", 64);
        scene.inodes(64);
        scene.create(0);
        scene.force();
        for file in 32..64 {
            if changes {
                scene.change(0, Change::Core);
            }
            scene.create(file);
        }
        let mut push = thread("linux-5.7");
        assert!(scene.mem.log_push_all());
        if changes {
            assert_eq!(scene.drawn(), format!("P{}{}", ".".repeat(31), "p".repeat(32)));
            assert_eq!(scene.walk(&mut push), rest(50));
        } else {
            assert_eq!(scene.walk(&mut push), AilNext::Write(vec![ClusterId(0)]));
            scene.written(&[ClusterId(0)]);
            assert_eq!(scene.drawn(), format!("{}{}", ".".repeat(32), "p".repeat(32)));
        }
        assert_eq!(scene.push(&mut push), next, "directory changes: {changes}");
    }
}

#[test]
fn a_walk_ends_after_a_hundred_inodes_that_are_stuck() {
    for kernel in ["linux-6.1", "linux-6.12"] {
        let mut scene = Scene::boot(kernel, 16);
        scene.inodes(1600);
        (0..1600).for_each(|inode| scene.create(inode));
        scene.force();
        (1440..1600).for_each(|inode| scene.change(inode, EXTEND));
        assert!(scene.mem.log_push_all());
        let mut push = thread(kernel);
        let AilNext::Write(clusters) = scene.walk(&mut push) else { panic!("clusters are written") };
        assert_eq!(clusters.len(), 45);
        assert_eq!(scene.walk(&mut push), rest(20), "{kernel}: nearly all is on its way");
        assert_eq!(scene.push(&mut push), AilNext::ForceLog);
        scene.written(&clusters);
        // From the tail again: those that were pinned.
        assert_eq!(scene.walk(&mut push), rest(20));
        scene.check();
    }
}

#[test]
fn a_walk_that_gets_on_rests_ten_milliseconds_and_in_6_12_not_at_all() {
    for (kernel, pause) in [("linux-5.3", 10), ("linux-6.1", 10), ("linux-6.12", 0)] {
        let mut scene = Scene::boot(kernel, 64);
        scene.inodes(220 * 32);
        // Two inodes of each of 220 clusters, the second ones pinned: of 202 inodes 101 are stuck.
        (0..220).flat_map(|cluster| [cluster * 32, cluster * 32 + 1]).for_each(|inode| scene.create(inode));
        scene.force();
        (0..220).for_each(|cluster| scene.change(cluster * 32 + 1, EXTEND));
        assert!(scene.mem.log_push_all());
        let mut push = thread(kernel);
        let AilNext::Write(clusters) = scene.walk(&mut push) else { panic!("clusters are written") };
        assert_eq!(clusters.len(), 101, "{kernel}");
        assert_eq!(scene.walk(&mut push), rest(pause), "{kernel}");
        let AilNext::Write(clusters) = scene.walk(&mut push) else { panic!("it goes on where it was") };
        assert_eq!(clusters[0], ClusterId(101), "{kernel}");
    }
}

#[test]
fn an_evicted_cluster_is_read_before_its_inodes_can_be_written() {
    let mut scene = Scene::boot("linux-5.3", 16);
    scene.inodes(32);
    scene.create(7);
    scene.force();
    scene.shrink_buffers();
    assert!(scene.mem.log_push_all());
    let mut push = thread("linux-5.3");
    assert_eq!(scene.walk(&mut push), AilNext::Read(ClusterId(0)));
    scene.buffer(ClusterId(0));
    assert_eq!(scene.walk(&mut push), AilNext::Write(vec![ClusterId(0)]));
    scene.check();
}
