//! Groups of runs side by side, measure by measure: what a table, JSON and CSV all show.
//!
//! The first group is the baseline. Measures to look at first and the rest are two tables, and the
//! tests of each are one family: what is said of a headline does not depend on how much else was
//! asked for. Next: [`crate::judge::change`] for the rules.

use recording::Recording;
use stats::difference::Test;
use stats::multiple::Family;

use crate::judge::change::{Change, Pairing, Side, is_modelled};
use crate::judge::group::Group;
use crate::judge::view::{Measure, Measures, Scale, View};

/// One measure of all groups.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) measure: Measure,
    /// The unit in which the row is shown.
    pub(crate) scale: Scale,
    /// One for each group.
    pub(crate) sides: Vec<Side>,
    /// One for each group but the first.
    pub(crate) changes: Vec<(Change, &'static str)>,
    /// What stands where a group has no value.
    absent: Vec<&'static str>,
}

impl Row {
    /// The mean of the baseline; 0 where it has none.
    pub(crate) fn base(&self) -> f64 {
        self.sides[0].mean().unwrap_or(0.0)
    }

    /// The value of group `index` as text.
    pub(crate) fn value(&self, index: usize) -> String {
        self.sides[index].text(self.scale.factor).unwrap_or_else(|| self.absent[index].to_owned())
    }
}

/// The rows of one table, whose tests are one family.
#[derive(Debug, Clone)]
pub(crate) struct Rows {
    pub(crate) rows: Vec<Row>,
    pub(crate) family: Family,
}

/// Both tables of a comparison.
#[derive(Debug, Clone)]
pub(crate) struct Compared {
    pub(crate) first: Rows,
    pub(crate) rest: Rows,
}

impl Compared {
    /// Compares every group with the first, of which there must be one.
    pub(crate) fn of(groups: &[Group<'_>], view: &View) -> Self {
        let recordings = groups.iter().flat_map(|group| group.recordings.iter().copied());
        let Measures { first, rest } = Measures::of(recordings, view);
        Self { first: Rows::of(groups, first), rest: Rows::of(groups, rest) }
    }
}

impl Rows {
    fn of(groups: &[Group<'_>], measures: Vec<Measure>) -> Self {
        let pairings: Vec<Pairing> = groups[1..].iter().map(|group| Pairing::of(&groups[0], group)).collect();
        let sides = |measure: &Measure| -> Vec<Side> {
            groups.iter().map(|group| Side::of(group, |recording| measure.value(recording))).collect()
        };
        let with_sides = |measure| {
            let sides = sides(&measure);
            (measure, sides)
        };
        let all: Vec<(Measure, Vec<Side>)> = measures.into_iter().map(with_sides).collect();
        let changes = |sides: &[Side], family: Family| -> Vec<Change> {
            let change = |(new, &pairing)| Change::between(&sides[0], new, pairing, family);
            sides[1..].iter().zip(&pairings).map(change).collect()
        };
        // Which are tested does not depend on how many there are.
        let is_tested = |sides: &[Side], (new, &pairing): (&Side, &Pairing)| {
            Change::is_to_be_tested(&sides[0], new, pairing)
        };
        let tested = |sides: &Vec<Side>| {
            sides[1..].iter().zip(&pairings).filter(|&column| is_tested(sides, column)).count()
        };
        let family = Family { tests: all.iter().map(|(_, sides)| tested(sides)).sum() };
        let modelled: Vec<bool> = groups.iter().map(is_modelled).collect();
        let row = |(measure, sides): (Measure, Vec<Side>)| {
            let changes = changes(&sides, family);
            row(measure, sides, changes, &modelled)
        };
        Self { rows: all.into_iter().map(row).collect(), family }
    }

    /// Changes that were tested, with whether they were paired.
    pub(crate) fn tests(&self) -> impl Iterator<Item = Test> + '_ {
        let changes = self.rows.iter().flat_map(|row| &row.changes);
        changes.filter_map(|(change, _)| change.tested()).map(|difference| difference.test)
    }
}

fn row(measure: Measure, sides: Vec<Side>, changes: Vec<Change>, modelled: &[bool]) -> Row {
    let base = sides[0].mean().unwrap_or(0.0);
    let verdict = |(index, change): (usize, Change)| {
        // Real kernels resolve what they measure.
        let any_model = modelled[0] || modelled[index + 1];
        let resolution = if any_model { measure.resolution } else { 0.0 };
        (change, change.verdict(measure.direction, base, resolution))
    };
    let changes = changes.into_iter().enumerate().map(verdict).collect();
    let absent = absent(&sides, modelled);
    let scale = Scale::of(measure.unit, sides.iter().filter_map(Side::mean));
    Row { measure, scale, sides, changes, absent }
}

/// For each side what stands where it has no value: that the model does not have what real kernels
/// count, or the other way round, is neither 0 nor lost.
pub(crate) fn absent(sides: &[Side], modelled: &[bool]) -> Vec<&'static str> {
    let has = |index: usize| !sides[index].values.is_empty();
    let somewhere = |model: bool| (0..sides.len()).any(|index| modelled[index] == model && has(index));
    let word = |&model: &bool| match model {
        true if somewhere(false) && !somewhere(true) => "not modelled",
        false if somewhere(true) && !somewhere(false) => "not counted",
        _ => "none",
    };
    modelled.iter().map(word).collect()
}

/// All runs of all groups.
pub(crate) fn recordings_of<'a>(groups: &[Group<'a>]) -> Vec<&'a Recording> {
    groups.iter().flat_map(|group| group.recordings.iter().copied()).collect()
}

/// The groups with their runs in order of seed, so that equal seeds pair.
pub(crate) fn by_seed<'a>(groups: &[Group<'a>]) -> Vec<Group<'a>> {
    let mut groups = groups.to_vec();
    for group in &mut groups {
        group.recordings.sort_by_key(|recording| recording.seed);
    }
    groups
}
