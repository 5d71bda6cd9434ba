//! Machines are what they are called, and what was assumed about them is said.

use crate::support::Scene;

/// The model beside a guest was `vm-2cpu`, which was the guest's machine at three sizes of memory.
#[test]
fn the_model_beside_a_guest_runs_on_the_machine_that_stands_for_it_and_says_so() {
    let scene = Scene::new();
    let compare = "compare hot-and-stream --on sim --on vm:6.12 --dry-run";
    let assumed = "assumed: machine guest-tcg for what is simulated, as it is compared with vm:6.12; \
                   `--machine` names another";
    let shown = scene.shown(compare);
    assert_eq!(shown.matches("machine = \"guest-tcg\"\nmem = \"512M\"").count(), 2, "{shown}");
    assert!(shown.ends_with(&format!("{assumed}\nexit 0")), "{shown}");

    let other_shape = scene.shown(&format!("{compare} --vm-cpus 4 --vm-nodes 2"));
    let shape = " (it has 2 CPUs and 1 node, the guest 4 and 2)";
    assert!(other_shape.ends_with(&format!("{assumed}{shape}\nexit 0")), "{other_shape}");

    let named = scene.shown(&format!("{compare} --machine vm-2cpu"));
    assert!(!named.contains("assumed"), "{named}");
    let (model, guest) = named.split_at(named.rfind("schema = 1").unwrap());
    assert!(model.contains("machine = \"vm-2cpu\"\nmem = \"512M\""), "{model}");
    assert!(guest.contains("machine = \"guest-tcg\"\nmem = \"512M\""), "{guest}");
}

#[test]
fn a_guest_of_a_kernel_that_nobody_measured_says_what_is_assumed() {
    let scene = Scene::new();
    let run = "run hot-and-stream --machine guest-tcg --mem 128M --param hot=1M --param stream=8M";
    let note =
        "note: assumed: linux-5.4 boots as a guest of linux-5.10 does; no guest of linux-5.4 was measured";
    let shown = scene.data(&format!("{run} --kernel linux-5.4"));
    assert!(shown.split_whitespace().collect::<Vec<_>>().join(" ").contains(note), "{shown}");
    assert!(!scene.data(&format!("{run} --kernel linux-6.1")).contains("assumed"));
    assert!(
        !scene.data(&format!("{run} --kernel linux-5.4").replace("guest-tcg", "vm-2cpu")).contains("assumed")
    );
}

#[test]
fn a_machine_file_is_a_machine() {
    let scene = Scene::new();
    scene.file(
        "server.toml",
        "memory = \"96M\"\nnodes = 2\ncpus = 4\n[disk]\nclass = \"ssd\"\n[costs]\nsyscall = \"1us\"\n[sysctls]\n\"vm.swappiness\" = 10\n",
    );
    let dry = scene.data("run hot-and-stream --machine server.toml --dry-run");
    let said: Vec<&str> =
        dry.lines().filter(|line| line.starts_with("machine") || line.starts_with("mem")).collect();
    assert_eq!(said, ["machine = \"x86-64+nodes=2+cpus=4+disk=ssd+costs=syscall:1us\"", "mem = \"96M\""]);
    assert!(dry.contains("\"vm.swappiness\" = 10"), "{dry}");
    let own =
        scene.data("run hot-and-stream --machine server.toml --mem 80M --set vm.swappiness=20 --dry-run");
    assert!(own.contains("mem = \"80M\"") && own.contains("\"vm.swappiness\" = 20"), "{own}");
    scene.data("run hot-and-stream --machine server.toml --param hot=2M --param stream=128M");
}

#[test]
fn a_built_in_machine_is_shown_as_a_file_that_is_the_same_machine() {
    let scene = Scene::new();
    scene.file("same.toml", scene.data("machine show skylake-1s"));
    let run = |machine: &str| {
        scene.data(&format!(
            "run hot-and-stream --machine {machine} --mem 128M --param hot=2M --param stream=64M --format csv"
        ))
    };
    let lines = |text: String| {
        text.lines().filter(|line| !line.contains("wall_seconds")).map(str::to_owned).collect::<Vec<_>>()
    };
    let metrics = |text: String| -> Vec<String> {
        let of_metric = |line: &&String| line.contains("hot_pages_cached") || line.contains("reread_seconds");
        let value =
            |line: &String| line.rsplit_once("skylake-1s").map_or(line.clone(), |(_, rest)| rest.to_owned());
        lines(text).iter().filter(of_metric).map(value).collect()
    };
    let (same, own) = (metrics(run("same.toml")), metrics(run("skylake-1s")));
    assert!(!own.is_empty());
    assert_eq!(same, own);
}

#[test]
fn wrong_machine_files_are_told() {
    let scene = Scene::new();
    scene.file("cost.toml", "[costs]\nsyscal = \"1us\"\n").file("word.toml", "ram = \"64G\"\n");
    insta::assert_snapshot!(
        crate::support::refused(&scene, &[
            "run hot-and-stream --machine cost.toml",
            "run hot-and-stream --machine word.toml",
            "run hot-and-stream --machine none.toml",
            "run hot-and-stream --machine word.toml --on uml:6.12",
            "machine show vm-3cpu",
            "run hot-and-stream --machine ./",
            "run hot-and-stream --machine ./none",
            "machine probe --dir none",
        ]),
        @r#"
    $ run hot-and-stream --machine cost.toml
    error: `cost.toml` cannot be run
      caused by: line 2, column 1: cost `syscal = 1us` cannot be so
    hint: a name of `pagetide machine show x86-64`, and a time such as `"120ns"`
    exit 1

    $ run hot-and-stream --machine word.toml
    error: `word.toml` cannot be run
      caused by: line 1, column 1: unknown key `ram` of the file
    hint: known names: `base`, `help`, `memory`, `nodes`, `cpus`, `hz`, `cpu_percent`, `protection_keys`, `disk`, `costs`, `sysctls`
    exit 1

    $ run hot-and-stream --machine none.toml
    error: cannot read `none.toml`
      caused by: No such file or directory (os error 2)
    hint: check the path; `pagetide machine show NAME > FILE.toml` writes one
    exit 1

    $ run hot-and-stream --machine word.toml --on uml:6.12
    error: `word.toml` cannot be run
      caused by: line 1, column 1: unknown key `ram` of the file
    hint: known names: `base`, `help`, `memory`, `nodes`, `cpus`, `hz`, `cpu_percent`, `protection_keys`, `disk`, `costs`, `sysctls`
    exit 1

    $ machine show vm-3cpu
    error: unknown machine `vm-3cpu`
    hint: did you mean `vm-2cpu`?
    exit 1

    $ run hot-and-stream --machine ./
    error: cannot read `./`
      caused by: Is a directory (os error 21)
    hint: a machine file is a text, as `pagetide machine show` prints it; this is something else
    exit 1

    $ run hot-and-stream --machine ./none
    error: cannot read `./none`
      caused by: No such file or directory (os error 2)
    hint: check the path; `pagetide machine show NAME > FILE.toml` writes one
    exit 1

    $ machine probe --dir none
    timing calls, the disk and reclaim; it takes some ten seconds
    error: there is no folder `none`
    hint: name a folder of yours with 64 MiB to spare by `--dir`
    exit 1
    "#
    );
}
