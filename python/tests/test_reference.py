"""The reference of commands, the manual pages and completions are made from the commands.

For: `cachewright.cli.reference` and `completion`. Must never know: what a command does.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Command

from cachewright.cli import reference
from cachewright.cli.app import COMMANDS


def _every() -> list[reference.Command]:
    return [one for top in reference.commands() for one in top.tree()]


def test_every_command_is_listed_once_with_a_sentence() -> None:
    assert [top.name for top in reference.commands()] == list(COMMANDS)
    names = [one.name for one in _every()]
    assert len(names) == len(set(names))
    assert {"trace info", "list policies", "train shiro"} <= set(names)
    for one in _every():
        assert one.doc[0].endswith("."), one.name


def test_every_option_says_what_it_means() -> None:
    for one in _every():
        shown = [*one.arguments, *(each for _, options in one.groups for each in options)]
        assert shown or one.commands, one.name
        assert [each.usage for each in shown if not each.doc] == [], one.name


def test_the_reference_names_what_help_names(command: Command) -> None:
    for one in _every():
        told = command(*one.words, "--help").out
        for each in (each for _, options in one.groups for each in options):
            for name in each.names:
                assert name in told, (one.name, name)


def test_manual_pages_have_every_section(tmp_path: Path) -> None:
    pages = reference.manuals()
    assert set(pages) == {"cachewright.1", *(f"cachewright-{name}.1" for name in COMMANDS)}
    for name, text in pages.items():
        for section in ("NAME", "SYNOPSIS", "DESCRIPTION"):
            assert f"\n.SH {section}\n" in text, name
        requests = {line.split()[0] for line in text.splitlines() if line.startswith((".", "'"))}
        assert requests <= {".TH", ".SH", ".SS", ".PP", ".TP", ".B", ".nf", ".fi"}, name


@pytest.mark.skipif(shutil.which("man") is None, reason="skipped: no `man` here")
def test_a_manual_page_is_formatted_without_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "cachewright-mrc.1"
    path.write_text(reference.manuals()[path.name])
    command = ["man", "--warnings", "-l", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "--policy TEXT" in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_name_every_command(command: Command, shell: str) -> None:
    answer = command("completion", shell)
    assert (answer.status, answer.err) == (0, "")
    for name in COMMANDS:
        assert re.search(rf"\b{name}\b", answer.out), name
    if shell == "bash":
        checked = ["bash", "-n"]
        done = subprocess.run(checked, input=answer.out, text=True, capture_output=True, check=True)
        assert done.stderr == ""


def test_another_shell_is_refused(command: Command) -> None:
    answer = command("completion", "csh")
    assert answer.status == 2
    assert "csh" in answer.err
