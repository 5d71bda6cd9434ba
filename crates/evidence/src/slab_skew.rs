//! Slab against page cache while small files are created, on real kernels and on the model, taken apart:
//! `docs/slab-skew.md`.
//!
//! The text is `data/slab-skew.md`. A line `{{kernels}}` in it stands for the scenarios of `small-files` in
//! `data/reference.toml`, run anew, `{{ablations}}` for the kernels of [`ABLATIONS`], `{{command}}` for the
//! command that all of these runs begin with. So no figure of a table is written by hand.
//!
//! What is compared is what grew in the run: slab less slab at its start, cache less cache at its start. A
//! guest has 10 to 21 MB of slab from its boot, and its initramfs counts as cache; the simulated machine has
//! neither. Left out: how a share comes about, which the recordings' series tell. Neighbours:
//! [`crate::rows`] for tolerances, `balance.rs` for what any recording of this workload has as metrics.

use std::fmt::Write;

use recording::Recording;
use workload::small_files;

use crate::growth::{Growth, growth};
use crate::rows::{Row, figure, rows_of_workload};
use lab::LabError;
use lab::PlannedRun;
use lab::batch::{Control, run_all};
use lab::{Request, Subject, command};

const TEXT: &str = include_str!("../data/slab-skew.md");
const SEEDS: [u64; 3] = [1, 2, 3];

/// Counters of the first table.
const SHOWN: [&str; 5] =
    ["slab_growth_ratio", "slab_growth_share", "inode_steals", "slabs_scanned", "oom_kill"];

/// The write workload of the measured guests.
const PARAMS: [&str; 6] =
    ["processes=1", "per_directory=1000", "files=131072", "loops=1", "names=off", "delete=off"];

/// Memory of the machines that kernels are taken apart on, MiB. Whether page cache or slab wins with a boost
/// depends on which blocks are left when memory has filled, which a few pages more or less decide: sizes
/// draw that anew, seeds do not.
const SIZES: [u64; 5] = [250, 252, 254, 256, 258];

/// Kernels that are taken apart, with the factor of the watermark boost (none: as it is by default).
const ABLATIONS: [(&str, Option<u32>); 21] = [
    ("linux-5.3", None),
    ("linux-5.3+shrink-slab-when-boosted", None),
    ("linux-5.10", None),
    ("linux-5.10", Some(0)),
    ("linux-5.10+deferred-slab-decay", None),
    ("linux-5.10+inode-lru-without-pages", None),
    ("linux-5.10+deferred-slab-decay+inode-lru-without-pages", None),
    ("linux-5.10+deferred-slab-decay+inode-lru-without-pages", Some(0)),
    ("linux-5.10+deferred-slab-decay+inode-lru-without-pages+super-block-batch-128", None),
    ("linux-5.10+deferred-slab-decay+inode-lru-without-pages+boost-without-floor", None),
    ("linux-6.1", None),
    ("linux-6.1", Some(0)),
    ("linux-6.1-deferred-slab-decay", None),
    ("linux-6.1-inode-lru-without-pages", None),
    ("linux-6.1-deferred-slab-decay-inode-lru-without-pages", None),
    ("linux-6.1+super-block-batch-128", None),
    ("linux-6.1+boost-without-floor", None),
    ("linux-6.12", None),
    ("linux-7.2", None),
    ("linux-7.2-slab-sheaves", None),
    ("linux-7.2+super-block-batch-128", None),
];

/// What the page shows.
#[derive(Debug)]
pub(crate) struct SlabSkew {
    measured: Vec<Row>,
    ablated: Vec<Ablated>,
}

#[derive(Debug)]
struct Ablated {
    kernel: &'static str,
    boost: Option<u32>,
    runs: Vec<Recording>,
}

fn request(kernel: &str, boost: Option<u32>, mib: u64) -> Request {
    let mut request = Request::new(Subject::Workload(small_files::NAME.to_owned()));
    request.kernel = Some(kernel.to_owned());
    request.machine = Some(sim::machines::GUEST.to_owned());
    request.mem = Some(format!("{mib}M"));
    request.params = PARAMS.map(str::to_owned).to_vec();
    request.params.push("filesystem=ext4".to_owned());
    request.sysctls = boost.map(|factor| format!("vm.watermark_boost_factor={factor}")).into_iter().collect();
    request
}

/// Runs everything, `jobs` runs at a time (0: one for each CPU).
///
/// # Errors
/// The first run that fails.
pub(crate) fn results(jobs: usize, control: &Control) -> Result<SlabSkew, LabError> {
    let measured = rows_of_workload(small_files::NAME, &SEEDS, jobs, control)?;
    let mut plan = Vec::new();
    for (kernel, boost) in ABLATIONS {
        for mib in SIZES {
            let scenario = request(kernel, boost, mib).resolve()?;
            plan.push(PlannedRun { label: kernel.to_owned(), scenario });
        }
    }
    let mut runs = run_all(&plan, jobs, control, |_, _| Ok(()))?.into_result()?.into_iter();
    let mut ablated = |(kernel, boost)| {
        let runs = runs.by_ref().take(SIZES.len()).collect();
        Ablated { kernel, boost, runs }
    };
    let ablated = ABLATIONS.into_iter().map(&mut ablated).collect();
    Ok(SlabSkew { measured, ablated })
}

/// `docs/slab-skew.md` with these results.
///
/// # Errors
/// A scenario of this page that does not resolve.
pub(crate) fn to_markdown(skew: &SlabSkew) -> Result<String, LabError> {
    let base = command(&request("linux-6.1", None, 256).resolve()?);
    let filled = |line: &str| match line {
        "{{kernels}}" => kernels(&skew.measured),
        "{{ablations}}" => ablations(&skew.ablated),
        "{{command}}" => format!("    {base}\n"),
        _ => format!("{line}\n"),
    };
    Ok(TEXT.lines().map(filled).collect())
}

/// A line for each measured scenario: shares and counts of the guests and of the model.
fn kernels(rows: &[Row]) -> String {
    let mut text =
        String::from("| scenario | counter | measured | own guest | model |\n|---|---|---:|---:|---:|\n");
    for scenario in rows.chunk_by(|one, other| one.scenario == other.scenario) {
        for counter in SHOWN {
            let Some(row) = scenario.iter().find(|row| row.counter == counter) else { continue };
            let cells = [&row.measured, &row.guest, &row.simulated].map(|values| span(values));
            let _ = writeln!(text, "| `{}` | `{counter}` | {} |", row.scenario, cells.join(" | "));
        }
    }
    text
}

fn ablations(ablated: &[Ablated]) -> String {
    let mut text = String::from(
        "| kernel | boost factor | slab / cache | slab share | inode steals | slabs scanned |\n",
    );
    text += "|---|---:|---:|---:|---:|---:|\n";
    for Ablated { kernel, boost, runs } in ablated {
        let grown =
            |part: fn(Growth) -> f64| middle(&runs.iter().filter_map(growth).map(part).collect::<Vec<_>>());
        let counted = |names: &[&str]| {
            let count = |run: &Recording| names.iter().filter_map(|name| run.vmstat.get(*name)).sum::<u64>();
            middle(&runs.iter().map(|run| count(run) as f64).collect::<Vec<_>>())
        };
        let cells = [
            boost.unwrap_or(15_000).to_string(),
            grown(|growth| growth.ratio),
            grown(|growth| growth.share),
            counted(&["kswapd_inodesteal", "pginodesteal"]),
            counted(&["slabs_scanned"]),
        ];
        let _ = writeln!(text, "| `{kernel}` | {} |", cells.join(" | "));
    }
    text
}

/// The median, with the smallest and the largest.
fn middle(values: &[f64]) -> String {
    let median = stats::describe::median(values).map(figure);
    median.map_or_else(|| "-".to_owned(), |median| format!("{median} ({})", span(values)))
}

/// One value, or the smallest and the largest.
fn span(values: &[f64]) -> String {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    match &values[..] {
        [] => "-".to_owned(),
        [first, .., last] if figure(*first) != figure(*last) => {
            format!("{} to {}", figure(*first), figure(*last))
        }
        [first, ..] => figure(*first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_of_the_page_exists() {
        for (kernel, boost) in ABLATIONS {
            request(kernel, boost, 256).resolve().unwrap();
        }
    }
}
