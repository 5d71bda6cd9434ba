//! What is said in vain is refused with the reason: options that mean nothing where a run takes
//! place, things said twice, changes that change nothing. Each of these was taken without a word.

use crate::support::{Scene, refused};

#[test]
fn this_host_was_told_to_be_another_machine() {
    let shown = refused(
        &Scene::new(),
        &[
            "run hot-and-stream --on host --kernel linux-6.12",
            "run hot-and-stream --on host --mem 512M",
            "run hot-and-stream --on host --machine vm-2cpu",
            "run hot-and-stream --on host --set vm.fragment_stall_order=3",
            "compare hot-and-stream --on host --kernel linux-6.1 --kernel linux-6.12",
            "compare hot-and-stream --on host",
        ],
    );
    insta::assert_snapshot!(shown, @"
    $ run hot-and-stream --on host --kernel linux-6.12
    error: `--kernel` cannot be `linux-6.12`: this host runs its own kernel
    hint: leave it out, or boot another one with `--on uml:VERSION`
    exit 1

    $ run hot-and-stream --on host --mem 512M
    error: `--mem` cannot be `512M`: this host has the memory that it has
    hint: leave it out, or bound what the run may use with `--host-limit`
    exit 1

    $ run hot-and-stream --on host --machine vm-2cpu
    error: `--machine` cannot be `vm-2cpu`: this host is the machine that it is
    hint: leave it out, or simulate it with `--on sim`
    exit 1

    $ run hot-and-stream --on host --set vm.fragment_stall_order=3
    error: sysctl `vm.fragment_stall_order` cannot be set on `host`, only on simulated kernels
    hint: leave it out, or run it with `--on sim`
    exit 1

    $ compare hot-and-stream --on host --kernel linux-6.1 --kernel linux-6.12
    error: `--kernel` cannot be `linux-6.1`: this host runs its own kernel
    hint: leave it out, or boot another one with `--on uml:VERSION`
    exit 1

    $ compare hot-and-stream --on host
    error: there is only `host`: nothing to compare it with
    hint: name a second one with `--on`, such as `--on sim`
    exit 1
    ");
}

#[test]
fn a_guest_was_told_to_run_another_kernel() {
    let shown = refused(
        &Scene::new(),
        &[
            "run hot-and-stream --on vm:6.12 --kernel linux-5.4",
            "run hot-and-stream --on vm:6.12 --kernel linux-6.12-root-aging",
            "run hot-and-stream --on vm:./vmlinuz --kernel linux-6.12",
            "run hot-and-stream --on vm:6.12 --machine skylake-1s",
            "run hot-and-stream --on vm:6.12 --machine vm-2cpu",
            "run hot-and-stream --on vm:6.12 --set thp.enabled=always",
            "compare hot-and-stream --on vm:6.1 --on vm:6.12 --kernel linux-6.1",
        ],
    );
    insta::assert_snapshot!(shown, @"
    $ run hot-and-stream --on vm:6.12 --kernel linux-5.4
    error: `--kernel` cannot be `linux-5.4`: the guest runs Debian's 6.12
    hint: leave it out, or simulate it with `--on sim`
    exit 1

    $ run hot-and-stream --on vm:6.12 --kernel linux-6.12-root-aging
    error: `--kernel` cannot be `linux-6.12-root-aging`: the guest runs Debian's 6.12, of whose features only `lru-gen` can be switched
    hint: leave it out, or simulate it with `--on sim`
    exit 1

    $ run hot-and-stream --on vm:./vmlinuz --kernel linux-6.12
    error: `--kernel` cannot be `linux-6.12`: the guest runs the kernel in `./vmlinuz`
    hint: leave it out, or name another one with `--on`
    exit 1

    $ run hot-and-stream --on vm:6.12 --machine skylake-1s
    error: `--machine` cannot be `skylake-1s`: a guest is a machine of its own, `guest-tcg`
    hint: leave it out, or shape it with `--mem`, `--vm-cpus` and `--vm-nodes`
    exit 1

    $ run hot-and-stream --on vm:6.12 --machine vm-2cpu
    error: `--machine` cannot be `vm-2cpu`: a guest is a machine of its own, `guest-tcg`
    hint: leave it out, or shape it with `--mem`, `--vm-cpus` and `--vm-nodes`
    exit 1

    $ run hot-and-stream --on vm:6.12 --set thp.enabled=always
    error: sysctl `thp.enabled` cannot be set on `vm:6.12`, only on simulated kernels
    hint: leave it out, or run it with `--on sim`
    exit 1

    $ compare hot-and-stream --on vm:6.1 --on vm:6.12 --kernel linux-6.1
    error: `--kernel` cannot be `linux-6.1`: the guest runs Debian's 6.12
    hint: leave it out, or simulate it with `--on sim`
    exit 1
    ");
    let scene = Scene::new();
    let plain = scene.data("run hot-and-stream --on vm:6.12 --dry-run");
    let named =
        scene.data("run hot-and-stream --on vm:6.12 --kernel linux-6.12 --machine guest-tcg --dry-run");
    assert_eq!(plain, named, "it may be called what it is");
}

#[test]
fn what_is_for_the_simulated_side_of_a_comparison_was_not_said_to_be() {
    let scene = Scene::new();
    let told = |arguments: &str| {
        let output = scene.output(&format!("compare hot-and-stream {arguments} --dry-run"));
        let heads = String::from_utf8(output.stdout).expect("UTF-8");
        let head = |line: &&str| {
            ["kernel", "machine", "mem", "backend"].iter().any(|key| line.starts_with(&format!("{key} =")))
        };
        let heads: Vec<&str> = heads.lines().filter(head).collect();
        format!("$ {arguments}\n{}{}\n", String::from_utf8_lossy(&output.stderr), heads.join("\n"))
    };
    let shown = [
        told("--on sim --on host --kernel linux-6.1 --machine vm-2cpu --mem 64M"),
        told("--on sim --on host --mem 64M --kernel linux-6.1"),
        told("--on host --on sim --kernel linux-6.1"),
        told("--on sim --on vm:6.12 --kernel linux-6.1 --machine vm-2cpu --mem 64M"),
    ];
    insta::assert_snapshot!(shown.join("\n"), @r#"
    $ --on sim --on host --kernel linux-6.1 --machine vm-2cpu --mem 64M
    `host` is what it is: `--kernel`, `--machine` and `--mem` for the simulated side only
    kernel = "linux-6.1"
    machine = "vm-2cpu"
    mem = "64M"
    backend = "sim"
    backend = "host"

    $ --on sim --on host --mem 64M --kernel linux-6.1
    `host` is what it is: `--kernel` and `--mem` for the simulated side only
    kernel = "linux-6.1"
    machine = "vm-2cpu"
    mem = "64M"
    backend = "sim"
    backend = "host"

    $ --on host --on sim --kernel linux-6.1
    `host` is what it is: `--kernel` for the simulated side only
    backend = "host"
    kernel = "linux-6.1"
    machine = "vm-2cpu"
    mem = "1016336k"
    backend = "sim"

    $ --on sim --on vm:6.12 --kernel linux-6.1 --machine vm-2cpu --mem 64M
    `vm:6.12` is what it is: `--kernel` and `--machine` for the simulated side only
    kernel = "linux-6.1"
    machine = "vm-2cpu"
    mem = "64M"
    backend = "sim"
    machine = "guest-tcg"
    mem = "64M"
    backend = "vm:6.12"
    "#);
}

#[test]
fn one_name_was_given_twice_and_the_last_value_taken() {
    let shown = refused(
        &Scene::new(),
        &[
            "run hot-and-stream --param hot=1M --param stream=1G --param hot=2M",
            "run hot-and-stream --set vm.swappiness=1 --set vm/swappiness=2",
            "compare hot-and-stream --on sim --on sim",
            "compare hot-and-stream --on vm:6.12 --on sim --on vm:6.12",
            "sweep hot-and-stream --on sim --on host --set vm.swappiness=1,2",
            "replay trace.csv --policy lru --policy lru --capacity 10",
            "replay trace.csv --policy lru --capacity 10 --capacity 10",
            "replay trace.csv --mem 64M --mem 65536k",
            "replay trace.csv --mem 64M --kernel linux-6.1 --kernel linux-6.1",
            "replay trace.csv --mem 64M --set vm.swappiness=1 --set vm.swappiness=1",
        ],
    );
    insta::assert_snapshot!(shown, @"
    $ run hot-and-stream --param hot=1M --param stream=1G --param hot=2M
    error: parameter `hot` is given twice, as `1M` and as `2M`
    hint: leave one of them out
    exit 1

    $ run hot-and-stream --set vm.swappiness=1 --set vm/swappiness=2
    error: sysctl `vm.swappiness` is set twice, to `1` and to `2`
    hint: leave one of them out
    exit 1

    $ compare hot-and-stream --on sim --on sim
    error: `--on sim` is given twice
    hint: leave one of them out
    exit 1

    $ compare hot-and-stream --on vm:6.12 --on sim --on vm:6.12
    error: `--on vm:6.12` is given twice
    hint: leave one of them out
    exit 1

    $ sweep hot-and-stream --on sim --on host --set vm.swappiness=1,2
    error: the argument '--on <BACKEND>' cannot be used multiple times

    Usage: pagetide sweep [OPTIONS] <WORKLOAD|FILE|TRACE>

    For more information, try '--help'.
    exit 2

    $ replay trace.csv --policy lru --policy lru --capacity 10
    error: `--policy lru` is given twice
    hint: leave one of them out
    exit 1

    $ replay trace.csv --policy lru --capacity 10 --capacity 10
    error: `--capacity 10` is given twice
    hint: leave one of them out
    exit 1

    $ replay trace.csv --mem 64M --mem 65536k
    error: `--mem 64M` is given twice
    hint: leave one of them out
    exit 1

    $ replay trace.csv --mem 64M --kernel linux-6.1 --kernel linux-6.1
    error: `--kernel linux-6.1` is given twice
    hint: leave one of them out
    exit 1

    $ replay trace.csv --mem 64M --set vm.swappiness=1 --set vm.swappiness=1
    error: sysctl `vm.swappiness` is set twice, to `1` and to `1`
    hint: leave one of them out
    exit 1
    ");
}

#[test]
fn a_kernel_was_called_changed_that_was_not() {
    let shown = refused(
        &Scene::new(),
        &[
            "run hot-and-stream --kernel linux-5.5+root-aging",
            "run hot-and-stream --kernel linux-5.4-root-aging",
            "run hot-and-stream --kernel linux-5.4+root-aging+root-aging",
            "run hot-and-stream --kernel linux-5.4+root-aging-root-aging",
            "run hot-and-stream --kernel linux-4.20-rc1+fragment-stall+fragment-stall-v1",
            "run hot-and-stream --kernel linux-6.1+watermark-boost-v2",
            "run hot-and-stream --kernel linux-6.12+shared-memcg-walk",
            "compare hot-and-stream --kernel linux-5.4 --kernel linux-5.5+root-aging",
            "sweep hot-and-stream --kernel linux-5.5+root-aging --set vm.swappiness=1,2",
            "replay trace.csv --mem 64M --kernel linux-5.5+root-aging",
        ],
    );
    insta::assert_snapshot!(shown, @"
    $ run hot-and-stream --kernel linux-5.5+root-aging
    error: `linux-5.5` has `root-aging` already
    hint: leave `+root-aging` out
    exit 1

    $ run hot-and-stream --kernel linux-5.4-root-aging
    error: `linux-5.4` has no `root-aging` to take away
    hint: leave `-root-aging` out
    exit 1

    $ run hot-and-stream --kernel linux-5.4+root-aging+root-aging
    error: feature `root-aging` is named twice
    hint: leave one of them out
    exit 1

    $ run hot-and-stream --kernel linux-5.4+root-aging-root-aging
    error: feature `root-aging` is both added and taken away
    hint: leave one of them out
    exit 1

    $ run hot-and-stream --kernel linux-4.20-rc1+fragment-stall+fragment-stall-v1
    error: `fragment-stall` and `fragment-stall-v1` are forms of one decision: the stall on fragmentation
    hint: leave one of them out
    exit 1

    $ run hot-and-stream --kernel linux-6.1+watermark-boost-v2
    error: `watermark-boost-v2` and `watermark-boost`, which `linux-6.1` has, are forms of one decision: the watermark boost
    hint: to put it in the other's place, take that away first: `linux-6.1-watermark-boost+watermark-boost-v2`
    exit 1

    $ run hot-and-stream --kernel linux-6.12+shared-memcg-walk
    error: `shared-memcg-walk` and `partial-memcg-walk`, which `linux-6.12` has, are forms of one decision: the walk over the cgroup tree
    hint: to put it in the other's place, take that away first: `linux-6.12-partial-memcg-walk+shared-memcg-walk`
    exit 1

    $ compare hot-and-stream --kernel linux-5.4 --kernel linux-5.5+root-aging
    error: `linux-5.5` has `root-aging` already
    hint: leave `+root-aging` out
    exit 1

    $ sweep hot-and-stream --kernel linux-5.5+root-aging --set vm.swappiness=1,2
    error: `linux-5.5` has `root-aging` already
    hint: leave `+root-aging` out
    exit 1

    $ replay trace.csv --mem 64M --kernel linux-5.5+root-aging
    error: `linux-5.5` has `root-aging` already
    hint: leave `+root-aging` out
    exit 1
    ");
    let replaced = Scene::new()
        .data("run hot-and-stream --kernel linux-6.1-watermark-boost+watermark-boost-v2 --dry-run");
    assert!(replaced.contains("kernel = \"linux-6.1-watermark-boost+watermark-boost-v2\""), "{replaced}");
}

#[test]
fn a_scenario_of_a_real_kernel_named_a_simulated_one() {
    let scene = Scene::new();
    for backend in ["host", "vm:6.12"] {
        let written = scene.data(&format!("run hot-and-stream --on {backend} --dry-run"));
        assert!(!written.contains("linux-"), "{written}");
        scene.file("real.toml", &written);
        assert_eq!(scene.data("run real.toml --dry-run"), written, "it can be run again");
    }
    scene.file("sim.toml", scene.data("run hot-and-stream --mem 64M --dry-run"));
    let moved = scene.shown("run sim.toml --on host --dry-run");
    assert!(
        moved.contains("`host` is what it is: left out what the file says of `kernel`, `machine` and `mem`")
    );
    assert_eq!(
        scene.data("run real.toml --on host --dry-run"),
        scene.data("run sim.toml --on host --dry-run")
    );
}

#[test]
fn mistakes_that_only_the_model_knows_had_no_line() {
    let scene = Scene::new();
    let head = "workload = \"hot-and-stream\"\nmachine = \"vm-2cpu\"\nmem = \"64M\"\n";
    let real = "workload = \"hot-and-stream\"\n";
    scene
        .file(
            "range.toml",
            format!("{head}kernel = \"linux-5.4\"\n[sysctls]\nvm.swappiness = 10\nvm.dirty_ratio = 101\n"),
        )
        .file("choice.toml", format!("{head}kernel = \"linux-5.4\"\n[sysctls]\n\"thp/enabled\" = 3\n"))
        .file("kernel.toml", format!("{head}kernel = \"linux-5.5+root-aging\"\n"))
        .file("host.toml", format!("{real}mem = \"64M\"\nbackend = \"host\"\n"))
        .file("guest.toml", format!("{real}kernel = \"linux-5.4\"\nmem = \"64M\"\nbackend = \"vm:6.12\"\n"));
    let commands =
        ["run range.toml", "run choice.toml", "run kernel.toml", "run host.toml", "run guest.toml"];
    insta::assert_snapshot!(refused(&scene, &commands), @"
    $ run range.toml
    error: `range.toml` cannot be run
      caused by: line 7, column 18: `101` is no value for `vm.dirty_ratio`: it takes 0 to 100
    exit 1

    $ run choice.toml
    error: `choice.toml` cannot be run
      caused by: line 6, column 17: `3` is no value for `thp.enabled`: it takes one of always, madvise, never
    exit 1

    $ run kernel.toml
    error: `kernel.toml` cannot be run
      caused by: line 4, column 10: `linux-5.5` has `root-aging` already
    hint: leave `+root-aging` out
    exit 1

    $ run host.toml
    error: `host.toml` cannot be run
      caused by: line 2, column 7: `mem` cannot be `64M`: this host has the memory that it has
    hint: leave it out, or bound what the run may use with `--host-limit`
    exit 1

    $ run guest.toml
    error: `guest.toml` cannot be run
      caused by: line 2, column 10: `kernel` cannot be `linux-5.4`: the guest runs Debian's 6.12
    hint: leave it out, or simulate it with `--on sim`
    exit 1
    ");
}

#[test]
fn every_file_that_cannot_be_read_was_said_to_lack_permissions() {
    let scene = Scene::new();
    scene.file("binary.toml", [0xff, 0xfe, 0x00]).file("scenario.tml", "");
    std::fs::create_dir(scene.path().join("folder.toml")).unwrap();
    std::fs::create_dir(scene.path().join("recording")).unwrap();
    let commands = [
        "run binary.toml",
        "run none.toml",
        "run folder.toml",
        "run recording",
        "run scenario.tml",
        "compare hot-and-stream huge-faults",
        "report none",
        "report scenario.tml",
        "compare recordings/none",
        "replay recording --policy lru --capacity 10",
    ];
    insta::assert_snapshot!(refused(&scene, &commands), @"
    $ run binary.toml
    error: cannot read `binary.toml`
      caused by: stream did not contain valid UTF-8
    hint: a scenario is a text in UTF-8, as `--dry-run` prints it; this file is something else
    exit 1

    $ run none.toml
    error: cannot read `none.toml`
      caused by: No such file or directory (os error 2)
    hint: check the path; `pagetide run WORKLOAD --dry-run > FILE.toml` writes a scenario
    exit 1

    $ run folder.toml
    error: cannot read `folder.toml`
      caused by: Is a directory (os error 21)
    hint: name a file in it; a recording's scenario is `scenario.toml`
    exit 1

    $ run recording
    error: `recording` is neither a workload nor a scenario file
    hint: a scenario file is called `*.toml`, a recording's is `scenario.toml` in its folder; `pagetide report DIR` shows recordings
    exit 1

    $ run scenario.tml
    error: `scenario.tml` is neither a workload nor a scenario file
    hint: a scenario file is called `*.toml`, a recording's is `scenario.toml` in its folder; `pagetide report DIR` shows recordings
    exit 1

    $ compare hot-and-stream huge-faults
    error: `hot-and-stream` is not a folder with recordings
    hint: compare folders, or one workload, whose kernels are named with `--kernel`; `pagetide run WORKLOAD --out DIR` makes a recording
    exit 1

    $ report none
    error: `none` is not a folder with recordings
    hint: `pagetide run WORKLOAD --out DIR` makes a recording
    exit 1

    $ report scenario.tml
    error: `scenario.tml` is not a folder with recordings
    hint: `pagetide run WORKLOAD --out DIR` makes a recording
    exit 1

    $ compare recordings/none
    error: `recordings/none` is not a folder with recordings
    hint: compare folders, or one workload, whose kernels are named with `--kernel`; `pagetide run WORKLOAD --out DIR` makes a recording
    exit 1

    $ replay recording --policy lru --capacity 10
    error: cannot read the trace `recording`
      caused by: Is a directory (os error 21)
    hint: name the file of the trace; this is a folder
    exit 1
    ");
}

#[test]
fn what_is_no_scenario_was_told_to_be_one_or_had_no_hint() {
    let scene = Scene::new();
    scene.file("binary.toml", [0xff, 0xfe, 0x00]).file("numbers", [0xff, 0xfe, 0x00]);
    let commands = [
        "run hot-and-stream --machine binary.toml",
        "stats numbers",
        "import mmtests none -o new",
        "import mmtests numbers -o new",
    ];
    insta::assert_snapshot!(refused(&scene, &commands), @r"
    $ run hot-and-stream --machine binary.toml
    error: cannot read `binary.toml`
      caused by: stream did not contain valid UTF-8
    hint: a machine file is a text, as `pagetide machine show` prints it; this is something else
    exit 1

    $ stats numbers
    error: cannot compare `numbers`
      caused by: it is no text in UTF-8
    hint: name a file of numbers as CSV, JSON or a list; this one is something else
    exit 1

    $ import mmtests none -o new
    error: cannot read `none`
      caused by: No such file or directory (os error 2)
    hint: name `work/log` of mmtests, or the folder of one run in it
    exit 1

    $ import mmtests numbers -o new
    error: cannot read `numbers`
      caused by: Not a directory (os error 20)
    hint: name `work/log` of mmtests, or the folder of one run in it
    exit 1
    ");
}

#[test]
fn a_run_without_memory_said_nothing_of_the_memory() {
    let command = "run hot-and-stream --set vm.min_free_kbytes=99999999 --param stream=1M -q";
    let shown = refused(&Scene::new(), &[command]).replace("\n  ", " ");
    for said in ["OOM-killed after ", "the machine was out of memory", "Mem-Info:", "exit 0"] {
        assert!(shown.contains(said), "no `{said}` in\n{shown}");
    }
}

#[test]
fn a_command_that_cannot_be_recorded_ended_as_a_wrong_input() {
    let scene = Scene::new();
    scene.file("plain", "echo\n").file("orphan", "#!/no/such/interpreter\n");
    let runnable = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    std::fs::set_permissions(scene.path().join("orphan"), runnable).unwrap();
    let commands = [
        "record --out new --format json -- ./plain",
        "record -- ./none",
        "record -- no-such-command",
        "record -- ./plain",
        "record -- ./orphan",
        "record -- /",
    ];
    insta::assert_snapshot!(refused(&scene, &commands), @"
    $ record --out new --format json -- ./plain
    error: the argument '--out <DIR>' cannot be used with '--format <FORMAT>'

    Usage: pagetide record --out <DIR> -- <COMMAND>...

    For more information, try '--help'.
    exit 2

    $ record -- ./none
    error: cannot run `./none`
      caused by: No such file or directory (os error 2)
    hint: check its name; for a line of a shell write `pagetide record -- sh -c 'LINE'`
    exit 127

    $ record -- no-such-command
    error: cannot run `no-such-command`
      caused by: No such file or directory (os error 2)
    hint: check its name; for a line of a shell write `pagetide record -- sh -c 'LINE'`
    exit 127

    $ record -- ./plain
    error: cannot run `./plain`
      caused by: Permission denied (os error 13)
    hint: make it executable with `chmod +x`, or name its interpreter first
    exit 126

    $ record -- ./orphan
    error: cannot run `./orphan`
      caused by: No such file or directory (os error 2)
    hint: it is there, but the interpreter that its first line names is not
    exit 126

    $ record -- /
    error: cannot run `/`
      caused by: Permission denied (os error 13)
    hint: name a program; this is a folder
    exit 126
    ");
}

#[test]
fn a_form_of_what_is_only_planned_was_ignored() {
    let scene = Scene::new();
    for command in
        ["run simoop", "compare simoop", "sweep simoop --seeds 2", "explain simoop", "worlds --seeds 1..1"]
    {
        let shown = scene.shown(&format!("{command} --dry-run --format json"));
        assert!(
            shown.starts_with("error: the argument '--dry-run' cannot be used with '--format "),
            "{shown}"
        );
    }
}

#[test]
fn what_was_told_beside_a_result_was_told_to_who_wanted_quiet() {
    let scene = Scene::new();
    for command in ["worlds --seeds 1..1 --dry-run", "list kernels", "machine show x86-64"] {
        let output = scene.output(&format!("{command} -q"));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{command}");
    }
}
