"""Tables of reproduced papers on cases written by hand: idle tenants, seeds, static divisions.

For: what the kinds of studies show. Must never know: replays,
devices.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from filled import filled

from cachewright import SpecError, words
from cachewright.answers import AmplificationAnswer, AmplificationCase, Case, Classifier
from cachewright.train.reports import CachingReport, TenantReport
from cachewright_lab import reproduce
from cachewright_lab.report.tables import Table
from cachewright_lab.reproduce import amplified, caching, drive_figures, mixes
from cachewright_lab.reproduce.amplified import Amplified
from cachewright_lab.reproduce.drive_mixes import BASE, Asked, DriveMixes, Outcome, _folder
from cachewright_lab.reproduce.drive_specs import DriveFigure, Mix, Scheme
from cachewright_lab.reproduce.imitators import Imitator
from cachewright_lab.reproduce.mixes import Mixes
from cachewright_lab.reproduce.taught import Lessons, Taught

SPECS = Path(__file__).resolve().parents[1] / "papers"


def drive(name: str) -> tuple[DriveMixes, DriveFigure]:
    """Return a figure of icache, nothing run."""
    what = reproduce.load("icache", name, quick=True, specs=SPECS)
    assert isinstance(what, DriveMixes)
    [figure] = what.figures
    return what, figure


def outcome(*means: float) -> Outcome:
    """Return a replay of tenants that wait so long, alone 1 us; 0 is a tenant without requests."""
    tenants = [{"mean_ns": one, "max_ns": int(one), "requests": int(one > 0)} for one in means]
    return Outcome(filled(Case, {"timing": {"tenants": tenants}}), tuple(1e3 for _ in means))


def put(what: DriveMixes, figure: DriveFigure, mix: Mix, scheme: Scheme, *found: Outcome) -> None:
    for seed, one in enumerate(found, 1):
        what.outcomes[Asked(figure.setting, mix, scheme, seed)] = one


def test_tenants_without_requests_count_for_nothing() -> None:
    one = outcome(2e3, 0.0, 4e3)
    assert one.slowdown_by_tenant == [2.0, None, 4.0]
    assert (one.slowdowns, one.max_slowdown, one.fairness) == ([2.0, 4.0], 4.0, 0.5)
    assert one.mean() == 3e3
    assert outcome(0.0).mean() == 0.0


def test_the_performance_of_a_tenant_stands_beside_its_own_name() -> None:
    what, figure = drive("fig1")
    for mix in figure.mixes:
        idle = [0.0, *(2e3 for _ in mix.members[1:])]
        put(what, figure, mix, figure.schemes[0], outcome(*idle))
    [table] = drive_figures.shown(what, figure)
    assert isinstance(table, Table)
    assert table.rows[0][:3] == ["Mix 1", "oltp -, web 50.0%", "50.0%"]
    assert table.rows[-1][2:] == ["50.0%", "50.0%", "1.0000"]


def test_a_mix_without_requests_is_shown() -> None:
    what, figure = drive("fig9")
    for mix in figure.mixes:
        for scheme in figure.schemes:
            idle = outcome(*(0.0 for _ in mix.members))
            put(what, figure, mix, scheme, *[idle] * figure.seeds)
    tables = [one for one in drive_figures.shown(what, figure) if isinstance(one, Table)]
    assert {cell.split()[0] for cell in tables[0].rows[0][2:]} == {"0"}
    assert set(tables[1].rows[0][2:]) == {words.NOTHING}, "no change from nothing"


def test_changes_are_beside_all_seeds_of_the_other_scheme() -> None:
    what, figure = drive("summary")
    titles = {scheme.title: scheme for scheme in figure.schemes}
    for mix in figure.mixes:
        for scheme in figure.schemes:
            put(what, figure, mix, scheme, *[outcome(2e3, 2e3)] * 2)
        put(what, figure, mix, titles["icache"], outcome(1e3, 1e3), outcome(3e3, 3e3))
    first = drive_figures.summary_beside(what, figure)[0]
    assert isinstance(first, Table)
    row = next(row for row in first.rows if row[0] == "equal")
    assert row[first.headers.index("beside icache")] == "+0.0%"


def test_every_static_division_keeps_its_own_replay() -> None:
    what, figure = drive("bounds")
    [mix] = figure.mixes
    cases: dict[Asked, Case] = {}
    plain = Asked(what._plain(figure.setting), mix, BASE, 1)
    for number, asked in enumerate([plain, *what.asked()]):
        tenants = [
            {"alone_mean_ns": 1e3, "mean_ns": 2e3 + number, "max_ns": 2000, "requests": 1}
            for _ in asked.mix.members
        ]
        cases[asked] = filled(Case, {"case": number, "timing": {"tenants": tenants}})
    what._keep(cases)
    found = {split: one.case.case for split, one in what.static(figure, mix).items()}
    assert len(found) == 9
    assert len(set(found.values())) == 9, "each its own"
    assert all(what.outcomes[asked].case is cases[asked] for asked in what.asked())
    table = drive_figures.static_bounds(what, figure)[0]
    assert isinstance(table, Table)
    assert table.rows[0][-1] == "10", "nine divisions and the equal one"


def test_bounds_without_a_division_name_none() -> None:
    what, figure = drive("bounds")
    [mix] = figure.mixes
    schemes = tuple(one for one in figure.schemes if one.title != "equal")
    figure = replace(figure, schemes=schemes, about={})
    for scheme in schemes:
        put(what, figure, mix, scheme, outcome(2e3, 2e3))
    table = drive_figures.static_bounds(what, figure)[0]
    assert isinstance(table, Table)
    assert table.rows[0][-3:] == [words.NOTHING, words.NOTHING, "0"]


@pytest.mark.parametrize("figure", ["fig14", "loads", "ablations", "bounds", "retraining"])
def test_no_two_replays_share_a_folder(figure: str) -> None:
    what = reproduce.load("icache", figure, quick=False, specs=SPECS)
    assert isinstance(what, DriveMixes)
    groups = {
        (one.setting, one.mix, one.scheme.model, one.seed, one.split): one for one in what.asked()
    }
    assert len({_folder(one) for one in groups.values()}) == len(groups)


def test_settings_of_one_rule_share_their_models(folder: Path) -> None:
    what = reproduce.load("icache", "ablations", quick=False, specs=SPECS)
    assert isinstance(what, DriveMixes)
    asked: list[tuple[Any, ...]] = []

    class Counted(Lessons):
        def each(self, setting: Any, workload: str, how: Any, progress: Any = None) -> Taught:
            asked.append((self.basis(setting), workload, how))
            return Taught(folder / f"{len(asked)}", filled(TenantReport, {"models": [{}]}))

    lessons = Counted(folder, what._alone, what.setup.workloads, what.common.training)
    what._teach(lessons, 1, None)
    settings = dict(what.figures[0].settings)
    published, spread = (
        what.taught[settings[title], "oltp", "lstm", "1111", 1].path
        for title in ("as published", "rule: what is left is spread")
    )
    assert published == spread
    assert len(asked) == len(set(asked)) == 12, "six settings, two workloads"
    assert len(what.taught) == 14


def test_schemes_that_judged_no_prediction_make_an_empty_table() -> None:
    whole = reproduce.load("shiro", "table5", quick=True, specs=SPECS)
    what = getattr(whole, "parts", {}).get("write-amplification", whole)
    assert isinstance(what, Amplified)
    [figure] = what.figures
    [op] = figure.op
    for workload in what.setup.workloads:
        for drive_ in what.drives():
            what.answers[workload.name, drive_] = filled(AmplificationAnswer, {"looped": True})
        for scheme in figure.schemes:
            key = (workload.name, (("op", op), *figure.drive), scheme.separation, scheme.reclaim)
            what.found[key] = filled(AmplificationCase, {})
    [table] = amplified.shown(what, figure)
    assert isinstance(table, Table)
    assert [row[0] for row in table.rows] == ["paper"]
    assert "to reach 10 drive writes" in amplified.notes(what)[0]


def test_a_share_kept_free_is_of_the_superblocks_there_are() -> None:
    # 1 GiB and 7 % are 1,095 whole superblocks of 1 MiB, of which 5 % are 54.75.
    drive = {"capacity": "1GiB", "superblock": "1MiB", "op": "7%", "reserve": "5%"}
    assert amplified.sized(drive) == {**drive, "reserve": 55}
    assert amplified.sized({**drive, "reserve": 4})["reserve"] == 4
    with pytest.raises(SpecError, match="`reserve`: found `5%` of a drive of no size"):
        amplified.sized({**drive, "capacity": "live"})


def test_lost_accuracy_is_of_traces_that_both_judged() -> None:
    own, base = (
        [None if share is None else filled(Classifier, {"accuracy": share}) for share in shares]
        for shares in ((0.8, None, 0.9), (0.85, 0.7, 0.8))
    )
    assert amplified.lost_accuracy(own, base) == pytest.approx([0.05, -0.1])


def test_a_figure_may_have_traces_of_its_own() -> None:
    whole = reproduce.load("shiro", "alibaba", quick=False, specs=SPECS)
    what = getattr(whole, "parts", {}).get("write-amplification", whole)
    assert isinstance(what, Amplified)
    [figure] = what.figures
    assert [one.name for one in what.traces(figure)] == ["#52", "#177", "#132", "#679"]
    assert all(one.path.is_file() for one in what.traces(figure))
    quick = reproduce.load("shiro", "alibaba", quick=True, specs=SPECS)
    assert [one.name for one in quick.setup.workloads] == ["journal", "hot-cold"]


def test_a_quotient_by_nothing_is_no_number() -> None:
    own, base = (
        filled(Case, {"tenants": [{"hit_ratio": one} for one in ratios]})
        for ratios in ((0.5, 0.6), (0.0, 0.3))
    )
    gains = mixes._gains(own, base)
    assert gains == [None, 2.0]
    known = mixes._known(gains)
    assert [mixes._picked(max, one) for one in (known, [])] == ["2", words.NOTHING]


def test_a_model_has_as_many_weights_as_its_matrices_and_biases() -> None:
    # Four gates of two units see three inputs and two states; five outputs see two units.
    products = 4 * 2 * (3 + 2) + 5 * 2
    assert caching.sizes_of(2, 1, 3) == (products + 2 * 4 * 2 + 5, products)
    deeper = products + 4 * 2 * (2 + 2)
    assert caching.sizes_of(2, 2, 3) == (deeper + 2 * 2 * 4 * 2 + 5, deeper)


def test_windows_before_a_change_are_those_that_end_by_then() -> None:
    own = [caching.Window(10, 0.2), caching.Window(20, 0.4), caching.Window(30, 0.9)]
    assert caching.mean_hits(own, 0, 20) == pytest.approx(0.3)
    assert caching.mean_hits(own, 20, None) == 0.9
    assert caching.mean_hits(own, 30, None) is None


def test_a_trace_has_its_own_time_and_format() -> None:
    what = reproduce.load("rc-rnn", "fig1", quick=True, specs=SPECS)
    part = getattr(what, "parts", {}).get("caching", what)
    assert isinstance(part, caching.Caching)
    assert part.span_ns("mail") == 60 * 10**9, "6 s, ten times as slow"
    mail, oltp = part.workloads
    own = {**mail.table, "time_scale": 1.0, "stop": "50%"}
    part.workloads = [replace(mail, table=own), oltp]
    assert part.span_ns("mail") == 6 * 10**9
    [tenant] = part._stack("mail", 20.0)["tenant"]
    assert (tenant["time_scale"], tenant["stop"]) == (1.0, "50%")


@pytest.mark.parametrize(
    ("name", "scheme", "told"),
    [("table5", "rc-rnn", words.NOTHING), ("told", "rc-rnn, as published", "90.0%")],
)
def test_a_model_that_sees_no_labels_is_told_none(name: str, scheme: str, told: str) -> None:
    what = reproduce.load("rc-rnn", name, quick=True, specs=SPECS)
    part = getattr(what, "parts", {}).get("caching", what)
    assert isinstance(part, caching.Caching)
    [figure] = part.figures
    model = {"forced": {"cached": 0.9}, "own": {"cached": 0.8}}
    report = filled(CachingReport, {"models": [model]})
    for one in figure.schemes:
        for workload in figure.workloads:
            part.models[workload, one.learns] = Imitator(Path("m"), report)
    [table] = caching.shown(part, figure)
    assert isinstance(table, Table)
    row = dict(zip(table.headers, table.rows[0], strict=True))
    assert (row["scheme"], row["workload"]) == (scheme, "mail")
    assert row["cached, told the oracle's labels"] == told
    assert row["cached, as it runs"] == "80.0%"


def test_a_model_that_kept_no_epoch_has_no_best() -> None:
    what = reproduce.load("rc-rnn", "learning", quick=True, specs=SPECS)
    part = getattr(what, "parts", {}).get("caching", what)
    assert isinstance(part, caching.Caching)
    [figure] = part.figures
    model = {"curve": [{"score": 0.5}], "best_epoch": 0, "epochs": 1, "updates": 3}
    report = filled(CachingReport, {"models": [model]})
    for scheme in figure.schemes:
        for name in figure.workloads:
            part.models[name, scheme.learns] = Imitator(Path("m"), report)
    table = caching.learning(part, figure, "t")[0]
    assert isinstance(table, Table)
    row = dict(zip(table.headers, table.rows[0], strict=True))
    assert (row["epoch 1"], row["best"], row["best epoch"]) == ("0.5000", words.NOTHING, "0")


def test_the_smallest_cache_is_the_first_in_which_all_goals_are_met() -> None:
    what = reproduce.load("soft-qos", "sizes-i", quick=True, specs=SPECS)
    assert isinstance(what, Mixes)
    [figure] = what.figures
    # In caches of 48 to 128 MiB, by a 64th: shared meets both goals from the third on, soft-qos
    # from the second on, soft-qos-x never.
    met = {"shared": [1, 1, 2, 2], "soft-qos": [1, 2, 2, 2], "soft-qos-x": [1, 1, 1, 1]}
    cases = [
        filled(
            Case,
            {
                "capacity_blocks": int(size) * 4,
                "block_bytes": 4096,
                "total": {"goals": 2, "goals_met": met[division.title][at]},
            },
        )
        for at, size in enumerate(figure.sizes)
        for division in figure.divisions
    ]
    result = SimpleNamespace(answer=SimpleNamespace(cases=cases))
    what.found[figure.name] = mixes.Found(result=cast("Any", result))
    smallest, by_size = mixes.shown(what, figure)
    assert isinstance(smallest, Table)
    assert isinstance(by_size, Table)
    assert smallest.rows == [
        ["shared", "1.5MiB", "1"],
        ["soft-qos", "1MiB", "1.5"],
        ["soft-qos-x", "none of these", "0"],
    ]
    assert by_size.rows[1] == ["1MiB", "1 of 2", "2 of 2", "1 of 2"]
