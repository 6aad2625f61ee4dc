"""How long figures take: noted by a run, kept beside its numbers, told before a run on volumes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from fixtures import Command
from test_claims import results, run_of, tree
from test_given_traces import SPECS, volume

from cachewright import SpecError
from cachewright.tables.measures import Traces
from cachewright_lab import digest, pages, took
from cachewright_lab.digest import Digest, Kept, KeptFigure, Took
from cachewright_lab.reproduce import load

WHERE = Traces(kind="trace", names=("mail",))


def kept(**figures: Took | None) -> Digest:
    """Return a digest with what figures took."""
    own = {
        name: KeptFigure(cachewright="0", specs="0", numbers="0", traces=WHERE, took=one)
        for name, one in figures.items()
    }
    return Digest("p", Kept(own))


def said(folder: Path, paper: str, figure: str | None, known: Digest) -> str:
    what = load(paper, figure, quick=False, specs=SPECS, traces=folder / "volumes")
    return took.told(what, known)


def test_a_kept_time_is_scaled_by_requests(folder: Path) -> None:
    for name in ("mail", "web"):
        volume(folder / "volumes", name, 3000)
    known = kept(fig1=Took(seconds=120.0, requests=12_000))
    assert said(folder, "rc-rnn", "fig1", known) == (
        "about 1min on one core for fig1 on these volumes (kept run: 2min for 12k requests)"
    )
    short = kept(fig1=Took(seconds=0.0, requests=12_000))
    assert said(folder, "rc-rnn", "fig1", short).startswith("about a second on one core for fig1")
    for untimed in (kept(), kept(fig1=None), kept(fig1=Took(seconds=1.0, requests=0))):
        assert said(folder, "rc-rnn", "fig1", untimed) == (
            "how long fig1 will take is not known: no run of it was timed"
        )


def test_several_figures_are_told_together(folder: Path) -> None:
    for name in ("mail", "web"):
        volume(folder / "volumes", name, 3000)
    one = Took(seconds=120.0, requests=12_000)
    together = said(folder, "rc-rnn", None, kept(fig1=one, fig1b=one))
    assert together.startswith("about 2min on one core for 2 figures on these volumes; of ")
    assert together.endswith(" no run was timed")
    alone = said(folder, "rc-rnn", None, kept())
    assert alone == "how long these figures will take is not known: no run of theirs was timed"


def test_requests_count_up_to_where_tenants_stop(folder: Path) -> None:
    for name, requests in (("oltp", 2000), ("web", 4000), ("mail", 2000)):
        volume(folder / "volumes", name, requests)
    known = kept(fig1=Took(seconds=60.0, requests=3600))
    # They stop at nine tenths of the shortest span, 1,999 times 10 ms.
    assert said(folder, "icache", "fig1", known).startswith("about 1.5min on one core for fig1")


def test_what_replays_as_long_as_its_spec_says_takes_as_long(folder: Path) -> None:
    for name in ("lu", "web", "dss", "file"):
        volume(folder / "volumes", name, 10)
    known = kept(choices=Took(seconds=90.0, requests=9_000_000))
    assert said(folder, "oc-cache", "choices", known) == (
        "about 1.5min on one core for choices on these volumes (kept run: 1.5min, as long on any)"
    )


def test_a_run_in_an_empty_folder_is_timed_and_the_next_is_not(
    folder: Path, command: Command
) -> None:
    for name in ("mail", "web"):
        volume(folder / "volumes", name)
    words = ["reproduce", "rc-rnn", "fig1", "--traces", "volumes", "--specs", SPECS, "--out", "r"]
    answer = command(*words)
    assert answer.status == 0, answer.err
    assert "for fig1" in answer.err or "how long fig1 will take" in answer.err
    [(name, one)] = took.read(folder / "r").items()
    assert (name, one.requests) == ("fig1", 4000)
    assert one.seconds > 0
    before = (folder / "r" / took.FILE).read_bytes()
    assert command(*words).status == 0
    assert (folder / "r" / took.FILE).read_bytes() == before, "its results were there"
    shutil.rmtree(folder / "r")
    assert command("reproduce", "rc-rnn", "fig1", "--quick", "--out", "r").status == 0
    assert not (folder / "r" / took.FILE).exists(), "in small"


def test_a_figure_that_replays_nothing_is_timed_too(folder: Path, command: Command) -> None:
    for name in ("mail", "web"):
        volume(folder / "volumes", name)
    words = ["reproduce", "rc-rnn", "networks", "--traces", "volumes", "--specs", SPECS]
    answer = command(*words, "--out", "deep/r")
    assert answer.status == 0, answer.err
    assert list(took.read(folder / "deep" / "r")) == ["networks"]


def test_what_a_run_took_is_kept_with_its_numbers(folder: Path) -> None:
    root = tree(folder)
    out = run_of(folder, results(fig1_a_hits=1.2))
    (out / took.FILE).write_text(json.dumps({"fig1": {"seconds": 2.5, "requests": 10}}))
    path = pages.accept(root, out)
    assert digest.read(path, "p").own.figures["fig1"].took == Took(seconds=2.5, requests=10)
    text, page = path.read_bytes(), (root / pages.FOLDER / "p" / pages.PAGE).read_bytes()
    assert pages.accept(root, out).read_bytes() == text
    assert (root / pages.FOLDER / "p" / pages.PAGE).read_bytes() == page
    (out / took.FILE).unlink()
    pages.accept(root, out)
    assert digest.read(path, "p").own.figures["fig1"].took is None
    assert (root / pages.FOLDER / "p" / pages.PAGE).read_bytes() == page, "no page shows it"


@pytest.mark.parametrize("text", ["[]", "{", '{"fig1": {"seconds": 1}}'])
def test_a_file_of_other_things_is_refused(folder: Path, text: str) -> None:
    (folder / took.FILE).write_text(text)
    with pytest.raises(SpecError, match=r"took\.json: found no times"):
        took.read(folder)
