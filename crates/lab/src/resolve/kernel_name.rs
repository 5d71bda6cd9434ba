//! What the name of a simulated kernel stands for: a version of Linux with features, and perhaps a policy of one's own
//! for its file pages (`linux-6.12+cache-ext-lfu`), which no version knows of.
//!
//! Neighbours: `mm::version` for versions and features, the crate `cache_ext` for policies.

use cache_ext::PolicyInfo;
use mm::base::sysctl::{Sysctl, Sysctls};
use mm::version::feature::Feature;
use mm::version::presets::Version;
use mm::version::rules::LruKind;
use workload::KernelSpec;
use workload::scenario::ScenarioProblem;

/// The version, without a policy.
pub(crate) fn version_of(kernel: &KernelSpec) -> Version {
    let mut own = kernel.clone();
    own.features.retain(|name, _| PolicyInfo::of_feature(name).is_none());
    own.object = None;
    Version::parse(&own.to_string()).expect("the vocabulary comes from the same table")
}

/// The policy, if there is one of those that have names.
pub(crate) fn policy_of(kernel: &KernelSpec) -> Option<&'static PolicyInfo> {
    kernel.features.keys().find_map(|name| PolicyInfo::of_feature(name))
}

/// What is written of a policy behind `+`, if there is one: a name or an object.
fn change_of(kernel: &KernelSpec) -> Option<String> {
    let object = kernel.object.as_ref().map(|object| format!("cache-ext={object}"));
    object.or_else(|| policy_of(kernel).map(|info| info.feature.to_owned()))
}

/// Checks that a kernel can be as its name has it.
///
/// # Errors
/// A change that changes nothing, or two that contradict each other.
pub(crate) fn check_changes(kernel: &KernelSpec) -> Result<(), ScenarioProblem> {
    let model = |message: String, hint: String| ScenarioProblem::Model { message, hint: Some(hint) };
    let (policies, features): (Vec<_>, Vec<_>) =
        kernel.features.iter().partition(|(name, _)| PolicyInfo::of_feature(name).is_some());
    let feature = |name: &str| Feature::named(name).expect("the vocabulary comes from the same table");
    let changes: Vec<_> = features.iter().map(|&(name, &on)| (feature(name), on)).collect();
    Version::check_changes(&kernel.base, &changes).map_err(|error| model(error.to_string(), error.hint()))?;
    if let Some((name, _)) = policies.iter().find(|&&(_, &on)| !on) {
        let message = format!("`{}` has no `{name}` to take away", kernel.base);
        return Err(model(message, format!("leave `-{name}` out")));
    }
    if let [(first, _), (second, _), ..] = policies[..] {
        let message = format!("`{first}` and `{second}` are both to evict the same file pages");
        return Err(model(message, "leave one of them out".to_owned()));
    }
    if let (Some(object), [(name, _), ..]) = (&kernel.object, &policies[..]) {
        let message = format!("`{name}` and `{object}` are both to evict the same file pages");
        return Err(model(message, "leave one of them out".to_owned()));
    }
    match change_of(kernel) {
        Some(name) if version_of(kernel).rules.lru != LruKind::TwoLists => Err(model(
            format!("`{name}` stands on active and inactive lists, which `{kernel}` has not"),
            format!("`{}+{name}` has them", kernel.base),
        )),
        _ => Ok(()),
    }
}

/// Checks that sysctls let a kernel with a policy keep its two lists.
///
/// # Errors
/// They turn the multi-gen LRU on.
pub(crate) fn check_lists(kernel: &KernelSpec, sysctls: &Sysctls) -> Result<(), ScenarioProblem> {
    // 0 is the kernel's own, 1 is off.
    match change_of(kernel) {
        Some(feature) if sysctls.get(Sysctl::LruGenEnabled) > 1 => Err(ScenarioProblem::Model {
            message: format!("`{feature}` stands on active and inactive lists, not on the multi-gen LRU"),
            hint: Some(format!("leave `{}` out", Sysctl::LruGenEnabled.name())),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::names::Names;

    fn told(text: &str) -> String {
        let kernel = Names::default().vocabulary().kernel(text).unwrap();
        let problem = check_changes(&kernel).unwrap_err();
        format!("{problem}; {}", problem.hint().unwrap())
    }

    #[test]
    fn a_policy_is_one_of_a_kernel_with_two_lists() {
        let kernel = Names::default().vocabulary().kernel("linux-6.1+cache-ext-lfu").unwrap();
        assert!(check_changes(&kernel).is_ok());
        assert_eq!(
            (version_of(&kernel).name.as_str(), policy_of(&kernel).unwrap().feature),
            ("linux-6.1", "cache-ext-lfu")
        );
        let refused = [
            "linux-6.12-cache-ext-lfu",
            "linux-6.12+cache-ext-lfu+cache-ext-lhd",
            "linux-6.12+lru-gen+cache-ext-lfu",
            "linux-6.12+file-lru-sieve+cache-ext-lfu",
        ];
        insta::assert_snapshot!(refused.map(told).join("\n"), @"
        `linux-6.12` has no `cache-ext-lfu` to take away; leave `-cache-ext-lfu` out
        `cache-ext-lfu` and `cache-ext-lhd` are both to evict the same file pages; leave one of them out
        `cache-ext-lfu` stands on active and inactive lists, which `linux-6.12+cache-ext-lfu+lru-gen` has not; `linux-6.12+cache-ext-lfu` has them
        `cache-ext-lfu` stands on active and inactive lists, which `linux-6.12+cache-ext-lfu+file-lru-sieve` has not; `linux-6.12+cache-ext-lfu` has them
        ");
        let sysctls = |value: &str| {
            let mut sysctls = Sysctls::default();
            sysctls.set(Sysctl::LruGenEnabled, Sysctl::LruGenEnabled.parse_value(value).unwrap());
            check_lists(&kernel, &sysctls).map_err(|problem| problem.to_string())
        };
        assert_eq!(sysctls("n"), Ok(()));
        assert!(sysctls("y").unwrap_err().contains("not on the multi-gen LRU"));
    }
}
