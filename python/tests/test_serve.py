"""A stack served by the command line, and the tools for its devices.

For: `cachewright serve` and `cachewright live`. Must never know: how requests are carried out.
"""

from __future__ import annotations

import json
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Command

from cachewright import SpecError
from cachewright.live import serving

MIB = 1 << 20
STACK = """
[cache]
capacity = "4MiB"

[serve]
devices = ["cache.img"]
listen = ["unix:live.sock"]
segment = "256KiB"

[[tenant]]
name = "data"
backing = "data.img"
"""


@pytest.fixture
def stack(tmp_path: Path) -> Path:
    """Give a stack whose devices are there and not formatted."""
    for name, mib in (("cache.img", 32), ("data.img", 8)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(mib * MIB)
    path = tmp_path / "stack.toml"
    path.write_text(STACK)
    return path


class Server:
    """A server in a process of its own."""

    def __init__(self, stack: Path, *options: str) -> None:
        """Start it and wait until it serves."""
        words = [sys.executable, "-m", "cachewright", "serve", str(stack), *options]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        last = "recording " if "--record" in options else "cache: "
        while not any(line.startswith(last) for line in self.lines):
            line = self._out().readline()
            assert line, "the server has ended"
            self.lines.append(line.rstrip("\n"))

    def _out(self):  # type: ignore[no-untyped-def]
        assert self.process.stdout is not None
        return self.process.stdout

    def stop(self, number: int) -> str:
        """Send a signal; return what was said after it."""
        self.process.send_signal(number)
        rest, _ = self.process.communicate()
        assert self.process.returncode == 0, rest
        return str(rest)


def opened(path: Path, name: bytes = b"data") -> socket.socket:
    """Connect to an export of 8 MiB and end the negotiation."""
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(path))
    client.recv(18, socket.MSG_WAITALL)  # Two magics and flags.
    no_zeroes = 3
    option = struct.pack(">I8sII", no_zeroes, b"IHAVEOPT", 1, len(name)) + name
    client.sendall(option)
    assert struct.unpack(">Q", client.recv(10, socket.MSG_WAITALL)[:8]) == (8 * MIB,)
    return client


def test_a_second_signal_ends_a_server_whose_client_takes_no_answers(
    stack: Path, command: Command
) -> None:
    assert command("live", "format", stack).status == 0
    server = Server(stack)
    with opened(stack.parent / "live.sock") as client:
        # Eight reads of 1 MiB, of which one byte is taken: more than a socket holds.
        for cookie in range(8):
            client.sendall(struct.pack(">IHHQQI", 0x25609513, 0, 0, cookie, 0, MIB))
        assert client.recv(1) == b"\x67"
        while server.process.poll() is None:
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.01)
        assert server.process.returncode == -signal.SIGTERM
    server.process.communicate()
    assert command("live", "check", stack).status == 0


def test_a_closed_standard_output_stops_no_server(stack: Path, command: Command) -> None:
    assert command("live", "format", stack).status == 0
    words = [sys.executable, "-m", "cachewright", "serve", str(stack)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        process.stdout.close()
        path = stack.parent / "live.sock"
        while not path.exists():
            assert process.poll() is None, "it has ended"
            time.sleep(0.01)
        opened(path).close()
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_list_of_no_blocks_has_the_columns_of_blocks(stack: Path, command: Command) -> None:
    assert command("live", "format", stack).status == 0
    listed = command("live", "dump", stack, "--blocks", "--csv")
    assert listed.out == "volume,offset,dirty,decision,device,device_offset\n"
    assert command("live", "dump", stack, "--csv").out.startswith("name,bytes,")


@pytest.mark.parametrize("words", [["check"], ["dump"], ["writeback"], ["repair"], ["format"]])
def test_sigint_ends_a_tool_at_once(
    stack: Path, command: Command, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    assert command("live", "format", stack).status == 0
    real = serving._document
    found = []

    def document(*arguments: Any, **named: Any) -> dict[str, Any]:
        found.append(signal.getsignal(signal.SIGINT))
        return real(*arguments, **named)

    monkeypatch.setattr(serving, "_document", document)
    before = signal.getsignal(signal.SIGINT)
    assert command("live", *words, stack).status == 0
    assert found == [signal.SIG_DFL]
    assert signal.getsignal(signal.SIGINT) == before


def tool(name: str, *arguments: str) -> str:
    """Run a client of the protocol; skips the test where it is not installed."""
    if shutil.which(name) is None:
        pytest.skip(f"needs {name} (libnbd) to connect to the server")
    done = subprocess.run([name, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_a_client_wrote_is_there_after_a_restart(stack: Path, command: Command) -> None:
    assert command("live", "format", stack).status == 0
    folder = stack.parent
    (folder / "in.img").write_bytes(bytes(range(256)) * (8 * MIB // 256))
    url = f"nbd+unix:///data?socket={folder / 'live.sock'}"
    server = Server(stack)
    assert server.lines[0].startswith("export `data`: 8MiB of ")
    try:
        assert tool("nbdinfo", "--size", url).strip() == str(8 * MIB)
        tool("nbdcopy", "--flush", str(folder / "in.img"), url)
    finally:
        said = server.stop(signal.SIGTERM)
    assert "\nstopped; " in said
    refused = command("live", "format", stack)
    assert refused.status == 2
    assert "of `data` that only the devices have" in refused.err
    server = Server(stack)
    try:
        tool("nbdcopy", url, str(folder / "out.img"))
    finally:
        server.stop(signal.SIGINT)
    assert (folder / "out.img").read_bytes() == (folder / "in.img").read_bytes()
    answer = command("live", "check", stack, "--json")
    assert answer.status == 0
    assert json.loads(answer.out)["sound"]
    assert "data" in command("live", "dump", stack).out
    assert command("live", "writeback", stack).status == 0
    assert (folder / "data.img").read_bytes() == (folder / "in.img").read_bytes()
    assert command("live", "repair", stack).out == "nothing to do\n"
    assert command("live", "format", stack).status == 0


def test_damage_is_a_failure_and_is_repaired(stack: Path, command: Command) -> None:
    serving.format_devices(stack)
    with (stack.parent / "cache.img").open("r+b") as file:
        file.write(bytes(4096))
    answer = command("live", "check", stack)
    assert answer.status == 1
    assert "1 of 2 superblocks" in answer.out
    assert command("live", "repair", stack).out == "1 structure written again\n"
    assert serving.check_devices(stack).sound


def test_a_stack_without_what_is_needed_names_the_key(stack: Path, command: Command) -> None:
    refused = command("run", stack)
    assert refused.status == 2
    assert "found no `tenant[1].trace`" in refused.err
    assert command("check", stack).status == 0
    for setting, words in (
        ("serve.listen=[]", "found no `serve.listen`"),
        ("policy=belady", "`cache.policy`: found `belady`"),
    ):
        refused = command("serve", stack, "--set", setting)
        assert refused.status == 2
        assert words in refused.err
    refused = command("serve", stack)
    assert refused.status == 2
    assert "`cachewright live format`" in refused.err
    text = STACK.replace("backing = ", "trace = ")
    stack.write_text(text)
    with pytest.raises(SpecError, match=r"found no `tenant\[1\].backing`"):
        serving.serve(stack)


def test_what_was_served_is_recorded_and_a_replay_counts_the_same(
    stack: Path, command: Command
) -> None:
    small = STACK.replace("4MiB", "1MiB")
    stack.write_text(small.replace("[serve]", 'policy = "s3-fifo"\n[serve]'))
    assert command("live", "format", stack).status == 0
    recording = stack.parent / "served.parquet"
    url = f"nbd+unix:///data?socket={stack.parent / 'live.sock'}"
    requests = [
        f"{verb} {step * 300_007 % 7_000_000} {1 + step * 7_919 % 90_000}"
        for step in range(60)
        for verb in ("write", "read")
    ]
    requests += ["discard 0 2M", "flush", *(f"read {step * 65_536} 40000" for step in range(60))]
    server = Server(stack, "--record", str(recording))
    assert any(line.startswith("recording what is decided in ") for line in server.lines)
    try:
        tool("qemu-io", "-f", "raw", *(part for one in requests for part in ("-c", one)), url)
    finally:
        said = server.stop(signal.SIGTERM)
    recorded = f"in {recording}"
    assert any(line.startswith("recorded ") and recorded in line for line in said.splitlines())
    run = command(
        *("run", stack, "--json", "--set", f"tenant.data.trace={recording}"),
        *("--set", "tenant.data.volume=data"),
    )
    assert run.status == 0, run.err
    counted = json.loads(run.out)["cases"][0]["tenants"][0]
    assert counted["read_hits"] > 0
    assert counted["evictions"] > 0
    assert said.startswith(
        f"`data`: {counted['read_hits']} of {counted['read_accesses']} blocks read were in the "
        f"cache, {counted['write_hits']} of {counted['write_accesses']} written; "
        f"{counted['admissions']} admitted, {counted['evictions']} evicted\n"
    )
    refused = command("serve", stack, "--record", recording)
    assert refused.status == 2
    assert "found an existing file, expected a new file to record" in refused.err


def test_what_several_clients_did_at_once_is_replayed_with_the_recorded_divisions(
    stack: Path, command: Command
) -> None:
    with (stack.parent / "more.img").open("wb") as file:
        file.truncate(8 * MIB)
    keys = 'policy = "arc"\npartition = "icache-x"\n[replay]\ninterval = "5ms"\n[serve]'
    more = '[[tenant]]\nname = "more"\nbacking = "more.img"\n'
    stack.write_text(STACK.replace("4MiB", "512KiB").replace("[serve]", keys) + more)
    assert command("live", "format", stack).status == 0
    recording = stack.parent / "served.parquet"
    server = Server(stack, "--record", str(recording))
    path = stack.parent / "live.sock"
    names = (b"data", b"more", b"data", b"more", b"data")
    clients = [opened(path, name) for name in names]
    try:
        for turn in range(60):
            sent = []
            # All send before any of them reads what it is answered.
            for number, client in enumerate(clients):
                for step in range(4):
                    cookie = 4 * turn + step
                    first = (cookie * (7 + number) * 1_009) % 1_900
                    first = first if cookie % 3 else first % (90 - 15 * number)
                    length = 4096 * (1 + cookie % 3) - 512 * (cookie % 2)
                    write = (cookie + number) % 4 == 0
                    header = struct.pack(
                        ">IHHQQI", 0x25609513, 0, int(write), cookie, 4096 * first, length
                    )
                    client.sendall(header + bytes(length if write else 0))
                    sent.append((number, cookie, 0 if write else length))
            for number, client in enumerate(clients):
                waiting = {cookie: length for other, cookie, length in sent if other == number}
                while waiting:
                    reply = client.recv(16, socket.MSG_WAITALL)
                    magic, error, cookie = struct.unpack(">IIQ", reply)
                    assert (magic, error) == (0x67446698, 0)
                    length = waiting.pop(cookie)
                    assert len(client.recv(length, socket.MSG_WAITALL)) == length
    finally:
        for client in clients:
            client.close()
        said = server.stop(signal.SIGTERM)
    beside = Path(f"{recording}.divisions")
    text = beside.read_text()
    assert text.startswith("cachewright divisions 2\npartition icache-x\ninterval_ns 5000000\n")
    assert "\ntenant data\ntenant more\n0 64 64\n" in text
    keys = [f"tenant.{name}.trace={recording}" for name in ("data", "more")]
    keys += [f"tenant.{name}.volume={name}" for name in ("data", "more")]
    keys.append(f"replay.divisions={beside}")
    run = command("run", stack, "--json", *(word for key in keys for word in ("--set", key)))
    assert run.status == 0, run.err
    for counted in json.loads(run.out)["cases"][0]["tenants"]:
        assert counted["evictions"] > 100
        line = (
            f"`{counted['name']}`: {counted['read_hits']} of {counted['read_accesses']} blocks "
            f"read were in the cache, {counted['write_hits']} of {counted['write_accesses']} "
            f"written; {counted['admissions']} admitted, {counted['evictions']} evicted"
        )
        assert line in said.splitlines()


def test_a_calibration_prints_the_times_that_a_stack_takes(stack: Path, command: Command) -> None:
    assert command("live", "format", stack).status == 0
    delayed = ("--set", "serve.backing_delay=2ms", "--reads", "10")
    found = json.loads(command("live", "calibrate", stack, *delayed, "--json").out)
    assert [one["tenant"] for one in found["devices"]] == [None, "data"]
    assert [one["depth"] for one in found["devices"][1]["times"]] == [1]
    assert found["devices"][1]["times"][0]["p50_us"] >= 2000
    table = command("live", "calibrate", stack, *delayed, "--depth", "4")
    assert table.status == 0
    lines = table.out.splitlines()
    start = lines.index("[replay]")
    assert [line.split(" = ")[0] for line in lines[start + 1 :]] == ["hit_time", "miss_time"]
    stack.write_text(stack.read_text() + "\n".join(lines[start:]))
    assert command("check", stack).status == 0, "the lines are those of a stack"
    assert command("live", "calibrate", stack, "--reads", "0").status == 2
    with pytest.raises(SpecError, match="expected at least 1"):
        serving.calibrate_devices(stack, depth=0)
