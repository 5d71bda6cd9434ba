"""Workloads and machines of one's own."""

from __future__ import annotations

from pathlib import Path

import pagetide
import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"
SMALL = {"hot": "1M", "scan": "32M"}


def test_a_workload_of_a_file_runs_as_a_named_one_does() -> None:
    workload = pagetide.Workload.from_toml(EXAMPLES / "workloads" / "hot-and-scan.toml")
    assert workload.name == "hot-and-scan"
    run = pagetide.run(workload, mem="64M", params=SMALL)
    assert run.metrics["hot_pages_cached"] == 256
    again = pagetide.run(str(EXAMPLES / "workloads" / "hot-and-scan.toml"), mem="64M", params=SMALL)
    assert again.content_hash == run.content_hash
    assert pagetide.run(run.scenario).content_hash == run.content_hash
    both = pagetide.compare(workload, kernels=["linux-6.1", "linux-6.12"], mem="64M", params=SMALL)
    assert len(both.recordings) == 2


def test_a_workload_is_built_with_the_words_of_the_file() -> None:
    workload = pagetide.Workload.build(
        "scan",
        params={"size": {"size": "32M", "help": "bytes"}},
        files={"data": {"size": "$size"}},
        tasks={"reader": {"count": 2, "steps": [{"read": "data", "label": "read"}, {"sync": True}]}},
        metrics={"pace": {"rate": "read"}},
    )
    assert pagetide.run(workload, mem="64M", params={"size": "8M"}).metrics["pace"] > 0
    with pytest.raises(pagetide.InputError, match="unknown step `raed`"):
        pagetide.Workload.build("x", tasks={"t": {"steps": [{"raed": "data"}]}})


def test_jobs_of_fio() -> None:
    workload = pagetide.Workload.from_fio(EXAMPLES / "fio" / "scan.fio")
    assert workload.name == "fio-scan"
    with pytest.raises(pagetide.InputError, match="direct"):
        pagetide.Workload.from_fio("[a]\nrw=read\nsize=1m\ndirect=1\n")


def test_a_machine_of_a_file() -> None:
    machine = pagetide.Machine.build(nodes=2, cpus=4, memory="96M", sysctls={"vm.swappiness": 10})
    run = pagetide.run("hot-and-stream", machine=machine, params={"hot": "1M", "stream": "16M"})
    assert run.machine.startswith("x86-64+nodes=2+cpus=4, ")
    assert "vm.swappiness" in run.scenario and 'mem = "96M"' in run.scenario
    with pytest.raises(pagetide.InputError, match="unknown machine"):
        pagetide.Machine.build(base="pdp-11")
