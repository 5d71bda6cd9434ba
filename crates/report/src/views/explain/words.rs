//! How an explanation puts things: amounts, counts and lists in a sentence.

/// For whose sake reclaim ran, by the path of its target.
pub(super) fn for_whom(path: &str) -> String {
    if path.is_empty() { "the machine".to_owned() } else { format!("the limit of `{path}`") }
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn listed(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Pages as a size.
pub(super) fn mib(pages: u64) -> String {
    bytes(pages.saturating_mul(units::PAGE_SIZE))
}

/// Bytes as a size that a person reads.
pub(super) fn bytes(bytes: u64) -> String {
    let value = bytes as f64;
    for (unit, scale) in [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        let scale = f64::from(scale);
        if value >= scale {
            return format!("{} {unit}", crate::document::number::significant(value / scale, 3));
        }
    }
    format!("{bytes} B")
}

/// `never`, `once`, `twice`, `17 times`.
pub(super) fn so_often(times: u64) -> String {
    match times {
        0 => "never".to_owned(),
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        times => format!("{times} times"),
    }
}
