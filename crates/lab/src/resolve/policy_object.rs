//! The object of eBPF that evicts a kernel's file pages: `linux-6.12+cache-ext=PATH:NAME=NUMBER@HASH`.
//!
//! The hash is that of the object's bytes. It is written behind a name that has none when the name is resolved, and so
//! goes into scenarios and recordings: what is run again is the same object, or is refused. Paths are as they were
//! given. Next: the crate `bpf`, which runs it.

use bpf::{Object, ObjectError};
use workload::KernelSpec;
use workload::scenario::ScenarioProblem;
use xxhash_rust::xxh3::xxh3_64;

/// A name's parts.
struct Named<'a> {
    path: &'a str,
    /// Variables and sizes that are set.
    values: Vec<(&'a str, &'a str)>,
    hash: Option<&'a str>,
}

impl<'a> Named<'a> {
    fn of(text: &'a str) -> Self {
        let is_hash = |hash: &str| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (rest, hash) = match text.rsplit_once('@').filter(|(_, hash)| is_hash(hash)) {
            Some((rest, hash)) => (rest, Some(hash)),
            None => (text, None),
        };
        let mut parts = rest.split(':');
        let (path, mut values) = (parts.next().unwrap_or_default(), Vec::new());
        let mut end = path.len();
        for part in parts {
            match part.split_once('=') {
                Some(value) => values.push(value),
                // A colon of the path.
                None if values.is_empty() => end += 1 + part.len(),
                None => values.push((part, "")),
            }
        }
        Self { path: &rest[..end], values, hash }
    }

    fn bytes(&self) -> Result<Vec<u8>, ScenarioProblem> {
        std::fs::read(self.path).map_err(|error| {
            let message = format!("cannot read the policy `{}`: {error}", self.path);
            let hint = "`+cache-ext=PATH` names an object of eBPF, relative to the current folder";
            ScenarioProblem::Model { message, hint: Some(hint.to_owned()) }
        })
    }

    fn object(&self) -> Result<Object, ScenarioProblem> {
        let bytes = self.bytes()?;
        let hash = hash_of(&bytes);
        if let Some(wanted) = self.hash.filter(|wanted| *wanted != hash) {
            let message = format!(
                "`{}` is another policy than the one that was named: {hash}, not {wanted}",
                self.path
            );
            let hint = "compile the same source again, or leave `@HASH` out to run what is there".to_owned();
            return Err(ScenarioProblem::Model { message, hint: Some(hint) });
        }
        let problem = |error: ObjectError| ScenarioProblem::Model {
            message: format!("`{}`: {error}", self.path),
            hint: Some(error.hint.to_owned()),
        };
        let mut object = Object::read(&bytes).map_err(problem)?;
        for (name, value) in &self.values {
            let number = value.parse().map_err(|_| ScenarioProblem::Model {
                message: format!("`{name}={value}` gives a policy no whole number"),
                hint: Some("as in `+cache-ext=s3fifo.bpf.o:cache_size=16384`".to_owned()),
            })?;
            object.set(name, number).map_err(problem)?;
        }
        object.check().map_err(problem)?;
        Ok(object)
    }
}

fn hash_of(bytes: &[u8]) -> String {
    format!("{:016x}", xxh3_64(bytes))
}

/// The object of a kernel that has one.
///
/// # Errors
/// There is no such file, it is no policy, or another one than the name has.
pub(crate) fn object_of(kernel: &KernelSpec) -> Result<Option<Object>, ScenarioProblem> {
    kernel.object.as_deref().map(|text| Named::of(text).object()).transpose()
}

/// Adds the hash of its object to a kernel's name that has none.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn seal(kernel: &mut KernelSpec) -> Result<(), ScenarioProblem> {
    if let Some(text) = &mut kernel.object {
        let named = Named::of(text);
        if named.hash.is_none() {
            let hash = hash_of(&named.bytes()?);
            text.push('@');
            text.push_str(&hash);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_path_values_and_a_hash() {
        let parts = |text| {
            let Named { path, values, hash } = Named::of(text);
            format!("{path} {values:?} {hash:?}")
        };
        insta::assert_snapshot!(
            ["a.bpf.o", "d:x/a.o:size=3:m.max_entries=4@0123456789abcdef", "a@b.o:size"].map(parts).join("\n"),
            @r#"
        a.bpf.o [] None
        d:x/a.o [("size", "3"), ("m.max_entries", "4")] Some("0123456789abcdef")
        a@b.o:size [] None
        "#
        );
    }
}
