//! Pressure on memory in whole runs: who has it, in which order, and that it is no more than there was time.

use std::collections::BTreeMap;

use sim::run::{Checks, verify};
use sim::{Program, SimResult, SimRun, machines};
use units::{Bytes, Nanos};
use workload::system::{OpenMode, System, SystemError, TaskSpec};
use workload::{Outcome, Workload};

use crate::ended;
use crate::story::machine;

fn play(workload: &str, kernel: &str, mib: u64, params: &[(&str, &str)]) -> SimResult {
    let kernel = mm::Version::parse(kernel).expect("a preset");
    let (hardware, layout) = machines::build("vm-2cpu", Bytes(mib << 20), &kernel).expect("a machine");
    let workload = Workload::new(workload, params.iter().copied()).expect("parameters of the workload");
    let spec = SimRun {
        sample_period: Nanos::from_millis(100),
        ..SimRun::new(Program::Workload(workload), kernel, hardware, layout)
    };
    ended(&spec)
}

/// Some and full of a group in parts of a thousand of the run.
fn share(result: &SimResult, counters: &BTreeMap<String, u64>) -> (u64, u64) {
    let total =
        |kind: &str| 1_000_000 * counters[&format!("psi_memory_{kind}_total_us")] / result.simulated.get();
    (total("some"), total("full"))
}

fn of_machine(result: &SimResult) -> (u64, u64) {
    share(result, &result.vmstat)
}

/// Totals of the simulated run never fall, are no more than the time that passed, and full is no more than some.
fn check_series(result: &SimResult) {
    let column = |name: &str| result.columns.iter().position(|column| column == name).expect(name);
    let prefixes = result.columns.iter().filter_map(|name| name.strip_suffix("psi_memory_some_total_us"));
    for prefix in prefixes.map(str::to_owned).collect::<Vec<_>>() {
        let [some, full] =
            ["some", "full"].map(|kind| column(&format!("{prefix}psi_memory_{kind}_total_us")));
        let average = column(&format!("{prefix}psi_memory_some_avg10"));
        for rows in result.rows.windows(2) {
            let [(earlier, before), (later, now)] = rows else { unreachable!() };
            let passed = (later.get() - earlier.get()).div_ceil(1000) + 1;
            for place in [some, full] {
                let stalled = now[place].checked_sub(before[place]).expect("totals do not fall");
                // Times of CPUs are weighed when they are folded: what was read aside may be a little less.
                assert!(stalled <= passed + 10_000, "{prefix}: {stalled} us of {passed}");
            }
            assert!(now[full] <= now[some], "{prefix}: all that work are more than some");
            assert!(now[average] <= 10_000);
        }
    }
}

#[test]
fn a_hot_set_that_does_not_fit_is_under_more_pressure_than_one_that_does() {
    let stream = |hot: &str| play("hot-and-stream", "linux-6.12", 64, &[("hot", hot), ("stream", "128M")]);
    let (calm, tight) = (stream("8M"), stream("56M"));
    [&calm, &tight].into_iter().for_each(check_series);
    let [calm, tight] = [&calm, &tight].map(of_machine);
    assert!(tight.0 > calm.0 && tight.1 > calm.1, "{calm:?} {tight:?}");
}

#[test]
fn readers_have_the_more_pressure_the_less_memory_they_have() {
    let some = [112, 224, 512].map(|mib| {
        let result =
            play("sequential-readers", "linux-6.12", mib, &[("file", "32M"), ("prepare", "laid-out")]);
        check_series(&result);
        of_machine(&result).0
    });
    assert!(some[0] >= some[1] && some[1] >= some[2], "{some:?}");
    assert!(some[0] > 0, "{some:?}");
}

/// Its text, and who is told of what: the group that thrashes, what is above it, and nobody else.
#[test]
fn a_program_reads_the_pressure_of_the_cgroup_that_thrashes() {
    const FILE: u64 = 6 << 20;
    let spec = machine("linux-6.12", 64);
    let story = |sys: sim::SimSystem| async move {
        for (group, limit) in [("tight", "4M"), ("wide", "max")] {
            sys.cgroup_create(group).await?;
            sys.cgroup_write(group, "memory.max", limit).await?;
            sys.lay_out_file(group, Bytes(FILE)).await?;
        }
        assert_eq!(
            sys.cgroup_read("tight", "memory.pressure").await?,
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n\
             full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
        );
        let mut tasks = Vec::new();
        for group in ["tight", "wide"] {
            let spec = TaskSpec::named(group).in_cgroup(group);
            tasks.push(
                sys.spawn(spec, move |sys| async move {
                    let file = sys.open(group, OpenMode::Read).await?;
                    while sys.now() < Nanos::from_secs(3) {
                        for offset in (0..FILE).step_by(64 << 10) {
                            sys.read(&file, offset, 64 << 10).await?;
                            sys.compute(Nanos::from_micros(200));
                        }
                    }
                    Ok::<_, SystemError>(())
                })
                .await?,
            );
        }
        for task in tasks {
            sys.join(task).await??;
        }
        let (tight, wide, machine) =
            (pressure(&sys, "tight").await?, pressure(&sys, "wide").await?, pressure(&sys, "").await?);
        assert!(tight["some avg10"] > 0.1 && tight["some total"] > 10_000.0, "{tight:?}");
        assert_eq!(tight["some total"], tight["full total"], "it is alone there");
        assert_eq!(wide["some total"], 0.0, "{wide:?}");
        // The other one works on the other CPU: half of what goes on is stalled, by CPU and so of either kind.
        let machine = (machine["some total"], machine["full total"]);
        assert!(machine.0 > 0.0 && machine.0 < 0.75 * tight["some total"], "{machine:?} {tight:?}");
        assert!(machine.1 <= machine.0, "{machine:?}");
        Ok(Outcome::default())
    };
    let (result, _) = verify(&spec, Checks::Spread(500), story).expect("the story ends well");
    check_series(&result);
}

/// `memory.pressure` by kind and name.
async fn pressure<S: System>(sys: &S, group: &str) -> Result<BTreeMap<String, f64>, SystemError> {
    let text = sys.cgroup_read(group, "memory.pressure").await?;
    let numbers = text.lines().flat_map(|line| {
        let (kind, rest) = line.split_once(' ').expect("a kind");
        let pairs = rest.split(' ').map(|pair| pair.split_once('=').expect("a name"));
        pairs.map(move |(name, value)| (format!("{kind} {name}"), value.parse().expect("a number")))
    });
    Ok(numbers.collect())
}
