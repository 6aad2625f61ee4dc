"""Quick policies written in Python: only whether a block hit.

For: trying an idea in a few lines, or at the speed of numpy. Must never know: traces' formats,
other tenants' shares: one cache is shared by all tenants. A policy that takes part in `run` and
`compare` returns verdicts instead (`cachewright.CachePolicy`). A policy is called with dense block
numbers (0, 1, 2, ... in order of first use, 32 bits), so that it can keep its state in arrays.

Two protocols. `Policy.access` is called once per block access and is slow (about a million a
second); `BatchPolicy.access_batch` is called with numpy arrays of many accesses in order and can
be fast (see `cachewright.examples.fifo`). Policies decide what is resident; writes count as
accesses. What would change the hits is refused by name: trims, partitions, the write modes
`write-around` and `read-only`, warm-up, closed loops, devices; so are goals and `[flash]`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from cachewright import _native
from cachewright.stack import Settings, SpecLike, is_stack_path, load, of_trace, pairs
from cachewright.traces import TraceOptions
from cachewright.types import PathLike

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cachewright.types import Progress

BATCH = 1 << 16


@runtime_checkable
class Policy(Protocol):
    """A policy that is asked one access at a time."""

    def access(self, block: int, write: bool) -> bool:
        """Use `block`, admit it if the policy wants to, and return whether it was resident."""


@runtime_checkable
class BatchPolicy(Protocol):
    """A policy that is asked many accesses at a time."""

    def access_batch(self, ids: NDArray[np.uint32], writes: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Use the blocks in order and return, for each, whether it was resident."""


MakePolicy: TypeAlias = Callable[[int], Policy | BatchPolicy]


@dataclass(frozen=True)
class PythonRun:
    """What a Python policy reached; `tenants` holds (accesses, hits) by name."""

    capacity_blocks: int
    accesses: int
    hits: int
    read_accesses: int
    read_hits: int
    tenants: dict[str, tuple[int, int]]

    @property
    def hit_ratio(self) -> float:
        """Share of block accesses that hit, in 0..1; 0 when there was none."""
        return self.hits / self.accesses if self.accesses else 0.0

    @property
    def read_hit_ratio(self) -> float:
        """Share of read block accesses that hit, in 0..1; 0 when there was none."""
        return self.read_hits / self.read_accesses if self.read_accesses else 0.0


def simulate_python(
    policy: MakePolicy,
    spec: SpecLike,
    capacity: str | int | None = None,
    *,
    settings: Settings | None = None,
    block: str = "4KiB",
    trace: TraceOptions | None = None,
    batch: int = BATCH,
    progress: Progress | None = None,
) -> PythonRun:
    """Replay a stack or one trace through a policy written in Python.

    `policy` is called with the capacity in blocks and returns a `Policy` or `BatchPolicy`; a class
    with one argument will do. `capacity` is a size with a unit (`64MiB`, `10%wss`), a number of
    blocks, or left out to take the stack's. `block` and `trace` say how to read a trace; a stack
    has its own. `batch` is how many accesses are handed over at a time. Errors: `PolicyError` when
    the policy returns something else than one boolean per access; `SpecError` also for a stack
    with settings that only `run` can honour; otherwise as `run`.
    """
    is_stack = isinstance(spec, Mapping) or is_stack_path(spec)
    size = "10%wss" if capacity is None else capacity
    text_size = f"{size} blocks" if isinstance(size, int) else size
    if is_stack:
        stack = load(spec)
        changes = dict(settings or {})
        if capacity is not None:
            changes["cache.capacity"] = text_size
    else:
        path: PathLike = spec  # type: ignore[assignment]
        stack = of_trace(path, trace or TraceOptions(), {"capacity": text_size, "block": block})
        changes = dict(settings or {})
    stream = _native.BlockStream(stack.text, stack.origin, pairs(changes), progress)
    made = policy(stream.capacity_blocks())
    return _replay(stream, _batched(made), batch, progress)


def _batched(policy: Any) -> BatchPolicy:
    if isinstance(policy, BatchPolicy):
        return policy
    if isinstance(policy, Policy):
        return _OneByOne(policy)
    raise _native.PolicyError(
        f"found {type(policy).__name__} without `access` and `access_batch`, "
        "expected an object with one of them"
    )


class _OneByOne:
    """Asks a `Policy` for every access of a batch."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def access_batch(self, ids: NDArray[np.uint32], writes: NDArray[np.bool_]) -> NDArray[np.bool_]:
        import numpy as np

        access = self.policy.access
        hits = [access(b, w) for b, w in zip(ids.tolist(), writes.tolist(), strict=True)]
        unfit = next((hit for hit in hits if not isinstance(hit, bool)), None)
        if unfit is not None:
            verdict = isinstance(unfit, _native.Verdict)
            hint = "; policies that return verdicts go into `run`" if verdict else ""
            raise _native.PolicyError(f"`access` returned {unfit!r}, expected True or False{hint}")
        return np.array(hits, dtype=np.bool_)


def _replay(
    stream: _native.BlockStream, policy: BatchPolicy, batch: int, progress: Progress | None
) -> PythonRun:
    import numpy as np

    names = stream.tenants()
    by_tenant = np.zeros((len(names), 2), dtype=np.int64)
    accesses = reads = read_hits = 0
    while True:
        ids, writes, tenants = stream.next(batch)
        if len(ids) == 0:
            break
        hits = policy.access_batch(ids, writes)
        _check(hits, len(ids))
        accesses += len(ids)
        reads += len(ids) - int(np.count_nonzero(writes))
        read_hits += int(np.count_nonzero(hits & ~writes))
        if len(names) == 1:
            by_tenant[0] += (len(ids), int(np.count_nonzero(hits)))
        else:
            by_tenant[:, 0] += np.bincount(tenants, minlength=len(names))
            by_tenant[:, 1] += np.bincount(tenants[hits], minlength=len(names))
        if progress is not None and progress("simulating", accesses, None) is False:
            raise _native.RunError("cancelled by the progress call-back")
    per_tenant = {name: (int(a), int(h)) for name, (a, h) in zip(names, by_tenant, strict=True)}
    total_hits = int(by_tenant[:, 1].sum())
    return PythonRun(stream.capacity_blocks(), accesses, total_hits, reads, read_hits, per_tenant)


def _check(hits: Any, count: int) -> None:
    import numpy as np

    if not isinstance(hits, np.ndarray) or hits.dtype != np.bool_ or hits.shape != (count,):
        found = (
            f"{hits.dtype} of shape {hits.shape}" if isinstance(hits, np.ndarray) else repr(hits)
        )
        raise _native.PolicyError(
            f"`access_batch` returned {found}, expected {count} booleans (numpy)"
        )
