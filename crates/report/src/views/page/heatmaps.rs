//! Heatmaps: pages by age over time, and where in files pages and accesses are.
//!
//! Drawn from events of pages ([`crate::views::heat`]), so only for runs that recorded them. Cells of equal shade that
//! follow each other in a row are one rectangle. Shades are linear and the same for all kernels of a figure; a
//! cell's size is said below it. Left out: anonymous memory, whose accesses are no events.

use super::words::{Told, amount, by_kernel, short};
use crate::document::axis::Axis;
use crate::document::figure::{CellMark, Column, Figure, Key, Mark, Panel};
use crate::document::number::duration;
use crate::judge::Group;
use crate::views::heat::{AgeMap, FileHeat, Heat};

/// Shades beside none.
const SHADES: f64 = 8.0;
/// Cgroups that have a map of ages, and files that have one of regions.
const CGROUPS_MAX: usize = 4;
const FILES_MAX: usize = 3;
/// Pages of a MiB.
const MIB: f64 = 256.0;

/// A group with the heat of its first run.
type Heated<'a> = (&'a Group<'a>, &'a Heat);

/// Both figures, as far as runs have events of pages.
pub(crate) fn figures(groups: &[Group<'_>], heats: &[Option<Heat>]) -> Vec<Figure> {
    let heated: Vec<Heated<'_>> =
        groups.iter().zip(heats).filter_map(|(group, heat)| Some((group, heat.as_ref()?))).collect();
    [ages(&heated), regions(&heated)].into_iter().flatten().collect()
}

fn ages(heated: &[Heated<'_>]) -> Option<Figure> {
    let (_, first) = heated.first()?;
    let end = end_of(heated);
    let column = |(group, heat): &Heated<'_>| {
        let maps = most_pages(&heat.ages);
        let last = maps.len().saturating_sub(1);
        let panel = |(index, map): (usize, &&AgeMap)| {
            age_panel(heat, map, most_of(heated, &map.cgroup), time_axis(end, index == last))
        };
        Column { heading: group.label.clone(), panels: maps.iter().enumerate().map(panel).collect() }
    };
    Some(Figure {
        name: "ages".to_owned(),
        finding: finding_of_ages(heated),
        n: of_events(heated),
        axes: format!(
            "x: seconds since the run began; y: time since a page was last read or written; a cell is {} by a class of ages, its colour the pages in it at the end of that time, in percent of the most that any cell of the cgroup has",
            duration(first.slice_ns as f64)
        ),
        keys: shades(|share| format!("{:.0} %", 100.0 * share)),
        columns: heated.iter().map(column).collect(),
        read: "Each moment stacks the page cache of a cgroup by age, the youngest at the bottom. A dark band that climbs is memory that nobody uses again; a band that stays at the bottom is a working set in use; one that ends is memory that was reclaimed.".to_owned(),
        commands: commands(heated),
    })
}

fn age_panel(heat: &Heat, map: &AgeMap, most: f64, (x, x_label): (Axis, String)) -> Panel {
    let names: Vec<String> = heat.age_classes.iter().map(|(from, to)| class_name(*from, *to)).collect();
    let mut cells = Vec::new();
    for (class, name) in names.iter().enumerate() {
        let values: Vec<f64> =
            map.pages.iter().map(|slice| slice.get(class).copied().unwrap_or(0) as f64).collect();
        let said = |pages: f64| format!("{name}: {}", amount(pages / MIB, "MiB"));
        cells.extend(row(&values, most, heat.slice_ns, class, said));
    }
    let cgroup =
        if map.cgroup.is_empty() { "the root cgroup".to_owned() } else { format!("cgroup {}", map.cgroup) };
    let most_here = map.pages.iter().map(|slice| slice.iter().sum::<u64>()).max().unwrap_or(0);
    Panel {
        caption: format!(
            "page cache of {cgroup} by age, {} at most; 100 %: {}",
            amount(most_here as f64 / MIB, "MiB"),
            amount(most / MIB, "MiB")
        ),
        height: 20.0 * names.len().max(1) as f64,
        x,
        y: Axis::places(names),
        x_label,
        marks: vec![Mark::Cells(cells)],
        lines: Vec::new(),
    }
}

/// The most pages that a cell of a cgroup's map has, on any kernel.
fn most_of(heated: &[Heated<'_>], cgroup: &str) -> f64 {
    let maps = heated.iter().flat_map(|(_, heat)| heat.ages.iter().filter(|map| map.cgroup == cgroup));
    maps.flat_map(|map| map.pages.iter().flatten()).copied().max().unwrap_or(0) as f64
}

/// Cells of one row; those of equal shade that follow each other are one.
fn row(
    values: &[f64],
    most: f64,
    slice_ns: u64,
    place: usize,
    said: impl Fn(f64) -> String,
) -> Vec<CellMark> {
    let shade = |value: f64| if most > 0.0 { (SHADES * value / most).ceil() as u8 } else { 0 };
    let seconds = |slice: usize| slice as f64 * slice_ns as f64 / 1e9;
    let mut cells: Vec<CellMark> = Vec::new();
    let mut from = 0;
    for to in 1..=values.len() {
        if to < values.len() && shade(values[to]) == shade(values[from]) {
            continue;
        }
        if values[from] > 0.0 {
            let (least, largest) =
                values[from..to].iter().fold((f64::MAX, 0.0_f64), |(l, m), v| (l.min(*v), m.max(*v)));
            let told = if said(least) == said(largest) {
                said(largest)
            } else {
                format!("{} at least, {} at most", said(least), said(largest))
            };
            cells.push(CellMark {
                x: (seconds(from), seconds(to)),
                y: (place as f64, place as f64 + 1.0),
                shade: format!("h{}", shade(values[from])),
                title: format!("{told}, {} to {} s", short(seconds(from)), short(seconds(to))),
            });
        }
        from = to;
    }
    cells
}

fn class_name(from: u64, to: Option<u64>) -> String {
    match (from, to) {
        (0, Some(to)) => format!("<{}", duration(to as f64)),
        (from, _) => format!("≥{}", duration(from as f64)),
    }
}

/// The cgroups with the most pages, in order of their paths.
fn most_pages(maps: &[AgeMap]) -> Vec<&AgeMap> {
    let pages = |map: &AgeMap| map.pages.iter().flatten().sum::<u64>();
    let mut ordered: Vec<&AgeMap> = maps.iter().filter(|map| pages(map) > 0).collect();
    ordered.sort_by_key(|map| std::cmp::Reverse(pages(map)));
    ordered.truncate(CGROUPS_MAX);
    ordered.sort_by(|a, b| a.cgroup.cmp(&b.cgroup));
    ordered
}

fn regions(heated: &[Heated<'_>]) -> Option<Figure> {
    let files = |heat: &Heat| heat.files.len().min(FILES_MAX);
    let (_, first) = heated.iter().find(|(_, heat)| files(heat) > 0)?;
    let end = end_of(heated);
    let column = |(group, heat): &Heated<'_>| {
        let told = files(heat);
        let mut panels = Vec::new();
        for (index, file) in heat.files.iter().take(told).enumerate() {
            panels.push(region_panel(heat, file, false, time_axis(end, false)));
            panels.push(region_panel(heat, file, true, time_axis(end, index + 1 == told)));
        }
        Column { heading: group.label.clone(), panels }
    };
    let sizes: Vec<String> = first
        .files
        .iter()
        .take(files(first))
        .map(|file| format!("{} of {}", amount(file.region_pages as f64 / MIB, "MiB"), file.file))
        .collect();
    Some(Figure {
        name: "regions".to_owned(),
        finding: finding_of_regions(heated),
        n: of_events(heated),
        axes: format!(
            "x: seconds since the run began; y: place in the file, MiB; a cell is {} by {}",
            duration(first.slice_ns as f64),
            sizes.join(", ")
        ),
        keys: shades(|share| format!("{:.0} %", 100.0 * share)),
        columns: heated.iter().map(column).collect(),
        read: "The upper map of a file is what of each region was in memory at that time, the lower one where it was read: dark is the whole region, and for reads the most that any region of the file was read in one slice. A diagonal is a sequential read; a row that stays dark is a part in use.".to_owned(),
        commands: commands(heated),
    })
}

fn region_panel(heat: &Heat, file: &FileHeat, accesses: bool, (x, x_label): (Axis, String)) -> Panel {
    let rows = if accesses { &file.accessed } else { &file.resident };
    let most = match accesses {
        true => rows.iter().flatten().copied().max().unwrap_or(0) as f64,
        false => file.region_pages as f64,
    };
    let region = file.region_pages as f64 / MIB;
    let mut cells = Vec::new();
    for (index, values) in rows.iter().enumerate() {
        let values: Vec<f64> = values.iter().map(|pages| *pages as f64).collect();
        let said = |pages: f64| amount(pages / MIB, "MiB");
        let of_row = row(&values, most, heat.slice_ns, index, said);
        cells.extend(
            of_row.into_iter().map(|cell| CellMark { y: (cell.y.0 * region, cell.y.1 * region), ..cell }),
        );
    }
    let what = if accesses { "read" } else { "in memory" };
    Panel {
        caption: format!("{}, {what}; place in the file, MiB", file.file),
        height: 84.0,
        x,
        y: Axis::exact(0.0, region * rows.len().max(1) as f64, 3),
        x_label,
        marks: vec![Mark::Cells(cells)],
        lines: Vec::new(),
    }
}

fn end_of(heated: &[Heated<'_>]) -> f64 {
    heated.iter().map(|(_, heat)| heat.slices as f64 * heat.slice_ns as f64 / 1e9).fold(0.0, f64::max)
}

fn time_axis(end: f64, is_last: bool) -> (Axis, String) {
    let x = Axis::exact(0.0, end, 5);
    if is_last { (x, "time of the run, s".to_owned()) } else { (x.silent(), String::new()) }
}

fn shades(text: impl Fn(f64) -> String) -> Vec<Key> {
    let key =
        |shade: u8| Key::area(&format!("h{shade}"), format!("up to {}", text(f64::from(shade) / SHADES)));
    [1, 3, 5, 8].into_iter().map(key).collect()
}

fn of_events(heated: &[Heated<'_>]) -> String {
    let seeds: Vec<String> = heated
        .iter()
        .filter_map(|(group, _)| group.recordings.first())
        .map(|run| run.seed.to_string())
        .collect();
    let same = seeds.iter().all(|seed| *seed == seeds[0]);
    let seed = if same { format!("seed {}", seeds[0]) } else { "their first seeds".to_owned() };
    format!("every event of a page of the page cache in one run of each kernel, {seed}")
}

/// What a map is made from is kept only if it is asked for.
fn commands(heated: &[Heated<'_>]) -> Vec<(String, String)> {
    let command = |group: &Group<'_>| format!("{} --events pages --out DIR", group.command);
    heated.iter().map(|(group, _)| (group.label.clone(), command(group))).collect()
}

/// How much of the page cache had been idle for a tenth of the run, when it ended.
fn finding_of_ages(heated: &[Heated<'_>]) -> String {
    let Some((_, first)) = heated.first() else { return String::new() };
    let tenth = first.slice_ns.saturating_mul(first.slices as u64) / 10;
    let fitting =
        first.age_classes.iter().map(|(from, _)| *from).filter(|from| *from > 0 && *from <= tenth).max();
    let Some(from) = fitting.or_else(|| first.age_classes.get(1).map(|(from, _)| *from)) else {
        return "Page cache by age".to_owned();
    };
    let told = |(group, heat): &Heated<'_>| {
        let last = heat.ages.iter().filter_map(|map| map.pages.last());
        let idle: u64 = last
            .map(|slice| {
                heat.age_classes
                    .iter()
                    .zip(slice)
                    .filter(|((begin, _), _)| *begin >= from)
                    .map(|(_, pages)| pages)
                    .sum::<u64>()
            })
            .sum();
        Told { label: group.label.clone(), value: idle as f64, text: amount(idle as f64 / MIB, "MiB") }
    };
    let what = format!("page cache that nobody had read for {} or longer at the end", duration(from as f64));
    by_kernel(&what, &heated.iter().map(told).collect::<Vec<_>>())
}

/// What of the smallest file stayed in memory after it had been there.
fn finding_of_regions(heated: &[Heated<'_>]) -> String {
    // A larger one is mostly a stream.
    let files = heated.iter().flat_map(|(_, heat)| heat.files.iter().take(FILES_MAX));
    let smallest = files.min_by_key(|file| file.region_pages * file.resident.len() as u64);
    let Some(name) = smallest.map(|file| file.file.clone()) else { return String::new() };
    let told = |(group, heat): &Heated<'_>| {
        let file = heat.files.iter().find(|file| file.file == name)?;
        let of_slice =
            |slice: usize| file.resident.iter().filter_map(|region| region.get(slice)).sum::<u64>();
        let pages: Vec<u64> = (0..heat.slices).map(of_slice).collect();
        let peak = pages.iter().position(|count| Some(count) == pages.iter().max())?;
        let least = pages[peak..].iter().min()?;
        let text =
            format!("{} of {}", amount(*least as f64 / MIB, "MiB"), amount(pages[peak] as f64 / MIB, "MiB"));
        Some(Told { label: group.label.clone(), value: *least as f64, text })
    };
    let what = format!("what of the file {name} was in memory, at least, after it had been read");
    by_kernel(&what, &heated.iter().filter_map(told).collect::<Vec<_>>())
}
