//! What programs make, by the parameters and the machine's size.

use pagetide_workload::{Footprint, MachineSize, Workload};
use units::Bytes;

fn of(name: &str, pairs: &[(&'static str, &'static str)], mib: u64) -> Footprint {
    let machine = MachineSize { memory: Bytes(mib << 20).to_pages_floor(), nodes: 1, cpus: 2, disks: 1 };
    Workload::new(name, pairs.iter().copied()).unwrap().footprint(machine)
}

#[test]
fn files_of_huge_faults_are_half_as_much_again_as_memory_and_mappings_three_eighths() {
    assert_eq!(
        of("huge-faults", &[], 1024),
        Footprint {
            files: Bytes(1536 << 20),
            file_count: (1536 << 4) + 1,
            anonymous: Bytes(384 << 20),
            tasks: 5,
            disks: 1
        }
    );
    let scaled = of("huge-faults", &[("scale", "10"), ("file_size", "1M")], 1024);
    assert_eq!((scaled.files, scaled.file_count), (Bytes(152 << 20), 153));
    // Each thread maps two regions at least, however small the machine is.
    assert_eq!(of("huge-faults", &[("threads", "4096")], 64).anonymous, Bytes(4096 << 21));
}

#[test]
fn files_of_hot_and_stream_are_its_two_what_readahead_may_reach_and_what_moves_them() {
    for mib in [64, 4096] {
        let made = of("hot-and-stream", &[("hot", "50M"), ("stream", "2G")], mib);
        assert_eq!((made.files, made.file_count), (Bytes((50 + 2048 + 16 + 1) << 20), 3));
        assert_eq!((made.anonymous, made.tasks), (Bytes(0), 1));
    }
}
