#![allow(missing_docs)]
//! scratch
use kernel::Filesystem;
use mm::sysctl::Sysctls;
use pagetide_sim::{Program, SimRun, machines, run};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use units::{Bytes, Nanos};
use workload::Workload;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let kernel = mm::Kernel::parse(&args[1]).unwrap();
    let mem: u64 = args[2].parse::<u64>().unwrap() << 20;
    let machine = &args[3];
    let params: Vec<(&str, &str)> =
        args[4..].iter().filter(|a| !a.starts_with('@')).map(|a| a.split_once('=').unwrap()).collect();
    let cols: Vec<&str> = args[4..].iter().filter_map(|a| a.strip_prefix('@')).collect();
    let (hardware, layout) = machines::build(machine, Bytes(mem), &kernel).unwrap();
    let spec = SimRun {
        program: Program::Workload(Workload::new("huge-faults", params.iter().copied()).unwrap()),
        kernel,
        sysctls: Sysctls::default(),
        hardware,
        layout,
        filesystem: Filesystem::Xfs,
        readahead_pages: 32,
        seed: 1,
        time_limit: Nanos::from_secs(3000),
        sample_period: Nanos::from_millis(std::env::var("PERIOD").map_or(500, |p| p.parse().unwrap())),
    };
    let start = std::time::Instant::now();
    let r = run::run(&spec, Arc::new(AtomicBool::new(false)), |_| {}).unwrap();
    println!("{:?} wall, {} events, {:?} simulated", start.elapsed(), r.events, r.simulated);
    let idx: Vec<usize> = cols
        .iter()
        .map(|c| r.columns.iter().position(|x| x == c).unwrap_or_else(|| panic!("{c}: {:?}", r.columns)))
        .collect();
    if !cols.is_empty() {
        println!(
            "{}",
            cols.iter().map(|c| format!("{:>12}", &c[c.len().saturating_sub(12)..])).collect::<String>()
        );
        let step = (r.rows.len() / 40).max(1);
        let from: u64 = std::env::var("FROM").map_or(0, |p| p.parse().unwrap());
        for (at, row) in r.rows.iter().filter(|(at, _)| at.0 >= from * 1_000_000_000).step_by(if from > 0 {
            1
        } else {
            step
        }) {
            print!("{:>8.1}", at.0 as f64 / 1e9);
            for &i in &idx {
                print!("{:>12}", row[i]);
            }
            println!();
        }
    }
    for p in &r.phases {
        println!(
            "{} {:.1} frag {:?} scan {:?} slabs {:?} inodesteal {:?}",
            p.name,
            p.at.0 as f64 / 1e9,
            p.vmstat.get("extfrag_events"),
            p.vmstat["pgscan_kswapd"],
            p.vmstat["slabs_scanned"],
            p.vmstat["kswapd_inodesteal"]
        );
    }
    println!("{:#?}", r.outcome.metrics);
    for (n, v) in &r.vmstat {
        if *v > 0
            && (n.contains("alloc")
                || n.contains("compact")
                || n.contains("frag")
                || n.contains("thp")
                || n.contains("slab"))
        {
            print!("{n}={v} ");
        }
    }
    println!();
}
