"""Policies written in Python.

A `CachePolicy` takes part in `run` and `compare` like any other. In a stack file and on a command
line it is `python:FILE.py:CLASS` (relative to the stack file's folder), `python:MODULE:CLASS`, or
`python:NAME` for one given in `policies`. A stack file that names a file or module runs its code.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeAlias
from zlib import crc32

from cachewright._native import SpecError, Verdict
from cachewright.stack import Settings, Stack, StackOrTrace, mapping

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
        if isinstance(policies, list | tuple):
            raise SpecError(
                f"`policies`: found {policies!r}, expected a mapping such as "
                '{"own": OwnPolicy} of classes written in Python; names of policies to compare '
                'stand in `policy`, as in `policy=["lru", "arc"]`'
            )
        for name, make in mapping("policies", policies, '{"own": OwnPolicy}').items():
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
        given = mapping("settings", settings, '{"cache.capacity": "64MiB"}')
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
