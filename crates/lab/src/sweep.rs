//! Sweeps: one workload with each of several values of a sysctl.
//!
//! `vm.fragment_stall_order=0..11` stands for every value from 0 to 11, `0,4,9` for three. Left
//! out: more than one sysctl at a time, and parameters of the workload.

use workload::params::split_pair;

use crate::batch::PlannedRun;
use crate::error::LabError;
use crate::resolve::Request;

/// Values that one sweep takes at most: more runs than that are a mistake.
pub const VALUES_MAX: u64 = 1_000;

/// Resolves `request` for each value that its sysctls list. Runs are labelled `name=value` and are
/// in the order of the values.
///
/// # Errors
/// What [`Request::resolve`] reports; no sysctl with several values, or two of them; an empty or
/// endless span.
pub fn plan(request: &Request) -> Result<Vec<PlannedRun>, LabError> {
    let mut spans = Vec::new();
    for pair in &request.sysctls {
        let (name, text) = split_pair(pair).map_err(|_| LabError::SysctlNotAPair(pair.clone()))?;
        if let Some(values) = values(name, text)? {
            spans.push((pair, name, values));
        }
    }
    let [(swept, name, values)] = &spans[..] else {
        return Err(LabError::NotOneSweep { sysctls: spans.len(), max: VALUES_MAX });
    };
    let run = |value: &String| {
        let label = format!("{name}={value}");
        let set = |pair: &String| if pair == *swept { label.clone() } else { pair.clone() };
        let sysctls = request.sysctls.iter().map(set).collect();
        let scenario = Request { sysctls, ..request.clone() }.resolve()?;
        Ok(PlannedRun { label, scenario })
    };
    values.iter().map(run).collect()
}

/// The values that `text` lists; `None` when it is a single one.
fn values(name: &str, text: &str) -> Result<Option<Vec<String>>, LabError> {
    if text.contains(',') {
        return Ok(Some(text.split(',').map(|value| value.trim().to_owned()).collect()));
    }
    let Some((first, last)) = text.split_once("..") else { return Ok(None) };
    let bad = || LabError::Span { name: name.to_owned(), text: text.to_owned(), max: VALUES_MAX };
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| bad());
    let (first, last) = (number(first)?, number(last)?);
    if first > last || last - first >= VALUES_MAX {
        return Err(bad());
    }
    Ok(Some((first..=last).map(|value| value.to_string()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::Subject;

    fn planned(sysctls: &[&str]) -> Result<Vec<String>, String> {
        let sysctls = sysctls.iter().map(|&pair| pair.to_owned()).collect();
        let request = Request { sysctls, ..Request::new(Subject::Workload("hot-and-stream".to_owned())) };
        let shown = |run: PlannedRun| format!("{} of {:?}", run.label, run.scenario.sysctls);
        plan(&request).map(|runs| runs.into_iter().map(shown).collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_span_or_a_list_makes_one_run_for_each_value_and_keeps_the_rest() {
        let runs = planned(&["vm.swappiness=10", "vm.fragment_stall_order=0..2"]).unwrap();
        assert_eq!(runs.len(), 3);
        assert!(runs[2].starts_with("vm.fragment_stall_order=2 of "), "{}", runs[2]);
        assert!(runs[2].contains("swappiness"), "{}", runs[2]);
        assert_eq!(planned(&["vm.swappiness=1,60"]).unwrap().len(), 2);
    }

    #[test]
    fn what_is_no_sweep_is_refused() {
        for (sysctls, problem) in [
            (&["vm.swappiness=10"][..], "a sweep takes one sysctl with several values, not 0"),
            (
                &["vm.swappiness=1,2", "vm.dirty_ratio=1..3"],
                "a sweep takes one sysctl with several values, not 2",
            ),
            (&["vm.swappiness=3..1"], "`3..1` is no span of values for `vm.swappiness`"),
            (&["vm.swappiness=1..x"], "`1..x` is no span of values for `vm.swappiness`"),
            (&["vm.swappiness=0..99999999999"], "`0..99999999999` is no span of values for `vm.swappiness`"),
        ] {
            assert_eq!(planned(sysctls), Err(problem.to_owned()));
        }
        assert!(planned(&["vm.swappiness=199..201"]).is_err(), "201 is out of range");
    }
}
