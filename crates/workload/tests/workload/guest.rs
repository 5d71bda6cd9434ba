//! The shape of a guest, and its multi-gen LRU.

use pagetide_workload::scenario::{Guest, LruGen};

#[test]
fn lru_gen_takes_what_the_kernels_file_takes() {
    let read = |text: &str| text.parse::<LruGen>().map(|value| (value.to_string(), value.to_sysfs()));
    let pair = |shown: &str, written: &str| Ok((shown.to_owned(), written.to_owned()));
    for text in ["on", "y", "Y", "7", "0x7", "0x0007"] {
        assert_eq!(read(text), pair("on", "y"), "{text}");
    }
    for text in ["off", "n", "N", "0", "0x0000"] {
        assert_eq!(read(text), pair("off", "n"), "{text}");
    }
    assert_eq!(read("3"), pair("0x0003", "0x0003"));
    for text in ["", "yes", "2", "8", "0x", "-1", "0x1ff", "\u{e9}"] {
        assert!(read(text).is_err(), "{text}");
    }
}

#[test]
fn a_guest_has_a_cpu_for_each_node() {
    let check = |cpus, numa_nodes| {
        let guest = Guest { cpus, numa_nodes, ..Guest::default() };
        guest.check().map_err(|problem| problem.to_string())
    };
    for (cpus, nodes) in [(1, 1), (2, 2), (5, 3), (64, 8)] {
        assert_eq!(check(cpus, nodes), Ok(()));
    }
    let refused = [(0, 1), (65, 1), (2, 0), (64, 9), (2, 3)].map(|(c, n)| check(c, n).unwrap_err());
    insta::assert_snapshot!(refused.join("\n"), @"
    `cpus` of a virtual machine cannot be `0`: a virtual machine has 1 to 64
    `cpus` of a virtual machine cannot be `65`: a virtual machine has 1 to 64
    `numa_nodes` of a virtual machine cannot be `0`: a virtual machine has 1 to 8
    `numa_nodes` of a virtual machine cannot be `9`: a virtual machine has 1 to 8
    `numa_nodes` of a virtual machine cannot be `3`: each node needs a CPU, and there are 2
    ");
}

#[test]
fn a_label_has_only_what_differs() {
    let default = Guest::default();
    assert_eq!(default.differences(&default), "");
    let guest = Guest { cpus: 4, numa_nodes: 2, lru_gen: LruGen::ON, xfs_log: Some(16) };
    assert_eq!(guest.differences(&default), "cpus=4,numa_nodes=2,lru_gen=on,xfs_log=16M");
}
