//! What recordings are asked: what a report shows first, which limits are kept, what explains a figure.
//!
//! | file | what it holds |
//! |---|---|
//! | `view.rs` | what a report of a workload shows first |
//! | `fail_if.rs` | limits on a comparison, as a person writes them |
//! | `heat.rs` | where memory was warm, from recorded events |
//! | `explain.rs` | what is to be explained: recordings, or a run that is made for it |
//! | `page.rs` | what the page of a workload asks and tells; pages as files |

pub mod explain;
pub mod fail_if;
pub(crate) mod heat;
pub mod page;
pub(crate) mod view;
