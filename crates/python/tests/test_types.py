"""Every public name has a type and a docstring, and a type checker agrees with them."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pagetide
import pytest

ROOT = Path(__file__).parents[3]


def test_a_type_checker_accepts_the_package_and_its_tests() -> None:
    pytest.importorskip("mypy")
    checked = ["crates/python/python", "crates/python/tests"]
    result = subprocess.run([sys.executable, "-m", "mypy", *checked], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_pyright_accepts_the_package_in_strict_mode() -> None:
    """By basedpyright, which is pyright with nothing to fetch when it runs."""
    pytest.importorskip("basedpyright")
    tool = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable]
    strict = subprocess.run(tool, cwd=ROOT, capture_output=True, text=True)
    assert strict.returncode == 0, strict.stdout + strict.stderr


def test_pyright_knows_the_type_of_everything_public(tmp_path: Path) -> None:
    pytest.importorskip("basedpyright")
    tool = [sys.executable, "-m", "basedpyright", "--verifytypes", "pagetide", "--ignoreexternal"]
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    here = {**os.environ, "VIRTUAL_ENV": sys.prefix, "PATH": programs}
    verified = subprocess.run(tool, cwd=tmp_path, env=here, capture_output=True, text=True)
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_types_of_the_compiled_part_are_what_it_has(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    # Types of other packages do not matter here, and take eight times as long to read.
    options = tmp_path / "mypy.ini"
    options.write_text("[mypy]\nfollow_imports = skip\n[mypy-pagetide.*]\nfollow_imports = normal\n")
    tool = [sys.executable, "-m", "mypy.stubtest", "pagetide._native", "--ignore-disjoint-bases"]
    tool += ["--mypy-config-file", str(options)]
    result = subprocess.run(tool, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_code_is_clean() -> None:
    pytest.importorskip("ruff")
    for command in (["check"], ["format", "--check"]):
        tool = [sys.executable, "-m", "ruff", *command, "crates/python"]
        result = subprocess.run(tool, cwd=ROOT, capture_output=True, text=True)
        assert result.returncode == 0, result.stdout + result.stderr


def test_every_public_name_is_documented() -> None:
    for name in pagetide.__all__:
        thing = getattr(pagetide, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            assert inspect.getdoc(thing), name
            members = vars(thing).items() if inspect.isclass(thing) else []
            for member, value in members:
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    assert inspect.getdoc(value), f"{name}.{member}"


def test_the_package_says_that_it_has_types() -> None:
    assert (Path(pagetide.__file__).parent / "py.typed").is_file()
    assert (Path(pagetide.__file__).parent / "_native.pyi").is_file()
