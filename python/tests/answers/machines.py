"""Stacks with devices: disks, arrays, drives, channels, logs, and how plans are carried out.

For: replays that answer in response times, of the four kinds of machine. Must never know: what the
answers are. Drives are small, so that they are made in no time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from answers import devices
from answers.case import Case, Tables, bundled, stack, tenant
from answers.devices import CACHE, CHANNELS, DISK, DRIVE, DRIVES, FLAT, TIERED
from answers.loops import WRITES, three

SMALL: Tables = {"capacity": "96 blocks"}
SLOW: Tables = {"time_scale": 20}
CLOSED: Tables = {"loop": "closed", "queue_depth": 4}
SPECS = {
    **dict.fromkeys(("demo", "flash-cache"), "2s"),
    **dict.fromkeys(("tiered", "buffer-cache", "ssd", "open-channel"), "300ms"),
    "flash-store": "40ms",
}
"""The stacks of `specs`, and when their replays stop."""

PAPERS: dict[str, Tables] = {
    "icache": {"replay.stop": "4s", "replay.interval": "250ms", "replay.warmup": "500ms"},
    "oc-cache": {"replay.stop": "400ms", "replay.warmup": "100ms"},
    "rc-rnn": {"replay.stop": "60s", "replay.warmup": "30s"},
    "shiro": {"replay.stop": "2s"},
    "soft-qos": {"replay.stop": "4s", "replay.profile_share": 0.01},
}
"""Those of the papers, and what cuts them short."""


def cases() -> Iterator[Case]:
    """Give every one of them."""
    for name, stop in SPECS.items():
        yield Case("check", f"specs-{name}", f"specs/{name}.toml")
        settings = {"replay.stop": stop, "replay.interval": "50ms", "replay.windows": 5}
        yield Case("run", f"specs-{name}", f"specs/{name}.toml", {"settings": settings})
    for name, cut in PAPERS.items():
        yield Case("check", f"specs-{name}", f"specs/{name}.toml")
        settings = {"replay.interval": "500ms", "replay.windows": 5, **cut}
        yield Case("run", f"specs-{name}", f"specs/{name}.toml", {"settings": settings})
    yield from _tiered()
    yield from _manners()
    yield from _buffered()
    yield from _drives()
    yield from _channels()
    yield from _stores()


def two(**keys: Any) -> list[dict[str, Any]]:
    """Return two skewed tenants."""
    return [tenant("a", weight=3, sensitive=True, **keys), tenant("b", **keys)]


def _tiered() -> Iterator[Case]:
    slow = stack(*two(**SLOW), cache=SMALL, device=TIERED, machine={"alone": True})
    deep = stack(*two(), cache=SMALL, device=TIERED, replay={**CLOSED, "queue_depth": 16})
    schedules = ["fifo", "sstf", "scan", "satf"]
    vary: dict[str, Any] = {"device.backing.schedule": schedules}
    yield Case("compare", "schedules", deep, {"vary": vary})
    vary = {"machine.write_back": ["on-eviction", "eager", "watermark"], "cache.write": WRITES}
    marks = {"dirty_high": 0.3, "dirty_low": 0.05, "clean_depth": 2}
    marked = {f"machine.{key}": value for key, value in marks.items()}
    yield Case("compare", "write-backs", slow, {"vary": vary, "settings": marked})
    decided = {"machine.decision_time": "300us", "machine.spare_blocks": 0}
    vary = {"machine.fill": ["after-answer", "before-answer"]}
    vary["machine.decision"] = ["before-request", "before-fill"]
    vary["machine.layout"] = ["as-is", "compact", "dense"]
    far = [bundled("mail", time_scale=20.0), tenant("a", **SLOW)]
    spread = stack(*far, cache=SMALL, device=TIERED, replay={"interval": "2s"})
    yield Case("compare", "decisions", spread, {"vary": vary, "settings": decided})
    closed = stack(*three(), cache=SMALL, device=TIERED, machine={"alone": True}, replay=CLOSED)
    own = {"device.backing.per_tenant": True, "replay.warmup": "200ms", "cache.partition": "hull"}
    counted = {"replay.throughput_window": "100ms", "replay.stop": "3s"}
    yield Case("run", "closed-devices", closed, {"settings": {**own, **counted}})
    array = {**DISK, "count": 3, "stripe": "16KiB", "per_tenant": True, "buffer": "0B"}
    wide = {"cache": {**CACHE, "count": 2, "stripe": "8KiB"}, "backing": array}
    yield Case("run", "arrays", stack(*two(), cache=SMALL, device=wide, replay=CLOSED))
    memory = {"model": "ram", "latency": "2us", "channels": 2}
    tuned = {"cache": memory, "backing": {**DISK, **devices.DISK_SET}}
    yield Case("run", "disk-set", stack(*three(), cache=SMALL, device=tuned, replay=CLOSED))
    backings = ["hdd-7200-2tb", "hdd-10045-9gb", "ram", "fixed-latency", "measured-latency", "null"]
    vary = {"device.backing.model": backings, "device.cache.model": ["ram", "null"]}
    bare = {"cache": {"model": "ram"}, "backing": DISK}
    plain = stack(*two(), cache=SMALL, device=bare, replay=CLOSED)
    yield Case("compare", "devices", plain, {"vary": vary})
    both = [bundled(name, time_scale=10.0) for name in ("mail", "oltp")]
    real = stack(*both, cache={"capacity": "4MiB"}, device=TIERED, replay={"interval": "2s"})
    vary = {"policy": ["lru", "benefit-oracle", "rc-x", "belady"], "capacity": ["1MiB", "8MiB"]}
    yield Case("compare", "oracles", real, {"vary": vary})
    future = stack(*two(), cache=SMALL, device={"cache": CACHE, "backing": FLAT})
    vary = {"partition": ["opt", {"name": "opt", "granules": 4, "floor_blocks": 10}, "icache-x"]}
    yield Case("compare", "foreseen", future, {"vary": vary})
    priced = {"name": "dp-response", "granules": 20, "half_life": 2.0, "min_gain": 0.0}
    tails = {"name": "robinhood", "tax": 0.1, "band_low": 0.5, "band_high": 0.9, "full_from": 0.0}
    vary = {"partition": ["dp-response", priced, "robinhood", tails, "auto"]}
    yield Case("compare", "by-responses", future, {"vary": vary})


def _manners() -> Iterator[Case]:
    flat = {"cache": CACHE, "backing": {**FLAT, "per_tenant": True}}
    noise = {"on": "80ms", "off": "50ms"}
    tenants = [
        tenant("a", noise=noise, repeat=True, queue_depth=8),
        tenant("b", noise={**noise, "off_depth": 2, "lengths": "fixed"}, start="200ms"),
        tenant("scans", repeat=True, stop="20%", think_time="2ms"),
    ]
    replay = {**CLOSED, "stop": "2s", "throughput_window": "50ms"}
    noisy = stack(*tenants, cache=SMALL, device=flat, replay=replay, seed=7)
    yield Case("run", "noise", noisy)
    paused = [bundled("soft-qos/player", pauses="recorded", stop="1%"), bundled("soft-qos/oltp")]
    yield Case("run", "pauses", stack(*paused, cache=SMALL, device=flat, replay=CLOSED))
    start = [tenant("a", start="300ms", stop="50%"), tenant("b", sample="30%", operation="read")]
    start[0]["sensitive"] = True
    open_loop = stack(*start, cache=SMALL, device=flat, replay={"warmup": "500ms"})
    vary = {"partition": ["shared", "static", "hull", "costpi"]}
    yield Case("compare", "open-devices", open_loop, {"vary": vary})


def _buffered() -> Iterator[Case]:
    disk = {"cache": {"model": "ram"}, "backing": {"model": "hdd-10045-9gb"}}
    files = [bundled("soft-qos/lu", stop="0.5%"), bundled("soft-qos/scan", stop="0.5%")]
    ahead = {"system": "buffer-cache", "read_ahead_min": "8KiB", "read_ahead_max": "64KiB"}
    ahead["read_ahead_streams"] = 2
    cached = {"capacity": "2MiB", "partition": "equal"}
    buffered = stack(*files, cache=cached, device=disk, machine=ahead, replay=CLOSED)
    vary = {"machine.in_flight": ["hit", "miss"], "machine.read_ahead": ["none", "linux"]}
    yield Case("compare", "buffer-cache", buffered, {"vary": vary})
    promised = [{**files[0], "goal_hit_ratio": 0.5}, {**files[1], "goal_hit_ratio": 0.2}]
    kept = stack(*promised, cache=cached, device=disk, machine=ahead, replay=CLOSED)
    vary = {"partition": ["soft-qos", "soft-qos-x", "icache-x"]}
    yield Case("compare", "buffer-goals", kept, {"vary": vary})


def _drives() -> Iterator[Case]:
    machine = {"system": "ssd", "read_fill": True}
    for name, about in DRIVES.items():
        block = "8KiB" if about["block"] == "256KiB" else "16KiB"
        cache = {"capacity": "64 blocks", "block": block}
        drive = {"ssd": {"model": name, **about}}
        found = stack(*two(), cache=cache, device=drive, machine=machine, replay=CLOSED)
        yield Case("run", f"drive-{name}", found)
    cache = {"capacity": "64 blocks", "block": "8KiB"}
    ssd = stack(*two(), cache=cache, device={"ssd": DRIVE}, machine=machine)
    drive = {"ssd": {**DRIVE, **devices.DRIVE_SET}}
    tuned = stack(*two(), cache=cache, device=drive, machine=machine, replay=CLOSED)
    yield Case("run", "drive-set", tuned)
    divided = ["shared", "hull", "costpi", "icache-x", {"name": "justitia", "reserve_pages": 8}]
    vary: dict[str, Any] = {"partition": divided}
    vary["machine.write_back"] = ["eager", "on-eviction", "watermark"]
    marks = {"hot_window": "20ms", "dirty_high": 0.4, "dirty_low": 0.2, "shrink_depth": 2}
    marked = {f"machine.{key}": value for key, value in marks.items()}
    marked["machine.back_pressure"] = "64KiB"
    yield Case("compare", "drive-caches", ssd, {"vary": vary, "settings": marked})
    vary = {"machine.handover": ["paced", "at-once"], "device.ssd.fill": ["empty", "replay"]}
    settings = {"cache.partition": "hull", "machine.alone": True, "machine.keep_destaged": True}
    yield Case("compare", "drive-fills", ssd, {"vary": vary, "settings": settings})
    vary = {"device.ssd.separation": ["none", "sepbit", "shiro"], "cache.write": WRITES[:2]}
    learned = {"device.ssd.reclaim": "greedy", "device.ssd.prediction_time": "5us"}
    learned["device.ssd.blocks"] = 64
    yield Case("compare", "drive-separations", ssd, {"vary": vary, "settings": learned})
    modelled = [tenant("a", model="lstm.safetensors"), tenant("b", model="mlp.safetensors")]
    given = {**cache, "model": "shares.safetensors"}
    seen = {"name": "icache", "steps_per_interval": 12, "window_steps": 12}
    taught = stack(*modelled, cache=given, device={"ssd": DRIVE}, machine=machine)
    yield Case("compare", "drive-models", taught, {"vary": {"partition": [seen, "mlcache"]}})
    apart = [tenant("a", channels=[1]), tenant("b", channels=1)]
    split = {**cache, "layout": "dedicated", "partition": "equal"}
    both = stack(*apart, cache=split, device={"ssd": DRIVE}, machine=machine, replay=CLOSED)
    yield Case("run", "drive-channels", both)


def _channels() -> Iterator[Case]:
    flat = {"cache": CHANNELS, "backing": {**FLAT, "per_tenant": True}}
    wanted = {"capacity": "1200 blocks", "partition": "equal"}
    apart = [tenant("a", channels=[0, 1, 2]), tenant("b", channels=2), tenant("scans")]
    replay = {**CLOSED, "windows": 4}
    fixed = stack(*apart, cache=wanted, device=flat, machine={"alone": True}, replay=replay)
    vary: dict[str, Any] = {"layout": ["striped", "dedicated", "flashblox"]}
    yield Case("compare", "layouts", fixed, {"vary": vary})
    curves = {"name": "hull", "ahead": True, "least_slope": 0.05, "own_policy": True}
    rooms = {"name": "oc-smq", "tick": 300, "hot_share": 0.1}
    pooled = {**wanted, "capacity": "900 blocks", "partition": curves, "policy": rooms}
    come = [tenant("a", stop="80%"), tenant("b", start="400ms"), tenant("c", "b.csv")]
    come[2] |= {"start": "900ms", "sample": "60%"}
    little = {**flat, "cache": {**CHANNELS, "blocks": 16}}
    machine = {"spare_blocks": 8, "swap_depth": 2}
    whole = {**replay, "profile_share": 1.0}
    tenancy = stack(*come, cache=pooled, device=little, machine=machine, replay=whole)
    lent = {"name": "on-demand", "lend": True, "watermark": 0.9}
    vary = {"layout": ["on-demand", lent], "policy": ["lru", rooms]}
    yield Case("compare", "layouts-on-demand", tenancy, {"vary": vary})


def _stores() -> Iterator[Case]:
    log = {"over_provisioning": "60%", "superblock": "32KiB", "reserve": 3}
    raw = {"model": "fixed-latency", "read": "90us", "write": "700us", "parallelism": 16}
    flat = {"cache": {"model": "ram"}, "backing": raw}
    machine = {"system": "flash-store", "reset_time": "4ms"}
    held = [tenant("b"), tenant("updates")]
    store = stack(*held, cache=SMALL, flash=log, device=flat, machine=machine, replay=CLOSED)
    vary: dict[str, Any] = {"separation": ["none", "2r", "sepbit"], "cache.write": WRITES[:2]}
    yield Case("compare", "store", store, {"vary": vary})
    paced = {"append_depth": 4, "move_depth": 2, "move_depth_busy": 0, "command": "16KiB"}
    settings = {f"machine.{key}": value for key, value in paced.items()} | {"replay.loop": "open"}
    vary = {"machine.initial": ["written", "empty"], "device.backing.per_tenant": [False, True]}
    vary["reclaim"] = ["greedy", "cost-benefit"]
    yield Case("compare", "store-settings", store, {"vary": vary, "settings": settings})
    ssd = {"cache": {"model": "ram"}, "backing": {**DRIVE, "blocks": 64}}
    beneath = stack(*held, cache=SMALL, flash=log, device=ssd, machine=machine, replay=CLOSED)
    yield Case("run", "store-on-drive", beneath)
