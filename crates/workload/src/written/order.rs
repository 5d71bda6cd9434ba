//! Whether every task of a workload file comes to its end: nobody waits for a phase that nobody ends, or that ends only
//! after the wait.
//!
//! It goes through all tasks as far as each comes without waiting, ends the next phase once all who end it have come
//! there, and starts again. Loops that last until a phase has ended count as a wait for it. Next: [`super::play`],
//! which keeps the same order.

use std::collections::BTreeMap;

use crate::language::table::Mistake;
use crate::written::definition::{Again, Definition, Step, TaskGroup, each_step};
use crate::written::scope::Scope;

/// What matters to the order of phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Point<'a> {
    Wait(&'a str),
    End(&'a str),
}

/// The waits and ends of a task, in order.
pub(super) fn points(steps: &[Step]) -> Vec<Point<'_>> {
    let mut points = Vec::new();
    for step in steps {
        match step {
            Step::Wait(phase) => points.push(Point::Wait(phase)),
            Step::End(phase) => points.push(Point::End(phase)),
            Step::Again { again, steps } => {
                points.extend(self::points(steps));
                if let Again::Until(phase) = again {
                    points.push(Point::Wait(phase));
                }
            }
            _ => {}
        }
    }
    points
}

/// How many tasks of each kind end each phase.
pub(super) fn enders<'a>(tasks: &'a [TaskGroup], phase: &'a str) -> impl Iterator<Item = &'a TaskGroup> {
    tasks.iter().filter(move |task| points(&task.steps).contains(&Point::End(phase)))
}

/// Checks it.
pub(super) fn check(scope: &Scope<'_>, read: &Definition) -> Result<(), Mistake> {
    let fail = |message: String, hint: String| Mistake { position: None, message, hint: Some(hint) };
    let tasks = &read.tasks;
    if !read.main.is_empty() {
        return check_main(scope, read).map_err(|(message, hint)| fail(message, hint));
    }
    for task in tasks {
        let points = points(&task.steps);
        for (number, point) in points.iter().enumerate() {
            if matches!(point, Point::End(_)) && points[..number].contains(point) {
                let Point::End(phase) = point else { continue };
                let message = format!("task `{}` ends phase `{phase}` twice", task.name);
                return Err(fail(message, "a task says once that its part of a phase is over".to_owned()));
            }
        }
    }
    let last = scope.phases.len() - 1;
    for (number, phase) in scope.phases.iter().enumerate() {
        if number < last && enders(tasks, phase).next().is_none() {
            let message = format!("no task ends phase `{phase}`");
            let hint = format!("add a step `{{ end = \"{phase}\" }}` to the task that it is about");
            return Err(fail(message, hint));
        }
    }
    go_through(scope, tasks).map_err(|(message, hint)| fail(message, hint))
}

/// Where one task lets the others go, it ends all phases, and each task is let go in one way.
fn check_main(scope: &Scope<'_>, read: &Definition) -> Result<(), (String, String)> {
    let ends: Vec<Point<'_>> = points(&read.main);
    if ends != scope.phases.iter().map(|phase| Point::End(phase)).collect::<Vec<_>>() {
        let message = "`main` does not end the phases in their order, each once".to_owned();
        return Err((message, format!("`main` needs {}, in this order", scope.phases.join(", "))));
    }
    for (number, task) in read.tasks.iter().enumerate() {
        if !points(&task.steps).is_empty() {
            let message = format!("task `{}` waits for a phase or ends one, which `main` does", task.name);
            return Err((message, "leave the step out, or `[main]`".to_owned()));
        }
        let (mut runs, mut turns) = (false, false);
        each_step(&read.main, &mut |step| match step {
            Step::Run(of) => runs |= *of == number,
            Step::Turn { task, .. } => turns |= *task == number,
            _ => {}
        });
        if turns && (task.count.is_some() || task.cpu.is_some() || task.begins_within.is_some()) {
            let message =
                format!("task `{}` takes turns: it is one, begins at once and stays on CPU 0", task.name);
            return Err((message, "leave `count`, `cpu` and `begins_within` out".to_owned()));
        }
        if runs != task.steps.is_empty() && turns != runs {
            continue;
        }
        let message =
            format!("task `{}` has steps of its own and runs, or it has turns: one of both", task.name);
        return Err((message, "`run` starts a task with steps, `turn` has steps itself".to_owned()));
    }
    Ok(())
}

/// Goes as far as all tasks come.
fn go_through(scope: &Scope<'_>, tasks: &[TaskGroup]) -> Result<(), (String, String)> {
    let all: Vec<Vec<Point<'_>>> = tasks.iter().map(|task| points(&task.steps)).collect();
    let mut at = vec![0; tasks.len()];
    let mut ended: Vec<&str> = Vec::new();
    let mut said: BTreeMap<&str, usize> = BTreeMap::new();
    loop {
        let mut moved = false;
        for (task, points) in all.iter().enumerate() {
            while let Some(point) = points.get(at[task]) {
                match *point {
                    Point::Wait(phase) if !ended.contains(&phase) => break,
                    Point::Wait(_) => {}
                    Point::End(phase) => *said.entry(phase).or_default() += 1,
                }
                at[task] += 1;
                moved = true;
            }
        }
        let all_ended = at.iter().zip(&all).all(|(at, points)| *at == points.len());
        if let Some(phase) = scope.phases.get(ended.len()) {
            let wanted = enders(tasks, phase).count();
            let is_over = if wanted == 0 { all_ended } else { said.get(&**phase) == Some(&wanted) };
            if is_over {
                ended.push(phase);
                continue;
            }
        }
        if all_ended {
            return Ok(());
        }
        if !moved {
            return Err(stuck(scope, tasks, &all, &at, ended.len()));
        }
    }
}

/// Who waits for what, where nobody goes on.
fn stuck(
    scope: &Scope<'_>,
    tasks: &[TaskGroup],
    all: &[Vec<Point<'_>>],
    at: &[usize],
    ended: usize,
) -> (String, String) {
    let waits = (0..tasks.len()).filter_map(|task| match all[task].get(at[task]) {
        Some(Point::Wait(phase)) => Some(format!("task `{}` for phase `{phase}`", tasks[task].name)),
        _ => None,
    });
    let waits: Vec<String> = waits.collect();
    let next = scope.phases.get(ended).map_or("", String::as_str);
    let message = format!("these wait for ever: {}", waits.join(", "));
    let who: Vec<String> = enders(tasks, next).map(|task| format!("`{}`", task.name)).collect();
    let hint = match &who[..] {
        [] => format!("phase `{next}` ends with the last task; let another step end it"),
        who => format!(
            "phases end in the order of `phases`; the next is `{next}`, which {} must come to end",
            who.join(", ")
        ),
    };
    (message, hint)
}
