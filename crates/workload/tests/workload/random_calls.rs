//! Drawn programs: each is a workload file.

use pagetide_workload::{ParamValue, WorkloadSpec};

/// Calls of one task, at most, as the file's head says.
const CALLS_MAX: u64 = 64;

fn text(program: u64, calls: u64, tasks: u64) -> String {
    let spec = WorkloadSpec::find("random-calls").unwrap();
    let mut params = spec.defaults();
    for (name, value) in [("program", program), ("calls", calls), ("tasks", tasks)] {
        params.set(name, &value.to_string()).unwrap();
    }
    assert_eq!(params.get("program"), Some(ParamValue::Count(program)));
    spec.build(params).unwrap().drawn_text().unwrap()
}

#[test]
fn each_program_is_a_workload_file_and_all_its_words_are_drawn() {
    let mut all = String::new();
    for program in 1..=300 {
        all += &text(program, CALLS_MAX / 2, 2);
    }
    let words = ["read =", "fill =", "unmap =", "unlink =", "as = \"free\"", "memory.high", "stat =", "zipf"];
    for word in words {
        assert!(all.contains(word), "never `{word}`");
    }
}

#[test]
fn a_shorter_program_is_the_beginning_of_a_longer_one() {
    let lines = |calls| {
        let text = text(7, calls, 1);
        let steps = text.lines().skip_while(|line| !line.starts_with("steps")).skip(1);
        steps.take_while(|line| *line != "]").map(str::to_owned).collect::<Vec<_>>()
    };
    let (short, long) = (lines(5), lines(CALLS_MAX));
    assert_eq!((short.len(), long.len()), (5, 64));
    assert_eq!(short, long[..5]);
}
