"""What tasks of one volume compute: the answers of commands, as plain values.

For: workers of every engine. Must never know: engines, the command line, files other than traces.
A task uses one thread: a worker is one processor. A trace that was copied or joined for the task
appears in its answer under the name of its first part, so that engines and machines give the same
bytes.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Sequence
from typing import Any

from cachewright import api, characterized
from cachewright.documents import dump
from cachewright.fleet.datasets.volumes import trace_of
from cachewright.stack import expanded, of_traces
from cachewright.traces import Trace

THREADS = 1


def mrc(volume: dict[str, Any], reading: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return the curves of a volume; `options` are those of `api.mrc`."""
    with trace_of(volume["paths"], volume["volume"], reading) as trace:
        found = api.mrc(trace, threads=THREADS, **options)
        return _named(dump(found.answer), trace, volume)


def wa(volume: dict[str, Any], reading: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return the write amplification of a volume; `options` are those of `api.wa`."""
    with trace_of(volume["paths"], volume["volume"], reading) as trace:
        found = api.wa(trace, threads=THREADS, **options)
        return _named(dump(found.answer), trace, volume)


def characterize(
    volume: dict[str, Any], reading: dict[str, Any], every: str, model: str | None
) -> dict[str, Any]:
    """Return what runs on a volume; `model` is a model file's content in base 64."""
    content = None if model is None else base64.b64decode(model)
    with trace_of(volume["paths"], volume["volume"], reading) as trace:
        found = characterized.characterize(trace, every=every, model=content)
        return _named(dump(found), trace, volume)


def compare(
    volume: dict[str, Any],
    reading: dict[str, Any],
    vary: dict[str, list[str]],
    settings: dict[str, str],
) -> dict[str, Any]:
    """Return all combinations of `vary` on a volume; `all` stands for what can run on it."""
    with trace_of(volume["paths"], volume["volume"], reading) as trace:
        stack = of_traces([_path(trace)], trace.how())
        values, _ = expanded(stack, vary, settings)
        found = api.compare(stack, values, settings=settings, threads=THREADS)
        return _named(dump(found.answer), trace, volume)


def train_shiro(
    volume: dict[str, Any], reading: dict[str, Any], options: dict[str, Any]
) -> dict[str, Any]:
    """Train on a volume; return the answer, and the model file's content in base 64."""
    from cachewright.train import train_shiro as train

    with trace_of(volume["paths"], volume["volume"], reading) as trace:
        found = train(trace, **options)
        answer = _named(dump(found.answer), trace, volume)
    return {"answer": answer, "model": base64.b64encode(found.model).decode()}


def _path(trace: Trace) -> str:
    return os.fspath(trace.path)  # type: ignore[arg-type]


def _named(answer: Any, trace: Trace, volume: dict[str, Any]) -> dict[str, Any]:
    """Return an answer in which a scratch file has the name of what it was made from."""
    paths: Sequence[str] = volume["paths"]
    here = _path(trace)
    if here != paths[0]:
        answer = json.loads(json.dumps(answer).replace(json.dumps(here)[1:-1], paths[0]))
    document: dict[str, Any] = answer
    return document
