//! Numbers that a person has: from arguments, plain files, CSV and JSON, as the runs that a table compares.
//!
//! An argument is `NAME=1.5,2.5`, `NAME=FILE` or `FILE`. A file has numbers, one a line or as somebody pasted them,
//! with blanks between them, or with commas also at the ends of lines; or it is CSV with a header:
//! either columns `value` and, if there are several, `run` and `operation`, or one column for each operation; or
//! it is JSON: a list of numbers, an object of such lists by operation, or an object of those by run. Left out:
//! recordings, see [`crate::keep::folders`]. Next: `pagetide-report`'s `samples`, which shows what comes of it.

use std::fmt::Display;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use stats::mmtests_table::Run;

use crate::error::LabError;

pub use crate::error::NumbersError;

/// The runs that `arguments` name, in their order; what their input does not name is called `operation`.
///
/// Files that a run is named after several times add to it.
///
/// # Errors
/// An argument is neither numbers nor a file, or a file cannot be read or holds something else.
pub fn read(arguments: &[String], operation: &str) -> Result<Vec<Run>, LabError> {
    let mut runs: Vec<Run> = Vec::new();
    for argument in arguments {
        for run in argument_runs(argument, operation)? {
            let own = runs.iter_mut().find(|other| other.name == run.name);
            let own = match own {
                Some(own) => own,
                None => {
                    runs.push(Run { name: run.name, operations: Vec::new() });
                    runs.last_mut().expect("just added")
                }
            };
            for (name, samples) in run.operations {
                add(own, &name, samples);
            }
        }
    }
    Ok(runs)
}

fn argument_runs(argument: &str, operation: &str) -> Result<Vec<Run>, LabError> {
    let named = argument.split_once('=').filter(|(name, _)| !name.is_empty() && !name.contains('/'));
    if let Some((name, list)) = named {
        let numbers: Option<Vec<f64>> = list.split(',').map(number).collect();
        if let Some(samples) = numbers.filter(|_| !Path::new(list).exists()) {
            return Ok(vec![one_run(name, operation, samples)]);
        }
    }
    let (name, path) = match named {
        Some((name, file)) if !Path::new(argument).exists() => (Some(name), PathBuf::from(file)),
        _ => (None, PathBuf::from(argument)),
    };
    let stem =
        path.file_stem().map_or_else(|| argument.to_owned(), |stem| stem.to_string_lossy().into_owned());
    let hint = "name a file of numbers, `NAME=FILE`, `NAME=1.5,2.5`, or folders with recordings";
    let bytes = std::fs::read(&path).map_err(|source| match name {
        Some(_) if source.kind() == ErrorKind::NotFound => {
            LabError::refused(format!("`{}` is neither finite numbers nor a file", path.display()), hint)
        }
        _ => LabError::Unreadable { path: path.clone(), source, hint: Some(hint) },
    })?;
    let wrong = |source| LabError::Numbers { path: path.clone(), source };
    let text = String::from_utf8(bytes).map_err(|_| wrong(no_text()))?;
    let runs = of_text(&text, name.unwrap_or(&stem), operation).map_err(wrong)?;
    // The name given stands for the run that a file names, if that is one.
    Ok(match (name, &runs[..]) {
        (Some(name), [run]) => vec![Run { name: name.to_owned(), ..run.clone() }],
        _ => runs,
    })
}

/// The runs in a text: JSON where it begins like that, else CSV or a list; without a name of its own a run is `name`.
///
/// # Errors
/// It holds something else, or nothing.
pub fn of_text(text: &str, name: &str, operation: &str) -> Result<Vec<Run>, NumbersError> {
    let runs = match text.trim_start().chars().next() {
        Some('[' | '{') => of_json(text, name, operation)?,
        _ => match pasted(text) {
            Some(samples) => vec![one_run(name, operation, samples)],
            None => of_rows(text, name, operation)?,
        },
    };
    let is_empty = runs.iter().all(|run| run.operations.iter().all(|(_, samples)| samples.is_empty()));
    if is_empty { Err(empty()) } else { Ok(runs) }
}

/// The numbers of a text that has nothing else. Lines of several that are apart by commas, but end without one, may
/// be rows of columns, which want names.
fn pasted(text: &str) -> Option<Vec<f64>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let lines: Vec<&str> = lines.collect();
    let (_, all_but_last) = lines.split_last()?;
    let may_be_rows = lines.iter().any(|line| line.trim_end_matches(',').contains(','))
        && all_but_last.iter().any(|line| !line.ends_with(','));
    if may_be_rows {
        return None;
    }
    let fields = lines.iter().flat_map(|line| line.split([',', ' ', '\t'])).filter(|field| !field.is_empty());
    fields.map(number).collect()
}

fn of_rows(text: &str, name: &str, operation: &str) -> Result<Vec<Run>, NumbersError> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .flexible(false)
        .from_reader(text.as_bytes());
    let mut records = reader.records().enumerate().map(|(index, record)| {
        let record = record.map_err(no_csv)?;
        let line = record.position().map_or(index as u64 + 1, csv::Position::line);
        Ok((line, record))
    });
    let Some(first) = records.next().transpose()? else { return Err(empty()) };
    if first.1.iter().any(|field| number(field).is_none() && !field.is_empty()) {
        // A word alone above one column is its name.
        let rest = records.collect::<Result<Vec<_>, _>>()?;
        return with_header(&first.1, &rest, first.0, name, operation);
    }
    let mut samples = Vec::new();
    for record in std::iter::once(Ok(first)).chain(records) {
        let (line, record) = record?;
        match record.len() {
            1 => samples.push(field_number(&record[0], line)?),
            fields => {
                return Err(NumbersError {
                    problem: format!("line {line}: {fields} numbers in a row, and no header that names them"),
                    hint: "begin with a header: a name for each column, or `run,operation,value`",
                });
            }
        }
    }
    Ok(vec![one_run(name, operation, samples)])
}

fn with_header(
    header: &csv::StringRecord,
    rows: &[(u64, csv::StringRecord)],
    line: u64,
    name: &str,
    operation: &str,
) -> Result<Vec<Run>, NumbersError> {
    if rows.is_empty() {
        return Err(no_number(line, header.iter().find(|field| number(field).is_none()).unwrap_or_default()));
    }
    let column = |name: &str| header.iter().position(|field| field.eq_ignore_ascii_case(name));
    let (run_column, operation_column) = (column("run"), column("operation"));
    let value_column = column("value");
    let mut runs: Vec<Run> = Vec::new();
    for (line, row) in rows {
        let run = run_column.map_or(name, |column| &row[column]);
        if !runs.iter().any(|known| known.name == run) {
            runs.push(Run { name: run.to_owned(), operations: Vec::new() });
        }
        let run = runs.iter_mut().find(|known| known.name == run).expect("just made");
        if let Some(column) = value_column {
            let operation = operation_column.map_or(operation, |column| &row[column]);
            add(run, operation, vec![field_number(&row[column], *line)?]);
            continue;
        }
        for (column, field) in row.iter().enumerate().filter(|(column, _)| Some(*column) != run_column) {
            // A column that is shorter than another goes on with nothing.
            if !field.is_empty() {
                add(run, &header[column], vec![field_number(field, *line)?]);
            }
        }
    }
    Ok(runs)
}

fn of_json(text: &str, name: &str, operation: &str) -> Result<Vec<Run>, NumbersError> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(no_json)?;
    let list = |value: &serde_json::Value| -> Option<Vec<f64>> {
        value.as_array()?.iter().map(|number| number.as_f64().filter(|number| number.is_finite())).collect()
    };
    let by_operation = |name: &str, value: &serde_json::Value| -> Option<Run> {
        let operations =
            value.as_object()?.iter().map(|(name, samples)| Some((name.clone(), list(samples)?)));
        Some(Run { name: name.to_owned(), operations: operations.collect::<Option<_>>()? })
    };
    if let Some(samples) = list(&value) {
        return Ok(vec![one_run(name, operation, samples)]);
    }
    if let Some(run) = by_operation(name, &value) {
        return Ok(vec![run]);
    }
    let by_run = value.as_object().and_then(|runs| {
        runs.iter().map(|(name, value)| by_operation(name, value)).collect::<Option<Vec<_>>>()
    });
    by_run.ok_or_else(|| no_json("it has something else than lists of numbers"))
}

fn one_run(name: &str, operation: &str, samples: Vec<f64>) -> Run {
    Run { name: name.to_owned(), operations: vec![(operation.to_owned(), samples)] }
}

fn add(run: &mut Run, operation: &str, samples: Vec<f64>) {
    match run.operations.iter_mut().find(|(name, _)| name == operation) {
        Some((_, own)) => own.extend(samples),
        None => run.operations.push((operation.to_owned(), samples)),
    }
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

fn field_number(field: &str, line: u64) -> Result<f64, NumbersError> {
    number(field).ok_or_else(|| no_number(line, &field.escape_default().to_string()))
}

fn no_number(line: u64, field: &str) -> NumbersError {
    NumbersError {
        problem: format!("line {line}: `{field}` is not a finite number"),
        hint: "write numbers, one a line or with blanks between them; lines that begin with `#` are left out",
    }
}

fn no_text() -> NumbersError {
    let hint = "name a file of numbers as CSV, JSON or a list; this one is something else";
    NumbersError { problem: "it is no text in UTF-8".to_owned(), hint }
}

fn no_csv(problem: impl Display) -> NumbersError {
    NumbersError { problem: problem.to_string(), hint: "every row needs as many fields as the header" }
}

fn no_json(problem: impl Display) -> NumbersError {
    let hint = "give a list of numbers, or an object of such lists by operation, or of those by run";
    NumbersError { problem: problem.to_string(), hint }
}

fn empty() -> NumbersError {
    NumbersError { problem: "there is no number in it".to_owned(), hint: "write one number a line" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match of_text(text, "file", "value") {
            Ok(runs) => {
                let run = |run: &Run| format!("{} {:?}", run.name, run.operations);
                runs.iter().map(run).collect::<Vec<_>>().join("\n")
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_list_has_one_number_a_line() {
        assert_eq!(shown("# files/s\n1.5\n\n2e3\n-4\n"), r#"file [("value", [1.5, 2000.0, -4.0])]"#);
        assert_eq!(shown("read_us\n3\n4\n"), r#"file [("read_us", [3.0, 4.0])]"#);
    }

    #[test]
    fn pasted_numbers_are_taken_as_they_stand() {
        let all = r#"file [("value", [1.0, 2.5, 3.0, 4.0])]"#;
        for text in
            ["1 2.5\t3\n4\n", "1, 2.5, 3,4", "1, 2.5,\n 3, 4\n", "1 2.5 # no\n", "# four\n1 2.5\n\n3 4\n"]
        {
            let wanted =
                if text.contains("# no") { "line 1: `1 2.5 # no` is not a finite number" } else { all };
            assert_eq!(shown(text), wanted, "{text:?}");
        }
    }

    #[test]
    fn csv_is_long_or_wide() {
        let long = "run,operation,value\na,x,1\nb,x,3\na,y,5\na,x,2\n";
        assert_eq!(shown(long), "a [(\"x\", [1.0, 2.0]), (\"y\", [5.0])]\nb [(\"x\", [3.0])]");
        assert_eq!(shown("x,y\n1,5\n2,\n"), r#"file [("x", [1.0, 2.0]), ("y", [5.0])]"#);
        assert_eq!(shown("run,x\na,1\nb,2\n"), "a [(\"x\", [1.0])]\nb [(\"x\", [2.0])]");
    }

    #[test]
    fn json_is_a_list_or_lists_by_operation_or_by_run() {
        assert_eq!(shown("[1, 2.5]"), r#"file [("value", [1.0, 2.5])]"#);
        assert_eq!(shown(r#"{"x": [1], "y": [2]}"#), r#"file [("x", [1.0]), ("y", [2.0])]"#);
        assert_eq!(shown(r#"{"a": {"x": [1]}, "b": {"x": [2]}}"#), "a [(\"x\", [1.0])]\nb [(\"x\", [2.0])]");
    }

    #[test]
    fn what_is_no_number_is_named_with_its_line() {
        for (text, wanted) in [
            ("1\ntwo\n3\n", "line 2: `two` is not a finite number"),
            ("1\ninf\n", "line 2: `inf` is not a finite number"),
            ("1,2\n3,4\n", "line 1: 2 numbers in a row, and no header that names them"),
            (
                "x,value\n1\n",
                "CSV error: record 1 (line: 2, byte: 8): found record with 1 fields, but the previous record has 2 fields",
            ),
            ("", "there is no number in it"),
            ("[]", "there is no number in it"),
            ("[1, \"x\"]", "it has something else than lists of numbers"),
            ("[1, 2", "EOF while parsing a list at line 1 column 5"),
            ("nothing\n", "line 1: `nothing` is not a finite number"),
        ] {
            assert_eq!(shown(text), wanted, "{text:?}");
        }
    }
}
