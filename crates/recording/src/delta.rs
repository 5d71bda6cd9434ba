//! Columns of whole numbers as differences, packed without the library's look at each: a Parquet column chunk of
//! pages in `DELTA_BINARY_PACKED` (Parquet format, `Encodings.md`), byte for byte as the library writes it.
//!
//! Times, lengths and numbers of pages are a third of what it takes to write events down. The library reads each
//! number through its type, and writes bits one number at a time where a block is not full.
//!
//! Left out: columns in which rows have no cell. Next: `table.rs`, whose columns these are; `packed.rs`, columns of
//! few different cells.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, EncodingMask, PageType};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use crate::packed::{compressed, variable};

/// Rows of a page: the first multiple of the library's batches of 1024 at which it ends one.
const PAGE_ROWS: usize = 20 << 10;
/// Miniblocks of a block.
const MINIBLOCKS: usize = 4;

/// A whole number of a column.
pub(crate) trait Whole: Copy {
    /// Numbers of a miniblock.
    const MINIBLOCK: usize;

    /// As the format writes the first one of a page.
    fn wide(self) -> i64;
    /// From `before` to this one, going round where that is too far.
    fn since(self, before: Self) -> i64;
    /// How far a difference is above the smallest one.
    fn above(difference: i64, least: i64) -> u64;
}

impl Whole for i64 {
    const MINIBLOCK: usize = 64;

    fn wide(self) -> i64 {
        self
    }

    fn since(self, before: Self) -> i64 {
        self.wrapping_sub(before)
    }

    fn above(difference: i64, least: i64) -> u64 {
        difference.wrapping_sub(least).cast_unsigned()
    }
}

impl Whole for i32 {
    const MINIBLOCK: usize = 32;

    fn wide(self) -> i64 {
        self.into()
    }

    fn since(self, before: Self) -> i64 {
        self.wrapping_sub(before).into()
    }

    fn above(difference: i64, least: i64) -> u64 {
        u64::from((difference as i32).wrapping_sub(least as i32).cast_unsigned())
    }
}

/// A column chunk: its bytes, and what the file says of it.
pub(crate) fn chunk<T: Whole>(
    described: ColumnDescPtr,
    cells: &[T],
) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
    let mut sink = TrackedWrite::new(Vec::new());
    let mut writer = SerializedPageWriter::new(&mut sink);
    let (mut plain, mut packed, mut first, mut count) = (0, 0, None, 0);
    for rows in cells.chunks(PAGE_ROWS) {
        let values = page(rows);
        let data = Page::DataPage {
            buf: compressed(&values)?,
            num_values: rows.len() as u32,
            encoding: Encoding::DELTA_BINARY_PACKED,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let written = writer.write_page(CompressedPage::new(data, values.len()))?;
        first.get_or_insert(written.offset);
        count += 1;
        packed += written.compressed_size;
        plain += written.uncompressed_size;
    }
    let encodings = [Encoding::RLE, Encoding::DELTA_BINARY_PACKED];
    let (page_type, encoding) = (PageType::DATA_PAGE, Encoding::DELTA_BINARY_PACKED);
    let metadata = ColumnChunkMetaData::builder(described)
        .set_compression_codec(Compression::SNAPPY.into())
        .set_encodings_mask(EncodingMask::new_from_encodings(encodings.iter()))
        .set_page_encoding_stats(vec![PageEncodingStats { page_type, encoding, count }])
        .set_total_compressed_size(packed as i64)
        .set_total_uncompressed_size(plain as i64)
        .set_num_values(cells.len() as i64)
        .set_data_page_offset(first.unwrap_or(0) as i64)
        .build()?;
    let bytes = Bytes::from(sink.into_inner()?);
    let (bytes_written, rows_written) = (bytes.len() as u64, cells.len() as u64);
    let nothing = (None, None, None);
    let (bloom_filter, column_index, offset_index) = nothing;
    Ok((
        bytes,
        ColumnCloseResult { bytes_written, rows_written, metadata, bloom_filter, column_index, offset_index },
    ))
}

/// The numbers of a page.
fn page<T: Whole>(cells: &[T]) -> Vec<u8> {
    let mut out = Vec::with_capacity(cells.len());
    variable(&mut out, (MINIBLOCKS * T::MINIBLOCK) as u64);
    variable(&mut out, MINIBLOCKS as u64);
    variable(&mut out, cells.len() as u64);
    zigzag(&mut out, cells.first().map_or(0, |first| first.wide()));
    let mut before = cells.first().copied();
    let mut differences = Vec::with_capacity(MINIBLOCKS * T::MINIBLOCK);
    for cells in cells.get(1..).unwrap_or(&[]).chunks(MINIBLOCKS * T::MINIBLOCK) {
        differences.clear();
        let befores = before.into_iter().chain(cells.iter().copied());
        differences.extend(cells.iter().zip(befores).map(|(cell, before)| cell.since(before)));
        before = cells.last().copied();
        block::<T>(&mut out, &differences);
    }
    out
}

/// A block of differences, of which the last one of a page may be short: what is missing is filled up.
fn block<T: Whole>(out: &mut Vec<u8>, differences: &[i64]) {
    let least = differences.iter().copied().min().unwrap_or(0);
    zigzag(out, least);
    let widths = out.len();
    out.resize(widths + MINIBLOCKS, 0);
    for (place, differences) in differences.chunks(T::MINIBLOCK).enumerate() {
        let most = differences.iter().copied().max().unwrap_or(least);
        let width = 64 - T::above(most, least).leading_zeros();
        out[widths + place] = width as u8;
        pack(out, differences.iter().map(|&difference| T::above(difference, least)), width, T::MINIBLOCK);
    }
}

/// Numbers of `width` bits each, one behind the other, filled up with zeros to so many.
fn pack(out: &mut Vec<u8>, numbers: impl Iterator<Item = u64>, width: u32, count: usize) {
    if width == 0 {
        return;
    }
    let end = out.len() + (count * width as usize / 8);
    let (mut open, mut filled) = (0_u64, 0_u32);
    for number in numbers {
        open |= number << filled;
        filled += width;
        if filled >= 64 {
            out.extend(open.to_le_bytes());
            filled -= 64;
            // What of the number did not fit; none of it if it ended with the word.
            open = number.checked_shr(width - filled).unwrap_or(0);
        }
    }
    out.extend(open.to_le_bytes());
    out.resize(end, 0);
}

/// A number that may be negative as one that is not, small where it is near 0.
fn zigzag(out: &mut Vec<u8>, number: i64) {
    variable(out, ((number << 1) ^ (number >> 63)).cast_unsigned());
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parquet::basic::{Repetition, Type as Physical};
    use parquet::data_type::{DataType, Int32Type, Int64Type};
    use parquet::file::properties::{EnabledStatistics, WriterProperties};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::types::Type;

    use super::*;

    /// A file of one column, by us or by the library.
    fn file<T: DataType<T: Whole>>(physical: Physical, cells: &[T::T], ours: bool) -> Vec<u8> {
        let column = Type::primitive_type_builder("n", physical).with_repetition(Repetition::REQUIRED);
        let fields = vec![Arc::new(column.build().unwrap())];
        let schema = Type::group_type_builder("table").with_fields(fields).build().unwrap();
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(true)
            .set_dictionary_enabled(false)
            .set_encoding(Encoding::DELTA_BINARY_PACKED);
        let mut file =
            SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties.build())).unwrap();
        let described = file.schema_descr().column(0);
        let mut group = file.next_row_group().unwrap();
        if ours {
            let (bytes, chunk) = chunk(described, cells).unwrap();
            group.append_column(&bytes, chunk).unwrap();
        } else {
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<T>().write_batch(cells, None, None).unwrap();
            column.close().unwrap();
        }
        group.close().unwrap();
        file.into_inner().unwrap()
    }

    /// The library is what the columns are held against: of each length about the ends of miniblocks, blocks and
    /// pages, and with differences of each width.
    #[test]
    fn columns_have_the_bytes_that_the_library_writes() {
        let lengths =
            [1, 2, 31, 32, 33, 34, 64, 65, 66, 128, 129, 130, 256, 257, 258, 1000, 20_480, 20_481, 50_000];
        for length in lengths {
            for width in [0, 1, 3, 7, 8, 9, 31, 32, 33, 47, 62, 63, 64] {
                let mut state = 88_172_645_463_325_252_u64 + width;
                let wide: Vec<i64> = (0..length)
                    .map(|_| {
                        state ^= state << 13;
                        state ^= state >> 7;
                        state ^= state << 17;
                        state.checked_shr(64 - width as u32).unwrap_or(0).cast_signed()
                    })
                    .collect();
                let short: Vec<i32> = wide.iter().map(|&cell| cell as i32).collect();
                let sorted: Vec<i64> = (0..length).map(|row| row * row / 3 - 1000).collect();
                for cells in [&wide, &sorted] {
                    let (ours, theirs) = (true, false);
                    let [ours, theirs] =
                        [ours, theirs].map(|whose| file::<Int64Type>(Physical::INT64, cells, whose));
                    assert!(ours == theirs, "{length} numbers of {width} bits");
                }
                let [ours, theirs] =
                    [true, false].map(|whose| file::<Int32Type>(Physical::INT32, &short, whose));
                assert!(ours == theirs, "{length} short numbers of {width} bits");
            }
        }
    }
}
