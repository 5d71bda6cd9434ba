//! Miss ratio against the size of a cache: one curve for each policy or kernel that replayed a trace.
//!
//! Each curve has a panel of its own with the first one behind it, on the same axes. Points are the runs; between
//! two of them nothing is known, so straight lines join them. Left out: curves computed by stack distances.

use std::collections::BTreeMap;

use recording::Recording;

use super::words::short;
use crate::document::axis::Axis;
use crate::document::figure::{Column, Figure, Key, Mark, NamedLine, Panel};
use crate::judge::Group;

/// The metric of a miss ratio, and how a label ends that names a size.
const MISS_RATIO: &str = "miss_ratio";

/// A curve: the cache, and its points with what is said of each.
struct Curve<'a> {
    name: String,
    points: Vec<(f64, f64)>,
    commands: Vec<(&'a str, &'a str)>,
}

/// The figure; `None` where no cache ran with two sizes.
pub(crate) fn figure(groups: &[Group<'_>]) -> Option<Figure> {
    let policies = curves(groups, |run| run.backend == "policy");
    let kernels = curves(groups, |run| run.backend != "policy");
    let is_memory = policies.iter().all(|curve| curve.points.len() < 2);
    let curves = if is_memory { kernels } else { policies };
    let base = curves.first().filter(|_| curves.iter().any(|curve| curve.points.len() > 1))?;
    let sizes = || curves.iter().flat_map(|curve| curve.points.iter().map(|(size, _)| *size));
    let x = Axis::logarithmic(sizes().fold(f64::MAX, f64::min), sizes().fold(0.0, f64::max));
    let unit = if is_memory { "memory of the machine, MiB" } else { "objects that fit into the cache" };
    let column = |(index, curve): (usize, &Curve<'_>)| {
        let behind = (index > 0).then_some(base);
        let panel = panel(curve, behind, x.clone(), unit);
        Column { heading: curve.name.clone(), panels: vec![panel] }
    };
    let points: usize = curves.iter().map(|curve| curve.points.len()).sum();
    let requests = groups[0].recordings[0]
        .metrics
        .get("requests")
        .map_or_else(String::new, |n| format!(", {n} requests each"));
    let mut keys = vec![Key::line("line base", base.name.clone())];
    if curves.len() > 1 {
        keys.push(Key::line("line new", "the cache of the panel"));
    }
    Some(Figure {
        name: "misses".to_owned(),
        finding: finding(&curves),
        n: format!("{points} replays of one trace{requests}"),
        axes: format!("x: {unit}, logarithmic; y: misses of all requests, from 0"),
        keys,
        columns: curves.iter().enumerate().map(column).collect(),
        read: "Lower is better: of a hundred requests so many were not in the cache. A steep part is a size at which the trace begins to fit; where a curve is flat, more memory buys nothing.".to_owned(),
        commands: curves.iter().flat_map(|curve| curve.commands.iter()).map(|(label, command)| ((*label).to_owned(), (*command).to_owned())).collect(),
    })
}

/// Runs by what their labels say beside the size.
fn curves<'a>(groups: &'a [Group<'a>], is_meant: impl Fn(&Recording) -> bool) -> Vec<Curve<'a>> {
    let mut order: Vec<String> = Vec::new();
    let mut curves: BTreeMap<String, Curve<'a>> = BTreeMap::new();
    for group in groups {
        for run in group.recordings.iter().filter(|run| is_meant(run)) {
            let (Some((name, size)), Some(&ratio)) = (sized(&group.label), run.metrics.get(MISS_RATIO))
            else {
                continue;
            };
            if !order.contains(&name) {
                order.push(name.clone());
            }
            let curve = curves.entry(name.clone()).or_insert_with(|| Curve {
                name,
                points: Vec::new(),
                commands: Vec::new(),
            });
            curve.points.push((size, ratio));
            curve.commands.push((&group.label, &group.command));
        }
    }
    let mut curves: Vec<Curve<'a>> = order.iter().filter_map(|name| curves.remove(name)).collect();
    for curve in &mut curves {
        curve.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    curves
}

/// `lru 1000` is a cache and its size; so is `linux-6.12 256M`, in MiB.
fn sized(label: &str) -> Option<(String, f64)> {
    let (name, size) = label.rsplit_once([' ', ','])?;
    let size = size.trim().trim_start_matches("mem=");
    let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &size[digits.len()..] {
        "" | "M" => 1.0,
        "K" | "k" => 1.0 / 1024.0,
        "G" => 1024.0,
        _ => return None,
    };
    digits.parse::<f64>().ok().map(|number| (name.trim_end_matches([',', ' ']).to_owned(), number * factor))
}

fn panel(curve: &Curve<'_>, behind: Option<&Curve<'_>>, x: Axis, unit: &str) -> Panel {
    let class = if behind.is_some() { "new" } else { "base" };
    let line = |curve: &Curve<'_>, class: &str| Mark::Line {
        class: format!("line {class}"),
        points: curve.points.clone(),
        steps: false,
    };
    let said = |&(size, ratio): &(f64, f64)| {
        (size, ratio, format!("{} with {}: {} misses of 100", curve.name, short(size), short(100.0 * ratio)))
    };
    let mut marks: Vec<Mark> = behind.map(|behind| line(behind, "base")).into_iter().collect();
    marks.push(line(curve, class));
    marks.push(Mark::Dots { class: format!("dot {class}"), points: curve.points.iter().map(said).collect() });
    let named = |curve: &Curve<'_>, class: &str| NamedLine {
        label: curve.name.clone(),
        class: format!("line {class}"),
        points: curve.points.clone(),
    };
    let mut lines = vec![named(curve, class)];
    lines.extend(behind.map(|behind| named(behind, "base")));
    Panel {
        caption: "misses of all requests".to_owned(),
        height: 200.0,
        x,
        y: Axis::exact(0.0, 1.0, 5),
        x_label: unit.to_owned(),
        marks,
        lines,
    }
}

/// Where the caches differ most, or how far the only curve falls.
fn finding(curves: &[Curve<'_>]) -> String {
    let hundred = |ratio: f64| short(100.0 * ratio);
    let sizes = curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.0));
    let spread = |size: &f64| ends(curves, *size).map_or(0.0, |(least, most)| most.0 - least.0);
    let widest = sizes.max_by(|a, b| spread(a).total_cmp(&spread(b)));
    if let Some((size, (least, most))) = widest.and_then(|size| Some((size, ends(curves, size)?))) {
        let (size, fewest, mostly) = (short(size), hundred(least.0), hundred(most.0));
        return format!(
            "Caches differ most with {size}: {} misses {fewest} of 100 requests, {} {mostly}",
            least.1, most.1
        );
    }
    let Some(curve) = curves.first() else { return String::new() };
    let (Some(first), Some(last)) = (curve.points.first(), curve.points.last()) else { return String::new() };
    let said = |point: &(f64, f64)| format!("{} of 100 requests with {}", hundred(point.1), short(point.0));
    format!("{} misses {}, {}", curve.name, said(first), said(last))
}

/// A miss ratio, and whose it is.
type Missed<'a> = (f64, &'a str);

/// The caches that miss least and most with a size that several have.
fn ends<'a>(curves: &'a [Curve<'_>], size: f64) -> Option<(Missed<'a>, Missed<'a>)> {
    let at = |curve: &'a Curve<'_>| {
        let point = curve.points.iter().find(|point| point.0 == size)?;
        Some((point.1, curve.name.as_str()))
    };
    let mut of: Vec<Missed<'_>> = curves.iter().filter_map(at).collect();
    of.sort_by(|a, b| a.0.total_cmp(&b.0)); // stable: the first of equal ones
    if of.len() < 2 { None } else { Some((*of.first()?, *of.last()?)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_tell_cache_and_size() {
        for (label, wanted) in [
            ("lru 1000", Some(("lru", 1000.0))),
            ("linux-6.12 2G", Some(("linux-6.12", 2048.0))),
            ("linux-6.12, mem=256M", Some(("linux-6.12", 256.0))),
            ("linux-6.12", None),
        ] {
            assert_eq!(sized(label), wanted.map(|(name, size)| (name.to_owned(), size)), "{label}");
        }
    }
}
