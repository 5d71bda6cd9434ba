//! What there is to choose from: workloads with the setting of their source, kernels with the features that each has,
//! sysctls, machines.
//!
//! Left out: what any of it means; texts are those of `pagetide list`.

use lab::experiment::Experiment;
use lab::names::list;
use mm::Version;
use mm::version::feature::Feature;
use report::{Format, views};
use serde_json::{Value, json};

/// All lists.
pub(crate) fn all() -> Value {
    let mut lists = json!({ "version": env!("CARGO_PKG_VERSION"), "experiments": {}, "has": {} });
    for name in ["workloads", "kernels", "features", "sysctls", "machines"] {
        lists[name] = rows(name);
    }
    for workload in workload::catalog() {
        if let Some(Experiment { machine, mem, swap, kernels, .. }) = Experiment::of(workload.name) {
            let mem = mem.to_string();
            let of = json!({ "machine": machine, "mem": mem, "swap": swap, "kernels": kernels });
            lists["experiments"][workload.name] = of;
        }
    }
    for (name, _) in Version::presets() {
        let version = Version::parse(name).expect("presets are named as they are read");
        let has = Feature::ALL.iter().filter(|feature| version.rules.has(feature.on()));
        lists["has"][name] = has.map(|feature| feature.name()).collect();
    }
    lists
}

/// The rows of a list as `pagetide list NAME --format json` has them.
fn rows(name: &str) -> Value {
    let list = list(name).expect("a list that there is");
    let json = views::list(&list).render(Format::Json, 80);
    let mut value: Value = serde_json::from_str(&json).expect("reports write JSON");
    value["rows"].take()
}
