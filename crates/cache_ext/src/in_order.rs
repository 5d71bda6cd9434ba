//! Taking folios as they lie on a list.

use mm::lru::cache_ext::lists::{LOOKS_MAX, Seen, Verdict};

/// Every folio is a candidate, but for those that the kernel would not free now.
pub(crate) fn in_order(count: u32, seen: Seen) -> Verdict {
    match seen.is_busy() {
        _ if count == LOOKS_MAX => Verdict::Stop,
        true => Verdict::Rotate,
        false => Verdict::Evict,
    }
}
