//! The run of a workload file that has `main`: it starts tasks, lets them take turns, and ends phases.
//!
//! Whoever takes turns goes through the same steps and does its own, so that nothing has to be told but when. Next:
//! [`super::act`], a task at work; [`super::play`], where all tasks start at once.

use std::pin::Pin;
use std::sync::Arc;

use crate::parts::turns::{Crew, Turn};
use crate::system::System;
use crate::system::outcome::{Outcome, WorkloadError};
use crate::written::act::{Actor, Who};
use crate::written::definition::{Again, Step, each_step};
use crate::written::measure::Readings;
use crate::written::plan::Plan;
use crate::written::start::{join_all, spawn};
use crate::written::tally::Tally;

/// What the first task of a workload calls itself where it draws.
const MAIN: &str = "main";

struct Director<S: System> {
    sys: S,
    plan: Arc<Plan>,
    /// Does what any task could.
    own: Actor<S>,
    /// Those that take turns, if any do.
    crew: Option<Crew<S, Tally>>,
    readings: Readings,
    tally: Tally,
}

/// Runs it to its end.
pub(super) async fn direct<S: System>(sys: S, plan: Plan) -> Result<Outcome, WorkloadError> {
    let plan = Arc::new(plan);
    let who = Who { kind: usize::MAX, number: 0, of: 1, name: MAIN.to_owned() };
    let own = Actor::new(sys.clone(), Arc::clone(&plan), who);
    let crew = hire(&sys, &plan).await?;
    let mut readings = Readings::new();
    readings.take(&sys, &plan).await?;
    let mut director =
        Director { sys, plan: Arc::clone(&plan), own, crew, readings, tally: Tally::default() };
    director.steps(&plan.definition.main).await?;
    let Director { sys, own, crew, readings, mut tally, .. } = director;
    if let Some(crew) = crew {
        crew.leave(&sys).await?.into_iter().for_each(|(_, theirs)| tally.add(theirs));
    }
    tally.add(own.tally());
    Ok(readings.outcome(&plan, &tally))
}

/// Starts those that take turns.
async fn hire<S: System>(sys: &S, plan: &Arc<Plan>) -> Result<Option<Crew<S, Tally>>, WorkloadError> {
    let mut with_turns = Vec::new();
    each_step(&plan.definition.main, &mut |step| {
        if let Step::Turn { task, .. } = step {
            with_turns.push(*task);
        }
    });
    if with_turns.is_empty() {
        return Ok(None);
    }
    let member = |kind: usize| {
        let name = plan.definition.tasks[kind].name.clone();
        let who = Who { kind, number: 0, of: 1, name: name.clone() };
        (name, plan.group_of(kind).map(str::to_owned), (Arc::clone(plan), who))
    };
    let is_there = |kind: &usize| with_turns.contains(kind) && plan.is_there(*kind);
    let kinds = (0..plan.definition.tasks.len()).filter(is_there);
    let work = async |sys: S, (plan, who): (Arc<Plan>, Who), turn: Turn| {
        Actor::new(sys, plan, who).take_turns(turn).await
    };
    Ok(Some(Crew::hire(sys, kinds.map(member).collect(), work).await?))
}

impl<S: System> Director<S> {
    fn steps<'a>(
        &'a mut self,
        steps: &'a [Step],
    ) -> Pin<Box<dyn Future<Output = Result<(), WorkloadError>> + 'a>> {
        Box::pin(async move {
            for step in steps {
                match step {
                    Step::Run(kind) => {
                        let mut running = Vec::new();
                        spawn(&self.sys, &self.plan, *kind, &mut running).await?;
                        join_all(&self.sys, &mut running, &mut self.tally).await?;
                    }
                    Step::Turn { task, .. } if !self.plan.is_there(*task) => {}
                    Step::Turn { task, .. } => {
                        let name = self.plan.definition.tasks[*task].name.clone();
                        self.crew.as_mut().expect("they were hired").work(&self.sys, &name).await?;
                    }
                    Step::End(phase) => {
                        self.sys.mark(phase);
                        self.readings.take(&self.sys, &self.plan).await?;
                    }
                    Step::Again { again, steps } => {
                        let begin = self.sys.now();
                        for _ in 0..again.times(&self.plan.bound) {
                            self.steps(steps).await?;
                        }
                        if let Again::Timed(label) = again {
                            self.tally.pass(label, self.sys.now().saturating_sub(begin));
                        }
                    }
                    other => self.own.step(other).await?,
                }
            }
            Ok(())
        })
    }
}
