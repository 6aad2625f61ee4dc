"""What a release says of itself: one version, licences, and what a wheel must hold.

For: CITATION.cff, pyproject.toml, the workspace's Cargo.toml. Must never know: how wheels are
built; `make wheels` and `tests/wheel.sh` build and try them.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import cachewright

ROOT = Path(__file__).resolve().parents[2]


def test_there_is_one_version() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    project = tomllib.loads((ROOT / "python" / "pyproject.toml").read_text())["project"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert cachewright.__version__ == workspace["version"]
    assert "version" in project["dynamic"]
    assert "version" not in project
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [workspace["version"]]


def test_the_laboratory_is_of_the_same_version() -> None:
    project = tomllib.loads((ROOT / "python" / "pyproject.toml").read_text())["project"]
    laboratory = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text())["project"]
    assert laboratory["version"] == cachewright.__version__
    assert f"cachewright=={cachewright.__version__}" in laboratory["dependencies"]
    asked = project["optional-dependencies"]["lab"]
    assert asked == [f"{laboratory['name']}=={cachewright.__version__}"]
    assert laboratory["license"] == project["license"]
    assert laboratory["requires-python"] == project["requires-python"]


def test_the_extension_is_of_the_stable_interface() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
    minimum = next(
        feature
        for feature in workspace["dependencies"]["pyo3"]["features"]
        if feature.startswith("abi3-py")
    )
    project = tomllib.loads((ROOT / "python" / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">=3.{minimum.removeprefix('abi3-py3')}"


def test_licences_agree() -> None:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    project = tomllib.loads((ROOT / "python" / "pyproject.toml").read_text())["project"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert workspace["license"] == project["license"]
    names = re.findall(r"^  - (MIT|Apache-2.0)$", citation, re.MULTILINE)
    assert " OR ".join(names) == project["license"]
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        for package in ("python", "lab"):
            assert (ROOT / package / name).read_text() == (ROOT / name).read_text()
