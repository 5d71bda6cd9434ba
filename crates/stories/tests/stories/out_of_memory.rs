//! Running out of memory: who is killed, what is told of it, what a program that survives can still do, and what
//! happens when nobody is left.

use std::future::Future;

use mm::version::rules::OomReaper;
use sim::run::Checks;
use sim::{SimResult, SimRun, SimSystem};
use units::{Bytes, Nanos};
use workload::system::{Advice, System, TaskSpec};
use workload::{Errno, Outcome, WorkloadError};

use crate::story::{machine, told};

/// Of which some 3700 pages are free once the kernel runs.
const MIB: u64 = 16;

fn tell<F, Fut>(kernel: &str, program: F) -> SimResult
where
    F: FnOnce(SimSystem) -> Fut + 'static,
    Fut: Future<Output = Result<Outcome, WorkloadError>> + 'static,
{
    told(&machine(kernel, MIB), Checks::Spread(100), program)
}

/// Holds so many pages for 5 s, if it lives that long.
async fn hold(sys: SimSystem, adj: i16, pages: u64, locked: bool) {
    if sys.set_oom_score_adj(adj).await.is_err() {
        return;
    }
    let Ok(memory) = sys.map_anonymous(Bytes(pages * 4096)).await else { return };
    let _ =
        if locked { sys.lock_memory(&memory, 0, pages).await } else { sys.touch(&memory, 0, pages).await };
    sys.sleep(Nanos::from_secs(5)).await;
}

/// Starts these one after another, each with its `oom_score_adj` and pages; says who was killed.
async fn holders(
    sys: &SimSystem,
    who: &[(&'static str, i16, u64)],
) -> Result<Vec<&'static str>, WorkloadError> {
    let mut tasks = Vec::new();
    for &(name, adj, pages) in who {
        tasks.push((name, sys.spawn(TaskSpec::named(name), move |sys| hold(sys, adj, pages, false)).await?));
        sys.sleep(Nanos::from_millis(100)).await;
    }
    let mut killed = Vec::new();
    for (name, task) in tasks {
        if let Err(error) = sys.join(task).await {
            assert_eq!(error.errno, Errno::Killed);
            killed.push(name);
        }
    }
    Ok(killed)
}

fn with_metric(value: u64) -> Outcome {
    let mut outcome = Outcome::default();
    outcome.metrics.insert("killed".into(), value as f64);
    outcome
}

#[test]
fn oom_score_adj_weighs_thousandths_of_the_memory_and_minus_1000_spares() {
    // A thousandth of this machine are 4 pages; the eater is the last to be taken where it may be.
    for (adj, victim) in [
        ([0, 0, -999], "large"),
        ([-1000, 0, -999], "small"),
        ([-400, 0, -999], "small"), // 1500 pages less 1600 against 600.
        ([-200, 0, -999], "large"), // 1500 pages less 800.
        ([0, 250, -999], "small"),  // 600 pages and 1000 against 1500.
        ([0, 200, -999], "large"),  // 600 pages and 800.
        ([-1000, -1000, -999], "eater"),
    ] {
        let result = tell("linux-6.1", move |sys| async move {
            sys.set_oom_score_adj(-1000).await?;
            let who = [("large", adj[0], 1500), ("small", adj[1], 600), ("eater", adj[2], 3000)];
            Ok(with_metric(holders(&sys, &who).await?.len() as u64))
        });
        let first = &result.oom_kills[0];
        assert!(!first.by_limit && !first.panicked);
        assert_eq!(first.task, victim, "{adj:?}: {:#?}", first.memory);
    }
}

/// What a workload has measured when a task of it dies is worth as much as ever.
#[test]
fn a_program_whose_task_is_killed_goes_on_and_its_metrics_and_kills_are_both_kept() {
    let result = tell("linux-6.1", |sys| async move {
        sys.set_oom_score_adj(-1000).await?;
        let killed = holders(&sys, &[("idle", -1000, 1500), ("eater", 0, 3000)]).await?;
        assert_eq!(killed, ["eater"]);
        let memory = sys.map_anonymous(Bytes(100 * 4096)).await?;
        sys.touch(&memory, 0, 100).await?; // There is memory again.
        Ok(with_metric(killed.len() as u64))
    });
    assert_eq!(result.outcome.metrics["killed"], 1.0);
    assert_eq!(result.oom_kills.len(), 1);
    assert_eq!(result.vmstat["oom_kill"], 1);
}

#[test]
fn where_nobody_may_be_killed_the_kernel_panics_and_the_run_ends_there() {
    let result = tell("linux-6.1", |sys| async move {
        sys.set_oom_score_adj(-1000).await?;
        let killed = holders(&sys, &[("victim", 0, 500), ("eater", -1000, 5000)]).await?;
        panic!("{killed:?}: nothing comes after a panic");
    });
    let [kill, panic] = &result.oom_kills[..] else { panic!("{:#?}", result.oom_kills) };
    assert_eq!((&*kill.task, kill.panicked), ("victim", false));
    assert_eq!((&*panic.task, panic.panicked), ("eater", true), "who asked");
    assert_eq!(
        panic.memory[panic.memory.len() - 2..],
        [
            "Out of memory and no killable processes...",
            "Kernel panic - not syncing: System is deadlocked on memory"
        ]
    );
    assert_eq!(result.simulated, panic.at, "the machine stopped there");
    assert!(result.outcome.metrics.is_empty());
}

#[test]
fn a_report_has_the_lines_of_the_kernel_in_their_order_and_says_why_reclaim_gave_up() {
    let result = tell("linux-5.4", |sys| async move {
        sys.set_oom_score_adj(-1000).await?;
        let pinned = sys.map_anonymous(Bytes(2000 * 4096)).await?;
        sys.lock_memory(&pinned, 0, 2000).await?;
        Ok(with_metric(holders(&sys, &[("eater", 7, 3000)]).await?.len() as u64))
    });
    let kill = &result.oom_kills[0];
    let mut lines = kill.memory.iter();
    for part in [
        "eater invoked oom-killer: gfp_mask=GFP_HIGHUSER_MOVABLE, order=0, oom_score_adj=7",
        "CPU: ",
        "Call Trace:",
        " __alloc_pages_slowpath",
        " handle_mm_fault",
        "Mem-Info:",
        "active_anon:",
        " unevictable:2000 dirty:0 writeback:0",
        " slab_reclaimable:",
        " free:",
        "kB all_unreclaimable? ",
        " mlocked:",
        "lowmem_reserve[]:",
        "Node 0 DMA32: ",
        "0 pages in swap cache",
        "5120 pages RAM",
        "Tasks state (memory values in pages):",
        "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name",
        "         -1000 workload",
        "             7 eater",
        "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,global_oom,task_memcg=/,task=eater,pid=1,uid=0",
        "Out of memory: Killed process 1 (eater) total-vm:",
        "oom_reaper: reaped process 1 (eater), now anon-rss:0kB",
    ] {
        assert!(lines.any(|line| line.contains(part)), "no `{part}` here or too late:\n{:#?}", kill.memory);
    }
    assert!(kill.gauges["nr_free_pages"] < 600 && kill.gauges["nr_mlock"] == 2000, "{:?}", kill.gauges);
    let why = kill.why.join("\n");
    for part in [
        "no zone would pass its min mark if all file pages were free",
        "runs of reclaim for it: ",
        "Node 0 DMA32: ",
        ": could not pass",
        "the last run, pages scanned/freed and slab objects scanned, by priority: 12: ",
        " % unevictable (2000)",
    ] {
        assert!(why.contains(part), "no `{part}` in\n{why}");
    }
}

#[test]
fn what_a_victim_has_locked_comes_free_when_it_ends_and_since_5_18_at_once() {
    for (kernel, rule) in [
        ("linux-5.10", OomReaper::SparesLocked),
        ("linux-5.10+oom-reaps-locked", OomReaper::TakesLocked),
        ("linux-6.1", OomReaper::TakesLocked),
    ] {
        assert_eq!(mm::Version::parse(kernel).expect("a preset").rules.oom_reaper, rule);
        let result = tell(kernel, |sys| async move {
            sys.set_oom_score_adj(-1000).await?;
            let locks = sys.spawn(TaskSpec::named("locks"), |sys| hold(sys, 0, 2000, true)).await?;
            sys.sleep(Nanos::from_millis(100)).await;
            let killed = holders(&sys, &[("eater", 0, 1900)]).await?;
            assert!(sys.join(locks).await.is_err(), "it has the most");
            Ok(with_metric(killed.len() as u64))
        });
        let first = &result.oom_kills[0];
        assert_eq!(first.task, "locks");
        let spared = rule == OomReaper::SparesLocked;
        let line = if spared { "now anon-rss:8000kB" } else { "now anon-rss:0kB" };
        assert!(first.memory.last().is_some_and(|last| last.contains(line)), "{:?}", first.memory.last());
        // It sleeps on, and its locked memory is gone with it only then.
        assert_eq!(result.outcome.metrics["killed"], f64::from(u8::from(spared)), "{kernel}");
        assert_eq!(result.vmstat["nr_mlock"], 0);
        let [locked, unlocked] = ["unevictable_pgs_mlocked", "unevictable_pgs_munlocked"];
        assert_eq!((result.vmstat[locked], result.vmstat[unlocked]), (2000, 2000));
    }
}

#[test]
fn unlocked_memory_is_on_the_lists_again() {
    let result = tell("linux-6.1", |sys| async move {
        let memory = sys.map_anonymous(Bytes(300 * 4096)).await?;
        sys.lock_memory(&memory, 0, 200).await?;
        sys.touch(&memory, 200, 100).await?;
        let counter = async |name: &str| {
            let counters = sys.vmstat().await?;
            Ok::<u64, WorkloadError>(counters.iter().find(|(of, _)| of == name).expect("a counter").1)
        };
        assert_eq!(counter("nr_mlock").await?, 200, "what was touched behind it is not");
        sys.lock_memory(&memory, 100, 200).await?;
        assert_eq!(counter("nr_mlock").await?, 300, "what was locked before counts once");
        assert!(counter("unevictable_pgs_culled").await? > 250, "all but a batch");
        drop(memory);
        assert_eq!(counter("nr_mlock").await?, 0);
        Ok(Outcome::default())
    });
    assert_eq!(result.oom_kills, []);
}

/// What a task has swapped out would have to come back, or to go with it: it counts as what it has in memory does.
#[test]
fn the_victim_is_who_holds_most_in_memory_and_in_swap_together_and_the_report_tells_both() {
    let spec = SimRun { swap: "disk:4M".parse().expect("an area"), ..machine("linux-6.1", MIB) };
    let story = |sys: SimSystem| async move {
        sys.set_oom_score_adj(-1000).await?;
        let swapped = |sys: SimSystem| async move {
            sys.set_oom_score_adj(0).await?; // Not as its parent.
            let memory = sys.map_anonymous(Bytes(900 * 4096)).await?;
            sys.touch(&memory, 0, 900).await?;
            sys.advise(&memory, Advice::PageOut).await?;
            sys.sleep(Nanos::from_secs(5)).await;
            Ok::<(), WorkloadError>(())
        };
        let swapped = sys.spawn(TaskSpec::named("swapped"), swapped).await?;
        let locked = sys.spawn(TaskSpec::named("locked"), |sys| hold(sys, 0, 600, true)).await?;
        sys.sleep(Nanos::from_millis(500)).await;
        let eater = sys.spawn(TaskSpec::named("eater"), |sys| hold(sys, -1000, 3500, true)).await?;
        let killed = [sys.join(swapped).await.is_err(), sys.join(locked).await.is_err()];
        let _ = sys.join(eater).await;
        assert_eq!(killed, [true, true], "no life is enough");
        Ok(Outcome::default())
    };
    let result = told(&spec, Checks::Spread(100), story);
    let victims: Vec<&str> = result.oom_kills.iter().map(|kill| &*kill.task).collect();
    assert_eq!(victims[..2], ["swapped", "locked"], "600 pages in memory are fewer than 900 in swap");
    let first = &result.oom_kills[0];
    let row = |name: &str| {
        let line = first.memory.iter().find(|line| line.starts_with('[') && line.ends_with(name));
        let columns =
            line.expect("each task has a line").rsplit_once(']').expect("it begins with its number").1;
        let numbers = columns.split_whitespace().take(6).map(|number| number.parse().expect("a number"));
        let [_, _, total_vm, rss, _, swapents] = numbers.collect::<Vec<u64>>()[..] else {
            panic!("six numbers: {columns}")
        };
        [total_vm, rss, swapents]
    };
    let [total_vm, rss, swapents] = row("swapped");
    assert!(
        swapents >= 890 && rss + swapents <= total_vm,
        "{rss} of {total_vm} in memory, {swapents} in swap"
    );
    assert!(row("locked")[1] >= 600 && row("locked")[2] < 100, "{:?}", row("locked"));
    assert!(first.memory.iter().any(|line| line.starts_with("Total swap = 4092kB")), "{:#?}", first.memory);
}
