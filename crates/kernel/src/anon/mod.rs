//! Anonymous memory: mappings, their page tables, huge pages and khugepaged.
//!
//! Start with [`mapping`].

mod advice;
pub(crate) mod area;
pub mod file;
mod file_fault;
pub mod huge;
pub mod khugepaged;
mod lock;
pub mod mapping;
mod page;
pub mod page_table;
pub mod shared;
pub(crate) mod shared_file;
