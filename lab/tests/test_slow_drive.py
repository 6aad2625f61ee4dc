"""A slow drive without queues agrees with the simulator on the pairs of `published.toml`.

For: an independent check of what a division of the data cache does where a write waits for the page
that it pushes out. The slow drive is one loop over requests: LRU lists, a price for each page, and
nothing that waits for anything else. Prices are those of the paper's table I and of memory of 200
MB/s. Units: pages of 8 KiB, microseconds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from cachewright import _native, api
from cachewright.tables import timing
from cachewright_lab.reproduce import drive_mixes, specs
from cachewright_lab.reproduce.drive_mixes import DriveMixes
from cachewright_lab.reproduce.specs import merged

PAGE = 8192
MEMORY = 43.0
"""A page to or from memory: 8 KiB at 200 MB/s, and the row."""

TRANSFER = 26.0
"""A page over a channel of 333 MT/s, with its command."""

READ, PROGRAM = 75.0 + TRANSFER, 750.0 + TRANSFER
# Seconds of trace that are replayed, and of those the ones that only warm the cache.
STOP, WARM = 20.0, 12.0
# Numbers of operations in columns, and a change of a max slowdown that has no sign.
READS, WRITES = 0, 1
NO_CHANGE = 0.03


@dataclass(frozen=True)
class Request:
    """One request: the tenant's number, when it comes in s, its pages, whether it writes."""

    tenant: int
    time: float
    pages: range
    writes: bool


@dataclass
class SlowCache:
    """An LRU list of pages, each dirty or not."""

    size: int
    pages: OrderedDict[tuple[int, int], bool] = field(default_factory=OrderedDict)

    def access(self, page: tuple[int, int], *, writes: bool) -> tuple[bool, bool]:
        """Return whether the page was there, and whether a dirty one had to leave for it."""
        if page in self.pages:
            self.pages[page] |= writes
            self.pages.move_to_end(page)
            return True, False
        pushed = len(self.pages) >= self.size and self.pages.popitem(last=False)[1]
        self.pages[page] = writes
        return False, pushed


def price(found: Sequence[tuple[bool, bool]], *, writes: bool) -> float:
    """Return the response to a request whose pages were found so."""
    pushed = sum(dirty for _, dirty in found)
    if writes:
        program = pushed * MEMORY + PROGRAM if pushed else 0.0
        return max((len(found) + pushed) * MEMORY, program)
    hits = sum(hit for hit, _ in found)
    return max(hits * MEMORY, READ if hits < len(found) else 0.0)


def means(requests: Iterable[Request], caches: Sequence[SlowCache]) -> list[float]:
    """Return each tenant's mean response; a tenant has the cache of its number, or all have one."""
    sums = [[0.0, 0] for _ in range(2)]
    for one in requests:
        cache = caches[one.tenant % len(caches)]
        pages = [cache.access((one.tenant, page), writes=one.writes) for page in one.pages]
        if one.time >= WARM and pages:
            sums[one.tenant][0] += price(pages, writes=one.writes)
            sums[one.tenant][1] += 1
    return [total / max(count, 1) for total, count in sums]


def test_pages_are_priced_as_worked_by_hand() -> None:
    """Two pages of space: a write into it, one that pushes a dirty page out, a miss and a hit."""

    def write(time: float, page: int) -> Request:
        return Request(0, WARM + time, range(page, page + 1), writes=True)

    assert means([write(0, 0), write(1, 1)], [SlowCache(2)])[0] == MEMORY
    assert (
        means([write(0, 0), write(1, 1), write(2, 2)], [SlowCache(2)])[0]
        == (MEMORY * 2 + MEMORY + PROGRAM) / 3
    )
    read = Request(0, WARM + 3, range(2), writes=False)
    # Page 1 is there, page 0 is not, and the dirty page 2 leaves for it: no read waits for that.
    three = [write(0, 0), write(1, 1), write(2, 2)]
    assert means([*three, read], [SlowCache(2)])[0] == pytest.approx(
        (MEMORY * 2 + MEMORY + PROGRAM + READ) / 4
    )
    # One page each for two tenants: the second's write pushes out nothing of the first.
    other = Request(1, WARM, range(1), writes=True)
    assert means([write(0, 0), other], [SlowCache(1), SlowCache(1)]) == [MEMORY, MEMORY]


def read(path: Path, tenant: int) -> list[Request]:
    """Return the reads and writes of a trace until it stops."""
    columns = _native.TraceReader(str(path), None, "fail", {}).read(1 << 24)
    found = []
    for time, offset, length, op in zip(*(one.tolist() for one in columns[:4]), strict=True):
        seconds = time / 1e9
        if seconds < STOP and length and op in (READS, WRITES):
            pages = range(offset // PAGE, (offset + length - 1) // PAGE + 1)
            found.append(Request(tenant, seconds, pages, op == WRITES))
    return found


def slowest(each: Sequence[float], alone: Sequence[float]) -> float:
    """Return the max slowdown."""
    return max(mean / own for mean, own in zip(each, alone, strict=True))


def slow(traces: Sequence[list[Request]], pages: int) -> dict[str, float]:
    """Return the max slowdown under a shared cache and in equal parts, on the slow drive."""
    alone = [means(own, [SlowCache(pages)])[own[0].tenant] for own in traces]
    both = sorted((one for own in traces for one in own), key=lambda one: one.time)
    return {
        "shared": slowest(means(both, [SlowCache(pages)]), alone),
        "equal": slowest(means(both, [SlowCache(pages // 2), SlowCache(pages // 2)]), alone),
    }


def simulated(what: DriveMixes, names: Sequence[str], paths: Sequence[Path]) -> dict[str, float]:
    """Return the same on the simulator, the machine of `published.toml`."""
    stack = merged(what.common.stack, what.machines["published"])
    scale = float(stack.pop("tenant")["time_scale"])
    replay = {"warmup": f"{WARM * scale}s", "interval": f"{3 * scale}s"}
    tenants = [
        {"name": name, "trace": str(path), "time_scale": scale, "stop": f"{STOP * scale}s"}
        for name, path in zip(names, paths, strict=True)
    ]
    own = {"name": "pair", "seed": 1, "machine": {"alone": True}, "replay": replay}
    spec = merged(stack, own) | {"tenant": tenants}
    cases = api.compare(spec, {"partition": ["shared", "equal"]}, threads=1).answer.cases
    alone = [one.alone_mean_ns or 0.0 for one in timing.of(cases[0]).tenants]
    each = [[one.mean_ns for one in timing.of(case).tenants] for case in cases]
    return {name: slowest(one, alone) for name, one in zip(("shared", "equal"), each, strict=True)}


def test_the_slow_drive_and_the_simulator_agree_on_pairs() -> None:
    """What equal parts make of the max slowdown: the same sign, and within a fifth.

    `kv` beside `oltp` overruns the flash, so that most of its slowdown is a queue: the sign alone.
    """
    setup = specs.setup_in(specs.folder_of("icache", None), quick=False)
    if setup.kind != "trace":
        pytest.skip("no reference traces (CACHEWRIGHT_SHARED)")
    what = drive_mixes.load(setup)
    figure = next(one for one in what.figures if one.name == "published")
    pages = _native.parse_bytes(figure.setting.cache) // PAGE
    paths = {one.name: one.path for one in setup.workloads}
    for mix in figure.mixes:
        names = [member.workload for member in mix.members]
        own = [paths[name] for name in names]
        here = slow([read(path, number) for number, path in enumerate(own)], pages)
        there = simulated(what, names, own)
        slow_change, change = (one["equal"] / one["shared"] for one in (here, there))
        if abs(slow_change - 1) > NO_CHANGE:
            assert (slow_change > 1) == (change > 1), (mix.name, here, there)
        if "kv" not in names:
            assert slow_change == pytest.approx(change, rel=0.2), (mix.name, here, there)
