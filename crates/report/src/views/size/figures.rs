//! Numbers of a size as they are written: for people, and in JSON.

use serde_json::{Value, json};

use super::found::Spread;
use crate::document::Cell;

/// Bytes as people say them, to a tenth of a MiB.
pub(super) fn mib(bytes: u64) -> String {
    let tenths = (bytes as f64 / 104_857.6).round();
    if tenths % 10.0 == 0.0 {
        format!("{:.0} MiB", tenths / 10.0)
    } else {
        format!("{:.1} MiB", tenths / 10.0)
    }
}

pub(super) fn limit(limit: Option<u64>) -> Cell {
    limit.map_or("none".to_owned(), mib).into()
}

/// A number or, of several seeds that differ, the least to the most.
pub(super) fn ranged(spread: Spread, factor: f64, places: usize) -> String {
    let text = |value: f64| {
        let text = format!("{:.places$}", value * factor);
        if text.trim_start_matches(['-', '0', '.']).is_empty() { "0".to_owned() } else { text }
    };
    let (least, most) = (text(spread.least), text(spread.most));
    if least == most { most } else { format!("{least} to {most}") }
}

/// Digits for a number of this size.
pub(super) fn places(most: f64) -> usize {
    match most.abs() {
        most if most >= 100.0 => 0,
        most if most >= 10.0 => 1,
        most if most >= 1.0 => 2,
        _ => 3,
    }
}

/// In JSON, the least to the most.
pub(super) fn spread(spread: Option<Spread>) -> Value {
    spread.map_or(
        Value::Null,
        |Spread { least, mean, most }| json!({ "least": least, "mean": mean, "most": most }),
    )
}

/// As Kubernetes writes it.
pub(super) fn quantity(bytes: u64) -> String {
    let suffix = |shift: u32| bytes != 0 && bytes.trailing_zeros() >= shift;
    match () {
        () if suffix(30) => format!("{}Gi", bytes >> 30),
        () if suffix(20) => format!("{}Mi", bytes >> 20),
        () => format!("{}Ki", bytes >> 10),
    }
}

/// As systemd and Docker write it: 256M, or kibibytes.
pub(super) fn size(bytes: u64) -> String {
    let divides = |shift: u32| bytes != 0 && bytes.trailing_zeros() >= shift;
    match () {
        () if divides(30) => format!("{}G", bytes >> 30),
        () if divides(20) => format!("{}M", bytes >> 20),
        () => format!("{}K", bytes >> 10),
    }
}
