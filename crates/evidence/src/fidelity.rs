//! `docs/fidelity.md`: how near the model is to real kernels, from what the repository keeps. Nothing runs for it.
//!
//! The text is `data/fidelity.md`. Lines in it stand for what is made here: `{{worlds}}` for what ran, `{{ceiling}}`
//! for how near a kernel is to itself, `{{figure}}` and
//! `{{mechanisms}}` for counters by mechanism, `{{workloads}}` for counts by workload, `{{largest}}` for the largest
//! disagreements, `{{tuned}}` for the rows that the model was fitted to. Neighbours: `worlds.rs` and `hits.rs`, which
//! make what is kept.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;

use lab::known::{ALL, COUNTS, KnownError, POOL, known_errors};
use recording::chunk::FactKind;

use crate::disagreement::Disagreement;
use crate::hits::{self, Hits};
use crate::mechanism::{group_of, groups};
use crate::worlds::{Ceiling, Ran, age, kept};

const TEXT: &str = include_str!("../data/fidelity.md");
/// Whose room is short, and what that is called.
const SCOPES: [(&str, &str); 2] = [("limit", "under a limit"), ("global", "for the whole machine")];
/// Widths of the figure: names of groups, and bars.
const NAME: usize = 29;
const BAR: usize = 50;
/// Parts of a bar, nearest first; what is farther than 25 % is a dot.
const SHADES: [char; 5] = ['█', '█', '▓', '░', '·'];

/// The document.
pub(crate) fn to_markdown() -> Result<String, Box<dyn Error>> {
    let (ran, known, tuned) = (kept()?, known_errors(), hits::kept());
    let mut text = String::new();
    for line in TEXT.lines() {
        match line {
            "{{worlds}}" => text += &worlds(&ran),
            "{{ceiling}}" => text += &ceiling(&ran),
            "{{figure}}" => text += &bars(&known),
            "{{mechanisms}}" => text += &mechanisms(&known),
            "{{workloads}}" => text += &workloads(&known),
            "{{largest}}" => text += &largest(&ran.disagreement),
            "{{tuned}}" => text += &by_workload(&tuned),
            _ => writeln!(text, "{line}").expect("a String takes all"),
        }
    }
    // The text itself does not stand beside that page.
    Ok(text.replace("`docs/worlds.md`", "[worlds.md](worlds.md)"))
}

fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let titles: Vec<String> = header.iter().map(|&title| title.to_owned()).collect();
    let rule = format!("|---|{}\n", "---:|".repeat(header.len() - 1));
    rows.into_iter().fold(line(&titles) + &rule, |text, row| text + &line(&row))
}

fn worlds(ran: &Ran) -> String {
    let row = |folder: &crate::worlds::Folder| {
        let [first, last] = folder.seeds;
        let (real, seeds) = (format!("`{}`", folder.real), format!("{first}..{last}"));
        vec![
            real,
            format!("`{}`", folder.kernel),
            seeds,
            folder.worlds.to_string(),
            folder.judged.to_string(),
        ]
    };
    let header = ["real kernel", "model", "seeds", "worlds", "to their end on both sides"];
    table(&header, ran.folder.iter().map(row))
}

fn ceiling(ran: &Ran) -> String {
    let kernels: Vec<&str> = ran.folder.iter().map(|folder| folder.kernel.as_str()).collect();
    let row = |title: &str, scope: &str, near: fn(&Ceiling) -> Near| {
        let of = |kernel: Option<&str>| {
            let is = |ceiling: &&Ceiling| {
                ceiling.scope == scope && kernel.is_none_or(|kernel| kernel == ceiling.kernel)
            };
            let near = ran.ceiling.iter().filter(is).map(near);
            let sum =
                near.fold([0; 5], |sum: Near, near| std::array::from_fn(|place| sum[place] + near[place]));
            parts(sum, &[2, 3, 4])
        };
        let cells = kernels.iter().map(|kernel| of(Some(kernel))).chain([of(None)]);
        std::iter::once(title.to_owned()).chain(cells).collect::<Vec<_>>()
    };
    let rows = SCOPES.into_iter().flat_map(|(scope, title)| {
        [
            row(&format!("the model, {title}"), scope, |ceiling| ceiling.model),
            row("each real run by the other two", scope, |ceiling| ceiling.itself),
        ]
    });
    let header: Vec<&str> = std::iter::once("").chain(kernels.iter().copied()).chain(["all"]).collect();
    table(&header, rows)
}

/// Counts of one cell: by nearness, and of all.
type Near = [usize; 5];

fn sum<'a>(rows: impl Iterator<Item = &'a KnownError>) -> Near {
    rows.fold([0; 5], |mut sum, row| {
        sum.iter_mut().zip(row.near).for_each(|(sum, count)| *sum += count);
        sum
    })
}

/// Each counter of each workload, once.
fn counted(known: &[KnownError]) -> impl Iterator<Item = &KnownError> {
    let is = |row: &&KnownError| row.workload != ALL && row.kind != POOL && row.kind != FactKind::Run.name();
    known.iter().filter(is)
}

fn bars(known: &[KnownError]) -> String {
    let mut text = String::from("```text\n");
    for (scope, title) in SCOPES {
        writeln!(text, "{title}").expect("a String takes all");
        for group in groups() {
            let rows = counted(known).filter(|row| row.scope == scope && is_of(row, group));
            let near = sum(rows);
            let all: usize = near.iter().sum();
            if all > 0 {
                writeln!(text, " {group:NAME$} {} {all:>5}", bar(near)).expect("a String takes all");
            }
        }
    }
    text + "```\n"
}

fn is_of(row: &KnownError, group: &str) -> bool {
    group_of(&row.kind, &row.counter) == group
}

/// A line of [`BAR`] characters, each part as long as its share.
fn bar(near: Near) -> String {
    let all: usize = near.iter().sum();
    let (mut bar, mut seen) = (String::new(), 0);
    for (count, shade) in near.into_iter().zip(SHADES) {
        let from = seen * BAR / all;
        seen += count;
        bar.extend(std::iter::repeat_n(shade, seen * BAR / all - from));
    }
    bar
}

fn kernels(known: &[KnownError]) -> Vec<&str> {
    let mut kernels: Vec<&str> = known.iter().map(|row| row.kernel.as_str()).collect();
    kernels.sort_by_key(|kernel| (age(kernel), *kernel));
    kernels.dedup();
    kernels
}

fn mechanisms(known: &[KnownError]) -> String {
    let kernels = kernels(known);
    let mut text = String::new();
    for (scope, title) in SCOPES {
        let row = |group: &'static str| {
            let cell = |kernel: &&str| {
                let is =
                    |row: &&KnownError| row.scope == scope && row.kernel == **kernel && is_of(row, group);
                within(sum(counted(known).filter(is)))
            };
            let cells: Vec<String> = kernels.iter().map(cell).collect();
            let is_empty = cells.iter().all(|cell| cell == "-");
            (!is_empty).then(|| std::iter::once(group.to_owned()).chain(cells).collect())
        };
        let header: Vec<&str> = std::iter::once(title).chain(kernels.iter().copied()).collect();
        text += &table(&header, groups().filter_map(row));
        text.push('\n');
    }
    text.pop();
    text
}

/// Percent within 2 %, and within 10 %.
fn within(near: Near) -> String {
    parts(near, &[2, 3])
}

/// Percent of the first so many classes together.
fn parts(near: Near, firsts: &[usize]) -> String {
    let all: usize = near.iter().sum();
    let percent = |first: &usize| ((100 * near[..*first].iter().sum::<usize>() + all / 2) / all).to_string();
    if all == 0 { "-".to_owned() } else { firsts.iter().map(percent).collect::<Vec<_>>().join(" / ") }
}

fn workloads(known: &[KnownError]) -> String {
    let kernels = kernels(known);
    let mut cells: BTreeMap<(&str, &str), BTreeMap<&str, String>> = BTreeMap::new();
    for row in known.iter().filter(|row| row.kind == POOL && row.counter == COUNTS) {
        let cell = format!("{} / {}", percent(row.median), percent(row.p90));
        cells.entry((&row.workload, &row.scope)).or_default().insert(&row.kernel, cell);
    }
    let row = |((workload, scope), cells): (&(&str, &str), &BTreeMap<&str, String>)| {
        let cell = |kernel: &&str| cells.get(*kernel).cloned().unwrap_or_else(|| "-".to_owned());
        std::iter::once(format!("`{workload}`, {scope}")).chain(kernels.iter().map(cell)).collect()
    };
    let header: Vec<&str> = std::iter::once("workload").chain(kernels.iter().copied()).collect();
    table(&header, cells.iter().map(row))
}

/// Errors in few digits: a table of many is read for their size.
fn percent(part: f64) -> String {
    match part * 100.0 {
        part if part.is_infinite() => "from 0".to_owned(),
        0.0 => "0".to_owned(),
        part if part < 10.0 => format!("{part:.1}"),
        part => format!("{part:.0}"),
    }
}

fn largest(found: &[Disagreement]) -> String {
    let mut text = String::new();
    for (place, found) in found.iter().enumerate() {
        let Disagreement { counter, scope, kernels, worlds, of, largest, real, model, .. } = found;
        let title = SCOPES.iter().find(|(name, _)| name == scope).map_or("", |(_, title)| *title);
        let (real, model) = if counter == "outcome" {
            (hits::outcome(*real), hits::outcome(*model))
        } else {
            (format!("{real:.0}"), format!("{model:.0}"))
        };
        let kernels: Vec<&str> = kernels.iter().map(|kernel| kernel.trim_start_matches("linux-")).collect();
        let text_of = format!(
            "{}. `{counter}` {title}: {worlds} of {of} worlds (farthest off in {largest}), on {}. Here {real} in the \
             guest, {model} in the model.\n   ```sh\n   {}\n   ```\n",
            place + 1,
            kernels.join(", "),
            found.real_command,
        );
        text += &text_of;
    }
    text
}

fn by_workload(tuned: &[Hits]) -> String {
    let mut sums: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    let mut all = [0; 4];
    for row in tuned {
        let counts = [1, row.hits, row.misses, row.shown];
        let sum = sums.entry(&row.workload).or_default();
        for place in 0..counts.len() {
            sum[place] += counts[place];
            all[place] += counts[place];
        }
    }
    let row = |(name, counts): (&str, [usize; 4])| {
        std::iter::once(name.to_owned()).chain(counts.map(|count| count.to_string())).collect()
    };
    let names = sums.into_iter().chain([("all", all)]);
    table(&["workload", "scenarios", "hits", "misses", "shown only"], names.map(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fidelity.md");

    #[test]
    fn the_page_is_what_its_command_prints_and_short() {
        let page = std::fs::read_to_string(PAGE).expect("the page is there");
        assert!(
            page == to_markdown().expect("the worlds are there"),
            "make it anew by the command that it names"
        );
        assert!(page.lines().count() <= 200, "{} lines", page.lines().count());
    }

    #[test]
    fn a_bar_has_its_length_however_its_parts_are_rounded() {
        for near in [[1, 0, 0, 0, 0], [1, 1, 1, 1, 1], [3, 7, 11, 13, 1], [0, 0, 0, 0, 99]] {
            assert_eq!(bar(near).chars().count(), BAR, "{near:?}");
        }
        assert_eq!(within([1, 1, 1, 1, 0]), "50 / 75");
        assert_eq!(within([0; 5]), "-");
    }
}
