//! `small-files` through the whole simulator: what a run makes and leaves, and that slab keeps less of memory
//! where it is reclaimed while watermarks are boosted.

use kernel::Filesystem;
use sim::run::{Checks, verify};
use sim::{Program, SimResult, SimRun, SimSystem, Statistics, machines};
use units::{Bytes, Nanos};
use workload::{System, Workload};

const MIB: u64 = 1 << 20;

/// A run on the source's machine with `mib` of memory.
pub(crate) fn spec(kernel: &str, mib: u64, seed: u64, params: &[(&str, &str)]) -> SimRun {
    let kernel = mm::Version::parse(kernel).expect("a kernel");
    let (hardware, layout) = machines::build("evo-ssd", Bytes(mib * MIB), &kernel).expect("a machine");
    let workload = Workload::new("small-files", params.iter().copied()).expect("its parameters");
    let filesystem = match workload.params().choice("filesystem") {
        Some("ext4") => Filesystem::Ext4,
        _ => Filesystem::Xfs,
    };
    SimRun {
        filesystem,
        seed,
        sample_period: Nanos::from_millis(100),
        ..SimRun::new(Program::Workload(workload), kernel, hardware, layout)
    }
}

fn play(kernel: &str, mib: u64, seed: u64, params: &[(&str, &str)]) -> (SimResult, Statistics) {
    let spec = spec(kernel, mib, seed, params);
    let program = spec.program.clone();
    verify(&spec, Checks::Spread(4), |system| program.run(system)).expect("it ends")
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
    let [inodes, pages] = ["nr_inodes", "nr_file_pages"].map(|name| created.vmstat[name]);
    assert!(inodes > 1000 && pages > 1000, "{inodes} inodes, {pages} pages");
    // XFS may keep inodes for its worker.
    assert!(deleted.vmstat["nr_dentries"] < 100, "{}", deleted.vmstat["nr_dentries"]);
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
    let files_of_each = |params: &[(&str, &str)]| {
        let few = [("processes", "1"), ("files", "40"), ("loops", "1"), ("names", "off"), ("delete", "off")];
        let params = [params, &few].concat();
        let workload = Workload::new("small-files", params.iter().copied()).expect("its parameters");
        let program = move |sys: SimSystem| async move {
            let mut outcome = Program::Workload(workload).run(sys.clone()).await?;
            for directory in sys.read_dir("d00").await? {
                let files = sys.read_dir(&format!("d00/{directory}")).await?.len();
                outcome.samples.entry("files".into()).or_default().push(files as f64);
            }
            Ok(outcome)
        };
        let (result, _) =
            verify(&spec("linux-5.3", 64, 1, &params), Checks::AtTheEnd, program).expect("it ends");
        result.outcome.samples["files"].clone()
    };
    assert_eq!(files_of_each(&[("per_directory", "15")]), [15.0, 15.0, 10.0]);
    // The third one is the first one again.
    assert_eq!(files_of_each(&[("per_directory", "15"), ("subdirectories", "2")]).iter().sum::<f64>(), 40.0);
    assert_eq!(files_of_each(&[]), [40.0]);
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

/// Unreclaimable slab when all files are gone and no checkpoint was written since: up to 5.18 an intent to free
/// extents, its end and their vectors, some 3.5 to a page; then the intent alone, 9 to a page.
#[test]
fn removing_files_of_xfs_holds_what_frees_their_extents() {
    let held = |kernel| play(kernel, 64, 1, &FEW).0.vmstat["nr_slab_unreclaimable"];
    let (whole, whiteouts) = (held("linux-5.10"), held("linux-6.1"));
    let more = 9000 * 2 / 7 - 9000 / 9;
    assert!(whole > whiteouts + more * 4 / 5, "{whole} and {whiteouts} pages");
}

/// A slab of 39 buffer heads has a vector of as many pointers, eight of them to a page; one of 21 dentries has one of
/// 192 bytes, and one of 27 inodes one of 256.
#[test]
fn who_pays_for_objects_takes_memory_for_each_of_their_slabs_since_5_9() {
    let params =
        [("filesystem", "ext4"), ("file_size", "16k"), ("files", "2000"), ("loops", "1"), ("delete", "off")];
    let [before, since] = ["linux-5.7", "linux-5.10"].map(|kernel| play(kernel, 512, 1, &params).0.vmstat);
    let more = since["nr_slab_unreclaimable"] - before["nr_slab_unreclaimable"];
    let vectors = (since["nr_dirtied"] / 39 / 8) + (2000 / 21 / 21) + (2000 / 27 / 16);
    assert!((vectors..vectors + 16).contains(&more), "{more} pages for {vectors}");
}
