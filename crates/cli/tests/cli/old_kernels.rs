//! What an old kernel does not have is refused before a run, with a kernel that has it.

use crate::support::{Scene, refused};

#[test]
fn linux_2_6_32_has_no_cgroups_huge_pages_or_factors_for_its_marks() {
    let shown = refused(
        &Scene::new(),
        &[
            "run hot-and-stream --kernel linux-2.6.32",
            "compare hot-and-stream --kernel linux-2.6.32-pcp-cold-order --kernel linux-6.12",
            "run huge-faults --kernel linux-2.6.32 --param advice=madvise",
            "run huge-faults --kernel linux-2.6.32 --set thp.enabled=always",
            "run sequential-readers --kernel linux-2.6.32 --set vm.watermark_scale_factor=100",
            "run sequential-readers --kernel linux-2.6.32 --set vm.watermark_boost_factor=0",
        ],
    );
    insta::assert_snapshot!(shown, @"
    $ run hot-and-stream --kernel linux-2.6.32
    error: `linux-2.6.32` has no cgroup v2, in which `hot-and-stream` puts its tasks
    hint: name a kernel that has it: `--kernel linux-4.19` or later
    exit 1

    $ compare hot-and-stream --kernel linux-2.6.32-pcp-cold-order --kernel linux-6.12
    error: `linux-2.6.32` has no cgroup v2, in which `hot-and-stream` puts its tasks
    hint: name a kernel that has it: `--kernel linux-4.19` or later
    exit 1

    $ run huge-faults --kernel linux-2.6.32 --param advice=madvise
    error: `linux-2.6.32` has no huge pages that `huge-faults` could ask for
    hint: leave out `--param advice=madvise`: every fault is of a single page there
    exit 1

    $ run huge-faults --kernel linux-2.6.32 --set thp.enabled=always
    error: `linux-2.6.32` has no `thp.enabled`
    hint: leave it out, or name a kernel that has it: `--kernel linux-4.19` or later
    exit 1

    $ run sequential-readers --kernel linux-2.6.32 --set vm.watermark_scale_factor=100
    error: `linux-2.6.32` has no `vm.watermark_scale_factor`
    hint: leave it out, or name a kernel that has it: `--kernel linux-4.19` or later
    exit 1

    $ run sequential-readers --kernel linux-2.6.32 --set vm.watermark_boost_factor=0
    error: `linux-2.6.32` has no `vm.watermark_boost_factor`
    hint: leave it out, or name a kernel that has it: `--kernel linux-4.19` or later
    exit 1
    ");
}
