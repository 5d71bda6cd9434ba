//! Whether a machine has room for what it shall swap to, and what is assumed of that.
//!
//! Two rules. A swap disk is as large as the machine's own disk at most. A zram device is no larger than what
//! memory could hold of it if all was compressed as programs' pages are in the mean: one that cannot be filled on
//! any workload of that kind is a mistake. Left out: real kernels' free disk space, which their backend looks at.

use sim::machines::MachineSpec;
use units::{Bytes, PAGE_SIZE};
use workload::scenario::{ScenarioProblem, Swap, SwapDevice};

/// Bytes that a page compresses to in the mean (`mm::pages::anon::COMPRESSED_BYTES`).
const COMPRESSED: u64 = mm::pages::anon::COMPRESSED_BYTES as u64;

/// # Errors
/// [`ScenarioProblem::Model`]: more than the machine has room for.
pub(crate) fn check(machine: &str, mem: Bytes, swap: &Swap) -> Result<(), ScenarioProblem> {
    let refused = |message, hint| Err(ScenarioProblem::Model { message, hint: Some(hint) });
    let room = MachineSpec::find(machine).expect("the machine was checked").disk.size();
    let on_disk = swap.size_on(SwapDevice::Disk);
    if on_disk > room {
        return refused(
            format!("swap of {on_disk} is larger than a disk of machine `{machine}`, which has {room}"),
            format!("give at most `--swap disk:{room}`"),
        );
    }
    let on_zram = swap.size_on(SwapDevice::Zram);
    let most = Bytes(mem.get() / COMPRESSED * PAGE_SIZE);
    if on_zram > most {
        return refused(
            format!(
                "zram of {on_zram} has no memory: full, with pages compressed to {COMPRESSED} of {PAGE_SIZE} bytes, it \
                 takes {} of {mem}",
                megabytes(Bytes(on_zram.get() / PAGE_SIZE * COMPRESSED)),
            ),
            format!("give the machine more memory with `--mem`, or at most {} of zram", megabytes(most)),
        );
    }
    Ok(())
}

fn megabytes(size: Bytes) -> Bytes {
    Bytes(size.get() >> 20 << 20)
}

/// What a reader of the results should know.
pub(crate) fn assumed(swap: &Swap) -> Option<String> {
    let has = |device| swap.size_on(device) > Bytes(0);
    let disk = has(SwapDevice::Disk).then_some("a swap disk is one more disk of the machine's kind");
    let zram = has(SwapDevice::Zram).then_some("zram takes time as measured for lz4");
    let zswap = "pages in zswap take time as measured for lz4, and lie in a pool of zsmalloc";
    let zswap = swap.zswap.map(|_| zswap);
    let told: Vec<&str> = disk.into_iter().chain(zram).chain(zswap).collect();
    (!told.is_empty()).then(|| format!("assumed: {}", told.join("; ")))
}
