"""A teacher stops a run to show the kernel's files, and goes on as if nobody had looked."""

from __future__ import annotations

import pagetide
import pytest


def test_a_run_that_was_looked_at_leaves_the_recording_of_run(small: pagetide.Scenario) -> None:
    sim = pagetide.Simulation(small)
    sim.run_until("10 ms")
    assert sim.now == pytest.approx(0.010)
    before = sim.vmstat()
    sim.step(100)
    sim.run_until(0.02)
    assert sim.now >= 0.02 and not sim.is_over
    after = sim.vmstat()
    assert after["pgfault"] >= before["pgfault"] and after["nr_free_pages"] > 0
    assert sim.finish().content_hash == pagetide.run(small).content_hash


def test_zones_lists_tasks_and_pages_are_those_of_the_kernel() -> None:
    sim = pagetide.Simulation("hot-and-stream", kernel="linux-5.4", mem="256M", params={"stream": "256M", "hot": "10M"})
    assert sim.page("hot", 0) == {"is": "no file"}
    while sim.page("hot", 0)["is"] != "cached":
        sim.step(20)
    page = sim.page("hot", 0)
    assert page["zone"] in [zone["zone"] for zone in sim.zones()]
    sim.run_until(sim.now + 0.05)
    group = sim.page("hot", 0)["cgroup"]
    lists = {row["list"]: row["pages"] for row in sim.lru(group)}
    assert lists["inactive_file"] + lists["active_file"] > 0
    assert sim.memcg()[group]["file"] > 0
    assert sum(zone["free"] for zone in sim.zones()) == sim.vmstat()["nr_free_pages"]
    assert "kswapd0" in [task["task"] for task in sim.tasks()]
    with pytest.raises(pagetide.InputError, match="Nobody"):
        sim.lru("Nobody")


def test_generations_are_listed_with_their_numbers() -> None:
    sim = pagetide.Simulation("hot-and-stream", kernel="linux-6.12+lru-gen", mem="256M", params={"stream": "256M"})
    sim.run_until("20 ms")
    assert {row["list"] for row in sim.lru()} == {"anon", "file"}
    assert all(row["generation"] is not None for row in sim.lru())


def test_a_run_is_watched_to_its_end(small: pagetide.Scenario) -> None:
    seen: list[int] = []
    recording = pagetide.Simulation(small).watch(lambda sim: seen.append(sim.vmstat()["nr_free_pages"]), every="5 ms")
    assert len(seen) > 3 and len(set(seen)) > 1
    assert recording.content_hash == pagetide.run(small).content_hash


def test_what_has_been_finished_or_is_no_simulation_is_told(small: pagetide.Scenario) -> None:
    sim = pagetide.Simulation(small)
    sim.finish()
    with pytest.raises(pagetide.UsageError, match="finished"):
        sim.step()
    with pytest.raises(pagetide.InputError, match="time"):
        pagetide.Simulation(small).run_until("soon")
    with pytest.raises(pagetide.InputError):
        pagetide.Simulation({"workload": "hot-and-stream", "backend": "host"})
