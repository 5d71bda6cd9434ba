//! Attribution of waits in whole runs: nothing is lost and nothing told twice. Which are futile is told
//! in scenes, beside the mechanism.

use std::collections::BTreeMap;
use std::sync::Arc;

use pagetide_sim::{Ended, Program, SimResult, SimRun, WaitKind, machines};
use units::Bytes;
use workload::Workload;

const MIB: u64 = 1 << 20;

fn play(kernel: &str) -> SimResult {
    let kernel = mm::Version::parse(kernel).expect("a kernel");
    let (hardware, layout) = machines::build("s390-fcp", Bytes(64 * MIB), &kernel).expect("a machine");
    let params = [("readers", "8"), ("file", "16M")];
    let workload = Workload::new("sequential-readers", params).expect("its parameters");
    let spec = SimRun::new(Program::Workload(workload), kernel, hardware, layout);
    pagetide_sim::run::run(&spec, Arc::default(), |_| {}).expect("it ends")
}

#[test]
fn each_wait_is_in_one_sum_and_in_the_stall_of_its_task() {
    for kernel in ["linux-2.6.32", "linux-6.1"] {
        let result = play(kernel);
        let mut sums: BTreeMap<_, (u64, u64)> = BTreeMap::new();
        for waits in &result.waits {
            assert!(waits.phase <= result.phases.len());
            assert!(waits.longest <= waits.spent && waits.count > 0, "{waits:?}");
            let counted: u64 = waits.lengths.iter().map(|&count| u64::from(count)).sum();
            assert_eq!(counted, waits.count, "{waits:?}");
            if waits.futile {
                let kind = WaitKind::of(waits.reason);
                assert_eq!(waits.ended, Ended::TimedOut);
                assert!(matches!(kind, WaitKind::Writes | WaitKind::Reclaim), "{waits:?}");
            }
            let sum = sums.entry((waits.task, waits.reason)).or_default();
            *sum = (sum.0 + waits.count, sum.1 + waits.spent.get());
        }
        let idle = |reason| WaitKind::of(reason) == WaitKind::Idle;
        sums.retain(|&(_, reason), _| !idle(reason));
        let stalls: BTreeMap<_, _> = (result.stalls.iter())
            .map(|stall| ((stall.task, stall.reason), (stall.count, stall.total.get())))
            .collect();
        assert_eq!(sums, stalls, "{kernel}");
        assert!(result.waits.iter().any(|waits| idle(waits.reason)), "idleness is told, too");
    }
}
