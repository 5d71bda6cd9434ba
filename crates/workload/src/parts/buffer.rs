//! The buffer that a task reads to and writes from, where it is worth counting.
//!
//! Left out: buffers of one page; of tasks that live as long as the run, those of calls that are no longer than the
//! default's, 128 KiB, on machines whose processes were measured with them. Neighbour: [`super::turns`], whose readers
//! have theirs whatever its length.

use units::{Bytes, PAGE_SIZE};

use crate::system::{System, SystemError};

/// Calls of at most this length leave the buffer out.
const UNCOUNTED: Bytes = Bytes(128 << 10);

/// The task, one of many short ones, is about to write with calls of `call`.
pub(crate) async fn use_pages<S: System>(sys: &S, call: Bytes) -> Result<(), SystemError> {
    if call > Bytes(PAGE_SIZE) { sys.use_buffer(call).await } else { Ok(()) }
}

/// The task is about to read or write with calls of up to `call`.
pub(crate) async fn use_large<S: System>(sys: &S, call: Bytes) -> Result<(), SystemError> {
    let counts = call > UNCOUNTED || (call > Bytes(0) && sys.counts_buffers());
    if counts { sys.use_buffer(call).await } else { Ok(()) }
}
