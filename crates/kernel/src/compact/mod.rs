//! Compaction: tasks in the slow path, and kcompactd. The steps are those of [`mm::compact::run`].

pub mod direct;
pub mod kcompactd;
pub mod zone;
