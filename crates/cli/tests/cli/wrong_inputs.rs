//! Every wrong input is told in words, with the remedy and the documented exit code, and leaves
//! nothing behind.

use crate::support::{Scene, refused};

#[test]
fn unknown_names_come_with_the_nearest() {
    let shown = refused(
        &Scene::new(),
        &[
            "run hot-n-stream",
            "run hot-and-stream --kernel linux-5.6",
            "run hot-and-stream --kernel linux-5.4+rot-aging",
            "run hot-and-stream --set vm.swapiness=10",
            "run hot-and-stream --param hott=1M",
            "run hot-and-stream --machine vm-2cpus",
            "run hot-and-stream --on smi",
            "compare hot-and-steam",
            "replay trace.csv --policy lruu --capacity 10",
            "replay trace.csv --policy lru:bach=3 --capacity 10",
            "replay trace.csv --mem 64M --timing recordd",
            "size trace.csv --trace-format block",
            "list kernel",
        ],
    );
    insta::assert_snapshot!(shown, @"
    $ run hot-n-stream
    error: unknown workload `hot-n-stream`
    hint: did you mean `hot-and-stream`?
    exit 1

    $ run hot-and-stream --kernel linux-5.6
    error: unknown kernel `linux-5.6`
    hint: did you mean `linux-5.3`, `linux-5.4`, `linux-5.5` or `linux-5.7`?
    exit 1

    $ run hot-and-stream --kernel linux-5.4+rot-aging
    error: unknown feature `rot-aging`
    hint: did you mean `root-aging`?
    exit 1

    $ run hot-and-stream --set vm.swapiness=10
    error: unknown sysctl `vm.swapiness`
    hint: did you mean `vm.swappiness`?
    exit 1

    $ run hot-and-stream --param hott=1M
    error: unknown parameter `hott`
    hint: did you mean `hot`?
    exit 1

    $ run hot-and-stream --machine vm-2cpus
    error: unknown machine `vm-2cpus`
    hint: did you mean `vm-2cpu`?
    exit 1

    $ run hot-and-stream --on smi
    error: unknown backend `smi`
    hint: did you mean `sim`?
    exit 1

    $ compare hot-and-steam
    error: unknown workload `hot-and-steam`
    hint: did you mean `hot-and-stream`?
    exit 1

    $ replay trace.csv --policy lruu --capacity 10
    error: unknown policy `lruu`
    hint: did you mean `lru`?
    exit 1

    $ replay trace.csv --policy lru:bach=3 --capacity 10
    error: policy `lru`: unknown parameter `bach`
    hint: did you mean `batch`?
    exit 1

    $ replay trace.csv --mem 64M --timing recordd
    error: unknown timing `recordd`
    hint: did you mean `recorded`?
    exit 1

    $ size trace.csv --trace-format block
    error: unknown trace format `block`
    hint: did you mean `block-csv`?
    exit 1

    $ list kernel
    error: invalid value 'kernel' for '<WHAT>'
      [possible values: workloads, kernels, features, sysctls, counters, machines, policies, zones]

      tip: a similar value exists: 'kernels'

    For more information, try '--help'.
    exit 2
    ");
}

#[test]
fn values_that_make_no_sense_say_what_would() {
    let shown = refused(
        &Scene::new(),
        &[
            "run hot-and-stream --mem -5M",
            "run hot-and-stream --mem 99999T",
            "run hot-and-stream --mem 2T",
            "run hot-and-stream --mem 256",
            "run hot-and-stream --mem lots",
            "run hot-and-stream --param topology=parent --param limit=4k",
            "run hot-and-stream --param limit=100M",
            "run hot-and-stream --param hot",
            "run hot-and-stream --set vm.swappiness=900",
            "run hot-and-stream --set vm.swappiness=150 --kernel linux-5.7",
            "run hot-and-stream --set vm.watermark_scale_factor=1001 --kernel linux-5.10",
            "run hot-and-stream --set vm.swappiness",
            "run hot-and-stream --seed -1",
            "run hot-and-stream --on vm:",
            "compare hot-and-stream --kernel linux-5.4",
            "compare hot-and-stream --kernel linux-5.4 --kernel linux-5.4",
            "compare hot-and-stream --seeds 0",
            "compare hot-and-stream --jobs -1",
            "replay trace.csv --policy lru --capacity 0",
        ],
    );
    insta::assert_snapshot!(shown, @"
    $ run hot-and-stream --mem -5M
    error: `--mem`: `-5M` is negative
    hint: write a whole number with an optional suffix, such as `256M`, `1016336kB` or `18G`
    exit 1

    $ run hot-and-stream --mem 99999T
    error: `--mem`: 99999T is outside of 8M to 1T
    exit 1

    $ run hot-and-stream --mem 2T
    error: `--mem`: 2T is outside of 8M to 1T
    exit 1

    $ run hot-and-stream --mem 256
    error: `--mem`: 256 is outside of 8M to 1T
    hint: a number without a unit is bytes: write `256M`
    exit 1

    $ run hot-and-stream --mem lots
    error: `--mem`: `lots` is not a size
    hint: write a whole number with an optional suffix, such as `256M`, `1016336kB` or `18G`
    exit 1

    $ run hot-and-stream --param topology=parent --param limit=4k
    error: parameter `limit`: 4k is outside of 1M to 16T
    exit 1

    $ run hot-and-stream --param limit=100M
    error: parameter `limit`: there is no parent cgroup to limit
    hint: add `topology=parent`, or leave `limit` out
    exit 1

    $ run hot-and-stream --param hot
    error: `hot` is not of the form `name=value`
    hint: write it as in `--param hot=50M`
    exit 1

    $ run hot-and-stream --set vm.swappiness=900
    error: `900` is no value for `vm.swappiness`: it takes 0 to 200
    exit 1

    $ run hot-and-stream --set vm.swappiness=150 --kernel linux-5.7
    error: `150` is no value for `vm.swappiness` of `linux-5.7`: it takes 0 to 100
    hint: name a kernel that has it: `--kernel linux-5.10` or later
    exit 1

    $ run hot-and-stream --set vm.watermark_scale_factor=1001 --kernel linux-5.10
    error: `1001` is no value for `vm.watermark_scale_factor` of `linux-5.10`: it takes 1 to 1000
    hint: name a kernel that has it: `--kernel linux-6.1` or later
    exit 1

    $ run hot-and-stream --set vm.swappiness
    error: `vm.swappiness` is not of the form `name=value`
    hint: write it as in `--set vm.swappiness=10`
    exit 1

    $ run hot-and-stream --seed -1
    error: invalid value '-1' for '--seed <N>': it takes a whole number, such as 2

    For more information, try '--help'.
    exit 2

    $ run hot-and-stream --on vm:
    error: unknown backend `vm:`
    hint: did you mean `vm:VERSION`?
    exit 1

    $ compare hot-and-stream --kernel linux-5.4
    error: there is only `linux-5.4`: nothing to compare it with
    hint: name a second one with `--kernel`
    exit 1

    $ compare hot-and-stream --kernel linux-5.4 --kernel linux-5.4
    error: kernel `linux-5.4` is named twice
    hint: use `--seeds` to repeat a run
    exit 1

    $ compare hot-and-stream --seeds 0
    error: `--seeds` takes 1 to 10000, not 0
    exit 1

    $ compare hot-and-stream --jobs -1
    error: invalid value '-1' for '--jobs <N>': it takes a whole number, such as 2

    For more information, try '--help'.
    exit 2

    $ replay trace.csv --policy lru --capacity 0
    error: a cache needs room for at least one object
    hint: write it as in `--capacity 10000`
    exit 1
    ");
}

#[test]
fn a_wrong_scenario_file_is_told_by_line_and_column() {
    let scene = Scene::new();
    let head = "workload = \"hot-and-stream\"\nkernel = \"linux-5.4\"\nmachine = \"vm-2cpu\"\n";
    scene
        .file("key.toml", format!("{head}mem = \"64M\"\nkernal = 1\n"))
        .file("mem.toml", format!("{head}mem = \"-64M\"\n"))
        .file("toml.toml", "workload = \n");
    let commands = ["run key.toml", "run mem.toml", "run toml.toml"];
    insta::assert_snapshot!(refused(&scene, &commands), @r#"
    $ run key.toml
    error: `key.toml` cannot be run
      caused by: line 5, column 1: unknown key `kernal`
    hint: did you mean `kernel`?
    exit 1

    $ run mem.toml
    error: `mem.toml` cannot be run
      caused by: line 4, column 7: `mem`: `-64M` is negative
    hint: write a whole number with an optional suffix, such as `256M`, `1016336kB` or `18G`
    exit 1

    $ run toml.toml
    error: `toml.toml` cannot be run
      caused by: line 1, column 12: string values must be quoted, expected literal string
    hint: a line is `key = 5` or `key = "text"`; `--dry-run` prints a whole file
    exit 1
    "#);
}

#[test]
fn traces_that_are_cut_or_binary_or_missing_are_refused() {
    let scene = Scene::new();
    let record = |time: u32, object: u64| {
        let mut bytes = time.to_le_bytes().to_vec();
        bytes.extend(object.to_le_bytes());
        bytes.extend(4096_u32.to_le_bytes());
        bytes.extend((-1_i64).to_le_bytes());
        bytes
    };
    let whole = [record(1, 10), record(2, 11)].concat();
    scene
        .file("cut.bin", &whole[..30])
        .file("noise.bin", [0x7f; 64].map(|byte: u8| byte.wrapping_mul(37) | 0x80))
        .file("empty.csv", "")
        .file("text.csv", "1,2,3\n2,x,3\n");
    let commands = [
        "replay cut.bin --policy lru --capacity 10",
        "replay noise.bin --policy lru --capacity 10",
        "replay empty.csv --policy lru --capacity 10",
        "replay text.csv --policy lru --capacity 10",
        "replay text.csv --policy lru --capacity 10 --trace-format oracle-general",
        "replay text.csv --mem 64M",
        "replay text.csv --mem -64M",
        "replay text.csv --mem 64M --kernel linux-5.6",
        "replay text.csv --policy lru",
        "replay none.csv --policy lru --capacity 10",
    ];
    insta::assert_snapshot!(refused(&scene, &commands), @"
    $ replay cut.bin --policy lru --capacity 10
    error: cannot read the trace `cut.bin`
      caused by: byte 24: the trace ends inside a record: 6 bytes are left where a record has 24
    hint: the file was cut while it was copied, or it is not in this format
    exit 1

    $ replay noise.bin --policy lru --capacity 10
    error: cannot read the trace `noise.bin`
      caused by: line 1: the text is not UTF-8
    hint: convert the file to UTF-8, or check that it is not cut or damaged
    exit 1

    $ replay empty.csv --policy lru --capacity 10
    error: cannot read the trace `empty.csv`
      caused by: the trace is empty
    exit 1

    $ replay text.csv --policy lru --capacity 10
    error: cannot read the trace `text.csv`
      caused by: line 2: column `object`: `x` is not a number
    hint: objects are numbers; replace names by numbers or hashes first
    exit 1

    $ replay text.csv --policy lru --capacity 10 --trace-format oracle-general
    error: cannot read the trace `text.csv`
      caused by: the trace ends inside a record: 12 bytes are left where a record has 24
    hint: the file was cut while it was copied, or it is not in this format
    exit 1

    $ replay text.csv --mem 64M
    error: cannot read the trace `text.csv`
      caused by: line 2: column `object`: `x` is not a number
    hint: objects are numbers; replace names by numbers or hashes first
    exit 1

    $ replay text.csv --mem -64M
    error: `--mem`: `-64M` is negative
    hint: write a whole number with an optional suffix, such as `256M`, `1016336kB` or `18G`
    exit 1

    $ replay text.csv --mem 64M --kernel linux-5.6
    error: unknown kernel `linux-5.6`
    hint: did you mean `linux-5.3`, `linux-5.4`, `linux-5.5` or `linux-5.7`?
    exit 1

    $ replay text.csv --policy lru
    error: the following required arguments were not provided:
      --capacity <OBJECTS>

    Usage: pagetide replay --policy <POLICY> --capacity <OBJECTS> <TRACE|SCENARIO.toml>

    For more information, try '--help'.
    exit 2

    $ replay none.csv --policy lru --capacity 10
    error: cannot read the trace `none.csv`
      caused by: cannot open `none.csv`: No such file or directory (os error 2)
    hint: check the path and the permissions of the file and its folders
    exit 1
    ");
}

/// A trace that is missing was told how to write a scenario, figures of a size went into files of any name, a folder
/// that is not there was an "entity not found" when all had run, and requests of no bytes were a panic.
#[test]
fn what_is_no_trace_and_no_place_for_a_figure_is_told_as_such() {
    let scene = Scene::new();
    scene.file("nothing.csv", "time,op,lbn,size\n0,r,5,0\n").file("one.csv", "time,op,lbn,size\n0,r,5,512\n");
    scene.file("log", "42 exit_group(0) = ?\n");
    let commands = [
        "trace info none.trace",
        "trace info .",
        "import fio none.log -o new.trace",
        "import strace log -o new.trace",
        "size nothing.csv",
        "size one.csv --plot curve.png",
        "size one.csv --plot none/curve.svg",
        "size one.csv --page none/size.html",
        "size one.csv -o size.html",
        "size one.csv --seeds 0",
        "compare hot-and-stream --plot none/story.svg",
        "trace hot-and-stream -o none/run.trace",
        "run hot-and-stream --lru-gen on",
        "replay one.csv --policy lru --capacity -1",
    ];
    insta::assert_snapshot!(refused(&scene, &commands), @"
    $ trace info none.trace
    error: cannot read `none.trace`
      caused by: No such file or directory (os error 2)
    hint: check the path and the permissions of the file and its folders
    exit 1

    $ trace info .
    error: cannot read `.`
      caused by: Is a directory (os error 21)
    hint: name the file of the trace; this is a folder
    exit 1

    $ import fio none.log -o new.trace
    error: cannot read `none.log`
      caused by: No such file or directory (os error 2)
    hint: check the path and the permissions of the file and its folders
    exit 1

    $ import strace log -o new.trace
    error: `log`, read as a log of strace: no operation on a file or on memory is in it; none of its lines is a call; there are 1
    hint: write it with `strace -f -tt -T -y -o LOG COMMAND`
    exit 1

    $ size nothing.csv
    error: `nothing.csv` asks for no page: all of its requests are of 0 bytes
    hint: check the trace's column of sizes
    exit 1

    $ size one.csv --plot curve.png
    error: `curve.png` is not named as what it would be: figures are written as SVG
    hint: name it `curve.svg`
    exit 1

    $ size one.csv --plot none/curve.svg
    error: cannot write `none/curve.svg`: there is no folder `none`
    hint: make the folder first, or name another one
    exit 1

    $ size one.csv --page none/size.html
    error: cannot write `none/size.html`: there is no folder `none`
    hint: make the folder first, or name another one
    exit 1

    $ size one.csv -o size.html
    error: `--out size.html` would be a folder of recordings
    hint: `--page size.html` is a page
    exit 1

    $ size one.csv --seeds 0
    error: `--seeds` takes 1 to 1000, not 0
    exit 1

    $ compare hot-and-stream --plot none/story.svg
    error: cannot write `none/story.svg`: there is no folder `none`
    hint: make the folder first, or name another one
    exit 1

    $ trace hot-and-stream -o none/run.trace
    error: cannot write `none/run.trace`: there is no folder `none`
    hint: make the folder first, or name another one
    exit 1

    $ run hot-and-stream --lru-gen on
    error: `--lru-gen` is for guests, and this runs on `sim`
    hint: a simulated kernel has it as a feature: `--kernel linux-6.12+lru-gen`
    exit 1

    $ replay one.csv --policy lru --capacity -1
    error: `-1` is not a number of objects or requests
    hint: write a whole number, such as `5000`, `10k` (10000) or `2M`
    exit 1
    ");
}

#[test]
fn folders_that_exist_or_cannot_be_written_are_told_before_anything_runs() {
    let scene = Scene::new();
    scene.file("taken", "");
    std::fs::create_dir(scene.path().join("mine")).unwrap();
    let commands = [
        "run hot-and-stream --out mine",
        "run hot-and-stream --out taken",
        "run hot-and-stream --out taken/below",
        "run hot-and-stream --out /proc/new",
        "compare hot-and-stream --out mine",
        "compare mine mine",
        "compare mine --seeds 3",
        "compare no/such other",
    ];
    insta::assert_snapshot!(refused(&scene, &commands), @"
    $ run hot-and-stream --out mine
    error: `mine` exists already
    hint: name a new folder, or remove this one first
    exit 1

    $ run hot-and-stream --out taken
    error: `taken` exists already
    hint: name a new folder, or remove this one first
    exit 1

    $ run hot-and-stream --out taken/below
    error: `taken` is not a folder that could hold another
    hint: name another folder
    exit 1

    $ run hot-and-stream --out /proc/new
    error: cannot write `/proc`: No such file or directory (os error 2)
    hint: check permissions and free space there, or name another folder
    exit 1

    $ compare hot-and-stream --out mine
    error: `mine` exists already
    hint: name a new folder, or remove this one first
    exit 1

    $ compare mine mine
    error: there is no recording in `mine`
    hint: `pagetide run WORKLOAD --out DIR` makes a recording
    exit 1

    $ compare mine --seeds 3
    error: `--seeds` is for runs; it changes nothing about recordings
    exit 2

    $ compare no/such other
    error: `no/such` is not a folder with recordings
    hint: compare folders, or one workload, whose kernels are named with `--kernel`; `pagetide run WORKLOAD --out DIR` makes a recording
    exit 1
    ");
}

#[test]
fn what_is_said_of_a_virtual_machine_needs_one_and_makes_sense() {
    let scene = Scene::new();
    let head =
        "workload = \"hot-and-stream\"\nkernel = \"linux-6.12\"\nmachine = \"vm-2cpu\"\nmem = \"64M\"\n";
    scene
        .file("sim.toml", format!("{head}[vm]\ncpus = 4\n"))
        .file("nodes.toml", format!("{head}backend = \"vm:6.12\"\n[vm]\nnuma_nodes = 3\n"));
    let commands = [
        "run hot-and-stream --vm-cpus 4",
        "run hot-and-stream --on host --lru-gen on",
        "compare hot-and-stream --on sim --on host --vm-nodes 2",
        "compare hot-and-stream --lru-gen on",
        "run hot-and-stream --on vm:6.12 --vm-cpus 0",
        "run hot-and-stream --on vm:6.12 --vm-nodes 3",
        "run hot-and-stream --on vm:6.12 --lru-gen maybe",
        "run hot-and-stream --on vm:6.12 --vm-cpus x",
        "run hot-and-stream --host-limit 64M",
        "compare hot-and-stream --on sim --on vm:6.12 --allow-host-pressure --dry-run",
        "run sim.toml",
        "run nodes.toml",
    ];
    insta::assert_snapshot!(refused(&scene, &commands), @r#"
    $ run hot-and-stream --vm-cpus 4
    error: `--vm-cpus` is for guests, and this runs on `sim`
    hint: add `--on uml:VERSION` or `--on vm:VERSION`, such as `--on uml:6.12`, or leave it out
    exit 1

    $ run hot-and-stream --on host --lru-gen on
    error: `--lru-gen` is for guests, and this runs on `host`
    hint: add `--on uml:VERSION` or `--on vm:VERSION`, such as `--on uml:6.12`, or leave it out
    exit 1

    $ compare hot-and-stream --on sim --on host --vm-nodes 2
    error: `--vm-nodes` is for guests, and this runs on `sim`
    hint: add `--on uml:VERSION` or `--on vm:VERSION`, such as `--on uml:6.12`, or leave it out
    exit 1

    $ compare hot-and-stream --lru-gen on
    error: `--lru-gen` is for guests, and this runs on `sim`
    hint: a simulated kernel has it as a feature: `--kernel linux-6.12+lru-gen`
    exit 1

    $ run hot-and-stream --on vm:6.12 --vm-cpus 0
    error: `cpus` of a virtual machine cannot be `0`: a virtual machine has 1 to 64
    hint: write it as in `--vm-cpus 4`, or `cpus = 4` below `[vm]`
    exit 1

    $ run hot-and-stream --on vm:6.12 --vm-nodes 3
    error: `numa_nodes` of a virtual machine cannot be `3`: each node needs a CPU, and there are 2
    hint: give it more CPUs or fewer nodes: `--vm-cpus 4 --vm-nodes 2`
    exit 1

    $ run hot-and-stream --on vm:6.12 --lru-gen maybe
    error: `lru_gen` of a virtual machine cannot be `maybe`: it is `on`, `off`, or bits of /sys/kernel/mm/lru_gen/enabled: 0x0001, 0x0003, 0x0005
    hint: write it as in `--lru-gen on`, or `lru_gen = "on"` below `[vm]`
    exit 1

    $ run hot-and-stream --on vm:6.12 --vm-cpus x
    error: invalid value 'x' for '--vm-cpus <N>': it takes a whole number, such as 2

    For more information, try '--help'.
    exit 2

    $ run hot-and-stream --host-limit 64M
    error: `--host-limit` is for runs on this host, and this runs on `sim`
    hint: add `--on host`, or leave it out
    exit 1

    $ compare hot-and-stream --on sim --on vm:6.12 --allow-host-pressure --dry-run
    error: `--allow-host-pressure` is for runs on this host, and this runs on `sim`
    hint: add `--on host`, or leave it out
    exit 1

    $ run sim.toml
    error: `sim.toml` cannot be run
      caused by: line 5, column 2: `[vm]` is for guests, and this runs on `sim`
    hint: add `--on uml:VERSION` or `--on vm:VERSION`, such as `--on uml:6.12`, or leave it out
    exit 1

    $ run nodes.toml
    error: `nodes.toml` cannot be run
      caused by: line 6, column 1: `numa_nodes` of a virtual machine cannot be `3`: each node needs a CPU, and there are 2
    hint: give it more CPUs or fewer nodes: `--vm-cpus 4 --vm-nodes 2`
    exit 1
    "#);
}
