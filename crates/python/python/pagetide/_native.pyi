"""Types of the compiled part; its classes are documented here, too, for readers and editors."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, final

from ._progress import Watcher

__all__ = [
    "Ablation",
    "Comparison",
    "Recording",
    "Replay",
    "Simulation",
    "Size",
    "Stop",
    "Sweep",
    "Table",
    "__version__",
    "ablate_features",
    "check_workload",
    "compare_folders",
    "compare_kernels",
    "join_chunks",
    "list_names",
    "list_zones",
    "load",
    "parse_moment",
    "plan_sweep",
    "probe_machine",
    "read_machine",
    "read_plan",
    "record",
    "replay_trace",
    "resolve",
    "run",
    "run_chunk",
    "size_trace",
    "table_of",
    "translate_fio",
]

__version__: str

@final
class Table:
    """A table of named columns.

    pandas, polars, DuckDB and pyarrow read it as it is, by Arrow's PyCapsule interface, without a copy:
    `polars.DataFrame(table)`, `pyarrow.table(table)`.
    """

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in their order."""
    def __len__(self) -> int: ...
    def __getitem__(self, name: str, /) -> list[Any]:
        """The cells of a column as a list."""
    def to_dict(self) -> dict[str, list[Any]]:
        """The table as a dictionary of columns, each a list."""
    def to_rows(self) -> list[dict[str, Any]]:
        """The table as a list of rows, each a dictionary."""
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Recording:
    """What one run leaves. `print` shows the report of the command line, a notebook its page with figures."""

    @property
    def label(self) -> str:
        """What the run is called in tables; often the kernel."""
    @property
    def workload(self) -> str:
        """The workload."""
    @property
    def backend(self) -> str:
        """Where it ran: "sim", "host", "vm:6.12"."""
    @property
    def kernel(self) -> str:
        """The kernel with its features, or the release of a real one."""
    @property
    def seed(self) -> int:
        """The seed of all randomness."""
    @property
    def machine(self) -> str:
        """The machine in a few words."""
    @property
    def command(self) -> str:
        """The command that makes the run again."""
    @property
    def scenario(self) -> str:
        """The resolved scenario, TOML, which `run` takes."""
    @property
    def version(self) -> str:
        """The pagetide that made it."""
    @property
    def path(self) -> Path | None:
        """The folder that it was read from or written to."""
    @property
    def metrics(self) -> dict[str, float]:
        """The workload's results, one number each; names end in their unit."""
    @property
    def vmstat(self) -> dict[str, int]:
        """Counters of /proc/vmstat: events over the run, gauges at its end; in pages unless the name says otherwise."""
    @property
    def memcg(self) -> dict[str, dict[str, int]]:
        """For each cgroup path memory.stat and memory.events, in bytes and counts as the kernel has them."""
    @property
    def notes(self) -> list[str]:
        """What could not be measured, or is assumed: a sentence each."""
    @property
    def seconds(self) -> float | None:
        """How long the run took on its own clock, in seconds: simulated, or of a real kernel."""
    @property
    def wall_seconds(self) -> float | None:
        """How long it took on this machine's clock, in seconds, if that is known."""
    @property
    def incomplete(self) -> bool:
        """Whether the run did not end: it holds what had reached the disk by then."""
    @property
    def content_hash(self) -> str:
        """The hash of its bytes: two simulated runs of one scenario have the same."""
    @property
    def series(self) -> Table:
        """Counters over time: `time_ns`, and a column for each that changes. Events are cumulative."""
    @property
    def constant(self) -> dict[str, int]:
        """Counters that never changed."""
    @property
    def samples(self) -> Table:
        """Results that have many samples: `name` and `value`, in the order in which they were taken."""
    @property
    def waits(self) -> Table:
        """Who waited for what, how long in nanoseconds, and what ended it."""
    @property
    def table(self) -> Table:
        """Every number of the run, a row for each, as the command line's `--format csv` has them."""
    def to_dict(self) -> dict[str, Any]:
        """The run as the command line's `--format json` has it."""
    def report(self, format: str = "text", *, all: bool = False, width: int = 80) -> str:
        """The report of the command line: "text", "json", "csv" or "md"; `all` shows every counter."""
    def html(self) -> str:
        """The page of `pagetide report`: one HTML file with its figures."""
    @property
    def figures(self) -> list[str]:
        """Names of the figures of the page."""
    def figure(self, name: str | None = None) -> str:
        """A figure of the page as SVG: the one of this name, or the first."""
    def write(self, path: str | PathLike[str]) -> Recording:
        """Writes the recording as a new folder, which the command line reads, too."""
    def _repr_html_(self) -> str: ...

@final
class Comparison:
    """Runs side by side. `print` shows the report of the command line, a notebook its page with figures."""

    @property
    def labels(self) -> list[str]:
        """What the columns are called, the baseline first."""
    @property
    def recordings(self) -> list[Recording]:
        """The recordings, column after column, seed after seed."""
    @property
    def warnings(self) -> list[str]:
        """What was assumed, or differs beyond what is compared: a sentence each."""
    @property
    def table(self) -> Table:
        """Every number of the runs and of their comparison, a row for each, as the command line's `--format csv`."""
    @property
    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each metric of each column but the baseline.

        It has `metric`, `unit`, `label`, `values` (mean, standard deviation and number by label), `change`,
        `change_percent`, `interval` (of 95 %, where seeds differ), `p` and `verdict`.
        """
    def to_dict(self) -> dict[str, Any]:
        """The comparison as the command line's `--format json` has it."""
    def report(self, format: str = "text", *, all: bool = False, width: int = 80) -> str:
        """The report of the command line: "text", "json", "csv" or "md"; `all` shows every metric and counter."""
    def html(self) -> str:
        """The page of `pagetide report`: one HTML file with its figures."""
    @property
    def figures(self) -> list[str]:
        """Names of the figures of the page."""
    def figure(self, name: str | None = None) -> str:
        """A figure of the page as SVG: the one of this name, or the first."""
    def _repr_html_(self) -> str: ...

@final
class Ablation:
    """A workload on every kernel that some features make, switched or not."""

    @property
    def features(self) -> list[str]:
        """The changes to the first kernel, such as "+root-aging"."""
    @property
    def recordings(self) -> list[Recording]:
        """The recordings that there are: seed after seed, in each the kernels in their order."""
    @property
    def effects(self) -> list[dict[str, Any]]:
        """One dictionary for each metric and each feature, or pair of features.

        It has `metric`, `unit`, `of` (the changes), `effect`, `percent_of_base`, `interval` (of 95 %) and `verdict`.
        """
    @property
    def table(self) -> Table:
        """Every number of the runs and all effects, a row for each, as the command line's `--format csv` has them."""
    def to_dict(self) -> dict[str, Any]:
        """The ablation as the command line's `--format json` has it."""
    def report(self, format: str = "text", *, all: bool = False, width: int = 80) -> str:
        """The report of the command line: "text", "json", "csv" or "md"; `all` shows every metric."""

@final
class Replay:
    """A trace on several caches: a recording for each."""

    @property
    def recordings(self) -> list[Recording]:
        """The recordings, one for each cache."""
    @property
    def table(self) -> Table:
        """Every number, a row for each, as the command line's `--format csv` has them."""
    def to_dict(self) -> dict[str, Any]:
        """The replay as the command line's `--format json` has it."""
    def report(self, format: str = "text", *, all: bool = False, width: int = 80) -> str:
        """The report of the command line: "text", "json", "csv" or "md"; `all` shows every metric."""
    def __len__(self) -> int:
        """Caches that the trace was replayed on."""

@final
class Size:
    """How much memory a trace needs: the curve, its knee, and what to set. A notebook shows the curve."""

    @property
    def table(self) -> Table:
        """The curve: a row for each limit in bytes, "max" for none; other columns end in their unit."""
    @property
    def advice(self) -> dict[str, Any] | None:
        """What to set, in bytes and as lines for systemd, Docker and Kubernetes; None where no limit is enough."""
    def to_dict(self) -> dict[str, Any]:
        """Everything, as the command line's `--format json` has it: points, knee, advice, notes."""
    def report(self, format: str = "text", *, width: int = 80) -> str:
        """The report of the command line: "text", "json", "csv" or "md"."""
    def figure(self) -> str | None:
        """The curve as SVG; None where fewer than two limits were run."""
    def _repr_svg_(self) -> str | None: ...

@final
class Simulation:
    """What is behind pagetide.Simulation, with times in nanoseconds."""

    def __new__(cls, asked: Mapping[str, Any]) -> Simulation: ...
    @property
    def scenario(self) -> str: ...
    def run_until(self, time: str) -> None: ...
    def step(self, events: int) -> None: ...
    def now_ns(self) -> int: ...
    def events(self) -> int: ...
    def is_over(self) -> bool: ...
    def vmstat(self) -> dict[str, int]: ...
    def memcg(self) -> dict[str, dict[str, int]]: ...
    def zones(self) -> list[dict[str, Any]]: ...
    def lru(self, cgroup: str) -> list[dict[str, Any]]: ...
    def tasks(self) -> list[dict[str, Any]]: ...
    def page(self, file: str, index: int) -> dict[str, Any]: ...
    def finish(self) -> Recording: ...

def resolve(asked: Mapping[str, Any]) -> tuple[str, str | None]: ...
def run(
    asked: Mapping[str, Any], out: str | None, warn: Callable[[str], None], watcher: Watcher | None
) -> Recording: ...
def compare_kernels(
    asked: Mapping[str, Any],
    kernels: Sequence[str],
    backends: Sequence[str],
    seeds: int,
    jobs: int,
    out: str | None,
    resume: bool,
    warn: Callable[[str], None],
    watcher: Watcher | None,
) -> Comparison: ...
def compare_folders(folders: Sequence[str]) -> Comparison: ...
def load(path: str) -> list[Recording]: ...
def list_names(what: str) -> list[dict[str, Any]]: ...
def list_zones(
    kernel: str | None, machine: str | None, mem: str | None, sysctls: Sequence[str]
) -> list[dict[str, Any]]: ...
def parse_moment(text: str) -> int: ...
def ablate_features(
    asked: Mapping[str, Any],
    features: Sequence[str],
    seeds: int,
    jobs: int,
    out: str | None,
    resume: bool,
    warn: Callable[[str], None],
    watcher: Watcher | None,
) -> Ablation: ...
def replay_trace(
    asked: Mapping[str, Any],
    of: Mapping[str, Any],
    reading: Mapping[str, Any],
    jobs: int,
    warn: Callable[[str], None],
    watcher: Watcher | None,
) -> Replay: ...
def size_trace(
    of: Mapping[str, Any], reading: Mapping[str, Any], jobs: int, out: str | None, watcher: Watcher | None
) -> Size: ...

@final
class Stop:
    """To end runs soon that go on in other threads."""

    def __new__(cls) -> Stop: ...
    def set(self) -> None:
        """Ends them."""

@final
class Sweep:
    """What is known of the runs of a sweep."""

    def __new__(
        cls,
        workload: str,
        axes: Sequence[tuple[str, Sequence[str]]],
        fixed: Sequence[str],
        planned: int,
        chunks: Sequence[tuple[str, bytes]],
    ) -> Sweep: ...
    def __len__(self) -> int: ...
    @property
    def failures(self) -> list[tuple[int, str, int, str]]:
        """For each run that failed: its place, its label, the exit code, and why."""
    @property
    def table(self) -> Table:
        """A row for each run."""
    @property
    def facts(self) -> Table:
        """A row for each fact of each run."""
    @property
    def directions(self) -> list[tuple[str, str]]:
        """For each metric to look at first: "minimize", "maximize" or "neither"."""
    def report(self, format: str = "text", *, all: bool = False, width: int = 80) -> str:
        """The report of the command line."""

def plan_sweep(
    asked: Mapping[str, Any],
    subject: str,
    options: Sequence[tuple[str, str]],
    seeds: int | None,
    reading: Mapping[str, Any],
    points: bool,
) -> str:
    """The plan of a sweep as JSON."""

def read_plan(json: str) -> None:
    """Checks a plan that was made elsewhere."""

def run_chunk(
    axes: Sequence[tuple[str, Sequence[str]]],
    runs: Sequence[tuple[int, str, Sequence[str], str]],
    stop: Stop | None = None,
) -> bytes:
    """Runs a part of a sweep and returns the bytes of its file."""

def join_chunks(axes: Sequence[tuple[str, Sequence[str]]], chunks: Sequence[bytes]) -> bytes:
    """Parts of a sweep as one."""

def record(label: str, scenario: str, stop: Stop | None = None) -> Recording:
    """The recording of one run of a plan, whole."""

def table_of(
    numbers: Sequence[tuple[str, Sequence[float | None]]], texts: Sequence[tuple[str, Sequence[str | None]]]
) -> Table:
    """A table with these columns."""

def check_workload(text: str) -> str:
    """The name of the workload that a file describes."""

def translate_fio(name: str, text: str) -> str:
    """A job file of fio as a workload file."""

def read_machine(text: str) -> tuple[str, str | None, list[tuple[str, str]]]:
    """A machine file: the machine, its memory, and sysctls."""

def probe_machine(directory: str) -> str:
    """This host as a machine file."""
