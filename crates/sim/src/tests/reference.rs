//! The machine against naive models of it.

use proptest::prelude::*;

use super::*;

const SLICE: u64 = 3_000;

/// Round robin on one CPU, written down in the plainest way: tasks are lists of pieces of work in
/// microseconds; returns when each task ends.
fn round_robin(tasks: &[Vec<u64>], latency: u64, switch: u64) -> Vec<u64> {
    let mut left: Vec<Vec<u64>> = tasks.iter().map(|pieces| pieces.iter().rev().copied().collect()).collect();
    let mut queue: Vec<usize> = (0..tasks.len()).collect();
    let mut ends = vec![0; tasks.len()];
    let mut now = latency;
    while !queue.is_empty() {
        let task = queue.remove(0);
        now += switch;
        let mut slice = SLICE;
        loop {
            if left[task].is_empty() {
                ends[task] = now;
                break;
            }
            let piece = left[task].last_mut().expect("just seen");
            let runs = slice.min(*piece);
            (now, slice, *piece) = (now + runs, slice - runs, *piece - runs);
            if *piece == 0 {
                left[task].pop();
            }
            if slice == 0 && queue.is_empty() {
                slice = SLICE;
            } else if slice == 0 {
                queue.push(task);
                break;
            }
        }
    }
    ends
}

fn ends_on(cpus: u16, tasks: &[Vec<u64>], latency: u64, switch: u64) -> (Vec<u64>, crate::Statistics) {
    let mut machine = hardware(cpus);
    machine.costs.set("wakeup_latency", Nanos::from_micros(latency)).expect("a cost");
    machine.costs.set("context_switch", Nanos::from_micros(switch)).expect("a cost");
    let (mut simulation, sim) = boot(machine);
    let ends = Rc::new(RefCell::new(vec![0; tasks.len()]));
    for (number, pieces) in tasks.iter().cloned().enumerate() {
        let (here, ends) = (sim.clone(), Rc::clone(&ends));
        sim.spawn("task", None, async move {
            for piece in pieces {
                work(&here, piece).await;
            }
            ends.borrow_mut()[number] = here.now().0 / 1000;
        });
    }
    simulation.run_until_idle(Nanos::from_secs(100)).expect("it ends");
    sim.check();
    let ends = ends.take();
    (ends, sim.statistics())
}

fn pieces() -> impl Strategy<Value = Vec<Vec<u64>>> {
    let piece = prop_oneof![1_u64..50, 900_u64..1_100, 2_990_u64..3_010, 1_u64..20_000];
    prop::collection::vec(prop::collection::vec(piece, 1..8), 1..6)
}

proptest! {
    #[test]
    fn one_cpu_is_a_round_robin(tasks in pieces(), latency in 0_u64..100, switch in 0_u64..10) {
        let (ends, _) = ends_on(1, &tasks, latency, switch);
        prop_assert_eq!(ends, round_robin(&tasks, latency, switch));
    }

    /// Whatever the number of CPUs: all work is done once, no CPU does more than time allows, and
    /// no CPU idles while there is work (so the end comes no later than Graham's bound).
    #[test]
    fn work_is_neither_lost_nor_doubled(tasks in pieces(), cpus in 1_u16..6) {
        let (ends, statistics) = ends_on(cpus, &tasks, 0, 0);
        let lengths: Vec<u64> = tasks.iter().map(|pieces| pieces.iter().sum()).collect();
        let (total, longest) = (lengths.iter().sum::<u64>(), lengths.iter().copied().max().unwrap_or(0));
        let end = ends.iter().copied().max().unwrap_or(0);
        let busy: Vec<u64> = statistics.cpu_busy.iter().map(|busy| busy.0 / 1000).collect();
        prop_assert_eq!(busy.iter().sum::<u64>(), total);
        prop_assert!(busy.iter().all(|&busy| busy <= end), "{:?} in {}", busy, end);
        prop_assert!(ends.iter().zip(&lengths).all(|(end, length)| end >= length));
        prop_assert!(end >= longest && end >= total.div_ceil(u64::from(cpus)));
    }
}
