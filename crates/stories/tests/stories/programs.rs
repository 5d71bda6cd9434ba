//! What programs do beside their calls: they use their own pages, and wait for each other's writes to a file.

use kernel::{Filesystem, Machine, WaitReason};
use mm::MemcgId;
use mm::swap::areas::{AreaKind, AreaSpec};
use sim::{DeviceModel, SimKernel};
use units::{Bytes, Nanos, PAGE_SIZE};

use crate::writing::{MIB, World, create};

/// ```text
///   limit 8 MiB, swap    32 MiB of its own, written once, unmapped: what is left is stack and heap
/// ```
/// Guests read 2,400 to 18,400 pages of swap back while processes create files below ever more pinned memory.
#[test]
fn a_program_uses_its_own_pages_and_so_they_are_not_left_in_swap() {
    World::new("linux-6.12", 128 * MIB).run(|kernel, _| async move {
        kernel.swap_on(AreaSpec { kind: AreaKind::Zram, pages: 16384, priority: None });
        let memcg = kernel.mem(|mem| mem.memcg_create(MemcgId::ROOT, "app"));
        kernel.cgroup_write("app", "memory.max", &(8 * MIB).to_string()).await.expect("a limit");
        let process = kernel.process_start("program", memcg).await.expect("memory for a process");
        let anon = |kernel: &SimKernel| {
            let all = kernel.mem(|mem| mem.memcg_stat(memcg));
            all.into_iter().find(|(name, _)| *name == "anon").expect("a figure").1 / PAGE_SIZE
        };
        let own = anon(&kernel);
        let mapping = kernel.map_anonymous(&process, Bytes(32 * MIB)).expect("a mapping");
        for first in (0..32 * MIB / PAGE_SIZE).step_by(32) {
            kernel.touch(&process, mapping, first, 32).await.expect("memory or swap");
        }
        kernel.unmap_anonymous(&process, mapping);
        let left = anon(&kernel);
        assert!((12..own).contains(&left), "{left} of {own} pages: in use are 12, the others are in swap");
        kernel.process_exit(&process);
    });
}

/// Two tasks write 16 MiB each, more than may be dirty; how long they wait for the lock of a file.
fn waits_of_writers(files: [&'static str; 2]) -> Nanos {
    let world = World { disk: DeviceModel::S390_FCP_2010, ..World::new("linux-6.12", 64 * MIB) };
    let end = world.run(move |kernel, process| async move {
        create(&kernel, &process, files[0], PAGE_SIZE).await;
        if files[1] != files[0] {
            create(&kernel, &process, files[1], PAGE_SIZE).await;
        }
        let (other, done) = (kernel.clone(), kernel.machine().new_queue());
        kernel.machine().spawn("other", None, async move {
            let process = other.process_start("other", MemcgId::ROOT).await.expect("memory for a process");
            let file = other.open(&process, files[1], false).await.expect("a file");
            assert_eq!(other.write(&process, &file, 0, 16 * MIB).await, Ok(16 * MIB));
            other.machine().wake_all(done);
        });
        let file = kernel.open(&process, files[0], false).await.expect("it is there");
        assert_eq!(kernel.write(&process, &file, 16 * MIB, 16 * MIB).await, Ok(16 * MIB));
        let _ = kernel.machine().wait(done, WaitReason::Join, Some(Nanos::from_secs(60))).await;
    });
    end.waited(WaitReason::FileLock)
}

/// ```text
///   one file   first  |-- writes, pauses, writes, pauses --|
///              second   waits for the lock .................|-- writes, pauses --|
/// ```
/// `writeback:balance_dirty_pages` of a guest of 5.10: of four writers of one file no two were paused at once.
#[test]
fn writers_of_one_file_wait_for_each_others_pauses_and_those_of_two_do_not() {
    let (one, two) = (waits_of_writers(["a", "a"]), waits_of_writers(["a", "b"]));
    assert!(one > Nanos::from_millis(40) && two == Nanos::ZERO, "{one:?}, {two:?}");
}

/// How long somebody who reads a page of a file waits for its writer.
fn waits_of_reader(filesystem: Filesystem) -> Nanos {
    let disk = DeviceModel::S390_FCP_2010;
    let world = World { filesystem, disk, ..World::new("linux-6.12", 64 * MIB) };
    let end = world.run(|kernel, process| async move {
        let file = create(&kernel, &process, "file", PAGE_SIZE).await;
        let other = kernel.clone();
        kernel.machine().spawn("reader", None, async move {
            let process = other.process_start("reader", MemcgId::ROOT).await.expect("memory for a process");
            let file = other.open(&process, "file", false).await.expect("it is there");
            other.machine().sleep(Nanos::from_millis(20), WaitReason::UserSleep).await;
            assert_eq!(other.read(&process, &file, 0, PAGE_SIZE).await, Ok(PAGE_SIZE));
        });
        assert_eq!(kernel.write(&process, &file, 0, 24 * MIB).await, Ok(24 * MIB));
        kernel.machine().sleep(Nanos::from_secs(1), WaitReason::UserSleep).await;
    });
    end.waited(WaitReason::FileLock)
}

#[test]
fn readers_wait_for_a_writer_of_their_file_on_xfs_alone() {
    assert_eq!(waits_of_reader(Filesystem::Ext4), Nanos::ZERO);
    assert!(waits_of_reader(Filesystem::Xfs) > Nanos::from_millis(20));
}
