"""The example notebooks run, from the first cell to the last, and are kept without what they print; the tutorial in
Markdown shows what it prints."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[3] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
TUTORIAL = FOLDER.parent / "tutorials" / "notebook.md"


def test_there_is_one_for_each_of_three_readers() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["kernel-developer", "performance-engineer", "teacher"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: str(path.stem))
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    cells: list[dict[str, Any]] = json.loads(path.read_text())["cells"]
    assert all(cell["outputs"] == [] for cell in cells if cell["cell_type"] == "code")
    assert cells[0]["cell_type"] == "markdown"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: str(path.stem))
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("ipykernel", reason="ipykernel is not installed, so no notebook ran")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed, so no notebook ran")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed, so no notebook ran")
    if path.stem == "performance-engineer":
        pytest.importorskip("optuna", reason="Optuna is not installed, so the notebook that tunes did not run")
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": tmp_path}}).execute()
    printed = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.outputs]
    assert len(printed) >= 4


def test_the_tutorial_shows_what_it_prints() -> None:
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", TUTORIAL.read_text(), re.DOTALL)
    assert len(blocks) == 4
    names: dict[str, Any] = {}
    for block, shown in blocks:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(block, names)
        assert printed.getvalue() == shown
