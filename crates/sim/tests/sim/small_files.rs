//! `small-files` through the whole simulator: what a run makes and leaves, and that slab keeps less of memory
//! where it is reclaimed while watermarks are boosted.

use std::cell::Cell;
use std::rc::Rc;

use kernel::{Filesystem, Kernel};
use pagetide_sim::run::{Checks, verify_watched};
use pagetide_sim::{Program, Sim, SimResult, SimRun, Statistics, machines};
use units::{Bytes, Nanos};
use workload::Workload;

const MIB: u64 = 1 << 20;

/// A run on the source's machine with `mib` of memory; `watch` sees the kernel after every event.
fn watched(
    (kernel, mib, seed): (&str, u64, u64),
    params: &[(&str, &str)],
    watch: impl FnMut(&Kernel<Sim, mm::base::event::NoTrace>) + 'static,
) -> (SimResult, Statistics) {
    let kernel = mm::Version::parse(kernel).expect("a kernel");
    let (hardware, layout) = machines::build("evo-ssd", Bytes(mib * MIB), &kernel).expect("a machine");
    let workload = Workload::new("small-files", params.iter().copied()).expect("its parameters");
    let filesystem = match workload.params().choice("filesystem") {
        Some("ext4") => Filesystem::Ext4,
        _ => Filesystem::Xfs,
    };
    let spec = SimRun {
        filesystem,
        seed,
        sample_period: Nanos::from_millis(100),
        ..SimRun::new(Program::Workload(workload.clone()), kernel, hardware, layout)
    };
    let program = move |system| async move { workload.run(system).await };
    verify_watched(&spec, Checks::Spread(4), watch, program).expect("it ends")
}

fn play(kernel: &str, mib: u64, seed: u64, params: &[(&str, &str)]) -> (SimResult, Statistics) {
    watched((kernel, mib, seed), params, |_| {})
}

const FEW: [(&str, &str); 3] = [("processes", "3"), ("files", "3000"), ("loops", "3")];

#[test]
fn the_same_run_is_the_same_run_and_another_seed_is_not() {
    for filesystem in ["xfs", "ext4"] {
        let params = [&FEW[..], &[("filesystem", filesystem)]].concat();
        let run = |seed| {
            let (result, statistics) = play("linux-5.3", 64, seed, &params);
            (result.outcome, result.vmstat, statistics)
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7).2.event_hash, run(8).2.event_hash, "processes begin at other times");
    }
}

/// ```text
///   loop 1        loop 2        loop 3       created | rm -rf | deleted
///   names grow    names grow    names grow           |        |
///   sample        sample        sample               |        | no file, no dentry, no page of one
/// ```
#[test]
fn each_loop_is_a_sample_its_names_go_with_it_and_the_deletion_leaves_nothing() {
    let (result, _) = play("linux-5.3", 64, 1, &FEW);
    let rates = &result.outcome.samples["files_per_sec"];
    assert_eq!(rates.len(), 3);
    assert!(rates.iter().all(|&rate| rate > 100.0), "{rates:?}");
    assert_eq!(result.outcome.metrics["files_created"], 9000.0);

    let names: Vec<&str> = result.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["created", "deleted"]);
    let [created, deleted] = &result.phases[..] else { panic!("two phases") };
    let anonymous = result.columns.iter().position(|name| name == "nr_anon_pages").expect("it is sampled");
    let most = result.rows.iter().map(|(_, row)| row[anonymous]).max().expect("there are samples");
    // 3000 names of 2128 bytes are 1559 pages, and each process has a stack.
    assert!((1400..1800).contains(&most), "{most}");
    assert!(created.vmstat["nr_anon_pages"] < 100, "{}", created.vmstat["nr_anon_pages"]);
    assert!(created.vmstat["nr_inodes"] > 3000 && created.vmstat["nr_file_pages"] > 3000);
    assert!(deleted.vmstat["nr_inodes"] < 100, "{}", deleted.vmstat["nr_inodes"]);
    assert!(deleted.vmstat["nr_file_pages"] < 200, "{}", deleted.vmstat["nr_file_pages"]);
}

/// What a shell's `time` prints: the processes' own 16 us for each file, and what they did in the kernel;
/// together no more than the CPUs have.
#[test]
fn user_and_system_time_are_those_of_all_processes_that_were_joined() {
    let (result, statistics) = play("linux-5.3", 64, 1, &FEW);
    let metric = |name: &str| result.outcome.metrics[name];
    assert!((metric("user_seconds") - (9000.0 * 16e-6)).abs() < 1e-9, "{}", metric("user_seconds"));
    let busy: f64 = statistics.cpu_busy.iter().map(|time| time.as_secs_f64()).sum();
    let told = metric("user_seconds") + metric("system_seconds");
    assert!(told <= busy && told > 0.8 * busy, "{told} of {busy} s");
    assert!(metric("elapsed_seconds") <= result.simulated.as_secs_f64());
}

#[test]
fn a_directory_is_left_after_so_many_files_or_after_three_minutes() {
    let directories = |params: &[(&str, &str)]| {
        let most = Rc::new(Cell::new(0));
        let seen = Rc::clone(&most);
        let watch = move |kernel: &Kernel<Sim, _>| {
            let files =
                kernel.mem(|mem| mem.vmstat().find(|(name, _)| *name == "nr_dentries").map(|(_, n)| n));
            seen.set(seen.get().max(files.unwrap_or(0)));
        };
        let params =
            [params, &[("processes", "1"), ("files", "40"), ("loops", "1"), ("names", "off")]].concat();
        let _ = watched(("linux-5.3", 64, 1), &params, watch);
        most.get()
    };
    // 40 files need 4 directories more in tens than in one.
    assert_eq!(directories(&[("per_directory", "10")]), directories(&[("per_directory", "40")]) + 3);
    assert_eq!(directories(&[]), directories(&[("per_directory", "40")]));
}

/// The patch that the workload was written for, over several seeds, as single runs of so small a machine differ.
#[test]
fn slab_keeps_less_of_memory_where_it_is_reclaimed_while_watermarks_are_boosted() {
    let params = [("processes", "4"), ("loops", "8"), ("delete", "off")];
    let share =
        |kernel: &str| -> f64 { (1..=2).map(|seed| slab_share(&play(kernel, 128, seed, &params).0)).sum() };
    let (before, after) = (share("linux-5.3"), share("linux-5.3+shrink-slab-when-boosted"));
    assert!(after < 0.97 * before, "{before} before, {after} after");
}

/// The mean of the second half of the samples.
fn slab_share(result: &SimResult) -> f64 {
    let place = |name: &str| result.columns.iter().position(|column| column == name).expect("it is sampled");
    let slab = ["nr_slab_reclaimable", "nr_slab_unreclaimable"].map(place);
    let file = ["nr_active_file", "nr_inactive_file"].map(place);
    let second_half = &result.rows[result.rows.len() / 2..];
    let shares = second_half.iter().map(|(_, row)| {
        let sum = |places: [usize; 2]| places.map(|place| row[place] as f64).iter().sum::<f64>();
        sum(slab) / (sum(slab) + sum(file))
    });
    shares.sum::<f64>() / second_half.len() as f64
}
