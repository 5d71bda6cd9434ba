//! What kind of thing an event says, and names that outlive the chunk that they came with.

use recording::events::ANONYMOUS;
use recording::{Event, NameId, Names};

/// What kind of thing an event says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Added,
    Inserted,
    Accessed,
    Activated,
    Deactivated,
    Kept,
    Reclaimed,
    Refaulted,
    SwappedIn,
    Left,
    ShrunkInactive,
    KswapdWakes,
    KswapdSleeps,
    DirectReclaim,
    LimitReclaim,
    Boost,
    Protection,
    OomKill,
    Other,
}

impl Kind {
    /// By the name of an event.
    pub(super) fn of(name: &str) -> Self {
        match name {
            "mm_filemap_add_to_page_cache" => Self::Added,
            "mm_lru_insertion" => Self::Inserted,
            "page_accessed" => Self::Accessed,
            "mm_lru_activate" => Self::Activated,
            "page_deactivated" => Self::Deactivated,
            "page_rotated" => Self::Kept,
            "page_reclaimed" => Self::Reclaimed,
            "page_refaulted" => Self::Refaulted,
            "page_swapped_in" => Self::SwappedIn,
            "mm_filemap_delete_from_page_cache" => Self::Left,
            "mm_vmscan_lru_shrink_inactive" => Self::ShrunkInactive,
            "mm_vmscan_kswapd_wake" => Self::KswapdWakes,
            "mm_vmscan_kswapd_sleep" => Self::KswapdSleeps,
            "mm_vmscan_direct_reclaim_end" => Self::DirectReclaim,
            "mm_vmscan_memcg_reclaim_end" => Self::LimitReclaim,
            "watermark_boost" => Self::Boost,
            "memcg_low" => Self::Protection,
            "oom_kill" => Self::OomKill,
            _ => Self::Other,
        }
    }

    /// How many of the kinds, the first ones, are steps in the life of a page.
    pub(super) const OF_A_PAGE: usize = Self::Left as usize + 1;

    /// Whether it is a step in the life of a page.
    pub(super) const fn is_of_a_page(self) -> bool {
        (self as usize) < Self::OF_A_PAGE
    }
}

/// Whether an event of pages is about anonymous memory, named or not.
pub(super) fn is_anonymous(names: &Names, event: &Event) -> bool {
    event.file.is_none_or(|file| names.text(file).starts_with(ANONYMOUS))
}

/// Names that outlive the chunk that they came with, each at its [`NameId::index`].
#[derive(Debug, Default)]
pub(super) struct Texts(Vec<Option<String>>);

impl Texts {
    pub(super) fn keep(&mut self, names: &Names, ids: impl IntoIterator<Item = Option<NameId>>) {
        for id in ids.into_iter().flatten() {
            let index = id.index();
            if index >= self.0.len() {
                self.0.resize(index + 1, None);
            }
            self.0[index].get_or_insert_with(|| names.text(id).to_owned());
        }
    }

    /// The text; empty for none.
    pub(super) fn of(&self, id: Option<NameId>) -> &str {
        let kept = id.and_then(|id| self.0.get(id.index()));
        kept.and_then(Option::as_deref).unwrap_or_default()
    }
}
