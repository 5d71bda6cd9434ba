//! Kernels by seeds: what each run gave, beside what the baseline gave on average.
//!
//! A row for each kernel, a cell for each seed, a column of the figure for each measure. A cell is coloured by how
//! far it is from the mean of the baseline, and by which way is good. It shows what a mean with a spread hides: one
//! seed that is different. Neighbour: [`super::ablation`], whose cells are coloured by the same rule.

use super::words::{amount, short};
use crate::document::axis::Axis;
use crate::document::figure::{CellMark, Column, Figure, Key, Mark, Panel};
use crate::judge::{Compared, Direction, Group, Row, View};

/// Measures that have a column.
const MEASURES_MAX: usize = 4;
/// With more seeds there is no room for numbers.
const NUMBERS_MAX: usize = 6;
/// Shades on either side of the baseline: factors from which a cell has the next one.
const SHADES: [f64; 4] = [1.005, 1.05, 1.25, 2.0];

/// The figure; `None` where no kernel ran with two seeds.
pub(crate) fn figure(groups: &[Group<'_>], view: &View) -> Option<Figure> {
    let seeds = groups.iter().map(|group| group.recordings.len()).max().filter(|seeds| *seeds > 1)?;
    if groups.len() < 2 {
        return None;
    }
    let compared = Compared::of(groups, view);
    let rows: Vec<&Row> =
        compared.first.rows.iter().filter(|row| row.base() != 0.0).take(MEASURES_MAX).collect();
    if rows.is_empty() {
        return None;
    }
    let columns = rows.iter().map(|row| column(row, groups, seeds)).collect();
    Some(Figure {
        name: "seeds".to_owned(),
        finding: finding(rows[0], groups),
        n: format!("{} kernels with up to {seeds} seeds, {} runs", groups.len(), groups.iter().map(|group| group.recordings.len()).sum::<usize>()),
        axes: "x: seed; each row a kernel; a cell is one run".to_owned(),
        keys: keys(),
        columns,
        read: "Compare cells of one column to see what kernels do to the same seed, and cells of one row to see how much seeds matter. Colours begin where a run is 0.5 % away from the mean of the baseline, and grow stronger from 5 %, from 25 % and from a factor of 2 on.".to_owned(),
        commands: groups.iter().map(|group| (group.label.clone(), group.command.clone())).collect(),
    })
}

pub(super) fn keys() -> Vec<Key> {
    vec![
        Key::area("good4", "better, by far"),
        Key::area("good1", "better"),
        Key::area("even", "as the baseline"),
        Key::area("bad1", "worse"),
        Key::area("bad4", "worse, by far"),
    ]
}

fn column(row: &Row, groups: &[Group<'_>], seeds: usize) -> Column {
    let last = groups.len() - 1;
    let panel = |(index, group): (usize, &Group<'_>)| {
        let names: Vec<String> = group.recordings.iter().map(|run| run.seed.to_string()).collect();
        let every = seeds.div_ceil(10);
        let texts = (0..seeds).map(|seed| match (index == last && seed % every == 0, names.get(seed)) {
            (true, Some(name)) => name.clone(),
            _ => String::new(),
        });
        let x = Axis::places(texts.collect());
        let x_label = if index == last { "seed".to_owned() } else { String::new() };
        let mut marks = vec![Mark::Cells(Vec::new())];
        for (seed, run) in group.recordings.iter().enumerate() {
            let Some(value) = row.measure.value(run) else { continue };
            let at = seed as f64;
            let scaled = value * row.scale.factor;
            let cell = CellMark {
                x: (at + 0.03, at + 0.97),
                y: (0.06, 0.94),
                shade: shade(value / row.base(), row.measure.direction),
                title: format!("seed {} on {}: {}", run.seed, group.label, amount(scaled, row.scale.unit)),
            };
            if let Mark::Cells(cells) = &mut marks[0] {
                cells.push(cell);
            }
            if seeds <= NUMBERS_MAX {
                marks.push(Mark::Text { class: "cell".to_owned(), x: at + 0.5, y: 0.5, text: short(scaled) });
            }
        }
        let y = Axis::exact(0.0, 1.0, 1).bare();
        Panel { caption: group.label.clone(), height: 26.0, x, y, x_label, marks, lines: Vec::new() }
    };
    Column {
        heading: row.measure.heading_in(&row.scale),
        panels: groups.iter().enumerate().map(panel).collect(),
    }
}

/// The class of a cell that is so many times the baseline.
pub(super) fn shade(factor: f64, direction: Direction) -> String {
    let away = if factor > 0.0 { factor.max(1.0 / factor) } else { f64::INFINITY };
    let strength = SHADES.iter().filter(|from| away >= **from).count();
    match (strength, direction, factor > 1.0) {
        (0, _, _) => "even".to_owned(),
        (strength, Direction::Higher, true) | (strength, Direction::Lower, false) => {
            format!("good{strength}")
        }
        (strength, Direction::Higher, false) | (strength, Direction::Lower, true) => format!("bad{strength}"),
        (strength, Direction::Neutral, _) => format!("other{strength}"),
    }
}

/// In how many seeds the candidates are better, by the first measure.
fn finding(row: &Row, groups: &[Group<'_>]) -> String {
    let name = &row.measure.name;
    let told = |group: &Group<'_>| {
        let mut wins = 0;
        let mut pairs = 0;
        for run in &group.recordings {
            let base = groups[0].recordings.iter().find(|base| base.seed == run.seed);
            let (Some(base), Some(new)) =
                (base.and_then(|base| row.measure.value(base)), row.measure.value(run))
            else {
                continue;
            };
            pairs += 1;
            wins += usize::from(match row.measure.direction {
                Direction::Lower => new < base,
                Direction::Higher | Direction::Neutral => new > base,
            });
        }
        (wins, pairs)
    };
    let word = if row.measure.direction == Direction::Neutral { "higher" } else { "better" };
    let base = &groups[0].label;
    let said = |group: &Group<'_>| {
        let (wins, pairs) = told(group);
        format!("in {wins} of {pairs} seeds on {}", group.label)
    };
    let others = &groups[1..];
    if let [_] | [_, _] = others {
        let said = others.iter().map(said).collect::<Vec<_>>().join(", ");
        return format!("{name} is {word} than on {base} {said}");
    }
    let always = |group: &&Group<'_>| {
        let (wins, pairs) = told(group);
        wins == pairs && pairs > 0
    };
    let always = others.iter().filter(always).count();
    format!("{name} is {word} than on {base} in every seed on {always} of {} kernels", others.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_coloured_by_distance_and_by_which_way_is_good() {
        use Direction::{Higher, Lower, Neutral};
        for (factor, direction, wanted) in [
            (1.0, Higher, "even"),
            (1.004, Lower, "even"),
            (1.01, Higher, "good1"),
            (1.01, Lower, "bad1"),
            (0.5, Lower, "good4"),
            (0.0, Higher, "bad4"),
            (1.3, Neutral, "other3"),
        ] {
            assert_eq!(shade(factor, direction), wanted, "{factor}");
        }
    }
}
