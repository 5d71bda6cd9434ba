//! Plans of sweeps: which runs, in which order, and what is refused.

use std::sync::atomic::Ordering;

use super::*;

fn request(subject: &str, options: &[(Swept, &str)]) -> SweepRequest {
    SweepRequest {
        subject: subject.to_owned(),
        options: options.iter().map(|&(what, text)| (what, text.to_owned())).collect(),
        seeds: None,
        base: Request::new(Subject::of_argument(subject)),
        reading: ReplayOptions::default(),
    }
}

fn labels(request: &SweepRequest) -> Vec<String> {
    plan(request).unwrap().runs.into_iter().map(|run| run.label).collect()
}

#[test]
fn the_first_axis_is_the_slowest_and_single_values_are_no_axes() {
    let options =
        [(Swept::Set, "vm.swappiness=10"), (Swept::Kernel, "linux-6.1,linux-6.12"), (Swept::Mem, "256M..1G")];
    let request = request("hot-and-stream", &options);
    let labels = labels(&request);
    assert_eq!(labels.len(), 6);
    assert_eq!(labels[..2], ["kernel=linux-6.1, mem=256M", "kernel=linux-6.1, mem=512M"]);
    let plan = plan(&request).unwrap();
    assert_eq!(
        (plan.size().as_str(), &plan.fixed[0][..]),
        ("6 runs: kernel (2) x mem (3)", "vm.swappiness=10")
    );
    let last = &plan.planned().unwrap()[5].scenario;
    let shown = (last.kernel.as_ref().unwrap().to_string(), last.mem.unwrap().to_string());
    assert_eq!(shown, ("linux-6.12".to_owned(), "1G".to_owned()));
    assert_eq!(last.sysctls["vm.swappiness"], "10");
}

#[test]
fn parameters_and_seeds_are_axes_too() {
    let options = [(Swept::Param, "hot=25M..100M"), (Swept::Seed, "7")];
    let request = SweepRequest { seeds: Some(2), ..request("hot-and-stream", &options) };
    assert_eq!(
        labels(&request),
        [
            "hot=25M, seed=7",
            "hot=25M, seed=8",
            "hot=50M, seed=7",
            "hot=50M, seed=8",
            "hot=100M, seed=7",
            "hot=100M, seed=8"
        ]
    );
}

#[test]
fn a_trace_is_swept_over_policies_or_over_kernels() {
    let policies = [(Swept::Policy, "lru,clock"), (Swept::Capacity, "1k,10k")];
    assert_eq!(labels(&request("trace.csv", &policies))[1], "policy=lru, capacity=10k");
    let kernels = [(Swept::Mem, "256M..512M"), (Swept::Kernel, "linux-5.5"), (Swept::Kernel, "linux-6.12")];
    assert_eq!(labels(&request("trace.csv", &kernels)).len(), 4);
}

#[test]
fn what_is_no_sweep_is_refused() {
    let said = [
        ("hot-and-stream", &[(Swept::Set, "vm.swappiness=10")][..]),
        ("hot-and-stream", &[(Swept::Set, "vm.swappiness=199..201")]),
        ("hot-and-stream", &[(Swept::Set, "vm.swappiness=1,2"), (Swept::Set, "vm.swappiness=3")]),
        ("hot-and-stream", &[(Swept::Set, "vm.swappiness=0..199"), (Swept::Seed, "0..99")]),
        ("hot-and-stream", &[(Swept::Param, "hott=1M,2M")]),
        ("hot-and-stream", &[(Swept::Seed, "1,x")]),
        ("hot-and-stream", &[(Swept::Policy, "lru,clock")]),
        ("hot-n-stream", &[(Swept::Mem, "256M,512M")]),
        ("trace.csv", &[(Swept::Param, "hot=1M,2M")]),
        ("trace.csv", &[(Swept::Policy, "lru,clock"), (Swept::Capacity, "10"), (Swept::Mem, "256M")]),
        ("trace.csv", &[(Swept::Policy, "lru"), (Swept::Capacity, "0,10")]),
        ("trace.csv", &[(Swept::Kernel, "linux-6.1,linux-6.12")]),
    ]
    .map(|(subject, options)| match plan(&request(subject, options)) {
        Ok(plan) => plan.size(),
        Err(error) => format!("{error}; {}", error.hint().unwrap_or_default()),
    });
    insta::assert_snapshot!(said.join("\n"), @"
    there is nothing to sweep over: no option has several values; give one option several values, as in `--mem 256M..2G` or `--set vm.swappiness=10,60`
    `201` is no value for `vm.swappiness`: it takes 0 to 200; 
    `vm.swappiness` is given twice; list its values in one option: `vm.swappiness=A,B`
    this makes 20000 runs; a sweep takes 1000 at most; take larger steps, as in `0..1000+100` or `1..1000*10`
    unknown parameter `hott`; did you mean `hot`?
    `seed`: `x` is no seed, a whole number from 0 to 2^64 - 1; write values as `10,100,1000`, numbers also as `0..11` or `0..100+10`, sizes as `256M..2G` (doubling) or `256M..512M+32M`; what has commas or `..` itself goes in double quotes
    `--policy` is for traces, and `hot-and-stream` is a workload; leave it out
    unknown workload `hot-n-stream`; did you mean `hot-and-stream`?
    `--param` is for workloads, and `trace.csv` is a trace; leave it out
    a sweep is over policies or over kernels, not over both; make two sweeps, or `pagetide replay` with both
    a cache needs room for at least one object; write it as in `--capacity 10000`
    there is no cache to replay the trace on; `--mem 256M` is a kernel's page cache, `--policy lru --capacity 10k` a plain policy
    ");
}

#[test]
fn a_run_that_fails_does_not_keep_others_from_running_and_an_interruption_keeps_what_is_there() {
    let options = [(Swept::Mem, "32M..128M"), (Swept::Param, "hot=1M"), (Swept::Param, "stream=10M")];
    let plan = plan(&request("hot-and-stream", &options)).unwrap();
    let control = Control::default();
    let stop = std::sync::Arc::clone(&control.stop);
    let control = SweepControl::Runs(control);
    let refuse_first = |index: usize, _: &Recording| {
        if index == 0 { Err(LabError::refused("full disk", "make room")) } else { Ok(()) }
    };
    let outcomes = plan.run(vec![None; 3], 1, &control, refuse_first).unwrap();
    let ended: Vec<_> =
        outcomes.iter().map(|outcome| (outcome.recording().is_some(), outcome.failure().is_some())).collect();
    assert_eq!(ended, [(true, true), (true, false), (true, false)], "recorded, failed: one is not kept");
    let error = problem(&outcomes, false).unwrap();
    assert_eq!((error.to_string().as_str(), error.class()), ("1 of 3 runs failed", Class::Input));

    stop.store(true, Ordering::Relaxed);
    let kept = |outcome: &Ended| outcome.recording().filter(|_| outcome.failure().is_none()).cloned();
    let finished = outcomes.iter().map(kept).collect();
    let outcomes = plan.run(finished, 1, &control, |_, _| Ok(())).unwrap();
    assert!(matches!(outcomes[..], [Ended::NotRun, _, Ended::Recorded(_)]));
    assert_eq!(problem(&outcomes, true).unwrap().to_string(), "interrupted: 2 of 3 runs finished");
}
