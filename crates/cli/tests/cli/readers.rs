//! `sequential-readers`: what cannot be read in parallel is refused in words, and a machine is changed
//! behind its name.

use crate::support::{Scene, refused};

#[test]
fn readers_without_a_disk_each_are_told_with_their_remedy() {
    let shown = refused(
        &Scene::new(),
        &[
            "run sequential-readers --param readers=0",
            "run sequential-readers --param readers=32",
            "run sequential-readers --param readers=32 --machine s390-fcp+disks=20",
            "run sequential-readers --param readers=4 --param disks=2",
            "run sequential-readers --param disks=16 --machine vm-2cpu",
            "run sequential-readers --param file=4k",
            "run sequential-readers --param filesystem=xfs",
            "run sequential-readers --mem 32M",
            "run sequential-readers --machine s390-fcp+cpus=0",
            "run sequential-readers --machine s390-fcp+cpu=2",
            "run sequential-readers --machine s390+cpus=2",
            "run sequential-readers --on host --param readers=2 --param disks=2 --param file=1M",
        ],
    );
    insta::assert_snapshot!(shown, @"
    $ run sequential-readers --param readers=0
    error: parameter `readers`: 0 is outside of 1 to 256
    exit 1

    $ run sequential-readers --param readers=32
    error: `sequential-readers` puts its files on 32 disks, and machine `s390-fcp` has 16 disks
    hint: put all on one with `--param disks=1`, or take a machine with more, as `s390-fcp+disks=32`
    exit 1

    $ run sequential-readers --param readers=32 --machine s390-fcp+disks=20
    error: `sequential-readers` puts its files on 32 disks, and machine `s390-fcp+disks=20` has 20 disks
    hint: put all on one with `--param disks=1`, or take a machine with more, as `s390-fcp+disks=32`
    exit 1

    $ run sequential-readers --param readers=4 --param disks=2
    error: parameter `disks`: 4 readers on 2 disks
    hint: each reader has a disk, `disks=4`, or all share one, `disks=1`
    exit 1

    $ run sequential-readers --param disks=16 --machine vm-2cpu
    error: `sequential-readers` puts its files on 16 disks, and machine `vm-2cpu` has 1 disk
    hint: put all on one with `--param disks=1`, or take a machine with more, as `vm-2cpu+disks=16`
    exit 1

    $ run sequential-readers --param file=4k
    error: parameter `file`: 4k is less than one record of 64k
    hint: give a larger `file` or a smaller `record`
    exit 1

    $ run sequential-readers --param filesystem=xfs
    error: XFS is modelled on one disk, and `sequential-readers` puts its files on 16
    hint: give `--param filesystem=ext4` or `--param disks=1`, or run it with `--on vm:VERSION`
    exit 1

    $ run sequential-readers --mem 32M
    error: 32M of memory is out of range for machine `s390-fcp`
    hint: give a size from 64M to 1T
    exit 1

    $ run sequential-readers --machine s390-fcp+cpus=0
    error: `cpus` of a machine cannot be `0`
    hint: it takes a number from the machine's nodes to 1024
    exit 1

    $ run sequential-readers --machine s390-fcp+cpu=2
    error: machines have no `cpu` to change
    hint: it is one of `disk`, `nodes`, `hz`, `costs`, `cpus`, `cpu_percent`, `disks`, `readahead`, `bandwidth`, `adapter`, `segment`, `log`, `flush`, `gathers`, `protection_keys`, `scheduler`, as in `s390-fcp+cpus=16`
    exit 1

    $ run sequential-readers --machine s390+cpus=2
    error: unknown machine `s390`
    hint: did you mean `s390-fcp`?
    exit 1

    $ run sequential-readers --on host --param readers=2 --param disks=2 --param file=1M
    error: `sequential-readers` puts its files on 2 disks, and a run on this host has one folder
    hint: put all on one with `--param disks=1`, or give it a guest with as many, `--on vm:VERSION`
    exit 1
    ");
}

#[test]
fn a_sweep_goes_over_changes_to_a_machine() {
    let scene = Scene::new();
    let shown = scene.data(
        "sweep sequential-readers --param readers=2 --param file=4M --param prepare=laid-out \
         --machine s390-fcp+segment=1us,s390-fcp+segment=50us --kernel linux-2.6.32 --format csv",
    );
    let machines: Vec<&str> = shown.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert_eq!(machines, ["s390-fcp+segment=1us", "s390-fcp+segment=50us"], "{shown}");
}

#[test]
fn a_changed_machine_in_a_file_is_checked_at_its_line() {
    let scene = Scene::new();
    let text = "schema = 1\nworkload = \"sequential-readers\"\nkernel = \"linux-6.1\"\nmem = \"256M\"\n";
    scene.file("readers.toml", format!("{text}machine = \"s390-fcp+segment=soon\"\n"));
    let shown = scene.shown("run readers.toml");
    assert!(shown.contains("line 5"), "{shown}");
    assert!(shown.contains("`segment` of a machine cannot be `soon`"), "{shown}");
}
