//! An object by its bytes, with what user space would have set of it.
//!
//! Real policies come with a program that loads them: it fills in constants, sizes maps, lists the inodes of a folder
//! that is watched. Here a person gives constants and sizes by name, every inode is watched, and what is assumed is
//! told. Next: [`crate::policy`], which is asked by the kernel.

use std::sync::Arc;

use mm::lru::cache_ext::hooks::EvictionPolicy;
use units::Seed;

use crate::fault::ObjectError;
use crate::link::{Linked, linked};
use crate::maps::Kind;
use crate::memory::DATA_MAX;
use crate::policy::ObjectPolicy;

/// Ends the name of a map where its size is set.
const ENTRIES: &str = ".max_entries";

/// An object of eBPF that holds a policy.
#[derive(Debug, Clone)]
pub struct Object {
    linked: Linked,
}

impl Object {
    /// Reads an object as a compiler has left it.
    ///
    /// # Errors
    /// It is none, is one of another machine, holds no policy, or calls what is not there.
    pub fn read(bytes: &[u8]) -> Result<Self, ObjectError> {
        linked(bytes).map(|linked| Self { linked })
    }

    /// Gives a variable its value, or a map its size (`ghost_map.max_entries`), as the program that loads the object
    /// would.
    ///
    /// # Errors
    /// Nothing has this name, or its value has more than 8 bytes.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), ObjectError> {
        if let Some(map) = name.strip_suffix(ENTRIES) {
            let found = self.linked.maps.iter_mut().find(|spec| spec.name == map);
            let (Some(spec), Ok(value)) = (found, u32::try_from(value)) else {
                return Err(self.no_name(name));
            };
            spec.max_entries = value;
            return Ok(());
        }
        let variable = self.linked.variables.iter().find(|variable| variable.name == name);
        let Some(variable) = variable.filter(|variable| matches!(variable.size, 1 | 2 | 4 | 8)) else {
            return Err(self.no_name(name));
        };
        let bytes = value.to_le_bytes();
        let fits = bytes[variable.size..].iter().all(|&byte| byte == 0);
        if !fits {
            let message = format!("`{name}` has {} bytes, and {value} does not fit", variable.size);
            return Err(ObjectError::new(message, "give a smaller number"));
        }
        let data = &mut self.linked.data[variable.data];
        let end = variable.offset.checked_add(variable.size).filter(|&end| end <= data.size);
        let end =
            end.ok_or_else(|| ObjectError::broken(format!("`{name}` lies outside of `{}`", data.name)))?;
        if data.bytes.len() < end {
            data.bytes.resize(end, 0);
        }
        data.bytes[variable.offset..end].copy_from_slice(&bytes[..variable.size]);
        Ok(())
    }

    fn no_name(&self, name: &str) -> ObjectError {
        let Linked { maps, variables, .. } = &self.linked;
        let numbers = variables.iter().filter(|variable| matches!(variable.size, 1 | 2 | 4 | 8));
        let is_set =
            |name: &str| !name.contains('.') && !name.starts_with('_') && !name.starts_with("watch_dir");
        let numbers = numbers.map(|variable| variable.name.clone()).filter(|name| is_set(name));
        let known: Vec<String> =
            numbers.chain(maps.iter().map(|spec| format!("{}{ENTRIES}", spec.name))).collect();
        let hint = "a variable of 1, 2, 4 or 8 bytes by its name, or `MAP.max_entries`";
        ObjectError::new(format!("the object has no `{name}` to set; it has {}", known.join(", ")), hint)
    }

    /// Checks that nothing is missing that the program which loads the object would have set.
    ///
    /// # Errors
    /// A map without a size; too much memory.
    pub fn check(&self) -> Result<(), ObjectError> {
        let unsized_map =
            self.linked.maps.iter().find(|spec| spec.max_entries == 0 && spec.kind != Kind::Ring);
        if let Some(spec) = unsized_map {
            let message =
                format!("the map `{}` has no size: the program that loads the object sets it", spec.name);
            return Err(ObjectError::new(
                message,
                "set it behind the object's path, as `:MAP.max_entries=16384`",
            ));
        }
        let arrays = self.linked.maps.iter().map(crate::maps::MapSpec::fixed_size);
        let all = self.linked.data.iter().map(|data| data.size).chain(arrays).fold(0, usize::saturating_add);
        if all > DATA_MAX {
            return Err(ObjectError::new(format!("the object wants {all} bytes"), "1 GiB is the most"));
        }
        Ok(())
    }

    /// What is assumed of user space and of the kernel that the object was compiled for, a sentence each.
    pub fn assumed(&self) -> Vec<String> {
        let Linked { maps, layout, answers, .. } = &self.linked;
        let watchlist = maps.iter().find(|spec| spec.is_watchlist());
        let watched = watchlist.map(|spec| format!("the policy's `{}` has every file", spec.name));
        let flags = (!layout.flags.are_known).then(|| {
            "the policy was compiled for the page flags of Linux 6.6, on which cache_ext is a patch".into()
        });
        let answered = (!answers.is_empty()).then(|| {
            "user space runs the object's `syscall` program at once when a ring buffer has a record".into()
        });
        [watched, flags, answered].into_iter().flatten().collect()
    }

    /// A policy of which each cgroup gets a copy. What it draws follows from `seed`.
    pub fn policy(self, seed: Seed) -> Box<dyn EvictionPolicy> {
        Box::new(ObjectPolicy::new(Arc::new(self.linked), seed, INSTRUCTIONS_MAX))
    }

    /// As [`Object::policy`], with another end for what runs too long.
    pub fn policy_within(self, seed: Seed, instructions: u64) -> Box<dyn EvictionPolicy> {
        Box::new(ObjectPolicy::new(Arc::new(self.linked), seed, instructions))
    }
}

/// Instructions of one hook until it has run too long. The longest of cache_ext's policies take a fifth of it, where
/// LHD makes its tables anew.
const INSTRUCTIONS_MAX: u64 = 1 << 30;
