//! Plans of ablations: which kernels, in which order, what is refused, and that their runs are those of
//! `pagetide run`.

use super::*;
use crate::plan::sweep::SweepControl;
use crate::run::batch::{Control, run_all};

fn request(kernel: Option<&str>) -> Request {
    Request {
        kernel: kernel.map(str::to_owned),
        mem: Some("32M".to_owned()),
        params: vec!["hot=1M".to_owned(), "stream=24M".to_owned()],
        ..Request::new(Subject::Workload("hot-and-stream".to_owned()))
    }
}

fn ablation(kernel: Option<&str>, features: &str, seeds: u64) -> Result<Ablation, LabError> {
    plan(&request(kernel), &[features.to_owned()], seeds)
}

fn kernels(kernel: Option<&str>, features: &str) -> Vec<String> {
    let ablation = ablation(kernel, features, 1).unwrap();
    ablation.variants.into_iter().map(|variant| variant.label).collect()
}

#[test]
fn a_feature_that_the_base_has_is_taken_away_and_one_that_it_lacks_is_added() {
    assert_eq!(
        kernels(None, "root-aging, -shared-memcg-walk"),
        [
            "linux-5.4",
            "linux-5.4+root-aging",
            "linux-5.4-shared-memcg-walk",
            "linux-5.4+root-aging-shared-memcg-walk"
        ],
        "the base is the baseline of the workload's source"
    );
    assert_eq!(kernels(Some("linux-5.5"), "root-aging"), ["linux-5.5", "linux-5.5-root-aging"]);
}

/// Otherwise it would be `linux-5.4+root-aging-root-aging`, which is no kernel.
#[test]
fn what_the_base_itself_changed_is_changed_back() {
    assert_eq!(
        kernels(Some("linux-5.4+root-aging"), "nofragment,root-aging"),
        ["linux-5.4+root-aging", "linux-5.4-nofragment+root-aging", "linux-5.4", "linux-5.4-nofragment"]
    );
    assert_eq!(kernels(Some("linux-5.4-nofragment"), "+nofragment"), ["linux-5.4-nofragment", "linux-5.4"]);
}

/// What is not a full experiment would give numbers that look like effects.
#[test]
fn what_is_no_ablation_is_refused() {
    let said = [
        (None, ""),
        (None, "a,b,c,d,e,f,g"),
        (None, "root-agin"),
        (None, "root-aging,+root-aging"),
        (Some("linux-5.4"), "-root-aging"),
        (Some("linux-5.5"), "+root-aging"),
        (Some("linux-4.20-rc1"), "fragment-stall-v1,root-aging,fragment-stall"),
        (Some("linux-6.1"), "watermark-boost,watermark-boost-v2"),
        (Some("linux-6.12"), "pcp-high-order"),
        (Some("linux-5.10"), "reclaim-retry,pressure-wait"),
        (Some("linux-5.10"), "pressure-wait"),
        (Some("linux-5.44"), "root-aging"),
    ]
    .map(|(kernel, features)| match ablation(kernel, features, 1) {
        Ok(ablation) => ablation.size(),
        Err(error) => format!("{error}; {}", error.hint().unwrap_or_default()),
    });
    insta::assert_snapshot!(said.join("\n"), @"
    there is nothing to ablate: no feature is named; name some, as in `--features root-aging,shared-memcg-walk`; `pagetide list features` has all
    7 features make 128 kernels; an ablation takes 6 features at most; ablate some of them first, then those that matter together
    unknown feature `root-agin`; did you mean `root-aging`?
    feature `root-aging` is named twice; name it once
    `linux-5.4` has no `root-aging`, so it is added and not taken away; write `+root-aging`, or leave the sign out
    `linux-5.5` has `root-aging`, so it is taken away and not added; write `-root-aging`, or leave the sign out
    `fragment-stall-v1` and `fragment-stall` cannot be ablated together: they are forms of one decision, the stall on fragmentation; every subset is run: leave `fragment-stall` out, or another one
    `watermark-boost` and `watermark-boost-v2` cannot be ablated together: they are forms of one decision, the watermark boost; every subset is run: leave `watermark-boost-v2` out, or another one
    `pcp-high-order` and `pcp-auto-size`, which `linux-6.12` has, are forms of one decision: the per-CPU page lists; take `pcp-auto-size` away to get it: `linux-6.12-pcp-auto-size`
    `reclaim-retry` and `pressure-wait` cannot be ablated together: `+pressure-wait` changes nothing in `linux-5.10`: neither its slow path nor its kswapd pauses; every subset is run: leave `pressure-wait` out, or another one
    `+pressure-wait` changes nothing in `linux-5.10`: neither its slow path nor its kswapd pauses; with `-reclaim-retry` it shows: `linux-5.10-reclaim-retry+pressure-wait`
    unknown kernel `linux-5.44`; did you mean `linux-5.4`?
    ");
    let seeds = |seeds| ablation(None, "root-aging", seeds).unwrap_err().to_string();
    assert_eq!(seeds(0), "`--seeds` takes 1 to 10000, not 0");
    assert_eq!(seeds(501), "2 kernels with 501 seeds make 1002 runs; an ablation takes 1000 at most");
    let real = Request { backend: Some("vm:6.12".to_owned()), ..request(None) };
    let error = plan(&real, &["root-aging".to_owned()], 1).unwrap_err();
    assert_eq!(error.to_string(), "features are switched on simulated kernels; `vm:6.12` is a real one");
}

/// The promise of the whole table: a cell of an ablation and `pagetide run` are one number.
#[test]
fn a_run_of_an_ablation_is_the_run_of_that_kernel_alone() {
    let ablation = ablation(None, "root-aging,shared-memcg-walk", 2).unwrap();
    let control = SweepControl::Runs(Control::default());
    let outcomes = ablation.plan.run(vec![None; 8], 0, &control, |_, _| Ok(())).unwrap();
    let ablated = ablation.ablated(&outcomes, View::default());
    for (variant, subset) in ablation.variants.iter().zip(&ablated.subsets) {
        for (seed, run) in [1, 2].into_iter().zip(&subset.runs) {
            let alone = Request { kernel: Some(variant.label.clone()), seed: Some(seed), ..request(None) };
            let scenario = alone.resolve().unwrap();
            let planned = PlannedRun { label: variant::label(&scenario), scenario };
            let batch = run_all(&[planned], 1, &Control::default(), |_, _| Ok(())).unwrap();
            let alone = batch.into_result().unwrap().remove(0);
            let AblatedRun::Recorded(run) = run else { panic!("{} has no run", variant.label) };
            assert_eq!(run.content_hash(), alone.content_hash(), "{}, seed {seed}", variant.label);
            assert_eq!((&run.label, run.seed), (&variant.label, seed));
        }
    }
}

/// An effect of seed 1 against one of seed 2 would be noise that is not there.
#[test]
fn every_seed_runs_on_every_kernel_and_whole_experiments_come_one_after_the_other() {
    let ablation = ablation(None, "root-aging,nofragment", 3).unwrap();
    let runs: Vec<(u64, &str)> = ablation
        .plan
        .planned()
        .unwrap()
        .iter()
        .map(|run| (run.scenario.seed.0, run.label.as_str()))
        .collect();
    let labels: Vec<&str> = ablation.variants.iter().map(|variant| variant.label.as_str()).collect();
    for (seed, whole) in (1..=3).zip(runs.chunks(4)) {
        assert_eq!(whole, labels.iter().map(|&label| (seed, label)).collect::<Vec<_>>());
    }
    let outcomes: Outcomes = (0..12).map(|_| Ended::NotRun).collect();
    assert_eq!(ablation.ablated(&outcomes, View::default()).seeds, [1, 2, 3]);
}
