//! What to set, as a patch that a cluster or a service manager takes as it stands.
//!
//! Facts: `kubectl patch TYPE NAME --patch-file FILE` merges lists of containers by their names (strategic merge
//! patch). A VerticalPodAutoscaler (autoscaling.k8s.io/v1) keeps what it recommends between `minAllowed` and
//! `maxAllowed` of `resourcePolicy.containerPolicies`; `'*'` stands for all containers. `systemctl edit NAME` writes a
//! drop-in of a unit.
//! Next: [`super::settings`], lines to put into what somebody has.

use super::figures::{quantity, size};
use super::found::{Advice, Patch, PatchKind};
use crate::document::Paste;

/// The whole patch.
pub(super) fn paste(patch: &Patch, advice: &Advice) -> Paste {
    let Patch { kind, name, container } = patch;
    let (max, high, low) = (advice.max, advice.high, advice.low);
    match kind {
        PatchKind::Deployment | PatchKind::StatefulSet | PatchKind::DaemonSet => Paste {
            to: "Kubernetes, a patch for `kubectl patch TYPE NAME --patch-file FILE`",
            lines: lines(&format!(
                "# kubectl patch {} {name} --patch-file FILE\nspec:\n  template:\n    spec:\n      containers:\n      - name: \
                     {}\n        resources:\n          requests:\n            memory: {}\n          limits:\n            memory: {}",
                kind.name(),
                container.as_ref().unwrap_or(name),
                quantity(low),
                quantity(max)
            )),
            lacks: "the container is called as what it is part of, unless its name is said: `deployment/web/nginx`",
        },
        PatchKind::Vpa => Paste {
            to: "Kubernetes, bounds of a VerticalPodAutoscaler for `kubectl apply -f FILE`",
            lines: lines(&format!(
                "apiVersion: autoscaling.k8s.io/v1\nkind: VerticalPodAutoscaler\nmetadata:\n  name: {name}\nspec:\n  targetRef:\n    \
                     apiVersion: apps/v1\n    kind: Deployment\n    name: {name}\n  resourcePolicy:\n    containerPolicies:\n    - containerName: \
                     '{}'\n      controlledResources: [memory]\n      minAllowed:\n        memory: {}\n      maxAllowed:\n        memory: {}",
                container.as_deref().unwrap_or("*"),
                quantity(high),
                quantity(max)
            )),
            lacks: "what it recommends by its own samples stays between what keeps the target and memory.max; it sets \
                        requests, and limits in their proportion",
        },
        PatchKind::Unit => Paste {
            to: "systemd, a drop-in for `systemctl edit NAME`",
            lines: lines(&format!(
                "# systemctl edit {name}\n[Service]\nMemoryMax={}\nMemoryHigh={}\nMemoryLow={}",
                size(max),
                size(high),
                size(low)
            )),
            lacks: "MemoryLow protects only as far as the slices above it do, too",
        },
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}
