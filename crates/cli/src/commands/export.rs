//! `pagetide export`: recordings in the form of another suite.

use lab::folders::{Loaded, SideBySide, load};
use lab::{mmtests, view};
use report::{Group, Rules};

use crate::args::{ExportArgs, ExportForm};
use crate::printer::{Failure, Printer};

pub(crate) fn export(args: &ExportArgs, printer: &Printer) -> Result<(), Failure> {
    let rules = match args.form {
        ExportForm::Mmtests => Rules::G19,
        ExportForm::MmtestsHead => Rules::Head,
    };
    let SideBySide { columns, unfinished, .. } = load(&args.folders)?;
    unfinished.iter().for_each(|told| printer.warning(told));
    let groups: Vec<Group<'_>> = columns.iter().map(Loaded::group).collect();
    let recordings = groups.iter().flat_map(|group| group.recordings.iter().copied());
    let view = view(recordings, true, Vec::new());
    let better = |name: &str| report::better_in(&view, name);
    let warnings = mmtests::export(&groups, &better, rules, &args.out)?;
    warnings.iter().for_each(|warning| printer.warning(warning));
    printer.note(&format!("exported to {}", args.out.display()));
    Ok(())
}
