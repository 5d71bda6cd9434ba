//! How many of the tuned rows hit, scenario by scenario: `data/hits.csv`, below which none may fall.
//!
//! `hits` runs every scenario and prints the file; `hits --check` says where there are fewer than it has. Left out: the
//! figures behind it, which `rows NAME` prints with the command of each scenario. Neighbours: `rows.rs` judges.

use std::collections::BTreeMap;
use std::error::Error;

use crate::rows::Row;

const KEPT: &str = include_str!("../data/hits.csv");
const HEADER: &str = "scenario,workload,hits,misses,shown";

/// What became of the rows of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hits {
    pub(crate) scenario: String,
    pub(crate) workload: String,
    pub(crate) hits: usize,
    pub(crate) misses: usize,
    pub(crate) shown: usize,
}

/// What the repository keeps.
pub(crate) fn kept() -> Vec<Hits> {
    read(KEPT).expect("the embedded file is well-formed")
}

fn read(text: &str) -> Option<Vec<Hits>> {
    let mut lines = text.lines();
    (lines.next()? == HEADER).then_some(())?;
    let row = |line: &str| {
        let [scenario, workload, hits, misses, shown] =
            line.split(',').collect::<Vec<_>>().try_into().ok()?;
        let [hits, misses, shown] = [hits, misses, shown].map(|count: &str| count.parse().ok());
        let (scenario, workload) = (String::from(scenario), String::from(workload));
        Some(Hits { scenario, workload, hits: hits?, misses: misses?, shown: shown? })
    };
    lines.map(row).collect()
}

/// Counted from rows, in their order.
pub(crate) fn count(rows: &[Row]) -> Vec<Hits> {
    let of = |rows: &[Row]| {
        let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
        let (scenario, workload) = (rows[0].scenario.clone(), rows[0].workload.clone());
        Hits { workload, scenario, hits: count("hit"), misses: count("miss"), shown: count("shown") }
    };
    rows.chunk_by(|a, b| a.scenario == b.scenario).map(of).collect()
}

/// As the file has them.
pub(crate) fn write(all: &[Hits]) -> String {
    let line = |Hits { scenario, workload, hits, misses, shown }: &Hits| {
        format!("{scenario},{workload},{hits},{misses},{shown}\n")
    };
    all.iter().fold(format!("{HEADER}\n"), |text, hits| text + &line(hits))
}

/// Whether no scenario of these has fewer hits than are kept, or other rows.
///
/// # Errors
/// Those that have.
pub(crate) fn check(now: &[Hits]) -> Result<(), Box<dyn Error>> {
    let kept: BTreeMap<String, Hits> = kept().into_iter().map(|hits| (hits.scenario.clone(), hits)).collect();
    let mut told = Vec::new();
    for hits in now {
        let rows = |hits: &Hits| (hits.hits + hits.misses, hits.shown);
        match kept.get(&hits.scenario) {
            None => told.push(format!("{}: not in the file", hits.scenario)),
            Some(kept) if rows(kept) != rows(hits) => told.push(format!("{}: other rows", hits.scenario)),
            Some(kept) if hits.hits < kept.hits => {
                told.push(format!("{}: {} hits for {}", hits.scenario, hits.hits, kept.hits));
            }
            Some(_) => {}
        }
    }
    if told.is_empty() { Ok(()) } else { Err(told.join("\n").into()) }
}

/// How a run ended, in a word.
pub(crate) fn outcome(code: f64) -> String {
    let names = ["done", "killed", "panicked", "failed", "not ended"];
    names.get(code as usize).map_or_else(|| code.to_string(), |&name| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::{names, rows};

    /// Scenarios that are quick to run, of most workloads and every kernel.
    const QUICK: [&str; 16] = [
        "c_thr4_k510",
        "c_thr4_k612",
        "c_thr4_k72",
        "a_par256_hot25_radef_k72",
        "a_par256_hot100_k510",
        "a_glob_cold25_k72",
        "a_par256_hot25_k61",
        "a_par256_hot25_mglru_k612",
        "anon_thp_k612",
        "anon_k61",
        "reclaim_k612",
        "par_disk_seq_k61",
        "par_stream_sw60_k612",
        "par_loop_sw200_k61",
        "mapped_code_k612",
        "mapped_loop_k61",
    ];

    #[test]
    fn the_file_has_each_scenario_once_and_reads_back() {
        assert_eq!(write(&kept()), KEPT);
        let kept: Vec<String> = kept().into_iter().map(|hits| hits.scenario).collect();
        assert_eq!(kept, names());
    }

    /// The others are what `hits --check` is for.
    #[test]
    fn quick_scenarios_have_as_many_hits_as_are_kept() {
        let rows = rows(&QUICK, 0).unwrap();
        let now = count(&rows);
        assert_eq!(now.len(), QUICK.len());
        check(&now).unwrap();
    }

    #[test]
    fn fewer_hits_and_other_rows_are_told() {
        let mut now = kept();
        check(&now).unwrap();
        let place = now.iter().position(|hits| hits.hits > 0).expect("there are some");
        now[place].hits -= 1;
        now[place].misses += 1;
        let fallen = check(&now).unwrap_err().to_string();
        assert!(fallen.contains(&now[place].scenario) && fallen.contains("hits for"), "{fallen}");
        now[place].misses += 1;
        assert!(check(&now).unwrap_err().to_string().contains("other rows"));
        now[place].scenario = "none".to_owned();
        assert!(check(&now).unwrap_err().to_string().contains("not in the file"));
    }
}
