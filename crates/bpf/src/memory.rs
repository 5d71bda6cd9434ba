//! Addresses as a program sees them, and the memory behind those that are its own.
//!
//! ```text
//!   0xffff8880...  areas of bytes, 64 GiB apart: stack, arguments, context, data sections, values of maps
//!   0xffffea00...  folios, one after the other by their numbers; what they lead to lies further up
//! ```
//! They are the same on every machine and in every run, so a policy may compute with them, and none is an address of
//! the host. Next: [`crate::view`] for what is read of a kernel.

use crate::fault::{Fault, Ran};

/// Areas of bytes.
const AREAS: u64 = 0xffff_8880_0000_0000;
const AREA_SHIFT: u32 = 36;
/// `vmemmap` of x86.
pub(crate) const FOLIOS: u64 = 0xffff_ea00_0000_0000;
pub(crate) const NODES: u64 = 0xffff_f100_0000_0000;
pub(crate) const MAPPINGS: u64 = 0xffff_f200_0000_0000;
pub(crate) const INODES: u64 = 0xffff_f300_0000_0000;
pub(crate) const CGROUP: u64 = 0xffff_f400_0000_0000;
const MAPS: u64 = 0xffff_f500_0000_0000;
/// From one of these to the next.
const REGION: u64 = 1 << 40;

/// A frame of the stack, as programs are compiled for.
pub(crate) const FRAME: usize = 512;
/// Calls within each other.
pub(crate) const FRAMES_MAX: usize = 8;

pub(crate) const STACK: usize = 0;
pub(crate) const ARGUMENTS: usize = 1;
pub(crate) const CONTEXT: usize = 2;
const DATA: usize = 3;
/// Areas of maps lie behind those of so many sections.
pub(crate) const SECTIONS_MAX: usize = 61;
/// So many have room before the folios.
pub(crate) const MAPS_MAX: usize = 1024;
/// Bytes that an object's sections and arrays may have together, and the values of a map: those of cache_ext have 100
/// MiB at most.
pub(crate) const DATA_MAX: usize = 1 << 30;
const MAP_VALUES: usize = DATA + SECTIONS_MAX;

/// Where an area of bytes begins.
pub(crate) const fn area_address(area: usize) -> u64 {
    AREAS + ((area as u64) << AREA_SHIFT)
}

/// Where a data section begins.
pub(crate) const fn data_address(data: usize) -> u64 {
    area_address(DATA + data)
}

/// What a program knows a map by.
pub(crate) const fn map_address(map: usize) -> u64 {
    MAPS + ((map as u64) << 8)
}

/// The map that a program names.
pub(crate) fn map_of(address: u64) -> Option<usize> {
    let offset = address.checked_sub(MAPS).filter(|offset| offset & 0xff == 0)?;
    usize::try_from(offset >> 8).ok()
}

/// Where the values of a map begin.
pub(crate) const fn values_address(map: usize) -> u64 {
    area_address(MAP_VALUES + map)
}

/// Which struct of a region an address lies in, and where in it.
pub(crate) fn split(address: u64, region: u64, size: u64) -> Option<(u32, u32)> {
    let offset = within(address, region)?;
    Some((u32::try_from(offset / size).ok()?, (offset % size) as u32))
}

/// The offset in the area that begins at `region`.
const fn within(address: u64, region: u64) -> Option<u64> {
    match address.checked_sub(region) {
        Some(offset) if offset < REGION => Some(offset),
        _ => None,
    }
}

#[derive(Debug, Clone, Default)]
struct Area {
    bytes: Vec<u8>,
    is_readonly: bool,
}

/// Bytes that a program has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    areas: Vec<Area>,
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| (value << 8) | u64::from(byte))
}

impl Memory {
    pub(crate) fn new(context: usize) -> Self {
        let mut memory = Self::default();
        memory.place(STACK, vec![0; FRAMES_MAX * FRAME], false);
        // Behind the two arguments of a hook a number that is counted to.
        memory.place(ARGUMENTS, vec![0; 24], false);
        memory.place(CONTEXT, vec![0; context], false);
        memory
    }

    fn place(&mut self, area: usize, bytes: Vec<u8>, is_readonly: bool) {
        if self.areas.len() <= area {
            self.areas.resize_with(area + 1, Area::default);
        }
        self.areas[area] = Area { bytes, is_readonly };
    }

    /// Gives a data section its bytes.
    pub(crate) fn place_data(&mut self, data: usize, bytes: Vec<u8>, is_readonly: bool) {
        self.place(DATA + data, bytes, is_readonly);
    }

    /// Gives the values of a map room for so many bytes.
    pub(crate) fn grow_values(&mut self, map: usize, size: usize) {
        let area = MAP_VALUES + map;
        if self.areas.len() <= area {
            self.place(area, Vec::new(), false);
        }
        self.areas[area].bytes.resize(size, 0);
    }

    /// The bytes of a fixed area.
    pub(crate) fn area_mut(&mut self, area: usize) -> &mut [u8] {
        &mut self.areas[area].bytes
    }

    fn area(address: u64) -> Option<(usize, usize)> {
        let offset = address.checked_sub(AREAS)?;
        Some((usize::try_from(offset >> AREA_SHIFT).ok()?, (offset & ((1 << AREA_SHIFT) - 1)) as usize))
    }

    /// So many bytes at an address, if they are the program's own.
    #[inline]
    pub(crate) fn bytes(&self, address: u64, size: usize) -> Option<&[u8]> {
        let (area, offset) = Self::area(address)?;
        self.areas.get(area)?.bytes.get(offset..offset.checked_add(size)?)
    }

    /// The number at an address.
    #[inline]
    pub(crate) fn load(&self, address: u64, size: usize) -> Option<u64> {
        self.bytes(address, size).map(number)
    }

    /// The bytes at an address, to be changed.
    #[inline]
    pub(crate) fn bytes_mut(&mut self, address: u64, size: usize) -> Ran<&mut [u8]> {
        let found = Self::area(address).and_then(|(area, offset)| {
            let area = self.areas.get_mut(area)?;
            let bytes = area.bytes.get_mut(offset..offset.checked_add(size)?)?;
            Some((bytes, area.is_readonly))
        });
        match found {
            Some((bytes, false)) => Ok(bytes),
            Some((_, true)) => Err(Fault::new(format!("a write to a constant at {address:#x}"))),
            None => {
                Err(Fault::new(format!("a write of {size} bytes to {address:#x}, which is not the policy's")))
            }
        }
    }

    /// Writes the number at an address.
    #[inline]
    pub(crate) fn store(&mut self, address: u64, size: usize, value: u64) -> Ran {
        self.bytes_mut(address, size)?.copy_from_slice(&value.to_le_bytes()[..size]);
        Ok(())
    }

    /// The number at an address of a struct that the program passes.
    pub(crate) fn field(&self, address: u64, offset: u32, size: usize) -> Ran<u64> {
        let address = address.wrapping_add(u64::from(offset));
        self.load(address, size)
            .ok_or_else(|| Fault::new(format!("an argument at {address:#x}, where nothing is")))
    }
}
