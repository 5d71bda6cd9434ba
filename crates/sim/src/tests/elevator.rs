//! The I/O scheduler and the sweeps of a disk: who goes when.

use kernel::machine::{IoKind, IoRequest};
use units::{Bytes, CpuId, Nanos, Seed};

use super::devices::{scene, toy};
use crate::devices::device::{Device, HostLink};
use crate::devices::elevator::{IoQueue, Pending};
use crate::hardware::device::{DeviceModel, IoScheduler, Order, Speed, even};

const SECOND: u64 = 1_000_000_000;

/// A move of the head takes 1000 ns, a byte 1 ns, and there is no latency beside.
fn disk(order: Order, scheduler: IoScheduler, depth: u32) -> DeviceModel {
    let platter = Speed { random_op: Nanos(1000), ..even(Nanos(0), Nanos(0), 1_000_000_000) };
    DeviceModel { read: platter, write: platter, order, scheduler, depth, ..toy() }
}

fn pending(tag: u64, kind: IoKind, offset: u64, len: u64, now: u64) -> Pending {
    let request = IoRequest { device: 0, kind, offset, len: Bytes(len), segments: 1, tag };
    Pending::new(request, CpuId(0), now)
}

fn drawn(pending: &Pending) -> String {
    let tags: Vec<String> = pending.sent().map(|sent| sent.tag.to_string()).collect();
    let kind = match pending.request.kind {
        IoKind::Read => "r",
        IoKind::Write => "w",
        IoKind::DurableWrite => "d",
    };
    format!("{kind}{}", tags.join("+"))
}

/// In which order the scheduler sends on what waits at `now`: requests (kind, offset, length), by number.
fn order(requests: &[(IoKind, u64, u64)], now: u64) -> String {
    let mut queue = IoQueue::new(IoScheduler::MqDeadline);
    for (tag, &(kind, offset, len)) in requests.iter().enumerate() {
        queue.add(pending(tag as u64, kind, offset, len, 0));
    }
    let mut sent = Vec::new();
    while let Some(next) = queue.next(now) {
        sent.push(drawn(&next));
    }
    assert_eq!(queue.len(), 0);
    sent.join(" ")
}

/// Four files grow at four places; a page of each in turn, all there at once.
#[test]
fn streams_in_turn_cost_a_move_each_and_not_one_for_each_request() {
    use IoKind::Write;
    let requests: Vec<_> =
        (0..32).map(|number| (0, Write, (1 + number % 4) * 100_000 + (number / 4) * 10, 10)).collect();
    let ends = |order, scheduler, depth| {
        let drawn = scene(disk(order, scheduler, depth), None, &requests);
        let last = drawn.lines().rev().nth(1).expect("32 requests").to_string();
        last.rsplit(' ').next().expect("a time").parse::<u64>().expect("a time")
    };
    use IoScheduler::{MqDeadline, None as NoScheduler};
    use Order::{Arrival, Position};
    // With places for 4 and for all of them: the more there is to sort, the fewer moves.
    for (order, scheduler, end) in [
        (Arrival, NoScheduler, [32_000, 32_000]),
        (Position, NoScheduler, [24_080, 4_280]),
        (Arrival, MqDeadline, [7_070, 32_000]), // Nothing waits before the disk.
        (Position, MqDeadline, [7_070, 4_280]),
    ] {
        assert_eq!([4, 32].map(|depth| ends(order, scheduler, depth)), end, "{order:?} {scheduler:?}");
    }
}

#[test]
fn requests_that_touch_are_merged_from_behind_from_before_and_across_a_gap() {
    use IoKind::{Read, Write};
    assert_eq!(order(&[(Write, 0, 10), (Write, 10, 5), (Write, 15, 5)], 0), "w0+1+2");
    assert_eq!(order(&[(Write, 10, 5), (Write, 0, 10)], 0), "w1+0");
    assert_eq!(order(&[(Write, 0, 10), (Write, 20, 10), (Write, 10, 10)], 0), "w0+2+1");
    assert_eq!(order(&[(Write, 0, 10), (Write, 11, 10)], 0), "w0 w1", "a gap");
    assert_eq!(order(&[(Write, 0, 10), (Read, 10, 10)], 0), "r1 w0", "another direction");
    let long = 400 << 10;
    assert_eq!(order(&[(Write, 0, long), (Write, long, long)], 0), "w0 w1", "longer than a request can be");
}

#[test]
fn reads_go_first_but_not_more_than_two_batches_of_them() {
    use IoKind::{Read, Write};
    // A gap behind each, and a batch has 16.
    let reads = (0..40).map(|number| (Read, number * 20, 10));
    let requests: Vec<_> = reads.chain((0..20).map(|number| (Write, number * 20, 10))).collect();
    let sent = order(&requests, 0);
    let runs = sent.split(' ').map(|one| &one[..1]).collect::<String>();
    assert_eq!(runs, ["r".repeat(32), "w".repeat(16), "r".repeat(8), "w".repeat(4)].concat());
}

#[test]
fn a_batch_goes_upwards_and_one_that_waited_too_long_goes_first() {
    use IoKind::{Read, Write};
    let writes = [(Write, 500, 10), (Write, 100, 10), (Write, 900, 10), (Write, 300, 10)];
    assert_eq!(order(&writes, 0), "w1 w3 w0 w2");
    assert_eq!(order(&writes, 5 * SECOND - 1), "w1 w3 w0 w2");
    // The oldest, and on from there; those below come when none is further up, the oldest of them first.
    assert_eq!(order(&writes, 5 * SECOND), "w0 w2 w1 w3");
    let reads = writes.map(|(_, offset, len)| (Read, offset, len));
    assert_eq!(order(&reads, SECOND / 2 - 1), "r1 r3 r0 r2");
    assert_eq!(order(&reads, SECOND / 2), "r0 r2 r1 r3");
}

#[test]
fn a_merged_request_is_as_old_as_its_oldest_part() {
    use IoKind::Write;
    let mut queue = IoQueue::new(IoScheduler::MqDeadline);
    for (tag, offset, now) in [(0, 500, 0), (1, 100, SECOND), (2, 490, 4 * SECOND)] {
        queue.add(pending(tag, Write, offset, 10, now));
    }
    let first = queue.next(5 * SECOND).expect("two wait");
    assert_eq!(drawn(&first), "w2+0");
}

#[test]
fn a_durable_write_passes_the_scheduler_and_is_between_two_sweeps() {
    use IoKind::{DurableWrite, Write};
    assert_eq!(order(&[(Write, 0, 10), (DurableWrite, 10, 10), (Write, 20, 10)], 0), "d1 w0 w2");
    let requests = [
        (0, Write, 0, 10), // begun at once, where the head is
        (1, Write, 900, 10),
        (1, Write, 300, 10),
        (1, DurableWrite, 10_000, 4), // before the next sweep
        (20, Write, 600, 10),         // in the disk before that sweep begins
    ];
    let drawn = scene(disk(Order::Position, IoScheduler::MqDeadline, 32), None, &requests);
    insta::assert_snapshot!(drawn, @r"
    0 done at 10
    3 done at 1010
    2 done at 2010
    4 done at 3010
    1 done at 4010
    DeviceCounters { reads: 0, writes: 5, merges: 0, read_bytes: 0 B, write_bytes: 44 B, segments: 5, busy: 4010 ns, waited: 10027 ns, most_in_flight: 4 }
    ");
}

/// A stream always has something right before the head; a read far below gets its turn all the same.
#[test]
fn who_streams_ahead_of_the_head_keeps_nobody_waiting() {
    use IoKind::{Read, Write};
    let mut requests: Vec<_> = (0..40).map(|n| (n * 50, Write, 1_000_000 + n * 100, 100)).collect();
    requests.insert(5, (201, Read, 0, 10));
    let drawn = scene(disk(Order::Position, IoScheduler::None, 32), None, &requests);
    let place = drawn.lines().position(|line| line.starts_with("5 done")).expect("it is served");
    assert!(place < 30, "after {place} others:\n{drawn}");
}

/// Whatever is asked of whatever device: each request comes back once, and as many bytes as were sent.
#[test]
fn every_request_comes_back_once() {
    let mut merges = 0;
    for seed in 0..60 {
        let mut stream = Seed(seed).stream("elevator");
        for (order, scheduler) in [
            (Order::Arrival, IoScheduler::MqDeadline),
            (Order::Position, IoScheduler::None),
            (Order::Position, IoScheduler::MqDeadline),
        ] {
            let depth = 1 + u32::try_from(stream.below(5)).expect("small");
            let mut device = Device::new(disk(order, scheduler, depth));
            let mut link = HostLink::new(None);
            let (mut begun, mut back, mut bytes, mut now) = (Vec::new(), Vec::new(), 0, 0);
            let mut sent = 0;
            while sent < 200 || !begun.is_empty() {
                let due = begun.iter().map(|one: &crate::devices::device::Begun| one.done).min();
                if sent < 200 && (due.is_none_or(|due| due > now) || stream.below(3) == 0) {
                    let kind = [IoKind::Read, IoKind::Write, IoKind::DurableWrite][stream.below(3) as usize];
                    let (offset, len) = (stream.below(40) * 10, Bytes(10 * (1 + stream.below(3))));
                    let request = IoRequest { device: 0, kind, offset, len, segments: 1, tag: sent };
                    begun.extend(device.submit(now, request, CpuId(0), &mut link));
                    (sent, bytes) = (sent + 1, bytes + len.0);
                    let due = begun.iter().map(|one: &crate::devices::device::Begun| one.done).min();
                    now = due.unwrap_or(u64::MAX).min(now + stream.below(400));
                } else {
                    let next = begun.iter().enumerate().min_by_key(|(_, one)| (one.done, one.slot));
                    let one = begun.swap_remove(next.expect("not empty").0);
                    assert!(one.done >= now, "time goes on");
                    now = one.done;
                    let completed = device.complete(now, one.slot, &mut link);
                    back.extend(completed.pending.sent().map(|sent| sent.tag));
                    begun.extend(completed.next);
                }
            }
            let counters = device.counters;
            assert_eq!(counters.read_bytes.0 + counters.write_bytes.0, bytes);
            assert_eq!(counters.reads + counters.writes + counters.merges, 200);
            merges += counters.merges;
            back.sort_unstable();
            assert_eq!(back, (0..200).collect::<Vec<_>>(), "seed {seed}: {order:?} {scheduler:?}");
        }
    }
    assert!(merges > 100, "some are merged");
}
