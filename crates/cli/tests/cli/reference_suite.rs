//! Folders of mmtests: read, written, and read by its own scripts, where they are.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::statistics::{PUBLISHED, SHRINKER, VANILLA, lines};
use crate::support::{Scene, refused, skipped};

const RUNS: [&str; 2] = ["5.3.0-rc3-vanilla", "5.3.0-rc3-shrinker-v1r1"];

/// Counters that it has further rows of, in the kernel's order; those that no kernel has are missing.
const OTHERS: &str = "numa_hit numa_miss numa_interleave numa_local nr_vmscan_write nr_vmscan_immediate_reclaim
    pgpgin pgpgout pswpin pswpout pgalloc_dma pgalloc_dma32 pgalloc_normal pgalloc_movable allocstall_dma
    allocstall_dma32 allocstall_normal allocstall_movable pgmajfault pginodesteal slabs_scanned kswapd_inodesteal
    numa_huge_pte_updates numa_hint_faults_local numa_hint_faults numa_pages_migrated pgmigrate_success
    pgmigrate_fail compact_migrate_scanned compact_free_scanned compact_isolated compact_success compact_fail
    compact_stall compact_daemon_wake compact_daemon_migrate_scanned compact_daemon_free_scanned thp_fault_alloc
    thp_fault_fallback thp_collapse_alloc thp_collapse_alloc_failed thp_split_page thp_split_page_failed pgfault
    numa_pte_updates";

/// A folder such as mmtests leaves, with the figures of the change log of August 2019: samples, durations, and
/// what it tells of reclaim.
fn log(scene: &Scene) {
    let told = [
        (VANILLA, "501.82 user 4401.44 system 8124.76", [45_382_917, 30_869_570, 99_388, 74_131]),
        (SHRINKER, "497.29 user 4424.08 system 8358.05", [33_451_026, 25_239_655, 328_410, 5_830]),
    ];
    for (index, (run, (samples, time, counters))) in RUNS.iter().zip(told).enumerate() {
        let folder = scene.path().join("log").join(run).join("iter-0");
        std::fs::create_dir_all(folder.join("fsmark/logs")).unwrap();
        let names = ["pgscan_kswapd", "pgsteal_kswapd", "pgscan_direct", "pgsteal_direct"];
        let others =
            OTHERS.split_whitespace().zip((1_u64..).map(|number| number * number * (7 + index as u64)));
        let counters: Vec<(&str, u64)> = names.into_iter().zip(counters).chain(others).collect();
        let vmstat = |times: u64| {
            let lines = counters.iter().map(|(name, count)| format!("{name} {}\n", 1000 + times * count));
            format!("nr_free_pages {}\n{}", 500 + times, lines.collect::<String>())
        };
        let start = 1_566_000_000 + 10_000 * index;
        let begin = format!("start :: {start}\ntest begin :: fsmark {start}\n");
        let end = format!(
            "time :: fsmark {time} elapsed\ntest exit :: fsmark 0\ntest end :: fsmark {}\n",
            start + 8125
        );
        let state = format!(
            "{begin}file start :: /proc/vmstat\n{}file start :: /proc/meminfo\nMemFree: 1 kB\n\
             file end :: /proc/vmstat\n{}file end :: /proc/zoneinfo\n{end}",
            vmstat(0),
            vmstat(1)
        );
        let rows = lines(samples)
            .lines()
            .map(|rate| format!("     5  2236960  4096  {rate}  91237\n"))
            .collect::<String>();
        let head =
            "#  fs_mark -d /x -D 10000 -s 4096 -L 60 -S0\n\nFSUse%  Count  Size  Files/sec  App Overhead\n";
        for (name, text) in [
            ("tests-timestamp", begin + &end),
            ("tests-sysstate", state),
            ("fsmark/logs/fsmark-1.log", format!("{head}{rows}")),
        ] {
            std::fs::write(folder.join(name), text).unwrap();
        }
    }
}

/// The tables of `pagetide stats` without the name of the test.
fn tables(scene: &Scene, folder: &str, style: &str) -> String {
    let text = scene.data(&format!("stats {folder} --style {style}"));
    text.strip_prefix("fsmark\n").expect("the name of the test").to_owned()
}

#[test]
fn an_imported_run_gives_the_published_tables() {
    let scene = Scene::new();
    log(&scene);
    scene.data("import mmtests log --out kept");
    let text = tables(&scene, "kept", "mmtests");
    let durations = "                   5.3.0-rc3   5.3.0-rc3
                     vanillashrinker-v1r1
Duration User         501.82      497.29
Duration System      4401.44     4424.08
Duration Elapsed     8124.76     8358.05
";
    assert!(text.starts_with(&format!("{PUBLISHED}\n{durations}\n")), "{text}");
    for row in [
        "Ops Kswapd efficiency %                 68.02          75.45",
        "Ops Kswapd velocity                   5585.75        4002.25",
        "Ops Page rescued immediate                  -              -",
    ] {
        assert!(text.contains(row), "{row}\n{text}");
    }
    // One run of it, too, and by our own statistics.
    scene.data(&format!("import mmtests log/{} --out one", RUNS[1]));
    assert!(scene.data("stats one").contains("5.3.0-rc3-shrinker-v1r1"));
}

#[test]
fn what_is_exported_is_imported_again_as_it_was() {
    let scene = Scene::new();
    log(&scene);
    scene.data("import mmtests log --out kept");
    for form in ["mmtests", "mmtests-head"] {
        scene.data(&format!("export {form} kept --out {form}"));
        scene.data(&format!("import mmtests {form} --out again-{form}"));
        for folder in ["1-5.3.0-rc3-vanilla", "2-5.3.0-rc3-shrinker-v1r1"] {
            let recording =
                |of: &str| std::fs::read(scene.path().join(of).join(folder).join("recording.json")).unwrap();
            assert_eq!(recording("kept"), recording(&format!("again-{form}")), "{form} {folder}");
        }
    }
}

/// Counters and samples of a simulated run, with a kind of samples that mmtests has no benchmark for.
#[test]
fn simulated_runs_are_exported_and_what_is_left_out_is_said() {
    let scene = Scene::new();
    scene.data("compare small-files --mem 128M --param loops=3 -q --out kept");
    insta::assert_snapshot!(scene.shown("export mmtests kept --out log"), @"
    exported to log
    exit 0
    ");
    scene.data("run hot-and-stream --mem 32M --param hot=1M --param stream=64M --out other");
    insta::assert_snapshot!(scene.shown("export mmtests other --out other-log"), @"
    warning: `hot_pass_seconds` is left out: mmtests has no benchmark with such samples
    exported to other-log
    exit 0
    ");
    scene.data("import mmtests log --out again");
    assert_eq!(tables_below(&scene, "kept"), tables_below(&scene, "again"));
}

fn tables_below(scene: &Scene, folder: &str) -> String {
    let text = scene.data(&format!("stats {folder} --style mmtests"));
    text.split_once('\n').expect("the name of the test").1.to_owned()
}

#[test]
fn what_is_no_run_of_it_is_refused_and_nothing_is_left_behind() {
    let scene = Scene::new();
    log(&scene);
    std::fs::create_dir_all(scene.path().join("theirs/photos")).unwrap();
    let broken = scene.path().join("broken/run/iter-0");
    std::fs::create_dir_all(broken.join("fsmark/logs")).unwrap();
    std::fs::write(broken.join("tests-timestamp"), "test begin :: fsmark 1\ntime :: fsmark 1.0 user\n")
        .unwrap();
    scene.data("run huge-faults --mem 64M --out faults");
    let shown = refused(
        &scene,
        &[
            "import mmtests theirs --out new",
            "import mmtests missing --out new",
            "import mmtests broken --out new",
            "import mmtests log --out theirs",
            "export mmtests log --out new",
            "export mmtests faults --out theirs",
        ],
    );
    insta::assert_snapshot!(shown, @"
    $ import mmtests theirs --out new
    error: there is no run of mmtests in `theirs`
    hint: name `work/log` of mmtests, or the folder of one run in it
    exit 1

    $ import mmtests missing --out new
    error: cannot read `missing`
      caused by: No such file or directory (os error 2)
    hint: name `work/log` of mmtests, or the folder of one run in it
    exit 1

    $ import mmtests broken --out new
    error: `broken/run/iter-0/tests-timestamp`, line 2: the row is too short
    exit 1

    $ import mmtests log --out theirs
    error: `theirs` exists already
    hint: name a new folder, or remove this one first
    exit 1

    $ export mmtests log --out new
    error: there is no recording in `log`
    hint: `pagetide run WORKLOAD --out DIR` makes a recording
    exit 1

    $ export mmtests faults --out theirs
    error: `theirs` exists already
    hint: name a new folder, or remove this one first
    exit 1
    ");
}

/// Where mmtests is, if somebody said so: a checkout of any age. Its scripts need Perl and R.
const VARIABLE: &str = "PAGETIDE_MMTESTS";

/// Its own script prints our tables from our export; the file is the newest generation or that of 2019.
#[test]
fn its_own_script_prints_the_same_tables_from_our_export() {
    let Some(checkout) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
        skipped(&format!("{VARIABLE} does not say where mmtests is"));
        return;
    };
    if let Some(program) = ["perl", "R"].into_iter().find(|program| !is_installed(program)) {
        skipped(&format!("mmtests needs `{program}`, which is not there"));
        return;
    }
    let head = checkout.join("bin/lib/MMTests/ExtractShellpack.pm").is_file();
    let style = if head { "mmtests-head" } else { "mmtests" };
    let scene = Scene::new();
    log(&scene);
    scene.data("import mmtests log --out kept");
    scene.data(&format!("export {style} kept --out exported"));
    let theirs = [&[][..], &["--print-monitor", "duration"], &["--print-monitor", "mmtests-vmstat"]]
        .map(|arguments| compared(&scene, &checkout, arguments));
    let ours = tables(&scene, "kept", style);
    // What a kernel does not count is 0 to mmtests; nothing else may differ.
    let with_zeros = |line: &str| format!("{line} ").replace("    - ", " 0.00 ").trim_end().to_owned() + "\n";
    let ours: String = ours.lines().map(with_zeros).collect();
    assert_eq!(ours, theirs.join("\n"));
}

fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

fn compared(scene: &Scene, checkout: &Path, arguments: &[&str]) -> String {
    // A module of Perl that it loads for rows that these tables do not have.
    let modules = scene.path().join("perl/List");
    std::fs::create_dir_all(&modules).unwrap();
    let module = "package List::BinarySearch; use Exporter 'import'; our @EXPORT_OK = ('binsearch_range');\n\
        sub binsearch_range(&$$\\@) { die 'not here' } 1;\n";
    std::fs::write(modules.join("BinarySearch.pm"), module).unwrap();
    let output = Command::new("perl")
        .arg(checkout.join("bin/compare-mmtests.pl"))
        .args(["-d", "exported", "-b", "fsmark", "-n", &RUNS.join(",")])
        .args(arguments)
        .env("PERL5LIB", scene.path().join("perl"))
        .current_dir(scene.path())
        .output()
        .expect("perl is there");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.is_empty(), "{told}");
    String::from_utf8(output.stdout).expect("UTF-8")
}
