"""A cache that decides about requests as they come.

For: `Cache`, the engine of every replay under a caller of its own: a program, a notebook, a test.
Must never know: how anything is decided, or who reads and writes the data. Units: bytes for
requests, blocks for everything in an answer; block `n` of a tenant begins at byte `n * block`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from cachewright import _native
from cachewright._native import Answer, SpecError
from cachewright.policies import Finder
from cachewright.stack import plain
from cachewright.traces import OPS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cachewright.policies import MakeCachePolicy

LARGEST = 2**64 - 1
ONLY_TENANT = "cache"
READ, WRITE, TRIM = 0, 1, 2

Capacity = str | int | Mapping[str, str | int]


@dataclass(frozen=True)
class Counters:
    """What a tenant's accesses came to, in blocks unless a name says requests."""

    reads: int
    read_hits: int
    writes: int
    write_hits: int
    read_admissions: int
    write_admissions: int
    evictions: int
    writebacks: int
    invalidations: int
    requests: int
    request_hits: int
    held_blocks: int
    capacity_blocks: int

    @property
    def accesses(self) -> int:
        """Block accesses."""
        return self.reads + self.writes

    @property
    def hits(self) -> int:
        """Block accesses that hit."""
        return self.read_hits + self.write_hits

    @property
    def hit_ratio(self) -> float:
        """Share of block accesses that hit, in 0..1; 0 when there was none."""
        return self.hits / self.accesses if self.accesses else 0.0


class Columns(NamedTuple):
    """How many blocks of each request stand in each list of an `Answer`."""

    hits: NDArray[np.uint32]
    admitted: NDArray[np.uint32]
    bypassed: NDArray[np.uint32]
    fetched: NDArray[np.uint32]
    written_through: NDArray[np.uint32]
    evicted: NDArray[np.uint32]
    written_back: NDArray[np.uint32]
    discarded: NDArray[np.uint32]


class Cache:
    """A cache of blocks, one for all tenants or a part for each.

    `capacity` is a size with a unit (`64MiB`), a number of blocks, or a mapping of either by
    tenant: then each tenant has a part of its own. `policy` is a name, `{"name": ..., setting:
    ...}` or a class written in Python (`CachePolicy`). `tenants` names those who share one
    capacity; without it there is one. `write` is a write mode of stack files. One thread at a
    time. Errors: `SpecError` for what is refused, `PolicyError` when a Python policy fails or
    breaks a rule; such a cache does not go on.
    """

    def __init__(
        self,
        capacity: Capacity,
        policy: str | Mapping[str, Any] | MakeCachePolicy = "lru",
        *,
        tenants: Sequence[str] | None = None,
        block: str = "4KiB",
        write: str = "write-back",
        seed: int = 1,
    ) -> None:
        finder = Finder()
        self._names = _names(capacity, tenants)
        self._index = {name: place for place, name in enumerate(self._names)}
        self._cache = _native.LiveCache(
            self._capacities(capacity),
            plain(finder.text(policy)),
            self._names,
            block=block,
            write=write,
            seed=_whole("seed", seed),
            load=finder.load,
        )

    @property
    def tenants(self) -> list[str]:
        """The names of the tenants."""
        return list(self._names)

    @property
    def dirty_blocks(self) -> int:
        """Blocks that hold writes which the backing store does not have."""
        return self._cache.dirty_blocks()

    def read(self, offset: int, length: int, tenant: str | None = None, time_ns: int = 0) -> Answer:
        """Read `length` bytes at `offset`; `time_ns` is for policies that read times."""
        return self._decide(READ, offset, length, tenant, time_ns)

    def write(
        self, offset: int, length: int, tenant: str | None = None, time_ns: int = 0
    ) -> Answer:
        """Write `length` bytes at `offset`; blocks written in part are fetched first."""
        return self._decide(WRITE, offset, length, tenant, time_ns)

    def trim(self, offset: int, length: int, tenant: str | None = None, time_ns: int = 0) -> Answer:
        """Forget the blocks that lie wholly inside the range."""
        return self._decide(TRIM, offset, length, tenant, time_ns)

    def replay(self, requests: Any, tenant: str | None = None) -> Columns:
        """Decide about many requests in order, given by columns.

        `requests` is a frame such as `read_trace` returns, or a mapping of arrays: `offset_bytes`,
        `length_bytes`, and if there `op` (words, or 0 read, 1 write, 2 trim, 3 flush, which changes
        nothing; reads if left out), `time_ns` and `tenant` (names). All requests are checked before
        the first is decided.
        """
        import numpy as np

        names = list(getattr(requests, "columns", requests))
        missing = [name for name in ("offset_bytes", "length_bytes") if name not in names]
        if missing:
            also = ", ".join(f"`{name}`" for name in missing)
            raise SpecError(f"found columns {', '.join(names)}, expected also {also}")
        offset = _numbers("offset_bytes", requests["offset_bytes"])
        zeros = np.zeros(len(offset), dtype=np.uint64)
        if tenant is None and "tenant" in names:
            whose = _places("tenant", requests["tenant"], self._index).astype(np.uint16)
        else:
            whose = np.full(len(offset), self._place(tenant), dtype=np.uint16)
        ops = {word: number for number, word in enumerate(OPS)}
        op = _places("op", requests["op"], ops) if "op" in names else zeros
        columns = self._cache.decide_all(
            op.astype(np.uint8),
            offset,
            _numbers("length_bytes", requests["length_bytes"]),
            whose,
            _numbers("time_ns", requests["time_ns"]) if "time_ns" in names else zeros,
        )
        return Columns(*columns)

    def resize(self, capacity: Capacity) -> Answer:
        """Change the capacity; the answer names the blocks that leave."""
        return self._cache.resize(self._capacities(capacity))

    def contains(self, block: int, tenant: str | None = None) -> bool:
        """Return whether a block is cached."""
        return self._cache.contains(self._place(tenant), _whole("block", block))

    def counters(self, tenant: str | None = None) -> Counters:
        """Return what was counted so far."""
        return Counters(**dict(self._cache.counters(self._place(tenant))))

    def audit(self) -> None:
        """Check every invariant of the cache, slowly. Errors: `RunError` names a broken one."""
        self._cache.audit()

    def _decide(
        self, op: int, offset: int, length: int, tenant: str | None, time_ns: int
    ) -> Answer:
        return self._cache.decide(
            op,
            _whole("offset", offset),
            _whole("length", length),
            self._place(tenant),
            _whole("time_ns", time_ns),
        )

    def _place(self, tenant: str | None) -> int:
        if tenant is None and len(self._names) == 1:
            return 0
        if tenant not in self._index:
            known = ", ".join(self._names)
            found = "none" if tenant is None else f"`{tenant}`"
            raise SpecError(f"`tenant`: found {found}, expected one of {known}")
        return self._index[tenant]

    def _capacities(self, capacity: Capacity) -> list[str]:
        if not isinstance(capacity, Mapping):
            return [_size(capacity)]
        if set(capacity) != set(self._names):
            found, expected = ", ".join(capacity), ", ".join(self._names)
            raise SpecError(f"`capacity`: found {found or 'nothing'}, expected {expected}")
        return [_size(capacity[name]) for name in self._names]


def _names(capacity: Capacity, tenants: Sequence[str] | None) -> list[str]:
    names = list(tenants if tenants is not None else ())
    if not names:
        names = list(capacity) if isinstance(capacity, Mapping) else [ONLY_TENANT]
    if len(set(names)) < len(names):
        raise SpecError(f"`tenants`: found {', '.join(names)}, expected each name once")
    return names


def _size(capacity: str | int) -> str:
    return f"{capacity} blocks" if isinstance(capacity, int) else capacity


def _whole(name: str, value: int) -> int:
    whole = isinstance(value, int) or hasattr(value, "__index__")
    if not whole or not 0 <= int(value) <= LARGEST:
        raise SpecError(f"`{name}`: found {value!r}, expected a whole number from 0 to 2^64 - 1")
    return int(value)


def _numbers(name: str, column: Any) -> NDArray[np.uint64]:
    import numpy as np

    values = np.asarray(column)
    if values.dtype.kind not in "iu" or (len(values) > 0 and int(values.min()) < 0):
        raise SpecError(f"`{name}`: found {values.dtype}, expected whole numbers from 0")
    return np.ascontiguousarray(values, dtype=np.uint64)


def _places(name: str, column: Any, known: Mapping[str, int]) -> NDArray[np.uint64]:
    """Return words as numbers by `known`; numbers as they are."""
    import numpy as np

    values = np.asarray(column)
    if values.dtype.kind in "iu":
        if len(values) > 0 and int(values.max()) >= len(known):
            raise SpecError(f"`{name}`: found {values.max()}, expected less than {len(known)}")
        return _numbers(name, values)
    words, inverse = np.unique(values.astype(str), return_inverse=True)
    unknown = [word for word in words.tolist() if word not in known]
    if unknown:
        raise SpecError(f"`{name}`: found `{unknown[0]}`, expected one of {', '.join(known)}")
    places = np.array([known[word] for word in words.tolist()], dtype=np.uint64)
    return places[inverse.reshape(-1)] if len(places) else places
