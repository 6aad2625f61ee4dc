"""Specs of papers that are odd: what is refused, what is left out, what keeps a name of its own.

For: `cachewright_lab.reproduce.specs`, `volumes` and the specs of studies. Must never know: how
figures are drawn, how anything is measured.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from test_given_traces import volume

from cachewright import SpecError
from cachewright.train.kinds import Volume
from cachewright_lab import reproduce
from cachewright_lab.reproduce import mixes, specs, volumes, workload_kinds
from cachewright_lab.reproduce.drive_mixes import DriveMixes
from cachewright_lab.reproduce.specs import Workload

SPECS = Path(__file__).resolve().parents[1] / "papers"


def drive(folder: Path, names: tuple[str, ...]) -> DriveMixes:
    """Return the figures of icache on volumes of these names."""
    for name in names:
        volume(folder / "volumes", name)
    what = reproduce.load("icache", None, quick=False, specs=SPECS, traces=folder / "volumes")
    assert isinstance(what, DriveMixes)
    return what


def copied(folder: Path, paper: str, file: str, old: str, new: str) -> Path:
    """Return a folder of specs with one file of a paper changed."""
    own = folder / "specs" / paper
    if not own.is_dir():
        shutil.copytree(SPECS / paper, own)
    text = (SPECS / paper / file).read_text()
    assert old in text
    (own / file).write_text(text.replace(old, new))
    return folder / "specs"


def refused(folder: Path, paper: str, change: tuple[str, str, str], why: str) -> None:
    """Check that a change of a spec is refused; take it back."""
    root = copied(folder, paper, *change)
    with pytest.raises(SpecError, match=why):
        reproduce.load(paper, None, quick=True, specs=root)
    copied(folder, paper, change[0], change[1], change[1])


def test_figures_of_mixes_that_are_not_given_are_left_out(folder: Path) -> None:
    what = drive(folder, ("mail", "web"))
    found = {figure.name: figure for figure in what.figures}
    assert [mix.name for mix in found["fig1"].mixes] == ["Mix 2"]
    # They name mix 14, mix 11 and pairs of databases: no other mix takes their place.
    assert not {"mix-14", "fig15", "ablations", "tenants-8", "elsewhere"} & set(found)
    assert "fig5" in found, "tenants that are made up need no volume"


def test_volumes_of_no_mix_make_no_figure_of_mixes(folder: Path) -> None:
    found = [figure.name for figure in drive(folder, ("video",)).figures]
    assert sorted(found) == ["fig5", "overheads", "signs"], "made up, or arithmetic"


def test_volumes_of_no_figure_are_refused(folder: Path) -> None:
    volume(folder / "volumes", "web")
    with pytest.raises(SpecError, match=r"found the traces of no figure,.*given of lu, dss, file"):
        reproduce.load("oc-cache", None, quick=False, specs=SPECS, traces=folder / "volumes")


def test_small_traces_show_their_own_mixes() -> None:
    what = reproduce.load("icache", None, quick=True, specs=SPECS)
    assert isinstance(what, DriveMixes)
    found = {figure.name: [mix.name for mix in figure.mixes] for figure in what.figures}
    assert found["mix-14"] == ["Mix 1", "Mix 11"]
    assert found["fig15"] == ["Mix 11"]


def test_mixes_are_named_as_the_setup_has_them(folder: Path) -> None:
    change = ("mix-14.toml", '"Mix 14"', '"Mix 41"')
    refused(folder, "icache", change, "`mixes`: found `Mix 41`, expected one of Mix 1,")


def test_a_figure_may_have_machines_schemes_and_mixes_of_its_own(folder: Path) -> None:
    what = reproduce.load("icache", None, quick=False, specs=SPECS, traces=None)
    assert isinstance(what, DriveMixes)
    found = {figure.name: figure for figure in what.figures}
    assert len(found["pairs"].mixes) == len({mix.name for mix in found["pairs"].mixes})
    assert {len(mix.members) for mix in found["pairs"].mixes} == {2}
    assert found["fig8"].mixes != found["pairs"].mixes, "no other figure has them"
    assert what.machines["published"]["machine"]["write_waits"] == "victim"
    assert "write_waits" not in what.machines["modern"]["machine"]
    titles = [scheme.title for scheme in found["published"].schemes]
    assert "mlcache, writes" in titles
    assert "mlcache, writes" not in [scheme.title for scheme in found["fig8"].schemes]


def test_names_of_a_figure_are_its_own(folder: Path) -> None:
    change = ("published.toml", "[drive.published.", "[drive.modern.")
    refused(folder, "icache", change, "found a second `modern`, expected other names than those of")
    change = ("published.toml", 'write_waits = "victim"', 'write_waits = "never"')
    refused(folder, "icache", change, "`drive.published`: found another machine of that name")


def test_settings_of_a_figure_change_what_the_figure_says(folder: Path) -> None:
    figure = 'schemes = ["icache"]\nseeds = 1\n'
    root = copied(folder, "icache", "ablations.toml", figure, f"{figure}from_off = true\n")
    what = reproduce.load("icache", "ablations", quick=False, specs=root)
    assert isinstance(what, DriveMixes)
    settings = {title: dict(setting.keys) for title, setting in what.figures[0].settings}
    assert settings["as published"] == {"from_off": True}
    assert settings["label: L of the whole gain"] == {"from_off": True, "gain_of": "whole"}


@pytest.mark.parametrize("key", ["paper", "machine", "study"])
def test_a_setup_without_a_key_is_refused(folder: Path, key: str) -> None:
    change = ("setup.toml", f"{key} = ", f"{key}s = ")
    refused(folder, "oc-cache", change, f"setup.toml: found no `{key}`, expected one")


def test_tables_of_a_setup_are_checked(folder: Path) -> None:
    for key in ("name", "path"):
        for quick in ("trace", "quick"):
            old = f'[[{quick}]]\nname = "lu"\npath'
            change = ("setup.toml", old, old.replace(f"{key}", f"{key}s"))
            refused(folder, "oc-cache", change, f"found no `{key}`, expected one")
    change = ("fig3.toml", "[figure]", "figure = 3\n[other]")
    refused(folder, "oc-cache", change, "`figure`: found no table, expected `.figure.`")
    root = copied(folder, "oc-cache", *change)
    (root / "oc-cache" / "setup.toml").write_bytes(b"paper = \xff")
    with pytest.raises(SpecError, match=r"setup\.toml: 'utf-8' codec can't decode"):
        reproduce.load("oc-cache", None, quick=True, specs=root)


def test_every_figure_of_layouts_has_the_one_others_are_measured_by(folder: Path) -> None:
    change = ("hot.toml", 'layouts = ["flashblox", "oc-cache"]', 'layouts = ["oc-cache"]')
    why = "`layouts`: found oc-cache, expected `flashblox` among them"
    refused(folder, "oc-cache", change, why)


def test_a_plan_needs_partitions_that_are_shown_and_goals(folder: Path) -> None:
    plan = 'plan = ["shared"]\n'
    change = ("fig14a.toml", plan, f'{plan}partitions = ["equal"]\n')
    refused(folder, "soft-qos", change, "`plan`: found `shared`, expected one of equal")
    change = ("fig14a.toml", "goal = 0.33\n", "")
    refused(folder, "soft-qos", change, "`plan`: found no goal of `oltp`, expected one of each")


def test_a_figure_may_show_readings_alone(folder: Path) -> None:
    shared = 'title = "shared"\npartition = "shared"\n'
    settings = f'{shared}settings = {{ "replay.interval" = "1s", "cache.list" = [1, 2] }}\n'
    root = copied(folder, "soft-qos", "setup.toml", shared, settings)
    copied(
        folder, "soft-qos", "fig10a.toml", 'shows = "mix"', 'shows = "mix"\npartitions = ["shared"]'
    )
    what = reproduce.load("soft-qos", "fig10a", quick=True, specs=root)
    [groups] = [mixes._apart(figure) for figure in what.figures]
    assert [[one.title for one in group] for group in groups] == [["shared"]]


def test_small_traces_start_and_stop_sooner_in_any_unit() -> None:
    what = reproduce.load("soft-qos", None, quick=True, specs=SPECS)
    assert isinstance(what, mixes.Mixes)
    assert what._when("64s") == what._when("64000ms") == "1000ms"
    assert what._when("30%") == "30%"


def test_files_of_a_capture_stand_beside_its_trace(folder: Path) -> None:
    path = volume(folder / "volumes", "oltp")
    for name in ("oltp.files.csv.zst", "oltp.json"):
        (path.parent / name).write_text("0,data/pg\n")
    [table] = volumes.given(path.parent, [{"name": "oltp", "path": "x"}])
    assert table["path"] == str(path.resolve())


def test_parts_and_volumes_of_a_trace_have_names_of_their_own(folder: Path) -> None:
    windows = np.zeros((4, 1, 1), dtype=np.float32)
    ends = np.array([10, 20, 30, 40], dtype=np.uint64) * 1_000_000_000
    kinds = ("mail", "web", "mail")
    phases = [{"kind": kind, "from": 12.0 * at} for at, kind in enumerate(kinds)]
    workload = Workload("v", Path("v"), None, {"name": "v", "phases_s": phases})
    scenario = workload_kinds.Scenario("two", ("web", "mail"))
    parts = workload_kinds.parts(workload, Volume(0, "v", windows, ends), scenario)
    assert [one.name for one in parts] == ["v, mail", "v, web", "v, mail 2"]
    lines = ["time_ns,op,offset_bytes,length_bytes,volume"]
    lines += [f"{at},read,{at * 4096},4096,{at % 2}" for at in range(40)]
    (folder / "two.csv").write_text("\n".join(lines) + "\n")
    what = reproduce.load("rc-rnn", "fig3", quick=True, specs=SPECS)
    part = what if isinstance(what, workload_kinds.WorkloadKinds) else what.parts["workload-kinds"]
    assert isinstance(part, workload_kinds.WorkloadKinds)
    table = {"name": "own", "kind": "mail"}
    part.setup = specs.setup_in(SPECS / "rc-rnn", quick=True)
    own = Workload("own", folder / "two.csv", None, table)
    object.__setattr__(part.setup, "workloads", (own,))
    seen = part._read(("own", "rc-rnn", 5), lambda *_: None)
    assert sorted(one.name for one in seen) == ["own/0", "own/1"]
