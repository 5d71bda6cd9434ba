//! What a program needs of a kernel.

/// What a kernel may not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Cgroups with a memory controller.
    Cgroups,
    /// Huge pages for anonymous memory: without them there is nothing to see.
    HugePages,
    /// `madvise(MADV_HUGEPAGE)`, which fails without them.
    HugePageAdvice,
    /// The cgroup file `memory.reclaim`.
    ProactiveReclaim,
    /// That it takes `swappiness=N`.
    ReclaimSwappiness,
    /// That it takes `swappiness=max`.
    AnonReclaim,
    /// The file `reclaim` of a node.
    NodeReclaim,
    /// The cgroup file `memory.swap.high`.
    SwapHigh,
}
