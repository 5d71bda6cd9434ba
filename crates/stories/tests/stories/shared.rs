//! Files in memory: who pays for them, what reclaim can do about them, and when they go.

use kernel::{Process, SharedFile};
use mm::MemcgId;
use mm::swap::areas::{AreaKind, AreaSpec};
use sim::SimKernel;
use units::Bytes;

use crate::writing::{MIB, World};

fn figure(kernel: &SimKernel, name: &str) -> u64 {
    kernel.vmstat().into_iter().find(|(other, _)| other == name).map_or(0, |(_, value)| value)
}

/// A figure of a cgroup's `memory.stat`.
fn stat(kernel: &SimKernel, memcg: MemcgId, name: &str) -> u64 {
    let all = kernel.mem(|mem| mem.memcg_stat(memcg));
    all.into_iter().find(|(other, _)| *other == name).map_or(0, |(_, value)| value)
}

async fn written(kernel: &SimKernel, process: &Process, name: &str, size: u64) -> SharedFile {
    let file = kernel.open_shared(process, name, true).expect("a new name");
    assert_eq!(kernel.write_shared(process, &file, 0, size).await, Ok(size));
    file
}

/// A process of its own in a new cgroup with a limit.
async fn limited(kernel: &SimKernel, limit: u64) -> (MemcgId, Process) {
    let memcg = kernel.mem(|mem| mem.memcg_create(MemcgId::ROOT, "app"));
    kernel.cgroup_write("app", "memory.max", &limit.to_string()).await.expect("a limit");
    (memcg, kernel.process_start("writer", memcg).await.expect("memory for a process"))
}

/// ```text
///   written 2048 pages    hole of 2048    one page      2048 named; the reader of the hole gets none
///   cut to 1024, unlinked while it is open, closed
/// ```
#[test]
fn pages_of_a_file_in_memory_come_by_writing_and_go_with_the_file() {
    World::new("linux-6.12", 128 * MIB).run(|kernel, process| async move {
        let file = written(&kernel, &process, "a", 8 * MIB).await;
        let before = figure(&kernel, "nr_file_pages");
        assert_eq!((figure(&kernel, "nr_shmem"), figure(&kernel, "nr_anon_pages") > 2048), (2048, false));
        assert_eq!(kernel.write_shared(&process, &file, 16 * MIB, 1).await, Ok(1));
        assert_eq!(kernel.read_shared(&process, &file, 8 * MIB, 32 * MIB).await, Ok(8 * MIB + 1), "a hole");
        assert_eq!((figure(&kernel, "nr_shmem"), figure(&kernel, "nr_file_pages")), (2049, before + 1));
        assert_eq!(kernel.resident_shared(&file, 0, 32 * MIB), 2049);
        kernel.truncate_shared(&process, &file, 4 * MIB).expect("a length");
        assert_eq!((figure(&kernel, "nr_shmem"), kernel.shared_size("a")), (1024, Ok(Bytes(4 * MIB))));
        kernel.drop_caches(3).await.expect("a mask");
        assert_eq!(figure(&kernel, "nr_shmem"), 1024, "it is nowhere else");
        kernel.rename_shared(&process, "a", "b").expect("it is there");
        kernel.unlink_shared(&process, "b").expect("it is there");
        assert_eq!(kernel.open_shared(&process, "b", false).map(drop), Err(kernel::Errno::NoEnt));
        assert_eq!(figure(&kernel, "nr_shmem"), 1024, "it is open");
        drop(file);
        kernel.put_shared();
        assert_eq!(figure(&kernel, "nr_shmem"), 0);
    });
}

/// ```text
///   limit 16 MiB    file in memory 8 MiB, then 64 MiB of a file on the disk once
///   without swap    all of the first stays, and is not even looked at
/// ```
#[test]
fn without_swap_files_in_memory_stay_whatever_else_is_read() {
    World::new("linux-6.12", 128 * MIB).run(|kernel, _| async move {
        kernel.lay_out_file("disk", Bytes(64 * MIB)).expect("a new name");
        let (memcg, process) = limited(&kernel, 16 * MIB).await;
        let shared = written(&kernel, &process, "a", 8 * MIB).await;
        let file = kernel.open(&process, "disk", false).await.expect("it is there");
        assert_eq!(kernel.read(&process, &file, 0, 64 * MIB).await, Ok(64 * MIB));
        assert_eq!(stat(&kernel, memcg, "shmem"), 8 * MIB);
        assert!(stat(&kernel, memcg, "inactive_anon") + stat(&kernel, memcg, "active_anon") > 8 * MIB);
        assert!(stat(&kernel, memcg, "file") > 8 * MIB && stat(&kernel, memcg, "anon") < MIB);
        let lists = stat(&kernel, memcg, "inactive_file") + stat(&kernel, memcg, "active_file");
        // What lies in batches is on no list yet.
        let rest = stat(&kernel, memcg, "file") - 8 * MIB - lists;
        assert!(rest < MIB / 4, "{rest}");
        drop(file);
        kernel.process_exit(&process);
        assert_eq!((stat(&kernel, memcg, "shmem"), shared.size()), (8 * MIB, 8 * MIB), "its writer has gone");
    });
}

/// ```text
///   one maps pages 512.. of a file and writes to 4 of them; the other one reads those, and 4 that were not there
/// ```
#[test]
fn a_shared_mapping_is_the_file() {
    World::new("linux-6.12", 128 * MIB).run(|kernel, process| async move {
        let file = kernel.open_shared(&process, "a", true).expect("a new name");
        kernel.truncate_shared(&process, &file, 4 * MIB).expect("a length");
        let (memcg, other) = limited(&kernel, 16 * MIB).await;
        let mapping = kernel.map_shared(&process, &file, 2 * MIB, Bytes(MIB)).expect("a mapping");
        kernel.touch(&process, mapping, 0, 4).await.expect("memory");
        assert_eq!(kernel.resident_shared(&file, 0, 2 * MIB), 0);
        assert_eq!(kernel.resident_shared(&file, 2 * MIB, 4 * 4096), 4);
        let again = kernel.map_shared(&other, &file, 2 * MIB, Bytes(MIB)).expect("a mapping");
        kernel.touch_reading(&other, again, 0, 8).await.expect("memory");
        assert_eq!((figure(&kernel, "nr_shmem"), stat(&kernel, memcg, "shmem")), (8, 4 * 4096));
        kernel.unmap_anonymous(&process, mapping);
        kernel.process_exit(&other);
        kernel.unlink_shared(&process, "a").expect("it is there");
        assert_eq!(figure(&kernel, "nr_shmem"), 8, "it is open");
        drop(file);
        kernel.put_shared();
        assert_eq!((figure(&kernel, "nr_shmem"), stat(&kernel, memcg, "shmem")), (0, 0));
    });
}

/// ```text
///   limit 16 MiB, zram    24 MiB are written and read again: what does not fit is swapped out, and comes back
///   in memory + in swap   6144 pages all the time; none when the file has gone
/// ```
#[test]
fn with_swap_a_file_in_memory_can_be_larger_than_memory() {
    for disk in [false, true] {
        World::new("linux-6.12", 128 * MIB).run(move |kernel, _| async move {
            let kind = if disk { AreaKind::Disk { device: 0, rotating: false } } else { AreaKind::Zram };
            kernel.swap_on(AreaSpec { kind, pages: 16384, priority: None });
            let (memcg, process) = limited(&kernel, 16 * MIB).await;
            let file = written(&kernel, &process, "a", 24 * MIB).await;
            let places = || {
                let swap = |mem: &mm::Memory<_>| mem.core.swap.total_pages() - mem.core.swap.free_pages();
                kernel.mem(|mem| (mem.anon.shared_pages(), swap(mem)))
            };
            let (resident, swapped) = places();
            assert!(resident < 4096 && resident + swapped >= 6144, "{resident} {swapped}");
            assert!(figure(&kernel, "pswpout") >= 2048 && figure(&kernel, "pswpin") == 0);
            assert_eq!(kernel.read_shared(&process, &file, 0, 24 * MIB).await, Ok(24 * MIB));
            assert!(figure(&kernel, "pswpin") >= 2048);
            // Calls are no faults; what lies beside a slot comes with it, from memory, too, and all of it is asked for.
            let ahead = figure(&kernel, "swap_ra");
            assert_eq!((figure(&kernel, "pgmajfault"), ahead > 1024), (0, true), "{ahead}");
            assert!(figure(&kernel, "swap_ra_hit") > ahead * 9 / 10);
            assert_eq!(stat(&kernel, memcg, "shmem"), places().0 * 4096);
            kernel.mem(|mem| mem.check()).expect("a sound state");
            drop(file);
            kernel.unlink_shared(&process, "a").expect("it is there");
            assert_eq!((stat(&kernel, memcg, "shmem"), places().0), (0, 0));
        });
    }
}

/// ```text
///   limit 16 MiB, zram, 12 MiB of a file in memory
///   64 MiB of a file on the disk are read    reclaim for readahead enters no filesystem: it looks, swaps hardly any
///   8 MiB of memory are touched              the file in memory is swapped out, by its filesystem
/// ```
#[test]
fn who_may_not_enter_filesystems_swaps_no_file_in_memory() {
    let swapped = |reads: bool| {
        let figures = std::rc::Rc::new(std::cell::Cell::new((0, 0)));
        let told = std::rc::Rc::clone(&figures);
        World::new("linux-6.12", 128 * MIB).run(move |kernel, _| async move {
            kernel.swap_on(AreaSpec { kind: AreaKind::Zram, pages: 16384, priority: None });
            kernel.lay_out_file("disk", Bytes(64 * MIB)).expect("a new name");
            let (_, process) = limited(&kernel, 16 * MIB).await;
            let shared = written(&kernel, &process, "a", 12 * MIB).await;
            if reads {
                let file = kernel.open(&process, "disk", false).await.expect("it is there");
                assert_eq!(kernel.read(&process, &file, 0, 64 * MIB).await, Ok(64 * MIB));
            } else {
                let memory = kernel.map_anonymous(&process, Bytes(8 * MIB)).expect("addresses");
                kernel.touch(&process, memory, 0, 2048).await.expect("memory");
            }
            told.set((figure(&kernel, "pswpout"), figure(&kernel, "pgscan_anon")));
            drop(shared);
        });
        figures.get()
    };
    let ((few, looked_at), (many, _)) = (swapped(true), swapped(false));
    assert!(few < 64 && looked_at > 2048 && many >= 1024, "{few} of {looked_at}, {many}");
}

/// ```text
///   limit 16 MiB, zram    8 MiB of a mapping are read, 4 written; then 12 MiB of memory are touched
///   read                  pages of zeroes that are dropped      written: to swap
/// ```
#[test]
fn what_was_only_read_of_a_file_in_memory_is_dropped() {
    World::new("linux-6.12", 128 * MIB).run(|kernel, _| async move {
        kernel.swap_on(AreaSpec { kind: AreaKind::Zram, pages: 16384, priority: None });
        let (memcg, process) = limited(&kernel, 16 * MIB).await;
        let pages = kernel.share_memory(&process, Bytes(12 * MIB)).expect("a length");
        let mapping = kernel.map_shared(&process, &pages, 0, Bytes(12 * MIB)).expect("a mapping");
        kernel.touch_reading(&process, mapping, 0, 2048).await.expect("memory");
        kernel.touch(&process, mapping, 2048, 1024).await.expect("memory");
        assert_eq!(stat(&kernel, memcg, "shmem"), 12 * MIB);
        let memory = kernel.map_anonymous(&process, Bytes(14 * MIB)).expect("addresses");
        kernel.touch(&process, memory, 0, 3584).await.expect("memory");
        let left = stat(&kernel, memcg, "shmem") / 4096;
        let written = kernel.mapping_resident(&process, mapping, 2048, 1024).expect("a part");
        let out = figure(&kernel, "pswpout");
        assert!(left < 1024 && out < 3072 - left && out + written >= 1024, "{left} {out} {written}");
        assert_eq!(kernel.advise_free(&process, mapping, 0, 1), Err(kernel::Errno::Inval));
        kernel.mem(|mem| mem.check()).expect("a sound state");
        drop(pages);
        kernel.process_exit(&process);
        assert_eq!((figure(&kernel, "nr_shmem"), stat(&kernel, memcg, "shmem")), (0, 0));
    });
}
