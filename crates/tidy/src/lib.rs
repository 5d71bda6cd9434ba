//! Repository checks that run with the tests: see `tests/tidy`. There is nothing here to use.
