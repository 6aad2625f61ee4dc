"""Policies written in Python: those of `run` and `compare`, and quick ones beside them.

A `CachePolicy` takes part in `run` and `compare` like any other. In a stack file and on a command
line it is `python:FILE.py:CLASS` (relative to the stack file's folder), `python:MODULE:CLASS`, or
`python:NAME` for one given in `policies`. A stack file that names a file or module runs its code.

`simulate_python` is for an idea in a few lines, or at the speed of numpy: its policies say only
whether a block hit, and one cache is shared by all tenants. They are called with dense block
numbers (0, 1, 2, ... in order of first use, 32 bits), so that they can keep their state in arrays.
`Policy.access` is called once per block access and is slow (about a million a second);
`BatchPolicy.access_batch` is called with numpy arrays of many accesses in order and can be fast
(see `cachewright.examples.fifo`). They decide what is resident; writes count as accesses. What
would change the hits is refused by name: trims, partitions, the write modes `write-around` and
`read-only`, warm-up, closed loops, devices; so are goals and `[flash]`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable
from zlib import crc32

from cachewright import _native
from cachewright._native import SpecError, Verdict
from cachewright.stack import (
    Settings,
    SpecLike,
    Stack,
    StackOrTrace,
    is_stack_path,
    load,
    of_trace,
    pairs,
)
from cachewright.traces import TraceOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cachewright.types import PathLike, Progress

PREFIX = "python:"
POLICY_KEYS = ("policy", "cache.policy", "policy.name", "cache.policy.name")


class CachePolicy(Protocol):
    """A policy for `run` and `compare`; made with its capacity in blocks, and given settings.

    Blocks are numbers of 32 bits. Each pool of the cache has an object of its own. Every answer is
    checked: one that cannot be ends the run with a `PolicyError`.
    """

    def access(self, block: int, write: bool) -> Verdict:
        """Decide about one access.

        Return `Verdict.HIT` for a cached block, `Verdict.BYPASS` for a missing one that stays out,
        `Verdict.admit()` for a missing one that comes in, with the block that leaves for it if the
        cache is full: `Verdict.admit(evicted)`.
        """

    def remove(self, block: int) -> None:
        """Forget a block, cached or not: it was trimmed, or a write made it invalid.

        Needed where traces hold trims, and for `write = "read-only"`.
        """

    def resize(self, capacity: int) -> Sequence[int]:
        """Change the capacity and return the cached blocks that leave, first out first.

        Needed for partitioners that divide the cache anew while it runs.
        """


MakeCachePolicy: TypeAlias = Callable[..., CachePolicy]
Policies: TypeAlias = Mapping[str, MakeCachePolicy]


class Finder:
    """The Python policies of one call, by name."""

    def __init__(self, policies: Policies | None = None) -> None:
        self.named: dict[str, MakeCachePolicy] = {}
        self.modules: dict[Path, ModuleType] = {}
        for name, make in (policies or {}).items():
            self._check(name, make)
            self.named[name] = make

    def _check(self, name: str, make: object) -> None:
        if not callable(make):
            kind = type(make).__name__
            raise SpecError(f"`policies.{name}`: found an object of type {kind}, expected a class")
        if not name or name in _built_in() or ":" in name:
            what = "the name of a built-in policy" if name in _built_in() else f"`{name}`"
            raise SpecError(f"`policies`: found {what}, expected another name without `:`")

    def text(self, policy: Any) -> Any:
        """Return a policy as a stack names it: classes and names of `policies` as `python:NAME`."""
        if isinstance(policy, str):
            return PREFIX + policy if policy in self.named else policy
        if isinstance(policy, Mapping) and "name" in policy:
            return {**policy, "name": self.text(policy["name"])}
        if not callable(policy):
            return policy
        known = [name for name, make in self.named.items() if make is policy]
        if known:
            return PREFIX + known[0]
        name = getattr(policy, "__name__", "")
        if not name or name in self.named:
            found = f"two policies called `{name}`" if name else "a policy without a name"
            raise SpecError(f"{found}: give them names in `policies`")
        self.named[name] = policy
        return PREFIX + name

    def settings(self, settings: Settings | None) -> dict[str, Any]:
        """Return settings by dotted key with policies as text."""
        given = dict(settings or {})
        return {k: self.text(v) if k in POLICY_KEYS else v for k, v in given.items()}

    def vary(self, vary: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
        """Return the values of each dotted key with policies as text."""
        return {
            key: [self.text(value) for value in values]
            if key in POLICY_KEYS and not isinstance(values, str)
            else values
            for key, values in vary.items()
        }

    def spec(self, spec: StackOrTrace) -> StackOrTrace:
        """Return a mapping with its policy as text; a path as it is."""
        cache = spec.get("cache") if isinstance(spec, Mapping) else None
        if not isinstance(spec, Mapping) or not isinstance(cache, Mapping):
            return spec
        if "policy" not in cache:
            return spec
        return {**spec, "cache": {**cache, "policy": self.text(cache["policy"])}}

    def of_file(self, stack: Stack) -> dict[str, str]:
        """Return the setting that makes a stack file's policy one of `policies`, if it is one."""
        if not self.named:
            return {}
        import tomllib

        try:
            policy = tomllib.loads(stack.text).get("cache", {}).get("policy")
        except (tomllib.TOMLDecodeError, AttributeError):
            return {}  # Refused, with its line, where the stack is read.
        if isinstance(policy, Mapping) and policy.get("name") in self.named:
            return {"cache.policy.name": PREFIX + policy["name"]}
        if isinstance(policy, str) and policy in self.named:
            return {"cache.policy": PREFIX + policy}
        return {}

    def load(self, name: str, origin: str) -> MakeCachePolicy:
        """Return the class called `name` in the stack at `origin`. Errors: `SpecError`."""
        rest = name.removeprefix(PREFIX)
        if rest in self.named:
            return self.named[rest]
        source, colon, attribute = rest.rpartition(":")
        if not colon or not source or not attribute:
            given = f"; `policies` has {', '.join(self.named)}" if self.named else ""
            raise SpecError(
                f"found `{name}`, expected `python:FILE.py:CLASS`, `python:MODULE:CLASS` or "
                f"`python:NAME` of one given in `policies`{given}"
            )
        module = self._module(name, source, origin)
        found = getattr(module, attribute, None)
        if not callable(found):
            what = "no" if found is None else "something that is no class called"
            raise SpecError(f"`{name}`: found {what} `{attribute}` in {source}, expected a class")
        make: MakeCachePolicy = found
        return make

    def _module(self, name: str, source: str, origin: str) -> ModuleType:
        if not source.endswith(".py"):
            try:
                return importlib.import_module(source)
            except ModuleNotFoundError as error:
                if error.name is None or not source.startswith(error.name):
                    raise
                raise SpecError(
                    f"`{name}`: found no module `{source}`, expected one, or a file `FILE.py`"
                ) from None
        path = (Path(origin).parent / source).resolve()
        if path not in self.modules:
            self.modules[path] = _run_file(name, path)
        return self.modules[path]


def check_name(name: str, origin: str) -> None:
    """Refuse a policy's file that is not there, without running it. Errors: `SpecError`."""
    source = name.removeprefix(PREFIX).rpartition(":")[0]
    if name.startswith(PREFIX) and source.endswith(".py"):
        _existing(name, Path(origin).parent / source)


def _existing(name: str, path: Path) -> None:
    if not path.is_file():
        raise SpecError(f"`{name}`: found no file `{path}`, expected a Python file")


def _run_file(name: str, path: Path) -> ModuleType:
    """Run a Python file as a module; files beside it can be imported from it."""
    _existing(name, path)
    title = f"_cachewright_policy_{crc32(str(path).encode()):x}_{path.stem}"
    spec = importlib.util.spec_from_file_location(title, path)
    if spec is None or spec.loader is None:
        raise SpecError(f"`{name}`: found `{path}`, which cannot be read as a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[title] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


def _built_in() -> set[str]:
    from cachewright import registries

    return {entry.name for entry in registries.list("policies")}


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
