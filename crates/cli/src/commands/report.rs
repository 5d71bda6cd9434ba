//! `pagetide report`: recordings made earlier, each by itself.

use lab::folders::{Loaded, SideBySide, load};
use lab::{Recording, view};

use super::made_by;
use crate::args::{Format, ReportArgs};
use crate::printer::{Failure, Printer};

pub(crate) fn report(args: &ReportArgs, printer: &Printer) -> Result<(), Failure> {
    let SideBySide { columns: loaded, unfinished, .. } = load(&args.folders)?;
    unfinished.iter().for_each(|told| printer.warning(told));
    let all: Vec<&Recording> = loaded.iter().flat_map(|loaded| &loaded.recordings).collect();
    let text = match args.format {
        Format::Text => {
            let texts = all.iter().map(|&recording| {
                let view = view([recording], printer.width(), args.all, Vec::new());
                report::run_text(recording, view) + &made_by(recording)
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        Format::Json => report::to_json(&all)?,
        Format::Csv => report::to_csv(&all)?,
        Format::Md => {
            let values = |loaded: &Loaded| {
                let view = view(&loaded.recordings, printer.width(), args.all, Vec::new());
                report::to_markdown(&[loaded.group()], view)
            };
            loaded.iter().map(values).collect::<Result<Vec<_>, _>>()?.join("\n")
        }
    };
    printer.data(&text)
}
