//! `pagetide report`: recordings made earlier, each by itself.

use lab::Recording;
use lab::folders::{Loaded, load};

use super::made_by;
use crate::args::{Format, ReportArgs};
use crate::printer::{Failure, Printer};

pub(crate) fn report(args: &ReportArgs, printer: &Printer) -> Result<(), Failure> {
    let loaded = load(&args.folders)?;
    let all: Vec<&Recording> = loaded.iter().flat_map(|loaded| &loaded.recordings).collect();
    let text = match args.format {
        Format::Text => {
            let text =
                |recording: &&Recording| report::run_text(recording, printer.width()) + &made_by(recording);
            let texts = all.iter().map(text);
            texts.collect::<Vec<_>>().join("\n")
        }
        Format::Json => report::to_json(&all)?,
        Format::Csv => report::to_csv(&all)?,
        Format::Md => {
            let values = |loaded: &Loaded| report::to_markdown(&[loaded.group()]);
            loaded.iter().map(values).collect::<Result<Vec<_>, _>>()?.join("\n")
        }
    };
    printer.data(&text)
}
