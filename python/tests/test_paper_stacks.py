"""The stack of each paper: typed by the paper's name, it runs the paper's own scheme.

For: `specs/PAPER.toml`, and the models in `data/models`. Must
never know: figures, and whether a scheme is any good. Replays are cut short, but for those that say
what models may have seen.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import Command

import cachewright
from cachewright.answers import Case, Timing

ROOT = Path(__file__).resolve().parents[2]
SPECS, DATA = ROOT / "specs", ROOT / "data"
MODELS = DATA / "models"
LARGEST_MODEL = 100_000
"""Bytes of a bundled model at most."""

TRAINED = 0.6
"""The share of a replay, or of its requests, that models are trained on."""

PUBLISHED: dict[str, dict[str, Any]] = {
    "icache": {"cache.partition.name": "icache"},
    "oc-cache": {
        "cache.policy.name": "oc-smq",
        "cache.layout.name": "on-demand",
        "cache.partition.name": "hull",
        "cache.partition.ahead": True,
        "cache.partition.own_policy": True,
        "cache.partition.by_ratio": True,
    },
    "rc-rnn": {"cache.policy.name": "rc-rnn"},
    "shiro": {
        "device.ssd.separation": "shiro",
        "device.ssd.reclaim": "adjusted-greedy",
    },
    "soft-qos": {"cache.partition.name": "soft-qos"},
}
"""What makes a stack the published scheme, by key of the checked stack."""

PAPERS = sorted(PUBLISHED)

SHORT: dict[str, dict[str, str]] = {
    "icache": {"replay.stop": "8s", "replay.interval": "500ms", "replay.warmup": "1s"},
    "oc-cache": {
        "replay.stop": "600ms",
        "replay.warmup": "200ms",
        "replay.throughput_window": "100ms",
    },
    "rc-rnn": {"replay.stop": "90s", "replay.warmup": "60s"},
    "shiro": {"replay.stop": "3s"},
    "soft-qos": {
        "replay.stop": "6s",
        "replay.interval": "500ms",
        "replay.profile_share": "0.02",
    },
}
"""Settings that cut a replay short."""


PLAIN = (("device.ssd.separation", "none"),)


def path_of(paper: str) -> Path:
    """Return the stack of a paper."""
    return SPECS / f"{paper}.toml"


def value(document: dict[str, Any], key: str) -> Any:
    """Return what stands at a dotted key."""
    found: Any = document
    for part in key.split("."):
        found = found[part]
    return found


@cache
def short(paper: str, more: tuple[tuple[str, str], ...] = ()) -> Case:
    """Run a paper's stack cut short, once for all tests, and return its only case."""
    settings = {**SHORT[paper], **dict(more)}
    return only(cachewright.run(path_of(paper), settings=settings, threads=1))


def only(result: cachewright.Result) -> Case:
    """Return the only case of a result."""
    (case,) = result.answer.cases
    return case


def timed(case: Case) -> Timing:
    """Return what a case on devices measured."""
    assert case.timing is not None
    return case.timing


def files(table: Any) -> Iterator[str]:
    """Give every text in a stack that names a file below another folder."""
    if isinstance(table, dict):
        for item in table.values():
            yield from files(item)
    elif isinstance(table, list):
        for item in table:
            yield from files(item)
    elif isinstance(table, str) and "/" in table:
        yield table


def header_commands(paper: str) -> list[list[str]]:
    """Return the commands that the comment at the head of a stack offers, as words."""
    lines = path_of(paper).read_text().splitlines()
    head = lines[: next(at for at, line in enumerate(lines) if not line.startswith("#"))]
    text = "\n".join(line.removeprefix("#").strip() for line in head).replace("\\\n", "")
    found = [line for line in text.splitlines() if line.startswith("cachewright ")]
    return [shlex.split(line, comments=True)[1:] for line in found]


@pytest.mark.parametrize("paper", PAPERS)
def test_a_stack_has_the_name_of_its_paper(paper: str) -> None:
    assert cachewright.check(path_of(paper))["name"] == paper


@pytest.mark.parametrize("paper", PAPERS)
def test_a_stack_is_the_published_scheme(paper: str) -> None:
    checked = cachewright.check(path_of(paper))
    found = {key: value(checked, key) for key in PUBLISHED[paper]}
    assert found == PUBLISHED[paper]


@pytest.mark.parametrize("paper", PAPERS)
def test_a_stack_reads_bundled_files_only(paper: str) -> None:
    named = list(files(tomllib.loads(path_of(paper).read_text())))
    assert named
    for name in named:
        path = (SPECS / name).resolve()
        assert path.is_file()
        assert path.is_relative_to(DATA)


def test_bundled_models_are_small_and_used_and_told_of() -> None:
    readme = (DATA / "README.md").read_text()
    used = {name for paper in PAPERS for name in files(tomllib.loads(path_of(paper).read_text()))}
    models = sorted(MODELS.iterdir())
    assert models
    for model in models:
        assert model.stat().st_size <= LARGEST_MODEL
        assert f"../data/models/{model.name}" in used
        assert f"`{model.name}`" in readme


@pytest.mark.parametrize("paper", PAPERS)
def test_a_stack_runs_and_hits(paper: str) -> None:
    case = short(paper)
    assert 0 < case.total.hit_ratio < 1
    assert timed(case).total.mean_ns > 0
    assert all(tenant.accesses > 0 for tenant in case.tenants)


@pytest.mark.parametrize("paper", PAPERS)
def test_the_commands_of_a_header_run(
    paper: str, command: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered = header_commands(paper)
    assert offered
    assert any(words[0] == "compare" for words in offered)
    monkeypatch.chdir(ROOT)
    for words in offered:
        assert words[1] == f"specs/{paper}.toml"
        cut = [f"--set={key}={text}" for key, text in SHORT[paper].items()]
        brief = ["--drive-writes=0.2"] if words[0] == "wa" else cut
        answer = command(*words, *brief, "--threads=1", "--quiet")
        assert answer.status == 0, answer.err
        for vary in (text for text in words if "=" in text and words[0] == "compare"):
            values = re.sub(r"\{[^}]*\}", paper, vary.partition("=")[2]).split(",")
            assert all(one in answer.out for one in values), (vary, answer.out)


def test_icache_divides_by_its_models() -> None:
    case, equal = short("icache"), short("icache", (("cache.partition", "equal"),))
    quotas = [tenant.quota_blocks or 0 for tenant in case.tenants]
    assert sum(quotas) == case.capacity_blocks
    assert quotas != [tenant.quota_blocks for tenant in equal.tenants]
    assert (case.total.divisions or 0) > 0
    assert all((tenant.slowdown or 0) > 0 for tenant in timed(case).tenants)


def test_icache_is_judged_after_its_models_were_trained() -> None:
    found = timed(only(cachewright.run(path_of("icache"), settings={"machine.alone": False})))
    checked = cachewright.check(path_of("icache"))
    warmup_s = int(checked["replay"]["warmup"].removesuffix("s"))
    assert warmup_s * 10**9 >= TRAINED * found.end_ns
    assert all(tenant.requests > 0 for tenant in found.tenants)


def test_rc_rnn_is_judged_after_its_model_was_trained() -> None:
    judged, whole = (
        timed(only(cachewright.run(path_of("rc-rnn"), settings=settings, threads=1)))
        for settings in ({}, {"replay.warmup": "0s"})
    )
    assert 0 < judged.total.requests <= (1 - TRAINED) * whole.total.requests


def test_rc_rnn_lets_some_requests_in_and_waits_for_decisions() -> None:
    case = short("rc-rnn")
    assert case.total.admissions > 0
    assert case.total.bypasses > 0
    assert timed(case).total.breakdown_ns["decision"] > 0


def test_oc_cache_gives_channels_and_a_pool() -> None:
    found = timed(short("oc-cache"))
    assert found.channels is not None
    assert found.rooms is not None
    assert found.channels.layout == "on-demand"
    groups = [group.tenants for group in found.channels.groups]
    assert any(len(group) == 1 for group in groups)
    assert any(len(group) > 1 for group in groups)
    assert {name for group in groups for name in group} == {"lu", "web", "oltp", "mail"}
    assert sum(room.own_blocks for room in found.rooms.tenants) > 0
    assert sum(room.common_blocks for room in found.rooms.tenants) > 0


def test_soft_qos_judges_every_goal() -> None:
    case = short("soft-qos")
    assert case.total.goals == len(case.tenants) == 4
    assert 0 < (case.total.goals_met or 0) <= 4
    assert (case.total.moved_most or 0) > 0
    assert sum(tenant.quota_blocks or 0 for tenant in case.tenants) == case.capacity_blocks
    for tenant in case.tenants:
        assert tenant.goal_hit_ratio is not None
        assert tenant.goal_met == (tenant.hit_ratio >= tenant.goal_hit_ratio)


def test_shiro_predicts_and_amplifies() -> None:
    drives = (timed(short("shiro", more)).drive for more in ((), PLAIN))
    shiro, plain = (drive for drive in drives if drive is not None)
    assert shiro.predictions > 0
    assert shiro.meta_programs > 0
    assert shiro.write_amplification > 1
    assert plain.predictions == plain.meta_programs == 0
