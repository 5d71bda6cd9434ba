//! Stories about runs, and what damage to files of others may do.

mod damage;
mod fio_jobs;
mod foreign;
mod one_number;
mod policy_objects;
