"""The commands `live`: tools for the devices of a live server that is stopped.

For: tables of what the tools found. Must never know: what the devices hold. All tools can be cut
short: SIGINT ends them at once.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number

from cachewright import words
from cachewright._native import RunError
from cachewright.answers import (
    AnsweredRequests,
    CachedBlock,
    CachedVolume,
    CalibratedDevice,
    LiveChangeAnswer,
    LiveCheckAnswer,
    LiveDumpAnswer,
    LoadedTenant,
    ReadTimes,
)
from cachewright.cli import options, output, parsing
from cachewright.live import serving, watching
from cachewright.tables import Column, Table

app = App(
    name="live",
    help="Format, check, list, time, write back and repair a server's devices; reload and load it.",
)
# Imported when it is used: a trainer takes a second to import.
app.command(
    "cachewright.cli.live_train:train",
    name="train",
    help="Train the model of a server's `rc-rnn` on its last recordings, and let it take it over.",
)

NS_PER_US = 1e3

FormatAnyway = Annotated[
    bool,
    Parameter(negative=(), show_default=False, help="Format even if dirty data would be lost."),
]
DropDamaged = Annotated[
    bool,
    Parameter(negative=(), show_default=False, help="Also drop dirty blocks that are damaged."),
]


@app.command
def format(
    stack: options.Stack,
    /,
    *,
    discard_dirty: FormatAnyway = False,
    force: options.Force = False,
    set: options.Set = None,
    show: options.ShowArgs | None = None,
) -> None:
    """Make the devices of a stack an empty cache.

    Parameters
    ----------
    force
        Format even if the devices hold something else, such as a file system.

    """
    how = options.shown(show)
    with _cut_short():
        found = serving.format_devices(
            stack, settings=parsing.settings(set), discard_dirty=discard_dirty, force=force
        )
    if how.json:
        output.print_json(found)
    elif how.csv:
        output.print_csv([{"volume": one.name, "bytes": one.bytes} for one in found.volumes])
    else:
        output.facts(
            [
                ("set", found.set),
                ("devices", ", ".join(found.devices)),
                ("segments", f"{words.count(found.segments)} of {words.size(found.segment_bytes)}"),
                ("largest cache", words.size_at_most(found.max_cache_bytes)),
                ("discarded", words.size(found.discarded_bytes)),
                *((f"volume {one.name}", words.size(one.bytes)) for one in found.volumes),
            ]
        )


@app.command
def check(
    stack: options.Stack, /, *, set: options.Set = None, show: options.ShowArgs | None = None
) -> None:
    """Read and verify everything on the devices; fail if something is damaged."""
    how = options.shown(show)
    with _cut_short():
        found = serving.check_devices(stack, settings=parsing.settings(set))
    if how.json:
        output.print_json(found)
    elif how.csv:
        output.print_csv(vars(one) for one in found.volumes)
    else:
        for device in found.devices:
            segments = (
                f"{device.sealed_segments} sealed, {device.open_segments} open, "
                f"{device.free_segments} free"
            )
            output.say(f"{device.path}: {device.superblocks} of 2 superblocks, {segments}")
        output.say(
            f"{words.counted(found.void_groups, 'void group')}, "
            f"{words.counted(found.torn_footers, 'torn footer')}, "
            f"{words.counted(found.damaged_footers, 'damaged footer')}, "
            f"{words.counted(found.damaged_headers, 'damaged header')}, "
            f"{words.counted(found.lost_groups, 'lost group')}, "
            f"{words.counted(len(found.unreadable_pages), 'unreadable page')}"
        )
        for page in found.unreadable_pages:
            output.say(f"{page.path}: byte {page.offset} cannot be read ({page.error})")
        if found.hides_groups:
            output.say(
                "what was written last, and was durable, may have stood in such a page, or behind "
                "a header that is gone"
            )
        if found.read_only:
            output.say("content that was durable may be gone: exports are read-only until a repair")
        for one in found.changed_backings:
            output.say(f"{one.name}: {one.path} is not as the cache knows it ({one.why})")
        if found.held_elsewhere:
            output.say(
                "a server of another host, or one that knew these devices by another name, had "
                "them last: if it runs still, what is listed here changes"
            )
        _volumes(found.volumes)
        _say_bypassed(found)
    if not found.sound:
        raise RunError("found damage, expected none; see `cachewright live repair --help`")


@app.command
def dump(
    stack: options.Stack,
    /,
    *,
    blocks: Annotated[
        bool, Parameter(negative=(), show_default=False, help="List each cached block.")
    ] = False,
    set: options.Set = None,
    show: options.ShowArgs | None = None,
) -> None:
    """List what the devices hold: totals by volume, and each block if asked."""
    how = options.shown(show)
    with _cut_short():
        found = serving.dump_devices(stack, settings=parsing.settings(set), blocks=blocks)
    if how.json:
        output.print_json(found)
    elif how.csv and found.blocks is not None:
        output.print_csv((vars(one) for one in found.blocks), CachedBlock.__annotations__)
    elif how.csv:
        output.print_csv(vars(one) for one in found.volumes)
    else:
        _volumes(found.volumes)
        _say_bypassed(found)
        for one in found.blocks or ():
            kind = "dirty" if one.dirty else "clean"
            place = f"{one.device}:{one.device_offset}"
            output.say(f"{one.volume} {one.offset} {kind} decision {one.decision} at {place}")


@app.command
def writeback(
    stack: options.Stack,
    /,
    *,
    accept_changed: options.AcceptChanged = None,
    discard_dirty: Annotated[
        bool,
        Parameter(
            negative=(),
            show_default=False,
            help="Drop the dirty blocks of the tenants of `--accept-changed` instead.",
        ),
    ] = False,
    set: options.Set = None,
    show: options.ShowArgs | None = None,
) -> None:
    """Write all dirty blocks to the backing devices."""
    with _cut_short():
        found = serving.write_back(
            stack,
            settings=parsing.settings(set),
            accept_changed=accept_changed or (),
            discard_dirty=discard_dirty,
        )
    _changed(found, options.shown(show), "dirty blocks are damaged and were not written back")


@app.command
def repair(
    stack: options.Stack,
    /,
    *,
    discard_dirty: DropDamaged = False,
    set: options.Set = None,
    show: options.ShowArgs | None = None,
) -> None:
    """Rewrite damaged structures, drop damaged clean blocks, and accept that content was lost."""
    with _cut_short():
        found = serving.repair_devices(
            stack, settings=parsing.settings(set), discard_dirty=discard_dirty
        )
    _changed(found, options.shown(show), "dirty blocks are damaged; `--discard-dirty` drops them")


@app.command
def calibrate(
    stack: options.Stack,
    /,
    *,
    reads: Annotated[int, Parameter(validator=Number(gte=1))] = serving.CALIBRATION_READS,
    depth: Annotated[int, Parameter(validator=Number(gte=1))] = 1,
    set: options.Set = None,
    show: options.ShowArgs | None = None,
) -> None:
    """Time random reads of all devices, and print `hit_time` and `miss_time` for the stack.

    Parameters
    ----------
    reads
        Reads per device, each of one block.
    depth
        Also measure this many reads at a time.

    """
    how = options.shown(show)
    with _cut_short():
        found = serving.calibrate_devices(
            stack, settings=parsing.settings(set), reads=reads, depth=depth
        )
    rows = [(device, one) for device in found.devices for one in device.times]
    if how.json:
        output.print_json(found)
    elif how.csv:
        output.print_csv(
            {"device": device.path, "tenant": device.tenant, **vars(one)} for device, one in rows
        )
    else:
        for notice in found.notices:
            output.note(notice)
        columns: list[Column[tuple[CalibratedDevice, ReadTimes]]] = [
            Column("device", lambda row: row[0].path),
            Column("tenant", lambda row: row[0].tenant or "(cache)"),
            Column("depth", lambda row: row[1].depth, words.count),
            Column("mean", lambda row: row[1].mean_us * NS_PER_US, words.duration),
            Column("p50", lambda row: row[1].p50_us * NS_PER_US, words.duration),
            Column("p99", lambda row: row[1].p99_us * NS_PER_US, words.duration),
        ]
        output.show(Table("", columns, rows))
        output.say(f'[replay]\nhit_time = "{found.hit_time}"\nmiss_time = "{found.miss_time}"')
        if not found.is_usable:
            output.note(
                "a miss takes no longer than a hit here: no hit ratio stands for a latency, and "
                "`goal_latency` is refused"
            )


@app.command
def load(
    stack: options.Stack,
    /,
    *,
    depth: Annotated[int, Parameter(validator=Number(gte=1))] = 16,
    requests: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    speed: Annotated[float | None, Parameter(validator=Number(gt=0))] = None,
    set: options.Set = None,
    show: options.ShowArgs | None = None,
) -> None:
    """Send the traces of a stack to its server, which overwrites the volumes.

    Parameters
    ----------
    depth
        Maximum number of a tenant's requests in flight.
    requests
        Requests of each tenant, from the start of its trace; all by default.
    speed
        How much faster than recorded; as fast as answers come by default.

    """
    how = options.shown(show)
    with _cut_short():
        found = serving.send_load(
            stack, settings=parsing.settings(set), depth=depth, requests=requests, speed=speed
        )
    rows = [(tenant, one) for tenant in found.tenants for one in tenant.requests]
    if how.json:
        output.print_json(found)
    elif how.csv:
        output.print_csv({"tenant": tenant.name, **vars(one)} for tenant, one in rows)
    else:
        columns: list[Column[tuple[LoadedTenant, AnsweredRequests]]] = [
            Column("tenant", lambda row: row[0].name),
            Column("kind", lambda row: row[1].kind),
            Column("requests", lambda row: row[1].count, words.count),
            Column("per second", lambda row: round(row[1].count / row[0].seconds), words.count),
            Column("mean", lambda row: row[1].mean_us * NS_PER_US, words.duration),
            Column("p50", lambda row: row[1].p50_us * NS_PER_US, words.duration),
            Column("p99", lambda row: row[1].p99_us * NS_PER_US, words.duration),
            Column("errors", lambda row: row[1].errors, words.count),
        ]
        output.show(Table("", columns, rows))
        for tenant in found.tenants:
            if tenant.skipped:
                counted = words.counted(tenant.skipped, "request")
                output.note(f"{tenant.name}: {counted} beyond the export were left out")
            if tenant.late_p99_us is not None:
                late = words.duration(tenant.late_p99_us * NS_PER_US)
                output.note(f"{tenant.name}: 99 % of the requests were sent at most {late} late")
    if any(one.errors for _, one in rows):
        raise RunError("some requests were answered with errors")


@app.command
def reload(target: str, /) -> None:
    """Let a running server load its changed stack file, and fail if it refuses.

    Parameters
    ----------
    target
        The stack file of the server, or the address of its monitor (`serve.monitor`).

    """
    found = watching.reload(target)
    names = ", ".join(f"{one.name} ({one.state})" for one in found.tenants)
    output.say(f"{found.stack}: taken over; {words.size(found.capacity_bytes)} for {names}")


@contextmanager
def _cut_short() -> Iterator[None]:
    """Let SIGINT end the process at once: a tool does not look for signals."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _changed(found: LiveChangeAnswer, how: options.ShowArgs, damage: str) -> None:
    if how.json:
        output.print_json(found)
    elif how.csv:
        output.print_csv(vars(one) for one in found.volumes)
    elif not found.volumes and not found.rewritten and not found.accepted_loss:
        output.say("nothing to do")
    else:
        if found.rewritten:
            output.say(f"{words.counted(found.rewritten, 'structure')} written again")
        if found.accepted_loss:
            output.say(
                "content that was durable is gone, or may be: volumes may hold older content, "
                "and exports can be written to again"
            )
        for one in found.volumes:
            output.say(
                f"{one.name}: {words.size(one.written_back_bytes)} written back, "
                f"{words.size(one.dropped_bytes)} dropped, "
                f"{words.size(one.damaged_bytes)} damaged"
            )
    if not found.sound:
        raise RunError(damage)


def _say_bypassed(found: LiveCheckAnswer | LiveDumpAnswer) -> None:
    """Say that a server went on without the devices."""
    if not found.bypassed:
        return
    past = ", ".join(one.name for one in found.volumes if one.out_of_date) or "none"
    output.say(
        "a server went on without these devices when one failed, and they are served no more; "
        f"volumes that are newer than all that is listed here: {past}"
    )


def _volumes(volumes: Sequence[CachedVolume]) -> None:
    columns: list[Column[CachedVolume]] = [
        Column("volume", lambda one: one.name),
        Column("size", lambda one: one.bytes, words.size),
        Column("clean", lambda one: one.clean_bytes, words.size),
        Column("dirty", lambda one: one.dirty_bytes, words.size),
        Column("damaged clean", lambda one: one.damaged_clean_bytes, words.size),
        Column("damaged dirty", lambda one: one.damaged_dirty_bytes, words.size),
    ]
    output.show(Table("", columns, volumes))
