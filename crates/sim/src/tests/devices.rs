//! One device at a time: when each of its requests is complete.

use kernel::machine::{IoKind, IoRequest};
use units::{Bytes, CpuId, Nanos};

use crate::devices::device::{Begun, Device, HostLink};
use crate::hardware::device::{Burst, DeviceModel, IoScheduler, Order, Speed, TrackBuffer, even};

/// Runs `requests` (submission time, kind, offset, length) through a device and draws when
/// each is done: one line a request.
pub(super) fn scene(model: DeviceModel, link: Option<u64>, requests: &[(u64, IoKind, u64, u64)]) -> String {
    let (mut device, mut link) = (Device::new(model), HostLink::new(link));
    let mut in_flight: Vec<Begun> = Vec::new();
    let mut lines = Vec::new();
    let mut arrivals = requests.iter().enumerate().peekable();
    loop {
        in_flight.sort_by_key(|begun| (begun.done, begun.slot));
        let arrival = arrivals.peek().map_or(u64::MAX, |(_, request)| request.0);
        if in_flight.first().is_some_and(|first| first.done <= arrival) {
            let Begun { done, slot } = in_flight.remove(0);
            let completed = device.complete(done, slot, &mut link);
            let tags = completed.pending.sent().map(|sent| sent.tag.to_string()).collect::<Vec<_>>();
            lines.push(format!("{} done at {done}", tags.join("+")));
            in_flight.extend(completed.next);
        } else if let Some((tag, &(now, kind, offset, len))) = arrivals.next() {
            let request =
                IoRequest { device: 0, kind, offset, len: Bytes(len), segments: 1, tag: tag as u64 };
            in_flight.extend(device.submit(now, request, CpuId(0), &mut link));
        } else {
            lines.push(format!("{:?}", device.counters));
            return lines.join("\n");
        }
    }
}

/// 10 ns an operation, 1 byte/ns, 100 ns of latency, two at a time.
pub(super) fn toy() -> DeviceModel {
    let speed = Speed { random_op: Nanos(50), ..even(Nanos(100), Nanos(10), 1_000_000_000) };
    DeviceModel {
        name: "toy",
        read: speed,
        write: speed,
        burst: None,
        depth: 2,
        flush: Nanos(0),
        xfs_log: Bytes(64),
        gathers: 16,
        segment: Nanos(0),
        order: Order::Arrival,
        scheduler: IoScheduler::None,
        track_buffer: None,
        by_host_thread: false,
    }
}

#[test]
fn requests_share_the_channel_and_wait_for_a_place() {
    use IoKind::Read;
    let drawn = scene(toy(), None, &[(0, Read, 0, 4), (0, Read, 4, 30), (0, Read, 34, 1), (500, Read, 0, 4)]);
    insta::assert_snapshot!(drawn, @r"
    0 done at 110
    1 done at 140
    2 done at 220
    3 done at 650
    DeviceCounters { reads: 4, writes: 0, merges: 0, read_bytes: 39 B, write_bytes: 0 B, segments: 4, busy: 100 ns, waited: 620 ns, most_in_flight: 3 }
    ");
}

/// Eight pages of 4 bytes: adjacent, every second frame, and one by one downwards as a list that is
/// taken from its wrong end gives them.
#[test]
fn each_run_of_adjacent_frames_may_cost_something() {
    let busy = |segment, segments| {
        let model = DeviceModel { segment: Nanos(segment), ..toy() };
        let (mut device, mut link) = (Device::new(model), HostLink::new(None));
        let kind = IoKind::Read;
        let request = IoRequest { device: 0, kind, offset: 0, len: Bytes(32), segments, tag: 0 };
        let begun = device.submit(0, request, CpuId(0), &mut link).expect("an idle device");
        let _ = device.complete(begun.done, begun.slot, &mut link);
        (device.counters.busy.0, device.counters.segments)
    };
    let (adjacent, scattered) = (1, 8);
    assert_eq!((busy(0, adjacent), busy(0, scattered)), ((32, 1), (32, 8)), "free: no matter");
    assert_eq!((busy(10, adjacent), busy(10, scattered)), ((42, 1), (112, 8)));
}

/// Twenty bytes of fast cells, of which one a second gets empty after ten seconds of rest.
fn two_speeds() -> DeviceModel {
    let behind = Speed { random_op: Nanos(3000), ..even(Nanos(100), Nanos(1000), 1_000_000_000) };
    let burst = Burst { cells: Bytes(20), behind, rest: Nanos::from_secs(10), drain: 1 };
    DeviceModel { burst: Some(burst), ..toy() }
}

#[test]
fn after_the_burst_writes_are_slow_and_reads_are_not() {
    use IoKind::{Read, Write};
    let requests = [
        (0, Write, 0, 10),
        (200, Write, 10, 10),
        (400, Write, 20, 10),  // the fast cells are full; on from where the last one ended
        (2000, Write, 90, 10), // elsewhere
        (6000, Read, 100, 10),
    ];
    insta::assert_snapshot!(scene(two_speeds(), None, &requests), @r"
    0 done at 110
    1 done at 310
    2 done at 1500
    3 done at 5100
    4 done at 6110
    DeviceCounters { reads: 1, writes: 4, merges: 0, read_bytes: 10 B, write_bytes: 40 B, segments: 5, busy: 4030 ns, waited: 4530 ns, most_in_flight: 1 }
    ");
}

#[test]
fn fast_cells_get_empty_while_the_device_rests_long_enough() {
    use IoKind::Write;
    const SECOND: u64 = 1_000_000_000;
    let requests = [
        (0, Write, 0, 20),            // fills them
        (9 * SECOND, Write, 20, 1),   // too short a rest
        (35 * SECOND, Write, 21, 14), // nearly 26 s of rest: 15 bytes are free
        (36 * SECOND, Write, 35, 1),  // the last of them
        (36 * SECOND, Write, 36, 1),
        (36 * SECOND, Write, 37, 1),
    ];
    insta::assert_snapshot!(scene(two_speeds(), None, &requests), @r"
    0 done at 120
    1 done at 9000001100
    2 done at 35000000114
    3 done at 36000000110
    4 done at 36000001110
    5 done at 36000002110
    DeviceCounters { reads: 0, writes: 6, merges: 0, read_bytes: 0 B, write_bytes: 38 B, segments: 6, busy: 3044 ns, waited: 4664 ns, most_in_flight: 3 }
    ");
}

/// As for the log of a filesystem: what a write has to wait for is on the medium before it.
#[test]
fn a_durable_write_holds_the_device_up_until_its_own_memory_is_written() {
    use IoKind::{DurableWrite, Write};
    let model = DeviceModel { flush: Nanos(500), ..toy() };
    let requests = [(0, Write, 0, 4), (0, DurableWrite, 4, 4), (0, Write, 8, 4)];
    insta::assert_snapshot!(scene(model, None, &requests), @r"
    0 done at 110
    1 done at 620
    2 done at 630
    DeviceCounters { reads: 0, writes: 3, merges: 0, read_bytes: 0 B, write_bytes: 12 B, segments: 3, busy: 530 ns, waited: 1360 ns, most_in_flight: 3 }
    ");
}

#[test]
fn a_host_adapter_slower_than_the_device_sets_the_pace() {
    use IoKind::Read;
    let drawn = scene(toy(), Some(500_000_000), &[(0, Read, 0, 100), (0, Read, 100, 100)]);
    insta::assert_snapshot!(drawn, @r"
    0 done at 300
    1 done at 500
    DeviceCounters { reads: 2, writes: 0, merges: 0, read_bytes: 200 B, write_bytes: 0 B, segments: 2, busy: 400 ns, waited: 800 ns, most_in_flight: 2 }
    ");
}

/// Tracks of 100 bytes, of which two are kept; a move of the head takes 1000 ns, a read from the
/// buffer 5 ns and one for each byte.
fn disk() -> DeviceModel {
    let head = Speed { random_op: Nanos(1000), ..even(Nanos(100), Nanos(0), 1_000_000_000) };
    let buffer = even(Nanos(5), Nanos(0), 1_000_000_000);
    DeviceModel {
        read: head,
        write: head,
        xfs_log: Bytes(64 << 20),
        track_buffer: Some(TrackBuffer { track: Bytes(100), tracks: 2, read: buffer }),
        ..toy()
    }
}

#[test]
fn a_read_brings_its_track_and_reads_from_there_leave_the_head_alone() {
    use IoKind::Read;
    let requests = [
        (0, Read, 330, 10),     // the head moves: 1000 + 100
        (2000, Read, 300, 10),  // before it on the track: 10 + 5
        (3000, Read, 390, 10),  // behind it: 10 + 5
        (4000, Read, 340, 10),  // where the head stands, but from the buffer
        (5000, Read, 1000, 10), // another track
    ];
    insta::assert_snapshot!(scene(disk(), None, &requests), @r"
    0 done at 1100
    1 done at 2015
    2 done at 3015
    3 done at 4015
    4 done at 6100
    DeviceCounters { reads: 5, writes: 0, merges: 0, read_bytes: 50 B, write_bytes: 0 B, segments: 5, busy: 2030 ns, waited: 2245 ns, most_in_flight: 1 }
    ");
}

#[test]
fn the_track_that_was_used_least_recently_makes_room() {
    use IoKind::Read;
    let requests = [
        (0, Read, 100, 10),
        (2000, Read, 200, 10),
        (4000, Read, 110, 10), // track 1 again: 2 is the older one now
        (5000, Read, 300, 10), // puts 2 out
        (7000, Read, 120, 10), // still there
        (8000, Read, 220, 10), // gone
    ];
    insta::assert_snapshot!(scene(disk(), None, &requests), @r"
    0 done at 1100
    1 done at 3100
    2 done at 4015
    3 done at 6100
    4 done at 7015
    5 done at 9100
    DeviceCounters { reads: 6, writes: 0, merges: 0, read_bytes: 60 B, write_bytes: 0 B, segments: 6, busy: 4020 ns, waited: 4430 ns, most_in_flight: 1 }
    ");
}

#[test]
fn writes_move_the_head_and_fill_no_buffer() {
    use IoKind::{Read, Write};
    let requests = [
        (0, Write, 100, 10),    // the head moves
        (2000, Write, 110, 10), // on from there
        (3000, Read, 130, 10),  // not in the buffer: it moves
        (5000, Write, 135, 5),  // a track in the buffer is no help to a write
    ];
    insta::assert_snapshot!(scene(disk(), None, &requests), @r"
    0 done at 1100
    1 done at 2110
    2 done at 4100
    3 done at 6100
    DeviceCounters { reads: 1, writes: 3, merges: 0, read_bytes: 10 B, write_bytes: 25 B, segments: 4, busy: 3010 ns, waited: 3410 ns, most_in_flight: 1 }
    ");
}

#[test]
fn the_named_models_reach_the_figures_that_they_quote() {
    // (model, direction, latency of one 4 KiB request in us, operations per second at full depth)
    for (model, kind, one, many) in [
        (DeviceModel::SATA_EVO, IoKind::Read, 90, 98_000),
        (DeviceModel::SATA_EVO, IoKind::Write, 35, 88_000),
        (DeviceModel::NVME, IoKind::Read, 85, 450_000),
        (DeviceModel::NVME, IoKind::Write, 25, 250_000),
        (DeviceModel::VIRTIO_RAM, IoKind::Read, 8, 1_000_000),
        // The second read comes from the track buffer.
        (DeviceModel::SATA_HDD, IoKind::Read, 8100, 73_242),
        (DeviceModel::SATA_HDD, IoKind::Write, 8100, 125),
    ] {
        let name = model.name;
        let (mut device, mut link) = (Device::new(model), HostLink::new(None));
        let request = IoRequest { device: 0, kind, offset: 1 << 30, len: Bytes(4096), segments: 1, tag: 0 };
        let alone = device.submit(0, request, CpuId(0), &mut link).expect("an idle device").done;
        assert_eq!((alone + 500) / 1000, one, "{name}");
        // A disk begins the second one when the first is complete.
        let at_once = device.submit(0, request, CpuId(0), &mut link);
        let first = at_once.or_else(|| device.complete(alone, 0, &mut link).next).expect("it waits").done;
        let per_second = 1_000_000_000 / (first - alone);
        assert!(per_second.abs_diff(many) * 100 < many, "{name}: {per_second} operations per second");
    }
}

#[test]
fn every_model_is_found_by_its_name() {
    for model in DeviceModel::ALL {
        assert_eq!(DeviceModel::by_name(model.name).as_ref(), Some(model));
    }
    assert_eq!(DeviceModel::by_name("floppy"), None);
}
