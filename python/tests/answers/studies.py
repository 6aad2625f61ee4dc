"""Curves, write amplification, plans, facts of traces, kinds of workloads, segments.

For: the verbs beside `check`, `run` and `compare`. Must never know: what the answers are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import cachewright
from answers import models, traces
from answers.case import Case, bundled, stack, tenant
from answers.devices import CACHE, DRIVE, FLAT
from answers.loops import FLASH, POLICIES, RECLAIMS, SEPARATIONS, SEPARATIONS_SET, SMALL, three
from answers.machines import CLOSED

BOUNDS = ("fk", "future-knowledge", "shiro-known")
BOUNDS_SET = ({"name": "fk", "classes": 3}, {"name": "future-knowledge", "first": 0.1, "ratio": 2})
SIZES = ("16 blocks", "64 blocks", "10%wss", "1MiB")
DATA = (
    *("oltp", "mail", "web", "lu"),
    *("soft-qos/lu", "soft-qos/oltp", "soft-qos/scan", "soft-qos/player"),
)


def cases() -> Iterator[Case]:
    """Give every one of them."""
    yield from _curves()
    yield from _wear()
    yield from _plans()
    yield from _facts()
    yield from _kinds()


def _curves() -> Iterator[Case]:
    plain = stack(*three(), cache=SMALL)
    unsampled = ("belady", "belady-bypass", "reca", "rc-x", "baleen")
    policies = [name for name in POLICIES if name not in unsampled]
    yield Case("mrc", "policies", plain, {"policies": policies, "points": 5})
    yield Case("mrc", "exact", plain, {"method": "exact", "sizes": SIZES, "verify": 2})
    rate: dict[str, Any] = {"method": "shards", "rate": 0.3, "salts": 3, "verify": 1}
    yield Case("mrc", "shards", plain, {**rate, "points": 6})
    yield Case("mrc", "shards-size", plain, {"method": "shards-size", "size": 200, "salts": 2})
    mini = {"method": "mini", "policies": ["arc", "s3-fifo"], "salts": 2, "points": 4}
    yield Case("mrc", "mini", plain, {**mini, "rate": 0.5})
    yield Case("mrc", "auto", plain, {"policies": ["lru", "sieve"], "rate": 0.4, "points": 4})
    yield Case("mrc", "windows", plain, {"windows": 3, "policies": ["lru", "lfu"], "points": 4})
    yield Case("mrc", "trace", "data/mail.csv.zst", {"block": "64KiB", "points": 12})
    slow = [tenant("a"), tenant("scans")]
    disks = {"cache": CACHE, "backing": {**FLAT, "per_tenant": True}}
    timed = stack(*slow, cache=SMALL, device=disks, replay=CLOSED)
    yield Case("mrc", "latency", timed, {"sizes": SIZES[:2], "latency": True})
    drive = {"capacity": "64 blocks", "block": "8KiB"}
    ssd = stack(*slow, cache=drive, device={"ssd": DRIVE}, machine={"system": "ssd"})
    yield Case("mrc", "latency-drive", ssd, {"sizes": ["32 blocks"], "latency": True})


def _named(schemes: Any) -> list[str]:
    """Return names and settings of schemes as an option gives them."""
    return [cachewright.stack.plain(scheme) for scheme in schemes]


def _wear() -> Iterator[Case]:
    one: dict[str, Any] = {"op": ["60%"], "superblock": "32KiB", "reserve": 2}
    every = _named((*SEPARATIONS, *BOUNDS))
    yield Case("wa", "separations", "updates.csv", {**one, "separations": every})
    tuned = _named((*SEPARATIONS_SET, *BOUNDS_SET))
    yield Case("wa", "separations-set", "updates.csv", {**one, "separations": tuned})
    cleaned = {"separations": ["none", "sepbit"], "reclaims": _named(RECLAIMS)}
    yield Case("wa", "reclaims", "updates.csv", {**one, **cleaned})
    yield Case("wa", "sizes", "a.csv", {**one, "op": ["40%", "100%"], "separations": ["2r"]})
    both = ["none", "sepbit", "shiro-x"]
    loop = {"separations": both, "loop": True, "drive_writes": 12.0}
    yield Case("wa", "loop", "a.csv", {**one, **loop})
    live = {"separations": both, "capacity": "live", "loop": True}
    yield Case("wa", "live", "files.csv", {**one, **live})
    sized = {"separations": both, "capacity": "8MiB", "page": "8KiB", "drive_writes": 1.5}
    yield Case("wa", "loaded", "b.csv", {**one, **sized, "load": ["load.csv"]})
    real = {"separations": ["none", "midas", "sepbit"], "superblock": "64KiB", "op": ["28%"]}
    lap = {"settings": {"replay.stop": "4s"}, "loop": True, "drive_writes": 3.0}
    yield Case("wa", "bundled", "data/mail.csv.zst", {**real, **lap})
    given = {"separations": ["shiro", "shiro-ng"], "model": "shiro.safetensors"}
    yield Case("wa", "model", "updates.csv", {**one, **given})
    many = stack(tenant("a"), tenant("updates"), cache=SMALL, flash=FLASH, seed=5)
    named = {"separations": ["sepbit", "shiro"], "load": ["a=load.csv"]}
    yield Case("check", "wa-stack", many)
    yield Case("wa", "stack", many, named)


def _plans() -> Iterator[Case]:
    a, b, scans = three()
    promised = [{**a, "goal_hit_ratio": 0.6}, {**b, "goal_latency": "4ms"}, scans]
    goals = stack(*promised, cache=SMALL, replay={"profile_share": 0.3})
    yield Case("check", "plan-goals", goals)
    yield Case("plan", "goals", goals, {"precision": 0.02})
    two = {"partitions": ["static", "soft-qos-x"], "settings": {"cache.policy": "s3-fifo"}}
    yield Case("plan", "partitions", goals, two)
    beyond = {"partitions": ["equal"], "settings": {"tenant.a.goal_hit_ratio": 0.999}}
    yield Case("plan", "beyond", goals, beyond)
    disks = {"cache": CACHE, "backing": FLAT}
    timed = stack(*promised, cache=SMALL, device=disks, replay=CLOSED)
    yield Case("check", "plan-devices", timed)
    found = {"partitions": ["shared", "soft-qos"], "precision": 0.05}
    yield Case("plan", "devices", timed, found)
    slow = stack(*three(time_scale=5), cache=SMALL, device=disks, replay={"interval": "500ms"})
    yield Case("check", "segments", slow)
    yield Case("segments", "tiered", slow, {"granules": 4, "steps": 10})


def _facts() -> Iterator[Case]:
    for name in DATA:
        yield Case("info", f"data-{name.replace('/', '-')}", f"data/{name}.csv.zst")
    for name in (*traces.TEXTS, *traces.BINARY):
        found = cachewright.Trace(f"formats/{name}", format="raw" if name == "raw" else None)
        yield Case("info", f"format-{name}", found)
    skipped = cachewright.Trace("bad.csv", on_bad_record="skip")
    yield Case("info", "skipped", skipped)
    one = cachewright.Trace("volumes.csv", volume="1")
    yield Case("info", "volume", one, {"block": "16KiB"})
    columns = {"columns": "time=5,op=2,offset=3,length=4,volume=1", "time_unit": "us"}
    units = {"offset_unit": "B", "length_unit": "B", "header": "no", "keep": "2=R|W"}
    mapped = cachewright.Trace("a.csv", "csv", options={**columns, **units})
    yield Case("info", "columns", mapped)


def _kinds() -> Iterator[Case]:
    for name in ("oltp", "soft-qos/player"):
        trace = f"data/{name}.csv.zst"
        yield Case("characterize", f"data-{name.replace('/', '-')}", trace)
    yield Case("characterize", "periods", "volumes.csv", {"every": "250ms"})
    yield Case("characterize", "counts", "formats/ids", {"every": "2"})
    for by in models.CHARACTERIZERS:
        judged = {"every": "500ms", "model": f"{by}.safetensors"}
        yield Case("characterize", f"by-{by}", "volumes.csv", judged)
    bundle = stack(bundled("web", stop="1%"), cache={"capacity": "10%wss"})
    yield Case("check", "bundled", bundle)
