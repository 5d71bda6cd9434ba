//! Not to be committed.
extern crate pagetide_report as report;
use recording::Recording;
use report::{Group, View, html::*};
use std::collections::BTreeMap;
#[path = "../../lab/src/page_for_example.rs"]
mod page_for_example;
fn main() {
    let args: Vec<String> = std::env::args().skip(2).collect();
    let out = std::env::args().nth(1).unwrap();
    let mut all: Vec<Recording> = vec![]; let mut paths = vec![];
    for a in &args {
        let mut dirs: Vec<_> = std::fs::read_dir(a).unwrap().map(|e| e.unwrap().path()).filter(|p| p.join("recording.json").exists() || p.join("MANIFEST").exists()).collect();
        dirs.sort();
        for d in dirs { paths.push(d.clone()); all.push(Recording::read(&d).unwrap()); }
    }
    let mut by: Vec<(String, Vec<&Recording>)> = vec![];
    for r in &all { match by.iter_mut().find(|(l, _)| *l == r.label) { Some((_, v)) => v.push(r), None => by.push((r.label.clone(), vec![r])) } }
    let groups: Vec<Group> = by.into_iter().map(|(label, recordings)| Group { command: format!("pagetide run {} --kernel {label}", recordings[0].workload), label, recordings }).collect();
    let heats: Vec<_> = groups.iter().map(|g| { let i = all.iter().position(|r| std::ptr::eq(r, g.recordings[0])).unwrap(); let mut rd = recording::EventReader::open(&paths[i]).unwrap()?; let mut b = report::heat::HeatBuilder::new(g.recordings[0].simulated_ns); while let Some(c) = rd.next() { let c = c.unwrap(); for e in &c.events { b.take(rd.names(), e) } } Some(b.finish(rd.names())) }).collect();
    let page = page_for_example::page(&groups, heats, vec![], format!("pagetide report {} -o report.html", args.join(" ")));
    let t = std::time::Instant::now();
    std::fs::write(&out, page.html().unwrap()).unwrap();
    eprintln!("{:?} {} bytes", t.elapsed(), std::fs::metadata(&out).unwrap().len());
    if let Some(svg) = page.figure(None).unwrap() { std::fs::write(out.replace(".html", ".svg"), svg).unwrap(); }
    let _: Option<(View, BTreeMap<u8,u8>)> = None;
}
pub fn view_of(workload: &str, warnings: Vec<String>) -> View {
    use report::{Direction::{self, *}, Headline};
    let h = |name, unit, direction: Direction, of, help| Headline { name, unit, direction, of, resolution: 0.0, help };
    let headlines = match workload {
        "hot-and-stream" => vec![h("hot_pages_cached", "pages", Higher, Some("hot_pages_total"), "in memory after the stream"), h("reread_seconds", "s", Lower, None, "reading the hot file again"), h("stream_mib_per_second", "MiB/s", Higher, None, "pace of the stream"), h("memcg_pgscan", "pages", Lower, None, "scanned until the stream ends")],
        "sequential-readers" => vec![h("throughput_kb_per_sec", "KiB/s", Higher, None, "all readers together"), h("futile_wait_seconds", "s", Lower, None, "waits to their timeout for nothing"), h("slowest_reader_seconds", "s", Lower, None, "the reader that took longest"), h("allocation_stalls", "", Lower, None, "times that a reader had to reclaim")],
        "small-files" => vec![h("files_per_sec", "files/s", Higher, None, "pace"), h("slab_share", "", Neutral, None, "slab of slab and page cache"), h("kswapd_efficiency_percent", "%", Higher, None, "")],
        "huge-faults" => vec![h("percentage_huge", "%", Higher, None, "regions that got a huge page"), h("extfrag_events", "", Lower, None, "mobility types mixed"), h("fault_base_us", "µs", Lower, None, "filling 2 MiB of small pages"), h("fault_huge_us", "µs", Lower, None, "filling a huge page")],
        _ => vec![],
    };
    View { headlines, warnings, ..View::from(80) }
}

pub fn factors(groups: &[Group<'_>]) -> Option<Factors> {
    let k = |g: &Group<'_>| -> Vec<&'static str> { let mut v = vec![]; let l = g.recordings[0].kernel.clone(); if l.contains("+root-aging") { v.push("+root-aging") } if l.contains("-shared-memcg-walk") { v.push("-shared-memcg-walk") } v };
    let names = vec!["+root-aging", "-shared-memcg-walk"];
    Some(Factors { of: groups.iter().map(|g| names.iter().enumerate().map(|(i, n)| u32::from(k(g).contains(n)) << i).sum()).collect(), names: names.into_iter().map(String::from).collect() })
}
