//! Policies from outside: their stories, and naive ones beside them.

mod naive;
mod policies;
