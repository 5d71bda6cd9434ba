//! The buffer that a task reads to and writes from, where it is worth counting.
//!
//! Left out: buffers of calls that are no longer than the default's, 128 KiB. Neighbour: [`super::turns`], whose
//! readers have theirs whatever its length.

use units::Bytes;

use crate::system::{System, SystemError};

/// Calls of at most this length leave the buffer out.
const UNCOUNTED: Bytes = Bytes(128 << 10);

/// The task is about to read or write with calls of up to `call`.
pub(crate) async fn use_large<S: System>(sys: &S, call: Bytes) -> Result<(), SystemError> {
    if call > UNCOUNTED { sys.use_buffer(call).await } else { Ok(()) }
}
