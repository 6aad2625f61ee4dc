"""The command `reproduce`: every figure of a paper, small, on one page.

For: `cachewright_lab.reproduce` and its report. Must never know: how schemes decide.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures import Command

from cachewright import RunError, SpecError
from cachewright.tables import measures
from cachewright.train.demand import Segments, TenantSegments
from cachewright.train.kinds import Volume
from cachewright.types import Progress
from cachewright_lab import reproduce
from cachewright_lab.reproduce import claims, drive_specs, jobs, recut, workload_kinds
from cachewright_lab.reproduce.drive_figures import geometric, left_out, rank_correlation
from cachewright_lab.reproduce.drive_mixes import DriveMixes
from cachewright_lab.reproduce.specs import Workload

SPECS = Path(__file__).resolve().parents[1] / "papers"


def measures_of(folder: Path) -> dict[str, float]:
    """Return what a run in small measured: each name once, and no claim decided by it."""
    found = measures.read(folder / measures.FILE)
    assert not found.whole
    assert not [name for name in found.measures if name.endswith(" (2)")], "names tell them apart"
    for figure, tables in found.tables.items():
        names = [table.name for table in tables]
        assert len(set(names)) == len(names), f"{figure}: tables of one name"
    judged = json.loads((folder / claims.FILE).read_text())["claims"]
    assert judged
    assert {one["status"] for one in judged} <= {
        "holds in small",
        "differs in small",
        "not run",
        "untested",
    }
    return found.measures


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
    assert page.count('<div class="figure">') == 13
    tables = (folder / "r" / "tables.md").read_text()
    titles = ("Lifetimes of pages", "Overall write", "Readings of", "Ablation", "Metadata", "Every")
    for title in titles:
        assert title in tables
    paper_row = next(line for line in tables.splitlines() if line.startswith("| paper |"))
    assert paper_row == "| paper | average | 0.909 | 0.834 | 0.921 | 0.867 |" + 6 * " - |"
    rows = [line for line in tables.splitlines() if line.startswith("| none |")]
    assert len(rows) == 8, "figure 7 on three drives, in large pages, figure 9 twice, Alibaba, all"
    assert "shiro beside none and the rules" in answer.out
    found = measures_of(folder / "r")
    mean = {name: found[f"fig7/20%/{name}/mean"] for name in ("shiro", "none")}
    change = found["fig7/20%, beside/shiro, none/(F-U)/U"]
    assert change == pytest.approx(mean["shiro"] / mean["none"] - 1)
    assert "Claims of the paper" in page
    assert page.count('<li><a href="#') == page.count('<section id="') > 9, "links to the figures"
    assert tables.startswith("### Claims of the paper")
    assert len(list((folder / "r").glob("*/wa.json"))) == 12
    first = answer.out
    assert command(*words, "--threads", "1").out == first


def test_one_figure_runs_alone(folder: Path, command: Command) -> None:
    answer = command("reproduce", "shiro", "metadata", "--quick", "--specs", SPECS)
    assert answer.status == 0, answer.err
    assert "Metadata (section V-E)" in answer.out
    assert "Ablation" not in answer.out
    assert (folder / "results" / "shiro" / "index.html").is_file()


def test_kinds_are_told_apart_by_every_method(folder: Path, command: Command) -> None:
    pytest.importorskip("jax", reason="needs jax and optax (pip install 'cachewright[train]')")
    words = ["reproduce", "rc-rnn", "fig3", "--quick", "--specs", SPECS, "--out", "k"]
    answer = command(*words)
    assert answer.status == 0, answer.err
    assert "no reproduction" in answer.err
    assert "60 % at most" in (folder / "k" / "index.html").read_text()
    assert "fig3/twsd/2 kinds" in measures_of(folder / "k")
    rows = [line for line in answer.out.splitlines() if line.startswith("twsd ")]
    assert len(rows) == 1
    assert len(list((folder / "k" / "models").glob("*/training.json"))) == 6
    assert command(*words, "--threads", "1").out == answer.out


def test_what_enters_the_cache_is_compared_under_every_scheme(
    folder: Path, command: Command
) -> None:
    pytest.importorskip("jax", reason="needs jax and optax (pip install 'cachewright[train]')")
    words = ["reproduce", "rc-rnn", "fig11", "--quick", "--specs", SPECS, "--out", "c"]
    answer = command(*words)
    assert answer.status == 0, answer.err
    found = measures_of(folder / "c")
    assert "fig11/beside/rc-rnn, larc/mean" in found
    rows = [line.split()[0] for line in answer.out.splitlines() if " 0." in line or " 1." in line]
    for scheme in ("lru", "reca", "rc-rnn", "rc-x", "belady-bypass", "benefit-oracle"):
        assert scheme in rows, scheme
    assert "best of the others" in answer.out, "ours as quotients by it"
    models = sorted((folder / "c" / "models").iterdir())
    labels = [one for one in models if "-labels-" in one.name]
    assert len(labels) == 4, "two workloads, two oracles"
    models = [one for one in models if one not in labels]
    assert len(models) == 8, "two workloads; features, labels and oracle each another way"
    times = [path.stat().st_mtime_ns for path in models]
    assert command(*words, "--threads", "1").out == answer.out
    assert [path.stat().st_mtime_ns for path in models] == times, "nothing is trained twice"


def test_a_volume_that_judges_trains_where_a_figure_says_so() -> None:
    judges = Workload("v", Path("v"), None, {"judges": True})
    scenario = workload_kinds.Scenario("two", ("web", "mail"))
    assert not scenario.taught_by(judges)
    assert dataclasses.replace(scenario, also=("v",)).taught_by(judges)
    assert scenario.taught_by(Workload("w", Path("w"), None, {}))


def test_windows_of_a_long_volume_are_spread() -> None:
    windows = np.arange(10, dtype=np.float32).reshape(10, 1, 1)
    volume = Volume(0, "v", windows, np.arange(10, dtype=np.uint64))
    found = workload_kinds.thinned(volume, 4)
    assert found.windows.ravel().tolist() == [0, 2, 5, 7]
    assert found.ends_ns.tolist() == [0, 2, 5, 7]
    assert workload_kinds.thinned(volume, 0) is workload_kinds.thinned(volume, 10) is volume


def test_windows_of_phases_are_whole() -> None:
    windows = np.arange(6, dtype=np.float32).reshape(6, 1, 1)
    ends = np.array([10, 20, 30, 40, 50, 60], dtype=np.uint64) * 1_000_000_000
    volume = Volume(0, "v", windows, ends)
    phases = [{"kind": "mail", "from": 5.0}, {"kind": "web", "from": 35.0}]
    table = {"name": "v", "phases_s": phases}
    workload = Workload("v", Path("v"), None, table)
    scenario = workload_kinds.Scenario("two", ("web", "mail"))
    mail, web = workload_kinds.parts(workload, volume, scenario)
    assert (mail.kind, mail.windows.ravel().tolist()) == (1, [1, 2])
    assert (web.kind, web.windows.ravel().tolist()) == (0, [4, 5])


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
    assert len(goals) == 19, "seven workloads, three more sizes, a higher goal, a slope, seven anew"
    for partition in ("shared", "equal", "soft-qos", "soft-qos-x", "hull"):
        ratio = re.compile(rf"\| {partition} \| \*{{0,2}}[01]\.\d{{4}}")
        rows = [line for line in tables.splitlines() if ratio.match(line)]
        assert len(rows) == (16 if partition == "hull" else 23), partition
    assert len(list((folder / "q").glob("*/result.json"))) == 26
    for said in ("the smallest of these caches", "hit ratios by those alone", "the goals of fig12"):
        assert said in tables, said
    found = measures_of(folder / "q")
    own, other = (found[f"fig14b/{one}/overall"] for one in ("soft-qos", "shared"))
    assert found["fig14b/beside/soft-qos, shared/hit ratio"] == pytest.approx(own / other)
    assert 0 <= found["all/goals met/mixes whose goals fit, all met/soft-qos"] <= 1
    low = tables.index("Goals too low (beyond the paper)")
    met = tables.index("### Goals met")
    assert "3 of 3" in tables[met : tables.index("###", met + 10)]
    assert "0.1" in tables[low:]
    assert "hit ratio" in answer.out
    assert command(*words, "--threads", "1").out == answer.out


def test_a_mix_that_cannot_be_is_refused(folder: Path) -> None:
    own = folder / "specs" / "soft-qos"
    shutil.copytree(SPECS / "soft-qos", own)
    figure = (own / "fig7a.toml").read_text()
    (own / "fig7a.toml").write_text(figure.replace('app = "scan"', 'app = "scam"'))
    with pytest.raises(SpecError, match="`app`: found `scam`, expected one of lu, oltp"):
        reproduce.load("soft-qos", None, quick=True, specs=folder / "specs")
    (own / "fig7a.toml").write_text(figure.replace('"mix"', '"pie"'))
    with pytest.raises(SpecError, match="`shows`: found `pie`, expected one of mix"):
        reproduce.load("soft-qos", None, quick=True, specs=folder / "specs")
    setup = (own / "setup.toml").read_text()
    (own / "setup.toml").write_text(setup.replace('study = "mixes"', 'study = "mixed"'))
    with pytest.raises(SpecError, match="`study`: found `mixed`, expected one of write-amp"):
        reproduce.load("soft-qos", None, quick=True, specs=folder / "specs")


def test_tenants_kept_apart_run_under_every_layout(folder: Path, command: Command) -> None:
    words = ["reproduce", "oc-cache", "--quick", "--specs", SPECS, "--out", "o"]
    answer = command(*words)
    assert answer.status == 0, answer.err
    assert "no reproduction" in answer.err
    page = (folder / "o" / "index.html").read_text()
    for said in (
        "The drive alone reads",
        "throughput over time",
        "cache held over time",
        "2.4 times",
    ):
        assert said in page, said
    tables = (folder / "o" / "tables.md").read_text()
    for layout in ("shared-cache", "flashblox", "oc-cache"):
        assert len([row for row in tables.splitlines() if row.startswith(f"| {layout} | ")]) >= 4
    assert "| dss (noisy) | oc-cache |" in tables
    base = [row for row in tables.splitlines() if row.startswith("| flashblox | ")]
    assert sum("| 1.00 |" in row or "| **1.00** |" in row for row in base) == 7, "by itself it is 1"
    found = measures_of(folder / "o")
    own, other = (found[f"fig4/{one}/isolation"] for one in ("oc-cache", "shared-cache"))
    quotient = found["fig4/beside/oc-cache/isolation by shared-cache"]
    assert quotient == pytest.approx(own / other)
    for said in ("what tenants require", "C_v by shared-cache's", "harmonic mean"):
        assert said in tables, said
    assert (folder / "o" / "fig3" / "oc-cache-1" / "throughput.parquet").is_file()
    again = command(*words, "--threads", "1")
    assert again.out == answer.out


def test_specs_of_tenants_kept_apart_are_checked(folder: Path) -> None:
    own = folder / "specs" / "oc-cache"
    shutil.copytree(SPECS / "oc-cache", own)

    def refused(old: str, new: str, why: str) -> None:
        text = (own / "fig3.toml").read_text()
        (own / "fig3.toml").write_text(text.replace(old, new, 1))
        with pytest.raises(SpecError, match=why):
            reproduce.load("oc-cache", None, quick=True, specs=folder / "specs")
        (own / "fig3.toml").write_text(text)

    refused('app = "lu"', 'app = "lx"', "`app`: found `lx`, expected one of dss, file, lu, web")
    refused("seeds = 2", 'layouts = ["x"]', "`layouts`: found `x`, expected one of flashblox")


def test_mixes_in_a_drive_run_under_every_scheme(folder: Path, command: Command) -> None:
    pytest.importorskip("jax")
    pytest.importorskip("sklearn")
    words = ["reproduce", "icache", "--quick", "--specs", SPECS, "--out", "i"]
    answer = command(*words)
    assert answer.status == 0, answer.err
    assert "no reproduction" in answer.err
    page = (folder / "i" / "index.html").read_text()
    for said in ("Interference", "-42 % vs shared", "Features that models see", "70.7 KB"):
        assert said in page, said
    tables = (folder / "i" / "tables.md").read_text()
    mean = next(line for line in tables.splitlines() if line.startswith("| mix | tenants | shared"))
    schemes = ["shared", "equal", "costpi", "justitia", "mlcache", "icache", "icache-x", "hull"]
    assert mean.split("| ")[3:] == [f"{one} " for one in schemes[:-1]] + [f"{schemes[-1]} |"]
    for scheme in schemes:
        assert len([row for row in tables.splitlines() if row.startswith(f"| {scheme} |")]) == 1
    assert "= equal |" in tables, "costpi with two tenants"
    assert "| all mixes |" not in tables, "groups are never pooled"
    bounds = [row for row in tables.splitlines() if row.startswith("| mix |") and "opt" in row]
    assert len(bounds) == 3, "by max slowdown, response and tail"
    for said in ("half speed, requests/s", "label: K from a cache switched off", "updated every 4"):
        assert said in tables, said
    assert "the paper's icache" in tables
    assert "fig11/max, beside/2 tenants, icache/beside shared" in measures_of(folder / "i")
    assert "| seed 1 | seed 2 |" in tables
    for kind in ("forest", "mlp", "lstm", "the last label", "MBP", "OAP", "10 min"):
        assert f"| {kind} |" in tables or kind == "10 min", kind
    assert "rank correlation" in answer.out
    judged = [row for row in tables.splitlines() if row.startswith("| oltp | web | 0.")]
    assert len(judged) == 1, "a model on a volume that did not train it"
    kept = sorted((folder / "i" / "models").iterdir())
    times = [path.stat().st_mtime_ns for path in kept]
    again = command(*words, "--threads", "1")
    assert again.out == answer.out
    assert [path.stat().st_mtime_ns for path in kept] == times, "nothing is trained twice"


def test_one_figure_of_mixes_in_a_drive_runs_alone(folder: Path, command: Command) -> None:
    words = ["reproduce", "icache", "fig1", "--quick", "--specs", SPECS, "--out", "i"]
    answer = command(*words)
    assert answer.status == 0, answer.err
    assert not (folder / "i" / "models").exists()
    assert answer.out.count("Mix 11") == 2, "among the mixes, in its row"


def test_mixes_in_a_drive_that_cannot_be_are_refused(folder: Path) -> None:
    own = folder / "specs" / "icache"
    shutil.copytree(SPECS / "icache", own)

    def refused(file: str, old: str, new: str, message: str) -> None:
        text = (own / file).read_text()
        (own / file).write_text(text.replace(old, new))
        with pytest.raises(SpecError, match=message):
            reproduce.load("icache", None, quick=True, specs=folder / "specs")
        (own / file).write_text(text)

    refused("setup.toml", '"web", "web"', '"web", "wbe"', "`tenants`: found `wbe`, expected one")
    refused("setup.toml", 'model = "icache"', 'model = "x"', "`model`: found `x`, expected one of")
    refused("fig1.toml", '"shared"', '"all"', "`schemes`: found `all`, expected one of costpi")
    refused("fig1.toml", '"interference"', '"pie"', "`shows`: found `pie`, expected one of")
    refused("elsewhere.toml", '["oltp", "web"]', '["oltp"]', "`pairs`: found .*, expected two")
    refused("elsewhere.toml", '["oltp", "web"]', '["oltp", "x"]', "`pairs`: found `x`, expected")
    refused("mqsim.toml", '"mqsim"', '"disksim"', "`machine`: found `disksim`, expected one of")


def test_static_divisions_are_all_that_there_are() -> None:
    what = reproduce.load("icache", "bounds", quick=True, specs=SPECS)
    assert isinstance(what, DriveMixes)
    [figure] = what.figures
    [mix] = figure.mixes
    assert figure.splits(mix) == [(one, 10 - one) for one in range(1, 10)]
    four = drive_specs.Mix("four", mix.members * 2)
    assert len(figure.splits(four)) == 10
    assert all(sum(split) == 6 and min(split) == 1 for split in figure.splits(four))
    three = drive_specs.Mix("three", (*mix.members, mix.members[0]))
    assert len(set(figure.splits(three))) == 10
    five = drive_specs.Mix("five", (*four.members, mix.members[0]))
    assert figure.splits(five) == [], "no parts are said for five"


def test_times_of_traces_are_stretched_with_them() -> None:
    what = reproduce.load("icache", "loads", quick=True, specs=SPECS)
    assert isinstance(what, DriveMixes)
    [figure] = what.figures
    half, own = (setting for _, setting in figure.settings)
    assert (half.time_scale, own.time_scale) == (2.0, 1.0)
    stacks = [what._alone(setting, "oltp") for setting in (half, own)]
    for keys in (("replay", "interval"), ("replay", "warmup")):
        first, second = (int(stack[keys[0]][keys[1]].removesuffix("ns")) for stack in stacks)
        assert first == 2 * second > 0, keys
    tenants = [stack["tenant"][0] for stack in stacks]
    assert [one["time_scale"] for one in tenants] == [2.0, 1.0]
    assert tenants[0]["stop"] == "12000000000ns"
    assert tenants[1]["stop"] == "6000000000ns"


def test_a_range_leaves_out_one_mix_at_a_time() -> None:
    assert left_out([1.0, 4.0, 16.0], geometric) == pytest.approx((2.0, 8.0))
    assert left_out([3.0, 5.0], geometric) == pytest.approx((3.0, 5.0))
    assert (geometric([0.0, 4.0]), geometric([])) == (0.0, 0.0), (
        "a mix in which nothing is answered"
    )


def test_ranks_agree_whatever_the_values() -> None:
    assert rank_correlation([1, 2, 3], [10, 200, 201]) == 1.0
    assert rank_correlation([1, 2, 3], [3, 2, -5]) == -1.0
    assert rank_correlation([1, 1, 1], [1, 2, 3]) == 0.0
    assert rank_correlation([1, 2, 2], [1, 2, 3]) == pytest.approx(0.866, abs=1e-3)


def test_jobs_answer_in_order_and_stop_together() -> None:
    assert jobs.each("s", [lambda _: 1, lambda _: 2, lambda _: 3], 2) == [1, 2, 3]
    told: list[tuple[str, int, int | None]] = []

    def progress(stage: str, done: int, total: int | None) -> None:
        told.append((stage, done, total))

    jobs.each("s", [lambda _: 1, lambda _: 2], 1, progress)
    assert told == [("s, 2 jobs, percent", 50, 100), ("s, 2 jobs, percent", 100, 100)]

    def long(news: Progress) -> int:
        news("first", 1, 2)
        news("second", 1, 4)
        news("unknown", 7, None)
        return 1

    told.clear()
    jobs.each("s", [long, lambda _: 2], 1, progress)
    assert [percent for _, percent, _ in told] == [25, 25, 25, 50, 100], "a share never falls"

    def fails(_news: object) -> int:
        raise SpecError("no such thing")

    with pytest.raises(SpecError, match="no such thing"):
        jobs.each("s", [lambda _: 1, fails, lambda _: 3], 1)
    with pytest.raises(RunError, match="cancelled"):
        jobs.each("s", [lambda _: 1, lambda _: 2], 1, lambda *_: False)


def test_segments_are_cut_otherwise_than_they_were_measured(folder: Path) -> None:
    rng = np.random.default_rng(1)
    tenant = TenantSegments(
        "a",
        features=rng.random((12, 4), dtype=np.float32),
        requests=rng.integers(0, 9, 12).astype(np.uint32),
        response_ns=rng.random((5, 12)),
        hits=rng.integers(0, 9, (5, 12)).astype(np.uint32),
        accesses=rng.integers(0, 9, 12).astype(np.uint32),
        reuse=rng.integers(0, 9, (3, 10)).astype(np.uint32),
    )
    whole = Segments(400, 100, 7, [tenant])
    recut.write(whole, folder / "a.npz")
    kept = recut.read(folder / "a.npz", "a")
    assert (kept.interval_ns, kept.step_ns, kept.capacity_blocks) == (400, 100, 7)
    for key in recut.ARRAYS:
        assert np.array_equal(getattr(kept.tenants[0], key), getattr(tenant, key)), key
    half = recut.coarser(whole, 2).tenants[0]
    assert np.array_equal(half.response_ns, tenant.response_ns[[0, 2, 4]])
    assert np.array_equal(half.hits, tenant.hits[[0, 2, 4]])
    assert recut.regrouped(whole, 4) is whole
    longer = recut.regrouped(whole, 5)
    assert longer.interval_ns == 500
    assert len(longer.tenants[0].features) == 10, "two whole intervals"
    assert len(longer.tenants[0].reuse) == 2
    shorter = Segments(
        400, 100, 7, [dataclasses.replace(tenant, reuse=tenant.reuse[:2], **_first(tenant, 8))]
    )
    both = recut.together(["x", "y"], [whole, shorter])
    assert [one.name for one in both.tenants] == ["x", "y"]
    assert list(both.tenants[0].requests) == [
        tenant.requests[at : at + 4].sum() for at in (0, 4, 8)
    ]
    assert both.tenants[1].requests[2] == 0
    assert np.array_equal(both.tenants[1].reuse[:2], tenant.reuse[:2])
    assert not both.tenants[1].reuse[2].any()
    assert both.tenants[0].hits.shape == both.tenants[1].hits.shape == (5, 3)


def _first(tenant: TenantSegments, steps: int) -> dict[str, Any]:
    return {
        "features": tenant.features[:steps],
        "requests": tenant.requests[:steps],
        "accesses": tenant.accesses[:steps],
        "response_ns": tenant.response_ns[:, :steps],
        "hits": tenant.hits[:, :steps],
    }


def test_what_does_not_exist_is_refused(folder: Path, command: Command) -> None:
    answer = command("reproduce", "shiro", "fig77", "--quick", "--specs", SPECS)
    assert answer.status == 2
    assert "found figure `fig77`, expected one of fig1, fig7, alibaba, fig7-live" in answer.err
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
