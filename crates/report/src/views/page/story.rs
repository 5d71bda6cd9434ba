//! The story of a mechanism over time: one column for each kernel, panels below each other on one time axis.
//!
//! At the top what the workload is about, then free memory above its marks, who scans, and when tasks stalled.
//! All columns have the same axes. The first seed is drawn; other seeds are faint lines of what the story is
//! about. Readings are drawn as they are: levels as steps from one reading to the next, events as their rate
//! between two readings. Left out: what happened between two readings, which only events tell.

use recording::Recording;

use super::readings::{
    Counts, POINTS_MAX, STALLS, before, last_of, read, read_marks, stalls, summed, thinned,
};
use super::words::{Told, amount, by_kernel};
use crate::document::axis::Axis;
use crate::document::figure::{Column, Figure, Key, Mark, NamedLine, Panel};
use crate::document::number::plain;
use crate::judge::Group;

/// What a workload's story shows, from top to bottom; the first line of the first panel is what its finding
/// is about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Story {
    /// The panels above those that every story has.
    pub panels: &'static [StoryPanel],
    /// What of the first line makes the finding.
    pub tells: Tells,
}

/// A panel of a story.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoryPanel {
    /// What is shown.
    pub name: &'static str,
    /// What its columns count.
    pub counts: Counts,
    /// Up to two lines.
    pub lines: &'static [StoryLine],
}

/// A line of a panel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoryLine {
    /// What it is, such as `page cache of A`.
    pub name: &'static str,
    /// Columns of the series that are added up; those that a run does not have are left out.
    pub columns: &'static [&'static str],
}

/// Which value of a line tells how it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tells {
    /// The last one of a phase, or of the run where it has no such phase.
    EndOf(&'static str),
    /// The largest one.
    Most,
    /// What was counted in a phase, or in the run where it has no such phase.
    TotalOf(&'static str),
}

/// The axis of free memory ends at so many times the mark high.
const FREE_OF_HIGH: f64 = 4.0;
/// Other seeds that are drawn at most.
const FAINT_MAX: usize = 9;

/// The figure; `None` where no run was read more than once.
pub(crate) fn figure(groups: &[Group<'_>], story: &Story) -> Option<Figure> {
    let drawn: Vec<Drawn<'_>> =
        groups.iter().enumerate().filter_map(|(index, group)| Drawn::of(group, index)).collect();
    if drawn.is_empty() {
        return None;
    }
    let end = drawn.iter().map(|drawn| drawn.end).fold(0.0, f64::max);
    let lanes = lanes(story, &drawn);
    if lanes.is_empty() {
        return None;
    }
    let tops: Vec<f64> =
        lanes.iter().map(|lane| drawn.iter().map(|d| lane.top(d)).fold(0.0, f64::max)).collect();
    let column = |drawn: &Drawn<'_>| {
        let last = lanes.len() - 1;
        let panels = lanes.iter().zip(&tops).enumerate().map(|(index, (lane, &top))| {
            let mut x = Axis::exact(0.0, end, 5);
            let x_label = if index == last { "time of the run, s".to_owned() } else { String::new() };
            if index != last {
                x = x.silent();
            }
            lane.panel(drawn, x, x_label, top, index == 0)
        });
        Column { heading: drawn.group.label.clone(), panels: panels.collect() }
    };
    let columns: Vec<Column> = drawn.iter().map(column).collect();
    let keys = keys(&lanes, drawn.len());
    let readings: Vec<usize> = drawn.iter().map(|d| d.run.series.rows.len()).collect();
    let (fewest, most) = (readings.iter().min()?, readings.iter().max()?);
    let readings = if fewest == most { format!("{most}") } else { format!("{fewest} to {most}") };
    let seeds = drawn.iter().map(|d| d.group.recordings.len()).max().unwrap_or(1);
    let thinned = if *most > POINTS_MAX {
        "; of several readings that fall together the least and the most are drawn"
    } else {
        ""
    };
    let n = match seeds {
        1 => format!("one run of each kernel, seed {}, {readings} readings{thinned}", drawn[0].run.seed),
        _ => format!(
            "{seeds} runs of each kernel; seed {} is drawn, other seeds are faint lines; {readings} readings{thinned}",
            drawn[0].run.seed
        ),
    };
    Some(Figure {
        name: "story".to_owned(),
        finding: finding(story, &drawn),
        n,
        axes: "x: seconds since the run began, the same for all panels; y: as each panel says, the same scale for all kernels".to_owned(),
        keys,
        columns,
        read: "Read a column from top to bottom at one moment: what happened to the memory that the workload is about, how much was free, who scanned for more, and when tasks had to reclaim themselves. Levels are steps from one reading to the next; rates are means between two readings.".to_owned(),
        commands: drawn.iter().map(|d| (d.group.label.clone(), d.group.command.clone())).collect(),
    })
}

/// A group whose first run is drawn.
struct Drawn<'a> {
    group: &'a Group<'a>,
    run: &'a Recording,
    others: Vec<&'a Recording>,
    /// Seconds at which the run ends.
    end: f64,
    /// Base or candidate.
    class: &'static str,
}

impl<'a> Drawn<'a> {
    fn of(group: &'a Group<'a>, index: usize) -> Option<Self> {
        let is_read = |run: &&&Recording| run.series.rows.len() > 1 && run.series.times_ns().is_sorted();
        let mut runs = group.recordings.iter().filter(is_read).copied();
        let run = runs.next()?;
        let last = run.series.times_ns().last().unwrap_or(0).max(run.duration_ns().unwrap_or(0));
        let others = runs.take(FAINT_MAX).collect();
        Some(Self {
            group,
            run,
            others,
            end: last as f64 / 1e9,
            class: if index == 0 { "base" } else { "new" },
        })
    }
}

/// One panel of every column.
enum Lane {
    Lines(StoryPanel),
    Free,
    Scans,
    Stalls,
}

const SCANS: [(&str, &[&str]); 2] = [("kswapd", &["pgscan_kswapd"]), ("direct reclaim", &["pgscan_direct"])];

fn lanes(story: &Story, drawn: &[Drawn<'_>]) -> Vec<Lane> {
    let any = |columns: &[&str]| {
        drawn.iter().any(|d| summed(&d.run.series, columns).is_some_and(|v| v.iter().any(|&x| x > 0.0)))
    };
    let told = |panel: &&StoryPanel| panel.lines.iter().any(|line| any(line.columns));
    let mut lanes: Vec<Lane> = story.panels.iter().filter(told).map(|panel| Lane::Lines(*panel)).collect();
    if any(&["nr_free_pages"]) {
        lanes.push(Lane::Free);
    }
    if SCANS.iter().any(|(_, columns)| any(columns)) {
        lanes.push(Lane::Scans);
    }
    if any(&STALLS) {
        lanes.push(Lane::Stalls);
    }
    lanes
}

impl Lane {
    /// The largest value that a column draws.
    fn top(&self, drawn: &Drawn<'_>) -> f64 {
        let lines = self.lines(drawn);
        let most = |lines: &[NamedLine]| {
            lines.iter().flat_map(|line| &line.points).map(|(_, y)| *y).fold(0.0, f64::max)
        };
        match (self, lines.split_last()) {
            // What is free before the run has filled memory would make all else flat.
            (Self::Free, Some((_, marks))) if !marks.is_empty() => {
                most(&lines).min(FREE_OF_HIGH * most(marks))
            }
            _ => most(&lines),
        }
    }

    /// The lines of a column: what they are, how they look, and their points.
    fn lines(&self, drawn: &Drawn<'_>) -> Vec<NamedLine> {
        let series = &drawn.run.series;
        let line = |label: &str, class: &str, points: Option<Vec<(f64, f64)>>| {
            points.map(|points| NamedLine {
                label: label.to_owned(),
                class: class.to_owned(),
                points: thinned(points),
            })
        };
        match self {
            Self::Lines(panel) => {
                let classes = [drawn.class, "second"];
                let own =
                    panel.lines.iter().zip(classes).filter_map(|(of, class)| {
                        line(of.name, class, read(series, of.columns, panel.counts))
                    });
                let first = panel.lines[0];
                let faint = drawn
                    .others
                    .iter()
                    .filter_map(|run| line("", "faint", read(&run.series, first.columns, panel.counts)));
                own.chain(faint).collect()
            }
            Self::Free => {
                let marks = ["min", "low", "high"]
                    .into_iter()
                    .filter_map(|mark| line(mark, &format!("mark {mark}"), read_marks(series, mark)));
                marks
                    .chain(line("free", drawn.class, read(series, &["nr_free_pages"], Counts::Pages)))
                    .collect()
            }
            Self::Scans => {
                let classes = [drawn.class, "pay"];
                SCANS
                    .iter()
                    .zip(classes)
                    .filter_map(|((name, columns), class)| {
                        line(name, class, read(series, columns, Counts::Events))
                    })
                    .collect()
            }
            Self::Stalls => Vec::new(),
        }
    }

    fn panel(&self, drawn: &Drawn<'_>, x: Axis, x_label: String, top: f64, is_first: bool) -> Panel {
        let lines = self.lines(drawn);
        let steps = |line: &NamedLine| Mark::Line {
            class: format!("line {}", line.class),
            points: line.points.clone(),
            steps: true,
        };
        let area = |line: &NamedLine| Mark::Area {
            class: format!("area {}", line.class),
            points: line.points.clone(),
        };
        let mut marks: Vec<Mark> = Vec::new();
        let (caption, height) = match self {
            Self::Lines(panel) => {
                // Faint ones lie below.
                marks.extend(lines.iter().rev().map(steps));
                if is_first {
                    marks.extend(moments(drawn));
                }
                (with_unit(panel.name, panel.counts.unit()), 130.0)
            }
            Self::Free => {
                marks.extend(lines.iter().map(steps));
                let marked = lines.len() > 1;
                let most = lines.iter().flat_map(|line| &line.points).map(|(_, y)| *y).fold(0.0, f64::max);
                let cut = if most > top {
                    format!("; cut, at most {}", amount(most, "MiB"))
                } else {
                    String::new()
                };
                let of = if marked { " and its marks min, low, high" } else { "" };
                (format!("free memory{of}, MiB{cut}"), 110.0)
            }
            Self::Scans => {
                marks.extend(lines.iter().flat_map(|line| [area(line), steps(line)]));
                ("pages scanned, per s".to_owned(), 70.0)
            }
            Self::Stalls => {
                let (at, count) = stalls(&drawn.run.series);
                let readings = at.len();
                marks.push(Mark::Ticks { class: "tick pay".to_owned(), at });
                (stalls_caption(count, readings), 18.0)
            }
        };
        let y = match self {
            Self::Stalls => Axis::exact(0.0, 1.0, 1).bare(),
            Self::Scans => Axis::from_zero(top, 2),
            _ => Axis::from_zero(top, 4),
        };
        Panel {
            caption,
            height,
            x,
            y,
            x_label,
            marks,
            lines: lines.into_iter().filter(|line| !line.label.is_empty()).collect(),
        }
    }
}

fn with_unit(name: &str, unit: &str) -> String {
    match unit {
        "" => name.to_owned(),
        _ => format!("{name}, {unit}"),
    }
}

fn stalls_caption(count: f64, readings: usize) -> String {
    match readings {
        0 => "allocation stalls: none".to_owned(),
        _ => format!("allocation stalls: {} in all, a stroke for each reading with some", plain(count)),
    }
}

fn moments(drawn: &Drawn<'_>) -> Vec<Mark> {
    let phases = &drawn.run.phases;
    // Names that would stand on each other take rows of their own.
    let mut ends = [f64::MIN; 4];
    let mut moments = Vec::new();
    for phase in phases {
        let x = phase.at_ns as f64 / 1e9;
        let long = 0.02 * drawn.end * phase.name.len() as f64;
        let (from, to) = if x > drawn.end / 2.0 { (x - long, x) } else { (x, x + long) };
        let row = ends.iter().position(|end| *end < from).unwrap_or(ends.len() - 1);
        ends[row] = to;
        moments.push(Mark::Moment { x, label: phase.name.clone(), row });
    }
    moments
}

fn keys(lanes: &[Lane], columns: usize) -> Vec<Key> {
    let mut keys = vec![Key::line("line base", if columns > 1 { "baseline" } else { "this run" })];
    if columns > 1 {
        keys.push(Key::line("line new", "candidate"));
    }
    for lane in lanes {
        match lane {
            Lane::Lines(panel) => {
                let own = panel.lines.iter().skip(1).map(|line| Key::line("line second", line.name));
                keys.extend(own);
            }
            Lane::Scans => keys.push(Key::area("area pay", "direct reclaim")),
            Lane::Free | Lane::Stalls => {}
        }
    }
    keys.dedup();
    keys
}

/// The finding: what the first line of the story came to with each kernel.
fn finding(story: &Story, drawn: &[Drawn<'_>]) -> String {
    let Some(panel) = story.panels.first() else { return "Memory over the run".to_owned() };
    let line = panel.lines[0];
    let told = |d: &Drawn<'_>| {
        let values = summed(&d.run.series, line.columns)?;
        let value = match story.tells {
            Tells::EndOf(phase) => values[last_of(d.run, phase)],
            Tells::Most => values.iter().copied().fold(0.0, f64::max),
            Tells::TotalOf(phase) => values[last_of(d.run, phase)] - values[before(d.run, phase)],
        };
        Some(value * panel.counts.factor())
    };
    let unit = match story.tells {
        Tells::TotalOf(_) => "",
        _ => panel.counts.unit(),
    };
    let when = match story.tells {
        Tells::EndOf(phase) => &format!(" at {phase}"),
        Tells::Most => " at most",
        Tells::TotalOf(phase) => &format!(" until {phase}"),
    };
    let values: Vec<Told> = drawn
        .iter()
        .filter_map(|d| {
            told(d).map(|value| Told { label: d.group.label.clone(), value, text: amount(value, unit) })
        })
        .collect();
    by_kernel(&format!("{}{when}", line.name), &values)
}
