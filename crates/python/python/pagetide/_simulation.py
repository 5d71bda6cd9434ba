"""A simulated run that is stopped to look at it, for teaching and research."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from . import _native
from ._native import Recording
from ._scenario import ScenarioLike, Size, Value, asked
from ._written import Machine


class Simulation:
    """A simulated run between two events: go on to a time or by an event, and look at the state in between.

    What is seen is what the kernel's own files show. Looking changes nothing, and neither does stopping: gone on with
    to its end, the run leaves the recording that `run` leaves. Each simulation has a thread of its own, which waits
    while nobody asks.

        sim = pagetide.Simulation("hot-and-stream")
        sim.run_until("2 s")
        sim.vmstat()["nr_free_pages"], sim.lru("A"), sim.page("hot", 0)
    """

    def __init__(
        self,
        scenario: ScenarioLike,
        *,
        kernel: str | None = None,
        machine: str | Machine | None = None,
        mem: Size | None = None,
        swap: str | None = None,
        params: Mapping[str, Value] | None = None,
        sysctls: Mapping[str, Value] | None = None,
        seed: int | None = None,
        interval: str | None = None,
    ) -> None:
        """Boots the machine of a scenario; its workload has done nothing yet. The arguments are those of `run`."""
        given = {name: value for name, value in locals().items() if name not in ("self", "scenario")}
        self._native = _native.Simulation(asked(scenario, given))

    @property
    def scenario(self) -> str:
        """The resolved scenario, TOML."""
        return self._native.scenario

    @property
    def now(self) -> float:
        """Simulated time in seconds since boot: up to when everything has happened."""
        return self._native.now_ns() / 1e9

    @property
    def events(self) -> int:
        """Events of the simulated machine so far."""
        return self._native.events()

    @property
    def is_over(self) -> bool:
        """Whether the workload has ended."""
        return self._native.is_over()

    def run_until(self, time: str | float) -> None:
        """Goes on up to a time since boot, such as "2 s" or 0.15 (seconds), or to the end of the workload.

        Raises:
            Interrupted: Ctrl-C; the run can go on from there.
        """
        self._native.run_until(_moment(time))

    def step(self, events: int = 1) -> None:
        """Goes on by so many events, such as the end of a piece of work on a CPU, a timer or a request to a disk."""
        self._native.step(events)

    def vmstat(self) -> dict[str, int]:
        """/proc/vmstat: events since boot, gauges as they are; pages unless the name says otherwise."""
        return self._native.vmstat()

    def memcg(self) -> dict[str, dict[str, int]]:
        """memory.stat and other files of every cgroup but the root, by path, in bytes and counts as last flushed."""
        return self._native.memcg()

    def zones(self) -> list[dict[str, Any]]:
        """/proc/zoneinfo: for each zone its free pages, watermarks and reserves, all in pages."""
        return self._native.zones()

    def lru(self, cgroup: str = "") -> list[dict[str, Any]]:
        """The pages of a cgroup on each of its lists, or in each of its generations, by node.

        Args:
            cgroup: Its path below the root, such as "A"; empty for the root itself.
        """
        return self._native.lru(cgroup)

    def page(self, file: str, index: int) -> dict[str, Any]:
        """A page of a file.

        `is` tells whether it is "cached", "evicted" (a shadow remembers it) or "absent", or that there is "no file"
        of that name so far. A cached one has `pfn`, `pages` of its folio, `zone`, `cgroup`, `state` ("lru", "batch",
        "isolated"), `list` and `flags`.

        Args:
            file: Its path on the simulated disk, such as "hot".
            index: The page's place in the file, from 0.
        """
        return self._native.page(file, index)

    def tasks(self) -> list[dict[str, Any]]:
        """The tasks that have not ended: `task`, `doing`, `what` it waits for or runs on, `since_ns`."""
        return self._native.tasks()

    def steps(self, every: str | float) -> Iterator[float]:
        """Goes on to the end of the workload in steps of a time, and yields simulated seconds after each."""
        step = _nanos(_moment(every))
        at = round(self.now * 1e9)
        while not self.is_over:
            at += step
            self._native.run_until(f"{at}ns")
            yield self.now

    def watch(self, look: Callable[[Simulation], object], every: str | float) -> Recording:
        """Goes on to the end, and calls `look` with this simulation after each step of a time.

        An exception of `look` leaves the run where it is: it can go on.
        """
        for _ in self.steps(every):
            look(self)
        return self.finish()

    def finish(self) -> Recording:
        """Goes on to the end; the recording is that of `run`. The simulation itself is gone then."""
        return self._native.finish()


def _moment(time: str | float) -> str:
    return time if isinstance(time, str) else f"{round(time * 1e9)}ns"


def _nanos(time: str) -> int:
    return _native.parse_moment(time)
