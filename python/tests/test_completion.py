"""Shells complete the values of options, asked for as the shells themselves ask."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from fixtures import Command

from cachewright import registries
from cachewright.cli import completion

BASH = """
source completion.bash
COMP_LINE={line!r}
COMP_POINT=${{#COMP_LINE}}
read -ra COMP_WORDS <<< "$COMP_LINE"
[[ "$COMP_LINE" == *' ' ]] && COMP_WORDS+=('')
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
compopt() {{ :; }}
_cachewright_all
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def scripts(folder: Path, command: Command) -> Path:
    """Return a folder with the scripts of all shells."""
    for shell in ("bash", "zsh", "fish"):
        answer = command("completion", shell)
        assert answer.status == 0, answer.err
        Path(f"completion.{shell}").write_text(answer.out, encoding="utf-8")
    return folder


def asked_bash(line: str) -> list[str]:
    """Return what bash completes a line to."""
    text = BASH.format(line=line)
    return _said(["bash", "--norc", "-c", text])


def asked_fish(line: str) -> list[str]:
    """Return what fish completes a line to, without the descriptions."""
    text = f"source completion.fish; complete -C '{line}'"
    return [one.split("\t")[0] for one in _said(["fish", "--no-config", "-c", text])]


def _said(words: list[str]) -> list[str]:
    if shutil.which(words[0]) is None:
        pytest.skip(f"needs {words[0]}")
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


CASES = [
    ("cachewright compare t --policy s3", {"s3-fifo"}),
    ("cachewright compare t --policy lru,ar", {"lru,arc"}),
    ("cachewright run t --partition hu", {"hull"}),
    ("cachewright mrc t --format msr", {"msr"}),
    ("cachewright run s.toml --set cache.pol", {"cache.policy="}),
    ("cachewright wa t --separation sep", {"sepbit"}),
    ("cachewright reproduce soft", {"soft-qos"}),
    ("cachewright reproduce soft-qos fig7", {"fig7a", "fig7b", "fig7c"}),
]


@pytest.mark.parametrize(("line", "expected"), CASES)
def test_bash_completes_values(scripts: Path, line: str, expected: set[str]) -> None:
    assert set(asked_bash(line)) >= expected
    assert all(
        one.startswith(line.rsplit(maxsplit=1)[-1].rsplit("=", maxsplit=1)[-1])
        for one in asked_bash(line)
    )


@pytest.mark.parametrize(("line", "expected"), CASES)
def test_fish_completes_values(scripts: Path, line: str, expected: set[str]) -> None:
    assert set(asked_fish(line)) >= expected


def test_bash_completes_values_of_keys_behind_the_sign(scripts: Path) -> None:
    assert "arc" in asked_bash("cachewright compare s.toml --vary cache.policy=lru,ar")[0]
    assert asked_bash("cachewright run s.toml --set cache.partition=hu") == ["hull"]
    assert "mqsim-default" in asked_bash("cachewright run s.toml --set device.ssd.model=mqsim")


def test_what_has_no_values_is_completed_as_before(scripts: Path) -> None:
    assert set(asked_bash("cachewright compl")) == {"completion"}
    assert "--policy" in asked_bash("cachewright compare --pol")


def test_zsh_takes_the_script(scripts: Path) -> None:
    checked = "autoload -U compinit; compinit -u -D; source completion.zsh; "
    said = _said(["zsh", "-f", "-c", f"{checked}whence -w _cachewright _cachewright_values"])
    assert said == ["_cachewright: function", "_cachewright_values: function"]


def test_every_name_is_offered() -> None:
    known = completion.values()
    assert set(known.options["--policy"]) > {one.name for one in registries.list("policies")}
    assert "all" in known.options["--policy"]
    assert set(known.keys["device.ssd.model"]) == {one.name for one in registries.list("devices")}
    assert "write-back" in known.keys["cache.write"]
