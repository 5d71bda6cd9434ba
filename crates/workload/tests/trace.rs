//! Trace readers: what each format means, and what is said about files that are not as they
//! should be.

use std::io::{Cursor, Read};

use pagetide_workload::trace::{Request, RequestKind, TraceError, TraceFormat, TraceReader};
use proptest::prelude::*;

fn read_as(bytes: &[u8], format: Option<TraceFormat>) -> Result<Vec<Request>, TraceError> {
    TraceReader::new(bytes, format)?.collect()
}

fn read(bytes: &[u8]) -> Vec<Request> {
    read_as(bytes, None).unwrap()
}

/// The message and the hint of a trace that cannot be read.
fn complaint_as(bytes: &[u8], format: Option<TraceFormat>) -> String {
    let error = read_as(bytes, format).unwrap_err();
    let hint = error.hint().map(|hint| format!("\n  {hint}")).unwrap_or_default();
    format!("{error}{hint}\n")
}

fn complaint(bytes: &[u8]) -> String {
    complaint_as(bytes, None)
}

fn request(seconds: u64, object: u64, size_bytes: u32) -> Request {
    let time_ns = seconds * 1_000_000_000;
    Request { time_ns, kind: RequestKind::Read, object, offset_bytes: 0, size_bytes }
}

fn oracle(seconds: u32, object: u64, size: u32, next: i64) -> Vec<u8> {
    let fields: [&[u8]; 4] =
        [&seconds.to_le_bytes(), &object.to_le_bytes(), &size.to_le_bytes(), &next.to_le_bytes()];
    fields.concat()
}

#[test]
fn a_block_trace_has_scsi_operations_seconds_and_sectors() {
    let text = b"version,time,op,size,lbn\n1,5633898,2a,512,42932745\n1,5633899,28,6656,40409911\n\
        1,5633900,0x88,1024,8\n2,5633900,8A,1024,16\n";
    let read = read(text);
    let block = |seconds: u64, kind, lbn: u64, size_bytes| Request {
        time_ns: seconds * 1_000_000_000,
        kind,
        object: lbn,
        offset_bytes: lbn * 512,
        size_bytes,
    };
    assert_eq!(
        read,
        [
            block(5_633_898, RequestKind::Write, 42_932_745, 512),
            block(5_633_899, RequestKind::Read, 40_409_911, 6656),
            block(5_633_900, RequestKind::Read, 8, 1024),
            block(5_633_900, RequestKind::Write, 16, 1024),
        ]
    );
}

#[test]
fn operations_that_move_no_data_are_skipped_and_counted() {
    let text = b"1,10,35,0,0\n1,10,28,512,7\n1,11,42,4096,7\n";
    let mut reader = TraceReader::new(&text[..], None).unwrap();
    assert_eq!(reader.by_ref().map(|request| request.unwrap().object).collect::<Vec<_>>(), [7]);
    assert_eq!(reader.skipped(), 2);
    assert_eq!(reader.bytes_read(), text.len() as u64);
}

#[test]
fn an_object_trace_reads_with_or_without_heading_carriage_returns_remarks_and_last_newline() {
    let expected = [request(1, 7, 100), request(2, 8, 0)];
    for text in [
        "1,7,100\n2,8,0\n",
        "1,7,100\n2,8,0",
        "time,object,size\n1,7,100\n2,8,0\n",
        "\u{feff}\"Time\",obj_id,size\r\n1,7,100\r\n\r\n2,8,0\r\n",
        "# made by hand\n 1, 7, 100\n#\n2 ,8\t, 0 \n",
    ] {
        assert_eq!(read(text.as_bytes()), expected, "{text:?}");
    }
    let decimals = read(b"1.5,7,100\n0.0000000019,7,1\n");
    assert_eq!(decimals.iter().map(|request| request.time_ns).collect::<Vec<_>>(), [1_500_000_000, 1]);
}

#[test]
fn an_oracle_general_trace_is_recognised_and_read() {
    let bytes = [oracle(9, 5, 4096, 2), oracle(9, u64::MAX, 1, -1), oracle(10, 5, 4096, i64::MAX)].concat();
    assert_eq!(TraceReader::new(&bytes[..], None).unwrap().format(), TraceFormat::OracleGeneral);
    assert_eq!(read(&bytes), [request(9, 5, 4096), request(9, u64::MAX, 1), request(10, 5, 4096)]);
}

#[test]
fn numbers_that_do_not_fit_and_columns_that_are_not_there_are_named_with_their_line() {
    let said: String = [
        "1,7,100\n2,8\n",
        "1,7,100\n\n2,8,1,4\n",
        "1,7,100\n2,alice,1\n",
        "1,7,100\n2,18446744073709551616,1\n",
        "1,7,4294967296\n",
        "99999999999,7,1\n",
        "-1,7,1\n",
        "1,7.5,1\n",
        "1,,1\n",
        "time,object,size\ntime,object,size\n",
        "1,5,zz,512,9\n",
        "1,5,2a2,512,9\n",
        "1,5,2a,512,99999999999999999\n",
        "1,2,3,4\n",
        "hello\n",
    ]
    .map(|text| complaint(text.as_bytes()))
    .concat();
    insta::assert_snapshot!(said, @r"
        line 2: 2 columns where `time,object,size` was expected
        line 3: 4 columns where `time,object,size` was expected
        line 2: column `object`: `alice` is not a number
          objects are numbers; replace names by numbers or hashes first
        line 2: column `object`: `18446744073709551616` is too large, 18446744073709551615 at most
        line 1: column `size`: `4294967296` is too large, 4294967295 at most
        line 1: column `time`: `99999999999` is too large, 18446744072 at most
        line 1: column `time`: `-1` is not a number
        line 1: column `object`: `7.5` is not a number
          objects are numbers; replace names by numbers or hashes first
        line 1: column `object`: `` is not a number
          objects are numbers; replace names by numbers or hashes first
        line 2: column `time`: `time` is not a number
        line 1: column `op`: `zz` is not a hexadecimal byte
        line 1: column `op`: `2a2` is not a hexadecimal byte
        line 1: column `lbn`: `99999999999999999` is too large, 36028797018963967 at most
        line 1: this is no trace format that I know: text, but neither `version,time,op,size,lbn` nor `time,object,size`
          if you know better, name the format: one of `block-csv`, `object-csv`, `oracle-general`
        line 1: this is no trace format that I know: text, but neither `version,time,op,size,lbn` nor `time,object,size`
          if you know better, name the format: one of `block-csv`, `object-csv`, `oracle-general`
    ");
}

#[test]
fn files_that_are_no_text_or_no_trace_are_recognised() {
    let records = [oracle(9, 5, 4096, 2), oracle(9, 6, 1, -1)].concat();
    let backwards = [oracle(9, 5, 1, 2), oracle(8, 6, 1, -1)].concat();
    let csv = Some(TraceFormat::BlockCsv);
    let said = [
        complaint(b""),
        complaint(b"\n\n"),
        complaint(&records[..30]),
        complaint(&records[..5]),
        complaint(&backwards),
        complaint_as(&records, csv),
        complaint_as(&vec![0; 10_000], csv),
        complaint(b"1,7,1\n2,\xe4\xf6\xfc,1\n"),
        complaint(b"Zeit,Gr\xf6\xdfe,x\n"),
        complaint(&[0x1f, 0x8b, 8, 0]),
        complaint(&[0x28, 0xb5, 0x2f, 0xfd, 0]),
        complaint(b"\xff\xfe1\0,\0"),
        complaint(&[b"1,7,1\n".repeat(1000), vec![b'x'; 1 << 20]].concat()),
    ];
    insta::assert_snapshot!(said.concat(), @r"
        the trace is empty
        the trace is empty
        byte 24: the trace ends inside a record: 6 bytes are left where a record has 24
          the file was cut while it was copied, or it is not in this format
        this is no trace format that I know: binary, and shorter than one record
          if you know better, name the format: one of `block-csv`, `object-csv`, `oracle-general`
        this is no trace format that I know: binary, but not libCacheSim's oracleGeneral
          if you know better, name the format: one of `block-csv`, `object-csv`, `oracle-general`
        line 1: binary data in a trace that is read as `block-csv`
          leave the format out to have it detected, or name another of `block-csv`, `object-csv`, `oracle-general`
        line 1: the line is longer than 4096 bytes
          a request per line is expected; is this a binary file?
        line 2: the text is not UTF-8
          convert the file to UTF-8, or check that it is not cut or damaged
        line 1: the text is not UTF-8
          convert the file to UTF-8, or check that it is not cut or damaged
        the trace is compressed with gzip
          decompress it first: `gzip -d`
        the trace is compressed with zstd
          decompress it first: `zstd -d`
        the text is not UTF-8
          convert the file to UTF-8, or check that it is not cut or damaged
        line 1001: the line is longer than 4096 bytes
          a request per line is expected; is this a binary file?
    ");
}

#[test]
fn after_an_error_the_reader_has_ended() {
    let mut reader = TraceReader::new(&b"1,7,1\nx\n2,8,1\n"[..], None).unwrap();
    assert!(reader.next().unwrap().is_ok());
    assert!(reader.next().unwrap().is_err());
    assert!(reader.next().is_none() && reader.next().is_none());
}

/// A source that hands out a few bytes at a time.
struct Dribble<R>(R, usize);

impl<R: Read> Read for Dribble<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = buffer.len().min(self.1);
        self.0.read(&mut buffer[..len])
    }
}

#[test]
fn requests_that_straddle_the_buffer_are_whole() {
    let expected: Vec<Request> = (0..60_000).map(|number| request(number, number * 7, 4096)).collect();
    let text: String =
        expected.iter().enumerate().map(|(number, r)| format!("{number},{},4096\n", r.object)).collect();
    let records: Vec<u8> =
        expected.iter().zip(0..).flat_map(|(r, number)| oracle(number, r.object, 4096, -1)).collect();
    for bytes in [text.as_bytes(), &records] {
        assert!(bytes.len() > 2 * (256 << 10), "too short to straddle");
        let read: Vec<Request> =
            TraceReader::new(Dribble(Cursor::new(bytes), 1000), None).unwrap().map(Result::unwrap).collect();
        assert_eq!(read.len(), expected.len());
        assert!(read == expected);
    }
}

#[test]
fn format_names_read_back_and_slips_are_noticed() {
    for format in TraceFormat::ALL {
        assert_eq!(format.name().parse(), Ok(format));
    }
    assert_eq!("oracleGeneral".parse::<TraceFormat>().unwrap_err().hint(), "did you mean `oracle-general`?");
}

proptest! {
    /// Either it reads or it complains with words.
    #[test]
    fn no_bytes_make_a_reader_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        text in "([0-9a-fx,. #\\n\\r-]|time|\u{e9}){0,80}",
        format in proptest::sample::select(vec![
            None,
            Some(TraceFormat::BlockCsv),
            Some(TraceFormat::ObjectCsv),
            Some(TraceFormat::OracleGeneral),
        ]),
    ) {
        for bytes in [&bytes[..], text.as_bytes()] {
            if let Err(error) = read_as(bytes, format) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }

    #[test]
    fn what_is_written_as_text_or_records_is_read_back(
        requests in proptest::collection::vec((any::<u32>(), any::<u64>(), any::<u32>()), 1..50),
    ) {
        let expected: Vec<Request> =
            requests.iter().map(|&(time, object, size)| request(time.into(), object, size)).collect();
        let text: String =
            requests.iter().map(|(time, object, size)| format!("{time},{object},{size}\n")).collect();
        prop_assert_eq!(&read(text.as_bytes()), &expected);
        let records: Vec<u8> =
            requests.iter().flat_map(|&(time, object, size)| oracle(time, object, size, -1)).collect();
        prop_assert_eq!(&read_as(&records, Some(TraceFormat::OracleGeneral)).unwrap(), &expected);
    }
}
