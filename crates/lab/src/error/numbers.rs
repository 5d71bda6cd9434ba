//! Why a text holds no numbers to compare, and what to do about it.

use thiserror::Error;

/// Why a text holds no numbers to compare.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NumbersError {
    /// Something else stands where a number should.
    #[error("line {line}: `{field}` is not a finite number")]
    NotANumber {
        /// The line, from 1.
        line: u64,
        /// What stands there.
        field: String,
    },
    /// Rows of several numbers that no header tells apart.
    #[error("line {line}: {fields} numbers in a row, and no header that names them")]
    NoHeader {
        /// The line, from 1.
        line: u64,
        /// How many there are.
        fields: usize,
    },
    /// The file is no CSV.
    #[error("{0}")]
    Csv(String),
    /// The file is no JSON, or JSON of something else.
    #[error("{0}")]
    Json(String),
    /// There is nothing in it.
    #[error("there is no number in it")]
    Empty,
}

impl NumbersError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotANumber { .. } => {
                "write numbers, one a line or with blanks between them; lines that begin with `#` are left out"
            }
            Self::NoHeader { .. } => "begin with a header: a name for each column, or `run,operation,value`",
            Self::Csv(_) => "every row needs as many fields as the header",
            Self::Json(_) => {
                "give a list of numbers, or an object of such lists by operation, or of those by run"
            }
            Self::Empty => "write one number a line",
        }
    }
}
