"""What Python tells is what the command line tells."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pagetide
from conftest import PARAMS, timeless

Command = Callable[..., str]


def test_a_comparison_has_the_figures_of_the_command_line(command: Command) -> None:
    told = command("compare", "hot-and-stream", "--format", "json", "-q")
    compared = pagetide.compare("hot-and-stream")
    assert timeless(compared.report("json")) == timeless(told)
    assert timeless(compared.to_dict()) == timeless(told)
    rows = {row["metric"]: row for row in compared.rows}
    assert rows["hot_pages_cached"]["verdict"] == "better"


def test_every_form_of_a_report_is_that_of_the_command_line(command: Command, tmp_path: Path) -> None:
    options = ["--mem", "256M", "--param", "hot=10M", "--param", "stream=256M", "-q"]
    compared = pagetide.compare("hot-and-stream", mem="256M", params=PARAMS, seeds=2)
    run = pagetide.run("hot-and-stream", mem="256M", params=PARAMS)
    for form in ("text", "json", "csv", "md"):
        told = command("compare", "hot-and-stream", "--seeds", "2", *options, "--format", form)
        assert timeless(compared.report(form)) == timeless(told)
        told = command("run", "hot-and-stream", *options, "--format", form)
        if form != "text":  # Only a terminal is told how long it took.
            assert timeless(run.report(form)) == timeless(told)


def test_a_recording_of_one_is_read_by_the_other(command: Command, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "python", tmp_path / "command"
    options = ["--mem", "256M", "--param", "hot=10M", "--param", "stream=256M", "-q"]
    command("run", "hot-and-stream", *options, "--out", str(theirs))
    recording = pagetide.run("hot-and-stream", mem="256M", params=PARAMS, out=ours)
    assert pagetide.load(theirs).content_hash == recording.content_hash
    files = sorted(path.name for path in theirs.iterdir())
    assert files == sorted(path.name for path in ours.iterdir())
    for name in files:
        assert (theirs / name).read_bytes() == (ours / name).read_bytes(), name
    assert command("report", str(ours), "--format", "json") == pagetide.load(theirs).report("json")
    again = pagetide.run(theirs / "scenario.toml")
    assert again.content_hash == recording.content_hash


def test_folders_are_compared_as_on_the_command_line(command: Command, tmp_path: Path) -> None:
    for kernel in ("linux-5.4", "linux-6.12"):
        pagetide.run("hot-and-stream", kernel=kernel, mem="256M", params=PARAMS, out=tmp_path / kernel)
    folders = [str(tmp_path / "linux-5.4"), str(tmp_path / "linux-6.12")]
    assert pagetide.compare(*folders).report("json") == command("compare", *folders, "--format", "json")


def test_a_comparison_that_was_begun_goes_on(tmp_path: Path) -> None:
    whole = pagetide.compare("hot-and-stream", mem="256M", params=PARAMS, out=tmp_path / "runs")
    again = pagetide.compare("hot-and-stream", mem="256M", params=PARAMS, out=tmp_path / "runs", resume=True)
    assert timeless(again.to_dict()) == timeless(whole.to_dict())


def test_a_notebook_shows_the_page_of_the_report(tmp_path: Path) -> None:
    compared = pagetide.compare("hot-and-stream", mem="256M", params=PARAMS)
    shown = compared._repr_html_()
    page = compared.html()
    assert page.startswith("<!doctype html>") and "<svg" in page and "hot_pages_cached" in page
    assert shown.startswith("<iframe srcdoc=") and "&lt;" not in page[:100]
    assert page.replace("&", "&amp;").replace('"', "&quot;") in shown
    assert compared.figures
    for name in compared.figures:
        assert "<svg" in compared.figure(name)
    try:
        compared.figure("nothing")
    except pagetide.InputError as error:
        assert compared.figures[0] in str(error)
    else:
        raise AssertionError("there is no such figure")


def test_a_recording_has_the_figures_of_its_page(small: pagetide.Scenario) -> None:
    recording = pagetide.run(small)
    assert recording.figures
    for name in recording.figures:
        assert recording.figure(name).startswith("<svg")
