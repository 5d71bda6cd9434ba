"""Ablations, replays and sizes: many runs at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pagetide
import pytest
from conftest import PARAMS, timeless

Command = Callable[..., str]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Requests to objects of which some are asked for much more often."""
    path = tmp_path_factory.mktemp("traces") / "trace.csv"
    lines = ["time,object,size"]
    for at in range(20_000):
        thing = (at * 7919) % (50 if at % 3 else 5000)
        lines.append(f"{at / 1000:.3f},{thing},4096")
    path.write_text("\n".join(lines) + "\n")
    return path


def test_an_ablation_tells_the_effect_of_each_feature(command: Command) -> None:
    ablation = pagetide.ablate("hot-and-stream", ["root-aging"], mem="256M", params=PARAMS, seeds=2)
    assert ablation.features == ["+root-aging"] and len(ablation.recordings) == 4
    options = ["--features", "root-aging", "--mem", "256M", "--seeds", "2", "-q", "--format", "json"]
    options += [part for name, value in PARAMS.items() for part in ("--param", f"{name}={value}")]
    assert timeless(ablation.to_dict()) == timeless(command("ablate", "hot-and-stream", *options))
    assert ablation.effects[0]["of"] == ["+root-aging"]


def test_a_trace_is_replayed_on_policies_and_kernels(trace: Path, command: Command) -> None:
    on_policies = pagetide.replay(trace, policy=["lru", "clock"], capacity=[100, "1k"])
    told = command("replay", str(trace), "--policy", "lru,clock", "--capacity", "100,1k", "-q", "--format", "json")
    assert timeless(on_policies.to_dict()) == timeless(told)
    assert len(on_policies) == 4 and len(on_policies.table) > 0
    on_kernels = pagetide.replay(trace, mem=["64M"], kernel=["linux-5.4", "linux-6.12"])
    assert [run.kernel for run in on_kernels.recordings] == ["linux-5.4", "linux-6.12"]
    with pytest.raises(pagetide.InputError, match="no cache|policy"):
        pagetide.replay(trace)


def test_how_much_memory_a_trace_needs(trace: Path, command: Command) -> None:
    sized = pagetide.size(trace, limits=["4M", "8M", "16M"])
    told = command("size", str(trace), "--limits", "4M,8M,16M", "-q", "--format", "json")
    assert sized.to_dict() == json.loads(told)
    assert sized.table["limit_bytes"] == [str(size << 20) for size in (4, 8, 16)] + ["max"]
    figure = sized.figure()
    assert figure is not None and "<svg" in figure


def test_the_table_of_a_comparison_has_numbers_and_verdicts() -> None:
    """A verdict in the column of numbers was a panic."""
    result = pagetide.compare("hot-and-stream", mem="256M", params=PARAMS, seeds=2)
    rows = [row for row in result.table.to_rows() if row["kind"] == "comparison"]
    words = {row["text"] for row in rows if row["index"] == "verdict"}
    assert words <= {"better", "worse", "same", "alike", "no clear change", "higher", "lower"} and words
    assert all(row["text"] is None or row["value"] is None for row in rows)
    assert [row["value"] for row in rows if row["index"] == "change"].count(None) == 0
