"""Linux memory management that you can run, watch and change in seconds.

    import pagetide
    result = pagetide.compare("hot-and-stream")
    print(result)

What runs is the library behind the command `pagetide`; the same scenario gives the same figures here and there.
Start with `run`, `compare` and `load`. Everything that takes long draws its progress where somebody looks, releases
Python's lock, and stops at Ctrl-C.
"""

from ._api import compare, load, load_all, resolve, run
from ._errors import (
    Error,
    InputError,
    InternalError,
    Interrupted,
    InvariantError,
    LimitError,
    UsageError,
)
from ._native import Comparison, Recording, Table, __version__
from ._progress import Progress
from ._scenario import Scenario, ScenarioLike, VirtualMachine
from ._sweep import Sweep, load_sweep, sweep
from ._tune import Range, Trial, Tuned, tune

__all__ = [
    "Comparison",
    "Error",
    "InputError",
    "InternalError",
    "Interrupted",
    "InvariantError",
    "LimitError",
    "Progress",
    "Range",
    "Recording",
    "Scenario",
    "ScenarioLike",
    "Sweep",
    "Table",
    "Trial",
    "Tuned",
    "UsageError",
    "VirtualMachine",
    "__version__",
    "compare",
    "load",
    "load_all",
    "load_sweep",
    "resolve",
    "run",
    "sweep",
    "tune",
]
