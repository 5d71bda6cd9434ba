//! Decisions of the multi-gen LRU. Those of its parts have an answer that no kernel has: without the part.

use crate::version::decision::decisions;

decisions! {
    /// What eviction by generations does with a page, where there are generations (MGLRU 3, 5.2, 6.4).
    GenForm = "the form of the multi-gen LRU" {
        /// There is no multi-gen LRU (up to 6.0).
        NotBuilt,
        /// Locked and dirty pages, and those being written, go to the next generation; counts of accesses last
        /// through an activation; a refault counts if it comes in time (6.1).
        First,
        /// They are isolated as others are, and decided on by what decides on those; an activation forgets
        /// the accesses; every refault counts (6.12).
        Settled,
    }

    /// Whom global reclaim by generations visits, and who makes new ones (MGLRU 4.3, 5.6 to 5.8).
    GenWalk = "whom global reclaim by generations visits" {
        /// Every cgroup in each pass; kswapd makes generations before a pass (6.1).
        Tree,
        /// Cgroups in the order of the memcg LRU, until there is enough; whoever evicts makes generations,
        /// and how hard a pass of much is tried is reckoned first (6.4).
        Bins,
    }

    /// What an access counts for in generations (MGLRU 2.1; MECHANISMS-510-72 11).
    GenAccess = "what an access is to generations" {
        /// The second one is the working set bit, those after it are counted; one sight of a page table promotes;
        /// a shadow is recent while the oldest generation is the same (6.1).
        Reads,
        /// All are counted, and the bit is for those that saturate; the second sight promotes; a shadow is recent
        /// for four generations (6.14).
        Accesses,
    }

    /// How much a visit of generations takes (MGLRU 5.6; MECHANISMS-510-72 11).
    GenQuota = "what a visit of generations takes" {
        /// Reckoned anew after each batch; a limit gets what the quota says, and memory.low holds all or
        /// nothing (6.1).
        EachRound,
        /// Reckoned once, less what is protected in proportion; a limit stops at its target, too (7.2).
        Once,
    }

    /// What tiers of a generation are good for (MGLRU 5.2, 6.3).
    GenTiers = "what tiers are good for" {
        /// Nothing: an oldest generation goes whole.
        Nothing,
        /// Those whose pages come back more often than those of tier 0 stay, and a page with all accesses that can be
        /// counted does once (6.1).
        Protect,
    }

    /// Which type generations evict, where both can be (MGLRU 5.1, 6.3).
    GenTypes = "the type that generations evict" {
        /// Files, and anonymous pages where there are none to be had, or where their oldest generation is older (up to
        /// 6.13).
        FilesFirst,
        /// The one that loses less by it, as refaults and `vm.swappiness` say (6.1).
        ByRefaults,
    }

    /// Whether page tables are walked for a new generation, where the CPU marks what is accessed in them (MGLRU 4.2).
    GenTables = "walks of page tables for a new generation" {
        /// They are not: eviction alone looks at them, page by page.
        None,
        /// They are (6.1).
        Walked,
    }

    /// Which page tables a walk looks at (MGLRU 4.2).
    GenFilter = "which page tables a walk looks at" {
        /// All.
        All,
        /// Those of which an eighth was young at the last walk, or around a page that eviction looked at, by a Bloom
        /// filter, and all of what no walk has seen (6.1).
        Dense,
    }

    /// What eviction looks at beside a page that it finds accessed through a page table (MGLRU 5.5).
    GenAround = "what eviction looks at around an accessed page" {
        /// Nothing.
        Nothing,
        /// The entries around it, of which those accessed are young, too (6.1).
        Entries,
    }
}
