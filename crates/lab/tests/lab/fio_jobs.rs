//! Three jobs of fio as the model runs them, beside what the real fio made real kernels count.

use pagetide_lab::{Control, PlannedRun, Recording, Request, Subject, run_all};

/// What fio 3.33 made guests of 6.1 with 512 MiB count, ext4, the mean of two runs
/// (`crates/evidence/data/fio/measure.sh`): KiB read and written, pages allocated and scanned, and how many more pages
/// of slab there were at the end.
struct Counted {
    job: &'static str,
    pgpgin: f64,
    pgpgout: f64,
    /// Without [`OWN`].
    pgalloc: f64,
    /// `None` for `create`: 33,750 with what it looks at of fio's own memory, which the model leaves out; 25,500 there.
    pgscan: Option<f64>,
    /// `None` for `lookup`: 778; 600 in the model.
    slab_reclaimable: Option<f64>,
}

/// Pages that fio allocates for a job of one call, more than the model, with one clone and with four.
const OWN: [f64; 2] = [11_140.0, 11_420.0];
/// Pages of reclaimable slab that a booted 6.1 has.
const SLAB_OF_BOOT: f64 = 155.0;

const JOBS: [Counted; 3] = [
    Counted {
        job: "scan",
        pgpgin: 2_097_160.0,
        pgpgout: 0.0,
        pgalloc: 538_065.0 - OWN[1],
        pgscan: Some(290_120.0),
        slab_reclaimable: Some(596.0),
    },
    Counted {
        job: "lookup",
        pgpgin: 80_304.0,
        pgpgout: 0.0,
        pgalloc: 32_183.0 - OWN[0],
        pgscan: Some(0.0),
        slab_reclaimable: None,
    },
    Counted {
        job: "create",
        pgpgin: 4.0,
        pgpgout: 492_800.0,
        pgalloc: 150_550.0 - OWN[1],
        pgscan: None,
        slab_reclaimable: Some(6_476.0),
    },
];

/// Runs of the model, of which the mean counts, as of the guests.
const SEEDS: u64 = 6;

fn run(job: &str, seed: u64) -> Recording {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/fio");
    let request = Request {
        kernel: Some("linux-6.1".to_owned()),
        machine: Some("guest-uml".to_owned()),
        // A guest of 512 MiB without the 40 MiB of fio's program, libraries and tables.
        mem: Some("472M".to_owned()),
        seed: Some(seed),
        ..Request::new(Subject::of_argument(&format!("{examples}/{job}.fio")))
    };
    let plan = [PlannedRun { label: job.to_owned(), scenario: request.resolve().unwrap() }];
    run_all(&plan, 1, &Control::default(), |_, _| Ok(())).unwrap().into_result().unwrap().remove(0)
}

#[test]
fn three_jobs_read_write_allocate_and_scan_what_fio_does() {
    for real in JOBS {
        let job = real.job;
        let recordings: Vec<Recording> = (1..=SEEDS).map(|seed| run(job, seed)).collect();
        let sum = |names: &[&str]| -> f64 {
            let counters =
                recordings.iter().flat_map(|recording| names.iter().map(|&name| &recording.vmstat[name]));
            counters.map(|&count| count as f64).sum::<f64>() / SEEDS as f64
        };
        let near = |what: &str, found: f64, expected: f64| {
            let off = (found - expected).abs();
            assert!(off <= expected * 0.05 + 64.0, "{job}: {what} {found}, fio {expected}");
        };
        near("pgpgin", sum(&["pgpgin"]), real.pgpgin);
        near("pgpgout", sum(&["pgpgout"]), real.pgpgout);
        near("pgalloc", sum(&["pgalloc_normal"]), real.pgalloc);
        if let Some(scans) = real.pgscan {
            near("scans", sum(&["pgscan_kswapd", "pgscan_direct"]), scans);
        }
        if let Some(slab) = real.slab_reclaimable {
            near("slab", sum(&["nr_slab_reclaimable"]) - SLAB_OF_BOOT, slab);
        }
    }
}
