//! `guest-uml`: a guest of User-Mode Linux, Debian's kernels, at any size of memory.
//!
//! # What the kernel manages
//! One node, one CPU, one zone, Normal; no huge pages, so that a pageblock is the largest block, 1024 pages.
//! ```text
//!   frames = image, per-CPU | struct pages, 64 bytes for each frame | hash tables | initramfs | managed at boot
//!            reserved, the  |                                       |             | returned  |
//!            same in every guest of a kernel                                      | when it is unpacked
//! ```
//! Hash tables are those of dentries and inodes, as in `guest.rs`.
//!
//! # How far the rule is off
//! Of 64 guests (four kernels, 16 sizes from 32M to 8G, started without address space randomisation) it gives pages
//! managed and `min_free_kbytes` to the page and the kB; the tests have 12 sizes, and marks and the per-CPU list of
//! 12 guests.
//!
//! Up to 6.12, UML counts memory for the gap that randomisation leaves behind its image, up to 1 GiB ("Adding N bytes
//! to physical memory to account for exec-shield gap"): each guest has struct pages, and up to 8192 entries of hash
//! tables, for memory that it has not, a random number of up to 4096 pages and more. `setarch -R` stops that; 7.2
//! does it by itself.
//!
//! # Page tables
//! No hardware walks them: the host's mappings follow ([`PageTables::UserMode`]). Once reclaim has looked at a page, a
//! write to it is a fault. A read is one on hosts with protection keys (`+protection_keys=true`); on others, which the
//! costs were measured on, reclaim never learns of it.
//!
//! # How fast it is
//! The kernel runs at its host's speed, programs are dear to enter and leave: see [`COSTS`]. All of it has one CPU of
//! the host, also the thread that reads its disk, a file in the host's page cache
//! ([`crate::hardware::device::DeviceModel::UBD`]).
//!
//! Its scheduler counts in ticks: `sum_exec_runtime` in `/proc/self/sched` of 5.10 is whole hundredths of a second.
//!
//! It is built for one CPU: no worker takes pages off per-CPU lists that have grown, and 7.2's hold none at all
//! (`count` and `high` were 0 in every guest).
//!
//! Left out: that gap.

use kernel::machine::{
    BuiltPreemption, CostOp, Grown, KernelBuild, LaidOut, OwnPages, ProcessCost, RunCost, Stacks,
    Uniprocessor,
};
use mm::base::layout::{
    FollowTables, HugeSupport, MemoryLayout, NodeLayout, OldReads, PageTables, ZoneKind, ZoneLayout,
};
use mm::version::geometry::{Cache, FileCaches, SlabBuild};
use mm::version::presets::Version;
use units::{Bytes, Nanos, PAGE_SIZE, Pages};

use crate::hardware::cost::CostTable;
use crate::hardware::{FileCost, Hardware};
use crate::machines::measured::{self, Measured, hash_tables, nearest};

/// The least that `--on uml:VERSION` takes. With 48 MiB a guest boots, too; with 32 MiB two of the four start boosted.
pub(super) const LEAST_MEM: Bytes = Bytes(64 << 20);

/// `CONFIG_HZ` of all four.
pub(super) const HZ: u64 = 100;

/// Pages of the measured guests' initramfs, a program of 744 KiB: managed after marks were computed, and kept again
/// by what it is unpacked to.
const INITRAMFS: u64 = 186;

/// Pages by which this program is larger than that one: `nr_unevictable` of a guest is 8,945. It has as much memory
/// beside what is asked for, managed once the program is unpacked.
const BESIDE: Pages = Pages(8_759);

/// What differs from the cost table, in nanoseconds. A guest's program runs in a process of its own, which the kernel
/// follows by ptrace: the kernel itself is as fast as its host, but each call and each fault is two switches of the
/// host's, and each page that is mapped a call of the host's.
///
/// Measured: a program as `init` of 6.12, by the CPU's clock, lower quartiles of many short runs on ext4. The thread
/// that serves a disk has the guest's CPU of the host, so requests take its time; writes are taken to be as dear as
/// reads.
///
/// A call with a path is half as dear again as one without. To read the clock is a call, too. The same for a fault on
/// a page of which reclaim, or `MADV_COLD`, took the accessed bit. `MADV_PAGEOUT` of 1000 mapped pages of a file side
/// by side takes the last one each, and where mappings follow by runs a quarter more. What `mlock` maps took a
/// twenty-third of a fault on another host.
///
/// Of what a file of a page costs to write, its worker takes two thirds and what comes once the disk has it the rest:
/// 3.5 and 1.6 us, from the times of slabs for each eighth file, traced in a guest of 6.12.
///
/// Files are written and their pages dropped before a load begins: 2.0 to 2.5 us a page, 0.22 to 0.34 ms a file. It
/// decides how long ago the guest booted when its load begins.
///
/// Another host is another machine: calls and faults of a small virtual one took 2.6 and 2.2 times as long.
/// `pagetide machine probe --on uml:VERSION` measures these costs.
pub(super) const COSTS: CostTable = CostTable::DEFAULT.with(&[
    (CostOp::Syscall, 5_500),
    (CostOp::ReadClock, 5_500),
    (CostOp::MinorFault, 20_600),
    (CostOp::MajorFault, 21_100),
    (CostOp::PopulatePage, 900),
    (CostOp::AccessFault, 18_700),
    (CostOp::CopyPage, 600),
    (CostOp::MapAround, 560),
    (CostOp::FileOpen, 8_900),
    (CostOp::FileCreate, 19_000),
    (CostOp::FileUnlink, 11_000),
    (CostOp::LayOutFile, 260_000),
    (CostOp::LayOutPage, 2_000),
    (CostOp::UserMicrosecond, 0),
    (CostOp::IoRequest, 12_000),
    (CostOp::ReadaheadPage, 1_100),
    (CostOp::WritebackPage, 1_400),
    (CostOp::SwapWrite, 1_400),
    (CostOp::WritebackInode, 6_400),
    (CostOp::WritebackEnd, 3_600),
    (CostOp::Remap, 7_700),
]);

/// Sets how its kernel is built and started, and what depends on it.
pub(super) fn follow(hardware: &mut Hardware, kernel: &Version, reads: OldReads) {
    let measured = nearest(&MEASURED, kernel.base);
    hardware.build = KernelBuild {
        since_boot: Some(measured.since_boot),
        page_tables: PageTables::UserMode { follow: measured.follow, reads },
        uniprocessor: (hardware.cpus == 1).then_some(Uniprocessor { page_lists: measured.page_lists }),
        preemption: Some(measured.preemption),
        stacks: Stacks::Contiguous,
        first_process: process_cost(measured.follow, reads).without_faults(),
        process: process_cost(measured.follow, reads),
        counts_buffers: true,
        run: run_cost(measured.follow, reads),
        laid_out: LaidOut::JustBefore,
        disk_size: Some(Bytes(32 << 30)), // `--vm-disk`
        requests_max: Some(64),
        request_pages_max: Some(32),
        slab: SlabBuild {
            caches: Some(file_caches(measured, kernel)),
            uniprocessor: hardware.cpus == 1,
            kept: measured.slab,
        },
    };
    for disk in hardware.devices.iter_mut().filter(|disk| disk.gathers == 0) {
        disk.gathers = measured.gathers;
    }
    hardware.workload_file = Some(file_cost(measured.follow, reads));
    hardware.clock_of_ticks = true;
    if measured.follow == FollowTables::ByRun {
        let Nanos(remap) = hardware.costs.get(CostOp::Remap);
        hardware.costs = hardware.costs.clone().with(&[(CostOp::Remap, remap * 95 / 77)]);
    }
}

/// What a process costs, its buffer for files and the page of notes at its end aside. Measured with 1, 2 and 5 that
/// only sleep: 49, 48, 49 and 54 pages each; their groups had 7 anonymous pages, 3 of the kernel's and 66 or 32 faults.
/// Faults before that are near those of `small-files` (82 and 45), which starts the most; `sequential-readers` has 70
/// and 40, `huge-faults` 44 and 29. Of 4 and 16 rounds of 16 and 64 processes that make a file or four, those of later
/// rounds take 0.3 to 0.9 ms each more than those of the first, 1.3 to 1.9 ms up to 6.1; of 128 rounds of 1, 10 and 40
/// processes, 7 to 8 faults, and 13 to 15 up to 6.1, of which the second round has a half.
const fn process_cost(follow: FollowTables, reads: OldReads) -> ProcessCost {
    let (before, after, grown) = match follow {
        FollowTables::ByEntry => (80, 66, Grown { faults: 13, remaps: 63 }),
        FollowTables::ByRun => (44, 32, Grown { faults: 8, remaps: 8 }),
    };
    let inherited = inherited_reads(follow, reads);
    ProcessCost {
        fork: OwnPages { anon: 13, kernel: 25, faults: before + inherited[0] },
        moved: Some(OwnPages { anon: 7, kernel: 3, faults: after + inherited[1] }),
        grown: Some(grown),
        used: [0; 3],
    }
}

/// Faults of a process on pages that it has from `fork` and only reads, before it is in its cgroup and after: `fork`
/// takes their accessed bits in the child. The middle of runs of `small-files`, `sequential-readers`, `hot-and-stream`,
/// `mapped-and-stream`, `containers` and `random-calls` with 1 to 64 processes, which take 24 to 70 each. Where a build
/// of this program has its code makes 5 to 9 of them.
const fn inherited_reads(follow: FollowTables, reads: OldReads) -> [u32; 2] {
    match (reads, follow) {
        (OldReads::Unseen, _) => [0, 0],
        (OldReads::Fault, FollowTables::ByEntry) => [2, 43],
        (OldReads::Fault, FollowTables::ByRun) => [2, 40],
    }
}

/// `nr_anon_pages` when a workload begins: the guest's own program, what its processes share with it after `fork` and
/// nobody writes to again. 438 to 459 on all four kernels; the first process of the model has 20 of them.
const WATCHER_PAGES: u32 = 430;

/// Of those, pages that whoever runs reads. Once a program that fills memory beyond its size has rested for a second,
/// 96 to 99 pages were back from swap on 5.10 and 6.12, and no more after that; the first process of the model uses
/// twelve.
const WATCHER_USED: u32 = 84;

/// What is left without those processes of runs of a few pages: `mapped-and-stream`, `sequential-readers` and
/// `small-files`, counted from where files are laid out and caches dropped.
const fn run_cost(follow: FollowTables, reads: OldReads) -> RunCost {
    let faults = match (follow, reads) {
        (FollowTables::ByEntry, OldReads::Unseen) => 253,
        (FollowTables::ByEntry, OldReads::Fault) => 273,
        (FollowTables::ByRun, OldReads::Unseen) => 130,
        (FollowTables::ByRun, OldReads::Fault) => 180,
    };
    match follow {
        FollowTables::ByEntry => {
            RunCost { faults, anon: WATCHER_PAGES, used: WATCHER_USED, allocated: 93, freed: 62 }
        }
        FollowTables::ByRun => {
            RunCost { faults, anon: WATCHER_PAGES, used: WATCHER_USED, allocated: 98, freed: 68 }
        }
    }
}

/// What workloads that are files cost: once it is in its group, a process has 13 anonymous pages and takes 180 to 200
/// faults, and 59 to 71 from 6.12 on; those that time their calls take 35 to 39 more, from 6.12 on 20 to 23, and those
/// that draw by popularity 22 and 15 to 20 beside those (`pgfault` of runs of `containers` with four tasks, less what
/// their steps take). Of 64 that only tell that they are there, each takes 153 and 89 in all. What reading the file
/// costs is what is left of these runs: root's faults in 60 worlds with files of 2 to 12 KiB. On hosts with protection
/// keys an earlier build was measured, which had some 60 more; where a build of this program has its code makes 3 to 8
/// of them.
const fn file_cost(follow: FollowTables, reads: OldReads) -> FileCost {
    let mut process = process_cost(follow, reads);
    let inherited = inherited_reads(follow, reads);
    let (before, used, allocated, freed) = match follow {
        FollowTables::ByEntry => (53, [37, 22, 93], 43, 34),
        FollowTables::ByRun => (38, [21, 17, 16], 73, 35),
    };
    let (after, faults) = match (follow, reads) {
        (FollowTables::ByEntry, OldReads::Unseen) => (100, 40),
        (FollowTables::ByEntry, OldReads::Fault) => (105, 100),
        (FollowTables::ByRun, OldReads::Unseen) => (51, 15),
        (FollowTables::ByRun, OldReads::Fault) => (60, 65),
    };
    let run = RunCost { faults, anon: 0, used: 0, allocated, freed };
    process.used = used;
    process.fork.faults = before + inherited[0];
    if let Some(moved) = &mut process.moved {
        (moved.faults, moved.anon) = (after + inherited[1], 13);
    }
    FileCost { run, faults_per_kib: 5, process }
}

/// Objects of files, which are smaller without SMP: `/proc/slabinfo` of guests that make 20,000 files on ext4 and XFS.
///
/// What an inode has beside its own caches: 56 bytes of security modules; on ext4 64 of the journal; on XFS 8 of
/// extents and 182 of buffers of its directory and of inodes, with what these are in the log.
fn file_caches(measured: &MeasuredKernel, kernel: &Version) -> FileCaches {
    let [ext4_inode, xfs_inode, xfs_ili, buffer_head] = measured.objects;
    let mut caches = kernel.tuning.file_caches;
    for (cache, size) in [
        (Cache::Ext4Inode, ext4_inode),
        (Cache::XfsInode, xfs_inode),
        (Cache::XfsLogItem, xfs_ili),
        (Cache::BufferHead, buffer_head),
        (Cache::Ext4Extra, 56 + 64),
        (Cache::XfsExtra, 56 + 8 + 182),
    ] {
        caches[cache as usize - 1].object_size = size;
    }
    // One CPU wants eight objects to a slab, and a page has them.
    caches[Cache::XfsExtra as usize - 1].order = Some(0);
    caches
}

/// A kernel of which guests were measured, in pages.
struct MeasuredKernel {
    name: &'static str,
    follow: FollowTables,
    /// When the workload begins, as the guest's clock has it: the least of several boots.
    since_boot: Nanos,
    /// Never managed, beside struct pages and hash tables.
    reserved: u64,
    /// Frames, beside struct pages, that hash tables are not sized by: measured by where the tables double. Up to 6.1
    /// all frames count.
    not_hashed: u64,
    /// What the workload cannot have: managed less free pages and those on the per-CPU list when the first program
    /// runs, at the sizes of [`KEPT_AT`], the least of three to four boots: what boot needed for a moment is in the
    /// others.
    kept: [u64; KEPT_AT.len()],
    /// What it keeps more when a workload begins: what is set up for that, and a larger program. File, free and slab
    /// pages of full guests of 200 and 600 MiB, less [`WATCHER_PAGES`] and the kernel's pages of that process.
    set_up: u64,
    /// Of that, slab: unreclaimable, reclaimable. The same at all sizes, within 2 % of the first.
    slab: [u64; 2],
    /// Free blocks of 1 to 512 pages in unmovable pageblocks when a workload begins, `/proc/pagetypeinfo`: the mean of
    /// eight boots with 100 to 900 MiB, on ext4 and XFS. Larger ones, one at most in nearly all, are left
    /// out. They hold 2,000 to 7,300 pages, whatever the memory.
    left_free: [u16; 10],
    /// The same in movable pageblocks, as many pages as six boots of 150 to 800 MiB have free in parts of them in the
    /// middle (640 to 1,270), and [`WATCHER_PAGES`], which the first process of the model takes from these.
    left_movable: [u16; 10],
    /// `CONFIG_PREEMPT_*` of its package: User-Mode Linux has no other one up to 6.12, and none lazy.
    preemption: BuiltPreemption,
    /// Whether per-CPU lists hold any pages on one CPU.
    page_lists: bool,
    /// Requests to write that are sent off, and then done, at once: `block_rq_issue` and `block_rq_complete`.
    gathers: u16,
    /// Bytes of an inode of ext4, of XFS, of its log item, of a buffer head.
    objects: [u16; 4],
}

impl Measured for MeasuredKernel {
    fn name(&self) -> &'static str {
        self.name
    }
}

/// In MiB.
const KEPT_AT: [u64; 4] = [64, 512, 2048, 8192];

const MEASURED: [MeasuredKernel; 4] = [
    MeasuredKernel {
        name: "linux-5.10",
        follow: FollowTables::ByEntry,
        since_boot: Nanos::from_millis(310),
        reserved: 3_566,
        not_hashed: 0,
        kept: [2_666, 3_422, 4_490, 4_706],
        set_up: 145,
        left_free: [15, 26, 62, 68, 48, 27, 6, 1, 0, 0],
        left_movable: [0, 0, 1, 1, 0, 1, 1, 1, 0, 2],
        slab: [2_186, 138],
        preemption: BuiltPreemption::None,
        page_lists: true,
        gathers: 32,
        objects: [1080, 960, 184, 104],
    },
    MeasuredKernel {
        name: "linux-6.1",
        follow: FollowTables::ByEntry,
        since_boot: Nanos::from_millis(230),
        reserved: 2_741,
        not_hashed: 0,
        kept: [3_135, 3_809, 4_853, 5_201],
        set_up: 175,
        left_free: [3, 26, 72, 83, 53, 25, 11, 4, 1, 1],
        left_movable: [0, 1, 1, 1, 0, 1, 0, 0, 0, 2],
        slab: [2_473, 155],
        preemption: BuiltPreemption::None,
        page_lists: true,
        gathers: 32,
        objects: [1088, 960, 200, 104],
    },
    MeasuredKernel {
        name: "linux-6.12",
        follow: FollowTables::ByRun,
        since_boot: Nanos::from_millis(70),
        reserved: 2_955,
        not_hashed: 4_300,
        kept: [3_011, 3_659, 4_579, 5_158],
        set_up: 265,
        left_free: [0, 4, 20, 39, 42, 26, 12, 5, 3, 1],
        left_movable: [0, 0, 0, 0, 1, 1, 0, 1, 0, 2],
        slab: [2_483, 157],
        preemption: BuiltPreemption::None,
        page_lists: true,
        gathers: 64,
        objects: [1056, 960, 200, 104],
    },
    MeasuredKernel {
        name: "linux-7.2",
        follow: FollowTables::ByRun,
        since_boot: Nanos::from_millis(900),
        reserved: 3_161,
        not_hashed: 5_320,
        kept: [3_063, 3_721, 4_633, 5_215],
        set_up: 565,
        left_free: [0, 0, 63, 117, 70, 20, 2, 1, 0, 1],
        left_movable: [0, 0, 1, 0, 0, 1, 0, 1, 2, 2],
        slab: [1_858, 188],
        preemption: BuiltPreemption::Voluntary,
        page_lists: false,
        gathers: 64,
        objects: [984, 896, 200, 96],
    },
];

impl MeasuredKernel {
    /// Linear between measured sizes, and as at the nearest one beyond them.
    fn kept(&self, frames: u64) -> u64 {
        let at = KEPT_AT.map(|mib| (mib << 20) / PAGE_SIZE);
        let next = at.partition_point(|&size| size < frames);
        if next == 0 || next == at.len() {
            return self.kept[next.min(at.len() - 1)];
        }
        let (part, whole) = (frames - at[next - 1], at[next] - at[next - 1]);
        ((self.kept[next - 1] * (whole - part)) + (self.kept[next] * part)) / whole
    }
}

fn struct_pages(frames: u64) -> u64 {
    const STRUCT_PAGE: u64 = 64;
    (frames * STRUCT_PAGE).div_ceil(PAGE_SIZE)
}

/// The guest's zone with `mem` of memory.
pub(super) fn layout(mem: Bytes, kernel: &Version, cpus: u16) -> MemoryLayout {
    let measured = nearest(&MEASURED, kernel.base);
    let frames = mem.to_pages_floor().0;
    let beside_structs = frames - struct_pages(frames);
    let managed = beside_structs - hash_tables(beside_structs - measured.not_hashed) - measured.reserved;
    let zone = ZoneLayout {
        kind: ZoneKind::Normal,
        managed: Pages(managed) + BESIDE,
        managed_at_boot: Pages(managed - INITRAMFS),
        kept_by_kernel: Pages(measured.kept(frames) + measured.set_up),
        kept_reclaimable: Pages(measured.slab[1]),
        left_free: measured.left_free,
        left_movable: measured.left_movable,
        beside: BESIDE,
        reserved: Pages(measured.reserved),
    };
    MemoryLayout { nodes: vec![NodeLayout { zones: vec![zone] }], cpus, huge_pages: HugeSupport::Absent }
}

/// What stands for the boot of a kernel of which no guest was measured.
pub(super) fn assumed(kernel: &Version) -> Option<String> {
    measured::assumed(&MEASURED, kernel)
}

#[cfg(test)]
mod tests {
    use mm::Memory;
    use mm::alloc::watermark::Mark;
    use mm::base::event::NoTrace;
    use mm::base::layout::ZoneId;
    use mm::base::sysctl::{Sysctl, Sysctls};
    use mm::slab::layout::{CpuPartial, Layout};
    use units::CpuId;

    use super::*;

    /// MiB; pages managed under 5.10, 6.1, 6.12 and 7.2, from `/proc/zoneinfo`.
    const GUESTS: [(u64, [u64; 4]); 12] = [
        (64, [12_538, 13_363, 13_149, 12_943]),
        (96, [20_578, 21_403, 21_189, 20_983]),
        (128, [28_642, 29_467, 29_253, 29_047]),
        (192, [44_722, 45_547, 45_333, 45_127]),
        (256, [60_850, 61_675, 61_461, 61_255]),
        (384, [93_010, 93_835, 93_621, 93_415]),
        (512, [125_266, 126_091, 125_877, 125_671]),
        (768, [189_586, 190_411, 190_197, 189_991]),
        (1024, [254_098, 254_923, 254_709, 254_503]),
        (2048, [511_762, 512_587, 512_373, 512_167]),
        (4096, [1_027_090, 1_027_915, 1_027_701, 1_027_495]),
        (8192, [2_057_746, 2_058_571, 2_058_357, 2_058_151]),
    ];

    type GuestMarks = (u64, &'static str, u64, [u64; 3], [u32; 2]);

    /// MiB; kernel, `min_free_kbytes`, the three marks, batch and high (high_min) of the per-CPU list.
    const MARKS: [GuestMarks; 12] = [
        (64, "linux-5.10", 889, [222, 277, 332], [3, 18]),
        (128, "linux-5.10", 1_349, [337, 421, 505], [7, 42]),
        (512, "linux-5.10", 2_829, [707, 883, 1_059], [31, 186]),
        (8192, "linux-5.10", 11_475, [2_868, 4_925, 6_982], [63, 378]),
        (64, "linux-6.1", 918, [229, 286, 343], [3, 286]),
        (192, "linux-6.1", 1_703, [425, 531, 637], [15, 531]),
        (4096, "linux-6.1", 8_110, [2_027, 3_054, 4_081], [63, 3_054]),
        (96, "linux-6.12", 1_159, [289, 361, 433], [3, 361]),
        (1024, "linux-6.12", 4_036, [1_009, 1_263, 1_517], [63, 1_263]),
        (192, "linux-7.2", 1_695, [423, 528, 633], [7, 528]),
        (256, "linux-7.2", 1_976, [494, 617, 740], [15, 617]),
        (768, "linux-7.2", 3_485, [871, 1_088, 1_305], [63, 1_088]),
    ];

    #[test]
    fn marks_and_per_cpu_lists_are_the_guests_to_the_page() {
        for (mib, kernel, min_free_kbytes, marks, sizes) in MARKS {
            let version = Version::parse(kernel).unwrap();
            let layout = layout(Bytes(mib << 20), &version, 1);
            let mem = Memory::boot(&layout, version, Sysctls::default(), NoTrace).unwrap();
            let zone = &mem.core.alloc.zones()[0];
            let pcp = mem.core.alloc.pcp(CpuId(0), ZoneId(0)).sizes();
            let of_rule = (
                mem.core.alloc.sysctls().get(Sysctl::MinFreeKbytes),
                Mark::ALL.map(|mark| zone.watermarks.mark(mark)),
                [pcp.batch, pcp.high_min],
            );
            assert_eq!(of_rule, (min_free_kbytes, marks, sizes), "{kernel} with {mib} MiB");
            assert_eq!(mem.core.alloc.block_size().pages(), 1024);
        }
    }

    /// Objects to a slab and its pages, as `/proc/slabinfo` of guests has them: inodes of ext4 and XFS, log items,
    /// buffer heads.
    #[test]
    fn slabs_hold_as_many_objects_as_those_of_guests() {
        let caches = [Cache::Ext4Inode, Cache::XfsInode, Cache::XfsLogItem, Cache::BufferHead];
        for (measured, slabs) in MEASURED.iter().zip([
            [(15, 4), (8, 2), (22, 1), (39, 1)],
            [(15, 4), (8, 2), (20, 1), (39, 1)],
            [(15, 4), (8, 2), (20, 1), (39, 1)],
            [(8, 2), (9, 2), (20, 1), (42, 1)],
        ]) {
            let kernel = Version::parse(measured.name).unwrap();
            let built = kernel.clone().built_with(&SlabBuild {
                caches: Some(file_caches(measured, &kernel)),
                ..SlabBuild::default()
            });
            let laid_out = caches.map(|cache| Layout::new(cache.geometry(&built.tuning), 1, &built.tuning));
            let found = laid_out.map(|layout| (layout.objects(), layout.order.pages()));
            assert_eq!(found, slabs, "{}", measured.name);
        }
    }

    #[test]
    fn a_kernel_for_one_cpu_keeps_no_partial_slabs_and_has_smaller_ones() {
        let kernel = Version::parse("linux-6.12").unwrap();
        let built = |uniprocessor| {
            kernel.clone().built_with(&SlabBuild { uniprocessor, ..SlabBuild::default() }).tuning
        };
        let vectors = [Cache::XfsLogVector, Cache::XfsLogVectorExtents];
        for (cpus, orders) in [(1, [0, 1]), (2, [1, 2])] {
            let tuning = built(cpus == 1);
            let layouts = vectors.map(|cache| Layout::new(cache.geometry(&tuning), cpus, &tuning));
            assert_eq!(layouts.map(|layout| layout.order.0), orders, "{cpus} CPUs");
            let keeps_none = layouts.map(|layout| layout.cpu_partial == CpuPartial::None);
            assert_eq!(keeps_none, [cpus == 1; 2], "{cpus} CPUs");
        }
    }

    #[test]
    fn a_slower_cpu_is_slower_in_what_the_guest_was_measured_at_too() {
        let kernel = Version::parse("linux-6.12").unwrap();
        let cost = |percent| {
            let mut hardware = Hardware::with_cpus(1);
            hardware.costs = COSTS.scale_percent(percent);
            follow(&mut hardware, &kernel, OldReads::Unseen);
            hardware.costs.names().find(|(name, _)| *name == "syscall").map(|(_, nanos)| nanos)
        };
        assert_eq!((cost(100), cost(300)), (Some(Nanos(5_500)), Some(Nanos(16_500))));
    }

    #[test]
    fn the_rule_gives_every_measured_guest_to_the_page() {
        for (mib, managed) in GUESTS {
            let by_rule = MEASURED.map(|measured| {
                let zones = layout(Bytes(mib << 20), &Version::parse(measured.name).unwrap(), 1)
                    .nodes
                    .remove(0)
                    .zones;
                assert_eq!(zones.iter().map(|zone| zone.kind).collect::<Vec<_>>(), [ZoneKind::Normal]);
                (zones[0].managed - zones[0].beside).0
            });
            assert_eq!(by_rule, managed, "{mib} MiB");
        }
    }
}
