//! Newtypes for counts, addresses and identities. One per address space and unit, so that a
//! page number is never added to a byte offset.
//!
//! Arithmetic is checked: overflow panics in every build profile of this workspace. Conversions
//! between units are named methods, never `From`.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Sub, SubAssign};

use crate::{PAGE_SHIFT, PAGE_SIZE};

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident($inner:ty), $suffix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub struct $name(pub $inner);

        impl $name {
            /// Nothing of it.
            pub const ZERO: Self = Self(0);

            /// The bare number.
            #[inline]
            pub const fn get(self) -> $inner {
                self.0
            }

            /// `self - other`, or zero where `other` is larger.
            #[inline]
            #[must_use]
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!("{}", $suffix), self.0)
            }
        }

        impl Add for $name {
            type Output = Self;
            #[inline]
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl AddAssign for $name {
            #[inline]
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }

        impl Sub for $name {
            type Output = Self;
            #[inline]
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl SubAssign for $name {
            #[inline]
            fn sub_assign(&mut self, other: Self) {
                self.0 -= other.0;
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
                iter.fold(Self::ZERO, Add::add)
            }
        }
    };
}

quantity! {
    /// A number of 4 KiB pages.
    Pages(u64), " pages"
}
quantity! {
    /// A number of bytes.
    Bytes(u64), " B"
}
quantity! {
    /// Simulated or measured time in nanoseconds: a point since boot, or a length.
    Nanos(u64), " ns"
}

impl Pages {
    /// The bytes that these pages hold.
    #[inline]
    pub const fn to_bytes(self) -> Bytes {
        Bytes(self.0 * PAGE_SIZE)
    }

    /// The kibibytes that these pages hold: the unit of `/proc/meminfo` and `min_free_kbytes`.
    #[inline]
    pub const fn to_kib(self) -> u64 {
        self.0 * (PAGE_SIZE / 1024)
    }
}

impl Bytes {
    /// Whole pages in these bytes; a rest is dropped.
    #[inline]
    pub const fn to_pages_floor(self) -> Pages {
        Pages(self.0 >> PAGE_SHIFT)
    }

    /// Pages needed to hold these bytes; a rest takes one more.
    #[inline]
    pub const fn to_pages_ceil(self) -> Pages {
        Pages(self.0.div_ceil(PAGE_SIZE))
    }
}

impl Nanos {
    /// `n` microseconds.
    pub const fn from_micros(n: u64) -> Self {
        Self(n * 1_000)
    }

    /// `n` milliseconds.
    pub const fn from_millis(n: u64) -> Self {
        Self(n * 1_000_000)
    }

    /// `n` seconds.
    pub const fn from_secs(n: u64) -> Self {
        Self(n * 1_000_000_000)
    }

    /// Seconds as a float: for reports only, never for a decision of the model.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

macro_rules! identity {
    ($(#[$doc:meta])* $name:ident($inner:ty), $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub struct $name(pub $inner);

        impl $name {
            /// As an index into a table.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

identity! {
    /// A page frame number: physical address / 4096. 32 bits address 16 TiB.
    Pfn(u32), "pfn"
}
identity! {
    /// A logical CPU.
    CpuId(u16), "cpu"
}
identity! {
    /// A NUMA node.
    NodeId(u8), "node"
}
identity! {
    /// log2 of a block's size in pages; 0 is one page, 9 one pageblock, 10 the largest block.
    Order(u8), "order"
}

impl Order {
    /// Pages in a block of this order.
    #[inline]
    pub const fn pages(self) -> u32 {
        1 << self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;

    #[test]
    fn a_rest_of_a_page_is_dropped_or_rounded_up_by_name() {
        let a_page_and_a_byte = Bytes(4097);
        assert_eq!(a_page_and_a_byte.to_pages_floor(), Pages(1));
        assert_eq!(a_page_and_a_byte.to_pages_ceil(), Pages(2));
    }

    #[test]
    fn debug_forms_tell_the_kinds_apart() {
        assert_eq!(format!("{:?} {:?} {:?}", Pfn(7), CpuId(7), Pages(7)), "pfn7 cpu7 7 pages");
    }

    #[test]
    #[should_panic(expected = "overflow")]
    fn subtraction_below_zero_stops_at_once() {
        let _ = Pages(1) - Pages(2);
    }
}
