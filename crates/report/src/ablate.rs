//! An ablation: what each kernel gave, and what each feature and each pair of features does to it.
//!
//! First a table with a row for each subset of the changes, whose values are those of single runs; then, for
//! each measure, main effects and interactions ([`effects`]), with what they mean in words; at the end the
//! commands that make each row again. Left out: effects on counters, which `--format csv` has for each run.

pub(crate) mod effects;

use recording::Recording;
use serde_json::{Value, json};

use crate::export::{number, run as run_json, runs_as_rows, written};
use crate::judge::{LEVEL, TestsTold};
use crate::measure::Direction;
use crate::notes::{notes_markdown, notes_text, separated};
use crate::number::{percent_with_interval, plain, signed, signed_percent, with_spread};
use crate::oom::oom_killed;
use crate::table::{Align, Table, clean};
use crate::view::{Measures, View};
use crate::wrap::{command, paragraph};
use crate::{ReportError, common_workload};
use effects::{Effect, Effects, MeasureEffects};

/// What became of a run.
#[derive(Debug, Clone)]
pub enum AblatedRun<'a> {
    /// It left a recording.
    Recorded(&'a Recording),
    /// It failed, and why.
    Failed(String),
    /// It was not begun, or not ended.
    NotRun,
}

impl<'a> AblatedRun<'a> {
    fn recording(&self) -> Option<&'a Recording> {
        if let Self::Recorded(recording) = self { Some(recording) } else { None }
    }
}

/// One kernel of an ablation.
#[derive(Debug, Clone)]
pub struct Subset<'a> {
    /// The kernel.
    pub label: String,
    /// The command that makes its runs again.
    pub command: String,
    /// Its runs, one for each seed.
    pub runs: Vec<AblatedRun<'a>>,
}

/// An ablation to report on.
#[derive(Debug, Clone)]
pub struct Ablated<'a> {
    /// The workload.
    pub workload: String,
    /// What was switched: `+root-aging`.
    pub factors: Vec<String>,
    /// A kernel for each subset of the factors: bit `f` of its place tells whether factor `f` is changed.
    pub subsets: Vec<Subset<'a>>,
    /// The seeds, in the order of each kernel's runs.
    pub seeds: Vec<u64>,
    /// What a seed decides in this workload, a line each.
    pub varies: Vec<String>,
    /// How it is shown.
    pub view: View,
}

impl<'a> Ablated<'a> {
    fn recordings(&self) -> Vec<&'a Recording> {
        self.subsets.iter().flat_map(|subset| subset.runs.iter().filter_map(AblatedRun::recording)).collect()
    }

    fn check(&self) -> Result<(), ReportError> {
        common_workload(self.recordings()).map(drop)
    }

    /// Effects on the measures to look at first, and on the others.
    fn effects(&self) -> (Effects, Effects) {
        let Measures { first, rest } = Measures::of(self.recordings(), &self.view);
        (Effects::of(self, first), Effects::of(self, rest))
    }

    fn title(&self) -> String {
        let planned = self.subsets.len() * self.seeds.len();
        let (base, factors) = (&self.subsets[0].label, self.factors.join(", "));
        let runs = self.recordings().len();
        clean(&format!("{}: {base} with {factors} or not: {runs} of {planned} runs", self.workload))
    }

    /// The factors of a set, such as `+a x +b`.
    fn named(&self, set: u32, between: &str) -> String {
        let of_set = self.factors.iter().enumerate().filter(|(index, _)| set >> index & 1 == 1);
        of_set.map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(between)
    }

    /// What each kernel gave, a row each.
    fn values(&self, effects: &Effects) -> Table {
        let ended: Vec<String> = self.subsets.iter().map(ended).collect();
        let any_ended = ended.iter().any(|text| !text.is_empty());
        let mut headings = vec![("changed".to_owned(), Align::Left)];
        headings.extend(effects.measures.iter().map(|of| (of.measure.heading_in(&of.scale), Align::Number)));
        if any_ended {
            headings.push(("how it ended".to_owned(), Align::Left));
        }
        let mut table = Table::new(headings);
        for (set, ended) in ended.into_iter().enumerate() {
            let name = if set == 0 { "nothing".to_owned() } else { self.named(set as u32, " ") };
            let value =
                |of: &MeasureEffects| of.sides[set].text(of.scale.factor).unwrap_or_else(|| "-".to_owned());
            let cells = effects.measures.iter().map(value);
            table.push(std::iter::once(name).chain(cells).chain(any_ended.then_some(ended)));
        }
        table
    }

    /// The effects on one measure: a row each.
    fn table(&self, of: &MeasureEffects) -> Table {
        let tested = of.effects.iter().any(|effect| effect.change.tested().is_some());
        let percent = if tested { "% of that [95 %]" } else { "% of that" };
        let unit =
            if of.scale.unit.is_empty() { "effect".to_owned() } else { format!("effect, {}", of.scale.unit) };
        let mut table = Table::new([
            ("of".to_owned(), Align::Left),
            (unit, Align::Number),
            (percent.to_owned(), Align::Number),
            ("verdict".to_owned(), Align::Left),
        ]);
        for effect in &of.effects {
            let told = told(effect, of.scale.factor);
            table.push([
                self.named(effect.of, " x "),
                told,
                percent_of(effect, of.base),
                effect.verdict.to_owned(),
            ]);
        }
        table
    }

    /// What the effects below are effects on.
    fn heading(&self, of: &MeasureEffects) -> String {
        let unit = if of.scale.unit.is_empty() { String::new() } else { format!(" {}", of.scale.unit) };
        let name = of.measure.heading();
        match of.seeds {
            0 => format!("effects on {name}: none, as no seed has it for every kernel"),
            _ => format!(
                "effects on {name}, which is {}{unit} with nothing changed",
                plain(of.base * of.scale.factor)
            ),
        }
    }

    /// What the table of a measure leaves out.
    fn beyond(&self, of: &MeasureEffects) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some((set, effect)) = of.largest_of_more {
            let share = percent_text(effect, of.base).map_or_else(String::new, |share| format!(" ({share})"));
            let effect = signed(effect * of.scale.factor);
            let named = self.named(set, " x ");
            lines.push(match self.factors.len() {
                3 => format!("of all three: {effect}{share}"),
                _ => format!("of three and more: at most {effect}{share}, {named}"),
            });
        }
        if of.seeds < self.seeds.len() && of.seeds > 0 {
            lines.push(format!(
                "from {} of {} seeds, those that every kernel has it for",
                of.seeds,
                self.seeds.len()
            ));
        }
        lines
    }

    /// What effects are, how sure they are, and what seeds vary.
    fn footer(&self, effects: &Effects) -> Vec<String> {
        let half = self.subsets.len() / 2;
        let kernels = if half == 1 { "the kernel" } else { &format!("the {half} kernels") };
        let mut lines = vec![format!(
            "effect of a feature: mean of {kernels} with the change minus mean of {kernels} without it"
        )];
        if self.factors.len() > 1 {
            lines.push(
                "a x b: half of what a does where b is changed, minus half of what it does where b is not; 0 where \
                 each does what it does alone"
                    .to_owned(),
            );
        }
        // A seed that some kernel lacks is in no effect.
        let seeds = effects.measures.iter().map(|of| of.seeds).max().unwrap_or(0);
        let tests = TestsTold::of(effects.tests(), effects.family);
        lines.push(if seeds <= 1 {
            "one seed: exact for it, says nothing of others; `--seeds 10` shows the spread".to_owned()
        } else if let Some(tests) = &tests {
            let together = match effects.family.tests {
                1 => "interval and verdict hold at 95 %".to_owned(),
                tests => format!("intervals and verdicts hold at 95 % over all {tests} effects together (Bonferroni)"),
            };
            let methods = &tests.methods;
            format!("{seeds} seeds, each on every kernel: mean ± standard deviation of the effect over seeds; {methods}; {together}")
        } else {
            format!("effects are the same in all {seeds} seeds, so judged by size, not by a test")
        });
        lines.extend(tests.and_then(|tests| tests.assumed));
        if !self.varies.is_empty() {
            lines.push(format!("a seed decides: {}", self.varies.join("; ")));
        }
        lines
    }
}

/// Why a kernel has fewer values than seeds; nothing where all runs came to their end.
fn ended(subset: &Subset<'_>) -> String {
    let reason = |run: &AblatedRun<'_>| match run {
        AblatedRun::Recorded(recording) => oom_killed(recording),
        AblatedRun::Failed(error) => Some(error.clone()),
        AblatedRun::NotRun => Some("not run".to_owned()),
    };
    let reasons: Vec<String> = subset.runs.iter().filter_map(reason).collect();
    match &reasons[..] {
        [] => String::new(),
        [first, ..] if subset.runs.len() == 1 => first.clone(),
        [first, ..] => format!("{} of {}: {first}", reasons.len(), subset.runs.len()),
    }
}

/// The effect with its spread over seeds.
fn told(effect: &Effect, factor: f64) -> String {
    let mean = effect.change.difference().unwrap_or(0.0) * factor;
    match stats::describe::sample_stddev(&effect.per_seed) {
        Some(stddev) if effect.change.tested().is_some() => with_spread(mean, stddev * factor),
        _ => signed(mean),
    }
}

/// The effect in percent of the base, with its interval where it was tested; nothing without a base.
fn percent_of(effect: &Effect, base: f64) -> String {
    let Some(tested) = effect.change.tested().filter(|_| base != 0.0) else {
        return percent_text(effect.change.difference().unwrap_or(0.0), base)
            .unwrap_or_else(|| "-".to_owned());
    };
    let [middle, low, high] = [tested.difference, tested.low, tested.high].map(|x| 100.0 * x / base.abs());
    if middle >= MULTIPLE {
        format!("{middle:+.0} % [{low:+.0}, {high:+.0}]")
    } else {
        percent_with_interval(middle, low, high)
    }
}

/// From here on numbers are written as multiples of the base elsewhere, which an effect is not.
const MULTIPLE: f64 = 1000.0;

fn percent_text(effect: f64, base: f64) -> Option<String> {
    let percent = 100.0 * effect / base.abs();
    (base != 0.0)
        .then(|| if percent >= MULTIPLE { format!("{percent:+.0} %") } else { signed_percent(percent) })
}

/// The ablation for a terminal.
///
/// # Errors
/// No run has ended.
pub fn ablate_text(ablated: &Ablated<'_>) -> Result<String, ReportError> {
    ablated.check()?;
    let width = ablated.view.width;
    let (first, rest) = ablated.effects();
    let mut text = paragraph(&ablated.title(), width, 2);
    let mut section = |effects: &Effects| {
        text += &format!("\n{}", ablated.values(effects).to_text(width));
        for of in &effects.measures {
            text += &format!("\n{}", paragraph(&ablated.heading(of), width, 2));
            text += &if of.seeds > 0 { ablated.table(of).to_text(width) } else { String::new() };
            text += &ablated.beyond(of).iter().map(|line| paragraph(line, width, 2)).collect::<String>();
        }
    };
    section(&first);
    if ablated.view.all && !rest.measures.is_empty() {
        section(&rest);
    }
    text.push('\n');
    text += &ablated.footer(&first).iter().map(|line| paragraph(line, width, 2)).collect::<String>();
    if !ablated.view.all && !rest.measures.is_empty() {
        let count = rest.measures.len();
        text += &format!("{count} more {} with `--all`\n", if count == 1 { "metric" } else { "metrics" });
    }
    text += &separated(notes_text(&ablated.recordings(), width));
    text += "\nmade by\n";
    for subset in &ablated.subsets {
        text += &command(&clean(&subset.command), width, 2);
    }
    Ok(text)
}

/// The ablation in Markdown.
///
/// # Errors
/// No run has ended.
pub fn ablate_markdown(ablated: &Ablated<'_>) -> Result<String, ReportError> {
    ablated.check()?;
    let (first, rest) = ablated.effects();
    let mut text = format!("## {}\n", ablated.title());
    let mut section = |effects: &Effects| {
        text += &format!("\n{}", ablated.values(effects).to_markdown());
        for of in &effects.measures {
            text += &format!("\n{}\n", ablated.heading(of));
            text +=
                &if of.seeds > 0 { format!("\n{}", ablated.table(of).to_markdown()) } else { String::new() };
            text += &ablated.beyond(of).iter().map(|line| format!("\n{line}\n")).collect::<String>();
        }
    };
    section(&first);
    if ablated.view.all && !rest.measures.is_empty() {
        section(&rest);
    }
    text += &ablated.footer(&first).iter().map(|line| format!("\n{line}\n")).collect::<String>();
    text += &separated(notes_markdown(&ablated.recordings()));
    let commands = ablated.subsets.iter().map(|subset| clean(&subset.command) + "\n");
    Ok(format!("{text}\n```sh\n{}```\n", commands.collect::<String>()))
}

/// `{"schema": 1, "workload", "features", "kernels", "seeds", "level", "runs": [...], "effects": [...]}`.
///
/// A run has what [`crate::to_json`] says of one, and `changed`, the changes of its kernel; one that failed has
/// `label`, `seed`, `changed` and `error` only. An effect is of one metric: `{"metric", "unit", "direction",
/// "headline", "of": [changes], "effect", "percent_of_base", "base", "per_seed", "interval", "p", "tests",
/// "verdict"}`; `of` one change it is a main effect, of two an interaction. `interval` and `p` hold over
/// `tests` tests together at `level`, and are `null` where nothing was tested.
///
/// # Errors
/// No run has ended.
pub fn ablate_json(ablated: &Ablated<'_>) -> Result<String, ReportError> {
    ablated.check()?;
    let (first, rest) = ablated.effects();
    let effects: Vec<Value> =
        [&first, &rest].into_iter().flat_map(|all| effects_json(ablated, all)).collect();
    let kernels: Vec<&String> = ablated.subsets.iter().map(|subset| &subset.label).collect();
    let object = json!({
        "schema": 1,
        "workload": ablated.workload,
        "features": ablated.factors,
        "kernels": kernels,
        "seeds": ablated.seeds,
        "level": LEVEL,
        "runs": runs_json(ablated),
        "effects": effects,
    });
    Ok(format!("{object:#}\n"))
}

fn names(ablated: &Ablated<'_>, set: u32) -> Vec<String> {
    let of_set = ablated.factors.iter().enumerate().filter(|(index, _)| set >> index & 1 == 1);
    of_set.map(|(_, name)| name.clone()).collect()
}

fn runs_json(ablated: &Ablated<'_>) -> Vec<Value> {
    let mut runs = Vec::new();
    for (set, subset) in ablated.subsets.iter().enumerate() {
        for (run, seed) in subset.runs.iter().zip(&ablated.seeds) {
            let mut object = match run {
                AblatedRun::Recorded(recording) => run_json(recording),
                AblatedRun::Failed(error) => json!({ "label": subset.label, "seed": seed, "error": error }),
                AblatedRun::NotRun => continue,
            };
            object["changed"] = json!(names(ablated, set as u32));
            runs.push(object);
        }
    }
    runs
}

fn effects_json(ablated: &Ablated<'_>, effects: &Effects) -> Vec<Value> {
    let one = |of: &MeasureEffects, effect: &Effect| {
        let tested = effect.change.tested();
        json!({
            "metric": of.measure.name,
            "unit": of.measure.unit,
            "direction": match of.measure.direction {
                Direction::Higher => "higher",
                Direction::Lower => "lower",
                Direction::Neutral => "neutral",
            },
            "headline": of.measure.is_headline(),
            "of": names(ablated, effect.of),
            "effect": effect.change.difference(),
            "percent_of_base": percent(effect.change.difference(), of.base),
            "base": of.base,
            "per_seed": effect.per_seed,
            "interval": tested.map(|d| [d.low, d.high]),
            "p": tested.map(|d| effects.family.adjusted_p(d.p)),
            "tests": tested.map(|_| effects.family.tests),
            "verdict": effect.verdict,
        })
    };
    effects.measures.iter().flat_map(|of| of.effects.iter().map(move |effect| one(of, effect))).collect()
}

fn percent(effect: Option<f64>, base: f64) -> Option<f64> {
    effect.filter(|_| base != 0.0).map(|effect| 100.0 * effect / base.abs())
}

/// The rows of [`crate::to_csv`] for every run, then those of `kind` `effect`: for each metric (`name`) and
/// each set of changes (`label`, such as `+a x -b`) of `index` `effect`, `percent_of_base`, `sd`, `low` and
/// `high` (the interval), `p` and `verdict`. What was not tested is empty.
///
/// # Errors
/// No run has ended.
pub fn ablate_csv(ablated: &Ablated<'_>) -> Result<String, ReportError> {
    ablated.check()?;
    let mut records = runs_as_rows(&ablated.recordings());
    let (first, rest) = ablated.effects();
    for effects in [&first, &rest] {
        for (of, effect) in
            effects.measures.iter().flat_map(|of| of.effects.iter().map(move |effect| (of, effect)))
        {
            let (tested, label) = (effect.change.tested(), ablated.named(effect.of, " x "));
            let cells = [
                ("effect", number(effect.change.difference())),
                ("percent_of_base", number(percent(effect.change.difference(), of.base))),
                ("sd", number(stats::describe::sample_stddev(&effect.per_seed))),
                ("low", number(tested.map(|d| d.low))),
                ("high", number(tested.map(|d| d.high))),
                ("p", number(tested.map(|d| effects.family.adjusted_p(d.p)))),
                ("verdict", effect.verdict.to_owned()),
            ];
            for (what, value) in cells {
                let cells = [&ablated.workload, &label, "", "", "", "effect", &of.measure.name, what, &value];
                records.push(cells.map(str::to_owned));
            }
        }
    }
    Ok(written(records))
}

#[cfg(test)]
mod tests;
