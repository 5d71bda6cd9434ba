//! `pagetide list`: names in columns, and the zones of a machine.

use clap::ValueEnum;
use lab::names;
use lab::zones::{ZonesRequest, zones};
use report::views;

use crate::args::{ListArgs, ListWhat};
use crate::printer::{Failure, Printer};

pub(crate) fn list(args: &ListArgs, printer: &Printer) -> Result<(), Failure> {
    let named = args.what.to_possible_value().and_then(|what| names::list(what.get_name()));
    let list = match (named, args.given()) {
        (Some(list), None) => list,
        (Some(_), Some(option)) => {
            let problem = format!("`{option}` is for `list zones`; it changes nothing about names");
            return Err(Failure::Usage(problem));
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
