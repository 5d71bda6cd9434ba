//! Maps: what a policy remembers.
//!
//! ```text
//!   hash   key --> slot     slot 0 | slot 1 | slot 2 ...   values, at addresses that stay
//! ```
//! A hash that drops the least recently used (`LRU_HASH`) does so exactly; a kernel goes by the CPU and only nearly
//! keeps the order. Maps for each CPU have the values of one CPU: a policy runs to its end before another begins.
//! Left out: locks in values, timers, maps of maps; iteration over a map. Next: [`crate::helpers`], which calls these.

use std::collections::BTreeMap;

use crate::btf::{Btf, TypeId};
use crate::fault::{Fault, ObjectError, Ran};
use crate::memory::{DATA_MAX, Memory, values_address};

/// The map in which user space keeps the inodes that a policy is for.
const WATCHLIST: &str = "inode_watchlist";

const ENOENT: i64 = -2;
const E2BIG: i64 = -7;
const EEXIST: i64 = -17;
const EINVAL: i64 = -22;

/// What kind of map it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Hash,
    LruHash,
    Array,
    Ring,
}

/// A map as an object defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MapSpec {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    key: usize,
    value: usize,
    pub(crate) max_entries: u32,
}

impl MapSpec {
    /// Reads a definition: a struct whose members point to arrays as long as the numbers that they stand for.
    pub(crate) fn of(btf: &Btf, name: &str, definition: TypeId) -> Result<Self, ObjectError> {
        let wrong = || ObjectError::broken(format!("the definition of the map `{name}` cannot be read"));
        let (mut kind, mut key, mut value, mut max_entries) = (0, 0, 0, 0);
        for member in btf.members(definition) {
            let of = btf.pointee(member.of).ok_or_else(wrong)?;
            let number = || btf.array(of).map(|(_, count)| count).ok_or_else(wrong);
            match member.name {
                "type" => kind = number()?,
                "max_entries" => max_entries = number()?,
                "key_size" => key = number()?,
                "value_size" => value = number()?,
                "key" => key = btf.size(of).ok_or_else(wrong)?,
                "value" => value = btf.size(of).ok_or_else(wrong)?,
                _ => {}
            }
        }
        let kind = match kind {
            1 | 5 => Kind::Hash,
            9 | 10 => Kind::LruHash,
            2 | 6 => Kind::Array,
            27 => Kind::Ring,
            other => {
                let hint = "modelled are hashes, arrays, both of them for each CPU or not, and ring buffers";
                return Err(ObjectError::new(format!("the map `{name}` is of type {other}"), hint));
            }
        };
        Ok(Self { name: name.to_owned(), kind, key: key as usize, value: value as usize, max_entries })
    }

    /// Whether it has every inode.
    pub(crate) fn is_watchlist(&self) -> bool {
        self.kind == Kind::Hash && self.name == WATCHLIST
    }

    /// Bytes of it that are there from the beginning.
    pub(crate) fn fixed_size(&self) -> usize {
        if self.kind == Kind::Array { self.stride().saturating_mul(self.max_entries as usize) } else { 0 }
    }

    /// From one value to the next.
    fn stride(&self) -> usize {
        self.value.next_multiple_of(8)
    }
}

/// Entries of a hash.
#[derive(Debug, Clone, Default)]
struct Hash {
    slots: BTreeMap<Box<[u8]>, u32>,
    free: Vec<u32>,
    /// By slot: when it was used last, and the key. Of LRU hashes alone.
    used: Vec<u64>,
    order: BTreeMap<u64, Box<[u8]>>,
    clock: u64,
}

/// The maps of a policy that runs.
#[derive(Debug, Clone)]
pub(crate) struct Maps {
    specs: Vec<MapSpec>,
    hashes: Vec<Hash>,
    /// Records that are in ring buffers.
    pub(crate) records: u32,
}

impl Maps {
    /// Empty maps.
    pub(crate) fn new(specs: &[MapSpec], memory: &mut Memory) -> Self {
        for (map, spec) in specs.iter().enumerate() {
            memory.grow_values(map, spec.fixed_size());
        }
        Self { specs: specs.to_vec(), hashes: vec![Hash::default(); specs.len()], records: 0 }
    }

    fn spec(&self, map: Option<usize>) -> Ran<(usize, &MapSpec)> {
        let found = map.and_then(|map| Some((map, self.specs.get(map)?)));
        found.ok_or_else(|| Fault::new("a helper for maps is given something else"))
    }

    fn key<'m>(spec: &MapSpec, memory: &'m Memory, address: u64) -> Ran<&'m [u8]> {
        let key = memory.bytes(address, spec.key);
        key.ok_or_else(|| Fault::new(format!("a key of `{}` at {address:#x}, where nothing is", spec.name)))
    }

    fn index(spec: &MapSpec, key: &[u8]) -> Option<usize> {
        let index = u32::from_le_bytes(key.try_into().ok()?);
        (index < spec.max_entries).then_some(index as usize)
    }

    /// Where the value of a key lies; 0 without one.
    pub(crate) fn lookup(&mut self, memory: &mut Memory, map: Option<usize>, key: u64) -> Ran<u64> {
        let (map, spec) = self.spec(map)?;
        let bytes = Self::key(spec, memory, key)?;
        let slot = match spec.kind {
            Kind::Array => Self::index(spec, bytes),
            Kind::Ring => return Err(Fault::new(format!("a look into the ring buffer `{}`", spec.name))),
            Kind::Hash | Kind::LruHash => match self.hashes[map].slots.get(bytes).copied() {
                None if spec.is_watchlist() => {
                    let key: Box<[u8]> = bytes.into();
                    self.insert(memory, map, key)
                }
                slot => {
                    if spec.kind == Kind::LruHash
                        && let Some(slot) = slot
                    {
                        self.hashes[map].touch(slot, bytes.into());
                    }
                    slot.map(|slot| slot as usize)
                }
            },
        };
        Ok(slot.map_or(0, |slot| values_address(map) + (slot * self.specs[map].stride()) as u64))
    }

    /// `bpf_map_update_elem`: 0 or an errno.
    pub(crate) fn update(
        &mut self,
        memory: &mut Memory,
        map: Option<usize>,
        (key, value): (u64, u64),
        flags: u64,
    ) -> Ran<i64> {
        let (map, spec) = self.spec(map)?;
        let bytes = Self::key(spec, memory, key)?;
        let new = memory.bytes(value, spec.value).map(<[u8]>::to_vec);
        let new = new.ok_or_else(|| {
            Fault::new(format!("a value of `{}` at {value:#x}, where nothing is", spec.name))
        })?;
        let (there, is_array) = match spec.kind {
            Kind::Array => (Self::index(spec, bytes), true),
            Kind::Ring => return Ok(EINVAL),
            Kind::Hash | Kind::LruHash => {
                (self.hashes[map].slots.get(bytes).map(|&slot| slot as usize), false)
            }
        };
        let slot = match (there, flags) {
            (Some(_), 1) => return Ok(EEXIST),
            (None, 2) => return Ok(ENOENT),
            (None, _) if is_array => return Ok(E2BIG),
            (Some(slot), _) => {
                if spec.kind == Kind::LruHash {
                    self.hashes[map].touch(slot as u32, bytes.into());
                }
                slot
            }
            (None, _) => {
                let key: Box<[u8]> = bytes.into();
                match self.insert(memory, map, key) {
                    Some(slot) => slot,
                    None => return Ok(E2BIG),
                }
            }
        };
        let at = values_address(map) + (slot * self.specs[map].stride()) as u64;
        memory.bytes_mut(at, new.len())?.copy_from_slice(&new);
        Ok(0)
    }

    /// `bpf_map_delete_elem`: 0 or an errno.
    pub(crate) fn delete(&mut self, memory: &Memory, map: Option<usize>, key: u64) -> Ran<i64> {
        let (map, spec) = self.spec(map)?;
        let bytes = Self::key(spec, memory, key)?;
        if matches!(spec.kind, Kind::Array | Kind::Ring) {
            return Ok(EINVAL);
        }
        Ok(if self.hashes[map].remove(bytes) { 0 } else { ENOENT })
    }

    /// `bpf_ringbuf_output`: 0 or an errno.
    pub(crate) fn output(&mut self, memory: &Memory, map: Option<usize>, data: u64, size: u64) -> Ran<i64> {
        let (_, spec) = self.spec(map)?;
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if spec.kind != Kind::Ring || memory.bytes(data, size).is_none() {
            return Err(Fault::new(format!("a record of {size} bytes at {data:#x} for `{}`", spec.name)));
        }
        self.records += 1;
        Ok(0)
    }

    /// Puts a key in that is not there, with a value of zeros. None: it is full.
    fn insert(&mut self, memory: &mut Memory, map: usize, key: Box<[u8]>) -> Option<usize> {
        let (spec, hash) = (&self.specs[map], &mut self.hashes[map]);
        if hash.slots.len() >= spec.max_entries as usize {
            let oldest = hash.order.first_key_value().map(|(_, key)| key.clone());
            hash.remove(&oldest.filter(|_| spec.kind == Kind::LruHash)?);
        }
        let slot = hash.free.pop().unwrap_or(hash.slots.len() as u32);
        let at = slot as usize * spec.stride();
        if at + spec.stride() > DATA_MAX {
            hash.free.push(slot);
            return None;
        }
        if memory.bytes(values_address(map) + at as u64, spec.stride()).is_none() {
            memory.grow_values(map, at + spec.stride());
        }
        let value = memory.bytes_mut(values_address(map) + at as u64, spec.stride());
        value.expect("there is room for it").fill(0);
        hash.slots.insert(key.clone(), slot);
        if spec.kind == Kind::LruHash {
            hash.touch(slot, key);
        }
        Some(slot as usize)
    }
}

impl Hash {
    fn touch(&mut self, slot: u32, key: Box<[u8]>) {
        let slot = slot as usize;
        if self.used.len() <= slot {
            self.used.resize(slot + 1, u64::MAX);
        }
        self.clock += 1;
        let before = std::mem::replace(&mut self.used[slot], self.clock);
        self.order.remove(&before);
        self.order.insert(self.clock, key);
    }

    fn remove(&mut self, key: &[u8]) -> bool {
        let Some(slot) = self.slots.remove(key) else { return false };
        if let Some(used) = self.used.get_mut(slot as usize) {
            self.order.remove(&std::mem::replace(used, u64::MAX));
        }
        self.free.push(slot);
        true
    }
}
