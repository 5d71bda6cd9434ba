//! libCacheSim's `oracleGeneral`: packed records of 24 bytes, little endian.
//!
//! | bytes  | field               |                                                        |
//! |--------|---------------------|--------------------------------------------------------|
//! | 0..4   | `clock_time`        | u32, seconds                                           |
//! | 4..12  | `obj_id`            | u64                                                    |
//! | 12..16 | `obj_size`          | u32, bytes                                             |
//! | 16..24 | `next_access_vtime` | i64, request number of the next access, negative: none |
//!
//! Source: the reader of that name in libCacheSim. The next access serves optimal replacement
//! only, and is left out here.

use std::io::Read;

use super::input::Input;
use super::{Request, RequestKind, TraceError};

/// Bytes of a record.
pub(super) const RECORD_LEN: usize = 24;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

#[inline]
pub(super) fn next<R: Read>(input: &mut Input<R>) -> Result<Option<Request>, TraceError> {
    Ok(input.record()?.map(|record| decode(record).0))
}

/// A record as a request, and its next access.
#[inline]
pub(super) fn decode(record: &[u8; RECORD_LEN]) -> (Request, i64) {
    let [t0, t1, t2, t3, o0, o1, o2, o3, o4, o5, o6, o7, s0, s1, s2, s3, next @ ..] = *record;
    let seconds = u32::from_le_bytes([t0, t1, t2, t3]);
    let request = Request {
        time_ns: u64::from(seconds) * NANOS_PER_SECOND,
        kind: RequestKind::Read,
        object: u64::from_le_bytes([o0, o1, o2, o3, o4, o5, o6, o7]),
        offset_bytes: 0,
        size_bytes: u32::from_le_bytes([s0, s1, s2, s3]),
    };
    (request, i64::from_le_bytes(next))
}
