"""One question to the program: a verb of the package, and what it is asked.

For: the corpus modules beside it. Must never know: what the answer should be. A question is asked
in a folder with the traces of `traces`, the models of `models` and the repository's `data`, so that
every path in an answer is a relative one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import cachewright
from cachewright.documents import dump

Tables = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """A question; `name` is that of its kept file, below the folder of its verb."""

    verb: str
    name: str
    spec: Any
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Verb and name."""
        return f"{self.verb}/{self.name}"

    def answer(self) -> Any:
        """Ask."""
        found = VERBS[self.verb](self.spec, **self.arguments)
        return dump(getattr(found, "answer", found))

    def resolved(self) -> dict[str, Any] | None:
        """Return what `check` says of the stack; nothing where the answer holds no stack."""
        if self.verb not in ("run", "compare", "mrc") or not isinstance(self.spec, Mapping):
            return None
        return cachewright.check(self.spec, settings=self.arguments.get("settings"))


def segments(spec: Any, **arguments: Any) -> dict[str, Any]:
    """Return what `segments` gives as lists."""
    found = cachewright.api.segments(spec, **arguments)
    tenants = [
        {key: getattr(value, "tolist", lambda value=value: value)() for key, value in each}
        for each in (vars(one).items() for one in found.tenants)
    ]
    return {**vars(found), "tenants": tenants}


VERBS: dict[str, Callable[..., Any]] = {
    "check": cachewright.check,
    "run": cachewright.run,
    "compare": cachewright.compare,
    "mrc": cachewright.mrc,
    "wa": cachewright.wa,
    "plan": cachewright.plan,
    "info": cachewright.info,
    "characterize": cachewright.characterize,
    "segments": segments,
}


def stack(*tenants: Tables, **tables: Tables) -> dict[str, Any]:
    """Return a stack of these tenants; time series have 8 windows unless `replay` says more."""
    replay = {"windows": 8, "interval": "50ms", **tables.pop("replay", {})}
    return {"name": "answers", "replay": replay, **tables, "tenant": list(tenants)}


def tenant(name: str, trace: str | None = None, **keys: Any) -> dict[str, Any]:
    """Return a tenant with a trace of `traces`, by default the one of its own name."""
    return {"name": name, "trace": trace or f"{name}.csv", **keys}


def bundled(name: str, **keys: Any) -> dict[str, Any]:
    """Return a tenant with the beginning of a trace of `data`: 2 % unless `stop` says more."""
    return {"name": name.rpartition("/")[2], "trace": f"data/{name}.csv.zst", "stop": "2%", **keys}
