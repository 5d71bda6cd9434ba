//! Pages that a policy does not admit are read past the cache: each time from the disk, and
//! none of them is in memory afterwards.

use kernel::{Filesystem, Kernel, KernelConfig, Machine};
use mm::MemcgId;
use mm::base::layout::MemoryLayout;
use mm::base::sysctl::Sysctls;
use mm::base::vmstat::VmEvent;
use mm::lru::cache_ext::hooks::EvictionPolicy;
use mm::lru::cache_ext::lists::{Eviction, Folio, Lists, Place};
use sim::{DeviceModel, Hardware, SimKernel, SimTrace, Simulation};
use units::{Bytes, Nanos, Pages, Seed};

const PAGE: u64 = 4096;
const FILE_PAGES: u64 = 256;
/// The file's pages from here on are not admitted.
const REFUSED_FROM: u32 = 64;

#[derive(Debug, Clone)]
struct FirstPagesOnly;

impl EvictionPolicy for FirstPagesOnly {
    fn init(&mut self, _lists: &mut Lists<'_>) {}

    fn evict_folios(&mut self, _lists: &mut Lists<'_>, _eviction: &mut Eviction) {}

    fn folio_added(&mut self, _lists: &mut Lists<'_>, _folio: Folio) {}

    fn folio_accessed(&mut self, _lists: &mut Lists<'_>, _folio: Folio) {}

    fn folio_removed(&mut self, _lists: &mut Lists<'_>, _folio: Folio) {}

    fn admit_folio(&mut self, place: Place) -> bool {
        place.index < REFUSED_FROM
    }
}

/// Kilobytes from the disk so far.
fn paged_in(linux: &SimKernel) -> u64 {
    linux.mem(|mem| mem.core.alloc.events.get(VmEvent::PgPgIn))
}

/// Reads the file page by page twice, and all at once.
async fn read_again_and_again(linux: SimKernel) {
    let process = linux.process_start("reader", MemcgId::ROOT).await.expect("memory");
    let file = linux.open(&process, "file", true).await.expect("memory");
    linux.write(&process, &file, 0, FILE_PAGES * PAGE).await.expect("memory");
    linux.fsync(&process, &file).await.expect("it lives");
    linux.drop_caches(1).await.expect("it lives");
    assert_eq!(linux.resident_pages(&file, 0, FILE_PAGES * PAGE), 0);
    let refused = (FILE_PAGES - u64::from(REFUSED_FROM)) * PAGE / 1024;
    let mut before = paged_in(&linux);
    for (round, pages) in [(0, 1), (1, 1), (2, FILE_PAGES)] {
        let mut offset = 0;
        while offset < FILE_PAGES * PAGE {
            let read = linux.read(&process, &file, offset, pages * PAGE).await.expect("it lives");
            assert_eq!(read, pages * PAGE);
            offset += read;
        }
        let read = paged_in(&linux) - before;
        before += read;
        let resident = linux.resident_pages(&file, 0, FILE_PAGES * PAGE);
        assert_eq!(resident, u64::from(REFUSED_FROM), "not even by readahead");
        let once = if round == 0 { resident * PAGE / 1024 } else { 0 };
        assert_eq!(read, refused + once, "round {round}");
        linux.mem(|mem| mem.check()).expect("memory is sound");
    }
}

#[test]
fn what_is_not_admitted_is_read_past_the_cache() {
    for filesystem in [Filesystem::Ext4, Filesystem::Xfs] {
        let hardware = Hardware::with_cpus(2).with_device(DeviceModel::NVME);
        let mut simulation = Simulation::new(hardware).expect("a machine");
        let config = KernelConfig {
            version: mm::Version::parse("linux-6.12").expect("a version"),
            sysctls: Sysctls::default(),
            layout: MemoryLayout::flat(Pages(16_384), 2),
            filesystem,
            xfs_log_size: Bytes(64 << 20),
            gathers: 16,
            readahead_pages: 32,
            policy: Some(Box::new(FirstPagesOnly)),
            seed: Seed(1),
        };
        let linux = Kernel::boot(simulation.machine(), config, SimTrace::default()).expect("it boots");
        let task = simulation.machine().spawn("reader", None, read_again_and_again(linux));
        let ended = simulation.run_until_task_done(task, Nanos::from_secs(20));
        assert!(ended.is_ok(), "{}", ended.expect_err("just seen"));
    }
}
