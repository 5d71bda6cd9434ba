"""A long-lived process: it does not grow, can be interrupted, and survives what its own functions raise."""

from __future__ import annotations

import gc
import os
import resource
import signal
import threading
import time

import pagetide
import pytest

# A shell has its background jobs ignore it, and what they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

LONG = pagetide.Scenario("hot-and-stream", mem="1G", params={"stream": "512G"})


def resident_kib() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * (resource.getpagesize() // 1024)


def threads_are_down_to(count: int) -> bool:
    """Whether they are, at the latest after some seconds: a pool's threads end soon after it has gone."""
    deadline = time.monotonic() + 10
    while len(os.listdir("/proc/self/task")) > count:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def interrupt_soon(seconds: float = 0.5) -> threading.Timer:
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


def test_hundreds_of_runs_leave_the_process_as_large_as_it_was() -> None:
    tiny = pagetide.resolve("hot-and-stream", mem="32M", params={"hot": "256k", "stream": "1M"})

    def runs(count: int) -> None:
        for _ in range(count):
            recording = pagetide.run(tiny)
            recording.series.columns, recording.metrics, recording.report("json")
        gc.collect()

    runs(100)  # Allocators and caches come to their size.
    before = resident_kib()
    runs(300)
    grown = resident_kib() - before
    assert grown < 2048, f"grown by {grown} KiB in 300 runs"


def test_simulations_that_are_let_go_leave_no_thread_and_no_memory(small: pagetide.Scenario) -> None:
    def simulations(count: int) -> None:
        for _ in range(count):
            pagetide.Simulation(small).run_until("5 ms")
        gc.collect()

    simulations(20)
    before, threads = resident_kib(), len(os.listdir("/proc/self/task"))
    simulations(100)
    assert threads_are_down_to(threads)
    assert resident_kib() - before < 8192


def test_ctrl_c_stops_a_run() -> None:
    begin = time.monotonic()
    timer = interrupt_soon()
    with pytest.raises(KeyboardInterrupt) as raised:
        pagetide.run(LONG)
    timer.join()
    assert isinstance(raised.value, pagetide.Interrupted) and raised.value.result is None
    assert time.monotonic() - begin < 20


def test_ctrl_c_leaves_what_has_finished() -> None:
    done: list[int] = []

    def interrupt_after_two(progress: pagetide.Progress) -> None:
        if progress.done >= 2 and not done:
            done.append(progress.done)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(pagetide.Interrupted) as raised:
        pagetide.compare(
            "hot-and-stream",
            kernels=["linux-5.4", "linux-6.12"],
            mem="256M",
            params={"hot": "10M", "stream": "2G"},
            seeds=20,
            jobs=1,
            progress=interrupt_after_two,
        )
    finished = raised.value.result.recordings
    assert 2 <= len(finished) < 40 and all(recording.metrics for recording in finished)
    assert f"{len(finished)} of 40 runs" in str(raised.value)


def test_an_exception_of_a_watcher_stops_the_work_and_comes_through() -> None:
    class Enough(Exception):
        pass

    def watch(progress: pagetide.Progress) -> None:
        raise Enough

    threads = len(os.listdir("/proc/self/task"))
    for _ in range(20):
        with pytest.raises(Enough):
            pagetide.run(LONG, progress=watch)
    assert threads_are_down_to(threads)
    pagetide.run("hot-and-stream", mem="256M", params={"hot": "10M", "stream": "32M"})


def test_an_exception_of_a_look_leaves_the_simulation_as_it_is(small: pagetide.Scenario) -> None:
    sim = pagetide.Simulation(small)

    def look(_: pagetide.Simulation) -> None:
        raise LookupError

    for _ in range(3):
        with pytest.raises(LookupError):
            sim.watch(look, every="2 ms")
    assert sim.finish().content_hash == pagetide.run(small).content_hash


def test_ctrl_c_stops_a_simulation_which_can_go_on() -> None:
    sim = pagetide.Simulation(LONG)
    timer = interrupt_soon()
    with pytest.raises(pagetide.Interrupted):
        sim.run_until("3600 s")
    timer.join()
    at = sim.now
    sim.run_until(at + 0.001)
    assert sim.now >= at


def test_other_threads_run_meanwhile(small: pagetide.Scenario) -> None:
    ticks = 0
    over = threading.Event()

    def count() -> None:
        nonlocal ticks
        while not over.is_set():
            ticks += 1
            time.sleep(0.001)

    counting = threading.Thread(target=count)
    counting.start()
    pagetide.run("hot-and-stream", mem="256M", params={"hot": "10M", "stream": "1G"})
    over.set()
    counting.join()
    assert ticks > 20


def test_threads_can_run_at_a_time(small: pagetide.Scenario) -> None:
    hashes: list[str] = []
    threads = [threading.Thread(target=lambda: hashes.append(pagetide.run(small).content_hash)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(hashes) == 4 and len(set(hashes)) == 1
