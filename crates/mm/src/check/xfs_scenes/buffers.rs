//! What the check of buffers must find: each scene is sound, and then broken in one place.

use super::*;

const CLUSTER: ClusterId = ClusterId(0);

/// What the check says of a scene with one changed inode after `breaks` had its way.
fn found(kernel: &str, breaks: impl FnOnce(&mut Memory<NoTrace>)) -> String {
    let mut scene = Scene::boot(kernel, 16);
    scene.inodes(1);
    scene.create(0);
    scene.check();
    breaks(&mut scene.mem);
    scene.mem.check().expect_err("it is broken").0
}

const BOTH: &str = "linux-6.1";
const NEITHER: &str = "linux-5.3";

#[test]
fn a_buffer_is_held_by_its_write_and_the_inodes_that_need_it_and_by_nobody_else() {
    let others = "a buffer is held by others than its write and its inodes";
    assert_eq!(found(BOTH, |mem| mem.fs.xfs_buffers.hold(CLUSTER)), others);
    assert_eq!(found(NEITHER, |mem| mem.fs.xfs_buffers.hold(CLUSTER)), others);
    let let_go = |mem: &mut Memory<NoTrace>| mem.fs.xfs_buffers.release(&mut mem.core, CPU, CLUSTER);
    assert_eq!(found(BOTH, let_go), others);
}

#[test]
fn the_buffer_of_a_changed_inode_may_go_only_where_inodes_do_not_hold_it() {
    let evict = |mem: &mut Memory<NoTrace>| {
        for _ in 0..3 {
            let _ = mem.fs.xfs_buffers.shrink(&mut mem.core, CPU, NODE, 1);
        }
    };
    let mut scene = Scene::boot(NEITHER, 16);
    scene.inodes(1);
    scene.create(0);
    evict(&mut scene.mem);
    scene.check();
    assert_eq!(scene.mem.cluster_use(CLUSTER), ClusterState::Missing);
    let gone = found(BOTH, |mem| {
        mem.fs.xfs_buffers.release(&mut mem.core, CPU, CLUSTER);
        evict(mem);
    });
    assert_eq!(gone, "the buffer of inodes that are not clean is not in memory");
}

#[test]
fn pages_of_a_buffer_are_in_use() {
    let free = |mem: &mut Memory<NoTrace>| {
        let [pfn, ..] = mem.fs.xfs_buffers.pages(CLUSTER).expect("it is in memory");
        mem.core.alloc.free(CPU, pfn, Order(0));
    };
    let text = found(BOTH, free);
    assert!(text.contains("of a buffer is"), "{text}");
}
