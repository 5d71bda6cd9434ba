//! The names that a scenario may use, supplied by whoever knows the mechanisms, and the kernel
//! as a name with features added and taken away.
//!
//! Left out: what any name means. This crate must not know the mechanisms, so it is told their
//! names and no more.

use std::collections::BTreeMap;
use std::fmt;

use thiserror::Error;

use language::names::UnknownName;

/// All names of one program, in the order in which lists show them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Vocabulary<'a> {
    /// Named kernels: `linux-5.3`.
    pub kernels: &'a [&'a str],
    /// Features that a kernel can have or not: `root-aging`. No name may be another one followed
    /// by `+` or `-` and a third.
    pub features: &'a [&'a str],
    /// Features that somebody may look for and that are not modelled, with the reason.
    pub unmodelled: &'a [(&'a str, &'a str)],
    /// Named machines.
    pub machines: &'a [&'a str],
    /// Sysctls by their dotted names: `vm.swappiness`.
    pub sysctls: &'a [&'a str],
}

/// A kernel: a name, with features that were added (true) or taken away (false) by name. Equal
/// kernels have equal texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelSpec {
    /// The named kernel that it is made from.
    pub base: String,
    /// What was changed about it.
    pub features: BTreeMap<String, bool>,
    /// The object of eBPF that evicts its file pages, as it was named: a path, what is set of it, a hash.
    pub object: Option<String>,
}

/// What an object is named behind. It comes last, as a path may have any sign in it.
const OBJECT: &str = "+cache-ext=";

impl fmt::Display for KernelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)?;
        for (feature, &added) in &self.features {
            write!(f, "{}{feature}", if added { '+' } else { '-' })?;
        }
        match &self.object {
            Some(object) => write!(f, "{OBJECT}{object}"),
            None => Ok(()),
        }
    }
}

/// Why a text is no kernel.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KernelError {
    /// No kernel or feature has this name.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// One feature is both added and taken away.
    #[error("feature `{0}` is both added and taken away")]
    Contradiction(String),
    /// A feature that is known and not modelled.
    #[error("feature `{name}` is not modelled: {why}")]
    Unmodelled {
        /// Its name.
        name: String,
        /// Why not.
        why: String,
    },
    /// One feature is added, or taken away, twice.
    #[error("feature `{0}` is named twice")]
    Twice(String),
}

impl KernelError {
    /// What to write instead; `None` when the message says it all.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown(unknown) => Some(unknown.hint()),
            Self::Unmodelled { .. } => Some("`pagetide list features` has those that are".to_owned()),
            Self::Contradiction(_) | Self::Twice(_) => Some("leave one of them out".to_owned()),
        }
    }
}

impl Vocabulary<'_> {
    /// Reads a kernel: `linux-5.3`, `linux-5.3+root-aging-watermark-boost`. Names contain dashes
    /// too, so the longest known name counts. Behind `+cache-ext=` all is the name of an object.
    ///
    /// # Errors
    /// An unknown kernel or feature, or one feature named twice.
    pub fn kernel(&self, text: &str) -> Result<KernelSpec, KernelError> {
        let unknown = |what, text: &str, known: &[&str]| {
            let typed = text.split('+').next().unwrap_or(text);
            UnknownName::new(what, typed, known.iter().copied())
        };
        let (text, object) = match text.split_once(OBJECT) {
            Some((text, object)) => (text, Some(object.to_owned())),
            None => (text, None),
        };
        let (base, mut rest) =
            longest_name(text, self.kernels).ok_or_else(|| unknown("kernel", text, self.kernels))?;
        let mut features = BTreeMap::new();
        while let Some(sign) = rest.chars().next() {
            let names = &rest[sign.len_utf8()..];
            self.check_modelled(names)?;
            let (feature, after) =
                longest_name(names, self.features).ok_or_else(|| unknown("feature", names, self.features))?;
            let added = sign == '+';
            match features.insert(feature.to_owned(), added) {
                None => {}
                Some(before) if before == added => return Err(KernelError::Twice(feature.to_owned())),
                Some(_) => return Err(KernelError::Contradiction(feature.to_owned())),
            }
            rest = after;
        }
        Ok(KernelSpec { base: base.to_owned(), features, object })
    }

    fn check_modelled(&self, names: &str) -> Result<(), KernelError> {
        let absent: Vec<&str> = self.unmodelled.iter().map(|(name, _)| *name).collect();
        let Some((found, _)) = longest_name(names, &absent) else { return Ok(()) };
        let why = self.unmodelled.iter().find(|(name, _)| *name == found).map_or("", |(_, why)| *why);
        Err(KernelError::Unmodelled { name: found.to_owned(), why: why.to_owned() })
    }

    /// Checks the name of a machine. What is changed behind it, as in `s390-fcp+cpus=16`, is for those who
    /// build it.
    ///
    /// # Errors
    /// [`UnknownName`].
    pub fn machine(&self, name: &str) -> Result<String, UnknownName> {
        let (base, _) = name.split_at(name.find('+').unwrap_or(name.len()));
        known("machine", base, self.machines).map(|_| name.to_owned())
    }

    /// The dotted name of a sysctl, which may be written as a path below `/proc/sys` too.
    ///
    /// # Errors
    /// [`UnknownName`].
    pub fn sysctl(&self, name: &str) -> Result<String, UnknownName> {
        known("sysctl", &name.replace('/', "."), self.sysctls)
    }
}

fn known(what: &'static str, name: &str, names: &[&str]) -> Result<String, UnknownName> {
    match names.iter().find(|&&known| known == name) {
        Some(&known) => Ok(known.to_owned()),
        None => Err(UnknownName::new(what, name, names.iter().copied())),
    }
}

/// The longest of `names` that `text` begins with and that ends there or before a sign, and the
/// rest of the text.
fn longest_name<'t>(text: &'t str, names: &[&str]) -> Option<(&'t str, &'t str)> {
    let ends = |len: usize| {
        let (name, rest) = text.split_at(len);
        (rest.is_empty() || rest.starts_with(['+', '-'])).then_some((name, rest))
    };
    let begins = names.iter().filter(|name| text.starts_with(**name));
    begins.filter_map(|name| ends(name.len())).max_by_key(|(name, _)| name.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: Vocabulary = Vocabulary {
        kernels: &["linux-5.3", "linux-5.3-rc3", "linux-6.1"],
        features: &["boost", "boost-cap", "root-aging"],
        unmodelled: &[("floor", "there are no walls")],
        machines: &["small", "large"],
        sysctls: &["vm.swappiness", "vm.min_free_kbytes"],
    };

    #[test]
    fn kernels_are_read_by_their_longest_names_and_written_in_one_order() {
        for (text, canonical) in [
            ("linux-5.3", "linux-5.3"),
            ("linux-5.3-rc3-boost", "linux-5.3-rc3-boost"),
            ("linux-5.3-boost-cap", "linux-5.3-boost-cap"),
            ("linux-6.1+root-aging-boost", "linux-6.1-boost+root-aging"),
            ("linux-6.1+root-aging-boost+cache-ext=a+b-c.o", "linux-6.1-boost+root-aging+cache-ext=a+b-c.o"),
        ] {
            let kernel = WORDS.kernel(text).unwrap();
            assert_eq!(kernel.to_string(), canonical);
            assert_eq!(WORDS.kernel(canonical), Ok(kernel));
        }
    }

    #[test]
    fn wrong_kernels_and_names_are_explained() {
        let kernel = |text| {
            let error = WORDS.kernel(text).unwrap_err();
            let hint = error.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            format!("{error}{hint}")
        };
        let name = |result: Result<String, UnknownName>| {
            let error = result.unwrap_err();
            format!("{error}; {}", error.hint())
        };
        let said = [
            kernel("linux-5.4"),
            kernel("linux5.3+boost"),
            kernel("linux-5.3+rot-aging"),
            kernel("linux-5.3+"),
            kernel("linux-5.3+boost-boost"),
            kernel("linux-5.3+boost+boost"),
            kernel("linux-5.3+boost+floor"),
            name(WORDS.machine("smal")),
            name(WORDS.sysctl("vm/swapiness")),
            name(WORDS.sysctl("min_free_kbytes")),
        ];
        insta::assert_snapshot!(said.join("\n"), @"
        unknown kernel `linux-5.4`; did you mean `linux-5.3`?
        unknown kernel `linux5.3`; did you mean `linux-5.3`?
        unknown feature `rot-aging`; did you mean `root-aging`?
        unknown feature ``; known names: `boost`, `boost-cap`, `root-aging`
        feature `boost` is both added and taken away; leave one of them out
        feature `boost` is named twice; leave one of them out
        feature `floor` is not modelled: there are no walls; `pagetide list features` has those that are
        unknown machine `smal`; did you mean `small`?
        unknown sysctl `vm.swapiness`; did you mean `vm.swappiness`?
        unknown sysctl `min_free_kbytes`; did you mean `vm.min_free_kbytes`?
        ");
        assert_eq!(WORDS.sysctl("vm/swappiness").as_deref(), Ok("vm.swappiness"));
    }
}
