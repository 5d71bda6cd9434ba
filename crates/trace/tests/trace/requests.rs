//! Trace readers: what each format means, and what is said about files that are not as they
//! should be.

use std::io::{Cursor, Read, Write};

use pagetide_trace::requests::{Request, RequestKind, TraceError, TraceFormat, TraceReader};
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

const MSR: &str = "128166372003061629,usr,0,Read,7014609920,24576,41286\n\
    128166372016382155,usr,0,Write,1317441537,8192,1963\n128166372026382245,usr,0,Read,2436440064,4096,1835\n";

#[test]
fn a_trace_of_msr_cambridge_has_filetimes_bytes_and_one_disk_with_or_without_a_heading() {
    let request = |ticks: u64, kind, offset_bytes: u64, size_bytes| Request {
        time_ns: ticks * 100,
        kind,
        object: offset_bytes / 512,
        offset_bytes,
        size_bytes,
    };
    let expected = [
        request(128_166_372_003_061_629, RequestKind::Read, 7_014_609_920, 24_576),
        request(128_166_372_016_382_155, RequestKind::Write, 1_317_441_537, 8192),
        request(128_166_372_026_382_245, RequestKind::Read, 2_436_440_064, 4096),
    ];
    let heading = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n";
    let (quoted, blanks) = (MSR.replace("usr,0", "\"usr\",\"0\""), MSR.replace(',', " , "));
    for text in [MSR, &format!("{heading}{MSR}"), &quoted, &blanks, &MSR.replace('\n', "\r\n")] {
        let reader = TraceReader::new(text.as_bytes(), None).unwrap();
        assert_eq!(reader.format(), TraceFormat::Msr, "{text}");
        assert_eq!(reader.map(Result::unwrap).collect::<Vec<_>>(), expected, "{text}");
    }
    let other_order =
        "Size,Offset,Type,ResponseTime,Hostname,DiskNumber,Timestamp\n4096,1024,Write,1,usr,0,7\n";
    assert_eq!(read(other_order.as_bytes()), [request(7, RequestKind::Write, 1024, 4096)]);
    // Without these columns a time is in seconds.
    assert_eq!(read(b"Timestamp,Type,Offset,Size\n7,Read,1024,4096\n")[0].time_ns, 7_000_000_000);
}

#[test]
fn lines_that_are_none_of_msr_cambridge_are_told() {
    let said: String = [
        "128166372003061629,usr,0,Read,7014609920,24576\n",
        "2007-02-22 17:00:00,usr,0,Read,7014609920,24576,41286\n",
        "184467440737095516,usr,0,Read,7014609920,24576,41286\n",
        "5,usr,0,Read,0,512,9\n6,usr,1,Read,0,512,9\n",
        "5,usr,0,Read,0,512,9\n6,proj,0,Read,0,512,9\n",
        "5,usr,0,Read,0,512,9\n4,usr,0,Read,0,512,9\n",
        "5,usr,0,Read,0,512,9\n6,usr,0,Erase,0,512,9\n",
        "5,usr,0,Read,-8,512,9\n",
        "5,usr,0,Read,0,4294967296,9\n",
        "5,usr,0,Read,0,512,9,1\n",
    ]
    .map(|text| complaint(text.as_bytes()))
    .concat();
    let heading = b"Timestamp,DiskNumber,Type,Offset,Size\n5,0,Read,0,512\n";
    insta::assert_snapshot!(said + &complaint_as(heading, Some(TraceFormat::Msr)), @"
    line 1: this is no trace format that I know: text, but its first line neither names the columns nor has those of `version,time,op,size,lbn`, `time,object,size` or `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`
      if you know better, name the format: one of `block-csv`, `msr`, `object-csv`, `oracle-general`
    line 1: column `Timestamp`: `2007-02-22 17:00:00` is not a Windows filetime
      traces of MSR Cambridge count whole ticks of 100 ns since 1601; `--trace-format block-csv` reads others by their heading
    line 1: column `Timestamp`: `184467440737095516` is too large, 184467440737095515 at most
      traces of MSR Cambridge count whole ticks of 100 ns since 1601; `--trace-format block-csv` reads others by their heading
    line 2: a request to disk `usr,1`, and the trace is of disk `usr,0`
      a trace is of one disk; `grep ,usr,0, TRACE` takes out those of the first
    line 2: a request to disk `proj,0`, and the trace is of disk `usr,0`
      a trace is of one disk; `grep ,usr,0, TRACE` takes out those of the first
    line 2: time runs backwards: 0.0000004 s after 0.0000005 s
      sort the trace by time, or take its order as it is with `--unsorted`
    line 2: column `Type`: `Erase` is not an operation
      write SCSI codes as `28` and `2a`, or words such as `read` and `write`
    line 1: column `Offset`: `-8` is not a number
    line 1: column `Size`: `4294967296` is too large, 4294967295 at most
    line 1: this is no trace format that I know: text, but its first line neither names the columns nor has those of `version,time,op,size,lbn`, `time,object,size` or `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`
      if you know better, name the format: one of `block-csv`, `msr`, `object-csv`, `oracle-general`
    line 1: no column is the host: found `Timestamp`, `DiskNumber`, `Type`, `Offset`, `Size`
      call one of them `Hostname`
    ");
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
    let decimals = read(b"0.0000000019,7,1\n1.5,7,100\n");
    assert_eq!(decimals.iter().map(|request| request.time_ns).collect::<Vec<_>>(), [1, 1_500_000_000]);
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
    insta::assert_snapshot!(said, @"
    line 2: 2 columns where `time,object,size` was expected
    line 3: 4 columns where `time,object,size` was expected
    line 2: column `object`: `alice` is not a number
      objects are numbers; replace names by numbers or hashes first
    line 2: column `object`: `18446744073709551616` is too large, 18446744073709551615 at most
    line 1: column `size`: `4294967296` is too large, 4294967295 at most
    line 1: column `time`: `99999999999` is too large, 18446744072 at most
      times are in seconds; call the column `time_ms`, `time_us` or `time_ns` if these are not
    line 1: column `time`: `-1` is not a number
    line 1: column `object`: `7.5` is not a number
      objects are numbers; replace names by numbers or hashes first
    line 1: column `object`: `` is not a number
      objects are numbers; replace names by numbers or hashes first
    line 2: column `time`: `time` is not a number
    line 1: column `op`: `zz` is not an operation
      write SCSI codes as `28` and `2a`, or words such as `read` and `write`
    line 1: column `op`: `2a2` is not an operation
      write SCSI codes as `28` and `2a`, or words such as `read` and `write`
    line 1: column `lbn`: `99999999999999999` is too large, 36028797018963967 at most
    line 1: this is no trace format that I know: text, but its first line neither names the columns nor has those of `version,time,op,size,lbn`, `time,object,size` or `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`
      if you know better, name the format: one of `block-csv`, `msr`, `object-csv`, `oracle-general`
    line 1: no column is the time: found `hello`
      call one of them `time` or `timestamp`
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
    insta::assert_snapshot!(said.concat(), @"
    the trace is empty
    the trace is empty
    byte 24: the trace ends inside a record: 6 bytes are left where a record has 24
      the file was cut while it was copied, or it is not in this format
    this is no trace format that I know: binary, and shorter than one record
      if you know better, name the format: one of `block-csv`, `msr`, `object-csv`, `oracle-general`
    this is no trace format that I know: binary, but not libCacheSim's oracleGeneral
      if you know better, name the format: one of `block-csv`, `msr`, `object-csv`, `oracle-general`
    line 1: binary data in a trace that is read as `block-csv`
      leave the format out to have it detected, or name another of `block-csv`, `msr`, `object-csv`, `oracle-general`
    line 1: the line is longer than 4096 bytes
      a request per line is expected; is this a binary file?
    line 2: the text is not UTF-8
      convert the file to UTF-8, or check that it is not cut or damaged
    line 1: the text is not UTF-8
      convert the file to UTF-8, or check that it is not cut or damaged
    the gzip data is cut short or damaged: unexpected end of file
      get the file again; `gzip -t` checks whether it is whole
    the zstd data is cut short or damaged: unexpected end of file
      get the file again; `zstd -t` checks whether it is whole
    the text is not UTF-8
      convert the file to UTF-8, or check that it is not cut or damaged
    line 1001: the line is longer than 4096 bytes
      a request per line is expected; is this a binary file?
    ");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}

#[test]
fn columns_are_found_by_their_names_in_any_order_and_may_be_quoted() {
    let objects = [request(1, 7, 100), request(2, 8, 0)];
    for text in [
        "obj_size,Timestamp,obj-id,next_access_vtime\n100,1,7,-1\n0,2,8,5\n",
        "\"key\",\"length\",\"time_us\",\"note\"\n\"7\",\"100\",1000000,\"a, \"\"b\"\"\"\n8 , 0,\"2000000\",\n",
        "id,ts_ms,bytes,op\n7,1000,100,GET\n8,2000.0,0,r\n9,3000,1,delete\n",
        "\"1\",\"7\",\"100\"\n2,\"8\",0\n",
    ] {
        assert_eq!(read(text.as_bytes()), objects, "{text}");
    }
    let block = Request { kind: RequestKind::Write, offset_bytes: 1536, ..request(1, 3, 100) };
    let offset = Request { kind: RequestKind::Write, offset_bytes: 1000, ..request(1, 1, 100) };
    assert_eq!(read(b"op,lba,size,time\n2A,3,100,1\n"), [block]);
    assert_eq!(read(b"time,offset,size,type\n1,1000,100,Write\n"), [offset]);
}

#[test]
fn columns_that_are_missing_or_could_be_two_things_are_named() {
    let said: String = [
        "when,what,how much\n1,2,3\n",
        "time,lbn\n1,2\n",
        "time,timestamp,key,size\n1,1,2,3\n",
        "time,lbn,key,size\n1,1,2,3\n",
        "time;object;size\n1;2;3\n",
        "time,key,size\n1,\"2,3\n",
        "time,key,size\n1,\"2\"3,4\n",
        "time,key,size,op\n1,2,3,frobnicate\n",
        "time,key,size,op\n1,2,3\n",
    ]
    .map(|text| complaint(text.as_bytes()))
    .concat();
    insta::assert_snapshot!(said, @"
    line 1: no column is the time: found `when`, `what`, `how much`
      call one of them `time` or `timestamp`
    line 1: no column is the size: found `time`, `lbn`
      call one of them `size`, `obj_size` or `length`
    line 1: several columns could be the time: `time`, `timestamp`
      take all but one out, or give them other names
    line 1: several columns could be the object or block: `lbn`, `key`
      `--trace-format block-csv` or `object-csv` says which, or take one out
    line 1: no column is the time: found `time;object;size`
      put commas between columns
    line 2: a quoted field does not end in this line as it should
      a request is one line; a quote within quotes is written twice
    line 2: a quoted field does not end in this line as it should
      a request is one line; a quote within quotes is written twice
    line 2: column `op`: `frobnicate` is not an operation
      write SCSI codes as `28` and `2a`, or words such as `read` and `write`
    line 2: 3 columns where `time,key,size,op` was expected
    ");
    let both = b"time,lbn,key,size\n1,8,2,3\n";
    let object = |format| read_as(both, Some(format)).unwrap()[0].object;
    assert_eq!((object(TraceFormat::BlockCsv), object(TraceFormat::ObjectCsv)), (8, 2));
}

#[test]
fn a_trace_whose_time_runs_backwards_is_told_by_line_unless_it_may() {
    let text = b"time,object,size\n5.5,1,1\n4,2,1\n";
    assert_eq!(
        complaint(text),
        "line 3: time runs backwards: 4 s after 5.5 s\n  \
         sort the trace by time, or take its order as it is with `--unsorted`\n"
    );
    let reader = TraceReader::new(&text[..], None).unwrap().unsorted(true);
    assert_eq!(reader.map(|request| request.unwrap().object).collect::<Vec<_>>(), [1, 2]);
    let records = [oracle(9, 5, 1, 2), oracle(8, 6, 1, -1)].concat();
    assert!(
        complaint_as(&records, Some(TraceFormat::OracleGeneral)).starts_with("byte 24: time runs backwards")
    );
}

#[test]
fn a_trace_without_requests_is_no_trace_with_a_miss_ratio_of_nothing() {
    let said = ["time,object,size\n", "1,5,35,512,1\n1,6,35,512,2\n", "# only a remark\n"]
        .map(|text| complaint(text.as_bytes()));
    insta::assert_snapshot!(said.concat(), @"
    line 1: the trace has a heading and no requests
    line 2: the trace has no requests: none of its 2 operations reads or writes
      is the column `op` what it should be? reads are `28` or `read`
    the trace is empty
    ");
}

#[test]
fn compressed_traces_read_as_what_they_were_also_in_several_parts() {
    let text: String = (0..60_000).map(|number| format!("{number},{},4096\n", number * 7)).collect();
    let expected = read(text.as_bytes());
    let (first, second) = text.split_at(text.find("30000,").unwrap());
    // A frame of zstd that is to be skipped: its magic, its length, its bytes.
    let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    for bytes in [
        gzip(text.as_bytes()),
        zstd(text.as_bytes()),
        [gzip(first.as_bytes()), gzip(second.as_bytes())].concat(),
        [zstd(first.as_bytes()), skipped, zstd(second.as_bytes())].concat(),
    ] {
        let mut reader = TraceReader::new(Dribble(Cursor::new(&bytes), 1000), None).unwrap();
        assert!(reader.by_ref().map(Result::unwrap).eq(expected.iter().copied()));
        assert_eq!(reader.bytes_read(), bytes.len() as u64);
    }
    let records = [oracle(9, 5, 4096, 2), oracle(9, 6, 1, -1)].concat();
    assert_eq!(read(&zstd(&records)), read(&records));
}

#[test]
fn a_compressed_trace_that_was_cut_is_an_error_and_not_a_shorter_trace() {
    let text: String = (0..60_000).map(|number| format!("{number},{},4096\n", number * 7)).collect();
    for (kind, whole) in [("gzip", gzip(text.as_bytes())), ("zstd", zstd(text.as_bytes()))] {
        for len in [whole.len() - 1, whole.len() / 2, 5] {
            let said = complaint(&whole[..len]);
            assert!(said.starts_with(&format!("the {kind} data is cut short or damaged")), "{len}: {said}");
            assert!(said.contains("get the file again"), "{said}");
        }
        let mut damaged = whole.clone();
        damaged[whole.len() / 2] ^= 0x55;
        assert!(read_as(&damaged, None).is_err(), "{kind}");
    }
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
        text in "([0-9a-fx,. #\"\\n\\r-]|time|lbn|key|size,|op|\u{e9}){0,80}",
        cut in any::<proptest::sample::Index>(),
        format in proptest::sample::select(vec![
            None,
            Some(TraceFormat::BlockCsv),
            Some(TraceFormat::Msr),
            Some(TraceFormat::ObjectCsv),
            Some(TraceFormat::OracleGeneral),
        ]),
    ) {
        // Damaged in the middle, where the decoders are beyond their headers.
        let damaged = |mut packed: Vec<u8>| {
            let at = cut.index(packed.len());
            packed.splice(at.., bytes.iter().copied());
            packed
        };
        let (gzipped, packed) = (damaged(gzip(text.as_bytes())), damaged(zstd(text.as_bytes())));
        for bytes in [&bytes[..], text.as_bytes(), &gzipped, &packed] {
            if let Err(error) = read_as(bytes, format) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }

    /// The fast way and the other one agree on every line that both can read.
    #[test]
    fn quotes_change_nothing(
        fields in proptest::collection::vec("[0-9a-f]{0,20}|[0-9]{1,12}(\\.[0-9]{0,12})?| ?2a|28", 3..6),
    ) {
        let quoted: Vec<String> = fields.iter().map(|field| format!("\"{field}\"")).collect();
        for format in [TraceFormat::BlockCsv, TraceFormat::ObjectCsv] {
            let read = |fields: &[String]| {
                read_as(fields.join(",").as_bytes(), Some(format)).map_err(|error| error.to_string())
            };
            prop_assert_eq!(read(&fields), read(&quoted));
        }
    }

    /// So do they where the fields are those of MSR Cambridge.
    #[test]
    fn quotes_change_nothing_of_msr_cambridge(
        lines in proptest::collection::vec(
            (
                "[0-9]{0,4}|1[0-9]{17}", "usr|a b|", "[01]", "Read|Write|read|x",
                "[0-9]{1,20}", "[0-9]{1,10}", "[0-9]{0,3}",
            ),
            1..4,
        ),
    ) {
        let text = |quote: &str| {
            let fields = |(time, host, disk, kind, offset, size, took): &(String, _, _, _, _, _, _)| {
                let fields: [&String; 7] = [time, host, disk, kind, offset, size, took];
                fields.map(|field| format!("{quote}{field}{quote}")).join(",")
            };
            lines.iter().map(fields).collect::<Vec<_>>().join("\n")
        };
        let read = |text: String| {
            let read = TraceReader::new(text.as_bytes(), Some(TraceFormat::Msr));
            let read = read.and_then(|reader| reader.unsorted(true).collect::<Result<Vec<_>, _>>());
            read.map_err(|error| error.to_string())
        };
        prop_assert_eq!(read(text("")), read(text("\"")));
    }

    #[test]
    fn what_is_written_as_text_or_records_is_read_back(
        requests in proptest::collection::vec((any::<u32>(), any::<u64>(), any::<u32>()), 1..50),
    ) {
        let mut requests = requests;
        requests.sort_by_key(|&(time, ..)| time);
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
