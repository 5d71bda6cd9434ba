//! Which column of a text trace holds what: by the names of its first line, or by their number.
//!
//! | what   | names                                                       | values                      |
//! |--------|-------------------------------------------------------------|-----------------------------|
//! | time   | `time`, `timestamp`, `ts`, `clock_time`                     | seconds; or as its end says |
//! | object | `object`, `key`, `id`, `obj`, `obj_id`, `object_id`         | whole numbers               |
//! | block  | `lbn`, `lba`, `block`, `sector`                             | blocks of 512 bytes         |
//! | offset | `offset`, `offset_bytes`                                    | bytes on the device         |
//! | size   | `size`, `obj_size`, `object_size`, `length`, `len`, `bytes` | bytes                       |
//! | op     | `op`, `operation`, `opcode`, `type`                         | SCSI codes or words         |
//!
//! A time's name may end in `_s`, `_ms`, `_us` or `_ns`. Capitals, blanks and hyphens in names do not
//! matter, and other columns are passed over. A trace addresses objects or a device, not both; without
//! `op` every request reads.
//!
//! Columns `hostname`, `disknumber` and `responsetime` beside these make it a trace as those of MSR Cambridge,
//! which are published without a heading: its times are Windows filetimes, and all of it is of one disk.

use super::{TraceFormat, TraceProblem};

/// The columns of block traces without a heading.
const BLOCK: &str = "version,time,op,size,lbn";
/// The columns of object traces without a heading.
const OBJECT: &str = "time,object,size";
/// The columns of MSR Cambridge's block traces.
const MSR: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";
/// Nanoseconds in a tick of a Windows filetime.
const FILETIME_UNIT_NS: u64 = 100;

/// What a request's address counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Address {
    /// Whole objects by number.
    Object,
    /// Blocks of a device.
    Block,
    /// Bytes of a device.
    Offset,
}

/// Which of the fast parsers reads lines without quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plain {
    Block,
    Object,
    Msr,
    /// None: the columns are others, or in another order.
    No,
}

/// Where everything is in a line.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    pub(super) names: Vec<String>,
    pub(super) time: usize,
    /// Nanoseconds in a unit of time.
    pub(super) time_unit_ns: u64,
    pub(super) address: (Address, usize),
    pub(super) size: usize,
    pub(super) op: Option<usize>,
    /// Where MSR Cambridge's traces have the host and the number of its disk.
    pub(super) disk: Option<[usize; 2]>,
    pub(super) plain: Plain,
}

/// What a column is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Time { unit_ns: u64 },
    Address(Address),
    Size,
    Op,
    Host,
    Disk,
}

fn role(name: &str) -> Option<Role> {
    let name = name.trim().to_ascii_lowercase().replace([' ', '-'], "_");
    let units = [("_ns", 1), ("_us", 1_000), ("_ms", 1_000_000), ("_s", 1_000_000_000)];
    let in_unit = units.iter().find_map(|&(end, unit_ns)| Some((name.strip_suffix(end)?, unit_ns)));
    let (stem, unit_ns) = in_unit.unwrap_or((&name, 1_000_000_000));
    match (stem, &*name) {
        ("time" | "timestamp" | "ts" | "clock_time" | "clocktime", _) => Some(Role::Time { unit_ns }),
        (_, "object" | "key" | "id" | "obj" | "obj_id" | "object_id" | "objid") => {
            Some(Role::Address(Address::Object))
        }
        (_, "lbn" | "lba" | "block" | "sector") => Some(Role::Address(Address::Block)),
        (_, "offset" | "offset_bytes") => Some(Role::Address(Address::Offset)),
        (_, "size" | "obj_size" | "object_size" | "objsize" | "length" | "len" | "bytes" | "size_bytes") => {
            Some(Role::Size)
        }
        (_, "hostname") => Some(Role::Host),
        (_, "disknumber" | "disk_number") => Some(Role::Disk),
        (_, "op" | "operation" | "opcode" | "type") => Some(Role::Op),
        _ => None,
    }
}

impl Columns {
    /// Those of a trace that has no heading.
    pub(super) fn unnamed(format: TraceFormat) -> Self {
        let names = match format {
            TraceFormat::BlockCsv => BLOCK,
            TraceFormat::Msr => MSR,
            TraceFormat::ObjectCsv | TraceFormat::OracleGeneral => OBJECT,
        };
        let names = names.split(',').map(str::to_owned).collect();
        Self::named(names, None).expect("these names say all")
    }

    /// Those that a heading names. `wanted` tells which address counts where there are two kinds.
    pub(super) fn named(names: Vec<String>, wanted: Option<TraceFormat>) -> Result<Self, TraceProblem> {
        let fits = |role: Role| match (role, wanted) {
            (Role::Address(address), Some(format)) => (address == Address::Object) != format.is_block(),
            _ => true,
        };
        let roles: Vec<(usize, Role)> = (names.iter().enumerate())
            .filter_map(|(index, name)| Some((index, role(name).filter(|&role| fits(role))?)))
            .collect();
        let quoted = |names: &mut dyn Iterator<Item = &String>| {
            names.map(|name| format!("`{}`", name.escape_debug())).collect::<Vec<_>>().join(", ")
        };
        let one = |what: &'static str, is_it: &dyn Fn(Role) -> bool| {
            let mut found = roles.iter().filter(|(_, role)| is_it(*role));
            match (found.next(), found.next()) {
                (None, _) => Ok(None),
                (Some(only), None) => Ok(Some(*only)),
                _ => {
                    let all = roles.iter().filter(|(_, role)| is_it(*role));
                    let columns = quoted(&mut all.map(|(index, _)| &names[*index]));
                    Err(TraceProblem::AmbiguousColumn { what, columns })
                }
            }
        };
        let needed = |what: &'static str, is_it: &dyn Fn(Role) -> bool| {
            let missing = || TraceProblem::MissingColumn { what, found: quoted(&mut names.iter()) };
            one(what, is_it)?.ok_or_else(missing)
        };
        let is_msr = names.iter().any(|name| role(name) == Some(Role::Host))
            && names.iter().any(|name| role(name) == Some(Role::Disk))
            && names.iter().any(|name| name.trim().eq_ignore_ascii_case("ResponseTime"));
        let is_msr = wanted.map_or(is_msr, |format| format == TraceFormat::Msr);
        let address = match wanted.map(TraceFormat::is_block) {
            None => "object or block",
            Some(true) => "block",
            Some(false) => "object",
        };
        let time = needed("time", &|role| matches!(role, Role::Time { .. }))?;
        let place = needed(address, &|role| matches!(role, Role::Address(_)))?;
        let size = needed("size", &|role| role == Role::Size)?;
        let op = one("operation", &|role| role == Role::Op)?;
        let disk = match is_msr {
            true => Some([
                needed("host", &|role| role == Role::Host)?.0,
                needed("disk", &|role| role == Role::Disk)?.0,
            ]),
            false => None,
        };
        let (Role::Time { unit_ns }, Role::Address(address)) = (time.1, place.1) else {
            unreachable!("found by these roles")
        };
        let mut columns = Self {
            time: time.0,
            time_unit_ns: if is_msr { FILETIME_UNIT_NS } else { unit_ns },
            address: (address, place.0),
            size: size.0,
            op: op.map(|(index, _)| index),
            disk,
            plain: Plain::No,
            names,
        };
        columns.plain = columns.plain();
        Ok(columns)
    }

    fn plain(&self) -> Plain {
        let order = (self.names.len(), self.time, self.address, self.size, self.op);
        match order {
            (7, 0, (Address::Offset, 4), 5, Some(3)) if self.disk == Some([1, 2]) => Plain::Msr,
            _ if self.time_unit_ns != 1_000_000_000 => Plain::No,
            (5, 1, (Address::Block, 4), 3, Some(2)) => Plain::Block,
            (3, 0, (Address::Object, 1), 2, None) => Plain::Object,
            _ => Plain::No,
        }
    }

    /// The format that these columns are.
    pub(super) fn format(&self) -> TraceFormat {
        match self.address.0 {
            _ if self.disk.is_some() => TraceFormat::Msr,
            Address::Object => TraceFormat::ObjectCsv,
            Address::Block | Address::Offset => TraceFormat::BlockCsv,
        }
    }
}
