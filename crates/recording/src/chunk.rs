//! A part of a sweep as one Parquet file: a row for each fact of each run.
//!
//! Runs of a sweep have different metrics and counters, by kernel and by how they ended. As rows they have one
//! schema all the same, so that a folder of such files is one table for every program:
//!
//! | column | what it is |
//! |---|---|
//! | `run` | the run's place in the plan, from 0 |
//! | `label`, `seed` | what the run is called; its seed |
//! | one for each axis | the run's value; whole numbers where all values of the axis are |
//! | `kind` | `metric`, `vmstat`, `memcg`, or `run` for what is neither a result nor a counter |
//! | `name` | the metric or counter; `error` where the run failed, with the command line's exit code as its value |
//! | `value` | its number, exact up to 2^53; empty where there is none |
//! | `text` | what it says, where it is a text |
//! | `median_error`, `p90_error` | the part by which the model is known to be off, in half and in 9 of 10 worlds |
//!
//! Both are empty where it is not known, and infinite where real kernels have 0.
//!
//! The same runs give the same bytes, wherever they ran. Left out: series, samples, waits and events, which are in
//! recordings. Neighbours: `table.rs` writes the columns.

use std::path::Path;

use parquet::data_type::ByteArray;

use crate::RecordingError;
use crate::table::{self, Cells, Column, spread};

/// Names of the columns that every chunk has.
const COLUMNS: [&str; 9] =
    ["run", "label", "seed", "kind", "name", "value", "text", "median_error", "p90_error"];

/// The last of them, which files of an older pagetide lack.
const ERRORS: [&str; 2] = ["median_error", "p90_error"];

/// Something that differs between the runs of a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkAxis {
    /// `kernel`, `mem`, the name of a sysctl or parameter, ...
    pub name: String,
    /// Whether all values of the whole sweep are whole numbers.
    pub is_number: bool,
}

impl ChunkAxis {
    /// The axis with these values, of all runs.
    pub fn new(name: &str, values: &[String]) -> Self {
        let same = |value: &String| value.parse::<i64>().is_ok_and(|number| number.to_string() == *value);
        let is_number = values.iter().all(same);
        Self { name: name.to_owned(), is_number }
    }

    /// What its column is called: `axis_NAME` where the name is taken; none for seeds, which have a column anyway.
    pub fn column(&self) -> Option<String> {
        match self.name.as_str() {
            "seed" => None,
            taken if COLUMNS.contains(&taken) => Some(format!("axis_{taken}")),
            free => Some(free.to_owned()),
        }
    }
}

/// What a [`Fact`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactKind {
    /// A result of the workload.
    Metric,
    /// A counter of `/proc/vmstat`.
    Vmstat,
    /// A counter of a cgroup: `PATH:COUNTER`.
    Memcg,
    /// About the run as a whole.
    Run,
}

impl FactKind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Metric, Self::Vmstat, Self::Memcg, Self::Run];

    /// As the column has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Metric => "metric",
            Self::Vmstat => "vmstat",
            Self::Memcg => "memcg",
            Self::Run => "run",
        }
    }
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// What it is.
    pub kind: FactKind,
    /// The metric or counter.
    pub name: String,
    /// Its number.
    pub value: Option<f64>,
    /// What it says.
    pub text: Option<String>,
    /// By what part of the real value the model is known to be off: the median, and what 9 of 10 are within.
    pub error: Option<[f64; 2]>,
}

/// What is known of a run that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct ChunkRun {
    /// Its place in the plan.
    pub run: u64,
    /// What it is called.
    pub label: String,
    /// Its seed.
    pub seed: u64,
    /// The value of each axis.
    pub values: Vec<String>,
    /// What it left.
    pub facts: Vec<Fact>,
}

/// The bytes of the file with these runs, which have a value for each of `axes`.
///
/// # Panics
/// When a value of an axis of numbers is none: a bug of whoever planned.
pub fn encode_chunk(axes: &[ChunkAxis], runs: &[ChunkRun]) -> Vec<u8> {
    let rows = || runs.iter().flat_map(|run| run.facts.iter().map(move |fact| (run, fact)));
    let text = |cell: &dyn Fn(&ChunkRun) -> String| {
        let cells = runs.iter().flat_map(|run| vec![ByteArray::from(cell(run).as_str()); run.facts.len()]);
        Cells::Text(cells.collect())
    };
    let mut columns = vec![
        Column::new("run", Cells::I64(rows().map(|(run, _)| run.run.cast_signed()).collect())),
        Column::new("label", text(&|run| run.label.clone())),
        Column::new("seed", Cells::U64(rows().map(|(run, _)| run.seed.cast_signed()).collect())),
    ];
    for (place, axis) in axes.iter().enumerate() {
        let Some(name) = axis.column() else { continue };
        let number = |run: &ChunkRun| run.values[place].parse().expect("the plan says that it is a number");
        let cells = if axis.is_number {
            Cells::I64(rows().map(|(run, _)| number(run)).collect())
        } else {
            text(&|run| run.values[place].clone())
        };
        columns.push(Column::new(&name, cells));
    }
    columns.push(Column::of_texts("kind", rows().map(|(_, fact)| fact.kind.name())));
    columns.push(Column::of_texts("name", rows().map(|(_, fact)| fact.name.as_str())));
    let present = |is: &dyn Fn(&Fact) -> bool| rows().map(|(_, fact)| i16::from(is(fact))).collect();
    let values = rows().filter_map(|(_, fact)| fact.value).collect();
    columns.push(Column::with_gaps("value", Cells::F64(values), present(&|fact| fact.value.is_some())));
    let texts = rows().filter_map(|(_, fact)| fact.text.as_deref()).map(ByteArray::from).collect();
    columns.push(Column::with_gaps("text", Cells::Text(texts), present(&|fact| fact.text.is_some())));
    for (place, name) in ERRORS.into_iter().enumerate() {
        let errors = rows().filter_map(|(_, fact)| Some(fact.error?[place])).collect();
        columns.push(Column::with_gaps(name, Cells::F64(errors), present(&|fact| fact.error.is_some())));
    }
    table::encode(&columns)
}

/// The runs of a file that [`encode_chunk`] wrote; `path` is where it came from.
///
/// # Errors
/// It is damaged, or something else.
pub fn decode_chunk(
    axes: &[ChunkAxis],
    bytes: Vec<u8>,
    path: &Path,
) -> Result<Vec<ChunkRun>, RecordingError> {
    let columns = table::decode(bytes, path)?;
    let problem = "it is no part of this sweep: other columns, or others in them".to_owned();
    let damaged = || RecordingError::Damaged { path: path.to_owned(), problem };
    read(axes, columns).ok_or_else(damaged)
}

fn read(axes: &[ChunkAxis], columns: Vec<Column>) -> Option<Vec<ChunkRun>> {
    let mut columns = columns.into_iter();
    let mut next = |name: &str| columns.next().filter(|column| column.name == name);
    let places = next("run")?.into_u64()?;
    let labels = next("label")?.into_texts()?;
    let seeds = next("seed")?.into_u64()?;
    let mut of_axes = Vec::new();
    for axis in axes {
        of_axes.push(match axis.column() {
            None => seeds.iter().map(u64::to_string).collect(),
            Some(name) if axis.is_number => match next(&name)?.cells {
                Cells::I64(cells) => cells.iter().map(i64::to_string).collect(),
                _ => return None,
            },
            Some(name) => next(&name)?.into_texts()?,
        });
    }
    let kinds = next("kind")?.into_texts()?;
    let names = next("name")?.into_texts()?;
    let value = next("value")?;
    let Cells::F64(values) = value.cells else { return None };
    let values = spread(values.into_iter(), value.present)?;
    let text = next("text")?;
    let Cells::Text(texts) = text.cells else { return None };
    let texts = spread(texts.into_iter(), text.present)?;
    let mut errors = [Vec::new(), Vec::new()];
    for (name, errors) in ERRORS.into_iter().zip(&mut errors) {
        let column = next(name).map(|column| (column.cells, column.present));
        if let Some((Cells::F64(cells), present)) = column {
            *errors = spread(cells.into_iter(), present)?;
        }
    }
    let error = |row: usize| Some([(*errors[0].get(row)?)?, (*errors[1].get(row)?)?]);
    let mut runs: Vec<ChunkRun> = Vec::new();
    for (row, &run) in places.iter().enumerate() {
        if runs.last().is_none_or(|last| last.run != run) {
            let (label, seed) = (labels.get(row)?.clone(), *seeds.get(row)?);
            let values: Option<Vec<String>> =
                of_axes.iter().map(|cells: &Vec<String>| cells.get(row).cloned()).collect();
            runs.push(ChunkRun { run, label, seed, values: values?, facts: Vec::new() });
        }
        let kind =
            FactKind::ALL.into_iter().find(|kind| Some(kind.name()) == kinds.get(row).map(String::as_str))?;
        let text = match texts.get(row)? {
            Some(text) => Some(text.as_utf8().ok()?.to_owned()),
            None => None,
        };
        let fact =
            Fact { kind, name: names.get(row)?.clone(), value: *values.get(row)?, text, error: error(row) };
        runs.last_mut()?.facts.push(fact);
    }
    Some(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(name: &str, value: f64) -> Fact {
        Fact {
            kind: FactKind::Metric,
            name: name.to_owned(),
            value: Some(value),
            text: None,
            error: Some([0.25, f64::INFINITY]),
        }
    }

    fn run(run: u64, mem: &str, swappiness: &str, seed: u64, facts: Vec<Fact>) -> ChunkRun {
        let values = [mem, swappiness, &seed.to_string()].map(str::to_owned).to_vec();
        ChunkRun { run, label: format!("mem={mem}"), seed, values, facts }
    }

    fn axes() -> Vec<ChunkAxis> {
        let axis = |name: &str, values: &[&str]| {
            ChunkAxis::new(name, &values.iter().map(|&value| value.to_owned()).collect::<Vec<_>>())
        };
        vec![axis("mem", &["64M", "128"]), axis("vm.swappiness", &["0", "100"]), axis("seed", &["1", "2"])]
    }

    /// A run that failed has nothing but its error, one on an old kernel fewer counters: the columns are the same.
    #[test]
    fn runs_with_different_facts_have_one_table() {
        let failed = Fact {
            kind: FactKind::Run,
            name: "error".to_owned(),
            value: None,
            text: Some("größer".to_owned()),
            error: None,
        };
        let scanned = Fact {
            kind: FactKind::Vmstat,
            name: "pgscan_kswapd".to_owned(),
            value: Some(7.0),
            text: None,
            error: None,
        };
        let runs = [
            run(4, "64M", "0", 1, vec![number("hot_pages", 2560.0), scanned]),
            run(5, "64M", "100", u64::MAX, vec![failed]),
            run(6, "128", "0", 2, vec![number("hot_pages", -0.5)]),
        ];
        let bytes = encode_chunk(&axes(), &runs);
        assert_eq!(encode_chunk(&axes(), &runs), bytes);
        assert_eq!(decode_chunk(&axes(), bytes, Path::new("chunk.parquet")).unwrap(), runs);
        for part in [&runs[..1], &runs[1..2]] {
            let names: Vec<String> = table::decode(encode_chunk(&axes(), part), Path::new("c"))
                .unwrap()
                .into_iter()
                .map(|column| format!("{} {}", column.name, column.present.is_some()))
                .collect();
            let expected =
                ["run false", "label false", "seed false", "mem false", "vm.swappiness false", "kind false"];
            assert_eq!(names[..6], expected);
            assert_eq!(
                names[6..],
                ["name false", "value true", "text true", "median_error true", "p90_error true"]
            );
        }
    }

    #[test]
    fn an_axis_that_is_called_like_a_column_has_another_name() {
        let axis = ChunkAxis { name: "value".to_owned(), is_number: true };
        let one = ChunkRun { values: vec!["3".to_owned()], ..run(0, "", "", 1, vec![number("x", 1.0)]) };
        let bytes = encode_chunk(std::slice::from_ref(&axis), std::slice::from_ref(&one));
        assert_eq!(table::decode(bytes.clone(), Path::new("c")).unwrap()[3].name, "axis_value");
        assert_eq!(decode_chunk(&[axis], bytes, Path::new("c")).unwrap(), [one]);
    }

    #[test]
    fn another_file_is_refused() {
        let bytes = encode_chunk(&axes(), &[run(0, "64M", "0", 1, vec![number("x", 1.0)])]);
        let error = decode_chunk(&axes()[..1], bytes.clone(), Path::new("c")).unwrap_err();
        assert!(error.to_string().contains("no part of this sweep"), "{error}");
        for end in [0, 7, bytes.len() - 1] {
            decode_chunk(&axes(), bytes[..end].to_vec(), Path::new("c")).expect_err("its end is gone");
        }
    }
}
