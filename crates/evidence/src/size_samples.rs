//! The table on samples in `docs/size.md`, for a trace of requests and limits:
//! `cargo run --release -p pagetide-evidence -- size-samples cloudPhysicsIO.csv 128M,256M,512M,768M,1G 3`.
//! The last number is how many seeds. `size-samples zipf 20000000 1000000 > zipf.csv` writes a trace of so many
//! requests for so many objects of 4 KiB by Zipf's law.

use std::error::Error;
use std::io::{BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lab::size::{SizeControl, SizeRequest};
use units::Seed;

const USAGE: &str = "TRACE LIMITS SEEDS, or zipf REQUESTS OBJECTS";

/// Prints what the arguments ask for.
pub(crate) fn print(arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    match arguments {
        ["zipf", requests, objects] => zipf(requests.parse()?, objects.parse()?),
        [trace, limits, seeds] => table(trace, limits, seeds.parse()?),
        _ => Err(USAGE.into()),
    }
}

/// Hits of a sample of 1/16 beside those of the whole trace.
fn table(trace: &str, limits: &str, seeds: u64) -> Result<(), Box<dyn Error>> {
    let request = SizeRequest {
        trace: trace.into(),
        limits: Some(limits.to_owned()),
        seeds: Some(seeds),
        sample: Some("1/16".to_owned()),
        check_sample: true,
        ..SizeRequest::default()
    };
    let control = SizeControl { stop: Arc::new(AtomicBool::new(false)), observer: Arc::new(|_| {}) };
    let (sized, stopped) = request.plan()?.run(0, &control, None)?;
    if let Some(stopped) = stopped {
        return Err(stopped.into());
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "| limit | sample | least to most | whole | points off |\n|---:|---:|---:|---:|---:|")?;
    for check in &sized.checked {
        let limit = check.limit.map_or("none".to_owned(), |bytes| format!("{} MiB", bytes >> 20));
        let point = sized.points.iter().find(|point| point.limit == check.limit);
        let spread = point.and_then(|point| point.hit_ratio);
        let spread = spread.map_or("-".to_owned(), |spread| {
            format!("{:.1} to {:.1}", 100.0 * spread.least, 100.0 * spread.most)
        });
        let (sample, whole) = (100.0 * check.hit_ratio.0, 100.0 * check.hit_ratio.1);
        writeln!(out, "| {limit} | {sample:.1} | {spread} | {whole:.1} | {:+.1} |", sample - whole)?;
    }
    Ok(())
}

/// Object `k` of `objects` is asked for in proportion to 1/k.
fn zipf(requests: u64, objects: u32) -> Result<(), Box<dyn Error>> {
    let mut sum = 0.0;
    let sums: Vec<f64> = (1..=objects)
        .map(|object| {
            sum += 1.0 / f64::from(object);
            sum
        })
        .collect();
    let mut stream = Seed(1).stream("requests");
    let mut out = BufWriter::new(std::io::stdout().lock());
    writeln!(out, "time,object,size")?;
    for time in 0..requests {
        let share = (stream.bits() >> 11) as f64 / (1_u64 << 53) as f64;
        let object = sums.partition_point(|&until| until <= share * sum);
        writeln!(out, "{time},{object},4096")?;
    }
    Ok(out.flush()?)
}
