//! The page cache: looking for pages, adding and reading those that are missing.
//!
//! One road for a page that is missing: [`filemap`] looks ([`look`]), [`add`] allocates, charges and inserts, for
//! one page and for a [`readahead`] window alike, [`io`] sends it off, [`wait`] sleeps until it is there.

pub mod add;
pub mod filemap;
pub(crate) mod in_flight;
pub mod io;
pub mod look;
pub mod mapped_readahead;
pub mod past;
pub mod readahead;
pub mod wait;
pub(crate) mod window;
