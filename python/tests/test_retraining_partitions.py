"""A trainer beside a live server whose partitioner decides by models.

For: `cachewright live train` of `icache` and `mlcache`. Must never know: how a model is trained.
Tests that train need jax and optax.
"""

from __future__ import annotations

import random
import signal
import socket
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import Command
from test_retraining import BLOCK, MODEL, WRITE, needs_jax
from test_serve import MIB, STACK, Server, opened
from test_train_icache import GRANULES, HOW, STEPS, replay

from cachewright import SpecError
from cachewright.answers import LiveStatus
from cachewright.live import retraining, watching
from cachewright.train import MLCacheTraining, train_icache, train_mlcache

# Intervals of 20 ms: enough of them for the windows of each part.
LOAD_S = 2.0
SECOND = '[[tenant]]\nname = "more"\nbacking = "more.img"\n'


class Dividing:
    """A server that divides its cache by models, and records."""

    def __init__(self, folder: Path, command: Command, cache: str, models: bool) -> None:
        """Format the devices and start the server; each tenant has a model of its own if so."""
        for name, mib in (("cache.img", 32), ("data.img", 8), ("more.img", 8)):
            with (folder / name).open("wb") as file:
                file.truncate(mib * MIB)
        keys = f'{cache}\n[replay]\ninterval = "20ms"\nhit_time = "100us"\nmiss_time = "5ms"\n'
        text = STACK.replace('capacity = "4MiB"', f'capacity = "1MiB"\n{keys}')
        text = text.replace("[serve]", '[serve]\nmonitor = "0"\nrecord = "kept"')
        own = [f'model = "{name}.safetensors"\n' if models else "" for name in ("data", "more")]
        self.path = folder / "stack.toml"
        self.path.write_text(text + own[0] + SECOND + own[1])
        assert command("live", "format", self.path).status == 0
        self.server = Server(self.path)
        line = next(one for one in self.server.lines if one.startswith("monitor: "))
        self.url = line.removeprefix("monitor: ")
        self.clients = [opened(folder / "live.sock", name) for name in (b"data", b"more")]
        self.rng = random.Random(6)

    def load(self, seconds: float) -> LiveStatus:
        """Write blocks, some of them often, for so long on the server's clock."""
        status = watching.status(self.url)
        end = status.uptime_seconds + seconds
        while status.uptime_seconds < end:
            for _ in range(50):
                block = min(self.rng.randrange(1, 400), self.rng.randrange(1, 400))
                request = struct.pack(">IHHQQI", 0x25609513, 0, WRITE, 7, block * BLOCK, BLOCK)
                client = self.clients[self.rng.randrange(2)]
                client.sendall(request + bytes(BLOCK))
                assert client.recv(16, socket.MSG_WAITALL)[:8] == struct.pack(">II", 0x67446698, 0)
            status = watching.status(self.url)
        return status

    def stop(self) -> None:
        """Leave, and stop the server."""
        for client in self.clients:
            client.close()
        self.server.stop(signal.SIGTERM)


def test_models_of_icache_are_trained_on_a_recording_and_taken_over(
    tmp_path: Path, command: Command
) -> None:
    needs_jax()
    first = train_icache(replay(), None, replace(HOW, epochs=1))
    places = [tmp_path / "data.safetensors", tmp_path / "more.safetensors"]
    for place, name in zip(places, ("a", "b-c"), strict=True):
        place.write_bytes(first.files[f"{name}.safetensors"])
    before = [place.read_bytes() for place in places]
    steps = f"steps_per_interval = {STEPS}, window_steps = {STEPS}"
    cache = f'partition = {{ name = "icache", granules = {GRANULES}, {steps} }}'
    serving = Dividing(tmp_path, command, cache, models=True)
    status = serving.load(LOAD_S)
    found = retraining.retrain(serving.url, {"epochs": 2, "batch": 16})
    assert (found.scheme, found.paths, found.taken_over) == ("icache", tuple(places), True)
    assert [one.name for one in found.report.tenants] == ["data", "more"]
    trained = [place.read_bytes() for place in places]
    assert all(new != old for new, old in zip(trained, before, strict=True))
    after = serving.load(0.1)
    assert (after.reloads, after.refused_reload) == (status.reloads + 1, None)
    assert sum(one.quota_bytes or 0 for one in after.tenants) == MIB
    # One tenant's model alone.
    serving.load(LOAD_S)
    alone = retraining.retrain(serving.url, {"epochs": 1}, tenant="more")
    assert alone.paths == (places[1],)
    assert places[0].read_bytes() == trained[0]
    serving.stop()


def test_a_model_of_mlcache_is_trained_on_a_recording_and_taken_over(
    tmp_path: Path, command: Command
) -> None:
    needs_jax()
    place = tmp_path / "ml.safetensors"
    train_mlcache(replay(1), place, MLCacheTraining(granules=GRANULES, epochs=1))
    before = place.read_bytes()
    cache = 'partition = "mlcache"\nmodel = "ml.safetensors"'
    serving = Dividing(tmp_path, command, cache, models=False)
    status = serving.load(LOAD_S)
    shown = command("live", "train", serving.url, "--epochs", "3", "--rate", "0.001")
    assert shown.status == 0, shown.err
    assert "models of mlcache" in shown.out
    assert f"{place}; the server decides by it" in shown.out
    assert place.read_bytes() != before
    after = serving.load(0.1)
    assert (after.reloads, after.refused_reload) == (status.reloads + 1, None)
    refused = command("live", "train", serving.url, "--units", "6")
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "found for `mlcache`, expected granules" in refused.err
    serving.stop()


def test_a_partitioner_without_times_or_files_is_refused(tmp_path: Path) -> None:
    stack = tmp_path / "stack.toml"
    tenant = "[[tenant]]\nname = 'a'\ntrace = 't.csv'\n"
    text = f'[cache]\ncapacity = "1MiB"\npartition = "icache"\n{tenant}'
    stack.write_text(text)
    with pytest.raises(SpecError, match="tenant `a`: found no `model`"):
        retraining.retrain(stack)
    stack.write_text(f"{text}model = 'a.safetensors'\n")
    with pytest.raises(SpecError, match=r"expected `replay.hit_time` and `replay.miss_time`"):
        retraining.retrain(stack)
    stack.write_text(text.replace('"icache"', '"mlcache"'))
    with pytest.raises(SpecError, match=r"found no `cache.model`, expected the file"):
        retraining.retrain(stack)
    stack.write_text(text.replace('"icache"', '"mlcache"\nmodel = "m.safetensors"'))
    with pytest.raises(SpecError, match="found tenant `a`, expected none: all have one model"):
        retraining.retrain(stack, tenant="a")
    stack.write_text(text.replace('"icache"', f'"icache"\n{MODEL}'))
    with pytest.raises(SpecError, match="found rc-rnn and icache, expected one of them to train"):
        retraining.retrain(stack)
