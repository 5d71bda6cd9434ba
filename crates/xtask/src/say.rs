//! Lines for whoever runs a command.

use std::cell::RefCell;
use std::io::{self, Write};

thread_local! {
    /// Where this thread's lines go while they are kept.
    static KEPT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A line to standard output, or to whoever keeps it; a reader that has gone away does not matter.
pub(crate) fn say(text: &str) {
    KEPT.with_borrow_mut(|kept| match kept {
        Some(kept) => {
            kept.push_str(text);
            kept.push('\n');
        }
        None => drop(writeln!(io::stdout().lock(), "{text}")),
    });
}

/// What `run` returns, and what it says on this thread, which nobody has seen yet.
pub(crate) fn kept<T>(run: impl FnOnce() -> T) -> (T, String) {
    let before = KEPT.replace(Some(String::new()));
    let returned = run();
    (returned, KEPT.replace(before).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_all_that_a_thread_says_meanwhile() {
        let (inner, outer) = kept(|| {
            say("first");
            let ((), inner) = kept(|| say("second"));
            say("third");
            inner
        });
        assert_eq!((&*inner, &*outer), ("second\n", "first\nthird\n"));
    }
}
