//! What to set, as lines to paste: systemd, Docker, Kubernetes.
//!
//! Facts: systemd's `MemoryMax=`, `MemoryHigh=` and `MemoryLow=` are the files of a cgroup v2
//! (systemd.resource-control(5)). `docker run --memory` is `memory.max`, `--memory-reservation` is `memory.low` on
//! cgroup v2, and there is no option for `memory.high`; without `--memory-swap` a container may swap as much again.
//! Kubernetes sets `memory.max` by `resources.limits`; `memory.min` and `memory.high` come from requests and limits
//! by the feature gate MemoryQoS alone, by a formula of its own.

use super::figures::{quantity, size};
use super::found::{Advice, Patch, Sized};
use super::patch::paste;
use crate::document::Paste;

/// Of each system, and the patches that were asked for.
pub(super) fn settings(sized: &Sized) -> Vec<Paste> {
    pasted(sized.advice.as_ref(), &sized.patches)
}

/// Of advice, if there is any.
pub(super) fn pasted(advice: Option<&Advice>, patches: &[Patch]) -> Vec<Paste> {
    let Some(advice) = advice else { return Vec::new() };
    let patches = patches.iter().map(|patch| paste(patch, advice));
    of_systems(advice).into_iter().chain(patches).collect()
}

fn of_systems(advice: &Advice) -> [Paste; 3] {
    let (max, high, low) = (size(advice.max), size(advice.high), size(advice.low));
    [
        Paste {
            to: "systemd, in the [Service] section of the unit",
            lines: vec![format!("MemoryMax={max}"), format!("MemoryHigh={high}"), format!("MemoryLow={low}")],
            lacks: "MemoryLow protects only as far as the slices above it do, too",
        },
        Paste {
            to: "Docker, options of `docker run`",
            lines: vec![format!(
                "--memory={} --memory-swap={} --memory-reservation={}",
                max.to_lowercase(),
                max.to_lowercase(),
                low.to_lowercase()
            )],
            lacks: "Docker has no option for memory.high: the group is first limited at memory.max. --memory-swap \
                    equal to --memory means no swap, as was simulated",
        },
        Paste {
            to: "Kubernetes, of the container",
            lines: vec![
                "resources:".to_owned(),
                "  requests:".to_owned(),
                format!("    memory: {}", quantity(advice.low)),
                "  limits:".to_owned(),
                format!("    memory: {}", quantity(advice.max)),
            ],
            lacks: "the request decides where a pod goes, and protects nothing unless the feature gate MemoryQoS is \
                    on: then it is memory.min, and memory.high follows from request and limit by a formula of its own. \
                    Without it memory.high is not set",
        },
    ]
}
