//! Tables by a number of the kernel's: of tasks, of processes. Each call is looked up in several, and nobody from
//! outside chooses the numbers, so that they are spread by a multiplication (Fibonacci hashing) and not by the
//! standard library's keyed hash.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table by number.
pub(crate) type ByNumber<N, T> = HashMap<N, T, BuildHasherDefault<Spread>>;

/// Spreads numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spread(u64);

/// 2^64 by the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_i32(&mut self, number: i32) {
        self.write_u64(u64::from(number.cast_unsigned()));
    }

    fn write_u64(&mut self, number: u64) {
        // The high half depends on all bits, and tables look at the low one, too.
        let spread = (self.0.rotate_left(5) ^ number).wrapping_mul(FACTOR);
        self.0 = spread ^ spread >> 32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_lie_apart() {
        let hash = |number: i32| {
            let mut spread = Spread::default();
            spread.write_i32(number);
            spread.finish()
        };
        for part in [|hash: u64| hash & 0xffff, |hash: u64| hash >> 48] {
            let parts: std::collections::BTreeSet<u64> = (0..1000).map(|number| part(hash(number))).collect();
            assert!(parts.len() > 980, "{}", parts.len());
        }
    }
}
