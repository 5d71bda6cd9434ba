//! Anything in any order: what is not clean stays in memory, and in the end all is clean.

use super::*;
use crate::fs::xfs::ail::{AilNext, AilPush};
use crate::fs::xfs::inode_reclaim::{InodeNext, InodeReclaim};
use units::Seed;

const INODES: usize = 200;

/// What the disk has to do.
#[derive(Default)]
struct Disk {
    clusters: Vec<ClusterId>,
}

fn random_steps(kernel: &str, seed: u64) {
    let mut random = Seed(seed).stream("steps");
    let mut scene = Scene::boot(kernel, 4);
    scene.inodes(INODES);
    let (mut disk, mut push) = (Disk::default(), AilPush::new(units::Nanos::ZERO));
    let mut passes: Vec<InodeReclaim> = Vec::new();
    for step in 0..1500 {
        let inode = usize::try_from(random.below(INODES as u64)).unwrap();
        match random.below(10) {
            0..=2 => {
                if scene.mem.fs.vfs.has_inode(scene.inodes[inode]) {
                    let change = if random.below(8) == 0 { Change::Create } else { EXTEND };
                    scene.change(inode, change);
                }
            }
            3 => {
                if scene.mem.fs.vfs.has_inode(scene.inodes[inode]) {
                    scene.evict(inode);
                }
            }
            4 => {
                if !scene.mem.fs.vfs.has_inode(scene.inodes[inode]) {
                    scene.load(inode);
                }
            }
            5 => scene.close(random.below(2) == 0),
            6 => scene.arrive(),
            7 => one_push(&mut scene, &mut push, &mut disk),
            8 => {
                for cluster in core::mem::take(&mut disk.clusters) {
                    scene.mem.cluster_written(CPU, cluster);
                }
                scene.shrink_buffers();
            }
            _ => {
                if passes.len() < 3 {
                    passes.push(scene_pass(&scene, random.below(100)));
                }
                passes.retain_mut(|pass| !one_reclaim(&mut scene, pass, &mut disk));
            }
        }
        if step % 30 == 0 {
            scene.mem.check_at_rest().unwrap_or_else(|problem| panic!("{kernel} {seed} {step}: {problem:?}"));
        }
    }
    settle(&mut scene, &mut push, &mut disk, &mut passes);
}

fn scene_pass(scene: &Scene, count: u64) -> InodeReclaim {
    InodeReclaim::shrinker(scene.mem.core.rules(), count)
}

/// One step of the pushing thread; what it would wait for is done at once or left to the disk.
fn one_push(scene: &mut Scene, push: &mut AilPush, disk: &mut Disk) {
    scene.mem.log_push_all();
    match scene.mem.ail_step(push) {
        AilNext::ForceLog => scene.force(),
        AilNext::Read(cluster) => scene.buffer(cluster),
        AilNext::Write(clusters) => disk.clusters.extend(clusters),
        AilNext::Walk(_) | AilNext::Sleep(_) => {}
    }
}

/// One step of a pass; whether it is over.
fn one_reclaim(scene: &mut Scene, pass: &mut InodeReclaim, disk: &mut Disk) -> bool {
    match scene.mem.inode_reclaim_step(pass, CPU) {
        InodeNext::ForceLog => scene.force(),
        InodeNext::Read(cluster) => scene.buffer(cluster),
        InodeNext::Write(cluster) => disk.clusters.push(cluster),
        InodeNext::Done => return true,
        InodeNext::Looked { .. } | InodeNext::WaitForGroup(_) | InodeNext::WaitForCluster(_) => {}
    }
    false
}

/// With the log forced and the AIL pushed, all is clean; then every pass comes to its end.
fn settle(scene: &mut Scene, push: &mut AilPush, disk: &mut Disk, passes: &mut Vec<InodeReclaim>) {
    for _ in 0..200 {
        scene.force();
        one_push(scene, push, disk);
        for cluster in core::mem::take(&mut disk.clusters) {
            scene.mem.cluster_written(CPU, cluster);
        }
        passes.retain_mut(|pass| !one_reclaim(scene, pass, disk));
    }
    for cluster in core::mem::take(&mut disk.clusters) {
        scene.mem.cluster_written(CPU, cluster);
    }
    assert!(passes.is_empty(), "a pass waits for ever");
    assert_eq!(scene.mem.fs.xfs_log.items().not_clean(), 0);
    let mut worker = InodeReclaim::worker();
    while scene.mem.inode_reclaim_step(&mut worker, CPU) != InodeNext::Done {}
    assert_eq!(scene.mem.fs.vfs.reclaimable.count(), 0);
    scene.shrink_buffers();
    assert_eq!(scene.mem.fs.xfs_buffers.count(NODE), 0);
    scene.check();
}

#[test]
fn whatever_happens_inodes_stay_until_they_are_clean_and_get_clean() {
    for kernel in ["linux-5.3", "linux-5.3+async-inode-reclaim", "linux-5.3+pin-inode-cluster", "linux-6.1"] {
        for seed in 0..3 {
            random_steps(kernel, seed);
        }
    }
}
