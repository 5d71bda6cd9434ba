//! `pagetide import`: runs of another suite as recordings, logs of other programs as traces.

use std::collections::BTreeSet;
use std::path::PathBuf;

use lab::folders::OutFolder;
use lab::program_file::{ImportFormat, read_log, write};
use lab::trace::check_new_file;
use lab::{Recording, mmtests};

use crate::args::{ImportArgs, ImportForm};
use crate::printer::{Failure, Printer};

pub(crate) fn import(args: &ImportArgs, printer: &Printer) -> Result<(), Failure> {
    match args.form {
        ImportForm::Mmtests => import_runs(args, printer),
        ImportForm::Strace => import_log(args, ImportFormat::Strace, printer),
        ImportForm::PerfTrace => import_log(args, ImportFormat::PerfTrace, printer),
        ImportForm::Blkparse => import_log(args, ImportFormat::Blkparse, printer),
        ImportForm::Fio => import_log(args, ImportFormat::Fio, printer),
        ImportForm::Damon => import_log(args, ImportFormat::Damon, printer),
    }
}

fn import_log(args: &ImportArgs, format: ImportFormat, printer: &Printer) -> Result<(), Failure> {
    check_new_file(&args.out)?; // Before anything is read.
    let trace = read_log(&args.from, format)?;
    write(&args.out, &trace)?;
    trace.gaps.iter().for_each(|gap| printer.warning(gap));
    let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    printer.note(&format!(
        "`{}`: {}, {}, {}, {:.1} s",
        args.out.display(),
        count(trace.operations.len(), "operation"),
        count(trace.tasks.len(), "task"),
        count(trace.files.len(), "file"),
        trace.length_ns as f64 / 1e9
    ));
    Ok(())
}

fn import_runs(args: &ImportArgs, printer: &Printer) -> Result<(), Failure> {
    OutFolder::new(&args.out)?; // Before anything is read.
    let imported = mmtests::import(&args.from)?;
    imported.warnings.iter().for_each(|warning| printer.warning(warning));
    let tests: BTreeSet<&str> =
        imported.recordings.iter().map(|recording| recording.workload.as_str()).collect();
    for test in &tests {
        // What ran other tests cannot be put side by side, so each gets a folder.
        let folder = if tests.len() == 1 { args.out.clone() } else { args.out.join(PathBuf::from(test)) };
        let out = OutFolder::new(&folder)?;
        let of_test = |recording: &&Recording| recording.workload == *test;
        let recordings: Vec<&Recording> = imported.recordings.iter().filter(of_test).collect();
        for (index, recording) in recordings.iter().enumerate() {
            out.keep_labelled(index, recordings.len(), recording)?;
        }
        let number = recordings.len();
        let noun = if number == 1 { "recording" } else { "recordings" };
        printer.note(&format!("{number} {noun} of {test} in {}", folder.display()));
    }
    Ok(())
}
