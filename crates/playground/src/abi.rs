//! Four functions that a page calls, and no more: numbers go over, texts lie in the memory that both see.
//!
//! ```text
//!   question(bytes)  -> where to write a question of so many bytes
//!   ask()            -> answers it: 0, or 1 for an error
//!   answer()         -> where the answer lies
//!   answer_bytes()   -> how long it is
//! ```
//! A panic ends the instance; what it said is the answer then. Generated bindings would be larger than this and need a
//! program of their own to be built.
#![allow(unsafe_code)] // To be found by name; nothing else here is unsafe.

use std::cell::RefCell;
use std::panic;

use serde_json::json;

use crate::Playground;

#[derive(Default)]
struct Shared {
    playground: Playground,
    question: Vec<u8>,
}

thread_local! {
    static SHARED: RefCell<Shared> = RefCell::default();
    // Apart from the rest, which is in use while something panics.
    static ANSWER: RefCell<Vec<u8>> = RefCell::default();
}

/// Makes room for a question of `bytes` bytes, and returns where.
#[unsafe(no_mangle)]
pub extern "C" fn question(bytes: usize) -> *mut u8 {
    panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("a panic without text");
        let place = info.location().map(|at| format!("{}:{}", at.file(), at.line())).unwrap_or_default();
        let hint = "this is a bug of pagetide; please report it with the command of this run";
        let told = json!({
            "error": "an invariant of the model is violated",
            "causes": [message, place],
            "hint": hint,
        });
        ANSWER.with_borrow_mut(|answer| *answer = told.to_string().into_bytes());
    }));
    // Where memory runs out, nothing is said any more.
    ANSWER.with_borrow_mut(Vec::clear);
    SHARED.with_borrow_mut(|shared| {
        shared.question = vec![0; bytes];
        shared.question.as_mut_ptr()
    })
}

/// Answers the question that was written; 0, or 1 for an error.
#[unsafe(no_mangle)]
pub extern "C" fn ask() -> u32 {
    let asked = SHARED.with_borrow_mut(|shared| {
        let question = String::from_utf8_lossy(&shared.question).into_owned();
        shared.playground.ask(&question)
    });
    let failed = u32::from(asked.is_err());
    let (Ok(bytes) | Err(bytes)) = asked;
    ANSWER.with_borrow_mut(|answer| *answer = bytes);
    failed
}

/// Where the answer lies.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.as_ptr())
}

/// How long the answer is.
#[unsafe(no_mangle)]
pub extern "C" fn answer_bytes() -> usize {
    ANSWER.with_borrow(Vec::len)
}
