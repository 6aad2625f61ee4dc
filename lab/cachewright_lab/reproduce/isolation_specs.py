"""What a paper on tenants kept apart on channels has in its specs.

For: reading `setup.toml` and its figures. Must never know: how anything is run, measured or drawn.
`[stack]` is the machine, `[tenant]` what all tenants have, `[app.NAME]` what those of one program
have beside, `[noise]` how a noisy one behaves (a point may say otherwise), `[[layout]]` what is
compared, `[peak]` how the drive's own bandwidth is measured. A figure names its tenants (`app`,
`noisy`) and its points: settings that one layout takes in turn (`small_set`: on small traces).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cachewright._native import SpecError
from cachewright_lab.reproduce import specs
from cachewright_lab.reproduce.specs import SETUP, FigureSpec, Setup, among

SHOWN = ("isolation", "sweep", "counts", "choices")
# The layout that others are measured by: every figure has it.
BASE = "flashblox"
Table = dict[str, Any]


@dataclass(frozen=True)
class Tenant:
    """A tenant of a figure: its program, and keys of its own beside the program's."""

    app: str
    noisy: bool
    keys: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Layout:
    """One row of a figure: a layout with the division, and maybe the policy, that go with it."""

    title: str
    layout: str
    partition: str
    policy: str | None = None


@dataclass(frozen=True)
class Point:
    """One place of a sweep: settings over the stack, how many tenants (0: the figure's), noise."""

    title: str
    settings: tuple[tuple[str, Any], ...] = ()
    count: int = 0
    noise: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class IsolationSpec(FigureSpec):
    """One figure: tenants, layouts, points, how many seeds.

    `of` names the layout that takes the settings of points; the others are run once. Without it
    all layouts are run at every point.
    """

    tenants: tuple[Tenant, ...]
    layouts: tuple[Layout, ...]
    points: tuple[Point, ...]
    seeds: int
    of: str | None

    def rows(self) -> list[tuple[Point, Layout]]:
        """Return every pair that is run, in the order of tables."""
        found = []
        for place, point in enumerate(self.points):
            for layout in self.layouts:
                if self.of is None or layout.title == self.of:
                    found.append((point, layout))
                elif place == 0:
                    found.append((Point(layout.title), layout))
        return found

    def title_of(self, point: Point, layout: Layout) -> str:
        """Return what a row is called."""
        return layout.title if self.of is None or layout.title != self.of else point.title


@dataclass(frozen=True)
class Common:
    """What all figures share."""

    stack: Table
    tenant: Table
    apps: Table
    noise: Table
    peak: Table
    layouts: tuple[Layout, ...]

    @staticmethod
    def of(setup: Setup) -> Common:
        """Return what a setup says. Errors: `SpecError` for a key that is missing."""
        path = setup.folder / SETUP

        layouts = []
        for one in specs.key(path, setup.document, "layout"):
            title, layout, partition = (
                str(specs.key(path, one, key)) for key in ("title", "layout", "partition")
            )
            layouts.append(Layout(title, layout, partition, one.get("policy")))
        stack, tenant, apps = setup.table("stack"), setup.table("tenant"), setup.table("app")
        return Common(
            stack, tenant, apps, setup.table("noise"), setup.table("peak"), tuple(layouts)
        )


def figures(setup: Setup, common: Common) -> list[IsolationSpec]:
    """Return the figures of a paper. Errors: `SpecError`."""
    return [
        _figure(path, document, setup, common)
        for path, document in specs.figures(setup.folder)
        if not specs.lacks(setup, document)
    ]


def _figure(path: Path, document: Table, setup: Setup, common: Common) -> IsolationSpec:
    fields = specs.head(path, document, SHOWN)
    about = document["figure"]
    known = {one.name for one in setup.workloads}
    tenants = tuple(_tenant(path, one) for one in specs.key(path, document, "tenant"))
    for tenant in tenants:
        among(path, "app", tenant.app, known)
    titles = [one.title for one in common.layouts]
    wanted = about.get("layouts", titles)
    for title in [*wanted, *([about["of"]] if "of" in about else [])]:
        among(path, "layouts", title, titles)
    if BASE not in wanted:
        found = ", ".join(wanted)
        raise SpecError(f"{path}: `layouts`: found {found}, expected `{BASE}` among them")
    small = "" if setup.whole else "small_"
    points = [_point(path, one, small) for one in document.get("point", [])]
    seeds = int(about.get("seeds", 1))
    return IsolationSpec(
        **fields,
        tenants=tenants,
        layouts=tuple(one for one in common.layouts if one.title in wanted),
        points=tuple(_fewer(points, setup)) or (Point(""),),
        seeds=1 if setup.quick else seeds,
        of=about.get("of"),
    )


def _tenant(path: Path, table: Table) -> Tenant:
    own = tuple((key, value) for key, value in table.items() if key not in ("app", "noisy"))
    return Tenant(str(specs.key(path, table, "app")), bool(table.get("noisy")), own)


def _point(path: Path, table: Table, small: str) -> Point:
    def given(key: str) -> tuple[tuple[str, Any], ...]:
        name = small + key if small + key in table else key
        found: Table = table.get(name, {})
        return tuple(found.items())

    title = str(specs.key(path, table, "title"))
    return Point(title, given("set"), int(table.get("tenants", 0)), given("noise"))


def _fewer(points: Sequence[Point], setup: Setup) -> Sequence[Point]:
    """Return the first and the last point of a quick run, else all."""
    return [points[0], points[-1]] if setup.quick and len(points) > 2 else points
