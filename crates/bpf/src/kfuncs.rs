//! What the kfuncs of cache_ext do, with the limits that its policies count on.
//!
//! ```text
//!   iterate   from the head: callback(index, node) --> 0 go on, 1 stop, 2 candidate; up to 32 candidates, 4097 nodes
//!   extended  the same, and moves what it went past, or named, to an end of a list; what goes to its own tail comes
//!             round again
//!   sample    takes `requested * sample_size` from the head, names of each `sample_size` the one with the lowest
//!             score, puts all at the tail; nothing where the list is shorter
//! ```
//! A callback that calls for lists would wait for a lock for ever in a kernel, and ends the policy here. Five lists are
//! the most, and a list moves folios of its own cgroup alone.

use mm::lru::cache_ext::lists::{CANDIDATES_MAX, End, EvictionList, Folio, Lists};

use crate::calls::Call;
use crate::fault::{Fault, Ran};
use crate::vm::Vm;

/// `CACHE_EXT_REGISTRY_MAX_ENTRIES`.
const LISTS_MAX: usize = 5;
/// Nodes of a walk.
const NODES_MAX: u64 = 4096;
/// Folios of a sample.
const SAMPLE_MAX: u64 = 2048;

const FAILED: u64 = -1_i64 as u64;
const MAX_REACHED: u64 = 8;
const FILLED: u64 = 9;

/// What becomes of a node that a walk has come to.
#[derive(Debug, Clone, Copy, Default)]
struct Move {
    to: EvictionList,
    end: Option<End>,
}

/// Where a walk puts nodes, and how many it went past and named.
#[derive(Debug, Clone, Copy, Default)]
struct Walk {
    continued: Move,
    evicted: Move,
    counts: [u64; 2],
}

impl<'l> Vm<'_, 'l> {
    /// The lists, where a program may use them.
    fn lists(&mut self) -> Ran<&mut Lists<'l>> {
        match (&mut self.lists, self.is_walking) {
            (Some(lists), false) => Ok(lists),
            (_, true) => Err(Fault::new("a callback calls for lists, whose lock a kernel would hold,")),
            (None, _) => Err(Fault::new("lists are called for where there are none,")),
        }
    }

    fn handle(&self, handle: u64) -> Option<EvictionList> {
        self.state.handles.get(usize::try_from(handle.checked_sub(1)?).ok()?).copied()
    }

    /// Does what a kfunc for lists does.
    pub(crate) fn list_call(&mut self, call: Call, [a, b, c, d, e]: [u64; 5]) -> Ran<u64> {
        let end = |is_tail: bool| if is_tail { End::Tail } else { End::Head };
        match call {
            Call::ListNew => {
                if self.state.handles.len() == LISTS_MAX {
                    return Ok(0);
                }
                let list = self.lists()?.create();
                self.state.handles.push(list);
                Ok(self.state.handles.len() as u64)
            }
            Call::ListAdd | Call::ListAddTail => {
                let (list, folio) = (self.handle(a), self.linked.layout.folio_at(b));
                let (Some(list), Some(folio)) = (list, folio) else { return Ok(FAILED) };
                let is_done = self.lists()?.add(list, folio, end(call == Call::ListAddTail));
                Ok(if is_done { 0 } else { FAILED })
            }
            Call::ListMove => {
                let (list, folio) = (self.handle(a), self.linked.layout.folio_at(b));
                let (Some(list), Some(folio)) = (list, folio) else { return Ok(FAILED) };
                let end = end(c & 1 == 1);
                let lists = self.lists()?;
                // A kernel moves a folio that is on no list, too.
                let is_done = lists.move_to(list, folio, end) || lists.add(list, folio, end);
                Ok(if is_done { 0 } else { FAILED })
            }
            Call::ListDel => match self.linked.layout.folio_at(a) {
                Some(folio) => Ok(if self.lists()?.del(folio) { 0 } else { FAILED }),
                None => Ok(FAILED),
            },
            Call::ListIterate => self.iterate(b, c, d, Walk::default()).map(|(result, _)| result),
            Call::ListIterateExtended => self.iterate_extended(b, c, d, e),
            Call::ListSample => self.sample(b, c, d, e),
            _ => Err(Fault::new("an unknown call")),
        }
    }

    fn iterate_extended(&mut self, list: u64, callback: u64, options: u64, context: u64) -> Ran<u64> {
        let layout = self.linked.layout.iterate;
        let field = |offset| self.state.memory.field(options, offset, 8);
        let choice = |list: u64, mode: u64| {
            let end = match mode {
                0 => None,
                1 => Some(End::Head),
                2 => Some(End::Tail),
                _ => return None,
            };
            // 0 is the list itself.
            match (list, end) {
                (0, _) => Some(Move { to: EvictionList::NIL, end }),
                (_, None) => None,
                (handle, _) => Some(Move { to: self.handle(handle)?, end }),
            }
        };
        let continued = choice(field(layout.continue_list)?, field(layout.continue_mode)?);
        let evicted = choice(field(layout.evict_list)?, field(layout.evict_mode)?);
        let counts = [field(layout.continued)?, field(layout.evicted)?];
        let (Some(continued), Some(evicted)) = (continued, evicted) else { return Ok(FAILED) };
        let walk = Walk { continued, evicted, counts };
        let (result, [continued, evicted]) = self.iterate(list, callback, context, walk)?;
        let memory = &mut self.state.memory;
        memory.store(options.wrapping_add(u64::from(layout.continued)), 8, continued)?;
        memory.store(options.wrapping_add(u64::from(layout.evicted)), 8, evicted)?;
        Ok(result)
    }

    /// Walks a list; what it returns, and what it counted.
    fn iterate(&mut self, list: u64, callback: u64, context: u64, mut walk: Walk) -> Ran<(u64, [u64; 2])> {
        let callback = self.function(callback)?;
        let Some(list) = self.handle(list) else { return Ok((FAILED, walk.counts)) };
        let count = self.linked.layout.eviction.count;
        if self.state.memory.field(context, count, 8)? >= u64::from(CANDIDATES_MAX) {
            return Ok((FILLED, walk.counts));
        }
        let mut next = self.lists()?.first(list);
        let mut index = 0;
        while let Some(folio) = next {
            if index > NODES_MAX {
                return Ok((MAX_REACHED, walk.counts));
            }
            // Before the callback, as `list_for_each_entry_safe` does.
            next = self.lists()?.next(folio);
            let verdict = self.called_back(callback, [index, self.node_address(folio), 0, 0, 0])?;
            index += 1;
            match verdict as u32 {
                0 => {
                    self.put(list, folio, walk.continued)?;
                    walk.counts[0] += 1;
                }
                2 => {
                    let named = self.name(context, folio, None)?;
                    self.put(list, folio, walk.evicted)?;
                    walk.counts[1] += 1;
                    if named == u64::from(CANDIDATES_MAX) {
                        return Ok((FILLED, walk.counts));
                    }
                }
                // To stop, and what no kernel knows.
                _ => break,
            }
        }
        Ok((0, walk.counts))
    }

    fn sample(&mut self, list: u64, callback: u64, options: u64, context: u64) -> Ran<u64> {
        let callback = self.function(callback)?;
        let (of_options, layout) = (self.linked.layout.sample_size, self.linked.layout.eviction);
        let size = self.state.memory.field(options, of_options, 4)?;
        let requested = self.state.memory.field(context, layout.requested, 8)?;
        let Some(list) = self.handle(list) else { return Ok(FAILED) };
        let wanted = requested.saturating_mul(size);
        if wanted > SAMPLE_MAX || requested > u64::from(CANDIDATES_MAX) || size == 0 {
            return Ok(FAILED);
        }
        if u64::from(self.lists()?.len(list)) < wanted {
            return Ok(FAILED);
        }
        let lists = self.lists()?;
        let sampled: Vec<Folio> = std::iter::successors(lists.first(list), |&folio| lists.next(folio))
            .take(wanted as usize)
            .collect();
        self.state.memory.store(context.wrapping_add(u64::from(layout.count)), 8, 0)?;
        for group in sampled.chunks(size as usize) {
            let mut lowest = None;
            for &folio in group {
                let score = self.called_back(callback, [self.node_address(folio), 0, 0, 0, 0])? as i64;
                if lowest.is_none_or(|(least, _)| score < least) {
                    lowest = Some((score, folio));
                }
            }
            if let Some((score, folio)) = lowest {
                self.name(context, folio, Some(score))?;
            }
        }
        for folio in sampled {
            self.lists()?.move_to(list, folio, End::Tail);
        }
        Ok(0)
    }

    fn called_back(&mut self, callback: usize, arguments: [u64; 5]) -> Ran<u64> {
        let before = std::mem::replace(&mut self.is_walking, true);
        let result = self.run(callback, arguments);
        self.is_walking = before;
        result
    }

    fn put(&mut self, list: EvictionList, folio: Folio, Move { to, end }: Move) -> Ran {
        if let Some(end) = end {
            let to = if to == EvictionList::NIL { list } else { to };
            self.lists()?.move_to(to, folio, end);
        }
        Ok(())
    }

    /// Writes a candidate down; how many there are then.
    fn name(&mut self, context: u64, folio: Folio, score: Option<i64>) -> Ran<u64> {
        let layout = self.linked.layout.eviction;
        let count = self.state.memory.field(context, layout.count, 8)?;
        if count >= u64::from(CANDIDATES_MAX) {
            return Err(Fault::new("more candidates than there is room for"));
        }
        let at = |array: u32| context.wrapping_add(u64::from(array) + 8 * count);
        let address = self.linked.layout.folio_address(folio);
        self.state.memory.store(at(layout.folios), 8, address)?;
        if let Some(score) = score {
            self.state.memory.store(at(layout.scores), 8, score as u64)?;
        }
        self.state.memory.store(context.wrapping_add(u64::from(layout.count)), 8, count + 1)?;
        Ok(count + 1)
    }
}
