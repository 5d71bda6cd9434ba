//! Which benchmark of mmtests has samples such as ours, and what it calls them.
//!
//! A benchmark decides the form of its log, the direction and the labels of its rows, so samples go where all of
//! these fit: files per second to fsmark, times of faults to the huge-page benchmark (whose name and log changed),
//! other rates to stressng, which takes tests of any name. There is none that takes times of any name.
//! Next: `pagetide-lab`'s `mmtests`, which writes and reads the logs.

use stats::Rules;
use stats::mmtests::Better;

/// The place of one kind of samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// `fsmark-THREADS.log.gz`.
    Fsmark {
        /// The number of threads that the row is labelled with.
        threads: String,
    },
    /// `threads-THREADS.log`: faults that found a huge page or did not.
    Faults {
        /// `base` or `huge`.
        kind: String,
        /// The number of threads that the row is labelled with.
        threads: String,
    },
    /// `stressng-THREADS-ITERATION.log`.
    Stressng {
        /// The name of the test.
        test: String,
        /// The number of threads that the row is labelled with.
        threads: String,
    },
}

impl Place {
    /// Where samples called `name` go, if mmtests has a place for them.
    pub fn of(name: &str, better: Better) -> Option<Self> {
        let threads = |text: &str| {
            (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.to_owned())
        };
        let first = || "1".to_owned();
        if name == "files_per_sec" {
            return Some(Self::Fsmark { threads: first() });
        }
        if let Some(threads) = name.strip_suffix("-files/sec").and_then(threads) {
            return Some(Self::Fsmark { threads });
        }
        for kind in ["base", "huge"] {
            if name == format!("fault_{kind}_us") {
                return Some(Self::Faults { kind: kind.to_owned(), threads: first() });
            }
            if let Some(threads) = name.strip_prefix(&format!("fault-{kind}-")).and_then(threads) {
                return Some(Self::Faults { kind: kind.to_owned(), threads });
            }
        }
        let is_word = !name.is_empty() && !name.contains(char::is_whitespace);
        if better == Better::Lower || !is_word {
            return None;
        }
        let numbered = name.rsplit_once('-').and_then(|(test, number)| Some((test, threads(number)?)));
        let (test, threads) = numbered.unwrap_or_else(|| (name, first()));
        Some(Self::Stressng { test: test.to_owned(), threads })
    }

    /// The benchmark, as that generation calls it.
    pub fn benchmark(&self, rules: Rules) -> &'static str {
        match (self, rules) {
            (Self::Fsmark { .. }, _) => "fsmark",
            (Self::Faults { .. }, Rules::G19) => "thpfioscale",
            (Self::Faults { .. }, Rules::Head) => "thpchallenge",
            (Self::Stressng { .. }, _) => "stressng",
        }
    }

    /// The label of its rows in a table of that generation.
    pub fn label(&self, rules: Rules) -> String {
        match (self, rules) {
            (Self::Fsmark { threads }, Rules::G19) => format!("{threads}-files/sec"),
            (Self::Fsmark { threads }, Rules::Head) => format!("files_sec-{threads}"),
            (Self::Faults { kind, threads }, _) => format!("fault-{kind}-{threads}"),
            (Self::Stressng { test, threads }, Rules::G19) => format!("{test}-{threads}"),
            (Self::Stressng { test, threads }, Rules::Head) => format!("bops-{test}-{threads}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_called_as_their_benchmark_calls_them() {
        use Better::{Higher, Lower};
        let told = |name: &str, better| {
            let place = Place::of(name, better)?;
            Some(
                [Rules::G19, Rules::Head]
                    .map(|rules| format!("{} {}", place.benchmark(rules), place.label(rules))),
            )
        };
        for (name, better, then, now) in [
            ("files_per_sec", Higher, "fsmark 1-files/sec", "fsmark files_sec-1"),
            ("16-files/sec", Higher, "fsmark 16-files/sec", "fsmark files_sec-16"),
            ("fault_base_us", Lower, "thpfioscale fault-base-1", "thpchallenge fault-base-1"),
            ("fault-huge-5", Lower, "thpfioscale fault-huge-5", "thpchallenge fault-huge-5"),
            (
                "stream_mib_per_second",
                Higher,
                "stressng stream_mib_per_second-1",
                "stressng bops-stream_mib_per_second-1",
            ),
            ("stream-mib-4", Higher, "stressng stream-mib-4", "stressng bops-stream-mib-4"),
        ] {
            assert_eq!(told(name, better), Some([then.to_owned(), now.to_owned()]), "{name}");
        }
        for (name, better) in [("hot_pass_seconds", Lower), ("a rate", Higher), ("", Higher)] {
            assert_eq!(told(name, better), None, "{name}");
        }
    }
}
