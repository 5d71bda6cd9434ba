//! Names as numbers: what a name begins with, and the digits that it ends with.
//!
//! ```text
//!   "000000000042"  -->  prefix "000", 9 digits, 42
//!   "d07"           -->  prefix "d", 2 digits, 7
//!   "hot"           -->  prefix "hot", no digits
//! ```
//! Millions of files have names that count, so a name is 8 bytes wherever it is kept, and names are equal
//! when those are. A prefix with its number of digits is kept for good, once: left out is that those which
//! nobody has any more are forgotten. Next: [`super::directory`], [`mm::fs::dentry`].

use mm::base::hash::{IdTable, hash_bytes};
use mm::fs::dentry::Name;

/// At most so many digits are the number: it has 32 bits.
const DIGITS_MAX: usize = 9;

/// All prefixes.
#[derive(Debug, Default)]
pub(crate) struct Spellings {
    /// One behind the other.
    text: String,
    prefixes: Vec<Prefix>,
    by_text: IdTable,
}

#[derive(Debug, Clone, Copy)]
struct Prefix {
    /// Where its text begins and ends.
    start: u32,
    end: u32,
    digits: u8,
}

/// A name in its two parts.
struct Split<'a> {
    prefix: &'a str,
    digits: u8,
    number: u32,
}

fn split(name: &str) -> Split<'_> {
    let (mut digits, mut number, mut power) = (0, 0, 1);
    for byte in name.bytes().rev().take(DIGITS_MAX).take_while(u8::is_ascii_digit) {
        number += u32::from(byte - b'0') * power;
        (digits, power) = (digits + 1, power * 10);
    }
    let (prefix, _) = name.split_at(name.len() - usize::from(digits));
    Split { prefix, digits, number }
}

impl Split<'_> {
    fn hash(&self) -> u32 {
        hash_bytes(self.prefix.as_bytes()) ^ u32::from(self.digits).wrapping_mul(0x9e37_79b1)
    }

    fn name(&self, prefix: u32) -> Name {
        Name((u64::from(prefix) << 32) | u64::from(self.number))
    }
}

impl Spellings {
    fn find_split(&self, split: &Split<'_>) -> Option<u32> {
        self.by_text.find(split.hash(), |id| {
            let Prefix { start, end, digits } = self.prefixes[id as usize];
            let prefix = &self.text.as_bytes()[start as usize..end as usize];
            digits == split.digits && prefix == split.prefix.as_bytes()
        })
    }

    /// The number of a name; none when no name was ever like it.
    pub(crate) fn find(&self, name: &str) -> Option<Name> {
        let split = split(name);
        self.find_split(&split).map(|prefix| split.name(prefix))
    }

    /// The number of a name.
    pub(crate) fn number(&mut self, name: &str) -> Name {
        let split = split(name);
        let prefix = self.find_split(&split).unwrap_or_else(|| {
            let start = u32::try_from(self.text.len()).expect("prefixes of names fit into 4 GiB");
            self.text.push_str(split.prefix);
            let end = u32::try_from(self.text.len()).expect("prefixes of names fit into 4 GiB");
            let id = u32::try_from(self.prefixes.len()).expect("fewer prefixes than bytes of them");
            self.prefixes.push(Prefix { start, end, digits: split.digits });
            self.by_text.insert(split.hash(), id);
            id
        });
        split.name(prefix)
    }

    /// The name that has a number.
    pub(crate) fn text(&self, name: Name) -> String {
        let (prefix, mut number) = (self.prefixes[(name.0 >> 32) as usize], name.0 as u32);
        let digits = usize::from(prefix.digits);
        let mut last = [b'0'; DIGITS_MAX];
        for digit in last[..digits].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
        let mut text = String::with_capacity(self.length(name) as usize);
        text.push_str(&self.text[prefix.start as usize..prefix.end as usize]);
        text.push_str(str::from_utf8(&last[..digits]).expect("digits are text"));
        text
    }

    /// How many characters a name has.
    pub(crate) fn length(&self, name: Name) -> u32 {
        let prefix = self.prefixes[(name.0 >> 32) as usize];
        (prefix.end - prefix.start) + u32::from(prefix.digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_comes_back_and_no_two_share_a_number() {
        let names = [
            "hot",
            "f7",
            "f07",
            "f007",
            "f",
            "7",
            "07",
            "000000000042",
            "00000000042",
            "0000000042",
            "a999999999",
            "a9999999999",
            "1a",
            "",
            "x-1.y",
            "ä1",
            "f8",
        ];
        let mut spellings = Spellings::default();
        let numbers: Vec<Name> = names.iter().map(|name| spellings.number(name)).collect();
        for (name, &number) in names.iter().zip(&numbers) {
            assert_eq!(spellings.text(number), *name);
            assert_eq!(spellings.length(number) as usize, name.len());
            assert_eq!(spellings.find(name), Some(number));
        }
        let distinct: std::collections::BTreeSet<Name> = numbers.iter().copied().collect();
        assert_eq!(distinct.len(), names.len());
        assert_eq!(spellings.find("g7"), None);
    }

    #[test]
    fn names_that_count_share_their_prefix() {
        let mut spellings = Spellings::default();
        for number in 0..1000 {
            spellings.number(&format!("d01-{number:06}"));
        }
        assert_eq!((spellings.prefixes.len(), spellings.text.as_str()), (1, "d01-"));
    }
}
