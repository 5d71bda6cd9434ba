//! Which waits are futile, in scenes of one task that waits and one that writes.

use super::*;
use crate::accounts::waits::{Ended, LENGTH_CLASSES, Waits};
use kernel::IoKind;
use units::Bytes;

/// A device on which a request of 4000 bytes takes 8 us.
fn boot_with_disk() -> (Simulation, Sim) {
    let (simulation, sim) = boot(hardware(2).with_device(crate::DeviceModel::VIRTIO_RAM));
    sim.on_io_done(Rc::new(|_| {}));
    (simulation, sim)
}

/// A task that sends one request at `at` us.
fn submitter(sim: &Sim, kind: IoKind, at: u64) {
    let here = sim.clone();
    sim.spawn("submitter", None, async move {
        nap(&here, at).await;
        here.submit(kernel::IoRequest { device: 0, kind, offset: 0, len: Bytes(4000), segments: 1, tag: 7 });
    });
}

/// A task that waits from 100 us on, for at most 20 us, and is woken after `wake` us if that is sooner.
fn waiter(sim: &Sim, reason: WaitReason, wake: Option<u64>) {
    let queue = sim.new_queue();
    let here = sim.clone();
    sim.spawn("waiter", None, async move {
        nap(&here, 100).await;
        let _ = here.wait(queue, reason, Some(Nanos::from_micros(20))).await;
    });
    let here = sim.clone();
    sim.spawn("waker", None, async move {
        if let Some(after) = wake {
            nap(&here, 100 + after).await;
            here.wake_all(queue);
        }
    });
}

/// What is told of the waiter's waits other than its nap.
fn told(sim: &Sim) -> String {
    let micros = |Nanos(nanos)| nanos / 1000;
    let of_waiter = |waits: &Waits| waits.name == "waiter" && waits.reason != WaitReason::UserSleep;
    let line = |waits: Waits| {
        let futile = if waits.futile { "futile" } else { "not futile" };
        format!(
            "{:?} {:?}, {futile}: {} of {} us",
            waits.reason,
            waits.ended,
            micros(waits.spent),
            micros(waits.requested)
        )
    };
    sim.waits().into_iter().filter(of_waiter).map(line).collect::<Vec<_>>().join("\n")
}

fn scene(reason: WaitReason, io: Option<(IoKind, u64)>, wake: Option<u64>) -> String {
    let (mut simulation, sim) = boot_with_disk();
    waiter(&sim, reason, wake);
    if let Some((kind, at)) = io {
        submitter(&sim, kind, at);
    }
    simulation.run_until_idle(Nanos::from_secs(1)).expect("it ends");
    told(&sim)
}

#[test]
fn a_congestion_wait_is_futile_while_no_write_is_in_flight() {
    use IoKind::{Read, Write};
    const FUTILE: &str = "Congestion TimedOut, futile: 20 of 20 us";
    const NOT_FUTILE: &str = "Congestion TimedOut, not futile: 20 of 20 us";
    // The wait lasts from 100 to 120 us, a request 8 us.
    for (io, wanted) in [
        (None, FUTILE),
        (Some((Read, 110)), FUTILE),
        (Some((Write, 80)), FUTILE),      // complete before
        (Some((Write, 95)), NOT_FUTILE),  // in flight when it begins
        (Some((Write, 110)), NOT_FUTILE), // sent and complete while it lasts
        (Some((Write, 118)), NOT_FUTILE), // sent while it lasts
        (Some((Write, 130)), FUTILE),     // too late
    ] {
        assert_eq!(scene(WaitReason::Congestion, io, None), wanted, "{io:?}");
    }
}

/// However nothing is in flight, who is woken did not wait for nothing.
#[test]
fn a_wait_that_is_woken_is_not_futile() {
    for reason in [WaitReason::Congestion, WaitReason::ThrottleWriteback, WaitReason::ThrottleNoProgress] {
        let wanted = format!("{reason:?} Woken, not futile: 5 of 20 us");
        assert_eq!(scene(reason, None, Some(5)), wanted);
    }
}

/// Whether others make progress does not show in what is in flight: a wait for them that ran to its
/// timeout was for nothing.
#[test]
fn a_wait_for_progress_of_others_is_futile_when_it_times_out() {
    for reason in
        [WaitReason::ThrottleNoProgress, WaitReason::DirectReclaimThrottle, WaitReason::FragmentStall]
    {
        let wanted = format!("{reason:?} TimedOut, futile: 20 of 20 us");
        assert_eq!(scene(reason, Some((IoKind::Write, 110)), None), wanted);
    }
}

#[test]
fn waits_for_a_request_and_pauses_are_never_futile() {
    for reason in [WaitReason::PageRead, WaitReason::RequestQueue, WaitReason::DirtyThrottle] {
        let wanted = format!("{reason:?} TimedOut, not futile: 20 of 20 us");
        assert_eq!(scene(reason, None, None), wanted);
    }
}

#[test]
fn waits_belong_to_the_phase_in_which_they_end_and_their_lengths_are_counted() {
    let (mut simulation, sim) = boot_with_disk();
    let here = sim.clone();
    sim.spawn("reader", None, async move {
        for length in [10, 10, 10, 600, 600] {
            here.sleep(Nanos::from_micros(length), WaitReason::Congestion).await;
        }
        let queue = here.new_queue();
        let _ = here.wait(queue, WaitReason::PageRead, None).await;
    });
    simulation.run_until(Nanos::from_micros(25)).expect("not stopped");
    sim.end_phase();
    simulation.run_until(Nanos::from_micros(2000)).expect("not stopped");
    let lengths = |lengths: [u32; LENGTH_CLASSES]| {
        let counted = lengths.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(|(class, count)| format!("{count} below 2^{class} us")).collect::<Vec<_>>().join(", ")
    };
    let waits: Vec<String> = sim
        .waits()
        .into_iter()
        .map(|waits| {
            assert_eq!(waits.futile, waits.ended == Ended::TimedOut);
            let Waits { phase, reason, ended, count, requested, spent, longest, .. } = waits;
            format!(
                "phase {phase}: {reason:?} {ended:?} x{count}, {} of {} us, longest {}; {}",
                spent.0 / 1000,
                requested.0 / 1000,
                longest.0 / 1000,
                lengths(waits.lengths)
            )
        })
        .collect();
    insta::assert_snapshot!(waits.join("\n"), @r"
    phase 0: Congestion TimedOut x2, 20 of 20 us, longest 10; 2 below 2^4 us
    phase 1: Congestion TimedOut x3, 1210 of 1210 us, longest 600; 1 below 2^4 us, 2 below 2^10 us
    phase 1: PageRead Lasts x1, 770 of 0 us, longest 770; 1 below 2^10 us
    ");
}
