//! Documents for programs: what their view makes for them, or their tables.

use serde_json::{Map, Value, json};

use crate::document::{Block, Cell, Document, Records, Table};

/// The JSON of the view, or `{"schema": 1, "tables": [[{heading: cell}]]}`; with a newline at its end.
pub(super) fn json(document: &Document<'_>) -> String {
    let tables = || -> Value { tables(document).map(objects).collect() };
    let value = match &document.json {
        Some(make) => make(),
        None => json!({ "schema": 1, "tables": tables() }),
    };
    format!("{value:#}\n")
}

fn objects(table: &Table) -> Value {
    let object = |row: &Vec<Cell>| {
        let pairs = table.headings.iter().zip(row).map(|((name, _), cell)| (name.clone(), cell.value()));
        Value::Object(pairs.collect::<Map<_, _>>())
    };
    table.rows.iter().map(object).collect()
}

/// The CSV of the view, or its tables, an empty line between two.
pub(super) fn csv(document: &Document<'_>) -> String {
    if let Some(make) = &document.csv {
        return written(make());
    }
    tables(document).map(|table| written(records(table))).collect::<Vec<_>>().join("\n")
}

fn records(table: &Table) -> Records {
    let header = table.headings.iter().map(|(name, _)| name.clone()).collect();
    let rows = table.rows.iter().map(|row| row.iter().map(Cell::field).collect());
    std::iter::once(header).chain(rows).collect()
}

fn written(records: Records) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for record in records {
        writer.write_record(record).expect("memory takes every write");
    }
    let bytes = writer.into_inner().expect("memory takes every write");
    String::from_utf8(bytes).expect("made of text")
}

fn tables<'d>(document: &'d Document<'_>) -> impl Iterator<Item = &'d Table> {
    document.sections.iter().flat_map(|section| &section.blocks).filter_map(|block| match block {
        Block::Table(table) => Some(table),
        _ => None,
    })
}
