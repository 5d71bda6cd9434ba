//! A scenario file, read and written with all defaults; names that it may use are those that a caller knows.

use pagetide_workload::{Scenario, Vocabulary, catalog};

const FILE: &str = "
workload = \"hot-and-stream\"
kernel = \"linux-6.12\"
machine = \"vm-2cpu\"
mem = \"1G\"
[params]
hot = \"64M\"
";

fn words() -> Vocabulary<'static> {
    Vocabulary { kernels: &["linux-6.12"], machines: &["vm-2cpu"], ..Vocabulary::default() }
}

#[allow(clippy::print_stdout, reason = "lines are what it is for")]
fn main() {
    for workload in catalog() {
        println!("{}: {}", workload.name, workload.help);
    }
    match Scenario::read(FILE, &words()) {
        Ok(scenario) => println!("\n{}", scenario.to_toml()),
        Err(error) => println!("{error}"),
    }
}

#[test]
fn what_is_written_reads_back() {
    let scenario = Scenario::read(FILE, &words()).unwrap();
    assert_eq!(Scenario::read(&scenario.to_toml(), &words()), Ok(scenario));
}
