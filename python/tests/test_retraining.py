"""A trainer beside a live server: it learns from recordings, and the server takes the model over.

For: `cachewright live train` with a server in a process of its own. Must never know: how a model is
trained. Tests that train need jax and optax.
"""

from __future__ import annotations

import json
import random
import re
import signal
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Command
from test_serve import MIB, STACK, Server, opened
from test_train_icache import GRANULES, replay

import cachewright
from cachewright import SpecError
from cachewright.live import lessons, recordings, retraining, watching
from cachewright.train import MLCacheTraining, RcRnnTraining, train_mlcache

BLOCK = 4096
READ, WRITE = 0, 1
LABELS = b"cachewright rc-rnn labels 1\n"
MODEL = 'policy = "rc-rnn"\nmodels = { mail = "mail.safetensors" }'
HOW = RcRnnTraining(units=6, layers=1, window=8, batch=4, epochs=2, updates=4, rate=1e-2)


class Learning:
    """A server of `rc-rnn` that records, with labels in place of its first model."""

    def __init__(self, folder: Path, command: Command) -> None:
        """Format the devices and start the server."""
        for name, mib in (("cache.img", 32), ("data.img", 8)):
            with (folder / name).open("wb") as file:
                file.truncate(mib * MIB)
        self.model = folder / "mail.safetensors"
        self.model.write_bytes(LABELS + bytes([1] * 100_000))
        self.path = folder / "stack.toml"
        text = STACK.replace("[cache]", f"[cache]\n{MODEL}").replace('"4MiB"', '"1MiB"')
        keys = '[serve]\nmonitor = "0"\nrecord = "kept"'
        self.path.write_text(text.replace("[serve]", keys))
        assert command("live", "format", self.path).status == 0
        self.server = Server(self.path)
        line = next(one for one in self.server.lines if one.startswith("monitor: "))
        self.url = line.removeprefix("monitor: ")
        self.client = opened(folder / "live.sock")
        self.content: dict[int, bytes] = {}

    def load(self, seed: int, requests: int) -> None:
        """Write and read blocks, some of them often, and check what is read."""
        rng = random.Random(seed)
        for number in range(requests):
            block = min(rng.randrange(1, 1500), rng.randrange(1, 1500), rng.randrange(1, 1500))
            if rng.randrange(3):
                assert self._ask(READ, block) == self.content.get(block, bytes(BLOCK))
            else:
                self.content[block] = bytes([number % 251]) * BLOCK
                self._ask(WRITE, block, self.content[block])

    def _ask(self, kind: int, block: int, data: bytes = b"") -> bytes:
        words = struct.pack(">IHHQQI", 0x25609513, 0, kind, 7, block * BLOCK, BLOCK)
        self.client.sendall(words + data)
        answer = self.client.recv(16 + (BLOCK if kind == READ else 0), socket.MSG_WAITALL)
        assert answer[:8] == struct.pack(">II", 0x67446698, 0)
        return answer[16:]

    def stop(self) -> None:
        """Leave, and stop the server."""
        self.client.close()
        self.server.stop(signal.SIGTERM)


@pytest.fixture
def learning(tmp_path: Path, command: Command) -> Iterator[Learning]:
    """Give a server that learns."""
    found = Learning(tmp_path, command)
    yield found
    found.stop()


def needs_jax() -> None:
    reason = "needs jax and optax (pip install 'cachewright[train]')"
    pytest.importorskip("jax", reason=reason)
    pytest.importorskip("optax", reason=reason)


def test_a_server_takes_over_what_was_trained_on_its_recording(learning: Learning) -> None:
    needs_jax()
    learning.load(1, 600)
    before = watching.status(learning.url)
    found = retraining.retrain(learning.url, HOW)
    assert (found.paths, found.taken_over, len(found.recordings)) == ((learning.model,), True, 1)
    assert found.report.kind == "mail"
    assert not learning.model.read_bytes().startswith(LABELS), "it is a network now"
    after = watching.status(learning.url)
    assert (after.reloads, after.refused_reload) == (before.reloads + 1, None)
    learning.load(2, 300)
    # One recording was finished for the lesson, and one when the other model came.
    assert len(recordings.found(learning.path.parent / "kept")) == 2


def test_the_command_says_what_was_learned(learning: Learning, command: Command) -> None:
    needs_jax()
    learning.load(3, 400)
    small = ["--units", "6", "--layers", "1", "--window", "8", "--batch", "4", "--epochs", "2"]
    shown = command("live", "train", learning.url, "--updates", "3", *small)
    assert shown.status == 0, shown.err
    assert "the server decides by it" in shown.out
    assert "agreement with the oracle" in shown.out
    document = json.loads(
        command("live", "train", learning.url, "--updates", "3", *small, "--json").out
    )
    assert document["kind"] == "mail"


def test_a_model_that_the_server_refuses_is_taken_back(
    learning: Learning, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_jax()
    learning.load(4, 300)
    stack = learning.path.read_text()
    before = learning.model.read_bytes()
    whole = lessons.train_rc_rnn

    def train_and_change(*given: object, **named: object) -> object:
        learning.path.write_text(stack.replace('"256KiB"', '"512KiB"'))
        return whole(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(lessons, "train_rc_rnn", train_and_change)
    with pytest.raises(SpecError, match=r"`serve.segment`: found `512KiB`"):
        retraining.retrain(learning.url, HOW)
    assert learning.model.read_bytes() == before
    learning.path.write_text(stack)


def test_what_cannot_be_learned_is_refused(tmp_path: Path) -> None:
    stack = tmp_path / "stack.toml"
    tenant = "[[tenant]]\nname = '{}'\ntrace = 't.csv'\n"
    stack.write_text('[cache]\ncapacity = "1MiB"\n' + tenant.format("a"))
    expected = "found `lru`, and `cache.partition` `shared`; expected one that is trained"
    with pytest.raises(SpecError, match=expected):
        retraining.retrain(stack)
    with pytest.raises(SpecError, match="expected one that is trained: rc-rnn, icache, mlcache"):
        retraining.retrain(stack, scheme="icache")
    text = f'[cache]\ncapacity = "1MiB"\n{MODEL}\n' + tenant.format("a")
    stack.write_text(text.replace(MODEL, 'policy = "rc-rnn"'))
    with pytest.raises(SpecError, match=r"found no `cache.models`"):
        retraining.retrain(stack)
    stack.write_text(text + tenant.format("b"))
    with pytest.raises(SpecError, match="found tenants a, b, expected one of them to learn from"):
        retraining.retrain(stack)
    with pytest.raises(SpecError, match="found no tenant `c`, expected one of a, b"):
        retraining.retrain(stack, tenant="c")
    with pytest.raises(SpecError, match="found no `mlcache` in the stack, expected rc-rnn"):
        retraining.retrain(stack, scheme="mlcache")
    with pytest.raises(SpecError, match="`granules`: found for `rc-rnn`, expected "):
        retraining.retrain(stack, {"granules": 4}, tenant="a")
    with pytest.raises(SpecError, match="found settings of MLCacheTraining for `rc-rnn`"):
        retraining.retrain(stack, MLCacheTraining(), tenant="a")


def test_a_server_divides_by_a_model_as_a_replay_of_its_recording_does(
    tmp_path: Path, command: Command
) -> None:
    needs_jax()
    how = MLCacheTraining(granules=GRANULES, epochs=3, rate=1e-3)
    train_mlcache(replay(1), tmp_path / "ml.safetensors", how)
    for name, mib in (("cache.img", 32), ("data.img", 8), ("more.img", 8)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(mib * MIB)
    keys = 'partition = "mlcache"\nmodel = "ml.safetensors"\n[replay]\ninterval = "20ms"\n'
    text = STACK.replace('capacity = "4MiB"', f'capacity = "1MiB"\n{keys}')
    path = tmp_path / "stack.toml"
    path.write_text(text + '[[tenant]]\nname = "more"\nbacking = "more.img"\n')
    assert command("live", "format", path).status == 0
    kept = tmp_path / "served.parquet"
    server = Server(path, "--record", str(kept))
    clients = [opened(tmp_path / "live.sock", name) for name in (b"data", b"more")]
    rng = random.Random(6)
    for _ in range(1500):
        block = min(rng.randrange(1, 400), rng.randrange(1, 400))
        request = struct.pack(">IHHQQI", 0x25609513, 0, WRITE, 7, block * BLOCK, BLOCK)
        client = clients[rng.randrange(2)]
        client.sendall(request + bytes(BLOCK))
        client.recv(16, socket.MSG_WAITALL)
    for client in clients:
        client.close()
    said = server.stop(signal.SIGTERM)
    settings = {
        f"tenant.{name}.{key}": value
        for name in ("data", "more")
        for key, value in (("trace", str(kept)), ("volume", name))
    }
    (case,) = cachewright.run(path, settings=settings).answer.cases
    for one in case.tenants:
        line = (
            f"`{one.name}`: {one.read_hits} of {one.read_accesses} blocks read were in the cache, "
            f"{one.write_hits} of {one.write_accesses} written; {one.admissions} admitted, "
            f"{one.evictions} evicted"
        )
        assert line in said.splitlines()
    beside = Path(f"{kept}.divisions").read_text()
    divisions = re.findall(r"^\d+ (\d+) (\d+)$", beside, re.MULTILINE)
    assert len(divisions) > 1, "the model moved quotas while it served"
    assert [int(quota) for quota in divisions[-1]] == [one.quota_blocks for one in case.tenants]
