"""Volumes on hosts: hand-worked packings, a slow model beside the search, and whole plans.

For: `plan --fleet`. Units: blocks.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from conftest import fits_schema
from hypothesis import given, settings
from hypothesis import strategies as st

from cachewright import Error, api
from cachewright.answers import FleetPlanAnswer
from cachewright.cli import status_of
from cachewright.documents import load
from cachewright.fleet.placement import fleet_file, greedy, moves, spare
from cachewright.fleet.placement.demand import Curve, Demand, needed
from cachewright.fleet.placement.fleet_file import Volume
from cachewright.fleet.placement.problem import (
    ALONE,
    NO_LIMIT,
    Problem,
    fewest_hosts,
    least_peak,
    too_large,
)

pytest.importorskip("ortools", reason="skipped: no solver (the extra `fleet` is not installed)")

from cachewright.fleet.placement.planning import plan_fleet
from cachewright.fleet.placement.search import Effort, least_flash, least_hosts
from cachewright.tables import placement

ROOT = Path(__file__).resolve().parents[2]
QUICK = Effort(gap=0.0, rounds=20, work=0.5)


def problem(needs, hosts, *, limits=None, groups=None, windows=1):
    needs = np.array(needs, dtype=np.int64)
    limits = [NO_LIMIT] * needs.shape[1] if limits is None else limits
    groups = [ALONE] * len(needs) if groups is None else groups
    names = tuple(["flash"] * windows + ["requests"] * (needs.shape[1] - windows))
    return Problem(needs, np.array(limits), np.array(groups), windows, hosts, names)


def exhaustive(given: Problem) -> int | None:
    """Return the least peak of all packings within the limits, one by one."""
    found = [
        given.peak(np.array(assigned))
        for assigned in product(range(given.hosts), repeat=len(given.needs))
        if not given.broken(np.array(assigned))
    ]
    return min(found, default=None)


def test_loads_bounds_and_what_is_broken_by_hand():
    three = problem([[4, 10], [3, 10], [2, 10]], 2, limits=[NO_LIMIT, 20], groups=[0, 0, ALONE])
    assert three.loads(np.array([0, 1, 1])).tolist() == [[4, 10], [5, 20]]
    assert three.peak(np.array([0, 1, 1])) == 5
    assert three.broken(np.array([0, 1, 1])) == []
    assert three.broken(np.array([0, 0, 0])) == ["requests", "group"]
    # Nine blocks on two hosts; the largest is four; two of three volumes share a host: 3 + 2.
    assert least_peak(three) == 5
    assert fewest_hosts(three) == 2
    assert too_large(problem([[5], [9]], 1, limits=[8])) == [(1, "flash")]


def test_first_fit_takes_the_first_host_with_room():
    four = problem([[5], [4], [3], [2]], 2)
    assert greedy.first_fit(four, 7).tolist() == [0, 1, 1, 0]
    assert greedy.first_fit(four, 6).tolist() == [0, 1, greedy.NOWHERE, 1]
    assert greedy.least_first_fit(four, least_peak(four)) == 7


def test_equal_peaks_at_other_times_share_a_host():
    # Two volumes by day and two by night: a pair of each needs half of two alike.
    four = problem([[8, 1], [8, 1], [1, 8], [1, 8]], 2, windows=2)
    found = least_flash(four, QUICK)
    assert (found.peak, found.bound, found.gap) == (9, 9, 0.0)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_search_finds_what_all_packings_have(data):
    volumes, hosts = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 3))
    windows, others = data.draw(st.integers(1, 2)), data.draw(st.integers(0, 1))
    row = st.lists(st.integers(0, 20), min_size=windows + others, max_size=windows + others)
    needs = data.draw(st.lists(row, min_size=volumes, max_size=volumes))
    groups = data.draw(st.lists(st.sampled_from([ALONE, 0]), min_size=volumes, max_size=volumes))
    limits = [NO_LIMIT] * windows + [30] * others
    given_ = problem(needs, hosts, limits=limits, groups=groups, windows=windows)
    best = exhaustive(given_)
    found = least_flash(given_, QUICK)
    if best is None:
        assert given_.broken(found.assigned)
        return
    assert given_.broken(found.assigned) == []
    assert least_peak(given_) <= best <= found.peak
    # Needs are rounded up to millionths of the bound, and all hosts may be solved at once.
    assert found.peak == best
    fewest = least_hosts(given_, best, QUICK)
    assert fewest is not None
    assert fewest[1] <= len(set(fewest[0].assigned.tolist())) <= hosts


def test_the_same_problem_gives_the_same_packing():
    random = np.random.default_rng(5)
    many = problem(random.integers(1, 1000, (60, 4)).tolist(), 7, windows=4)
    one, two = (least_flash(many, Effort(rounds=5, work=0.2)) for _ in range(2))
    assert one.assigned.tolist() == two.assigned.tolist()
    assert one.gap < 0.05


def test_a_dead_host_moves_its_volumes_alone_and_growth_the_least():
    four = problem([[5], [4], [3], [2]], 3, limits=[9])
    placed = np.array([0, 1, 2, 2])
    dead = moves.repaired(four, placed, dead=2)
    assert dead is not None
    assert dead.assigned[:2].tolist() == [0, 1]
    assert (sorted(dead.moved), dead.blocks) == ([2, 3], 5)
    assert not four.broken(dead.assigned)
    # Beyond 9 blocks on host 0: the smaller one moves, and only that.
    grown = moves.repaired(problem([[6], [4], [3], [2]], 3, limits=[9]), np.array([0, 0, 1, 2]))
    assert grown is not None
    assert (grown.moved, grown.blocks) == ((1,), 4)
    assert moves.repaired(problem([[9], [9]], 2, limits=[9]), np.array([0, 1]), dead=0) is None


def test_groups_stay_apart_when_volumes_move():
    three = problem([[2], [2], [2]], 3, limits=[6], groups=[0, 0, ALONE])
    moved = moves.repaired(three, np.array([0, 1, 2]), dead=0)
    assert moved is not None
    assert moved.assigned.tolist() == [2, 1, 2]


def curve(hits, accesses, sizes=(0, 10, 20, 40)):
    return Curve(np.array(sizes), np.array(hits, dtype=np.float64), accesses, 0, 100)


def test_needs_are_read_off_curves():
    whole = curve([[0, 50, 80, 90]], 100)
    assert [int(needed(whole, goal, 1, 100)[0][0]) for goal in (0.0, 0.5, 0.51, 0.9)] == [
        0,
        10,
        20,
        40,
    ]
    blocks, reached = needed(whole, 0.95, 1, 100)
    assert (blocks.tolist(), reached) == ([40], False)
    # By day all hits need 20 blocks, by night 10 give them all; night begins with what day had.
    halves = curve([[0, 10, 45, 45], [0, 40, 40, 40]], 100)
    assert needed(halves, 0.8, 2, 100)[0].tolist() == [20, 10]
    turned = curve([[0, 40, 40, 40], [0, 10, 45, 45]], 100)
    assert needed(turned, 0.8, 2, 100)[0].tolist() == [20, 20]


def test_spare_flash_goes_where_the_hull_rises_most():
    volume = Volume("v", {}, None, None, 0)
    steep = Demand(volume, curve([[0, 10, 70, 71]], 100), np.array([10]), True)
    flat = Demand(volume, curve([[0, 30, 40, 50]], 100), np.array([10]), True)
    assert spare.quotas([steep, flat], 25) == [15, 10]
    assert spare.quotas([steep, flat], 35) == [20, 15]
    assert spare.quotas([steep, flat], 1000) == [40, 40]


FLEET = """
name = "fleet"
tenants = "volumes.csv"

[cache]
block = "4KiB"

[hosts]
count = 2
{more}

[[tenant]]
name = "mail"
trace = "{data}/mail.csv.zst"
goal_hit_ratio = 0.5
group = "a"
"""
VOLUMES = """name,trace,goal_hit_ratio,group
web,{data}/web.csv.zst,0.4,a
7,{data}/lu.csv.zst,0.3,
"""


def fleet(folder: Path, more: str = "") -> Path:
    data = ROOT / "data"
    (folder / "volumes.csv").write_text(VOLUMES.format(data=data))
    file = folder / "fleet.toml"
    file.write_text(FLEET.format(data=data, more=more))
    return file


def test_a_plan_keeps_its_goals_when_its_stacks_are_run(tmp_path):
    file = fleet(tmp_path, "max_iops = 1000000")
    found = plan_fleet(file, grow={"7": 0.5}, replay=True, out=tmp_path / "out", threads=1)
    assert [one.name for one in found.volumes] == ["mail", "web", "7"]
    assert found.volumes[0].host != found.volumes[1].host, "one group"
    assert found.flash_blocks >= found.bound_blocks > 0
    assert found.replayed[0].goals_met == 3
    assert found.changes[-1].what == "growth of 7 by 50.0%"
    stacks = sorted((tmp_path / "out" / "hosts").glob("*.toml"))
    met = [one for s in stacks for one in api.run(s).answer.cases[0].tenants]
    assert len(met) == 3
    assert all(one.goal_met for one in met)
    planned = {one.name: one for one in found.volumes}
    for one in met:
        assert one.quota_blocks == planned[one.name].blocks
        assert one.hit_ratio == pytest.approx(planned[one.name].hit_ratio, abs=0.005)
    document = json.loads((tmp_path / "out" / "fleet.json").read_text())
    fits_schema("FleetPlanAnswer", document)
    assert load(FleetPlanAnswer, document) == found
    said = placement.conclusion(found)
    assert "cannot be met" not in said
    missed = replace(found, volumes=(replace(found.volumes[0], reached=False), *found.volumes[1:]))
    assert "each. No plan needs" in said
    assert " 1 of 3 goals cannot be met by any size. " in placement.conclusion(missed)
    titles = [table.title for table in placement.tables(missed)]
    assert "flash per host with which all goals that can be met are met" in titles
    again = plan_fleet(file, grow={"7": 0.5}, replay=True, threads=2)
    assert again == found, "the answer does not depend on threads"
    with pytest.raises(Error, match="--force"):
        plan_fleet(file, out=tmp_path / "out")


def test_peaks_make_scheduled_stacks_that_keep_goals_with_less_flash(tmp_path):
    spec = tmp_path / "synth.toml"
    for name, seed in (("a", 1), ("b", 2), ("c", 3), ("d", 4)):
        spec.write_text(
            f'[synth]\nseed = {seed}\n[[tenant]]\nname = "{name}"\ncount = 10_000\n'
            'arrival = { kind = "poisson", rate = "200/s" }\n'
            'read_share = 0.5\nsize = "4KiB"\n'
            'pattern = { kind = "zipf", span = "16MiB", alpha = 0.8 }\n'
        )
        assert status_of(["trace", "synth", str(spec), str(tmp_path / f"{name}.parquet")]) == 0
    tenants = "".join(
        f'[[tenant]]\nname = "{name}"\ntrace = "{name}.parquet"\ngoal_hit_ratio = 0.6\n'
        f'start = "{start}s"\n'
        for name, start in (("a", 0), ("b", 0), ("c", 70), ("d", 70))
    )
    sizes = []
    for peaks in (1, 12):
        file = tmp_path / f"fleet{peaks}.toml"
        file.write_text(f'[replay]\nclock = "own"\n[hosts]\ncount = 2\npeaks = {peaks}\n{tenants}')
        found = plan_fleet(file, replay=True, out=tmp_path / f"out{peaks}")
        assert found.replayed[0].goals_met == 4, found.replayed[0].missed
        sizes.append(found.flash_blocks)
    assert sizes[1] < 0.75 * sizes[0]
    stack = tomllib.loads((tmp_path / "out12/hosts/host-0.toml").read_text())
    assert stack["cache"]["partition"] == "scheduled"
    assert len(stack["tenant"][0]["schedule"]) == 12


def test_given_flash_asks_for_the_fewest_hosts(tmp_path):
    file = fleet(tmp_path, 'flash = "1GiB"\nreserve = "10%"\ndrive_writes_per_day = 1e6')
    found = plan_fleet(file)
    assert (found.flash_given, found.hosts) == (True, 2), "a group of two"
    fits = [change for change in found.changes if change.fits]
    assert not fits, "a group of two does not fit on one host"
    assert any("writes" in note for note in found.notes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[tenant]]\nname='a'\ntrace='a.csv'\n", "`[hosts]`"),
        ("[hosts]\ncount = 2\n", "found no volume"),
        ("[hosts]\ncount = 0\n", "`hosts.count`: found 0"),
        ("[hosts]\ncount = 2\nflesh = 3\n", "`hosts.flesh`: found an unknown key"),
        ("[hosts]\nflash = '1GiB'\n", "found no `hosts.count`"),
        ("[hosts]\ncount = 1\ndrive_writes_per_day = 1\n", "found no `hosts.flash`"),
        ("tenants = 'none.csv'\n[hosts]\ncount = 1\n", "`tenants`: cannot read"),
        ("tenants = 3\n[hosts]\ncount = 1\n", "expected a file, .csv or .parquet"),
        ("[cache]\ncapacity = '1GiB'\n[hosts]\ncount = 1\n[[tenant]]\ntrace='a'", "it is planned"),
        ("[hosts]\ncount = 1\n[[tenant]]\nname='a'\ntrace='a'\ngoal_hit_ratio=3", "goal_hit_ratio"),
    ],
)
def test_wrong_fleet_files_are_refused_by_file_and_key(tmp_path, text, expected):
    file = tmp_path / "fleet.toml"
    file.write_text(text)
    with pytest.raises(Error) as refused:
        fleet_file.read_fleet(file)
    assert str(file) in str(refused.value)
    assert expected in str(refused.value)


def test_too_little_is_said_by_volume_and_dimension(tmp_path):
    with pytest.raises(Error, match=r"volume `.*` needs more flash than a host has"):
        plan_fleet(fleet(tmp_path, 'flash = "16MiB"'))


def test_the_command_shows_tables_and_refuses_what_belongs_to_one_cache(tmp_path, capsys):
    file = str(fleet(tmp_path))
    assert status_of(["plan", file, "--fleet", "--grow", "10%"]) == 0
    shown = capsys.readouterr().out
    texts = (
        "this plan",
        "first fit",
        "host-0 dies",
        "growth of all by 10.0%",
        "No plan needs less",
    )
    for text in texts:
        assert text in shown
    assert status_of(["plan", file, "--fleet", "--csv"]) == 0
    assert capsys.readouterr().out.startswith("name,host,group,goal_hit_ratio")
    assert status_of(["plan", file, "--fleet", "--set", "a=b"]) == 2
    assert status_of(["plan", file, "--grow", "10%"]) == 2
    assert "--grow: found no `--fleet`" in capsys.readouterr().err
    assert status_of(["plan", file, "--fleet", "--grow", "nine"]) == 2
