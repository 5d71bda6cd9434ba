//! A world made smaller while something still holds of it: what is not needed goes, what is needed is halved.
//!
//! # Theory of operation
//! Tries are made in one order: everything at half its size; sysctls, swap, changes of the machine and features of the
//! kernel left out; parameters at their defaults; numbers, swap and memory halved. The first try of which it still
//! holds is the world from there on, and the round begins anew at the next one; no world is tried twice. It ends when a
//! whole round has found none, or when whoever watches says so: what has been reached then is good.
//!
//! Left out: what has to hold, and running, see `check.rs` and `shrink.rs`.

use std::collections::BTreeSet;

use units::{Bytes, PAGE_SIZE, parse_size};
use workload::{ParamValue, Params, WorkloadSpec};

use super::draw::{Drawn, halved};
use crate::known::cost::cost;

/// The smallest memory that is tried.
const MEMORY_MIN: Bytes = Bytes(8 << 20);

/// What became of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Smaller {
    pub(super) drawn: Drawn,
    /// How many worlds were tried.
    pub(super) tried: usize,
    /// Whether nothing smaller was left to try.
    pub(super) is_smallest: bool,
}

/// The smallest world that was found of which `holds`; `None` of it is that nobody shall go on.
pub(super) fn smaller(begin: Drawn, mut holds: impl FnMut(&Drawn) -> Option<bool>) -> Smaller {
    let mut seen = BTreeSet::from([format!("{begin:?}")]);
    let mut found = Smaller { drawn: begin, tried: 0, is_smallest: false };
    let mut from = 0;
    loop {
        let tries = tries(&found.drawn);
        let count = tries.len();
        let mut taken = None;
        for step in 0..count {
            let place = (from + step) % count;
            if !seen.insert(format!("{:?}", tries[place])) {
                continue;
            }
            match holds(&tries[place]) {
                None => return found,
                Some(true) => {
                    taken = Some(place);
                    break;
                }
                Some(false) => found.tried += 1,
            }
        }
        let Some(place) = taken else { return Smaller { is_smallest: true, ..found } };
        found.tried += 1;
        found.drawn = tries.into_iter().nth(place).expect("it was tried");
        from = place;
    }
}

/// Worlds that are one step smaller.
fn tries(world: &Drawn) -> Vec<Drawn> {
    let mut tries = vec![half(world)];
    let with = |change: &dyn Fn(&mut Drawn)| {
        let mut other = world.clone();
        change(&mut other);
        other
    };
    if world.sysctls.len() > 1 {
        tries.push(with(&|other| other.sysctls.clear()));
    }
    tries.extend((0..world.sysctls.len()).map(|place| with(&|other| drop(other.sysctls.remove(place)))));
    tries.push(with(&|other| other.swap = None));
    tries.extend(plainer(world.machine.as_deref()).map(|text| with(&|other| other.machine = text.clone())));
    tries.extend(plainer(world.kernel.as_deref()).map(|text| with(&|other| other.kernel = text.clone())));
    tries.extend(params(world));
    tries.extend(world.swap.as_deref().map(|swap| with(&|other| other.swap = Some(halved_swap(swap)))));
    tries.extend([(1, 2), (3, 4)].map(|part| with(&|other| other.mem = part_of(&world.mem, part))));
    tries.retain(|other| other != world);
    tries
}

/// The same at half its size: memory, and whatever is measured in bytes.
fn half(world: &Drawn) -> Drawn {
    let (spec, mut params) = params_of(world);
    let sizes = params.clone();
    for param in spec.params.iter().filter(|param| matches!(sizes.get(param.name), Some(ParamValue::Size(_))))
    {
        params = halved(&params, param).unwrap_or(params);
    }
    let swap = world.swap.as_deref().map(halved_swap);
    let mem = part_of(&world.mem, (1, 2));
    Drawn { params: texts(spec, &params), swap, mem, ..world.clone() }
}

/// One change of a machine, or one feature of a kernel, fewer.
fn plainer(text: Option<&str>) -> impl Iterator<Item = Option<String>> {
    let parts: Vec<&str> = text.unwrap_or_default().split('+').collect();
    let without = |left_out: usize| {
        let kept = parts.iter().enumerate().filter(|(place, _)| *place != left_out);
        Some(kept.map(|(_, part)| *part).collect::<Vec<_>>().join("+"))
    };
    (1..parts.len()).map(without).collect::<Vec<_>>().into_iter()
}

/// Parameters at their defaults where that costs no more, then with numbers halved.
fn params(world: &Drawn) -> Vec<Drawn> {
    let (spec, params) = params_of(world);
    let Ok(mem) = parse_size(&world.mem) else { return Vec::new() };
    let now = cost(spec.name, &params, mem);
    let is_no_dearer = |other: &Params| cost(spec.name, other, mem) <= now;
    let mut tries = Vec::new();
    for place in 0..world.params.len() {
        let mut other = world.clone();
        other.params.remove(place);
        if is_no_dearer(&params_of(&other).1) {
            tries.push(other);
        }
    }
    // Calls of half the size are twice as many.
    let halves = spec.params.iter().filter_map(|param| halved(&params, param)).filter(is_no_dearer);
    tries.extend(halves.map(|params| Drawn { params: texts(spec, &params), ..world.clone() }));
    tries
}

fn params_of(world: &Drawn) -> (&'static WorkloadSpec, Params) {
    let spec = WorkloadSpec::find(world.workload).expect("it was drawn from the catalog");
    let mut params = spec.defaults();
    for (name, value) in world.params.iter().filter_map(|pair| pair.split_once('=')) {
        params.set(name, value).expect("it was set before");
    }
    (spec, params)
}

/// Those that differ from their defaults.
fn texts(spec: &WorkloadSpec, params: &Params) -> Vec<String> {
    let defaults = spec.defaults();
    let differs = params.iter().filter(|(name, value)| defaults.get(name) != Some(*value));
    differs.map(|(name, value)| format!("{name}={value}")).collect()
}

fn part_of(mem: &str, (part, of): (u64, u64)) -> String {
    let Ok(Bytes(bytes)) = parse_size(mem) else { return mem.to_owned() };
    let mib = 1 << 20;
    // Whole MiB where it was, as people write it.
    let unit = if bytes.is_multiple_of(mib) { mib } else { PAGE_SIZE };
    let smaller = Bytes(bytes * part / of / unit * unit).max(MEMORY_MIN);
    if smaller.get() < bytes { smaller.to_string() } else { mem.to_owned() }
}

/// Each area at half its size.
fn halved_swap(swap: &str) -> String {
    let area = |area: &str| {
        let size = area.rsplit_once(':').and_then(|(kind, size)| Some((kind, parse_size(size).ok()?)));
        match size {
            Some((kind, Bytes(bytes))) if bytes >= 2 << 20 => {
                format!("{kind}:{}", Bytes((bytes / 2) >> 20 << 20))
            }
            _ => area.to_owned(),
        }
    };
    swap.split(',').map(area).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world() -> Drawn {
        Drawn {
            workload: "sequential-readers",
            mem: "48M".to_owned(),
            params: ["readers=16", "file=8M", "filesystem=xfs"].map(str::to_owned).to_vec(),
            sysctls: ["vm.swappiness=3", "vm.dirty_ratio=7"].map(str::to_owned).to_vec(),
            swap: Some("zram:32M,disk:8M".to_owned()),
            kernel: Some("linux-6.12+lru-gen".to_owned()),
            machine: Some("vm-2cpu+cpus=4+readahead=4M".to_owned()),
        }
    }

    #[test]
    fn what_is_not_needed_goes_and_what_is_needed_is_halved_as_far_as_it_can_be() {
        let needs = |world: &Drawn| {
            let readers = params_of(world).1.count("readers").unwrap();
            let machine = world.machine.as_ref().unwrap();
            Some(
                readers >= 3
                    && machine.contains("readahead=4M")
                    && world.sysctls.contains(&"vm.dirty_ratio=7".into()),
            )
        };
        let found = smaller(world(), needs);
        let Drawn { mem, params, sysctls, swap, kernel, machine, .. } = found.drawn;
        assert_eq!((&*mem, swap, found.is_smallest), ("8M", None, true));
        assert_eq!(
            (kernel.as_deref(), machine.as_deref()),
            (Some("linux-6.12"), Some("vm-2cpu+readahead=4M"))
        );
        assert_eq!(sysctls, ["vm.dirty_ratio=7"]);
        assert!(
            params.contains(&"readers=4".to_owned()) && !params.contains(&"filesystem=xfs".to_owned()),
            "{params:?}"
        );
    }

    #[test]
    fn whoever_stops_has_the_smallest_so_far() {
        let mut left = 3;
        let found = smaller(world(), |_| {
            left -= 1;
            (left >= 0).then_some(true)
        });
        assert_eq!((found.tried, found.is_smallest), (3, false));
        assert_ne!(found.drawn, world());
    }
}
