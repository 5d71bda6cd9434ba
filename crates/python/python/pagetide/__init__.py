"""Linux memory management that you can run, watch and change in seconds.

    import pagetide
    result = pagetide.compare("hot-and-stream")
    print(result)

What runs is the library behind the command `pagetide`; the same scenario gives the same figures here and there.
Start with `run`, `compare` and `load`. Everything that takes long draws its progress where somebody looks, releases
Python's lock, and stops at Ctrl-C.
"""

from ._ablate import ablate
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
from ._names import (
    list_counters,
    list_features,
    list_kernels,
    list_machines,
    list_policies,
    list_sysctls,
    list_workloads,
    list_zones,
)
from ._native import Ablation, Comparison, Recording, Replay, Size, Table, __version__
from ._progress import Progress
from ._replay import replay, size
from ._scenario import Scenario, ScenarioLike, VirtualMachine
from ._simulation import Simulation
from ._sweep import Sweep, load_sweep, sweep
from ._tune import Range, Trial, Tuned, tune
from ._written import Machine, Workload

__all__ = [
    "Ablation",
    "Comparison",
    "Error",
    "InputError",
    "InternalError",
    "Interrupted",
    "InvariantError",
    "LimitError",
    "Machine",
    "Progress",
    "Range",
    "Recording",
    "Replay",
    "Scenario",
    "ScenarioLike",
    "Simulation",
    "Size",
    "Sweep",
    "Table",
    "Trial",
    "Tuned",
    "UsageError",
    "VirtualMachine",
    "Workload",
    "__version__",
    "ablate",
    "compare",
    "list_counters",
    "list_features",
    "list_kernels",
    "list_machines",
    "list_policies",
    "list_sysctls",
    "list_workloads",
    "list_zones",
    "load",
    "load_all",
    "load_sweep",
    "replay",
    "resolve",
    "run",
    "size",
    "sweep",
    "tune",
]
