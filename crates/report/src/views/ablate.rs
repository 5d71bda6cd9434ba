//! An ablation: what each kernel gave, and what each feature and each pair of features does to it.
//!
//! First a table with a row for each subset of the changes, whose values are those of single runs; then, for each
//! measure, main effects and interactions ([`crate::judge::effects`]), with what they mean in words; at the end the
//! commands that make each row again. Left out: effects on counters, which `--format csv` has for each run.

use serde_json::{Value, json};

use crate::document::number::{percent_with_interval, plain, signed, signed_percent, with_spread};
use crate::document::{Block, Cell, Document, Records, Section, Table, row};
use crate::judge::{
    Ablated, AblatedRun, Effect, Effects, LEVEL, MeasureEffects, Measures, ReportError, Subset, TestsTold,
    common_workload,
};
use crate::views::notes::notes;
use crate::views::oom::oom_killed;
use crate::views::recordings::{number, rows_about, run as run_json, runs_as_rows};

impl Ablated<'_> {
    /// What each kernel gave, then the effects on each measure.
    fn sections(&self, effects: &Effects) -> Vec<Section> {
        let of_measure = |of: &MeasureEffects| {
            let table = if of.seeds > 0 { self.table(of) } else { Table::new() };
            Section::untitled().line(self.heading(of)).with(table).lines_of(self.beyond(of))
        };
        let values = Section::untitled().with(self.values(effects));
        std::iter::once(values).chain(effects.measures.iter().map(of_measure)).collect()
    }

    fn title(&self) -> String {
        let planned = self.subsets.len() * self.seeds.len();
        let (base, factors) = (&self.subsets[0].label, self.factors.join(", "));
        let runs = self.recordings().len();
        format!("{}: {base} with {factors} or not: {runs} of {planned} runs", self.workload)
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
        let mut table = Table::new()
            .texts(["changed"])
            .numbers(effects.measures.iter().map(|of| of.measure.heading_in(&of.scale)))
            .texts(any_ended.then_some("how it ended"));
        for (set, ended) in ended.into_iter().enumerate() {
            let name = if set == 0 { "nothing".to_owned() } else { self.named(set as u32, " ") };
            let value = |of: &MeasureEffects| Cell::from(of.sides[set].text(of.scale.factor));
            let cells = effects.measures.iter().map(value);
            table.push(row![name].into_iter().chain(cells).chain(any_ended.then(|| Cell::from(ended))));
        }
        table
    }

    /// The effects on one measure: a row each.
    fn table(&self, of: &MeasureEffects) -> Table {
        let tested = of.effects.iter().any(|effect| effect.change.tested().is_some());
        let percent = if tested { "% of that [95 %]" } else { "% of that" };
        let unit =
            if of.scale.unit.is_empty() { "effect".to_owned() } else { format!("effect, {}", of.scale.unit) };
        let mut table = Table::new().texts(["of"]).numbers([unit.as_str(), percent]).texts(["verdict"]);
        for effect in &of.effects {
            let told = told(effect, of.scale.factor);
            table.push(row![self.named(effect.of, " x "), told, percent_of(effect, of.base), effect.verdict]);
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

/// An ablation: what each kernel gave, what features do by themselves and together, and the commands.
///
/// JSON: `{"schema": 1, "workload", "features", "kernels", "seeds", "level", "runs": [...], "effects": [...]}`. A run
/// has what [`super::run`] says of one, and `changed`, the changes of its kernel; one that failed has `label`, `seed`,
/// `changed` and `error` only. An effect is of one metric: `{"metric", "unit", "direction", "headline", "of":
/// [changes], "effect", "percent_of_base", "base", "per_seed", "interval", "p", "tests", "verdict"}`; `of` one change
/// it is a main effect, of two an interaction. `interval` and `p` hold over `tests` tests together at `level`, and are
/// `null` where nothing was tested.
///
/// CSV: the rows of [`super::run`] for every run, then those of `kind` `effect`: for each metric (`name`) and each set
/// of changes (`label`, such as `+a x -b`) of `index` `effect`, `percent_of_base`, `sd`, `low` and `high` (the
/// interval), `p` and `verdict`. What was not tested is empty.
///
/// # Errors
/// No run has ended.
pub fn ablate<'a>(ablated: &'a Ablated<'a>) -> Result<Document<'a>, ReportError> {
    common_workload(ablated.recordings())?;
    let (first, rest) = effects(ablated);
    let more = if rest.measures.len() == 1 { "metric" } else { "metrics" };
    let more = format!("{} more {more} with `--all`", rest.measures.len());
    let has_rest = !rest.measures.is_empty();
    let mut document = Document::new(&ablated.workload)
        .section(Section::first(ablated.title(), None))
        .sections(ablated.sections(&first));
    if ablated.view.all && has_rest {
        document = document.sections(ablated.sections(&rest));
    }
    let footer = Section::untitled().lines_of(ablated.footer(&first));
    let made = |subset: &Subset<'_>| (String::new(), subset.command.clone());
    let commands = ablated.subsets.iter().map(made).collect();
    Ok(document
        .section(footer.lines_of((!ablated.view.all && has_rest).then_some(more)))
        .section(notes(&ablated.recordings()))
        .section(Section::untitled().with(Block::Commands { heading: "Make it again", commands }))
        .json(|| value(ablated))
        .csv(|| records(ablated)))
}

/// Effects on the measures to look at first, and on the others.
fn effects(ablated: &Ablated<'_>) -> (Effects, Effects) {
    let Measures { first, rest } = Measures::of(ablated.recordings(), &ablated.view);
    (Effects::of(ablated, first), Effects::of(ablated, rest))
}

fn value(ablated: &Ablated<'_>) -> Value {
    let (first, rest) = effects(ablated);
    let effects: Vec<Value> =
        [&first, &rest].into_iter().flat_map(|all| effects_json(ablated, all)).collect();
    let kernels: Vec<&String> = ablated.subsets.iter().map(|subset| &subset.label).collect();
    json!({
        "schema": 1,
        "workload": ablated.workload,
        "features": ablated.factors,
        "kernels": kernels,
        "seeds": ablated.seeds,
        "level": LEVEL,
        "runs": runs_json(ablated),
        "effects": effects,
    })
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
                AblatedRun::Recorded(recording) => run_json(recording, &ablated.view),
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
            "direction": of.measure.direction.word(),
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

fn records(ablated: &Ablated<'_>) -> Records {
    let mut records = runs_as_rows(&ablated.recordings());
    let (first, rest) = effects(ablated);
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
            let about = [&ablated.workload, &label, "effect", of.measure.name.as_str()];
            records.extend(rows_about(about, cells));
        }
    }
    records
}

#[cfg(test)]
mod tests;
