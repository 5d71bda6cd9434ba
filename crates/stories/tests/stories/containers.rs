//! `containers` through the whole simulator: what random worlds of it showed of guests of User-Mode Linux, a mechanism
//! a test.

use kernel::Filesystem;
use sim::run::Checks;
use sim::{Program, SimResult, SimRun, SimSystem, machines};
use units::{Bytes, Nanos};
use workload::system::{OpenMode, System};
use workload::{TaskSpec, Workload};

use crate::ended;
use crate::story;

/// One container alone, on a guest of 512 MiB with ext4.
fn alone(kernel: &str, params: &[(&str, &str)]) -> SimResult {
    alone_by(1, kernel, params)
}

fn alone_by(seed: u64, kernel: &str, params: &[(&str, &str)]) -> SimResult {
    let kernel = mm::Version::parse(kernel).expect("a preset");
    let (hardware, layout) =
        machines::build(workload::scenario::UML_MACHINE, Bytes(512 << 20), &kernel).expect("a machine");
    let fixed = [("b_does", "none"), ("a_memory", "0"), ("a_rounds", "1")];
    let params = [&fixed, params].concat();
    let workload = Workload::new("containers", params.iter().copied()).expect("parameters of the workload");
    let ext4 = Filesystem::by_name("ext4").expect("a filesystem");
    let program = Program::Workload(workload);
    ended(&SimRun { filesystem: ext4, seed, ..SimRun::new(program, kernel, hardware, layout) })
}

fn counted(result: &SimResult, name: &str) -> u64 {
    result.vmstat[name]
}

/// Twice over a file of 16 MiB below 8 MiB: each page is evicted and comes back. Guests of 5.10, 6.1, 6.12 and 7.2
/// counted none of 25,600 pages that were written over, of ext4 and of XFS.
#[test]
fn a_page_that_comes_back_to_be_written_over_is_no_refault() {
    let twice = |does| {
        let sizes = [("a_file", "16M"), ("a_bytes", "16M"), ("a_max", "8M")];
        alone("linux-6.12", &[&sizes[..], &[("a_does", does), ("a_rounds", "2")]].concat())
    };
    assert_eq!(counted(&twice("overwrite"), "workingset_refault_file"), 0);
    assert!(counted(&twice("read"), "workingset_refault_file") > 3_000);
}

/// Below 64 MiB guests of 5.10 and 6.12 wrote nothing of 9 MiB, and of 10 MiB the first 2,457 pages, which are 15 %:
/// halfway between the background threshold and the threshold. With most seeds the flusher is interrupted on its way.
#[test]
fn the_writers_of_a_cgroup_have_the_flusher_begin_halfway_between_its_thresholds() {
    let written = |bytes| {
        let params = [("a_does", "write"), ("a_bytes", bytes), ("a_block", "4k"), ("a_max", "64M")];
        let by = |seed| counted(&alone_by(seed, "linux-6.12", &params), "nr_written");
        (1..=8).map(by).max().expect("eight seeds")
    };
    assert_eq!(written("9M"), 0);
    assert!((2_400..2_560).contains(&written("10M")), "{}", written("10M"));
}

/// Guests of 6.12, a file of 24 MiB that is read in order behind 1 to 16 pages of memory: only behind 14 it begins
/// where markers of readahead take no faults of their own, and takes 192 fewer.
#[test]
fn a_mapping_of_a_guest_begins_where_the_one_before_it_ends() {
    let faults = |pages: u64| {
        let memory = format!("{}k", 4 * pages);
        let sizes = [("a_file", "24M"), ("a_bytes", "24M"), ("a_block", "64k"), ("a_memory", &memory)];
        let result = alone("linux-6.12", &[&sizes[..], &[("a_does", "map")]].concat());
        result.memcg["P/A"]["pgfault"] - pages
    };
    assert_eq!([1, 13, 15].map(faults), [faults(14) + 192; 3]);
}

/// Guests of 6.1, 6.12 and 7.2 read 64 KiB for a file of 64 KiB, and its cgroup had no active page.
#[test]
fn what_tells_of_a_file_that_was_just_laid_out_is_in_memory_and_nobodys() {
    let params = [("a_file", "64k"), ("a_bytes", "64k"), ("a_block", "64k")];
    let result = alone("linux-6.12", &params);
    assert_eq!(counted(&result, "pgpgin"), 64);
    assert_eq!(result.memcg["P/A"]["active_file"], 0);
    assert_eq!(result.memcg["P/A"]["file"], 64 << 10);
}

/// 3,072 pages are dirty, more than the background threshold of the machine. Of the root's those below it are left; a
/// cgroup that has written nothing before has no share of it, and is left none. Guests of 6.12 and 7.2: 2,048 and
/// none.
#[test]
fn a_cgroup_that_has_written_nothing_is_left_nothing_dirty() {
    let left = |group: Option<&'static str>| {
        let kernel = mm::Version::parse("linux-6.12").expect("a preset");
        let (hardware, layout) =
            machines::build(workload::scenario::UML_MACHINE, Bytes(134 << 20), &kernel).expect("a machine");
        let spec = SimRun { hardware, layout, ..story::machine("linux-6.12", 134) };
        let result = story::tell_with(&spec, Checks::AtTheEnd, move |sys| async move {
            sys.lay_out_file("file", Bytes(14 << 20)).await?;
            sys.cgroup_create("A").await?;
            let writer = |sys: SimSystem| async move {
                let file = sys.open("file", OpenMode::ReadWrite).await.expect("it exists");
                for at in 0..12 {
                    sys.write(&file, at << 20, 1 << 20).await.expect("it has room");
                }
                sys.sleep(Nanos::from_millis(50)).await;
            };
            let task = TaskSpec { cgroup: group.map(str::to_owned), ..TaskSpec::named("writer") };
            let task = sys.spawn(task, writer).await?;
            sys.join(task).await?;
            Ok(())
        });
        counted(&result, "nr_dirty")
    };
    assert_eq!([left(None), left(Some("A"))], [2048, 0]);
}
