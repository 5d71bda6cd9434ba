"""Tuning: the settings that suit a workload or trace, searched by Optuna, with the evidence beside them.

A trial is a combination of settings. Its runs, one for each seed, go side by side on threads or on a Dask cluster;
their values are told to the pruner in the order of the seeds, and the trial's value is their mean. What the sampler
sees therefore does not depend on how many runs go at a time: with a seeded sampler (the default is one) a study gives
the same trials on any machine, unless its storage is shared with other processes.

Left out: the samplers, pruners and storages themselves, which are Optuna's.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from . import _native
from ._errors import Error, InputError, Interrupted, UsageError
from ._native import Comparison, Stop, Table
from ._plan import Axis, PlacedRun
from ._progress import ProgressLike, watcher
from ._scenario import ScenarioLike, Value
from ._sweep import planned

if TYPE_CHECKING:
    import optuna
    from distributed import Client

Range = range | Sequence[Any]
"""What a setting can be: a range; `(low, high)` or `(low, high, "log")` of numbers; a list of values."""

Objective = str | Sequence[str] | Callable[[Mapping[str, float]], float | Sequence[float]]
"""A metric, several for a front, or a function of a run's metrics and counters."""

INSTALL = "pip install pagetide[tune]"
_PLACES = ("kernel", "machine", "mem", "swap")
DIRECTIONS = ("minimize", "maximize")


@dataclass(frozen=True)
class Trial:
    """A combination of settings, and what came out.

    Attributes:
        number: Its number; -1 is the default, which is no trial of the search.
        settings: The value of each setting.
        values: The mean of each objective over the seeds; empty if it failed or was pruned.
        state: "complete", "pruned" or "failed".
        error: Why it failed.
    """

    number: int
    settings: Mapping[str, Value]
    values: tuple[float, ...]
    state: str
    error: str | None = None


class Tuned:
    """What tuning found. `print` tells it in a few lines.

    Attributes:
        default: The scenario as it is, with the same seeds.
        front: The trials that no other one beats in every objective; of one objective the best.
        study: Optuna's study.
    """

    def __init__(
        self,
        default: Trial,
        trials: Sequence[Trial],
        front: Sequence[Trial],
        objectives: Sequence[str],
        directions: Sequence[str],
        study: optuna.Study,
        evidence: Callable[[Trial], Comparison],
    ) -> None:
        self.default = default
        self.front: list[Trial] = list(front)
        self.objectives: list[str] = list(objectives)
        self.directions: list[str] = list(directions)
        self.study = study
        self._trials = list(trials)
        self._evidence = evidence

    @property
    def best(self) -> Trial:
        """The best trial; of several objectives the first of the front."""
        return self.front[0]

    @property
    def is_better(self) -> bool:
        """Whether the best trial beats the default in some objective, and loses in none."""
        pairs = list(zip(self.directions, self.best.values, self.default.values, strict=True))
        gains = [(old - new if way == "minimize" else new - old) for way, new, old in pairs]
        return bool(gains) and max(gains) > 0 and min(gains) >= 0

    @property
    def trials(self) -> Table:
        """All trials, a row each: `number`, `state`, `error`, the settings, the objectives; the default is -1."""
        rows = [self.default, *self._trials]
        settings = dict.fromkeys(name for row in rows for name in row.settings)
        numbers: list[tuple[str, list[float | None]]] = [("number", [float(row.number) for row in rows])]
        texts: list[tuple[str, list[str | None]]] = [("state", [row.state for row in rows])]
        for name in settings:
            cells = [row.settings.get(name) for row in rows]
            if all(cell is None or isinstance(cell, (int, float)) for cell in cells):
                numbers.append((name, [None if cell is None else float(cell) for cell in cells]))
            else:
                texts.append((name, [None if cell is None else str(cell) for cell in cells]))
        for place, objective in enumerate(self.objectives):
            numbers.append((objective, [row.values[place] if row.values else None for row in rows]))
        texts.append(("error", [row.error for row in rows]))
        return _native.table_of(numbers, texts)

    def evidence(self, trial: Trial | None = None) -> Comparison:
        """The default beside a trial, else the best one, with the same seeds: all metrics, with intervals."""
        return self._evidence(trial or self.best)

    def __repr__(self) -> str:
        best = ", ".join(f"{name}={value}" for name, value in self.best.settings.items())
        return f"<pagetide.Tuned: {len(self._trials)} trials, best {best}>"

    def __str__(self) -> str:
        aims = ", ".join(f"{way} {name}" for way, name in zip(self.directions, self.objectives, strict=True))
        lines = [f"{len(self._trials)} trials; {aims}"]
        for name, trial in [("default", self.default), *((f"trial {trial.number}", trial) for trial in self.front)]:
            values = ", ".join(f"{value:.6g}" for value in trial.values) or trial.error or trial.state
            settings = ", ".join(f"{key}={value}" for key, value in trial.settings.items())
            lines.append(f"  {name}: {values}{'  ' + settings if settings else ''}")
        if not self.is_better:
            lines.append("no trial beats the default in every objective")
        return "\n".join(lines)


def tune(
    subject: ScenarioLike,
    space: Mapping[str, Range],
    objective: Objective,
    *,
    trials: int = 50,
    seeds: int = 1,
    directions: str | Sequence[str] | None = None,
    default: Mapping[str, Value] | None = None,
    batch: int = 1,
    jobs: int = 0,
    client: Client | None = None,
    sampler: optuna.samplers.BaseSampler | None = None,
    pruner: optuna.pruners.BasePruner | None = None,
    storage: str | optuna.storages.BaseStorage | None = None,
    name: str | None = None,
    progress: ProgressLike = None,
    **fixed: Any,
) -> Tuned:
    """Searches for the settings that suit a workload or a trace.

        pagetide.tune("trace.csv", {"vm.dirty_ratio": (5, 80), "mem": ["256M", "512M"]}, "page_miss_ratio", trials=40)

    Args:
        subject: A workload or scenario as `run` takes it, or the path of a trace.
        space: What may be set, and to what: sysctls by dotted name, "kernel", "machine", "mem", "swap",
            "param:NAME" of the workload, and of a trace "policy" and "capacity".
        objective: A metric, several for a front, or a function of a dictionary with the metrics of a run, its
            counters of /proc/vmstat, `stall_seconds`, and settings that are numbers; it returns a number, or several.
        trials: So many combinations; with a storage, those of earlier calls count.
        seeds: Runs of each trial, with seeds from the scenario's on.
        directions: "minimize" or "maximize" for each objective; else what the workload says of its metrics.
        default: Settings that the search is compared with, by their names in `space`; else everybody's own.
        batch: Trials that the sampler makes up before it is told of any of them: more keep more CPUs busy.
        jobs: Runs at a time; 0 is one for each CPU. Results do not depend on it.
        client: A `dask.distributed.Client` for the runs, instead of threads.
        sampler, pruner, storage: Optuna's; else a TPE sampler of seed 1, no pruning, memory. A pruner is told of
            each seed's run, and needs several.
        name: Of the study in the storage.
        fixed: What is the same in all trials, as `sweep` takes it: kernel="linux-6.12", warmup="10%", ...

    Raises:
        InputError: A name or value that cannot be; no trial has a value.
        UsageError: Optuna is not installed; arguments that do not go together.
        Interrupted: Ctrl-C; its `result` is what was found by then, if there is something.
    """
    optuna = _imported()
    if trials < 1 or seeds < 1 or batch < 1 or jobs < 0:
        raise UsageError("`trials`, `seeds` and `batch` are 1 or more, `jobs` is 0 or more")
    space = dict(space)
    problem = _Problem(subject, space, objective, seeds, fixed)
    runner = _Runner(jobs, client)
    watch = watcher(progress)
    search: _Search | None = None
    try:
        tried = _default(problem, runner, dict(default or {}))
        ways = problem.ways(directions)
        if pruner is not None and (len(ways) > 1 or seeds == 1):
            raise UsageError("a pruner needs one objective, and several seeds")
        optuna.logging.get_logger("optuna").setLevel(optuna.logging.WARNING)
        study = optuna.create_study(
            sampler=sampler or optuna.samplers.TPESampler(seed=1),
            pruner=pruner or optuna.pruners.NopPruner(),
            storage=storage,
            study_name=name,
            directions=ways,
            load_if_exists=name is not None,
        )
        search = _Search(optuna, study, problem, runner, tried, ways)
        search.begin()
        while (left := trials - search.done) > 0:
            search.next(min(batch, left))
            if watch is not None:
                watch(search.done, trials, search.told, 0.0, (), False)
        return search.result()
    except KeyboardInterrupt as interrupt:
        runner.stop()
        interrupted = Interrupted("interrupted")
        interrupted.result = search.result_or_none() if search is not None else None
        raise interrupted from interrupt
    finally:
        runner.over()
        if watch is not None:
            watch(trials, trials, "", 0.0, (), True)


def _imported() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise UsageError("tuning needs Optuna", hint=INSTALL) from error
    return optuna


def _default(problem: _Problem, runner: _Runner, settings: Mapping[str, Value]) -> Trial:
    hint = "what has no value of its own needs one in `default`, or beside it as an argument"
    try:
        tried = problem.tried(-1, settings, [runner.start(run) for run in problem.runs(settings)])
    except InputError as error:
        raise InputError(f"the default itself cannot run: {error.message}", error.causes, error.hint or hint) from error
    if tried.state != "complete":
        raise InputError(f"the default itself has no value: {tried.error}", hint=hint)
    return tried


class _Problem:
    """What is tuned: settings to runs, and runs to values."""

    def __init__(
        self,
        subject: ScenarioLike,
        space: Mapping[str, Range],
        objective: Objective,
        seeds: int,
        fixed: Mapping[str, Any],
    ) -> None:
        self.subject, self.space, self.objective, self.seeds, self.fixed = subject, space, objective, seeds, fixed
        if not space:
            raise UsageError("there is nothing to tune: `space` is empty")
        for name, values in space.items():
            _checked(name, values)
        self.names = [objective] if isinstance(objective, str) else None if callable(objective) else list(objective)
        self.axes: list[Axis] = []
        self.workload = ""
        self.directions: dict[str, str] = {}
        self.objectives: list[str] = []

    def plan(self, settings: Mapping[str, Value]) -> dict[str, Any]:
        """The lab's plan of a trial: a run for each seed."""
        given: dict[str, Any] = {**self.fixed, "seeds": self.seeds}
        sysctls, params = dict(given.get("sysctls") or {}), dict(given.get("params") or {})
        for name, value in settings.items():
            if name.startswith("param:"):
                params[name.removeprefix("param:")] = value
            elif name in (*_PLACES, "policy", "capacity"):
                given[name] = [value]
            else:
                sysctls[name] = value
        text = planned(self.subject, {**given, "sysctls": sysctls, "params": params}, points=True)
        about: dict[str, Any] = json.loads(text)
        return about

    def runs(self, settings: Mapping[str, Value]) -> list[PlacedRun]:
        about = self.plan(settings)
        self.workload = about["workload"]
        runs = about["runs"]
        return [(place, run["label"] or "run", [], run["scenario"]) for place, run in enumerate(runs)]

    def values_of(self, chunk: bytes, settings: Mapping[str, Value]) -> tuple[float, ...]:
        """What came out of one run with these settings."""
        swept = _native.Sweep(self.workload, [], [], 1, [("a run", chunk)])
        for _, _, _, why in swept.failures:
            raise InputError(why)
        self.directions = dict(swept.directions)
        known = {
            name: value
            for name, value in zip(swept.facts["name"], swept.facts["value"], strict=True)
            if value is not None
        }
        if callable(self.objective):
            numbers = {name: float(value) for name, value in settings.items() if isinstance(value, (int, float))}
            value = self.objective(numbers | known)
            values = tuple(float(part) for part in value) if isinstance(value, Iterable) else (float(value),)
            self.objectives = (
                [f"objective {place}" for place in range(len(values))] if len(values) > 1 else ["objective"]
            )
        else:
            assert self.names is not None
            for name in self.names:
                if name not in known:
                    raise InputError(_no_metric(name, swept, known))
            values = tuple(known[name] for name in self.names)
            self.objectives = self.names
        if any(math.isnan(value) for value in values):
            raise InputError("its objective is no number")
        return values

    def tried(
        self,
        number: int,
        settings: Mapping[str, Value],
        runs: Sequence[Future[bytes]],
        goes_on: Callable[[int, float], bool] = lambda _number, _mean: True,
    ) -> Trial:
        """The trial that these runs make, seed after seed; `goes_on` is told the mean so far."""
        seen: list[tuple[float, ...]] = []
        for place, run in enumerate(runs):
            try:
                seen.append(self.values_of(run.result(), settings))
            except InputError as error:
                return Trial(number, settings, (), "failed", error.message)
            if not goes_on(place, statistics.fmean(values[0] for values in seen)):
                for other in runs[place + 1 :]:
                    other.cancel()
                return Trial(number, settings, (), "pruned")
        return Trial(number, settings, tuple(map(statistics.fmean, zip(*seen, strict=True))), "complete")

    def ways(self, directions: str | Sequence[str] | None) -> list[str]:
        """In which direction each objective is better."""
        if directions is not None:
            given = [directions] if isinstance(directions, str) else list(directions)
            if len(given) != len(self.objectives) or any(way not in DIRECTIONS for way in given):
                raise UsageError(f"`directions` is `minimize` or `maximize` for each of {', '.join(self.objectives)}")
            return given
        ways = [self.directions.get(name, "neither") for name in self.objectives]
        unknown = [name for name, way in zip(self.objectives, ways, strict=True) if way not in DIRECTIONS]
        if unknown:
            raise UsageError(
                f"nobody says whether more of `{unknown[0]}` is better or less",
                hint='give `directions`, such as "minimize"',
            )
        return ways


def _checked(name: str, values: Range) -> None:
    if isinstance(values, str):
        raise UsageError(f"`{name}` has one value: give a list, a range, or (low, high)")
    if isinstance(values, tuple):
        bounds: list[Any] = list(values)
        numbers = len(bounds) >= 2 and all(isinstance(value, (int, float)) for value in bounds[:2])
        if not (numbers and len(bounds) <= 3 and bounds[0] <= bounds[1] and bounds[2:] in ([], ["log"])):
            raise UsageError(f'`{name}`: a tuple is (low, high) or (low, high, "log"); a list has values')
        if bounds[2:] == ["log"] and bounds[0] <= 0:
            raise UsageError(f"`{name}`: a logarithmic range begins above 0")
    elif len(values) == 0:
        raise UsageError(f"`{name}` has no values")
    elif isinstance(values, range) and values.step < 0:
        raise UsageError(f"`{name}`: a range goes up")


def _no_metric(name: str, swept: _native.Sweep, known: Mapping[str, float]) -> str:
    import difflib

    near = difflib.get_close_matches(name, [*known], 3)
    if near:
        return f"there is no metric `{name}`: did you mean {' or '.join(f'`{other}`' for other in near)}?"
    return f"there is no metric `{name}`: the first ones are {', '.join(name for name, _ in swept.directions)}"


class _Runner:
    """Runs on threads of this process, or on a cluster."""

    def __init__(self, jobs: int, client: Client | None) -> None:
        self.client = client
        self.stopped = Stop()
        self.pool = ThreadPoolExecutor(jobs or os.cpu_count() or 1, "pagetide") if client is None else None

    def start(self, run: PlacedRun) -> Any:
        """Something whose `result` is the bytes of a chunk with this run."""
        if self.pool is not None:
            return self.pool.submit(_native.run_chunk, [], [run], self.stopped)
        from ._dask import Remote, work

        assert self.client is not None
        client: Any = self.client
        return Remote(client.submit(work, _native.__version__, [], [run], pure=False), run)

    def stop(self) -> None:
        self.stopped.set()

    def over(self) -> None:
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)


class _Search:
    """A study while it goes on."""

    def __init__(
        self, optuna: Any, study: optuna.Study, problem: _Problem, runner: _Runner, default: Trial, ways: list[str]
    ) -> None:
        self.optuna, self.study, self.problem, self.runner = optuna, study, problem, runner
        self.default, self.ways = default, ways
        self.told = ""

    @property
    def done(self) -> int:
        return sum(trial.state.is_finished() for trial in self.study.get_trials(deepcopy=False)) - self.abandoned

    abandoned = 0

    def begin(self) -> None:
        """Refuses a study of something else; what a killed process left has failed."""
        asked = json.dumps({name: _listed(values) for name, values in self.problem.space.items()}, sort_keys=True)
        of = {"space": asked, "objectives": self.problem.objectives, "workload": self.problem.workload}
        had = self.study.user_attrs.get("pagetide")
        if had is not None and had != of:
            differ = ", ".join(key for key in of if had.get(key) != of[key])
            raise InputError(
                f"the study `{self.study.study_name}` is of something else: {differ}", hint="give another `name`"
            )
        self.study.set_user_attr("pagetide", of)
        for trial in self.study.get_trials(deepcopy=False):
            if trial.state == self.optuna.trial.TrialState.RUNNING:
                self.study.tell(trial.number, state=self.optuna.trial.TrialState.FAIL)
        unrun = [trial for trial in self.study.get_trials(deepcopy=False) if "pagetide" not in trial.user_attrs]
        self.abandoned = sum(trial.state.is_finished() for trial in unrun)

    def next(self, count: int) -> None:
        """Makes up so many trials, runs them side by side, and tells them in their order."""
        asked = [self.study.ask() for _ in range(count)]
        settings = [self._settings(trial) for trial in asked]
        runs: list[list[Any]] = []
        for chosen in settings:
            try:
                runs.append([self.runner.start(run) for run in self.problem.runs(chosen)])
            except InputError as error:
                runs.append([_Failed(error)])
        for trial, chosen, own in zip(asked, settings, runs, strict=True):
            self._tell(trial, self.problem.tried(trial.number, chosen, own, self._goes_on(trial)))

    def _goes_on(self, trial: optuna.Trial) -> Callable[[int, float], bool]:
        def goes_on(place: int, mean: float) -> bool:
            if len(self.ways) > 1:
                return True
            trial.report(mean, place)
            return not trial.should_prune()

        return goes_on

    def _tell(self, trial: optuna.Trial, tried: Trial) -> None:
        states = self.optuna.trial.TrialState
        trial.set_user_attr("pagetide", {"state": tried.state, "error": tried.error})
        if tried.values and len(tried.values) != len(self.ways):
            raise UsageError("the objective returns now this many values and now that many")
        if tried.state == "complete":
            self.study.tell(trial, list(tried.values))
        else:
            self.study.tell(trial, state=states.PRUNED if tried.state == "pruned" else states.FAIL)
        values = ", ".join(f"{value:.6g}" for value in tried.values) or tried.state
        self.told = f"trial {tried.number}: {values}"

    def _settings(self, trial: optuna.Trial) -> dict[str, Value]:
        return {name: _suggested(trial, name, values) for name, values in self.problem.space.items()}

    def result(self) -> Tuned:
        """What was found."""
        trials = [self._trial(frozen) for frozen in self.study.get_trials(deepcopy=False) if frozen.state.is_finished()]
        trials = [trial for trial in trials if trial is not None]
        by_number = {trial.number: trial for trial in trials}
        front = [by_number[best.number] for best in self.study.best_trials if best.number in by_number]
        if not front:
            why = next((trial.error for trial in trials if trial.error), "all were pruned")
            raise InputError(f"none of {len(trials)} trials has a value: {why}", hint="narrow the `space`")
        front.sort(
            key=lambda trial: (trial.values[0] if self.ways[0] == "minimize" else -trial.values[0], trial.number)
        )
        if len(self.ways) == 1:
            front = front[:1]
        objectives = self.problem.objectives
        return Tuned(self.default, trials, front, objectives, self.ways, self.study, self._evidence)

    def result_or_none(self) -> Tuned | None:
        try:
            return self.result()
        except Error:
            return None

    def _trial(self, frozen: optuna.trial.FrozenTrial) -> Any:
        about = frozen.user_attrs.get("pagetide")
        if about is None:
            return None
        settings = {name: _chosen(self.problem.space[name], value) for name, value in frozen.params.items()}
        is_complete = frozen.state == self.optuna.trial.TrialState.COMPLETE
        state = "failed" if about["state"] == "complete" and not is_complete else about["state"]
        return Trial(frozen.number, settings, tuple(frozen.values) if is_complete else (), state, about["error"])

    def _evidence(self, trial: Trial) -> Comparison:
        with tempfile.TemporaryDirectory() as folder:
            columns = [("default", self.default.settings), (f"trial {trial.number}", trial.settings)]
            folders: list[str] = []
            for name, settings in columns:
                folders.append(os.path.join(folder, name.replace(" ", "-")))
                os.mkdir(folders[-1])
                for place, (_, _, _, scenario) in enumerate(self.problem.runs(settings)):
                    recording = _native.record(name, scenario)
                    recording.write(os.path.join(folders[-1], f"{place + 1:04}"))
            return _native.compare_folders(folders)


class _Failed:
    """A run that cannot be planned."""

    def __init__(self, error: InputError) -> None:
        self.error = error

    def result(self) -> bytes:
        raise self.error

    def cancel(self) -> None:
        """Nothing goes on."""


def _listed(values: Range) -> list[Any]:
    return (
        ["range", values.start, values.stop, values.step]
        if isinstance(values, range)
        else [type(values).__name__, *values]
    )


def _suggested(trial: optuna.Trial, name: str, values: Range) -> Value:
    if isinstance(values, range):
        return trial.suggest_int(name, values[0], values[-1], step=abs(values.step))
    if isinstance(values, tuple):
        low, high, log = values[0], values[1], values[2:] == ("log",)
        if isinstance(low, int) and isinstance(high, int):
            return trial.suggest_int(name, low, high, log=log)
        return trial.suggest_float(name, low, high, log=log)
    # By its place: storages know no more than texts and numbers, and a list may have both.
    place: int = trial.suggest_categorical(name, list(range(len(values))))
    chosen: Value = values[place]
    return chosen


def _chosen(values: Range, suggested: Any) -> Value:
    chosen: Value = suggested if isinstance(values, (range, tuple)) else values[suggested]
    return chosen
