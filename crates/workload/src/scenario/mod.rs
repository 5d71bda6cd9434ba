//! A scenario: everything that decides a run, and its one text form in TOML.
//!
//! [`Scenario::read`] reads what a person wrote and fills in the workload's defaults;
//! [`Scenario::to_toml`] writes every value, in one order, so that equal scenarios have equal
//! bytes and the file reads back equal. Names of kernels, machines and sysctls are checked
//! against a [`Vocabulary`](crate::Vocabulary) that the caller supplies.
//!
//! Map: `read` finds the values and their places; `resolved` is what comes of it; `guest` is the table `[vm]`; `swap`
//! what a machine swaps to; `error` says what is wrong where; `real` what a real kernel leaves to say. Left out:
//! whether a machine can run a workload, which the backend finds out.

mod backend;
mod bounds;
mod error;
mod guest;
mod read;
mod real;
mod resolved;
mod swap;
mod values;

pub use crate::language::table::Position;
pub use backend::{Backend, GUEST_MACHINE, UML_MACHINE};
pub use bounds::{INTERVAL_MAX, INTERVAL_MIN, MEM_MAX, MEM_MIN, SCHEMA, SEED_DEFAULT, interval_text};
pub use error::{ScenarioError, ScenarioProblem};
pub use guest::{GUEST_CPUS_MAX, GUEST_NODES_MAX, Guest, LruGen, XFS_LOG_MIB};
pub use read::Written;
pub use real::{check_kernel, check_lru_gen, check_machine, check_mem, is_guest_machine, lru_gen_of};
pub use resolved::Scenario;
pub use swap::{Swap, SwapArea, SwapDevice, Zswap, check_swap};
pub use values::{parse_interval, parse_mem, parse_mem_of, parse_sysctl_value};
