//! No OOM kill while reclaimable memory would have sufficed.

mod drill;
mod storm;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use kernel::{Kernel, OomCall};
use mm::Version;
use mm::version::rules::{InodeCluster, InodeReclaim, Rule};
use pagetide_sim::run::{Checks, verify_watched};

use super::liveness::{Calls, Left, NO_HOPE, Oracle, overlong};
use super::{number_from_env, text_of, world};
use drill::Effort;
use storm::World;

/// What the oracle says of a kill.
#[derive(Debug, Clone)]
pub struct Verdict {
    call: OomCall,
    now: i64,
    rcu: i64,
    after: [i64; 4],
    not_clean: u64,
    in_ail: u64,
    evicted: u64,
    managed: u64,
    free: u64,
    lru: u64,
    slab: [u64; 2],
}

#[derive(Debug)]
struct Digest {
    kills: Vec<Verdict>,
    events: u64,
}

fn run(world: &World, checks: Checks) -> Result<Digest, String> {
    let plan = world.plan.clone();
    let calls = Calls::new(world.bounds());
    let mut oracle = Oracle::new(calls.clone());
    let of_program = calls.clone();
    let kills = Rc::new(RefCell::new(Vec::new()));
    let (found, watched) = (Rc::clone(&kills), Cell::new(false));
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let watch = move |kernel: &Kernel<_, _>| {
            if !watched.replace(true) {
                let found = Rc::clone(&found);
                kernel.before_oom_kills(move |mem, call| {
                    found.borrow_mut().push(Verdict {
                        call,
                        now: drill::surplus(mem, call),
                        rcu: drill::freed_already(mem, call),
                        after: Effort::ALL.map(|effort| drill::after(mem, call, effort)),
                        not_clean: mem.fs.xfs_log.items().not_clean(),
                        in_ail: mem.fs.xfs_log.items().in_ail(),
                        evicted: mem.fs.vfs.count(),
                        managed: mem.core.alloc.zones().iter().map(|zone| zone.managed.0).sum(),
                        free: mem.core.alloc.free_pages().0,
                        lru: mem.cache.trees().total_pages(),
                        slab: [mem.slab_pages(true), mem.slab_pages(false)],
                    });
                });
            }
            oracle.look(Kernel::machine(kernel), || Left::of(kernel));
        };
        verify_watched(&world.spec, checks, watch, move |system| storm::main(system, plan, of_program))
    }));
    match ended {
        Ok(Ok((result, statistics))) => {
            if let Some(problem) = overlong(&calls, &result.stalls) {
                return Err(problem);
            }
            Ok(Digest { kills: kills.take(), events: statistics.events })
        }
        Ok(Err(error)) if world::is_refusal(&error) => Ok(Digest { kills: Vec::new(), events: 0 }),
        Ok(Err(error)) => Err(error.to_string()),
        Err(panic) => Err(text_of(panic.as_ref())),
    }
}

fn kernel(name: &str, reclaim: InodeReclaim, cluster: InodeCluster) -> Version {
    let mut kernel = Version::parse(name).expect("a kernel");
    kernel.rules = kernel.rules.with(Rule::InodeReclaim(reclaim)).with(Rule::InodeCluster(cluster));
    kernel
}

#[test]
#[allow(clippy::print_stdout)]
fn explore() {
    let from = number_from_env("FROM").unwrap_or(0);
    let count = number_from_env("COUNT").unwrap_or(4);
    let names = std::env::var("KERNELS").unwrap_or("linux-5.7".to_owned());
    for name in names.split(',') {
        for (reclaim, cluster) in [
            (InodeReclaim::Waits, InodeCluster::MayGo),
            (InodeReclaim::PassesBy, InodeCluster::MayGo),
            (InodeReclaim::Waits, InodeCluster::Pinned),
            (InodeReclaim::PassesBy, InodeCluster::Pinned),
        ] {
            let kernel = kernel(name, reclaim, cluster);
            if std::env::var("ONLY").is_ok_and(|only| only != format!("{reclaim:?}{cluster:?}")) {
                continue;
            }
            for seed in from..from + count {
                let world = World::draw(seed, &kernel);
                let begin = std::time::Instant::now();
                match run(&world, Checks::Spread(10)) {
                    Ok(Digest { kills, events }) => {
                        println!(
                            "{name} {reclaim:?} {cluster:?} {seed}: {} kills, {events} events, {:.1?}",
                            kills.len(),
                            begin.elapsed()
                        );
                        for kill in kills {
                            println!(
                                "KILL {name} {reclaim:?} {cluster:?} {seed} {} log{} {kill:?}",
                                world.spec.hardware.devices[0].name, world.spec.hardware.devices[0].xfs_log
                            );
                        }
                    }
                    Err(problem) if problem.starts_with(NO_HOPE) => {
                        println!("{name} {reclaim:?} {cluster:?} {seed}: NOHOPE {problem}")
                    }
                    Err(problem) => {
                        println!("{name} {reclaim:?} {cluster:?} {seed}: FAIL {problem}\n{world}")
                    }
                }
            }
        }
    }
}
