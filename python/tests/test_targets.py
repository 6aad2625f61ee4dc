"""No command overwrites what it reads, and no file without `--force`.

For: `cachewright.targets` as every command that writes a single file uses it. Must never know: what
the files hold.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from conftest import Command

import cachewright
from cachewright import targets, traces

SYNTH = (
    '[synth]\nseed = 1\n[[tenant]]\nname = "t"\ncount = 50\nsize = "4KiB"\n'
    'arrival = { kind = "poisson", rate = "1000/s" }\nread_share = 0.5\n'
    'pattern = { kind = "zipf", span = "400KiB", alpha = 1.0 }\n'
)
DRIVE = """<?xml version="1.0" encoding="us-ascii"?>
<Execution_Parameter_Set>
  <Device_Parameter_Set><Flash_Channel_Count>4</Flash_Channel_Count></Device_Parameter_Set>
</Execution_Parameter_Set>
"""


def same(path: Path) -> str:
    return path.name


def dotted(path: Path) -> str:
    return f"../{path.parent.name}/./{path.name}"


def symbolic(path: Path) -> str:
    path.with_name("symbolic.csv").symlink_to(path)
    return "symbolic.csv"


def hard(path: Path) -> str:
    os.link(path, path.with_name("hard.csv"))
    return "hard.csv"


WRITING = {
    "convert": ["trace", "convert", "a.csv", "TARGET"],
    "slice": ["trace", "slice", "a.csv", "TARGET", "--first", "5"],
    "merge": ["trace", "merge", "b.csv", "a.csv", "--out", "TARGET"],
    "mrc": ["mrc", "a.csv", "--figure", "TARGET"],
    "shiro": ["train", "shiro", "a.csv", "--out", "TARGET"],
    "judge": ["train", "shiro", "b.csv", "--judge", "a.csv", "--out", "TARGET"],
}


@pytest.mark.parametrize("link", [same, dotted, symbolic, hard])
@pytest.mark.parametrize("force", [[], ["--force"]], ids=["plain", "force"])
@pytest.mark.parametrize("words", WRITING.values(), ids=WRITING)
def test_what_is_read_is_never_overwritten(
    traces: Path,
    command: Command,
    words: list[str],
    force: list[str],
    link: Callable[[Path], str],
) -> None:
    source = traces / "a.csv"
    before, target = source.read_bytes(), link(source)
    answer = command(*(target if word == "TARGET" else word for word in words), *force)
    assert answer.status == 2, answer.out
    assert answer.err.startswith(f"error: {Path(target)}: found a file that is read")
    assert source.read_bytes() == before
    left = {path.name for path in traces.iterdir()}
    assert left <= {"a.csv", "b.csv", "symbolic.csv", "hard.csv"}


def test_a_forgotten_target_of_merge_destroys_nothing(traces: Path, command: Command) -> None:
    before = (traces / "b.csv").read_bytes()
    answer = command("trace", "merge", "a.csv", "b.csv")
    assert answer.status == 2
    assert "--out" in answer.err
    assert (traces / "b.csv").read_bytes() == before


@pytest.mark.parametrize("name", ["convert", "slice", "merge", "synth"])
def test_an_existing_file_is_replaced_with_force_alone(
    traces: Path, command: Command, name: str
) -> None:
    (traces / "s.toml").write_text(SYNTH)
    words = WRITING.get(name, ["trace", "synth", "s.toml", "TARGET"])
    words = ["old.csv" if word == "TARGET" else word for word in words]
    (traces / "old.csv").write_text("kept")
    refused = command(*words)
    assert refused.status == 2
    assert refused.err == (
        "error: old.csv: found an existing file, expected a new name or `--force`\n"
    )
    assert (traces / "old.csv").read_text() == "kept"
    done = command(*words, "--force")
    assert done.status == 0, done.err
    assert (traces / "old.csv").read_text() != "kept"
    assert not [path for path in traces.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    "words",
    [
        ["mrc", "a.csv", "--figure", "old"],
        ["train", "shiro", "a.csv", "--out", "old"],
        ["train", "kinds", "a=a.csv", "b=b.csv", "--out", "old.safetensors"],
        ["train", "kinds", "a=a.csv", "b=b.csv", "--out", "other.safetensors"],
        ["train", "mlcache", "stack.toml", "--out", "old.safetensors"],
        ["train", "mlcache", "stack.toml", "--out", "other.safetensors"],
        ["train", "icache", "stack.toml", "--out", "models"],
        ["train", "rc-rnn", "stack.toml", "--kind", "k", "--out", "models"],
        ["import", "mqsim", "drive.xml"],
    ],
    ids=" ".join,
)
def test_every_command_keeps_existing_files(
    stack: Path, command: Command, words: list[str]
) -> None:
    folder = stack.parent
    (folder / "models").mkdir()
    (folder / "drive.xml").write_text(DRIVE)
    beside = ["old", "old.safetensors", "other.json", "other.training.json", "drive.toml"]
    for name in [*beside, "models/training.json", "models/k.json", "models/k.safetensors"]:
        (folder / name).write_text("kept")
    answer = command(*words)
    assert answer.status == 2, answer.out
    assert "found an existing file, expected a new name or `--force`" in answer.err
    for path in [*(folder / name for name in beside), *(folder / "models").iterdir()]:
        assert path.read_text() == "kept"


def test_an_imported_stack_never_overwrites_the_configuration(
    folder: Path, command: Command
) -> None:
    (folder / "drive.toml").write_text(DRIVE)
    answer = command("import", "mqsim", "drive.toml", "--force")
    assert answer.status == 2
    assert "found a file that is read" in answer.err
    assert (folder / "drive.toml").read_text() == DRIVE


def test_devices_and_folders_are_not_replaced(traces: Path, command: Command) -> None:
    os.mkfifo("pipe.csv")
    for target, found in (("pipe.csv", "a device, pipe or socket"), (".", "a folder")):
        answer = command("trace", "convert", "a.csv", target, "--force", "--to", "csv")
        assert answer.status == 2
        assert f"found {found}, expected a file to write" in answer.err
    assert Path("/dev/null").is_char_device()


def test_a_link_to_nothing_is_an_existing_file(traces: Path, command: Command) -> None:
    (traces / "link.csv").symlink_to(traces / "nowhere.csv")
    assert command("trace", "convert", "a.csv", "link.csv").status == 2
    assert (traces / "link.csv").is_symlink()


def test_calls_from_python_have_the_same_guard(folder: Path) -> None:
    frame = pl.DataFrame(
        {"time_ns": [1], "offset_bytes": [0], "length_bytes": [512], "op": ["read"]}
    )
    cachewright.write_trace(frame, "a.parquet")
    before = Path("a.parquet").read_bytes()
    for write in (
        lambda: cachewright.write_trace(frame, "a.parquet"),
        lambda: cachewright.write_trace("a.parquet", "a.parquet", overwrite=True),
        lambda: cachewright.write_trace(
            cachewright.Trace("a.parquet"), f"../{folder.name}/a.parquet", overwrite=True
        ),
        lambda: traces.copy(traces.open_trace("a.parquet"), "a.parquet", overwrite=True),
        lambda: traces.copy(
            traces.merger([traces.MergeInput("a.parquet", "a")]), "a.parquet", overwrite=True
        ),
    ):
        with pytest.raises(cachewright.SpecError, match=r"^.*a.parquet: found (a|an) .*file"):
            write()
        assert Path("a.parquet").read_bytes() == before
    cachewright.write_trace(frame.with_columns(time_ns=2), "a.parquet", overwrite=True)
    assert Path("a.parquet").read_bytes() != before


def test_a_file_that_appears_meanwhile_is_kept(traces: Path) -> None:
    reader = cachewright.traces.open_trace("a.csv")

    def progress(stage: str, done: int, total: int | None) -> None:
        Path("new.csv").write_text("of another")

    with pytest.raises(cachewright.SpecError, match="existing file"):
        cachewright.traces.copy(reader, "new.csv", progress=progress)
    assert Path("new.csv").read_text() == "of another"
    assert {path.name for path in traces.iterdir()} == {"a.csv", "b.csv", "new.csv"}


def test_a_failed_or_cancelled_write_leaves_nothing(traces: Path, command: Command) -> None:
    (traces / "bad.csv").write_text((traces / "a.csv").read_text() + "1,R,-4096,4096,9\n")
    assert command("trace", "convert", "bad.csv", "x.csv").status == 2
    with pytest.raises(cachewright.RunError, match="cancelled"):
        cachewright.traces.copy(
            cachewright.traces.open_trace("a.csv"), "x.csv", progress=lambda *_: False
        )
    Path("folder").mkdir()
    with pytest.raises(IsADirectoryError):
        targets.write_whole("folder", "text")
    assert {path.name for path in traces.iterdir()} == {"a.csv", "b.csv", "bad.csv", "folder"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_write_leaves_nothing(traces: Path, number: signal.Signals) -> None:
    # The selection never ends, so the command is writing when the signal comes. The tests may run
    # where interrupts and hang-ups are ignored, which a child would inherit.
    program = (
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
        "from cachewright import cli, traces\n"
        "select = traces.select\n"
        "def endless(*arguments):\n"
        "    for columns in select(*arguments):\n"
        "        yield columns\n"
        "    print('writing', flush=True)\n"
        "    while True:\n"
        "        yield columns\n"
        "traces.select = endless\n"
        "cli.main(['trace', 'convert', 'a.csv', 'x.csv'])\n"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "writing\n"
    running.send_signal(number)
    _, err = running.communicate()
    assert err == "error: interrupted\n"
    assert {path.name for path in traces.iterdir()} == {"a.csv", "b.csv"}
