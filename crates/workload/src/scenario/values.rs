//! Reading single values, wherever they stand: in a file, on the command line.

use units::{Bytes, Nanos, parse_nanos, parse_size};

use crate::scenario::bounds::{INTERVAL_MAX, INTERVAL_MIN, MEM_MAX, MEM_MIN, interval_text};
use crate::scenario::error::ScenarioProblem;

/// Reads the size of a machine's memory.
///
/// # Errors
/// No size, or one outside of [`MEM_MIN`] to [`MEM_MAX`].
pub fn parse_mem(text: &str) -> Result<Bytes, ScenarioProblem> {
    parse_mem_of("mem", text)
}

/// Reads a size of memory that is called `key`.
///
/// # Errors
/// As [`parse_mem`].
pub fn parse_mem_of(key: &'static str, text: &str) -> Result<Bytes, ScenarioProblem> {
    let mem = parse_size(text).map_err(|source| ScenarioProblem::NotASize { key, source })?;
    if mem < MEM_MIN || mem > MEM_MAX { Err(ScenarioProblem::MemOutOfRange { key, mem }) } else { Ok(mem) }
}

/// Reads the time between two samples: `100ms`.
///
/// # Errors
/// No duration, or one outside of [`INTERVAL_MIN`] to [`INTERVAL_MAX`].
pub fn parse_interval(key: &'static str, text: &str) -> Result<Nanos, ScenarioProblem> {
    let interval = parse_nanos(text).map_err(|source| ScenarioProblem::NotADuration { key, source })?;
    if interval < INTERVAL_MIN || interval > INTERVAL_MAX {
        let interval = interval_text(interval);
        return Err(ScenarioProblem::IntervalOutOfRange { key, interval });
    }
    Ok(interval)
}

/// Reads a sysctl's value: words, put between single blanks.
///
/// # Errors
/// It is empty, or has characters that no sysctl has.
pub fn parse_sysctl_value(name: &str, text: &str) -> Result<String, ScenarioProblem> {
    let value = text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    if value.is_empty() || value.chars().any(|c| !c.is_ascii() || c.is_ascii_control()) {
        return Err(ScenarioProblem::NotASysctlValue { name: name.to_owned(), value: text.to_owned() });
    }
    Ok(value)
}
