//! How much a world does, before it runs: so that a guest needs seconds for it.
//!
//! One number, bytes that are moved, stands for all: a call costs as much as 2 KiB, and a file that is created as
//! much as 32 KiB, which is what a guest of User-Mode Linux came to on two shared cores (1.4 GiB/s read, 4,000 files
//! a second). Rough by intent: it bounds, it does not predict. Neighbour: `draw.rs`, which makes worlds smaller until
//! they fit.

use units::Bytes;
use workload::Params;

/// What a world may cost.
pub(crate) const COST_MAX: u64 = 1536 << 20;
/// What a small world of the model alone may.
pub(crate) const SMALL_COST_MAX: u64 = 48 << 20;
/// A second of a workload that runs for some time.
const SECOND: u64 = 128 << 20;
const CALL: u64 = 2 << 10;
const FILE: u64 = 32 << 10;

fn sum(parts: &[u64]) -> u64 {
    parts.iter().fold(0, |all, part| all.saturating_add(*part))
}

/// Read or written by calls of such a size.
fn called(bytes: u64, call: u64) -> u64 {
    sum(&[bytes, (bytes / call.max(1)).saturating_mul(CALL)])
}

/// What a workload with these parameters costs on a machine of so much memory.
pub(crate) fn cost(workload: &str, params: &Params, mem: Bytes) -> u64 {
    let size = |name: &str| params.size(name).map(Bytes::get);
    let count = |name: &str| params.count(name);
    let times = |a: u64, b: u64| a.saturating_mul(b);
    let own = |name: &str| size(name).unwrap_or(0);
    let number = |name: &str| count(name).unwrap_or(0);
    let created = |files: u64| sum(&[times(files, FILE), times(files, own("file_size"))]);
    match workload {
        "anon-and-file" => {
            let loops = number("loops").max(1);
            let read = called(times(own("every"), loops), own("read_size"));
            sum(&[own("file"), read, times(own("hot"), loops.saturating_add(1)), times(own("cold"), 2)])
        }
        "containers" => sum(&["a", "b"].map(|container| cost_of_container(params, container))),
        "hot-and-stream" => {
            let hot = times(own("hot"), number("hot_reads").saturating_add(1));
            let laid_out = own("hot") + own("stream");
            sum(&[laid_out, called(hot.saturating_add(own("stream")), own("read_size"))])
        }
        "huge-faults" => {
            // Files of 1.5 times the memory, readers for as long, mappings of 3/8.
            let files = times(mem.get() * 3 / 2, number("scale")) / 100;
            sum(&[times(files, 2), times(files / own("file_size").max(1), FILE), mem.get() / 2])
        }
        "inode-storm" => {
            let from = size("pin_from").unwrap_or(mem.get() / 2);
            let to = size("pin_to").unwrap_or(mem.get()).max(from);
            let steps = (to - from) / size("pin_step").unwrap_or(mem.get() / 64).max(1) + 1;
            let files = count("files").unwrap_or(mem.get() >> 16);
            sum(&[times(created(files), steps), to, times(from, if steps > 1 { 1 } else { 0 })])
        }
        "mapped-and-stream" => {
            let loops = number("loops");
            let passes = sum(&[number("reads"), loops, 2]);
            let read = called(times(own("every"), loops), own("read_size"));
            sum(&[own("stream"), read, times(own("hot"), passes)])
        }
        "random-calls" => {
            let small = times(number("small"), own("small_size") / 2 + FILE);
            // Most calls are about a part of what there is, and in no order.
            let call = sum(&[own("first"), own("second"), small, own("mapping"), SECOND]) / 4;
            let laid_out = sum(&[own("first"), own("second"), small]);
            sum(&[laid_out, times(call, times(number("calls"), number("tasks")))])
        }
        "sequential-readers" => {
            sum(&[called(times(times(own("file"), number("readers")), 3), own("record")), own("held")])
        }
        "simoop" => {
            let files = count("files").map_or(mem.get() * 12 / 5, |files| times(files, own("file_size")));
            let tree = times(count("tree_files").unwrap_or(mem.get() / (160 << 10)), FILE);
            let seconds = number("seconds").saturating_add(number("warmup"));
            sum(&[files, tree, times(seconds, SECOND / 2)])
        }
        "small-files" => {
            let files = count("files").unwrap_or(mem.get() * 8 / 15 / 4096);
            let loops = count("loops").unwrap_or(14);
            times(created(files), loops)
        }
        other => unreachable!("`{other}` is in the catalog and has no cost here"),
    }
}

/// Container `a` or `b` of `containers`: a fault costs as much as 16 KiB, as does a place that is not the next one.
fn cost_of_container(params: &Params, container: &str) -> u64 {
    let named = |what: &str| format!("{container}_{what}");
    let size = |what: &str| params.size(&named(what)).map_or(0, Bytes::get);
    let count = |what: &str| params.count(&named(what)).unwrap_or(0);
    let (bytes, block, memory) = (size("bytes"), size("block").max(1), size("memory"));
    let moved = match params.choice(&named("does")) {
        None | Some("none") => return 0,
        Some("hold") => 0,
        Some("map" | "map-write") => bytes.saturating_mul(4),
        Some(_) => called(bytes, block),
    };
    let calls = bytes / block;
    let is_in_order = params.choice(&named("order")) == Some("sequential");
    let elsewhere = if is_in_order { 0 } else { calls.saturating_mul(FILE / 2) };
    let fsyncs = calls.checked_div(count("fsync")).unwrap_or(0).saturating_mul(FILE);
    let rounds = sum(&[moved, elsewhere, fsyncs, memory]).saturating_mul(count("rounds"));
    sum(&[size("file"), sum(&[rounds, memory]).saturating_mul(count("tasks"))])
}
