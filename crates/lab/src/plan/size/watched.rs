//! What a series of a container's memory says of its size, where nobody captured what it does: bounds, and a guess
//! between them.
//!
//! | what | why |
//! |---|---|
//! | at least: the most anonymous memory | without swap it cannot be reclaimed, so that a lesser limit kills |
//! | at least: its limit | at it tasks were killed, or waited for memory [`WAITED`] of the time or more |
//! | enough: the most usage, or a limit that it reached without either | nothing, or little, was taken from it there |
//! | the guess: the peak of the working set | what was active of its files, which the kernel said and nobody measured |
//!
//! Several containers with the same label `container` are replicas, and count together by their peaks. Left out:
//! a curve, which no series has: what reads would cost is not in it. Neighbours: [`crate::keep::prometheus`], which
//! reads; [`super::practice`], the same rules of others on a run.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use report::{Advice, Patch, Watched as Told, WatchedRule};
use trace::requests::decompressed;
use units::{Bytes, PAGE_SIZE};
use workload::amount::Warmup;

use super::curve::rounded_up;
use super::plan::{SizeRequest, headroom};
use super::practice::{KRR_LEAST, MARGIN, VPA_LEAST, VPA_PERCENTILE};
use crate::error::LabError;
use crate::keep::prometheus::{Labels, Quantity, Watched, is_one, read};
use crate::keep::unpacked::whole;
use crate::resolve::texts::shell_quoted;

/// Of all time, waiting for memory: a container that waits as long is too small.
const WAITED: f64 = 0.01;
/// Of its limit, usage: a container that holds as much is at it.
const AT_LIMIT: f64 = 0.97;
/// A limit beyond this is none: cAdvisor has the kernel's largest number there.
const LIMIT_MAX: f64 = (1_u64 << 60) as f64;

/// Peaks of a container, or of several.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Peaks {
    usage: Option<f64>,
    anonymous: Option<f64>,
    working: Option<f64>,
    working_high: Option<f64>,
    swapped: f64,
    limit: Option<f64>,
    /// Share of the time; none where it is not known.
    waited: Option<f64>,
    kills: f64,
    samples: usize,
    seconds: f64,
}

impl Peaks {
    fn of(watched: &Watched) -> Self {
        let series = |of| watched.series.get(&of).map_or(&[][..], Vec::as_slice);
        let peak = |of| series(of).iter().map(|(_, value)| *value).reduce(f64::max);
        let working = working_set(watched);
        let mut sorted: Vec<f64> = working.clone();
        sorted.sort_by(f64::total_cmp);
        let limit = series(Quantity::Limit).last().map(|(_, value)| *value);
        let times = [Quantity::Usage, Quantity::WorkingSet].map(series);
        let longest = times.into_iter().max_by_key(|of| of.len()).unwrap_or_default();
        let seconds = longest.last().zip(longest.first()).map_or(0.0, |(last, first)| last.0 - first.0);
        let waiting = series(Quantity::Waiting);
        Self {
            usage: peak(Quantity::Usage),
            anonymous: peak(Quantity::Anonymous),
            working: sorted.last().copied(),
            working_high: percentile(&sorted),
            swapped: peak(Quantity::Swap).unwrap_or(0.0),
            limit: limit.filter(|limit| (1.0..LIMIT_MAX).contains(limit)),
            waited: (waiting.len() > 1).then(|| share(waiting)),
            kills: risen(series(Quantity::Kills)),
            samples: longest.len(),
            seconds,
        }
    }

    fn is_at_limit(&self) -> bool {
        self.limit.zip(self.usage).is_some_and(|(limit, usage)| usage >= limit * AT_LIMIT)
    }

    fn is_stalled(&self) -> bool {
        self.waited.is_some_and(|waited| waited >= WAITED)
    }
}

/// What the working set of a container was, by the name for it or from what it is made of.
fn working_set(watched: &Watched) -> Vec<f64> {
    if let Some(working) = watched.series.get(&Quantity::WorkingSet) {
        return working.iter().map(|(_, value)| *value).collect();
    }
    let inactive = watched.series.get(&Quantity::InactiveFile).map_or(&[][..], Vec::as_slice);
    let usage = watched.series.get(&Quantity::Usage).map_or(&[][..], Vec::as_slice);
    let at =
        |time: f64| inactive.binary_search_by(|of| of.0.total_cmp(&time)).ok().map(|place| inactive[place].1);
    usage.iter().filter_map(|(time, usage)| Some((usage - at(*time)?).max(0.0))).collect()
}

fn percentile(sorted: &[f64]) -> Option<f64> {
    sorted.get((sorted.len() as f64 * VPA_PERCENTILE) as usize).or(sorted.last()).copied()
}

/// By how much a counter rose; a container that begins anew counts from 0.
fn risen(series: &[(f64, f64)]) -> f64 {
    series.windows(2).map(|pair| if pair[1].1 >= pair[0].1 { pair[1].1 - pair[0].1 } else { pair[1].1 }).sum()
}

/// Of the time of a counter of seconds.
fn share(series: &[(f64, f64)]) -> f64 {
    let seconds = series[series.len() - 1].0 - series[0].0;
    if seconds > 0.0 { risen(series) / seconds } else { 0.0 }
}

/// A series of memory use to be sized, as a person names everything.
#[derive(Debug, Clone, Default)]
pub struct WatchedRequest {
    /// What else was said, of which the file, the headroom and nothing else counts.
    pub size: SizeRequest,
    /// Options that were given beside these, by name.
    pub given: Vec<&'static str>,
    /// Labels that a container must have: `container=web`.
    pub labels: Vec<String>,
    /// What is wanted of the recommendation.
    pub patches: Vec<Patch>,
}

/// Whether a file is what Prometheus says of containers, as far as its beginning tells.
pub fn is_watched(path: &Path) -> bool {
    const HEAD: u64 = 64 << 10;
    let head = || {
        let mut head = Vec::new();
        decompressed(File::open(path)?)?.take(HEAD).read_to_end(&mut head).map(|_| head)
    };
    path.is_file() && head().is_ok_and(|head| is_one(&head))
}

impl WatchedRequest {
    /// What the file says of a size.
    ///
    /// # Errors
    /// It cannot be read or is no such file; several containers are in it, or none that is meant; options for runs.
    pub fn judge(&self) -> Result<Told, LabError> {
        let path = &self.size.trace;
        let name = path.display().to_string();
        self.check_options(&name)?;
        let headroom = headroom(self.size.headroom.as_deref())?;
        let unreadable = |source| LabError::unreadable_trace(path, source);
        let file = File::open(path).map_err(unreadable)?;
        let bytes = decompressed(file).and_then(whole).map_err(unreadable)?;
        let all = read(&name, &bytes)?;
        let meant = self.meant(&name, all)?;
        let mut told = judged(&meant, headroom);
        told.series = path.file_name().map_or(name, |name| name.to_string_lossy().into_owned());
        told.patches.clone_from(&self.patches);
        told.command = self.command(path);
        Ok(told)
    }

    fn command(&self, path: &Path) -> String {
        let labels = self.labels.iter().map(|label| format!(" --label {}", shell_quoted(label)));
        let headroom =
            self.size.headroom.iter().map(|headroom| format!(" --headroom {}", shell_quoted(headroom)));
        let more: String = labels.chain(headroom).collect();
        format!("pagetide size {}{more}", shell_quoted(&path.to_string_lossy()))
    }

    /// Refuses what is for runs: there are none.
    fn check_options(&self, name: &str) -> Result<(), LabError> {
        let size = &self.size;
        let given = [
            ("--kernel", size.kernel.is_some()),
            ("--machine", size.machine.is_some()),
            ("--disk", size.disk.is_some()),
            ("--mem", size.mem.is_some()),
            ("--set", !size.sysctls.is_empty()),
            ("--seed", size.seed.is_some()),
            ("--seeds", size.seeds.is_some()),
            ("--limits", size.limits.is_some()),
            ("--points", size.points.is_some()),
            ("--resolution", size.resolution.is_some()),
            ("--slowdown", size.slowdown.is_some()),
            ("--fail-if", !size.fail_if.is_empty()),
            ("--sample", size.sample.is_some()),
            ("--check-sample", size.check_sample),
            ("--verify", size.verify.is_some()),
            ("--allow-host-pressure", size.allow_host_pressure),
            ("--timing", size.timing.is_some()),
            ("--warmup", size.options.warmup != Warmup::None),
            ("--trace-format", size.options.format.is_some()),
            ("--unsorted", size.options.unsorted),
            ("--interval", size.interval.is_some()),
            ("a command", !size.program.is_empty()),
        ];
        let given = given.into_iter().find(|(_, given)| *given).map(|(option, _)| option);
        match given.or(self.given.first().copied()) {
            Some(option) => Err(LabError::refused(
                format!(
                    "`{option}` is for runs, and `{name}` is a series of memory use, of which nothing can be run"
                ),
                "leave it out; for a curve capture the program (`pagetide capture --attach PID`)",
            )),
            None => Ok(()),
        }
    }

    /// Those that have all labels, which must be replicas of one.
    fn meant(&self, name: &str, all: Vec<Watched>) -> Result<Vec<Watched>, LabError> {
        let pairs = self.labels.iter().map(|text| {
            text.split_once('=').ok_or_else(|| {
                LabError::refused(
                    format!("`--label {text}` is not of the form `name=value`"),
                    "write `--label container=web`",
                )
            })
        });
        let pairs = pairs.collect::<Result<Vec<_>, _>>()?;
        let listed = |all: &[Watched]| {
            let some: Vec<String> = all.iter().take(LISTED).map(|one| shown(&one.labels)).collect();
            let more =
                if all.len() > LISTED { format!(" and {} more", all.len() - LISTED) } else { String::new() };
            format!("{}{more}", some.join("; "))
        };
        let has = |one: &&Watched| {
            pairs.iter().all(|(name, value)| one.labels.get(*name).is_some_and(|has| has == value))
        };
        let meant: Vec<Watched> = all.iter().filter(has).cloned().collect();
        let Some(first) = meant.first() else {
            let hint = format!("there are: {}", listed(&all));
            return Err(LabError::refused(format!("no container of `{name}` has these labels"), hint));
        };
        let which = |one: &Watched| NAMED.map(|name| one.labels.get(name).cloned());
        if meant.iter().any(|one| which(one) != which(first)) {
            let hint = format!(
                "name one by its labels, as in `--label container=web`; there are: {}",
                listed(&meant)
            );
            return Err(LabError::refused(
                format!("`{name}` has several containers that are no replicas"),
                hint,
            ));
        }
        Ok(meant)
    }
}

/// Containers that are listed in an error.
const LISTED: usize = 8;
/// Labels that replicas have in common.
const NAMED: [&str; 3] = ["namespace", "container", "container_label_com_docker_compose_service"];

/// As Prometheus writes them.
fn shown(labels: &Labels) -> String {
    const TOLD: [&str; 5] = ["namespace", "pod", "container", "name", "id"];
    let known: Vec<String> = TOLD
        .iter()
        .filter_map(|name| Some(format!("{name}={}", labels.get(*name).filter(|value| !value.is_empty())?)))
        .collect();
    if known.is_empty() { "a container without labels".to_owned() } else { known.join(" ") }
}

/// What the containers, which are replicas, say together.
fn judged(watched: &[Watched], headroom: f64) -> Told {
    let all: Vec<Peaks> = watched.iter().map(Peaks::of).collect();
    let most = |of: &dyn Fn(&Peaks) -> Option<f64>| all.iter().filter_map(of).reduce(f64::max);
    let bytes = |value: f64| value as u64;
    let round = |value: f64| rounded_up(value).get();
    // Of a replica without it nobody knows what it used.
    let usage = most(&|peaks| peaks.usage).filter(|_| all.iter().all(|peaks| peaks.usage.is_some()));
    let working = most(&|peaks| peaks.working);
    let anonymous = most(&|peaks| peaks.anonymous);
    let too_small =
        most(&|peaks| peaks.limit.filter(|_| peaks.kills > 0.0 || peaks.is_at_limit() && peaks.is_stalled()));
    // At its limit without a word on waiting, or short of memory by a limit that is not told: nobody knows what it
    // wants.
    let unknown = all.iter().any(|peaks| match peaks.limit {
        Some(_) => peaks.is_at_limit() && peaks.waited.is_none(),
        None => peaks.kills > 0.0 || peaks.is_stalled(),
    });
    let least = anonymous.into_iter().chain(too_small).reduce(f64::max);
    let parts_fit = |usage: &f64| anonymous.into_iter().chain(working).all(|part| part <= *usage);
    let enough = usage.filter(parts_fit).filter(|_| too_small.is_none() && !unknown);
    let advice = enough.map(|enough| {
        let whole = (enough as u64).next_multiple_of(PAGE_SIZE);
        let high = round(working.unwrap_or(enough).max(least.unwrap_or(0.0))).min(whole);
        Advice {
            high,
            max: round(enough * (1.0 + headroom / 100.0)),
            low: anonymous.map_or(high, |anonymous| round(anonymous).min(high)),
            too_small: None,
            headroom,
            run_as_set: None,
            low_is_knee: false,
        }
    });
    let working_high = most(&|peaks| peaks.working_high);
    let rule = |rule: &str, of: Option<f64>, least: Bytes| {
        let limit = round((of? * MARGIN).max(least.get() as f64));
        Some(WatchedRule { rule: rule.to_owned(), limit })
    };
    Told {
        series: String::new(),
        of: watched.first().map_or_else(String::new, |one| shown(&one.labels)),
        replicas: watched.len(),
        samples: all.iter().map(|peaks| peaks.samples).sum(),
        seconds: most(&|peaks| Some(peaks.seconds)).unwrap_or(0.0),
        usage: usage.map(bytes),
        anonymous: anonymous.map(bytes),
        working: working.map(bytes),
        swapped: most(&|peaks| Some(peaks.swapped)).filter(|swapped| *swapped > 0.0).map(bytes),
        limit: most(&|peaks| peaks.limit).map(bytes),
        waited: most(&|peaks| peaks.waited),
        kills: all.iter().map(|peaks| peaks.kills).sum::<f64>() as u64,
        least: least.map(bytes),
        too_small: too_small.map(bytes),
        enough: enough.map(bytes),
        advice,
        rules: [
            rule("VPA: 90th percentile of the working set + 15 %", working_high, VPA_LEAST),
            rule("KRR: its maximum + 15 %", working, KRR_LEAST),
        ]
        .into_iter()
        .flatten()
        .collect(),
        patches: Vec::new(),
        command: String::new(),
    }
}
