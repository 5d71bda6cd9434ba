//! Which patches are wanted of a recommendation: `deployment/web`, `vpa/web/nginx`, `unit/redis.service`.
//!
//! Left out: what stands in them (`pagetide-report`, `size/patch.rs`), and whether a cluster has what is named.

use report::{Patch, PatchKind};

use crate::error::LabError;

/// The patches that these name.
///
/// # Errors
/// One that names nothing which can be patched.
pub fn patches(texts: &[String]) -> Result<Vec<Patch>, LabError> {
    texts.iter().map(|text| patch(text)).collect()
}

fn patch(text: &str) -> Result<Patch, LabError> {
    let wrong = |what: &str| {
        let kinds = PatchKind::ALL.map(PatchKind::name).join(", ");
        LabError::refused(
            format!("`--patch {text}` {what}"),
            format!(
                "write KIND/NAME or KIND/NAME/CONTAINER, as in `--patch deployment/web`; kinds are {kinds}"
            ),
        )
    };
    let mut parts = text.split('/');
    let kind = parts.next().and_then(|name| PatchKind::ALL.into_iter().find(|kind| kind.name() == name));
    let kind = kind.ok_or_else(|| wrong("is of no kind that can be patched"))?;
    // Names of Kubernetes are of these; so are units, with some more.
    let is_name = |name: &str| {
        let of_unit = |c: char| kind == PatchKind::Unit && ":_@\\".contains(c);
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c) || of_unit(c);
        !name.is_empty() && name.len() <= 253 && !name.starts_with('-') && name.chars().all(allowed)
    };
    let name = parts.next().filter(|name| is_name(name)).ok_or_else(|| wrong("has no name that can be"))?;
    let container = match parts.next() {
        None => None,
        Some(_) if kind == PatchKind::Unit => return Err(wrong("names a container, and units have none")),
        Some(container) if is_name(container) && parts.next().is_none() => Some(container.to_owned()),
        Some(_) => return Err(wrong("has no container that can be")),
    };
    Ok(Patch { kind, name: name.to_owned(), container })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_is_a_kind_and_a_name_and_perhaps_a_container() {
        let named = |text: &str| patch(text).map(|patch| (patch.kind, patch.name, patch.container));
        assert_eq!(named("vpa/web").unwrap(), (PatchKind::Vpa, "web".to_owned(), None));
        assert_eq!(named("deployment/web/nginx").unwrap().2.as_deref(), Some("nginx"));
        assert_eq!(named("unit/getty@tty1.service").unwrap().1, "getty@tty1.service");
        for wrong in [
            "",
            "web",
            "pod/web",
            "vpa/",
            "vpa/web/",
            "vpa/web/a/b",
            "vpa/a b",
            "unit/a/b",
            "vpa/-x",
            "vpa/a\n: b",
        ] {
            let error = patch(wrong).unwrap_err();
            assert!(error.hint().is_some_and(|hint| hint.contains("deployment")), "{wrong}: {error}");
        }
    }
}
