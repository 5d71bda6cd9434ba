//! Sizes as people write them, as pages; and draws that only depend on a seed and a name.

use pagetide_units::{PAGE_SIZE, ParseUnitError, Seed, parse_nanos, parse_size};

/// Pages that a size takes.
fn pages(text: &str) -> Result<u64, ParseUnitError> {
    Ok(parse_size(text)?.get().div_ceil(PAGE_SIZE))
}

#[allow(clippy::print_stdout, reason = "lines are what it is for")]
fn main() -> Result<(), ParseUnitError> {
    for text in ["64M", "1016336 kB", "5000"] {
        println!("{text}: {} pages", pages(text)?);
    }
    println!("20ms: {} ns", parse_nanos("20ms")?.get());
    let mut arrivals = Seed(1).stream("arrivals");
    println!("three draws below 100: {:?}", [(); 3].map(|()| arrivals.below(100)));
    Ok(())
}

#[test]
fn sizes_are_pages() {
    main().unwrap();
    assert_eq!(pages("64M"), Ok(16_384));
}
