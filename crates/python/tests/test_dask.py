"""A sweep on a cluster ends complete and with the same bytes, whoever dies on the way."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pagetide
import pytest
from small import SMALL, WORKLOAD, files

distributed = pytest.importorskip("distributed", reason="SKIPPED: Dask is not installed, so no sweep ran on a cluster")

RUNS = 24
SWEEP: dict[str, Any] = {**SMALL, "kernel": ["linux-5.4", "linux-6.12"], "seeds": RUNS // 2, "chunk_runs": 2}


class Finished(distributed.SchedulerPlugin):  # type: ignore[misc,name-defined]
    """Counts how often each task came to its end."""

    name = "finished"

    def __init__(self) -> None:
        self.keys: Counter[str] = Counter()

    def transition(self, key: str, start: str, finish: str, *_: object, **__: object) -> None:
        if start == "processing" and finish == "memory":
            self.keys[key.rsplit("-", 2)[-2] + key.rsplit("-", 1)[-1]] += 1


@pytest.fixture
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, scheduler_port=0
    ) as cluster:
        yield cluster


@pytest.fixture
def undisturbed(tmp_path: Path) -> dict[str, bytes]:
    pagetide.sweep(WORKLOAD, **SWEEP, out=tmp_path / "undisturbed")
    return files(tmp_path / "undisturbed")


def test_a_cluster_writes_the_bytes_of_threads(cluster: Any, tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    with distributed.Client(cluster) as client:
        swept = pagetide.sweep(WORKLOAD, **SWEEP, out=tmp_path / "out", client=client)
        in_memory = pagetide.sweep(WORKLOAD, **SWEEP, client=client)
    assert files(tmp_path / "out") == undisturbed
    assert str(swept) == str(in_memory) and len(swept) == RUNS


def test_a_worker_that_is_killed_costs_nothing_that_had_finished(
    cluster: Any, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    victims: list[int] = []

    def kill(progress: pagetide.Progress) -> None:
        if progress.done >= 4 and not victims:
            victims.append(next(iter(client.run(os.getpid).values())))
            os.kill(victims[0], signal.SIGKILL)

    with distributed.Client(cluster) as client:
        pagetide.sweep(WORKLOAD, **SWEEP, out=tmp_path / "out", client=client, progress=kill)
        assert victims and victims[0] not in client.run(os.getpid).values()
    assert files(tmp_path / "out") == undisturbed


CLIENT = """
import sys, distributed, pagetide
from test_dask import SWEEP
from small import WORKLOAD
with distributed.Client(sys.argv[1]) as client:
    pagetide.sweep(WORKLOAD, **SWEEP, out=sys.argv[2], client=client)
"""


def test_a_client_that_is_killed_goes_on_with_what_is_missing(
    cluster: Any, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    counted = Finished()
    cluster.scheduler.add_plugin(counted)
    out = tmp_path / "out"
    command = [sys.executable, "-c", CLIENT, cluster.scheduler_address, str(out)]
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    first = subprocess.Popen(command, env=environment)
    while len(list(out.glob("runs/*.parquet"))) < 3:
        assert first.poll() is None, "the client ended before it was killed"
        time.sleep(0.005)
    first.kill()
    first.wait()
    finished = {path.stem for path in out.glob("runs/*.parquet")}
    assert len(finished) < RUNS / 2
    subprocess.run(command, env=environment, check=True)
    assert files(out) == undisturbed
    assert len(counted.keys) == RUNS / 2
    again = {name for name, count in counted.keys.items() if count > 1}
    assert not again & {name.replace("-", "") for name in finished}


class Deadly(distributed.WorkerPlugin):  # type: ignore[misc,name-defined]
    """Workers on which one run ends the process, as one that asks for too much memory does."""

    name = "deadly"

    def __init__(self, label: str) -> None:
        self.label = label

    def setup(self, worker: Any) -> None:
        from pagetide import _dask, _native

        label = self.label

        class Native:
            __version__ = pagetide.__version__

            @staticmethod
            def run_chunk(axes: Any, runs: Any) -> bytes:
                if any(label in run[1] for run in runs):
                    time.sleep(2)  # One that ends before its nanny knows it is not started again.
                    os._exit(9)
                return bytes(_native.run_chunk(axes, runs))

        setattr(_dask, "_native", Native)  # noqa: B010


def test_a_run_that_ends_its_worker_each_time_is_named_and_all_else_is_kept(
    tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    import dask

    deadly = "kernel=linux-5.4, seed=8"
    settings = {"distributed.scheduler.allowed-failures": 1}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.register_plugin(Deadly(deadly))
        with pytest.raises(pagetide.InputError) as raised:
            pagetide.sweep(WORKLOAD, **SWEEP, out=tmp_path / "out", client=client)
        assert raised.value.message == f"each worker that had it died: run 8 ({deadly})"
        found = files(tmp_path / "out")
        missing = set(undisturbed) - set(found)
        assert missing == {"runs/chunk-00003.parquet"}
        assert all(undisturbed[name] == data for name, data in found.items())


class Older(distributed.WorkerPlugin):  # type: ignore[misc,name-defined]
    """Workers with another version of the package."""

    name = "older"

    def setup(self, worker: Any) -> None:
        from pagetide import _dask

        class Native:
            __version__ = "0.0.1"

        setattr(_dask, "_native", Native)  # noqa: B010


def test_workers_of_another_version_are_refused(tmp_path: Path) -> None:
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.register_plugin(Older())
        with pytest.raises(pagetide.UsageError, match="this worker has 0.0.1") as raised:
            pagetide.sweep(WORKLOAD, **SWEEP, out=tmp_path / "out", client=client)
    assert raised.value.hint is not None and "same version" in raised.value.hint


def test_what_is_no_client_is_refused_by_name() -> None:
    no_client: Any = 5
    with pytest.raises(pagetide.UsageError, match="`client` is 5"):
        pagetide.sweep(WORKLOAD, **SWEEP, client=no_client)


def test_the_command_line_runs_its_sweep_through_the_same_code(
    cluster: Any, tmp_path: Path, undisturbed: dict[str, bytes]
) -> None:
    program = os.environ.get("PAGETIDE_COMMAND") or shutil.which("pagetide")
    if program is None:
        pytest.skip("the command `pagetide` is not there: name it in PAGETIDE_COMMAND")
    runs = ["--mem", "64M", "--param", "hot=4M", "--param", "stream=8M", "--kernel", "linux-5.4,linux-6.12"]
    command = [program, "sweep", WORKLOAD, *runs, "--seeds", "12", "--format", "csv"]
    environment = {**os.environ, "PAGETIDE_PYTHON": sys.executable}
    here = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    on = ["--dask", cluster.scheduler_address, "--out", str(tmp_path / "out")]
    there = subprocess.run([*command, *on], env=environment, capture_output=True, text=True)
    assert there.returncode == 0, there.stderr
    assert there.stdout == here.stdout
    assert "24 of 24 runs" in there.stderr
    again = subprocess.run([*command, *on], env=environment, capture_output=True, text=True)
    assert again.returncode == 1 and "has a sweep already" in again.stderr and "--resume" in again.stderr
    resumed = subprocess.run([*command, *on, "--resume"], env=environment, capture_output=True, text=True, check=True)
    assert resumed.stdout == here.stdout
    nobody = subprocess.run([*command, "--dask", "tcp://127.0.0.1:1"], env=environment, capture_output=True, text=True)
    assert nobody.returncode == 1 and "no Dask scheduler at `tcp://127.0.0.1:1`" in nobody.stderr
    bare = {**environment, "PAGETIDE_PYTHON": "no-such-python"}
    missing = subprocess.run([*command, *on], env=bare, capture_output=True, text=True)
    assert missing.returncode == 2 and "`no-such-python` cannot be started" in missing.stderr
