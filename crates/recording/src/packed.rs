//! Columns of few different cells, packed without a look at what the cells are: a Parquet column chunk of a
//! dictionary and numbers into it.
//!
//! The library would hash and compare each text of each row to find its place in a dictionary. Whoever has
//! numbers already only needs their bits packed: pages of numbers are what the format calls RLE/bit-packed
//! hybrid (Parquet format, `Encodings.md`).
//!
//! Left out: several data pages, statistics. Next: `table.rs`, whose columns these are.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, EncodingMask};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

/// The different cells of a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Dictionary {
    /// UTF-8.
    Text(Vec<ByteArray>),
    /// Unsigned below 256.
    U8(Vec<i32>),
}

impl Dictionary {
    fn len(&self) -> usize {
        match self {
            Self::Text(cells) => cells.len(),
            Self::U8(cells) => cells.len(),
        }
    }

    /// As a page of the format's `PLAIN` encoding.
    fn plain(&self) -> Vec<u8> {
        match self {
            Self::Text(cells) => {
                let mut page = Vec::new();
                for cell in cells {
                    page.extend((cell.len() as u32).to_le_bytes());
                    page.extend(cell.data());
                }
                page
            }
            Self::U8(cells) => cells.iter().flat_map(|cell| cell.to_le_bytes()).collect(),
        }
    }
}

/// The cells of a column by their places in a dictionary.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chosen {
    pub(crate) dictionary: Dictionary,
    /// Cells of all rows, in order; neighbours may be alike.
    pub(crate) runs: Vec<Run>,
    /// Whether rows may have no cell.
    pub(crate) has_gaps: bool,
}

/// Rows one after the other with the same cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Run {
    /// Its place in the dictionary; `None`: they have no cell.
    pub(crate) place: Option<u32>,
    pub(crate) rows: u32,
}

impl Chosen {
    pub(crate) fn rows(&self) -> usize {
        self.runs.iter().map(|run| run.rows as usize).sum()
    }
}

/// A column chunk: its bytes, and what the file says of it.
pub(crate) fn chunk(
    described: ColumnDescPtr,
    chosen: &Chosen,
) -> Result<(Bytes, ColumnCloseResult), ParquetError> {
    let Chosen { dictionary, runs, has_gaps } = chosen;
    let rows = chosen.rows();
    let mut values = Vec::new();
    if *has_gaps {
        values.extend([0; 4]);
        hybrid(&mut values, 1, runs.iter().map(|run| (run.place.is_some().into(), run.rows as usize)));
        let length = values.len() as u32 - 4;
        values[..4].copy_from_slice(&length.to_le_bytes());
    }
    let width = bits(dictionary.len());
    values.push(width);
    hybrid(&mut values, width, runs.iter().filter_map(|run| Some((run.place?, run.rows as usize))));

    let mut sink = TrackedWrite::new(Vec::new());
    let mut writer = SerializedPageWriter::new(&mut sink);
    let plain = dictionary.plain();
    let entries = Page::DictionaryPage {
        buf: compressed(&plain)?,
        num_values: dictionary.len() as u32,
        encoding: Encoding::PLAIN,
        is_sorted: false,
    };
    let first = writer.write_page(CompressedPage::new(entries, plain.len()))?;
    let data = Page::DataPage {
        buf: compressed(&values)?,
        num_values: rows as u32,
        encoding: Encoding::RLE_DICTIONARY,
        def_level_encoding: Encoding::RLE,
        rep_level_encoding: Encoding::RLE,
        statistics: None,
    };
    let second = writer.write_page(CompressedPage::new(data, values.len()))?;
    let encodings = [Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY];
    let metadata = ColumnChunkMetaData::builder(described)
        .set_compression_codec(Compression::SNAPPY.into())
        .set_encodings_mask(EncodingMask::new_from_encodings(encodings.iter()))
        .set_total_compressed_size((first.compressed_size + second.compressed_size) as i64)
        .set_total_uncompressed_size((first.uncompressed_size + second.uncompressed_size) as i64)
        .set_num_values(rows as i64)
        .set_dictionary_page_offset(Some(first.offset as i64))
        .set_data_page_offset(second.offset as i64)
        .build()?;
    let bytes = Bytes::from(sink.into_inner()?);
    let (bytes_written, rows_written) = (bytes.len() as u64, rows as u64);
    let nothing = (None, None, None);
    let (bloom_filter, column_index, offset_index) = nothing;
    Ok((
        bytes,
        ColumnCloseResult { bytes_written, rows_written, metadata, bloom_filter, column_index, offset_index },
    ))
}

pub(crate) fn compressed(page: &[u8]) -> Result<Bytes, ParquetError> {
    let compressed = snap::raw::Encoder::new().compress_vec(page);
    compressed.map(Bytes::from).map_err(|error| ParquetError::External(Box::new(error)))
}

/// How many bits a number below `count` takes; one at least.
fn bits(count: usize) -> u8 {
    let most = count.saturating_sub(1) as u64;
    (64 - most.leading_zeros()).max(1) as u8
}

/// Appends numbers of `width` bits, each with how often it comes: those of which eight or more are alike as a
/// run, the others as groups of eight.
fn hybrid(out: &mut Vec<u8>, width: u8, runs: impl Iterator<Item = (u32, usize)>) {
    let mut open: Vec<u32> = Vec::new(); // What is not written yet, and no run.
    let mut write = |number: u32, mut alike: usize| {
        // Groups are full, but for the last one of all: the run gives what is missing.
        let missing = open.len().next_multiple_of(8) - open.len();
        if alike >= missing + 8 {
            open.extend(std::iter::repeat_n(number, missing));
            grouped(out, &open, width);
            open.clear();
            alike -= missing;
            variable(out, (alike as u64) << 1);
            out.extend(&number.to_le_bytes()[..usize::from(width).div_ceil(8)]);
        } else {
            open.extend(std::iter::repeat_n(number, alike));
        }
    };
    let mut last = None;
    for (number, times) in runs {
        last = match last {
            Some((before, so_far)) if before == number => Some((number, so_far + times)),
            Some((before, all)) => {
                write(before, all);
                Some((number, times))
            }
            None => Some((number, times)),
        };
    }
    if let Some((number, all)) = last {
        write(number, all);
    }
    grouped(out, &open, width);
}

/// Groups of eight numbers, the last one filled up with zeros.
fn grouped(out: &mut Vec<u8>, values: &[u32], width: u8) {
    if values.is_empty() {
        return;
    }
    let groups = values.len().div_ceil(8);
    variable(out, ((groups as u64) << 1) | 1);
    let end = out.len() + (groups * usize::from(width));
    let (mut open, mut filled) = (0_u64, 0_u32);
    for &value in values {
        open |= u64::from(value) << filled;
        filled += u32::from(width);
        if filled >= 32 {
            out.extend((open as u32).to_le_bytes());
            open >>= 32;
            filled -= 32;
        }
    }
    out.extend(&open.to_le_bytes()[..filled.div_ceil(8) as usize]);
    out.resize(end, 0);
}

/// A number in as many groups of seven bits as it needs, the lowest first.
pub(crate) fn variable(out: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(values: &[u32], width: u8) -> Vec<u8> {
        let mut out = Vec::new();
        hybrid(&mut out, width, values.iter().map(|&value| (value, 1)));
        out
    }

    /// The example of the format's own description: 0 to 7 in three bits.
    #[test]
    fn groups_are_packed_as_the_format_says() {
        assert_eq!(packed(&[0, 1, 2, 3, 4, 5, 6, 7], 3), [3, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        assert!(packed(&[], 3).is_empty());
    }

    #[test]
    fn what_is_alike_is_a_run_and_fills_the_group_before_it() {
        assert_eq!(packed(&[5; 100], 3), [200, 1, 5]);
        let mixed = [&[1, 2, 3][..], &[0; 20]].concat();
        assert_eq!(packed(&mixed, 2), [3, 0b0011_1001, 0, 15 << 1, 0]);
        let ends_short = [&[4; 8][..], &[1, 2]].concat();
        assert_eq!(packed(&ends_short, 3), [16, 4, 3, 0b0001_0001, 0, 0]);
    }

    #[test]
    fn a_number_takes_as_many_bits_as_the_dictionary_needs() {
        assert_eq!([0, 1, 2, 3, 4, 5, 256, 257].map(bits), [1, 1, 1, 2, 2, 3, 8, 9]);
    }
}
