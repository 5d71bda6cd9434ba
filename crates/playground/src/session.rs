//! The runs of a comparison, one after the other, step by step, and what is shown of them.
//!
//! Plan, columns and views are those of `pagetide compare`. Left out: limits, folders, several runs at once. Next:
//! [`crate::walk`] for what is seen of each run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lab::compare::{self, Comparison};
use lab::explain::{self, With};
use lab::stepping::Stepping;
use lab::{LabError, PlannedRun, Recording, page, view, warnings};
use report::{Explained, Format, Question, Style, page as pages, views};
use serde_json::{Value, json};
use units::Bytes;

use crate::asked::{Asked, refused};
use crate::walk::Walk;

/// Columns of a table of text, as in a file of the command line's.
const STYLE: Style<'static> = Style { width: 80, made_by: concat!("pagetide ", env!("CARGO_PKG_VERSION")) };

/// Runs whose memory is kept to be looked at: those of more would take more room than they are worth.
const WALKS_MAX: usize = 4;

/// What a machine may have where addresses have 32 bits: a frame takes 24 bytes, some more with what is beside it.
const MEM_MAX: Bytes = Bytes(256 << 30);

/// A comparison that runs or has run.
pub(crate) struct Session {
    comparison: Comparison,
    plan: Vec<PlannedRun>,
    /// One for each run, where it has finished.
    recordings: Vec<Option<Recording>>,
    finished: usize,
    walks: Vec<(String, Walk)>,
    running: Option<Running>,
    told: Vec<String>,
    command: String,
}

/// The run that goes on.
struct Running {
    run: Stepping,
    /// Where its memory is looked at.
    walk: Walk,
}

/// A format by its name on the command line; text is that of all others.
fn format(name: &str) -> Format {
    match name {
        "json" => Format::Json,
        "csv" => Format::Csv,
        "md" => Format::Markdown,
        "html" => Format::Html,
        _ => Format::Text,
    }
}

/// The file that is asked for, and its pages: `7`, or `7-9`.
fn question(file: &str, page: &str) -> Result<Question, LabError> {
    let given = |text: &str| (!text.trim().is_empty()).then(|| text.trim().to_owned());
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let pages = |text: String| {
        let (first, last) = text.split_once('-').unwrap_or((&text, &text));
        let pages = number(first)?..=number(last)?;
        (!pages.is_empty()).then_some(pages)
    };
    let wrong =
        || refused("it takes the number of a page, such as 17, or of several, such as 17-31".to_owned());
    let pages = given(page).map(|text| pages(text).ok_or_else(wrong)).transpose()?;
    Ok(Question { file: given(file), pages })
}

impl Session {
    /// Plans what is asked for.
    pub(crate) fn begin(asked: &Asked) -> Result<Self, LabError> {
        let comparison = compare::plan(&asked.request(), &asked.kernels, &[], asked.seeds.unwrap_or(1))?;
        let plan = comparison.runs();
        if cfg!(target_family = "wasm") && plan.iter().any(|run| run.scenario.mem > Some(MEM_MAX)) {
            let message = format!("a page has no room for a machine of more than {MEM_MAX}");
            return Err(LabError::Refused {
                message,
                hint: Some(format!("run it by `{}`", asked.command())),
            });
        }
        let mut told = comparison.assumed.clone();
        for warning in plan.iter().flat_map(|run| warnings(&run.scenario)) {
            if !told.contains(&warning) {
                told.push(warning);
            }
        }
        Ok(Self {
            comparison,
            recordings: vec![None; plan.len()],
            plan,
            finished: 0,
            walks: Vec::new(),
            running: None,
            told,
            command: asked.command(),
        })
    }

    /// What is planned.
    pub(crate) fn planned(&self) -> Value {
        let labels: Vec<&str> = self.plan.iter().map(|run| &run.label[..]).collect();
        json!({ "runs": labels, "told": self.told, "command": self.command })
    }

    /// Goes on to the next look at the run that goes, or begins the next one.
    pub(crate) fn step(&mut self) -> Result<Value, LabError> {
        let index = self.finished;
        let Some(planned) = self.plan.get(index) else { return Ok(json!({ "over": true })) };
        let mut running = match self.running.take() {
            Some(running) => running,
            None => {
                let stop = Arc::new(AtomicBool::new(false));
                let run = Stepping::begin(&planned.scenario, &planned.label, &stop, |_| {})?;
                let walk = Walk::begin(&run)?;
                Running { run, walk }
            }
        };
        running.run.run_until(running.walk.next())?;
        running.walk.take(&running.run)?;
        let ns = running.run.now()?.get();
        if running.run.is_over() {
            self.recordings[index] = Some(running.run.finish()?);
            self.finished += 1;
            if self.walks.len() < WALKS_MAX {
                self.walks.push((planned.label.clone(), running.walk));
            }
        } else {
            self.running = Some(running);
        }
        let over = self.finished == self.plan.len();
        Ok(json!({ "over": over, "run": index, "of": self.plan.len(), "label": planned.label, "ns": ns }))
    }

    /// What came of it: `text`, `json`, `csv` and `md` as the command line has them, `html` as the page of a report.
    pub(crate) fn shown(&self, format: &str) -> Result<String, LabError> {
        let groups = self.comparison.groups(&self.recordings);
        let format = self::format(format);
        if format == Format::Html {
            let page = page::page(&groups, None, Vec::new(), self.told.clone(), self.command.clone());
            return Ok(pages::page(&page)?.render(format, STYLE));
        }
        let of = groups.iter().flat_map(|group| group.recordings.iter().copied());
        let view = view(of, false, Vec::new());
        let document = match self.comparison.grid(&self.recordings) {
            None => views::compare(&groups, &view)?,
            Some(grid) => return Ok(views::grid(&grid, &groups, &view)?.render(format, STYLE)),
        };
        Ok(document.render(format, STYLE))
    }

    /// What `pagetide explain` says of a run, which is made again with every event for it.
    pub(crate) fn explained(
        &self,
        run: usize,
        file: &str,
        page: &str,
        format: &str,
    ) -> Result<String, LabError> {
        let nobody = || refused(format!("there is no run {run}"));
        let planned = self.plan.get(run).ok_or_else(nobody)?;
        let stop = Arc::new(AtomicBool::new(false));
        let With { recording, events, with_events } =
            explain::simulated(planned, question(file, page)?, &stop, |_| {})?;
        let explained =
            Explained { recording: &recording, events: events.as_ref(), with_events: with_events.as_deref() };
        let view = view([&recording], false, Vec::new());
        Ok(views::explain(&explained, &view).render(self::format(format), STYLE))
    }

    /// What was seen of each run.
    pub(crate) fn walk(&self) -> Value {
        self.walks.iter().map(|(label, walk)| walk.shown(label)).collect()
    }

    /// The map of a run.
    pub(crate) fn map(&self, run: usize) -> Vec<u8> {
        self.walks.get(run).map_or_else(Vec::new, |(_, walk)| walk.map())
    }

    /// What became of a frame of a run.
    pub(crate) fn frame(&self, run: usize, place: usize) -> Value {
        self.walks.get(run).map_or(Value::Null, |(_, walk)| walk.frame(place))
    }
}
