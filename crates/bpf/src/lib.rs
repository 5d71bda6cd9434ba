//! Runs an eBPF object of cache_ext's interface (Zussman et al., SOSP 2025), as it is, as a policy for the file pages
//! of the modelled kernel.
//!
//! ```text
//!   policy.bpf.o --link--> program, maps, data --policy--> hooks of mm: init, evict_folios, folio_added, ...
//!                                                  vm: runs a hook; helpers and kfuncs call back into mm's lists
//! ```
//! Start with [`Object`], then `vm`, the interpreter, and `kfuncs`, what a policy does with lists.
//!
//! Left out: the verifier, which refuses programs before they run (here a program runs until it does what it must not);
//! the time that a program takes; what a kernel does not tell here, such as the task, the clock and a file's size.

mod btf;
mod calls;
mod code;
mod fault;
mod helpers;
mod kfuncs;
mod layout;
mod link;
mod maps;
mod memory;
mod object;
mod policy;
mod view;
mod vm;

pub use fault::ObjectError;
pub use object::Object;
