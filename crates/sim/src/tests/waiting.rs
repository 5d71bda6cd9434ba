//! Wait queues and timeouts.

use super::*;
use kernel::machine::{QueueId, TaskId, Woken};

/// A task that works for `busy` us and then waits for at most `timeout` us.
fn waiter(sim: &Sim, log: &Log, queue: QueueId, busy: u64, timeout: Option<u64>) {
    let (here, log) = (sim.clone(), log.clone());
    sim.spawn("waiter", None, async move {
        here.charge(CostOp::Syscall, busy);
        let woken = here.wait(queue, WaitReason::PageRead, timeout.map(Nanos::from_micros)).await;
        log.tell(&here, format_args!("{woken:?}"));
    });
}

/// A task that wakes the queue at `at` us.
fn waker(sim: &Sim, log: &Log, queue: QueueId, at: u64) {
    let (here, log) = (sim.clone(), log.clone());
    sim.spawn("waker", None, async move {
        nap(&here, at).await;
        log.tell(&here, format_args!("wakes {}", here.wake_all(queue)));
    });
}

fn scene(timeout: Option<u64>, busy: u64, wake_at: u64) -> (String, Vec<(String, u64, u64)>) {
    let (mut simulation, sim) = boot(hardware(2));
    let (log, queue) = (Log::default(), sim.new_queue());
    waiter(&sim, &log, queue, busy, timeout);
    waker(&sim, &log, queue, wake_at);
    simulation.run_until_idle(Nanos::from_secs(1)).expect("it ends");
    sim.check();
    assert!(!sim.has_waiters(queue));
    let stalls = sim.stalls().into_iter().filter(|stall| stall.name == "waiter");
    (log.text(), stalls.map(|stall| (stall.name, stall.count, stall.total.0 / 1000)).collect())
}

#[test]
fn a_wake_up_before_the_timeout_is_a_signal_and_the_timer_is_forgotten() {
    let (log, stalls) = scene(Some(500), 10, 100);
    insta::assert_snapshot!(log, @r"
      100 us cpu1 wakes 1
      100 us cpu0 Signalled
    ");
    assert_eq!(stalls, [("waiter".to_owned(), 1, 90)]);
}

#[test]
fn a_timeout_before_the_wake_up_leaves_the_queue() {
    let (log, stalls) = scene(Some(50), 10, 100);
    insta::assert_snapshot!(log, @r"
       60 us cpu0 TimedOut
      100 us cpu1 wakes 0
    ");
    assert_eq!(stalls, [("waiter".to_owned(), 1, 50)]);
}

#[test]
fn a_wake_up_while_the_waiters_debt_passes_is_not_lost_and_no_stall() {
    let (log, stalls) = scene(None, 300, 100);
    insta::assert_snapshot!(log, @r"
      100 us cpu1 wakes 1
      300 us cpu0 Signalled
    ");
    assert_eq!(stalls, []);
}

#[test]
fn a_wake_up_while_the_waiter_is_queued_for_its_cpu_is_not_lost() {
    // Both on one CPU: the waiter's 4 ms of debt exceed its slice, so the other has its turn.
    let (mut simulation, sim) = boot(hardware(1));
    let (log, queue) = (Log::default(), sim.new_queue());
    waiter(&sim, &log, queue, 4_000, None);
    let (here, told) = (sim.clone(), log.clone());
    sim.spawn("waker", None, async move {
        told.tell(&here, format_args!("wakes {}", here.wake_all(queue)));
        work(&here, 10).await;
    });
    simulation.run_until_idle(Nanos::from_secs(1)).expect("it ends");
    insta::assert_snapshot!(log.text(), @r"
     3000 us cpu0 wakes 1
     4010 us cpu0 Signalled
    ");
}

#[test]
fn waiters_wake_in_the_order_in_which_they_came_and_a_middle_one_may_time_out() {
    let (mut simulation, sim) = boot(hardware(1));
    let (log, queue) = (Log::default(), sim.new_queue());
    for (name, timeout) in [("first", None), ("second", Some(Nanos::from_micros(50))), ("third", None)] {
        let (here, log) = (sim.clone(), log.clone());
        sim.spawn(name, None, async move {
            let woken = here.wait(queue, WaitReason::PageRead, timeout).await;
            log.tell(&here, format_args!("{name} {woken:?}"));
        });
    }
    waker(&sim, &log, queue, 100);
    simulation.run_until_idle(Nanos::from_secs(1)).expect("it ends");
    insta::assert_snapshot!(log.text(), @r"
       50 us cpu0 second TimedOut
      100 us cpu0 wakes 2
      100 us cpu0 first Signalled
      100 us cpu0 third Signalled
    ");
}

#[test]
fn many_forgotten_timers_are_swept_and_do_not_hold_up_the_end() {
    let (mut simulation, sim) = boot(hardware(2));
    let (ping, pong) = (sim.new_queue(), sim.new_queue());
    for (mine, yours) in [(ping, pong), (pong, ping)] {
        let here = sim.clone();
        sim.spawn("player", None, async move {
            for _ in 0..5_000 {
                here.charge(CostOp::Syscall, 1);
                let _ = here.wake_all(yours);
                let woken = here.wait(mine, WaitReason::PageRead, Some(Nanos::from_secs(60))).await;
                assert_eq!(woken, Woken::Signalled);
            }
            let _ = here.wake_all(yours);
        });
    }
    let end = simulation.run_until_idle(Nanos::from_secs(1)).expect("no timer is waited for");
    assert!(end < Nanos::from_millis(20), "{end}");
    sim.check();
}

#[test]
fn stalls_are_sorted_by_their_total_and_count_what_still_lasts() {
    let (mut simulation, sim) = boot(hardware(4));
    let queue = sim.new_queue();
    let here = sim.clone();
    sim.spawn("reader", None, async move {
        for length in [100, 300, 200] {
            here.sleep(Nanos::from_micros(length), WaitReason::ThrottleNoProgress).await;
        }
        nap(&here, 50).await;
    });
    let here = sim.clone();
    sim.spawn("kswapd0", None, async move {
        work(&here, 400).await;
        let _ = here.wait(queue, WaitReason::KswapdIdle, None).await;
    });
    simulation.run_until(Nanos::from_millis(2)).expect("not stopped");
    let stalls = sim.stalls().into_iter().map(|stall| {
        let TaskId(task) = stall.task;
        let micros = |Nanos(nanos)| nanos / 1000;
        format!(
            "{task} {} {:?} x{} {} us, longest {}",
            stall.name,
            stall.reason,
            stall.count,
            micros(stall.total),
            micros(stall.longest)
        )
    });
    insta::assert_snapshot!(stalls.collect::<Vec<_>>().join("\n"), @r"
    2 kswapd0 KswapdIdle x1 1600 us, longest 1600
    1 reader ThrottleNoProgress x3 600 us, longest 300
    1 reader UserSleep x1 50 us, longest 50
    ");
}
