"""Replays that continue where a live server was, from the state beside its recordings.

For: `cachewright run` and `explain` with what a server in a process of its own has written. Must
never know: how a cache decides.
"""

from __future__ import annotations

import json
from pathlib import Path

from conftest import Answer, Command
from test_advise import BLOCK, READ, WRITE, Recorded

from cachewright.live import explaining, recordings, watching


def finish(served: Recorded) -> None:
    """Let the server finish its recording and begin another one."""
    recordings.finish(served.url, watching.status(served.url))


def replayed(served: Recorded, file: Path, command: Command, *more: str) -> Answer:
    """Replay the served stack from the beginning of a recording."""
    trace = [f"tenant.{name}.trace={file}@0s" for name in ("data", "more")]
    volume = [f"tenant.{name}.volume={name}" for name in ("data", "more")]
    settings = [word for text in (*trace, *volume) for word in ("--set", text)]
    return command("run", served.path, *settings, *more)


def test_a_replay_decides_as_the_server_did_and_says_so(tmp_path: Path, command: Command) -> None:
    served = Recorded(tmp_path, command)
    served.load(3, 400)
    finish(served)
    before = watching.status(served.url)
    served.load(5, 400)
    after = watching.status(served.url)
    served.stop()
    first, second = sorted((tmp_path / "kept").glob("*.parquet"))
    shown = replayed(served, second, command, "--json")
    assert shown.status == 0, shown.err
    (case,) = json.loads(shown.out)["cases"]
    for tenant in case["tenants"]:
        then, now = (
            next(one.blocks for one in status.tenants if one.name == tenant["name"])
            for status in (before, after)
        )
        hits = now.read_hits + now.write_hits - then.read_hits - then.write_hits
        assert (tenant["hits"], hits > 0) == (hits, True)
    assert case["continued"]["decided_by_server"] is None, "no recording follows"
    text = replayed(served, first, command)
    assert text.status == 0, text.err
    assert "decided as the server did to the end of the recording: " in text.out
    assert "the replay continues from the state beside the recording" in text.err + text.out
    # Another server's decisions beside this recording.
    beside = second.with_name(second.name + ".state")
    content = bytearray(beside.read_bytes())
    beside.unlink()
    text = replayed(served, first, command)
    assert "decisions are not compared with the server's" in text.out
    content[40:] = b""
    beside.write_bytes(bytes(content))
    text = replayed(served, first, command)
    assert "decided as the server did" in text.out, "only its head is read"


def test_divisions_by_response_times_are_those_of_the_server(
    tmp_path: Path, command: Command
) -> None:
    served = Recorded(tmp_path, command)
    served.stop()
    text = served.path.read_text()
    assert 'partition = "static"' in text
    text = text.replace('partition = "static"', 'partition = "auto"').replace(
        "goal_hit_ratio = 0.5", ""
    )
    served.path.write_text(text + '\n[replay]\ninterval = "20ms"\n')
    for file in (tmp_path / "kept").iterdir():
        file.unlink()
    served.begin()
    served.load(3, 400)
    finish(served)
    # One tenant alone, over more blocks than its share: divisions move space to it.
    for block in [*range(1, 200)] * 5:
        served.ask(served.clients[0], READ, block * BLOCK)
    finish(served)
    served.stop()
    _, second, _ = sorted((tmp_path / "kept").glob("*.parquet"))
    beside = second.with_name(second.name + ".divisions")
    assert beside.read_text().startswith("cachewright divisions 2\npartition icache-x\n")
    shown = replayed(served, second, command)
    assert shown.status == 0, shown.err
    assert "decided as the server did to the end of the recording: " in shown.out
    beside.unlink()
    refused = replayed(served, second, command)
    assert refused.status == 2
    assert "needs response times" in refused.err


def test_a_recording_in_a_file_continues_from_a_cache_that_was_not_empty(
    tmp_path: Path, command: Command
) -> None:
    served = Recorded(tmp_path, command)
    served.stop()
    text = served.path.read_text().replace('record = "kept"', 'record_keep = "10ms"')
    served.path.write_text(text)
    file = tmp_path / "served.parquet"
    served.begin("--record", str(file))
    served.load(3, 400)
    # What is left of the first one is set aside, and its state with it.
    served.kill()
    served.begin("--record", str(file))
    told = next(line for line in served.server.lines if line.startswith("recording "))
    assert told.endswith(f"a replay of `{file}@0s` begins with it as it is")
    before = watching.status(served.url)
    served.load(5, 400)
    after = watching.status(served.url)
    served.stop()
    shown = replayed(served, file, command, "--json")
    assert shown.status == 0, shown.err
    (case,) = json.loads(shown.out)["cases"]
    for tenant, then, now in zip(case["tenants"], before.tenants, after.tenants, strict=True):
        hits = [one.blocks.read_hits + one.blocks.write_hits for one in (then, now)]
        assert (tenant["hits"], tenant["hits"] > 0) == (hits[1] - hits[0], True)
    assert case["continued"]["decided_by_server"] is None, "no recording follows"
    aside = tmp_path / "served-1.parquet"
    assert aside.exists() == aside.with_name("served-1.parquet.state").exists()
    if aside.exists():
        assert replayed(served, aside, command).status == 0


def test_a_block_is_explained_from_a_state(tmp_path: Path, command: Command) -> None:
    served = Recorded(tmp_path, command)
    served.ask(served.clients[0], WRITE, 0)
    finish(served)
    served.ask(served.clients[0], READ, 0)
    served.stop()
    first, second = sorted((tmp_path / "kept").glob("*.parquet"))
    both = explaining.explain(served.path, "data@0", recorded=[first, second])
    assert (both.states, [one.event for one in both.events]) == (
        1,
        ["admitted by a write", "read hit"],
    )
    last = explaining.explain(served.path, "data@0", recorded=[second])
    assert [one.event for one in last.events] == ["held", "read hit"]
    assert (last.hits, last.offset_bytes % BLOCK) == (1, 0)
    second.with_name(second.name + ".state").unlink()
    shown = command("explain", served.path, "data@0", "--recording", second)
    assert "the cache is empty at first" in shown.out
    assert "admitted by a read" in shown.out
