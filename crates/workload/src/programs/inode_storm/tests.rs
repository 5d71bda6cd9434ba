//! What the machine's size makes of the parameters, what a kill leaves. What is refused: `tests/workload/catalog.rs`.

use super::*;

fn machine(mib: u64) -> MachineSize {
    // Of what is installed the kernel manages 98 percent.
    let memory = Pages((mib << 8) / 100 * 98);
    MachineSize { memory, nodes: 4, cpus: 16, disks: 1 }
}

fn of(pairs: &[(&str, &str)]) -> InodeStorm {
    let mut params = Params::defaults(PARAMS);
    for (name, value) in pairs {
        params.set(name, value).unwrap();
    }
    InodeStorm::from_params(&params).unwrap()
}

#[test]
fn steps_are_round_parts_of_what_is_installed() {
    let sizes = of(&[]).sizes(machine(16 << 10));
    assert_eq!((sizes.from, sizes.step), ((8 << 30) / PAGE_SIZE, (256 << 20) / PAGE_SIZE));
    assert_eq!(sizes.files_per_process, (16 << 30) / (64 << 10) / 16);
    assert_eq!(sizes.amounts().count(), 31, "8 to 15.5 GiB: 16 is more than there is");
    assert_eq!([3, 100, 1000, 1023, 1024, 1025].map(installed), [3, 104, 1024, 1024, 1024, 1152]);
}

/// Without pages of programs one fruitless round of reclaim was the last, and both features lost 2 GiB.
#[test]
fn a_machine_that_is_no_small_guest_has_pages_of_programs_and_says_so() {
    let programs = |pairs: &[(&str, &str)], mib| of(pairs).sizes(machine(mib)).programs;
    assert_eq!((programs(&[], 16 << 10), programs(&[], 4 << 10)), (PROGRAMS, PROGRAMS));
    assert_eq!((programs(&[], 2 << 10), programs(&[("programs", "0")], 16 << 10)), (Bytes(0), Bytes(0)));
    let says = |pairs: &[(&str, &str)]| of(pairs).remarks(machine(16 << 10)).join(" ").contains("assumed");
    assert!(says(&[]) && !says(&[("programs", "0")]) && !says(&[("programs", "38M")]));
}

#[test]
fn the_shape_of_the_measured_guests_pins_what_it_is_told() {
    let pairs = [
        ("processes", "1"),
        ("files", "12000"),
        ("pinner", "anew"),
        ("pin_from", "360M"),
        ("pin_step", "10M"),
        ("pin_to", "450M"),
    ];
    let storm = of(&pairs);
    let sizes = storm.sizes(machine(512));
    let amounts: Vec<u64> = sizes.amounts().map(|pages| (pages * PAGE_SIZE) >> 20).collect();
    assert_eq!(amounts, [360, 370, 380, 390, 400, 410, 420, 430, 440, 450]);
    assert_eq!(storm.footprint(machine(512)).file_count, 120_000);
    insta::assert_snapshot!(storm.remarks(machine(512)).join("\n"), @"each step 1 process with 12000 files of 0 each; pinned are 360M, then 10M more each time, until an OOM kill or 450M");
}

#[test]
fn what_a_kill_leaves_is_told_of_whole_steps_only() {
    let gib = (1 << 30) / PAGE_SIZE;
    let step = |pinned, killed, allocstalls| Stepped {
        pinned,
        files: 100,
        took: Nanos::from_secs(2),
        killed,
        memory: Memory { free: 5, allocstalls, ..Memory::default() },
    };
    let steps = [step(gib, false, 17), step(2 * gib, false, 27), step(3 * gib, true, 99)];
    let outcome = outcome(&steps, Nanos::from_secs(6), Pages(7), 10);
    assert_eq!(outcome.metrics["pinned_gib_before_oom"], 2.0);
    assert_eq!(outcome.metrics["pinned_gib_at_oom"], 3.0);
    assert_eq!(outcome.samples["files_per_sec"], [50.0, 50.0]);
    assert_eq!(outcome.samples["alloc_stalls"], [7.0, 10.0]);
}
