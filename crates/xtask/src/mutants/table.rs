//! Constants of Linux, and wrong values that tests of `mm` should not let pass.
//!
//! For each file: a line of it, without the space around it, that no other line there equals; what
//! stands once on that line; and what to write instead. A wrong value is off by as little as could happen
//! by mistake, or another plausible rule.

/// A line, the constant on it, a wrong value.
pub(super) type Place = (&'static str, &'static str, &'static str);

/// Places by file, below `crates/mm/src`.
pub(super) const TABLE: &[(&str, &[Place])] = &[
    ("alloc/pageblock.rs", &[("self.free + self.alike(size, old, want) >= size.pages() / 2", "/ 2", "/ 3")]),
    (
        "alloc/fallback.rs",
        &[
            ("const BOOST_MIN_BLOCKS: u64 = 4;", "4;", "3;"),
            ("order.0 >= size.order().0 / 2 || matches!(want, Unmovable | Reclaimable)", "/ 2", "/ 3"),
            (
                "order.0 >= size.order().0 / 2 || matches!(want, Unmovable | Reclaimable)",
                "Unmovable |",
                "Movable |",
            ),
            ("const FAST: u64 = 1 + (2 * MigrateType::PCP_TYPES as u64);", "2 *", "1 *"),
            (
                "[[Reclaimable, Movable], [Reclaimable, Unmovable], [Unmovable, Movable]];",
                "[[Reclaimable, Movable]",
                "[[Movable, Reclaimable]",
            ),
            (
                "[[Reclaimable, Movable], [Reclaimable, Unmovable], [Unmovable, Movable]];",
                "[Unmovable, Movable]]",
                "[Movable, Unmovable]]",
            ),
            (
                "[[Reclaimable, Movable], [Reclaimable, Unmovable], [Unmovable, Movable]];",
                "[Reclaimable, Unmovable]",
                "[Unmovable, Reclaimable]",
            ),
        ],
    ),
    (
        "alloc/pcp.rs",
        &[
            ("pub const COSTLY_ORDER: Order = Order(3);", "3", "4"),
            ("const BATCH_SCALE_MAX: u8 = 5;", "5", "4"),
            ("let quarter = ((managed >> 10).min(share_max.into()) / 4).max(1);", ">> 10", ">> 9"),
            ("let quarter = ((managed >> 10).min(share_max.into()) / 4).max(1);", "/ 4", "/ 2"),
            ("let raw = (1 << (quarter + (quarter / 2)).ilog2()) - 1;", "/ 2", "/ 4"),
            (
                "|pages: u64| u32::try_from(pages / u64::from(cpus.max(1))).unwrap_or(u32::MAX / 4).max(4 * batch);",
                "4 * batch",
                "3 * batch",
            ),
            ("PcpGeneration::Classic => 6 * raw,", "6", "5"),
            ("PcpGeneration::AutoSize => share(managed / 8).max(high_min),", "8", "4"),
            ("self.free_factor >>= 1;", "1", "2"),
            ("self.free_count >>= 1;", "1", "2"),
            ("self.alloc_factor >>= 1;", "1", "2"),
            (
                "let blocks = if order > Order(0) && wanted > 1 { (wanted >> order.0).max(2) } else { wanted };",
                "max(2)",
                "max(1)",
            ),
            ("let high = if zone.reclaim_active { self.high.min(4 * batch) } else { self.high };", "4", "2"),
            ("return self.high.min(4 * batch);", "4", "2"),
            ("self.high = by_count.max(self.high - (self.high >> 3)).max(high_min);", ">> 3", ">> 2"),
            ("if self.free_factor > 0 && (1..=COSTLY_ORDER.0).contains(&order.0) {", "1..", "0.."),
            ("let is_high_order = (1..=COSTLY_ORDER.0).contains(&order.0);", "1..", "0.."),
        ],
    ),
    (
        "alloc/watermark.rs",
        &[
            ("WatermarkBoost::Merged => self.base(Mark::High) * factor / 10_000,", "10_000", "1_000"),
            ("WatermarkBoost::Merged => self.base(Mark::High) * factor / 10_000,", "High", "Low"),
            (
                "WatermarkBoost::V2 => (self.mark(Mark::High) * factor / 10_000).max(block),",
                "10_000",
                "1_000",
            ),
            ("(managed / 1024).clamp(32, 128)", "1024", "512"),
            ("(managed / 1024).clamp(32, 128)", "32", "31"),
            ("(managed / 1024).clamp(32, 128)", "128)", "129)"),
            ("let gap = (share / 4).max(managed * scale_factor / 10_000);", "/ 4", "/ 2"),
            ("let gap = (share / 4).max(managed * scale_factor / 10_000);", "10_000", "1_000"),
            ("[gap, 2 * gap]", "2", "3"),
            ("(16 * lowmem.to_kib()).isqrt().clamp(128, max)", "16", "17"),
            ("(16 * lowmem.to_kib()).isqrt().clamp(128, max)", "128", "127"),
            ("let wanted = block * populated_zones * (2 + (PCP_TYPES * PCP_TYPES));", "(2 +", "(1 +"),
            ("Pages(wanted.min(lowmem.0 / 20)).to_kib()", "20", "10"),
            ("const LOWMEM_RESERVE_RATIO: [u64; ZoneKind::COUNT] = [256, 256, 32, 0];", "[256,", "[255,"),
            ("const LOWMEM_RESERVE_RATIO: [u64; ZoneKind::COUNT] = [256, 256, 32, 0];", " 256,", " 255,"),
            ("const LOWMEM_RESERVE_RATIO: [u64; ZoneKind::COUNT] = [256, 256, 32, 0];", "32", "31"),
        ],
    ),
    (
        "base/sysctl.rs",
        &[
            (
                "WatermarkBoostFactor = \"vm.watermark_boost_factor\", 0 ..= 1_000_000, 15_000, \"largest watermark boost, per 10000 of the high mark (0: off)\";",
                "15_000",
                "10_000",
            ),
            (
                "DirtyRatio = \"vm.dirty_ratio\", 0 ..= 100, 20, \"dirty pages above which writers are throttled, percent of free and cached memory\";",
                "20,",
                "40,",
            ),
            (
                "DirtyBackgroundRatio = \"vm.dirty_background_ratio\", 0 ..= 100, 10, \"dirty pages above which background writeback starts, percent\";",
                "10,",
                "5,",
            ),
        ],
    ),
    (
        "alloc/suitable.rs",
        &[
            ("const EXTFRAG_THRESHOLD: i64 = 500;", "500", "499"),
            ("let twice = 2 << order.0;", "2 <<", "1 <<"),
        ],
    ),
    ("alloc/zone.rs", &[("needed -= needed / 4;", "4", "2")]),
    ("compact/defer.rs", &[("const DEFER_SHIFT_MAX: u8 = 6;", "6", "5")]),
    ("compact/searches.rs", &[("pub(super) const COMPACT_CLUSTER_MAX: u32 = 32;", "= 32", "= 31")]),
    (
        "cgroup/charge.rs",
        &[(
            "self.list[memcg.index()].object_rest = bytes % (PAGE_SIZE as u32);",
            "PAGE_SIZE",
            "2 * PAGE_SIZE",
        )],
    ),
    (
        "decide/balance.rs",
        &[
            ("reserve == 0 || free > reserve / 2 || self.is_hopeless(node)", "2", "3"),
            (
                "let high = |&id: &ZoneId| mem.core.alloc.zone(id).watermarks.mark(Mark::High).max(32);",
                "32",
                "31",
            ),
            ("const BOOST_PRIORITY: u8 = DEF_PRIORITY - 2;", "- 2", "- 3"),
            ("self.sc.priority < 1", "1", "2"),
        ],
    ),
    ("decide/charge.rs", &[("const SMALL_CHARGE_PAGES: u32 = 8;", "8", "7")]),
    (
        "decide/retry.rs",
        &[
            ("const MAX_RECLAIM_RETRIES: u32 = 16;", "16", "15"),
            ("const MAX_COMPACT_RETRIES: u32 = 16;", "16", "15"),
            ("let most = if costly { MAX_COMPACT_RETRIES / 4 } else { MAX_COMPACT_RETRIES };", "/ 4", "/ 2"),
        ],
    ),
    (
        "decide/throttle.rs",
        &[
            ("const WRITEBACK_WAIT: Nanos = Nanos::from_millis(100);", "100", "20"),
            ("const LONGEST_WAIT_WITHOUT_FS: Nanos = Nanos::from_secs(1);", "1", "2"),
            ("if sc.nr_reclaimed > (sc.nr_scanned >> 3) {", "3", "2"),
            (
                "let in_vain = sc.reclaimer == Reclaimer::Direct && sc.priority == 1 && sc.nr_reclaimed == 0;",
                "1",
                "2",
            ),
            ("2 * self.cache.pending(node) > reclaimable.sum()", "2", "1"),
        ],
    ),
    (
        "lru/workingset.rs",
        &[
            ("pub const AGE_MASK: u64 = (1 << 36) - 1;", "36", "35"),
            ("| ((self.memcg.0 as u64) << 44)", "44", "43"),
        ],
    ),
    (
        "pages/pace.rs",
        &[
            ("(limits.pending() / (1 + in_an_eighth) + 1).min((hz / 5).max(1))", "hz / 5", "hz / 10"),
            ("let mut ticks = ((hz / 100).max(1) + more).min(1 + longest / 2);", "100", "50"),
            ("let in_an_eighth = self.bandwidth / (1 + hz / 8).next_power_of_two();", "hz / 8", "hz / 4"),
            ("pub const FIRST_POLL: u32 = 32;", "= 32", "= 31"),
        ],
    ),
    (
        "reclaim/pass.rs",
        &[
            ("whole += 1;", "1", "0"),
            ("(size - protected).max(SWAP_CLUSTER_MAX)", "SWAP_CLUSTER_MAX", "1"),
            (
                "let for_compaction = sc.order > Order(0) && (sc.order > COSTLY_ORDER || sc.priority < DEF_PRIORITY - 2);",
                "- 2",
                "- 1",
            ),
        ],
    ),
    (
        "reclaim/scan_balance.rs",
        &[
            ("const PAGES_PER_GIB: u64 = 1 << 18;", "18", "17"),
            ("let ratio = if gib == 0 { 1 } else { (10 * gib).isqrt() };", "10 *", "9 *"),
        ],
    ),
    (
        "reclaim/plan.rs",
        &[
            ("const BATCH: u64 = 128;", "128", "127"),
            ("Self::SuperBlock if super_block == SuperBlockBatch::Of1024 => 1024,", " 1024", " 1023"),
            ("Self::ShadowNodes => 0,", "0", "2"),
            ("Self::ExtentStatus | Self::SuperBlock | Self::XfsBuffers | Self::Zswap => 2,", "2", "1"),
            ("((freeable >> priority) * 4).checked_div(seeks).unwrap_or(freeable / 2)", "* 4", "* 2"),
            ("DeferredSlab::AtOnce if delta < freeable / 4 => budget.min(freeable / 2),", "/ 4", "/ 2"),
            ("DeferredSlab::AtOnce if delta < freeable / 4 => budget.min(freeable / 2),", "/ 2", "/ 1"),
            (
                "Self { freeable, total: total.min(freeable * 2), batch, budget, scanned: 0, payback }",
                "* 2",
                "* 3",
            ),
            ("DeferredSlab::ByPriority => owed.min(freeable * 2),", "* 2", "* 3"),
        ],
    ),
    (
        "reclaim/run.rs",
        &[
            ("pub const MAX_RECLAIM_RETRIES: u32 = 16;", "16", "15"),
            ("pub const SWAP_CLUSTER_MAX: u64 = 32;", "32", "31"),
            ("pub const DEF_PRIORITY: u8 = 12;", "12", "11"),
        ],
    ),
    (
        "reclaim/shrinker.rs",
        &[
            ("let total = dentries + inodes + evicted + 1;", "1", "0"),
            ("let share = |listed: u64| (batch * listed / total) + 1;", "1", "0"),
            ("listed * core.alloc.sysctls().get(Sysctl::VfsCachePressure) / 100", "100", "50"),
        ],
    ),
    ("version/presets.rs", &[("lru_batch: 15,", "15", "14")]),
];
