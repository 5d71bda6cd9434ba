//! The simulator in a page of a browser: [`Playground`] takes questions as JSON and answers them.
//!
//! What a person asks for becomes the request that the command line makes of its options, and `lab` does the rest, so
//! that the same runs give the same bytes of result and the same words of error. In a browser there are no threads: a
//! run is taken in steps, between which the page hears how far it is, and a look is taken at its memory ([`walk`]).
//!
//! | file | what it holds |
//! |---|---|
//! | `lists.rs` | what there is to choose from |
//! | `asked.rs` | what a person chose, as a request and as a command |
//! | `walk.rs` | what the memory of a run looked like, moment by moment |
//! | `session.rs` | the runs of a comparison, step by step, and what is shown of them |
//! | `abi.rs` | the functions that a page calls |
//!
//! The page itself is in `page`: `cargo xtask playground` puts it and the compiled crate into one file. Left out: runs
//! on real kernels, recordings in folders, anything that a page would need a network for.

#[cfg(target_family = "wasm")]
mod abi;
mod asked;
mod lists;
mod session;
pub mod walk;

use lab::LabError;
use serde::Deserialize;
use serde_json::{Value, json};

pub use asked::Asked;
use asked::refused;
use session::Session;

/// What a page asks.
#[derive(Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
enum Question {
    /// What is there to choose from?
    Lists,
    /// Plan these runs.
    Begin(Box<Asked>),
    /// Go on by a step.
    Step,
    /// What came of it, in a format of the command line, or `html`.
    Shown { format: String },
    /// What was seen of all runs, without maps.
    Walk,
    /// What the frames of one run were used for: a byte for each, moment by moment.
    Map { run: usize },
    /// What became of one frame.
    Frame { run: usize, place: usize },
    /// Why a run of the plan went as it went; and, if a file is named, the story of its pages.
    Explain { run: usize, file: String, page: String, format: String },
}

/// The state behind a page: the comparison that it runs or has run.
#[derive(Default)]
pub struct Playground {
    session: Option<Session>,
}

impl Playground {
    /// Answers a question, in JSON unless it asks for something else.
    ///
    /// # Errors
    /// What the command line would say, as JSON: `error`, `causes` and `hint`.
    pub fn ask(&mut self, question: &str) -> Result<Vec<u8>, Vec<u8>> {
        let answered = match serde_json::from_str(question) {
            Ok(question) => self.answer(question),
            Err(error) => Err(refused(format!("this cannot be asked: {error}"))),
        };
        answered.map_err(|error| told(&error).to_string().into_bytes())
    }

    fn answer(&mut self, question: Question) -> Result<Vec<u8>, LabError> {
        let begun = || refused("nothing was begun".to_owned());
        let value = match question {
            Question::Lists => lists::all(),
            Question::Begin(asked) => {
                self.session = None;
                self.session.insert(Session::begin(&asked)?).planned()
            }
            Question::Step => self.session.as_mut().ok_or_else(begun)?.step()?,
            Question::Walk => self.session.as_ref().ok_or_else(begun)?.walk(),
            Question::Frame { run, place } => self.session.as_ref().ok_or_else(begun)?.frame(run, place),
            Question::Shown { format } => {
                return Ok(self.session.as_ref().ok_or_else(begun)?.shown(&format)?.into_bytes());
            }
            Question::Explain { run, file, page, format } => {
                let session = self.session.as_ref().ok_or_else(begun)?;
                return Ok(session.explained(run, &file, &page, &format)?.into_bytes());
            }
            Question::Map { run } => return Ok(self.session.as_ref().ok_or_else(begun)?.map(run)),
        };
        Ok(value.to_string().into_bytes())
    }
}

/// An error in the words of the command line.
fn told(error: &LabError) -> Value {
    json!({ "error": error.to_string(), "causes": error.causes(), "hint": error.hint() })
}
