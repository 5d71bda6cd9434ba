//! Who runs where and when.

use super::*;
use kernel::machine::TaskId;
use mm::version::rules::{Preemption, Scheduler};

/// Starts a task that tells the log when it begins and ends `micros` of work.
fn start(sim: &Sim, log: &Log, name: &'static str, cpu: Option<u16>, micros: u64) -> TaskId {
    let (here, log) = (sim.clone(), log.clone());
    sim.spawn(name, cpu.map(CpuId), async move {
        log.tell(&here, format_args!("{name} begins"));
        work(&here, micros).await;
        log.tell(&here, format_args!("{name} ends"));
    })
}

fn run(simulation: &mut Simulation) {
    simulation.run_until_idle(Nanos::from_secs(10)).expect("it ends");
}

#[test]
fn three_tasks_share_one_cpu_in_turns_of_a_slice() {
    let (mut simulation, sim) = boot(hardware(1));
    let log = Log::default();
    for name in ["A", "B", "C"] {
        start(&sim, &log, name, None, 7_000);
    }
    run(&mut simulation);
    // A, B, C run 3 ms each in turn, twice, and then the last 1 ms each.
    insta::assert_snapshot!(log.text(), @r"
        0 us cpu0 A begins
     3000 us cpu0 B begins
     6000 us cpu0 C begins
    19000 us cpu0 A ends
    20000 us cpu0 B ends
    21000 us cpu0 C ends
    ");
    assert_eq!(sim.statistics().context_switches, 9);
}

/// It waited behind the pinned one while the other CPU had nothing to do: found by a world of 33 MiB.
#[test]
fn a_task_that_gives_way_to_a_pinned_one_goes_on_where_nobody_runs() {
    let (mut simulation, sim) = boot(hardware(2));
    let log = Log::default();
    start(&sim, &log, "free", None, 7_000);
    start(&sim, &log, "pinned", Some(0), 7_000);
    while simulation.one_event() {
        sim.check();
    }
    insta::assert_snapshot!(log.text(), @r"
        0 us cpu0 free begins
     3000 us cpu0 pinned begins
     7000 us cpu1 free ends
    10000 us cpu0 pinned ends
    ");
}

#[test]
fn small_pieces_of_work_use_up_a_slice_as_one_large_piece_does() {
    let (mut simulation, sim) = boot(hardware(1));
    let turns = Rc::new(RefCell::new(Vec::new()));
    for name in ["A", "B"] {
        let (here, turns) = (sim.clone(), Rc::clone(&turns));
        sim.spawn(name, None, async move {
            for _ in 0..10 {
                work(&here, 1_000).await;
                turns.borrow_mut().push(name);
            }
        });
    }
    run(&mut simulation);
    // The third millisecond is done when its task has the CPU again.
    assert_eq!(turns.borrow().concat(), "AABBAAABBBAAABBBAABB");
}

#[test]
fn a_waking_task_pays_for_latency_and_switch_and_a_queued_one_for_the_switch() {
    let mut machine = hardware(1);
    machine.costs.set("wakeup_latency", Nanos::from_micros(50)).expect("a cost");
    machine.costs.set("context_switch", Nanos::from_micros(2)).expect("a cost");
    let (mut simulation, sim) = boot(machine);
    let log = Log::default();
    start(&sim, &log, "A", None, 100);
    start(&sim, &log, "B", None, 100);
    run(&mut simulation);
    insta::assert_snapshot!(log.text(), @r"
       52 us cpu0 A begins
      152 us cpu0 A ends
      154 us cpu0 B begins
      254 us cpu0 B ends
    ");
    assert_eq!(sim.statistics().cpu_busy, [Nanos::from_micros(200)], "only what was charged is busy time");
}

#[test]
fn a_task_wakes_on_its_previous_cpu_else_on_an_idle_one_else_behind_its_previous_cpu() {
    for (busy, scene) in [
        // (CPUs that others occupy when the sleeper wakes, where it goes on and when)
        (&[][..], "  100 us cpu2 awake"),
        (&[0, 1], "  100 us cpu2 awake"),
        (&[0, 2], "  100 us cpu1 awake"),
        (&[2], "  100 us cpu0 awake"),
        (&[0, 1, 2], " 1020 us cpu2 awake"),
    ] {
        let (mut simulation, sim) = boot(hardware(3));
        let log = Log::default();
        // Two that end at 50 us keep CPUs 0 and 1, so that the sleeper begins on CPU 2.
        for cpu in 0..2 {
            let here = sim.clone();
            sim.spawn("early", Some(CpuId(cpu)), async move { work(&here, 50).await });
        }
        let (here, told) = (sim.clone(), log.clone());
        sim.spawn("sleeper", None, async move {
            nap(&here, 100).await;
            told.tell(&here, "awake");
        });
        for &cpu in busy {
            let here = sim.clone();
            sim.spawn("busy", Some(CpuId(cpu)), async move {
                nap(&here, 20).await;
                work(&here, 1_000).await;
            });
        }
        run(&mut simulation);
        assert_eq!(log.text(), scene, "others on {busy:?}");
    }
}

#[test]
fn a_pinned_task_waits_for_its_cpu_while_another_idles() {
    let (mut simulation, sim) = boot(hardware(2));
    let log = Log::default();
    start(&sim, &log, "A", Some(1), 10);
    start(&sim, &log, "B", Some(1), 10);
    run(&mut simulation);
    insta::assert_snapshot!(log.text(), @r"
        0 us cpu1 A begins
       10 us cpu1 A ends
       10 us cpu1 B begins
       20 us cpu1 B ends
    ");
}

#[test]
fn a_cpu_that_runs_dry_takes_the_first_that_may_move_from_the_longest_queue() {
    let (mut simulation, sim) = boot(hardware(2));
    let log = Log::default();
    start(&sim, &log, "long", Some(0), 1_000);
    start(&sim, &log, "short", Some(1), 10);
    start(&sim, &log, "pinned", Some(0), 10);
    // The next three go to the shortest queue: CPU 1, CPU 0 and again CPU 1, which then takes "two".
    start(&sim, &log, "one", None, 10);
    start(&sim, &log, "two", None, 10);
    start(&sim, &log, "three", None, 10);
    run(&mut simulation);
    insta::assert_snapshot!(log.text(), @r"
        0 us cpu0 long begins
        0 us cpu1 short begins
       10 us cpu1 short ends
       10 us cpu1 one begins
       20 us cpu1 one ends
       20 us cpu1 three begins
       30 us cpu1 three ends
       30 us cpu1 two begins
       40 us cpu1 two ends
     1000 us cpu0 long ends
     1000 us cpu0 pinned begins
     1010 us cpu0 pinned ends
    ");
}

#[test]
fn an_interrupt_steals_its_time_from_the_task_on_the_cpu_that_submitted() {
    let (mut simulation, sim) = boot(hardware(1).with_device(crate::DeviceModel::VIRTIO_RAM));
    let (log, interrupts) = (Log::default(), sim.clone());
    let told = log.clone();
    sim.on_io_done(Rc::new(move |tag| {
        told.tell(&interrupts, format_args!("request {tag} is done"));
        interrupts.charge(CostOp::Syscall, 5);
    }));
    let (here, told) = (sim.clone(), log.clone());
    sim.spawn("submitter", None, async move {
        let (kind, len) = (kernel::IoKind::Read, units::Bytes(4000));
        here.submit(kernel::IoRequest { device: 0, kind, offset: 0, len, segments: 1, tag: 7 });
        work(&here, 100).await;
        told.tell(&here, "worked for 100 us");
    });
    run(&mut simulation);
    insta::assert_snapshot!(log.text(), @r"
        8 us cpu0 request 7 is done
      105 us cpu0 worked for 100 us
    ");
}

/// Told when a request is done.
fn log_of_requests(sim: &Sim) -> Log {
    let (log, interrupts) = (Log::default(), sim.clone());
    let told = log.clone();
    sim.on_io_done(Rc::new(move |tag| told.tell(&interrupts, format_args!("request {tag} is done"))));
    log
}

/// The kernel works for 100 us after it sent one request, and is back in the program after another.
#[test]
fn a_disk_that_a_thread_of_the_host_serves_waits_until_the_kernel_leaves_the_cpu() {
    let mut hardware = hardware(1).with_device(crate::DeviceModel::UBD);
    hardware.costs.set("context_switch", Nanos(1_500)).expect("a cost");
    let (mut simulation, sim) = boot(hardware);
    let log = log_of_requests(&sim);
    let (here, told) = (sim.clone(), log.clone());
    sim.spawn("submitter", None, async move {
        let (kind, len) = (kernel::IoKind::Write, units::Bytes(4096));
        let request = |tag| kernel::IoRequest { device: 0, kind, offset: 0, len, segments: 1, tag };
        here.submit(request(7));
        work(&here, 100).await;
        told.tell(&here, "worked for 100 us");
        here.return_to_user().await;
        told.tell(&here, "is back in its program");
        work(&here, 50).await;
        here.submit(request(8));
        told.tell(&here, "sleeps");
        here.sleep(Nanos::from_micros(50), WaitReason::UserSleep).await;
    });
    run(&mut simulation);
    insta::assert_snapshot!(log.text(), @"
    101 us cpu0 worked for 100 us
    102 us cpu0 request 7 is done
    103 us cpu0 is back in its program
    153 us cpu0 sleeps
    154 us cpu0 request 8 is done
    ");
}

/// The same disk, whose users gather two requests: the third waits.
#[test]
fn a_thread_of_the_host_has_the_cpu_once_as_many_writes_were_sent_as_a_task_gathers() {
    let disk = crate::DeviceModel { gathers: 2, ..crate::DeviceModel::UBD };
    let (mut simulation, sim) = boot(hardware(1).with_device(disk));
    let log = log_of_requests(&sim);
    let (here, told) = (sim.clone(), log.clone());
    sim.spawn("submitter", None, async move {
        let (kind, len) = (kernel::IoKind::Write, units::Bytes(4096));
        for tag in 1..=3 {
            here.submit(kernel::IoRequest { device: 0, kind, offset: 0, len, segments: 1, tag });
        }
        work(&here, 100).await;
        told.tell(&here, "worked for 100 us");
        here.return_to_user().await;
    });
    run(&mut simulation);
    insta::assert_snapshot!(log.text(), @"
      1 us cpu0 request 1 is done
      1 us cpu0 request 2 is done
    100 us cpu0 worked for 100 us
    101 us cpu0 request 3 is done
    ");
}

/// Creators of files on XFS that found no memory for good never left the kernel; the read of inodes that would have
/// freed some was never served, and the run had no end.
#[test]
fn a_thread_of_the_host_has_the_cpu_after_some_slices_though_the_kernel_never_leaves_it() {
    for fast in [true, false] {
        let (simulation, sim) = boot(hardware(1).with_device(crate::DeviceModel::UBD));
        let mut simulation = if fast { simulation } else { simulation.without_fast_path() };
        let log = log_of_requests(&sim);
        let (here, told) = (sim.clone(), log.clone());
        sim.spawn("submitter", None, async move {
            let (kind, len) = (kernel::IoKind::Read, units::Bytes(4096));
            here.submit(kernel::IoRequest { device: 0, kind, offset: 0, len, segments: 1, tag: 7 });
            for _ in 0..40 {
                work(&here, 300).await;
            }
            told.tell(&here, "worked for 12 ms");
        });
        run(&mut simulation);
        insta::allow_duplicates! {
            insta::assert_snapshot!(log.text(), @"
            10201 us cpu0 request 7 is done
            12000 us cpu0 worked for 12 ms
            ");
        }
    }
}

#[test]
fn work_charged_before_the_end_of_a_task_passes_before_it_ends() {
    let (mut simulation, sim) = boot(hardware(1));
    let here = sim.clone();
    let task = sim.spawn("worker", None, async move { here.charge(CostOp::Syscall, 40) });
    let ended = simulation.run_until_task_done(task, Nanos::from_secs(1));
    assert_eq!(ended, Ok(Nanos::from_micros(40)));
}

#[test]
fn a_timer_due_when_work_ends_comes_first_on_the_fast_path_too() {
    for fast in [true, false] {
        let (simulation, sim) = boot(hardware(2));
        let mut simulation = if fast { simulation } else { simulation.without_fast_path() };
        let log = Log::default();
        let queue = sim.new_queue();
        let (here, told) = (sim.clone(), log.clone());
        sim.spawn("worker", None, async move {
            for _ in 0..3 {
                work(&here, 10).await;
                told.tell(&here, format_args!("somebody waits: {}", here.has_waiters(queue)));
            }
        });
        let (here, told) = (sim.clone(), log.clone());
        sim.spawn("sleeper", None, async move {
            let timeout = Some(Nanos::from_micros(20));
            let woken = here.wait(queue, WaitReason::PageRead, timeout).await;
            told.tell(&here, format_args!("{woken:?}"));
        });
        run(&mut simulation);
        let lines = [
            "   10 us cpu0 somebody waits: true",
            "   20 us cpu0 somebody waits: false",
            "   20 us cpu1 TimedOut",
            "   30 us cpu0 somebody waits: false",
        ];
        assert_eq!(log.text(), lines.join("\n"), "fast path: {fast}");
    }
}

/// Two tasks compute on one CPU while a third sleeps and works by turns: when does it run?
fn sleeper_beside_two(scheduler: Option<Scheduler>) -> Vec<u64> {
    let mut machine = hardware(1);
    machine.scheduler = scheduler;
    let (mut simulation, sim) = boot(machine);
    for name in ["A", "B"] {
        let here = sim.clone();
        sim.spawn(name, None, async move {
            for _ in 0..600 {
                work(&here, 100).await;
            }
        });
    }
    let waits = Rc::new(RefCell::new(Vec::new()));
    let (here, told) = (sim.clone(), Rc::clone(&waits));
    sim.spawn("sleeper", None, async move {
        for _ in 0..20 {
            let woken = here.now().0 + 1_350_000;
            nap(&here, 1_350).await;
            told.borrow_mut().push((here.now().0 - woken) / 1000);
            work(&here, 200).await;
        }
    });
    run(&mut simulation);
    waits.take()
}

#[test]
fn a_task_that_slept_longer_than_a_request_preempts_where_tasks_do_not_take_turns() {
    for scheduler in [Scheduler::Cfs, Scheduler::Eevdf] {
        let waits = sleeper_beside_two(Some(scheduler));
        assert!(waits.iter().all(|&wait| wait <= 100), "at the end of a segment of 100 us: {waits:?}");
    }
    let in_turn = sleeper_beside_two(None);
    assert!(in_turn.iter().any(|&wait| wait > 1_000), "behind the slices of others: {in_turn:?}");
}

/// A reader makes calls of 3 ms on the only CPU, with a place to give way after each 500 us. kswapd slept for long and
/// is woken `at` so many microseconds: when it runs, and what the reader had done by then.
fn kswapd_beside_a_reader(preemption: Preemption, at: u64) -> String {
    let mut machine = hardware(1);
    (machine.scheduler, machine.preemption) = (Some(Scheduler::Cfs), preemption);
    let (mut simulation, sim) = boot(machine);
    let log = Log::default();
    let (here, told) = (sim.clone(), log.clone());
    sim.spawn("kswapd", None, async move {
        nap(&here, at).await;
        told.tell(&here, "kswapd runs");
        work(&here, 5_000).await;
        told.tell(&here, "kswapd sleeps");
    });
    let (here, told) = (sim.clone(), log.clone());
    sim.spawn("reader", None, async move {
        for call in 1..=5 {
            for _ in 0..6 {
                work(&here, 500).await;
            }
            here.charge(CostOp::Syscall, 1);
            here.return_to_user().await;
            told.tell(&here, format_args!("read {call}"));
        }
    });
    run(&mut simulation);
    sim.check();
    log.text()
}

#[test]
fn a_reader_gives_way_inside_its_call_unless_preemption_is_lazy() {
    insta::assert_snapshot!(kswapd_beside_a_reader(Preemption::Voluntary, 4_700), @r"
     3001 us cpu0 read 1
     5001 us cpu0 kswapd runs
    10001 us cpu0 kswapd sleeps
    11002 us cpu0 read 2
    14003 us cpu0 read 3
    17004 us cpu0 read 4
    20005 us cpu0 read 5
    ");
    // The end of the second call comes before the tick at 8 ms.
    insta::assert_snapshot!(kswapd_beside_a_reader(Preemption::Lazy, 4_700), @r"
     3001 us cpu0 read 1
     6002 us cpu0 kswapd runs
    11002 us cpu0 kswapd sleeps
    11002 us cpu0 read 2
    14003 us cpu0 read 3
    17004 us cpu0 read 4
    20005 us cpu0 read 5
    ");
    // The tick at 8 ms comes before the end of the third call.
    insta::assert_snapshot!(kswapd_beside_a_reader(Preemption::Lazy, 7_300), @r"
     3001 us cpu0 read 1
     6002 us cpu0 read 2
     8000 us cpu0 kswapd runs
    13000 us cpu0 kswapd sleeps
    14003 us cpu0 read 3
    17004 us cpu0 read 4
    20005 us cpu0 read 5
    ");
}

/// kswapd works for 60 ms at a stretch, with a place to give way after each 100 us, and a reader that slept wakes up at
/// `at` microseconds on its CPU.
fn reader_behind_kswapd(preemption: Preemption, at: u64) -> u64 {
    let mut machine = hardware(1);
    (machine.scheduler, machine.preemption) = (Some(Scheduler::Cfs), preemption);
    let (mut simulation, sim) = boot(machine);
    let runs = Rc::new(Cell::new(0));
    let (here, told) = (sim.clone(), Rc::clone(&runs));
    sim.spawn("reader", None, async move {
        nap(&here, at).await;
        told.set(here.now().0 / 1000);
    });
    let here = sim.clone();
    sim.spawn("kswapd", None, async move {
        for _ in 0..600 {
            work(&here, 100).await;
        }
    });
    run(&mut simulation);
    runs.get()
}

#[test]
fn kswapd_which_never_returns_to_a_program_gives_way_at_the_tick_where_preemption_is_lazy() {
    let both = |at| [Preemption::Voluntary, Preemption::Lazy].map(|lazy| reader_behind_kswapd(lazy, at));
    assert_eq!(both(25_050), [25_100, 28_000]);
    assert_eq!(both(27_950), [28_000, 28_000]);
    assert_eq!(both(28_050), [28_100, 32_000]);
}

#[test]
fn a_tick_that_ends_a_turn_leaves_the_task_one_more_tick_where_preemption_is_lazy() {
    let turns = |preemption| {
        let mut machine = hardware(1);
        (machine.scheduler, machine.preemption) = (Some(Scheduler::Eevdf), preemption);
        let (mut simulation, sim) = boot(machine);
        let log = Log::default();
        for name in ["A", "B"] {
            start(&sim, &log, name, None, 20_000);
        }
        run(&mut simulation);
        (log.text(), sim.statistics().context_switches)
    };
    let (voluntary, lazy) = (turns(Preemption::Voluntary), turns(Preemption::Lazy));
    insta::assert_snapshot!(voluntary.0, @r"
        0 us cpu0 A begins
     4000 us cpu0 B begins
    40000 us cpu0 A ends
    40000 us cpu0 B ends
    ");
    insta::assert_snapshot!(lazy.0, @r"
        0 us cpu0 A begins
     8000 us cpu0 B begins
    36000 us cpu0 A ends
    40000 us cpu0 B ends
    ");
    assert_eq!((voluntary.1, lazy.1), (12, 6), "times that a CPU took up a task");
}

#[test]
fn under_a_scheduler_too_the_fast_path_changes_nothing() {
    use Preemption::{Lazy, Voluntary};
    use Scheduler::{Cfs, Eevdf};
    for (scheduler, preemption) in [(Cfs, Voluntary), (Cfs, Lazy), (Eevdf, Voluntary), (Eevdf, Lazy)] {
        let both = [true, false].map(|fast| {
            let mut machine = hardware(2);
            (machine.scheduler, machine.preemption) = (Some(scheduler), preemption);
            let (simulation, sim) = boot(machine);
            let mut simulation = if fast { simulation } else { simulation.without_fast_path() };
            let queue = sim.new_queue();
            for name in ["A", "B", "C"] {
                let here = sim.clone();
                sim.spawn(name, None, async move {
                    for _ in 0..200 {
                        work(&here, 130).await;
                        let _ = here.wake_all(queue);
                        here.charge(CostOp::Syscall, 1);
                        here.return_to_user().await;
                    }
                });
            }
            let here = sim.clone();
            sim.spawn("sleeper", None, async move {
                for _ in 0..100 {
                    let _ = here.wait(queue, WaitReason::KswapdIdle, Some(Nanos::from_micros(900))).await;
                    work(&here, 70).await;
                }
            });
            run(&mut simulation);
            sim.check();
            sim.statistics()
        });
        assert_eq!(both[0], both[1], "{scheduler:?}, {preemption:?}");
    }
}
