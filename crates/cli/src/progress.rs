//! How far the work is: drawn on a terminal, otherwise one line for each finished run, and every few
//! seconds one on a run that is long, or on a real kernel.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lab::replay::{ReplayControl, ReplayProgress};
use lab::size::{SizeControl, SizeProgress};
use lab::worlds::{WorldDone, WorldTried, WorldsControl};
use lab::{Backend, Control, HostPolicy, PlannedRun, RunEvent, Told};

use crate::args::Verbosity;
use crate::estimate::{self, Estimate};
use crate::printer::Printer;
use crate::signals::stop_flag;

/// How often a drawing changes at most: seldom enough to cost nothing.
const REDRAWS_PER_SECOND: u8 = 10;

/// Worlds between two lines that say how many were checked.
const CHECKS_TOLD: usize = 500;

/// What is drawn of some work while it goes.
pub(crate) struct Bar<C> {
    bar: ProgressBar,
    /// What the work reports to, and how it is stopped.
    pub(crate) control: C,
}

impl<C> Bar<C> {
    /// Takes the drawing away.
    pub(crate) fn done(&self) {
        self.bar.finish_and_clear();
    }
}

/// Progress of `total` runs.
pub(crate) type RunProgress = Bar<Control>;

impl RunProgress {
    pub(crate) fn new(total: usize, host: HostPolicy, printer: &Printer) -> Self {
        let verbosity = printer.verbosity();
        let draw = printer.can_draw() && verbosity > Verbosity::Quiet;
        let bar = bar(total as u64, draw, "{spinner} {pos}/{len} runs {wide_msg}");
        let observed = bar.clone();
        let tell = Printer::new(verbosity);
        let pace = Mutex::new(Estimate::default());
        let observer = move |event: RunEvent<'_>| {
            let left = time_left(&pace, total, &event);
            match event {
                RunEvent::Started { index, run } if verbosity >= Verbosity::Verbose => {
                    let line = format!("run {}/{total} begins: {}", index + 1, with_seed(run));
                    observed.suspend(|| tell.note(&line));
                }
                RunEvent::Started { .. } => {}
                RunEvent::Advanced { index, simulated } if draw => {
                    let at = time(simulated.as_secs_f64());
                    observed.set_message(format!("run {} at {at} of simulated time{left}", index + 1));
                }
                RunEvent::Advanced { index, simulated } if verbosity > Verbosity::Quiet => {
                    if let Some(took) = due(&pace, index) {
                        let at = format!(
                            "run {}/{total}: at {} of simulated time",
                            index + 1,
                            time(simulated.as_secs_f64())
                        );
                        let times = times(simulated.as_secs_f64(), took.as_secs_f64());
                        tell.note(&format!("{at} after {} s ({times})", took.as_secs()));
                    }
                }
                RunEvent::Advanced { .. } => {}
                RunEvent::Told { told: Told::Note(text), .. } if verbosity > Verbosity::Quiet => {
                    observed.suspend(|| tell.note(text));
                }
                RunEvent::Told { told: Told::Note(_) | Told::Kept(_), .. } => {}
                RunEvent::Told { told: Told::Phase(text) | Told::Progress(text), .. } if draw => {
                    observed.set_message(text.to_owned());
                }
                RunEvent::Told { told, .. } => match told {
                    Told::Phase(text) if verbosity >= Verbosity::Verbose => tell.note(text),
                    Told::Progress(text) if verbosity > Verbosity::Quiet => tell.note(text),
                    _ => {}
                },
                RunEvent::Finished { index, run, simulated, wall } => {
                    observed.inc(1);
                    if verbosity > Verbosity::Quiet {
                        let line = if run.scenario.backend == Backend::Sim {
                            let speed = times(simulated.as_secs_f64(), wall.as_secs_f64());
                            format!(
                                "{} simulated in {} ({speed})",
                                time(simulated.as_secs_f64()),
                                time(wall.as_secs_f64())
                            )
                        } else {
                            format!("ran for {}", time(wall.as_secs_f64()))
                        };
                        let line = format!("run {}/{total}: {}: {line}{left}", index + 1, with_seed(run));
                        observed.suspend(|| tell.note(&line));
                    }
                }
            }
        };
        let control = Control { stop: stop_flag(), observer: Arc::new(observer), host, ..Control::default() };
        Self { bar, control }
    }
}

/// What a run is called, and its seed where that is not part of it, as in a sweep over seeds.
fn with_seed(run: &PlannedRun) -> String {
    let (label, seed) = (&run.label, run.scenario.seed.0);
    if label.split(", ").any(|part| part == format!("seed={seed}")) {
        return label.clone();
    }
    format!("{label}, seed {seed}")
}

/// A time as reports have it.
fn time(seconds: f64) -> String {
    report::number::duration(seconds * 1e9)
}

/// How fast simulated time goes, against a clock.
fn times(simulated: f64, took: f64) -> String {
    let speed = simulated / took.max(1e-9);
    match speed {
        0.0..0.1 => "less than 0.1 times as fast".to_owned(),
        0.1..10.0 => format!("{speed:.1} times as fast"),
        _ => format!("{speed:.0} times as fast"),
    }
}

/// How long run `index` has taken, if it is time to tell of it again.
fn due(pace: &Mutex<Estimate>, index: usize) -> Option<Duration> {
    pace.lock().unwrap_or_else(PoisonError::into_inner).due(index, Instant::now())
}

/// Takes note of `event`; how long the rest of `total` runs will take, to be put behind a line.
fn time_left(pace: &Mutex<Estimate>, total: usize, event: &RunEvent<'_>) -> String {
    // What a thread that panicked left of an estimate is good enough.
    let (now, mut pace) = (Instant::now(), pace.lock().unwrap_or_else(PoisonError::into_inner));
    match *event {
        RunEvent::Started { index, .. } => pace.begin(index, now),
        RunEvent::Finished { index, .. } => pace.end(index, now),
        RunEvent::Advanced { .. } | RunEvent::Told { .. } => {}
    }
    let left = pace.left(total, now).and_then(estimate::told);
    left.map_or_else(String::new, |left| format!("; {left}"))
}

/// Progress of a replay: bytes where they can be drawn, and a line for each kernel and for all policies.
pub(crate) type ReplayBar = Bar<ReplayControl>;

impl ReplayBar {
    pub(crate) fn new(printer: &Printer) -> Self {
        let (verbosity, tells) = (printer.verbosity(), printer.verbosity() > Verbosity::Quiet);
        let template = "{spinner} {binary_bytes}/{binary_total_bytes} {wide_bar} {eta}";
        let bar = bar(0, tells && printer.can_draw(), template);
        let (observed, tell) = (bar.clone(), Printer::new(verbosity));
        let observer = move |progress: ReplayProgress| {
            if let ReplayProgress::Read { bytes, total } = progress {
                observed.set_length(total);
                observed.inc(bytes);
            } else if let (true, Some(line)) = (tells, replay_line(progress)) {
                observed.suspend(|| tell.note(&line));
            }
        };
        Self { bar, control: ReplayControl { stop: stop_flag(), observer: Arc::new(observer), kept: None } }
    }
}

/// Progress of a size: the reading of the trace, then its runs, of which more turn up as the curve is known.
pub(crate) type SizeBar = Bar<SizeControl>;

impl SizeBar {
    pub(crate) fn new(printer: &Printer) -> Self {
        let (verbosity, tells) = (printer.verbosity(), printer.verbosity() > Verbosity::Quiet);
        let bar = bar(0, tells && printer.can_draw(), "{spinner} {pos}/{len} runs {wide_msg}");
        let (observed, tell) = (bar.clone(), Printer::new(verbosity));
        let observer = move |progress: SizeProgress<'_>| match progress {
            SizeProgress::Read { bytes, total } => {
                let of = if total > 0 { format!(" of {}", total >> 20) } else { String::new() };
                observed.set_message(format!("reading the trace: {}{of} MiB", bytes >> 20));
            }
            SizeProgress::Planned { runs } => observed.set_length(runs as u64),
            SizeProgress::Finished { finished, label, seed, seconds } => {
                observed.set_position(finished as u64);
                let line = format!("run {finished}: {label}, seed {seed}: {seconds:.2} s");
                observed.set_message(line.clone());
                if verbosity >= Verbosity::Verbose {
                    observed.suspend(|| tell.note(&line));
                }
            }
            SizeProgress::Timed { sample_seconds, whole_seconds } if tells => {
                let times = whole_seconds / sample_seconds.max(1e-9);
                observed.suspend(|| {
                    tell.note(&format!(
                        "runs of the sample took {sample_seconds:.2} s of a CPU, the same limits on all of the trace \
                         {whole_seconds:.2} s: {times:.1} times as long"
                    ));
                });
            }
            SizeProgress::Captures { number, of, own_cache } => {
                let line = format!("capture {number} of {of}: an own cache of {own_cache}");
                observed.set_message(line.clone());
                if tells {
                    observed.suspend(|| tell.note(&line));
                }
            }
            SizeProgress::Checks { limit } => {
                let with = limit.map_or("without a limit".to_owned(), |limit| format!("at {limit}"));
                observed.set_message(format!("the program itself, {with}"));
            }
            SizeProgress::Timed { .. } => {}
        };
        Self { bar, control: SizeControl { stop: stop_flag(), observer: Arc::new(observer) } }
    }
}

/// Progress of worlds: a line for each that has ended.
pub(crate) type WorldsBar = Bar<WorldsControl>;

impl WorldsBar {
    pub(crate) fn new(total: usize, host: HostPolicy, jobs: usize, printer: &Printer) -> Self {
        let (verbosity, tells) = (printer.verbosity(), printer.verbosity() > Verbosity::Quiet);
        let bar = bar(total as u64, tells && printer.can_draw(), "{spinner} {pos}/{len} worlds {wide_msg}");
        let (observed, tell) = (bar.clone(), Printer::new(verbosity));
        let observer = move |world: WorldDone<'_>| {
            let WorldDone { done, total, seed, workload, told, seconds, .. } = world;
            observed.set_position(done as u64);
            if tells {
                let line = format!("world {done}/{total}: seed {seed}, {workload}: {told} ({seconds:.1} s)");
                observed.suspend(|| tell.note(&line));
            }
        };
        let control = WorldsControl { stop: stop_flag(), observer: Arc::new(observer), host, jobs };
        Self { bar, control }
    }

    /// Of so many worlds that are checked, lines only for those with which something is wrong and for every hundredth.
    pub(crate) fn of_checks(total: usize, jobs: usize, printer: &Printer) -> Self {
        let (verbosity, tells) = (printer.verbosity(), printer.verbosity() > Verbosity::Quiet);
        let draws = tells && printer.can_draw();
        let bar = bar(total as u64, draws, "{spinner} {pos}/{len} worlds {wide_bar} {eta}");
        let (observed, tell, begin) = (bar.clone(), Printer::new(verbosity), Instant::now());
        let observer = move |world: WorldDone<'_>| {
            let WorldDone { done, total, seed, workload, told, seconds, is_wrong } = world;
            observed.set_position(done as u64);
            if is_wrong && tells || verbosity >= Verbosity::Verbose {
                let line = format!("world {done}/{total}: seed {seed}, {workload}: {told} ({seconds:.1} s)");
                observed.suspend(|| tell.note(&line));
            } else if tells && !draws && done.is_multiple_of(CHECKS_TOLD) {
                tell.note(&format!("{done} of {total} worlds in {:.0} s", begin.elapsed().as_secs_f64()));
            }
        };
        let (stop, host) = (stop_flag(), HostPolicy::default());
        Self { bar, control: WorldsControl { stop, observer: Arc::new(observer), host, jobs } }
    }
}

/// Progress of a world that is made smaller: a line for each step, the last try where it can be drawn.
pub(crate) struct ShrinkBar {
    bar: ProgressBar,
    tell: Printer,
    tells: bool,
    /// What the runs report to, and how they are stopped.
    pub(crate) control: WorldsControl,
}

impl ShrinkBar {
    pub(crate) fn new(host: HostPolicy, printer: &Printer) -> Self {
        let (verbosity, tells) = (printer.verbosity(), printer.verbosity() > Verbosity::Quiet);
        let bar = bar(0, tells && printer.can_draw(), "{spinner} {wide_msg}");
        let control = WorldsControl { stop: stop_flag(), observer: Arc::new(|_| {}), host, jobs: 1 };
        Self { bar, tell: Printer::new(verbosity), tells, control }
    }

    /// A smaller world was tried.
    pub(crate) fn tell(&self, world: WorldTried<'_>) {
        self.bar.set_message(format!("{} worlds tried in {:.0} s", world.tried, world.seconds));
        if world.disagrees && self.tells {
            let line = smaller_line(&world, self.tell.verbosity());
            self.bar.suspend(|| self.tell.note(&line));
        }
    }

    pub(crate) fn done(&self) {
        self.bar.finish_and_clear();
    }
}

/// What is told of a smaller world; its command has hundreds of characters.
fn smaller_line(world: &WorldTried<'_>, verbosity: Verbosity) -> String {
    let WorldTried { tried, command, seconds, .. } = world;
    match verbosity {
        Verbosity::Verbose => format!("smaller at try {tried}: {command}"),
        _ => format!("smaller at try {tried}, after {seconds:.0} s"),
    }
}

fn replay_line(progress: ReplayProgress) -> Option<String> {
    let pace = |requests: u64, seconds: f64| {
        let rate = requests as f64 / seconds.max(1e-9);
        format!("{requests} requests in {seconds:.3} s ({rate:.0} requests/s)")
    };
    match progress {
        ReplayProgress::Read { .. } => None,
        ReplayProgress::Kept { bytes } => Some(format!(
            "standard input is kept in a temporary file of {bytes} bytes until all have read it"
        )),
        ReplayProgress::Fed { caches, requests, seconds } => {
            let caches = if caches == 1 { "1 policy".to_owned() } else { format!("{caches} policies") };
            Some(format!("{caches} from one reading: {}", pace(requests, seconds)))
        }
        ReplayProgress::Finished { done, total, requests, seconds } => {
            Some(format!("kernel {done}/{total}: {}", pace(requests, seconds)))
        }
    }
}

fn bar(length: u64, draw: bool, template: &str) -> ProgressBar {
    let target = if draw {
        ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_SECOND)
    } else {
        ProgressDrawTarget::hidden()
    };
    let style = ProgressStyle::with_template(template).expect("the template is ours");
    let bar = ProgressBar::with_draw_target(Some(length), target).with_style(style);
    if draw {
        bar.enable_steady_tick(Duration::from_millis(200));
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_to_a_smaller_world_was_a_line_of_hundreds_of_characters() {
        let command = "pagetide run simoop --param files=7";
        let world = WorldTried { tried: 3, disagrees: true, command, seconds: 1.4 };
        assert_eq!(smaller_line(&world, Verbosity::Normal), "smaller at try 3, after 1 s");
        assert_eq!(smaller_line(&world, Verbosity::Verbose), format!("smaller at try 3: {command}"));
    }

    #[test]
    fn a_short_run_took_no_time() {
        assert_eq!((time(0.050_74), time(0.000_3)), ("50.74 ms".to_owned(), "300 µs".to_owned()));
    }
}
