//! `pagetide import`: runs of another suite as recordings.

use std::collections::BTreeSet;
use std::path::PathBuf;

use lab::folders::OutFolder;
use lab::{Recording, mmtests};

use crate::args::ImportArgs;
use crate::printer::{Failure, Printer};

pub(crate) fn import(args: &ImportArgs, printer: &Printer) -> Result<(), Failure> {
    OutFolder::new(&args.out)?; // Before anything is read.
    let imported = mmtests::import(&args.folder)?;
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
