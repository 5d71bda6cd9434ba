//! Where memory was warm in a recorded run, from its events.
//!
//! Left out: what is made of them ([`report::heat`]). Reads one chunk of events at a time.

use std::path::Path;

use recording::{EventReader, Recording};
use report::heat::{Heat, HeatBuilder};

use crate::error::LabError;

/// Ages and places of the pages of `recording`, which lies in `folder`; none if it has no events of pages.
///
/// # Errors
/// Its events cannot be read.
pub fn heat(folder: &Path, recording: &Recording) -> Result<Option<Heat>, LabError> {
    let Some(mut reader) = EventReader::open(folder)? else { return Ok(None) };
    let mut builder = HeatBuilder::new(recording.simulated_ns);
    while let Some(chunk) = reader.next() {
        let chunk = chunk?;
        chunk.events.iter().for_each(|event| builder.take(reader.names(), event));
    }
    let heat = builder.finish(reader.names());
    Ok((!heat.ages.is_empty()).then_some(heat))
}
