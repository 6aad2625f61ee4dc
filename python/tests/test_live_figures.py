"""The figures of report pages in a real browser: drawn, readable, and right under the pointer.

For: every page that holds figures. Must never know: how they are drawn. Skipped where no Chromium
is installed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, window
from conftest import trace_text
from recorded import result_document, result_of

from cachewright import api, words
from cachewright.characterized import characterize
from cachewright.fleet import study
from cachewright.fleet.placement.planning import plan_fleet
from cachewright.report import (
    single,
    write_amplification_report,
    write_curves_report,
    write_page,
)

WIDTHS, SCHEMES = (1280, 400), ("light", "dark")
HOSTILE = [
    '</script><script>throw "x"</script>',
    'it\'s "quoted" & <b>bold</b>',
    "tëñant\u2028日本",
]
STACK = (
    '[cache]\ncapacity = "512KiB"\npolicy = "lru"\n[replay]\nwindows = 10\n'
    '[[tenant]]\nname = "a"\ntrace = "a.csv"\ntime_scale = 30\n'
    '[[tenant]]\nname = "b"\ntrace = "b.csv"\ntime_scale = 30\n'
)
DEVICES = (
    '[device.cache]\nmodel = "open-channel-16"\nchannels = 2\nchips = 1\nplanes = 1\n'
    'blocks = 64\nblock = "64KiB"\npage = "4KiB"\nover_provisioning = 0.25\n'
    '[device.backing]\nmodel = "hdd-7200-2tb"\n'
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    for seed, name in enumerate("ab", start=1):
        (folder / f"{name}.csv").write_text(trace_text(seed))
    (folder / "stack.toml").write_text(STACK)
    (folder / "devices.toml").write_text(STACK + DEVICES)
    return folder


def hostile_document() -> dict[str, Any]:
    """Return a comparison whose tenants' names would break out of a page that is not careful."""
    text = json.dumps(result_document())
    for plain, hostile in zip(("oltp", "web", "mail"), HOSTILE, strict=True):
        text = text.replace(f'"{plain}"', json.dumps(hostile))
    document: dict[str, Any] = json.loads(text)
    return document


def compared(_: Path, to: Path) -> Path:
    return result_of(hostile_document()).report(to)


def timed(inputs: Path, to: Path) -> Path:
    stack = inputs / "devices.toml"
    return api.compare(stack, {"policy": ["lru", "arc"]}).report(to)


def amplified(inputs: Path, to: Path) -> Path:
    found = api.wa(
        inputs / "a.csv", ["none", "sepbit", "future-knowledge"], op=["60%"], superblock="64KiB"
    )
    return write_amplification_report(found, to)


def curves(inputs: Path, to: Path) -> Path:
    found = api.mrc(inputs / "devices.toml", ["lru", "arc"], points=6, latency=True)
    return write_curves_report(found, to)


def drawn(folder: Path, to: Path) -> Path:
    text, figures = single.drawn(folder)
    assert figures
    return write_page(text, figures, to)


def characterized(inputs: Path, to: Path) -> Path:
    folder = to.parent / "character"
    characterize(inputs / "a.csv", every="1s", out=folder)
    return drawn(folder, to)


def planned(inputs: Path, to: Path) -> Path:
    stack = inputs / "goals.toml"
    stack.write_text(STACK.replace("time_scale = 30", "goal_hit_ratio = 0.05", 1))
    api.plan(stack, partitions=["equal", "shared"], out=to.parent / "plan")
    return drawn(to.parent / "plan", to)


def studied(inputs: Path, to: Path) -> Path:
    traces = to.parent / "traces"
    traces.mkdir()
    for name in ("a.csv", "b.csv"):
        (traces / name).write_bytes((inputs / name).read_bytes())
    plan = study.Plan(["lru", "arc"], ["10%wss", "40%wss"], separations=[])
    study.study(str(traces), to.parent / "study", plan)
    return drawn(to.parent / "study", to)


def placed(inputs: Path, to: Path) -> Path:
    fleet = inputs / "fleet.toml"
    tenants = STACK[STACK.index("[[tenant]]") :].replace("time_scale = 30", "goal_hit_ratio = 0.05")
    fleet.write_text(f'name = "fleet"\n[cache]\nblock = "4KiB"\n[hosts]\ncount = 2\n{tenants}')
    plan_fleet(fleet, out=to.parent / "placed")
    return drawn(to.parent / "placed", to)


PAGES: list[Callable[[Path, Path], Path]] = [
    compared,
    timed,
    amplified,
    curves,
    characterized,
    planned,
    studied,
    placed,
]


@pytest.mark.parametrize("make", PAGES)
def test_figures_are_drawn_readably_at_every_width(
    browser: Any, inputs: Path, tmp_path: Path, make: Callable[[Path, Path], Path]
) -> None:
    path = make(inputs, tmp_path / "page.html")
    for width, scheme in zip(WIDTHS, SCHEMES, strict=True):
        with window(browser, width, scheme) as view:
            assert view.open(path).faults() == []
            assert view.page.locator(".chart").count() > 0
            for other in reversed(WIDTHS):
                view.resize(other)
            assert view.faults() == []


def by_partition(document: dict[str, Any], policy: str) -> list[tuple[int, float]]:
    """Return capacities and hit ratios of a policy without a partition."""
    return [
        (case["capacity_blocks"] * case["block_bytes"], case["total"]["hit_ratio"])
        for case in document["cases"]
        if case["settings"]["cache.policy"] == policy
        and case["settings"]["cache.partition"] == "shared"
    ]


@pytest.mark.parametrize("width", WIDTHS)
def test_each_point_of_a_line_says_its_own_values(browser: Any, tmp_path: Path, width: int) -> None:
    document = result_document()
    path = result_of(document).report(tmp_path / "page.html")
    with window(browser, width) as view:
        view.open(path)
        found = []
        for size, ratio in by_partition(document, "arc"):
            expected = {
                "policy": "arc",
                "partition": "shared",
                "cache size": words.size(size),
                "hit ratio": words.ratio(ratio),
            }
            assert view.tooltip_at(0, size, ratio) == expected
            found.append(expected["hit ratio"])
        assert len(set(found)) == 3


def test_dots_and_curves_say_their_own_values(browser: Any, tmp_path: Path) -> None:
    document = hostile_document()
    path = result_of(document).report(tmp_path / "page.html")
    with window(browser, 1280) as view:
        view.open(path)
        charts = view.page.locator(".chart")
        names = [charts.nth(at).get_attribute("aria-label") for at in range(charts.count())]
        dots = next(at for at, name in enumerate(names) if name.startswith("Policies at"))
        best = document["cases"][-1]
        ratio = best["total"]["hit_ratio"]
        expected = {"policy": "s3-fifo", "partition": "hull", "hit ratio": words.ratio(ratio)}
        assert view.tooltip_at(dots, ratio, "s3-fifo") == expected
        lines = next(at for at, name in enumerate(names) if name.startswith("Miss-ratio"))
        curve = document["curves"][0]
        for size, miss in curve["points"][9:16:3]:
            expected = {
                "tenant": HOSTILE[0],
                "cache size": words.size(size * 4096),
                "miss ratio": words.ratio(miss),
            }
            assert view.tooltip_at(lines, size * 4096, miss) == expected
        assert view.faults() == []


def test_figures_take_the_colours_that_the_reader_prefers(browser: Any, tmp_path: Path) -> None:
    path = result_of(result_document(single=True)).report(tmp_path / "page.html")
    colours = (
        "[getComputedStyle(document.querySelector('.chart svg text')).fill, "
        "getComputedStyle(document.body).color]"
    )
    with window(browser, 1280, "light") as view:
        view.open(path)
        seen = []
        for scheme in ("light", "dark", "light"):
            view.page.emulate_media(color_scheme=scheme)
            text, body = view.page.evaluate(colours)
            assert text == body
            seen.append(text)
        assert seen[0] == seen[2] != seen[1]


def test_a_name_in_the_legend_brings_its_series_forward(browser: Any, tmp_path: Path) -> None:
    path = result_of(result_document()).report(tmp_path / "page.html")
    opacities = "[...document.querySelectorAll('.chart')[0].querySelectorAll('.mark-line path')]"
    opacities += ".map((line) => Number(getComputedStyle(line).opacity))"
    with window(browser, 1280) as view:
        view.open(path)
        assert view.page.evaluate(opacities) == [1, 1, 1]
        view.page.locator(".legend button", has_text="arc").first.click()
        view.page.wait_for_function(f"{opacities}.filter((one) => one < 0.5).length === 2")
        view.page.locator(".legend button[aria-pressed=true]").click()
        view.page.mouse.move(5, 5)
        view.page.wait_for_function(f"{opacities}.every((one) => one === 1)")


def test_many_policies_leave_eight_coloured_and_the_pointer_names_a_grey_one(
    browser: Any, inputs: Path, tmp_path: Path
) -> None:
    policies = ["lru", "fifo", "clock", "sieve", "lfu", "arc", "2q", "s3-fifo", "slru", "belady"]
    sizes = ["64KiB", "256KiB"]
    found = api.compare(inputs / "a.csv", {"cache.policy": policies, "cache.capacity": sizes})
    path = found.report(tmp_path / "page.html")
    with window(browser, 1280) as view:
        view.open(path)
        legend = view.page.locator(".legend").first
        names = legend.locator("button").all_text_contents()
        assert len(names) <= 8
        assert {"lru", "belady (bound)"} <= {*names}
        said = legend.locator("small").all_text_contents()
        assert said[0] == f"{10 - len(names)} others in grey, which the pointer names."
        assert view.page.get_by_text("A click on a name singles it out.").count() == 1
        worst = min(found.answer.cases[1::2], key=lambda case: case.total.hit_ratio)
        tip = view.tooltip_at(0, 256 << 10, worst.total.hit_ratio)
        assert tip["hit ratio"] == words.ratio(worst.total.hit_ratio)


def test_still_figures_stand_where_scripts_are_off(browser: Any, tmp_path: Path) -> None:
    path = result_of(hostile_document()).report(tmp_path / "page.html")
    with window(browser, 400, java_script_enabled=False) as view:
        view.page.goto(path.as_uri())
        still = view.page.locator(".figure svg[role=img]")
        assert still.count() == view.page.locator(".figure").count() == 6
        assert all(still.nth(at).is_visible() for at in range(still.count()))
        assert not view.page.locator(".panels").first.is_visible()
        assert view.messages == []


def test_names_in_figures_are_text_and_nothing_else(browser: Any, tmp_path: Path) -> None:
    path = result_of(hostile_document()).report(tmp_path / "page.html")
    with window(browser, 1280) as view:
        view.open(path)
        shown = view.page.locator(".legend").nth(2).locator("button").all_text_contents()
        assert shown == [*HOSTILE]
        assert view.faults() == []
