//! Windows of readahead, held to what guests of User-Mode Linux read: calls of one program, and the pages that each
//! of them brought from the disk (`pgpgin`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kernel::Filesystem;
use mm::base::layout::HugeSupport;
use sim::run::Checks;
use sim::{DeviceModel, Hardware, SimRun, SimSystem};
use units::{Bytes, Nanos};
use workload::WorkloadError;
use workload::system::{OpenMode, System, TaskSpec};

use crate::story::{self, tell, tell_with};

const PAGE: u64 = 4096;
const KERNELS: [&str; 4] = ["linux-5.10", "linux-6.1", "linux-6.12", "linux-7.2"];

/// Kernels of User-Mode Linux are built without huge pages.
fn machine(kernel: &str) -> SimRun {
    let mut machine = story::machine(kernel, 64);
    machine.layout.huge_pages = HugeSupport::Absent;
    machine
}

async fn pages_in(sys: &SimSystem) -> u64 {
    let counters = sys.vmstat().await.expect("the simulation has it");
    counters.into_iter().find(|(name, _)| name == "pgpgin").map_or(0, |(_, kib)| kib / 4)
}

/// Reads (page, pages) of one file, one after the other; what each brings is `read`, on each of the four kernels.
fn brings(calls: &'static [(u64, u64)], read: [&[u64]; 4]) {
    for (kernel, read) in KERNELS.into_iter().zip(read) {
        let expected = read.to_vec();
        tell(&machine(kernel), move |sys: SimSystem| async move {
            sys.lay_out_file("file", Bytes(10_000 * PAGE)).await?;
            let file = sys.open("file", OpenMode::Read).await?;
            sys.read(&file, 8000 * PAGE, PAGE).await?;
            let mut brought = Vec::new();
            for &(page, pages) in calls {
                let before = pages_in(&sys).await;
                sys.read(&file, page * PAGE, pages * PAGE).await?;
                brought.push(pages_in(&sys).await - before);
            }
            assert_eq!(brought, expected, "{kernel}, {calls:?}");
            Ok::<(), WorkloadError>(())
        });
    }
}

#[test]
fn a_marker_of_another_run_goes_on_behind_what_is_in_memory() {
    let calls = &[
        (1010, 1),
        (9000, 1),
        (1011, 1),
        (9100, 1),
        (1012, 1),
        (2000, 1),
        (2001, 1),
        (1014, 1),
        (3000, 1),
        (1015, 1),
    ];
    let whole: &[u64] = &[1, 1, 1, 1, 3, 1, 4, 4, 1, 8];
    // Windows of 7.2 end where four pages do, as large folios would, which these kernels do not have.
    brings(calls, [whole, whole, whole, &[1, 1, 1, 1, 3, 1, 4, 1, 1, 4]]);
}

#[test]
fn a_marker_of_ones_own_run_begins_the_next_window() {
    let calls =
        &[(1010, 1), (9000, 1), (1011, 1), (9100, 1), (1012, 1), (9200, 1), (1014, 1), (9300, 1), (1015, 1)];
    let whole: &[u64] = &[1, 1, 1, 1, 3, 1, 6, 1, 12];
    brings(calls, [whole, whole, whole, &[1, 1, 1, 1, 3, 1, 5, 1, 8]]);
}

#[test]
fn up_to_6_1_a_gap_that_is_too_far_away_is_taken_to_be_there() {
    let calls = &[(1132, 5), (1132, 20), (1162, 8), (1152, 13)];
    let (near, far): (&[u64], &[u64]) = (&[5, 32, 32, 15], &[5, 32, 32, 0]);
    brings(calls, [near, near, far, far]);
}

#[test]
fn since_6_11_a_miss_behind_the_window_is_one_as_any_other() {
    // The next window has its marker in the middle, and the read comes there; or at its end. One more is read than
    // windows have: a block that says where the file lies.
    let (goes_on, looks_back): (&[u64], &[u64]) = (&[9, 87], &[9, 55]);
    brings(&[(1425, 9), (1411, 58)], [goes_on, goes_on, looks_back, looks_back]);
    let both: &[u64] = &[10, 5, 49];
    brings(&[(1603, 10), (1580, 5), (1565, 33)], [both, both, both, both]);
}

#[test]
fn a_miss_is_sequential_behind_the_last_call_or_on_6_1_within_one() {
    let calls = &[(1654, 3), (9000, 1), (1661, 4), (9100, 1), (1655, 5)];
    let (asked, window): (&[u64], &[u64]) = (&[3, 1, 4, 1, 3], &[3, 1, 4, 1, 4]);
    brings(calls, [asked, window, asked, asked]);
    // The last window of 7.2 ends at a multiple of four, one page before the last call's miss: two pages behind the
    // last one that was read, and one behind its end.
    let calls = &[(1400, 5), (1405, 5), (1410, 4), (1437, 8), (1450, 1), (1451, 3)];
    let whole: &[u64] = &[5, 16, 32, 0, 0, 32];
    brings(calls, [whole, whole, whole, &[5, 16, 31, 0, 0, 4]]);
}

/// The window that the marker on page 4 begins lies behind an indirect block, which is read from a slow disk first.
/// Meanwhile all caches are dropped, page 4 among them: it has been read for all that, and does not come back.
#[test]
fn a_page_that_went_while_its_marker_was_heeded_is_not_read_again() {
    let disk = Hardware::with_cpus(2).with_device(DeviceModel::SATA_HDD);
    let spec = SimRun { filesystem: Filesystem::Ext3, hardware: disk, ..machine("linux-6.12") };
    tell_with(&spec, Checks::AtTheEnd, |sys: SimSystem| async move {
        sys.lay_out_file("file", Bytes(100 * PAGE)).await?;
        let reading = Arc::new(AtomicU64::new(0));
        let now = reading.clone();
        let reader = async move |sys: SimSystem| {
            let file = sys.open("file", OpenMode::Read).await?;
            for page in 0..=4 {
                sys.sleep(Nanos::from_millis(100)).await; // All that was asked for is there.
                now.store(page, Ordering::Relaxed);
                sys.read(&file, page * PAGE, PAGE).await?;
            }
            sys.resident_pages(&file, 4 * PAGE, PAGE).await
        };
        let task = sys.spawn(TaskSpec::named("reader"), reader).await?;
        while reading.load(Ordering::Relaxed) < 4 {
            sys.sleep(Nanos(10_000)).await;
        }
        sys.sleep(Nanos(100_000)).await;
        assert!(!sys.has_ended(&task), "it waits for the indirect block");
        sys.drop_caches(1).await?;
        assert_eq!(sys.join(task).await??, 0);
        Ok(())
    });
}
