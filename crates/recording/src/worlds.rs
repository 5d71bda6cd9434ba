//! Random worlds, run for real and on the model, as one Parquet file: a row for each counter of each world.
//!
//! | column | what it is |
//! |---|---|
//! | `world` | `KERNEL/SEED`: its name |
//! | `seed` | what it was drawn from |
//! | `kernel` | what ran for real; of worlds on the model alone, the model |
//! | `workload` | the workload |
//! | `scope` | `limit` where a cgroup's limit is below the memory of the machine, else `global` |
//! | `kind` | `metric`, `vmstat`, `memcg`, or `run` for what is said of the runs |
//! | `counter` | the metric or counter; of a cgroup `PATH:COUNTER` |
//! | `real_1`, `real_2`, ... | what it was in each run on the real kernel; empty where there is none |
//! | `model_1`, `model_2`, ... | the same of the model, one for each seed |
//! | `class` | how near they are; empty where nothing is judged |
//! | `error` | by how much the model is off the nearest real run, as a part of it; infinite where that has none |
//! | `text` | what it says, where it is a text |
//!
//! The same rows give the same bytes. Left out: what a class means, which is the judge's. Neighbours: `chunk.rs`, the
//! rows of a sweep; `table.rs` writes the columns.

use std::path::Path;

use parquet::data_type::ByteArray;

use crate::RecordingError;
use crate::disk::{read_file, write_whole};
use crate::table::{self, Cells, Column, spread};

/// A row of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct WorldRow {
    /// What the world was drawn from.
    pub seed: u64,
    /// The kernel.
    pub kernel: String,
    /// The workload.
    pub workload: String,
    /// Whose room is short.
    pub scope: String,
    /// What the row is about.
    pub kind: String,
    /// The metric or counter.
    pub counter: String,
    /// Real values.
    pub real: Vec<f64>,
    /// Values of the model.
    pub model: Vec<f64>,
    /// How near they are.
    pub class: String,
    /// By how much the model is off.
    pub error: Option<f64>,
    /// What it says.
    pub text: Option<String>,
}

/// The bytes of the file with these rows.
pub fn encode_worlds(rows: &[WorldRow]) -> Vec<u8> {
    let texts = |name: &str, cell: fn(&WorldRow) -> &str| Column::of_texts(name, rows.iter().map(cell));
    let names: Vec<String> = rows.iter().map(|row| format!("{}/{}", row.kernel, row.seed)).collect();
    let mut columns = vec![
        Column::of_texts("world", names.iter().map(String::as_str)),
        Column::new("seed", Cells::U64(rows.iter().map(|row| row.seed.cast_signed()).collect())),
        texts("kernel", |row| &row.kernel),
        texts("workload", |row| &row.workload),
        texts("scope", |row| &row.scope),
        texts("kind", |row| &row.kind),
        texts("counter", |row| &row.counter),
    ];
    columns.extend(numbered("real", rows, |row| &row.real));
    columns.extend(numbered("model", rows, |row| &row.model));
    columns.push(texts("class", |row| &row.class));
    columns.push(gappy("error", rows.iter().map(|row| row.error)));
    let told = rows.iter().filter_map(|row| row.text.as_deref()).map(ByteArray::from).collect();
    let present = rows.iter().map(|row| i16::from(row.text.is_some())).collect();
    columns.push(Column::with_gaps("text", Cells::Text(told), present));
    table::encode(&columns)
}

/// Writes these rows to a file, which replaces one that was there.
///
/// # Errors
/// The system refuses.
pub fn write_worlds(path: &Path, rows: &[WorldRow]) -> Result<(), RecordingError> {
    write_whole(path, &encode_worlds(rows))
}

/// The rows of a file.
///
/// # Errors
/// It cannot be read, or as [`decode_worlds`].
pub fn read_worlds(path: &Path) -> Result<Vec<WorldRow>, RecordingError> {
    decode_worlds(read_file(path)?, path)
}

fn gappy(name: &str, values: impl Iterator<Item = Option<f64>> + Clone) -> Column {
    let present = values.clone().map(|value| i16::from(value.is_some())).collect();
    Column::with_gaps(name, Cells::F64(values.flatten().collect()), present)
}

/// A column for each of the values that a row has at most.
fn numbered(side: &str, rows: &[WorldRow], of: fn(&WorldRow) -> &Vec<f64>) -> Vec<Column> {
    let most = rows.iter().map(|row| of(row).len()).max().unwrap_or(0);
    let column = |place: usize| {
        gappy(&format!("{side}_{}", place + 1), rows.iter().map(move |row| of(row).get(place).copied()))
    };
    (0..most).map(column).collect()
}

/// The rows of a file that [`encode_worlds`] wrote; `path` is where it came from.
///
/// # Errors
/// It is damaged, or something else.
pub fn decode_worlds(bytes: Vec<u8>, path: &Path) -> Result<Vec<WorldRow>, RecordingError> {
    let columns = table::decode(bytes, path)?;
    let problem = "it is no table of worlds: other columns, or others in them".to_owned();
    read(columns).ok_or_else(|| RecordingError::Damaged { path: path.to_owned(), problem })
}

fn read(columns: Vec<Column>) -> Option<Vec<WorldRow>> {
    let mut columns = columns.into_iter().peekable();
    let mut texts = |name: &str| columns.next().filter(|column| column.name == name)?.into_texts();
    texts("world")?;
    let Cells::U64(seeds) = columns.next().filter(|column| column.name == "seed")?.cells else { return None };
    let mut texts = |name: &str| columns.next().filter(|column| column.name == name)?.into_texts();
    let [kernels, workloads, scopes, kinds, counters] =
        ["kernel", "workload", "scope", "kind", "counter"].map(&mut texts);
    let (kernels, workloads, scopes) = (kernels?, workloads?, scopes?);
    let (kinds, counters) = (kinds?, counters?);
    let mut sides = [Vec::new(), Vec::new()];
    for (side, values) in ["real_", "model_"].into_iter().zip(&mut sides) {
        while let Some(column) = columns.next_if(|column| column.name.starts_with(side)) {
            values.push(floats(column)?);
        }
    }
    let mut texts = |name: &str| columns.next().filter(|column| column.name == name)?.into_texts();
    let classes = texts("class")?;
    let errors = floats(columns.next().filter(|column| column.name == "error")?)?;
    let told = columns.next().filter(|column| column.name == "text")?;
    let Cells::Text(cells) = told.cells else { return None };
    let told = spread(cells.into_iter(), told.present)?;
    let row = |place: usize| {
        let [real, model] =
            sides.each_ref().map(|side| side.iter().filter_map(|column: &Vec<_>| column[place]).collect());
        let text = match told.get(place)? {
            Some(text) => Some(text.as_utf8().ok()?.to_owned()),
            None => None,
        };
        Some(WorldRow {
            seed: seeds[place].cast_unsigned(),
            kernel: kernels.get(place)?.clone(),
            workload: workloads.get(place)?.clone(),
            scope: scopes.get(place)?.clone(),
            kind: kinds.get(place)?.clone(),
            counter: counters.get(place)?.clone(),
            real,
            model,
            class: classes.get(place)?.clone(),
            error: *errors.get(place)?,
            text,
        })
    };
    (0..seeds.len()).map(row).collect()
}

fn floats(column: Column) -> Option<Vec<Option<f64>>> {
    let Cells::F64(cells) = column.cells else { return None };
    spread(cells.into_iter(), column.present)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<WorldRow> {
        let row = |seed, counter: &str, real: &[f64], model: &[f64], error| WorldRow {
            seed,
            kernel: "uml:6.12".to_owned(),
            workload: "hot-and-stream".to_owned(),
            scope: "limit".to_owned(),
            kind: "vmstat".to_owned(),
            counter: counter.to_owned(),
            real: real.to_vec(),
            model: model.to_vec(),
            class: "beyond".to_owned(),
            error,
            text: None,
        };
        let mut rows = vec![
            row(17, "pswpin", &[0.0, 0.0], &[900.0], Some(f64::INFINITY)),
            row(u64::MAX, "pgscan_direct", &[], &[3.0], None),
        ];
        rows[1].text = Some("killed `hot`".to_owned());
        rows
    }

    #[test]
    fn rows_read_back_equal_and_have_the_same_bytes_again() {
        for rows in [rows(), Vec::new()] {
            let bytes = encode_worlds(&rows);
            assert_eq!(encode_worlds(&rows), bytes);
            assert_eq!(decode_worlds(bytes, Path::new("worlds.parquet")).unwrap(), rows);
        }
    }

    #[test]
    fn another_table_is_none_of_worlds() {
        let other = table::encode(&[Column::of_u64("time_ns", [1].into_iter())]);
        let error = decode_worlds(other, Path::new("series.parquet")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "`series.parquet` is no table that can be read: it is no table of worlds: other columns, or others in \
             them"
        );
        let bytes = encode_worlds(&rows());
        for end in 0..bytes.len() {
            decode_worlds(bytes[..end].to_vec(), Path::new("worlds.parquet")).expect_err("its end is gone");
        }
    }
}
