"""Bad model files, result folders, configurations to import and options of commands."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator

from hostile.case import Case, text
from hostile.stacks import BASE, TRACE

STACK = {"s.toml": text(BASE), "t.csv": text(TRACE)}
ARCHITECTURE = {
    "kind": "gru",
    "inputs": 1,
    "hidden": [2],
    "heads": [{"name": "fc", "outputs": 1}],
}
GRU = {
    "version": 1,
    "architecture": ARCHITECTURE,
    "features": ["f"],
    "normalisation": {"mean": [0.0], "deviation": [1.0]},
    "test_vector": {"inputs": [[0.5]], "outputs": [[0.0]]},
}


def cases() -> Iterator[Case]:
    """Give every one of them."""
    yield from _models()
    yield from _results()
    yield from _imports()
    yield from _options()


def _file(header: bytes, data: bytes = b"", length: int | None = None) -> bytes:
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def _described(description: object, tensors: dict[str, object] | None = None) -> bytes:
    meta = {"__metadata__": {"cachewright": json.dumps(description)}, **(tensors or {})}
    return _file(text(json.dumps(meta)), b"\x00" * 64)


def _models() -> Iterator[Case]:
    def gru(**change: object) -> bytes:
        return _described({**GRU, **change})

    tensor = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}
    bad = {
        "empty": b"",
        "seven bytes": b"\x00" * 7,
        "a header longer than the file": _file(b"{}", length=1 << 40),
        "a header of 2^64 bytes": _file(b"{}", length=(1 << 64) - 1),
        "a header that is no JSON": _file(b"{{{{"),
        "a header that is a list": _file(b"[1,2]"),
        "deep JSON": _file(b"[" * 100_000),
        "no description": _file(b'{"__metadata__": {}}'),
        "a description that is no JSON": _file(b'{"__metadata__": {"cachewright": "{"}}'),
        "of another version": gru(version=9),
        "an unknown key": gru(colour="red"),
        "an unknown kind": gru(architecture={**ARCHITECTURE, "kind": "oracle"}),
        "too many units": gru(architecture={**ARCHITECTURE, "hidden": [10**9]}),
        "no layer": gru(architecture={**ARCHITECTURE, "hidden": []}),
        "no input": gru(architecture={**ARCHITECTURE, "inputs": 0}),
        "a feature too many": gru(features=["f", "g"]),
        "a deviation of zero": gru(normalisation={"mean": [0.0], "deviation": [0.0]}),
        "no tensor": gru(),
        "a tensor beyond the file": _described(
            GRU, {"fc.weight": {**tensor, "data_offsets": [0, 1 << 40]}}
        ),
        "offsets that run backwards": _described(
            GRU, {"fc.weight": {**tensor, "data_offsets": [16, 0]}}
        ),
        "a tensor of 2^80 numbers": _described(
            GRU, {"fc.weight": {**tensor, "shape": [1 << 40, 1 << 40]}}
        ),
        "an unknown type": _described(GRU, {"fc.weight": {**tensor, "dtype": "F13"}}),
    }
    for what, content in bad.items():
        files = {"m.safetensors": content, **STACK}
        command = ("wa", "t.csv", "--separation", "shiro", "--model", "m.safetensors")
        yield Case(f"model: {what}", files, command, ("m.safetensors",))
    stack = BASE.replace(
        "[cache]\n", '[cache]\npolicy = "rc-rnn"\nmodels = { t = "m.safetensors" }\n'
    )
    files = {"s.toml": text(stack), "t.csv": text(TRACE), "m.safetensors": b"\x00" * 7}
    yield Case("model: of a policy", files, ("run", "{}"), ("m.safetensors",))


def _result(**keys: object) -> bytes:
    versions = {"cachewright": "0.1.0", "schema_version": 1}
    found = {**versions, "name": "x", "spec": {}, "workload": {}, **keys}
    return text(json.dumps(found))


def _results() -> Iterator[Case]:
    bad = {
        "empty": b"",
        "an empty object": b"{}",
        "a list": b"[1,2]",
        "a number": b"3",
        "not JSON": b"{",
        "not UTF-8": b"\xff\xfe",
        "of another version": _result(schema_version=9),
        "cases that are a number": _result(cases=3),
        "no case": _result(cases=[], tenants=[], varied=[]),
        "a case without total": _result(cases=[{}], tenants=[], varied=[]),
        "deep JSON": b"[" * 100_000,
    }
    for what, content in bad.items():
        for name in ("result.json", "wa.json"):
            command = ("report", "r")
            yield Case(f"{name}: {what}", {f"r/{name}": content}, command, (f"{name}",))
    yield Case("result: no folder", {}, ("report", "absent"), ("absent",))
    yield Case("result: an empty folder", {}, ("report", "d"), ("d",), folders=("d",))
    yield Case("result: a file", {"f": b"x"}, ("report", "{}"), ("f",))


def _imports() -> Iterator[Case]:
    bad = {
        "empty": b"",
        "not XML": b"hello",
        "an open tag": b"<Execution_Parameter_Set>",
        "another document": b"<a></a>",
        "entities in entities": b'<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><x>&b;</x>',
    }
    for what, content in bad.items():
        files = {"c.xml": content, "w.xml": content}
        yield Case(f"mqsim: {what}", files, ("import", "mqsim", "c.xml", "w.xml"), (".xml",))


def _options() -> Iterator[Case]:
    commands = {
        "an unknown command": (("rum", "{}"), "rum"),
        "an unknown option": (("run", "{}", "--colour"), "--colour"),
        "threads without bound": (("run", "{}", "--threads", "100000"), "threads"),
        "threads below zero": (("run", "{}", "--threads", "-1"), "threads"),
        "points without bound": (("mrc", "{}", "--points", "2000000000"), "points"),
        "windows without bound": (("mrc", "{}", "--windows", "100000"), "windows"),
        "an unknown method": (("mrc", "{}", "--method", "guess"), "guess"),
        "a rate above one": (("mrc", "{}", "--method", "shards", "--rate", "2"), "rate"),
        "a rate that is no number": (("mrc", "{}", "--method", "shards", "--rate", "nan"), "rate"),
        "an unknown policy": (("mrc", "{}", "--policy", "lrx"), "lrx"),
        "a figure of no kind": (("run", "{}", "--report", "--figures", "jpg"), "jpg"),
        "a set without value": (("run", "{}", "--set", "cache.capacity"), "--set"),
        "a set of an unknown key": (("run", "{}", "--set", "cache.x=1"), "cache.x"),
        "a vary without value": (("compare", "{}", "--vary", "policy="), "--vary"),
        "a vary of an unknown key": (("compare", "{}", "--vary", "cache.x=1,2"), "cache.x"),
        "a plan without goals": (("plan", "{}"), "goal"),
        "a plan without goals or partition": (("plan", "{}", "--partition", "nine"), "goal"),
        "an unknown separation": (("wa", "t.csv", "--separation", "nine"), "nine"),
        "an over-provisioning below zero": (("wa", "t.csv", "--op", "-1%"), "op"),
        "a superblock of no size": (("wa", "t.csv", "--superblock", "0B"), "superblock"),
        "an unknown list": (("list", "colours"), "colours"),
        "no command's argument": (("run",), "run"),
    }
    for what, (command, word) in commands.items():
        yield Case(f"option: {what}", STACK, command, (word,))
