//! Scenario files: what is written, what is read back, and what is said about mistakes.

use std::collections::BTreeMap;

use pagetide_workload::scenario::{
    Backend, GUEST_CPUS_MAX, GUEST_NODES_MAX, Guest, LruGen, MEM_MAX, MEM_MIN, Scenario, ScenarioError,
    XFS_LOG_MIB,
};
use pagetide_workload::{Vocabulary, Workload};
use proptest::prelude::*;
use units::{Bytes, Seed};

const WORDS: Vocabulary = Vocabulary {
    kernels: &["linux-5.3", "linux-6.12"],
    features: &["root-aging", "watermark-boost"],
    unmodelled: &[],
    machines: &["desktop", "server"],
    sysctls: &["vm.min_free_kbytes", "vm.swappiness", "vm.lowmem_reserve_ratio"],
};

fn read(text: &str) -> Result<Scenario, ScenarioError> {
    Scenario::read(text, &WORDS)
}

const SMALLEST: &str = r#"
workload = "hot-and-stream"
kernel = "linux-5.3"
machine = "desktop"
mem = "1016336 kB"
"#;

#[test]
fn the_smallest_file_is_written_with_every_default() {
    let scenario = read(SMALLEST).unwrap();
    insta::assert_snapshot!(scenario.to_toml(), @r#"
        schema = 1
        workload = "hot-and-stream"
        kernel = "linux-5.3"
        machine = "desktop"
        mem = "1016336k"
        seed = 1
        backend = "sim"

        [params]
        filesystem = "ext4"
        hot = "50M"
        hot_reads = 2
        read_size = "128k"
        stream = "18G"
        topology = "siblings"
    "#);
    assert_eq!(read(&scenario.to_toml()), Ok(scenario));
}

#[test]
fn order_spelling_and_quotes_do_not_change_what_is_written() {
    let tidy = r#"
        kernel = "linux-5.3+watermark-boost-root-aging"
        machine = "server"
        workload = "hot-and-stream"
        seed = 18446744073709551615
        mem = 1073741824
        [params]
        hot = "1M"
        [sysctls]
        "vm.lowmem_reserve_ratio" = "256 32"
        "vm.swappiness" = 60
    "#;
    let untidy = r#"
        mem = "1G"
        backend = "sim"
        seed = "18446744073709551615"
        sysctls = { "vm/swappiness" = "60", vm.lowmem_reserve_ratio = " 256\t32" }
        params.hot = 0x10_0000
        machine = 'server'
        kernel = "linux-5.3-root-aging+watermark-boost"
        workload = "hot-and-stream"
    "#;
    let written = read(tidy).unwrap().to_toml();
    assert_eq!(written, read(untidy).unwrap().to_toml());
    insta::assert_snapshot!(written, @r#"
        schema = 1
        workload = "hot-and-stream"
        kernel = "linux-5.3-root-aging+watermark-boost"
        machine = "server"
        mem = "1G"
        seed = "18446744073709551615"
        backend = "sim"

        [params]
        filesystem = "ext4"
        hot = "1M"
        hot_reads = 2
        read_size = "128k"
        stream = "18G"
        topology = "siblings"

        [sysctls]
        "vm.lowmem_reserve_ratio" = "256 32"
        "vm.swappiness" = 60
    "#);
}

#[test]
fn every_mistake_is_reported_where_it_stands() {
    let with = |line: &str| format!("{}{line}\n", &SMALLEST[1..]);
    let without = |line: &str| SMALLEST[1..].replace(line, "");
    let said: String = [
        with("kernle = \"linux-5.3\""),
        with("seed = -1"),
        with("seed = 1.5"),
        with("seed ="),
        with("schema = 2"),
        with("params = 3"),
        with("[params]\nhot = \"-5M\""),
        with("[params]\nhot = \"99999T\""),
        with("[params]\nhott = \"5M\""),
        with("[params]\nhot_reads = 100000"),
        with("[params]\ntopology = \"sibling\""),
        with("[params]\nhot = 99999999999999999999999999999999999999999"),
        with("[params]\nhot = \"1M\"\n\n  limit = \"256M\""),
        with("[sysctls]\nmin_free_kbytes = 5"),
        with("[sysctls]\nvm.swapiness = 5"),
        with("[sysctls]\nvm.swappiness = \"\""),
        with("[sysctls]\nvm.swappiness = true"),
        with("[sysctls]\nvm.swappiness = 1\n\"vm/swappiness\" = 2"),
        with("backend = \"vm:\""),
        with("backend = \"host\""),
        with("backend = \"vm:6.12\""),
        with("[vm]\ncpus = 4"),
        without("mem = \"1016336 kB\""),
        SMALLEST.replace("1016336 kB", "1"),
        SMALLEST.replace("1016336 kB", "much"),
        SMALLEST.replace("hot-and-stream", "hot-and-steam"),
        SMALLEST.replace("linux-5.3", "linux-5.3+rootaging"),
        SMALLEST.replace("desktop", "b\u{f6}se"),
        String::new(),
    ]
    .map(|text| {
        let error = read(&text).unwrap_err();
        let hint = error.hint().map(|hint| format!("\n  {hint}")).unwrap_or_default();
        format!("{error}{hint}\n")
    })
    .concat();
    insta::assert_snapshot!(said, @r#"
    line 5, column 1: unknown key `kernle`
      did you mean `kernel`?
    line 5, column 8: `seed`: `-1` is not a whole number from 0 to 2^64 - 1
    line 5, column 8: `seed` is a number with a point, not a text or a whole number
    line 5, column 7: string values must be quoted, expected literal string
      a line is `key = 5` or `key = "text"`; `--dry-run` prints a whole file
    line 5, column 10: the file has schema `2`, and this program reads 1
      use the version of this program that wrote the file
    line 5, column 10: `params` is a whole number, not a table
    line 6, column 7: parameter `hot`: `-5M` is negative
      write a whole number with an optional suffix, such as `256M`, `1016336kB` or `18G`
    line 6, column 7: parameter `hot`: 99999T is outside of 0 to 16T
    line 6, column 1: unknown parameter `hott`
      did you mean `hot`?
    line 6, column 13: parameter `hot_reads`: 100000 is outside of 0 to 1000
    line 6, column 12: parameter `topology`: unknown choice `sibling`
      did you mean `siblings`?
    line 6, column 7: `hot` is a whole number, not a number of at most 127 bits
    line 8, column 11: parameter `limit`: there is no parent cgroup to limit
      add `topology=parent`, or leave `limit` out
    line 6, column 1: unknown sysctl `min_free_kbytes`
      did you mean `vm.min_free_kbytes`?
    line 6, column 4: unknown sysctl `vm.swapiness`
      did you mean `vm.swappiness`?
    line 6, column 17: sysctl `vm.swappiness`: `` is not a value
      write a number, or words between blanks
    line 6, column 17: `vm.swappiness` is true or false, not a text or a whole number
    line 7, column 1: sysctl `vm.swappiness` is set twice, to `1` and to `2`
      leave one of them out
    line 5, column 11: unknown backend `vm:`
      did you mean `vm:VERSION`?
    line 2, column 10: `kernel` cannot be `linux-5.3`: this host runs its own kernel
      leave it out, or boot another one with `--on uml:VERSION`
    line 2, column 10: `kernel` cannot be `linux-5.3`: the guest runs Debian's 6.12
      leave it out, or simulate it with `--on sim`
    line 5, column 2: `[vm]` is for guests, and this runs on `sim`
      add `--on uml:VERSION` or `--on vm:VERSION`, such as `--on uml:6.12`, or leave it out
    key `mem` is missing
      add a line `mem = ...` at the top of the file
    line 5, column 7: `mem`: 1 is outside of 8M to 1T
    line 5, column 7: `mem`: `much` is not a size
      write a whole number with an optional suffix, such as `256M`, `1016336kB` or `18G`
    line 2, column 12: unknown workload `hot-and-steam`
      did you mean `hot-and-stream`?
    line 3, column 10: unknown feature `rootaging`
      did you mean `root-aging`?
    line 4, column 11: unknown machine `böse`
      known names: `desktop`, `server`
    key `workload` is missing
      add a line `workload = ...` at the top of the file
    "#);
}

#[test]
fn a_table_vm_shapes_the_guest_and_its_mistakes_have_places() {
    let guest = |table: &str| {
        let smallest = "\n\n\nworkload = \"hot-and-stream\"\nmem = \"1G\"\n";
        let scenario = read(&format!("{smallest}backend = \"vm:6.12\"\n{table}\n"));
        scenario.map(|scenario| scenario.guest).map_err(|error| error.to_string())
    };
    assert_eq!(guest(""), Ok(None));
    assert_eq!(guest("[vm]"), Ok(Some(Guest::default())));
    let whole = Guest { cpus: 4, numa_nodes: 2, lru_gen: LruGen::ON, xfs_log: Some(16) };
    assert_eq!(guest("[vm]\ncpus = 4\nnuma_nodes = 2\nlru_gen = \"on\"\nxfs_log = 16"), Ok(Some(whole)));
    assert_eq!(guest("vm.cpus = 4\nvm.numa_nodes = 2\nvm.lru_gen = 7\nvm.xfs_log = 16"), Ok(Some(whole)));
    let wrong = [
        "cpus = 0",
        "cpus = -4",
        "numa_nodes = 3",
        "lru_gen = \"maybe\"",
        "lru_gen = true",
        "cpu = 4",
        "xfs_log = 1",
    ];
    let told = wrong.map(|line| guest(&format!("[vm]\n{line}")).unwrap_err());
    insta::assert_snapshot!(told.join("\n"), @"
    line 7, column 1: `cpus` of a virtual machine cannot be `0`: a virtual machine has 1 to 64
    line 8, column 8: `cpus` of a virtual machine cannot be `-4`: it is a whole number
    line 7, column 1: `numa_nodes` of a virtual machine cannot be `3`: each node needs a CPU, and there are 2
    line 8, column 11: `lru_gen` of a virtual machine cannot be `maybe`: it is `on`, `off`, or bits of /sys/kernel/mm/lru_gen/enabled: 0x0001, 0x0003, 0x0005
    line 8, column 11: `lru_gen` is true or false, not a text or a whole number
    line 8, column 1: unknown key `cpu`
    line 7, column 1: `xfs_log` of a virtual machine cannot be `1`: a log of XFS has 4 to 2047 MiB
    ");
    assert_eq!(guest("vm = 4").unwrap_err(), "line 7, column 6: `vm` is a whole number, not a table");
}

#[test]
fn what_a_real_kernel_leaves_to_choose_is_all_that_is_written_of_it() {
    let written = |text: &str| read(text).unwrap().to_toml();
    let host = written("workload = \"hot-and-stream\"\nbackend = \"host\"\n");
    assert_eq!(written(&host), host, "what was written can be run again");
    let head = |toml: &str| toml.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
    let guest = written(
        "workload = \"hot-and-stream\"\nbackend = \"vm:6.12\"\nkernel = \"linux-6.12\"\nmem = \"1G\"\n",
    );
    insta::assert_snapshot!(format!("{}\n\n{}", head(&host), head(&guest)), @r#"
    schema = 1
    workload = "hot-and-stream"
    seed = 1
    backend = "host"

    schema = 1
    workload = "hot-and-stream"
    mem = "1G"
    seed = 1
    backend = "vm:6.12"
    "#);
}

#[test]
fn a_file_that_is_moved_leaves_out_what_means_nothing_there() {
    let moved = |text: &str, to: Backend| {
        let written = Scenario::read_to_run_on(text, &WORDS, Some(&to)).unwrap();
        let Scenario { kernel, machine, mem, .. } = written.scenario;
        (written.unused.join(" "), kernel.is_some(), machine.is_some(), mem.is_some())
    };
    assert_eq!(moved(SMALLEST, Backend::Sim), (String::new(), true, true, true));
    assert_eq!(moved(SMALLEST, Backend::Host), ("kernel machine mem".to_owned(), false, false, false));
    let guest = Backend::Vm("6.12".to_owned());
    assert_eq!(moved(SMALLEST, guest.clone()), ("kernel machine".to_owned(), false, false, true));
    let same = SMALLEST.replace("linux-5.3", "linux-6.12");
    assert_eq!(moved(&same, guest), ("machine".to_owned(), false, false, true));
    let wrong = format!("{SMALLEST}backend = \"host\"\n");
    assert_eq!(moved(&wrong, Backend::Sim), (String::new(), true, true, true));
}

fn scenarios() -> impl Strategy<Value = Scenario> {
    let params = (0..=MEM_MAX.get(), 0..=1000_u64, any::<bool>(), proptest::option::of(1_u64 << 20..1 << 40));
    let backend = prop_oneof![
        Just(Backend::Sim),
        Just(Backend::Host),
        "[0-9]{1,2}\\.[0-9]{1,3}(-[a-z0-9]{1,5})?".prop_map(Backend::Vm),
        "[0-9]{1,2}\\.[0-9]{1,3}(-[a-z0-9]{1,5})?".prop_map(Backend::Uml)
    ];
    let kernel = proptest::sample::select(vec!["linux-5.3", "linux-6.12+root-aging", "linux-5.3-root-aging"]);
    let sysctl = proptest::sample::select(WORDS.sysctls);
    let sysctls = proptest::collection::btree_map(sysctl, "[!-~]{1,6}( [!-~]{1,6}){0,2}", 0..3);
    let lru_gen = proptest::sample::select(vec!["on", "off", "0x3"]).prop_map(|text| text.parse().unwrap());
    let log = proptest::option::of(XFS_LOG_MIB);
    let guest = (1..=GUEST_CPUS_MAX, 1..=GUEST_NODES_MAX, lru_gen, log);
    let guest = guest.prop_map(|(cpus, nodes, lru_gen, xfs_log)| Guest {
        cpus,
        numa_nodes: nodes.min(cpus),
        lru_gen,
        xfs_log,
    });
    let guest = proptest::option::of(guest);
    (params, kernel, MEM_MIN.get()..=MEM_MAX.get(), sysctls, any::<u64>(), backend, guest).prop_map(
        |((hot, reads, xfs, limit), kernel, mem, sysctls, seed, backend, guest)| {
            let mut pairs = vec![("hot", hot.to_string()), ("hot_reads", reads.to_string())];
            pairs.push(("filesystem", if xfs { "xfs" } else { "ext4" }.to_owned()));
            if let Some(limit) = limit {
                pairs.extend([("topology", "parent".to_owned()), ("limit", limit.to_string())]);
            }
            let pairs = pairs.iter().map(|(name, value)| (*name, value.as_str()));
            let owned = |(name, value): (&str, String)| (name.to_owned(), value);
            let (simulated, guest) = match backend {
                Backend::Sim => (true, None),
                Backend::Host => (false, None),
                Backend::Vm(_) | Backend::Uml(_) => (false, guest),
            };
            let machine = if simulated { Some("server") } else { backend.guest_machine() };
            let swaps = ["none", "zram:256M", "disk:1G,zram:1M", "zram:5M,zram:6M"];
            let swap = swaps[seed as usize % swaps.len()].parse().unwrap();
            Scenario {
                workload: Workload::new("hot-and-stream", pairs).unwrap(),
                file: None,
                kernel: simulated.then(|| WORDS.kernel(kernel).unwrap()),
                machine: machine.map(str::to_owned),
                mem: (backend != Backend::Host).then_some(Bytes(mem)),
                swap: (backend != Backend::Host && hot % 2 == 0).then_some(swap),
                sysctls: sysctls.into_iter().map(owned).collect::<BTreeMap<_, _>>(),
                seed: Seed(seed),
                interval: seed.is_multiple_of(3).then(|| units::Nanos::from_millis(1 + seed % 3_600_000)),
                backend,
                guest,
            }
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read_back_equal(scenario in scenarios()) {
        let written = scenario.to_toml();
        prop_assert_eq!(read(&written), Ok(scenario));
    }

    /// Either it reads or it complains with words.
    #[test]
    fn no_text_makes_the_reader_panic(
        text in "\\PC{0,60}",
        tokens in proptest::collection::vec(
            proptest::sample::select(vec![
                "workload", "kernel", "mem", "seed", "params", "sysctls", "hot", "vm", "cpus", "lru_gen", "=", ".", "[", "]",
                "\n", "\"hot-and-stream\"", "\"linux-5.3\"", "\"", "-1", "0x", "1e9", "{", "}", ",", "\u{e9}",
                "\"desktop\"", "\"1G\"", "machine", "#", "true",
            ]),
            0..40,
        ),
    ) {
        for text in [text, tokens.concat()] {
            if let Err(error) = read(&text) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
