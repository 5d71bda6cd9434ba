//! From a seed to a world: a workload with all its parameters, memory, swap, sysctls.
//!
//! Each thing has a stream of random numbers of its own, named after it, so that a parameter that is added changes no
//! other. What does not go together is drawn anew; a world that costs too much is halved, at random places, until it
//! does not. Left out: where it runs, see `mod.rs`. Neighbours: `ranges.rs` and `cost.rs` of `known`.

use mm::version::feature::Feature;
use mm::version::presets::Version;
use units::{Bytes, PAGE_SIZE, Seed, Stream};
use workload::params::ParamKind;
use workload::{ParamError, ParamSpec, ParamValue, Params, WorkloadSpec};

use crate::known::cost::{COST_MAX, SMALL_COST_MAX, cost};
use crate::known::ranges::{self, MEMORY, Range, SMALL_MEMORY, SWAP};

/// One world as it was drawn, with the texts that a [`crate::Request`] takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawn {
    /// The workload.
    pub workload: &'static str,
    /// Memory of the machine.
    pub mem: String,
    /// Parameters that differ from their defaults: `name=value`.
    pub params: Vec<String>,
    /// Sysctls off their defaults: `name=value`.
    pub sysctls: Vec<String>,
    /// What it swaps to, if to anything.
    pub swap: Option<String>,
    /// The kernel, where each world has its own.
    pub kernel: Option<String>,
    /// The machine, where that is no guest.
    pub machine: Option<String>,
}

/// What worlds are drawn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    /// What a guest of User-Mode Linux can be.
    Guests,
    /// Small machines of the model, of any kernel.
    Small,
}

impl Space {
    const fn memory(self) -> (u64, u64) {
        match self {
            Self::Guests => MEMORY,
            Self::Small => SMALL_MEMORY,
        }
    }

    /// What a world may cost.
    pub(super) const fn cost_max(self) -> u64 {
        match self {
            Self::Guests => COST_MAX,
            Self::Small => SMALL_COST_MAX,
        }
    }
}

/// Machines of small worlds: one node, two, and four, zones of several kinds, disks that turn.
const MACHINES: [&str; 8] =
    ["vm-2cpu", "vm-2cpu", "vm-2cpu", ONE_CPU, "skylake-1s", "haswell-2s", "evo-ssd", "quad-node-16g"];
/// The one that has no more.
const ONE_CPU: &str = "guest-uml";
/// The longest readahead of small worlds: a good part of their memory.
const READAHEAD_MAX: Bytes = Bytes(8 << 20);

/// How often a world is drawn anew where its kernel lacks what was drawn.
pub(super) const ATTEMPTS: u64 = 16;
/// How often one parameter is drawn anew where it does not go with the others.
const PARAM_ATTEMPTS: u64 = 32;

/// The world of `seed` with one of `workloads`; `attempt` counts those of this seed that could not be.
pub(super) fn draw(seed: u64, workloads: &[&'static WorkloadSpec], attempt: u64) -> Drawn {
    draw_from(Space::Guests, seed, workloads, attempt)
}

/// [`draw`] from another space.
pub(super) fn draw_from(space: Space, seed: u64, workloads: &[&'static WorkloadSpec], attempt: u64) -> Drawn {
    let draws = Draws { space, seed: Seed(seed), attempt };
    let spec = *pick(&mut draws.stream("workload"), workloads);
    let (low, high) = space.memory();
    let mem = Bytes(log_uniform(&mut draws.stream("memory"), low >> 20, high >> 20) << 20);
    let params = draws.params(spec, mem);
    let defaults = spec.defaults();
    let differs = |(name, value): &(&'static str, ParamValue)| defaults.get(name) != Some(*value);
    Drawn {
        workload: spec.name,
        mem: mem.to_string(),
        params: params.iter().filter(differs).map(|(name, value)| format!("{name}={value}")).collect(),
        sysctls: draws.sysctls(mem),
        swap: draws.swap(mem),
        kernel: (space == Space::Small).then(|| draws.kernel()),
        machine: (space == Space::Small).then(|| draws.machine()),
    }
}

/// The streams of one world.
struct Draws {
    space: Space,
    seed: Seed,
    attempt: u64,
}

impl Draws {
    fn stream(&self, name: &str) -> Stream {
        match self.attempt {
            0 => self.seed.stream(&format!("world: {name}")),
            attempt => self.seed.stream(&format!("world: {name}, attempt {attempt}")),
        }
    }

    fn params(&self, spec: &'static WorkloadSpec, mem: Bytes) -> Params {
        let mut params = spec.defaults();
        for param in spec.params {
            let mut stream = self.stream(&format!("{} {}", spec.name, param.name));
            // One without a default has none in half of all worlds. Where there can be a limit, most have one.
            let seldom = if param.name == "limit" { 8 } else { 2 };
            if param.default.is_some() || !stream.chance(1, seldom) {
                self.set(&mut params, spec.name, param, mem, &mut stream);
            }
        }
        let mut stream = self.stream("what does not go together");
        for attempt in 0.. {
            let Err(error) = spec.build(params.clone()) else { break };
            let ParamError::Conflict { name, .. } = error else {
                unreachable!("values are in range: {error}")
            };
            let wrong = spec.params.iter().find(|param| param.name == name).expect("it is one of its own");
            match (attempt < PARAM_ATTEMPTS, wrong.default) {
                (true, _) => self.set(&mut params, spec.name, wrong, mem, &mut stream),
                (false, _) if attempt < 2 * PARAM_ATTEMPTS => reset(&mut params, wrong),
                _ => return spec.defaults(),
            }
        }
        self.fitted(params, spec, mem)
    }

    /// The same with some values halved until it costs no more than a world may.
    fn fitted(&self, mut params: Params, spec: &'static WorkloadSpec, mem: Bytes) -> Params {
        let mut stream = self.stream("what is halved");
        let cost_of = |params: &Params| cost(spec.name, params, mem);
        while cost_of(&params) > self.space.cost_max() {
            let now = cost_of(&params);
            let smaller = spec.params.iter().filter_map(|param| halved(&params, param));
            let cheaper: Vec<Params> = smaller
                .filter(|smaller| cost_of(smaller) < now && spec.build(smaller.clone()).is_ok())
                .collect();
            if !cheaper.is_empty() {
                params = pick(&mut stream, &cheaper).clone();
                continue;
            }
            // What nobody gave follows from the memory, and may be too much.
            let before = params.clone();
            for param in spec.params.iter().filter(|param| before.get(param.name).is_none()) {
                let given = (0..PARAM_ATTEMPTS).map(|_| {
                    let mut given = params.clone();
                    self.set(&mut given, spec.name, param, mem, &mut stream);
                    given
                });
                let fits = given.into_iter().find(|given| spec.build(given.clone()).is_ok());
                params = fits.unwrap_or(params);
            }
            if params == before {
                break;
            }
        }
        params
    }

    /// Half of all worlds have the kernel's own sysctls, the others a fifth of all off it.
    fn sysctls(&self, mem: Bytes) -> Vec<String> {
        if self.stream("whether sysctls are set").chance(1, 2) {
            return Vec::new();
        }
        let mut pairs = Vec::new();
        for &(name, range) in ranges::SYSCTLS {
            let mut stream = self.stream(name);
            let range = match self.space {
                Space::Guests => range,
                Space::Small => ranges::of_small_sysctl(name, range),
            };
            let Range::Count(least, most) = range else { continue };
            let most = if name == "vm.min_free_kbytes" { most.min(mem.get() >> 14) } else { most };
            if stream.chance(1, 5) {
                pairs.push(format!("{name}={}", log_uniform(&mut stream, least, most)));
            }
        }
        pairs
    }

    /// Nothing, a disk, compressed memory, a disk with compressed memory before it, or both.
    fn swap(&self, mem: Bytes) -> Option<String> {
        let mut stream = self.stream("swap");
        let mut size = || {
            let (least, most) = (mem.get() * SWAP.0 / 1000, mem.get() * SWAP.1 / 1000);
            Bytes((log_uniform(&mut stream, least, most) >> 20).max(1) << 20)
        };
        let (first, second) = (size(), size());
        match self.stream("kind of swap").below(8) {
            0..3 => None,
            3 | 4 => Some(format!("disk:{first}")),
            5 => Some(format!("zram:{first}")),
            6 => Some(format!("zswap+disk:{first}")),
            _ => Some(format!("zram:{first},disk:{second}")),
        }
    }

    /// Any version, half of them with one of its decisions made otherwise.
    fn kernel(&self) -> String {
        let mut stream = self.stream("kernel");
        let presets: Vec<&str> = Version::presets().map(|(name, _)| name).collect();
        let preset = *pick(&mut stream, &presets);
        let with = format!("{preset}+{}", pick(&mut stream, Feature::ALL).name());
        if stream.chance(1, 2) && Version::parse(&with).is_ok() { with } else { preset.to_owned() }
    }

    /// A machine with some of what can be changed of it: CPUs, readahead, the log of its disk.
    fn machine(&self) -> String {
        let mut stream = self.stream("machine");
        let name = *pick(&mut stream, &MACHINES);
        let cpus = 2 << stream.below(3);
        let cpus = if name == ONE_CPU { 1 } else { cpus };
        let mut machine = format!("{name}+cpus={cpus}");
        if stream.chance(1, 2) {
            let pages = log_uniform(&mut stream, 0, READAHEAD_MAX.get() / PAGE_SIZE);
            machine += &format!("+readahead={}", Bytes(pages * PAGE_SIZE));
        }
        if stream.chance(1, 4) {
            machine += &format!("+log={}M", 4 << stream.below(4));
        }
        machine
    }

    /// Gives a parameter a value of its range.
    fn set(
        &self,
        params: &mut Params,
        workload: &'static str,
        param: &ParamSpec,
        mem: Bytes,
        stream: &mut Stream,
    ) {
        let range = match self.space {
            Space::Guests => ranges::of_param(workload, param.name),
            Space::Small => ranges::of_small_param(workload, param.name),
        };
        let text = match (range, param.kind) {
            // Only guests lack some things that there are words for.
            (Some(Range::Never(_)), ParamKind::Choice(words)) if self.space == Space::Small => {
                (*pick(stream, words)).to_owned()
            }
            (Some(Range::Never(_)), _) => return reset(params, param),
            (Some(Range::Words(words)), _) => (*pick(stream, words)).to_owned(),
            (None, ParamKind::Choice(words)) => (*pick(stream, words)).to_owned(),
            (Some(Range::Count(least, most)), _) => log_uniform(stream, least, most).to_string(),
            (Some(Range::Size(least, most)), _) => {
                let size = log_uniform(stream, least.get(), most.get());
                let whole = size >= PAGE_SIZE && stream.chance(3, 4);
                Bytes(if whole { size - size % PAGE_SIZE } else { size }).to_string()
            }
            (Some(Range::OfMemory(least, most)), _) => {
                let of = |part: u64| mem.get() / PAGE_SIZE * part / 1000;
                Bytes(log_uniform(stream, of(least), of(most)) * PAGE_SIZE).to_string()
            }
            (None, kind) => unreachable!("`{}` of `{workload}` has no range: {kind:?}", param.name),
        };
        // Below the smallest value that the workload takes there is none to draw.
        if params.set(param.name, &text).is_err() {
            reset(params, param);
        }
    }
}

fn reset(params: &mut Params, param: &ParamSpec) {
    params.set(param.name, param.default.unwrap_or("none")).expect("a default is allowed");
}

/// The same with one number halved; `None` where it is none, or as small as it can be.
pub(super) fn halved(params: &Params, param: &ParamSpec) -> Option<Params> {
    let half = match params.get(param.name)? {
        ParamValue::Size(size) if size.get() >= 2 * PAGE_SIZE => {
            Bytes(size.get() / 2 / PAGE_SIZE * PAGE_SIZE).to_string()
        }
        ParamValue::Size(size) => Bytes(size.get() / 2).to_string(),
        ParamValue::Count(count) => (count / 2).to_string(),
        ParamValue::Choice(_) | ParamValue::File(_) | ParamValue::Share(_) => return None,
    };
    let mut smaller = params.clone();
    let changed = smaller.set(param.name, &half).is_ok() && smaller != *params;
    changed.then_some(smaller)
}

fn pick<'a, T>(stream: &mut Stream, all: &'a [T]) -> &'a T {
    &all[usize::try_from(stream.below(all.len() as u64)).expect("an index")]
}

/// A number from `least` to `most`: each doubling as likely as the next, 0 in an eighth of all draws if it is allowed.
fn log_uniform(stream: &mut Stream, least: u64, most: u64) -> u64 {
    if least == 0 && (most == 0 || stream.chance(1, 8)) {
        return 0;
    }
    let least = least.max(1);
    let doublings = (most / least).max(1).ilog2();
    let first = least << stream.below(u64::from(doublings) + 1);
    let last = (2 * first - 1).min(most).max(first);
    first + stream.below(last - first + 1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use workload::catalog::catalog;

    use super::*;

    fn all() -> Vec<&'static WorkloadSpec> {
        catalog().iter().collect()
    }

    #[test]
    fn worlds_have_every_workload_every_word_and_sizes_of_every_magnitude() {
        let worlds: Vec<Drawn> = (1..=2000).map(|seed| draw(seed, &all(), 0)).collect();
        let drawn: BTreeSet<String> = worlds
            .iter()
            .flat_map(|world| world.params.iter().map(move |pair| format!("{} {pair}", world.workload)))
            .collect();
        for spec in catalog() {
            assert!(worlds.iter().filter(|world| world.workload == spec.name).count() > 150, "{}", spec.name);
            for param in spec.params {
                let (ParamKind::Choice(words), None) = (param.kind, ranges::of_param(spec.name, param.name))
                else {
                    continue;
                };
                for word in words.iter().filter(|word| param.default != Some(**word)) {
                    let pair = format!("{} {}={word}", spec.name, param.name);
                    assert!(drawn.contains(&pair), "never {pair}");
                }
            }
        }
        let mems: BTreeSet<u32> =
            worlds.iter().map(|world| units::parse_size(&world.mem).unwrap().get().ilog2()).collect();
        assert_eq!(mems, (27..=30).collect());
        let none = worlds.iter().filter(|world| world.swap.is_none()).count();
        let plain = worlds.iter().filter(|world| world.sysctls.is_empty()).count();
        assert!((600..900).contains(&none) && (900..1300).contains(&plain), "{none} {plain}");
    }

    #[test]
    fn no_world_costs_more_than_it_may_and_each_can_be_asked_for() {
        for seed in 1..=2000 {
            let world = draw(seed, &all(), 0);
            let spec = WorkloadSpec::find(world.workload).unwrap();
            let mut params = spec.defaults();
            for pair in &world.params {
                let (name, value) = pair.split_once('=').unwrap();
                params.set(name, value).unwrap();
            }
            let cost = cost(spec.name, &params, units::parse_size(&world.mem).unwrap());
            assert!(cost <= COST_MAX, "{world:?}: {cost}");
            spec.build(params).unwrap();
        }
    }

    #[test]
    fn a_world_depends_on_its_seed_and_its_workloads_only() {
        assert_eq!(draw(7, &all(), 0), draw(7, &all(), 0));
        assert_ne!(draw(7, &all(), 0), draw(8, &all(), 0));
        assert_ne!(draw(7, &all(), 0), draw(7, &all(), 1));
    }
}
