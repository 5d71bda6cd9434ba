//! Tables as Parquet files, in memory: named columns of numbers and texts, and back.
//!
//! A file has one group of rows, compressed by Snappy: integers as differences (`DELTA_BINARY_PACKED`), texts
//! by a dictionary, floats as they are. No clock, no version of a library and no hash order come into it: the
//! same table gives the same bytes.
//!
//! Left out: nested columns, statistics. Next: `files.rs` and `event_files.rs`, whose tables these are; `trace.rs`,
//! whose files have several groups of rows; `packed.rs`, columns whose places in a dictionary are known; `delta.rs`,
//! differences.

use std::io::Write;
use std::panic::UnwindSafe;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaDataPtr;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use crate::RecordingError;
use crate::delta;
use crate::packed::{self, Chosen, Dictionary};

/// Cells of a group of rows at most, where the file is small: a run of equal cells takes a few bytes, however long.
const CELLS_MAX: u64 = 1 << 25;
/// Cells for each byte of a larger file: as many as a counter has that stands still.
const CELLS_OF_A_BYTE: u64 = 32;

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) cells: Cells,
    /// For each row whether it has a cell, 1, or none, 0; `None` where every row has one, or the cells say it.
    pub(crate) present: Option<Vec<i16>>,
}

/// What is in a column, without the rows that have nothing.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cells {
    /// Unsigned below 256.
    U8(Vec<i32>),
    /// Unsigned, the bits of a `u32`.
    U32(Vec<i32>),
    /// Signed.
    I64(Vec<i64>),
    /// Unsigned, the bits of a `u64`.
    U64(Vec<i64>),
    /// Floats to the bit.
    F64(Vec<f64>),
    /// UTF-8.
    Text(Vec<ByteArray>),
    /// Cells of a dictionary by their places there; read back as what they are.
    Chosen(Chosen),
}

impl Column {
    /// A column in which every row has a cell.
    pub(crate) fn new(name: &str, cells: Cells) -> Self {
        Self { name: name.to_owned(), cells, present: None }
    }

    /// A column in which some rows have no cell.
    pub(crate) fn with_gaps(name: &str, cells: Cells, present: Vec<i16>) -> Self {
        Self { name: name.to_owned(), cells, present: Some(present) }
    }

    /// A column of whole numbers that are not negative: signed in the file, as programs like it best, unless one
    /// is too large for that.
    pub(crate) fn of_u64(name: &str, values: impl Iterator<Item = u64>) -> Self {
        let cells: Vec<i64> = values.map(u64::cast_signed).collect();
        let fits = cells.iter().all(|&cell| cell >= 0);
        Self::new(name, if fits { Cells::I64(cells) } else { Cells::U64(cells) })
    }

    /// A column of texts.
    pub(crate) fn of_texts<'a>(name: &str, values: impl Iterator<Item = &'a str>) -> Self {
        Self::new(name, Cells::Text(values.map(ByteArray::from).collect()))
    }

    /// The numbers of a column as [`Column::of_u64`] makes it; `None` for any other.
    pub(crate) fn into_u64(self) -> Option<Vec<u64>> {
        match (self.cells, self.present) {
            (Cells::I64(cells), None) => cells.into_iter().map(|cell| u64::try_from(cell).ok()).collect(),
            (Cells::U64(cells), None) => Some(cells.into_iter().map(i64::cast_unsigned).collect()),
            _ => None,
        }
    }

    /// The numbers of a column of [`Column::of_u64`] that may have gaps.
    pub(crate) fn into_gappy_u64(mut self) -> Option<Vec<Option<u64>>> {
        let present = self.present.take();
        spread(self.into_u64()?.into_iter(), present)
    }

    /// The texts of a column as [`Column::of_texts`] makes it; `None` for any other.
    pub(crate) fn into_texts(self) -> Option<Vec<String>> {
        match (self.cells, self.present) {
            (Cells::Text(cells), None) => {
                cells.iter().map(|cell| cell.as_utf8().ok().map(str::to_owned)).collect()
            }
            _ => None,
        }
    }

    fn rows(&self) -> usize {
        self.present.as_ref().map_or_else(|| self.cells.len(), Vec::len)
    }

    /// Whether there are rows, and each has a cell.
    fn is_plain(&self) -> bool {
        self.present.is_none() && self.rows() > 0
    }

    fn schema(&self) -> TypePtr {
        let (physical, logical) = match &self.cells {
            Cells::U8(_) | Cells::Chosen(Chosen { dictionary: Dictionary::U8(_), .. }) => {
                (Physical::INT32, Some(LogicalType::integer(8, false)))
            }
            Cells::U32(_) => (Physical::INT32, Some(LogicalType::integer(32, false))),
            Cells::I64(_) => (Physical::INT64, None),
            Cells::U64(_) => (Physical::INT64, Some(LogicalType::integer(64, false))),
            Cells::F64(_) => (Physical::DOUBLE, None),
            Cells::Text(_) | Cells::Chosen(Chosen { dictionary: Dictionary::Text(_), .. }) => {
                (Physical::BYTE_ARRAY, Some(LogicalType::String))
            }
        };
        let has_gaps = match &self.cells {
            Cells::Chosen(chosen) => chosen.has_gaps,
            _ => self.present.is_some(),
        };
        let repetition = if has_gaps { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let column = Type::primitive_type_builder(&self.name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition);
        Arc::new(column.build().expect("logical types are of their physical ones"))
    }
}

impl Cells {
    fn len(&self) -> usize {
        match self {
            Self::U8(cells) | Self::U32(cells) => cells.len(),
            Self::I64(cells) | Self::U64(cells) => cells.len(),
            Self::F64(cells) => cells.len(),
            Self::Text(cells) => cells.len(),
            Self::Chosen(chosen) => chosen.rows(),
        }
    }
}

/// A cell for each row that has one; `None` when there are fewer cells than such rows.
pub(crate) fn spread<T>(
    mut cells: impl Iterator<Item = T>,
    present: Option<Vec<i16>>,
) -> Option<Vec<Option<T>>> {
    let Some(present) = present else { return Some(cells.map(Some).collect()) };
    present.into_iter().map(|level| if level == 0 { Some(None) } else { cells.next().map(Some) }).collect()
}

/// How tables are written: nothing in it depends on the machine, the time or the library's version.
static PROPERTIES: LazyLock<Arc<WriterProperties>> = LazyLock::new(|| {
    let properties = WriterProperties::builder()
        .set_created_by("pagetide".to_owned())
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(None)
        .set_dictionary_enabled(false);
    Arc::new(properties.build())
});

/// [`PROPERTIES`] with the encodings of these columns.
pub(crate) fn properties(columns: &[Column]) -> Arc<WriterProperties> {
    let mut properties = (**PROPERTIES).clone().into_builder();
    for column in columns {
        let path = ColumnPath::new(vec![column.name.clone()]);
        properties = match column.cells {
            Cells::Text(_) => properties.set_column_dictionary_enabled(path, true),
            Cells::F64(_) | Cells::Chosen(..) => properties,
            _ => properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
        };
    }
    Arc::new(properties.build())
}

/// The bytes of a Parquet file with these columns.
///
/// # Panics
/// When columns differ in their number of rows or two have one name.
pub(crate) fn encode(columns: &[Column]) -> Vec<u8> {
    let rows = columns.first().map_or(0, Column::rows);
    assert!(columns.iter().all(|column| column.rows() == rows), "columns of different length");
    written(columns).expect("memory takes every write")
}

/// What a file says of columns like these.
pub(crate) fn schema(columns: &[Column]) -> TypePtr {
    let fields = columns.iter().map(Column::schema).collect();
    Arc::new(Type::group_type_builder("table").with_fields(fields).build().expect("columns make a table"))
}

fn written(columns: &[Column]) -> Result<Vec<u8>, ParquetError> {
    let mut file = SerializedFileWriter::new(Vec::new(), schema(columns), properties(columns))?;
    write_group(&mut file, columns)?;
    file.into_inner()
}

/// Writes columns as the next group of rows of a file whose [`schema`] they have.
pub(crate) fn write_group<W: Write + Send>(
    file: &mut SerializedFileWriter<W>,
    columns: &[Column],
) -> Result<RowGroupMetaDataPtr, ParquetError> {
    let schema = file.schema_descr().clone();
    let mut group = file.next_row_group()?;
    for (place, column) in columns.iter().enumerate() {
        let present = column.present.as_deref();
        let described = || schema.column(place);
        match &column.cells {
            Cells::U32(cells) if column.is_plain() => append(&mut group, delta::chunk(described(), cells))?,
            Cells::I64(cells) | Cells::U64(cells) if column.is_plain() => {
                append(&mut group, delta::chunk(described(), cells))?;
            }
            Cells::U8(cells) | Cells::U32(cells) => write::<Int32Type, W>(&mut group, cells, present)?,
            Cells::I64(cells) | Cells::U64(cells) => write::<Int64Type, W>(&mut group, cells, present)?,
            Cells::F64(cells) => write::<DoubleType, W>(&mut group, cells, present)?,
            Cells::Text(cells) => write::<ByteArrayType, W>(&mut group, cells, present)?,
            Cells::Chosen(chosen) => append(&mut group, packed::chunk(described(), chosen))?,
        }
    }
    group.close()
}

fn append<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    chunk: Result<(Bytes, ColumnCloseResult), ParquetError>,
) -> Result<(), ParquetError> {
    let (bytes, chunk) = chunk?;
    group.append_column(&bytes, chunk)
}

fn write<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    cells: &[T::T],
    present: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("the schema has a place for each column");
    column.typed::<T>().write_batch(cells, present, None)?;
    column.close()
}

/// The columns of the Parquet file in `bytes`; `path` is where they came from.
///
/// # Errors
/// No Parquet file, a damaged one, or one with columns that are not numbers or texts.
pub(crate) fn decode(bytes: Vec<u8>, path: &Path) -> Result<Vec<Column>, RecordingError> {
    let broken = |problem: String| RecordingError::Damaged { path: path.to_owned(), problem };
    guarded(|| read(bytes)).map_err(broken)
}

/// What `read` gives, or what the matter is: lengths in a damaged file can be anything, and the library counts
/// with them.
pub(crate) fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError> + UnwindSafe) -> Result<T, String> {
    match std::panic::catch_unwind(read) {
        Ok(Ok(columns)) => Ok(columns),
        Ok(Err(ParquetError::General(problem) | ParquetError::EOF(problem))) => Err(problem),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("its parts contradict each other".to_owned()),
    }
}

fn read(bytes: Vec<u8>) -> Result<Vec<Column>, ParquetError> {
    let length = bytes.len() as u64;
    let file = SerializedFileReader::new(Bytes::from(bytes))?;
    if file.num_row_groups() != 1 {
        return Err(ParquetError::General(format!(
            "{} groups of rows instead of one",
            file.num_row_groups()
        )));
    }
    read_group(&*file.get_row_group(0)?, length)
}

/// The columns of a group of rows in a file of so many bytes.
pub(crate) fn read_group(group: &dyn RowGroupReader, bytes: u64) -> Result<Vec<Column>, ParquetError> {
    let cells = group.metadata().columns().iter().map(|column| column.num_values().unsigned_abs());
    check_cells(cells.fold(0, u64::saturating_add), bytes)?;
    let columns =
        (0..group.num_columns()).map(|place| read_column(group, place)).collect::<Result<_, _>>()?;
    of_one_length(columns)
}

fn check_cells(cells: u64, bytes: u64) -> Result<(), ParquetError> {
    let most = bytes.saturating_mul(CELLS_OF_A_BYTE).max(CELLS_MAX);
    if cells <= most {
        return Ok(());
    }
    Err(ParquetError::General(format!(
        "it has {cells} cells, and no table of {bytes} bytes has more than {most}"
    )))
}

/// Each column says by itself how many rows it has.
fn of_one_length(columns: Vec<Column>) -> Result<Vec<Column>, ParquetError> {
    let mut others = columns.iter().skip_while(|column| column.rows() == columns[0].rows());
    match others.next() {
        None => Ok(columns),
        Some(other) => Err(ParquetError::General(format!(
            "`{}` has {} rows, and `{}` {}",
            columns[0].name,
            columns[0].rows(),
            other.name,
            other.rows()
        ))),
    }
}

fn read_column(group: &dyn RowGroupReader, place: usize) -> Result<Column, ParquetError> {
    let chunk = group.metadata().column(place);
    let described = chunk.column_descr_ptr();
    let rows =
        usize::try_from(chunk.num_values()).map_err(|_| ParquetError::General("no rows".to_owned()))?;
    if described.max_rep_level() > 0 || described.max_def_level() > 1 {
        return Err(ParquetError::General(format!("`{}` is nested", described.name())));
    }
    let mut present = (described.max_def_level() == 1).then(Vec::new);
    let levels = present.as_mut();
    let unsigned = |bits| described.logical_type_ref() == Some(&LogicalType::integer(bits, false));
    let cells = match group.get_column_reader(place)? {
        ColumnReader::Int32ColumnReader(reader) if unsigned(8) => Cells::U8(cells(reader, rows, levels)?),
        ColumnReader::Int32ColumnReader(reader) if unsigned(32) => Cells::U32(cells(reader, rows, levels)?),
        ColumnReader::Int64ColumnReader(reader) if unsigned(64) => Cells::U64(cells(reader, rows, levels)?),
        ColumnReader::Int64ColumnReader(reader) => Cells::I64(cells(reader, rows, levels)?),
        ColumnReader::DoubleColumnReader(reader) => Cells::F64(cells(reader, rows, levels)?),
        ColumnReader::ByteArrayColumnReader(reader) => Cells::Text(cells(reader, rows, levels)?),
        _ => return Err(ParquetError::General(format!("`{}` is of no known type", described.name()))),
    };
    let column = Column { name: described.name().to_owned(), cells, present };
    if column.rows() == rows { Ok(column) } else { Err(ParquetError::EOF("rows are missing".to_owned())) }
}

fn cells<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
    levels: Option<&mut Vec<i16>>,
) -> Result<Vec<T::T>, ParquetError> {
    let mut cells = Vec::new();
    reader.read_records(rows, levels, None, &mut cells)?;
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::Run;

    fn texts<const N: usize>(texts: [&str; N]) -> Cells {
        Cells::Text(texts.map(ByteArray::from).to_vec())
    }

    fn table() -> Vec<Column> {
        vec![
            Column::of_u64("time_ns", [0, 100_000_000, 200_000_000].into_iter()),
            Column::of_u64("most", [0, u64::MAX, 7].into_iter()),
            Column::new("share", Cells::F64(vec![0.5, -0.0, f64::INFINITY])),
            Column::with_gaps("task", texts(["kswapd0", "größe, \"x\""]), vec![1, 0, 1]),
            Column::with_gaps("node", Cells::U8(vec![255]), vec![0, 1, 0]),
            Column::new("pages", Cells::U32(vec![1, -1, 512])),
            Column::new("event", texts(["a", "a", "b"])),
        ]
    }

    /// What is written packed is read as any other column, by whatever program: nothing but its encoding differs.
    #[test]
    fn packed_columns_read_back_as_what_they_are() {
        for (count, different) in [(0, 0), (1, 1), (7, 3), (1000, 1), (1000, 300), (20_000, 9)] {
            let numbers: Vec<u32> = (0..count).map(|row| (row * row / 40) % different.max(1)).collect();
            let words: Vec<ByteArray> =
                (0..different).map(|word| ByteArray::from(&*word.to_string())).collect();
            let bytes: Vec<i32> = (0..different.min(256)).map(|cell| cell as i32).collect();
            let small: Vec<u32> = numbers.iter().map(|number| number % 256).collect();
            let gaps: Vec<i16> = numbers
                .iter()
                .flat_map(|number| if number.is_multiple_of(2) { vec![0, 1] } else { vec![1] })
                .collect();
            let all = vec![1; numbers.len()];
            for present in [None, Some(all), Some(gaps)] {
                let rows = present.as_ref().map_or(numbers.len(), Vec::len) as u64;
                let time = Column::of_u64("time_ns", 0..rows);
                let chosen = |name: &str, dictionary, numbers: &Vec<u32>| {
                    let places = spread(numbers.iter().copied(), present.clone()).unwrap().into_iter();
                    let runs = places.map(|place| Run { place, rows: 1 }).collect();
                    Column::new(name, Cells::Chosen(Chosen { dictionary, runs, has_gaps: present.is_some() }))
                };
                let table = vec![
                    time.clone(),
                    chosen("word", Dictionary::Text(words.clone()), &numbers),
                    chosen("byte", Dictionary::U8(bytes.clone()), &small),
                ];
                let of_words = numbers.iter().map(|&number| words[number as usize].clone()).collect();
                let of_bytes = small.iter().map(|&number| bytes[number as usize]).collect();
                let [word, byte] = [("word", Cells::Text(of_words)), ("byte", Cells::U8(of_bytes))]
                    .map(|(name, cells)| Column { name: name.to_owned(), cells, present: present.clone() });
                assert_eq!(
                    decode_here(encode(&table)).unwrap(),
                    [time, word, byte],
                    "{count} of {different}"
                );
            }
        }
    }

    fn decode_here(bytes: Vec<u8>) -> Result<Vec<Column>, RecordingError> {
        decode(bytes, Path::new("t.parquet"))
    }

    #[test]
    fn tables_read_back_equal_and_have_the_same_bytes_again() {
        let bytes = encode(&table());
        assert_eq!(encode(&table()), bytes);
        assert_eq!(&bytes[..4], b"PAR1");
        assert_eq!(decode_here(bytes).unwrap(), table());
        let empty = vec![Column::of_u64("time_ns", std::iter::empty())];
        assert_eq!(decode_here(encode(&empty)).unwrap(), empty);
    }

    #[test]
    fn numbers_are_signed_where_they_fit() {
        let signed = Column::of_u64("n", [1, i64::MAX as u64].into_iter());
        let unsigned = Column::of_u64("n", [1, 1 << 63].into_iter());
        assert!(matches!(signed.cells, Cells::I64(_)) && matches!(unsigned.cells, Cells::U64(_)));
        assert_eq!(unsigned.into_u64(), Some(vec![1, 1 << 63]));
        assert_eq!(Column::new("n", Cells::I64(vec![-1])).into_u64(), None);
    }

    /// A changed file of waits ended in a panic: its readers go by the rows of the first column.
    #[test]
    fn a_file_with_columns_of_different_length_was_taken_for_a_table() {
        assert!(of_one_length(table()).is_ok());
        let short = [table(), vec![Column::of_u64("short", [1, 2].into_iter())]].concat();
        let error = of_one_length(short).unwrap_err();
        assert_eq!(error.to_string(), "Parquet error: `time_ns` has 3 rows, and `short` 2");
    }

    /// A run of equal cells is a few bytes: what a short file says of itself took all memory.
    #[test]
    fn a_small_file_with_more_cells_than_memory_has_room_for_was_read() {
        let bytes = encode(&table());
        let file = SerializedFileReader::new(Bytes::from(bytes)).unwrap();
        let group = file.get_row_group(0).unwrap();
        let cells = group.metadata().columns().iter().map(|column| column.num_values() as u64).sum::<u64>();
        assert_eq!(cells, table().iter().map(|column| column.rows() as u64).sum::<u64>());
        assert!(check_cells(CELLS_MAX, 100).is_ok() && check_cells(1 << 40, 1 << 35).is_ok());
        let error = check_cells(1 << 40, 100).unwrap_err().to_string();
        assert!(
            error.contains("1099511627776 cells, and no table of 100 bytes has more than 33554432"),
            "{error}"
        );
    }

    #[test]
    fn no_cut_and_no_flipped_byte_makes_the_reader_panic() {
        let good = encode(&table());
        for end in 0..good.len() {
            decode_here(good[..end].to_vec()).expect_err("the footer is gone");
        }
        for place in 0..good.len() {
            let mut bad = good.clone();
            bad[place] ^= 0x41;
            let _ = decode_here(bad); // MANIFEST has the hash; this must not panic.
        }
        for foreign in ["", "PAR1", "time_ns,a\n0,1\n"] {
            let error = decode_here(foreign.as_bytes().to_vec()).unwrap_err();
            assert!(error.to_string().starts_with("`t.parquet`"), "{error}");
        }
    }
}
