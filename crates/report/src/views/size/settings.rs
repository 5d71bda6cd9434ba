//! What to set, as lines to paste: systemd, Docker, Kubernetes.
//!
//! Facts: systemd's `MemoryMax=`, `MemoryHigh=` and `MemoryLow=` are the files of a cgroup v2
//! (systemd.resource-control(5)). `docker run --memory` is `memory.max`, `--memory-reservation` is `memory.low` on
//! cgroup v2, and there is no option for `memory.high`; without `--memory-swap` a container may swap as much again.
//! Kubernetes sets `memory.max` by `resources.limits`; `memory.min` and `memory.high` come from requests and limits
//! by the feature gate MemoryQoS alone, by a formula of its own.

use super::found::Advice;
use crate::document::Paste;

/// Of each system.
pub(crate) fn settings(advice: &Advice) -> [Paste; 3] {
    let (max, high, low) = (size(advice.max), size(advice.high), size(advice.low));
    let quantity = |bytes: u64| {
        let suffix = |shift: u32| bytes != 0 && bytes.trailing_zeros() >= shift;
        match () {
            () if suffix(30) => format!("{}Gi", bytes >> 30),
            () if suffix(20) => format!("{}Mi", bytes >> 20),
            () => format!("{}Ki", bytes >> 10),
        }
    };
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

/// As systemd and Docker write it: 256M, or kibibytes.
fn size(bytes: u64) -> String {
    let divides = |shift: u32| bytes != 0 && bytes.trailing_zeros() >= shift;
    match () {
        () if divides(30) => format!("{}G", bytes >> 30),
        () if divides(20) => format!("{}M", bytes >> 20),
        () => format!("{}K", bytes >> 10),
    }
}
