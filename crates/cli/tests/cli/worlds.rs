//! `pagetide worlds`: small worlds of two models, forms of the summary, and wrong inputs.

use crate::support::{Scene, refused};

/// Two models, one of which stands for a real kernel: no guest is booted here.
const SMALL: &str = "worlds --on sim --kernel linux-5.5 --against linux-5.4 --workload sequential-readers \
                     --repeats 1 --model-seeds 1";

#[test]
fn worlds_are_summed_up_in_every_form() {
    let scene = Scene::new();
    let command = format!("{SMALL} --seeds 1..3 --out worlds");
    insta::assert_snapshot!(scene.shown(&format!("{command} -q")), @"
    3 worlds of linux-5.4 beside the model

    % of counters that are at least so near
     scope   workload            worlds  counters  spread    2 %   10 %   25 %
     global  sequential-readers       3        33   100.0  100.0  100.0  100.0
     global  all                      3        33   100.0  100.0  100.0  100.0

    headline metrics
     workload            scope   metric                  worlds  % within  median
                                                                      5 %   error
     sequential-readers  global  throughput_kb_per_sec        3     100.0     0 %
     sequential-readers  global  slowest_reader_seconds       3     100.0     0 %
     sequential-readers  global  fastest_reader_seconds       1     100.0     0 %
    exit 0
    ");
    assert_eq!(scene.names(), ["worlds", "worlds/worlds.parquet", "worlds/worlds.txt"]);
    // Nothing is left to run: each form is that of the same table.
    let json: serde_json::Value =
        serde_json::from_str(&scene.data(&format!("{command} --format json"))).unwrap();
    assert_eq!((&json["kernel"], &json["worlds"]), (&"linux-5.4".into(), &3.into()));
    assert_eq!(json["shares"][0]["workload"], "sequential-readers");
    let csv = scene.data(&format!("{command} --format csv"));
    assert!(csv.starts_with("table,scope,workload,name,measure,value\nshares,"), "{csv}");
    assert!(scene.data(&format!("{command} --format md")).contains("## headline metrics"));
    let again = format!("{SMALL} --seeds 1..3 --out again -q");
    assert_eq!(scene.data(&again), scene.data(&format!("{command} -q")));
}

#[test]
fn a_dry_run_prints_the_commands_and_what_no_world_has() {
    let scene = Scene::new();
    let shown = scene
        .shown("worlds --on uml:6.12 --machine guest-uml --workload hot-and-stream --seeds 7..7 --dry-run");
    insta::assert_snapshot!(shown, @"
    pagetide run hot-and-stream --mem 452M --param hot=2780k --param hot_reads=417 --param read_size=16k --param stream=2k --on uml:6.12
    pagetide run hot-and-stream --kernel linux-6.12 --machine guest-uml --mem 452M --param hot=2780k --param hot_reads=417 --param read_size=16k --param stream=2k
    never drawn:
      huge of anon-and-file: guests have no huge pages
      advice of huge-faults: guests have no huge pages to ask for
      nodes of huge-faults: guests have one
      warm of huge-faults: no figure of a world is of its readers alone
      disks of sequential-readers: guests of User-Mode Linux have one for files
      scale of small-files: it asks for 16 GiB of memory
      vm.compaction_proactiveness: worlds have what each kernel starts with
      vm.defrag_mode: only 6.15 and later have it
      vm.fragment_stall_order: no kernel was released with it
      thp.enabled: guests have no huge pages
      thp.defrag: guests have no huge pages
      lru_gen.enabled: the name of the kernel says it: `--kernel linux-6.12+lru-gen`
      lru_gen.min_ttl_ms: a file of sysfs, which no run writes
      zswap.enabled: `zswap` before an area of swap says it, and is drawn
      zswap.max_pool_percent: a part of what is drawn of swap
      zswap.accept_threshold_percent: a file of sysfs, which no run writes
      zswap.shrinker_enabled: a file of sysfs, which no run writes
      several CPUs or nodes: guests of User-Mode Linux have one of each
      priorities of swap: areas have those that `swapon` gives
      filesystem ext3, the size of the log of XFS: guests make ext4 and XFS as mkfs does
      readahead of the disk: all worlds have the machine's own
      traces, captured programs: worlds run the workloads of the catalog
      what the kernel lacks: such a draw is made anew
    exit 0
    ");
    assert!(scene.names().is_empty());
}

#[test]
fn what_cannot_be_is_told_before_anything_runs() {
    let scene = Scene::new();
    scene.data(&format!("{SMALL} --seeds 1..1 --out other -q"));
    scene.data(&format!("{SMALL} --seeds 1..1 --out broken -q"));
    scene.file("broken/worlds.parquet", "PAR1").file("file", "");
    std::fs::create_dir(scene.path().join("empty")).unwrap();
    insta::assert_snapshot!(refused(&scene, &[
        "worlds --out w",
        "worlds --seeds 1..3",
        "worlds --seeds 5..1 --out w",
        "worlds --seeds 1..9999999 --out w",
        "worlds --seeds one --out w",
        "worlds --seeds 5 --out w",
        "worlds --seeds 1 --check",
        "worlds --seeds 1..-3 --out w",
        "worlds --seeds 1..1 --workload hot-n-stream --out w",
        "worlds --seeds 1..1 --workload simoop --workload simoop --out w",
        "worlds --seeds 1..1 --on host --out w",
        "worlds --seeds 1..1 --on uml:./linux --out w",
        "worlds --seeds 1..1 --on uml:6.12 --against linux-6.1 --out w",
        "worlds --seeds 1..1 --kernel linux-6.13 --out w",
        "worlds --seeds 1..1 --repeats 0 --out w",
        "worlds --seeds 1..1 --model-seeds 99 --out w",
        "worlds --seeds 1..1 --time soon --out w",
        "worlds --seeds 1..1 --time 0s --out w",
        "worlds --seeds 1..1 --on uml:6.12 --check",
        "worlds --seeds 1..1 --against linux-6.1 --check",
        "worlds --seeds 1..1 --check --out w",
        "run sequential-readers --on uml:6.12 --check",
        &format!("{SMALL} --seeds 1..1 --out empty"),
        &format!("{SMALL} --seeds 1..1 --out file"),
        &format!("{SMALL} --seeds 1..1 --repeats 2 --out other").replace(" --repeats 1", ""),
        &format!("{SMALL} --seeds 1..1 --out broken"),
        &format!("{SMALL} --seeds 1..1 --real-of nowhere --out w"),
        &format!("{SMALL} --seeds 1..1 --real-of broken --out w"),
    ]), @"
    $ worlds --out w
    error: the following required arguments were not provided:
      --seeds <SEEDS>

    Usage: pagetide worlds --seeds <SEEDS> --out <DIR>

    For more information, try '--help'.
    exit 2

    $ worlds --seeds 1..3
    error: the following required arguments were not provided:
      --out <DIR>

    Usage: pagetide worlds --seeds <SEEDS> --out <DIR>

    For more information, try '--help'.
    exit 2

    $ worlds --seeds 5..1 --out w
    error: `--seeds 5..1` is no range of seeds
    hint: write the first and the last one, as in `--seeds 1..500`
    exit 1

    $ worlds --seeds 1..9999999 --out w
    error: `--seeds 1..9999999` makes 9999999 worlds; at most 1000000 are run
    hint: write the first and the last one, as in `--seeds 1..500`
    exit 1

    $ worlds --seeds one --out w
    error: `--seeds one` is no range of seeds
    hint: write the first and the last one, as in `--seeds 1..500`
    exit 1

    $ worlds --seeds 5 --out w
    error: `--seeds 5` does not tell whether it is that seed or so many
    hint: `--seeds 1..5` are 5 seeds, `--seeds 5..5` is the one
    exit 1

    $ worlds --seeds 1 --check
    error: `--seeds 1` does not tell whether it is that seed or so many
    hint: write `--seeds 1..1`
    exit 1

    $ worlds --seeds 1..-3 --out w
    error: `--seeds 1..-3` is no range of seeds
    hint: write the first and the last one, as in `--seeds 1..500`
    exit 1

    $ worlds --seeds 1..1 --workload hot-n-stream --out w
    error: unknown workload `hot-n-stream`
    hint: did you mean `hot-and-stream`?
    exit 1

    $ worlds --seeds 1..1 --workload simoop --workload simoop --out w
    error: `--workload simoop` is given twice
    hint: leave one of them out
    exit 1

    $ worlds --seeds 1..1 --on host --out w
    error: worlds do not run on `host`, which has the memory that it has
    hint: boot a guest by `--on uml:6.12`, or run the model alone by `--on sim`
    exit 1

    $ worlds --seeds 1..1 --on uml:./linux --out w
    error: `uml:./linux` does not tell which kernel of the model stands beside it
    hint: name it, as in `--kernel linux-6.12`
    exit 1

    $ worlds --seeds 1..1 --on uml:6.12 --against linux-6.1 --out w
    error: `--against` stands in for a real kernel, and `--on uml:6.12` is one
    hint: leave one of them out
    exit 1

    $ worlds --seeds 1..1 --kernel linux-6.13 --out w
    error: unknown kernel `linux-6.13`
    hint: did you mean `linux-6.1` or `linux-6.12`?
    exit 1

    $ worlds --seeds 1..1 --repeats 0 --out w
    error: `--repeats` takes 1 to 16, not 0
    exit 1

    $ worlds --seeds 1..1 --model-seeds 99 --out w
    error: `--model-seeds` takes 1 to 16, not 99
    exit 1

    $ worlds --seeds 1..1 --time soon --out w
    error: `--time soon` is no time to work for
    hint: write a whole number with `s`, `m` or `h`, such as `10m`, not 0
    exit 1

    $ worlds --seeds 1..1 --time 0s --out w
    error: `--time 0s` is no time to work for
    hint: write a whole number with `s`, `m` or `h`, such as `10m`, not 0
    exit 1

    $ worlds --seeds 1..1 --on uml:6.12 --check
    error: `--check` looks at the model's own state, and `--on uml:6.12` has none
    hint: leave `--on` out, or `--check`
    exit 1

    $ worlds --seeds 1..1 --against linux-6.1 --check
    error: `--check` takes one kernel of the model, and `--against` is a second one
    hint: name it by `--kernel`
    exit 1

    $ worlds --seeds 1..1 --check --out w
    error: the argument '--check' cannot be used with '--out <DIR>'

    Usage: pagetide worlds --seeds <SEEDS> --check

    For more information, try '--help'.
    exit 2

    $ run sequential-readers --on uml:6.12 --check
    error: `--check` looks at the model's own state, and `--on uml:6.12` has none
    hint: leave `--on` out, or `--check`
    exit 1

    $ worlds --on sim --kernel linux-5.5 --against linux-5.4 --workload sequential-readers --repeats 1 --model-seeds 1 --seeds 1..1 --out empty
    error: `empty` is no folder of worlds
    hint: name a new folder
    exit 1

    $ worlds --on sim --kernel linux-5.5 --against linux-5.4 --workload sequential-readers --repeats 1 --model-seeds 1 --seeds 1..1 --out file
    error: `file` is no folder of worlds
    hint: name a new folder
    exit 1

    $ worlds --on sim --kernel linux-5.5 --against linux-5.4 --workload sequential-readers --model-seeds 1 --seeds 1..1 --repeats 2 --out other
    error: `other` has worlds of another plan: repeats: `1` there, `2` here
    hint: give the options that it was begun with, or name a new folder
    exit 1

    $ worlds --on sim --kernel linux-5.5 --against linux-5.4 --workload sequential-readers --repeats 1 --model-seeds 1 --seeds 1..1 --out broken
    error: `broken/worlds.parquet` is no table that can be read: Parquet file too small. Size is 4 but need 8
    hint: it was cut short or edited: copy the folder again, or make the run again
    exit 1

    $ worlds --on sim --kernel linux-5.5 --against linux-5.4 --workload sequential-readers --repeats 1 --model-seeds 1 --seeds 1..1 --real-of nowhere --out w
    error: `nowhere` is no folder
    hint: name the folder that `pagetide worlds --out DIR` made
    exit 1

    $ worlds --on sim --kernel linux-5.5 --against linux-5.4 --workload sequential-readers --repeats 1 --model-seeds 1 --seeds 1..1 --real-of broken --out w
    error: `broken/worlds.parquet` is no table that can be read: Parquet file too small. Size is 4 but need 8
    hint: it was cut short or edited: copy the folder again, or make the run again
    exit 1
    ");
}

/// Without a folder of one's own the cache is named after the user, which a text of root's would not be elsewhere.
#[test]
fn a_kernel_that_is_not_in_the_cache_is_told_how_to_come_by() {
    let scene = Scene::new();
    let mut command = scene.command("worlds --seeds 1..1 --on uml:6.12 --out w");
    let output = command.env("XDG_CACHE_HOME", scene.path()).output().expect("the program is built");
    let told = String::from_utf8(output.stderr).expect("UTF-8");
    let cache = scene.path().join("pagetide").join("uml");
    let expected = format!(
        "error: no kernel 6.12 in `{}`\nhint: fetch one: `pagetide uml fetch 6.12`\n",
        cache.display()
    );
    assert_eq!((told, output.status.code()), (expected, Some(1)));
}

/// Numbers of the table change with the worlds that are kept; what is said of them does not.
#[test]
fn an_answer_says_what_real_kernels_are_known_to_differ_by() {
    const LIKE: &str = "hot-and-stream --machine guest-uml --param hot=8M --param stream=64M -q";
    let scene = Scene::new();
    let text = scene.data(&format!("run {LIKE} --mem 256M --kernel linux-6.12"));
    assert!(text.contains("real kernels in ") && text.contains(" worlds "), "{text}");
    let outside = scene.data(&format!("run {LIKE} --kernel linux-6.12-eevdf --mem 64M"));
    assert!(outside.replace("\n  ", " ").contains("(kernel linux-6.12-eevdf, 64M of memory)"), "{outside}");
    let json = |command: &str| -> serde_json::Value {
        serde_json::from_str(&scene.data(&format!("{command} --format json"))).unwrap()
    };
    let known = &json(&format!("run {LIKE} --mem 256M --kernel linux-6.12"))["runs"][0]["known_error"];
    assert!(known["worlds"].as_u64() > Some(0) && known["counts"]["median_error"].is_number(), "{known}");
    assert_eq!(known["outside"], serde_json::json!([]));
    let compared = format!("compare {LIKE} --mem 256M --kernel linux-5.4 --kernel linux-5.5");
    let text = scene.data(&compared);
    let none = "not held to real kernels: there are no worlds of linux-5.4, linux-5.5";
    assert!(text.replace("\n  ", " ").contains(none), "{text}");
    assert_eq!(json(&compared)["runs"][1]["known_error"]["worlds"], 0);
}

/// Eight small worlds of the model alone: nothing is wrong, and each can be asked for by its command.
#[test]
fn worlds_of_the_model_alone_are_checked() {
    let scene = Scene::new();
    let text = scene.data("worlds --on sim --check --seeds 1..8 -q");
    assert!(text.starts_with("8 worlds of the model, checked all along: nothing is wrong\n"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&scene.data("worlds --check --seeds 1..8 -q --format json")).unwrap();
    assert_eq!((&json["worlds"], &json["wrong"]), (&serde_json::json!(8), &serde_json::json!([])));
    let commands = scene.data("worlds --check --workload sequential-readers --seeds 1..1 --dry-run");
    let again = commands.trim().strip_prefix("pagetide ").expect("a command");
    assert!(again.ends_with(" --check"), "{again}");
    let text = scene.data(&format!("{again} -q"));
    assert!(text.contains("throughput"), "{text}");
}

/// What `shrink` and `explain` tell of a world is tested below the command line; here, what they refuse.
#[test]
fn a_world_that_agrees_or_is_not_there_is_told_as_such() {
    let scene = Scene::new();
    scene.data(&format!("{SMALL} --seeds 1..1 --out worlds -q"));
    scene.data("worlds --on sim --workload sequential-readers --model-seeds 1 --seeds 1..1 --out alone -q");
    insta::assert_snapshot!(refused(&scene, &[
        "worlds shrink 1 --in worlds",
        "worlds explain linux-5.4/1 --in worlds --counter pgfree",
        "worlds explain 1 --in worlds --counter pgscan_kswap",
        "worlds explain 2 --in worlds",
        "worlds explain linux-6.1/1 --in worlds",
        "worlds shrink 1 --in nowhere",
        "worlds shrink 1 --in alone",
        "worlds shrink 1",
        "worlds shrink 1 --in worlds --time soon",
    ]), @"
    $ worlds shrink 1 --in worlds
    error: no counter of world `linux-5.4/1` is more than 10 % off
    hint: name one that disagrees: `pagetide worlds` shows one of each counter as `example`
    exit 1

    $ worlds explain linux-5.4/1 --in worlds --counter pgfree
    error: `pgfree` of world `linux-5.4/1` is not more than 10 % off: spread
    hint: name a world that disagrees
    exit 1

    $ worlds explain 1 --in worlds --counter pgscan_kswap
    error: unknown counter `pgscan_kswap`
    hint: did you mean `pgscan_kswapd`?
    exit 1

    $ worlds explain 2 --in worlds
    error: there is no world `2` in `worlds`
    hint: name it by its seed; the column `seed` of worlds.parquet has them
    exit 1

    $ worlds explain linux-6.1/1 --in worlds
    error: there is no world `linux-6.1/1` in `worlds`
    hint: name it by its seed; the column `seed` of worlds.parquet has them
    exit 1

    $ worlds shrink 1 --in nowhere
    error: `nowhere` is no folder
    hint: name the folder that `pagetide worlds --out DIR` made
    exit 1

    $ worlds shrink 1 --in alone
    error: world `linux-6.12/1` ran on the model alone: nothing is beside it
    hint: run it beside a real kernel, `--on uml:6.12`, or a second model, `--against`
    exit 1

    $ worlds shrink 1
    error: the following required arguments were not provided:
      --in <DIR>

    Usage: pagetide worlds shrink --in <DIR> <WORLD>

    For more information, try '--help'.
    exit 2

    $ worlds shrink 1 --in worlds --time soon
    error: `--time soon` is no time to work for
    hint: write a whole number with `s`, `m` or `h`, such as `10m`, not 0
    exit 1
    ");
}
