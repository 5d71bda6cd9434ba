//! Kernels by settings, with all seeds: what a sweep or an experiment of several points gave at each of its points.
//!
//! A column of the figure for each measure. Settings that are one list of values, or every pair of two lists, are the
//! axes of a panel for each kernel; other settings have a row each, and kernels its cells. A cell is the mean of the
//! seeds, coloured by how far it is from the first kernel at the same setting, or where there is one kernel only, from
//! the first setting. Neighbours: [`super::matrix`], of seeds, whose colours these are; [`crate::views::sweep`], the
//! table.

use super::matrix::{keys, shade};
use super::words::{amount, capital, short};
use crate::document::axis::Axis;
use crate::document::figure::{CellMark, Column, Figure, Mark, Panel};
use crate::document::number::signed_percent;
use crate::judge::{Direction, Group, Measure, Measures, Scale, Side, View};

/// Measures that have a column.
const MEASURES_MAX: usize = 4;
/// With more cells in a row there is no room for numbers.
const NUMBERS_MAX: usize = 6;
/// With more there is no room for all texts of an axis.
const TEXTS_MAX: usize = 6;

/// Runs of several settings, each on some kernels.
#[derive(Debug, Clone)]
pub struct SettingGrid<'a> {
    /// What distinguishes settings, such as `mem`.
    pub axes: Vec<String>,
    /// The settings, each with a value for every axis.
    pub settings: Vec<Vec<String>>,
    /// The kernels, the baseline first.
    pub kernels: Vec<String>,
    /// For each kernel its runs at each setting; `None` where there are none.
    pub cells: Vec<Vec<Option<Group<'a>>>>,
}

/// How settings stand in a panel.
enum Layout {
    /// A panel for each kernel: the values along x, and those along y, of which there may be one without a name.
    ByKernel { x: Vec<String>, y: Vec<String> },
    /// A panel for each setting, with all kernels along x.
    BySetting,
}

/// One measure over the grid.
struct Table {
    measure: Measure,
    scale: Scale,
    /// By kernel and setting.
    sides: Vec<Vec<Side>>,
}

impl SettingGrid<'_> {
    /// `mem 256M, readers 4`.
    fn named(&self, setting: usize) -> String {
        let parts = self.axes.iter().zip(&self.settings[setting]);
        parts.map(|(axis, value)| format!("{axis} {value}")).collect::<Vec<_>>().join(", ")
    }

    fn layout(&self) -> Layout {
        let values = |axis: usize| {
            let mut values: Vec<String> = Vec::new();
            for setting in &self.settings {
                if !values.contains(&setting[axis]) {
                    values.push(setting[axis].clone());
                }
            }
            values
        };
        match self.axes.len() {
            1 => Layout::ByKernel { x: values(0), y: vec![String::new()] },
            2 if values(0).len() * values(1).len() == self.settings.len() => {
                Layout::ByKernel { x: values(1), y: values(0) }
            }
            _ => Layout::BySetting,
        }
    }

    fn tables(&self, view: &View) -> Vec<Table> {
        let groups = || self.cells.iter().flatten().flatten();
        let measures = Measures::of(groups().flat_map(|group| group.recordings.iter().copied()), view).first;
        let table = |measure: Measure| {
            let side = |cell: &Option<Group<'_>>| match cell {
                Some(group) => Side::of(group, |run| measure.value(run)),
                None => Side { values: Vec::new(), missing: 0 },
            };
            let sides: Vec<Vec<Side>> =
                self.cells.iter().map(|cells| cells.iter().map(side).collect()).collect();
            let means: Vec<f64> = sides.iter().flatten().filter_map(Side::mean).collect();
            let differ = means.iter().any(|mean| *mean != means[0]);
            differ.then(|| Table { scale: Scale::of(measure.unit, means), measure, sides })
        };
        measures.into_iter().filter_map(table).take(MEASURES_MAX).collect()
    }
}

impl Table {
    /// What a cell is compared with.
    fn base(&self, setting: usize) -> Option<f64> {
        match self.sides.len() {
            1 => self.sides[0].iter().find_map(Side::mean),
            _ => self.sides[0][setting].mean(),
        }
    }

    /// How many times its baseline a cell is.
    fn factor(&self, kernel: usize, setting: usize) -> Option<f64> {
        let (mean, base) = (self.sides[kernel][setting].mean()?, self.base(setting)?);
        Some(if mean == base { 1.0 } else { mean / base })
    }

    fn amount(&self, kernel: usize, setting: usize) -> Option<String> {
        Some(amount(self.sides[kernel][setting].mean()? * self.scale.factor, self.scale.unit))
    }
}

/// The figure; `None` where nothing differs.
pub(crate) fn figure(grid: &SettingGrid<'_>, view: &View) -> Option<Figure> {
    let tables = grid.tables(view);
    let first = tables.first()?;
    let layout = grid.layout();
    let groups: Vec<&Group<'_>> = grid.cells.iter().flatten().flatten().collect();
    let counts: Vec<usize> = groups.iter().map(|group| group.recordings.len()).collect();
    let (fewest, most) = (counts.iter().min()?, counts.iter().max()?);
    let seeds = match fewest == most {
        true => format!("{most} seed{}", if *most == 1 { "" } else { "s" }),
        false => format!("{fewest} to {most} seeds"),
    };
    let empty = grid.kernels.len() * grid.settings.len() - groups.len();
    let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    let without =
        if empty == 0 { String::new() } else { format!("; {} without a run", count(empty, "cell")) };
    let (kernels, settings) = (count(grid.kernels.len(), "kernel"), count(grid.settings.len(), "setting"));
    Some(Figure {
        name: "grid".to_owned(),
        finding: finding(grid, first),
        n: format!(
            "{kernels} x {settings}, each with {seeds}, {} runs{without}",
            counts.iter().sum::<usize>()
        ),
        axes: axes(grid, &layout),
        keys: keys(),
        columns: tables.iter().map(|table| column(grid, table, &layout)).collect(),
        read: format!(
            "A cell is the mean of its seeds, in the unit above its column. Its colour is the distance from {}: from 0.5 % on, stronger from 5 %, from 25 % and from a factor of 2. A place without a cell has no such run or no such measure.",
            match grid.kernels.len() {
                1 => "the first setting".to_owned(),
                _ => format!("{} at the same setting", grid.kernels[0]),
            }
        ),
        commands: commands(grid),
    })
}

fn axes(grid: &SettingGrid<'_>, layout: &Layout) -> String {
    match layout {
        Layout::ByKernel { y, .. } if y.len() == 1 => format!("x: {}; each row a kernel", grid.axes[0]),
        Layout::ByKernel { .. } => {
            format!("x: {}; y: {}; each panel a kernel", grid.axes[1], grid.axes[0])
        }
        Layout::BySetting => {
            let named = |(index, kernel): (usize, &String)| format!("{} {kernel}", letter(index));
            let kernels: Vec<String> = grid.kernels.iter().enumerate().map(named).collect();
            format!("x: kernels, {}; each row a setting", kernels.join(", "))
        }
    }
}

fn commands(grid: &SettingGrid<'_>) -> Vec<(String, String)> {
    let of_cell = |(setting, cell): (usize, &Option<Group<'_>>), kernel: &String| {
        let command = cell.as_ref()?.command.clone();
        Some((format!("{kernel}, {}", grid.named(setting)), command))
    };
    let of_kernel = |(kernel, cells): (&String, &Vec<Option<Group<'_>>>)| {
        cells.iter().enumerate().filter_map(|cell| of_cell(cell, kernel)).collect::<Vec<_>>()
    };
    grid.kernels.iter().zip(&grid.cells).flat_map(of_kernel).collect()
}

/// A, B, ... AA.
fn letter(index: usize) -> String {
    let last = char::from(b'A' + (index % 26) as u8);
    if index < 26 { last.to_string() } else { format!("{}{last}", letter(index / 26 - 1)) }
}

fn column(grid: &SettingGrid<'_>, table: &Table, layout: &Layout) -> Column {
    let panels = match layout {
        Layout::ByKernel { x, y } => {
            let panel = |kernel: usize| {
                let place = |setting: usize| {
                    let of = &grid.settings[setting];
                    let at =
                        |values: &[String], value: &String| values.iter().position(|other| other == value);
                    match y.len() {
                        1 => Some((at(x, &of[0])?, 0)),
                        _ => Some((at(x, &of[1])?, at(y, &of[0])?)),
                    }
                };
                let cells =
                    (0..grid.settings.len()).filter_map(|setting| Some((kernel, setting, place(setting)?)));
                let is_last = kernel == grid.kernels.len() - 1;
                let label = if y.len() == 1 { &grid.axes[0] } else { &grid.axes[1] };
                rows(grid, table, &grid.kernels[kernel], cells, (x, y), is_last.then_some(label.as_str()))
            };
            (0..grid.kernels.len()).map(panel).collect()
        }
        Layout::BySetting => {
            let letters: Vec<String> = (0..grid.kernels.len()).map(letter).collect();
            let panel = |setting: usize| {
                let cells = (0..grid.kernels.len()).map(|kernel| (kernel, setting, (kernel, 0)));
                let is_last = setting == grid.settings.len() - 1;
                let y = [String::new()];
                rows(grid, table, &grid.named(setting), cells, (&letters, &y), is_last.then_some("kernel"))
            };
            (0..grid.settings.len()).map(panel).collect()
        }
    };
    Column { heading: table.measure.heading_in(&table.scale), panels }
}

/// A panel of cells, each of a kernel and a setting, at its place.
fn rows(
    grid: &SettingGrid<'_>,
    table: &Table,
    caption: &str,
    cells: impl Iterator<Item = (usize, usize, (usize, usize))>,
    (x, y): (&[String], &[String]),
    x_label: Option<&str>,
) -> Panel {
    let mut drawn = Vec::new();
    let mut texts = Vec::new();
    for (kernel, setting, (column, row)) in cells {
        let (Some(factor), Some(text)) = (table.factor(kernel, setting), table.amount(kernel, setting))
        else {
            continue;
        };
        let (left, bottom) = (column as f64, row as f64);
        let side = &table.sides[kernel][setting];
        drawn.push(CellMark {
            x: (left + 0.03, left + 0.97),
            y: (bottom + 0.06, bottom + 0.94),
            shade: shade(factor, table.measure.direction),
            title: format!(
                "{}, {}: {text}, n = {}",
                grid.kernels[kernel],
                grid.named(setting),
                side.values.len()
            ),
        });
        if x.len() <= NUMBERS_MAX {
            let value = side.mean().unwrap_or_default() * table.scale.factor;
            texts.push(Mark::Text {
                class: "cell".to_owned(),
                x: left + 0.5,
                y: bottom + 0.5,
                text: short(value),
            });
        }
    }
    let every = x.len().div_ceil(TEXTS_MAX);
    let text = |(index, text): (usize, &String)| match x_label {
        Some(_) if index.is_multiple_of(every) => text.clone(),
        _ => String::new(),
    };
    let y_axis = if y.len() == 1 { Axis::exact(0.0, 1.0, 1).bare() } else { Axis::places(y.to_vec()) };
    Panel {
        caption: caption.to_owned(),
        height: 26.0 * y.len() as f64,
        x: Axis::places(x.iter().enumerate().map(text).collect()),
        y: y_axis,
        x_label: x_label.unwrap_or_default().to_owned(),
        marks: std::iter::once(Mark::Cells(drawn)).chain(texts).collect(),
        lines: Vec::new(),
    }
}

/// Of one kernel what the setting does; of several where the kernels differ most.
fn finding(grid: &SettingGrid<'_>, table: &Table) -> String {
    let name = capital(&table.measure.name);
    let settings = 0..grid.settings.len();
    if grid.kernels.len() == 1 {
        let values = settings.filter_map(|setting| Some((setting, table.sides[0][setting].mean()?)));
        let by_value = |a: &(usize, f64), b: &(usize, f64)| a.1.total_cmp(&b.1);
        let all: Vec<(usize, f64)> = values.collect();
        let ends = [all.iter().copied().min_by(by_value), all.iter().copied().max_by(by_value)];
        let said = |(setting, _): (usize, f64)| {
            format!("{} at {}", table.amount(0, setting).unwrap_or_default(), grid.named(setting))
        };
        let said: Vec<String> = ends.into_iter().flatten().map(said).collect();
        return format!("{name} goes from {}", said.join(" to "));
    }
    let better = |factor: f64| match table.measure.direction {
        Direction::Lower => factor < 1.0,
        Direction::Higher | Direction::Neutral => factor > 1.0,
    };
    let word = if table.measure.direction == Direction::Neutral { "higher" } else { "better" };
    let mut pairs = 0;
    let mut wins = 0;
    let mut largest: Option<(f64, usize, usize)> = None;
    for kernel in 1..grid.kernels.len() {
        for setting in settings.clone() {
            let Some(factor) = table.factor(kernel, setting) else { continue };
            pairs += 1;
            wins += usize::from(better(factor));
            let size = factor.ln().abs();
            if size > 0.0 && largest.is_none_or(|(most, ..)| size > most) {
                largest = Some((size, kernel, setting));
            }
        }
    }
    let most = largest.map_or_else(String::new, |(_, kernel, setting)| {
        let change = match table.factor(kernel, setting) {
            Some(factor) if factor.is_finite() => signed_percent(100.0 * (factor - 1.0)),
            _ => "from nothing".to_owned(),
        };
        let value = table.amount(kernel, setting).unwrap_or_default();
        format!(
            "; furthest from it is {} at {} ({value}, {change})",
            grid.kernels[kernel],
            grid.named(setting)
        )
    });
    format!("{name} is {word} than on {} in {wins} of {pairs} cells{most}", grid.kernels[0])
}
