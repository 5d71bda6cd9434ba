//! Events of a run and its counters are two tellings of one story: they agree to the page, for every workload,
//! by kswapd and others, and by cgroup. And a run that is listened to is the run that is not.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use kernel::Filesystem;
use mm::base::event::{Detail, Home, PageId, Reason, TraceEvent};
use mm::version::rules::ReclaimCounts;
use sim::run::{Watch, run_watched};
use sim::trace::{EventNames, EventRow, What};
use sim::{Program, SimResult, SimRun, machines};
use units::{Bytes, Order};
use workload::Workload;

use crate::ended;

/// What events add up to, under the names of counters: of the machine, and of each cgroup.
#[derive(Debug, Default)]
struct Sums {
    machine: BTreeMap<&'static str, u64>,
    cgroups: BTreeMap<String, BTreeMap<&'static str, u64>>,
    /// Whether `pgrefill` of the machine leaves out the active lists that a limit opens.
    refills_globally: bool,
    rows: u64,
    last: u64,
}

impl Sums {
    fn add(&mut self, counter: &'static str, pages: u64) {
        *self.machine.entry(counter).or_default() += pages;
    }

    fn kswapd_runs(&mut self, order: Order) {
        self.add("pageoutrun", 1);
        self.add("runs_for_blocks", u64::from(order == Order(3)));
    }

    fn shrinker_done(&mut self, scanned: u64) {
        self.add("shrinkers_done", 1);
        self.add("slabs_scanned", scanned);
    }

    fn add_page(&mut self, names: &EventNames, page: PageId, counter: &'static str) {
        self.add(counter, u64::from(page.order.pages()));
        self.add_to(names.cgroup(page.memcg), counter, u64::from(page.order.pages()));
    }

    fn add_to(&mut self, cgroup: &str, counter: &'static str, pages: u64) {
        *self.cgroups.entry(cgroup.to_owned()).or_default().entry(counter).or_default() += pages;
    }

    fn take(&mut self, rows: &[EventRow], names: &EventNames) {
        for row in rows {
            self.rows += 1;
            assert!(self.last <= row.at.get(), "rows are in order");
            self.last = row.at.get();
            let task = names.task(row.task);
            match row.what {
                What::Kernel(event) => self.kernel(event, task.starts_with("kswapd"), names),
                What::Pages { event, folios } => {
                    for number in 0..folios {
                        let first = event.page().expect("it is about pages");
                        let page = PageId { index: first.index + (number << first.order.0), ..first };
                        self.kernel(event.of_page(page), task.starts_with("kswapd"), names);
                    }
                }
                _ => {}
            }
        }
    }

    fn kernel(&mut self, event: TraceEvent, by_kswapd: bool, names: &EventNames) {
        match event {
            TraceEvent::PageReclaimed { page, scan, .. } => {
                let who = if by_kswapd { "pgsteal_kswapd" } else { "pgsteal_direct" };
                let pages = u64::from(page.order.pages());
                self.add_to(names.cgroup(page.memcg), "pgsteal", pages);
                self.add("pgsteal_file", pages);
                if scan.target == mm::MemcgId::ROOT {
                    self.add(who, pages);
                }
                self.add("looked_at", pages);
            }
            TraceEvent::PageRotated { page, scan, .. } => {
                let counter = if scan.is_some() { "looked_at" } else { "pgrotated" };
                self.add(counter, u64::from(page.order.pages()));
            }
            TraceEvent::LruActivate { page, scan, .. } => {
                self.add_page(names, page, "pgactivate");
                if scan.is_some() {
                    self.add("looked_at", u64::from(page.order.pages()));
                }
            }
            TraceEvent::PageDeactivated { page, .. } => {
                self.add_page(names, page, "pgdeactivate");
                self.add("looked_at", u64::from(page.order.pages()));
            }
            TraceEvent::PageRefaulted { page, reason, counted, workingset, .. } => {
                let pages = u64::from(page.order.pages());
                let mut add = |counter| {
                    self.add(counter, pages);
                    self.add_to(names.cgroup(counted), counter, pages);
                };
                add("workingset_refault_file");
                if reason == Reason::WithinActive {
                    add("workingset_activate_file");
                    if workingset {
                        add("workingset_restore_file");
                    }
                }
            }
            TraceEvent::FilemapAdd { page } => self.add("nr_file_pages", u64::from(page.order.pages())),
            TraceEvent::FilemapDelete { page, .. } => {
                *self.machine.get_mut("nr_file_pages").unwrap() -= u64::from(page.order.pages());
            }
            TraceEvent::VmscanLruShrinkInactive { memcg, nr_scanned, scan, .. } => {
                let pages = u64::from(nr_scanned);
                if scan.target == mm::MemcgId::ROOT {
                    self.add(if by_kswapd { "pgscan_kswapd" } else { "pgscan_direct" }, pages);
                }
                self.add("pgscan_file", pages);
                self.add_to(names.cgroup(mm::MemcgId(memcg)), "pgscan", pages);
            }
            TraceEvent::VmscanLruShrinkActive { memcg, nr_scanned, scan, .. } => {
                let pages = u64::from(nr_scanned);
                if scan.target == mm::MemcgId::ROOT || !self.refills_globally {
                    self.add("pgrefill", pages);
                }
                self.add("refilled", pages);
                self.add_to(names.cgroup(mm::MemcgId(memcg)), "pgrefill", pages);
            }
            TraceEvent::VmscanKswapdWake { order, .. } => self.kswapd_runs(order),
            TraceEvent::ShrinkSlabStart { .. } => self.add("shrinkers_begun", 1),
            TraceEvent::ShrinkSlabEnd { total_scan, .. } => self.shrinker_done(total_scan),
            TraceEvent::PageAllocExtfrag { .. } => self.add("extfrag_events_all", 1),
            TraceEvent::FragmentationStall { .. } => self.add("fragment_stall", 1),
            TraceEvent::MarkVictim { .. } => self.add("oom_kill", 1),
            _ => {}
        }
    }
}

fn listened(spec: &SimRun, detail: Detail) -> (SimResult, Sums) {
    let refills_globally = spec.kernel.rules.reclaim_counts == ReclaimCounts::Global;
    let sums = Rc::new(RefCell::new(Sums { refills_globally, ..Sums::default() }));
    let kept = Rc::clone(&sums);
    let stop = Arc::new(AtomicBool::new(false));
    let sink = move |rows: &[EventRow], names: &EventNames| kept.borrow_mut().take(rows, names);
    let watch = Watch { events: Some((detail, Box::new(sink))), ..Watch::default() };
    let result = run_watched(spec, stop, |_| {}, watch).unwrap();
    (result, sums.take())
}

/// A run with events, and that it is what it is without.
fn told(spec: &SimRun) -> (SimResult, Sums) {
    let (result, sums) = listened(spec, Detail::Page);
    let alone = ended(spec);
    assert!(format!("{result:?}") == format!("{alone:?}"), "listening changed the run");
    (result, sums)
}

/// Counters that events tell.
const COUNTERS: [&str; 19] = [
    "pgsteal_kswapd",
    "pgsteal_direct",
    "pgsteal_file",
    "pgscan_kswapd",
    "pgscan_direct",
    "pgscan_file",
    "pgactivate",
    "pgdeactivate",
    "pgrefill",
    "pgrotated",
    "workingset_refault_file",
    "workingset_activate_file",
    "workingset_restore_file",
    "nr_file_pages",
    "pageoutrun",
    "slabs_scanned",
    "extfrag_events_all",
    "fragment_stall",
    "oom_kill",
];

/// Events and counters of a run are the same story.
fn check(result: &SimResult, sums: &Sums) {
    assert!(sums.rows > 1000, "{} rows are too dull", sums.rows);
    let counter = |name| result.vmstat.get(name).copied().unwrap_or(0);
    let told = |name: &str| sums.machine.get(name).copied().unwrap_or(0);
    // One that is at work when the run ends has not told what it did.
    let at_work = told("shrinkers_begun") > told("shrinkers_done");
    for (name, &value) in result.vmstat.iter().filter(|(name, _)| COUNTERS.contains(&name.as_str())) {
        match name == "slabs_scanned" && at_work {
            true => assert!(told(name) <= value, "{name}"),
            false => assert_eq!(told(name), value, "{name}"),
        }
    }
    let looked_at = told("looked_at");
    let scanned = counter("pgscan_file") + counter("pgscan_anon") + told("refilled");
    assert_eq!(looked_at, scanned, "each page that is looked at has an event that says what became of it");
    for (path, stats) in &result.memcg {
        // Statistics of a cgroup hold those below it.
        let is_below = |other: &str| other == path || other.starts_with(&format!("{path}/"));
        for name in [
            "pgsteal",
            "pgscan",
            "pgrefill",
            "pgactivate",
            "pgdeactivate",
            "workingset_refault_file",
            "workingset_activate_file",
        ] {
            let below = sums.cgroups.iter().filter(|(path, _)| is_below(path));
            let sum: u64 = below.filter_map(|(_, sums)| sums.get(name)).sum();
            assert_eq!(sum, stats[name], "{name} of {path}");
        }
    }
}

/// A workload on a small machine.
fn spec(
    workload: &str,
    machine: &str,
    kernel: &str,
    mib: u64,
    filesystem: Filesystem,
    params: &[(&str, &str)],
) -> SimRun {
    let kernel = mm::Version::parse(kernel).expect("a kernel");
    let (hardware, layout) = machines::build(machine, Bytes(mib << 20), &kernel).expect("a machine");
    let program = Program::Workload(Workload::new(workload, params.iter().copied()).expect("its parameters"));
    SimRun { filesystem, ..SimRun::new(program, kernel, hardware, layout) }
}

const HOT: [(&str, &str); 4] = [("hot", "8M"), ("stream", "256M"), ("topology", "parent"), ("limit", "32M")];

#[test]
fn events_add_up_to_the_counters_of_every_workload() {
    let readers = [("readers", "4"), ("file", "16M")];
    let small = [("processes", "3"), ("files", "3000"), ("loops", "3")];
    let protected = [&HOT[..], &[("low", "6M")]].concat();
    let mut happened = BTreeSet::new();
    for (workload, machine, kernel, mib, filesystem, params) in [
        ("hot-and-stream", "vm-2cpu", "linux-5.4", 128, Filesystem::Ext4, &HOT[..]),
        ("hot-and-stream", "vm-2cpu", "linux-5.4+root-aging", 128, Filesystem::Ext4, &HOT),
        ("hot-and-stream", "vm-2cpu", "linux-6.1", 128, Filesystem::Xfs, &protected),
        ("hot-and-stream", "vm-2cpu", "linux-6.12", 128, Filesystem::Ext4, &HOT),
        ("hot-and-stream", "vm-2cpu", "linux-6.12", 128, Filesystem::Ext4, &HOT[..2]),
        ("sequential-readers", "s390-fcp", "linux-2.6.32", 64, Filesystem::Ext3, &readers),
        ("sequential-readers", "s390-fcp", "linux-2.6.32+pressure-wait", 64, Filesystem::Ext4, &readers),
        ("small-files", "evo-ssd", "linux-5.3", 64, Filesystem::Xfs, &small),
        ("small-files", "evo-ssd", "linux-6.12", 64, Filesystem::Ext4, &small),
        ("huge-faults", "skylake-1s", FRAGMENT_STALL, 128, Filesystem::Xfs, &[]),
        ("huge-faults", "skylake-1s", "linux-5.3", 512, Filesystem::Xfs, &[("advice", "madvise")]),
        ("simoop", "quad-node-16g", "linux-5.7", 256, Filesystem::Xfs, &SIMOOP),
        ("inode-storm", "vm-2cpu", "linux-5.7", 64, Filesystem::Xfs, &STORM),
    ] {
        let spec = spec(workload, machine, kernel, mib, filesystem, params);
        let (result, sums) = told(&spec);
        check(&result, &sums);
        happened.extend(sums.machine.into_iter().filter(|&(_, sum)| sum > 0).map(|(name, _)| name));
    }
    let missing: Vec<_> = COUNTERS.iter().filter(|name| !happened.contains(*name)).collect();
    assert!(missing.is_empty(), "none of the runs is about {missing:?}");
}

/// Vectors of bios come from a pool, which asks for a slab of eight pages without direct reclaim. A guest of 6.12 has a
/// quarter of its runs of kswapd for such blocks.
#[test]
fn a_pool_that_finds_no_block_wakes_kswapd_for_one() {
    let small = [("processes", "4"), ("files", "3000"), ("loops", "4"), ("delete", "off")];
    let spec = spec("small-files", "guest-uml", "linux-6.12", 96, Filesystem::Xfs, &small);
    let (_, sums) = listened(&spec, Detail::Reclaim);
    let [runs, for_blocks] = ["pageoutrun", "runs_for_blocks"].map(|name| sums.machine[name]);
    assert!(for_blocks > 0, "none of {runs} runs");
}

const FRAGMENT_STALL: &str = "linux-4.20-rc1+nofragment+watermark-boost-v2+fragment-stall";

const STORM: [(&str, &str); 4] =
    [("processes", "2"), ("files", "200"), ("pin_from", "40M"), ("pin_step", "4M")];

const SIMOOP: [(&str, &str); 10] = [
    ("threads", "6"),
    ("file_size", "8M"),
    ("mapped", "6M"),
    ("alloc_wait", "30"),
    ("kept", "3"),
    ("tree_files", "300"),
    ("walk_pause", "1"),
    ("seconds", "4"),
    ("warmup", "2"),
    ("interval", "2"),
];

#[test]
fn who_listens_to_reclaim_hears_of_no_page() {
    let spec = spec("hot-and-stream", "vm-2cpu", "linux-6.12", 128, Filesystem::Ext4, &HOT);
    let (result, sums) = listened(&spec, Detail::Reclaim);
    let heard = |name| sums.machine.get(name).copied();
    assert_eq!(heard("pgscan_file"), Some(result.vmstat["pgscan_file"]));
    assert_eq!((heard("looked_at"), heard("nr_file_pages"), heard("pgactivate")), (None, None, None));
}

/// Pages of anonymous memory that are in swap, by whose they are and their number there.
#[derive(Default)]
struct InSwap {
    out: BTreeSet<(u32, u32)>,
    went: u64,
    came: BTreeMap<Reason, u64>,
    names: BTreeSet<String>,
}

impl InSwap {
    fn take(&mut self, rows: &[EventRow], names: &EventNames) {
        for row in rows {
            match row.what {
                What::HomeIs { home: Home::Anon(_), file: Some(file) } => {
                    self.names.insert(names.file(file).to_owned());
                }
                What::Pages { event, folios } => {
                    let first = event.page().expect("it is about pages");
                    for number in 0..folios {
                        let index = first.index + (number << first.order.0);
                        self.page(event.of_page(PageId { index, ..first }));
                    }
                }
                _ => {}
            }
        }
    }

    fn page(&mut self, event: TraceEvent) {
        let place = |page: PageId| match page.home {
            Home::Anon(anon) => (anon.0, page.index),
            home => panic!("swap has nothing of {home:?}"),
        };
        match event {
            TraceEvent::PageReclaimed { page, reason: Reason::SwappedOut, .. } => {
                self.went += 1;
                self.out.insert(place(page));
            }
            TraceEvent::PageSwappedIn { page, reason } => {
                *self.came.entry(reason).or_default() += 1;
                assert!(self.out.remove(&place(page)), "{page:?} comes back and never went");
            }
            TraceEvent::PageRefaulted { page, .. } => {
                assert_ne!(page.home, Home::Nobody, "whose it is nobody knows");
            }
            _ => {}
        }
    }
}

#[test]
fn a_page_comes_back_from_swap_as_the_page_that_went_and_its_event_says_from_where() {
    const DISK: [Reason; 2] = [Reason::SwapRead, Reason::SwapReadAhead];
    const ZEROES: [Reason; 3] = [Reason::SwapZeroes, Reason::SwapRead, Reason::SwapReadAhead];
    const ZRAM: [Reason; 1] = [Reason::SwapDecompressed];
    const ZSWAP: [Reason; 3] = [Reason::SwapFromPool, Reason::SwapRead, Reason::SwapReadAhead];
    let zeroes: &[(&str, &str)] = &[("compressed_bytes", "0")];
    let mut seen = BTreeSet::new();
    for (kernel, swap, params, from) in [
        ("linux-6.1", "disk:64M", &[][..], &DISK[..]),
        ("linux-6.12", "zram:64M", &[], &ZRAM),
        ("linux-6.12", "zswap:20%+disk:64M", &[], &ZSWAP),
        ("linux-6.12", "disk:64M", zeroes, &ZEROES),
        ("linux-7.2+lru-gen", "zram:64M", &[], &ZRAM),
    ] {
        let params = [
            &[
                ("hot", "4M"),
                ("cold", "12M"),
                ("file", "16M"),
                ("every", "4M"),
                ("limit", "20M"),
                ("loops", "16"),
            ],
            params,
        ]
        .concat();
        let spec = SimRun {
            swap: swap.parse().expect("areas"),
            ..spec("anon-and-file", "guest-tcg", kernel, 256, Filesystem::Ext4, &params)
        };
        let told = Rc::new(RefCell::new(InSwap::default()));
        let kept = Rc::clone(&told);
        let sink = move |rows: &[EventRow], names: &EventNames| kept.borrow_mut().take(rows, names);
        let watch = Watch { events: Some((Detail::Page, Box::new(sink))), ..Watch::default() };
        let result = run_watched(&spec, Arc::new(AtomicBool::new(false)), |_| {}, watch).unwrap();
        let InSwap { went, came, names, .. } = told.take();
        let counted =
            ["pswpin", "zswpin", "swpin_zero"].map(|name| result.vmstat.get(name).copied().unwrap_or(0));
        let told: u64 = came.values().sum();
        assert!(told > 100 && went >= told, "{kernel} on {swap}: {came:?} of {went}");
        assert_eq!(told, counted.iter().sum::<u64>(), "{kernel} on {swap}: {came:?}, {counted:?}");
        assert!(came.keys().all(|reason| from.contains(reason)), "{kernel} on {swap}: {came:?}");
        assert!(names.contains("anon:cold/1"), "{names:?}");
        seen.extend(came.into_keys());
    }
    let all = [&DISK[..], &[Reason::SwapDecompressed, Reason::SwapFromPool, Reason::SwapZeroes]].concat();
    assert!(all.iter().all(|reason| seen.contains(reason)), "{seen:?}");
}
