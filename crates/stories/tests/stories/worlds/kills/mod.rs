//! Whether the OOM killer had to: in random small worlds with XFS, full of inodes and pinned memory.
//!
//! A kill is *needless* when reclaimable memory would have sufficed: had everything been written that is
//! dirty, and dropped that nobody uses, the request would have found its page above the min mark of a zone
//! that it may use, and more than a 16th of all memory beside it ([`drill`]). What waits for a grace period of
//! RCU, or on a per-CPU list, is free already and does not count. The 16th is for what no reclaimer that
//! does not wait can have: inodes in checkpoints that are not on the disk (at most twice a 512th of memory in
//! bytes of the log, some ten times that in memory), and what is in use only just now.
//!
//! Source 3 says of kernels whose inode reclaim does not wait: with clusters pinned, memory is used up when
//! somebody is killed; without, up to 45 % of it is not. Worlds are in proportion to its machine
//! ([`storm::Pace`]). In tiny ones as fast as real machines every kernel kills early at times: the disk is not
//! given the time. There, too, only reclaim without pinned clusters uses up the reserve ([`STARVED`]).
//!
//! `PAGETIDE_STORMS=2000 cargo test -p pagetide-stories --release kills` runs more of them.

mod drill;
mod storm;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use kernel::{Kernel, OomCall};
use mm::Version;
use mm::version::rules::{InodeCluster, InodeReclaim, Rule};
use sim::run::{Checks, Left, verify_watched};

use super::liveness::{Calls, NO_HOPE, Oracle, overlong};
use super::{number_from_env, text_of, world};
use storm::{Pace, World};

/// How many worlds an ordinary test run makes.
const STORMS: u64 = 24;

/// What was left when somebody was killed.
#[derive(Debug, Clone)]
#[allow(dead_code)] // Some of it is shown where a test fails.
struct Kill {
    call: OomCall,
    /// Pages above what the request needs, without anybody's doing.
    freed_already: i64,
    /// The same if all were written and dropped.
    emptied: i64,
    /// Pages of the machine.
    managed: u64,
    free: u64,
    not_clean: u64,
    in_ail: u64,
}

impl Kill {
    fn reclaimable(&self) -> i64 {
        self.emptied - self.freed_already.max(0)
    }

    fn is_needless(&self) -> bool {
        self.reclaimable() > (self.managed / 16).cast_signed()
    }
}

/// Runs a world; whoever was killed in it, or the text of whatever went wrong.
fn run(world: &World, checks: Checks) -> Result<Vec<Kill>, String> {
    let plan = world.plan.clone();
    let calls = Calls::new(world.bounds());
    let mut oracle = Oracle::new(calls.clone());
    let of_program = calls.clone();
    let kills = Rc::new(RefCell::new(Vec::new()));
    let (found, watches) = (Rc::clone(&kills), Cell::new(false));
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let watch = move |kernel: &Kernel<_, _>| {
            if !watches.replace(true) {
                let found = Rc::clone(&found);
                kernel.before_oom_kills(move |mem, call| {
                    found.borrow_mut().push(Kill {
                        call,
                        freed_already: drill::freed_already(mem, call),
                        emptied: drill::emptied(mem, call),
                        managed: mem.core.alloc.zones().iter().map(|zone| zone.managed.0).sum(),
                        free: mem.core.alloc.free_pages().0,
                        not_clean: mem.fs.xfs_log.items().not_clean(),
                        in_ail: mem.fs.xfs_log.items().in_ail(),
                    });
                });
            }
            oracle.look(Kernel::machine(kernel), || Left::of(kernel));
        };
        verify_watched(&world.spec, checks, watch, move |system| storm::main(system, plan, of_program))
    }));
    match ended {
        Ok(Ok((result, _))) => overlong(&calls, &result.stalls).map_or_else(|| Ok(kills.take()), Err),
        Ok(Err(error)) if world::is_refusal(&error) => Ok(kills.take()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(panic) => match text_of(panic.as_ref()) {
            text if text.starts_with(NO_HOPE) => Ok(kills.take()),
            text => Err(text),
        },
    }
}

/// A kernel whose inode reclaim does not wait, with clusters pinned or not.
fn kernel(name: &str, cluster: InodeCluster) -> Version {
    let mut kernel = Version::parse(name).expect("a kernel");
    let reclaim = Rule::InodeReclaim(InodeReclaim::PassesBy);
    kernel.rules = kernel.rules.with(reclaim).with(Rule::InodeCluster(cluster));
    kernel
}

fn kills_of(seed: u64, world: &World, checks: Checks) -> Vec<Kill> {
    run(world, checks).unwrap_or_else(|problem| panic!("storm {seed}: {problem}\n{world}"))
}

#[test]
fn with_both_features_nobody_is_killed_where_reclaimable_memory_would_have_sufficed() {
    let presets: Vec<&str> = Version::presets().map(|(name, _)| name).collect();
    let count = number_from_env("PAGETIDE_STORMS").unwrap_or(STORMS);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    let (next, totals) = (AtomicU64::new(0), Mutex::new((0, Vec::new())));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= count {
                        break;
                    }
                    let name = presets[usize::try_from(seed).expect("small") % presets.len()];
                    let kernel = kernel(name, InodeCluster::Pinned);
                    let world = World::draw(seed, &kernel, Pace::InProportion);
                    let kills = kills_of(seed, &world, Checks::Spread(10));
                    let mut totals = totals.lock().expect("no thread panics with the lock");
                    totals.0 += kills.len();
                    let needless = kills.into_iter().filter(Kill::is_needless);
                    totals.1.extend(needless.map(|kill| format!("storm {seed}: {kill:?}\n{world}")));
                }
            });
        }
    });
    let (kills, needless) = totals.into_inner().expect("no thread panics with the lock");
    assert!(
        needless.is_empty(),
        "{} of {kills} kills are needless:\n{}",
        needless.len(),
        needless.join("\n")
    );
    assert!(kills as u64 * 4 > count, "{kills} kills in {count} worlds: they are too tame");
}

/// A world, one in some 500, where the thread that pushes the AIL waits for pages to read evicted buffers into, until
/// the reserve is used up as well: a seventh of memory is inodes that nobody can write for want of four pages.
const STARVED: [u64; 1] = [74];

#[test]
fn without_pinned_clusters_reclaim_that_does_not_wait_kills_while_much_could_have_been_written() {
    let kills = |cluster| -> Vec<Kill> {
        let worlds = STARVED.map(|seed| (seed, World::draw(seed, &kernel("linux-5.7", cluster), Pace::Tiny)));
        worlds.iter().flat_map(|(seed, world)| kills_of(*seed, world, Checks::Spread(10))).collect()
    };
    let alone = kills(InodeCluster::MayGo);
    let starved = |kill: &&Kill| kill.is_needless() && kill.free * 100 < kill.managed && kill.in_ail > 0;
    let worst =
        alone.iter().filter(starved).map(|kill| kill.reclaimable() * 100 / kill.managed.cast_signed());
    assert!(worst.max().is_some_and(|share| share >= 12), "{alone:#?}");
    let both = kills(InodeCluster::Pinned);
    assert!(!both.iter().any(Kill::is_needless), "{both:#?}");
}
