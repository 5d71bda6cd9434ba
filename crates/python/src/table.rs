//! Tables for other programs, by Arrow's PyCapsule interface: pandas, polars, DuckDB and pyarrow take them as they
//! are, without a copy and without this package knowing any of them.
//!
//! A table is made once, when somebody asks for it. Each stream that is handed out refers to the same memory, which
//! lives until the last reader has let go of it. Left out: nested columns, chunks, casts to a schema that the reader
//! wishes (the interface lets a producer ignore that).

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray, UInt64Array,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use recording::tables::{TableCells, TableColumn};

/// A table of named columns, which pandas, polars, DuckDB and pyarrow read without a copy.
#[pyclass(frozen, module = "pagetide")]
#[derive(Debug, Clone)]
pub(crate) struct Table {
    batch: RecordBatch,
}

/// What a column of a CSV text holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Texts, which may be empty.
    Name,
    /// Texts, or none.
    Text,
    /// Whole numbers.
    Count,
    /// Floats.
    Number,
    /// Floats, and words such as verdicts, which are in a column `text` of their own.
    NumberOrText,
}

impl Table {
    /// The table that these columns make.
    ///
    /// # Panics
    /// When columns differ in their number of rows: a bug of whoever made them.
    pub(crate) fn of(columns: Vec<TableColumn>) -> Self {
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().map(column).unzip();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
        Self { batch: batch.expect("the columns have a cell for each row") }
    }

    /// The table that this batch is: of the types that [`column`] makes.
    pub(crate) const fn of_batch(batch: RecordBatch) -> Self {
        Self { batch }
    }

    /// The table that a text of CSV holds, each column of the kind that `kind` says; an empty cell is none, but for
    /// [`Kind::Name`].
    ///
    /// # Panics
    /// When it is no CSV, or a cell is not of its kind: a bug of whoever wrote it.
    pub(crate) fn of_csv(text: &str, kind: impl Fn(&str) -> Kind) -> Self {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let names: Vec<String> =
            reader.headers().expect("a text of ours").iter().map(str::to_owned).collect();
        let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a text of ours")).collect();
        let column = |name: &String, place: usize, kind: Kind| {
            let cells = rows.iter().map(|row| Some(&row[place]).filter(|cell| !cell.is_empty()));
            let bad = |cell: &str| -> ! { panic!("`{cell}` in column `{name}`") };
            let (gappy, array): (bool, ArrayRef) = match kind {
                Kind::Name => {
                    let all = cells.map(Option::unwrap_or_default);
                    (false, Arc::new(StringArray::from_iter_values(all)))
                }
                Kind::Text => (true, Arc::new(cells.collect::<StringArray>())),
                Kind::Count => {
                    let read = |cell: &str| cell.parse::<u64>().unwrap_or_else(|_| bad(cell));
                    (true, Arc::new(cells.map(|cell| cell.map(read)).collect::<UInt64Array>()))
                }
                Kind::Number => {
                    let read = |cell: &str| cell.parse::<f64>().unwrap_or_else(|_| bad(cell));
                    (true, Arc::new(cells.map(|cell| cell.map(read)).collect::<Float64Array>()))
                }
                Kind::NumberOrText => {
                    let read = |cell: &str| cell.parse::<f64>().ok();
                    (true, Arc::new(cells.map(|cell| cell.and_then(read)).collect::<Float64Array>()))
                }
            };
            (Field::new(name, array.data_type().clone(), gappy), array)
        };
        let words = |place: usize| {
            let cells = rows.iter().map(|row| Some(&row[place]).filter(|cell| !cell.is_empty()));
            let words = cells.map(|cell| cell.filter(|cell| cell.parse::<f64>().is_err()));
            let array: ArrayRef = Arc::new(words.collect::<StringArray>());
            (Field::new("text", array.data_type().clone(), true), array)
        };
        let columns = names.iter().enumerate().flat_map(|(place, name)| match kind(name) {
            Kind::NumberOrText => vec![column(name, place, Kind::NumberOrText), words(place)],
            kind => vec![column(name, place, kind)],
        });
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.unzip();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
        Self { batch: batch.expect("a cell for each row") }
    }

    /// The tidy table that the command line writes of runs: a row for each number, or verdict.
    pub(crate) fn of_runs(text: &str) -> Self {
        Self::of_csv(text, |name| match name {
            "seed" => Kind::Count,
            "value" => Kind::NumberOrText,
            "index" => Kind::Text,
            _ => Kind::Name,
        })
    }

    /// The row of a cell in Python.
    fn cell<'py>(&self, py: Python<'py>, column: usize, row: usize) -> PyResult<Bound<'py, PyAny>> {
        let array = self.batch.column(column);
        if array.is_null(row) {
            return Ok(py.None().into_bound(py));
        }
        let any = array.as_any();
        if let Some(cells) = any.downcast_ref::<Int64Array>() {
            return Ok(cells.value(row).into_pyobject(py)?.into_any());
        }
        if let Some(cells) = any.downcast_ref::<UInt64Array>() {
            return Ok(cells.value(row).into_pyobject(py)?.into_any());
        }
        if let Some(cells) = any.downcast_ref::<Float64Array>() {
            return Ok(cells.value(row).into_pyobject(py)?.into_any());
        }
        let cells = any.downcast_ref::<StringArray>().expect("there are no other columns");
        Ok(cells.value(row).into_pyobject(py)?.into_any())
    }

    fn cells<'py>(&self, py: Python<'py>, column: usize) -> PyResult<Bound<'py, PyList>> {
        let cells: PyResult<Vec<_>> =
            (0..self.batch.num_rows()).map(|row| self.cell(py, column, row)).collect();
        PyList::new(py, cells?)
    }
}

fn column(column: TableColumn) -> (Field, ArrayRef) {
    let TableColumn { name, cells } = column;
    let (kind, gappy, array): (DataType, bool, ArrayRef) = match cells {
        TableCells::I64(cells) => (DataType::Int64, false, Arc::new(Int64Array::from(cells))),
        TableCells::U64(cells) => (DataType::UInt64, false, Arc::new(UInt64Array::from(cells))),
        TableCells::Gappy(cells) => {
            // Signed where all fit, as in the file.
            let signed = |cell: &Option<u64>| cell.map(i64::try_from).transpose();
            match cells.iter().map(signed).collect::<Result<Int64Array, _>>() {
                Ok(cells) => (DataType::Int64, true, Arc::new(cells)),
                Err(_) => (DataType::UInt64, true, Arc::new(UInt64Array::from(cells))),
            }
        }
        TableCells::F64(cells) => (DataType::Float64, false, Arc::new(Float64Array::from(cells))),
        TableCells::Text(cells) => (DataType::Utf8, false, Arc::new(StringArray::from(cells))),
    };
    (Field::new(name, kind, gappy), array)
}

fn unexpected(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

#[pymethods]
impl Table {
    /// Names of the columns, in their order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// The cells of a column as a list.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let place = self.batch.schema().index_of(name).map_err(|_| PyKeyError::new_err(name.to_owned()))?;
        self.cells(py, place)
    }

    /// The table as a dictionary of columns, each a list.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let table = PyDict::new(py);
        for (place, field) in self.batch.schema().fields().iter().enumerate() {
            table.set_item(field.name(), self.cells(py, place)?)?;
        }
        Ok(table)
    }

    /// The table as a list of rows, each a dictionary.
    fn to_rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let schema = self.batch.schema();
        let row = |row: usize| {
            let cells = PyDict::new(py);
            for (place, field) in schema.fields().iter().enumerate() {
                cells.set_item(field.name(), self.cell(py, place, row)?)?;
            }
            Ok(cells)
        };
        let rows: PyResult<Vec<_>> = (0..self.batch.num_rows()).map(row).collect();
        PyList::new(py, rows?)
    }

    fn __repr__(&self) -> String {
        format!("<pagetide.Table of {} rows: {}>", self.batch.num_rows(), self.columns().join(", "))
    }

    /// Arrow's PyCapsule interface: the schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref()).map_err(unexpected)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Arrow's PyCapsule interface: the table as a stream of one batch.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema; // A producer may hand out its own schema, and the reader casts.
        let batches = [Ok(self.batch.clone())];
        let reader = RecordBatchIterator::new(batches.into_iter(), self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }
}
