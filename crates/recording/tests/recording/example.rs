//! What the tests write: a recording, and tables of another program.

use std::collections::BTreeMap;
use std::sync::Arc;

use pagetide_recording::{Phase, Recording, Series, Stall};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// A small recording that has something everywhere.
pub fn example() -> Recording {
    let names = ["nr_free_pages", "pgscan_kswapd", "nr_zone_unevictable"].map(String::from).to_vec();
    Recording {
        scenario_toml: "workload = \"hot-and-stream\"\nseed = 7\n".into(),
        metrics: BTreeMap::from([("hot_pages_cached".into(), 1710.0), ("a_third".into(), 1.0 / 3.0)]),
        samples: BTreeMap::from([("files_per_s".into(), vec![4444.8, 5003.7])]),
        vmstat: BTreeMap::from([("pgscan_kswapd".into(), 157_036), ("nr_free_pages".into(), 5000)]),
        memcg: BTreeMap::from([("P/A".into(), BTreeMap::from([("inactive_file".into(), 4096)]))]),
        phases: vec![Phase { name: "hot_ready".into(), at_ns: 703_000_000, vmstat: BTreeMap::new() }],
        series: Series::new(names, vec![(0, vec![900, 0, 7]), (100_000_000, vec![800, 32, 7])]),
        stalls: vec![Stall {
            task: "stream".into(),
            reason: "page read".into(),
            count: 3,
            total_ns: 900_000,
            max_ns: 500_000,
        }],
        events: 1234,
        simulated_ns: 23_142_000_000,
        ..Recording::new("linux-6.12", "hot-and-stream", "sim", "linux-6.12", 7)
    }
}

/// A column of a table by another program: whole numbers, or texts.
pub enum Column {
    Numbers(&'static str, Vec<i64>),
    Texts(&'static str, Vec<&'static str>),
}

/// A file of Parquet by the library, with one key if any.
pub fn table(columns: &[Column], key: Option<(&str, String)>) -> Vec<u8> {
    let described = |column: &Column| match column {
        Column::Numbers(name, _) => format!("REQUIRED INT64 {name}; "),
        Column::Texts(name, _) => format!("REQUIRED BYTE_ARRAY {name} (STRING); "),
    };
    let schema = format!("message table {{ {}}}", columns.iter().map(described).collect::<String>());
    let schema = Arc::new(parse_message_type(&schema).unwrap());
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::default()).unwrap();
    let mut group = file.next_row_group().unwrap();
    for column in columns {
        let mut writer = group.next_column().unwrap().unwrap();
        match column {
            Column::Numbers(_, cells) => writer.typed::<Int64Type>().write_batch(cells, None, None),
            Column::Texts(_, cells) => {
                let cells: Vec<ByteArray> = cells.iter().map(|&text| ByteArray::from(text)).collect();
                writer.typed::<ByteArrayType>().write_batch(&cells, None, None)
            }
        }
        .unwrap();
        writer.close().unwrap();
    }
    group.close().unwrap();
    if let Some((key, value)) = key {
        file.append_key_value_metadata(KeyValue::new(key.to_owned(), value));
    }
    file.into_inner().unwrap()
}
