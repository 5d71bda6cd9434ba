//! What a policy keeps of each folio, by the folio's number.

use mm::lru::cache_ext::lists::Folio;

/// A value for each folio.
#[derive(Debug, Clone, Default)]
pub struct PerFolio<V>(Vec<V>);

impl<V: Clone + Default> PerFolio<V> {
    /// The value of a folio: the default one until it is changed.
    pub fn of(&mut self, folio: Folio) -> &mut V {
        let place = folio.0 as usize;
        if place >= self.0.len() {
            self.0.resize(place + 1, V::default());
        }
        &mut self.0[place]
    }
}
