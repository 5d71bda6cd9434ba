//! Runs `hot-and-stream` on this host with `name=value` parameters and prints what was counted:
//! `cargo run -p pagetide-linux --example host -- hot=25M stream=512M topology=parent limit=256M`.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pagetide_linux::host::{self, HostOptions};
use units::{Bytes, Seed};
use workload::{Workload, params::split_pair};

#[allow(clippy::print_stdout, clippy::print_stderr)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let pairs = args.iter().map(|text| split_pair(text)).collect::<Result<Vec<_>, _>>()?;
    let workload = Workload::new("hot-and-stream", pairs)?;
    let options = HostOptions { limit: Bytes(512 << 20), ..HostOptions::default() };
    let host = host::prepare(options, workload)?;
    let stop = AtomicBool::new(false);
    let period = Duration::from_millis(100);
    let result = host.run(Seed(1), Vec::new(), period, &stop, &|told| eprintln!("{told:?}"))?;
    println!("{:#?}\n{:#?}\n{:#?}", result.outcome.metrics, result.memcg, result.notes);
    for pair in result.phases.windows(2) {
        println!("{}..{}", pair[0].name, pair[1].name);
        for name in ["pgscan_file", "pgsteal_file", "pgactivate", "pgdeactivate", "pgrefill"] {
            println!("  {name} {}", pair[1].vmstat[name] - pair[0].vmstat[name]);
        }
    }
    println!("{} columns, {} rows, {} ns", result.columns.len(), result.rows.len(), result.wall_ns);
    Ok(())
}
