"""The command `reproduce`: every figure of a paper, small, on one page.

For: `cachewright.reproduce` and its report. Must never know: how schemes decide.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from conftest import Command

from cachewright import SpecError, reproduce

SPECS = Path(__file__).resolve().parents[2] / "specs"


def test_every_figure_of_the_paper_runs_and_stands_beside_its_numbers(
    folder: Path, command: Command
) -> None:
    words = ["reproduce", "shiro", "--quick", "--specs", SPECS, "--out", "r"]
    answer = command(*words)
    assert answer.status == 0, answer.err
    assert "no reproduction" in answer.err
    page = (folder / "r" / "index.html").read_text()
    for paper in ("67.6 %", "0.909", "73.1%", "0.1 to 1.8 %", "9.2 at most"):
        assert paper in page, paper
    assert page.count("<svg") == 5
    tables = (folder / "r" / "tables.md").read_text()
    for title in ("Overall write amplification", "Ablation", "Metadata", "Every scheme"):
        assert title in tables
    paper_row = next(line for line in tables.splitlines() if line.startswith("| paper |"))
    assert paper_row == "| paper | average | 0.909 | 0.834 | 0.921 | 0.867 | - |"
    rows = [line for line in tables.splitlines() if line.startswith("| none |")]
    assert len(rows) == 4, "figure 7 in two sizes of pages, figure 9, every scheme"
    assert "the extra writes of shiro beside none: " in answer.out
    assert len(list((folder / "r").glob("*/wa.json"))) == 12
    first = answer.out
    assert command(*words, "--threads", "1").out == first


def test_one_figure_runs_alone(folder: Path, command: Command) -> None:
    answer = command("reproduce", "shiro", "metadata", "--quick", "--specs", SPECS)
    assert answer.status == 0, answer.err
    assert "misses, journal" in answer.out
    assert "Ablation" not in answer.out
    assert (folder / "results" / "shiro" / "index.html").is_file()


def test_mixes_run_under_every_partition(folder: Path, command: Command) -> None:
    words = ["reproduce", "soft-qos", "--quick", "--specs", SPECS, "--out", "q"]
    answer = command(*words)
    assert answer.status == 0, answer.err
    assert "no reproduction" in answer.err
    page = (folder / "q" / "index.html").read_text()
    for said in ("Workload VII", "256 MB; lu 5 % and 68 %", "+11 %", "One stops, one starts"):
        assert said in page, said
    tables = (folder / "q" / "tables.md").read_text()
    goals = [line for line in tables.splitlines() if line.startswith("| Workload")]
    assert len(goals) == 11, "seven workloads, three more sizes, a higher goal"
    for partition in ("shared", "equal", "soft-qos", "soft-qos-x", "hull"):
        rows = [line for line in tables.splitlines() if line.startswith(f"| {partition} |")]
        assert len(rows) == 15, partition
    assert len(list((folder / "q").glob("*/result.json"))) == 13
    low = tables.index("Goals too low (beyond the paper)")
    assert "3 of 3" in tables[: tables.index("###", 10)]
    assert "0.1" in tables[low:]
    assert "hit ratio" in answer.out
    assert command(*words, "--threads", "1").out == answer.out


def test_a_mix_that_cannot_be_is_refused(folder: Path) -> None:
    own = folder / "specs" / "soft-qos"
    shutil.copytree(SPECS / "soft-qos", own)
    figure = (own / "fig7a.toml").read_text()
    (own / "fig7a.toml").write_text(figure.replace('app = "dss"', 'app = "dds"'))
    with pytest.raises(SpecError, match="`app`: found `dds`, expected one of dss, lu"):
        reproduce.load("soft-qos", None, quick=True, specs=folder / "specs")
    (own / "fig7a.toml").write_text(figure.replace('"mix"', '"pie"'))
    with pytest.raises(SpecError, match="`shows`: found `pie`, expected one of mix"):
        reproduce.load("soft-qos", None, quick=True, specs=folder / "specs")
    setup = (own / "setup.toml").read_text()
    (own / "setup.toml").write_text(setup.replace('study = "mixes"', 'study = "mixed"'))
    with pytest.raises(SpecError, match="`study`: found `mixed`, expected one of write-amp"):
        reproduce.load("soft-qos", None, quick=True, specs=folder / "specs")


def test_what_does_not_exist_is_refused(folder: Path, command: Command) -> None:
    answer = command("reproduce", "shiro", "fig77", "--quick", "--specs", SPECS)
    assert answer.status == 2
    assert "found figure `fig77`, expected one of fig7, fig7-16k, table5" in answer.err
    answer = command("reproduce", "shirou", "--quick", "--specs", SPECS)
    assert "found paper `shirou`, expected one of" in answer.err
    answer = command("reproduce", "shiro", "--quick", "--specs", folder)
    assert "found no folder `specs/shiro`" in answer.err


def test_bundled_traces_stand_in_and_are_said_to(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CACHEWRIGHT_SHARED", str(folder))
    what = reproduce.load("shiro", "fig7", quick=False, specs=SPECS)
    assert what.setup.kind == "bundled"
    assert all(workload.path.is_file() for workload in what.setup.workloads)
    (folder / "specs" / "p").mkdir(parents=True)
    setup = (SPECS / "shiro" / "setup.toml").read_text()
    (folder / "specs" / "p" / "setup.toml").write_text(setup)
    (folder / "specs" / "p" / "a.toml").write_text('[figure]\ntitle = "A"\nsource = "s"\n')
    with pytest.raises(SpecError, match="found no `shows`"):
        reproduce.load("p", None, quick=True, specs=None)
