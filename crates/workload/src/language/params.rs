//! Parameters under the name that files of this crate have for them; they are in the crate `language`.

pub use ::language::params::*;
