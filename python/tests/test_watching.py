"""A live server that is watched: its status, `top`, and the page in a browser.

For: what operators see while a server runs. Must never know: how requests are carried out.
"""

from __future__ import annotations

import csv
import io
import json
import re
import signal
import socket
import struct
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import chromium, window
from conftest import Command
from test_serve import MIB, STACK, Server, opened

from cachewright import RunError, SpecError
from cachewright.live import watching

BLOCK = 4096


class Watched:
    """A server with a monitor, and a client that has done something."""

    def __init__(self, folder: Path, command: Command) -> None:
        """Format the devices, start the server, read and write."""
        for name, mib in (("cache.img", 32), ("data.img", 8)):
            with (folder / name).open("wb") as file:
                file.truncate(mib * MIB)
        path = folder / "stack.toml"
        path.write_text(STACK.replace("[serve]", '[serve]\nmonitor = "0"'))
        assert command("live", "format", path).status == 0
        self.server = Server(path)
        line = next(one for one in self.server.lines if one.startswith("monitor: "))
        self.url = line.removeprefix("monitor: ")
        self.client = opened(folder / "live.sock")
        self.ask(1, bytes(4 * BLOCK))
        for _ in range(3):
            self.ask(0, b"", 2 * BLOCK)

    def ask(self, kind: int, data: bytes, length: int = 0) -> None:
        """Send a request for the first bytes and take its answer."""
        words = (0x25609513, 0, kind, 7, 0, length or len(data))
        self.client.sendall(struct.pack(">IHHQQI", *words) + data)
        answer = self.client.recv(16 + length, socket.MSG_WAITALL)
        assert answer[:8] == struct.pack(">II", 0x67446698, 0)

    def stop(self) -> None:
        """Leave, and stop the server."""
        self.client.close()
        self.server.stop(signal.SIGTERM)


@pytest.fixture
def watched(tmp_path: Path, command: Command) -> Iterator[Watched]:
    """Give a server that is watched."""
    found = Watched(tmp_path, command)
    yield found
    found.stop()


def test_a_status_is_a_record_and_top_shows_it(watched: Watched, command: Command) -> None:
    status = watching.status(watched.url)
    (tenant,) = status.tenants
    assert (tenant.name, tenant.state, tenant.quota_bytes) == ("data", "cached", None)
    assert (tenant.blocks.writes, tenant.blocks.reads, tenant.blocks.read_hits) == (4, 6, 6)
    assert status.dirty_bytes == 4 * BLOCK
    # Each block is written once before it is read.
    assert (tenant.misses.first_use, tenant.misses.unexplained) == (4, 0)
    assert tenant.misses.behind_seconds >= 0
    shown = command("top", watched.url, "--once")
    assert shown.status == 0, shown.err
    assert "1 client" in shown.out
    assert "16KiB dirty" in shown.out
    assert "first use 100.0%" in shown.out
    row = next(csv.DictReader(io.StringIO(command("top", watched.url, "--csv").out)))
    assert (row["tenant"], row["read_count"], row["recent_hit_ratio"]) == ("data", "3", "0.6")
    assert (row["misses_first_use"], row["misses_quota"]) == ("4", "0")
    document = json.loads(command("top", watched.url, "--json").out)
    assert document["tenants"][0]["requests"][0]["count"] == 3


def test_top_tells_what_a_partitioner_on_trial_would_give(
    watched: Watched, tmp_path: Path, command: Command
) -> None:
    path = tmp_path / "stack.toml"
    path.write_text(path.read_text().replace("[serve]", '[serve]\ntrial_partition = "static"'))
    assert command("live", "reload", watched.url).status == 0
    for _ in range(2):
        watched.ask(0, b"", 2 * BLOCK)
    trial = watching.status(watched.url).trial
    assert trial is not None
    assert (trial.partition, trial.accesses, trial.trial_hits) == ("static", 4, 2)
    shown = command("top", watched.url, "--once").out
    assert "on trial: lru with static hits 0.5000, lru with shared 0.5000, of 4 " in shown
    (tenant,) = trial.tenants
    assert tenant.trial_quota_bytes == tenant.present_quota_bytes
    assert "  data would have 4MiB in place of 4MiB, and hit 0.5000" in shown


def test_a_changed_stack_is_taken_over_or_refused_by_key(
    watched: Watched, tmp_path: Path, command: Command
) -> None:
    path = tmp_path / "stack.toml"
    text = path.read_text()
    with (tmp_path / "more.img").open("wb") as file:
        file.truncate(8 * MIB)
    path.write_text(text + '\n[[tenant]]\nname = "more"\nbacking = "more.img"\nmax_iops = 9\n')
    taken = command("live", "reload", watched.url)
    assert taken.status == 0, taken.err
    assert "data (cached), more (cached)" in taken.out
    assert [one.name for one in watching.status(watched.url).tenants] == ["data", "more"]
    path.write_text(f"seed = 2\n{text}")
    refused = command("live", "reload", watched.url)
    assert refused.status == 2
    assert "`seed`: found `2`, expected `1`" in refused.err
    status = watching.status(watched.url)
    assert (status.reloads, len(status.tenants)) == (2, 2)
    path.write_text(text)


def test_metrics_rise_with_what_clients_do(watched: Watched) -> None:
    def reads() -> str:
        with urllib.request.urlopen(watched.url + "metrics") as answer:
            text = answer.read().decode()
        name = 'cachewright_requests_total{tenant="data",kind="read"} '
        return next(line for line in text.splitlines() if line.startswith(name))[len(name) :]

    assert reads() == "3"
    watched.ask(0, b"", BLOCK)
    assert reads() == "4"


@pytest.mark.parametrize("width", [400, 1200])
def test_the_page_shows_the_status_and_asks_nothing_of_others(watched: Watched, width: int) -> None:
    with chromium() as browser, window(browser, width) as view:
        # What is recent: with this request, and on a slow machine nothing else.
        watched.ask(0, b"", 2 * BLOCK)
        view.page.goto(watched.url)
        view.page.wait_for_selector("#charts svg")
        row = view.page.inner_text("#tenants tr").split("\t")
        assert [row[0].strip(), row[1].strip()] == ["data", "cached"]
        assert re.search(r"66\.7 %|100\.0 %", view.page.inner_text("#tiles"))
        assert view.page.inner_text("#alarm") == ""
        inside = view.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert inside, "the page is no wider than the window"
        assert view.messages == []
        asked = {url.removeprefix(watched.url) for url in view.requests}
        assert asked - {"favicon.ico"} == {"", "status", "history"}


@pytest.mark.parametrize(
    "goal", ['goal_p99 = "1ns"', 'goal_response = "1ns"', "goal_hit_ratio = 1.0"]
)
def test_a_goal_that_is_missed_shows_as_missed(
    watched: Watched, tmp_path: Path, command: Command, goal: str
) -> None:
    path = tmp_path / "stack.toml"
    text = path.read_text()
    path.write_text(text + goal + "\n")
    taken = command("live", "reload", watched.url)
    assert taken.status == 0, taken.err
    watched.ask(1, bytes(BLOCK))
    status = watching.status(watched.url)
    found = status.tenants[0].goal
    assert found is not None
    assert (found.key, found.met) == (goal.split(maxsplit=1)[0], False)
    with urllib.request.urlopen(watched.url + "metrics") as answer:
        assert 'cachewright_goal_met{tenant="data"} 0.0' in answer.read().decode()
    row = next(csv.DictReader(io.StringIO(command("top", watched.url, "--csv").out)))
    assert (row["goal"], row["goal_met"]) == (found.key, "false")
    with chromium() as browser, window(browser, 1200) as view:
        view.page.goto(watched.url)
        view.page.wait_for_selector("#charts svg")
        assert "missed" in view.page.inner_text("#tenants tr")
        assert "0 of 1" in view.page.inner_text("#tiles")
    path.write_text(text)


def test_the_page_has_what_was_sampled_before_it_was_opened(watched: Watched) -> None:
    sampled = {
        "cachewright": watching.status(watched.url).cachewright,
        "schema_version": 1,
        "every_seconds": 10.0,
        "uptime_seconds": [-3000.0, -2000.0, -1000.0],
        "dirty_bytes": [1, 2, 3],
        "free_segments": [9, 8, 7],
        "tenants": [
            {
                "name": "data",
                "hit_ratio": [0.25, None, 0.5],
                "cached_bytes": [1, 2, 3],
                "read_p99_us": [None, None, 5.0],
                "write_p99_us": [None, None, None],
                "goal_met": [None, None, None],
            }
        ],
    }
    with chromium() as browser, window(browser, 1200) as view:
        view.page.route("**/history", lambda route: route.fulfill(json=sampled))
        view.page.goto(watched.url)
        view.page.wait_for_selector("#charts svg")
        assert "50 min ago" in view.page.inner_text("#charts")
        assert view.messages == []


def test_targets_without_a_server_are_named(tmp_path: Path, command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(RunError, match=f"127.0.0.1:{port}: found no live server"):
        watching.status(str(port))
    stack = tmp_path / "stack.toml"
    stack.write_text(STACK)
    refused = command("top", stack)
    assert refused.status == 2
    assert "found no `serve.monitor`, expected an address" in refused.err
    stack.write_text(STACK.replace("[serve]", '[serve]\nmonitor = "localhost:9"'))
    assert watching.address_of(str(stack)) == "localhost:9"
    for wrong in ("nothing", "a/b:1", "host:port", ""):
        with pytest.raises(SpecError, match="expected a stack file, or the address"):
            watching.address_of(wrong)


def test_a_load_is_answered_and_counted(tmp_path: Path, command: Command) -> None:
    trace = tmp_path / "data.csv"
    lines = [f"{n},{'RW'[n % 2]},{n % 7 * BLOCK},{BLOCK},{n * 10}" for n in range(40)]
    lines += [f"9,R,{8 * MIB},{BLOCK},500", "9,F,0,0,600", f"9,T,0,{BLOCK},700"]
    trace.write_text("\n".join(lines) + "\n")
    for name, mib in (("cache.img", 32), ("data.img", 8)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(mib * MIB)
    path = tmp_path / "stack.toml"
    text = STACK.replace("[serve]", '[serve]\nbacking_delay = "1ms"') + 'trace = "data.csv"\n'
    path.write_text(text)
    assert command("live", "format", path).status == 0
    server = Server(path)
    try:
        answer = command("live", "load", path, "--json", "--depth", "4")
        assert answer.status == 0, answer.err
        (tenant,) = json.loads(answer.out)["tenants"]
        kinds = {one["kind"]: one["count"] for one in tenant["requests"]}
        assert (tenant["sent"], tenant["skipped"]) == (43, 1)
        assert kinds == {"read": 20, "write": 20, "flush": 1, "trim": 1}
        assert tenant["late_p99_us"] is None  # Without a speed no request has a time.
        shown = command("live", "load", path, "--requests", "10", "--speed", "1000")
        assert shown.status == 0, shown.err
        assert "data    read" in shown.out
        assert "data: 99 % of the requests were sent at most" in shown.err
    finally:
        server.stop(signal.SIGTERM)
    refused = command("live", "load", path, "--set", 'serve.listen=["systemd"]')
    assert refused.status == 2
    assert "found no `serve.listen`" in refused.err
