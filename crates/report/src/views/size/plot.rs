//! The curve as a figure: hits and run time against memory, with the knee and what keeps the target.

use super::figures::mib;
use super::found::{Sized, SizedPoint, Spread};
use crate::document::axis::Axis;
use crate::document::figure::{Column, Figure, Key, Mark, NamedLine, Panel};

/// The figure; `None` where fewer than two limits were run.
pub(super) fn figure(sized: &Sized) -> Option<Figure> {
    let limited: Vec<&SizedPoint> = sized.points.iter().filter(|point| point.limit.is_some()).collect();
    let memory = |point: &SizedPoint| point.limit.unwrap_or(0) as f64 / 1_048_576.0;
    let most = limited.last().map(|point| memory(point)).filter(|_| limited.len() > 1)?;
    let x = Axis::from_zero(most, 6);
    let line = |value: fn(&SizedPoint) -> Option<Spread>, factor: f64| -> Vec<(f64, f64)> {
        limited.iter().filter_map(|point| Some((memory(point), value(point)?.mean * factor))).collect()
    };
    let hits = line(|point| point.hit_ratio, 100.0);
    let slower = line(|point| point.slowdown, 1.0);
    let slowest = slower.iter().map(|point| point.1).fold(0.0, f64::max);
    let panels = vec![
        panel(sized, "hits of all pages asked for, %", hits, x.clone(), Axis::exact(0.0, 100.0, 5), ""),
        panel(
            sized,
            "slower than without a limit, %",
            slower,
            x,
            Axis::from_zero(slowest, 4),
            "memory.max, MiB",
        ),
    ];
    Some(Figure {
        name: "size".to_owned(),
        finding: finding(sized),
        n: format!("{} runs, {} limits, seeds: {}", sized.runs, limited.len(), sized.seeds.len()),
        axes: "x: memory.max in MiB, from 0; y: percent, from 0".to_owned(),
        keys: vec![Key::line("line base", "limits that were run, joined by straight lines")],
        columns: vec![Column { heading: String::new(), panels }],
        read: "Points are runs; between two of them nothing is known but that hits rise. The knee is the point highest \
               above the line from the first to the last."
            .to_owned(),
        commands: vec![("all runs".to_owned(), sized.command.clone())],
    })
}

pub(super) fn finding(sized: &Sized) -> String {
    match (&sized.advice, sized.knee) {
        (Some(advice), _) => format!("{} keeps the target of {}", mib(advice.high), sized.trace),
        (None, Some(knee)) => format!("hits of {} bend at {}", sized.trace, mib(knee.limit)),
        (None, None) => format!("hits of {} against memory", sized.trace),
    }
}

fn panel(sized: &Sized, caption: &str, points: Vec<(f64, f64)>, x: Axis, y: Axis, x_label: &str) -> Panel {
    let at = |bytes: u64| bytes as f64 / 1_048_576.0;
    let mut marks = vec![
        Mark::Line { class: "line base".to_owned(), points: points.clone(), steps: false },
        Mark::Dots {
            class: "dot base".to_owned(),
            points: points.iter().map(|&(x, y)| (x, y, format!("{x:.1} MiB: {y:.2} %"))).collect(),
        },
    ];
    if let Some(knee) = sized.knee {
        marks.push(Mark::Moment { x: at(knee.limit), label: "knee".to_owned(), row: 0 });
    }
    if let Some(advice) = &sized.advice {
        marks.push(Mark::Moment { x: at(advice.high), label: "keeps the target".to_owned(), row: 1 });
    }
    let lines = vec![NamedLine { label: caption.to_owned(), class: "line base".to_owned(), points }];
    Panel { caption: caption.to_owned(), height: 200.0, x, y, x_label: x_label.to_owned(), marks, lines }
}
