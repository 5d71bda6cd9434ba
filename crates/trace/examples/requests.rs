//! What is in a trace of requests, of whatever format: `cargo run -p pagetide-trace --example requests -- TRACE`.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::Read;

use pagetide_trace::requests::{RequestKind, TraceError, TraceReader};

/// Counts requests, writes, bytes and distinct objects.
fn count(reader: TraceReader<impl Read>) -> Result<(u64, u64, u64, usize), TraceError> {
    let (mut requests, mut writes, mut bytes, mut objects) = (0, 0, 0, BTreeSet::new());
    for request in reader {
        let request = request?;
        requests += 1;
        writes += u64::from(request.kind == RequestKind::Write);
        bytes += u64::from(request.size_bytes);
        objects.insert(request.object);
    }
    Ok((requests, writes, bytes, objects.len()))
}

#[allow(clippy::print_stdout, reason = "a line is what it is for")]
fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("name a trace")?;
    let reader = TraceReader::open(path.as_ref(), None)?;
    let format = reader.format();
    let (requests, writes, bytes, objects) = count(reader)?;
    println!("{}: {requests} requests, {writes} writes, {bytes} bytes, {objects} objects", format.name());
    Ok(())
}

#[test]
fn requests_are_counted() {
    let text = b"version,time,op,size,lbn\n1,1,28,512,7\n1,2,2a,1024,8\n1,3,28,512,7\n";
    assert_eq!(count(TraceReader::new(&text[..], None).unwrap()).unwrap(), (3, 1, 2048, 2));
}
