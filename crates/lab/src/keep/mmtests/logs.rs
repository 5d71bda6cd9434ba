//! The texts in a folder of mmtests: what its scripts read, and back.
//!
//! What a log holds beside the figures that are read, such as how full a disk was, we do not know; it is 0 there.

use std::collections::BTreeMap;

use recording::{Recording, is_gauge};
use report::{Place, Rules};

/// Samples under the names that mmtests' tables of 2019 have for them.
pub(crate) type Samples = BTreeMap<String, Vec<f64>>;

/// A file of a benchmark's logs: its name, and whether it is packed.
pub(crate) struct Log {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) packed: bool,
}

/// The logs of one benchmark with these samples, in the form that this generation reads.
pub(crate) fn written(places: &[(Place, Vec<f64>)], rules: Rules) -> Vec<Log> {
    let mut logs = Vec::new();
    let mut faults: BTreeMap<&str, String> = BTreeMap::new();
    let mut stressed: BTreeMap<(&str, usize), String> = BTreeMap::new();
    for (place, samples) in places {
        match place {
            Place::Fsmark { threads } => {
                let rows =
                    samples.iter().map(|rate| format!("{:>6} {:>12} {:>12} {rate:>12} {:>16}\n", 0, 0, 0, 0));
                let head = "FSUse%        Count         Size    Files/sec     App Overhead\n";
                let text = format!("#  Files/sec only is known\n{head}{}", rows.collect::<String>());
                logs.push(Log { name: format!("fsmark-{threads}.log"), text, packed: true });
            }
            Place::Faults { kind, threads } => {
                let rows = samples.iter().map(|us| format!("fault 0 {kind} {us}\n"));
                faults.entry(threads).or_default().extend(rows);
            }
            Place::Stressng { test, threads } => {
                for (index, rate) in samples.iter().enumerate() {
                    let head = || {
                        "stress-ng: info:  [0] stressor bogo ops real usr sys ops/s ops/s\n\
                         stress-ng: info:  [0] (secs) (secs) (secs) (real time) (usr+sys time)\n"
                            .to_owned()
                    };
                    let text = stressed.entry((threads, index + 1)).or_insert_with(head);
                    text.push_str(&format!("stress-ng: info:  [0] {test} 0 0 0 0 {rate} 0\n"));
                }
            }
        }
    }
    let packed = rules == Rules::Head;
    logs.extend(faults.into_iter().map(|(threads, text)| Log {
        name: format!("threads-{threads}.log"),
        text,
        packed,
    }));
    logs.extend(stressed.into_iter().map(|((threads, iteration), text)| Log {
        name: format!("stressng-{threads}-{iteration}.log"),
        text,
        packed: false,
    }));
    logs
}

/// The samples in the log `name` of `benchmark`, unpacked, added to `samples`; an error is a line and what is wrong.
pub(crate) fn read(
    benchmark: &str,
    name: &str,
    text: &str,
    samples: &mut Samples,
) -> Result<(), (usize, String)> {
    match benchmark {
        "fsmark" => match between(name, "fsmark-", ".log") {
            Some(threads) => read_fsmark(&format!("{threads}-files/sec"), text, samples),
            None => Ok(()),
        },
        "thpfioscale" | "thpchallenge" => match between(name, "threads-", ".log") {
            Some(threads) => read_faults(threads, text, samples),
            None => Ok(()),
        },
        "stressng" => match between(name, "stressng-", ".log").and_then(|text| text.rsplit_once('-')) {
            Some((threads, _)) => read_stressng(threads, text, samples),
            None => Ok(()),
        },
        "simoop" if name == "simoop.log" => read_simoop(text, samples),
        _ => Ok(()),
    }
}

/// Benchmarks whose logs [`read`] knows.
pub(crate) const READ: [&str; 5] = ["fsmark", "thpfioscale", "thpchallenge", "stressng", "simoop"];

fn between<'a>(name: &'a str, before: &str, after: &str) -> Option<&'a str> {
    name.strip_prefix(before)?.strip_suffix(after)
}

fn figure(field: Option<&str>, line: usize) -> Result<f64, (usize, String)> {
    let field = field.ok_or((line, "the row is too short".to_owned()))?;
    let number = field.replace(',', "").parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| (line, format!("`{}` is no number", field.escape_default())))
}

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

fn read_fsmark(name: &str, text: &str, samples: &mut Samples) -> Result<(), (usize, String)> {
    let rows = lines(text).skip_while(|(_, line)| !line.trim_start().starts_with("FSUse%")).skip(1);
    let told = |line: &str| line.contains("Insufficient free space") || line.contains("No space");
    for (number, line) in rows.filter(|(_, line)| !line.trim().is_empty() && !told(line)) {
        let rate = figure(line.split_whitespace().nth(3), number)?;
        samples.entry(name.to_owned()).or_default().push(rate);
    }
    Ok(())
}

fn read_faults(threads: &str, text: &str, samples: &mut Samples) -> Result<(), (usize, String)> {
    for (number, line) in lines(text).filter(|(_, line)| line.starts_with("fault")) {
        let mut fields = line.split_whitespace().skip(2);
        let kind = fields.next().ok_or((number, "the row is too short".to_owned()))?;
        let time = figure(fields.next(), number)?;
        samples.entry(format!("fault-{kind}-{threads}")).or_default().push(time);
    }
    Ok(())
}

fn read_stressng(threads: &str, text: &str, samples: &mut Samples) -> Result<(), (usize, String)> {
    for (number, line) in lines(text).skip_while(|(_, line)| !line.contains("(secs)")).skip(1) {
        let row = line.split_once("] ").map_or(line, |(_, row)| row);
        let mut fields = row.split_whitespace();
        let Some(test) = fields.next() else { continue };
        let rate = figure(fields.nth(4), number)?;
        samples.entry(format!("{test}-{threads}")).or_default().push(rate);
    }
    Ok(())
}

/// Both forms of its reports, with `usec:` and without; of the whole at the end there is one more.
fn read_simoop(text: &str, samples: &mut Samples) -> Result<(), (usize, String)> {
    let rows = lines(text)
        .skip_while(|(_, line)| !line.starts_with("Warmup complete"))
        .take_while(|(_, line)| !line.starts_with("Final stats"));
    for (number, line) in rows {
        let Some((before, after)) = line.split_once(" latency ") else { continue };
        let operation = before.rsplit(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
        for part in after.trim_start_matches("usec:").split(['(', ')']).filter(|part| part.contains(": ")) {
            let (percentile, value) = part.split_once(": ").expect("just seen");
            let value = figure(Some(value), number)?;
            samples.entry(format!("{percentile}-{operation}")).or_default().push(value);
        }
    }
    Ok(())
}

/// Duration of a test in seconds, as GNU time tells it: user, system, elapsed.
pub(crate) type Duration = [Option<f64>; 3];

/// What an iteration says of itself: its tests in their order, each with its duration.
pub(crate) fn read_timestamps(text: &str) -> Result<Vec<(String, Duration)>, (usize, String)> {
    let mut tests: Vec<(String, Duration)> = Vec::new();
    for (number, line) in lines(text) {
        let mut fields = line.split_whitespace();
        match (fields.next(), fields.next(), fields.next(), fields.next()) {
            (Some("test"), Some("begin"), Some("::"), Some(test)) => tests.push((test.to_owned(), [None; 3])),
            (Some("time"), Some("::"), Some(test), first) => {
                let rest: Vec<&str> = first.into_iter().chain(fields).collect();
                let of = |index: usize| -> Result<Option<f64>, (usize, String)> {
                    // Of what is not known we write so.
                    match rest.get(index) {
                        Some(&"NaN") => Ok(None),
                        field => figure(field.copied(), number).map(Some),
                    }
                };
                let duration = [of(0)?, of(2)?, of(4)?];
                if let Some((_, of_test)) = tests.iter_mut().rev().find(|(name, _)| name == test) {
                    *of_test = duration;
                }
            }
            _ => {}
        }
    }
    Ok(tests)
}

/// Counters before and after `test`, of what an iteration kept of the system.
pub(crate) fn read_vmstat(text: &str, test: &str) -> Result<BTreeMap<String, u64>, (usize, String)> {
    let begin = format!("test begin :: {test} ");
    let end = format!("test end :: {test} ");
    let inside = lines(text)
        .skip_while(|(_, line)| !line.starts_with(&begin))
        .take_while(|(_, line)| !line.starts_with(&end));
    let mut counted: [BTreeMap<String, u64>; 2] = Default::default();
    let mut reading = None;
    for (number, line) in inside {
        if line.starts_with("file start :: ") || line.starts_with("file end :: ") {
            let is_vmstat = line.ends_with(":: /proc/vmstat");
            reading = is_vmstat.then_some(usize::from(line.starts_with("file end")));
            continue;
        }
        let Some(which) = reading else { continue };
        let Some((name, value)) = line.split_once(' ') else { continue };
        let value = value
            .trim()
            .parse::<u64>()
            .map_err(|_| (number, format!("`{}` is no counter", line.escape_default())))?;
        counted[which].insert(name.to_owned(), value);
    }
    let [before, after] = counted;
    Ok(after
        .into_iter()
        .map(|(name, value)| {
            let from = if is_gauge(&name) { 0 } else { before.get(&name).copied().unwrap_or(0) };
            let since = value.saturating_sub(from);
            (name, since)
        })
        .collect())
}

/// `/proc/vmstat` at the begin or the end of a run, in the kernel's order of zones, which scripts rely on.
pub(crate) fn vmstat(recording: &Recording, at_end: bool) -> String {
    const ZONES: [&str; 6] = ["dma", "dma32", "normal", "high", "movable", "device"];
    let rank = |name: &str| {
        let zone = name.rsplit_once('_').and_then(|(stem, zone)| {
            Some((stem.to_owned(), ZONES.iter().position(|known| *known == zone)? + 1))
        });
        zone.unwrap_or((name.to_owned(), 0))
    };
    let at_begin = |name: &String, value: u64| {
        if at_end {
            return Some(value);
        }
        if is_gauge(name) { recording.series.column(name)?.first().copied() } else { Some(0) }
    };
    let mut counters: Vec<(&String, u64)> =
        recording.vmstat.iter().filter_map(|(name, &value)| Some((name, at_begin(name, value)?))).collect();
    counters.sort_by_key(|(name, _)| rank(name));
    counters.iter().map(|(name, value)| format!("{name} {value}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_of_both_generations_are_read_back() {
        let places = [
            (Place::Fsmark { threads: "16".into() }, vec![4444.8, 0.5]),
            (Place::Faults { kind: "base".into(), threads: "5".into() }, vec![3.25]),
            (Place::Faults { kind: "huge".into(), threads: "5".into() }, vec![900.0, 1100.0]),
            (Place::Stressng { test: "mib-per-s".into(), threads: "2".into() }, vec![1.0, 2.0, 3.0]),
        ];
        for rules in [Rules::G19, Rules::Head] {
            let mut samples = Samples::new();
            for (place, list) in &places {
                for log in written(&[(place.clone(), list.clone())], rules) {
                    read(place.benchmark(rules), &log.name, &log.text, &mut samples).unwrap();
                }
            }
            let wanted = places.iter().map(|(place, list)| (place.label(Rules::G19), list.clone())).collect();
            assert_eq!(samples, wanted);
        }
    }

    /// The form that the source prints, and that of today.
    #[test]
    fn reports_of_simoop_count_from_the_warm_up_to_the_final_one() {
        let mut samples = Samples::new();
        let text = "Run time: 9 seconds\nRead latency (p50: 9) (p95: 9) (p99: 9)\nWarmup complete\n\
            Read latency (p50: 3,305,472) (p95: 3,723,264) (p99: 4,001,792)\nwork rate = 13.45/sec\n\
            Read latency usec: (p50: 10) (p95: 20) (p99: 30) (max: 1,000)\nFinal stats\n\
            Read latency usec: (p50: 99) (p95: 99) (p99: 99) (max: 99)\n";
        read("simoop", "simoop.log", text, &mut samples).unwrap();
        assert_eq!(samples["p50-Read"], [3_305_472.0, 10.0]);
        assert_eq!((samples["p99-Read"].len(), &samples["max-Read"][..]), (2, &[1000.0][..]));
    }

    #[test]
    fn what_is_no_figure_is_named_with_its_line() {
        let mut samples = Samples::new();
        let text = "FSUse% Count Size Files/sec App Overhead\n 1 2 3 many 5\n";
        assert_eq!(
            read("fsmark", "fsmark-1.log", text, &mut samples),
            Err((2, "`many` is no number".into()))
        );
        assert_eq!(
            read_timestamps("test begin :: a 1\ntime :: a 1.5 user x system 3 elapsed\n"),
            Err((2, "`x` is no number".into()))
        );
        let sysstate = "test begin :: a 1\nfile start :: /proc/vmstat\npgfault many\n";
        assert_eq!(read_vmstat(sysstate, "a"), Err((3, "`pgfault many` is no counter".into())));
    }

    #[test]
    fn counters_are_differences_of_the_test_named_and_gauges_are_those_at_its_end() {
        let of = |test: &str, before: u64, after: u64| {
            format!(
                "test begin :: {test} 1\nfile start :: /proc/vmstat\nnr_free_pages 9\npgfault {before}\n\
                 file start :: /proc/meminfo\npgfault 77\nfile end :: /proc/vmstat\nnr_free_pages 5\npgfault {after}\n\
                 file end :: /proc/zoneinfo\npgfault 88\ntest end :: {test} 2\n"
            )
        };
        let text = of("first", 10, 30) + &of("second", 100, 101);
        let found = read_vmstat(&text, "second").unwrap();
        assert_eq!((found["pgfault"], found["nr_free_pages"]), (1, 5));
    }
}
