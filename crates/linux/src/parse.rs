//! The kernel's text files as names and numbers, without allocating.
//!
//! A parser calls `emit` with the parts of a column's name and the value, in the order of the
//! file. It runs while a sample is taken, so it only borrows from the text. Whatever it does not
//! understand it leaves out: these files grow with every kernel.
//!
//! Left out: per-CPU sections of `/proc/zoneinfo`. Next: [`crate::monitor`], which reads the files.

use std::str::SplitAsciiWhitespace;

/// Takes one number: the parts of its name, to be written one after the other, and its value.
pub(crate) type Emit<'a> = dyn FnMut(&[&str], u64) + 'a;

/// A parser of one kind of file.
pub(crate) type Parser = fn(&str, &mut Emit<'_>);

/// Lines of `name value`: `/proc/vmstat`, `memory.stat`, `memory.events`.
pub(crate) fn pairs(text: &str, emit: &mut Emit<'_>) {
    for line in text.lines() {
        if let Some((name, value)) = line.split_once(' ')
            && let Ok(value) = value.trim().parse()
        {
            emit(&[name], value);
        }
    }
}

/// A file that is one number, such as `memory.current`. The name is up to the caller's prefix.
pub(crate) fn single(text: &str, emit: &mut Emit<'_>) {
    if let Ok(value) = text.trim().parse() {
        emit(&[], value);
    }
}

/// `/proc/meminfo`: `mi_<name>` in kB, or as a count where the file has no unit.
pub(crate) fn meminfo(text: &str, emit: &mut Emit<'_>) {
    for line in text.lines() {
        if let Some((name, rest)) = line.split_once(':')
            && let Some(value) = first_number(rest)
        {
            emit(&["mi_", name], value);
        }
    }
}

/// `/proc/zoneinfo`: `z<node>_<zone>_<free|boost|min|low|high|managed>` in pages.
pub(crate) fn zoneinfo(text: &str, emit: &mut Emit<'_>) {
    let mut zone = None;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        match words.next() {
            Some("Node") => zone = zone_of(words).map(|(node, zone, _)| (node, zone)),
            Some("pages") if words.next() == Some("free") => emit_zone(zone, "free", words, emit),
            Some(name @ ("boost" | "min" | "low" | "high" | "managed")) => {
                emit_zone(zone, name, words, emit);
            }
            _ => {}
        }
    }
}

/// Emits one number of a zone; `high:` of a CPU's page list has a colon and does not come here.
fn emit_zone(
    zone: Option<(&str, &str)>,
    name: &str,
    mut words: SplitAsciiWhitespace<'_>,
    emit: &mut Emit<'_>,
) {
    if let Some((node, zone)) = zone
        && let Some(value) = words.next().and_then(|word| word.parse().ok())
    {
        emit(&["z", node, "_", zone, "_", name], value);
    }
}

/// The node and zone of a line, read from behind the word `Node`, and the words that follow.
fn zone_of(mut words: SplitAsciiWhitespace<'_>) -> Option<(&str, &str, SplitAsciiWhitespace<'_>)> {
    let node = words.next()?.trim_end_matches(',');
    if words.next()? != "zone" {
        return None;
    }
    let zone = words.next()?.trim_end_matches(',');
    Some((node, zone, words))
}

/// Names of the orders, so that none has to be formatted.
const ORDERS: [&str; 16] =
    ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15"];

/// `/proc/buddyinfo`: `buddy_n<node>_<zone>_o<order>` in blocks of that order.
pub(crate) fn buddyinfo(text: &str, emit: &mut Emit<'_>) {
    for line in text.lines() {
        if let Some((node, zone, counts)) = node_line(line) {
            for (order, count) in ORDERS.iter().zip(counts) {
                if let Ok(count) = count.parse() {
                    emit(&["buddy_n", node, "_", zone, "_o", order], count);
                }
            }
        }
    }
}

fn node_line(line: &str) -> Option<(&str, &str, SplitAsciiWhitespace<'_>)> {
    let mut words = line.split_ascii_whitespace();
    (words.next() == Some("Node")).then(|| zone_of(words)).flatten()
}

/// `/proc/pagetypeinfo`: free blocks as `pagetype_n<node>_<zone>_<type>_o<order>` and the types of
/// page blocks as `pageblocks_n<node>_<zone>_<type>`; of the types that the model has, both again as it names them:
/// pages as `z<node>_<zone>_free_<type>`, blocks as `z<node>_<zone>_blocks_<type>`. The kernel stops counting at
/// 100000 free blocks.
pub(crate) fn pagetypeinfo(text: &str, emit: &mut Emit<'_>) {
    let mut types = "";
    for line in text.lines() {
        if let Some(header) = line.strip_prefix("Number of blocks type") {
            types = header;
        } else if let Some((node, zone, mut words)) = node_line(line) {
            if types.is_empty() {
                let kind = (words.next() == Some("type")).then(|| words.next()).flatten();
                let Some(kind) = kind else { continue };
                let mut pages = 0;
                for ((order, size), count) in ORDERS.iter().zip(0..).zip(words) {
                    if let Ok(count) = count.trim_start_matches('>').parse::<u64>() {
                        emit(&["pagetype_n", node, "_", zone, "_", kind, "_o", order], count);
                        pages += count << size;
                    }
                }
                if let Some(name) = modelled(kind) {
                    emit(&["z", node, "_", zone, "_free_", name], pages);
                }
            } else {
                for (kind, count) in types.split_ascii_whitespace().zip(words) {
                    if let Ok(count) = count.parse() {
                        emit(&["pageblocks_n", node, "_", zone, "_", kind], count);
                        if let Some(name) = modelled(kind) {
                            emit(&["z", node, "_", zone, "_blocks_", name], count);
                        }
                    }
                }
            }
        }
    }
}

/// What simulated recordings call a mobility type.
fn modelled(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "Unmovable" => "unmovable",
        "Movable" => "movable",
        "Reclaimable" => "reclaimable",
        _ => return None,
    })
}

/// The caches that memory-pressure workloads fill, of the filesystems that they run on.
const CACHES: [&str; 11] = [
    "dentry",
    "inode_cache",
    "ext4_inode_cache",
    "ext4_extent_status",
    "xfs_inode",
    "xfs_ili",
    "xfs_buf",
    "btrfs_inode",
    "radix_tree_node",
    "buffer_head",
    "lsm_inode_cache",
];

/// `/proc/slabinfo`: `slab_<cache>_active` and `slab_<cache>_num` in objects, of [`CACHES`].
pub(crate) fn slabinfo(text: &str, emit: &mut Emit<'_>) {
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(cache) = words.next().filter(|name| CACHES.contains(name)) else { continue };
        for suffix in ["_active", "_num"] {
            if let Some(value) = words.next().and_then(|word| word.parse().ok()) {
                emit(&["slab_", cache, suffix], value);
            }
        }
    }
}

/// `/proc/pressure/memory` and `memory.pressure`: `psi_memory_some_avg10` and so on in hundredths of a percent,
/// `psi_memory_some_total_us`.
pub(crate) fn pressure(text: &str, emit: &mut Emit<'_>) {
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(kind) = words.next() else { continue };
        for (name, value) in words.filter_map(|word| word.split_once('=')) {
            match value.split_once('.') {
                Some((percent, hundredths)) if name.starts_with("avg") && hundredths.len() == 2 => {
                    let (Ok(percent), Ok(hundredths)) = (percent.parse::<u64>(), hundredths.parse::<u64>())
                    else {
                        continue;
                    };
                    emit(&["psi_memory_", kind, "_", name], 100 * percent + hundredths);
                }
                None if name == "total" => {
                    if let Ok(total) = value.parse() {
                        emit(&["psi_memory_", kind, "_total_us"], total);
                    }
                }
                _ => {}
            }
        }
    }
}

/// What v1 calls otherwise, by its `total_` name.
const RENAMED: [(&str, &str); 5] = [
    ("cache", "file"),
    ("rss", "anon"),
    ("mapped_file", "file_mapped"),
    ("dirty", "file_dirty"),
    ("writeback", "file_writeback"),
];

/// What v1 counts the same way as v2 does, under the same name.
const SAME: [&str; 11] = [
    "shmem",
    "workingset_refault_anon",
    "workingset_refault_file",
    "pgfault",
    "pgmajfault",
    "inactive_anon",
    "active_anon",
    "inactive_file",
    "active_file",
    "unevictable",
    "swapcached",
];

/// `memory.stat` of cgroup v1 by the names of v2, children included as in v2. What v1 does not
/// count is left out, and so are its `pgpgin` and `pgpgout`, which mean charges and not I/O.
pub(crate) fn memory_stat_v1(text: &str, emit: &mut Emit<'_>) {
    pairs(text, &mut |name, value| {
        let Some(name) = name.first().and_then(|name| name.strip_prefix("total_")) else { return };
        if let Some((_, renamed)) = RENAMED.iter().find(|(old, _)| *old == name) {
            emit(&[renamed], value);
        } else if SAME.contains(&name) {
            emit(&[name], value);
        }
    });
}

/// `memory.oom_control` of cgroup v1: `oom_kill` alone, which v2 has in `memory.events`.
pub(crate) fn oom_control_v1(text: &str, emit: &mut Emit<'_>) {
    pairs(text, &mut |name, value| {
        if name == ["oom_kill"] {
            emit(name, value);
        }
    });
}

/// Pages of a pageblock, log2: a huge page of x86-64 and of arm64 with pages of 4 KiB.
const PAGEBLOCK_ORDER: u64 = 9;

/// `hist` of a trace event, the line `Hits: N` of its totals.
pub(crate) fn trace_hits(text: &str, emit: &mut Emit<'_>) {
    for line in text.lines() {
        if let Some(hits) = line.trim_start().strip_prefix("Hits:")
            && let Some(hits) = first_number(hits)
        {
            emit(&[], hits);
        }
    }
}

/// `hist` of `mm_page_alloc_extfrag` by `fallback_order`: all hits, then `_fragmenting` for those
/// that took less than a whole pageblock.
pub(crate) fn trace_extfrag(text: &str, emit: &mut Emit<'_>) {
    let of_order = |line: &str| {
        let (order, hits) = line.trim_start().strip_prefix("{ fallback_order:")?.split_once("hitcount:")?;
        Some((first_number(order)?, first_number(hits)?))
    };
    let fragmenting = text.lines().filter_map(of_order).filter(|&(order, _)| order < PAGEBLOCK_ORDER);
    let fragmenting = fragmenting.map(|(_, hits)| hits).sum();
    trace_hits(text, &mut |name, all| {
        emit(name, all);
        emit(&["_fragmenting"], fragmenting);
    });
}

/// `/proc/PID/stat`: user and system time in ticks, each of the process and of its children that were
/// waited for.
pub(crate) fn cpu_ticks(text: &str) -> Option<[u64; 2]> {
    // The name in parentheses can hold anything; `utime` is the 12th field behind it.
    let fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
    let mut ticks = fields.skip(11).map(str::parse::<u64>);
    let mut next = || ticks.next()?.ok();
    let [user, system, of_children, system_of_children] = [next()?, next()?, next()?, next()?];
    Some([user + of_children, system + system_of_children])
}

/// The number that begins `text`, behind blanks.
pub(crate) fn first_number(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(parser: Parser, text: &str) -> String {
        let mut lines = Vec::new();
        parser(text, &mut |name, value| lines.push(format!("{} {value}", name.concat())));
        lines.join("\n")
    }

    #[test]
    fn zones_have_watermarks_and_per_cpu_lists_are_left_out() {
        let text = "Node 0, zone    DMA32\n  per-node stats\n      nr_inactive_anon 25385\n  pages free     \
                    3840\n        boost    0\n        min      39\n        low      48\n        high     57\n        \
                    promo    66\n        spanned  4095\n        managed  3840\n        protection: (0, 1, 2)\n      \
                    nr_free_pages 3840\n  pagesets\n    cpu: 0\n              count:    11\n              high:     14\n";
        insta::assert_snapshot!(listed(zoneinfo, text), @r"
        z0_DMA32_free 3840
        z0_DMA32_boost 0
        z0_DMA32_min 39
        z0_DMA32_low 48
        z0_DMA32_high 57
        z0_DMA32_managed 3840
        ");
    }

    #[test]
    fn free_blocks_are_counted_by_order_and_by_type() {
        insta::assert_snapshot!(listed(buddyinfo, "Node 0, zone   Normal   5797      0      3 \n"), @r"
        buddy_n0_Normal_o0 5797
        buddy_n0_Normal_o1 0
        buddy_n0_Normal_o2 3
        ");
        let text = "Page block order: 9\nPages per block:  512\n\nFree pages count per migrate type at order 0 1\n\
                    Node    0, zone   Normal, type    Unmovable      0      2\n\
                    Node    0, zone   Normal, type      Movable >100000   6495\n\n\
                    Number of blocks type     Unmovable      Movable\nNode 0, zone   Normal          110         1545\n";
        insta::assert_snapshot!(listed(pagetypeinfo, text), @r"
        pagetype_n0_Normal_Unmovable_o0 0
        pagetype_n0_Normal_Unmovable_o1 2
        z0_Normal_free_unmovable 4
        pagetype_n0_Normal_Movable_o0 100000
        pagetype_n0_Normal_Movable_o1 6495
        z0_Normal_free_movable 112990
        pageblocks_n0_Normal_Unmovable 110
        z0_Normal_blocks_unmovable 110
        pageblocks_n0_Normal_Movable 1545
        z0_Normal_blocks_movable 1545
        ");
    }

    #[test]
    fn the_files_of_name_and_value_keep_the_kernels_names() {
        assert_eq!(
            listed(pairs, "nr_free_pages 7\npgfault 31976135\nodd\n"),
            "nr_free_pages 7\npgfault 31976135"
        );
        assert_eq!(
            listed(meminfo, "MemTotal:  24684300 kB\nActive(file): 8 kB\nHugePages_Total:       2\n"),
            "mi_MemTotal 24684300\nmi_Active(file) 8\nmi_HugePages_Total 2"
        );
        let slab = "slabinfo - version: 2.1\n# name <active_objs>\ndentry   90 105  192   21    1 : tunables 0\n\
                    kmalloc-8 1 2 8\n";
        assert_eq!(listed(slabinfo, slab), "slab_dentry_active 90\nslab_dentry_num 105");
        let psi = "some avg10=12.05 avg60=0.70 avg300=0.00 total=35467\nfull avg10=0.00 total=1834\n";
        assert_eq!(
            listed(pressure, psi),
            "psi_memory_some_avg10 1205\npsi_memory_some_avg60 70\npsi_memory_some_avg300 0\n\
             psi_memory_some_total_us 35467\npsi_memory_full_avg10 0\npsi_memory_full_total_us 1834"
        );
        assert_eq!(listed(trace_hits, "# event histogram\nTotals:\n    Hits: 42\n    Entries: 1\n"), " 42");
        let by_order = "# event histogram\n\n{ fallback_order:          3 } hitcount:         10\n\
                        { fallback_order:          9 } hitcount:         32\n\nTotals:\n    Hits: 42\n";
        assert_eq!(listed(trace_extfrag, by_order), " 42\n_fragmenting 10");
        assert_eq!(listed(trace_extfrag, "Totals:\n    Hits: 0\n"), " 0\n_fragmenting 0");
    }

    #[test]
    fn cgroup_v1_is_told_in_the_words_of_v2_where_it_means_the_same() {
        let text = "cache 1\nrss 2\npgpgin 3\nhierarchical_memory_limit 9\ntotal_cache 10\ntotal_rss 20\n\
                    total_pgpgin 30\ntotal_active_file 40\n";
        assert_eq!(listed(memory_stat_v1, text), "file 10\nanon 20\nactive_file 40");
        assert_eq!(listed(oom_control_v1, "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"), "oom_kill 2");
    }

    #[test]
    fn cpu_time_is_that_of_the_process_and_of_its_children() {
        let stat =
            "4242 (a name) 3) S 1 4242 4242 0 -1 4194560 900 0 0 0 17 230 1000 40000 20 0 1 0 99 8 7\n";
        assert_eq!(cpu_ticks(stat), Some([1017, 40230]));
        assert_eq!(cpu_ticks("4242 (short) S 1"), None);
    }
}
