"""The command `plan`: the smallest cache that meets every tenant's goal, and its split.

For: what each tenant needs alone, and what each partitioner needs for all. Must never know: how
sizes are tried.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cachewright import api, words
from cachewright.cli import options, output
from cachewright.cli.progress import progress
from cachewright.cli.tables import Column, table


def plan(
    stack: Path,
    *,
    partition: str = "soft-qos,equal,shared",
    precision: float = 0.01,
    set: options.Set = None,
    threads: int = 0,
    json: options.Json = False,
) -> None:
    """Find the smallest cache that meets every tenant's goal, and how to split it.

    Parameters
    ----------
    stack
        The stack file (TOML); each tenant has `goal_hit_ratio` or `goal_latency`.
    partition
        Partitioners to size the cache for, with commas.
    precision
        Share by which an answer may be too large.
    set
        Change a setting as KEY=VALUE, as often as needed.
    threads
        Threads to use; 0 uses every core.
    json
        Print the plan as JSON.

    """
    with progress() as on_progress:
        document = api.plan(
            stack,
            options.comma_list(partition),
            precision=precision,
            settings=options.settings(set),
            threads=threads,
            progress=on_progress,
        )
    if json:
        output.print_json(document)
        return
    for sentence in document["notes"]:
        output.note(sentence)
    _alone(document)
    _sized(document)


def _blocks(blocks: int | None, block: int) -> str:
    return "no size" if blocks is None else words.size(blocks * block)


def _alone(document: dict[str, Any]) -> None:
    block, tenants = int(document["block_bytes"]), document["tenants"]
    table(
        "what each tenant needs alone",
        [
            Column("tenant", [tenant["name"] for tenant in tenants], numeric=False),
            Column("goal", [words.ratio(tenant["goal_hit_ratio"]) for tenant in tenants]),
            Column("cache", [_blocks(tenant["alone_blocks"], block) for tenant in tenants]),
            Column("best there is", [words.ratio(t["best_hit_ratio"]) for t in tenants]),
        ],
    )
    smallest = document["smallest_blocks"]
    if smallest is None:
        output.say("together: some goal is beyond any cache")
    else:
        output.say(f"together: {_blocks(smallest, block)}, split as above and never changed")


def _sized(document: dict[str, Any]) -> None:
    block, sized = int(document["block_bytes"]), document["partitions"]
    smallest = document["smallest_blocks"]
    columns = [
        Column("partition", [one["partition"] for one in sized], numeric=False),
        Column("smallest cache", [_blocks(one["smallest_blocks"], block) for one in sized]),
        Column("of the perfect split", [_times(one["smallest_blocks"], smallest) for one in sized]),
    ]
    if len(sized) > 1:
        first = sized[0]["smallest_blocks"]
        factors = [_times(one["smallest_blocks"], first) for one in sized]
        columns.append(Column(f"of {sized[0]['partition']}", factors))
    for at, tenant in enumerate(document["tenants"]):
        shares = [_share(one, at, block) for one in sized]
        columns.append(Column(tenant["name"], shares))
    output.say()
    table("smallest cache that meets every goal; each tenant's hit ratio and last quota", columns)
    for one in sized:
        if one["warning"]:
            output.note(f"{one['partition']}: {one['warning']}")


def _times(blocks: int | None, smallest: int | None) -> str:
    if not blocks or not smallest:
        return words.NOTHING
    return f"{words.significant(blocks / smallest)} x"


def _share(one: dict[str, Any], at: int, block: int) -> str:
    if not one["hit_ratios"]:
        return words.NOTHING
    ratio = words.ratio(one["hit_ratios"][at])
    quotas = one["quota_blocks"]
    own = quotas and one["partition"] != "shared"
    return f"{ratio} in {words.size(quotas[at] * block)}" if own else ratio
