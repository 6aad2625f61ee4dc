"""Replays on a drive as a study: parts of the bytes, stacks, tables.

For: `reproduce.replayed`, `reproduce.drive_replays`, `report.reproduced_replays`. Must never know:
how a drive is simulated.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from filled import filled

import cachewright
from cachewright.answers import Case
from cachewright_lab import reproduce
from cachewright_lab.report import reproduced
from cachewright_lab.reproduce.drive_replays import Phase, command_time
from cachewright_lab.reproduce.volumes import reach_bytes

FIGURE = """[figure]
study = "drive-replays"
title = "T"
source = "figure 1"
shows = "phases"
base = "none"
workloads = ["journal"]

[[scheme]]
title = "none"
separation = "none"

[[scheme]]
title = "2r"
rule = true
separation = "2r"
"""


def case(windows: list[list[float]], width_ns: int = 1_000_000_000) -> Phase:
    """Return a replay by its windows: requests, bytes, mean response in ns."""
    series = {"width_ns": width_ns, "tenants": [windows]}
    return Phase(filled(Case, {"timing": {"series": series}}))


def test_parts_of_the_bytes_take_what_time_they_take() -> None:
    # 50 bytes in the first second, nothing in the second, 50 in the third: five parts in a second
    # each way, and the sixth begins with the pause.
    found = case([[1, 50, 3.0], [0, 0, 0.0], [1, 50, 5.0]]).bandwidths()
    assert found == pytest.approx([50, 50, 50, 50, 50, 10 / 1.2, 50, 50, 50, 50])
    assert case([[1, 7, 1.0]]).bandwidths() == pytest.approx([7.0] * 10)


def test_a_replay_that_answers_nothing_has_no_bandwidth() -> None:
    assert case([[0, 0, 0.0]]).bandwidths() == [0.0] * 10
    assert case([]).later_mean_ns() == 0


def test_the_later_half_of_the_time_is_weighed_by_requests() -> None:
    assert case([[9, 9, 100.0], [1, 1, 10.0], [3, 3, 20.0], [1, 1, 60.0]]).later_mean_ns() == 30


def test_a_command_takes_as_long_as_its_pages() -> None:
    # Four pages of 16 KiB at 3.4 us; of 4 KiB sixteen; a page begun is a page.
    assert command_time("3.4us", "16KiB", "64KiB") == "13600ns"
    assert command_time("3.4us", "4KiB", "64KiB") == "54400ns"
    assert command_time("3.4us", "16KiB", "20KiB") == "6800ns"


def test_predictions_at_the_command_are_shown_beside_the_scheme_named(folder: Path) -> None:
    figure = """[figure]
study = "drive-replays"
title = "T"
source = "figure 1"
shows = "predictions"
base = "none"
sizes = ["16KiB"]
depths = [1]

[[scheme]]
title = "none"
separation = "none"
occupancy = 0.125

[[scheme]]
title = "none, at the command"
separation = "none"
occupancy = 0.125
at_command = "100us"

[[scheme]]
title = "the same"
beside = "none, at the command"
separation = "none"
occupancy = 0.125
at_command = "25us"
logical_page = "4KiB"
"""
    what = reproduce.load("shiro", "one", quick=True, specs=specs(folder, figure))
    reproduce.run(what, threads=1)
    measures = reproduced.measured(what, every=False).measures
    row = "one/predictions/1 under way"
    base, own = (measures[f"{row}, {name}/16KiB, us"] for name in ("none", "none, at the command"))
    # The controller's work comes on top, but for what passes while a write waits for memory.
    assert 100 < own <= base + 100
    assert measures[f"{row}, the same/mean beside none"] == 0
    change = measures[f"{row}, none, at the command/16KiB, beside none"]
    slower = measures[f"{row}, none, at the command/throughput beside none"]
    assert (1 + change) * (1 + slower) == pytest.approx(1)


def test_the_last_byte_that_a_trace_touches(folder: Path) -> None:
    Path("a.csv").write_text("0,W,0,4096,0\n0,R,8192,512,10\n0,W,4096,4096,20\n")
    assert reach_bytes(Path("a.csv")) == 8704


def specs(folder: Path, figure: str) -> Path:
    """Return a folder of specs with Shiro's setup and one figure."""
    source = Path(__file__).resolve().parents[1] / "papers" / "shiro"
    own = folder / "specs" / "shiro"
    own.mkdir(parents=True)
    for name in ("setup.toml", "journal.toml", "hot-cold.toml"):
        (own / name).write_text((source / name).read_text())
    (own / "one.toml").write_text(figure)
    return own.parent


def test_a_drive_is_replayed_twice_and_the_tables_say_both(folder: Path) -> None:
    what = reproduce.load("shiro", "one", quick=True, specs=specs(folder, FIGURE))
    reproduce.run(what, threads=1)
    assert what.count() == 4
    measures = reproduced.measured(what, every=False).measures
    base = "one/bandwidth/journal, none/last part beside"
    assert measures[f"{base} none"] == 0
    assert measures[f"{base} the best rule"] < 0 < measures["one/responses/journal, 2r/mean, us"]
    # Fewer flash writes are more bandwidth.
    rows = ("none", "2r")
    written, parts = (
        [measures[f"one/bandwidth/journal, {row}/{key}"] for row in rows]
        for key in ("F/U", "all, MB/s")
    )
    assert written[0] > written[1]
    assert parts[0] < parts[1]
    beside = "one/beside/journal, {}/{}"
    later = "parts 4 to 10, least beside the best of the others"
    assert measures[beside.format("none", "parts 1 to 2 beside none")] == 0
    assert measures[beside.format("none", later)] < measures[beside.format("2r", later)]
    ratio = measures["one/responses/journal, 2r/p50, us"]
    ratio /= measures["one/responses/journal, none/p50, us"]
    assert measures[beside.format("2r", "p50 beside none")] == pytest.approx(ratio - 1, abs=1e-9)


def test_a_manifest_may_name_what_another_study_has(folder: Path) -> None:
    Path("traces").mkdir()
    Path("traces/a.csv").write_text(
        "".join(f"0,W,{at % 64 * 4096},4096,{at}\n" for at in range(99))
    )
    Path("traces/volumes.toml").write_text('[oltp]\npath = "a.csv"\n')
    source = Path(__file__).resolve().parents[1] / "papers"
    what = reproduce.load("shiro", None, quick=False, specs=source, traces=Path("traces"))
    names = {figure.name for figure in what.figures}
    # `oltp` is no trace of the figures that replay a drive.
    assert "fig7" in names
    assert not {"fig10", "fig11", "fig12"} & names
    Path("traces/volumes.toml").write_text('[none]\npath = "a.csv"\n')
    with pytest.raises(cachewright.SpecError, match="`none`: expected a workload such as"):
        reproduce.load("shiro", None, quick=False, specs=source, traces=Path("traces"))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('base = "none"', 'base = "no"', "`base`: found `no`, expected one of 2r, none"),
        ('shows = "phases"', 'shows = "all"', "`shows`: found `all`, expected one of phases"),
        ('title = "2r"\n', "", "found no `title`"),
        ("rule = true", 'beside = "no"', "`base`: found `no`, expected one of 2r, none"),
    ],
)
def test_a_broken_figure_is_refused(folder: Path, old: str, new: str, expected: str) -> None:
    figure: Any = FIGURE.replace(old, new)
    with pytest.raises(cachewright.SpecError, match=expected):
        reproduce.load("shiro", None, quick=True, specs=specs(folder, figure))
