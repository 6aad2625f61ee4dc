"""The command `explain`: why a block came into a served cache, and why it left.

For: printing the events of a block's life. Must never know: how recordings are found or replayed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from cachewright import words
from cachewright.answers import BlockEvent, ExplainAnswer
from cachewright.cli import options, output, parsing
from cachewright.live import explaining
from cachewright.tables import Column, Table

# Events shown of each end, where there are more.
SHOWN_EVENTS = 40


def explain(
    target: str,
    block: str,
    /,
    *,
    recording: Annotated[list[Path] | None, Parameter(negative=())] = None,
    set: options.Set = None,
    show: options.ShowArgs | None = None,
) -> None:
    """Report what became of one block of a served volume: admitted, hit, evicted, and why.

    The server finishes its current recording, and all recordings are replayed. Each miss has its
    cause, and each eviction what it made room for. The server is not changed.

    Parameters
    ----------
    target
        The stack file of the server, or the address of its monitor (`serve.monitor`).
    block
        VOLUME@OFFSET: a byte of the block, such as mail@40960 or mail@12GiB.
    recording
        A recording to read instead of those in the folder `serve.record`; may be repeated.

    """
    how = options.shown(show)
    found = explaining.explain(
        target, block, recorded=recording or (), settings=parsing.settings(set)
    )
    if how.json:
        output.print_json(found)
    elif how.csv:
        output.print_csv(vars(one) for one in found.events)
    else:
        _show(found)


def _show(found: ExplainAnswer) -> None:
    end = found.offset_bytes + found.block_bytes
    output.say(
        f"{found.volume}, bytes {found.offset_bytes} to {end - 1}: {found.policy}, "
        f"{found.partition}; {words.counted(found.requests, 'request')} in "
        f"{words.counted(len(found.recordings), 'recording')} of {words.duration(found.span_ns)}"
    )
    if found.requests_left_out:
        left_out = words.counted(found.requests_left_out, "request")
        output.say(f"{left_out} of volumes that the stack does not have any more left out")
    if not found.states:
        output.say("no state stands beside the first recording: the cache is empty at first")
    output.say()
    events = list(found.events)
    hidden = len(events) - 2 * SHOWN_EVENTS
    if hidden > 0:
        events = events[:SHOWN_EVENTS] + events[-SHOWN_EVENTS:]
    if events:
        columns: list[Column[BlockEvent]] = [
            Column("after", lambda one: one.time_ns, words.duration),
            Column("event", _event),
            Column("why", lambda one: one.why or words.NOTHING),
        ]
        output.show(Table("", columns, events))
    if hidden > 0:
        output.say(f"{words.counted(hidden, 'event')} between them not shown; --json has all")
    if found.events_left_out:
        output.say(f"{words.counted(found.events_left_out, 'later event')} not kept")
    output.say()
    output.conclude(_conclusion(found))


def _event(one: BlockEvent) -> str:
    if one.count == 1:
        return one.event
    return f"{one.event}, {words.count(one.count)} times until {words.duration(one.last_ns)}"


def _conclusion(found: ExplainAnswer) -> str:
    if not found.accesses:
        return "No request of the recordings has read or written this block."
    state = "is in the cache" if found.is_cached else "is not in the cache"
    if found.is_dirty:
        state += ", dirty"
    return (
        f"{words.counted(found.hits, 'hit')} of {words.count(found.accesses)} reads and writes; "
        f"at the end the block {state}."
    )
