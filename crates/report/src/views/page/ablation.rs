//! An ablation as a matrix: what each feature does by itself, and what each pair does beyond that.
//!
//! The kernels of a page are an ablation where every subset of some features is there. Effects and verdicts are
//! those of the table of `ablate` ([`crate::views::ablate`]): on the diagonal main effects, beside it interactions.

use super::matrix::{keys, shade};
use crate::document::axis::Axis;
use crate::document::figure::{CellMark, Column, Figure, Key, Mark, Panel};
use crate::document::number::{signed, signed_percent};
use crate::judge::{
    Ablated, AblatedRun, Direction, Effect, Effects, Group, MeasureEffects, Measures, Subset, View,
};

/// Measures that have a matrix.
const MEASURES_MAX: usize = 4;

/// What distinguishes the kernels of a page whose every subset is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Factors {
    /// Changes to the baseline, such as `+root-aging`.
    pub names: Vec<String>,
    /// For each group which of them it has, as bits.
    pub of: Vec<u32>,
}

impl Factors {
    /// Whether every subset is there, once.
    fn are_whole(&self, groups: usize) -> bool {
        let mut of = self.of.clone();
        of.sort_unstable();
        let wanted = 1_u32.checked_shl(self.names.len() as u32).unwrap_or(0);
        self.of.len() == groups && self.names.len() > 1 && of.into_iter().eq(0..wanted)
    }
}

/// The figure; `None` where the kernels are no ablation.
pub(crate) fn figure(groups: &[Group<'_>], view: &View, factors: Option<&Factors>) -> Option<Figure> {
    let factors = factors.filter(|factors| factors.are_whole(groups.len()))?;
    let ablated = ablated(groups, view, factors)?;
    let measures = Measures::of(groups.iter().flat_map(|group| group.recordings.iter().copied()), view).first;
    let effects = Effects::of(&ablated, measures);
    let told: Vec<&MeasureEffects> =
        effects.measures.iter().filter(|of| of.seeds > 0).take(MEASURES_MAX).collect();
    let columns: Vec<Column> = told.iter().map(|of| column(of, &factors.names)).collect();
    let seeds = told.iter().map(|of| of.seeds).max()?;
    Some(Figure {
        name: "ablation".to_owned(),
        finding: finding(told.first()?, &factors.names),
        n: format!("{} kernels, each with {seeds} seed{}; an effect is the mean difference of two halves of the kernels", groups.len(), if seeds == 1 { "" } else { "s" }),
        axes: "rows and columns are features; a cell is an effect in percent of the baseline".to_owned(),
        keys: keys().into_iter().chain([Key::area("other3", "together more or less than one by one")]).collect(),
        columns,
        read: "On the diagonal stands what a feature does on average over all kernels with and without the others. Beside it stands what two of them do together beyond what each adds by itself: near 0 they do not know of each other.".to_owned(),
        commands: groups.iter().map(|group| (group.label.clone(), group.command.clone())).collect(),
    })
}

/// The groups as an ablation; `None` where a seed is missing somewhere.
fn ablated<'a>(groups: &[Group<'a>], view: &View, factors: &Factors) -> Option<Ablated<'a>> {
    let seeds: Vec<u64> = groups[0].recordings.iter().map(|run| run.seed).collect();
    let subset = |mask: usize| {
        let place = factors.of.iter().position(|of| *of as usize == mask)?;
        let group = &groups[place];
        let run = |seed: &u64| {
            let found = group.recordings.iter().find(|run| run.seed == *seed);
            found.map_or(AblatedRun::NotRun, |run| AblatedRun::Recorded(run))
        };
        let runs = seeds.iter().map(run).collect();
        Some(Subset { label: group.label.clone(), command: group.command.clone(), runs })
    };
    Some(Ablated {
        workload: groups[0].recordings[0].workload.clone(),
        factors: factors.names.clone(),
        subsets: (0..groups.len()).map(subset).collect::<Option<_>>()?,
        seeds: seeds.clone(),
        varies: Vec::new(),
        view: view.clone(),
    })
}

fn letter(index: usize) -> char {
    char::from(b'A' + index as u8)
}

fn column(of: &MeasureEffects, names: &[String]) -> Column {
    let last = names.len() - 1;
    let panel = |(row, name): (usize, &String)| {
        let texts = (0..names.len())
            .map(|column| if row == last { letter(column).to_string() } else { String::new() });
        let mut cells = Vec::new();
        let mut marks = Vec::new();
        for column in 0..=row {
            let bits = 1 << row | 1 << column;
            let Some(effect) = of.effects.iter().find(|effect| effect.of == bits) else { continue };
            let at = column as f64;
            let text = told(effect, of);
            cells.push(CellMark {
                x: (at + 0.03, at + 0.97),
                y: (0.06, 0.94),
                shade: class(effect, of, row == column),
                title: format!("{}: {text}, {}", named(bits, names), effect.verdict),
            });
            marks.push(Mark::Text { class: "cell".to_owned(), x: at + 0.5, y: 0.5, text });
        }
        marks.insert(0, Mark::Cells(cells));
        let x = Axis::places(texts.collect());
        let x_label = if row == last { "feature".to_owned() } else { String::new() };
        let y = Axis::exact(0.0, 1.0, 1).bare();
        Panel {
            caption: format!("{} {name}", letter(row)),
            height: 30.0,
            x,
            y,
            x_label,
            marks,
            lines: Vec::new(),
        }
    };
    Column { heading: of.measure.name.clone(), panels: names.iter().enumerate().map(panel).collect() }
}

fn named(bits: u32, names: &[String]) -> String {
    let of = names.iter().enumerate().filter(|(index, _)| bits >> index & 1 == 1);
    of.map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(" x ")
}

fn told(effect: &Effect, of: &MeasureEffects) -> String {
    match effect.change.difference() {
        None => "-".to_owned(),
        Some(difference) if of.base == 0.0 => signed(difference * of.scale.factor),
        Some(difference) => signed_percent(100.0 * difference / of.base.abs()),
    }
}

/// What is not clear has no colour.
fn class(effect: &Effect, of: &MeasureEffects, is_main: bool) -> String {
    let difference = effect.change.difference().unwrap_or(0.0);
    if matches!(
        effect.verdict,
        "no clear change" | "none clear" | "same" | "alike" | "none" | "below resolution"
    ) {
        return "even".to_owned();
    }
    let direction = if is_main { of.measure.direction } else { Direction::Neutral };
    // What is added to the baseline or taken from it, as a factor; of nothing all is much.
    let factor = if of.base == 0.0 { 10.0 * difference.signum() } else { 1.0 + difference / of.base };
    shade(if factor <= 0.0 { 0.1 } else { factor }, direction)
}

/// The largest main effect and the largest interaction.
fn finding(of: &MeasureEffects, names: &[String]) -> String {
    let size = |effect: &&Effect| effect.change.difference().unwrap_or(0.0).abs();
    let largest = |ones: u32| {
        let of_kind = of.effects.iter().filter(|effect| effect.of.count_ones() == ones);
        of_kind.max_by(|a, b| size(a).total_cmp(&size(b)))
    };
    let main = largest(1).map_or_else(String::new, |effect| {
        format!(": {} matters most ({})", named(effect.of, names), told(effect, of))
    });
    let pair = match largest(2) {
        Some(effect) if size(&effect) > 0.0 && effect.verdict != "none" => {
            format!(
                "; together {} add {} to that",
                named(effect.of, names).replace(" x ", " and "),
                told(effect, of)
            )
        }
        _ => "; no pair does more together than one by one".to_owned(),
    };
    format!("{}{main}{pair}", of.measure.name)
}
