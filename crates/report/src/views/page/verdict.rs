//! What came out, in two sentences with numbers, and what was not shown.

use super::words::{Told, by_kernel, capital};
use crate::document::number::plain;
use crate::judge::{Compared, Direction, Group, Row, Side, is_modelled};

/// The verdict on several groups; the first is the baseline.
pub(crate) fn sentences(compared: &Compared, groups: &[Group<'_>]) -> Vec<String> {
    let rows = &compared.first.rows;
    let Some(first) = rows.first() else { return vec!["These recordings have no metrics.".to_owned()] };
    let mut sentences = vec![headline(first, groups)];
    sentences.extend(counts(rows, groups));
    sentences
}

fn headline(row: &Row, groups: &[Group<'_>]) -> String {
    let name = &row.measure.name;
    let unit = row.scale.unit;
    let of = whole(row, groups).map_or_else(String::new, |whole| format!(" of {whole}"));
    let with_unit = |index: usize| match unit {
        "" => format!("{}{of}", row.value(index)),
        _ => format!("{}{of} {unit}", row.value(index)),
    };
    if let [base, new] = groups {
        let (change, verdict) = row.changes[0];
        let told = change.text(row.base(), row.scale.factor, verdict);
        let told = if told == "-" { String::new() } else { format!(" ({told})") };
        return format!(
            "{name}: {} on {}, {} on {}{told}: {verdict}.",
            with_unit(0),
            base.label,
            with_unit(1),
            new.label
        );
    }
    let told = |(index, group): (usize, &Group<'_>)| {
        let value = row.sides[index].mean()?;
        Some(Told { label: group.label.clone(), value, text: with_unit(index) })
    };
    let values: Vec<Told> = groups.iter().enumerate().filter_map(told).collect();
    format!("{}.", by_kernel(name, &values))
}

/// What the row's measure is a part of, where that is one number.
fn whole(row: &Row, groups: &[Group<'_>]) -> Option<String> {
    let of = row.measure.of?;
    let mut values = groups.iter().map(|group| Side::of(group, |r| r.metrics.get(of).copied()).mean());
    let first = values.next()??;
    values.all(|value| value == Some(first)).then(|| plain(first * row.scale.factor))
}

/// How many of the metrics went which way.
fn counts(rows: &[Row], groups: &[Group<'_>]) -> Option<String> {
    if groups.len() < 2 {
        return None;
    }
    let told = |index: usize| {
        let count = |words: &[&str]| rows.iter().filter(|row| words.contains(&row.changes[index].1)).count();
        let kinds = [
            ("better", count(&["better"])),
            ("worse", count(&["worse"])),
            ("without a clear change", count(&["no clear change"])),
            ("the same or alike", count(&["same", "alike", "below resolution"])),
            ("higher or lower, which is neither good nor bad", count(&["higher", "lower"])),
            ("where a side has one run, which says nothing of chance", count(&["one run"])),
        ];
        let told = kinds.into_iter().filter(|(_, count)| *count > 0);
        told.map(|(what, count)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
    };
    let of = match rows.len() {
        1 => "Of 1 headline metric".to_owned(),
        count => format!("Of {count} headline metrics"),
    };
    if groups.len() == 2 {
        return Some(format!("{of}: {}.", told(0)));
    }
    let better = |index: &usize| rows.iter().filter(|row| row.changes[*index].1 == "better").count();
    let worse = |index: &usize| rows.iter().filter(|row| row.changes[*index].1 == "worse").count();
    let all: Vec<usize> = (0..groups.len() - 1).collect();
    let best = *all
        .iter()
        .max_by_key(|index| (better(index), std::cmp::Reverse(worse(index)), std::cmp::Reverse(**index)))?;
    let worst = *all
        .iter()
        .max_by_key(|index| (worse(index), std::cmp::Reverse(better(index)), std::cmp::Reverse(**index)))?;
    let said = |index: usize| format!("{} has {}", groups[index + 1].label, told(index));
    if best == worst {
        return Some(format!("{of}: {}.", said(best)));
    }
    Some(format!("{of} against {}: {}; {}.", groups[0].label, said(best), said(worst)))
}

/// The least and the most of what matters most, where there is no baseline.
pub(crate) fn extremes(compared: &Compared, groups: &[Group<'_>]) -> String {
    let Some(row) = compared.first.rows.first() else {
        return "These recordings have no metrics.".to_owned();
    };
    let told = |index: usize| Some((row.sides[index].mean()?, index));
    let values: Vec<(f64, usize)> = (0..groups.len()).filter_map(told).collect();
    let by_value = |a: &&(f64, usize), b: &&(f64, usize)| a.0.total_cmp(&b.0);
    // The first of equal ones: it is the smaller cache.
    let (Some(least), Some(most)) = (values.iter().min_by(by_value), values.iter().rev().max_by(by_value))
    else {
        return "These recordings have no metrics.".to_owned();
    };
    let said = |&(_, index): &(f64, usize)| {
        format!("{} {} with {}", row.value(index), row.scale.unit, groups[index].label)
    };
    format!("{}: from {} to {}, in {} replays.", row.measure.name, said(least), said(most), values.len())
        .replace("  ", " ")
        .replace(" ratio with", " with")
}

/// What replays cannot tell.
pub(crate) fn not_shown_by_replays(groups: &[Group<'_>]) -> String {
    let policies = groups.iter().flat_map(|group| &group.recordings).any(|run| run.backend == "policy");
    let time = if policies { "; time, which plain policies do not have" } else { "" };
    format!("Sizes between those that were replayed; other traces{time}.")
}

/// What these recordings cannot tell.
pub(crate) fn not_shown(compared: &Compared, groups: &[Group<'_>]) -> String {
    let mut missing: Vec<String> = Vec::new();
    let most = groups.iter().map(|group| group.recordings.len()).max().unwrap_or(0);
    let modelled = groups.iter().all(is_modelled);
    match (most, modelled) {
        (1, true) => {
            missing.push("what other seeds give (one seed; for it the numbers are exact)".to_owned())
        }
        (1, false) => missing.push("how much repeats vary (one run a side)".to_owned()),
        _ => {}
    }
    if modelled {
        missing.push("real kernels (every run is of the model)".to_owned());
    } else if groups.iter().any(is_modelled) {
        missing.push("whether the model or the kernel is right where they differ".to_owned());
    }
    let neutral =
        compared.first.rows.iter().filter(|row| row.measure.direction == Direction::Neutral).count();
    if neutral > 0 {
        missing.push(format!("which way is good of {neutral} metric{}", if neutral == 1 { "" } else { "s" }));
    }
    match compared.rest.rows.len() {
        0 => {}
        1 => missing.push("1 more metric, which is below, folded".to_owned()),
        more => missing.push(format!("{more} more metrics, which are below, folded")),
    }
    format!("{}.", capital(&missing.join("; ")))
}
