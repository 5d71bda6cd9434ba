//! A stand-in for `sim::run` and `sim::machines` until they are merged. Not for use.
#![allow(missing_docs)]

pub mod machines {
    use units::Bytes;
    pub struct MachineSpec {
        pub name: &'static str,
        pub help: &'static str,
        pub default_mem: Bytes,
    }
    #[derive(Debug)]
    pub struct MachineError;
    impl std::fmt::Display for MachineError {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("no such machine")
        }
    }
    impl MachineError {
        pub fn hint(&self) -> Option<String> {
            None
        }
    }
    const ALL: &[MachineSpec] = &[MachineSpec {
        name: "vm-2cpu",
        help: "a virtual machine with 2 CPUs and a fast virtual disk",
        default_mem: Bytes(1_016_336 << 10),
    }];
    pub fn machines() -> &'static [MachineSpec] {
        ALL
    }
    pub fn build(
        _name: &str,
        mem: Bytes,
        _kernel: &mm::feature::Kernel,
    ) -> Result<(sim::Hardware, mm::zone::MemoryLayout), MachineError> {
        let _ = mem;
        Ok((sim::Hardware::with_cpus(2), mm::zone::MemoryLayout { nodes: vec![], cpus: 2, huge_pages: false }))
    }
}

pub mod run {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use units::Nanos;

    pub struct SimRun {
        pub workload: workload::Workload,
        pub kernel: mm::feature::Kernel,
        pub sysctls: mm::sysctl::Sysctls,
        pub hardware: sim::Hardware,
        pub layout: mm::zone::MemoryLayout,
        pub filesystem: kernel::Filesystem,
        pub readahead_pages: u32,
        pub seed: u64,
        pub time_limit: Nanos,
        pub sample_period: Nanos,
    }
    pub struct PhaseSample {
        pub name: String,
        pub at: Nanos,
        pub vmstat: BTreeMap<String, u64>,
    }
    pub struct SimResult {
        pub outcome: workload::Outcome,
        pub vmstat: BTreeMap<String, u64>,
        pub memcg: BTreeMap<String, BTreeMap<String, u64>>,
        pub phases: Vec<PhaseSample>,
        pub columns: Vec<String>,
        pub rows: Vec<(Nanos, Vec<u64>)>,
        pub stalls: Vec<sim::Stall>,
        pub events: u64,
        pub simulated: Nanos,
    }
    #[derive(Debug)]
    pub struct SimError;
    impl std::fmt::Display for SimError {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("stopped")
        }
    }
    impl SimError {
        pub fn hint(&self) -> Option<String> {
            None
        }
    }
    pub fn run(
        spec: &SimRun,
        stop: Arc<AtomicBool>,
        mut progress: impl FnMut(sim::Progress) + 'static,
    ) -> Result<SimResult, SimError> {
        progress(sim::Progress { now: Nanos(1), events: 1 });
        if stop.load(Ordering::Relaxed) {
            return Err(SimError);
        }
        let aged = spec.kernel.features.has(mm::feature::Feature::RootAging);
        let mut outcome = workload::Outcome::default();
        let total = spec.workload.params().size("hot").unwrap_or_default().to_pages_ceil().get();
        outcome.metric("hot_pages_cached", if aged { total as f64 } else { 134.0 + spec.seed as f64 });
        outcome.metric("hot_pages_total", total as f64);
        let counts = |n: u64| BTreeMap::from([("pgscan_kswapd".to_owned(), n), ("nr_free_pages".to_owned(), 9)]);
        Ok(SimResult {
            outcome,
            vmstat: counts(9),
            memcg: BTreeMap::from([("A".into(), counts(4))]),
            phases: vec![PhaseSample { name: "hot_ready".into(), at: Nanos(5), vmstat: counts(4) }],
            columns: vec!["pgscan_kswapd".into()],
            rows: vec![(Nanos(0), vec![0]), (Nanos(9), vec![9])],
            stalls: vec![],
            events: 100,
            simulated: Nanos::from_secs(20),
        })
    }
}
