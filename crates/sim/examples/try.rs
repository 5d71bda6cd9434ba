//! scratch
use std::sync::{Arc, atomic::AtomicBool};
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let kernel = mm::Kernel::parse(&a[1]).unwrap();
    let mem = units::parse_size(&a[2]).unwrap();
    let params: Vec<(&str, &str)> = a[3..].iter().map(|p| p.split_once('=').unwrap()).collect();
    let (hardware, layout) = pagetide_sim::machines::build("vm-2cpu", mem, &kernel).unwrap();
    let fs = params.iter().find(|p| p.0 == "filesystem").map_or("ext4", |p| p.1);
    let spec = pagetide_sim::SimRun {
        program: if let Ok(t) = std::env::var("TRACE") {
            pagetide_sim::Program::Replay(
                workload::Replay::open(t.as_ref(), None, Default::default()).unwrap(),
            )
        } else {
            pagetide_sim::Program::Workload(
                workload::Workload::new("hot-and-stream", params.iter().copied()).unwrap(),
            )
        },
        kernel,
        sysctls: Default::default(),
        hardware,
        layout,
        filesystem: kernel::Filesystem::by_name(fs).unwrap(),
        readahead_pages: 32,
        seed: std::env::var("SEED").map_or(1, |s| s.parse().unwrap()),
        time_limit: units::Nanos::from_secs(100000),
        sample_period: units::Nanos::from_secs(1),
    };
    let t = std::time::Instant::now();
    match pagetide_sim::run::run(&spec, Arc::new(AtomicBool::new(false)), |_| {}) {
        Ok(r) => {
            println!(
                "{:.0?} wall {:?} sim {} events {}",
                r.outcome.metrics,
                t.elapsed(),
                r.simulated,
                r.events
            );
            for (n, v) in &r.vmstat {
                if *v > 0 {
                    print!("{n}={v} ");
                }
            }
            println!("\n{:?}", r.stalls);
            if std::env::var("ROWS").is_ok() {
                let want = [
                    "nr_active_file",
                    "nr_inactive_file",
                    "pgdeactivate",
                    "pgscan_direct",
                    "pgscan_kswapd",
                    "nr_free_pages",
                    "cg_A_active_file",
                    "cg_A_inactive_file",
                ];
                for (t, row) in &r.rows {
                    print!("{t} ");
                    for w in want {
                        if let Some(i) = r.columns.iter().position(|c| c == w) {
                            print!("{w}={} ", row[i]);
                        }
                    }
                    println!();
                }
            }
            for (n, m) in &r.memcg {
                println!("{n}: {:?}", m.iter().filter(|x| *x.1 > 0).collect::<Vec<_>>());
            }
        }
        Err(e) => println!("ERR {e}"),
    }
}
