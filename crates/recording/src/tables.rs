//! The tables of a recording as columns in memory: what its Parquet files hold, for who hands them to other
//! programs without a file between them.
//!
//! Left out: events, of which there may be too many for memory; [`crate::EventReader`] reads them chunk by chunk.
//! Neighbours: `files.rs` and `waits.rs` say which columns there are, `table.rs` writes them.

use crate::files::{sample_columns, series_columns};
use crate::table::{Cells, Column};
use crate::{Recording, waits};

/// A column with one cell for each row.
#[derive(Debug, Clone, PartialEq)]
pub struct TableColumn {
    /// Its name, unit last.
    pub name: String,
    /// Its cells.
    pub cells: TableCells,
}

/// What is in a column.
#[derive(Debug, Clone, PartialEq)]
pub enum TableCells {
    /// Whole numbers that all fit a signed one.
    I64(Vec<i64>),
    /// Whole numbers of which some do not.
    U64(Vec<u64>),
    /// Whole numbers, of which some are unknown.
    Gappy(Vec<Option<u64>>),
    /// Floats.
    F64(Vec<f64>),
    /// Texts.
    Text(Vec<String>),
}

impl Recording {
    /// Counters over time, as `series.parquet` has them: those that change.
    ///
    /// # Panics
    /// When a row of the series does not have one value for each column.
    pub fn series_table(&self) -> Vec<TableColumn> {
        public(series_columns(&self.series))
    }

    /// Samples, as `samples.parquet` has them: name and value.
    pub fn samples_table(&self) -> Vec<TableColumn> {
        public(sample_columns(&self.samples))
    }

    /// Who waited for what, as `waits.parquet` has it.
    pub fn waits_table(&self) -> Vec<TableColumn> {
        public(waits::columns(&self.waits))
    }
}

fn public(columns: Vec<Column>) -> Vec<TableColumn> {
    columns.into_iter().map(TableColumn::from).collect()
}

impl From<Column> for TableColumn {
    fn from(column: Column) -> Self {
        let name = column.name.clone();
        let cells = match (column.cells, column.present) {
            (Cells::I64(cells), None) => TableCells::I64(cells),
            (Cells::U64(cells), None) => TableCells::U64(cells.into_iter().map(i64::cast_unsigned).collect()),
            (Cells::F64(cells), None) => TableCells::F64(cells),
            (cells @ Cells::Text(_), None) => {
                TableCells::Text(Column::new(&name, cells).into_texts().expect("made of texts"))
            }
            (cells, present) => {
                let column = Column { name: name.clone(), cells, present };
                TableCells::Gappy(column.into_gappy_u64().expect("only whole numbers have gaps here"))
            }
        };
        Self { name, cells }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::layout::SERIES;
    use crate::{Series, Wait, WaitKind, table};

    fn recording() -> Recording {
        let names = ["nr_free_pages", "pgscan_kswapd"].map(String::from).to_vec();
        let wait = Wait {
            task: "stream".to_owned(),
            wait: "folio_wait_locked".to_owned(),
            kind: WaitKind::Io,
            count: 3,
            spent_ns: 1500,
            longest_ns: 700,
            lengths: [(9, 3)].into(),
            ..Wait::default()
        };
        Recording {
            series: Series::new(names, vec![(0, vec![900, 0]), (10, vec![u64::MAX, 32])]),
            samples: [("latency_us".to_owned(), vec![1.5, 2.5])].into(),
            waits: vec![wait],
            ..Recording::new("run", "none", "sim", "linux-6.12", 1)
        }
    }

    #[test]
    fn a_table_in_memory_is_that_of_the_file() {
        let recording = recording();
        let bytes = table::encode(&series_columns(&recording.series));
        let read = table::decode(bytes, Path::new(SERIES)).unwrap();
        assert_eq!(public(read), recording.series_table());
        let cells: Vec<TableCells> =
            recording.series_table().into_iter().map(|column| column.cells).collect();
        let pages = TableCells::U64(vec![900, u64::MAX]);
        assert_eq!(cells, [TableCells::I64(vec![0, 10]), pages, TableCells::I64(vec![0, 32])]);
    }

    #[test]
    fn what_is_not_known_is_no_number() {
        let waits = recording().waits_table();
        let requested = waits.iter().find(|column| column.name == "requested_ns").unwrap();
        assert_eq!(requested.cells, TableCells::Gappy(vec![None]));
        let samples = recording().samples_table();
        assert_eq!(samples[0].cells, TableCells::Text(vec!["latency_us".to_owned(); 2]));
        assert_eq!(samples[1].cells, TableCells::F64(vec![1.5, 2.5]));
    }
}
