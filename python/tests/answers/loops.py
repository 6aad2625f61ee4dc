"""Stacks without devices: policies, partitioners, write modes, tenants, drives under a cache.

For: replays that answer in hits, in open and in closed loops. Must never know: what the answers
are. Other modules take names of schemes and tenants from here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from answers.case import Case, Tables, bundled, stack, tenant

SMALL: Tables = {"capacity": "96 blocks"}
POLICIES = (
    *("lru", "fifo", "clock", "sieve", "lfu", "s3-fifo", "arc"),
    *("larc", "2q", "lirs", "smq", "oc-smq", "access-frequency", "reca"),
    *("rc-x", "duel-x", "guarded", "slru", "w-tinylfu", "lhd", "cacheus", "lrb", "gl-cache"),
    *("merlin", "s4-fifo", "clock2q-plus", "mq", "3l-cache", "baleen"),
    *("belady", "belady-bypass"),
)
"""Those that need neither models nor devices."""

POLICIES_SET = (
    {"name": "lfu", "aging": True},
    {"name": "lfu", "aging": True, "average_limit": 3},
    {"name": "s3-fifo", "small_share": 0.3, "ghost_share": 0.5, "promote_hits": 1},
    {"name": "s3-fifo", "small_share": 0.2, "ghost_share": 1.5, "promote_hits": 3},
    {"name": "s3-fifo", "variant": "paper"},
    {"name": "2q", "kin": 0.4, "kout": 1.0},
    {"name": "lirs", "hir": 0.1},
    {"name": "lirs", "variant": "libcachesim"},
    {"name": "lirs", "variant": "libcachesim", "hir": 0.2},
    {"name": "smq", "tick": 200, "history": 1.0, "region_blocks": 4, "idle": True},
    {"name": "oc-smq", "tick": 300, "free": 0.1, "clean": 0.2, "hot_share": 0.5},
    {"name": "access-frequency", "history": 1.0, "halve_every": 2.0},
    {"name": "reca", "window": 100, "rules": 0.4, "stale_after": 1.0},
    {"name": "rc-x", "write_price": 0.3, "ghosts": 1.0, "sample": 8, "by_request": False},
    {"name": "duel-x", "write_price": 0.3, "margin": 0.0, "halve_every": 2.0},
    {"name": "guarded", "write_price": 0.3, "margin": 0.0, "horizon": 1.0, "miniature": 32},
    {"name": "slru", "segments": 4, "protected_share": 0.75, "fill_upper": True},
    {"name": "w-tinylfu", "window": 0.1, "sample": 5.0, "history": 1.0, "doorkeeper": False},
    {"name": "lhd", "candidates": 8, "interval": 500, "explorers": 0.05},
    {"name": "cacheus", "scanned_share": 0.2, "history": 1.0, "lru_weight": 0.7},
    {"name": "lrb", "candidates": 16, "window": 4.0, "history": 1.0, "batch": 500, "trees": 8},
    {"name": "3l-cache", "candidates": 8, "drawn_per_victim": 3, "batch": 300, "trees": 8},
    {"name": "baleen", "write_rate": 0.3, "ghosts": 1.0, "slice": 0.5, "extent": "1MiB"},
    {"name": "merlin", "filter_share": 0.2, "ghost_share": 0.5, "halve_every": 2, "history": 0.5},
    {"name": "s4-fifo", "observe": 300, "skip_share": 0.2, "ghost_hits": 1},
    {"name": "s4-fifo", "choose": False, "small_share": 0.3, "skip_share": 0.5},
    {"name": "clock2q-plus", "small_share": 0.3, "ghost_share": 0.5, "window_share": 0.2},
    {"name": "mq", "lists": 4, "lifetime": 100, "history": 1.0},
    {"name": "gl-cache", "group": 4, "interval": 4.0, "history": 0.5, "trees": 8},
)
GOALLESS = (
    *("shared", "equal", "static", "hull", "costpi", "dp", "memshare", "auto"),
    {"name": "static", "floor_blocks": 20},
    {"name": "hull", "by_ratio": True, "smoothing": 0.0, "floor_blocks": 5},
    {"name": "hull", "own_policy": True},
    {"name": "hull", "ahead": True, "own_policy": True, "by_ratio": True, "least_slope": 0.05},
    {"name": "hull", "floor_share": 0.5, "min_gain": 0.1, "max_moved": 0.1},
    {"name": "dp", "granules": 20, "weighted": True, "floor_blocks": 9, "smoothing": 0.2},
    {"name": "dp", "own_policy": True, "min_gain": 0.1, "max_moved": 0.1},
    {"name": "memshare", "guaranteed": 0.2, "shadow": 0.2, "credit": 4.0, "max_moved": 0.3},
    {"name": "memshare", "idle_tax": 0.9, "lend_after": 2},
    "hare",
    {"name": "hare", "bandwidth": 1000.0, "granules": 16, "margin": 0.0, "window": 3},
)
WITH_GOALS = (
    "soft-qos",
    "soft-qos-x",
    {"name": "soft-qos", "cumulative": False, "gain_at_demand": True, "most_moved": 0.1},
    {"name": "soft-qos", "lend_after": 2},
    {"name": "soft-qos-x", "smoothing": 0.2, "correction": 2.0, "most_moved": 0.3},
)
WRITES = ("write-back", "write-through", "write-around", "read-only")
SEPARATIONS = (
    *("none", "2r", "dac", "multi-log", "mida", "midas", "warcip", "sepbit", "uw", "gw"),
    *("shiro", "shiro-levels", "shiro-ng", "shiro-x"),
)
"""Those that do not need the future."""

SHIRO_SET = {"window_share": 0.5, "threshold_window": 0.5, "least_class": 0.0}
SEPARATIONS_SET = (
    {"name": "dac", "levels": 3},
    {"name": "multi-log", "levels": 4},
    {"name": "mida", "levels": 3},
    {"name": "midas", "sample_every": 2, "window": 1.0, "skip": 0.5, "trial": 0.5},
    {"name": "warcip", "clusters": 4, "window": 0.05, "logarithmic": False},
    {"name": "sepbit", "averaged": 2, "ratio": 2.0, "classes": 5, "meta_share": 0.01},
    {"name": "shiro", **SHIRO_SET, "log_inputs": True, "censored": "final"},
    {"name": "shiro-levels", **SHIRO_SET, "series_steps": 1, "censored": "long"},
    {"name": "shiro-ng", **SHIRO_SET, "explore_share": 0.2, "meta_share": 0.0},
    {"name": "shiro-x", "trials": False, "window_share": 0.5, "keep": 0.5},
)
RECLAIMS = (
    *("greedy", "cost-benefit", "fifo", "adjusted-greedy", "d-choices", "death-rate"),
    {"name": "cost-benefit", "form": "lfs", "since": "creation"},
    {"name": "d-choices", "d": 3},
)
FLASH: Tables = {"over_provisioning": "100%", "superblock": "32KiB", "reserve": 2}


def cases() -> Iterator[Case]:
    """Give every one of them."""
    yield from _policies()
    yield from _partitions()
    yield from _tenants()
    yield from _closed()
    yield from _flash()


def three(**keys: Any) -> list[dict[str, Any]]:
    """Return two skewed tenants and one that scans."""
    mine = {"a": {"weight": 2, "sensitive": True}, "b": {"start": "300ms"}, "scans": {"weight": 3}}
    return [tenant(name, **one, **keys) for name, one in mine.items()]


def _policies() -> Iterator[Case]:
    shared = stack(*three(), cache=SMALL)
    yield Case("compare", "policies", shared, {"vary": {"policy": POLICIES}})
    equal = {"cache.partition": "equal", "replay.curves": False, "cache.block": "8KiB"}
    vary: dict[str, Any] = {"policy": POLICIES}
    yield Case("compare", "policies-equal", shared, {"vary": vary, "settings": equal})
    yield Case("compare", "policies-set", shared, {"vary": {"policy": POLICIES_SET}})
    dear = {"name": "cachesack", "write_price": 1.5, "every": 1.0, "regions": 4, "extent": "1MiB"}
    few = {"name": "cachesack", "ghosts": 0.5}
    vary = {"policy": ["cachesack", dear, few]}
    yield Case("compare", "policies-priced", shared, {"vary": vary})
    plain = stack(tenant("a"), cache={"capacity": "1MiB"}, replay={"windows": 100})
    yield Case("run", "defaults", {**plain, "replay": {}})
    vary = {"policy": ["lru", "s3-fifo", "larc"], "cache.write": WRITES}
    trimmed = stack(tenant("b"), bundled("mail"), cache={"capacity": "2MiB"})
    yield Case("compare", "writes", trimmed, {"vary": {**vary, "cache.trim": ["drop", "ignore"]}})
    sizes = ["1 blocks", "48 blocks", "10%wss", "100%wss"]
    vary = {"capacity": sizes, "cache.block": ["512B", "4KiB", "64KiB"]}
    yield Case("compare", "sizes", stack(*three(), cache={"capacity": "1MiB"}), {"vary": vary})
    units = stack(*three(), cache=SMALL, replay={"blocks": "unit", "curves": False})
    yield Case("run", "units", units, {"settings": {"replay.warmup": "800ms"}})
    drawn = {
        "models": {"mail": "labels.safetensors", "web": "labels-gru.safetensors"},
        "workload": "mail",
    }
    judge = {"name": "twsd", "model": "twsd.safetensors", "every": "200ms", "remembered": 32}
    labelled = stack(*three(), cache={**SMALL, **drawn, "characterize": judge, "policy": "rc-rnn"})
    yield Case("run", "rc-rnn", labelled)
    queues = {"name": "rc-rnn", "requeue_hits": False, "uncached_soon": False, "load_ms": 50.0}
    small = {"policy": queues, "models": {"mail": "labels-int8.safetensors"}}
    yield Case("run", "rc-rnn-int8", stack(*three(), cache={**SMALL, **small}))
    outside = {**SMALL, "policy": "python:cachewright.examples:LruCache"}
    yield Case("run", "python", stack(*three(), cache=outside))


def _partitions() -> Iterator[Case]:
    plain = stack(*three(), cache=SMALL)
    vary: dict[str, Any] = {"partition": GOALLESS, "policy": ["lru", "arc"]}
    yield Case("compare", "partitions", plain, {"vary": vary})
    a, b, scans = three()
    timed = [{**a, "schedule": [3.0, 1.0]}, {**b, "schedule": [1.0, 2.0, 4.0]}, scans]
    by_time = stack(*timed, cache={**SMALL, "partition": "scheduled"}, replay={"interval": "200ms"})
    yield Case("run", "scheduled", by_time)
    promised = [{**a, "goal_hit_ratio": 0.6}, {**b, "goal_latency": "4ms"}, scans]
    goals = stack(*promised, cache=SMALL, replay={"profile_share": 0.3})
    vary = {"partition": WITH_GOALS, "replay.loop": ["open", "closed"]}
    yield Case("compare", "goals", goals, {"vary": vary})
    gone = stack({**promised[0], "stop": "900ms"}, *promised[1:], cache=SMALL)
    yield Case("compare", "goals-idle", gone, {"vary": {"partition": WITH_GOALS[2:]}})
    reuse = {"capacity": "2MiB", "model": "shares.safetensors"}
    modelled = [tenant(n, model=f"{m}.safetensors") for n, m in (("a", "lstm"), ("b", "mlp"))]
    modelled[0]["model_updates"] = ["later.safetensors"]
    seen = {"name": "icache", "steps_per_interval": 12, "window_steps": 12}
    carried = {**seen, "carried": True, "spread": True, "reserve": 2.0}
    vary = {"partition": ["mlcache", seen, carried], "replay.loop": ["open", "closed"]}
    given = stack(*modelled, cache=reuse)
    yield Case("compare", "partitions-models", given, {"vary": vary})
    demo = [bundled(name, stop="3s") for name in ("oltp", "mail", "web", "lu")]
    whole = stack(*demo, cache={"capacity": "16MiB", "partition": "hull"})
    yield Case("run", "bundled", whole)


def _tenants() -> Iterator[Case]:
    manners = [
        tenant("fast", "a.csv", time_scale=0.5, start="200ms", stop="900ms", weight=0.5),
        tenant("late", sort=True, max_request="1MiB"),
        tenant("one", "volumes.csv", volume=1, operation="read"),
        tenant("two", "volumes.csv", volume="2", operation="write"),
        tenant("part", "b.csv", sample="50%"),
        tenant("cut", "scans.csv", request="16KiB", stop="40%"),
        tenant("bad", on_bad_record="skip", format="alibaba"),
        tenant("ids", "formats/ids", options={"block": "8KiB"}),
        tenant("made", "formats/synth", volume="b", options={"seed": 11}),
    ]
    yield Case("run", "tenants", stack(*manners, cache={**SMALL, "partition": "static"}))
    short = {"stop": "1100ms", "clock": "common", "windows": 4, "warmup": "300ms"}
    together = stack(tenant("a"), tenant("b", time_scale=2.0), cache=SMALL, replay=short)
    yield Case("run", "clock", together)
    bare = {"curves": False, "windows": 0, "max_accesses": 100_000}
    yield Case("run", "bare", stack(tenant("a"), cache=SMALL, replay=bare))


def _closed() -> Iterator[Case]:
    times = {"loop": "closed", "hit_time": "50us", "miss_time": "2ms", "queue_depth": 4}
    a, b, scans = three()
    waits = [{**a, "think_time": "300us"}, {**b, "queue_depth": 1}, {**scans, "stop": "50%"}]
    closed = stack(*waits, cache=SMALL, replay=times)
    vary = {"partition": GOALLESS[:5], "policy": ["lru", "larc", "reca"]}
    yield Case("compare", "closed", closed, {"vary": vary})
    stopped = {"replay.stop": "1s", "replay.think_time": "1ms", "replay.curves": False}
    yield Case("run", "closed-stop", closed, {"settings": stopped})


def _flash() -> Iterator[Case]:
    worn = stack(tenant("a"), tenant("updates"), cache={"capacity": "192 blocks"}, flash=FLASH)
    yield Case("compare", "flash", worn, {"vary": {"separation": SEPARATIONS}})
    yield Case("compare", "flash-set", worn, {"vary": {"separation": SEPARATIONS_SET}})
    vary: dict[str, Any] = {"reclaim": RECLAIMS, "separation": ["2r", "sepbit"]}
    yield Case("compare", "flash-reclaims", worn, {"vary": vary})
    pages = {**FLASH, "page": "4KiB", "capacity": "2MiB", "trim_evicted": True, "reserve": 3}
    blocks = {"capacity": "64 blocks", "block": "16KiB", "partition": "hull"}
    drive = stack(*three(), cache=blocks, flash=pages)
    vary = {"cache.write": WRITES, "replay.loop": ["open", "closed"]}
    yield Case("compare", "flash-pages", drive, {"vary": vary})
