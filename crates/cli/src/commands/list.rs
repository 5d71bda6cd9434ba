//! `pagetide list`: names in columns, and the zones of a machine.

use clap::ValueEnum;
use lab::names;
use lab::zones::{ZonesRequest, zones};
use report::views;

use crate::args::{Format, ListArgs, ListWhat};
use crate::printer::{Failure, Printer};

pub(crate) fn list(args: &ListArgs, printer: &Printer) -> Result<(), Failure> {
    let named = args.what.to_possible_value().and_then(|what| names::list(what.get_name()));
    let in_brief =
        matches!((args.what, args.format), (ListWhat::Workloads, Format::Text)) && args.names.is_empty();
    let list = match (named, args.given()) {
        (Some(_), None) if in_brief => names::workloads_in_brief(),
        (Some(list), None) => names::only(list, &args.names)?,
        (Some(_), Some(option)) => {
            let problem = format!("`{option}` is for `list zones`; it changes nothing about names");
            return Err(Failure::Usage(problem));
        }
        (None, _) if !args.names.is_empty() => {
            return Err(Failure::Usage("`list zones` takes options, no names".to_owned()));
        }
        (None, _) => zones(&ZonesRequest {
            kernel: args.kernel.clone(),
            machine: args.machine.clone(),
            mem: args.mem.clone(),
            sysctls: args.sysctls.clone(),
        })?,
    };
    if let (ListWhat::Kernels, Some(here)) = (args.what, lab::real::kernels_here()) {
        printer.note(&here);
    }
    printer.document(&views::list(&list), args.format)
}
