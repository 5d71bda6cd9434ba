//! Tests of the whole simulator: see `tests/stories`. There is nothing here to use.
