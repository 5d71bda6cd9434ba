"""Sweeps on a cluster in figures: throughput of two workers beside one, and what a run costs beside a loop.

    python crates/python/benches/cluster.py [RUNS]

Runs of one small workload, with so many seeds. CPU time is what the processes used, whatever else the machine did; wall
time says something on an idle machine only. Needs `pip install pagetide[dask]`.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import distributed as untyped
import pagetide

WORKLOAD = "hot-and-stream"
distributed: Any = untyped
SMALL: dict[str, Any] = {"mem": "64M", "params": {"hot": "4M", "stream": "16M"}, "kernel": "linux-6.12"}


def cpu_seconds(of: int) -> float:
    used = resource.getrusage(of)
    return used.ru_utime + used.ru_stime


def measured(work: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds of `work` in this process."""
    wall, cpu = time.perf_counter(), cpu_seconds(resource.RUSAGE_SELF)
    work()
    return time.perf_counter() - wall, cpu_seconds(resource.RUSAGE_SELF) - cpu


def worker_cpu() -> float:
    return cpu_seconds(resource.RUSAGE_SELF)


def on_cluster(workers: int, runs: int, out: Path) -> dict[str, float]:
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        pagetide.sweep(WORKLOAD, **SMALL, seeds=2 * workers, chunk_runs=1, client=client)  # Imports, first pages.
        before = sum(client.run(worker_cpu).values())
        work = lambda: pagetide.sweep(WORKLOAD, **SMALL, seeds=runs, client=client, out=out)  # noqa: E731
        wall, cpu = measured(work)
        return {"wall": wall, "client and scheduler": cpu, "workers": sum(client.run(worker_cpu).values()) - before}


def main(runs: int) -> None:
    print(f"{runs} runs; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs")
    with tempfile.TemporaryDirectory() as folder:
        wall, loop = measured(lambda: [pagetide.run(WORKLOAD, **SMALL, seed=seed) for seed in range(1, runs + 1)])
        print(f"loop of run:   {wall:6.1f} s, CPU {loop:6.1f} s: {1e3 * loop / runs:.2f} ms a run")
        wall, threads = measured(lambda: pagetide.sweep(WORKLOAD, **SMALL, seeds=runs, jobs=1, out=Path(folder) / "0"))
        print(f"sweep, 1 job:  {wall:6.1f} s, CPU {threads:6.1f} s: {1e3 * (threads - loop) / runs:+.2f} ms a run")
        rates = {}
        for workers in (1, 2):
            used = on_cluster(workers, runs, Path(folder) / str(workers))
            rates[workers] = runs / used["wall"]
            cpu = used["client and scheduler"] + used["workers"]
            print(
                f"{workers} worker(s):   {used['wall']:6.1f} s, CPU {cpu:6.1f} s (workers {used['workers']:.1f}): "
                f"{1e3 * (cpu - loop) / runs:+.2f} ms a run; {rates[workers]:.0f} runs/s"
            )
        print(f"two workers have {rates[2] / rates[1]:.2f} times the throughput of one")
        names = [sorted((Path(folder) / str(workers) / "runs").iterdir()) for workers in (0, 1, 2)]
        same = all(len({path.read_bytes() for path in paths}) == 1 for paths in zip(*names, strict=True))
        print(f"{len(names[0])} files, {'all the same' if same else 'DIFFERENT'} in the three sweeps")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
