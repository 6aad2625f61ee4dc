"""The facts of the bundled volumes that judge are those that are kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from answers import kept
from answers.case import Case

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "tests" / "kept" / "info"


@pytest.mark.parametrize("name", ["file", "mail", "oltp", "web"])
def test_a_volume_is_the_kept_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The answer names the path that was asked about.
    monkeypatch.chdir(ROOT)
    answer = Case("info", name, f"data/judges/{name}.csv.zst").answer()
    before = json.loads((KEPT / f"{name}.json").read_text())
    assert list(kept.differences(before, json.loads(json.dumps(answer)))) == []
